//! Inodes and dentries of the files that a region is divided into: `dput`, `iput_final`, `prune_super`, `prune_dcache_sb`,
//! `prune_icache_sb`, `invalidate_mapping_pages` (3.1 to 3.11).
//!
//! A file that is used has a dentry, which keeps its inode; between two uses both wait for the next. The shrinker of
//! the file system scans the same share of the dentries as of the inodes without one, the oldest first, and spares once
//! those used since the last scan. A scanned inode loses the clean, unmapped pages of its file (`pginodesteal`, of
//! kswapd `kswapd_inodesteal`), which count as reclaimed with the pages of slabs, but is freed only by a later scan that
//! finds no page. Not modelled:
//! inodes that are dirty or in use during the scan, directories, caches of several orders, deletion of single files; in
//! 2.6.36 and 2.6.37 there were two shrinkers. Checked by tests here and in `tests/reclaim_2012.rs`.

use super::{Slab, SlabShape};
use crate::frame::{Flag, Migratetype, NO_PAGE, Pfn};
use crate::mm::kernel::Kernel;
use crate::mm::memory::AccessState;
use crate::mm::region::Entry;
use crate::mm::vmscan::TaskCtx;
use crate::page_alloc::{AllocationFailure, Caller, Policy, Request};
use crate::probe::Task;
use std::collections::VecDeque;
use std::ops::Range;

/// Memory for either.
const BLOCK: Request =
    Request { migratetype: Migratetype::Reclaimable, gfp: "GFP_NOFS|__GFP_RECLAIMABLE", ..Request::KERNEL };
/// Inodes of ext3 (768 bytes) and dentries (192 bytes) that share a page.
const INODES: SlabShape = SlabShape { usual: (BLOCK, 5), small: (BLOCK, 5), kept: 5 };
const DENTRIES: SlabShape = SlabShape { usual: (BLOCK, 21), small: (BLOCK, 21), kept: 5 };

/// Dentry and inode of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Is {
    Unknown,
    /// A dentry and the inode that it keeps.
    Named,
    /// An inode alone.
    Nameless,
}

#[derive(Clone, Copy, Debug)]
struct File {
    region: usize,
    is: Is,
    /// It was used since the last scan of the shrinker.
    referenced: bool,
    /// How often it has changed lists: older places on them do not count.
    moves: u32,
    inode: Pfn,
    dentry: Pfn,
}

/// A place on a list: a file, and its number of moves when it was put there.
type Place = (usize, u32);

/// All inodes and dentries of files that regions are divided into.
#[derive(Clone, Debug)]
pub(crate) struct Inodes {
    inodes: Slab,
    dentries: Slab,
    /// By region that is divided: pages, number of its first file, files.
    divided: Vec<Option<(u64, usize, u64)>>,
    files: Vec<File>,
    /// The oldest first.
    named: VecDeque<Place>,
    nameless: VecDeque<Place>,
    counts: (u64, u64),
}

impl Default for Inodes {
    fn default() -> Inodes {
        let (inodes, dentries) = (Slab::new(INODES), Slab::new(DENTRIES));
        let (divided, files, named, nameless) = Default::default();
        Inodes { inodes, dentries, divided, files, named, nameless, counts: (0, 0) }
    }
}

impl Inodes {
    /// A region of this many pages is divided into files of one size.
    pub(crate) fn divide(&mut self, region: usize, pages: u64, files: u64) {
        let first = self.files.len();
        let file = File { region, is: Is::Unknown, referenced: false, moves: 0, inode: NO_PAGE, dentry: NO_PAGE };
        self.files.resize(first + files as usize, file);
        if self.divided.len() <= region {
            self.divided.resize(region + 1, None);
        }
        self.divided[region] = Some((pages, first, files));
    }

    /// Some region is divided.
    pub(crate) fn any(&self) -> bool {
        !self.files.is_empty()
    }

    /// Dentries and inodes that can be shrunk.
    pub(crate) fn unused(&self) -> u64 {
        self.counts.0 + self.counts.1
    }

    /// The file of a page.
    fn number(&self, region: usize, page: u64) -> Option<usize> {
        let (pages, first, files) = (*self.divided.get(region)?)?;
        Some(first + (page * files / pages) as usize)
    }

    /// The pages of a file.
    fn pages(&self, number: usize) -> Range<u64> {
        let Some((pages, first, files)) = self.divided[self.files[number].region] else { return 0..0 };
        let edge = |file: u64| (file * pages).div_ceil(files);
        let file = (number - first) as u64;
        edge(file)..edge(file + 1)
    }

    /// A file is used.
    fn look_up(&mut self, kernel: &mut Kernel, by: (u32, Task), number: usize) -> Result<(), AllocationFailure> {
        let file = &mut self.files[number];
        file.referenced = true;
        if file.is == Is::Named {
            return Ok(());
        }
        if file.inode == NO_PAGE {
            file.inode = self.inodes.take(kernel, by)?;
        }
        file.dentry = self.dentries.take(kernel, by)?;
        self.counts.1 -= u64::from(file.is == Is::Nameless);
        self.counts.0 += 1;
        file.is = Is::Named;
        file.moves = file.moves.wrapping_add(1);
        self.named.push_back((number, file.moves));
        Ok(())
    }

