//! kcompactd: `wakeup_kcompactd`, `kcompactd_node_suitable`, `kcompactd_do_work`.

use super::zone::{Mode, Pass};
use super::{Node, Status};
use crate::frame::{Migratetype, ZONES, ZoneKind};
use crate::mm::kernel::Kernel;
use crate::mm::vmscan::{Poll, TaskCtx};
use crate::probe::Task;
use mmtwin_event::value::Zone as ZoneName;
use mmtwin_event::vocabulary::{MmCompactionKcompactdSleep, MmCompactionKcompactdWake, MmCompactionWakeupKcompactd};

/// The thread of a node.
#[derive(Clone, Debug)]
pub(crate) struct Kcompactd {
    node: usize,
    /// Its request: order, highest zone, and next zone; `None`: it was just woken.
    work: Option<(u32, ZoneKind, usize)>,
    pass: Option<Box<Pass>>,
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
        Kcompactd { node, work: None, pass: None }
    }

    /// Continues. `Done`: it sleeps until it is woken.
    pub(crate) fn step(&mut self, ctx: &mut TaskCtx<'_>) -> Poll<()> {
        let Some((order, highest, kind)) = self.work else {
            self.begin(ctx);
            return Poll::On;
        };
        if let Some(pass) = &mut self.pass {
            let status = match pass.step(ctx) {
                Poll::On => return Poll::On,
                Poll::Sleep(until, why) => return Poll::Sleep(until, why),
                Poll::Done(status) => status,
            };
            let (zone, scanned) = (pass.zone, (pass.migrate_scanned, pass.free_scanned));
            self.pass = None;
            let events = &mut ctx.kernel.stat.events.reclaim;
            events.compact_daemon_migrate_scanned += scanned.0;
            events.compact_daemon_free_scanned += scanned.1;
            match status {
                Status::Success => ctx.compaction_defer_reset(zone, order, false),
                Status::Complete | Status::PartialSkipped => {
                    ctx.kernel.drain_all_pages(ctx.cpu);
                    ctx.defer_compaction(zone, order);
                }
                _ => {}
            }
            return Poll::On;
        }
        if kind > highest as usize {
            self.work = None;
            let of = &mut ctx.kernel.compaction.nodes[self.node];
            if of.order > order {
                return Poll::On;
            }
            *of = Node::default();
            ctx.write(&MmCompactionKcompactdSleep { nid: self.node as i32 });
            return Poll::Done(());
        }
        self.work = Some((order, highest, kind + 1));
        let (zone, own) = (self.node * ZONES + kind, ZoneKind::ALL[kind]);
        if !ctx.kernel.alloc.zones[zone].populated()
            || ctx.compaction_deferred(zone, order)
            || ctx.kernel.compaction_suitable((ctx.cpu, ctx.task), zone, order, own) != Status::Continue
        {
            return Poll::On;
        }
        self.pass = Some(Box::new(Pass::new(zone, order, Migratetype::Unmovable, highest, Mode::SyncLight)));
        Poll::On
    }

    fn begin(&mut self, ctx: &mut TaskCtx<'_>) {
        let of = ctx.kernel.compaction.nodes[self.node];
        let highest = of.highest.unwrap_or(ZoneKind::Device);
        self.work = Some((of.order, highest, 0));
        ctx.kernel.stat.events.reclaim.compact_daemon_wake += 1;
        let event = MmCompactionKcompactdWake {
            nid: self.node as i32,
            order: of.order as i32,
            highest_zoneidx: ZoneName(highest as u32),
        };
        ctx.write(&event);
    }
}
