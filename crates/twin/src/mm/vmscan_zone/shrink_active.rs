//! What becomes of a batch of active pages: `shrink_active_list` (2.6.36).
//!
//! All are deactivated but executable file pages that were used; that others were used counts against their type. There
//! is no event. Checked by `tests/historic_reclaim.rs`.

use super::isolate::{Mode, isolate};
use crate::frame::{Flag, ZONES};
use crate::mm::lru::List;
use crate::mm::vmscan::{Control, World};

/// Deactivates a batch of a zone's active list.
pub(super) fn shrink(world: &mut World<'_>, control: &Control, zone: usize, list: List, wanted: u64) {
    let file = list.is_file();
    let isolated = isolate(world, control, zone, list, wanted, Mode::Active);
    world.kernel.count_isolated(zone, isolated.taken, 1);
    world.kernel.stat.events.reclaim.pgrefill_zone[zone % ZONES] += isolated.scanned;
    let (mut active, mut inactive, mut used) = (Vec::new(), Vec::new(), 0);
    for page in isolated.pages {
        let content = world.kernel.alloc.frames.content(page);
        if world.memory.take_young(world.kernel, world.cpu, page, content) > 0 {
            used += 1;
            if file && world.memory.of_content(content).exec(world.memory) {
                active.push(page);
                continue;
            }
        }
        world.kernel.alloc.frames.set_flag(page, Flag::Active, false);
        inactive.push(page);
    }
    world.zone(zone).rotated[usize::from(file)] += used;
    world.kernel.stat.events.reclaim.pgdeactivate += inactive.len() as u64;
    world.put_back(active);
    world.put_back(inactive);
    world.kernel.count_isolated(zone, isolated.taken, -1);
}
