//! A request to write pages that lie one after another, the memory that it takes, and its end: `io_submit_add_bh`,
//! `bio_alloc`, `end_page_writeback`, `folio_rotate_reclaimable` (5.16 to 6.12, ext4).
//!
//! A request of a file system has room for 256 pages, a page of memory of its own (`biovec-max`), taken eight at a time
//! where a block of eight is free. It ends when the disk is done and the CPU has processed it: interrupts and the
//! copying of emulated disks are work of a thread ([`BioEndIo`]), for which pages wait while their CPU is busy. Not
//! modelled: other memory of requests and their layers, merging of requests, blocks that CPUs keep for themselves.
//! Checked by a test here, and with the memory that guests had in `nr_slab_unreclaimable` while they wrote.

use crate::frame::Pfn;
use crate::hw::Queue;
use crate::mm::kernel::Kernel;
use crate::mm::slab::{Slab, SlabShape};
use crate::mm::vmscan::{Poll, TaskCtx};
use crate::page_alloc::Request as Allocation;
use crate::probe::Task;
use crate::time::Ps;
use std::collections::{BTreeMap, VecDeque};

/// Pages that a request can hold (`BIO_MAX_VECS`).
pub(crate) const MOST: usize = 256;
/// Requests whose memory is taken together.
const TOGETHER: u64 = 8;
/// Where the journal is: nothing else follows it.
pub(crate) const JOURNAL: u64 = 1 << 40;
/// Empty blocks that are kept (`min_partial` of objects of a page).
const KEPT: usize = 6;

/// Memory for requests: eight at a time, without waiting.
const BLOCK: Allocation = Allocation {
    order: TOGETHER.ilog2(),
    may_wait: false,
    gfp: "GFP_NOWAIT|__GFP_NOWARN|__GFP_NORETRY|__GFP_COMP|__GFP_NOMEMALLOC",
    ..Allocation::KERNEL
};
/// For one, if there is no such block.
const SINGLE: Allocation = Allocation { order: 0, ..BLOCK };

/// Pages that are written together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Request {
    pub pages: Vec<Pfn>,
    /// Blocks of its memory and of its companion objects; `None`: from a reserve.
    memory: Option<Pfn>,
    rest: Option<Pfn>,
    /// Blocks of the journal.
    journal: u64,
    /// The disk has it that holds files, not swap's own.
    on_disk: bool,
    /// How long asynchronous requests of that disk had been delayed by synchronous ones; `None`: this is a synchronous one.
    held_up: Option<Ps>,
}

/// Properties of requests on this machine; each is above 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestLimits {
    /// Requests of which the queue of the disk of files is full.
    pub queue_depth: u64,
    /// Requests whose other memory, that of the layers below included, shares a page.
    pub bios_per_page: u64,
    /// Blocks of a commit of the journal.
    pub journal_blocks: u64,
}

/// Place of a request, and `held_up` as in [`Request`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Destination {
    pub place: u64,
    pub on_disk: bool,
    pub held_up: Option<Ps>,
}

/// Requests that the disk has, or that wait for their end.
#[derive(Clone, Debug)]
pub(crate) struct Requests {
    all: BTreeMap<u64, Request>,
    /// Which request a page is part of.
    of_page: BTreeMap<Pfn, u64>,
    next: u64,
    /// Blocks of their memory, and of their companion objects.
    slab: Slab,
    rest: Slab,
    /// Requests that the disk has ended.
    done: VecDeque<u64>,
    /// Of swap's disk, and that of files.
    queues: [Queue; 2],
    pub limits: RequestLimits,
}

impl Default for Requests {
    /// None for a disk with a queue of usual length.
    fn default() -> Requests {
        Requests::new(RequestLimits { queue_depth: Queue::ROOM, bios_per_page: 1, journal_blocks: 1 })
    }
}

impl Requests {
    /// None yet.
    pub(crate) fn new(limits: RequestLimits) -> Requests {
        let shape = SlabShape { usual: (BLOCK, TOGETHER), small: (SINGLE, 1), kept: KEPT };
        let rest = (SINGLE, limits.bios_per_page);
        let rest = SlabShape { usual: rest, small: rest, kept: KEPT };
        let (slab, rest) = (Slab::new(shape), Slab::new(rest));
        Requests {
            all: BTreeMap::new(),
            of_page: BTreeMap::new(),
            next: 0,
            slab,
            rest,
            done: VecDeque::new(),
            queues: [Queue::default(), Queue::new(limits.queue_depth)],
            limits,
        }
    }

