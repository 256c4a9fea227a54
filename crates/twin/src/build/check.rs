//! Parts of a scenario that are not modelled: refused where results would be wrong without them, noted where a
//! mechanism is absent.

use super::BuildError;
use super::kernel::by_zone;
use crate::frame::{MAX_CGROUPS, ZoneKind};
use crate::page_alloc::HUGE_ORDER;
use mmtwin_scenario::kernel::{Congestion, LruScope, Thp};
use mmtwin_scenario::machine::Zone;
use mmtwin_scenario::workload::{Action, ActionKind, Huge, Process, ReadFile, Region, RegionKind};
use mmtwin_scenario::{Scenario, machine as say};

/// Sysctls that may be written while the workload runs.
const WRITABLE: [&str; 16] = [
    "vm.numa_stat",
    "vm.stat_interval",
    "vm.min_free_kbytes",
    "vm.watermark_scale_factor",
    "vm.watermark_boost_factor",
    "vm.swappiness",
    "vm.page-cluster",
    "vm.vfs_cache_pressure",
    "vm.extfrag_threshold",
    "vm.laptop_mode",
    "vm.dirty_ratio",
    "vm.dirty_bytes",
    "vm.dirty_background_ratio",
    "vm.dirty_background_bytes",
    "vm.dirty_expire_centisecs",
    "vm.dirty_writeback_centisecs",
];

/// Longest time that a scenario may name: virtual time is counted in picoseconds, 64 bits of which are 213 days.
const LONGEST_NS: u64 = 10 * 86_400_000_000_000;

/// Refuses scenarios that are not modelled; returns notes, in sentences, on absent mechanisms.
///
/// # Errors
/// The first thing that is not modelled, or all keys that no mechanism reads.
pub fn check(scenario: &Scenario) -> Result<Vec<String>, BuildError> {
    super::refuse::check(scenario)?;
    let refuse = |place: String, why: &str| Err(BuildError::NotModelledAt(place, why.into()));
    let limited = scenario.cgroups.iter().find(|cgroup| cgroup.memory != Default::default());
    if let Some(cgroup) = limited.filter(|_| by_zone(&scenario.kernel).is_some()) {
        return refuse(format!("cgroup {}", cgroup.name), "cgroups of these kernels have lists of their own");
    }
    if scenario.kernel.sysctl.vm_zone_reclaim_mode > 0 && by_zone(&scenario.kernel).is_some() {
        return refuse(
            "vm.zone_reclaim_mode above 0".into(),
            "a kernel of 2010 reclaims a zone, not a node, before it takes memory of another",
        );
    }
    if scenario.machine.huge_page.pages() != 1 << HUGE_ORDER && by_zone(&scenario.kernel).is_none() {
        return refuse(
            format!("huge pages of {}", scenario.machine.huge_page),
            "processes have those of 2 MiB, and only kernels before 3.7 compact other pageblocks",
        );
    }
    for (nid, node) in scenario.machine.nodes.iter().enumerate() {
        if let Some(zone) = node.zones.iter().find(|zone| !lies_in_its_kind(zone)) {
            let why = "memory belongs to the zone of its addresses, and none is for pages alone that can be moved";
            return refuse(
                format!("machine.node.{nid}.zone: kind {:?} at page frame {}", zone.kind, zone.start_pfn),
                why,
            );
        }
    }
    if scenario.cgroups.len() >= MAX_CGROUPS {
        return refuse(format!("{} cgroups", scenario.cgroups.len()), "at most 63 memory cgroups are supported");
    }
    for process in &scenario.processes {
        if longest(process) > LONGEST_NS {
            return refuse(format!("a time of process \"{}\"", process.name), "the longest is 10 days");
        }
        for region in &process.regions {
            if let Some((what, why)) = unmodelled_region(region, by_zone(&scenario.kernel).is_some()) {
                return refuse(format!("region \"{}\" of process \"{}\": {what}", region.name, process.name), why);
            }
        }
        for phase in &process.phases {
            let of_file = |name: &str| {
                process.regions.iter().any(|region| region.name == name && region.kind != RegionKind::Anon)
            };
            let renewed = phase.accesses.iter().find(|access| access.recycle && of_file(&access.region));
            if let Some(access) =
                renewed.filter(|_| scenario.kernel.sysctl.kernel_numa_balancing.is_some_and(|m| m > 0))
            {
                let place = format!("process \"{}\": giving \"{}\" back", process.name, access.region);
                return refuse(place, "only without NUMA balancing (kernel.numa_balancing = 0)");
            }
            for action in &phase.actions {
                let max = scenario.kernel.page_alloc.max_order;
                if let Some(order) = order_of(action).filter(|order| *order > max) {
                    let what = format!("process \"{}\": a block of order {order}", process.name);
                    return refuse(what, &format!("kernel.page_alloc.max_order is {max}"));
                }
                let by_zone = by_zone(&scenario.kernel).is_some();
                if let Some((what, why)) = unmodelled_action(action, by_zone) {
                    return refuse(format!("process \"{}\": {what}", process.name), why);
                }
            }
        }
    }
    if scenario.kernel.sysctl.kernel_numa_balancing.is_some_and(|mode| mode > 1) {
        return refuse("kernel.numa_balancing above 1".into(), "memory tiering is not supported");
    }
    let mut notes = Vec::new();
    let (reclaim, by_zone) = (&scenario.kernel.reclaim, by_zone(&scenario.kernel));
    if by_zone.is_none() && (reclaim.lru == LruScope::Zone || reclaim.congestion != Congestion::Throttle) {
        notes.push("memory is reclaimed by the rules of 6.1, whatever the kernel".to_string());
    }
    if by_zone.is_some() && scenario.kernel.thp != Thp::Never {
        notes.push("processes have no huge pages where zones are reclaimed".into());
    }
    Ok(notes)
}

