//! Allocation and free: `get_page_from_freelist`, `rmqueue`, the part of `__alloc_pages_slowpath` that does not
//! reclaim, `zone_statistics`, `free_unref_page`; 4.13 to 6.18.
//!
//! The zonelist is walked with the low watermark, then, kswapd woken, with the minimum and the reserves that the
//! request may use; a request that may wait reclaims then (`mm/slowpath/kswapd.rs`). Where nodes are reclaimed before
//! they are left, a walk breaks off there (`mm/vmscan/node_reclaim.rs`). Not modelled: cpusets, the highatomic reserve.
//! Checked by `tests/allocator`.

use super::buddy::named;
use super::fallback::{Fallback, Source};
use super::policy::{Choice, choose};
use super::watermark::Reserves;
use super::{
    AllocationFailure, Caller, Context, NodeMask, NodeReclaimRequest, NotAllocated, PageAllocator, PerCpuHigh, Request,
};
use crate::frame::{Pfn, State, ZoneKind};
use crate::vmstat::{NumaItem, ZoneItem};
use mmtwin_event::Kind;
use mmtwin_event::vocabulary::{MmPageAlloc, MmPageFree};

/// Pages that were allocated, and the cost of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocated {
    /// First page.
    pub page: Pfn,
    /// Zone that supplied them.
    pub zone: usize,
    /// The preferred zone.
    pub preferred: usize,
    /// Increments of NUMA counters.
    pub counted: u32,
    /// Zones whose words had to be fetched from another core's cache.
    pub fetched: u32,
    /// Zones that were checked.
    pub looked_at: u32,
    /// Blocks that refilled the CPU's list.
    pub refilled: u64,
}

/// A search for pages: walks of a zonelist.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Search<'a> {
    pub request: &'a Request,
    choice: Choice,
    /// Node of the CPU that runs.
    local: usize,
    /// The low mark is no longer checked: reserves that may be used below the minimum.
    urgent: Option<Reserves>,
    /// Zones whose words had to be fetched from another core's cache.
    fetched: u32,
    /// Nodes that are reclaimed before the walk leaves them, but for zones before these places of the two walks.
    reclaims: NodeMask,
    from: [usize; 2],
    /// The walk has reached one.
    pub asks: Option<NodeReclaimRequest>,
}

impl<'a> Search<'a> {
    /// Nodes are reclaimed before a walk leaves them.
    pub(crate) fn reclaim_first(&mut self, nodes: NodeMask, from: [usize; 2]) {
        (self.reclaims, self.from) = (nodes, from);
    }
}

