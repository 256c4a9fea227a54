//! kcompactd: `wakeup_kcompactd`, `kcompactd_node_suitable`, `kcompactd`, `kcompactd_do_work` (5.14 to 6.12). Between
//! requests it compacts by itself ([`super::proactive`]).

use super::proactive::{self, INTERVAL};
use super::zone::{Mode, Pass};
use super::{Node, Status};
use crate::frame::{Migratetype, ZONES, ZoneKind};
use crate::mm::kernel::Kernel;
use crate::mm::vmscan::{Poll, TaskCtx};
use crate::probe::Task;
use crate::time::{Ns, PS_PER_NS};
use mmtwin_event::value::Zone as ZoneName;
use mmtwin_event::vocabulary::{MmCompactionKcompactdSleep, MmCompactionKcompactdWake, MmCompactionWakeupKcompactd};

/// The thread of a node.
#[derive(Clone, Debug)]
pub(crate) struct Kcompactd {
    node: usize,
    work: Work,
    pass: Option<Box<Pass>>,
}

/// What it does.
#[derive(Clone, Copy, Debug)]
enum Work {
    /// Nothing: it was just woken, by a request or by its timer.
    None,
    /// A request: order, highest zone, and the next zone.
    Requested(u32, ZoneKind, usize),
    /// Proactive compaction: the score before, and the next zone.
    Proactive(u64, usize),
}

impl Kernel {
    /// Background compaction of a node for an order is requested.
    pub(crate) fn wakeup_kcompactd(&mut self, (cpu, task): (u32, Task), node: usize, order: u32, highest: ZoneKind) {
        if order == 0 {
            return;
        }
        let of = &mut self.compaction.nodes[node];
        of.order = of.order.max(order);
        of.highest = of.highest.max(Some(highest));
        let (most, up_to) = (of.order, of.highest.unwrap_or(highest));
        if of.works {
            return;
        }
        let zones = node * ZONES..=node * ZONES + up_to as usize;
        let populated: Vec<usize> = zones.filter(|&zone| self.alloc.zones[zone].populated()).collect();
        let suits = |zone| self.compaction_suitable((cpu, task), zone, most, up_to) == Status::Continue;
        if !populated.into_iter().any(suits) {
            return;
        }
        let (nid, order, highest_zoneidx) = (node as i32, order as i32, ZoneName(highest as u32));
        let at = self.now(cpu);
        self.probe.write(at, cpu, task, &MmCompactionWakeupKcompactd { nid, order, highest_zoneidx }, b"");
        self.compaction.nodes[node].works = true;
        self.compaction.wakes.push(node);
    }
}

impl Kcompactd {
    /// A thread that has just started.
    pub(crate) fn new(node: usize) -> Kcompactd {
        Kcompactd { node, work: Work::None, pass: None }
    }

    /// It works for a request: the kernel counts that as a stall for memory, proactive compaction not.
    pub(crate) fn is_requested(&self) -> bool {
        matches!(self.work, Work::Requested(..))
    }

    /// Continues. `Done`: it sleeps until it is woken.
    pub(crate) fn step(&mut self, ctx: &mut TaskCtx<'_>) -> Poll<()> {
        if self.pass.is_some() {
            return self.compact(ctx);
        }
        match self.work {
            Work::None if ctx.kernel.compaction.nodes[self.node].works => self.begin(ctx),
            Work::None => return self.timer(ctx),
            Work::Requested(order, highest, kind) if kind > highest as usize => {
                self.work = Work::None;
                let of = &mut ctx.kernel.compaction.nodes[self.node];
                if of.order <= order {
                    *of = Node::default();
                    return self.sleep(ctx, INTERVAL);
                }
            }
            Work::Requested(order, highest, kind) => {
                self.work = Work::Requested(order, highest, kind + 1);
                let (zone, own) = (self.node * ZONES + kind, ZoneKind::ALL[kind]);
                if ctx.kernel.alloc.zones[zone].populated()
                    && !ctx.compaction_deferred(zone, order)
                    && ctx.kernel.compaction_suitable((ctx.cpu, ctx.task), zone, order, own) == Status::Continue
                {
                    let pass = Pass::new(zone, order, Migratetype::Unmovable, highest, Mode::SyncLight);
                    self.pass = Some(Box::new(pass));
                }
            }
            Work::Proactive(before, ZONES) => {
                self.work = Work::None;
                let deferred = ctx.kernel.fragmentation_score_node(self.node) >= before;
                return self.sleep(ctx, if deferred { proactive::DEFERRED } else { INTERVAL });
            }
            Work::Proactive(before, kind) => {
                self.work = Work::Proactive(before, kind + 1);
                let zone = self.node * ZONES + kind;
                if ctx.kernel.alloc.zones[zone].populated() {
                    self.pass = Some(Box::new(Pass::proactive(zone)));
                }
            }
        }
        Poll::On
    }

