//! A batch of inactive pages: `shrink_inactive_list`, `set_lumpy_reclaim_mode`, `should_reclaim_stall`,
//! `too_many_isolated`, `update_isolated_counts`, `putback_lru_pages` (2.6.36 to 3.5).
//!
//! For a large block, or a small one that is hard to get, a batch is reclaimed in lumpy mode ([`isolate`]). A task
//! scans the pages that it could not free a second time, and waits for writeback. It may sleep with isolated pages;
//! tasks wait while too many pages are isolated, and from 3.2 on every reclaimer waits after a batch of pages under
//! writeback. Checked by tests of [`super`] and by `tests/historic_reclaim.rs`.

use super::congestion_wait::{CONGESTION, WRITTEN, Wait};
use super::isolate::{Isolated, Mode, isolate};
use super::shrink_page_list::{Awaited, FolioAction, Lumpy, Pass};
use super::{DirtyFiles, IsolatedPages, SyncPass, Variant, Waits};
use crate::frame::{Flag, Pfn, ZONES};
use crate::mm::lru::List;
use crate::mm::vmscan::shrink_inactive::flags;
use crate::mm::vmscan::{BATCH, COSTLY_ORDER, Control, DEF_PRIORITY, Poll, TaskCtx};
use mmtwin_event::value::ReclaimFlags;
use mmtwin_event::vocabulary::MmVmscanLruShrinkInactive;
use std::collections::VecDeque;

/// Fraction of a second of a wait for congestion, or until the next check.
const WAIT: u64 = 10;
/// Pages that a batch has the flusher write at most (`MAX_WRITEBACK`).
const MOST_WRITTEN: u64 = 1024;

/// A batch under way.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    zone: usize,
    list: List,
    wanted: u64,
    isolated: Isolated,
    pass: Pass,
    /// Pages not yet scanned by the pass; kept ones; pages to be freed.
    left: VecDeque<Pfn>,
    kept: Vec<Pfn>,
    freed: Vec<Pfn>,
    reclaimed: u64,
    /// Pages under writeback in the first of two passes.
    writeback: u64,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Begin,
    /// Too many pages are isolated.
    Crowded(Wait),
    Pages,
    /// It waits for a page.
    Awaiting,
    BeforeSecond(Wait),
    /// Too many pages are being written.
    Throttled(Wait),
}

/// Lumpy mode of a reclaim at its priority.
fn lumpy_mode(control: &Control) -> Lumpy {
    let lumpy = control.order > COSTLY_ORDER || control.order > 0 && control.priority < DEF_PRIORITY - 2;
    if lumpy { Lumpy::Async } else { Lumpy::Off }
}

/// The isolated pages are scanned again: not all are free, and the reclaim is for a large block or in difficulty.
fn stalls(control: &Control, lumpy: Lumpy, taken: u64, freed: u64) -> bool {
    let from = if control.order > COSTLY_ORDER { DEF_PRIORITY } else { DEF_PRIORITY / 3 };
    !control.is_kswapd() && lumpy != Lumpy::Off && freed != taken && control.priority <= from
}

/// So many pages of a batch are being written that its reclaimer waits: all at first, half at the next priority.
fn is_throttled(writeback: u64, taken: u64, priority: u32) -> bool {
    writeback > 0 && writeback >= taken >> (DEF_PRIORITY - priority)
}

/// The flags of a batch of a type's list.
fn batch_flags(file: bool, lumpy: Lumpy) -> ReclaimFlags {
    const SYNC: u32 = 4;
    const MIXED: u32 = 16;
    if lumpy == Lumpy::Sync { ReclaimFlags(MIXED | SYNC) } else { flags(file) }
}

impl Batch {
    /// Of this many pages of a zone's inactive list.
    pub(super) fn new(control: &Control, zone: usize, list: List, wanted: u64) -> Batch {
        let (isolated, pass) = (Isolated::default(), Pass::new(lumpy_mode(control)));
        let (left, kept, freed) = Default::default();
        Batch { zone, list, wanted, isolated, pass, left, kept, freed, reclaimed: 0, writeback: 0, stage: Stage::Begin }
    }

