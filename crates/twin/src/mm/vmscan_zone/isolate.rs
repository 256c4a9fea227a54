//! Isolation of pages from the tail of a zone's list: `isolate_lru_pages`, `__isolate_lru_page`, `isolate_pages_global`
//! (2.6.36 to 3.5).
//!
//! For an order above 0 the neighbours of each page in its naturally aligned block are isolated with it, so that the
//! block may become free as a whole: in lumpy mode from any list, else from lists of the same kind. A neighbour counts
//! as scanned when it is isolated. 2.6.36 skips one that it cannot isolate, later kernels stop at it, and in reclaim
//! for compaction 3.4 isolates no neighbours. Pages in a CPU's batch count as in use. Checked by tests of [`super`] and
//! `tests/historic_reclaim.rs`.

use super::{IsolateModes, Neighbours};
use crate::frame::{Flag, Pfn, State};
use crate::mm::lru::{List, PerType};
use crate::mm::vmscan::{Control, TaskCtx};
use mmtwin_event::vocabulary::MmVmscanLruIsolate;

/// Which pages are taken (`ISOLATE_INACTIVE`, `ISOLATE_ACTIVE`, `ISOLATE_BOTH`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Of the list's kind.
    Inactive = 0,
    Active = 1,
    /// Active and inactive, anonymous and of files: lumpy mode.
    Both = 2,
}

impl Mode {
    /// Its value in the event.
    fn number(self, modes: IsolateModes) -> u32 {
        match modes {
            IsolateModes::Numbers => self as u32,
            IsolateModes::Bits => self as u32 + 1,
            IsolateModes::None => 0,
        }
    }
}

/// Pages that were taken.
#[derive(Clone, Debug, Default)]
pub(super) struct Isolated {
    /// Each page of a list before its neighbours, the oldest first.
    pub pages: Vec<Pfn>,
    /// Pages that were scanned.
    pub scanned: u64,
    /// Anonymous memory, files.
    pub taken: PerType,
    contiguous: Contiguous,
}

/// Neighbours: taken, of these dirty, refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Contiguous {
    taken: u64,
    dirty: u64,
    failed: u64,
}

/// Why a page frame is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refused {
    /// So many from here on are free.
    Free(u64),
    InUse,
    /// Its zone is another, or there is no swap for it.
    OutOfReach,
}

/// Isolates pages of a list, oldest first, and their neighbours, until `wanted` were scanned.
pub(super) fn isolate(
    ctx: &mut TaskCtx<'_>,
    control: &Control,
    zone: usize,
    list: List,
    wanted: u64,
    mode: Mode,
) -> Isolated {
    ctx.drain();
    let number = ctx.kernel.reclaim.lru.number(zone, 0);
    let with_neighbours = control.order > 0
        && ctx.decide(|rules| match rules.neighbours {
            Neighbours::PassOver | Neighbours::GiveUp => true,
            Neighbours::GiveUpInMode => mode == Mode::Both,
            Neighbours::Left => false,
        });
    let mut isolated = Isolated::default();
    while isolated.scanned < wanted {
        let kernel = &mut *ctx.kernel;
        let Some(page) = kernel.reclaim.lru.take_oldest(number, list) else { break };
        let frames = &mut kernel.alloc.frames;
        frames.set_flag(page, Flag::Lru, false);
        kernel.reclaim.lru.resize(frames, &mut kernel.stat.pages, number, list, page, false);
        isolated.note(list, page, 1 << frames.order(page));
        if with_neighbours {
            isolated.take_neighbours(ctx, (zone, page), control.order, (list, mode));
        }
    }
    let Contiguous { taken, dirty, failed } = isolated.contiguous;
    ctx.write(&MmVmscanLruIsolate {
        order: control.order as i32,
        nr_requested: wanted,
        nr_scanned: isolated.scanned,
        nr_taken: isolated.taken.iter().sum(),
        isolate_mode: Some(ctx.decide(|rules| mode.number(rules.isolate_modes))),
        contig_taken: Some(taken),
        contig_dirty: Some(dirty),
        contig_failed: Some(failed),
        nr_skipped: None,
        highest_zoneidx: None,
        lru: None,
        file: Some(list.is_file().into()),
    });
    ctx.note_scanned(zone, isolated.scanned);
    for of in 0..2 {
        ctx.zone(zone).scanned[of] += isolated.taken[of];
    }
    ctx.spend(ctx.memory.costs.scan_page * isolated.scanned);
    isolated
}

impl Isolated {
    /// A page has been taken off a list.
    fn note(&mut self, list: List, page: Pfn, pages: u64) {
        self.scanned += 1;
        self.taken[usize::from(list.is_file())] += pages;
        self.pages.push(page);
    }

    /// Takes what there is around a page of a zone in its aligned block.
    fn take_neighbours(&mut self, ctx: &mut TaskCtx<'_>, (zone, page): (usize, Pfn), order: u32, like: (List, Mode)) {
        let first = u64::from(page) >> order << order;
        let mut at = first;
        while at < first + (1 << order) {
            let neighbour = at as Pfn;
            at += 1;
            if neighbour == page {
                continue;
            }
            match refused(ctx, zone, neighbour, like) {
                None => {
                    let kernel = &mut *ctx.kernel;
                    let frames = &mut kernel.alloc.frames;
                    let list = List::of(frames, neighbour);
                    kernel.reclaim.lru.remove(frames, &mut kernel.stat.pages, neighbour);
                    self.note(list, neighbour, 1 << frames.order(neighbour));
                    self.contiguous.taken += 1;
                    self.contiguous.dirty += u64::from(frames.has(neighbour, Flag::Dirty));
                }
                Some(Refused::Free(pages)) => at += pages - 1,
                Some(_) if ctx.decide(|rules| rules.neighbours != Neighbours::PassOver) => {
                    self.contiguous.failed += 1;
                    return;
                }
                Some(Refused::InUse) => self.contiguous.failed += u64::from(like.1 == Mode::Both),
                Some(Refused::OutOfReach) => {}
            }
        }
    }
}

/// Why a page frame is not taken with a page of a zone's list; `None`: it is.
fn refused(ctx: &TaskCtx<'_>, zone: usize, page: Pfn, (list, mode): (List, Mode)) -> Option<Refused> {
    let frames = &ctx.kernel.alloc.frames;
    if !ctx.kernel.alloc.zones[zone].spans(page.into()) {
        return Some(Refused::OutOfReach);
    }
    match frames.state(page) {
        State::Free => return Some(Refused::Free(1 << frames.order(page))),
        State::PerCpu => return Some(Refused::Free(1)),
        State::None => return Some(Refused::InUse),
        State::Allocated => {}
    }
    let anon = frames.has(page, Flag::Swapbacked);
    if anon && !ctx.has_swap() && !ctx.memory.has_slot(page) {
        return Some(Refused::OutOfReach);
    }
    let of = List::of(frames, page);
    let alike = match mode {
        Mode::Both => of != List::Unevictable,
        Mode::Inactive | Mode::Active => of == list,
    };
    (!frames.has(page, Flag::Lru) || !alike).then_some(Refused::InUse)
}
