//! A disk: requests wait for each other, take time by their size, and end a latency later.
//!
//! One that seeks takes a seek time more for a request that does not follow one in its queue or the last one, as an
//! elevator merges and sorts them. Synchronous requests go first, as in CFQ (2.6.18 to 4.20): 100 ms of them, then 40
//! ms of asynchronous ones. A disk behind the kernel's target dm-delay ends requests at ticks (drivers/md/dm-delay.c).
//! To 6.6 it sets a timer of the timer wheel for the latency in whole ticks, which fires a tick later, as it must not
//! fire early, and ends all requests whose ticks are over by then; from 6.7 on a thread polls the ticks of the clock.
//! Checked against guests of 6.1 and 6.12 (docs/reference/lab.md). Not modelled: that seeks are shorter where many
//! requests are sorted, time slices per process, several queues. Memory used as a disk is synchronous: the CPU that
//! submits copies the data itself; so it does for a read where memory is behind a delay, as in the lab. Checked by tests
//! here.

use crate::time::{PS_PER_NS, Ps};
use std::collections::BTreeMap;

/// Picoseconds of a second.
const PS_PER_S: u128 = 1_000_000_000_000;
/// Bytes of a page.
const PAGE: u128 = 4096;
/// Time of asynchronous requests for each 5 of synchronous ones (`cfq_slice_async`, `cfq_slice_sync`).
const ASYNC_OF_5: Ps = 2;

/// Whether a task waits for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoClass {
    /// One does.
    Sync,
    /// None does.
    Async,
}

/// How dm-delay ends requests at ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ticks {
    length: Ps,
    /// It has one timer of the timer wheel for all requests.
    wheel: bool,
    /// Number of the tick at which the timer fires last, as far as is known.
    fires: u64,
}

/// A disk and its queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    latency: Ps,
    /// Time of a page at the device's bandwidth.
    page: Ps,
    /// Seek time; 0: it does not seek, and requests are served in their order.
    seek: Ps,
    /// Requests end at ticks.
    ticks: Option<Ticks>,
    /// The CPU that submits does the work.
    pub synchronous: bool,
    /// Of a read, it copies the data, and the request ends a latency later.
    memory_backed: bool,
    /// When the last request, and the last synchronous one, will have been transferred.
    busy_until: Ps,
    sync_until: Ps,
    /// Total delay of requests by later ones.
    held_up: Ps,
    /// The place behind the last request; behind those that it has, when these will have been transferred.
    head: u64,
    places: BTreeMap<u64, Ps>,
}

impl Device {
    /// A disk with a latency in nanoseconds and this many bytes per second; 0: no transfer time.
    pub fn new(latency_ns: u64, bandwidth: u64, synchronous: bool) -> Device {
        let page = (PAGE * PS_PER_S).checked_div(bandwidth.into()).unwrap_or(0) as Ps;
        Device {
            latency: latency_ns * PS_PER_NS,
            page,
            seek: 0,
            ticks: None,
            synchronous,
            memory_backed: false,
            busy_until: 0,
            sync_until: 0,
            held_up: 0,
            head: 0,
            places: BTreeMap::new(),
        }
    }

    /// The same disk with a seek time in nanoseconds.
    pub fn seeking(self, seek_ns: u64) -> Device {
        Device { seek: seek_ns * PS_PER_NS, ..self }
    }

    /// True if places that do not follow each other cost a seek.
    pub fn seeks(&self) -> bool {
        self.seek > 0
    }

    /// The same disk, or one of which the CPU that submits a read copies the data.
    pub fn memory_backed(self, memory_backed: bool) -> Device {
        Device { memory_backed, ..self }
    }

    /// The same disk behind dm-delay with ticks of this many nanoseconds; `wheel`: it has a timer of the timer wheel.
    pub fn at_ticks(self, tick_ns: u64, wheel: bool) -> Device {
        Device { ticks: Some(Ticks { length: tick_ns * PS_PER_NS, wheel, fires: 0 }), ..self }
    }

    /// When a request ends that has been transferred.
    fn end(&mut self, transferred: Ps) -> Ps {
        let Some(ticks) = &mut self.ticks else { return transferred + self.latency };
        let expires = transferred / ticks.length + self.latency.div_ceil(ticks.length);
        if !ticks.wheel {
            return expires * ticks.length;
        }
        // One that expires before the timer fires anyway needs none of its own.
        if expires > ticks.fires {
            ticks.fires = expires + 1;
        }
        ticks.fires * ticks.length
    }

    /// Submits a read or write of some pages from a place on at a time; returns when it ends. If no task waits for it,
    /// it ends later by what [`Device::held_up`] has grown by until then.
    pub fn submit(&mut self, now: Ps, class: IoClass, place: u64, pages: u64) -> Ps {
        if self.memory_backed && class == IoClass::Sync {
            return self.end(now);
        }
        if self.seek == 0 {
            self.busy_until = self.busy_until.max(now) + self.page * pages;
            let transferred = self.busy_until;
            return self.end(transferred);
        }
        let time = self.page * pages + self.seek_to(now, place);
        let until = if class == IoClass::Sync { self.go_first(now, time) } else { self.busy_until.max(now) + time };
        self.busy_until = self.busy_until.max(until);
        self.head = place + pages;
        self.places.insert(self.head, until);
        self.end(until)
    }

