//! Actions for isolated pages: `shrink_page_list`, `page_check_references`, `pageout`, `may_write_to_queue` (2.6.36 to
//! 3.5).
//!
//! A referenced page is kept: a file page once, anonymous memory by activating it; lumpy mode ignores references. A reclaimer
//! that may write (`may_writepage`) writes dirty pages, unless the device is congested. From 3.2 on only kswapd writes file
//! pages, and only below priority 10; they are freed as soon as the flusher has written them. In the first posting of 2010
//! kswapd writes them at every priority. The synchronous pass waits
//! for writeback, of its own writes and of others. In 2.6.37 a page that is kept for any reason but a write ends lumpy mode
//! for its batch. Each page that is found referenced or is unmapped causes a TLB flush of its own on the other CPUs. Not
//! modelled: page locks, except those of pages that are being read, and private data. Checked by tests here and by
//! `tests/historic_reclaim.rs`.

use super::{Blocks, DirtyFiles};
use crate::frame::{Flag, Pfn, ZONES};
use crate::hw::IoClass;
use crate::mm::vmscan::shrink_inactive::flags;
use crate::mm::vmscan::{COSTLY_ORDER, Control, DEF_PRIORITY, TaskCtx};
use crate::vmstat::NodeItem;
use mmtwin_event::value::ReclaimFlags;
use mmtwin_event::vocabulary::MmVmscanWriteFolio;

/// Action for a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FolioAction {
    Keep,
    Activate,
    Free,
    /// It is known later.
    Wait,
}

/// Whether a batch is reclaimed for a block: in lumpy mode or, later, in that of compaction (`reclaim_mode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lumpy {
    Off,
    Async,
    /// For the second time, waiting for writes.
    Sync,
}

/// A pass over a batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pass {
    pub lumpy: Lumpy,
    /// Dirty pages that could be freed, and those of them that were refused.
    pub dirty: u64,
    pub refused: u64,
    /// Those of them that tasks leave to the flusher.
    pub left: u64,
    /// Pages that were being written already.
    pub writeback: u64,
    /// The page that it waits for, and why.
    pub awaited: Option<(Pfn, Awaited)>,
}

/// A write that a reclaim has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Written {
    page: Pfn,
    node: usize,
    file: bool,
    pages: i64,
}

/// Reason of a wait for a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Awaited {
    /// The end of a write that others began; that it began itself.
    Write,
    OwnWrite(Written),
    /// Room in the device's queue.
    Room,
}

/// Result of the reference check of a page (`enum page_references`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum References {
    Activate,
    Keep,
    /// It is freed if clean.
    Clean,
    Reclaim,
}

/// `page_check_references`: `young` page tables have used the page, `referenced` is its flag, which is cleared now and set
/// again where the page is kept; `exec`: it is of an executable file.
fn check(rules: super::References, young: bool, referenced: bool, file: bool, exec: bool) -> References {
    let of_2012 = rules == super::References::Since3_3;
    match (young, referenced) {
        (true, _) if !file || exec && of_2012 => References::Activate,
        (true, true) => References::Activate,
        (true, false) => References::Keep,
        (false, true) if file || !of_2012 => References::Clean,
        (false, _) => References::Reclaim,
    }
}

/// The flags of events of a type's pages.
pub(super) fn write_flags(file: bool, lumpy: Lumpy) -> ReclaimFlags {
    const SYNC: u32 = 4;
    const ASYNC: u32 = 8;
    let flags = flags(file);
    if lumpy == Lumpy::Sync { ReclaimFlags(flags.0 & !ASYNC | SYNC) } else { flags }
}

impl Pass {
    pub(super) fn new(lumpy: Lumpy) -> Pass {
        Pass { lumpy, dirty: 0, refused: 0, left: 0, writeback: 0, awaited: None }
    }

    /// Action for a page of the batch, or the wait that is needed first.
    pub(super) fn see(&mut self, ctx: &mut TaskCtx<'_>, control: &mut Control, page: Pfn) -> FolioAction {
        let writing = ctx.kernel.alloc.frames.has(page, Flag::Writeback);
        let action = self.judge(ctx, control, page);
        let writing = writing || ctx.kernel.alloc.frames.has(page, Flag::Writeback);
        let kept = action == FolioAction::Activate || action == FolioAction::Keep && !writing;
        if kept && self.lumpy != Lumpy::Off && ctx.decide(|rules| rules.keep_ends_mode) {
            self.lumpy = Lumpy::Off;
        }
        action
    }

