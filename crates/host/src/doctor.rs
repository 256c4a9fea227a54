//! What this machine supports, and a suggested fix for what is missing.

use crate::events::DEFAULT;
use crate::tracefs::{Obstacle, Tracefs};
use crate::{cgroup, evidence, tracefs};
use mmtwin_event::manifest::Evidence;
use mmtwin_event::words::glob;
use std::fs;
use std::path::Path;

/// Whether a thing can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Yes.
    Ok,
    /// In part, or less well.
    Limited,
    /// No.
    Missing,
}

/// One thing looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// Group: `kernel`, `events`, `counters`, `machine`.
    pub group: &'static str,
    /// What was looked at.
    pub name: String,
    /// Whether it can be used.
    pub status: Status,
    /// What was found.
    pub found: String,
    /// What to do, if something helps.
    pub fix: Option<String>,
}

/// Looks at everything that `record` uses. Changes nothing.
pub fn examine() -> Vec<Check> {
    let evidence = evidence::collect();
    let mut checks = vec![kernel(&evidence)];
    let tracefs = tracefs::open();
    checks.push(access(&tracefs));
    if let Ok(tracefs) = tracefs.as_ref().map(Tracefs::path) {
        let available = fs::read_to_string(tracefs.join("available_events")).unwrap_or_default();
        checks.extend(mechanisms(&available));
        checks.push(clocks(&fs::read_to_string(tracefs.join("trace_clock")).unwrap_or_default()));
        checks.push(buffers(tracefs, &evidence));
        checks.push(symbols(&fs::read_to_string("/proc/kallsyms").unwrap_or_default()));
    }
    checks.extend(files());
    checks.push(pressure());
    checks.push(cgroups());
    checks.push(numa(&evidence));
    checks
}

fn check(group: &'static str, name: &str, status: Status, found: impl Into<String>, fix: Option<&str>) -> Check {
    Check { group, name: name.into(), status, found: found.into(), fix: fix.map(str::to_string) }
}

fn kernel(evidence: &Evidence) -> Check {
    let uname = &evidence.uname;
    let options = match &evidence.config {
        Some(config) => format!("{} options known", config.options.len()),
        None => "configuration unknown".into(),
    };
    let found = format!("{} {} {}, {options}", uname.sysname, uname.release, uname.machine);
    let status = if evidence.config.is_some() { Status::Ok } else { Status::Limited };
    let fix = evidence.config.is_none().then_some("modprobe configs, or install the kernel's config below /boot");
    check("kernel", "release", status, found, fix)
}

fn access(tracefs: &Result<Tracefs, Obstacle>) -> Check {
    match tracefs {
        Ok(tracefs) if tracefs.is_private() => {
            check("events", "tracefs", Status::Ok, "not mounted: each recording mounts it for itself alone", None)
        }
        Ok(tracefs) => check("events", "tracefs", Status::Ok, tracefs.path().to_string_lossy(), None),
        Err(Obstacle { what, fix, .. }) => {
            check("events", "tracefs", Status::Missing, format!("{what}: counters only"), Some(fix))
        }
    }
}

/// One check per mechanism: how many of its patterns this kernel has events for.
fn mechanisms(available: &str) -> Vec<Check> {
    DEFAULT
        .iter()
        .map(|mechanism| {
            let has = |pattern: &&&str| available.lines().any(|e| glob(pattern, e));
            let (with, without): (Vec<&&str>, Vec<&&str>) = mechanism.events.iter().partition(|p| has(p));
            let events = available.lines().filter(|e| with.iter().any(|p| glob(p, e))).count();
            let (status, found) = match events {
                // Every pattern names the events of some release; a kernel with one of them has what it calls so.
                0 => (Status::Missing, format!("this kernel lacks {}", join(&without))),
                n => (Status::Ok, format!("{n} events")),
            };
            check("events", mechanism.name, status, found, None)
        })
        .collect()
}

fn join(patterns: &[&&str]) -> String {
    patterns.iter().map(|p| **p).collect::<Vec<_>>().join(", ")
}

fn clocks(text: &str) -> Check {
    let has = text.split_whitespace().any(|c| c.trim_matches(['[', ']']) == crate::clock::TRACE_CLOCK);
    let (status, fix) = if has { (Status::Ok, None) } else { (Status::Missing, Some("a kernel from 3.17 on")) };
    check("events", "trace clock mono", status, text.trim(), fix)
}

fn buffers(tracefs: &Path, evidence: &Evidence) -> Check {
    let cpus = evidence.cpus.len();
    let size = crate::record::buffer_size(None, evidence.memory, cpus);
    let wakes = tracefs.join("buffer_percent").exists();
    let found = format!("{} KiB on each of {cpus} CPUs, {} MiB total", size >> 10, (size * cpus as u64) >> 20);
    let status = if wakes { Status::Ok } else { Status::Limited };
    let fix =
        (!wakes).then_some("without buffer_percent (before 5.0) buffers are read once per second: use --buffer 16M");
    check("events", "ring buffers", status, found, fix)
}

