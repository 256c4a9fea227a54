//! Regions of memory as their processes map them: page-table entries ([`Entry`]) and state of each page.
//!
//! Faults of anonymous memory are in `fault`, pages of files in `cached`, mappings of shared regions in `mapped`,
//! numbers of pages by place in `parts`, accesses since the last check of reclaim in `looked`. Page tables as memory
//! are in `tables`, swapped pages in `swap`.

mod cached;
mod fault;
mod looked;
mod mapped;
mod parts;

pub(crate) use parts::Part;

use crate::frame::{NO_PAGE, Pfn, State};
use crate::mm::accessed::LogOf;
use crate::mm::filemap::inode_lock::Lock;
use crate::mm::kernel::Kernel;
use crate::mm::page_tables::Tables;
use crate::mm::prot_numa::Bits;
use crate::mm::readahead::Readahead;
use crate::mm::shmem_add::Adding;
use crate::mm::swap::readahead::Window;
use crate::mm::tlb::Cpus;
use crate::mm::writeback::foreign::History;
use crate::page_alloc::{Allocated, HUGE_ORDER, Policy, Request};
use crate::vmstat::NodeItem;
use mapped::Mapped;

/// Maps the zero page.
const ZERO: Pfn = NO_PAGE - 1;
/// Entries from here on are not page frames: all but the last two are left by reclaim, a swap slot or a shadow of
/// 30 bits.
const GONE: Pfn = 1 << 31;
/// Pages of a huge page.
const HUGE: u64 = 1 << HUGE_ORDER;

/// Content of a page-table entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// The page has not been accessed.
    Absent,
    /// It was read: the zero page is mapped.
    Zero,
    /// A page of its own; of a file: in the page cache.
    Present(Pfn),
    /// Reclaim has taken it: anonymous and shared memory is in this swap slot, a file's page has left this shadow.
    Gone(u32),
}

/// A region; regions of the same file are one.
#[derive(Clone, Debug)]
pub(crate) struct Region {
    entries: Vec<Pfn>,
    /// Its page tables.
    pub tables: Tables,
    /// By thread for a private region, else one.
    parts: Vec<Part>,
    /// Number of its first page among the pages of all regions, which frames store.
    base: u32,
    /// Anonymous memory; else shared memory or a file.
    pub anon: bool,
    /// A file on the disk.
    pub file: bool,
    /// Mapped pages by mapping.
    mapped: Mapped,
    /// By mapping: the state of read-ahead of the open file (`f_ra`), which all threads of a process share.
    pub readahead: Vec<Readahead>,
    /// By mapping: success of read-ahead from swap (`swap_readahead_info`).
    pub swap_readahead: Vec<Window>,
    /// Pages of a file that differ from the disk's.
    dirty: Bits,
    /// Lock of the tasks that write to the file by system calls.
    pub lock: Lock,
    /// The cgroup that is charged for the kernel's objects of a file; 0: none yet.
    pub objects_of: usize,
    /// Faults that add pages of shared memory.
    pub adding: Adding,
    /// Tick in which a write last changed the file's times.
    pub changed_at: u64,
    /// Whose flusher writes the file (`i_wb`), and who has written to it.
    pub wb: usize,
    pub foreign: History,
    /// Where the next writing of the file begins (`writeback_index`).
    pub written_up_to: u64,
    /// By page of a file that was written: block of what the file system remembers of it, or [`NO_PAGE`]; empty before.
    buffers: Vec<Pfn>,
    /// Pages of anonymous memory that were accessed since the last check of reclaim.
    young: Bits,
    /// Pages that were written since `MADV_FREE`; `None`: there was no such call.
    rewritten: Option<Bits>,
    /// Mapped executable.
    pub exec: bool,
    /// Never reclaimed.
    pub locked: bool,
    /// Its pages cannot be freed, as they have other references: buffers of a file system.
    pub held: bool,
    /// Requests for a huge page, tried in this order; none if huge pages are not allowed.
    huge: Vec<Request>,
    /// Blocks with a fault under way that was refused a huge page, and the number of refusals.
    refused: Vec<(u64, usize)>,
    /// Blocks whose huge page is allocated and whose page table is not.
    pub without_table: Vec<(u64, Allocated)>,
    /// Its policy, or that of its process.
    pub policy: Policy,
    /// Processes that map it and have not ended.
    pub users: u32,
    /// Anonymous memory of a process whose end has begun, and of no other one.
    pub exiting: bool,
    /// A file that is deleted when there are none.
    pub temporary: bool,
    /// A file whose pages are cleared, not read.
    pub sparse: bool,
    /// Files that it is divided into, if their inodes are modelled.
    pub files: Option<u64>,
    /// Pools that draw from it.
    pub pools: Vec<usize>,
    /// CPUs of the threads that map it.
    pub cpus: Cpus,
    /// Logs of its accesses.
    pub logs: Vec<LogOf>,
    /// By page and by huge page: 1 + the epoch of reclaim's last check; empty before the first one.
    stamps: Vec<u32>,
    huge_stamps: Vec<u32>,
}

