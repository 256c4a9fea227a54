//! A batch of inactive pages: `shrink_inactive_list`, `shrink_folio_list`, `folio_check_references`,
//! `folio_referenced_one` (6.1 to 7.3). The rules for a page are in the kernel's order.
//!
//! A huge page that swap cannot hold as a whole is split (`mm/huge_split.rs`). Not modelled: page locks but for reads,
//! demotion, private data.
//! Checked event by event and by counters against guests (docs/fidelity.md).

use super::count;
use super::isolate::{Isolated, highest_zoneidx, isolate};
use super::{Control, TaskCtx};
use crate::frame::{Flag, Pfn, ZONES};
use crate::hw::IoClass;
use crate::mm::kernel::spinlock::Lock;
use crate::mm::lru::List;
use crate::mm::tlb::{self, Cpus};
use crate::vmstat::NodeItem;
use mmtwin_event::value::ReclaimFlags;
use mmtwin_event::vocabulary::{MmVmscanLruShrinkInactive, MmVmscanWriteFolio};

/// Result of a batch (`struct reclaim_stat`).
#[derive(Clone, Copy, Debug, Default)]
struct ReclaimStat {
    dirty: u64,
    unqueued_dirty: u64,
    congested: u64,
    writeback: u64,
    immediate: u64,
    pageout: u64,
    /// Anonymous memory, files.
    activate: [u64; 2],
    ref_keep: u64,
    unmap_fail: u64,
    reclaimed: u64,
    /// Other CPUs may have pages in their TLBs that were taken out of page tables.
    to_flush: Cpus,
}

/// Action for a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FolioAction {
    Keep,
    Activate,
    Free,
    /// It is a huge page, and goes on as base pages.
    Split,
}

/// Bits of `RECLAIM_WB_*` for a type of page.
pub(crate) fn flags(file: bool) -> ReclaimFlags {
    const ANON: u32 = 1;
    const FILE: u32 = 2;
    const ASYNC: u32 = 8;
    ReclaimFlags(ASYNC | if file { FILE } else { ANON })
}

/// Reclaims a batch of a lruvec's inactive list; the pages that were reclaimed.
pub(super) fn shrink(ctx: &mut TaskCtx<'_>, control: &mut Control, number: usize, list: List, wanted: u64) -> u64 {
    let (file, cpu) = (list.is_file(), ctx.cpu);
    let node = ctx.node_of(number);
    ctx.drain();
    let Isolated { pages, taken, scanned, looked } = isolate(ctx, control, number, list, wanted);
    let isolated = if file { NodeItem::IsolatedFile } else { NodeItem::IsolatedAnon };
    ctx.kernel.stat.pages.add(node, isolated, taken as i64);
    count::scanned(ctx, control, node, file, scanned);
    let cgroup = ctx.kernel.reclaim.cgroup_of(number);
    let by = usize::from(!control.is_kswapd());
    ctx.kernel.reclaim.note(cgroup, |events| events.scanned[by] += scanned);
    ctx.kernel.spend_locked(ctx.cpu, Lock::Lruvec(node), ctx.memory.costs.batch);
    ctx.spend(ctx.memory.costs.scan_page * looked);
    if taken == 0 {
        return 0;
    }
    control.scanned += taken;
    let mut stat = ReclaimStat::default();
    let (mut kept, mut freed) = (Vec::new(), Vec::new());
    let in_batches = ctx.kernel.reclaim.rules.frees_in_batches;
    let mut pages = pages;
    // The next one is the last.
    pages.reverse();
    while let Some(page) = pages.pop() {
        match shrink_folio(ctx, control, page, &mut stat) {
            FolioAction::Free => {
                stat.reclaimed += 1 << ctx.kernel.alloc.frames.order(page);
                freed.push(page);
                if in_batches && freed.len() == ctx.kernel.reclaim.rules.folio_batch_size {
                    ctx.flush(&mut stat.to_flush);
                    ctx.free_reclaimed(freed.drain(..));
                }
            }
            FolioAction::Keep => kept.push(page),
            FolioAction::Split => {
                let others = ctx.memory.split_huge(ctx.kernel, page);
                control.scanned -= others.len() as u64;
                pages.extend(others.chain([page]));
            }
            FolioAction::Activate => {
                ctx.memory.activated_in_swap_cache(ctx.kernel, (ctx.cpu, ctx.task), page);
                let frames = &mut ctx.kernel.alloc.frames;
                frames.set_flag(page, Flag::Active, true);
                // One that was to be freed and was written belongs to the other type now.
                let file = !frames.has(page, Flag::Swapbacked);
                stat.activate[usize::from(file)] += 1 << frames.order(page);
                kept.push(page);
            }
        }
    }
    ctx.flush(&mut stat.to_flush);
    ctx.memory.unplug(ctx.kernel, (cpu, ctx.task));
    ctx.kernel.stat.events.reclaim.pgactivate += stat.activate[0] + stat.activate[1];
    let clock = ctx.kernel.clock(cpu);
    ctx.memory.ended_while_isolated(ctx.kernel, clock);
    ctx.put_back_scanned(number, kept);
    ctx.kernel.stat.pages.add(node, isolated, -(taken as i64));
    count::reclaimed(ctx, control, node, file, stat.reclaimed);
    count::rotated(ctx, node, file, scanned - stat.reclaimed);
    let reclaim = &mut ctx.kernel.reclaim;
    reclaim.note(cgroup, |events| events.reclaimed[by] += stat.reclaimed);
    reclaim.note_cost(number, file, (stat.pageout, scanned - stat.reclaimed));
    match in_batches {
        true => ctx.free_reclaimed(freed.into_iter()),
        // The last that was put on the list of pages to free is the first of it.
        false => ctx.free_reclaimed(freed.into_iter().rev()),
    }
    if stat.unqueued_dirty == taken {
        ctx.kernel.writeback.write_all();
    }
    let seen = &mut control.seen;
    seen.dirty += stat.dirty;
    seen.congested += stat.congested;
    seen.unqueued_dirty += stat.unqueued_dirty;
    seen.writeback += stat.writeback;
    seen.immediate += stat.immediate;
    seen.taken += taken;
    seen.file_taken += if file { taken } else { 0 };
    let event = MmVmscanLruShrinkInactive {
        nid: node as i32,
        nr_scanned: scanned,
        nr_reclaimed: stat.reclaimed,
        priority: control.priority as i32,
        flags: flags(file),
        zid: ctx.kernel.probe.old_events().then(|| highest_zoneidx(control.highest)),
        nr_dirty: Some(stat.dirty),
        nr_writeback: Some(stat.writeback),
        nr_congested: Some(stat.congested),
        nr_immediate: Some(stat.immediate),
        nr_activate_anon: Some(stat.activate[0]),
        nr_activate_file: Some(stat.activate[1]),
        nr_ref_keep: Some(stat.ref_keep),
        nr_unmap_fail: Some(stat.unmap_fail),
    };
    let (at, task) = (ctx.now(), ctx.task);
    ctx.kernel.probe.write(at, cpu, task, &event, b"");
    stat.reclaimed
}

