//! One 16-byte record per page frame.
//!
//! It stands for the kernel's `struct page`: state, order of the block a page heads, migratetype, zone, flags, cgroup,
//! and two list links. A page that is allocated is on no list of the allocator, so its links are its place on an LRU
//! list and its content. Records are indexed by page frame number and begin as zeros, so frames of holes and of blocks
//! that were never split cost address space only. Which pages head free blocks, and which may be on LRU lists, is in
//! bitmaps too, as compaction looks for them among millions. Not modelled: reference and map counts; a page is free, on
//! a per-CPU list or allocated. Checked by the allocator's property tests.

use super::{NO_PAGE, Pfn};
use std::ops::Range;

/// Migratetype of a page, set by its pageblock and by the allocation (`enum migratetype`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Migratetype {
    /// Can neither be moved nor reclaimed.
    Unmovable = 0,
    /// Can be moved: user memory.
    Movable = 1,
    /// Can be reclaimed: caches.
    Reclaimable = 2,
    /// Kept for requests that find nothing else (`MIGRATE_RESERVE`; before 4.4). A pageblock has this type, no request.
    Reserve = 3,
}

impl Migratetype {
    /// Number of types.
    pub(crate) const COUNT: usize = 4;

    /// All that requests have, in the kernel's order (`MIGRATE_PCPTYPES`).
    pub const ALL: [Migratetype; 3] = [Migratetype::Unmovable, Migratetype::Movable, Migratetype::Reclaimable];

    pub(crate) fn from_bits(bits: u32) -> Migratetype {
        Migratetype::ALL.get(bits as usize).copied().unwrap_or(Migratetype::Reserve)
    }
}

/// Where a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// In no allocator: a hole, reserved, or inside a block that another page heads.
    None,
    /// Heads a block on a free list of its zone.
    Free,
    /// Heads a block on a per-CPU list.
    PerCpu,
    /// Heads an allocated block.
    Allocated,
}

/// Flags of an allocated page, as the kernel names them without `PG_`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Flag {
    /// It is on an LRU list.
    Lru = 1 << 17,
    /// It belongs to an active list.
    Active = 1 << 18,
    /// It belongs to the unevictable list.
    Unevictable = 1 << 19,
    /// It was referenced since it was last checked (`PG_referenced`).
    Referenced = 1 << 20,
    /// It differs from what is on the disk.
    Dirty = 1 << 21,
    /// It is being written.
    Writeback = 1 << 22,
    /// When its write ends it is to be reclaimed.
    Reclaim = 1 << 23,
    /// It has been part of the working set.
    Workingset = 1 << 24,
    /// Its place when it is not in memory is swap.
    Swapbacked = 1 << 25,
}

/// The largest order that a record has room for.
const MOST_ORDER: u32 = 0xf;
const ORDER_SHIFT: u32 = 2;
const TYPE_SHIFT: u32 = 6;
const ZONE_SHIFT: u32 = 8;
/// 9 bits: 64 nodes of 5 zones.
const ZONE_MASK: u32 = 0x1ff;
/// Numbers of cgroups begin at this bit, up to the last.
const CGROUP_SHIFT: u32 = 26;

/// Cgroups that a page can belong to, the root among them.
pub const MAX_CGROUPS: usize = 1 << (32 - CGROUP_SHIFT);

/// All page frames. A record is: state, order, migratetype, zone, flags and cgroup; the page before and after on a list
/// of the allocator, or the place on an LRU list and the content; the owner.
#[derive(Clone, Debug)]
pub struct Frames {
    records: Vec<[u32; 4]>,
    /// By page: it may have [`Flag::Lru`]. Every page that has it is marked.
    listed: Vec<u64>,
    /// By page: it heads a free block.
    free: Vec<u64>,
}

impl Frames {
    /// Frames `0..end`.
    pub fn new(end: u64) -> Frames {
        // Zeros that were asked for take no memory; those that were copied would.
        let marks = || vec![0; end.div_ceil(64) as usize];
        Frames { records: vec![[0; 4]; end as usize], listed: marks(), free: marks() }
    }

    /// True if this machine has the address space for frames `0..end`: a table that is too large ends the program.
    pub fn fit(end: u64) -> bool {
        usize::try_from(end).is_ok_and(|end| Vec::<[u32; 4]>::new().try_reserve_exact(end).is_ok())
    }

    /// Number of frames, holes included.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Where a page is; a page that does not exist is nowhere.
    #[inline]
    pub fn state(&self, page: Pfn) -> State {
        match self.records.get(page as usize).map_or(0, |record| record[0] & 3) {
            1 => State::Free,
            2 => State::PerCpu,
            3 => State::Allocated,
            _ => State::None,
        }
    }

