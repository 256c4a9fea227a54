//! Events the kernel lost, per CPU, and whether a stretch of time on a CPU is complete.

use std::collections::BTreeMap;

/// Losses by CPU.
#[derive(Clone, Debug, Default)]
pub struct Losses {
    /// By CPU that lost.
    pub cpus: BTreeMap<u32, Lost>,
}

/// Losses of one CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Events lost, where the kernel said how many.
    pub events: u64,
    /// Gaps of which the kernel did not say how many events they swallowed.
    pub unknown_gaps: u64,
    /// All gaps.
    pub gaps: u64,
    /// End of the last gap, in nanoseconds of the trace clock.
    pub last_at: u64,
}

impl Losses {
    /// Takes one gap that ended at `at`.
    pub fn lost(&mut self, cpu: u32, events: Option<u64>, at: u64) {
        let lost = self.cpus.entry(cpu).or_default();
        lost.gaps += 1;
        lost.last_at = lost.last_at.max(at);
        match events {
            Some(n) => lost.events = lost.events.saturating_add(n),
            None => lost.unknown_gaps += 1,
        }
    }

    /// True if anything was lost.
    pub fn any(&self) -> bool {
        !self.cpus.is_empty()
    }

    /// True if a gap of a CPU ended at a time or later.
    #[inline]
    pub fn since(&self, cpu: u32, at: u64) -> bool {
        self.any() && self.cpus.get(&cpu).is_some_and(|lost| lost.last_at >= at)
    }

    /// Sum over all CPUs.
    pub fn total(&self) -> Lost {
        self.cpus.values().fold(Lost::default(), |sum, l| Lost {
            events: sum.events.saturating_add(l.events),
            unknown_gaps: sum.unknown_gaps + l.unknown_gaps,
            gaps: sum.gaps + l.gaps,
            last_at: sum.last_at.max(l.last_at),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_of_unknown_size_are_no_zeros() {
        let mut losses = Losses::default();
        assert!(!losses.any());
        losses.lost(1, Some(250), 10);
        losses.lost(1, None, 20);
        losses.lost(0, Some(2), 5);
        assert_eq!(losses.cpus[&1], Lost { events: 250, unknown_gaps: 1, gaps: 2, last_at: 20 });
        assert_eq!(losses.total(), Lost { events: 252, unknown_gaps: 1, gaps: 3, last_at: 20 });
    }

    #[test]
    fn only_later_gaps_of_the_same_cpu_matter() {
        let mut losses = Losses::default();
        losses.lost(1, None, 20);
        assert!(losses.since(1, 20) && !losses.since(1, 21) && !losses.since(0, 0));
    }
}
