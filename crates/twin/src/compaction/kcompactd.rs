//! kcompactd: `wakeup_kcompactd`, `kcompactd_node_suitable`, `kcompactd_do_work`, and the pageblocks that are looked at again
//! when kswapd sleeps (`reset_isolation_suitable`).

use super::zone::{Mode, Pass};
use super::{Compaction, Node, Status};
use crate::alloc::{PAGEBLOCK_ORDER, ZONES, ZoneKind};
use crate::kernel::Kernel;
use crate::page::Migratetype;
use crate::probe::Task;
use crate::reclaim::{Poll, World};
use mmtwin_event::value::Zone as ZoneName;
use mmtwin_event::vocabulary::{MmCompactionKcompactdSleep, MmCompactionKcompactdWake, MmCompactionWakeupKcompactd};

/// The thread of a node.
#[derive(Clone, Debug)]
pub(crate) struct Kcompactd {
    node: usize,
    /// What it works for: order, highest zone, and which zone is next; `None`: it was just woken.
    work: Option<(u32, ZoneKind, usize)>,
    pass: Option<Box<Pass>>,
}

impl Kernel {
    /// kswapd of a node goes to sleep: pageblocks that held nothing are looked at again where that may help.
    pub(crate) fn forget_skips(&mut self, node: usize) {
        for zone in node * ZONES..(node + 1) * ZONES {
            if self.compaction.zones[zone].flush {
                let of = &self.alloc.zones[zone];
                self.compaction.forget_skips(zone, of.start_pfn, of.start_pfn + of.spanned);
            }
        }
    }

    /// Somebody wants blocks of an order on a node later.
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

impl Compaction {
    /// All pageblocks of a zone are looked at again, from its ends on (`__reset_isolation_suitable`).
    pub(super) fn forget_skips(&mut self, zone: usize, start: u64, end: u64) {
        let (first, last) = ((start >> PAGEBLOCK_ORDER) as usize, (end.div_ceil(1 << PAGEBLOCK_ORDER)) as usize);
        let last = last.min(self.skip.len());
        self.skip[first..last].fill(false);
        let known = &mut self.zones[zone];
        (known.migrate, known.free, known.flush) = ([0; 2], 0, false);
    }
}

impl Kcompactd {
    /// A thread that has just started.
    pub(crate) fn new(node: usize) -> Kcompactd {
        Kcompactd { node, work: None, pass: None }
    }

    /// Goes on. `Done`: it sleeps until it is woken.
    pub(crate) fn step(&mut self, world: &mut World<'_>) -> Poll<()> {
        let Some((order, highest, kind)) = self.work else {
            self.begin(world);
            return Poll::On;
        };
        if let Some(pass) = &mut self.pass {
            let status = match pass.step(world) {
                Poll::On => return Poll::On,
                Poll::Sleep(until, why) => return Poll::Sleep(until, why),
                Poll::Done(status) => status,
            };
            let (zone, scanned) = (pass.zone, (pass.migrate_scanned, pass.free_scanned));
            self.pass = None;
            let events = &mut world.kernel.stat.events.reclaim;
            events.compact_daemon_migrate_scanned += scanned.0;
            events.compact_daemon_free_scanned += scanned.1;
            match status {
                Status::Success => world.compaction_defer_reset(zone, order, false),
                Status::Complete | Status::PartialSkipped => {
                    let online = world.kernel.stat.online().to_vec();
                    online.into_iter().for_each(|cpu| world.kernel.drain_pages(cpu));
                    world.defer_compaction(zone, order);
                }
                Status::Skipped | Status::Deferred | Status::Continue | Status::Contended => {}
            }
            return Poll::On;
        }
        if kind > highest as usize {
            self.work = None;
            let of = &mut world.kernel.compaction.nodes[self.node];
            if of.order > order {
                return Poll::On;
            }
            *of = Node::default();
            world.write(&MmCompactionKcompactdSleep { nid: self.node as i32 });
            return Poll::Done(());
        }
        self.work = Some((order, highest, kind + 1));
        let zone = self.node * ZONES + kind;
        if !world.kernel.alloc.zones[zone].populated()
            || world.compaction_deferred(zone, order)
            || world.kernel.compaction_suitable((world.cpu, world.task), zone, order, highest) != Status::Continue
        {
            return Poll::On;
        }
        self.pass = Some(Box::new(Pass::new(zone, order, Migratetype::Unmovable, highest, Mode::SyncLight)));
        Poll::On
    }

    fn begin(&mut self, world: &mut World<'_>) {
        let of = world.kernel.compaction.nodes[self.node];
        let highest = of.highest.unwrap_or(ZoneKind::Device);
        self.work = Some((of.order, highest, 0));
        world.kernel.stat.events.reclaim.compact_daemon_wake += 1;
        let event = MmCompactionKcompactdWake {
            nid: self.node as i32,
            order: of.order as i32,
            highest_zoneidx: ZoneName(highest as u32),
        };
        world.write(&event);
    }
}
