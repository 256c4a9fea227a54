//! The workload: names that must exist on the machine and within the scenario, and phases that end.

use super::{madvise, size};
use crate::Scenario;
use crate::check::Check;
use crate::kernel::{CgroupVersion, Sysctl};
use crate::machine::Machine;
use crate::tree::{lookup, suggest};
use crate::units::List;
use crate::workload::{
    Access, Action, ActionKind, Huge, Instances, Phase, Policy, Process, Region, RegionKind, Sharing, Threads, Via,
};
use std::collections::{BTreeMap, BTreeSet};

/// Threads of a process at most.
pub(super) const MAX_THREADS: u32 = 65_535;
/// Instances of a process at most.
pub(super) const MAX_INSTANCES: u32 = 1024;
/// Letters of a task's name (`TASK_COMM_LEN` without its end).
const MAX_COMM: usize = 15;

pub(super) fn check(scenario: &Scenario, check: &mut Check<'_>) {
    if !size::check(scenario, check) {
        // Too many to check each of them.
        return;
    }
    cgroups(scenario, check);
    files(scenario, check);
    let mut names = BTreeSet::new();
    for (i, process) in scenario.processes.iter().enumerate() {
        let at = At { path: format!("process.#{i}"), scenario, process };
        let count = process.instances.count;
        check.require((1..=MAX_INSTANCES).contains(&count), &at.key("instances.count"), || {
            format!("there are 1 to {MAX_INSTANCES} instances of a process")
        });
        let plain = process.name.chars().all(|c| !c.is_whitespace() && !c.is_control());
        let instances = Instances { count: count.clamp(1, MAX_INSTANCES), ..process.instances };
        for name in instances.names(&process.name) {
            check.require((1..=MAX_COMM).contains(&name.len()) && plain, &at.key("name"), || {
                format!("a process's name has 1 to {MAX_COMM} bytes, with the number of its instance, and no blanks")
            });
            check.require(!names.contains(&name), &at.key("name"), || format!("there is another process \"{name}\""));
            names.insert(name);
        }
        let file = process.regions.iter().position(|region| region.file.is_some());
        check.require(count == 1 || file.is_none(), &at.key(&format!("region.#{}.file", file.unwrap_or(0))), || {
            "instances have no file in common: spell the processes out".into()
        });
        let own = [("cpus", process.cpus.is_some()), ("policy", !process.policy.is_default())];
        for (key, _) in own.iter().filter(|(_, given)| process.instances.bound && *given) {
            check.fault(&at.key(key), "where it runs and has its memory follows from `instances.bound`");
        }
        check.require((1..=MAX_THREADS).contains(&process.threads), &at.key("threads"), || {
            format!("a process has 1 to {MAX_THREADS} threads")
        });
        at.placement(check);
        at.regions(check);
        for (j, phase) in process.phases.iter().enumerate() {
            at.phase(j, phase, check);
        }
    }
}

/// cgroups have a parent that precedes them, and limits their version has.
fn cgroups(scenario: &Scenario, check: &mut Check<'_>) {
    let mut known = BTreeSet::from([""]);
    for (i, cgroup) in scenario.cgroups.iter().enumerate() {
        let path = format!("cgroup.#{i}");
        let name = cgroup.name.as_str();
        let parent = name.rfind('/').map(|slash| &name[..slash]);
        let sound = name.split('/').skip(1).all(|part| !part.is_empty() && part != "." && part != "..");
        match parent {
            Some(parent) if name.starts_with('/') && sound => {
                check.require(known.contains(parent), &format!("{path}.name"), || {
                    format!("its parent {parent} is not listed before it")
                });
                check.require(known.insert(name), &format!("{path}.name"), || format!("{name} is listed twice"));
            }
            _ => check.fault(&format!("{path}.name"), "a cgroup's name is a path such as /web"),
        }
        let memory = &cgroup.memory;
        let of_v2 = [("high", memory.high), ("low", memory.low), ("min", memory.min)];
        for (key, _) in of_v2.iter().filter(|(_, limit)| limit.is_some()) {
            check.require(scenario.kernel.cgroup == CgroupVersion::V2, &format!("{path}.memory.{key}"), || {
                format!("memory.{key} is a file of cgroup v2; kernel.cgroup is \"v1\"")
            });
        }
        check.require(memory.max.is_none_or(|max| max.pages() > 0), &format!("{path}.memory.max"), || {
            "a cgroup without memory cannot run anything".into()
        });
    }
}

