//! Memory policies.

use super::BuildError;
use crate::mm::prot_numa::Balance;
use crate::page_alloc::{NodeMask, Policy};
use mmtwin_scenario::Machine;
use mmtwin_scenario::workload::{Nodes, Policy as Say};

/// Permissions of NUMA balancing on memory of this policy.
pub(crate) fn balance(said: &Say, machine: &Machine) -> Balance {
    match said {
        Say::Default => Balance::Anywhere,
        Say::BindBalancing(nodes) => Balance::Within(mask(nodes, machine)),
        Say::Local | Say::Bind(_) | Say::Preferred(_) | Say::Interleave(_) | Say::PreferredMany(_) => Balance::Never,
    }
}

fn mask(nodes: &Nodes, machine: &Machine) -> NodeMask {
    match nodes {
        Nodes::All => {
            let with_memory = machine.nodes.iter().enumerate().filter(|(_, node)| !node.zones.is_empty());
            NodeMask::of(with_memory.map(|(nid, _)| nid))
        }
        Nodes::These(list) => NodeMask::of(list.numbers().iter().map(|&nid| nid as usize)),
    }
}

/// The allocator's form of a policy on a machine. `all` is every node with memory.
pub fn policy(said: &Say, machine: &Machine) -> Result<Policy, BuildError> {
    let mask = |nodes: &Nodes| mask(nodes, machine);
    Ok(match said {
        // The two differ only in what NUMA balancing may do afterwards.
        Say::Default | Say::Local => Policy::Default,
        Say::Bind(nodes) | Say::BindBalancing(nodes) => Policy::Bind(mask(nodes)),
        Say::Preferred(nid) => Policy::Preferred(*nid as usize),
        Say::Interleave(nodes) => Policy::Interleave(mask(nodes)),
        Say::PreferredMany(_) => {
            return Err(BuildError::NotModelled("policy preferred-many", "`preferred` takes one node"));
        }
    })
}
