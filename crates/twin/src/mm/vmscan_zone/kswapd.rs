//! kswapd: `wakeup_kswapd`, `kswapd`, `kswapd_try_to_sleep`, `sleeping_prematurely` (2.6.36 to 3.5).
//!
//! An allocation that finds a zone below its low watermark wakes it; in 2010 also while it runs, and every call is an
//! event. From 2.6.38 on only a call that finds it asleep is one. From 2.6.39 on it decides whether to sleep by the
//! order and zone that the last loop balanced, which may be less than was requested; only if they are not does it check
//! for a new request. Not modelled: freezing. Checked by tests of [`super`] and `tests/historic_reclaim.rs`.

use super::Balanced;
use super::balance_pgdat::{Balance, Work, is_quarter};
use super::state::NO_RESERVE;
use crate::frame::{ZONES, ZoneKind};
use crate::mm::kernel::Kernel;
use crate::mm::vmscan::{Poll, TaskCtx};
use crate::probe::Task;
use crate::time::{PS_PER_NS, Ps};
use mmtwin_event::vocabulary::{MmVmscanKswapdSleep, MmVmscanKswapdWake, MmVmscanWakeupKswapd};

impl Kernel {
    /// A request has found no zone above its low mark: kswapd of a zone's node is to work, if this one is below its own.
    /// The request's first choice is of a kind.
    pub(crate) fn wakeup_kswapd_of_zone(&mut self, cpu: u32, task: Task, zone: usize, order: u32, preferred: ZoneKind) {
        let (of, node) = (&self.alloc.zones[zone], zone / ZONES);
        if !of.populated() {
            return;
        }
        let only_asleep = self.reclaim.decide(|rules| rules.wakes_sleepers);
        let asked = &mut self.reclaim.nodes[node];
        if only_asleep {
            if asked.kswapd_order < order {
                asked.kswapd_order = order;
                asked.kswapd_highest = Some(asked.kswapd_highest.map_or(preferred, |known| known.min(preferred)));
            }
            if !asked.kswapd_waits {
                return;
            }
        }
        let free = self.stat.free_pages_safe(zone);
        if of.watermark_ok(order, of.marks.low, free, NO_RESERVE, Default::default()) {
            return;
        }
        let event = MmVmscanWakeupKswapd {
            nid: node as i32,
            zid: Some((zone % ZONES) as i32),
            order: order as i32,
            gfp_flags: None,
        };
        let at = self.now(cpu);
        self.probe.write(at, cpu, task, &event, b"");
        let of = &mut self.reclaim.nodes[node];
        of.kswapd_order = of.kswapd_order.max(order);
        if std::mem::take(&mut of.kswapd_waits) {
            self.reclaim.wakes.push(node);
        }
    }
}

impl TaskCtx<'_> {
    /// Request to kswapd of a node.
    fn asked(&self, node: usize) -> Work {
        let of = &self.kernel.reclaim.nodes[node];
        let zones = &self.kernel.alloc.zones[node * ZONES..(node + 1) * ZONES];
        let top = zones.iter().rposition(|zone| zone.populated()).unwrap_or(0);
        Work { order: of.kswapd_order, highest: of.kswapd_highest.map_or(top, |kind| top.min(kind as usize)) }
    }

    /// The same, and the request is cleared.
    fn take_asked(&mut self, node: usize) -> Work {
        let asked = self.asked(node);
        let of = &mut self.kernel.reclaim.nodes[node];
        (of.kswapd_order, of.kswapd_highest) = (0, None);
        asked
    }

    /// Pages of a node's zones up to one.
    pub(super) fn pages_up_to(&self, node: usize, highest: usize) -> u64 {
        self.kernel.alloc.zones[node * ZONES..=node * ZONES + highest].iter().map(|zone| zone.present).sum()
    }
}

/// The thread of a node.
#[derive(Clone, Debug)]
pub(crate) struct Kswapd {
    node: usize,
    /// Its current request, the last request, and the result of the last loop.
    work: Work,
    asked: Work,
    came: Work,
    stage: Stage,
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

impl Kswapd {
    /// A thread that has just started.
    pub(crate) fn new(node: usize) -> Kswapd {
        let nothing = Work { order: 0, highest: ZONES - 1 };
        Kswapd { node, work: nothing, asked: nothing, came: nothing, stage: Stage::Asleep }
    }

