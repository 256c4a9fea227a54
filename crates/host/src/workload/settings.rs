//! What a run changes of the machine, put back when it ends, however it does: cgroups, and what actions set.

use super::Arm;
use super::refusal::Refusal;
use super::worker;
use crate::cgroup::{Mount, Version, mounts};
use crate::restore::{Change, Changes};
use crate::{Error, restore, tracefs};
use mmtwin_scenario::kernel::{CgroupVersion, EXCLUSIVE};
use mmtwin_scenario::workload::{ActionKind, Cgroup};
use mmtwin_scenario::{Scenario, units::Bytes};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// How much the out-of-memory killer prefers this process: -1000 is not at all.
const OOM_SCORE: &str = "/proc/self/oom_score_adj";

/// Removes and puts back when dropped.
#[derive(Debug, Default)]
pub struct Settings {
    changes: Changes,
    /// Score of this process before the run.
    oom_score: Option<String>,
    /// Name and directory of the cgroups that were made, parents first.
    cgroups: Vec<(String, PathBuf)>,
}

impl Settings {
    /// Notes what the scenario's actions will change and makes its cgroups.
    pub fn make(scenario: &Scenario, arm: Arm) -> Result<Settings, Error> {
        let mut settings = Settings::default();
        // A guest ends with its run.
        if arm == Arm::Host {
            settings.changes = Changes::guarded()?;
        }
        // Where memory runs out, a worker is to be killed and not the recorder. Without the right to it chance decides.
        settings.oom_score = fs::read_to_string(OOM_SCORE).ok();
        let _ = fs::write(OOM_SCORE, "-1000");
        let phases = scenario.processes.iter().flat_map(|process| &process.phases);
        let actions = phases.flat_map(|phase| &phase.actions);
        for change in changes(actions.map(|action| &action.kind)) {
            settings.note(change)?;
        }
        if let Some(mount) = memory_mount(scenario).filter(|_| !scenario.cgroups.is_empty()) {
            for cgroup in &scenario.cgroups {
                settings.make_cgroup(cgroup, &mount)?;
            }
        }
        Ok(settings)
    }

    /// Notes a change that is about to be made.
    pub fn note(&mut self, change: Change) -> Result<(), Error> {
        self.changes.note(change)
    }

    /// Notes a file that is about to be made, and is removed soon afterwards.
    pub fn temporary(&mut self, path: &Path) -> Result<(), Error> {
        let path = std::path::absolute(path).map_err(|e| Error::io(path.display().to_string(), e))?;
        self.note(Change::Temporary { path })
    }

    /// Notes a process of the workload.
    pub fn started(&mut self, pid: u32) -> Result<(), Error> {
        // In a guest every look at `/proc` would be part of what is measured.
        match self.changes.is_guarded().then(|| restore::start_of(pid)).flatten() {
            Some(start) => self.note(Change::Worker { pid, start }),
            None => Ok(()),
        }
    }

    /// Puts everything back. Returns what could not be put back, in words for the user.
    pub fn put_back(&mut self) -> Vec<String> {
        let left = self.changes.undo();
        if let Some(score) = self.oom_score.take() {
            let _ = fs::write(OOM_SCORE, score);
        }
        left
    }

    /// Names and directories of the cgroups.
    pub fn cgroups(&self) -> &[(String, PathBuf)] {
        &self.cgroups
    }

    /// The file to write a pid into for it to be in a cgroup; `None` for the root, where it is.
    pub fn procs(&self, cgroup: Option<&str>) -> Option<PathBuf> {
        let (_, directory) = self.cgroups.iter().find(|(name, _)| Some(name.as_str()) == cgroup)?;
        Some(directory.join("cgroup.procs"))
    }

