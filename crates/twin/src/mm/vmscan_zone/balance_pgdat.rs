//! kswapd's loop over the zones of a node: `balance_pgdat` (2.6.36 to 3.5).
//!
//! At each priority the zones up to the highest that is below its high mark are shrunk, from low to high, unless they
//! have enough free; with 32 pages reclaimed it begins again. A zone that is above its high mark is congested no more.
//! From 2.6.39 on blocks are required in a quarter of the node only, single pages in all zones before it ends; 3.4
//! leaves blocks to compaction where that could work, and compacts at the end if no zone has one. Not modelled: soft
//! limits of cgroups. Checked by tests of [`super`] and `tests/historic_reclaim.rs`.

use super::block::balance_gap;
use super::congestion_wait::{CONGESTION, Wait};
use super::shrink_zone::Pass;
use super::state::NO_RESERVE;
use super::{Balanced, shrink_active as active};
use crate::frame::{ZONES, ZoneKind};
use crate::mm::compaction::{Status, early};
use crate::mm::lru::List;
use crate::mm::vmscan::{BATCH, Control, DEF_PRIORITY, Poll, Reclaimer, TaskCtx};

/// In 2010 a zone with this multiple of its high watermark free is skipped.
const ENOUGH: u64 = 8;
/// Fraction of a second that it waits without progress.
const WAIT: u64 = 10;

/// Task of kswapd: reclaim for an order, in zones of a node up to a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Work {
    pub order: u32,
    pub highest: usize,
}

/// The loop under way.
#[derive(Clone, Debug)]
pub(super) struct Balance {
    node: usize,
    control: Control,
    total_scanned: u64,
    /// The highest zone that counts, and at this priority the highest that needs more.
    highest: usize,
    end: usize,
    /// Order of the zone's tests.
    test_order: u32,
    /// Pages to reclaim of the zones up to it.
    pages: u64,
    all_ok: bool,
    /// Pages of the zones that are above their high marks.
    balanced: u64,
    under_min: bool,
    stage: Stage,
}

#[derive(Clone, Debug)]
enum Stage {
    Loop,
    Priority,
    /// The zone of the node with this number.
    Zone(usize),
    Shrinking(usize, Pass),
    /// It was shrunk, or not.
    AfterZone(usize, bool),
    AfterPriority,
    Waiting(Wait),
    NextPriority,
    Out,
    Compacting(early::Node),
}

/// Priorities of a loop. Counting the objects of all caches takes about as long as a fault.
const PRIORITIES: u64 = 13;

impl Balance {
    pub(super) fn new(node: usize, Work { order, highest }: Work) -> Balance {
        let control = Control::new(Reclaimer::Kswapd, order, ZoneKind::Device, "GFP_KERNEL");
        Balance {
            node,
            control: Control { nr_to_reclaim: u64::MAX, ..control },
            total_scanned: 0,
            highest,
            end: 0,
            test_order: order,
            pages: 0,
            all_ok: true,
            balanced: 0,
            under_min: false,
            stage: Stage::Loop,
        }
    }

