//! Taking pages from the tail of a zone's list: `isolate_lru_pages`, `isolate_pages_global` (2.6.36), for order 0.
//!
//! Left out: the neighbours of a page that orders above 0 take with it (lumpy reclaim). Checked by
//! `tests/historic_reclaim.rs`.

use crate::page::{Flag, Pfn};
use crate::reclaim::{Control, List, World};
use crate::vmstat::NodeItem;
use mmtwin_event::vocabulary::MmVmscanLruIsolate;

/// Takes up to `wanted` pages of a list, oldest first. As many were looked at.
pub(super) fn isolate(world: &mut World<'_>, control: &Control, zone: usize, list: List, wanted: u64) -> Vec<Pfn> {
    world.drain();
    let kernel = &mut *world.kernel;
    let (frames, reclaim, stat) = (&mut kernel.alloc.frames, &mut kernel.reclaim, &mut kernel.stat);
    let number = reclaim.lru.number(zone, 0);
    let mut pages = Vec::with_capacity(wanted as usize);
    while (pages.len() as u64) < wanted {
        let Some(page) = reclaim.lru.take_oldest(number, list) else { break };
        frames.set_flag(page, Flag::Lru, false);
        reclaim.lru.resize(frames, &mut stat.pages, number, list, page, false);
        pages.push(page);
    }
    let taken = pages.len() as u64;
    let event = MmVmscanLruIsolate {
        order: control.order as i32,
        nr_requested: wanted,
        nr_scanned: taken,
        nr_taken: taken,
        isolate_mode: Some(u32::from(list.is_active())),
        contig_taken: Some(0),
        contig_dirty: Some(0),
        contig_failed: Some(0),
        nr_skipped: None,
        highest_zoneidx: None,
        lru: None,
        file: None,
    };
    let (at, cpu, task) = (world.now(), world.cpu, world.task);
    world.kernel.probe.write(at, cpu, task, &event, b"");
    world.note_scanned(zone, taken);
    world.zone(zone).scanned[usize::from(list.is_file())] += taken;
    world.spend(world.memory.costs.scan_page * taken);
    pages
}

/// The counter of pages of a list's type that are off the lists.
pub(super) fn isolated(list: List) -> NodeItem {
    if list.is_file() { NodeItem::IsolatedFile } else { NodeItem::IsolatedAnon }
}
