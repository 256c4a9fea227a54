//! kswapd's loop over the zones of a node: `balance_pgdat` (2.6.36, 2.6.37).
//!
//! At each priority the zones up to the highest that is below its high mark are shrunk, from low to high, unless they have
//! eight times that free; with 32 pages reclaimed it begins anew. Left out: soft limits of cgroups, the flag of a
//! congested zone. Checked by `tests/historic_reclaim.rs`.

use super::active;
use super::state::NO_RESERVE;
use super::wait::Wait;
use super::zone::Pass;
use crate::alloc::{ZONES, ZoneKind};
use crate::reclaim::{BATCH, Control, DEF_PRIORITY, List, Poll, Who, World};

/// A zone with so many times its high mark free is left alone.
const ENOUGH: u64 = 8;
/// Part of a second that it waits when it gets nowhere.
const WAIT: u64 = 10;

/// The loop under way.
#[derive(Clone, Debug)]
pub(super) struct Balance {
    node: usize,
    control: Control,
    total_scanned: u64,
    /// The highest zone that needs more, at this priority.
    end: usize,
    /// Pages to reclaim of the zones up to it.
    pages: u64,
    all_ok: bool,
    under_min: bool,
    stage: Stage,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    Loop,
    Priority,
    /// Zone number so many of the node.
    Zone(usize),
    Shrinking(usize, Pass),
    AfterZone(usize),
    AfterPriority,
    Waiting(Wait),
    NextPriority,
    Out,
}

impl Balance {
    pub(super) fn new(node: usize, order: u32) -> Balance {
        let control = Control::new(Who::Kswapd, order, ZoneKind::Device, "GFP_KERNEL");
        let control = Control { nr_to_reclaim: u64::MAX, ..control };
        let (total_scanned, end, pages, all_ok, under_min) = (0, 0, 0, true, false);
        Balance { node, control, total_scanned, end, pages, all_ok, under_min, stage: Stage::Loop }
    }

    /// Goes on. `Done`: all zones are above their high marks.
    pub(super) fn step(&mut self, world: &mut World<'_>) -> Poll<()> {
        match &mut self.stage {
            Stage::Loop => {
                world.kernel.stat.events.reclaim.pageoutrun += 1;
                let may_writepage = !world.kernel.reclaim.rules.laptop_mode;
                (self.total_scanned, self.control.reclaimed) = (0, 0);
                (self.control.may_writepage, self.control.priority) = (may_writepage, DEF_PRIORITY);
                self.stage = Stage::Priority;
            }
            Stage::Priority => {
                (self.all_ok, self.under_min) = (true, false);
                self.stage = if self.find_end(world) { Stage::Zone(0) } else { Stage::Out };
            }
            Stage::Zone(number) => {
                let number = *number;
                self.stage = match () {
                    () if number > self.end => Stage::AfterPriority,
                    () if !self.counts(world, number) => Stage::Zone(number + 1),
                    () => {
                        self.control.scanned = 0;
                        let zone = self.zone(number);
                        let high = world.kernel.alloc.zones[zone].marks.high;
                        match self.is_above(world, number, ENOUGH * high) {
                            true => Stage::AfterZone(number),
                            false => Stage::Shrinking(number, Pass::new(world, &self.control, zone)),
                        }
                    }
                };
            }
            Stage::Shrinking(number, pass) => {
                let number = *number;
                if pass.step(world, &mut self.control) == Poll::Done(()) {
                    self.stage = Stage::AfterZone(number);
                }
            }
            Stage::AfterZone(number) => {
                let number = *number;
                self.after_zone(world, number);
                self.stage = Stage::Zone(number + 1);
            }
            Stage::AfterPriority => {
                self.stage = if self.all_ok { Stage::Out } else { Stage::NextPriority };
                if !self.all_ok && self.total_scanned > 0 && self.control.priority < DEF_PRIORITY - 2 {
                    if self.under_min {
                        world.kernel.stat.events.reclaim.kswapd_skip_congestion_wait += 1;
                    } else {
                        let (wait, until) = world.congestion_wait(WAIT);
                        self.stage = Stage::Waiting(wait);
                        return Poll::Sleep(until, None);
                    }
                }
            }
            Stage::Waiting(wait) => {
                world.end_wait(*wait);
                self.stage = Stage::NextPriority;
            }
            Stage::NextPriority => {
                let out = self.control.reclaimed >= BATCH || self.control.priority == 0;
                self.control.priority = self.control.priority.saturating_sub(1);
                self.stage = if out { Stage::Out } else { Stage::Priority };
            }
            Stage::Out => {
                if self.all_ok {
                    return Poll::Done(());
                }
                if self.control.reclaimed < BATCH {
                    // Memory may be in pieces; single pages must do.
                    self.control.order = 0;
                }
                self.stage = Stage::Loop;
            }
        }
        Poll::On
    }

    fn zone(&self, number: usize) -> usize {
        self.node * ZONES + number
    }

    /// A zone has pages, and has not been given up, which only counts after the first priority.
    fn counts(&self, world: &mut World<'_>, number: usize) -> bool {
        let zone = self.zone(number);
        let populated = world.kernel.alloc.zones[zone].populated();
        populated && (self.control.priority == DEF_PRIORITY || !world.is_given_up(zone))
    }

    /// A zone is above a mark for requests of the highest kind that needs more.
    fn is_above(&self, world: &World<'_>, number: usize, mark: u64) -> bool {
        world.is_above(self.zone(number), self.control.order, mark, ZoneKind::ALL[self.end])
    }

    /// Finds the highest zone that is below its high mark; false if there is none. On the way anonymous memory ages.
    fn find_end(&mut self, world: &mut World<'_>) -> bool {
        for number in (0..ZONES).rev().filter(|&number| self.counts(world, number)).collect::<Vec<_>>() {
            let zone = self.zone(number);
            if world.is_inactive_low(zone, false) {
                active::shrink(world, &self.control, zone, List::ActiveAnon, BATCH);
            }
            let high = world.kernel.alloc.zones[zone].marks.high;
            if !world.is_above(zone, self.control.order, high, NO_RESERVE) {
                self.end = number;
                let zones = self.zone(0)..=zone;
                self.pages = zones.map(|at| world.kernel.reclaim.reclaimable(&world.kernel.stat.pages, at)).sum();
                return true;
            }
        }
        false
    }

    fn after_zone(&mut self, world: &mut World<'_>, number: usize) {
        let (zone, control) = (self.zone(number), &mut self.control);
        let freed = world.shrink_caches(control, self.pages);
        self.total_scanned += control.scanned;
        if world.is_given_up(zone) {
            return;
        }
        if freed == 0 && !world.is_hopeful(zone) {
            world.give_up(zone);
        }
        if self.total_scanned > 2 * BATCH && self.total_scanned > control.reclaimed + control.reclaimed / 2 {
            control.may_writepage = true;
        }
        let marks = world.kernel.alloc.zones[zone].marks;
        if !self.is_above(world, number, marks.high) {
            self.all_ok = false;
            self.under_min |= !self.is_above(world, number, marks.min);
        }
    }
}
