//! Direct reclaim: `try_to_free_pages`, `try_to_free_mem_cgroup_pages`, `do_try_to_free_pages`, `shrink_zones` (6.1 to 6.12).
//!
//! Not modelled: soft limits, and that 6.12 iterates over the cgroups in turns. Checked against guests
//! (docs/fidelity.md).

use super::shrink_node::NodePass;
use super::{COSTLY_ORDER, Control, DEF_PRIORITY, Poll, TaskCtx, Throttle, compact_gap};
use crate::frame::{ZONES, ZoneKind};
use crate::mm::compaction::Status;
use crate::time::Ps;
use mmtwin_event::vocabulary::{
    MmVmscanDirectReclaimBegin, MmVmscanDirectReclaimEnd, MmVmscanMemcgReclaimBegin, MmVmscanMemcgReclaimEnd,
};

/// A task that reclaims.
#[derive(Clone, Debug)]
pub(crate) struct Direct {
    control: Control,
    /// Zones that the request may use, in order, and which of them is next.
    zones: Vec<usize>,
    next: usize,
    /// When it began, waits for the reserve excepted.
    begun: Ps,
    stage: Stage,
}

#[derive(Clone, Debug)]
enum Stage {
    Begin,
    /// A new pass from the first priority on.
    Stall,
    Zones,
    Node(Box<NodePass>),
    Asleep(Throttle),
    Reserve(Throttle),
    AfterPriority,
}

impl Direct {
    /// A task's reclaim, with the zones that it may take pages of.
    pub(crate) fn new(ctx: &TaskCtx<'_>, control: Control, zones: Vec<usize>) -> Direct {
        let may_writepage = !ctx.kernel.reclaim.rules.laptop_mode;
        Direct { control: Control { may_writepage, ..control }, zones, next: 0, begun: 0, stage: Stage::Begin }
    }

    /// The sleep that it has begun and not left.
    pub(crate) fn throttle(&self) -> Option<Throttle> {
        match &self.stage {
            Stage::Asleep(throttle) | Stage::Reserve(throttle) => Some(*throttle),
            Stage::Node(pass) => pass.throttle(),
            Stage::Begin | Stage::Stall | Stage::Zones | Stage::AfterPriority => None,
        }
    }

    /// Continues; at the end, the reclaimed pages, or 1 if compaction can continue.
    pub(crate) fn step(&mut self, ctx: &mut TaskCtx<'_>) -> Poll<u64> {
        match &mut self.stage {
            Stage::Begin => {
                if let Some(node) = self.node_of_reserve(ctx)
                    && !ctx.allows_direct_reclaim(node)
                {
                    ctx.kernel.stat.events.reclaim.pgscan_direct_throttle += 1;
                    if let Some((throttle, until)) = ctx.wait_for_reserve(node) {
                        self.stage = Stage::Reserve(throttle);
                        return Poll::Sleep(until, Some((node, throttle.reason)));
                    }
                }
                self.write_begin(ctx);
                self.stage = Stage::Stall;
            }
            Stage::Reserve(throttle) => {
                let slept = *throttle;
                ctx.kernel.reclaim.leave(slept);
                let gives_up = !self.control.fs && ctx.is_over(slept);
                if !gives_up
                    && !ctx.allows_direct_reclaim(slept.node)
                    && let Some((throttle, until)) = ctx.wait_for_reserve(slept.node)
                {
                    self.stage = Stage::Reserve(throttle);
                    return Poll::Sleep(until, Some((slept.node, throttle.reason)));
                }
                self.write_begin(ctx);
                self.stage = Stage::Stall;
            }
            Stage::Stall => {
                if !self.control.is_cgroup() {
                    ctx.kernel.stat.events.reclaim.allocstall[self.control.highest as usize] += 1;
                }
                self.begin_priority();
            }
            Stage::Zones => {
                if !self.next_zone(ctx)
                    && let Some(&first) = self.zones.first()
                    && let Some((throttle, until)) = ctx.consider_throttle(&self.control, first / ZONES)
                {
                    self.stage = Stage::Asleep(throttle);
                    return Poll::Sleep(until, Some((first / ZONES, throttle.reason)));
                }
            }
            Stage::Node(pass) => match pass.step(ctx, &mut self.control) {
                Poll::On => {}
                Poll::Sleep(until, why) => return Poll::Sleep(until, why),
                Poll::Done(_) => self.stage = Stage::Zones,
            },
            Stage::Asleep(throttle) => {
                ctx.unthrottle(*throttle);
                self.stage = Stage::AfterPriority;
            }
            Stage::AfterPriority => return self.after_priority(ctx),
        }
        Poll::On
    }

    /// The node whose reserve is checked: that of the first zone for kernel memory; none at a cgroup's limit.
    fn node_of_reserve(&self, ctx: &TaskCtx<'_>) -> Option<usize> {
        let mut zones = self.zones.iter().filter(|_| !self.control.is_cgroup());
        let zone = zones.find(|&&zone| ctx.kernel.alloc.zones[zone].kind <= ZoneKind::Normal)?;
        Some(zone / ZONES)
    }