/// Regions of one file agree on what it is.
fn files(scenario: &Scenario, check: &mut Check<'_>) {
    let mut known: BTreeMap<&str, &Region> = BTreeMap::new();
    for (i, process) in scenario.processes.iter().enumerate() {
        for (j, region) in process.regions.iter().enumerate() {
            let Some(file) = &region.file else { continue };
            let first = known.entry(file).or_insert(region);
            let same = first.kind == region.kind && first.size == region.size;
            check.require(same, &format!("process.#{i}.region.#{j}.file"), || {
                format!("\"{file}\" is {} of {} elsewhere", first.kind, first.size)
            });
        }
    }
}

/// A process with its place.
struct At<'a> {
    path: String,
    scenario: &'a Scenario,
    process: &'a Process,
}

impl At<'_> {
    fn key(&self, key: &str) -> String {
        format!("{}.{key}", self.path)
    }

    fn machine(&self) -> &Machine {
        &self.scenario.machine
    }

    fn placement(&self, check: &mut Check<'_>) {
        let machine = self.machine();
        if let Some(cpus) = &self.process.cpus {
            cpus_exist(cpus, machine, &self.key("cpus"), check);
        }
        policy(&self.process.policy, machine, &self.key("policy"), check);
        if let Some(nid) = self.process.start_node {
            node_exists(nid, machine, &self.key("start_node"), check);
            let without = machine.nodes.get(nid as usize).is_some_and(|node| node.cpus.is_empty());
            check.require(!without, &self.key("start_node"), || format!("node {nid} has no CPUs"));
        }
        if let Some(cgroup) = &self.process.cgroup {
            let known = self.scenario.cgroups.iter().any(|c| c.name == *cgroup);
            check.require(known || cgroup == "/", &self.key("cgroup"), || format!("there is no cgroup {cgroup}"));
        }
    }

    fn regions(&self, check: &mut Check<'_>) {
        let mut names = BTreeSet::new();
        for (i, region) in self.process.regions.iter().enumerate() {
            let path = self.key(&format!("region.#{i}"));
            check.require(names.insert(&region.name) && !region.name.is_empty(), &format!("{path}.name"), || {
                "each region of a process has a name of its own".into()
            });
            check.require(region.size.pages() > 0, &format!("{path}.size"), || "a region has at least a page".into());
            let addressable = region.size.0 <= 1 << 47;
            check.require(addressable, &format!("{path}.size"), || "a process can address 128 TiB".into());
            check.require(region.file.is_none() || region.kind != RegionKind::Anon, &format!("{path}.file"), || {
                "anonymous memory has no file: kind \"file\" or \"shmem\" has".into()
            });
            check.require(!region.sparse || region.kind == RegionKind::File, &format!("{path}.sparse"), || {
                "only a file has holes".into()
            });
            let fits = |files: u64| region.kind == RegionKind::File && (1..=region.size.pages()).contains(&files);
            check.require(region.files.is_none_or(fits), &format!("{path}.files"), || {
                "a region of kind \"file\" has one file at least, and no more than pages".into()
            });
            check.require(!region.temporary || region.kind == RegionKind::File, &format!("{path}.temporary"), || {
                "only a file is deleted".into()
            });
            check.require(
                region.huge != Huge::Hugetlb || region.kind != RegionKind::File,
                &format!("{path}.huge"),
                || "files have no reserved huge pages".into(),
            );
            if let Some(own) = &region.policy {
                policy(own, self.machine(), &format!("{path}.policy"), check);
            }
            if let Some(first) = &region.populate_policy {
                let path = format!("{path}.populate_policy");
                policy(first, self.machine(), &path, check);
                check.require(region.populate, &path, || "the region has no `populate = true`".into());
                check.require(region.policy.is_none() && region.kind != RegionKind::File, &path, || {
                    "only of memory without a `policy` of its own, which is always followed, and without a file".into()
                });
            }
        }
    }

    fn phase(&self, number: usize, phase: &Phase, check: &mut Check<'_>) {
        let path = self.key(&format!("phase.#{number}"));
        for (i, access) in phase.accesses.iter().enumerate() {
            let path = format!("{path}.access.#{i}");
            let region = self.process.regions.iter().find(|region| region.name == access.region);
            check.require(region.is_some(), &format!("{path}.region"), || {
                format!("process \"{}\" has no region \"{}\"", self.process.name, access.region)
            });
            let of_file = region.is_none_or(|region| region.kind != RegionKind::Anon);
            check.require(access.via != Via::Syscall || of_file, &format!("{path}.via"), || {
                "anonymous memory cannot be read and written by system calls".into()
            });
            self.threads(&access.threads, &path, check);
            self.renewal(access, &path, check);
            let shares = |(other, of): (usize, &Access)| {
                other != i
                    && access.threads.numbers(self.process.threads).iter().any(|&thread| of.threads.contain(thread))
            };
            let alone = access.arrival.is_none() || !phase.accesses.iter().enumerate().any(shares);
            check.require(alone, &format!("{path}.arrival"), || {
                "a thread whose accesses arrive has no other access in the phase: give that one other `threads`".into()
            });
        }
        for (i, action) in phase.actions.iter().enumerate() {
            let path = format!("{path}.action.#{i}");
            self.threads(&action.threads, &path, check);
            self.action(action, &path, check);
        }
        check.require(phase.duration.is_none_or(|d| d.0 > 0), &format!("{path}.duration"), || {
            "a phase lasts longer than 0".into()
        });
        let endless = phase.accesses.iter().any(|access| access.count.is_none())
            || phase.actions.iter().any(|action| is_endless(&action.kind));
        let last = number + 1 == self.process.phases.len();
        let ends = phase.duration.is_some() || !endless || last && self.scenario.run.duration.is_some();
        check.require(ends, &path, || {
            "the phase never ends: give it a `duration`, or a `count` to everything in it".into()
        });
        let empty = phase.accesses.is_empty() && phase.actions.is_empty() && phase.duration.is_none();
        check.require(!empty, &path, || "the phase has nothing to do and no `duration`".into());
    }

    /// Pages that are freed are those of one thread.
    fn renewal(&self, access: &Access, path: &str, check: &mut Check<'_>) {
        let Some(region) = self.process.regions.iter().find(|region| region.name == access.region) else { return };
        let private = access.sharing.unwrap_or(region.sharing) == Sharing::Private || self.process.threads == 1;
        check.require(!access.recycle || private && region.file.is_none(), &format!("{path}.recycle"), || {
            "only memory or a file that one thread alone uses is freed".into()
        });
    }

    fn threads(&self, threads: &Threads, path: &str, check: &mut Check<'_>) {
        if let Threads::These(list) = threads {
            let last = list.numbers().last();
            check.require(last.is_some(), &format!("{path}.threads"), || "no thread is listed".into());
            check.require(last.is_none_or(|last| *last < self.process.threads), &format!("{path}.threads"), || {
                format!("process \"{}\" has {} threads, numbered from 0", self.process.name, self.process.threads)
            });
        }
    }

    fn action(&self, action: &Action, path: &str, check: &mut Check<'_>) {
        let machine = self.machine();
        let kind = &action.kind;
        match kind {
            ActionKind::PageLoop { node, policy: own, .. } | ActionKind::PageHog { node, policy: own, .. } => {
                if let Some(nid) = node {
                    node_exists(*nid, machine, &format!("{path}.node"), check);
                }
                if let Some(own) = own {
                    policy(own, machine, &format!("{path}.policy"), check);
                }
            }
            ActionKind::Read { node: Some(nid), .. } => {
                node_exists(*nid, machine, &format!("{path}.node"), check);
            }
            ActionKind::CpuOffline { cpus } | ActionKind::CpuOnline { cpus } => {
                let path = format!("{path}.cpus");
                cpus_exist(cpus, machine, &path, check);
                let all = matches!(kind, ActionKind::CpuOffline { .. }) && cpus.len() >= machine.cpus.len();
                check.require(!all, &path, || "at least one CPU stays online".into());
            }
            ActionKind::Sysctl { name, value } => {
                // The tree has the sysctls of the bundle and no others.
                let known = lookup(check.tree, &format!("kernel.sysctl.{name}")).is_some();
                if !known && !Sysctl::EVERYWHERE.contains(&name.as_str()) {
                    let near = suggest(name, Sysctl::NAMES.iter().copied()).filter(|near| near != name);
                    let help = near.map(|word| format!("did you mean \"{word}\"?"));
                    let message = format!("kernel {} has no sysctl {name}", self.scenario.kernel.release);
                    check.fault_help(&format!("{path}.name"), message, help);
                }
                let path = format!("{path}.value");
                check.require(i64::try_from(*value).is_ok(), &path, || "at most 63 bits".into());
                super::kernel::sysctl(&self.scenario.kernel, machine, name, Some(*value), &path, check);
                // That is their value while the percentage applies, and the kernel refuses a write of it.
                let off = *value == 0 && Sysctl::EVERYWHERE.contains(&name.as_str());
                check.require(!off, &path, || {
                    format!("{name} is not written as 0: writing {} has that effect", name.replace("bytes", "ratio"))
                });
            }
            ActionKind::Discard { region, how, .. } => {
                let threads = action.threads.numbers(self.process.threads).len();
                madvise::discard(self.scenario, self.process, (region, *how, threads), path, check);
            }
            ActionKind::CgroupLimit { cgroup, .. } => madvise::cgroup(self.scenario, cgroup, None, path, check),
            ActionKind::MemoryReclaim { cgroup, size } => {
                madvise::cgroup(self.scenario, cgroup, Some(*size), path, check);
            }
            _ => {}
        }
    }
}