    /// Continues; at the end, the reclaimed pages. It does not pause between two steps while it has pages that others
    /// could free.
    pub(super) fn step(&mut self, ctx: &mut TaskCtx<'_>, control: &mut Control) -> Poll<u64> {
        loop {
            match self.go_on(ctx, control) {
                Poll::On if !self.left.is_empty() || !self.kept.is_empty() => {}
                end => return end,
            }
        }
    }

    fn go_on(&mut self, ctx: &mut TaskCtx<'_>, control: &mut Control) -> Poll<u64> {
        match self.stage {
            Stage::Begin => {
                if !control.is_kswapd() && ctx.too_many_isolated(self.zone, self.list) {
                    let (wait, until) = ctx.congestion_wait(WAIT);
                    self.stage = Stage::Crowded(wait);
                    return Poll::Sleep(until, CONGESTION);
                }
                if !self.begin(ctx, control) {
                    return Poll::Done(0);
                }
                self.stage = Stage::Pages;
            }
            Stage::Crowded(wait) => {
                ctx.end_wait(wait);
                self.stage = Stage::Begin;
            }
            Stage::Pages => return self.go_through(ctx, control),
            Stage::Awaiting => {
                self.take_up(ctx);
                match self.pass.awaited.filter(|(page, _)| self.left.front() == Some(page)) {
                    Some((page, what)) if ctx.has_to_wait(page, what) => return self.lay_down(ctx),
                    Some(_) => {}
                    // It has been freed meanwhile.
                    None => {
                        if let Some((_, Awaited::OwnWrite(of))) = self.pass.awaited.take() {
                            ctx.note_write(of, self.pass.lumpy);
                        }
                    }
                }
                self.stage = Stage::Pages;
            }
            Stage::Throttled(wait) => {
                ctx.end_wait(wait);
                return self.tell(ctx, control);
            }
            Stage::BeforeSecond(wait) => {
                ctx.end_wait(wait);
                self.take_up(ctx);
                self.second_pass(ctx);
            }
        }
        Poll::On
    }

    /// Takes the pages; false if there are none.
    fn begin(&mut self, ctx: &mut TaskCtx<'_>, control: &mut Control) -> bool {
        control.in_mode = self.pass.lumpy != Lumpy::Off;
        let lumpy = self.pass.lumpy != Lumpy::Off && ctx.decide(|rules| rules.blocks.is_lumpy());
        let mode = if lumpy { Mode::Both } else { Mode::Inactive };
        self.isolated = isolate(ctx, control, self.zone, self.list, self.wanted, mode);
        let events = &mut ctx.kernel.stat.events.reclaim;
        let scans = if control.is_kswapd() { &mut events.pgscan_kswapd_zone } else { &mut events.pgscan_direct_zone };
        scans[self.zone % ZONES] += self.isolated.scanned;
        self.left = std::mem::take(&mut self.isolated.pages).into();
        ctx.clear_active(self.left.iter().copied());
        ctx.kernel.count_isolated(self.zone, self.isolated.taken, 1);
        !self.left.is_empty()
    }

