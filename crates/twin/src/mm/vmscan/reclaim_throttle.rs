//! Sleeping until reclaim makes sense again: `reclaim_throttle`, `consider_reclaim_throttle`, `skip_throttle_noprogress`,
//! `__acct_reclaim_writeback` (5.16 to 6.18). Before, `congestion_wait`, which is not here.
//!
//! Times are whole ticks. `VMSCAN_THROTTLE_ISOLATED` does not occur, as a batch is put back before another task runs.
//! Checked by tests here and against guests (docs/fidelity.md).

use super::{BATCH, Control, MAX_RETRIES, Reclaim, TaskCtx};
use crate::frame::ZONES;
use crate::mm::lru::List;
use crate::time::{Ns, PS_PER_NS, Ps};
use crate::vmstat::{NodeItem, Pages};
use mmtwin_event::value::ThrottleReason;
use mmtwin_event::vocabulary::MmVmscanThrottled;

/// Reason of a sleep (`enum vmscan_throttle_state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Reason {
    /// Writes that end.
    Writeback = 0,
    /// For progress of any reclaim.
    NoProgress = 2,
    /// For a congested device.
    Congested = 3,
    /// For kswapd to refill the reserve: not a reason of the kernel's enum.
    Reserve = 4,
}

/// A sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Throttle {
    pub node: usize,
    pub reason: Reason,
    /// Tick in which it began, and how many it lasts.
    since: u64,
    ticks: u64,
}

impl TaskCtx<'_> {
    /// Begins to sleep, unless there is no use; until when.
    pub(super) fn throttle(&mut self, node: usize, reason: Reason) -> Option<(Throttle, Ps)> {
        let hz = self.kernel.reclaim.rules.hz;
        let ticks = match reason {
            Reason::Writeback => hz / 10,
            Reason::Reserve => hz,
            Reason::NoProgress | Reason::Congested if self.is_pointless(node) => return None,
            Reason::NoProgress | Reason::Congested => 1,
        };
        let since = self.now() / self.jiffy();
        let written = self.kernel.stat.pages.of(node, NodeItem::ThrottledWritten);
        let of = &mut self.kernel.reclaim.nodes[node];
        if reason == Reason::Writeback && of.throttled[reason as usize] == 0 {
            of.written_at_throttle = written;
        }
        of.throttled[reason as usize] += 1;
        let until: Ns = (since + ticks) * self.jiffy();
        Some((Throttle { node, reason, since, ticks }, until * PS_PER_NS))
    }

    /// A sleep has ended.
    pub(super) fn unthrottle(&mut self, of: Throttle) {
        self.kernel.reclaim.leave(of);
        let (jiffy, now, task) = (self.jiffy(), self.now(), self.task);
        let slept = (now / jiffy).saturating_sub(of.since).min(of.ticks);
        let usec = |ticks: u64| (ticks * jiffy / 1000) as i32;
        let event = MmVmscanThrottled {
            nid: of.node as i32,
            usec_timeout: usec(of.ticks),
            usec_delayed: usec(slept),
            reason: ThrottleReason(1 << of.reason as u32),
        };
        self.kernel.probe.write(now, self.cpu, task, &event, b"");
    }

    /// A sleep has lasted as long as it may.
    pub(super) fn is_over(&self, of: Throttle) -> bool {
        self.now() / self.jiffy() >= of.since + of.ticks
    }

    /// A sleep would not help: kswapd has given up on the node, or few pages are dirty or under writeback.
    fn is_pointless(&self, node: usize) -> bool {
        let reclaim = &self.kernel.reclaim;
        if reclaim.nodes[node].kswapd_failures >= MAX_RETRIES {
            return true;
        }
        let pages = &self.kernel.stat.pages;
        let zones = || node * ZONES..(node + 1) * ZONES;
        let reclaimable: u64 = zones().map(|zone| reclaim.reclaimable(pages, zone)).sum();
        let pending: u64 = zones().map(|zone| pages.write_pending(zone)).sum();
        2 * pending <= reclaimable
    }

    /// After a pass: tasks that wait for progress are woken if there was some; a task without any progress at the last
    /// priorities sleeps.
    pub(super) fn consider_throttle(&mut self, control: &Control, node: usize) -> Option<(Throttle, Ps)> {
        if control.reclaimed > control.scanned >> 3 {
            self.kernel.reclaim.wake(node, Reason::NoProgress);
            return None;
        }
        if control.is_kswapd() || control.is_cgroup() || control.priority != 1 || control.reclaimed > 0 {
            return None;
        }
        self.throttle(node, Reason::NoProgress)
    }
}

impl Reclaim {
    /// A sleeper sleeps no more.
    pub(crate) fn leave(&mut self, of: Throttle) {
        self.nodes[of.node].throttled[of.reason as usize] -= 1;
    }

    /// True if no task sleeps for a reason of tasks alone.
    pub(crate) fn no_task_sleeps(&self) -> bool {
        let of_tasks = [Reason::NoProgress, Reason::Congested, Reason::Reserve];
        self.nodes.iter().all(|node| of_tasks.iter().all(|&reason| node.throttled[reason as usize] == 0))
    }

    /// Wakes the tasks that sleep for a reason.
    pub(crate) fn wake(&mut self, node: usize, reason: Reason) {
        if self.nodes[node].throttled[reason as usize] > 0 {
            self.unthrottled.push((node, reason));
        }
    }

    /// A write of pages of a node has ended.
    pub(crate) fn written(&mut self, pages: &mut Pages, node: usize, n: u64) {
        let throttled = u64::from(self.nodes[node].throttled[Reason::Writeback as usize]);
        if throttled == 0 {
            return;
        }
        pages.add(node, NodeItem::ThrottledWritten, n as i64);
        let written = pages.of(node, NodeItem::ThrottledWritten) - self.nodes[node].written_at_throttle;
        if written > BATCH * throttled {
            self.wake(node, Reason::Writeback);
        }
    }

    /// Pages of a zone that reclaim could free (`zone_reclaimable_pages`).
    pub(crate) fn reclaimable(&self, pages: &Pages, zone: usize) -> u64 {
        let of = |list: List| pages.lru(zone, list as usize);
        let anon = of(List::InactiveAnon) + of(List::ActiveAnon);
        let swap = self.free_swap.is_some_and(|free| free > 0);
        of(List::InactiveFile) + of(List::ActiveFile) + if swap { anon } else { 0 }
    }
}