    /// Scans this many dentries that were not used recently; their inodes have been used by them.
    fn prune_names(&mut self, kernel: &mut Kernel, by: (u32, Task), mut count: u64) -> u64 {
        let (mut gone, mut spared) = (0, Vec::new());
        while count > 0
            && let Some(place) = self.named.pop_front()
        {
            let (number, moves) = place;
            let file = &mut self.files[number];
            if file.is != Is::Named || file.moves != moves {
                continue;
            }
            if std::mem::take(&mut file.referenced) {
                spared.push(place);
                continue;
            }
            (file.is, file.referenced) = (Is::Nameless, true);
            file.moves = file.moves.wrapping_add(1);
            self.nameless.push_back((number, file.moves));
            self.dentries.give(kernel, by, std::mem::replace(&mut file.dentry, NO_PAGE));
            self.counts = (self.counts.0 - 1, self.counts.1 + 1);
            count -= 1;
            gone += 1;
        }
        self.named.extend(spared);
        gone
    }

    /// The oldest inode without a dentry.
    fn oldest(&mut self) -> Option<usize> {
        while let Some((number, moves)) = self.nameless.pop_front() {
            if self.files[number].is == Is::Nameless && self.files[number].moves == moves {
                return Some(number);
            }
        }
        None
    }

    /// An inode is freed.
    fn forget(&mut self, kernel: &mut Kernel, by: (u32, Task), number: usize) {
        let file = &mut self.files[number];
        file.is = Is::Unknown;
        self.inodes.give(kernel, by, std::mem::replace(&mut file.inode, NO_PAGE));
        self.counts.1 -= 1;
    }
}

impl AccessState {
    /// The file of a region's page is used.
    pub(crate) fn use_file(
        &mut self,
        kernel: &mut Kernel,
        caller: &Caller,
        region: usize,
        page: u64,
    ) -> Result<(), AllocationFailure> {
        match self.inodes.number(region, page) {
            Some(number) => self.inodes.look_up(kernel, (caller.cpu, caller.task), number),
            None => Ok(()),
        }
    }

    /// Drops pages of a file that are clean and not mapped: how many, and how many are left.
    fn invalidate(&mut self, kernel: &mut Kernel, caller: &Caller, region: usize, pages: Range<u64>) -> (u64, u64) {
        let (mut dropped, mut left) = (0, 0);
        let mut page = pages.start;
        while page < pages.end {
            let Entry::Present(pfn) = self.regions[region].entry(page) else {
                page += 1;
                continue;
            };
            let (first, pfn) = self.regions[region].block(kernel, page, pfn);
            let order = kernel.alloc.frames.order(pfn);
            let (end, inside) = (first + (1 << order), first >= pages.start && first + (1 << order) <= pages.end);
            let busy = kernel.alloc.frames.has(pfn, Flag::Dirty) || kernel.alloc.frames.has(pfn, Flag::Writeback);
            let busy = busy || self.is_mapped(kernel.alloc.frames.content(pfn), order);
            let busy = busy || self.is_being_read(kernel, caller.cpu, pfn);
            if inside && !busy && self.drop_cached(kernel, caller, (region, first), pfn).is_ok() {
                dropped += end - page;
            } else {
                left += end.min(pages.end) - page;
            }
            page = end;
        }
        (dropped, left)
    }
}

impl TaskCtx<'_> {
    /// The shrinker of the file system scans this many dentries and inodes; returns the number freed.
    pub(crate) fn prune_files(&mut self, count: u64, kswapd: bool) -> u64 {
        let by = (self.cpu, self.task);
        let caller = Caller::new(self.cpu, self.task, Policy::Default);
        let (names, inodes) = self.memory.inodes.counts;
        let share = |of: u64| count * of / (names + inodes + 1);
        let mut gone = self.memory.inodes.prune_names(self.kernel, by, share(names));
        let (mut stolen, mut left_to_scan) = (0, share(inodes));
        while left_to_scan > 0 {
            left_to_scan -= 1;
            let Some(number) = self.memory.inodes.oldest() else { break };
            let place = (number, self.memory.inodes.files[number].moves);
            if std::mem::take(&mut self.memory.inodes.files[number].referenced) {
                self.memory.inodes.nameless.push_back(place);
                continue;
            }
            let (region, pages) = (self.memory.inodes.files[number].region, self.memory.inodes.pages(number));
            let (dropped, left) = self.memory.invalidate(self.kernel, &caller, region, pages);
            stolen += dropped;
            if dropped + left == 0 {
                self.memory.inodes.forget(self.kernel, by, number);
                gone += 1;
            } else {
                // `iput` marks it, and it is found at the same end of the list again, which only takes the mark.
                left_to_scan = left_to_scan.saturating_sub(1);
                self.memory.inodes.nameless.push_back(place);
            }
        }
        self.kernel.reclaim.reclaimed_slab += stolen;
        let events = &mut self.kernel.stat.events.reclaim;
        *if kswapd { &mut events.kswapd_inodesteal } else { &mut events.pginodesteal } += stolen;
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_divide_a_region() {
        let mut all = Inodes::default();
        all.divide(2, 10, 4);
        let pages: Vec<_> = (0..4).map(|file| all.pages(file)).collect();
        assert_eq!(pages, [0..3, 3..5, 5..8, 8..10]);
        for (number, range) in pages.into_iter().enumerate() {
            assert!(range.clone().all(|page| all.number(2, page) == Some(number)), "{range:?}");
        }
        assert_eq!((all.number(1, 0), all.number(3, 0)), (None, None));
    }
}