    fn make_cgroup(&mut self, cgroup: &Cgroup, mount: &Mount) -> Result<(), Error> {
        let directory = below(mount, &cgroup.name);
        let fail = |path: &Path, e| Error::io(path.display().to_string(), e);
        if let (Version::V2, Some(parent)) = (mount.version, directory.parent()) {
            let control = parent.join("cgroup.subtree_control");
            if self.changes.is_guarded() {
                let given = fs::read_to_string(&control).map_err(|e| fail(&control, e))?;
                if !given.split_whitespace().any(|controller| controller == "memory") {
                    self.note(Change::Controller { file: control.clone() })?;
                }
            }
            fs::write(&control, "+memory").map_err(|e| fail(&control, e))?;
        }
        self.note(Change::Cgroup { directory: directory.clone(), inode: None })?;
        fs::create_dir(&directory).map_err(|e| fail(&directory, e))?;
        self.note(Change::Cgroup { directory: directory.clone(), inode: restore::inode(&directory) })?;
        self.cgroups.push((cgroup.name.clone(), directory.clone()));
        for (file, limit) in limits(cgroup, mount.version) {
            let path = directory.join(file);
            fs::write(&path, limit.to_string()).map_err(|e| fail(&path, e))?;
        }
        Ok(())
    }
}

impl Drop for Settings {
    fn drop(&mut self) {
        self.put_back();
    }
}

/// What actions will change, each file once.
fn changes<'a>(actions: impl Iterator<Item = &'a ActionKind>) -> Vec<Change> {
    let mut sysctls: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    let (mut cpus, mut modules, mut traces) = (BTreeSet::new(), BTreeSet::new(), false);
    for action in actions {
        match action {
            ActionKind::Sysctl { name, value } => sysctls.entry(name).or_default().push(*value),
            ActionKind::CpuOffline { cpus: list } | ActionKind::CpuOnline { cpus: list } => cpus.extend(list.numbers()),
            ActionKind::VmallocTest { .. } => traces = true,
            ActionKind::ModuleCycle { name, .. } => {
                traces = true;
                modules.insert(name.clone());
            }
            _ => {}
        }
    }
    let mut changes: Vec<Change> = modules.into_iter().map(|name| Change::Module { name }).collect();
    changes.extend(traces.then(tracer).flatten());
    changes.extend(cpus.iter().filter_map(|cpu| value(worker::cpu_online(*cpu), vec![0, 1])));
    for names in EXCLUSIVE {
        let set = names.map(|name| sysctls.remove(name).unwrap_or_default());
        if set.iter().any(|set| !set.is_empty()) {
            let files = names.map(worker::sysctl);
            let number = |file: &PathBuf| fs::read_to_string(file).ok()?.trim().parse().ok();
            if let [Some(first), Some(second)] = files.each_ref().map(number) {
                changes.push(Change::Pair { files, before: [first, second], set });
            }
        }
    }
    changes.extend(sysctls.into_iter().filter_map(|(name, set)| value(worker::sysctl(name), set)));
    changes
}

/// What is in a file; `None`: there is nothing to put back.
fn value(file: PathBuf, set: Vec<u64>) -> Option<Change> {
    let before = fs::read_to_string(&file).ok()?;
    Some(Change::Value { file, before, set })
}

/// The machine's tracer, unless somebody uses it: then no purge is timed.
fn tracer() -> Option<Change> {
    let tracefs = tracefs::find().ok()?;
    let read = |file: &str| fs::read_to_string(tracefs.join(file)).ok();
    if read("current_tracer")?.trim() != "nop" {
        return None;
    }
    let (buffer, on) = (worker::buffer_size(&read("buffer_size_kb")?), read("tracing_on")?.trim().to_string());
    Some(Change::Tracer { tracefs, buffer, on })
}

/// Files of a cgroup's limits and their values in bytes.
fn limits(cgroup: &Cgroup, version: Version) -> Vec<(&'static str, u64)> {
    let memory = &cgroup.memory;
    let files = match version {
        Version::V2 => [
            ("memory.max", memory.max),
            ("memory.high", memory.high),
            ("memory.low", memory.low),
            ("memory.min", memory.min),
            ("memory.swap.max", memory.swap.max),
        ],
        Version::V1 => {
            // Version 1 limits memory and swap together.
            let both = memory.max.zip(memory.swap.max).map(|(max, swap)| Bytes(max.0.saturating_add(swap.0)));
            let none = ("", None);
            [("memory.limit_in_bytes", memory.max), ("memory.memsw.limit_in_bytes", both), none, none, none]
        }
    };
    files.into_iter().filter_map(|(file, limit)| Some((file, limit?.0))).collect()
}