    /// log2 of the pages of the block that a page heads.
    #[inline]
    pub fn order(&self, page: Pfn) -> u32 {
        self.records[page as usize][0] >> ORDER_SHIFT & MOST_ORDER
    }

    /// Free or per-CPU: the list it is on. Allocated: the type of the allocation.
    #[inline]
    pub fn migratetype(&self, page: Pfn) -> Migratetype {
        Migratetype::from_bits(self.records[page as usize][0] >> TYPE_SHIFT & 3)
    }

    /// Number of the zone of a page that heads a block.
    #[inline]
    pub fn zone(&self, page: Pfn) -> usize {
        (self.records[page as usize][0] >> ZONE_SHIFT & ZONE_MASK) as usize
    }

    /// True if an allocated page has a flag.
    #[inline]
    pub fn has(&self, page: Pfn, flag: Flag) -> bool {
        self.records[page as usize][0] & flag as u32 != 0
    }

    /// Gives an allocated page a flag or takes it; true if it had it.
    #[inline]
    pub(crate) fn set_flag(&mut self, page: Pfn, flag: Flag, to: bool) -> bool {
        let word = &mut self.records[page as usize][0];
        let had = *word & flag as u32 != 0;
        *word = if to { *word | flag as u32 } else { *word & !(flag as u32) };
        if flag == Flag::Lru {
            mark(&mut self.listed, page, to);
        }
        had
    }

    /// The first of some pages that may be on an LRU list; their end if none is.
    pub(crate) fn next_listed(&self, pages: Range<u64>) -> u64 {
        next_marked(&self.listed, pages)
    }

    /// The first of some pages that heads a free block; their end if none does.
    pub(crate) fn next_free(&self, pages: Range<u64>) -> u64 {
        next_marked(&self.free, pages)
    }

    /// The cgroup that an allocated page is charged to; 0 is the root.
    #[inline]
    pub(crate) fn cgroup(&self, page: Pfn) -> usize {
        (self.records[page as usize][0] >> CGROUP_SHIFT) as usize
    }

    /// Charges an allocated page to a cgroup below [`MAX_CGROUPS`].
    #[inline]
    pub(crate) fn set_cgroup(&mut self, page: Pfn, cgroup: usize) {
        let word = &mut self.records[page as usize][0];
        *word = *word << (32 - CGROUP_SHIFT) >> (32 - CGROUP_SHIFT) | (cgroup as u32) << CGROUP_SHIFT;
    }

    /// Place of a page on its LRU list, set by its ring.
    #[inline]
    pub(crate) fn place(&self, page: Pfn) -> u32 {
        self.records[page as usize][1]
    }

    #[inline]
    pub(crate) fn set_place(&mut self, page: Pfn, place: u32) {
        self.records[page as usize][1] = place;
    }

    /// Content of an allocated page, set by [`Frames::set_content`].
    #[inline]
    pub(crate) fn content(&self, page: Pfn) -> u32 {
        self.records[page as usize][2]
    }

    /// Sets the content of an allocated page: the number of a page of a region.
    #[inline]
    pub(crate) fn set_content(&mut self, page: Pfn, content: u32) {
        self.records[page as usize][2] = content;
    }

    /// Makes a page the head of a block.
    #[inline]
    pub(crate) fn set(&mut self, page: Pfn, state: State, order: u32, migratetype: Migratetype, zone: usize) {
        let state = match state {
            State::None => 0,
            State::Free => 1,
            State::PerCpu => 2,
            State::Allocated => 3,
        };
        let word = state | order << ORDER_SHIFT | (migratetype as u32) << TYPE_SHIFT | (zone as u32) << ZONE_SHIFT;
        self.replace(page, word);
    }

    /// What was there is not read: a table of zeros that is read before it is written costs a fault more for each part.
    #[inline]
    fn replace(&mut self, page: Pfn, word: u32) {
        self.records[page as usize][0] = word;
        mark(&mut self.free, page, word & 3 == 1);
    }

    /// The first page of the allocated block that a page belongs to; the page itself if there is none. Blocks are aligned
    /// to their size.
    #[inline]
    pub(crate) fn head(&self, page: Pfn) -> Pfn {
        if self.state(page) != State::None {
            return page;
        }
        let heads = (1..=MOST_ORDER).map(|order| (order, page >> order << order));
        let mut of = heads.filter(|&(order, head)| self.state(head) == State::Allocated && self.order(head) >= order);
        of.next().map_or(page, |(_, head)| head)
    }

    /// Makes single pages of an allocated block: each has the flags, the cgroup and the owner of the first, and the next
    /// content.
    pub(crate) fn split(&mut self, head: Pfn) {
        let [word, link, content, owner] = self.records[head as usize];
        let single = word & !(MOST_ORDER << ORDER_SHIFT);
        let pages = 1 << self.order(head);
        let block = &mut self.records[head as usize..][..pages];
        for (record, content) in block.iter_mut().zip(content..) {
            *record = [single, link, content, owner];
        }
        if word & Flag::Lru as u32 != 0 {
            (head..head + pages as Pfn).for_each(|page| _ = self.set_flag(page, Flag::Lru, true));
        }
    }

