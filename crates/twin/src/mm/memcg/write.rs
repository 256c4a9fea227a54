//! Writes to files of a cgroup that reclaim: `memory_max_write`, `memory_high_write`, `memory_reclaim` (5.19 to 6.18).
//!
//! A limit counts at once; the writer reclaims what is above it, and at `memory.max` kills when that does not help.
//! `memory.reclaim` reclaims an amount or as much as it can. Not modelled: signals, arguments of `memory.reclaim`
//! (`swappiness=`), that it wants a quarter of the rest at a time from 6.9 on. Checked by `tests/madvise.rs`; beside a
//! guest with 6.12 (16 of 96 MiB reclaimed, `memory.max` lowered to 48, then walks over 64): pages swapped out 20,571 and
//! 20,533, heap left by the write 12,191 and 12,223 pages, time of the first write 241 and 266 ms, of the second 696 and 636.

use crate::frame::ZoneKind;
use crate::mm::slowpath::Throttled;
use crate::mm::vmscan::{Control, Direct, MAX_RETRIES, Poll, Reclaimer, TaskCtx, Throttle};
use crate::time::{Ps, Watch};

/// The purpose of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// `memory.max` has these pages now.
    Max(u64),
    /// `memory.high` has.
    High(u64),
    /// This many pages are to be reclaimed.
    Reclaim(u64),
}

/// Progress of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Its time is over; it continues.
    On,
    /// It sleeps until then, or until it is woken.
    Asleep(Ps, Throttled),
    /// It is done; false: less was reclaimed than was wanted.
    Done(bool),
    /// A process of the cgroup is to be killed.
    Kill,
    /// It has worked and worked while its clock stood still.
    Still,
}

/// A task that writes to a file of a cgroup.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    cgroup: usize,
    target: Target,
    direct: Option<Direct>,
    drained: bool,
    retries: u32,
    reclaimed: u64,
}

impl Write {
    /// The write begins.
    pub(crate) fn new(cgroup: usize, target: Target) -> Write {
        Write { cgroup, target, direct: None, drained: false, retries: MAX_RETRIES, reclaimed: 0 }
    }

    /// The sleep that its reclaim has begun and not left.
    pub(crate) fn throttle(&self) -> Option<Throttle> {
        self.direct.as_ref()?.throttle()
    }

    /// Continues until a time.
    pub(crate) fn run(&mut self, ctx: &mut TaskCtx<'_>, until: Ps) -> Progress {
        let mut watch = Watch::within(ctx.clock());
        while ctx.clock() < until && !ctx.kernel.reclaim.has_effects() {
            if !watch.goes_on(ctx.clock()) {
                return Progress::Still;
            }
            if let Some(direct) = &mut self.direct {
                match direct.step(ctx) {
                    Poll::On => {}
                    Poll::Sleep(until, why) => return Progress::Asleep(until, why),
                    Poll::Done(reclaimed) => {
                        self.direct = None;
                        self.reclaimed += reclaimed;
                        if reclaimed == 0 && self.retries == 0 {
                            // A limit above it stays without an error.
                            return Progress::Done(!matches!(self.target, Target::Reclaim(_)));
                        }
                        self.retries -= u32::from(reclaimed == 0);
                    }
                }
                continue;
            }
            let usage = ctx.kernel.reclaim.groups[self.cgroup].usage;
            let above = match self.target {
                Target::Max(limit) | Target::High(limit) => usage.saturating_sub(limit),
                Target::Reclaim(wanted) => wanted.saturating_sub(self.reclaimed),
            };
            if above == 0 {
                return Progress::Done(true);
            }
            let is_limit = !matches!(self.target, Target::Reclaim(_));
            if is_limit && !std::mem::replace(&mut self.drained, true) {
                ctx.kernel.reclaim.drain_stocks(self.cgroup);
                continue;
            }
            if matches!(self.target, Target::Max(_)) && self.retries == 0 {
                return Progress::Kill;
            }
            let node = ctx.kernel.machine.node_of(ctx.cpu);
            let zones = ctx.kernel.alloc.zonelist(node).iter().map(|&zone| zone as usize).collect();
            let control = Control::new(Reclaimer::Cgroup(self.cgroup), 0, ZoneKind::Device, "GFP_KERNEL");
            let nr_to_reclaim = above.max(control.nr_to_reclaim);
            self.direct = Some(Direct::new(ctx, Control { nr_to_reclaim, ..control }, zones));
        }
        Progress::On
    }
}