    /// Continues; at the end, the order and zone for which the node is balanced.
    pub(super) fn step(&mut self, ctx: &mut TaskCtx<'_>) -> Poll<Work> {
        match &mut self.stage {
            Stage::Loop => {
                ctx.kernel.stat.events.reclaim.pageoutrun += 1;
                // Looks at the zones take some time, so that looking again and again does not take none: assumed, that of a
                // page of a list for each zone and priority.
                ctx.spend(ctx.memory.costs.scan_page * PRIORITIES * ZONES as u64);
                let may_writepage = !ctx.kernel.reclaim.rules.laptop_mode;
                (self.total_scanned, self.control.reclaimed) = (0, 0);
                (self.control.may_writepage, self.control.priority) = (may_writepage, DEF_PRIORITY);
                self.stage = Stage::Priority;
            }
            Stage::Priority => {
                (self.all_ok, self.balanced, self.under_min) = (true, 0, false);
                self.stage = if self.find_end(ctx) { Stage::Zone(0) } else { Stage::Out };
            }
            Stage::Zone(number) => {
                let number = *number;
                self.stage = match () {
                    () if number > self.end => Stage::AfterPriority,
                    () if !self.counts(ctx, number) => Stage::Zone(number + 1),
                    () => {
                        self.control.scanned = 0;
                        match self.has_enough(ctx, number) {
                            true => Stage::AfterZone(number, false),
                            false => Stage::Shrinking(number, Pass::new(ctx, &self.control, self.zone(number))),
                        }
                    }
                };
            }
            Stage::Shrinking(number, pass) => {
                let number = *number;
                match pass.step(ctx, &mut self.control) {
                    Poll::On => {}
                    Poll::Sleep(until, why) => return Poll::Sleep(until, why),
                    Poll::Done(()) => self.stage = Stage::AfterZone(number, true),
                }
            }
            Stage::AfterZone(number, shrunk) => {
                let (number, shrunk) = (*number, *shrunk);
                self.after_zone(ctx, number, shrunk);
                self.stage = Stage::Zone(number + 1);
            }
            Stage::AfterPriority => {
                let ok = self.is_ok(ctx);
                self.stage = if ok { Stage::Out } else { Stage::NextPriority };
                if !ok && self.total_scanned > 0 && self.control.priority < DEF_PRIORITY - 2 {
                    if self.under_min {
                        ctx.kernel.stat.events.reclaim.kswapd_skip_congestion_wait += 1;
                    } else {
                        let (wait, until) = ctx.congestion_wait(WAIT);
                        self.stage = Stage::Waiting(wait);
                        return Poll::Sleep(until, CONGESTION);
                    }
                }
            }
            Stage::Waiting(wait) => {
                ctx.end_wait(*wait);
                self.stage = Stage::NextPriority;
            }
            Stage::NextPriority => {
                let out = self.control.reclaimed >= BATCH || self.control.priority == 0;
                self.control.priority = self.control.priority.saturating_sub(1);
                self.stage = if out { Stage::Out } else { Stage::Priority };
            }
            Stage::Out => return self.out(ctx),
            Stage::Compacting(node) => match node.step(ctx) {
                Poll::On => {}
                Poll::Sleep(until, why) => return Poll::Sleep(until, why),
                Poll::Done(()) => return self.done(),
            },
        }
        Poll::On
    }

    fn zone(&self, number: usize) -> usize {
        self.node * ZONES + number
    }

    /// A zone has pages, and has not been given up, which only counts after the first priority.
    fn counts(&self, ctx: &mut TaskCtx<'_>, number: usize) -> bool {
        let zone = self.zone(number);
        let populated = ctx.kernel.alloc.zones[zone].populated();
        populated && (self.control.priority == DEF_PRIORITY || !ctx.is_given_up(zone))
    }

    /// A zone is above a mark for requests of an order for the highest kind that needs more.
    fn is_above(&self, ctx: &TaskCtx<'_>, number: usize, order: u32, mark: u64) -> bool {
        ctx.is_above(self.zone(number), order, mark, ZoneKind::ALL[self.end])
    }

    /// A zone need not be shrunk.
    fn has_enough(&mut self, ctx: &TaskCtx<'_>, number: usize) -> bool {
        let of = &ctx.kernel.alloc.zones[self.zone(number)];
        let mark = ctx.decide(|rules| match rules.balanced {
            Balanced::AllZones => ENOUGH * of.marks.high,
            Balanced::Quarter => of.marks.high + balance_gap(of.marks, of.present),
        });
        let order = self.control.order;
        let compacts = order > 0
            && ctx.decide(|rules| rules.kswapd_order_zero)
            && ctx.kernel.early_suitable(self.zone(number), order) != Status::Skipped;
        self.test_order = if compacts { 0 } else { order };
        self.is_above(ctx, number, self.test_order, mark)
    }

    /// Finds the highest zone that is below its high mark; false if there is none. On the way anonymous memory ages.
    fn find_end(&mut self, ctx: &mut TaskCtx<'_>) -> bool {
        for number in (0..ZONES).rev().filter(|&number| self.counts(ctx, number)).collect::<Vec<_>>() {
            let zone = self.zone(number);
            if ctx.is_inactive_low(zone, false) {
                active::shrink(ctx, &self.control, zone, List::ActiveAnon, BATCH);
            }
            let high = ctx.kernel.alloc.zones[zone].marks.high;
            if !ctx.is_above(zone, self.control.order, high, NO_RESERVE) {
                self.end = number;
                let zones = self.zone(0)..=zone;
                self.pages = zones.map(|at| ctx.kernel.reclaim.reclaimable(&ctx.kernel.stat.pages, at)).sum();
                return true;
            }
            if ctx.decide(|rules| rules.balanced == Balanced::Quarter) {
                ctx.zone(zone).congested = false;
            }
        }
        false
    }

