//! Reading a window of a file: `page_cache_ra_unbounded`, `page_cache_ra_order`, `filemap_add_folio` (6.1 to 6.12, and 7.3).
//!
//! Pages are allocated one by one or in large folios, are charged to the cgroup of the reader, and read as one request where
//! they lie one after another. A folio for which there is no memory, or of which a page is there already, leaves the rest of
//! the window to single pages. Checked by tests of `tests/large_folios.rs`, and against guests (docs/fidelity.md).

use super::{Reader, Reading};
use crate::frame::{Flag, Pfn};
use crate::hw::IoClass;
use crate::mm::kernel::Kernel;
use crate::mm::memory::AccessState;
use crate::mm::readahead::Limits;
use crate::mm::region::Entry;
use crate::page_alloc::{AllocationFailure, Caller, Request};
use crate::vmstat::NodeItem;

/// A single page of a file that a reader waits for. Unlike read-ahead, its allocation may use file systems (`__GFP_FS`).
const PAGE: Request = Request { gfp: "GFP_HIGHUSER_MOVABLE", ..Request::USER };
/// A page for read-ahead: no second attempt.
const AHEAD: Request = Request {
    no_retry: true,
    gfp: "GFP_NOFS|__GFP_HIGHMEM|__GFP_NOWARN|__GFP_NORETRY|__GFP_COMP|__GFP_HARDWALL|__GFP_MOVABLE",
    ..Request::USER
};
/// Either in 2010.
const COLD_PAGE: Request = Request { gfp: "GFP_HIGHUSER_MOVABLE|GFP_COLD", ..Request::USER };

impl AccessState {
    /// Reads ahead of a reader that has reached a missing page, or one of the marked folio, which has this order; false
    /// as [`Self::finish`].
    pub(super) fn ahead(
        &mut self,
        kernel: &mut Kernel,
        caller: &mut Caller,
        (region, mapper, reader): (usize, usize, &mut Reader),
        (page, asked): (u64, u64),
        marked: Option<u32>,
    ) -> Result<bool, AllocationFailure> {
        let of = &self.regions[region];
        let cached = |page| of.is_cached(page);
        let limits = Limits { max: self.readahead_pages, len: of.len() };
        let mut ra = of.readahead[mapper];
        reader.pending = ra.on_demand(kernel.reclaim.rules.readahead, (page, asked, marked), limits, cached);
        if !kernel.reclaim.rules.large_folios {
            reader.pending.iter_mut().for_each(|window| window.order = 0);
        }
        self.regions[region].readahead[mapper] = ra;
        self.finish(kernel, caller, (region, mapper), reader)
    }

    /// Reads the rest of a window; false: it ends early, because a thread has been woken.
    pub(super) fn finish(
        &mut self,
        kernel: &mut Kernel,
        caller: &mut Caller,
        (region, mapper): (usize, usize),
        reader: &mut Reader,
    ) -> Result<bool, AllocationFailure> {
        // Where read-ahead allocates cold pages, a window is always completed, and its pages are not denied; a slab of the
        // index may be.
        let insists = kernel.reclaim.rules.cold_pages;
        let mut denied = !insists && std::mem::take(&mut self.denied);
        if let Some(window) = reader.pending.as_mut().filter(|window| denied && window.folio() > 0) {
            window.without_folios();
            self.regions[region].readahead[mapper].order = 0;
            denied = false;
        }
        reader.alone |= denied;
        let Some(mut window) = reader.pending.take().filter(|_| !denied) else {
            self.read(kernel, caller.cpu, region, &mut reader.brought);
            return Ok(true);
        };
        while window.start < window.end {
            let (page, order) = (window.start, window.folio());
            if order > 0 && (page..page + (1 << order)).any(|page| self.regions[region].is_cached(page)) {
                window.without_folios();
                continue;
            }
            if self.regions[region].is_cached(page) {
                self.regions[region].readahead[mapper].order = 0;
                self.read(kernel, caller.cpu, region, &mut reader.brought);
            } else {
                let brought = self.bring(kernel, caller, region, page, &Request { order, ..AHEAD });
                let pfn = brought.inspect_err(|_| reader.pending = Some(window))?;
                kernel.spend(caller.cpu, self.costs.file_folio + self.costs.file_page * (1 << order));
                reader.brought.push(pfn);
                if window.mark.is_some_and(|mark| mark >> order == page >> order) {
                    kernel.alloc.frames.set_flag(pfn, Flag::Reclaim, true);
                }
            }
            window.start += 1 << order;
            if !insists && window.start < window.end && kernel.has_effects() {
                reader.pending = Some(window);
                return Ok(false);
            }
        }
        self.read(kernel, caller.cpu, region, &mut reader.brought);
        Ok(true)
    }

