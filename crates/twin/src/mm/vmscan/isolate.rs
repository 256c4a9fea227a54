//! Isolation of pages from the tail of a list: `isolate_lru_folios`, `too_many_isolated` (6.1 to 6.18).
//!
//! Pages of zones above the requested one, and mapped ones if they may not be unmapped, are skipped and put back at the
//! head. Not modelled: pages that cannot be isolated because of other references. Lumpy reclaim, which isolates
//! neighbours, is in `mm/vmscan_zone/isolate.rs`.

use super::{Control, TaskCtx};
use crate::frame::{Flag, Pfn, ZONES, ZoneKind};
use crate::mm::lru::List;
use mmtwin_event::vocabulary::MmVmscanLruIsolate;

/// Pages that were taken.
#[derive(Clone, Debug, Default)]
pub(super) struct Isolated {
    /// Oldest first.
    pub pages: Vec<Pfn>,
    /// Base pages of them.
    pub taken: u64,
    /// Base pages that were scanned.
    pub scanned: u64,
    /// Blocks of them: a huge page is scanned once.
    pub looked: u64,
}

/// Isolates up to `wanted` pages of a lruvec's list.
pub(super) fn isolate(ctx: &mut TaskCtx<'_>, control: &Control, number: usize, list: List, wanted: u64) -> Isolated {
    let kernel = &mut *ctx.kernel;
    let (frames, reclaim, stat) = (&mut kernel.alloc.frames, &mut kernel.reclaim, &mut kernel.stat);
    let limit = reclaim.rules.skip_limit;
    let mut isolated = Isolated { pages: Vec::with_capacity(wanted as usize), ..Isolated::default() };
    let (mut aside, mut skipped, mut scan) = (Vec::new(), 0, 0);
    while scan < wanted {
        let Some(page) = reclaim.lru.take_oldest(number, list) else { break };
        let pages = 1u64 << frames.order(page);
        isolated.scanned += pages;
        isolated.looked += 1;
        let kind = frames.zone(page) % ZONES;
        if kind > control.highest as usize && (limit == 0 || skipped < limit) {
            stat.events.reclaim.pgskip[kind] += pages;
            skipped += pages;
            aside.push(page);
            continue;
        }
        scan += pages;
        if !control.may_unmap && ctx.memory.is_mapped(frames.content(page), frames.order(page)) {
            aside.push(page);
            continue;
        }
        frames.set_flag(page, Flag::Lru, false);
        isolated.taken += pages;
        isolated.pages.push(page);
    }
    for page in aside {
        reclaim.lru.vec_mut(number).lists[list as usize].push_head(frames, page);
    }
    for &page in &isolated.pages {
        reclaim.lru.resize(frames, &mut stat.pages, number, list, page, false);
    }
    let old_events = ctx.kernel.probe.old_events();
    let event = MmVmscanLruIsolate {
        highest_zoneidx: Some(highest_zoneidx(control.highest)),
        order: control.order as i32,
        nr_requested: wanted,
        nr_scanned: isolated.scanned,
        nr_skipped: Some(skipped),
        nr_taken: isolated.taken,
        isolate_mode: Some(0),
        lru: Some(mmtwin_event::value::Lru(list as u32)),
        file: old_events.then(|| list.is_file().into()),
        contig_taken: None,
        contig_dirty: None,
        contig_failed: None,
    };
    let (at, cpu, task) = (ctx.now(), ctx.cpu, ctx.task);
    ctx.kernel.probe.write(at, cpu, task, &event, b"");
    isolated
}

/// The number of a zone kind in the kernel's `enum zone_type`.
pub(super) fn highest_zoneidx(kind: ZoneKind) -> i32 {
    kind as i32
}