    fn wait(&mut self, page: Pfn, what: Awaited) -> FolioAction {
        self.awaited = Some((page, what));
        FolioAction::Wait
    }

    fn judge(&mut self, ctx: &mut TaskCtx<'_>, control: &mut Control, page: Pfn) -> FolioAction {
        let content = ctx.kernel.alloc.frames.content(page);
        let at = ctx.memory.of_content(content);
        let file = !ctx.kernel.alloc.frames.has(page, Flag::Swapbacked);
        let may_enter_fs = control.fs || control.io && ctx.memory.has_slot(page);
        match self.awaited.take() {
            Some((_, Awaited::OwnWrite(of))) => {
                ctx.note_write(of, self.lumpy);
                if ctx.kernel.alloc.frames.has(page, Flag::Dirty) {
                    return FolioAction::Keep;
                }
            }
            Some((_, Awaited::Write | Awaited::Room)) => {}
            None => {
                if ctx.memory.read_ends(ctx.kernel, ctx.cpu, page).is_some() {
                    // It is locked while it is read.
                    return FolioAction::Keep;
                }
                // Pages that others map press twice on the slabs, and on the writers.
                let pressing = ctx.memory.is_mapped(content, 0) || ctx.memory.has_slot(page);
                control.scanned += 1 + u64::from(pressing);
                if ctx.kernel.alloc.frames.has(page, Flag::Writeback) {
                    self.writeback += 1;
                    if self.lumpy != Lumpy::Sync || !may_enter_fs {
                        return FolioAction::Keep;
                    }
                    return self.wait(page, Awaited::Write);
                }
            }
        }
        let referenced = ctx.kernel.alloc.frames.set_flag(page, Flag::Referenced, false);
        let young = ctx.memory.test_and_clear_young(ctx.kernel, ctx.cpu, page, content) > 0;
        if young {
            let cpus = ctx.memory.cpus_of(content);
            ctx.flush_tlb(cpus);
        }
        if at.locked(ctx.memory) {
            return FolioAction::Activate;
        }
        let exec = file && at.exec(ctx.memory);
        let references = ctx.decide(|rules| match rules.blocks {
            blocks if blocks.is_lumpy() && self.lumpy != Lumpy::Off => References::Reclaim,
            _ => check(rules.references, young, referenced, file, exec),
        });
        match references {
            References::Activate => return FolioAction::Activate,
            References::Keep => {
                ctx.kernel.alloc.frames.set_flag(page, Flag::Referenced, true);
                return FolioAction::Keep;
            }
            References::Clean | References::Reclaim => {}
        }
        let mut may_enter_fs = may_enter_fs;
        if !file && !ctx.memory.has_slot(page) {
            if !control.io {
                return FolioAction::Keep;
            }
            if !ctx.memory.take_slots(ctx.kernel, (ctx.cpu, ctx.task), page) {
                return FolioAction::Activate;
            }
            may_enter_fs = true;
        }
        let mapped_by = ctx.memory.unmap(ctx.kernel, ctx.cpu, page, content);
        ctx.flush_tlb(mapped_by);
        if ctx.kernel.alloc.frames.has(page, Flag::Dirty) {
            self.dirty += 1;
            let troubled = control.is_kswapd() && control.priority < DEF_PRIORITY - 2;
            match ctx.decide(|rules| rules.dirty_files) {
                DirtyFiles::KswapdLowPriority if file && !troubled => {
                    ctx.leave_to_flusher(page);
                    return FolioAction::Keep;
                }
                DirtyFiles::Kswapd if file && !control.is_kswapd() => {
                    self.left += 1;
                    return FolioAction::Keep;
                }
                DirtyFiles::All | DirtyFiles::Kswapd | DirtyFiles::KswapdLowPriority => {}
            }
            if references == References::Clean || !may_enter_fs || !control.may_writepage {
                return FolioAction::Keep;
            }
            if at.held(ctx.memory) || ctx.is_refused(control, file) {
                self.refused += 1;
                return FolioAction::Keep;
            }
            if ctx.memory.requests.is_full(ctx.memory.is_on_disk(file)) {
                self.dirty -= 1;
                return self.wait(page, Awaited::Room);
            }
            let frames = &ctx.kernel.alloc.frames;
            let (node, pages) = (frames.zone(page) / ZONES, 1 << frames.order(page));
            let of = Written { page, node, file, pages };
            let waits = self.lumpy == Lumpy::Sync && ctx.decide(|rules| rules.blocks == Blocks::Lumpy);
            let class = if waits { IoClass::Sync } else { IoClass::Async };
            if !ctx.memory.write_out(ctx.kernel, (ctx.cpu, ctx.task), page, class) {
                if waits {
                    return self.wait(page, Awaited::OwnWrite(of));
                }
                ctx.note_write(of, self.lumpy);
                return FolioAction::Keep;
            }
            ctx.note_write(of, self.lumpy);
        }
        if at.held(ctx.memory) {
            return FolioAction::Activate;
        }
        ctx.memory.detach(ctx.kernel, (ctx.cpu, ctx.task), page, content, 0);
        FolioAction::Free
    }
}