impl PageAllocator {
    /// Begins a search; `local` is the node of the CPU that runs.
    pub(crate) fn begin<'a>(&self, caller: &mut Caller, local: usize, request: &'a Request) -> Search<'a> {
        let mut choice = choose(caller, local, self.zonelists.len());
        if request.this_node {
            choice.allowed.0 &= 1 << choice.node;
        }
        let (reclaims, from, asks) = (NodeMask(0), [0; 2], None);
        Search { request, choice, local, urgent: None, fetched: 0, reclaims, from, asks }
    }

    /// Zones that a search may take pages of, in order.
    pub(crate) fn zones_of(&self, search: &Search<'_>) -> impl Iterator<Item = usize> {
        let Search { request, choice, .. } = *search;
        let list = self.zonelists[choice.node].iter().map(|&zone| zone as usize);
        list.filter(move |&zone| self.is_usable(zone, request, choice))
    }

    fn is_usable(&self, zone: usize, request: &Request, choice: Choice) -> bool {
        let zone = &self.zones[zone];
        zone.kind <= request.highest && choice.allowed.has(zone.node)
    }

    /// From now on a search checks the minimum, and uses the reserves that its request may use.
    pub(crate) fn urge(&self, search: &mut Search<'_>) {
        let request = search.request;
        if request.atomic && !request.this_node {
            // A request that cannot wait is served from any node: the node mask is ignored, also in what counts as a
            // hit (`ALLOC_CPUSET` is cleared, and the preferred zone is determined again).
            search.choice.allowed = NodeMask::ALL;
        }
        search.urgent = Some(Reserves { high: request.high, harder: request.atomic, all: request.memalloc });
    }

    /// A search has found nothing.
    pub(crate) fn fail(&self, ctx: &mut Context<'_>, search: &Search<'_>) -> AllocationFailure {
        let request = search.request;
        AllocationFailure {
            request: *request,
            over_limit: None,
            cpu: ctx.cpu,
            from: search.choice.node,
            nodes: search.choice.allowed,
            free: self.populated().map(|zone| self.free_pages(zone)).sum(),
            asks: search.asks,
        }
    }

    /// Walks the zonelist once.
    #[inline]
    pub(crate) fn allocate(&mut self, ctx: &mut Context<'_>, search: &mut Search<'_>) -> Option<Allocated> {
        let Search { request, choice, .. } = *search;
        // `ALLOC_NOFRAGMENT`, as long as it holds.
        let mut flag = None;
        let (mut preferred, mut looked_at) = (None, 0);
        let mut at = 0;
        loop {
            let Some(&zone) = self.zonelists[choice.node].get(at) else {
                if flag != Some(true) {
                    return None;
                }
                // No zone has a block of the requested type.
                (flag, at) = (Some(false), 0);
                continue;
            };
            let zone = zone as usize;
            at += 1;
            if !self.is_usable(zone, request, choice) {
                continue;
            }
            let preferred = *preferred.get_or_insert(zone);
            let no_fragment =
                *flag.get_or_insert_with(|| search.urgent.is_none() && self.avoids_fragmentation(preferred));
            if no_fragment && self.zones[zone].node != self.zones[preferred].node {
                // Mixing types on the near node is better than leaving it.
                (flag, at) = (Some(false), 0);
                continue;
            }
            // A node at its limit of dirty pages is tried again when all others are short of memory.
            if request.spread_dirty
                && search.urgent.is_none()
                && let Some(limits) = self.dirty_limits
                && !limits.node_has_room(self, ctx.stat, self.zones[zone].node)
            {
                continue;
            }
            looked_at += 1;
            search.fetched += u32::from(ctx.stat.lines.read(zone, ctx.cpu));
            let free = ctx.stat.plain(zone, ZoneItem::FreePages);
            if self.rules.per_cpu_high == PerCpuHigh::Auto && !self.zones[zone].below_high {
                let (of, none) = (&self.zones[zone], Reserves::default());
                self.zones[zone].below_high =
                    !of.watermark_ok(request.order, of.marks.high, free, request.highest, none);
            }
            let marks = &self.zones[zone].marks;
            let (mark, reserves) = search.urgent.map_or((marks.low, Reserves::default()), |urgent| (marks.min, urgent));
            let enough = self.zones[zone].watermark_ok(request.order, mark, free, request.highest, reserves);
            if !enough && search.reclaims.has(self.zones[zone].node) {
                let urgent = search.urgent.is_some();
                if at > search.from[usize::from(urgent)] {
                    search.asks = Some(NodeReclaimRequest { zone, place: at - 1, urgent });
                    return None;
                }
            }
            if enough && let Some((page, refilled)) = self.take(ctx, zone, request, no_fragment) {
                let counted = self.count(ctx, preferred, zone, search);
                return Some(Allocated {
                    page,
                    zone,
                    preferred,
                    counted,
                    fetched: search.fetched,
                    looked_at,
                    refilled,
                });
            }
        }
    }

    /// True if a request first searches all zones of its node for blocks of its own type. On one node it always does;
    /// on several only if there is a DMA32 zone that could take what a Normal zone cannot.
    fn avoids_fragmentation(&self, preferred: usize) -> bool {
        let zone = &self.zones[preferred];
        self.rules.avoid_fragmentation
            && zone.kind == ZoneKind::Normal
            && (self.zonelists.len() == 1 || self.zones[preferred - 1].populated())
    }

    /// Takes a block of a zone, and says how many others refilled the CPU's list.
    #[inline]
    fn take(&mut self, ctx: &mut Context<'_>, zone: usize, request: &Request, no_fragment: bool) -> Option<(Pfn, u64)> {
        let (order, migratetype) = (request.order, request.migratetype);
        let smallest = if no_fragment { self.rules.pageblock_order } else { 0 };
        let fallback = Fallback { smallest, wakes: request.kswapd };
        let (page, refilled) = match self.per_cpu_list(order, migratetype) {
            Some(list) => self.take_per_cpu(ctx, zone, order, migratetype, list, fallback)?,
            None => {
                let page = self.take_block(ctx, zone, order, migratetype, fallback, &mut Source::Own)?;
                ctx.stat.add(zone, ctx.cpu, ZoneItem::FreePages, -(1 << order));
                (page, 0)
            }
        };
        self.frames.set(page, State::Allocated, order, migratetype, zone);
        self.frames.set_owner(page, u32::MAX);
        ctx.stat.events.allocated[self.zones[zone].kind as usize] += 1 << order;
        self.note_allocation(ctx, request, Some(page));
        Some((page, refilled))
    }

    /// Charges the NUMA counters; the number of increments.
    #[inline]
    fn count(&self, ctx: &mut Context<'_>, preferred: usize, zone: usize, walk: &Search<'_>) -> u32 {
        let node = self.zones[zone].node;
        let mut counted = 2;
        if node == self.zones[preferred].node {
            ctx.stat.count(zone, ctx.cpu, NumaItem::Hit);
        } else {
            ctx.stat.count(zone, ctx.cpu, NumaItem::Miss);
            ctx.stat.count(preferred, ctx.cpu, NumaItem::Foreign);
            counted += 1;
        }
        ctx.stat.count(zone, ctx.cpu, if node == walk.local { NumaItem::Local } else { NumaItem::Other });
        if walk.choice.interleaved && node == walk.choice.node {
            ctx.stat.count(zone, ctx.cpu, NumaItem::Interleave);
            counted += 1;
        }
        counted
    }

    #[inline]
    pub(crate) fn note_allocation(&self, ctx: &mut Context<'_>, request: &Request, page: Option<Pfn>) {
        if !ctx.probe.on(Kind::MmPageAlloc) {
            return;
        }
        let (pfn, address) = page.map_or((Some(u64::MAX), Some(Default::default())), named);
        let (gfp, gfp_flags) = ctx.probe.gfp(request.gfp);
        let event = MmPageAlloc {
            order: request.order,
            migratetype: request.migratetype as i32,
            gfp_flags,
            pfn,
            page: address,
        };
        ctx.probe.write(ctx.at, ctx.cpu, ctx.task, &event, gfp.as_bytes());
    }

    /// Frees the block that begins with a page. Returns how many pages the CPU's lists have freed to the buddy lists for it.
    #[inline]
    pub fn free(&mut self, ctx: &mut Context<'_>, page: Pfn) -> Result<u64, NotAllocated> {
        if self.frames.state(page) != State::Allocated {
            return Err(NotAllocated(page));
        }
        let (zone, order) = (self.frames.zone(page), self.frames.order(page));
        ctx.stat.events.freed += 1 << order;
        if ctx.probe.on(Kind::MmPageFree) {
            let (pfn, address) = named(page);
            ctx.probe.write(ctx.at, ctx.cpu, ctx.task, &MmPageFree { order, pfn, page: address }, b"");
        }
        match self.per_cpu_list(order, self.block_type(page)) {
            Some(list) => Ok(self.free_per_cpu(ctx, zone, page, order, list)),
            None => {
                self.free_block(ctx, zone, page, order);
                Ok(0)
            }
        }
    }
}
