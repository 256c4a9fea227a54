//! Cgroups with their limits.

use crate::mm::memcg::Cgroup;
use mmtwin_scenario::Scenario;
use mmtwin_scenario::units::Bytes;

/// The root and the scenario's cgroups, in its order.
pub(crate) fn cgroups(scenario: &Scenario) -> Vec<Cgroup> {
    let of = |said: &mmtwin_scenario::workload::Cgroup| {
        let above = said.name.rsplit_once('/').map_or("", |(above, _)| above);
        let memory = &said.memory;
        let pages = |limit: Option<Bytes>| limit.map(|limit| limit.pages());
        Cgroup {
            parent: cgroup_number(scenario, above),
            max: pages(memory.max),
            high: pages(memory.high),
            low: pages(memory.low).unwrap_or(0),
            min: pages(memory.min).unwrap_or(0),
            swap_max: pages(memory.swap.max),
        }
    };
    std::iter::once(Cgroup::default()).chain(scenario.cgroups.iter().map(of)).collect()
}

/// Number of a cgroup by its name; 0, the root, if there is none of that name.
pub(crate) fn cgroup_number(scenario: &Scenario, name: &str) -> usize {
    scenario.cgroups.iter().position(|cgroup| cgroup.name == name).map_or(0, |place| place + 1)
}
