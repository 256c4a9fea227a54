//! Compaction by a task that finds no block: `try_to_compact_pages`, `should_compact_retry`.

use super::Status;
use super::zone::{Mode, Pass};
use crate::mm::vmscan::{COSTLY_ORDER, Poll, TaskCtx};
use crate::page_alloc::Request;
use mmtwin_event::vocabulary::MmCompactionTryToCompactPages;

/// Retries while compaction makes progress (`MAX_COMPACT_RETRIES`); a quarter for costly orders.
const MAX_RETRIES: u32 = 16;

/// How hard a task tries, the hardest first (`enum compact_priority`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Priority {
    SyncFull = 0,
    SyncLight = 1,
    Async = 2,
}

/// A task that compacts.
#[derive(Clone, Debug)]
pub(crate) struct Compact {
    request: Request,
    priority: Priority,
    /// Zones that the request may use, in order, and which of them is next.
    zones: Vec<usize>,
    next: usize,
    pass: Option<Box<Pass>>,
    result: Status,
}

impl Compact {
    /// For a request, in the zones that it may take pages of.
    pub(crate) fn new(ctx: &mut TaskCtx<'_>, request: Request, priority: Priority, zones: Vec<usize>) -> Compact {
        let (gfp, gfp_mask) = ctx.kernel.probe.gfp(request.gfp);
        let (order, told) = (request.order as i32, Some(priority as i32));
        let event = MmCompactionTryToCompactPages { order, gfp_mask, priority: told };
        let (at, cpu, task) = (ctx.now(), ctx.cpu, ctx.task);
        ctx.kernel.probe.write(at, cpu, task, &event, gfp.as_bytes());
        Compact { request, priority, zones, next: 0, pass: None, result: Status::Skipped }
    }

    /// Continues; at the end, the result.
    pub(crate) fn step(&mut self, ctx: &mut TaskCtx<'_>) -> Poll<Status> {
        let order = self.request.order;
        let Some(pass) = &mut self.pass else {
            let Some(&zone) = self.zones.get(self.next) else { return Poll::Done(self.result) };
            self.next += 1;
            if self.priority > Priority::SyncFull && ctx.compaction_deferred(zone, order) {
                self.result = self.result.max(Status::Deferred);
                return Poll::On;
            }
            let mode = if self.priority == Priority::Async { Mode::Async } else { Mode::SyncLight };
            let mut pass = Pass::new(zone, order, self.request.migratetype, self.request.highest, mode);
            (pass.direct, pass.thorough) = (true, self.priority == Priority::SyncFull);
            self.pass = Some(Box::new(pass));
            return Poll::On;
        };
        let zone = pass.zone;
        if !pass.captured {
            ctx.kernel.alloc.begin_capture(zone, order, self.request.migratetype);
        }
        let came = pass.step(ctx);
        pass.captured |= ctx.kernel.alloc.end_capture(ctx.task.pid);
        let status = match came {
            Poll::On => return Poll::On,
            Poll::Sleep(until, why) => return Poll::Sleep(until, why),
            Poll::Done(_) if pass.captured => Status::Success,
            Poll::Done(status) => status,
        };
        self.pass = None;
        self.result = self.result.max(status);
        if status == Status::Success {
            ctx.compaction_defer_reset(zone, order, false);
            return Poll::Done(self.result);
        }
        if self.priority != Priority::Async && matches!(status, Status::Complete | Status::PartialSkipped) {
            ctx.defer_compaction(zone, order);
        }
        Poll::On
    }
}

/// State of a task's compactions so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tries {
    pub priority: Priority,
    pub retries: u32,
}

impl Tries {
    /// None yet.
    pub(crate) const NONE: Tries = Tries { priority: Priority::SyncLight, retries: 0 };

    /// `should_compact_retry`; `suitable`: with all that can be reclaimed some zone would be good for compaction.
    pub(crate) fn should_compact_retry(&mut self, order: u32, result: Status, suitable: impl FnOnce() -> bool) -> bool {
        self.retries += u32::from(result == Status::Success);
        match result {
            Status::Skipped => return suitable(),
            Status::Success | Status::Continue => {
                let most = if order > COSTLY_ORDER { MAX_RETRIES / 4 } else { MAX_RETRIES };
                if self.retries <= most {
                    return true;
                }
            }
            _ => {}
        }
        let hardest = if order > COSTLY_ORDER { Priority::SyncLight } else { Priority::SyncFull };
        if self.priority <= hardest {
            return false;
        }
        self.priority = if self.priority == Priority::Async { Priority::SyncLight } else { Priority::SyncFull };
        self.retries = 0;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_with_repeat_try_harder() {
        let mut tries = Tries::NONE;
        assert!(tries.should_compact_retry(3, Status::Complete, || unreachable!()));
        assert_eq!(tries.priority, Priority::SyncFull);
        assert!(!tries.should_compact_retry(3, Status::Deferred, || unreachable!()));
        assert!(
            tries.should_compact_retry(3, Status::Skipped, || true)
                && !tries.should_compact_retry(3, Status::Skipped, || false)
        );
        let mut tries = Tries::NONE;
        assert!((0..16).all(|_| tries.should_compact_retry(2, Status::Success, || unreachable!())));
        assert!(
            tries.should_compact_retry(2, Status::Success, || unreachable!()) && tries.priority == Priority::SyncFull
        );
        // Costly orders stop before.
        let mut tries = Tries::NONE;
        assert!(!tries.should_compact_retry(4, Status::Complete, || unreachable!()));
    }
}
