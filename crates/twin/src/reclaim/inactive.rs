//! What becomes of a batch of inactive pages: `shrink_inactive_list`, `shrink_folio_list`, `folio_check_references` (6.1 to
//! 6.12). The rules for a page stand in the kernel's order; the spec numbers them.
//!
//! Left out: locks that others hold, huge pages that are split for swap (they go as a whole),
//! demotion, private data. Checked event by event and by counters against guests
//! (docs/fidelity.md).

use super::isolate::{Isolated, highest_zoneidx, isolate};
use super::{Control, List, World};
use crate::access::Cpus;
use crate::alloc::ZONES;
use crate::machine::IoClass;
use crate::page::{Flag, Pfn};
use crate::vmstat::NodeItem;
use mmtwin_event::value::ReclaimFlags;
use mmtwin_event::vocabulary::{MmVmscanLruShrinkInactive, MmVmscanWriteFolio};

/// What a batch came to (`struct reclaim_stat`).
#[derive(Clone, Copy, Debug, Default)]
struct Came {
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

/// What becomes of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Keep,
    Activate,
    Free,
}

/// Bits of `RECLAIM_WB_*` for a type of page.
pub(super) fn flags(file: bool) -> ReclaimFlags {
    const ANON: u32 = 1;
    const FILE: u32 = 2;
    const ASYNC: u32 = 8;
    ReclaimFlags(ASYNC | if file { FILE } else { ANON })
}

/// Reclaims a batch of a lruvec's inactive list; the pages that were reclaimed.
pub(super) fn shrink(world: &mut World<'_>, control: &mut Control, number: usize, list: List, wanted: u64) -> u64 {
    let (file, cpu) = (list.is_file(), world.cpu);
    let node = world.node_of(number);
    world.drain();
    let Isolated { pages, taken, scanned, looked } = isolate(world, control, number, list, wanted);
    let isolated = if file { NodeItem::IsolatedFile } else { NodeItem::IsolatedAnon };
    world.kernel.stat.pages.add(node, isolated, taken as i64);
    let events = &mut world.kernel.stat.events.reclaim;
    match control.who {
        super::Who::Kswapd => events.pgscan_kswapd += scanned,
        super::Who::Direct => events.pgscan_direct += scanned,
        super::Who::Cgroup(_) => {}
    }
    if file {
        events.pgscan_file += scanned
    } else {
        events.pgscan_anon += scanned
    }
    world.spend(world.memory.costs.batch + world.memory.costs.scan_page * looked);
    if taken == 0 {
        return 0;
    }
    control.scanned += taken;
    let mut came = Came::default();
    let (mut kept, mut freed) = (Vec::new(), Vec::new());
    for page in pages {
        match fate(world, control, page, &mut came) {
            Fate::Free => {
                came.reclaimed += 1 << world.kernel.alloc.frames.order(page);
                freed.push(page);
            }
            Fate::Keep => kept.push(page),
            Fate::Activate => {
                let frames = &mut world.kernel.alloc.frames;
                frames.set_flag(page, Flag::Active, true);
                came.activate[usize::from(file)] += 1 << frames.order(page);
                kept.push(page);
            }
        }
    }
    world.flush(&mut came.to_flush);
    world.kernel.stat.events.reclaim.pgactivate += came.activate[0] + came.activate[1];
    world.put_back(kept);
    world.kernel.stat.pages.add(node, isolated, -(taken as i64));
    let events = &mut world.kernel.stat.events.reclaim;
    match control.who {
        super::Who::Kswapd => events.pgsteal_kswapd += came.reclaimed,
        super::Who::Direct => events.pgsteal_direct += came.reclaimed,
        super::Who::Cgroup(_) => {}
    }
    if file {
        events.pgsteal_file += came.reclaimed
    } else {
        events.pgsteal_anon += came.reclaimed
    }
    let reclaim = &mut world.kernel.reclaim;
    let cost = match reclaim.rules.cost_of_rotations {
        true => came.pageout * super::BATCH + (scanned - came.reclaimed),
        false => came.pageout,
    };
    if cost > 0 {
        reclaim.lru.note_cost(number, file, cost);
    }
    // A huge page is freed as one.
    world.spend(world.memory.costs.free_page * freed.len() as u64);
    // The last that was put on the list of pages to free is the first of it.
    for page in freed.into_iter().rev() {
        world.kernel.uncharge(page);
        let gone = world.kernel.free_unchecked(cpu, world.task, page);
        debug_assert!(gone.is_ok(), "what was on a list was allocated");
    }
    if came.unqueued_dirty == taken {
        world.kernel.writeback.write_all();
    }
    let seen = &mut control.seen;
    seen.dirty += came.dirty;
    seen.congested += came.congested;
    seen.unqueued_dirty += came.unqueued_dirty;
    seen.writeback += came.writeback;
    seen.immediate += came.immediate;
    seen.taken += taken;
    seen.file_taken += if file { taken } else { 0 };
    let event = MmVmscanLruShrinkInactive {
        nid: node as i32,
        nr_scanned: scanned,
        nr_reclaimed: came.reclaimed,
        priority: control.priority as i32,
        flags: flags(file),
        zid: world.kernel.probe.old_events().then(|| highest_zoneidx(control.highest)),
        nr_dirty: Some(came.dirty),
        nr_writeback: Some(came.writeback),
        nr_congested: Some(came.congested),
        nr_immediate: Some(came.immediate),
        nr_activate_anon: Some(came.activate[0]),
        nr_activate_file: Some(came.activate[1]),
        nr_ref_keep: Some(came.ref_keep),
        nr_unmap_fail: Some(came.unmap_fail),
    };
    let (at, task) = (world.now(), world.task);
    world.kernel.probe.write(at, cpu, task, &event, b"");
    came.reclaimed
}

