//! A batch of active pages: `shrink_active_list` (5.8 to 6.12).
//!
//! All are deactivated but executable file pages that were used. Checked against guests (docs/fidelity.md).

use super::count;
use super::isolate::{Isolated, isolate};
use super::shrink_inactive::flags;
use super::{Control, TaskCtx};
use crate::frame::Flag;
use crate::mm::kernel::spinlock::Lock;
use crate::mm::lru::List;
use crate::vmstat::NodeItem;
use mmtwin_event::vocabulary::MmVmscanLruShrinkActive;
use mmtwin_scenario::kernel::ScanBalance;

/// Deactivates a batch of a lruvec's active list.
pub(super) fn shrink(ctx: &mut TaskCtx<'_>, control: &Control, number: usize, list: List, wanted: u64) {
    let (file, node) = (list.is_file(), ctx.node_of(number));
    ctx.drain();
    let Isolated { pages, taken, scanned, looked } = isolate(ctx, control, number, list, wanted);
    let isolated = if file { NodeItem::IsolatedFile } else { NodeItem::IsolatedAnon };
    ctx.kernel.stat.pages.add(node, isolated, taken as i64);
    count::refilled(ctx, control, node, scanned);
    ctx.kernel.spend_locked(ctx.cpu, Lock::Lruvec(node), ctx.memory.costs.batch);
    ctx.spend(ctx.memory.costs.scan_page * looked);
    let (mut active, mut inactive) = (Vec::new(), Vec::new());
    let (mut rotated, mut deactivated) = (0, 0);
    for page in pages {
        let content = ctx.kernel.alloc.frames.content(page);
        let young = ctx.memory.test_and_clear_young(ctx.kernel, ctx.cpu, page, content) > 0;
        let frames = &mut ctx.kernel.alloc.frames;
        let pages = 1u64 << frames.order(page);
        if young && file && ctx.memory.of_content(content).exec(ctx.memory) {
            rotated += pages;
            active.push(page);
            continue;
        }
        frames.set_flag(page, Flag::Active, false);
        frames.set_flag(page, Flag::Workingset, true);
        deactivated += pages;
        inactive.push(page);
    }
    ctx.put_back_scanned(number, active);
    ctx.put_back(inactive);
    ctx.kernel.stat.events.reclaim.pgdeactivate += deactivated;
    ctx.kernel.stat.pages.add(node, isolated, -(taken as i64));
    count::rotated(ctx, node, file, rotated);
    if rotated > 0 && ctx.kernel.reclaim.rules.scan_balance != ScanBalance::Cost {
        ctx.kernel.reclaim.note_cost(number, file, (0, rotated));
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
    let (at, task) = (ctx.now(), ctx.task);
    ctx.kernel.probe.write(at, ctx.cpu, task, &event, b"");
}
