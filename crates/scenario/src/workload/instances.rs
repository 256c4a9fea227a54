//! Several processes that are alike.

use super::{Nodes, Policy, Process, Sharing};
use crate::machine::Machine;
use crate::units::List;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many processes like one there are, and whether they share the machine's nodes out among themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Instances {
    /// How many. Of several, each has its number from 1 behind its name.
    #[serde(default = "one")]
    pub count: u32,
    /// Instance i of n runs on the CPUs of the i-th of n equal parts of the nodes, with its memory there: that of
    /// single threads by first touch, that of all threads spread evenly. Policies of its regions are ignored then. If
    /// there are more instances than nodes, several share a node.
    #[serde(default)]
    pub bound: bool,
}

fn one() -> u32 {
    1
}

impl Default for Instances {
    fn default() -> Instances {
        Instances { count: 1, bound: false }
    }
}

impl Instances {
    /// One, without placement.
    pub fn is_default(&self) -> bool {
        *self == Instances::default()
    }

    /// Names of the processes.
    pub fn names(&self, name: &str) -> Vec<String> {
        match self.count {
            1 => vec![name.into()],
            count => (1..=count).map(|number| format!("{name}{number}")).collect(),
        }
    }
}

/// All processes, each spelled out.
pub(crate) fn expand(processes: Vec<Process>, machine: &Machine) -> Vec<Process> {
    processes.into_iter().flat_map(|process| each(process, machine)).collect()
}

fn each(process: Process, machine: &Machine) -> Vec<Process> {
    let (instances, all) = (process.instances, machine.nodes.len());
    let plain = Process { instances: Instances::default(), ..process };
    let names = instances.names(&plain.name).into_iter().enumerate();
    let instance = |(number, name): (usize, String)| {
        let mut one = Process { name, ..plain.clone() };
        if instances.bound {
            let count = instances.count as usize;
            let first = number * all / count;
            let nodes = first..((number + 1) * all / count).max(first + 1);
            let cpus = machine.nodes[nodes.clone()].iter().flat_map(|node| node.cpus.iter().copied());
            one.cpus = Some(cpus.collect());
            let nodes: List = nodes.map(|node| node as u32).collect();
            one.policy = Policy::Bind(Nodes::These(nodes.clone()));
            for region in &mut one.regions {
                region.populate_policy = None;
                if region.sharing == Sharing::Shared {
                    region.policy = Some(Policy::Interleave(Nodes::These(nodes.clone())));
                }
            }
        }
        one
    };
    names.map(instance).collect()
}
