//! Moving a page to the node that faults on it: `migrate_misplaced_page`, `migrate_misplaced_transhuge_page`,
//! `migrate_balanced_pgdat`, `numamigrate_isolate_page`; 3.13 to 6.12.
//!
//! Refused by the rate limit (to 4.18) and if no zone of the node would stay above its high watermark; then an
//! allocation from that node alone, without reclaim. Costs: a page's fixed cost, the copy at the bandwidth that a CPU
//! of the node has when all are busy, and the traffic of reading and writing it. A file's page stays if it is
//! dirty or being written, and if it is code that several processes map. Not modelled: other isolation that fails, that
//! a page being written counts as a failed migration, pages mapped in several address spaces as huge pages.
//! Checked by `tests/numa_balancing.rs`.

use super::rate_limit::LIMIT;
use super::{Numa, NumaCtx};
use crate::frame::{Flag, Pfn, ZoneKind};
use crate::mm::prot_numa::{HUGE_PAGES, Unit};
use crate::mm::region::Entry;
use crate::page_alloc::{Caller, HUGE_ORDER, Policy, Request};
use crate::probe::Task as TaskIds;
use crate::vmstat::{NodeItem, ZoneItem};
use mmtwin_event::names::{MIGRATE_MODE, MIGRATE_REASON};
use mmtwin_event::rules::Rule;
use mmtwin_event::value::{Bytes, MigrateMode, MigrateReason, Str};
use mmtwin_event::vocabulary::{MmMigratePages, MmNumaMigrateRatelimit};

/// Cache lines of a page.
const LINES: f64 = 64.0;

/// A base page of the target node.
const BASE: Request = Request {
    may_wait: false,
    kswapd: false,
    this_node: true,
    gfp: "GFP_HIGHUSER_MOVABLE|__GFP_THISNODE|__GFP_NOMEMALLOC|__GFP_NORETRY|__GFP_NOWARN",
    ..Request::USER
};
/// A huge page of the target node.
const HUGE: Request = Request { order: HUGE_ORDER, gfp: "GFP_TRANSHUGE_LIGHT|__GFP_THISNODE", ..BASE };

impl Numa {
    /// Moves a unit of a region to the node of the task's CPU; false if it stays.
    pub(crate) fn migrate_misplaced_page(
        &mut self,
        ctx: &mut NumaCtx<'_>,
        task: usize,
        region: usize,
        unit: Unit,
        src: usize,
        dst: usize,
    ) -> bool {
        let of = &self.tasks[task];
        let (cpu, ids) = (of.cpu, TaskIds { pid: of.pid, tgid: of.tgid });
        let Entry::Present(old) = ctx.memory.regions[region].entry(unit.page.into()) else { return false };
        // A large folio moves as a whole.
        let (first, old) = ctx.memory.regions[region].block(ctx.kernel, unit.page.into(), old);
        let order = ctx.kernel.alloc.frames.order(old);
        let pages = 1 << order;
        if self.rules.config.rate_limit && !self.limit.admits(dst, pages, ctx.kernel.now(cpu)) {
            let comm = self.names[self.tasks[task].mm].as_bytes();
            let name = Str(Bytes { start: 0, len: comm.len() as u32 }.to_slot());
            let event = MmNumaMigrateRatelimit { comm: name, pid: ids.pid, dst_nid: dst as i32, nr_pages: pages };
            ctx.kernel.probe.write(ctx.kernel.now(cpu), cpu, ids, &event, comm);
            let figures = |_: &NumaCtx<'_>| (self.limit.taken(dst) as i64, LIMIT as i64);
            self.write_refused(ctx, task, (old, pages), (src, dst), Rule::RateLimit, figures);
            return false;
        }
        if !ctx.has_room(dst, pages) {
            let figures = |ctx: &NumaCtx<'_>| ctx.room(dst, pages);
            self.write_refused(ctx, task, (old, pages), (src, dst), Rule::NodeFull, figures);
            return false;
        }
        if ctx.is_unmovable(region, unit, old) {
            self.write_refused(ctx, task, (old, pages), (src, dst), Rule::Unmovable, |_| (0, 0));
            return false;
        }
        let mut caller = Caller::new(cpu, ids, Policy::Preferred(dst));
        let request = if unit.huge { HUGE } else { Request { order, ..BASE } };
        let got = ctx.kernel.allocate_unchecked(&mut caller, &request);
        self.count(ctx, cpu, ids, (pages, unit.huge), got.is_ok());
        let Ok(got) = got else {
            self.write_refused(ctx, task, (old, pages), (src, dst), Rule::NoPage, |ctx| ctx.room(dst, pages));
            return false;
        };
        ctx.kernel.spend(cpu, self.costs.migrate_page + self.costs.copy(src, dst) * pages / HUGE_PAGES);
        ctx.memory.load.touch(dst, src, pages as f64 * LINES, 0.0);
        ctx.memory.load.touch(dst, dst, pages as f64 * LINES, 1.0);
        let last = ctx.kernel.alloc.frames.owner(old);
        ctx.kernel.alloc.frames.set_owner(got.page, last);
        let all = first..first + pages;
        match unit.huge {
            true => ctx.memory.relocate(region, unit, got.page, src, dst),
            false => all.clone().zip(got.page..).for_each(|(page, new)| {
                ctx.memory.relocate(region, Unit { page: page as u32, huge: false }, new, src, dst);
            }),
        }
        let of = &ctx.memory.regions[region];
        if of.file {
            let mapped = all.filter(|&page| of.mapcount(page) > 0).count() as i64;
            ctx.kernel.stat.pages.add(src, NodeItem::Mapped, -mapped);
            ctx.kernel.stat.pages.add(dst, NodeItem::Mapped, mapped);
        }
        let items = of.items();
        items.iter().for_each(|&item| ctx.kernel.stat.pages.add(src, item, -(pages as i64)));
        items.iter().for_each(|&item| ctx.kernel.stat.pages.add(dst, item, pages as i64));
        let freed = ctx.kernel.replace(&caller, old, got.page);
        debug_assert!(freed.is_ok(), "what was mapped was allocated");
        true
    }

