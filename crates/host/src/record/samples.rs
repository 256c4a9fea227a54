//! When samples of the counters are due.

use crate::clock;
use std::time::Duration;

/// When samples are due.
pub(crate) struct Samples {
    interval: Option<u64>,
    next: u64,
}

impl Samples {
    /// From now on, every so often; `None`: never.
    pub fn every(interval: Option<Duration>) -> Samples {
        let interval = interval.map(|i| i.as_nanos() as u64);
        Samples { interval, next: interval.map_or(u64::MAX, |i| clock::now().saturating_add(i)) }
    }

    /// When the next one is due.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// One is due now; the next one is a time from then, and after a delay those missed are not made up for.
    pub fn due(&mut self) -> bool {
        let now = clock::now();
        let due = now >= self.next;
        if due && let Some(interval) = self.interval {
            self.next = self.next.saturating_add(interval).max(now);
        }
        due
    }
}
