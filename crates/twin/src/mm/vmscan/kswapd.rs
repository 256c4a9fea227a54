//! kswapd: `wakeup_kswapd`, `pgdat_balanced`, `kswapd`, `kswapd_try_to_sleep`, `balance_pgdat` (6.1 to 6.12).
//!
//! Not modelled: soft limits, freezing. Checked event by event
//! and by counters against guests (docs/fidelity.md).

use super::isolate::highest_zoneidx;
use super::shrink_node::NodePass;
use super::{
    BATCH, Control, DEF_PRIORITY, MAX_RETRIES, Poll, Reason, Reclaimer, TaskCtx, compact_gap, shrink_active as active,
};
use crate::frame::{ZONES, ZoneKind};
use crate::mm::kernel::Kernel;
use crate::mm::lru::List;
use crate::page_alloc::{HUGE_ORDER, Request};
use crate::probe::Task;
use crate::time::{PS_PER_NS, Ps};
use mmtwin_event::vocabulary::{MmVmscanKswapdSleep, MmVmscanKswapdWake, MmVmscanWakeupKswapd};

impl Kernel {
    /// A request has found the zones of a node below their marks: kswapd of the node is to work for it.
    pub(crate) fn wakeup_kswapd(&mut self, cpu: u32, task: Task, node: usize, request: &Request) {
        let of = &mut self.reclaim.nodes[node];
        of.kswapd_highest = of.kswapd_highest.max(Some(request.highest));
        of.kswapd_order = of.kswapd_order.max(request.order);
        let gives_up = of.kswapd_failures >= MAX_RETRIES;
        if !of.kswapd_waits {
            return;
        }
        if gives_up {
            return self.leave_to_kcompactd(cpu, task, node, request);
        }
        let zones = node * ZONES..=node * ZONES + request.highest as usize;
        let boosted = zones.clone().any(|zone| self.alloc.zones[zone].boost > 0);
        if self.is_balanced(node, request.order, request.highest) && !boosted {
            return self.leave_to_kcompactd(cpu, task, node, request);
        }
        let (gfp, gfp_flags) = self.probe.gfp(request.gfp);
        let event = MmVmscanWakeupKswapd {
            nid: node as i32,
            order: request.order as i32,
            zid: Some(highest_zoneidx(request.highest)),
            gfp_flags: Some(gfp_flags),
        };
        let at = self.now(cpu);
        self.probe.write(at, cpu, task, &event, gfp.as_bytes());
        self.reclaim.nodes[node].kswapd_waits = false;
        self.reclaim.wakes.push(node);
    }

    /// There is nothing to reclaim for a request; kcompactd is woken if the request cannot compact itself.
    fn leave_to_kcompactd(&mut self, cpu: u32, task: Task, node: usize, request: &Request) {
        if !request.may_wait {
            self.wakeup_kcompactd((cpu, task), node, request.order, request.highest);
        }
    }

    /// Some zone of a node is above its high mark for an order; a node without memory is balanced.
    pub(crate) fn is_balanced(&self, node: usize, order: u32, highest: ZoneKind) -> bool {
        let zones = (node * ZONES..=node * ZONES + highest as usize).filter(|&zone| self.alloc.zones[zone].managed > 0);
        let is_above = |zone: usize| {
            let of = &self.alloc.zones[zone];
            of.watermark_ok(order, of.marks.high, self.stat.free_pages_safe(zone), highest, Default::default())
        };
        let mut none = true;
        for zone in zones {
            if is_above(zone) {
                return true;
            }
            none = false;
        }
        none
    }
}

/// The thread of a node.
#[derive(Clone, Debug)]
pub(crate) struct Kswapd {
    node: usize,
    stage: Stage,
    /// The request, and the order and zone for which it still reclaims.
    alloc_order: u32,
    reclaim_order: u32,
    highest: ZoneKind,
}

#[derive(Clone, Debug)]
enum Stage {
    /// It checks whether it can sleep.
    TrySleep,
    /// It sleeps for a tenth of a second, in case of another request.
    Dozing(Ps),
    /// It sleeps until it is woken.
    Asleep,
    Balancing(Box<Balance>),
}

/// `balance_pgdat` under way.
#[derive(Clone, Debug)]
struct Balance {
    control: Control,
    /// Boosts as they were, by zone of the node, and how much of them is still to be reclaimed for.
    boosts: [u64; ZONES],
    boost: u64,
    /// The node at this priority, once it has begun.
    pass: Option<NodePass>,
    /// Reclaimed before this priority.
    before: u64,
    raise: bool,
}

impl Kswapd {
    /// A thread that has just started.
    pub(crate) fn new(node: usize) -> Kswapd {
        Kswapd { node, stage: Stage::Asleep, alloc_order: 0, reclaim_order: 0, highest: ZoneKind::Device }
    }