/// True if all page frames of a zone belong to such zones.
fn lies_in_its_kind(zone: &Zone) -> bool {
    let kind = match zone.kind {
        say::ZoneKind::Dma => ZoneKind::Dma,
        say::ZoneKind::Dma32 => ZoneKind::Dma32,
        say::ZoneKind::Normal => ZoneKind::Normal,
        say::ZoneKind::Movable => ZoneKind::Movable,
    };
    kind.frames().contains(&zone.start_pfn) && zone.start_pfn + zone.present <= kind.frames().end
}

/// The longest time that a process names, in nanoseconds.
fn longest(process: &Process) -> u64 {
    let phases = process.phases.iter().flat_map(|phase| {
        let accesses = phase.accesses.iter().flat_map(|access| {
            let arrival = access.arrival.map_or(0, |arrival| arrival.interval.0);
            [access.think.0, access.sleep.0, arrival]
        });
        let actions = phase.actions.iter().map(|action| match &action.kind {
            ActionKind::Read { interval, .. } => interval.0,
            ActionKind::Sleep { time } => time.0,
            ActionKind::Discard { interval, .. } => interval.0,
            _ => 0,
        });
        accesses.chain(actions).chain(phase.duration.map(|time| time.0))
    });
    phases.chain([process.start.0]).max().unwrap_or(0)
}

/// The order of the blocks that an action allocates.
fn order_of(action: &Action) -> Option<u32> {
    match action.kind {
        ActionKind::PageLoop { order, .. } | ActionKind::PageHog { order, .. } => Some(order),
        ActionKind::HighOrderAlloc { order, .. } => Some(order),
        ActionKind::VmallocTest { .. }
        | ActionKind::Read { .. }
        | ActionKind::CpuOffline { .. }
        | ActionKind::CpuOnline { .. }
        | ActionKind::Sysctl { .. }
        | ActionKind::ModuleCycle { .. }
        | ActionKind::Lookup { .. }
        | ActionKind::Discard { .. }
        | ActionKind::CgroupLimit { .. }
        | ActionKind::MemoryReclaim { .. }
        | ActionKind::Sleep { .. } => None,
    }
}

fn unmodelled_region(region: &Region, by_zone: bool) -> Option<(&'static str, &'static str)> {
    match () {
        () if region.huge == Huge::Hugetlb => Some(("huge = \"hugetlb\"", "there are no reserved huge pages")),
        () if region.files.is_some() && !by_zone => {
            Some(("files", "inodes are modelled where zones are reclaimed only"))
        }
        () => None,
    }
}

fn unmodelled_action(action: &Action, by_zone: bool) -> Option<(String, &'static str)> {
    match &action.kind {
        ActionKind::Read { file: ReadFile::Vmallocinfo, .. } => {
            Some(("reading vmallocinfo".into(), "areas exist only while vmalloc-test runs"))
        }
        ActionKind::ModuleCycle { name, .. } => {
            Some((format!("module-cycle of {name}"), "kernel modules are not loaded"))
        }
        ActionKind::Lookup { .. } if by_zone => {
            Some(("looking up names".into(), "there are no dentries in a kernel of 2010"))
        }
        ActionKind::CgroupLimit { .. } | ActionKind::MemoryReclaim { .. } if by_zone => {
            Some(("writing to a cgroup".into(), "cgroups of these kernels have lists of their own"))
        }
        ActionKind::Sysctl { name, .. } if !WRITABLE.contains(&name.as_str()) => Some((
            format!("writing {name}"),
            "only sysctls of counters, watermarks, reclaim and dirty limits take effect in a run",
        )),
        _ => None,
    }
}
