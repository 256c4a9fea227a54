//! An event queue for events nearly all of which have one of a few constant delays.
//!
//! A lane holds entries with the same delay, in order of their start, which is the order of their end. So the next
//! entry is the first of a few lanes: no heap, some nanoseconds per event.

use std::collections::VecDeque;

/// Lanes of customers, by number.
#[derive(Clone, Debug, Default)]
pub struct Lanes {
    lanes: Vec<Lane>,
    /// (time, order of pushing) of the first in each lane; [`NEVER`] in an empty one.
    first: Vec<(u64, u64)>,
    pushed: u64,
}

/// Later than all entries.
const NEVER: (u64, u64) = (u64::MAX, u64::MAX);

#[derive(Clone, Debug)]
struct Lane {
    /// `None`: the caller gives the time, never before the last one.
    delay: Option<u64>,
    /// (time, order of pushing, customer)
    waiting: VecDeque<(u64, u64, u32)>,
}

impl Lanes {
    /// A lane whose times are given, and do not decrease; returns its number.
    pub fn ordered(&mut self) -> usize {
        self.add(None)
    }

    fn add(&mut self, delay: Option<u64>) -> usize {
        self.lanes.push(Lane { delay, waiting: VecDeque::new() });
        self.first.push(NEVER);
        self.lanes.len() - 1
    }

    /// The lane of a delay; made if there is none.
    pub fn of(&mut self, delay: u64) -> usize {
        let known = self.lanes.iter().position(|lane| lane.delay == Some(delay));
        known.unwrap_or_else(|| self.add(Some(delay)))
    }

    /// Puts a customer into a lane: it is due at `at`, or after the lane's delay from `at`.
    #[inline]
    pub fn push(&mut self, lane: usize, at: u64, customer: u32) {
        let Lane { delay, waiting } = &mut self.lanes[lane];
        let at = at + delay.unwrap_or(0);
        if waiting.is_empty() {
            self.first[lane] = (at, self.pushed);
        }
        waiting.push_back((at, self.pushed, customer));
        self.pushed += 1;
    }

    /// Takes the next one that is due by `until`, first come first served among those of one time.
    #[inline]
    pub fn take(&mut self, until: u64) -> Option<(u64, u32)> {
        let mut next = NEVER;
        let mut from = 0;
        for (i, &first) in self.first.iter().enumerate() {
            if first < next {
                (next, from) = (first, i);
            }
        }
        if next.0 > until {
            return None;
        }
        let waiting = &mut self.lanes.get_mut(from)?.waiting;
        let (at, _, customer) = waiting.pop_front()?;
        self.first[from] = waiting.front().map_or(NEVER, |&(at, order, _)| (at, order));
        Some((at, customer))
    }
}
