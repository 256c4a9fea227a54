//! What becomes of a batch of inactive pages: `shrink_inactive_list`, `shrink_page_list`, `page_check_references`,
//! `putback_lru_pages` (2.6.36), for order 0.
//!
//! A page that was used goes around again, of a file once, anonymous memory as an active page. Whoever may write writes
//! dirty pages. Each page that is found in use or taken out of a page table is flushed out of the other CPUs' TLBs by
//! itself. Left out: locks that others hold, private data, devices that refuse writes. Checked by tests here and by
//! `tests/historic_reclaim.rs`.

use super::isolate::{isolate, isolated};
use crate::alloc::ZONES;
use crate::page::{Flag, Pfn};
use crate::reclaim::inactive::flags;
use crate::reclaim::{Control, List, World};
use mmtwin_event::vocabulary::MmVmscanLruShrinkInactive;

/// What becomes of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Keep,
    Activate,
    Free,
}

/// What its references say of a page (`enum page_references`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum References {
    Activate,
    Keep,
    /// It can go, but is not worth a write.
    Clean,
    Reclaim,
}

/// `page_check_references`: `young` page tables have used the page, `referenced` is its flag, which is cleared now and set
/// again where the page is kept.
fn check(young: bool, referenced: bool, file: bool) -> References {
    match (young, referenced) {
        (true, _) if !file => References::Activate,
        (true, true) => References::Activate,
        (true, false) => References::Keep,
        (false, true) => References::Clean,
        (false, false) => References::Reclaim,
    }
}

/// Reclaims a batch of a zone's inactive list; the pages that were reclaimed.
pub(super) fn shrink(world: &mut World<'_>, control: &mut Control, zone: usize, list: List, wanted: u64) -> u64 {
    let (file, node, cpu) = (list.is_file(), zone / ZONES, world.cpu);
    let pages = isolate(world, control, zone, list, wanted);
    let taken = pages.len() as u64;
    let events = &mut world.kernel.stat.events.reclaim;
    let scans = if control.is_kswapd() { &mut events.pgscan_kswapd_zone } else { &mut events.pgscan_direct_zone };
    scans[zone % ZONES] += taken;
    if taken == 0 {
        return 0;
    }
    world.kernel.stat.pages.add(node, isolated(list), taken as i64);
    let (mut kept, mut freed, mut activated) = (Vec::new(), Vec::new(), 0);
    for page in pages {
        match fate(world, control, page) {
            Fate::Free => freed.push(page),
            Fate::Keep => kept.push(page),
            Fate::Activate => {
                world.kernel.alloc.frames.set_flag(page, Flag::Active, true);
                activated += 1;
                kept.push(page);
            }
        }
    }
    let reclaimed = freed.len() as u64;
    world.spend(world.memory.costs.free_page * reclaimed);
    for page in freed {
        world.kernel.uncharge(page);
        let gone = world.kernel.free_unchecked(cpu, world.task, page);
        debug_assert!(gone.is_ok(), "what was on a list was allocated");
    }
    let events = &mut world.kernel.stat.events.reclaim;
    events.pgactivate += activated;
    events.pgsteal_zone[zone % ZONES] += reclaimed;
    if control.is_kswapd() {
        events.kswapd_steal += reclaimed;
    }
    world.zone(zone).rotated[usize::from(file)] += activated;
    world.put_back(kept);
    world.kernel.stat.pages.add(node, isolated(list), -(taken as i64));
    let event = MmVmscanLruShrinkInactive {
        nid: node as i32,
        zid: Some((zone % ZONES) as i32),
        nr_scanned: taken,
        nr_reclaimed: reclaimed,
        priority: control.priority as i32,
        flags: flags(file),
        nr_dirty: None,
        nr_writeback: None,
        nr_congested: None,
        nr_immediate: None,
        nr_activate_anon: None,
        nr_activate_file: None,
        nr_ref_keep: None,
        nr_unmap_fail: None,
    };
    let (at, task) = (world.now(), world.task);
    world.kernel.probe.write(at, cpu, task, &event, b"");
    reclaimed
}

fn fate(world: &mut World<'_>, control: &mut Control, page: Pfn) -> Fate {
    let content = world.kernel.alloc.frames.content(page);
    let at = world.memory.of_content(content);
    let frames = &mut world.kernel.alloc.frames;
    let file = !frames.has(page, Flag::Swapbacked);
    // Pages that others map press twice on the slabs, and on the writers.
    let pressing = world.memory.is_mapped(content) || world.memory.has_slot(page);
    control.scanned += 1 + u64::from(pressing);
    if frames.has(page, Flag::Writeback) {
        return Fate::Keep;
    }
    let referenced = frames.set_flag(page, Flag::Referenced, false);
    let young = world.memory.take_young(world.kernel, world.cpu, page, content);
    if young && world.memory.is_elsewhere(content, world.cpu) {
        world.spend(world.memory.costs.shootdown);
    }
    if at.locked(world.memory) {
        return Fate::Activate;
    }
    let references = check(young, referenced, file);
    match references {
        References::Activate => return Fate::Activate,
        References::Keep => {
            world.kernel.alloc.frames.set_flag(page, Flag::Referenced, true);
            return Fate::Keep;
        }
        References::Clean | References::Reclaim => {}
    }
    if !file && !world.memory.has_slot(page) {
        if !control.io {
            return Fate::Keep;
        }
        if !world.memory.take_slots(world.kernel, page) {
            return Fate::Activate;
        }
    }
    if world.memory.unmap(world.kernel, world.cpu, page, content) {
        world.spend(world.memory.costs.shootdown);
    }
    if world.kernel.alloc.frames.has(page, Flag::Dirty) {
        let refused = references == References::Clean || file && !control.fs || !control.may_writepage;
        if refused || !world.pageout(page, content, file) {
            return Fate::Keep;
        }
    }
    if at.held(world.memory) {
        return Fate::Activate;
    }
    world.memory.detach(world.kernel, (world.cpu, world.task), page, content, 0);
    Fate::Free
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_page_goes_around_once_anonymous_memory_is_active_at_once() {
        let all = |file| [(true, true), (true, false), (false, true), (false, false)].map(|(y, r)| check(y, r, file));
        assert_eq!(all(true), [References::Activate, References::Keep, References::Clean, References::Reclaim]);
        assert_eq!(all(false), [References::Activate, References::Activate, References::Clean, References::Reclaim]);
    }
}