    fn after_zone(&mut self, ctx: &mut TaskCtx<'_>, number: usize, shrunk: bool) {
        let (zone, quarter) = (self.zone(number), ctx.decide(|rules| rules.balanced == Balanced::Quarter));
        if shrunk || !quarter {
            let freed = ctx.shrink_caches(&mut self.control, self.pages);
            self.total_scanned += self.control.scanned;
            if !quarter && ctx.is_given_up(zone) {
                return;
            }
            if freed == 0 && !ctx.is_hopeful(zone) {
                ctx.give_up(zone);
            }
        }
        let reclaimed = self.control.reclaimed;
        if self.total_scanned > 2 * BATCH && self.total_scanned > reclaimed + reclaimed / 2 {
            self.control.may_writepage = true;
        }
        if quarter && ctx.is_given_up(zone) {
            if self.end == number {
                self.end = number.saturating_sub(1);
            }
            return;
        }
        let of = &ctx.kernel.alloc.zones[zone];
        let (marks, present) = (of.marks, of.present);
        if !self.is_above(ctx, number, self.test_order, marks.high) {
            self.all_ok = false;
            self.under_min |= !self.is_above(ctx, number, self.control.order, marks.min);
        } else {
            ctx.zone(zone).congested = false;
            self.balanced += if number <= self.highest { present } else { 0 };
        }
    }

    /// The node is balanced.
    fn is_ok(&self, ctx: &TaskCtx<'_>) -> bool {
        let quarter = || self.control.order > 0 && ctx.decide(|rules| rules.balanced == Balanced::Quarter);
        self.all_ok || quarter() && is_quarter(self.balanced, ctx.pages_up_to(self.node, self.highest))
    }

    fn out(&mut self, ctx: &mut TaskCtx<'_>) -> Poll<Work> {
        if !self.is_ok(ctx) {
            if self.control.reclaimed == 0 {
                // All caches were counted at every priority without result. The time was not measured: each pass is
                // charged the cost of a fault.
                ctx.spend(ctx.memory.costs.fault * PRIORITIES);
            }
            if self.control.reclaimed < BATCH {
                // Memory may be in pieces; single pages must do.
                self.control.order = 0;
            }
            self.stage = Stage::Loop;
            return Poll::On;
        }
        if self.control.order == 0 || ctx.decide(|rules| rules.balanced == Balanced::AllZones) {
            return self.done();
        }
        let mut has_block = false;
        for number in 0..=self.end {
            if !self.counts(ctx, number) {
                continue;
            }
            let (zone, order) = (self.zone(number), self.control.order);
            let marks = ctx.kernel.alloc.zones[zone].marks;
            // Compaction would fail for lack of memory, or single pages are short.
            let compacts = ctx.decide(|rules| rules.kswapd_order_zero);
            let too_few = compacts && ctx.kernel.early_suitable(zone, order) == Status::Skipped;
            if too_few || !ctx.is_above(zone, 0, marks.high, NO_RESERVE) {
                self.control.order = if too_few { order } else { 0 };
                self.stage = Stage::Loop;
                return Poll::On;
            }
            has_block |= ctx.is_above(zone, order, marks.low, ZoneKind::ALL[self.highest]);
            ctx.zone(zone).congested = false;
        }
        if has_block || !ctx.decide(|rules| rules.kswapd_order_zero) {
            return self.done();
        }
        self.stage = Stage::Compacting(early::Node::new(ctx, self.node, self.control.order));
        Poll::On
    }

    fn done(&self) -> Poll<Work> {
        Poll::Done(Work { order: self.control.order, highest: self.end })
    }
}

/// True if `balanced` pages in zones are enough for a node of `pages` (`pgdat_balanced`).
pub(super) fn is_quarter(balanced: u64, pages: u64) -> bool {
    balanced >= pages >> 2
}

#[cfg(test)]
mod tests {
    use super::is_quarter;

    #[test]
    fn a_quarter_is_rounded_down() {
        assert!(is_quarter(2, 11) && !is_quarter(2, 12) && is_quarter(0, 3));
    }
}
