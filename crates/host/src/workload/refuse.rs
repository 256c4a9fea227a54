//! What a scenario asks for and this machine does not provide, each by name, found before anything starts.
//!
//! A host has to give at least what the scenario needs: its nodes with their CPUs, distances and memory, and enough
//! free memory for the regions. A guest that was made for the scenario has to fit it: no more nodes, CPUs and memory
//! either, and the sysctls it asks for.

use super::floor::{self, Room};
use super::refusal::Refusal;
use super::{Arm, backing, worker};
use mmtwin_event::manifest::{Evidence, Node};
use mmtwin_scenario::Scenario;
use mmtwin_scenario::units::{Bytes, List};
use mmtwin_scenario::workload::{ActionKind, Huge, Policy, Process, RegionKind};
use std::path::Path;

/// What the machine of this evidence does not provide. `directory` is where files would be.
pub fn refusals(scenario: &Scenario, arm: Arm, evidence: &Evidence, directory: &Path) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    topology(scenario, arm, &evidence.nodes, &mut refusals);
    memory(scenario, arm, &mut refusals);
    refusals.extend(backing::refusal(scenario, directory));
    for process in &scenario.processes {
        placement(process, scenario, evidence, &mut refusals);
        actions(process, &mut refusals);
        of_the_twin(process, &mut refusals);
    }
    if arm == Arm::Host {
        refusals.extend(floor::refusals(scenario, room()));
    }
    if arm == Arm::Lab {
        refusals.extend(sysctls(scenario).into_iter().map(|(name, wanted, given)| Refusal::Sysctl {
            name,
            wanted,
            given,
        }));
    }
    refusals
}

fn topology(scenario: &Scenario, arm: Arm, nodes: &[Node], refusals: &mut Vec<Refusal>) {
    let machine = &scenario.machine;
    let given = List::from_iter(nodes.iter().map(|node| node.id));
    if arm == Arm::Lab && nodes.len() > machine.nodes.len() {
        refusals.push(Refusal::MoreNodes { wanted: machine.nodes.len(), given: given.clone() });
    }
    let max = rustix::thread::CpuSet::MAX_CPU as u32;
    refusals.extend((machine.cpus.len() as u32 > max).then_some(Refusal::LargeCpu { cpu: max }));
    for (id, wanted) in (0..).zip(&machine.nodes) {
        let Some(node) = nodes.iter().find(|node| node.id == id) else {
            refusals.push(Refusal::Node { node: id, given: given.clone() });
            continue;
        };
        let has_all = wanted.cpus.iter().all(|cpu| node.cpus.contains(cpu));
        if !has_all || arm == Arm::Lab && wanted.cpus.len() != node.cpus.len() {
            let wanted = wanted.cpus.iter().copied().collect();
            refusals.push(Refusal::Cpus { node: id, wanted, given: node.cpus.iter().copied().collect() });
        }
        let memory = node.memory.unwrap_or(0).saturating_mul(1024);
        if !fits(wanted.memory.0, memory, arm) {
            refusals.push(Refusal::NodeMemory { node: id, wanted: wanted.memory, given: Bytes(memory) });
        }
        // Distances are listed in the order of this machine's nodes.
        for (to, &wanted) in machine.distance[id as usize].iter().enumerate() {
            let at = nodes.iter().position(|node| node.id as usize == to);
            if let Some(&given) = at.and_then(|at| node.distances.get(at))
                && given != wanted
            {
                refusals.push(Refusal::Distance { from: id as usize, to, wanted, given });
            }
        }
    }
}

/// Firmware and kernel take part of a node's memory before it is counted: up to a sixteenth on a host, on which many
/// nodes are large; in a guest, where it can be small, up to half.
fn fits(wanted: u64, given: u64, arm: Arm) -> bool {
    match arm {
        Arm::Host => given >= wanted - wanted / 16,
        Arm::Lab => given <= wanted && given >= wanted / 2 && (given > 0) == (wanted > 0),
    }
}

/// A line of `/proc/meminfo`; 0 if there is none.
fn given(meminfo: &str, name: &str) -> Bytes {
    let value = meminfo.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let kb = value.and_then(|value| value.split_whitespace().next()?.parse::<u64>().ok());
    Bytes(kb.unwrap_or(0).saturating_mul(1024))
}