    /// A request of pages; with the memory of a file system's if `of_file`.
    pub(crate) fn begin(
        &mut self,
        kernel: &mut Kernel,
        (cpu, task): (u32, Task),
        (to, pages): (Destination, Vec<Pfn>),
        of_file: bool,
    ) -> u64 {
        let Destination { place, on_disk, held_up } = to;
        let count = pages.iter().map(|&page| 1 << kernel.alloc.frames.order(page)).sum();
        self.queues[usize::from(on_disk)].begin(place, count);
        // Without memory it is one of the few that a reserve is kept for.
        let by = (cpu, task);
        let memory = if of_file { self.slab.take(kernel, by).ok() } else { None };
        let rest = if of_file { self.rest.take(kernel, by).ok() } else { None };
        let number = self.next;
        self.next += 1;
        self.of_page.extend(pages.iter().map(|&page| (page, number)));
        self.all.insert(number, Request { pages, memory, rest, journal: 0, on_disk, held_up });
        number
    }

    /// A request of a commit of the journal.
    pub(crate) fn begin_journal(&mut self) -> u64 {
        let blocks = self.limits.journal_blocks;
        let number = self.next;
        self.next += 1;
        self.queues[1].begin(JOURNAL, blocks);
        self.all.insert(number, Request { journal: blocks, on_disk: true, ..Request::default() });
        number
    }

    /// True if the disk that holds files, or swap's own, is congested.
    pub(crate) fn is_congested(&self, on_disk: bool) -> bool {
        self.queues[usize::from(on_disk)].is_congested()
    }

    /// True if it has no room for another write.
    pub(crate) fn is_full(&self, on_disk: bool) -> bool {
        self.queues[usize::from(on_disk)].is_full()
    }

    /// True if any is congested.
    pub(crate) fn any_congested(&self) -> bool {
        self.queues.iter().any(Queue::is_congested)
    }

    /// The disk is done with a request, which leaves its queue; true if that is congested no longer.
    pub(crate) fn leave_queue(&mut self, number: u64) -> bool {
        self.all.get(&number).is_some_and(|request| self.queues[usize::from(request.on_disk)].end())
    }

    /// Which disk has a request.
    pub(crate) fn is_on_disk(&self, number: u64) -> Option<bool> {
        self.all.get(&number).map(|request| request.on_disk)
    }

    /// Delay of a request, from the total delay of its disk.
    pub(crate) fn late_by(&mut self, number: u64, held_up: Ps) -> Ps {
        let known = self.all.get_mut(&number).and_then(|request| request.held_up.as_mut());
        known.map_or(0, |known| held_up - std::mem::replace(known, held_up))
    }

    /// Pages of a request.
    pub(crate) fn pages(&self, number: u64) -> &[Pfn] {
        self.all.get(&number).map_or(&[], |request| &request.pages)
    }

    /// A page was removed, in any request.
    pub(crate) fn forget(&mut self, page: Pfn) {
        if let Some(request) = self.of_page.remove(&page).and_then(|number| self.all.get_mut(&number)) {
            request.pages.retain(|&of| of != page);
        }
    }

    /// The disk is done with a request; true if the thread that ends requests has to be woken.
    pub(crate) fn transferred(&mut self, number: u64) -> bool {
        self.done.push_back(number);
        self.done.len() == 1
    }

    /// Requests that the disk is not done with.
    pub(crate) fn at_disk(&self) -> usize {
        self.all.len() - self.done.len()
    }

    /// True if there are writes of files.
    pub(crate) fn write_files(&self) -> bool {
        self.all.values().any(|request| request.on_disk && request.journal == 0)
    }

    /// True if a request waits for its end.
    pub(crate) fn has_done(&self) -> bool {
        !self.done.is_empty()
    }

    /// A request ends: its pages are no longer under writeback.
    pub(crate) fn end(&mut self, kernel: &mut Kernel, (cpu, task): (u32, Task), number: u64) {
        let Some(Request { pages, memory, rest, journal, on_disk, .. }) = self.all.remove(&number) else { return };
        if journal > 0 {
            kernel.writeback.journal.committed();
        }
        for page in pages {
            self.of_page.remove(&page);
            kernel.end_writeback(cpu, page);
        }
        if on_disk && journal == 0 && !self.write_files() {
            let now = kernel.now(cpu);
            kernel.writeback.writes_end(now);
        }
        memory.into_iter().for_each(|block| self.slab.give(kernel, (cpu, task), block));
        rest.into_iter().for_each(|block| self.rest.give(kernel, (cpu, task), block));
    }
}

/// The thread that ends requests.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BioEndIo;

impl BioEndIo {
    /// Ends the next request. `Done`: there is none.
    pub(crate) fn step(&mut self, ctx: &mut TaskCtx<'_>) -> Poll<()> {
        let Some(number) = ctx.memory.requests.done.pop_front() else { return Poll::Done(()) };
        ctx.spend(ctx.memory.costs.write_end);
        let mut requests = std::mem::take(&mut ctx.memory.requests);
        requests.end(ctx.kernel, (ctx.cpu, ctx.task), number);
        ctx.memory.requests = requests;
        if ctx.memory.requests.has_done() { Poll::On } else { Poll::Done(()) }
    }
}