    /// Scans the pages of a pass.
    fn go_through(&mut self, ctx: &mut TaskCtx<'_>, control: &mut Control) -> Poll<u64> {
        let mut activated = 0;
        while let Some(page) = self.left.pop_front() {
            match self.pass.see(ctx, control, page) {
                FolioAction::Free => self.freed.push(page),
                FolioAction::Keep => self.kept.push(page),
                FolioAction::Activate => {
                    ctx.memory.activated_in_swap_cache(ctx.kernel, (ctx.cpu, ctx.task), page);
                    ctx.kernel.alloc.frames.set_flag(page, Flag::Active, true);
                    activated += 1;
                    self.kept.push(page);
                }
                FolioAction::Wait => {
                    self.left.push_front(page);
                    ctx.kernel.stat.events.reclaim.pgactivate += activated;
                    self.stage = Stage::Awaiting;
                    return Poll::On;
                }
            }
        }
        ctx.kernel.stat.events.reclaim.pgactivate += activated;
        let clean_too = |rules: &Variant| rules.waits == Waits::IfZoneOrClean;
        if self.pass.dirty == self.pass.refused && (self.pass.dirty > 0 || ctx.decide(clean_too)) {
            ctx.zone(self.zone).congested = true;
        }
        self.free(ctx);
        self.wake_flusher(ctx, control);
        let taken = self.isolated.taken.iter().sum();
        let second = self.pass.lumpy == Lumpy::Sync;
        if second || !stalls(control, self.pass.lumpy, taken, self.reclaimed) {
            return self.end(ctx, control);
        }
        match ctx.decide(|rules| rules.sync_pass) {
            SyncPass::CongestionWait => match ctx.wait_in_reclaim(WAIT, self.zone) {
                Some((wait, until)) => {
                    self.stage = Stage::BeforeSecond(wait);
                    self.hand_over(ctx);
                    Poll::Sleep(until, CONGESTION)
                }
                None => {
                    self.second_pass(ctx);
                    Poll::On
                }
            },
            SyncPass::Writeback => {
                self.second_pass(ctx);
                Poll::On
            }
            SyncPass::None => self.end(ctx, control),
        }
    }

    /// In the first posting of 2010 a batch of file pages with dirty ones has the flusher write up to 4 MiB, or all that is
    /// dirty if it leaves it none.
    fn wake_flusher(&self, ctx: &mut TaskCtx<'_>, control: &Control) {
        let finds_dirty = self.list.is_file() && self.pass.dirty > 0 && control.may_writepage;
        if !finds_dirty || ctx.decide(|rules| rules.dirty_files != DirtyFiles::Kswapd) {
            return;
        }
        match self.pass.left {
            left if left > 0 && !ctx.kernel.reclaim.rules.laptop_mode => {
                ctx.kernel.writeback.write_some((left * MOST_WRITTEN / BATCH).min(MOST_WRITTEN));
            }
            _ => ctx.kernel.writeback.write_all(),
        }
    }

    fn second_pass(&mut self, ctx: &mut TaskCtx<'_>) {
        self.left = std::mem::take(&mut self.kept).into();
        // Referenced pages are not spared either.
        ctx.clear_active(self.left.iter().copied());
        self.writeback += self.pass.writeback;
        (self.pass, self.stage) = (Pass::new(Lumpy::Sync), Stage::Pages);
    }

    /// Frees what the pass has detached.
    fn free(&mut self, ctx: &mut TaskCtx<'_>) {
        let pages: u64 = self.freed.iter().map(|&page| 1 << ctx.kernel.alloc.frames.order(page)).sum();
        self.reclaimed += pages;
        ctx.spend(ctx.memory.costs.free_page * pages);
        for page in std::mem::take(&mut self.freed) {
            ctx.kernel.reclaim.isolated.get_mut(&ctx.task.pid).map(|held| held.pages.remove(&page));
            ctx.kernel.uncharge(page);
            let gone = ctx.kernel.free_unchecked(ctx.cpu, ctx.task, page);
            debug_assert!(gone.is_ok(), "what was on a list was allocated");
        }
    }

    fn end(&mut self, ctx: &mut TaskCtx<'_>, control: &mut Control) -> Poll<u64> {
        let (zone, reclaimed) = (self.zone, self.reclaimed);
        ctx.kernel.reclaim.isolated.remove(&ctx.task.pid);
        control.in_mode = self.pass.lumpy != Lumpy::Off;
        let events = &mut ctx.kernel.stat.events.reclaim;
        events.pgsteal_zone[zone % ZONES] += reclaimed;
        if control.is_kswapd() {
            events.kswapd_steal += reclaimed;
            events.pgsteal_kswapd_zone[zone % ZONES] += reclaimed;
        } else {
            events.pgsteal_direct_zone[zone % ZONES] += reclaimed;
        }
        for &page in &self.kept {
            let list = List::of(&ctx.kernel.alloc.frames, page);
            ctx.zone(zone).rotated[usize::from(list.is_file())] += u64::from(list.is_active());
        }
        ctx.put_back(std::mem::take(&mut self.kept));
        ctx.kernel.count_isolated(zone, self.isolated.taken, -1);
        let taken = self.isolated.taken.iter().sum();
        if is_throttled(self.writeback + self.pass.writeback, taken, control.priority)
            && ctx.decide(|rules| rules.throttles_batch)
            && let Some((wait, until)) = ctx.wait_in_reclaim(WAIT, zone)
        {
            self.stage = Stage::Throttled(wait);
            return Poll::Sleep(until, CONGESTION);
        }
        self.tell(ctx, control)
    }