/// What this machine has.
fn room() -> Room {
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let threads = std::fs::read_to_string("/proc/sys/kernel/threads-max").unwrap_or_default();
    let (memory, available) = (given(&meminfo, "MemTotal").0, given(&meminfo, "MemAvailable").0);
    Room { memory, available, threads: threads.trim().parse().unwrap_or(u64::MAX) }
}

fn memory(scenario: &Scenario, arm: Arm, refusals: &mut Vec<Refusal>) {
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let given = |name: &str| given(&meminfo, name);
    let wanted = scenario.machine.swap.map_or(Bytes(0), |swap| swap.size);
    let swap = given("SwapTotal");
    // The first page of a swap device is its header.
    if swap.0 + 4096 < wanted.0 || arm == Arm::Lab && swap.0 > wanted.0 {
        refusals.push(Refusal::Swap { wanted, given: swap });
    }
    let regions = backing::distinct(scenario);
    let in_memory = regions.iter().filter(|region| region.kind != RegionKind::File && region.huge != Huge::Hugetlb);
    let wanted = Bytes(in_memory.map(|region| region.size.0).sum());
    let free = Bytes(given("MemAvailable").0 + given("SwapFree").0);
    // In a guest a scenario may be about what happens when memory runs out.
    if arm == Arm::Host && wanted.0 > free.0 {
        refusals.push(Refusal::Memory { wanted, given: free });
    }
    let huge = regions.iter().filter(|region| region.huge == Huge::Hugetlb);
    let wanted = huge.map(|region| worker::length(region) / worker::HUGE as u64).sum();
    let free = std::fs::read_to_string("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages");
    let given = free.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0);
    if wanted > given {
        refusals.push(Refusal::HugePages { wanted, given });
    }
}

fn placement(process: &Process, scenario: &Scenario, evidence: &Evidence, refusals: &mut Vec<Refusal>) {
    let name = || process.name.clone();
    let policies = process.regions.iter().flat_map(|region| [&region.policy, &region.populate_policy]).flatten();
    let mut newer = policies.chain([&process.policy]).filter(|policy| match policy {
        Policy::PreferredMany(_) => !since(&evidence.uname.release, (5, 15)),
        Policy::BindBalancing(_) => !since(&evidence.uname.release, (5, 12)),
        _ => false,
    });
    if let Some(policy) = newer.next() {
        let release = evidence.uname.release.clone();
        refusals.push(Refusal::Policy { process: name(), policy: policy.to_string(), release });
    }
    let default = process.regions.iter().filter(|region| region.policy == Some(Policy::Default));
    for region in default.filter(|_| !process.policy.is_default()) {
        let (region, policy) = (region.name.clone(), process.policy.to_string());
        refusals.push(Refusal::DefaultPolicy { process: name(), region, policy });
    }
    if let (Some(node), Some(cpus)) = (process.start_node, &process.cpus)
        && !scenario.machine.nodes[node as usize].cpus.iter().any(|cpu| cpus.contains(*cpu))
    {
        refusals.push(Refusal::StartNode { process: name(), node });
    }
    let wanted = Bytes(process.regions.iter().filter(|region| region.locked).map(worker::length).sum());
    let limit = rustix::process::getrlimit(rustix::process::Resource::Memlock).current;
    if let Some(given) = limit.filter(|limit| wanted.0 > *limit && !rustix::process::geteuid().is_root()) {
        refusals.push(Refusal::Locked { process: name(), wanted, given: Bytes(given) });
    }
}

