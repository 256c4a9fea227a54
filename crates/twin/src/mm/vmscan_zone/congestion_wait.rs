//! Waiting for congested devices: `congestion_wait`, `wait_iff_congested` (2.6.36 to 3.5).
//!
//! Both end when a device is no longer congested, or when their time is over. Times are whole ticks. A task waits at two
//! places, in reclaim and before it tries again to allocate, under conditions that differ ([`Waits`]). Not modelled: that
//! a task that need not wait yields its CPU; of the first posting of 2010 and of 2.6.37 before its last fix, that
//! reclaim looks at the zone with most pages under writeback instead of the preferred one. Checked by tests of [`super`].

use super::{IsolatedPages, Waits};
use crate::frame::{Flag, Pfn, ZONES};
use crate::mm::lru::List;
use crate::mm::vmscan::{Poll, Reason, Reclaim, TaskCtx};
use crate::time::{PS_PER_NS, Ps};
use crate::vmstat::NodeItem;
use mmtwin_event::vocabulary::{WritebackCongestionWait, WritebackWaitIffCongested};

/// Wakeup of a sleeping task: a device is no longer congested, or a page has been written.
pub(super) const CONGESTION: Option<(usize, Reason)> = Some((0, Reason::Congested));
pub(super) const WRITTEN: Option<(usize, Reason)> = Some((0, Reason::Writeback));

/// A wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wait {
    /// Tick in which it began, and how many it lasts.
    since: u64,
    ticks: u64,
    /// It was for a congested device only.
    conditional: bool,
}

impl TaskCtx<'_> {
    /// Begins to wait for a part of a second; until when.
    pub(super) fn congestion_wait(&mut self, part: u64) -> (Wait, Ps) {
        let (since, ticks) = (self.now() / self.jiffy(), self.kernel.reclaim.rules.hz / part);
        (Wait { since, ticks, conditional: false }, self.tick_after(part))
    }

    /// The time a part of a second from now, in whole ticks.
    pub(super) fn tick_after(&self, part: u64) -> Ps {
        (self.now() / self.jiffy() + self.kernel.reclaim.rules.hz / part) * self.jiffy() * PS_PER_NS
    }

    /// A wait has ended.
    pub(super) fn end_wait(&mut self, wait: Wait) {
        let slept = (self.now() / self.jiffy()).saturating_sub(wait.since);
        let (usec_timeout, usec_delayed) = (self.microseconds(wait.ticks), self.microseconds(slept));
        match wait.conditional {
            false => self.write(&WritebackCongestionWait { usec_timeout, usec_delayed }),
            true => self.write(&WritebackWaitIffCongested { usec_timeout, usec_delayed }),
        }
    }

    /// A reclaimer may have to wait for a part of a second.
    pub(super) fn wait_in_reclaim(&mut self, part: u64, zone: usize) -> Option<(Wait, Ps)> {
        // Whether it waits always is all that differs from the wait between two tries.
        if self.decide(|rules| matches!(rules.waits, Waits::Always | Waits::IfDevice)) {
            return Some(self.congestion_wait(part));
        }
        self.wait_between_tries(part, zone)
    }

    /// A task that tries again to allocate, first of all from a zone, may have to wait for a part of a second.
    pub(super) fn wait_between_tries(&mut self, part: u64, zone: usize) -> Option<(Wait, Ps)> {
        let device = self.memory.requests.any_congested();
        let (much, congested) = (self.much_is_written(zone), self.kernel.reclaim.zones[zone].congested);
        let begins = self.decide(|rules| match rules.waits {
            Waits::Always => None,
            Waits::IfDevice => Some(device),
            Waits::IfWriteback => Some(device || much),
            Waits::IfZoneOrClean | Waits::IfZone => Some(device && congested),
        });
        let Some(begins) = begins else { return Some(self.congestion_wait(part)) };
        let (wait, until) = self.congestion_wait(part);
        let wait = Wait { conditional: true, ..wait };
        if !begins {
            self.end_wait(wait);
            return None;
        }
        Some((wait, until))
    }

    /// Half as many pages of a zone's node are under writeback as are on the zone's inactive lists.
    fn much_is_written(&self, zone: usize) -> bool {
        let inactive = self.list_size(zone, List::InactiveAnon) + self.list_size(zone, List::InactiveFile);
        self.kernel.stat.pages.of(zone / ZONES, NodeItem::Writeback) >= inactive / 2
    }

    fn microseconds(&self, ticks: u64) -> u32 {
        (ticks * self.jiffy() / 1000) as u32
    }
}

impl Reclaim {
    /// A request has left a device's queue, which is congested no longer if `uncongested`: tasks that wait for
    /// that, or for room in the queue, are woken.
    pub(crate) fn request_ended(&mut self, uncongested: bool) {
        if self.rules.congestion {
            self.unthrottled.extend(CONGESTION.filter(|_| uncongested));
        }
        self.unthrottled.extend(WRITTEN.filter(|_| std::mem::take(&mut self.awaits_room)));
    }

    /// The write of a page has ended: its waiters are woken.
    pub(crate) fn page_written(&mut self, page: Pfn) {
        if self.awaited.remove(&page) {
            self.unthrottled.extend(WRITTEN);
        }
    }
}

impl TaskCtx<'_> {
    /// Isolated pages of a task are under writeback: end of its wait; `None`: none of them is any more. Pages that were
    /// freed by others meanwhile are omitted.
    pub(crate) fn wait_for_writes(
        &mut self,
        zone: usize,
        pages: &mut Vec<Pfn>,
    ) -> Option<(Ps, Option<(usize, Reason)>)> {
        if let Some(held) = self.kernel.reclaim.isolated.remove(&self.task.pid) {
            pages.retain(|page| held.pages.contains(page));
        }
        let page = *pages.iter().find(|&&page| self.kernel.alloc.frames.has(page, Flag::Writeback))?;
        let held = IsolatedPages { zone, taken: [0; 2], pages: pages.iter().copied().collect(), lost: false };
        self.kernel.reclaim.isolated.insert(self.task.pid, held);
        self.kernel.reclaim.awaited.insert(page);
        Some((self.tick_after(10), WRITTEN))
    }

    /// The flusher finds no room in the device's queue: until when it waits for some. Later kernels have queues of another
    /// kind.
    pub(crate) fn waits_for_room(&mut self) -> Option<Poll<()>> {
        let full = self.kernel.reclaim.rules.congestion && self.memory.requests.is_full(true);
        self.kernel.reclaim.awaits_room |= full;
        full.then(|| Poll::Sleep(self.tick_after(10), WRITTEN))
    }
}
