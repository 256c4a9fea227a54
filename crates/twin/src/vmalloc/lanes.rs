//! What happens next, where nearly everything takes one of a few constant times.
//!
//! A lane holds what ends after the same delay, in the order in which it began, which is the order in which it ends.
//! So the next thing to happen is the first of a handful of lanes: no heap, some nanoseconds per event.

use std::collections::VecDeque;

/// Lanes of customers, by number.
#[derive(Clone, Debug, Default)]
pub struct Lanes {
    lanes: Vec<Lane>,
    pushed: u64,
}

#[derive(Clone, Debug)]
struct Lane {
    /// `None`: whoever pushes says when, never before the last one.
    delay: Option<u64>,
    /// (time, order of pushing, customer)
    waiting: VecDeque<(u64, u64, u32)>,
}

impl Lanes {
    /// A lane whose times are given, and do not decrease; returns its number.
    pub fn ordered(&mut self) -> usize {
        self.lanes.push(Lane { delay: None, waiting: VecDeque::new() });
        self.lanes.len() - 1
    }

    /// The lane of a delay; made if there is none.
    pub fn of(&mut self, delay: u64) -> usize {
        self.lanes.iter().position(|lane| lane.delay == Some(delay)).unwrap_or_else(|| {
            self.lanes.push(Lane { delay: Some(delay), waiting: VecDeque::new() });
            self.lanes.len() - 1
        })
    }

    /// Puts a customer into a lane: its turn comes at `at`, or after the lane's delay from `at`.
    #[inline]
    pub fn push(&mut self, lane: usize, at: u64, customer: u32) {
        let lane = &mut self.lanes[lane];
        lane.waiting.push_back((at + lane.delay.unwrap_or(0), self.pushed, customer));
        self.pushed += 1;
    }

    /// Takes the next one that is due by `until`, first come first served among those of one time.
    #[inline]
    pub fn take(&mut self, until: u64) -> Option<(u64, u32)> {
        let mut next = (u64::MAX, u64::MAX);
        let mut from = usize::MAX;
        for (i, lane) in self.lanes.iter().enumerate() {
            if let Some(&(at, order, _)) = lane.waiting.front()
                && (at, order) < next
            {
                (next, from) = ((at, order), i);
            }
        }
        if next.0 > until {
            return None;
        }
        let (at, _, customer) = self.lanes.get_mut(from)?.waiting.pop_front()?;
        Some((at, customer))
    }
}