/// Files that are freed while the process runs, and attempts to get blocks.
fn of_the_twin(process: &Process, refusals: &mut Vec<Refusal>) {
    let temporary = process.regions.iter().filter(|region| region.temporary);
    let temporary = temporary.map(|region| format!("region {} with temporary = true", region.name));
    let sparse = process.regions.iter().filter(|region| region.sparse);
    let sparse = sparse.map(|region| format!("region {} with sparse = true", region.name));
    let divided = process.regions.iter().filter(|region| region.files.is_some());
    let divided = divided.map(|region| format!("region {} with files", region.name));
    // Anonymous memory can be freed, unless it is locked.
    let plain = |name: &str| {
        let mut regions = process.regions.iter();
        regions.any(|of| of.name == name && of.kind == RegionKind::Anon && !of.locked && of.huge != Huge::Hugetlb)
    };
    let accesses = process.phases.iter().flat_map(|phase| &phase.accesses);
    let renewed = accesses
        .filter(|access| access.recycle && !plain(&access.region))
        .map(|access| format!("access to {} with recycle = true", access.region));
    let actions = process.phases.iter().flat_map(|phase| &phase.actions).map(|action| &action.kind);
    let attempts = actions.filter(|kind| matches!(kind, ActionKind::HighOrderAlloc { .. }));
    let attempts = attempts.map(|kind| format!("action {}", worker::name(kind)));
    for what in temporary.chain(sparse).chain(divided).chain(renewed).chain(attempts) {
        let refusal = Refusal::TwinOnly { process: process.name.clone(), what };
        refusals.extend(Some(refusal).filter(|refusal| !refusals.contains(refusal)));
    }
}

/// Actions of a kernel module, and files that cannot be read or written.
fn actions(process: &Process, refusals: &mut Vec<Refusal>) {
    use rustix::fs::{Access, access};
    for action in process.phases.iter().flat_map(|phase| &phase.actions) {
        let (process, name) = (process.name.clone(), worker::name(&action.kind).to_string());
        if worker::needed(&action.kind) {
            let refusal = match worker::access() {
                Ok(()) => continue,
                Err(rustix::io::Errno::NOENT) => Refusal::Module { process, action: name },
                Err(why) => {
                    let (file, why) = (worker::DEVICE.to_string(), why.to_string());
                    Refusal::File { process, action: name, file, why }
                }
            };
            refusals.extend(Some(refusal).filter(|refusal| !refusals.contains(refusal)));
            continue;
        }
        if let ActionKind::ModuleCycle { name: module, .. } = &action.kind
            && worker::find(module).is_none()
        {
            let refusal = Refusal::Cycle { process, module: module.clone() };
            refusals.extend(Some(refusal).filter(|refusal| !refusals.contains(refusal)));
            continue;
        }
        let (paths, how) = match &action.kind {
            ActionKind::Read { file, node, .. } => (worker::files(*file, *node, 1), Access::READ_OK),
            ActionKind::CpuOffline { cpus } | ActionKind::CpuOnline { cpus } => {
                (cpus.numbers().iter().map(|cpu| worker::cpu_online(*cpu)).collect(), Access::WRITE_OK)
            }
            ActionKind::Sysctl { name, .. } => (vec![worker::sysctl(name)], Access::WRITE_OK),
            _ => continue,
        };
        for path in paths {
            if let Err(why) = access(&path, how) {
                let (process, action, file) = (process.clone(), name.clone(), path.display().to_string());
                let refusal = Refusal::File { process, action, file, why: why.to_string() };
                refusals.extend(Some(refusal).filter(|refusal| !refusals.contains(refusal)));
            }
        }
    }
}