    fn begin_priority(&mut self) {
        self.control.scanned = 0;
        self.next = 0;
        self.stage = Stage::Zones;
    }

    /// The next node with a zone of the request; false at the end of the pass.
    fn next_zone(&mut self, ctx: &mut TaskCtx<'_>) -> bool {
        self.stage = Stage::AfterPriority;
        while let Some(&zone) = self.zones.get(self.next) {
            let seen = self.zones[..self.next].iter().any(|before| before / ZONES == zone / ZONES);
            self.next += 1;
            if !self.control.is_cgroup() && self.control.order > COSTLY_ORDER && self.is_ready(ctx, zone) {
                self.control.compaction_ready = true;
            } else if !seen {
                self.stage = Stage::Node(Box::new(NodePass::new(zone / ZONES)));
                return true;
            }
        }
        false
    }

    /// `compaction_ready`: reclaim would not help compaction any further.
    fn is_ready(&self, ctx: &mut TaskCtx<'_>, zone: usize) -> bool {
        let (order, highest) = (self.control.order, self.control.highest);
        match ctx.kernel.compaction_suitable((ctx.cpu, ctx.task), zone, order, highest) {
            Status::Success => return true,
            Status::Skipped => return false,
            _ => {}
        }
        let of = &ctx.kernel.alloc.zones[zone];
        let free = ctx.kernel.stat.free_pages_safe(zone);
        of.watermark_ok(0, of.marks.high + compact_gap(order), free, highest, Default::default())
    }

    fn after_priority(&mut self, ctx: &mut TaskCtx<'_>) -> Poll<u64> {
        let control = &mut self.control;
        let enough = control.reclaimed >= control.nr_to_reclaim || control.compaction_ready;
        if !enough && control.priority > 0 {
            control.may_writepage |= control.priority < DEF_PRIORITY - 2;
            control.priority -= 1;
            self.begin_priority();
            return Poll::On;
        }
        let target = control.target();
        let mut nodes: Vec<usize> = self.zones.iter().map(|zone| zone / ZONES).collect();
        nodes.dedup();
        nodes.into_iter().for_each(|node| ctx.snapshot_refaults(node, target));
        if control.reclaimed == 0 && !control.compaction_ready {
            if ctx.kernel.reclaim.rules.rotates && !control.full_walk {
                control.full_walk = true;
                control.priority = DEF_PRIORITY;
                self.stage = Stage::Stall;
                return Poll::On;
            }
            // Active lists that were spared are not spared now.
            if control.skipped_deactivate {
                (control.force_deactivate, control.skipped_deactivate) = (true, false);
                control.priority = DEF_PRIORITY;
                self.stage = Stage::Stall;
                return Poll::On;
            }
            // Nor are cgroups that are a little protected.
            if control.low_spared {
                (control.low_broken, control.low_spared, control.force_deactivate) = (true, false, false);
                control.priority = DEF_PRIORITY;
                self.stage = Stage::Stall;
                return Poll::On;
            }
        }
        if control.reclaimed == 0 {
            ctx.spend_fruitless(self.begun);
        }
        let reclaimed = if control.reclaimed == 0 { u64::from(control.compaction_ready) } else { control.reclaimed };
        self.write_end(ctx, reclaimed);
        Poll::Done(reclaimed)
    }

    fn write_begin(&mut self, ctx: &mut TaskCtx<'_>) {
        self.begun = ctx.kernel.clock(ctx.cpu);
        let (gfp, gfp_flags) = ctx.kernel.probe.gfp(self.control.gfp);
        let (order, may_writepage) = (self.control.order as i32, Some(self.control.may_writepage.into()));
        let (at, cpu, task) = (ctx.now(), ctx.cpu, ctx.task);
        let probe = &mut ctx.kernel.probe;
        match self.control.is_cgroup() {
            true => {
                let event = MmVmscanMemcgReclaimBegin { order, gfp_flags, may_writepage };
                probe.write(at, cpu, task, &event, gfp.as_bytes());
            }
            false => {
                let event = MmVmscanDirectReclaimBegin { order, gfp_flags, may_writepage };
                probe.write(at, cpu, task, &event, gfp.as_bytes());
            }
        }
    }

    fn write_end(&self, ctx: &mut TaskCtx<'_>, nr_reclaimed: u64) {
        let (at, cpu, task) = (ctx.now(), ctx.cpu, ctx.task);
        let probe = &mut ctx.kernel.probe;
        match self.control.is_cgroup() {
            true => probe.write(at, cpu, task, &MmVmscanMemcgReclaimEnd { nr_reclaimed }, b""),
            false => probe.write(at, cpu, task, &MmVmscanDirectReclaimEnd { nr_reclaimed }, b""),
        }
    }
}
