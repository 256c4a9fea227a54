//! A batch of active pages: `shrink_active_list` (2.6.36).
//!
//! All are deactivated but executable file pages that were used; references of other pages count for their type. There
//! is no event. Checked by `tests/historic_reclaim.rs`.

use super::isolate::{Mode, isolate};
use crate::frame::{Flag, ZONES};
use crate::mm::lru::List;
use crate::mm::vmscan::{Control, TaskCtx};

/// Deactivates a batch of a zone's active list.
pub(super) fn shrink(ctx: &mut TaskCtx<'_>, control: &Control, zone: usize, list: List, wanted: u64) {
    let file = list.is_file();
    let isolated = isolate(ctx, control, zone, list, wanted, Mode::Active);
    ctx.kernel.count_isolated(zone, isolated.taken, 1);
    ctx.kernel.stat.events.reclaim.pgrefill_zone[zone % ZONES] += isolated.scanned;
    let (mut active, mut inactive, mut used) = (Vec::new(), Vec::new(), 0);
    for page in isolated.pages {
        let content = ctx.kernel.alloc.frames.content(page);
        if ctx.memory.test_and_clear_young(ctx.kernel, ctx.cpu, page, content) > 0 {
            used += 1;
            if file && ctx.memory.of_content(content).exec(ctx.memory) {
                active.push(page);
                continue;
            }
        }
        ctx.kernel.alloc.frames.set_flag(page, Flag::Active, false);
        inactive.push(page);
    }
    ctx.zone(zone).rotated[usize::from(file)] += used;
    ctx.kernel.stat.events.reclaim.pgdeactivate += inactive.len() as u64;
    ctx.put_back(active);
    ctx.put_back(inactive);
    ctx.kernel.count_isolated(zone, isolated.taken, -1);
}