impl TaskCtx<'_> {
    /// The wait of the reclaimer for a page has not ended yet; it is woken when it does.
    pub(super) fn has_to_wait(&mut self, page: Pfn, what: Awaited) -> bool {
        let frames = &self.kernel.alloc.frames;
        let waits = match what {
            Awaited::Write | Awaited::OwnWrite(_) => frames.has(page, Flag::Writeback),
            Awaited::Room => {
                let on_disk = self.memory.is_on_disk(!frames.has(page, Flag::Swapbacked));
                self.memory.requests.is_full(on_disk)
            }
        };
        let reclaim = &mut self.kernel.reclaim;
        match what {
            _ if !waits => {}
            Awaited::Write | Awaited::OwnWrite(_) => {
                reclaim.awaited.insert(page);
            }
            Awaited::Room => reclaim.awaits_room = true,
        }
        waits
    }

    /// A device that is congested takes no writes of files or swap, but from kswapd, from a task that is itself writing
    /// to it (`current->backing_dev_info`), and late in 2010 for large blocks.
    fn is_refused(&self, control: &Control, file: bool) -> bool {
        let own = file && control.gfp.contains("__GFP_WRITE");
        let on_disk = self.memory.is_on_disk(file);
        let refuses = self.memory.requests.is_congested(on_disk) && !control.is_kswapd() && !own;
        refuses && !(control.order > COSTLY_ORDER && self.decide(|rules| rules.costly_writes))
    }

    /// A dirty page of a file is to be freed when it has been written.
    fn leave_to_flusher(&mut self, page: Pfn) {
        let node = self.kernel.alloc.frames.zone(page) / ZONES;
        self.kernel.alloc.frames.set_flag(page, Flag::Reclaim, true);
        self.kernel.stat.pages.add(node, NodeItem::VmscanImmediate, 1);
    }

    /// The write of a page has been started, and in the synchronous pass has ended.
    pub(super) fn note_write(&mut self, of: Written, lumpy: Lumpy) {
        let Written { page, node, file, pages } = of;
        self.write(&MmVmscanWriteFolio { flags: write_flags(file, lumpy), pfn: Some(page.into()), page: None });
        self.kernel.stat.pages.add(node, NodeItem::VmscanWrite, pages);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_page_goes_around_once_anonymous_memory_is_active_at_once() {
        let rules = super::super::References::Pre3_3;
        let all = |file| {
            let seen = [(true, true), (true, false), (false, true), (false, false)];
            seen.map(|(young, referenced)| check(rules, young, referenced, file, file && young))
        };
        assert_eq!(all(true), [References::Activate, References::Keep, References::Clean, References::Reclaim]);
        assert_eq!(all(false), [References::Activate, References::Activate, References::Clean, References::Reclaim]);
    }

    #[test]
    fn executables_stay_and_swap_is_written_since_3_3() {
        let rules = super::super::References::Since3_3;
        assert_eq!(check(rules, true, false, true, true), References::Activate);
        assert_eq!(check(rules, true, false, true, false), References::Keep);
        assert_eq!(check(rules, false, true, true, true), References::Clean);
        assert_eq!(check(rules, false, true, false, false), References::Reclaim);
    }
}
