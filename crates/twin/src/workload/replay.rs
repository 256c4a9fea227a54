//! Accesses of an access trace: each at its time, or as soon after it as its thread can.

use super::accessor::{AccessProgress, Accessor};
use super::explicit;
use crate::mm::kernel::Kernel;
use crate::mm::memory::AccessState;
use crate::page_alloc::{AllocationFailure, Caller};
use crate::time::{Ns, PS_PER_NS, Ps};
use mmtwin_scenario::program::Access as Touch;
use std::sync::Arc;

/// An access of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// Time since the start of the run.
    pub at: Ns,
    /// Page of a region of the process, by its place in the accessor's list.
    pub page: u32,
    pub region: u16,
    pub write: bool,
}

/// Replay of a thread.
#[derive(Clone, Debug)]
pub(crate) struct Replay {
    steps: Arc<Vec<Step>>,
    /// When the run began.
    begin: Ns,
    /// Steps that were made, and how much too late at most.
    pub made: usize,
    pub late: Ps,
}

impl Replay {
    pub(crate) fn new(steps: Arc<Vec<Step>>, begin: Ns) -> Replay {
        Replay { steps, begin, made: 0, late: 0 }
    }
}

/// Makes the accesses that are due before a time.
pub(super) fn run(
    (accessor, replay): (&mut Accessor, &mut Replay),
    state: &mut AccessState,
    kernel: &mut Kernel,
    caller: &mut Caller,
    until: Ps,
) -> Result<AccessProgress, AllocationFailure> {
    let cpu = caller.cpu;
    while kernel.clock(cpu) < until && !kernel.has_effects() {
        if let Some(until) = kernel.go_on_writing(caller) {
            return Ok(AccessProgress::Asleep(until * PS_PER_NS));
        }
        let Some(step) = replay.steps.get(replay.made) else { return Ok(AccessProgress::Done) };
        let at = replay.begin.saturating_add(step.at).saturating_mul(PS_PER_NS);
        let late = kernel.clock(cpu).saturating_sub(at);
        if kernel.clock(cpu) < at {
            return Ok(AccessProgress::Asleep(at));
        }
        let access = &mut accessor.list[usize::from(step.region)];
        let touch = Touch { page: step.page.into(), write: step.write };
        access.begin(kernel.clock(cpu));
        if let Some(instead) = explicit::touch(access, state, kernel, caller, touch)? {
            return Ok(instead);
        }
        access.end(kernel, cpu, &state.costs);
        access.plan.stream.count += 1;
        (replay.made, replay.late) = (replay.made + 1, replay.late.max(late));
        if let Some(until) = explicit::after(access, state, kernel, caller, touch) {
            return Ok(AccessProgress::Asleep(until));
        }
    }
    Ok(if replay.made < replay.steps.len() { AccessProgress::On } else { AccessProgress::Done })
}
