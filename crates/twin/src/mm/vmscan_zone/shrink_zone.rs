//! Shrinking a zone: `shrink_zone`, `shrink_list` (2.6.36), `shrink_mem_cgroup_zone` (3.3 to 3.5).
//!
//! Batches of all lists in turn until enough is reclaimed, which does not count at the first priority: in 2010 by the
//! whole reclaim, later of this zone. Then it may continue for compaction ([`crate::mm::vmscan_zone::block`]). Not
//! modelled: `throttle_vm_writeout`. Checked by `tests/historic_reclaim.rs`.

use super::block::should_continue_reclaim;
use super::scan_count::{Counts, counts};
use super::shrink_inactive::Batch;
use super::{Blocks, shrink_active as active};
use crate::mm::lru::List;
use crate::mm::vmscan::{BATCH, Control, DEF_PRIORITY, Poll, TaskCtx};

/// A zone that is being shrunk.
#[derive(Clone, Debug)]
pub(super) struct Pass {
    zone: usize,
    /// Pages still to be scanned by list.
    left: Counts,
    /// Current list; 4: all are done.
    turn: usize,
    /// Inactive pages that are being reclaimed.
    batch: Option<Box<Batch>>,
    /// Pages that were reclaimed and scanned before.
    before: (u64, u64),
}

impl Pass {
    pub(super) fn new(ctx: &mut TaskCtx<'_>, control: &Control, zone: usize) -> Pass {
        let before = (control.reclaimed, control.scanned);
        Pass { zone, left: counts(ctx, control, zone), turn: 0, batch: None, before }
    }

    /// Continues with a batch.
    pub(super) fn step(&mut self, ctx: &mut TaskCtx<'_>, control: &mut Control) -> Poll<()> {
        if let Some(batch) = &mut self.batch {
            match batch.step(ctx, control) {
                Poll::On => {}
                Poll::Sleep(until, why) => return Poll::Sleep(until, why),
                Poll::Done(reclaimed) => {
                    control.reclaimed += reclaimed;
                    self.batch = None;
                }
            }
            return Poll::On;
        }
        if self.turn == 4 {
            self.turn = 0;
            let before = if ctx.decide(|rules| rules.blocks == Blocks::Lumpy) { 0 } else { self.before.0 };
            if control.reclaimed - before >= control.nr_to_reclaim && control.priority < DEF_PRIORITY {
                return self.end(ctx, control);
            }
        }
        let [anon, _, file, active_file] = self.left;
        if self.turn == 0 && anon == 0 && file == 0 && active_file == 0 {
            return self.end(ctx, control);
        }
        let (list, wanted) = (List::EVICTABLE[self.turn], self.left[self.turn].min(BATCH));
        self.left[self.turn] -= wanted;
        self.turn += 1;
        if wanted > 0 && !list.is_active() {
            self.batch = Some(Box::new(Batch::new(control, self.zone, list, wanted)));
        } else if wanted > 0 && ctx.is_inactive_low(self.zone, list.is_file()) {
            control.in_mode &= !ctx.decide(|rules| rules.active_ends_mode);
            active::shrink(ctx, control, self.zone, list, wanted);
        }
        Poll::On
    }

    fn end(&mut self, ctx: &mut TaskCtx<'_>, control: &mut Control) -> Poll<()> {
        let ages = ctx.has_swap() || !ctx.decide(|rules| rules.ages_without_swap);
        if ages && ctx.is_inactive_low(self.zone, false) {
            control.in_mode &= !ctx.decide(|rules| rules.active_ends_mode);
            active::shrink(ctx, control, self.zone, List::ActiveAnon, BATCH);
        }
        let (reclaimed, scanned) = (control.reclaimed - self.before.0, control.scanned - self.before.1);
        if !should_continue_reclaim(ctx, control, self.zone, reclaimed, scanned) {
            return Poll::Done(());
        }
        *self = Pass::new(ctx, control, self.zone);
        Poll::On
    }
}
