//! What an administrator does: reading statistics, taking CPUs off and on, writing sysctls, loading modules.

use super::purges::Purges;
use super::region::Mapped;
use super::{cycle, lookup, madvise, module};
use crate::{Error, clock};
use mmtwin_event::results::ActionResult;
use mmtwin_scenario::Machine;
use mmtwin_scenario::units::List;
use mmtwin_scenario::workload::{ActionKind, ActionName, Discard, Process, ReadFile};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The word a scenario has for an action.
pub fn name(action: &ActionKind) -> ActionName {
    match action {
        ActionKind::PageLoop { .. } => ActionName::PageLoop,
        ActionKind::PageHog { .. } => ActionName::PageHog,
        ActionKind::HighOrderAlloc { .. } => ActionName::HighOrderAlloc,
        ActionKind::VmallocTest { .. } => ActionName::VmallocTest,
        ActionKind::Read { .. } => ActionName::Read,
        ActionKind::CpuOffline { .. } => ActionName::CpuOffline,
        ActionKind::CpuOnline { .. } => ActionName::CpuOnline,
        ActionKind::Sysctl { .. } => ActionName::Sysctl,
        ActionKind::ModuleCycle { .. } => ActionName::ModuleCycle,
        ActionKind::Lookup { .. } => ActionName::Lookup,
        ActionKind::Discard { how: Discard::Advice(_), .. } => ActionName::Madvise,
        ActionKind::Discard { how: Discard::Unmap, .. } => ActionName::Munmap,
        ActionKind::CgroupLimit { .. } => ActionName::CgroupLimit,
        ActionKind::MemoryReclaim { .. } => ActionName::MemoryReclaim,
        ActionKind::Sleep { .. } => ActionName::Sleep,
    }
}

/// The files of a statistic: one, or one per node.
pub fn files(file: ReadFile, node: Option<u32>, nodes: usize) -> Vec<PathBuf> {
    let of_nodes = |leaf: &str| {
        let nodes = node.map_or_else(|| (0..nodes as u32).collect(), |node| vec![node]);
        nodes.iter().map(|node| format!("/sys/devices/system/node/node{node}/{leaf}").into()).collect()
    };
    match file {
        ReadFile::Numastat => of_nodes("numastat"),
        ReadFile::NodeVmstat => of_nodes("vmstat"),
        ReadFile::Vmstat => vec!["/proc/vmstat".into()],
        ReadFile::Zoneinfo => vec!["/proc/zoneinfo".into()],
        ReadFile::Buddyinfo => vec!["/proc/buddyinfo".into()],
        ReadFile::Vmallocinfo => vec!["/proc/vmallocinfo".into()],
        ReadFile::StatRefresh => vec!["/proc/sys/vm/stat_refresh".into()],
    }
}

/// The file of a sysctl.
pub fn sysctl(name: &str) -> PathBuf {
    Path::new("/proc/sys").join(name.replace('.', "/"))
}

/// The file that takes a CPU off and on. The first CPU of most machines has none.
pub fn cpu_online(cpu: u32) -> PathBuf {
    format!("/sys/devices/system/cpu/cpu{cpu}/online").into()
}

/// Who does an action.
#[derive(Clone, Copy, Debug)]
pub struct Doer<'a> {
    /// Whose thread it is.
    pub process: &'a Process,
    /// Where it runs.
    pub machine: &'a Machine,
    /// Where files of regions are made.
    pub directory: &'a Path,
    /// Regions of the process.
    pub regions: &'a [Mapped],
    /// Names and directories of the scenario's cgroups.
    pub cgroups: &'a [(String, PathBuf)],
    /// Its number in the process.
    pub number: u32,
    /// Threads that do the action.
    pub threads: u32,
    /// True for the first of them.
    pub first: bool,
}

