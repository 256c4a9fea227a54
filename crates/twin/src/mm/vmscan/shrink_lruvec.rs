//! Shrinking a lruvec: `shrink_lruvec` (5.8 to 6.12).
//!
//! Batches of all lists in turn until enough is reclaimed; the rest of the scan is then adjusted so that both types are
//! scanned in the planned proportion. Checked by a test here and against guests (docs/fidelity.md).

use super::scan_count::Counts;
use super::{
    BATCH, Control, DEF_PRIORITY, Poll, Reclaimer, TaskCtx, shrink_active as active, shrink_inactive as inactive,
};
use crate::mm::lru::List;

/// A lruvec that is being shrunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pass {
    number: usize,
    /// Pages still to be scanned by list, and what was planned.
    left: Counts,
    planned: Counts,
    /// Current list; 4: all are done.
    turn: usize,
    reclaimed: u64,
    /// All that was planned is scanned, however much is reclaimed.
    proportional: bool,
}

impl Pass {
    pub(super) fn new(control: &Control, number: usize, counts: Counts) -> Pass {
        let proportional = control.reclaimer == Reclaimer::Direct && control.priority == DEF_PRIORITY;
        Pass { number, left: counts, planned: counts, turn: 0, reclaimed: 0, proportional }
    }

    /// Continues with a batch.
    pub(super) fn step(&mut self, ctx: &mut TaskCtx<'_>, control: &mut Control) -> Poll<()> {
        if self.turn == 4 {
            self.turn = 0;
            if self.reclaimed >= control.nr_to_reclaim && !self.proportional && !divide(&mut self.left, &self.planned) {
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
            self.reclaimed += inactive::shrink(ctx, control, self.number, list, wanted);
        } else if wanted > 0 && control.may_deactivate[usize::from(list.is_file())] {
            active::shrink(ctx, control, self.number, list, wanted);
        } else if wanted > 0 {
            control.skipped_deactivate = true;
        }
        Poll::On
    }

    fn end(&mut self, ctx: &mut TaskCtx<'_>, control: &mut Control) -> Poll<()> {
        control.reclaimed += self.reclaimed;
        let reclaim = &ctx.kernel.reclaim;
        if reclaim.free_swap.is_some() && reclaim.lru.shown(self.number).inactive_is_low(false) {
            active::shrink(ctx, control, self.number, List::ActiveAnon, BATCH);
        }
        Poll::Done(())
    }
}

/// Leaves of the type with more to scan as large a part as is left of the other, which is given up. False if one type
/// has nothing left.
fn divide(left: &mut Counts, planned: &Counts) -> bool {
    let (anon, file) = (left[0] + left[1], left[2] + left[3]);
    if anon == 0 || file == 0 {
        return false;
    }
    let (fewer, more, rest) = if file > anon { (0, 2, anon) } else { (2, 0, file) };
    let part = rest * 100 / (planned[fewer] + planned[fewer + 1] + 1);
    (left[fewer], left[fewer + 1]) = (0, 0);
    for list in [more, more + 1] {
        let scanned = planned[list] - left[list];
        left[list] = (planned[list] * (100 - part) / 100).saturating_sub(scanned);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_is_divided_as_planned() {
        // Of 100 + 100 anonymous pages 68 + 68 are left, which is 136 * 100 / 201 = 67 %: of files 33 % are scanned in
        // total.
        let mut left = [68, 68, 968, 968];
        assert!(divide(&mut left, &[100, 100, 1000, 1000]));
        assert_eq!(left, [0, 0, 330 - 32, 330 - 32]);
        assert!(!divide(&mut left, &[100, 100, 1000, 1000]));
        // More has been scanned of the other already.
        let mut left = [500, 0, 90, 0];
        assert!(divide(&mut left, &[1000, 0, 100, 0]));
        assert_eq!(left, [0, 0, 0, 0]);
    }
}