fn shrink_folio(ctx: &mut TaskCtx<'_>, control: &Control, page: Pfn, stat: &mut ReclaimStat) -> FolioAction {
    let kernel = &mut *ctx.kernel;
    // 1. A page that is being read is locked.
    if ctx.memory.is_being_read(kernel, ctx.cpu, page) {
        return FolioAction::Keep;
    }
    let frames = &mut kernel.alloc.frames;
    let node = frames.zone(page) / ZONES;
    let pages = 1u64 << frames.order(page);
    let file = !frames.has(page, Flag::Swapbacked);
    // 2. Dirty pages and pages under writeback are counted.
    let (dirty, writeback) = (frames.has(page, Flag::Dirty), frames.has(page, Flag::Writeback));
    let counted = file && (dirty || writeback);
    stat.dirty += if counted { pages } else { 0 };
    stat.unqueued_dirty += if counted && !writeback { pages } else { 0 };
    stat.congested += if writeback && frames.has(page, Flag::Reclaim) { pages } else { 0 };
    // 3. Pages under writeback.
    if writeback {
        if control.is_kswapd() && frames.has(page, Flag::Reclaim) && kernel.reclaim.nodes[node].writeback {
            stat.immediate += pages;
        } else {
            frames.set_flag(page, Flag::Reclaim, true);
            stat.writeback += pages;
        }
        return FolioAction::Activate;
    }
    // 4. Whether it was used.
    let referenced = frames.set_flag(page, Flag::Referenced, false);
    let content = frames.content(page);
    let at = ctx.memory.of_content(content);
    let mut only_if_clean = false;
    if at.locked(ctx.memory) {
        return FolioAction::Activate;
    }
    // Whoever ends frees it soon.
    if !file && kernel.reclaim.rules.keeps_exiting && at.exiting(ctx.memory) && ctx.memory.is_mapped(content, 0) {
        kernel.spend(ctx.cpu, ctx.memory.costs.rmap_page);
        stat.ref_keep += pages;
        return FolioAction::Keep;
    }
    let mappings = ctx.memory.test_and_clear_young(kernel, ctx.cpu, page, content);
    if mappings > 0 {
        kernel.alloc.frames.set_flag(page, Flag::Referenced, true);
        if referenced || mappings > 1 || file && at.exec(ctx.memory) {
            return FolioAction::Activate;
        }
        stat.ref_keep += pages;
        return FolioAction::Keep;
    } else if referenced && file {
        only_if_clean = true;
    }
    // 6. A swap slot.
    if !file && !ctx.memory.has_slot(page) {
        if !control.io {
            return FolioAction::Keep;
        }
        if !ctx.memory.take_slots(kernel, (ctx.cpu, ctx.task), page) {
            return if pages > 1 { FolioAction::Split } else { FolioAction::Activate };
        }
    }
    // 7. It is not mapped any more.
    if file && at.anon(ctx.memory) {
        return match ctx.memory.unmap_lazily_freed(kernel, ctx.cpu, page, content) {
            Some(elsewhere) => {
                stat.to_flush = stat.to_flush.with(elsewhere);
                FolioAction::Free
            }
            None => {
                stat.unmap_fail += pages;
                FolioAction::Activate
            }
        };
    }
    stat.to_flush = stat.to_flush.with(ctx.memory.unmap(kernel, ctx.cpu, page, content));
    // 8. It is written.
    if ctx.kernel.alloc.frames.has(page, Flag::Dirty) {
        if file {
            let flagged = ctx.kernel.alloc.frames.has(page, Flag::Reclaim);
            let writes = ctx.kernel.reclaim.rules.writes_dirty_files && control.is_kswapd();
            if !(writes && flagged && ctx.kernel.reclaim.nodes[node].dirty) {
                ctx.kernel.alloc.frames.set_flag(page, Flag::Reclaim, true);
                ctx.kernel.stat.pages.add(node, NodeItem::VmscanImmediate, pages as i64);
                return FolioAction::Activate;
            }
        }
        // Swap needs no file system. A page with more references than its file's or swap cache's is not written.
        let held = ctx.kernel.reclaim.batch_refs.hold(page);
        if only_if_clean || file && !control.fs || !control.may_writepage || held {
            return FolioAction::Keep;
        }
        // It is no longer mapped writable.
        ctx.flush(&mut stat.to_flush);
        let done = ctx.pageout(page, file);
        stat.pageout += pages;
        if !done {
            return FolioAction::Keep;
        }
    }
    // 9. Pages with other references cannot be freed.
    if at.held(ctx.memory) {
        return FolioAction::Activate;
    }
    if ctx.kernel.reclaim.batch_refs.hold(page) {
        return FolioAction::Keep;
    }
    // 10. It leaves its file or the swap cache, with a shadow behind.
    let shadow = ctx.kernel.reclaim.evict(&ctx.kernel.alloc.frames, page, control.target());
    ctx.memory.detach(ctx.kernel, (ctx.cpu, ctx.task), page, content, shadow);
    FolioAction::Free
}