    /// Reads pages that lie one after another, as one request.
    fn read(&mut self, kernel: &mut Kernel, cpu: u32, region: usize, pages: &mut Vec<Pfn>) {
        let count = pages.iter().map(|&page| 1u64 << kernel.alloc.frames.order(page)).sum();
        if count == 0 {
            return;
        }
        if self.regions[region].sparse {
            // A hole is filled as a page of the program's own is.
            kernel.spend(cpu, self.costs.file_create * count);
            return pages.clear();
        }
        kernel.stat.events.reclaim.pgpgin += 4 * count;
        kernel.spend(cpu, self.costs.file_request);
        if self.disk.synchronous {
            kernel.read_by_cpu(cpu, pages, self.disk.transfer(count));
            return pages.clear();
        }
        let place = kernel.alloc.frames.content(pages[0]).into();
        kernel.spend(cpu, self.disk.copy(count));
        let submitted = kernel.clock(cpu);
        let done = self.disk.submit(submitted, IoClass::Sync, place, count);
        self.reads.push((submitted, done));
        self.reading.extend(pages.drain(..).map(|page| (page, Reading::until(done))));
    }

    /// Reads a single page that a task waits for.
    pub(super) fn bring_one(
        &mut self,
        kernel: &mut Kernel,
        caller: &mut Caller,
        region: usize,
        page: u64,
    ) -> Result<Pfn, AllocationFailure> {
        let pfn = self.bring(kernel, caller, region, page, &PAGE)?;
        kernel.spend(caller.cpu, self.costs.file_folio + self.costs.file_page);
        self.read(kernel, caller.cpu, region, &mut vec![pfn]);
        Ok(pfn)
    }

    /// Allocates a page of a file, or a folio of the request's order that begins with it, to be read.
    pub(super) fn bring(
        &mut self,
        kernel: &mut Kernel,
        caller: &mut Caller,
        region: usize,
        page: u64,
        request: &Request,
    ) -> Result<Pfn, AllocationFailure> {
        self.prepare_index(kernel, caller, region, page)?;
        let request = if kernel.reclaim.rules.cold_pages { &COLD_PAGE } else { request };
        // The policy is the task's (`filemap_alloc_folio`), whatever that of the mapping is.
        let pfn = kernel.allocate_charged(caller, request)?.page;
        let (node, pages) = (kernel.node_of_frame(pfn), page..page + (1 << request.order));
        kernel.prepare(caller, pfn, self.regions[region].content(page), &[]);
        let mut shadow = None;
        for (page, pfn) in pages.clone().zip(pfn..) {
            let gone = self.regions[region].entry(page);
            if let Entry::Gone(of) = gone {
                shadow = Some(of);
            }
            self.regions[region].put(page, pfn, node);
            self.enter_index(region, page, matches!(gone, Entry::Gone(_)));
        }
        // A page that is overwritten as a whole is not a refault of read data.
        if let (Some(shadow), false) = (shadow, request.spread_dirty) {
            kernel.refault(pfn, shadow);
        }
        kernel.add_to_lru(caller.cpu, pfn);
        kernel.stat.pages.add(node, NodeItem::FilePages, (pages.end - pages.start) as i64);
        Ok(pfn)
    }
}
