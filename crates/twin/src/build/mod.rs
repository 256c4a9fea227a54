//! From a resolved scenario to the plain parameters of the mechanisms.
//!
//! The one place that reads both. Keys of a scenario that no mechanism models are refused here, never ignored.

mod cgroup;
pub(crate) mod check;
mod huge;
mod kernel;
mod machine;
pub mod manifest;
mod numa;
mod policy;
mod refuse;
mod rival;
mod vmalloc;

pub(crate) use cgroup::{cgroup_number, cgroups};
pub use check::check;
pub(crate) use huge::requests as huge_requests;
pub use kernel::rules;
pub(crate) use kernel::{fair_rules, index, writeback};
pub(crate) use machine::{behind_dm_delay, clear_huge_on, disks, fault_costs, heap, request_limits};
pub use machine::{clear_huge, costs, machine, memory, with_zones};
pub use manifest::manifest;
pub use numa::balances;
#[cfg(test)]
pub(crate) use numa::numa_rules;
pub(crate) use numa::{mappings, numa};
pub(crate) use policy::balance;
pub use policy::policy;
pub use rival::are_rivals;
pub(crate) use rival::rival;
pub use vmalloc::{vmalloc, vmalloc_test};

use crate::hw::{MachineError, MemoryError};
use crate::mm::kernel::{Kernel, KernelError};
use crate::probe::Probe;
use mmtwin_event::counters::Iomem;
use mmtwin_scenario::{Machine as SaidMachine, Scenario};

/// Why a scenario cannot be simulated.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum BuildError {
    /// The kernel does not boot on this machine.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The machine is impossible.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// Its memory has no latency or bandwidth.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// The scenario uses a feature that is not modelled.
    #[error("{0}: not modelled; {1}")]
    NotModelled(&'static str, &'static str),
    /// Keys of the scenario that no mechanism reads.
    #[error(transparent)]
    Keys(#[from] mmtwin_scenario::Faults),
    /// Something of the workload is not modelled; the place in the scenario comes first.
    #[error("{0}: not modelled; {1}")]
    NotModelledAt(String, String),
}

/// Boots the scenario's kernel on a machine, its own or one with other zones. Its counters start as if every CPU had
/// run before, each for a different time, by the scenario's seed. Where memory is may be known.
pub fn kernel_of(scenario: &Scenario, (on, iomem): (&SaidMachine, &Iomem), probe: Probe) -> Result<Kernel, BuildError> {
    let mut kernel = Kernel::new(machine(on, iomem)?, costs(on), rules(&scenario.kernel, on.huge_page)?, probe)?;
    if scenario.kernel.sysctl.vm_numa_stat == Some(0) {
        kernel.stat.set_numa_stat(false);
    }
    kernel.probe.set_era(scenario.kernel.events.era());
    kernel.set_writeback(writeback(&scenario.kernel, scenario.machine.swap.is_some()));
    if on.cpu.single_threaded_tcg {
        kernel.share_budget(on.cost.enter_idle.0);
    }
    kernel.set_event_time(on.cost.trace_event.0);
    kernel.set_tick_costs(on.cost.tick.0, on.cost.tick_idle.0);
    kernel.age_counters(scenario.run.seed);
    Ok(kernel)
}