/// Does an action until it is done or it is `deadline`.
pub fn perform(action: &ActionKind, doer: &Doer<'_>, deadline: u64) -> Result<ActionResult, Error> {
    let begin = clock::now();
    let mut result = ActionResult { kind: name(action).to_string(), threads: 1, ..ActionResult::default() };
    let put = |path: PathBuf, value: &str| {
        fs::write(&path, value).map_err(|e| Error::io(format!("{} = {value}", path.display()), e))
    };
    let cpus = |cpus: &List, value: &str| cpus.numbers().iter().try_for_each(|cpu| put(cpu_online(*cpu), value));
    match action {
        ActionKind::PageLoop { .. } | ActionKind::PageHog { .. } | ActionKind::VmallocTest { .. } => {
            result = module::perform(action, doer, deadline, result)?;
        }
        ActionKind::Read { file, node, count, interval } => {
            let of_node = node.map_or(String::new(), |node| format!(" of node {node}"));
            result.detail = format!("{file}{of_node}");
            let files = files(*file, *node, doer.machine.nodes.len());
            (result.operations, result.time) = read(&files, *count, interval.0, deadline)?;
        }
        ActionKind::CpuOffline { cpus: list } => {
            result.detail = list.to_string();
            cpus(list, "0")?;
            result.operations = list.len() as u64;
        }
        ActionKind::CpuOnline { cpus: list } => {
            result.detail = list.to_string();
            cpus(list, "1")?;
            result.operations = list.len() as u64;
        }
        ActionKind::Sysctl { name, value } => {
            result.detail = format!("{name} = {value}");
            put(sysctl(name), &value.to_string())?;
            result.operations = 1;
        }
        ActionKind::ModuleCycle { name, count } => {
            result.detail = name.clone();
            let purges = doer.first.then(Purges::begin).flatten();
            let begin = clock::now();
            cycle::perform(name, *count, deadline, &mut result)?;
            result.time = clock::now() - begin;
            if let Some(purges) = purges {
                purges.end(&mut result);
            }
        }
        ActionKind::Lookup { count } => {
            let begin = clock::now();
            result.operations = lookup::perform(doer.directory, &doer.process.name, doer.number, *count, deadline)?;
            result.time = clock::now() - begin;
        }
        ActionKind::Discard { .. } | ActionKind::CgroupLimit { .. } | ActionKind::MemoryReclaim { .. } => {
            result.detail = action.subject().unwrap_or_default();
            result = madvise::perform(action, doer, deadline, result)?;
        }
        // Refused before anything starts.
        ActionKind::HighOrderAlloc { .. } => {}
        ActionKind::Sleep { time } => {
            result.detail = time.to_string();
            std::thread::sleep(Duration::from_nanos(time.0.min(deadline.saturating_sub(begin))));
            result.operations = 1;
        }
    }
    if result.time == 0 {
        result.time = clock::now() - begin;
    }
    result.mean = (result.operations > 0).then(|| result.time as f64 / result.operations as f64);
    Ok(result)
}

/// Reads the files in turn. Returns the readings and the nanoseconds in them, pauses omitted.
fn read(files: &[PathBuf], count: Option<u64>, interval: u64, deadline: u64) -> Result<(u64, u64), Error> {
    let mut buffer = vec![0; 1 << 16];
    let (mut readings, mut time) = (0, 0);
    let mut next = clock::now();
    for path in files.iter().cycle() {
        let begin = clock::now();
        if begin >= deadline || count.is_some_and(|count| readings >= count) {
            break;
        }
        let fail = |e| Error::io(path.display().to_string(), e);
        let mut file = File::open(path).map_err(fail)?;
        while file.read(&mut buffer).map_err(fail)? > 0 {}
        readings += 1;
        time += clock::now() - begin;
        next += interval;
        let pause = next.min(deadline).saturating_sub(clock::now());
        if interval > 0 && count.is_none_or(|count| readings < count) {
            std::thread::sleep(Duration::from_nanos(pause));
        }
    }
    Ok((readings, time))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mmtwin_scenario::units::Time;

    #[test]
    fn files_are_read_in_turn() {
        let root = tempfile::tempdir().unwrap();
        let paths = [root.path().join("a"), root.path().join("b")];
        fs::write(&paths[0], "1").unwrap();
        fs::write(&paths[1], "2").unwrap();
        assert_eq!(read(&paths, Some(5), 0, u64::MAX).unwrap().0, 5);
        assert_eq!(read(&paths, None, 0, 0).unwrap().0, 0, "nothing after the deadline");
        fs::remove_file(&paths[1]).unwrap();
        assert_eq!(read(&paths, Some(1), 0, u64::MAX).unwrap().0, 1);
        assert!(read(&paths, Some(2), 0, u64::MAX).is_err());
    }

    #[test]
    fn an_action_says_what_it_did() {
        let text = "[machine]\n[[machine.node]]\ncpus = \"0\"\nmemory = \"1 GiB\"\n[kernel]\nrelease = \"6.1\"\n\
                    [[process]]\nname = \"p\"\n";
        let scenario = mmtwin_scenario::parse("s", text, Path::new(""), &[]).unwrap();
        let (process, machine, directory) = (&scenario.processes[0], &scenario.machine, Path::new("."));
        let (regions, cgroups) = (&[], &[]);
        let doer = Doer { process, machine, directory, regions, cgroups, number: 0, threads: 1, first: true };
        let file = ReadFile::Vmstat;
        let read = ActionKind::Read { file, node: None, count: Some(3), interval: Time(0) };
        let result = perform(&read, &doer, u64::MAX).unwrap();
        assert_eq!((result.kind.as_str(), result.detail.as_str(), result.operations), ("read", "vmstat", 3));
        assert_eq!(result.mean, Some(result.time as f64 / 3.0));
        let lookup = perform(&ActionKind::Lookup { count: Some(7) }, &doer, u64::MAX).unwrap();
        assert_eq!((lookup.kind.as_str(), lookup.operations), ("lookup", 7));
        let sleep = perform(&ActionKind::Sleep { time: Time(1_000_000_000_000) }, &doer, 0).unwrap();
        assert_eq!((sleep.detail.as_str(), sleep.operations), ("1000 s", 1));
        let nodes = files(ReadFile::Numastat, None, 2);
        assert_eq!(nodes[1], Path::new("/sys/devices/system/node/node1/numastat"));
        assert_eq!(files(ReadFile::NodeVmstat, Some(3), 9), [Path::new("/sys/devices/system/node/node3/vmstat")]);
        assert_eq!(sysctl("vm.numa_stat"), Path::new("/proc/sys/vm/numa_stat"));
    }
}