fn fate(world: &mut World<'_>, control: &Control, page: Pfn, came: &mut Came) -> Fate {
    let kernel = &mut *world.kernel;
    let frames = &mut kernel.alloc.frames;
    let node = frames.zone(page) / ZONES;
    let pages = 1u64 << frames.order(page);
    let file = !frames.has(page, Flag::Swapbacked);
    // 2. What there is to be written.
    let (dirty, writeback) = (frames.has(page, Flag::Dirty), frames.has(page, Flag::Writeback));
    let counted = file && (dirty || writeback);
    came.dirty += if counted { pages } else { 0 };
    came.unqueued_dirty += if counted && !writeback { pages } else { 0 };
    came.congested += if writeback && frames.has(page, Flag::Reclaim) { pages } else { 0 };
    // 3. What is being written.
    if writeback {
        if control.is_kswapd() && frames.has(page, Flag::Reclaim) && kernel.reclaim.nodes[node].writeback {
            came.immediate += pages;
        } else {
            frames.set_flag(page, Flag::Reclaim, true);
            came.writeback += pages;
        }
        return Fate::Activate;
    }
    // 4. Whether it was used.
    let referenced = frames.set_flag(page, Flag::Referenced, false);
    let content = frames.content(page);
    let at = world.memory.of_content(content);
    let mut only_if_clean = false;
    if at.locked(world.memory) {
        return Fate::Activate;
    }
    let mappings = world.memory.take_young(kernel, world.cpu, page, content);
    if mappings > 0 {
        kernel.alloc.frames.set_flag(page, Flag::Referenced, true);
        if referenced || mappings > 1 || file && at.exec(world.memory) {
            return Fate::Activate;
        }
        came.ref_keep += pages;
        return Fate::Keep;
    } else if referenced && file {
        only_if_clean = true;
    }
    // 6. A place in swap.
    if !file && !world.memory.has_slot(page) {
        if !control.io {
            return Fate::Keep;
        }
        if !world.memory.take_slots(kernel, page) {
            return Fate::Activate;
        }
    }
    // 7. Nobody maps it any more.
    came.to_flush = came.to_flush.with(world.memory.unmap(kernel, world.cpu, page, content));
    // 8. It is written.
    if world.kernel.alloc.frames.has(page, Flag::Dirty) {
        if file {
            let flagged = world.kernel.alloc.frames.has(page, Flag::Reclaim);
            let writes = world.kernel.reclaim.rules.writes_dirty_files && control.is_kswapd();
            if !(writes && flagged && world.kernel.reclaim.nodes[node].dirty) {
                world.kernel.alloc.frames.set_flag(page, Flag::Reclaim, true);
                world.kernel.stat.pages.add(node, NodeItem::VmscanImmediate, pages as i64);
                return Fate::Activate;
            }
        }
        // Swap needs no file system.
        if only_if_clean || file && !control.fs || !control.may_writepage {
            return Fate::Keep;
        }
        // Nobody may write to it any more.
        world.flush(&mut came.to_flush);
        let done = world.pageout(page, file);
        came.pageout += pages;
        if !done {
            return Fate::Keep;
        }
    }
    // 9. What others hold cannot go.
    if at.held(world.memory) {
        return Fate::Activate;
    }
    // 10. It leaves its file or swap's cache, with a shadow behind.
    let shadow = world.kernel.reclaim.evict(&world.kernel.alloc.frames, page);
    world.memory.detach(world.kernel, (world.cpu, world.task), page, content, shadow);
    Fate::Free
}

impl World<'_> {
    /// Waits until other CPUs have flushed what was taken from them, if anything was (`try_to_unmap_flush`).
    fn flush(&mut self, wanted: &mut Cpus) {
        self.shoot_down(std::mem::take(wanted));
    }

    /// Waits until other CPUs have flushed, which interrupts those that are at work.
    pub(super) fn shoot_down(&mut self, cpus: Cpus) {
        if cpus.elsewhere(self.cpu) {
            self.spend(self.memory.costs.shootdown);
            self.kernel.wait_for_others(self.cpu, self.memory.costs.shootdown_wait);
            let all = 0..self.kernel.machine.cpus.len() as u32;
            let others = all.filter(|&cpu| cpu != self.cpu && cpus.with(Cpus::One(cpu)) == cpus);
            others.for_each(|cpu| self.kernel.interrupt(cpu, self.memory.costs.interrupt));
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
