//! A workload's touches of memory: what they allocate and how long they take.
//!
//! Two readers of the same program. The sampled one ([`sampled`]) takes a thread's rates and draws, once per epoch, how
//! many pages are touched for the first time and which; its cost follows faults, not touches. The explicit one
//! ([`explicit`]) makes every touch; it is what the sampled one is checked against (`tests/access.rs`).

mod binomial;
mod explicit;
mod load;
mod pool;
mod region;
mod sampled;

pub(crate) use load::Load;
pub(crate) use pool::Pool;
pub(crate) use region::{Entry, FaultCosts, Region};

use crate::alloc::{AllocationFailure, Caller};
use crate::clock::Random;
use crate::kernel::{Kernel, Ps};
use mmtwin_workload::program::Touching;

/// Memory and what all accesses share.
#[derive(Debug)]
pub(crate) struct AccessState {
    /// All regions of all processes.
    pub regions: Vec<Region>,
    /// Pools of the phases that run; an ended phase leaves its places empty.
    pub pools: Vec<Option<Pool>>,
    /// Latencies.
    pub load: Load,
    /// What faults cost.
    pub costs: FaultCosts,
    /// First touches.
    pub random: Random,
}

/// A thread's accesses in a phase.
#[derive(Clone, Debug, Default)]
pub(crate) struct Accessor {
    /// By turn.
    pub list: Vec<Accessing>,
    /// Whose turn it is; explicit touches only.
    pub turn: usize,
    /// Touch by touch.
    pub explicit: bool,
}

/// One access of a thread.
#[derive(Clone, Debug)]
pub(crate) struct Accessing {
    /// What it does. Its stream counts the touches.
    pub touching: Touching,
    /// Number of the region among all.
    pub region: usize,
    /// Number of the pool it draws from; `None`: it walks, or is explicit.
    pub pool: Option<usize>,
    /// Faults so far.
    pub faults: u64,
    /// CPU time so far.
    pub time: Ps,
}

/// How far a thread came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Came {
    /// To the end of its time.
    On,
    /// It sleeps until then.
    Asleep(Ps),
    /// All accesses have reached their counts.
    Done,
}

impl Accessing {
    /// Touches that are left; `None`: no end.
    fn left(&self) -> Option<u64> {
        self.touching.count.map(|count| count.saturating_sub(self.touching.stream.count))
    }

    fn active(&self) -> bool {
        self.left() != Some(0)
    }
}

impl Accessor {
    /// Runs a thread on its caller's CPU until a time, or for a touch more.
    pub(crate) fn run(
        &mut self,
        state: &mut AccessState,
        kernel: &mut Kernel,
        caller: &mut Caller,
        until: Ps,
    ) -> Result<Came, AllocationFailure> {
        match self.explicit {
            false => sampled::run(self, state, kernel, caller, until),
            true => explicit::run(self, state, kernel, caller, until),
        }
    }
}
