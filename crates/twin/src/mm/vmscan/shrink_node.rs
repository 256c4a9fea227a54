//! Shrinking a node: `shrink_node`, `shrink_node_memcgs`, `should_continue_reclaim` (6.1 to 6.12).
//!
//! Each cgroup below the target is shrunk, its lists first, then its slabs; the pass is repeated while compaction needs
//! more. From 6.12 on a task's pass ends when enough is reclaimed, and the next begins with the next cgroup. Of
//! vmpressure only that a worker is woken: every 512 pages, scanned for the same target. Not modelled: the
//! multi-generational LRU. Checked against guests (docs/fidelity.md).

use super::scan_control::Seen;
use super::scan_count::{counts, prepare};
use super::shrink_lruvec::Pass;
use super::{Control, Poll, Reason, TaskCtx, Throttle, compact_gap};
use crate::frame::{Flag, Pfn, ZONES};
use crate::mm::compaction::Status;
use crate::mm::lru::List;

/// Orders above this are costly (`PAGE_ALLOC_COSTLY_ORDER`).
pub(crate) const COSTLY_ORDER: u32 = 3;

/// Pages that are scanned before their worker is woken (`vmpressure_win`).
const PRESSURE_WINDOW: u64 = 512;

/// A node that is being shrunk.
#[derive(Clone, Debug)]
pub(super) struct NodePass {
    node: usize,
    stage: Stage,
    /// Cgroups of this pass, the target first, and which is next.
    cgroups: Vec<usize>,
    next: usize,
    /// Where the passes of tasks over these cgroups have come to, if they go on from there.
    turn: Option<usize>,
    /// Pages reclaimed and scanned before this pass.
    before: u64,
    scanned_before: u64,
    /// Some pass has reclaimed something.
    reclaimable: bool,
}

#[derive(Clone, Debug)]
enum Stage {
    Prepare,
    Cgroup,
    Lruvec(Pass),
    After,
    Asleep(Throttle),
    Congested,
    Continue,
}

impl NodePass {
    pub(super) fn new(node: usize) -> NodePass {
        NodePass {
            node,
            stage: Stage::Prepare,
            cgroups: Vec::new(),
            next: 0,
            turn: None,
            before: 0,
            scanned_before: 0,
            reclaimable: false,
        }
    }

    /// The sleep that it has begun and not left.
    pub(super) fn throttle(&self) -> Option<Throttle> {
        match self.stage {
            Stage::Asleep(throttle) => Some(throttle),
            Stage::Prepare | Stage::Cgroup | Stage::Lruvec(_) | Stage::After | Stage::Congested | Stage::Continue => {
                None
            }
        }
    }

    /// Continues; at the end, true if pages were reclaimed.
    pub(super) fn step(&mut self, ctx: &mut TaskCtx<'_>, control: &mut Control) -> Poll<bool> {
        match &mut self.stage {
            Stage::Prepare => {
                control.seen = Seen::default();
                (self.before, self.scanned_before) = (control.reclaimed, control.scanned);
                prepare(ctx, control, self.node);
                let reclaim = &mut ctx.kernel.reclaim;
                self.cgroups = reclaim.lru.below(control.target());
                let visited = reclaim.lru.number(self.node, control.target());
                self.turn = (reclaim.rules.rotates && !control.is_kswapd() && !control.full_walk).then_some(visited);
                self.next = self.turn.map_or(0, |turn| reclaim.visited[turn] % self.cgroups.len());
                self.stage = Stage::Cgroup;
            }
            Stage::Cgroup => {
                let Some(&cgroup) = self.cgroups.get(self.next) else {
                    self.stage = Stage::After;
                    return Poll::On;
                };
                self.next += 1;
                self.turn.iter().for_each(|&turn| ctx.kernel.reclaim.visited[turn] = self.next);
                if ctx.kernel.reclaim.spares(control, cgroup) {
                    return Poll::On;
                }
                ctx.spend(ctx.memory.costs.pass);
                let number = ctx.kernel.reclaim.lru.number(self.node, cgroup);
                let counts = counts(ctx, control, (number, cgroup));
                self.stage = Stage::Lruvec(Pass::new(control, number, counts));
            }
            Stage::Lruvec(pass) => {
                if pass.step(ctx, control) == Poll::Done(()) {
                    // The kernel's own caches are the root's.
                    if self.cgroups[self.next - 1] == 0 {
                        ctx.shrink_slab(control, self.node);
                    }
                    let enough = self.turn.is_some() && control.reclaimed >= control.nr_to_reclaim;
                    self.stage = if enough { Stage::After } else { Stage::Cgroup };
                }
            }
            Stage::After => {
                self.reclaimable |= control.reclaimed > self.before;
                ctx.note_pressure(control.target(), control.scanned - self.scanned_before);
                self.stage = Stage::Congested;
                if control.is_kswapd() && self.set_flags(ctx, control) {
                    return self.sleep(ctx, Reason::Writeback);
                }
            }
            Stage::Asleep(throttle) => {
                let throttle = *throttle;
                ctx.unthrottle(throttle);
                self.stage = if throttle.reason == Reason::Congested { Stage::Continue } else { Stage::Congested };
            }
            Stage::Congested => {
                let seen = control.seen;
                if control.is_kswapd() && seen.dirty > 0 && seen.dirty == seen.congested {
                    ctx.kernel.reclaim.nodes[self.node].congested = true;
                }
                self.stage = Stage::Continue;
                if !control.is_kswapd() && ctx.kernel.reclaim.nodes[self.node].congested {
                    return self.sleep(ctx, Reason::Congested);
                }
            }
            Stage::Continue => {
                if self.continues(ctx, control) {
                    self.stage = Stage::Prepare;
                    return Poll::On;
                }
                if self.reclaimable {
                    ctx.kernel.reclaim.nodes[self.node].kswapd_failures = 0;
                }
                return Poll::Done(self.reclaimable);
            }
        }
        Poll::On
    }

