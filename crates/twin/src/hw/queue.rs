//! The request queue of a disk, for writers: `blk_queue_congestion_threshold`, `get_request`, `freed_request`,
//! `ll_back_merge_fn` (to 4.x, one queue).
//!
//! With room for 128 requests the disk is congested from 113 on, until fewer than 103 are left. A write that starts
//! where the last request ends is merged with it, up to 512 KiB. Not modelled: requests of readers, those that end
//! before others (a request that ends is taken to be the oldest), merging with other requests than the last, or with
//! one that follows on the disk, and that a writer which has waited may fill the queue by half. Checked by tests here.

use std::collections::VecDeque;

/// Pages of a request at most (`max_sectors_kb`).
const MOST: u64 = 128;

/// Writes that a disk has not ended.
#[derive(Clone, Debug)]
pub struct Queue {
    /// Requests that there is room for.
    room: u64,
    /// In the order in which they end.
    requests: VecDeque<Request>,
    /// Requests of all of them.
    count: u64,
    congested: bool,
}

/// Writes that have been merged.
#[derive(Clone, Copy, Debug)]
struct Request {
    writes: u64,
    pages: u64,
    /// Requests that they take.
    count: u64,
    /// The place behind it.
    end: u64,
}

impl Default for Queue {
    fn default() -> Queue {
        Queue::new(Queue::ROOM)
    }
}

impl Queue {
    /// Requests that a usual one has room for (`nr_requests`).
    pub const ROOM: u64 = 128;

    /// With room for this many requests.
    pub fn new(room: u64) -> Queue {
        Queue { room, requests: VecDeque::new(), count: 0, congested: false }
    }

    /// Requests from which on it is congested, and below which it is no longer.
    fn thresholds(&self) -> (u64, u64) {
        let on = self.room - self.room / 8;
        ((on + 1).min(self.room), (on - self.room / 16).saturating_sub(1).max(1))
    }

    /// A write of pages from a place on begins.
    pub fn begin(&mut self, place: u64, pages: u64) {
        let end = place + pages;
        match self.requests.back_mut() {
            Some(last) if last.end == place && last.pages + pages <= MOST => {
                (last.writes, last.pages, last.end) = (last.writes + 1, last.pages + pages, end);
            }
            _ => {
                let count = pages.div_ceil(MOST);
                self.requests.push_back(Request { writes: 1, pages, count, end });
                self.count += count;
                self.congested |= self.count >= self.thresholds().0;
            }
        }
    }

    /// The oldest write has ended; true if the disk is congested no longer.
    pub fn end(&mut self) -> bool {
        let Some(first) = self.requests.front_mut() else { return false };
        first.writes -= 1;
        if first.writes > 0 {
            return false;
        }
        self.count -= first.count;
        self.requests.pop_front();
        self.count < self.thresholds().1 && std::mem::take(&mut self.congested)
    }

    /// Writers are to wait, if they can do something else.
    pub fn is_congested(&self) -> bool {
        self.congested
    }

    /// The queue is full: writers wait.
    pub fn is_full(&self) -> bool {
        self.count >= self.room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn congestion_begins_at_113_requests_and_ends_below_103() {
        let mut queue = Queue::default();
        (0..112).for_each(|i| queue.begin(2 * i, 1));
        assert!(!queue.is_congested());
        queue.begin(300, 1);
        assert!(queue.is_congested());
        assert_eq!((0..10).filter(|_| queue.end()).count(), 0);
        assert!(queue.is_congested() && queue.end() && !queue.is_congested() && !queue.end());
        (0..26).for_each(|i| queue.begin(1000 + 2 * i, 1));
        assert!(!queue.is_full());
        queue.begin(2000, 1);
        assert!(queue.is_full());
    }

    #[test]
    fn thresholds_are_parts_of_the_room() {
        assert_eq!([128, 64, 4].map(|room| Queue::new(room).thresholds()), [(113, 103), (57, 51), (4, 3)]);
    }

    #[test]
    fn writes_that_follow_each_other_are_one_request() {
        let mut queue = Queue::default();
        (0..128).for_each(|page| queue.begin(page, 1));
        assert_eq!(queue.count, 1);
        queue.begin(128, 1);
        queue.begin(500, 256);
        assert_eq!(queue.count, 4);
        (0..128).for_each(|_| assert!(!queue.end()));
        assert_eq!((queue.count, queue.requests.len()), (3, 2));
    }
}