    /// Makes one allocated block of single ones.
    pub(crate) fn join(&mut self, head: Pfn, order: u32) {
        self.records[head as usize][0] |= order << ORDER_SHIFT;
        (head + 1..head + (1 << order)).for_each(|page| self.clear(page));
    }

    /// Makes a page part of the block before it.
    #[inline]
    pub(crate) fn clear(&mut self, page: Pfn) {
        self.replace(page, 0);
    }

    /// Owner of a page, set by [`Frames::set_owner`]; [`NO_PAGE`] by default.
    #[inline]
    pub fn owner(&self, page: Pfn) -> u32 {
        // Stored inverted, so that the zeros of a new table mean "no owner".
        !self.records[page as usize][3]
    }

    /// Sets the owner of an allocated page: any number, kept until the next allocation.
    #[inline]
    pub fn set_owner(&mut self, page: Pfn, owner: u32) {
        self.records[page as usize][3] = !owner;
    }

    #[inline]
    pub(crate) fn links(&self, page: Pfn) -> [Pfn; 2] {
        let record = &self.records[page as usize];
        [record[1], record[2]]
    }

    #[inline]
    pub(crate) fn set_links(&mut self, page: Pfn, links: [Pfn; 2]) {
        let record = &mut self.records[page as usize];
        (record[1], record[2]) = (links[0], links[1]);
    }

    /// Sets the link of a page to the page before (0) or after (1) it, if there is a page.
    #[inline]
    pub(crate) fn set_link(&mut self, page: Pfn, side: usize, to: Pfn) {
        if page != NO_PAGE {
            self.records[page as usize][1 + side] = to;
        }
    }
}

#[inline]
fn mark(marks: &mut [u64], page: Pfn, to: bool) {
    let (word, bit) = (&mut marks[page as usize / 64], 1 << (page % 64));
    *word = if to { *word | bit } else { *word & !bit };
}

fn next_marked(marks: &[u64], pages: Range<u64>) -> u64 {
    let mut at = pages.start;
    while at < pages.end {
        let rest = marks[(at / 64) as usize] >> (at % 64);
        if rest != 0 {
            return (at + u64::from(rest.trailing_zeros())).min(pages.end);
        }
        at = (at / 64 + 1) * 64;
    }
    pages.end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_stores_all_its_fields() {
        let mut frames = Frames::new(4);
        assert_eq!((frames.state(2), frames.owner(2), frames.state(99)), (State::None, u32::MAX, State::None));
        frames.set(2, State::PerCpu, 10, Migratetype::Reclaimable, 255);
        frames.set_links(2, [0, NO_PAGE]);
        frames.set_owner(2, 7);
        assert!(!frames.set_flag(2, Flag::Swapbacked, true) && frames.has(2, Flag::Swapbacked));
        frames.set_cgroup(2, 63);
        assert!(!frames.has(2, Flag::Lru) && frames.cgroup(2) == 63 && frames.set_flag(2, Flag::Swapbacked, false));
        assert_eq!((frames.state(2), frames.order(2), frames.zone(2)), (State::PerCpu, 10, 255));
        assert_eq!(
            (frames.migratetype(2), frames.links(2), frames.owner(2)),
            (Migratetype::Reclaimable, [0, NO_PAGE], 7)
        );
        frames.clear(2);
        assert_eq!(frames.state(2), State::None);
        assert_eq!(size_of_val(&frames.records[0]), 16);
    }

    #[test]
    fn pages_on_lists_are_found_among_many() {
        let mut frames = Frames::new(200);
        frames.set(8, State::Free, 3, Migratetype::Movable, 0);
        frames.set(130, State::Free, 0, Migratetype::Movable, 0);
        assert_eq!([0..200, 9..200, 9..130].map(|pages| frames.next_free(pages)), [8, 130, 130]);
        frames.set(8, State::Allocated, 3, Migratetype::Movable, 0);
        frames.clear(130);
        assert_eq!(frames.next_free(0..200), 200);
        assert_eq!(frames.next_listed(3..200), 200);
        frames.set(72, State::Allocated, 3, Migratetype::Movable, 0);
        frames.set_flag(72, Flag::Lru, true);
        assert_eq!(
            [0..200, 72..73, 73..200, 0..72, 0..70].map(|pages| frames.next_listed(pages)),
            [72, 72, 200, 72, 70]
        );
        frames.split(72);
        frames.set_flag(72, Flag::Lru, false);
        assert_eq!([0..200, 79..200, 80..200].map(|pages| frames.next_listed(pages)), [73, 79, 200]);
    }
}