    fn tell(&self, ctx: &mut TaskCtx<'_>, control: &Control) -> Poll<u64> {
        let (zone, reclaimed, file) = (self.zone, self.reclaimed, self.list.is_file());
        ctx.write(&MmVmscanLruShrinkInactive {
            nid: (zone / ZONES) as i32,
            zid: Some((zone % ZONES) as i32),
            nr_scanned: self.isolated.scanned,
            nr_reclaimed: reclaimed,
            priority: control.priority as i32,
            flags: batch_flags(file, self.pass.lumpy),
            nr_dirty: None,
            nr_writeback: None,
            nr_congested: None,
            nr_immediate: None,
            nr_activate_anon: None,
            nr_activate_file: None,
            nr_ref_keep: None,
            nr_unmap_fail: None,
        });
        Poll::Done(reclaimed)
    }

    /// Sleeps for a page.
    fn lay_down(&mut self, ctx: &mut TaskCtx<'_>) -> Poll<u64> {
        self.hand_over(ctx);
        let until = ctx.tick_after(WAIT);
        Poll::Sleep(until, WRITTEN)
    }

    /// It is about to sleep: others may free its pages.
    fn hand_over(&mut self, ctx: &mut TaskCtx<'_>) {
        self.free(ctx);
        let (zone, taken) = (self.zone, self.isolated.taken);
        ctx.kernel.reclaim.isolated.entry(ctx.task.pid).or_insert_with(|| {
            let pages = self.left.iter().chain(&self.kept).copied().collect();
            IsolatedPages { zone, taken, pages, lost: false }
        });
    }

    /// It continues with the rest.
    fn take_up(&mut self, ctx: &mut TaskCtx<'_>) {
        let Some(held) = ctx.kernel.reclaim.isolated.get_mut(&ctx.task.pid) else { return };
        if std::mem::take(&mut held.lost) {
            self.left.retain(|page| held.pages.contains(page));
            self.kept.retain(|page| held.pages.contains(page));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::ZoneKind;
    use crate::mm::vmscan::Reclaimer;

    fn control(reclaimer: Reclaimer, order: u32, priority: u32) -> Control {
        Control { priority, ..Control::new(reclaimer, order, ZoneKind::Normal, "GFP_KERNEL") }
    }

    #[test]
    fn large_blocks_are_reclaimed_in_lumpy_mode_small_ones_when_it_is_hard() {
        let of = |order, priority| lumpy_mode(&control(Reclaimer::Direct, order, priority)) != Lumpy::Off;
        assert_eq!([of(4, 12), of(3, 10), of(3, 9), of(1, 0), of(0, 0)], [true, false, true, true, false]);
    }

    #[test]
    fn tasks_stall_if_something_is_left() {
        let of = |reclaimer, order, priority| stalls(&control(reclaimer, order, priority), Lumpy::Async, 32, 31);
        assert!(of(Reclaimer::Direct, 4, 12) && of(Reclaimer::Direct, 3, 4));
        assert!(!of(Reclaimer::Direct, 3, 5) && !of(Reclaimer::Kswapd, 9, 0));
        let direct = control(Reclaimer::Direct, 9, 12);
        assert!(!stalls(&direct, Lumpy::Async, 32, 32) && !stalls(&direct, Lumpy::Off, 32, 0));
    }

    #[test]
    fn the_deeper_the_trouble_the_fewer_writes_are_waited_for() {
        assert!(is_throttled(32, 32, 12) && !is_throttled(31, 32, 12) && is_throttled(16, 32, 11));
        assert!(is_throttled(1, 32, 6) && !is_throttled(0, 32, 0));
    }
}
