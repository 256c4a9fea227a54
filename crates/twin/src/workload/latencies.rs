//! Latencies of accesses without think time: from the arrival of those that arrive (open loop), else from the beginning,
//! to the end, with faults, reclaim and waits.
//!
//! A thread whose slice ends in the midst of an access loses its CPU when the kernel has handled the fault or the call,
//! before the program goes on (`exit_to_user_mode_loop`; without preemption of the kernel), so the access lasts until the
//! thread runs again. Likewise where CPUs share the time of one and others have turns. A thread's last access is kept
//! apart, as others run after the step that simulated it ([`crate::engine`]).
//!
//! Not modelled: accesses that are drawn in bulk and have no fault are hit by nobody. Compared with guests:
//! docs/fidelity.md.

use crate::time::{PS_PER_NS, Ps};
use mmtwin_event::durations::Durations;

/// Latencies of some accesses of a thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct Latencies {
    /// Nanoseconds of all but the last.
    all: Durations,
    last: Option<Timed>,
    /// Coming accesses of draws that were noted: they had hinting faults.
    noted: u64,
}

/// When an access began and ended without others, and how long those ran in the midst of it.
#[derive(Clone, Copy, Debug)]
struct Timed {
    began: Ps,
    ended: Ps,
    paused: Ps,
}

impl Timed {
    fn nanoseconds(&self) -> u64 {
        (self.ended.saturating_sub(self.began) + self.paused) / PS_PER_NS
    }
}

impl Latencies {
    /// An access took from a time to a time.
    pub(super) fn took(&mut self, began: Ps, ended: Ps) {
        let before = self.last.replace(Timed { began, ended, paused: 0 });
        before.into_iter().for_each(|timed| self.all.add(timed.nanoseconds()));
    }

    /// A hinting fault of accesses that are drawn in bulk took from a time to a time.
    pub(super) fn hint_took(&mut self, began: Ps, ended: Ps) {
        self.took(began, ended);
        self.noted += 1;
    }

    /// Of accesses that were drawn in bulk some have faults, which are noted one by one; the others took this each.
    pub(super) fn all_took(&mut self, time: Ps, accesses: u64, faults: u64) {
        let others = accesses.saturating_sub(faults);
        let noted = self.noted.min(others);
        self.noted -= noted;
        if others > noted {
            self.all.add_many(time / PS_PER_NS, others - noted);
        }
    }

    /// Others ran for so long when the thread had come to a time of its step.
    pub(super) fn paused(&mut self, at: Ps, time: Ps) {
        let within = self.last.iter_mut().filter(|timed| timed.began < at && at < timed.ended);
        within.for_each(|timed| timed.paused += time);
    }

    /// All of them, in nanoseconds.
    pub(crate) fn durations(&self) -> Durations {
        let mut all = self.all.clone();
        self.last.iter().for_each(|timed| all.add(timed.nanoseconds()));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: Ps = 1_000_000;

    #[test]
    fn others_in_the_midst_of_an_access_count() {
        let mut of = Latencies::default();
        of.took(0, 10 * US);
        of.paused(10 * US, 500 * US);
        assert_eq!(of.durations().max(), Some(10_000), "it was over");
        of.took(20 * US, 30 * US);
        of.paused(25 * US, 100 * US);
        of.paused(28 * US, 50 * US);
        of.took(40 * US, 41 * US);
        let all = of.durations();
        assert_eq!((all.count(), all.max(), all.sum), (3, Some(160_000), 171_000));
    }

    #[test]
    fn each_access_that_is_drawn_counts_once() {
        let mut of = Latencies::default();
        of.hint_took(0, 7 * US);
        of.took(8 * US, 10 * US);
        of.all_took(100_000, 50, 1);
        assert_eq!(of.durations().count(), 50);
        assert_eq!(of.durations().quantile(0.5), Some(100));
        of.all_took(100_000, 10, 0);
        assert_eq!(of.durations().count(), 60);
    }
}