/// Properties of a region.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    /// Pages, and parts of equal size that they are divided into.
    pub pages: u64,
    pub parts: u64,
    /// Anonymous memory, else a file on the disk or in memory.
    pub anon: bool,
    pub file: bool,
    pub huge: Vec<Request>,
    pub exec: bool,
    pub locked: bool,
    pub policy: Policy,
}

impl Region {
    /// A region on a machine with `nodes` nodes, whose first page has number `base` among those of all regions; all
    /// absent.
    pub(crate) fn new(shape: Shape, nodes: usize, base: u32) -> Region {
        let Shape { pages, parts, anon, file, huge, exec, locked, policy } = shape;
        let parts = parts.clamp(1, pages.max(1));
        let edge = |i: u64| (u128::from(pages) * u128::from(i) / u128::from(parts)) as u64;
        let part = |i: u64| Part { absent: edge(i + 1) - edge(i), zero: 0, by_node: vec![0; nodes] };
        let parts = (0..parts).map(part).collect();
        let tables = Tables::new(pages);
        let entries = vec![NO_PAGE; pages as usize];
        let (mapped, dirty, young) =
            (Mapped::default(), Bits::new(if file { pages } else { 0 }), Bits::new(if anon { pages } else { 0 }));
        Region {
            entries,
            tables,
            parts,
            base,
            anon,
            file,
            mapped,
            dirty,
            lock: Lock::default(),
            objects_of: 0,
            adding: Adding::default(),
            changed_at: u64::MAX,
            wb: 0,
            foreign: History::default(),
            written_up_to: 0,
            buffers: Vec::new(),
            readahead: Vec::new(),
            swap_readahead: Vec::new(),
            young,
            rewritten: None,
            exec,
            locked,
            held: false,
            huge,
            refused: Vec::new(),
            without_table: Vec::new(),
            policy,
            users: 0,
            exiting: false,
            temporary: false,
            sparse: false,
            files: None,
            pools: Vec::new(),
            cpus: Cpus::default(),
            logs: Vec::new(),
            stamps: Vec::new(),
            huge_stamps: Vec::new(),
        }
    }

    /// Number of its first page among the pages of all regions.
    pub(crate) fn base(&self) -> u32 {
        self.base
    }

    /// The first page frame of a huge page that maps a block as a whole; blocks are counted in huge pages.
    #[inline]
    pub(crate) fn huge_at(&self, block: u64, kernel: &Kernel) -> Option<Pfn> {
        let pfn = *self.entries.get((block * HUGE) as usize).filter(|_| self.may_be_huge())?;
        let frames = &kernel.alloc.frames;
        (pfn < GONE && frames.state(pfn) == State::Allocated && frames.order(pfn) == HUGE_ORDER).then_some(pfn)
    }

