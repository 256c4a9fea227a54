//! kswapd: `wakeup_kswapd`, `kswapd`, `kswapd_try_to_sleep`, `sleeping_prematurely` (2.6.36 to 3.5).
//!
//! Whoever finds a zone below its low mark asks for it; in 2010 also while it runs, and every request is an event. From
//! 2.6.38 on only who finds it asleep is told of. From 2.6.39 on it sleeps by what the last loop came to, which may be less
//! than it was asked for, and looks for new work only if it was not. Left out: freezing. Checked by tests of [`super`] and
//! `tests/historic_reclaim.rs`.

use super::Balanced;
use super::balance_pgdat::{Balance, Work, is_quarter};
use super::state::NO_RESERVE;
use crate::frame::{ZONES, ZoneKind};
use crate::mm::kernel::Kernel;
use crate::mm::vmscan::{Poll, World};
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
        let only_asleep = self.reclaim.rules.by_zone.is_some_and(|variant| variant.wakes_sleepers);
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

impl World<'_> {
    /// What kswapd of a node is asked for.
    fn asked(&self, node: usize) -> Work {
        let of = &self.kernel.reclaim.nodes[node];
        let zones = &self.kernel.alloc.zones[node * ZONES..(node + 1) * ZONES];
        let top = zones.iter().rposition(|zone| zone.populated()).unwrap_or(0);
        Work { order: of.kswapd_order, highest: of.kswapd_highest.map_or(top, |kind| top.min(kind as usize)) }
    }

    /// The same, and it is asked no more.
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
    /// What it works for, what it was asked for last, and what the last loop came to.
    work: Work,
    asked: Work,
    came: Work,
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
        let nothing = Work { order: 0, highest: ZONES - 1 };
        Kswapd { node, work: nothing, asked: nothing, came: nothing, stage: Stage::Asleep }
    }

    /// Goes on. `Done`: it sleeps until it is woken.
    pub(crate) fn step(&mut self, world: &mut World<'_>) -> Poll<()> {
        match &mut self.stage {
            Stage::TrySleep => {
                if !remembers(world) || self.came.highest >= self.asked.highest && self.came.order == self.asked.order {
                    self.asked = world.take_asked(self.node);
                }
                if self.work.order < self.asked.order || self.work.highest > self.asked.highest {
                    self.work = self.asked;
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
                Poll::Done(came) => (self.came, self.stage) = (came, Stage::TrySleep),
            },
        }
        Poll::On
    }

    /// It may sleep: no zone that has not been given up is below its high mark, or for a block a quarter of them is not.
    fn is_balanced(&self, world: &mut World<'_>) -> bool {
        let quarter = world.variant().balanced == Balanced::Quarter;
        let Work { order, highest } = if quarter { self.came } else { Work { highest: ZONES - 1, ..self.work } };
        let (mut all_ok, mut balanced) = (true, 0);
        for zone in self.node * ZONES..=self.node * ZONES + highest {
            let of = &world.kernel.alloc.zones[zone];
            let (populated, high, present) = (of.populated(), of.marks.high, of.present);
            if !populated || world.is_given_up(zone) || world.is_above(zone, order, high, NO_RESERVE) {
                balanced += present;
            } else {
                all_ok = false;
            }
        }
        match quarter && order > 0 {
            true => is_quarter(balanced, world.pages_up_to(self.node, highest)),
            false => all_ok,
        }
    }

    /// Takes what was asked for; in 2010 that stays asked for until it looks for sleep.
    fn go_on(&mut self, world: &mut World<'_>) {
        match remembers(world) {
            true => {
                self.asked = world.take_asked(self.node);
                self.work = self.asked;
            }
            false => self.work = world.asked(self.node),
        }
        self.begin(world);
    }

    fn begin(&mut self, world: &mut World<'_>) {
        let event = MmVmscanKswapdWake { nid: self.node as i32, order: self.work.order as i32, zid: None };
        let (at, cpu, task) = (world.now(), world.cpu, world.task);
        world.kernel.probe.write(at, cpu, task, &event, b"");
        self.stage = Stage::Balancing(Box::new(Balance::new(self.node, self.work)));
    }
}

/// It knows what it was asked for when a loop has come to less.
fn remembers(world: &World<'_>) -> bool {
    world.variant().balanced == Balanced::Quarter
}
