//! kswapd: `wakeup_kswapd`, `kswapd`, `sleeping_prematurely` (2.6.36, 2.6.37).
//!
//! Whoever finds a zone below its low mark asks for it, also while it runs, and every request is an event. Left out:
//! freezing. Checked by tests of [`super`] and `tests/historic_reclaim.rs`.

use super::balance::Balance;
use super::state::NO_RESERVE;
use crate::alloc::ZONES;
use crate::kernel::{Kernel, PS_PER_NS, Ps};
use crate::probe::Task;
use crate::reclaim::{Poll, World};
use mmtwin_event::vocabulary::{MmVmscanKswapdSleep, MmVmscanKswapdWake, MmVmscanWakeupKswapd};

impl Kernel {
    /// A request has found no zone above its low mark: kswapd of a zone's node is to work, if this one is below its own.
    pub(crate) fn wakeup_kswapd_of_zone(&mut self, cpu: u32, task: Task, zone: usize, order: u32) {
        let of = &self.alloc.zones[zone];
        let free = self.stat.free_pages_safe(zone);
        if !of.populated() || of.watermark_ok(order, of.marks.low, free, NO_RESERVE, Default::default()) {
            return;
        }
        let node = zone / ZONES;
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

/// The thread of a node.
#[derive(Clone, Debug)]
pub(crate) struct Kswapd {
    node: usize,
    order: u32,
    stage: Stage,
}

#[derive(Clone, Debug)]
enum Stage {
    /// It looks whether it can sleep.
    TrySleep,
    /// It sleeps for a tenth of a second, in case more is asked for soon.
    Dozing(Ps),
    /// It sleeps until it is woken.
    Asleep,
    Balancing(Box<Balance>),
}

impl Kswapd {
    /// A thread that has just started.
    pub(crate) fn new(node: usize) -> Kswapd {
        Kswapd { node, order: 0, stage: Stage::Asleep }
    }

    /// Goes on. `Done`: it sleeps until it is woken.
    pub(crate) fn step(&mut self, world: &mut World<'_>) -> Poll<()> {
        match &mut self.stage {
            Stage::TrySleep => {
                let asked = std::mem::take(&mut world.kernel.reclaim.nodes[self.node].kswapd_order);
                if self.order < asked {
                    self.order = asked;
                    self.begin(world);
                } else if self.is_balanced(world) {
                    let jiffy = world.jiffy();
                    let until = (world.now() / jiffy + world.kernel.reclaim.rules.hz / 10) * jiffy * PS_PER_NS;
                    self.stage = Stage::Dozing(until);
                    world.kernel.reclaim.nodes[self.node].kswapd_waits = true;
                    return Poll::Sleep(until, None);
                } else {
                    world.kernel.stat.events.reclaim.kswapd_high_wmark_hit_quickly += 1;
                    self.go_on(world);
                }
            }
            Stage::Dozing(until) => {
                let early = world.kernel.clock(world.cpu) < *until;
                world.kernel.reclaim.nodes[self.node].kswapd_waits = false;
                if early {
                    world.kernel.stat.events.reclaim.kswapd_low_wmark_hit_quickly += 1;
                    self.go_on(world);
                } else if self.is_balanced(world) {
                    let (at, cpu, task) = (world.now(), world.cpu, world.task);
                    let event = MmVmscanKswapdSleep { nid: self.node as i32 };
                    world.kernel.probe.write(at, cpu, task, &event, b"");
                    world.kernel.reclaim.nodes[self.node].kswapd_waits = true;
                    self.stage = Stage::Asleep;
                    return Poll::Done(());
                } else {
                    world.kernel.stat.events.reclaim.kswapd_high_wmark_hit_quickly += 1;
                    self.go_on(world);
                }
            }
            Stage::Asleep => {
                world.kernel.reclaim.nodes[self.node].kswapd_waits = false;
                self.go_on(world);
            }
            Stage::Balancing(balance) => match balance.step(world) {
                Poll::On => {}
                Poll::Sleep(until, why) => return Poll::Sleep(until, why),
                Poll::Done(()) => self.stage = Stage::TrySleep,
            },
        }
        Poll::On
    }

    /// No zone that has not been given up is below its high mark.
    fn is_balanced(&self, world: &mut World<'_>) -> bool {
        (self.node * ZONES..(self.node + 1) * ZONES).all(|zone| {
            let of = &world.kernel.alloc.zones[zone];
            let (populated, high) = (of.populated(), of.marks.high);
            !populated || world.is_given_up(zone) || world.is_above(zone, self.order, high, NO_RESERVE)
        })
    }

    /// Takes what was asked for, which stays asked for until it looks for sleep.
    fn go_on(&mut self, world: &mut World<'_>) {
        self.order = world.kernel.reclaim.nodes[self.node].kswapd_order;
        self.begin(world);
    }

    fn begin(&mut self, world: &mut World<'_>) {
        let event = MmVmscanKswapdWake { nid: self.node as i32, order: self.order as i32, zid: None };
        let (at, cpu, task) = (world.now(), world.cpu, world.task);
        world.kernel.probe.write(at, cpu, task, &event, b"");
        self.stage = Stage::Balancing(Box::new(Balance::new(self.node, self.order)));
    }
}