    /// Counts an attempt that reached migration.
    fn count(&self, ctx: &mut NumaCtx<'_>, cpu: u32, ids: TaskIds, (pages, huge): (u64, bool), done: bool) {
        let modern = !self.rules.config.huge_migration_apart;
        let (succeeded, failed) = if done { (pages, 0) } else { (0, pages) };
        let (huge_done, huge_failed) = (u64::from(huge && done), u64::from(huge && !done));
        let events = &mut ctx.kernel.stat.events.numa;
        events.pgmigrate_success += succeeded;
        events.pgmigrate_fail += failed;
        events.pages_migrated += succeeded;
        if modern {
            events.thp_migration_success += huge_done;
            events.thp_migration_fail += huge_failed;
        }
        if modern || !huge {
            let event = MmMigratePages {
                nr_succeeded: succeeded,
                nr_failed: failed,
                mode: MigrateMode(MIGRATE_MODE.index_of(b"MIGRATE_ASYNC").unwrap_or_default() as u32),
                reason: MigrateReason(MIGRATE_REASON.index_of(b"numa_misplaced").unwrap_or_default() as u32),
                nr_thp_succeeded: modern.then_some(huge_done),
                nr_thp_failed: modern.then_some(huge_failed),
                nr_thp_split: modern.then_some(0),
                nr_split: modern.then_some(0),
            };
            ctx.kernel.probe.write(ctx.kernel.now(cpu), cpu, ids, &event, b"");
        }
    }
}

impl NumaCtx<'_> {
    /// `migrate_balanced_pgdat`: some zone of a node stays above its high watermark with this many pages less.
    fn has_room(&self, node: usize, pages: u64) -> bool {
        let alloc = &self.kernel.alloc;
        alloc.populated().any(|zone| {
            let of = &alloc.zones[zone];
            let free = self.kernel.stat.plain(zone, ZoneItem::FreePages);
            let mark = of.marks.high + pages;
            of.node == node && of.watermark_ok(0, mark, free, ZoneKind::Movable, Default::default())
        })
    }

    /// A page of a file that would have to be written first, code that several processes map, and a page that still
    /// waits for its list in the batch of a CPU (`folio_isolate_lru`) stay.
    fn is_unmovable(&self, region: usize, unit: Unit, page: Pfn) -> bool {
        let (of, frames) = (&self.memory.regions[region], &self.kernel.alloc.frames);
        if !frames.has(page, Flag::Lru) {
            return true;
        }
        let code = of.exec && of.mapcount(unit.page.into()) > 1;
        of.file && (code || frames.has(page, Flag::Dirty) || frames.has(page, Flag::Writeback))
    }

    /// Free pages of the zone of a node that is nearest to its mark, and the pages that it would have to exceed.
    fn room(&self, node: usize, pages: u64) -> (i64, i64) {
        let alloc = &self.kernel.alloc;
        let of_zone = |zone: usize| {
            let free = self.kernel.stat.plain(zone, ZoneItem::FreePages) as i64;
            let of = &alloc.zones[zone];
            let reserve = of.lowmem_reserve[ZoneKind::Movable as usize];
            (free, (of.marks.high + pages + of.boost + reserve) as i64)
        };
        let zones = alloc.populated().filter(|&zone| alloc.zones[zone].node == node).map(of_zone);
        zones.max_by_key(|(free, mark)| free - mark).unwrap_or_default()
    }
}