/// Sysctls that are not as the scenario has them: name, what it has, and what this machine has.
pub fn sysctls(scenario: &Scenario) -> Vec<(String, String, String)> {
    let Ok(serde_json::Value::Object(wanted)) = serde_json::to_value(&scenario.kernel.sysctl) else {
        return Vec::new();
    };
    let text = |value: &serde_json::Value| match value {
        serde_json::Value::Array(list) => Some(list.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")),
        serde_json::Value::Number(number) => Some(number.to_string()),
        // The kernel computes it.
        _ => None,
    };
    let counts = |(name, _): &(&String, &serde_json::Value)| !scenario.kernel.sysctl.is_replaced(name);
    let differing = wanted.iter().filter(counts).filter_map(|(name, value)| {
        let wanted = text(value)?;
        let given = std::fs::read_to_string(worker::sysctl(name));
        let given = given.map_or("absent".into(), |t| t.split_whitespace().collect::<Vec<_>>().join(" "));
        // Lists have a number per zone of the kernel's configuration, those of the scenario's come first.
        let same = given == wanted || given.strip_prefix(&wanted).is_some_and(|rest| rest.starts_with(' '));
        (!same).then(|| (name.clone(), wanted, given))
    });
    differing.collect()
}

/// A release such as `6.1.0-13-cloud-amd64` is this one or later.
fn since(release: &str, (major, minor): (u32, u32)) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|word| word.parse::<u32>().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (major, minor)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINE: &str = "[machine]\ndistance = [[10, 21], [21, 10]]\n[[machine.node]]\ncpus = \"0-1\"\n\
                           memory = \"1 GiB\"\n[[machine.node]]\ncpus = \"2-3\"\nmemory = \"1 GiB\"\n\
                           [kernel]\nrelease = \"6.1\"\n";

    fn scenario(text: &str) -> Scenario {
        mmtwin_scenario::parse("s", &format!("{MACHINE}{text}"), Path::new(""), &[]).unwrap_or_else(|f| panic!("{f}"))
    }

    fn node(id: u32, cpus: &[u32], memory: u64, distances: &[u32]) -> Node {
        Node { id, cpus: cpus.into(), memory: Some(memory), distances: distances.into(), ..Node::default() }
    }

    fn of_topology(arm: Arm, nodes: &[Node]) -> Vec<String> {
        let mut refusals = Vec::new();
        topology(&scenario(""), arm, nodes, &mut refusals);
        refusals.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_machine_that_fits() {
        let exact = [node(0, &[0, 1], 1 << 20, &[10, 21]), node(1, &[2, 3], 1000 << 10, &[21, 10])];
        assert!(of_topology(Arm::Host, &exact).is_empty() && of_topology(Arm::Lab, &exact).is_empty());
        let more = [node(0, &[0, 1, 4], 2 << 20, &[10, 21, 31]), node(1, &[2, 3], 1 << 20, &[21, 10, 31])];
        assert!(of_topology(Arm::Host, &more).is_empty());
        let expected = [
            "node 0 with CPUs 0-1: this machine has CPUs 0-1,4",
            "node 0 with 1 GiB of memory: this machine has 2 GiB",
        ];
        assert_eq!(of_topology(Arm::Lab, &more), expected);
    }

    #[test]
    fn a_machine_that_does_not() {
        let small = [node(0, &[0], 1 << 19, &[10, 20])];
        let expected = [
            "node 0 with CPUs 0-1: this machine has CPUs 0",
            "node 0 with 1 GiB of memory: this machine has 512 MiB",
            "node 1: this machine has nodes 0",
        ];
        assert_eq!(of_topology(Arm::Host, &small), expected);
        let other = [node(0, &[0, 1], 1 << 20, &[10, 20]), node(1, &[2, 3], 1 << 20, &[21, 10])];
        assert_eq!(of_topology(Arm::Host, &other), ["distance 21 from node 0 to node 1: this machine has 20"]);
    }

    #[test]
    fn work_that_cannot_be_done() {
        let scenario = scenario(
            "[[process]]\nname = \"p\"\npolicy = \"preferred-many:0\"\ncpus = \"0-1\"\nstart_node = 1\n\
             [[process.region]]\nname = \"r\"\nsize = \"1 MiB\"\npolicy = \"default\"\n\
             [[process.phase]]\n[[process.phase.action]]\nkind = \"page-loop\"\ncount = 1\n\
             [[process.phase.action]]\nkind = \"module-cycle\"\nname = \"no_such\"\ncount = 1\n\
             [[process.phase.action]]\nkind = \"cpu-offline\"\ncpus = \"3\"\n",
        );
        let mut evidence = Evidence::default();
        evidence.uname.release = "5.4.0-1".into();
        let mut refusals = Vec::new();
        placement(&scenario.processes[0], &scenario, &evidence, &mut refusals);
        actions(&scenario.processes[0], &mut refusals);
        let all: Vec<String> = refusals.iter().map(ToString::to_string).collect();
        let expected = [
            "policy preferred-many:0 of process p: it needs Linux 5.15, this is 5.4.0-1",
            "region r of process p with policy default: a process that has policy preferred-many:0 uses it there",
            "start on node 1 of process p: none of its CPUs is on that node",
            "action page-loop of process p: it needs the kernel module mmtwin, which is not loaded",
            "module no_such of process p: not available for this kernel, or already loaded",
        ];
        assert_eq!(all[..5], expected);
        assert!(since("5.15.0", (5, 15)) && since("6.1.0-13-amd64", (5, 15)) && !since("", (1, 0)));
    }
}
