//! What a run changes of the machine, put back when it ends: cgroups, and what actions set.

use super::refuse::Refusal;
use super::worker;
use crate::cgroup::{Mount, Version, mounts};
use crate::{Error, tracefs};
use mmtwin_scenario::kernel::{CgroupVersion, EXCLUSIVE};
use mmtwin_scenario::workload::{ActionKind, Cgroup};
use mmtwin_scenario::{Scenario, units::Bytes};
use std::fs;
use std::path::{Path, PathBuf};

/// How much the out-of-memory killer prefers this process: -1000 is not at all.
const OOM_SCORE: &str = "/proc/self/oom_score_adj";

/// Removes and puts back when dropped.
#[derive(Debug, Default)]
pub struct Settings {
    /// Files and what was in them.
    files: Vec<(PathBuf, String)>,
    /// Name and directory of the cgroups that were made, parents first.
    cgroups: Vec<(String, PathBuf)>,
}

impl Settings {
    /// Remembers what the scenario's actions will change and makes its cgroups.
    pub fn make(scenario: &Scenario) -> Result<Settings, Error> {
        let mut settings = Settings::default();
        // Where memory runs out, a worker is to be killed and not the recorder. Without the right to it chance decides.
        settings.remember(OOM_SCORE.into());
        let _ = fs::write(OOM_SCORE, "-1000");
        let phases = scenario.processes.iter().flat_map(|process| &process.phases);
        for action in phases.flat_map(|phase| &phase.actions) {
            match &action.kind {
                // Writing one of two that exclude each other changes both, and only that which was not 0 can be put back.
                ActionKind::Sysctl { name, .. } => {
                    let both = EXCLUSIVE.into_iter().filter(|both| both.contains(&name.as_str())).flatten();
                    both.chain([name.as_str()]).for_each(|name| settings.remember(worker::sysctl(name)));
                }
                ActionKind::CpuOffline { cpus } | ActionKind::CpuOnline { cpus } => {
                    cpus.numbers().iter().for_each(|cpu| settings.remember(worker::cpu_online(*cpu)));
                }
                // A worker that is killed leaves its tracer.
                ActionKind::VmallocTest { .. } | ActionKind::ModuleCycle { .. } => {
                    tracefs::find().into_iter().for_each(|path| settings.remember(path.join("current_tracer")));
                }
                _ => {}
            }
        }
        if let Some(mount) = memory_mount(scenario).filter(|_| !scenario.cgroups.is_empty()) {
            for cgroup in &scenario.cgroups {
                settings.make_cgroup(cgroup, &mount)?;
            }
        }
        Ok(settings)
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

    fn remember(&mut self, path: PathBuf) {
        if let Ok(text) = fs::read_to_string(&path)
            && !self.files.iter().any(|(known, _)| *known == path)
        {
            self.files.push((path, text));
        }
    }

    fn make_cgroup(&mut self, cgroup: &Cgroup, mount: &Mount) -> Result<(), Error> {
        let directory = below(mount, &cgroup.name);
        let fail = |path: &Path, e| Error::io(path.display().to_string(), e);
        if let (Version::V2, Some(parent)) = (mount.version, directory.parent()) {
            let control = parent.join("cgroup.subtree_control");
            fs::write(&control, "+memory").map_err(|e| fail(&control, e))?;
        }
        fs::create_dir(&directory).map_err(|e| fail(&directory, e))?;
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
        for (path, text) in self.files.drain(..) {
            let now = fs::read_to_string(&path).unwrap_or_default();
            if now != text {
                // A CPU that does not come back has its own message in the kernel's log.
                let _ = fs::write(&path, text);
            }
        }
        for (_, directory) in self.cgroups.drain(..).rev() {
            // It is empty: its processes have ended.
            let _ = fs::remove_dir(directory);
        }
    }
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

/// Why cgroups cannot be had.
pub fn refusals(scenario: &Scenario) -> Vec<Refusal> {
    let mount = memory_mount(scenario);
    let refusal = |cgroup: &Cgroup| {
        let why = match &mount {
            None => format!("no memory controller of cgroup {} is mounted", scenario.kernel.cgroup),
            Some(mount) if below(mount, &cgroup.name).exists() => {
                format!("{} exists; it is not touched", below(mount, &cgroup.name).display())
            }
            Some(mount) if rustix::fs::access(&mount.path, rustix::fs::Access::WRITE_OK).is_err() => {
                format!("{} cannot be written", mount.path.display())
            }
            Some(_) => return None,
        };
        Some(Refusal::Cgroup { name: cgroup.name.clone(), why })
    };
    scenario.cgroups.iter().filter_map(refusal).collect()
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
    fn what_was_changed_is_put_back() {
        let root = tempfile::tempdir().unwrap();
        let (file, group) = (root.path().join("sysctl"), root.path().join("group"));
        fs::write(&file, "1\n").unwrap();
        fs::create_dir(&group).unwrap();
        let mut settings = Settings::default();
        settings.remember(file.clone());
        settings.cgroups.push(("/group".into(), group.clone()));
        assert_eq!(settings.procs(Some("/group")), Some(group.join("cgroup.procs")));
        assert_eq!(settings.procs(None), None);
        fs::write(&file, "0\n").unwrap();
        drop(settings);
        assert_eq!(fs::read_to_string(&file).unwrap(), "1\n");
        assert!(!group.exists());
    }
}