impl TaskCtx<'_> {
    /// Frees pages that were reclaimed; a huge page as one.
    fn free_reclaimed(&mut self, pages: impl Iterator<Item = Pfn>) {
        for page in pages {
            // It has left its file or the swap cache already, but takes that time now.
            self.kernel.spend_locked(self.cpu, self.memory.lock_of(self.kernel, page), self.memory.costs.free_page);
            self.kernel.uncharge(page);
            let gone = self.kernel.free_unchecked(self.cpu, self.task, page);
            debug_assert!(gone.is_ok(), "what was on a list was allocated");
        }
    }

    /// Waits until other CPUs have flushed what was taken from them, if anything was (`try_to_unmap_flush`).
    fn flush(&mut self, wanted: &mut Cpus) {
        self.flush_tlb(std::mem::take(wanted));
    }

    /// Waits until other CPUs have flushed what was unmapped.
    pub(crate) fn flush_tlb(&mut self, cpus: Cpus) {
        if tlb::flush(self.kernel, &self.memory.costs, self.cpu, cpus) {
            self.spend(self.memory.costs.shootdown);
        }
    }

    /// Starts the write of a page; true if it is over already.
    pub(super) fn pageout(&mut self, page: Pfn, file: bool) -> bool {
        let done = self.memory.write_out(self.kernel, (self.cpu, self.task), page, IoClass::Async);
        let event = MmVmscanWriteFolio { flags: flags(file), pfn: Some(page.into()), page: None };
        let (at, task, node) = (self.now(), self.task, self.kernel.alloc.frames.zone(page) / ZONES);
        self.kernel.probe.write(at, self.cpu, task, &event, b"");
        let pages = 1i64 << self.kernel.alloc.frames.order(page);
        self.kernel.stat.pages.add(node, NodeItem::VmscanWrite, pages);
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::ZoneKind;
    use crate::mm::vmscan::Reclaimer;
    use crate::mm::vmscan_zone::tests::{block, on};

    #[test]
    fn a_page_in_the_batch_of_another_cpu_is_kept() {
        let ((reclaimed, then), _) = on("6.1", |ctx| {
            let pages = block(ctx, true, 2);
            // The second use activates it, once the batch of CPU 1 is drained.
            assert_eq!([0; 2].map(|_| ctx.kernel.mark_accessed(1, pages[0])), [false, true]);
            let mut control = Control::new(Reclaimer::Direct, 0, ZoneKind::Normal, "GFP_KERNEL");
            let number = ctx.kernel.reclaim.lru.number(0, 0);
            let mut reclaim = |ctx: &mut TaskCtx<'_>| shrink(ctx, &mut control, number, List::InactiveFile, 32);
            let reclaimed = reclaim(ctx);
            let kernel = &mut *ctx.kernel;
            kernel.lru_add_drain(1);
            let active = kernel.alloc.frames.has(pages[0], Flag::Active);
            (reclaimed, (active, kernel.reclaim.batch_refs.hold(pages[0]), reclaim(ctx)))
        });
        assert_eq!(reclaimed, 3);
        assert_eq!(then, (true, false, 0));
    }
}
