//! Compaction by a task that finds no block: `try_to_compact_pages`.

use super::pass::Pass;
use crate::mm::compaction::Status;
use crate::mm::vmscan::{Poll, TaskCtx};
use crate::page_alloc::Request;

/// A task that compacts.
#[derive(Clone, Debug)]
pub(crate) struct Direct {
    request: Request,
    sync: bool,
    /// Zones that the request may use, in order, and which of them is next.
    zones: Vec<usize>,
    next: usize,
    pass: Option<Pass>,
    result: Status,
}

impl Direct {
    /// For a request, in the zones that it may take pages of. It counts as a stall even if no zone suits.
    pub(crate) fn new(ctx: &mut TaskCtx<'_>, request: Request, sync: bool, zones: Vec<usize>) -> Direct {
        ctx.kernel.stat.events.reclaim.compact_stall += 1;
        Direct { request, sync, zones, next: 0, pass: None, result: Status::Skipped }
    }

    /// Continues; at the end, the result.
    pub(crate) fn step(&mut self, ctx: &mut TaskCtx<'_>) -> Poll<Status> {
        let order = self.request.order;
        let Some(pass) = &mut self.pass else {
            let Some(&zone) = self.zones.get(self.next) else { return self.end(ctx) };
            self.pass = Some(Pass::new(zone, order, self.request.migratetype, self.sync));
            return Poll::On;
        };
        let status = match pass.step(ctx) {
            Poll::On => return Poll::On,
            Poll::Sleep(until, why) => return Poll::Sleep(until, why),
            Poll::Done(status) => status,
        };
        self.pass = None;
        self.result = self.result.max(status);
        if ctx.kernel.early_has_block(self.zones[self.next], order) {
            return self.end(ctx);
        }
        self.next += 1;
        Poll::On
    }

    /// Pages that it has freed may be on the lists of its CPU.
    fn end(&self, ctx: &mut TaskCtx<'_>) -> Poll<Status> {
        if self.result != Status::Skipped {
            ctx.kernel.drain_pages(ctx.cpu);
        }
        Poll::Done(self.result)
    }
}
