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
use smallvec::SmallVec;
use std::collections::{BTreeSet, VecDeque};

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

/// Pages of a request. Those to write to swap have one each.
pub(crate) type Pages = SmallVec<[Pfn; 4]>;

/// Pages that are written together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Request {
    pages: Pages,
    /// Blocks of its memory and of its companion objects; `None`: from a reserve.
    memory: Option<Pfn>,
    rest: Option<Pfn>,
    /// Blocks of the journal.
    journal: u64,
    /// The disk has it that holds files, not swap's own.
    on_disk: bool,
    /// Whose files its pages are of, and how many they were; `None`: pages in swap.
    of: Option<usize>,
    count: u64,
    submitted: Ps,
    /// How long asynchronous requests of that disk had been delayed by synchronous ones; `None`: this is a synchronous one.
    held_up: Option<Ps>,
}

impl Request {
    fn writes_file(&self) -> bool {
        self.on_disk && self.journal == 0
    }
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

/// Place of a request, and the rest as in [`Request`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Destination {
    pub place: u64,
    pub on_disk: bool,
    pub submitted: Ps,
    pub held_up: Option<Ps>,
}

/// Requests that the disk has, or that wait for their end.
#[derive(Clone, Debug)]
pub(crate) struct Requests {
    /// From number `first` on; `None`: it has ended.
    all: VecDeque<Option<Request>>,
    first: u64,
    /// Those that have not ended, and of them the ones to write files.
    under_way: usize,
    of_files: usize,
    /// Pages that were removed while they were part of a request, each with the number of the next request then.
    removed: BTreeSet<(Pfn, u64)>,
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
            all: VecDeque::new(),
            first: 0,
            under_way: 0,
            of_files: 0,
            removed: BTreeSet::new(),
            slab,
            rest,
            done: VecDeque::new(),
            queues: [Queue::default(), Queue::new(limits.queue_depth)],
            limits,
        }
    }

    /// A request of pages; with the memory of a file system's if they are of files, which are those of a `wb`.
    pub(crate) fn begin(
        &mut self,
        kernel: &mut Kernel,
        (cpu, task): (u32, Task),
        (to, pages): (Destination, Pages),
        wb: Option<usize>,
    ) -> u64 {
        let Destination { place, on_disk, submitted, held_up } = to;
        let count = pages.iter().map(|&page| 1 << kernel.alloc.frames.order(page)).sum();
        self.queues[usize::from(on_disk)].begin(place, count);
        // Without memory it is one of the few that a reserve is kept for.
        let by = (cpu, task);
        let memory = wb.and_then(|_| self.slab.take(kernel, by).ok());
        let rest = wb.and_then(|_| self.rest.take(kernel, by).ok());
        if let Some(wb) = wb {
            kernel.writeback.writes_begin(wb, count);
        }
        self.add(Request { pages, memory, rest, journal: 0, on_disk, of: wb, count, submitted, held_up })
    }

    /// The number of a new request.
    fn add(&mut self, request: Request) -> u64 {
        let number = self.next();
        self.under_way += 1;
        self.of_files += usize::from(request.writes_file());
        self.all.push_back(Some(request));
        number
    }

    fn next(&self) -> u64 {
        self.first + self.all.len() as u64
    }

    fn get(&self, number: u64) -> Option<&Request> {
        self.all.get(number.checked_sub(self.first)? as usize)?.as_ref()
    }

    fn get_mut(&mut self, number: u64) -> Option<&mut Request> {
        self.all.get_mut(number.checked_sub(self.first)? as usize)?.as_mut()
    }

    fn remove(&mut self, number: u64) -> Option<Request> {
        let request = self.all.get_mut(number.checked_sub(self.first)? as usize)?.take()?;
        self.under_way -= 1;
        self.of_files -= usize::from(request.writes_file());
        while self.all.front().is_some_and(Option::is_none) {
            self.all.pop_front();
            self.first += 1;
        }
        Some(request)
    }

    /// A request of a commit of the journal.
    pub(crate) fn begin_journal(&mut self) -> u64 {
        let blocks = self.limits.journal_blocks;
        self.queues[1].begin(JOURNAL, blocks);
        self.add(Request { journal: blocks, on_disk: true, ..Request::default() })
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
        self.is_on_disk(number).is_some_and(|on_disk| self.queues[usize::from(on_disk)].end())
    }

    /// Which disk has a request.
    pub(crate) fn is_on_disk(&self, number: u64) -> Option<bool> {
        self.get(number).map(|request| request.on_disk)
    }

    /// Delay of a request, from the total delay of its disk.
    pub(crate) fn late_by(&mut self, number: u64, held_up: Ps) -> Ps {
        let known = self.get_mut(number).and_then(|request| request.held_up.as_mut());
        known.map_or(0, |known| held_up - std::mem::replace(known, held_up))
    }

    /// When a request went to its disk.
    pub(crate) fn submitted(&self, number: u64) -> Ps {
        self.get(number).map_or(0, |request| request.submitted)
    }

    /// Pages of a request.
    pub(crate) fn pages(&self, number: u64) -> &[Pfn] {
        self.get(number).map_or(&[], |request| &request.pages)
    }

    /// A page that is part of a request was removed: it is written no more when that ends.
    pub(crate) fn forget(&mut self, page: Pfn) {
        self.removed.insert((page, self.next()));
    }

    /// True if a page of a request was removed. It may be part of a later request by now.
    fn take_removed(&mut self, page: Pfn, number: u64) -> bool {
        let removed = self.removed.range((page, number + 1)..=(page, u64::MAX)).next().copied();
        removed.is_some_and(|removed| self.removed.remove(&removed))
    }

    /// The disk is done with a request; true if the thread that ends requests has to be woken.
    pub(crate) fn transferred(&mut self, number: u64) -> bool {
        self.done.push_back(number);
        self.done.len() == 1
    }

    /// Requests that the disk is not done with.
    pub(crate) fn at_disk(&self) -> usize {
        self.under_way - self.done.len()
    }

    /// True if there are writes of files.
    pub(crate) fn write_files(&self) -> bool {
        self.of_files > 0
    }

    /// True if a request waits for its end.
    pub(crate) fn has_done(&self) -> bool {
        !self.done.is_empty()
    }

    /// A request ends: its pages are no longer under writeback.
    pub(crate) fn end(&mut self, kernel: &mut Kernel, (cpu, task): (u32, Task), number: u64) {
        let Some(request) = self.remove(number) else { return };
        let writes_file = request.writes_file();
        let Request { pages, memory, rest, journal, of, count, .. } = request;
        if journal > 0 {
            kernel.writeback.journal.committed();
        }
        for page in pages {
            if self.removed.is_empty() || !self.take_removed(page, number) {
                kernel.end_writeback(cpu, page);
            }
        }
        if let Some(wb) = of {
            let now = kernel.now(cpu);
            kernel.writeback.pages_written(wb, count, now);
            if writes_file && !self.write_files() {
                kernel.writeback.writes_end(wb, now);
            }
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
        ctx.memory.requests.end(ctx.kernel, (ctx.cpu, ctx.task), number);
        if ctx.memory.requests.has_done() { Poll::On } else { Poll::Done(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Flag;
    use crate::mm::vmscan_zone::tests::{block, on};

    #[test]
    fn a_page_that_was_removed_ends_with_the_request_that_it_is_part_of_by_then() {
        let (ended, _) = on("6.1", |ctx| {
            let page = block(ctx, false, 1)[0];
            let to = Destination { place: 0, on_disk: false, submitted: 0, held_up: None };
            let mut requests = Requests::default();
            let begin = |ctx: &mut TaskCtx<'_>, requests: &mut Requests| {
                ctx.kernel.begin_writeback(page);
                requests.begin(ctx.kernel, (0, ctx.task), (to, Pages::from_slice(&[page])), None)
            };
            let removed = begin(ctx, &mut requests);
            requests.forget(page);
            ctx.kernel.end_writeback(0, page);
            let again = begin(ctx, &mut requests);
            [removed, again].map(|number| {
                requests.end(ctx.kernel, (0, ctx.task), number);
                (ctx.kernel.alloc.frames.has(page, Flag::Writeback), requests.at_disk())
            })
        });
        assert_eq!(ended, [(true, 1), (false, 0)]);
    }
}
