//! From the events of a task to its waits: from a begin to its end, or the length that an event tells.

use super::wait::{Cause, Wait};
use crate::tasks::{Tasks, is_kernel_daemon};
use mmtwin_event::vocabulary::{
    BalanceDirtyPages, MmVmscanDirectReclaimBegin, MmVmscanDirectReclaimEnd, MmVmscanLruShrinkInactive,
    MmVmscanMemcgReclaimBegin, MmVmscanMemcgReclaimEnd, MmVmscanNodeReclaimBegin, MmVmscanNodeReclaimEnd,
    MmVmscanThrottled, WritebackCongestionWait, WritebackWaitIffCongested,
};
use mmtwin_event::{Event, Kind};
use rustc_hash::FxHashMap;

/// Tasks that may wait at once: kernels have at most four times as many threads.
const MOST: usize = 1 << 20;

/// What has begun and not ended.
#[derive(Clone, Debug, Default)]
pub struct Tracker {
    open: FxHashMap<i32, Wait>,
    /// Tasks in a slab shrinker, and since when.
    shrinking: FxHashMap<i32, u64>,
}

impl Tracker {
    /// What a task waits for now.
    pub fn cause(&self, pid: i32) -> Option<Cause> {
        self.open.get(&pid).map(|wait| wait.cause)
    }

    /// Forgets what has begun: its end may have been lost.
    pub fn forget(&mut self) {
        self.open.clear();
        self.shrinking.clear();
    }

    /// Takes an event; returns the wait that ends with it.
    #[inline]
    pub fn event(&mut self, ev: &Event<'_>, tasks: &mut Tasks) -> Option<Wait> {
        const USEC: u64 = 1000;
        match ev.kind {
            Kind::MmVmscanDirectReclaimBegin => {
                let e: MmVmscanDirectReclaimBegin = ev.typed();
                self.begin(ev, tasks, Cause::Direct, Some(e.order));
            }
            Kind::MmVmscanMemcgReclaimBegin => {
                let e: MmVmscanMemcgReclaimBegin = ev.typed();
                self.begin(ev, tasks, Cause::Cgroup, Some(e.order));
            }
            Kind::MmVmscanNodeReclaimBegin => {
                let e: MmVmscanNodeReclaimBegin = ev.typed();
                self.begin(ev, tasks, Cause::Node, Some(e.order));
            }
            Kind::MmCompactionBegin => self.begin(ev, tasks, Cause::Compaction, None),
            Kind::MmVmscanDirectReclaimEnd => {
                let e: MmVmscanDirectReclaimEnd = ev.typed();
                return self.end(ev, Cause::Direct, Some(e.nr_reclaimed));
            }
            Kind::MmVmscanMemcgReclaimEnd => {
                let e: MmVmscanMemcgReclaimEnd = ev.typed();
                return self.end(ev, Cause::Cgroup, Some(e.nr_reclaimed));
            }
            Kind::MmVmscanNodeReclaimEnd => {
                let e: MmVmscanNodeReclaimEnd = ev.typed();
                return self.end(ev, Cause::Node, Some(e.nr_reclaimed));
            }
            Kind::MmCompactionEnd => return self.end(ev, Cause::Compaction, None),
            Kind::MmVmscanLruShrinkInactive => {
                if let Some(open) = self.open.get_mut(&ev.pid) {
                    let e: MmVmscanLruShrinkInactive = ev.typed();
                    open.scanned = open.scanned.saturating_add(e.nr_scanned);
                    open.freed = open.freed.saturating_add(e.nr_reclaimed);
                }
            }
            Kind::MmVmscanWriteFolio => {
                if let Some(open) = self.open.get_mut(&ev.pid) {
                    open.written += 1;
                }
            }
            Kind::MmShrinkSlabStart if self.shrinking.len() < MOST => {
                self.shrinking.insert(ev.pid, ev.ts);
            }
            Kind::MmShrinkSlabEnd => {
                if let (Some(from), Some(open)) = (self.shrinking.remove(&ev.pid), self.open.get_mut(&ev.pid)) {
                    open.slab = open.slab.saturating_add(ev.ts.saturating_sub(from));
                }
            }
            Kind::MmVmscanThrottled => {
                let e: MmVmscanThrottled = ev.typed();
                let slept = u64::try_from(e.usec_delayed).unwrap_or(0) * USEC;
                return self.slept(ev, tasks, Cause::Throttled, ev.ts.saturating_sub(slept), ev.ts);
            }
            Kind::WritebackCongestionWait => {
                let e: WritebackCongestionWait = ev.typed();
                let slept = u64::from(e.usec_delayed) * USEC;
                return self.slept(ev, tasks, Cause::Throttled, ev.ts.saturating_sub(slept), ev.ts);
            }
            Kind::WritebackWaitIffCongested => {
                let e: WritebackWaitIffCongested = ev.typed();
                let slept = u64::from(e.usec_delayed) * USEC;
                return self.slept(ev, tasks, Cause::Throttled, ev.ts.saturating_sub(slept), ev.ts);
            }
            Kind::BalanceDirtyPages => {
                let e: BalanceDirtyPages = ev.typed();
                // Milliseconds, as the kernel prints them.
                let pause = u64::try_from(e.pause).unwrap_or(0).saturating_mul(1_000_000);
                return self.slept(ev, tasks, Cause::Dirty, ev.ts, ev.ts.saturating_add(pause));
            }
            _ => {}
        }
        None
    }

    fn begin(&mut self, ev: &Event<'_>, tasks: &mut Tasks, cause: Cause, order: Option<i32>) {
        if is_kernel_daemon(tasks.of(ev)) || self.open.contains_key(&ev.pid) || self.open.len() >= MOST {
            return;
        }
        self.open.insert(ev.pid, begun(ev, tasks, cause, order));
    }

    fn end(&mut self, ev: &Event<'_>, cause: Cause, returned: Option<u64>) -> Option<Wait> {
        if self.cause(ev.pid) != Some(cause) {
            return None;
        }
        let mut wait = self.open.remove(&ev.pid)?;
        (wait.until, wait.returned) = (ev.ts.max(wait.from), returned);
        Some(wait)
    }

    /// A wait whose length its event tells, behind or before it. Within another wait it is a part of that.
    fn slept(&mut self, ev: &Event<'_>, tasks: &mut Tasks, cause: Cause, from: u64, until: u64) -> Option<Wait> {
        if from >= until || is_kernel_daemon(tasks.of(ev)) {
            return None;
        }
        if let Some(open) = self.open.get_mut(&ev.pid) {
            open.throttled = open.throttled.saturating_add(until - from);
            return None;
        }
        Some(Wait { from, until, ..begun(ev, tasks, cause, None) })
    }
}

/// A wait that begins with an event.
fn begun(ev: &Event<'_>, tasks: &mut Tasks, cause: Cause, order: Option<i32>) -> Wait {
    let task = tasks.of(ev);
    Wait {
        pid: ev.pid,
        who: format!("{}-{}", task.name(), task.pid),
        from: ev.ts,
        until: ev.ts,
        cause,
        order,
        scanned: 0,
        freed: 0,
        returned: None,
        throttled: 0,
        slab: 0,
        written: 0,
    }
}