    /// Continues. `Done`: it sleeps until it is woken.
    pub(crate) fn step(&mut self, ctx: &mut TaskCtx<'_>) -> Poll<()> {
        match &mut self.stage {
            Stage::TrySleep => {
                if !remembers(ctx) || self.came.highest >= self.asked.highest && self.came.order == self.asked.order {
                    self.asked = ctx.take_asked(self.node);
                }
                if self.work.order < self.asked.order || self.work.highest > self.asked.highest {
                    self.work = self.asked;
                    self.begin(ctx);
                } else if self.is_balanced(ctx) {
                    let jiffy = ctx.jiffy();
                    let until = (ctx.now() / jiffy + ctx.kernel.reclaim.rules.hz / 10) * jiffy * PS_PER_NS;
                    self.stage = Stage::Dozing(until);
                    ctx.kernel.reclaim.nodes[self.node].kswapd_waits = true;
                    return Poll::Sleep(until, None);
                } else {
                    ctx.kernel.stat.events.reclaim.kswapd_high_wmark_hit_quickly += 1;
                    self.go_on(ctx);
                }
            }
            Stage::Dozing(until) => {
                let early = ctx.kernel.clock(ctx.cpu) < *until;
                ctx.kernel.reclaim.nodes[self.node].kswapd_waits = false;
                if early {
                    ctx.kernel.stat.events.reclaim.kswapd_low_wmark_hit_quickly += 1;
                    self.go_on(ctx);
                } else if self.is_balanced(ctx) {
                    let (at, cpu, task) = (ctx.now(), ctx.cpu, ctx.task);
                    let event = MmVmscanKswapdSleep { nid: self.node as i32 };
                    ctx.kernel.probe.write(at, cpu, task, &event, b"");
                    ctx.kernel.reclaim.nodes[self.node].kswapd_waits = true;
                    self.stage = Stage::Asleep;
                    return Poll::Done(());
                } else {
                    ctx.kernel.stat.events.reclaim.kswapd_high_wmark_hit_quickly += 1;
                    self.go_on(ctx);
                }
            }
            Stage::Asleep => {
                ctx.kernel.reclaim.nodes[self.node].kswapd_waits = false;
                self.go_on(ctx);
            }
            Stage::Balancing(balance) => match balance.step(ctx) {
                Poll::On => {}
                Poll::Sleep(until, why) => return Poll::Sleep(until, why),
                Poll::Done(came) => (self.came, self.stage) = (came, Stage::TrySleep),
            },
        }
        Poll::On
    }

    /// It may sleep: no zone that has not been given up is below its high mark, or for a block a quarter of them is not.
    fn is_balanced(&self, ctx: &mut TaskCtx<'_>) -> bool {
        let quarter = ctx.decide(|rules| rules.balanced == Balanced::Quarter);
        let Work { order, highest } = if quarter { self.came } else { Work { highest: ZONES - 1, ..self.work } };
        let (mut all_ok, mut balanced) = (true, 0);
        for zone in self.node * ZONES..=self.node * ZONES + highest {
            let of = &ctx.kernel.alloc.zones[zone];
            let (populated, high, present) = (of.populated(), of.marks.high, of.present);
            if !populated || ctx.is_given_up(zone) || ctx.is_above(zone, order, high, NO_RESERVE) {
                balanced += present;
            } else {
                all_ok = false;
            }
        }
        match quarter && order > 0 {
            true => is_quarter(balanced, ctx.pages_up_to(self.node, highest)),
            false => all_ok,
        }
    }

    /// Takes the request; in 2010 the request stays set until it checks whether to sleep.
    fn go_on(&mut self, ctx: &mut TaskCtx<'_>) {
        match remembers(ctx) {
            true => {
                self.asked = ctx.take_asked(self.node);
                self.work = self.asked;
            }
            false => self.work = ctx.asked(self.node),
        }
        self.begin(ctx);
    }

    fn begin(&mut self, ctx: &mut TaskCtx<'_>) {
        let event = MmVmscanKswapdWake { nid: self.node as i32, order: self.work.order as i32, zid: None };
        let (at, cpu, task) = (ctx.now(), ctx.cpu, ctx.task);
        ctx.kernel.probe.write(at, cpu, task, &event, b"");
        self.stage = Stage::Balancing(Box::new(Balance::new(self.node, self.work)));
    }
}

/// It keeps the request when a loop has balanced less.
fn remembers(ctx: &TaskCtx<'_>) -> bool {
    ctx.decide(|rules| rules.balanced == Balanced::Quarter)
}