    /// Continues the compaction of a zone.
    fn compact(&mut self, ctx: &mut TaskCtx<'_>) -> Poll<()> {
        let Some(pass) = &mut self.pass else { return Poll::On };
        let status = match pass.step(ctx) {
            Poll::On => return Poll::On,
            Poll::Sleep(until, why) => return Poll::Sleep(until, why),
            Poll::Done(status) => status,
        };
        let (zone, scanned) = (pass.zone, (pass.migrate_scanned, pass.free_scanned));
        self.pass = None;
        let counts_proactive = ctx.kernel.reclaim.rules.finishes_pageblocks;
        if self.is_requested() || counts_proactive {
            let events = &mut ctx.kernel.stat.events.reclaim;
            events.compact_daemon_migrate_scanned += scanned.0;
            events.compact_daemon_free_scanned += scanned.1;
        }
        match (self.work, status) {
            (Work::Requested(order, ..), Status::Success) => ctx.compaction_defer_reset(zone, order, false),
            (Work::Requested(order, ..), Status::Complete | Status::PartialSkipped) => {
                ctx.kernel.drain_all_zone_pages(ctx.cpu, zone);
                ctx.defer_compaction(zone, order);
            }
            _ => {}
        }
        Poll::On
    }

    fn begin(&mut self, ctx: &mut TaskCtx<'_>) {
        let of = ctx.kernel.compaction.nodes[self.node];
        let highest = of.highest.unwrap_or(ZoneKind::Device);
        self.work = Work::Requested(of.order, highest, 0);
        ctx.kernel.stat.events.reclaim.compact_daemon_wake += 1;
        let event = MmCompactionKcompactdWake {
            nid: self.node as i32,
            order: of.order as i32,
            highest_zoneidx: ZoneName(highest as u32),
        };
        ctx.write(&event);
    }

    /// Its timer runs out while it sleeps. If it has nothing to do, it sleeps on until the time that is returned, and its
    /// check takes no time of a CPU.
    pub(crate) fn sleeps_on(&self, kernel: &mut Kernel, (cpu, task): (u32, Task), at: Ns) -> Option<Ns> {
        let idle = matches!(self.work, Work::None) && self.pass.is_none() && !kernel.compaction.nodes[self.node].works;
        if !idle || kernel.should_proactive_compact_node(self.node).is_some() {
            return None;
        }
        let event = MmCompactionKcompactdSleep { nid: self.node as i32 };
        kernel.probe.write(at, cpu, task, &event, b"");
        Some(at + INTERVAL)
    }

    /// It was woken by its timer.
    fn timer(&mut self, ctx: &mut TaskCtx<'_>) -> Poll<()> {
        match ctx.kernel.should_proactive_compact_node(self.node) {
            Some(score) => {
                self.work = Work::Proactive(score, 0);
                Poll::On
            }
            // kswapd has begun meanwhile.
            None => self.sleep(ctx, INTERVAL),
        }
    }

    /// It sleeps until it is woken or, where there is proactive compaction, for so long at most.
    fn sleep(&self, ctx: &mut TaskCtx<'_>, time: Ns) -> Poll<()> {
        ctx.write(&MmCompactionKcompactdSleep { nid: self.node as i32 });
        if ctx.kernel.reclaim.rules.proactiveness == 0 {
            return Poll::Done(());
        }
        Poll::Sleep(ctx.kernel.clock(ctx.cpu) + time * PS_PER_NS, None)
    }
}
