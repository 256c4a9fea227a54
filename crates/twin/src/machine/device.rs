//! A disk: requests wait for each other, take time by their size, and end a latency later.
//!
//! Left out: seeks, merging of requests, several queues. Memory used as a disk is synchronous: the CPU that asks
//! copies, and nobody waits.

use crate::kernel::{PS_PER_NS, Ps};

/// Picoseconds of a second.
const PS_PER_S: u128 = 1_000_000_000_000;
/// Bytes of a page.
const PAGE: u128 = 4096;

/// A disk and its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    latency: Ps,
    /// Time of a page at the device's bandwidth.
    page: Ps,
    /// The CPU that asks does the work.
    pub synchronous: bool,
    /// When the last request will have been transferred.
    busy_until: Ps,
}

impl Device {
    /// A disk with a latency in nanoseconds and so many bytes per second; 0: as fast as can be.
    pub fn new(latency_ns: u64, bandwidth: u64, synchronous: bool) -> Device {
        let page = (PAGE * PS_PER_S).checked_div(bandwidth.into()).unwrap_or(0) as Ps;
        Device { latency: latency_ns * PS_PER_NS, page, synchronous, busy_until: 0 }
    }

    /// Asks for some pages to be read or written at a time; when that is done.
    pub fn submit(&mut self, now: Ps, pages: u64) -> Ps {
        self.busy_until = self.busy_until.max(now) + self.page * pages;
        self.busy_until + self.latency
    }

    /// What a synchronous transfer takes the CPU.
    pub fn transfer(&self, pages: u64) -> Ps {
        self.latency + self.page * pages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_wait_for_each_other() {
        // A page takes a millisecond, a request 2 more.
        let mut disk = Device::new(2_000_000, 4_096_000, false);
        let ms = 1_000_000_000;
        assert_eq!([disk.submit(0, 1), disk.submit(0, 3), disk.submit(20 * ms, 1)], [3 * ms, 6 * ms, 23 * ms]);
        assert_eq!(disk.transfer(2), 4 * ms);
        assert_eq!(Device::new(0, 0, true).transfer(7), 0);
    }
}
