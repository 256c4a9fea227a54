//! `memory.high`: a task that has charged pages beyond it reclaims before it continues, and sleeps if that was not
//! enough: `mem_cgroup_handle_over_high`, `reclaim_high` (5.8 to 6.12).
//!
//! The kernel does this on return to user mode; here it is done before the task's next step. Not modelled: that a call
//! which charges more than 64 pages reclaims amid it. Checked by `tests/cgroups.rs`.

use crate::frame::ZoneKind;
use crate::mm::slowpath::Progress;
use crate::mm::vmscan::{BATCH, Control, Direct, MAX_RETRIES, Poll, Reclaimer, TaskCtx, Throttle};
use crate::time::{PS_PER_NS, Ps, Watch};

/// A task that is beyond `memory.high`.
#[derive(Clone, Debug)]
pub(crate) struct High {
    /// Pages that it has charged beyond.
    pages: u64,
    /// Pages to reclaim of each cgroup in this round: all of them, later a batch.
    wanted: u64,
    /// The current cgroup; the root: the pass is over.
    cgroup: usize,
    direct: Option<Direct>,
    /// Reclaimed in this round.
    reclaimed: u64,
    retries: u32,
}

impl High {
    /// The sleep that its reclaim has begun and not left.
    pub(crate) fn throttle(&self) -> Option<Throttle> {
        self.direct.as_ref()?.throttle()
    }

    /// A task of a cgroup has charged pages beyond it.
    pub(crate) fn new(pages: u64, cgroup: usize) -> High {
        High { pages, wanted: pages.max(BATCH), cgroup, direct: None, reclaimed: 0, retries: MAX_RETRIES }
    }
}

/// A task of a cgroup above `memory.high` reclaims until a time; `None` if it is below, or may continue.
pub(crate) fn reclaim(ctx: &mut TaskCtx<'_>, task_high: &mut Option<High>, own: usize, until: Ps) -> Option<Progress> {
    let high = task_high.as_mut()?;
    let mut watch = Watch::within(ctx.clock());
    while ctx.clock() < until && !ctx.kernel.reclaim.has_effects() {
        if !watch.goes_on(ctx.clock()) {
            return Some(Progress::Still);
        }
        if let Some(direct) = &mut high.direct {
            match direct.step(ctx) {
                Poll::On => {}
                Poll::Sleep(until, why) => return Some(Progress::Asleep(until, why)),
                Poll::Done(reclaimed) => {
                    (high.direct, high.reclaimed) = (None, high.reclaimed + reclaimed);
                    high.cgroup = ctx.kernel.reclaim.groups[high.cgroup].config.parent;
                }
            }
            continue;
        }
        if high.cgroup != 0 {
            let group = &ctx.kernel.reclaim.groups[high.cgroup];
            if group.config.high.is_none_or(|limit| group.usage <= limit) {
                high.cgroup = group.config.parent;
                continue;
            }
            ctx.kernel.reclaim.note(high.cgroup, |events| events.high += 1);
            let node = ctx.kernel.machine.node_of(ctx.cpu);
            let zones = ctx.kernel.alloc.zonelist(node).iter().map(|&zone| zone as usize).collect();
            let control = Control::new(Reclaimer::Cgroup(high.cgroup), 0, ZoneKind::Device, "GFP_KERNEL");
            let control = Control { nr_to_reclaim: high.wanted, ..control };
            high.direct = Some(Direct::new(ctx, control, zones));
            continue;
        }
        let (hz, jiffy) = (ctx.kernel.reclaim.rules.hz, ctx.jiffy());
        let delay = ctx.kernel.reclaim.high_delay(own, high.pages);
        if delay <= hz / 100 {
            *task_high = None;
            return None;
        }
        if high.reclaimed > 0 || high.retries > 0 {
            high.retries -= u32::from(high.reclaimed == 0);
            (high.wanted, high.reclaimed, high.cgroup) = (BATCH, 0, own);
            continue;
        }
        *task_high = None;
        return Some(Progress::Asleep((ctx.now() / jiffy + delay) * jiffy * PS_PER_NS, None));
    }
    Some(Progress::On)
}