    /// Continues. `Done`: it sleeps until it is woken.
    pub(crate) fn step(&mut self, ctx: &mut TaskCtx<'_>) -> Poll<()> {
        ctx.kernel.reclaim.nodes[self.node].kswapd_is_throttled = false;
        match &mut self.stage {
            Stage::TrySleep => {
                if self.may_sleep(ctx) {
                    let jiffy = ctx.jiffy();
                    let until = (ctx.now() / jiffy + ctx.kernel.reclaim.rules.hz / 10) * jiffy * PS_PER_NS;
                    let by = (ctx.cpu, ctx.task);
                    ctx.kernel.forget_skips(self.node);
                    ctx.kernel.wakeup_kcompactd(by, self.node, self.alloc_order, self.highest);
                    self.stage = Stage::Dozing(until);
                    ctx.kernel.reclaim.nodes[self.node].kswapd_waits = true;
                    return Poll::Sleep(until, None);
                }
                ctx.kernel.stat.events.reclaim.kswapd_high_wmark_hit_quickly += 1;
                self.begin(ctx);
            }
            Stage::Dozing(until) => {
                let early = ctx.kernel.clock(ctx.cpu) < *until;
                let of = &mut ctx.kernel.reclaim.nodes[self.node];
                of.kswapd_waits = false;
                if early {
                    of.kswapd_order = of.kswapd_order.max(self.reclaim_order);
                    of.kswapd_highest = of.kswapd_highest.or(Some(self.highest));
                    ctx.kernel.stat.events.reclaim.kswapd_low_wmark_hit_quickly += 1;
                    self.begin(ctx);
                } else if self.may_sleep(ctx) {
                    let (at, cpu, task) = (ctx.now(), ctx.cpu, ctx.task);
                    let event = MmVmscanKswapdSleep { nid: self.node as i32 };
                    ctx.kernel.probe.write(at, cpu, task, &event, b"");
                    ctx.kernel.set_pressure(self.node, false);
                    ctx.kernel.reclaim.nodes[self.node].kswapd_waits = true;
                    self.stage = Stage::Asleep;
                    return Poll::Done(());
                } else {
                    ctx.kernel.stat.events.reclaim.kswapd_high_wmark_hit_quickly += 1;
                    self.begin(ctx);
                }
            }
            Stage::Asleep => {
                ctx.kernel.reclaim.nodes[self.node].kswapd_waits = false;
                ctx.kernel.set_pressure(self.node, true);
                self.begin(ctx);
            }
            Stage::Balancing(balance) => match balance.step(ctx, self.node, self.highest) {
                Poll::On => {}
                Poll::Sleep(until, why) => {
                    ctx.kernel.reclaim.nodes[self.node].kswapd_is_throttled = true;
                    return Poll::Sleep(until, why);
                }
                Poll::Done(order) => {
                    self.reclaim_order = order;
                    if order >= self.alloc_order {
                        // The next request, if there is one.
                        let of = &ctx.kernel.reclaim.nodes[self.node];
                        self.alloc_order = of.kswapd_order;
                        self.reclaim_order = of.kswapd_order;
                        self.highest = of.kswapd_highest.unwrap_or(self.highest);
                    }
                    self.stage = Stage::TrySleep;
                }
            },
        }
        Poll::On
    }

    /// `prepare_kswapd_sleep`: the node is balanced, or there is no use.
    fn may_sleep(&self, ctx: &mut TaskCtx<'_>) -> bool {
        // No task waits for a kswapd that sleeps.
        ctx.kernel.reclaim.wake(self.node, Reason::Reserve);
        if ctx.kernel.reclaim.nodes[self.node].kswapd_failures >= MAX_RETRIES {
            return true;
        }
        let balanced = ctx.kernel.is_balanced(self.node, self.reclaim_order, self.highest);
        if balanced {
            let of = &mut ctx.kernel.reclaim.nodes[self.node];
            (of.congested, of.dirty, of.writeback) = (false, false, false);
        }
        balanced
    }

    /// Takes the request and begins to work.
    fn begin(&mut self, ctx: &mut TaskCtx<'_>) {
        let of = &mut ctx.kernel.reclaim.nodes[self.node];
        self.alloc_order = std::mem::take(&mut of.kswapd_order);
        self.highest = of.kswapd_highest.take().unwrap_or(self.highest);
        let event = MmVmscanKswapdWake {
            nid: self.node as i32,
            order: self.alloc_order as i32,
            zid: Some(highest_zoneidx(self.highest)),
        };
        let (at, cpu, task) = (ctx.now(), ctx.cpu, ctx.task);
        ctx.kernel.probe.write(at, cpu, task, &event, b"");
        self.stage = Stage::Balancing(Box::new(Balance::begin(ctx, self.node, self.alloc_order, self.highest)));
    }
}

impl Balance {
    fn begin(ctx: &mut TaskCtx<'_>, node: usize, order: u32, highest: ZoneKind) -> Balance {
        ctx.kernel.stat.events.reclaim.pageoutrun += 1;
        let mut boosts = [0; ZONES];
        for (kind, boost) in boosts.iter_mut().enumerate().take(highest as usize + 1) {
            *boost = ctx.kernel.alloc.zones[node * ZONES + kind].boost;
        }
        ctx.set_active(node, highest, true);
        let control = Control::new(Reclaimer::Kswapd, order, highest, "GFP_KERNEL");
        Balance { control, boosts, boost: boosts.iter().sum(), pass: None, before: 0, raise: true }
    }

