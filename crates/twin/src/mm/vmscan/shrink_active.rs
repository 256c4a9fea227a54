//! What becomes of a batch of active pages: `shrink_active_list` (5.8 to 6.12).
//!
//! All are deactivated but executable file pages that were used. Checked against guests (docs/fidelity.md).

use super::isolate::{Isolated, isolate};
use super::shrink_inactive::flags;
use super::{Control, World};
use crate::frame::Flag;
use crate::mm::lru::List;
use crate::vmstat::NodeItem;
use mmtwin_event::vocabulary::MmVmscanLruShrinkActive;

/// Deactivates a batch of a lruvec's active list.
pub(super) fn shrink(world: &mut World<'_>, control: &Control, number: usize, list: List, wanted: u64) {
    let (file, node) = (list.is_file(), world.node_of(number));
    world.drain();
    let Isolated { pages, taken, scanned, looked } = isolate(world, control, number, list, wanted);
    let isolated = if file { NodeItem::IsolatedFile } else { NodeItem::IsolatedAnon };
    world.kernel.stat.pages.add(node, isolated, taken as i64);
    if !control.is_cgroup() {
        world.kernel.stat.events.reclaim.pgrefill += scanned;
    }
    world.spend(world.memory.costs.batch + world.memory.costs.scan_page * looked);
    let (mut active, mut inactive) = (Vec::new(), Vec::new());
    let (mut rotated, mut deactivated) = (0, 0);
    for page in pages {
        let content = world.kernel.alloc.frames.content(page);
        let young = world.memory.take_young(world.kernel, world.cpu, page, content) > 0;
        let frames = &mut world.kernel.alloc.frames;
        let pages = 1u64 << frames.order(page);
        if young && file && world.memory.of_content(content).exec(world.memory) {
            rotated += pages;
            active.push(page);
            continue;
        }
        frames.set_flag(page, Flag::Active, false);
        frames.set_flag(page, Flag::Workingset, true);
        deactivated += pages;
        inactive.push(page);
    }
    world.put_back(active);
    world.put_back(inactive);
    world.kernel.stat.events.reclaim.pgdeactivate += deactivated;
    world.kernel.stat.pages.add(node, isolated, -(taken as i64));
    if world.kernel.reclaim.rules.cost_of_rotations && rotated > 0 {
        world.kernel.reclaim.lru.note_cost(number, file, rotated);
    }
    let event = MmVmscanLruShrinkActive {
        nid: node as i32,
        nr_taken: taken,
        nr_active: rotated,
        nr_deactivated: deactivated,
        nr_referenced: rotated,
        priority: control.priority as i32,
        flags: flags(file),
    };
    let (at, task) = (world.now(), world.task);
    world.kernel.probe.write(at, world.cpu, task, &event, b"");
}