/// True if an action ends only with its phase.
fn is_endless(action: &ActionKind) -> bool {
    match action {
        ActionKind::PageLoop { count, .. }
        | ActionKind::PageHog { count, .. }
        | ActionKind::Read { count, .. }
        | ActionKind::ModuleCycle { count, .. }
        | ActionKind::Lookup { count } => count.is_none(),
        _ => false,
    }
}

fn cpus_exist(cpus: &List, machine: &Machine, path: &str, check: &mut Check<'_>) {
    let last = cpus.numbers().last();
    check.require(last.is_some(), path, || "no CPU is listed".into());
    check.require(last.is_none_or(|last| (*last as usize) < machine.cpus.len()), path, || {
        format!("the machine's CPUs are 0 to {}", machine.cpus.len() - 1)
    });
}

fn node_exists(nid: u32, machine: &Machine, path: &str, check: &mut Check<'_>) {
    check.require((nid as usize) < machine.nodes.len(), path, || {
        format!("there is no node {nid}: the machine's nodes are 0 to {}", machine.nodes.len() - 1)
    });
}

/// The nodes of a policy exist, and one of them at least has memory.
fn policy(policy: &Policy, machine: &Machine, path: &str, check: &mut Check<'_>) {
    let Some(nodes) = policy.listed() else { return };
    if let Some(missing) = nodes.numbers().iter().find(|nid| **nid as usize >= machine.nodes.len()) {
        return node_exists(*missing, machine, path, check);
    }
    let memory = nodes.numbers().iter().any(|nid| machine.nodes[*nid as usize].memory.0 > 0);
    check.require(memory, path, || format!("none of the nodes of \"{policy}\" has memory"));
}