    /// Continues; at the end, the order for which it has reclaimed.
    fn step(&mut self, ctx: &mut TaskCtx<'_>, node: usize, highest: ZoneKind) -> Poll<u32> {
        let control = &mut self.control;
        let Some(pass) = &mut self.pass else {
            let balanced = ctx.kernel.is_balanced(node, control.order, highest);
            if !balanced && self.boost > 0 {
                self.boost = 0;
                control.priority = DEF_PRIORITY;
                return Poll::On;
            }
            if balanced && self.boost == 0 {
                return self.end(ctx, node);
            }
            self.before = control.reclaimed;
            self.raise = !(self.boost > 0 && control.priority == DEF_PRIORITY - 2);
            control.may_writepage = !ctx.kernel.reclaim.rules.laptop_mode && self.boost == 0;
            control.may_swap = self.boost == 0;
            age_anon(ctx, control, node);
            control.may_writepage |= control.priority < DEF_PRIORITY - 2;
            control.scanned = 0;
            let zones = node * ZONES..=node * ZONES + highest as usize;
            let zones = zones.map(|zone| &ctx.kernel.alloc.zones[zone]).filter(|zone| zone.managed > 0);
            control.nr_to_reclaim = zones.map(|zone| (zone.marks.high + zone.boost).max(BATCH)).sum();
            self.pass = Some(NodePass::new(node));
            return Poll::On;
        };
        match pass.step(ctx, control) {
            Poll::On => return Poll::On,
            Poll::Sleep(until, why) => return Poll::Sleep(until, why),
            Poll::Done(_) => self.pass = None,
        }
        let waiters = ctx.kernel.reclaim.nodes[node].throttled[Reason::Reserve as usize];
        if waiters > 0 && ctx.allows_direct_reclaim(node) {
            ctx.kernel.reclaim.wake(node, Reason::Reserve);
        }
        if control.order > 0 && control.reclaimed >= compact_gap(control.order) {
            control.order = 0;
        }
        if control.scanned >= control.nr_to_reclaim {
            self.raise = false;
        }
        let reclaimed = control.reclaimed - self.before;
        self.boost -= self.boost.min(reclaimed);
        if self.boost > 0 && reclaimed == 0 {
            return self.fail(ctx, node);
        }
        if self.raise || reclaimed == 0 {
            if control.priority == 1 {
                return self.fail(ctx, node);
            }
            control.priority -= 1;
        }
        Poll::On
    }

    /// The node is not balanced at the end.
    fn fail(&mut self, ctx: &mut TaskCtx<'_>, node: usize) -> Poll<u32> {
        if self.control.reclaimed == 0 {
            ctx.kernel.reclaim.nodes[node].kswapd_failures += 1;
        }
        self.end(ctx, node)
    }

    fn end(&mut self, ctx: &mut TaskCtx<'_>, node: usize) -> Poll<u32> {
        for (kind, boost) in self.boosts.iter().enumerate() {
            let of = &mut ctx.kernel.alloc.zones[node * ZONES + kind];
            of.boost = of.boost.saturating_sub(*boost);
        }
        if self.boosts.iter().any(|boost| *boost > 0) {
            let by = (ctx.cpu, ctx.task);
            ctx.kernel.wakeup_kcompactd(by, node, HUGE_ORDER, self.control.highest);
        }
        ctx.set_active(node, self.control.highest, false);
        ctx.snapshot_refaults(node, 0);
        Poll::Done(self.control.order)
    }
}

/// Keeps enough anonymous pages inactive (`kswapd_age_node`).
fn age_anon(ctx: &mut TaskCtx<'_>, control: &Control, node: usize) {
    let lru = &ctx.kernel.reclaim.lru;
    let swap = ctx.kernel.reclaim.free_swap.is_some();
    if !swap || !lru.shown(lru.number(node, 0)).inactive_is_low(false) {
        return;
    }
    for cgroup in ctx.kernel.reclaim.lru.below(0) {
        let number = ctx.kernel.reclaim.lru.number(node, cgroup);
        active::shrink(ctx, control, number, List::ActiveAnon, BATCH);
    }
}

impl TaskCtx<'_> {
    fn set_active(&mut self, node: usize, highest: ZoneKind, active: bool) {
        for zone in node * ZONES..=node * ZONES + highest as usize {
            self.kernel.alloc.zones[zone].reclaim_active = active;
        }
    }

    /// Stores the refaults of a cgroup, so that the next reclaim can check for new ones.
    pub(super) fn snapshot_refaults(&mut self, node: usize, cgroup: usize) {
        let lru = &mut self.kernel.reclaim.lru;
        let number = lru.number(node, cgroup);
        lru.vec_mut(number).refaults = lru.shown(number).activated;
    }
}