    /// Pages, accessed or not.
    pub(crate) fn len(&self) -> u64 {
        self.entries.len() as u64
    }

    /// Entry of a page.
    #[inline]
    pub(crate) fn entry(&self, page: u64) -> Entry {
        match self.entries[page as usize] {
            NO_PAGE => Entry::Absent,
            ZERO => Entry::Zero,
            pfn if pfn < GONE => Entry::Present(pfn),
            gone => Entry::Gone(gone & !GONE),
        }
    }

    /// A page was added at a place without one.
    pub(crate) fn put(&mut self, page: u64, pfn: Pfn, node: usize) {
        self.map(page, pfn, node);
    }

    /// Reclaim takes a page: its swap slot or its shadow stays.
    pub(crate) fn take(&mut self, page: u64, gone: u32, node: usize) {
        self.entries[page as usize] = GONE | gone;
        self.unmap_everywhere(page, node);
        let part = self.part_mut(page);
        part.by_node[node] -= 1;
        part.absent += 1;
    }

    /// The first page of the block of memory in which one is, a huge page or a large folio, and that block's page frame.
    pub(crate) fn block(&self, kernel: &Kernel, page: u64, pfn: Pfn) -> (u64, Pfn) {
        let head = kernel.alloc.frames.head(pfn);
        (page - u64::from(pfn - head), head)
    }

    /// A page is freed: it counts as not accessed.
    pub(crate) fn clear(&mut self, page: u64, node: Option<usize>) {
        let zero = std::mem::replace(&mut self.entries[page as usize], NO_PAGE) == ZERO;
        if self.anon {
            self.young.remove(page);
        }
        // What is not there is not mapped.
        self.unmap_everywhere(page, node.unwrap_or(0));
        let part = self.part_mut(page);
        match node {
            Some(node) => {
                part.by_node[node] -= 1;
                part.absent += 1;
            }
            None if zero => (part.zero, part.absent) = (part.zero - 1, part.absent + 1),
            // Reclaimed pages count as absent.
            None => {}
        }
    }

    /// The number of a page among the pages of all regions.
    pub(crate) fn content(&self, page: u64) -> u32 {
        self.base + page as u32
    }

    /// Huge pages are allowed.
    pub(crate) fn may_be_huge(&self) -> bool {
        !self.huge.is_empty()
    }

    /// Counts a block of the region that was added (1) or removed (-1).
    pub(super) fn count(&self, kernel: &mut Kernel, pfn: Pfn, sign: i64) {
        let (node, pages) = (kernel.node_of_frame(pfn), sign << kernel.alloc.frames.order(pfn));
        self.items().iter().for_each(|&item| kernel.stat.pages.add(node, item, pages));
    }

    /// The counters of its pages: mapped ones, and those of a file whether they are mapped or not.
    pub(crate) fn items(&self) -> &'static [NodeItem] {
        match (self.anon, self.file) {
            (true, _) => &[NodeItem::AnonPages],
            (_, true) => &[NodeItem::FilePages],
            _ => &[NodeItem::FilePages, NodeItem::Shmem, NodeItem::Mapped],
        }
    }

    fn map(&mut self, page: u64, pfn: Pfn, node: usize) {
        let before = std::mem::replace(&mut self.entries[page as usize], pfn);
        let part = self.part_mut(page);
        if before == ZERO {
            part.zero -= 1
        } else {
            part.absent -= 1
        }
        part.by_node[node] += 1;
    }

    /// Pages that are in swap.
    pub(crate) fn swapped(&self) -> u64 {
        let gone = self.entries.iter().filter(|entry| (GONE..ZERO).contains(entry));
        if self.file { 0 } else { gone.count() as u64 }
    }

    /// Memory without a file that nobody maps any more, and that has no pages left, is gone.
    pub(crate) fn end(&mut self) {
        debug_assert_eq!(self.present(), 0, "pages of a region that is gone");
        self.entries = Vec::new();
        self.parts.clear();
    }
}
