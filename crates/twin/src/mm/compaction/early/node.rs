//! Compaction of a node by its kswapd: `compact_pgdat` (3.4, 3.5). It does not wait for pages.

use super::pass::Pass;
use crate::frame::{Migratetype, ZONES};
use crate::mm::vmscan::{Poll, TaskCtx};

/// A node that is compacted.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    order: u32,
    /// Remaining zones, the last one first, and the current one.
    zones: Vec<usize>,
    current: Option<usize>,
    pass: Option<Pass>,
}

impl Node {
    /// Of an order, not begun.
    pub(crate) fn new(ctx: &TaskCtx<'_>, node: usize, order: u32) -> Node {
        let zones = (node * ZONES..(node + 1) * ZONES).rev();
        let zones = zones.filter(|&zone| ctx.kernel.alloc.zones[zone].populated()).collect();
        Node { order, zones, current: None, pass: None }
    }

    /// Continues.
    pub(crate) fn step(&mut self, ctx: &mut TaskCtx<'_>) -> Poll<()> {
        if let Some(pass) = &mut self.pass {
            return match pass.step(ctx) {
                Poll::On => Poll::On,
                Poll::Sleep(until, why) => Poll::Sleep(until, why),
                Poll::Done(_) => {
                    self.pass = None;
                    Poll::On
                }
            };
        }
        if let Some(zone) = self.current.take() {
            ctx.early_note(zone, self.order);
        }
        let Some(zone) = self.zones.pop() else { return Poll::Done(()) };
        self.current = Some(zone);
        if !ctx.early_deferred(zone, self.order) {
            self.pass = Some(Pass::new(zone, self.order, Migratetype::Unmovable, false));
        }
        Poll::On
    }
}
