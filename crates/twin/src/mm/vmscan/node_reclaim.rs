//! Node reclaim: `node_reclaim`, `__node_reclaim` and their place in `get_page_from_freelist` (`vm.zone_reclaim_mode`; 6.1 to
//! 6.12).
//!
//! A request that finds a zone of a near node below the mark first reclaims page cache of that node, if it is the local
//! node or one without CPUs, before it allocates from another node. Without further bits of the mode dirty and mapped
//! pages stay. The allocator cannot reclaim itself, so it returns a request ([`NodeReclaimRequest`]); the engine runs
//! the reclaim in the task (`mm/slowpath/mod.rs`), and the walk of the zonelist continues where it was. Not modelled:
//! slab as a reason to reclaim where there is little page cache; the repeated reclaim of a walk that restarts without
//! fragmentation avoidance. Checked by `tests/node_reclaim.rs` and against guests (docs/fidelity.md, reclaim-node).

use super::shrink_node::NodePass;
use super::{Control, Poll, Reclaimer, TaskCtx, Throttle};
use crate::frame::ZONES;
use crate::mm::kernel::Kernel;
use crate::mm::lru::List;
use crate::page_alloc::{NodeMask, NodeReclaimRequest, Request};
use crate::vmstat::NodeItem;
use mmtwin_event::vocabulary::{MmVmscanNodeReclaimBegin, MmVmscanNodeReclaimEnd};

/// Nodes that are farther are not reclaimed, but used (`RECLAIM_DISTANCE`).
const FARTHEST: u8 = 30;
/// Priority of the first pass: a sixteenth of the lists (`NODE_RECLAIM_PRIORITY`).
const PRIORITY: u32 = 4;
/// Bits of the mode beyond the first: reclaim may write pages, may take mapped ones.
const WRITE: u64 = 2;
const UNMAP: u64 = 4;

/// Node reclaims that a task has requested in its walks and done, by CPU.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NodeReclaimHistory {
    /// The task, and the places of the zonelist before which no reclaim is requested: of a walk with the low marks, and
    /// of one with the minimum.
    pub pid: i32,
    pub from: [usize; 2],
}

impl NodeReclaimHistory {
    /// Records that a requested reclaim is done.
    pub(crate) fn note(&mut self, pid: i32, asked: NodeReclaimRequest) {
        let from = if asked.urgent { [usize::MAX, asked.place + 1] } else { [asked.place + 1, 0] };
        *self = NodeReclaimHistory { pid, from };
    }
}

impl Kernel {
    /// From now on tasks reclaim nodes, if they are to.
    pub(crate) fn begin_node_reclaim(&mut self) {
        let rules = self.reclaim.rules;
        if rules.node_reclaim_mode == 0 {
            return;
        }
        self.stat.node_reclaims = Some([0; 2]);
        self.reclaim.node_reclaim_history = vec![NodeReclaimHistory::default(); self.stat.cpus() as usize];
        for zone in self.alloc.populated() {
            self.reclaim.min_unmapped[zone / ZONES] += self.alloc.zones[zone].managed * rules.min_unmapped_ratio / 100;
        }
    }

    /// Nodes that a request reclaims before it leaves them (`zone_allows_reclaim`, `node_reclaim`).
    pub(crate) fn nodes_to_reclaim(&self, local: usize, preferred: usize, request: &Request) -> NodeMask {
        if !request.may_wait {
            return NodeMask(0);
        }
        let is_near = |node: usize| self.machine.distance[preferred][node] <= FARTHEST;
        let may_scan = |node: usize| node == local || self.machine.cpus_of(node).is_empty();
        let full = |node: usize| self.reclaimable_cache(node) <= self.reclaim.min_unmapped[node];
        let nodes = (0..self.machine.nodes.len()).filter(|&node| is_near(node) && may_scan(node));
        NodeMask::of(nodes.filter(|&node| !full(node) && !self.reclaim.nodes[node].reclaim_locked))
    }

    /// Page cache of a node that node reclaim can take (`node_pagecache_reclaimable`).
    fn reclaimable_cache(&self, node: usize) -> u64 {
        let (pages, mode) = (&self.stat.pages, self.reclaim.rules.node_reclaim_mode);
        let of = |list: List| pages.node_lru(node, list as usize);
        let cache = match mode & UNMAP {
            0 => (of(List::InactiveFile) + of(List::ActiveFile)).saturating_sub(pages.of(node, NodeItem::Mapped)),
            _ => pages.of(node, NodeItem::FilePages),
        };
        cache.saturating_sub(if mode & WRITE == 0 { pages.of(node, NodeItem::Dirty) } else { 0 })
    }
}

/// A node reclaim under way.
#[derive(Clone, Debug)]
pub(crate) struct NodeReclaim {
    pub node: usize,
    asked: NodeReclaimRequest,
    control: Control,
    pass: NodePass,
}

impl NodeReclaim {
    /// Begins; no other task reclaims the node meanwhile.
    pub(crate) fn new(ctx: &mut TaskCtx<'_>, request: &Request, asked: NodeReclaimRequest) -> NodeReclaim {
        let (node, mode) = (asked.zone / ZONES, ctx.kernel.reclaim.rules.node_reclaim_mode);
        ctx.kernel.reclaim.nodes[node].reclaim_locked = true;
        let mut control = Control::new(Reclaimer::Direct, request.order, request.highest, request.gfp);
        control.nr_to_reclaim = control.nr_to_reclaim.max(1 << request.order);
        control.priority = PRIORITY;
        (control.may_writepage, control.may_unmap) = (mode & WRITE != 0, mode & UNMAP != 0);
        let (gfp, gfp_flags) = ctx.kernel.probe.gfp(request.gfp);
        let event = MmVmscanNodeReclaimBegin { nid: node as i32, order: request.order as i32, gfp_flags };
        let (at, cpu, task) = (ctx.now(), ctx.cpu, ctx.task);
        ctx.kernel.probe.write(at, cpu, task, &event, gfp.as_bytes());
        NodeReclaim { node, asked, control, pass: NodePass::new(node) }
    }

    /// The sleep that it has begun and not left.
    pub(crate) fn throttle(&self) -> Option<Throttle> {
        self.pass.throttle()
    }

    /// Continues. `Done`: the walk may continue.
    pub(crate) fn step(&mut self, ctx: &mut TaskCtx<'_>) -> Poll<()> {
        match self.pass.step(ctx, &mut self.control) {
            Poll::On => return Poll::On,
            Poll::Sleep(until, why) => return Poll::Sleep(until, why),
            Poll::Done(_) => {}
        }
        let enough = self.control.reclaimed >= 1 << self.control.order;
        if !enough && self.control.priority > 0 {
            self.control.priority -= 1;
            self.pass = NodePass::new(self.node);
            return Poll::On;
        }
        ctx.write(&MmVmscanNodeReclaimEnd { nr_reclaimed: self.control.reclaimed });
        if let Some(counts) = &mut ctx.kernel.stat.node_reclaims {
            counts[usize::from(enough)] += 1;
        }
        let reclaim = &mut ctx.kernel.reclaim;
        reclaim.nodes[self.node].reclaim_locked = false;
        if let Some(tried) = reclaim.node_reclaim_history.get_mut(ctx.cpu as usize) {
            tried.note(ctx.task.pid, self.asked);
        }
        Poll::Done(())
    }
}