fn symbols(kallsyms: &str) -> Check {
    let visible = kallsyms.lines().take(1000).any(|l| l.bytes().take_while(|&b| b != b' ').any(|b| b != b'0'));
    if visible {
        check("events", "kernel symbols", Status::Ok, "addresses visible", None)
    } else {
        let found = "addresses hidden: shrinkers have no names";
        check(
            "events",
            "kernel symbols",
            Status::Limited,
            found,
            Some(
                "sudo mmtwin record, for one recording; where kernel.kptr_restrict is 2, first \
                 sudo sysctl kernel.kptr_restrict=1, which shows addresses to root alone (0: to every process)",
            ),
        )
    }
}

/// Files of counters, by what they need.
fn files() -> Vec<Check> {
    let readable = |path: &str| fs::read(path).is_ok();
    [
        ("vmstat", "/proc/vmstat", "CONFIG_VM_EVENT_COUNTERS"),
        ("zoneinfo", "/proc/zoneinfo", "CONFIG_PROC_FS"),
        ("node vmstat", "/sys/devices/system/node/node0/vmstat", "CONFIG_NUMA"),
        ("numastat", "/sys/devices/system/node/node0/numastat", "CONFIG_NUMA"),
    ]
    .map(|(name, path, option)| {
        if readable(path) {
            check("counters", name, Status::Ok, path, None)
        } else {
            let fix = format!("a kernel with {option}");
            check("counters", name, Status::Missing, format!("{path} cannot be read"), Some(&fix))
        }
    })
    .into()
}

fn pressure() -> Check {
    // A kernel with PSI switched off has the file and refuses to read it.
    match fs::read("/proc/pressure/memory") {
        Ok(_) => check("counters", "pressure (PSI)", Status::Ok, "/proc/pressure", None),
        Err(_) => {
            let fix = Some("boot with psi=1, on a kernel with CONFIG_PSI");
            check("counters", "pressure (PSI)", Status::Missing, "/proc/pressure cannot be read", fix)
        }
    }
}

fn cgroups() -> Check {
    let mounts = cgroup::mounts();
    let with_memory = mounts.iter().find(|m| match m.version {
        cgroup::Version::V1 => true,
        cgroup::Version::V2 => fs::read_to_string(m.path.join("cgroup.controllers"))
            .is_ok_and(|text| text.split_whitespace().any(|c| c == "memory")),
    });
    match with_memory {
        Some(mount) => {
            let version = if mount.version == cgroup::Version::V1 { 1 } else { 2 };
            let found = format!("version {version} at {}", mount.path.display());
            check("counters", "memory cgroups", Status::Ok, found, None)
        }
        None => {
            let found = "no hierarchy with the memory controller";
            let fix = Some("sudo mount -t cgroup2 none /sys/fs/cgroup, on a kernel with CONFIG_MEMCG");
            check("counters", "memory cgroups", Status::Missing, found, fix)
        }
    }
}

fn numa(evidence: &Evidence) -> Check {
    let nodes = evidence.nodes.len();
    let balancing = evidence.files.get("/proc/sys/kernel/numa_balancing").map(String::as_str);
    let found = match balancing {
        None => format!("{nodes} node(s), kernel without NUMA balancing"),
        Some("0") => format!("{nodes} node(s), balancing off"),
        Some(_) => format!("{nodes} node(s), balancing on"),
    };
    let (status, fix) = match (nodes, balancing) {
        (0 | 1, _) => (Status::Limited, None),
        (_, Some("0")) => (Status::Limited, Some("sudo sysctl kernel.numa_balancing=1")),
        (_, None) => (Status::Limited, Some("a kernel with CONFIG_NUMA_BALANCING")),
        (_, Some(_)) => (Status::Ok, None),
    };
    check("machine", "NUMA", status, found, fix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mechanisms_by_what_a_kernel_has() {
        let checks = mechanisms("vmscan:mm_vmscan_kswapd_sleep\nvmscan:mm_vmscan_kswapd_wake\noom:mark_victim\n");
        let status = |name: &str| checks.iter().find(|c| c.name == name).map(|c| (c.status, c.found.as_str()));
        assert_eq!(status("reclaim"), Some((Status::Ok, "2 events")));
        assert_eq!(status("vmalloc"), Some((Status::Missing, "this kernel lacks vmalloc:*")));
        assert_eq!(checks.len(), DEFAULT.len());
    }

    #[test]
    fn clocks_and_symbols() {
        assert_eq!(clocks("local global [mono] boot\n").status, Status::Ok);
        assert_eq!(clocks("[local] global\n").status, Status::Missing);
        assert_eq!(symbols("0000000000000000 T a\n").status, Status::Limited);
        assert_eq!(symbols("0000000000000000 A a\nffffffff81000000 T b\n").status, Status::Ok);
    }

    #[test]
    fn no_access_comes_with_its_cure() {
        let obstacle = Obstacle { what: "may not".into(), fix: "do this".into(), unmounted: false };
        let check = access(&Err(obstacle));
        assert_eq!((check.status, check.fix.as_deref()), (Status::Missing, Some("do this")));
    }

    #[test]
    fn this_machine_is_examined() {
        let checks = examine();
        assert!(checks.iter().any(|c| c.name == "vmstat" && c.status == Status::Ok));
        assert!(checks.iter().all(|c| c.status != Status::Missing || !c.found.is_empty()));
    }
}
