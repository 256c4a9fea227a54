//! A task that finds no memory: `try_to_free_pages`, `do_try_to_free_pages`, `shrink_zones`, and the wait between two
//! tries of `__alloc_pages_slowpath` (2.6.36, 2.6.37).
//!
//! Left out: flusher threads, which it wakes when it scans much more than it needs; the swap token. Checked by tests of
//! [`super`] and `tests/historic_reclaim.rs`.

use super::wait::Wait;
use super::zone::Pass;
use crate::reclaim::{BATCH, Control, DEF_PRIORITY, Poll, World};
use mmtwin_event::value::{Bytes, Gfp};
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
    stage: Stage,
}

#[derive(Clone, Copy, Debug)]
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
    /// A task's reclaim, with the zones that it may take pages of; `again`: what it has reclaimed before was not enough.
    pub(crate) fn new(world: &World<'_>, control: Control, mut zones: Vec<usize>, again: bool) -> Direct {
        zones.retain(|&zone| world.kernel.alloc.zones[zone].populated());
        let may_writepage = !world.kernel.reclaim.rules.laptop_mode;
        let stage = if again { Stage::Again } else { Stage::Begin };
        Direct { control: Control { may_writepage, ..control }, zones, next: 0, total_scanned: 0, stage }
    }

    /// Goes on; at the end, the pages that were reclaimed, or 1 if there is hope yet.
    pub(crate) fn step(&mut self, world: &mut World<'_>) -> Poll<u64> {
        match &mut self.stage {
            Stage::Again => {
                self.stage = Stage::Begin;
                if let Some((wait, until)) = world.task_waits(BETWEEN_TRIES) {
                    self.stage = Stage::BetweenTries(wait);
                    return Poll::Sleep(until, None);
                }
            }
            Stage::BetweenTries(wait) => {
                world.end_wait(*wait);
                self.stage = Stage::Begin;
            }
            Stage::Begin => {
                self.write_begin(world);
                world.kernel.stat.events.reclaim.allocstall[self.control.highest as usize] += 1;
                self.stage = Stage::Zones;
            }
            Stage::Zones => match self.next_zone(world) {
                Some(zone) => self.stage = Stage::Zone(Pass::new(world, &self.control, zone)),
                None => self.stage = Stage::AfterPriority,
            },
            Stage::Zone(pass) => {
                if pass.step(world, &mut self.control) == Poll::Done(()) {
                    self.stage = Stage::Zones;
                }
            }
            Stage::AfterPriority => return self.after_priority(world),
            Stage::Waiting(wait) => {
                world.end_wait(*wait);
                self.stage = Stage::NextPriority;
            }
            Stage::NextPriority => {
                if self.control.priority == 0 {
                    return self.end(world);
                }
                self.control.priority -= 1;
                (self.control.scanned, self.next) = (0, 0);
                self.stage = Stage::Zones;
            }
        }
        Poll::On
    }

    /// The next zone that has not been given up, which only counts after the first priority.
    fn next_zone(&mut self, world: &mut World<'_>) -> Option<usize> {
        while let Some(&zone) = self.zones.get(self.next) {
            self.next += 1;
            if self.control.priority == DEF_PRIORITY || !world.is_given_up(zone) {
                return Some(zone);
            }
        }
        None
    }

    fn after_priority(&mut self, world: &mut World<'_>) -> Poll<u64> {
        let reclaimable = |zone: &usize| world.kernel.reclaim.reclaimable(&world.kernel.stat.pages, *zone);
        let pages = self.zones.iter().map(reclaimable).sum();
        world.shrink_caches(&self.control, pages);
        let control = &mut self.control;
        self.total_scanned += control.scanned;
        if control.reclaimed >= control.nr_to_reclaim {
            return self.end(world);
        }
        control.may_writepage |= self.total_scanned > MAY_WRITE;
        self.stage = Stage::NextPriority;
        if control.scanned > 0
            && control.priority < DEF_PRIORITY - 2
            && let Some((wait, until)) = world.task_waits(IN_RECLAIM)
        {
            self.stage = Stage::Waiting(wait);
            return Poll::Sleep(until, None);
        }
        Poll::On
    }

    fn end(&mut self, world: &mut World<'_>) -> Poll<u64> {
        let hope = self.zones.iter().any(|&zone| world.is_hopeful(zone));
        let nr_reclaimed = self.control.reclaimed.max(u64::from(hope));
        let (at, task) = (world.now(), world.task);
        world.kernel.probe.write(at, world.cpu, task, &MmVmscanDirectReclaimEnd { nr_reclaimed }, b"");
        Poll::Done(nr_reclaimed)
    }

    fn write_begin(&self, world: &mut World<'_>) {
        // Single flags had no underscores then, and kernel memory was not accounted.
        let gfp = self.control.gfp.replace("__GFP_", "GFP_").replace("GFP_KERNEL_ACCOUNT", "GFP_KERNEL");
        let event = MmVmscanDirectReclaimBegin {
            order: self.control.order as i32,
            may_writepage: Some(self.control.may_writepage.into()),
            gfp_flags: Gfp(Bytes { start: 0, len: gfp.len() as u32 }.to_slot()),
        };
        let (at, task) = (world.now(), world.task);
        world.kernel.probe.write(at, world.cpu, task, &event, gfp.as_bytes());
    }
}
