//! Work that is done while virtual time hardly advances: an endless run of this kind is an error of the twin.
//!
//! Steps are counted, not wall time, so that the same run is stopped at the same place on every machine.

use super::Ps;

/// Time in which so much work is too much: a microsecond.
const WINDOW: Ps = 1_000_000;
/// Steps within it, and for each CPU and thread.
const MOST_STEPS: u64 = 1_000_000;
const STEPS_EACH: u64 = 1000;

/// Counts work that is done while virtual time hardly advances.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch {
    since: Ps,
    steps: u64,
    most: u64,
}

impl Watch {
    /// For a run of this many CPUs and threads.
    pub(crate) fn new(cpus: usize, threads: usize) -> Watch {
        Watch { since: 0, steps: 0, most: MOST_STEPS + STEPS_EACH * (cpus + threads) as u64 }
    }

    /// For a loop within a step that begins at a time.
    pub(crate) fn within(since: Ps) -> Watch {
        Watch { since, ..Watch::new(0, 0) }
    }

    /// Since when time has stood still.
    pub(crate) fn since(&self) -> Ps {
        self.since
    }

    /// Steps that are allowed.
    pub(crate) fn most(&self) -> u64 {
        self.most
    }

    /// A step of work is done at a time; false if it is one too many.
    #[inline]
    pub(crate) fn goes_on(&mut self, now: Ps) -> bool {
        if now >= self.since.saturating_add(WINDOW) {
            (self.since, self.steps) = (now, 0);
        }
        self.steps += 1;
        self.steps <= self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_counts_from_the_last_microsecond() {
        let mut watch = Watch { most: 3, ..Watch::within(500) };
        assert_eq!([500, 600, 700, 999_999].map(|now| watch.goes_on(now)), [true, true, true, false]);
        assert_eq!(
            [1_000_500, 1_000_500, 2_000_499, 2_000_499].map(|now| watch.goes_on(now)),
            [true, true, true, false]
        );
        assert!(watch.goes_on(2_000_500) && Watch::new(2, 3).most == 1_005_000);
    }
}