fn below(mount: &Mount, name: &str) -> PathBuf {
    mount.path.join(name.trim_start_matches('/'))
}

/// Where the memory controller of the scenario's version of cgroups is.
fn memory_mount(scenario: &Scenario) -> Option<Mount> {
    mounts().into_iter().find(|mount| match (scenario.kernel.cgroup, mount.version) {
        (CgroupVersion::V1, Version::V1) => true,
        (CgroupVersion::V2, Version::V2) => fs::read_to_string(mount.path.join("cgroup.controllers"))
            .is_ok_and(|text| text.split_whitespace().any(|controller| controller == "memory")),
        _ => false,
    })
}

/// Why cgroups are not available.
pub fn refusals(scenario: &Scenario) -> Vec<Refusal> {
    let mount = memory_mount(scenario);
    let refusal = |cgroup: &Cgroup| {
        let why = match &mount {
            None => format!("no memory controller of cgroup {} is mounted", scenario.kernel.cgroup),
            Some(mount) if below(mount, &cgroup.name).exists() => {
                format!("{} exists and is not changed", below(mount, &cgroup.name).display())
            }
            Some(mount) if rustix::fs::access(&mount.path, rustix::fs::Access::WRITE_OK).is_err() => {
                format!("{} cannot be written", mount.path.display())
            }
            Some(_) => return None,
        };
        Some(Refusal::Cgroup { name: cgroup.name.clone(), why })
    };
    let mut refusals: Vec<Refusal> = scenario.cgroups.iter().filter_map(refusal).collect();
    // The root has it too.
    if let Some(mount) = mount.filter(|mount| !mount.path.join("memory.reclaim").exists()) {
        let actions = scenario.processes.iter().flat_map(|process| &process.phases).flat_map(|phase| &phase.actions);
        let reclaims = actions.filter_map(|action| match &action.kind {
            ActionKind::MemoryReclaim { cgroup, .. } => Some(cgroup.clone()),
            _ => None,
        });
        let why = format!("{} has no memory.reclaim, which Linux 5.19 brought", mount.path.display());
        let names: BTreeSet<String> = reclaims.collect();
        refusals.extend(names.into_iter().map(|name| Refusal::Cgroup { name, why: why.clone() }));
    }
    refusals
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_have_the_names_of_their_version() {
        let mut cgroup = Cgroup { name: "/web".into(), memory: Default::default() };
        cgroup.memory.max = Some(Bytes(100));
        cgroup.memory.swap.max = Some(Bytes(20));
        assert_eq!(limits(&cgroup, Version::V2), [("memory.max", 100), ("memory.swap.max", 20)]);
        assert_eq!(
            limits(&cgroup, Version::V1),
            [("memory.limit_in_bytes", 100), ("memory.memsw.limit_in_bytes", 120)]
        );
    }

    #[test]
    fn a_change_is_noted_once_with_all_values_that_are_set() {
        let sysctl = |name: &str, value| ActionKind::Sysctl { name: name.into(), value };
        let all = [
            sysctl("vm.laptop_mode", 3),
            sysctl("vm.dirty_bytes", 1 << 20),
            ActionKind::CpuOffline { cpus: "4000".parse().unwrap() },
            sysctl("vm.laptop_mode", 0),
        ];
        let changes = changes(all.iter());
        let [Change::Pair { files, set, .. }, Change::Value { file, set: modes, .. }] = changes.as_slice() else {
            panic!("{changes:?}")
        };
        assert!(files[1].ends_with("vm/dirty_bytes") && *set == [vec![], vec![1 << 20]]);
        assert!(file.ends_with("vm/laptop_mode") && *modes == [3, 0]);
    }

    #[test]
    fn a_run_of_the_lab_has_no_guardian() {
        let text = "[machine]\npreset = \"lab-4n\"\n[kernel]\nrelease = \"6.1\"\n";
        let scenario = mmtwin_scenario::parse("s", text, Path::new(""), &[]).unwrap();
        let mut settings = Settings::make(&scenario, Arm::Lab).unwrap();
        assert_eq!((settings.procs(Some("/none")), settings.changes.is_guarded()), (None, false));
        assert_eq!(settings.put_back(), Vec::<String>::new());
    }
}
