//! Machine and kernel in the manifest of the twin's recordings.

use mmtwin_event::manifest::{Evidence, Manifest, Node, SCHEMA_VERSION, Sampling, Uname};
use mmtwin_scenario::Scenario;
use std::collections::BTreeMap;

/// The manifest of a run of a scenario by `tool`. Nothing in it depends on the machine it runs on.
pub fn manifest(scenario: &Scenario, tool: &str) -> Manifest {
    let (machine, kernel) = (&scenario.machine, &scenario.kernel);
    let node = |(id, node): (u32, &mmtwin_scenario::machine::Node)| Node {
        id,
        cpus: node.cpus.clone(),
        memory: Some(node.memory.0 >> 10),
        distances: machine.distance[id as usize].clone(),
        tier: None,
        access: BTreeMap::new(),
    };
    let (sysname, release, version) = ("Linux".into(), kernel.version.clone(), "simulated".into());
    let scenario_json = scenario.to_json();
    Manifest {
        schema_version: SCHEMA_VERSION,
        arm: "twin".into(),
        tool: tool.into(),
        clock: "mono".into(),
        start: 0,
        counters: Sampling {
            interval: (scenario.run.sample.0 > 0).then_some(scenario.run.sample.0),
            cgroups: scenario.cgroups.iter().map(|cgroup| cgroup.name.clone()).collect(),
            ..Sampling::default()
        },
        evidence: Evidence {
            uname: Uname { sysname, release, version, machine: "x86_64".into() },
            memory: Some(machine.memory_bytes() >> 10),
            nodes: (0..).zip(&machine.nodes).map(node).collect(),
            cpus: (0..machine.cpus.len() as u32).collect(),
            vm: Some(machine.name.clone()),
            ..Evidence::default()
        },
        scenario: Some(scenario_json),
        scenario_hash: Some(scenario.hash()),
        ..Manifest::default()
    }
}
