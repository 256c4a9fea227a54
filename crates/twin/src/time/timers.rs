//! Timers, in order of (time, CPU, sequence).
//!
//! A binary heap: with some hundred pending timers any queue costs less than the work of a timer. The sequence number
//! makes the order total, so that equal times never depend on the heap's inner order.

use super::Ns;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Something that happens at a time on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timer<T> {
    /// When.
    pub at: Ns,
    /// On which CPU.
    pub cpu: u32,
    /// How many timers were set before it.
    pub seq: u64,
    /// The work to do.
    pub what: T,
}

impl<T: Eq> Ord for Timer<T> {
    /// The next timer compares greatest, as [`BinaryHeap`] is a max-heap.
    fn cmp(&self, other: &Timer<T>) -> Ordering {
        (other.at, other.cpu, other.seq).cmp(&(self.at, self.cpu, self.seq))
    }
}

impl<T: Eq> PartialOrd for Timer<T> {
    fn partial_cmp(&self, other: &Timer<T>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// All pending timers.
#[derive(Clone, Debug)]
pub struct Timers<T: Eq> {
    heap: BinaryHeap<Timer<T>>,
    set: u64,
}

impl<T: Eq> Default for Timers<T> {
    fn default() -> Timers<T> {
        Timers { heap: BinaryHeap::new(), set: 0 }
    }
}

impl<T: Eq> Timers<T> {
    /// Sets a timer.
    pub fn set(&mut self, at: Ns, cpu: u32, what: T) {
        self.heap.push(Timer { at, cpu, seq: self.set, what });
        self.set += 1;
    }

    /// Time of the next timer; `None` if there are none.
    pub fn next_at(&self) -> Option<Ns> {
        self.heap.peek().map(|timer| timer.at)
    }

    /// Takes the next timer if it is due by `until`, that time included.
    pub fn take(&mut self, until: Ns) -> Option<Timer<T>> {
        if self.next_at()? > until { None } else { self.heap.pop() }
    }

    /// Pending timers.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// True if nothing is pending.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn timers_come_by_time_cpu_and_sequence(set in prop::collection::vec((0u64..20, 0u32..4), 0..100)) {
            let mut timers = Timers::default();
            for (i, &(at, cpu)) in set.iter().enumerate() {
                timers.set(at, cpu, i);
            }
            let mut expected: Vec<_> = set.iter().enumerate().map(|(i, &(at, cpu))| (at, cpu, i)).collect();
            expected.sort_unstable();
            let taken: Vec<_> = std::iter::from_fn(|| timers.take(u64::MAX)).map(|t| (t.at, t.cpu, t.what)).collect();
            prop_assert_eq!(taken, expected);
        }
    }

    #[test]
    fn a_timer_waits_for_its_time() {
        let mut timers = Timers::default();
        timers.set(5, 0, ());
        assert_eq!(timers.take(4), None);
        assert_eq!((timers.next_at(), timers.len()), (Some(5), 1));
        assert!(timers.take(5).is_some() && timers.is_empty());
    }
}
