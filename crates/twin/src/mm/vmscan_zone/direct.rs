//! A task that finds no memory: `try_to_free_pages`, `do_try_to_free_pages`, `shrink_zones`, and the wait between two
//! tries of `__alloc_pages_slowpath` (2.6.36, 2.6.37).
//!
//! A task that scans much more than it needs has the flusher write as much, and writes itself. Not modelled: the swap token.
//! Checked by tests of [`super`] and `tests/historic_reclaim.rs`.

use super::block::compaction_ready;
use super::congestion_wait::{CONGESTION, Wait};
use super::shrink_zone::Pass;
use crate::mm::vmscan::{BATCH, Control, DEF_PRIORITY, Poll, TaskCtx};
use crate::time::Ps;
use mmtwin_event::vocabulary::{MmVmscanDirectReclaimBegin, MmVmscanDirectReclaimEnd};

/// Parts of a second: a wait within reclaim, and one before the allocator tries again.
const IN_RECLAIM: u64 = 10;
const BETWEEN_TRIES: u64 = 50;
/// Pages scanned after which a reclaim may write.
const MAY_WRITE: u64 = BATCH + BATCH / 2;

/// A task that reclaims.
#[derive(Clone, Debug)]
pub(crate) struct Direct {
    control: Control,
    /// Populated zones that the request may use, in order, and which of them is next.
    zones: Vec<usize>,
    next: usize,
    /// Pages scanned at all priorities.
    total_scanned: u64,
    /// At this priority a zone was left to compaction.
    aborted: bool,
    /// When it began.
    begun: Ps,
    stage: Stage,
}

#[derive(Clone, Debug)]
enum Stage {
    /// It has reclaimed before, and waits first.
    Again,
    BetweenTries(Wait),
    Begin,
    Zones,
    Zone(Pass),
    AfterPriority,
    Waiting(Wait),
    NextPriority,
}

impl Direct {
    /// A task's reclaim, with the zones from which it may reclaim; `again`: earlier reclaim was not enough.
    pub(crate) fn new(ctx: &TaskCtx<'_>, control: Control, mut zones: Vec<usize>, again: bool) -> Direct {
        zones.retain(|&zone| ctx.kernel.alloc.zones[zone].populated());
        let may_writepage = !ctx.kernel.reclaim.rules.laptop_mode;
        let stage = if again { Stage::Again } else { Stage::Begin };
        Direct {
            control: Control { may_writepage, ..control },
            zones,
            next: 0,
            total_scanned: 0,
            aborted: false,
            begun: 0,
            stage,
        }
    }

    /// Continues; at the end, the reclaimed pages, or 1 if not all zones are `all_unreclaimable`.
    pub(crate) fn step(&mut self, ctx: &mut TaskCtx<'_>) -> Poll<u64> {
        match &mut self.stage {
            Stage::Again => {
                self.stage = Stage::Begin;
                if let Some((wait, until)) = ctx.wait_between_tries(BETWEEN_TRIES, self.preferred()) {
                    self.stage = Stage::BetweenTries(wait);
                    return Poll::Sleep(until, CONGESTION);
                }
            }
            Stage::BetweenTries(wait) => {
                ctx.end_wait(*wait);
                self.stage = Stage::Begin;
            }
            Stage::Begin => {
                self.write_begin(ctx);
                ctx.kernel.stat.events.reclaim.allocstall[self.control.highest as usize] += 1;
                self.stage = Stage::Zones;
            }
            Stage::Zones => match self.next_zone(ctx) {
                Some(zone) => self.stage = Stage::Zone(Pass::new(ctx, &self.control, zone)),
                None => self.stage = Stage::AfterPriority,
            },
            Stage::Zone(pass) => match pass.step(ctx, &mut self.control) {
                Poll::On => {}
                Poll::Sleep(until, why) => return Poll::Sleep(until, why),
                Poll::Done(()) => self.stage = Stage::Zones,
            },
            Stage::AfterPriority => return self.after_priority(ctx),
            Stage::Waiting(wait) => {
                ctx.end_wait(*wait);
                self.stage = Stage::NextPriority;
            }
            Stage::NextPriority => {
                if self.control.priority == 0 {
                    return self.end(ctx);
                }
                self.control.priority -= 1;
                (self.control.scanned, self.next, self.aborted) = (0, 0, false);
                self.stage = Stage::Zones;
            }
        }
        Poll::On
    }

    /// The next zone that has not been given up, which only counts after the first priority, and is not left to compaction.
    fn next_zone(&mut self, ctx: &mut TaskCtx<'_>) -> Option<usize> {
        while let Some(&zone) = self.zones.get(self.next) {
            self.next += 1;
            if self.control.priority < DEF_PRIORITY && ctx.is_given_up(zone) {
                continue;
            }
            if compaction_ready(ctx, zone, self.control.order) {
                self.aborted = true;
                continue;
            }
            return Some(zone);
        }
        None
    }

    /// The preferred zone of the request.
    fn preferred(&self) -> usize {
        self.zones.first().copied().unwrap_or(0)
    }

    fn after_priority(&mut self, ctx: &mut TaskCtx<'_>) -> Poll<u64> {
        let reclaimable = |zone: &usize| ctx.kernel.reclaim.reclaimable(&ctx.kernel.stat.pages, *zone);
        let pages = self.zones.iter().map(reclaimable).sum();
        ctx.shrink_caches(&mut self.control, pages);
        let preferred = self.preferred();
        let control = &mut self.control;
        self.total_scanned += control.scanned;
        if control.reclaimed >= control.nr_to_reclaim {
            return self.end(ctx);
        }
        if self.total_scanned > MAY_WRITE {
            control.may_writepage = true;
            match ctx.kernel.reclaim.rules.laptop_mode {
                true => ctx.kernel.writeback.write_all(),
                false => ctx.kernel.writeback.write_some(self.total_scanned),
            }
        }
        self.stage = Stage::NextPriority;
        if control.scanned > 0
            && control.priority < DEF_PRIORITY - 2
            && let Some((wait, until)) = ctx.wait_in_reclaim(IN_RECLAIM, preferred)
        {
            self.stage = Stage::Waiting(wait);
            return Poll::Sleep(until, CONGESTION);
        }
        Poll::On
    }

    fn end(&mut self, ctx: &mut TaskCtx<'_>) -> Poll<u64> {
        let trusts = ctx.decide(|rules| rules.trusts_kswapd);
        let has_hope = |&zone: &usize| if trusts { !ctx.is_given_up(zone) } else { ctx.is_hopeful(zone) };
        let hope = self.aborted || self.zones.iter().any(has_hope);
        if self.control.reclaimed == 0 {
            ctx.spend_fruitless(self.begun);
        }
        let nr_reclaimed = self.control.reclaimed.max(u64::from(hope));
        let (at, task) = (ctx.now(), ctx.task);
        ctx.kernel.probe.write(at, ctx.cpu, task, &MmVmscanDirectReclaimEnd { nr_reclaimed }, b"");
        Poll::Done(nr_reclaimed)
    }

    fn write_begin(&mut self, ctx: &mut TaskCtx<'_>) {
        self.begun = ctx.kernel.clock(ctx.cpu);
        let (gfp, gfp_flags) = ctx.kernel.probe.gfp(self.control.gfp);
        let event = MmVmscanDirectReclaimBegin {
            order: self.control.order as i32,
            may_writepage: Some(self.control.may_writepage.into()),
            gfp_flags,
        };
        let (at, task) = (ctx.now(), ctx.task);
        ctx.kernel.probe.write(at, ctx.cpu, task, &event, gfp.as_bytes());
    }
}