    fn sleep(&mut self, ctx: &mut TaskCtx<'_>, reason: Reason) -> Poll<bool> {
        let Some((throttle, until)) = ctx.throttle(self.node, reason) else { return Poll::On };
        self.stage = Stage::Asleep(throttle);
        Poll::Sleep(until, Some((self.node, reason)))
    }

    /// Flags that kswapd sets on a node; true if it has to wait for writeback.
    fn set_flags(&self, ctx: &mut TaskCtx<'_>, control: &Control) -> bool {
        let (seen, node) = (&control.seen, &mut ctx.kernel.reclaim.nodes[self.node]);
        node.writeback |= seen.writeback > 0 && seen.writeback == seen.taken;
        node.dirty |= seen.unqueued_dirty > 0 && seen.unqueued_dirty == seen.file_taken;
        seen.immediate > 0
    }

    /// A request of a high order needs more pages freed, and there are some.
    fn continues(&self, ctx: &mut TaskCtx<'_>, control: &Control) -> bool {
        let high = control.order > COSTLY_ORDER || control.priority < super::DEF_PRIORITY - 2;
        if control.order == 0 || !high || control.reclaimed == self.before {
            return false;
        }
        let by = (ctx.cpu, ctx.task);
        for zone in self.node * ZONES..=self.node * ZONES + control.highest as usize {
            if ctx.kernel.alloc.zones[zone].populated()
                && ctx.kernel.compaction_suitable(by, zone, control.order, control.highest) != Status::Skipped
            {
                return false;
            }
        }
        let reclaim = &ctx.kernel.reclaim;
        let number = reclaim.lru.number(self.node, 0);
        let file = reclaim.lru.pages(number, List::InactiveFile);
        let swap = reclaim.free_swap.is_some_and(|free| free > 0);
        let anon = if swap { reclaim.lru.pages(number, List::InactiveAnon) } else { 0 };
        file + anon > compact_gap(control.order)
    }
}

impl TaskCtx<'_> {
    /// The node of a lruvec.
    pub(super) fn node_of(&self, number: usize) -> usize {
        number / self.kernel.reclaim.lru.number(1, 0)
    }

    /// Counts pages that were scanned for a cgroup; when they are enough a worker is woken to evaluate them.
    fn note_pressure(&mut self, target: usize, scanned: u64) {
        let reclaim = &mut self.kernel.reclaim;
        let noted = &mut reclaim.groups[target].pressure;
        *noted += scanned;
        if *noted >= PRESSURE_WINDOW {
            *noted = 0;
            reclaim.workers.push(self.cpu);
        }
    }

    /// Empties the CPU's batches.
    pub(crate) fn drain(&mut self) {
        let kernel = &mut *self.kernel;
        kernel.lru_add_drain(self.cpu);
    }

    /// Puts pages that reclaim has looked at back on the lists of a lruvec. Those that are active now age what was
    /// evicted, as evictions do (`move_folios_to_lru`, from 5.9 on).
    pub(super) fn put_back_scanned(&mut self, number: usize, pages: Vec<Pfn>) {
        let kernel = &mut *self.kernel;
        if kernel.reclaim.rules.workingset {
            let frames = &kernel.alloc.frames;
            let active = pages.iter().filter(|&&page| frames.has(page, Flag::Active));
            let aged = active.map(|&page| 1 << frames.order(page)).sum();
            kernel.reclaim.lru.age(number, aged);
        }
        self.put_back(pages);
    }

    /// Puts pages that were taken on their lists, the first one first.
    pub(crate) fn put_back(&mut self, pages: Vec<Pfn>) {
        let kernel = &mut *self.kernel;
        for page in pages {
            kernel.reclaim.lru.add(&mut kernel.alloc.frames, &mut kernel.stat.pages, page, false);
        }
    }
}
