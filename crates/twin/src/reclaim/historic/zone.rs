//! Shrinking a zone: `shrink_zone`, `shrink_list` (2.6.36).
//!
//! Batches of all lists in turn until enough is reclaimed, which does not count at the first priority. Left out:
//! `throttle_vm_writeout`. Checked by `tests/historic_reclaim.rs`.

use super::counts::{Counts, counts};
use super::{active, inactive};
use crate::reclaim::{BATCH, Control, DEF_PRIORITY, List, Poll, World};

/// A zone that is being shrunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pass {
    zone: usize,
    /// Pages still to be scanned by list.
    left: Counts,
    /// List whose turn it is; 4: all have had theirs.
    turn: usize,
}

impl Pass {
    pub(super) fn new(world: &mut World<'_>, control: &Control, zone: usize) -> Pass {
        Pass { zone, left: counts(world, control, zone), turn: 0 }
    }

    /// Goes on with a batch.
    pub(super) fn step(&mut self, world: &mut World<'_>, control: &mut Control) -> Poll<()> {
        if self.turn == 4 {
            self.turn = 0;
            if control.reclaimed >= control.nr_to_reclaim && control.priority < DEF_PRIORITY {
                return self.end(world, control);
            }
        }
        let [anon, _, file, active_file] = self.left;
        if self.turn == 0 && anon == 0 && file == 0 && active_file == 0 {
            return self.end(world, control);
        }
        let (list, wanted) = (List::EVICTABLE[self.turn], self.left[self.turn].min(BATCH));
        self.left[self.turn] -= wanted;
        self.turn += 1;
        if wanted > 0 && !list.is_active() {
            control.reclaimed += inactive::shrink(world, control, self.zone, list, wanted);
        } else if wanted > 0 && world.is_inactive_low(self.zone, list.is_file()) {
            active::shrink(world, control, self.zone, list, wanted);
        }
        Poll::On
    }

    fn end(&mut self, world: &mut World<'_>, control: &Control) -> Poll<()> {
        if world.has_swap() && world.is_inactive_low(self.zone, false) {
            active::shrink(world, control, self.zone, List::ActiveAnon, BATCH);
        }
        Poll::Done(())
    }
}