    /// Queues a synchronous request before the asynchronous ones; when it will have been transferred.
    fn go_first(&mut self, now: Ps, time: Ps) -> Ps {
        let begins = self.sync_until.max(now);
        let others = self.busy_until.saturating_sub(begins);
        if others > 0 {
            self.held_up += time;
            self.busy_until += time;
        }
        self.sync_until = begins + others.min(time * ASYNC_OF_5 / 5) + time;
        self.sync_until
    }

    /// Total delay of asynchronous requests by synchronous ones that were submitted later.
    pub fn held_up(&self) -> Ps {
        self.held_up
    }

    /// CPU time of who submits a read that does not end at once.
    pub fn copy(&self, pages: u64) -> Ps {
        if self.memory_backed { self.page * pages } else { 0 }
    }

    /// CPU time of a synchronous transfer.
    pub fn transfer(&self, pages: u64) -> Ps {
        self.latency + self.page * pages
    }

    /// The same of a write. What a page takes on its way to a disk in memory has the copying in it (`cost.writeback_page`).
    pub fn transfer_written(&self, pages: u64) -> Ps {
        if self.memory_backed { self.latency } else { self.transfer(pages) }
    }

    /// Seek time to a place: 0 if it follows a queued request or the last one.
    fn seek_to(&mut self, now: Ps, place: u64) -> Ps {
        if self.places.remove(&place).is_some_and(|until| until > now) || place == self.head {
            return 0;
        }
        // Finished requests are dropped whenever their number has doubled, which bounds the list.
        if self.places.len().is_power_of_two() {
            self.places.retain(|_, until| *until > now);
        }
        self.seek
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Ps = 1_000_000_000;

    /// A page takes a millisecond, a request 2 more.
    fn disk() -> Device {
        Device::new(2_000_000, 4_096_000, false)
    }

    #[test]
    fn requests_wait_for_each_other() {
        let mut disk = disk();
        let mut ask = |now, pages| disk.submit(now * MS, IoClass::Sync, 7, pages);
        assert_eq!([ask(0, 1), ask(0, 3), ask(20, 1)], [3 * MS, 6 * MS, 23 * MS]);
        assert_eq!((disk.transfer(2), disk.held_up()), (4 * MS, 0));
        assert_eq!(Device::new(0, 0, true).transfer(7), 0);
    }

    #[test]
    fn dm_delay_ends_requests_at_ticks() {
        let ask = |disk: &mut Device, us: u64| disk.submit(us * 1_000_000, IoClass::Sync, 7, 1) / 1_000_000;
        let ends = |wheel: bool, latency: u64, asked: &[u64]| {
            let mut disk = Device::new(latency, 0, false).at_ticks(4_000_000, wheel);
            asked.iter().map(|&us| ask(&mut disk, us)).collect::<Vec<_>>()
        };
        // One after the other: 8 ms each on 6.1, 4 on 6.12; of 5 ms 12 and 8.
        assert_eq!(ends(true, 1_000_000, &[10, 8010, 16_010]), [8000, 16_000, 24_000]);
        assert_eq!(ends(false, 1_000_000, &[10, 4010, 11_990]), [4000, 8000, 12_000]);
        assert_eq!((ends(true, 5_000_000, &[10]), ends(false, 5_000_000, &[10])), (vec![12_000], vec![8000]));
        // A stream: those of the second tick end with those of the first.
        assert_eq!(ends(true, 1_000_000, &[10, 3990, 4010, 7990, 8010]), [8000, 8000, 8000, 8000, 16_000]);
    }

    #[test]
    fn a_request_that_follows_another_needs_no_seek() {
        let mut disk = disk().seeking(10_000_000);
        let mut write = |now, place, pages| disk.submit(now * MS, IoClass::Async, place, pages) / MS;
        // Two writers beside each other.
        assert_eq!([write(0, 100, 1), write(0, 900, 1), write(0, 101, 2), write(0, 901, 1)], [13, 24, 26, 27]);
        // Only the last place is known when all is done.
        assert_eq!([write(100, 103, 1), write(200, 104, 1)], [113, 203]);
    }

    #[test]
    fn synchronous_requests_are_first() {
        let mut disk = disk().seeking(10_000_000);
        let mut ask = |now, class, place, pages| disk.submit(now * MS, class, place, pages) / MS;
        assert_eq!([ask(0, IoClass::Async, 100, 1), ask(0, IoClass::Async, 200, 1)], [13, 24]);
        // From 0 on, 5 ms for the others and 13 for the request; then 1 ms for them and 3 for what follows.
        assert_eq!([ask(0, IoClass::Sync, 300, 3), ask(0, IoClass::Sync, 303, 3)], [20, 24]);
        assert_eq!([ask(50, IoClass::Async, 201, 1), ask(100, IoClass::Sync, 300, 1)], [63, 113]);
        assert_eq!(disk.held_up(), 16 * MS);
    }
}
