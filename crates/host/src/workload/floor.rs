//! What a real machine is spared, though its kernel would take it: values of sysctls with which it would hardly run on,
//! and more threads and locked memory than leave it room. Guests may have all of them.

use super::refusal::Refusal;
use super::worker;
use mmtwin_scenario::Scenario;
use mmtwin_scenario::units::Bytes;
use mmtwin_scenario::workload::ActionKind;
use std::collections::BTreeSet;

/// The machine, as far as limits depend on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// Memory in bytes.
    pub memory: u64,
    /// Memory in bytes that is free or can be freed.
    pub available: u64,
    /// Threads that the kernel starts at most.
    pub threads: u64,
}

/// Values of a sysctl that a real machine lives with.
struct Floor {
    least: u64,
    most: u64,
    /// 0 is off, and harmless.
    or_zero: bool,
    /// What is beyond.
    why: &'static str,
}

/// Limits of a sysctl on a machine with so much memory. `None`: it is none of those that may be written.
fn floor(name: &str, memory: u64) -> Option<Floor> {
    let of = |least, most, why| Some(Floor { least, most, or_zero: false, why });
    let or_zero = |least, most, why| Some(Floor { least, most, or_zero: true, why });
    let any = |why| of(0, u64::MAX, why);
    match name {
        // A tenth of a per mille is what atomic allocations need; a twentieth is held back from everybody else.
        "vm.min_free_kbytes" => of(
            (memory / 1024 / 10_000).min(1024),
            memory / 1024 / 20,
            "5 % of memory would be reserved, or too little for atomic allocations",
        ),
        "vm.watermark_scale_factor" => of(1, 500, "kswapd would keep twice 5 % of each zone free"),
        "vm.watermark_boost_factor" => of(0, 30_000, "a boost would reclaim three times the high watermark"),
        "vm.lowmem_reserve_ratio" => or_zero(8, u64::MAX, "lower zones would reserve an eighth of the memory above"),
        "vm.dirty_ratio" => of(5, 60, "writers would always be throttled, or memory would be full of dirty pages"),
        "vm.dirty_background_ratio" => of(1, 60, "memory would be full of dirty pages"),
        "vm.dirty_bytes" => {
            of(16 << 20, memory / 10 * 6, "writers would always be throttled, or memory would be full of dirty pages")
        }
        "vm.dirty_background_bytes" => of(1 << 20, memory / 10 * 6, "memory would be full of dirty pages"),
        "vm.dirty_expire_centisecs" | "vm.dirty_writeback_centisecs" => {
            or_zero(1, 360_000, "an hour of writes would be lost on power failure")
        }
        "vm.laptop_mode" => of(0, 3600, "an hour of writes would be lost on power failure"),
        "vm.vfs_cache_pressure" => of(1, 10_000, "dentries and inodes would never be reclaimed, or always"),
        "vm.percpu_pagelist_high_fraction" => or_zero(8, u64::MAX, "pagesets would hold an eighth of a zone"),
        "vm.stat_interval" => of(1, 3600, "vmstat counters would be older than an hour"),
        "kernel.watchdog_thresh" => or_zero(5, 60, "the watchdog would report busy CPUs as locked up"),
        "vm.swappiness"
        | "vm.zone_reclaim_mode"
        | "vm.min_unmapped_ratio"
        | "vm.min_slab_ratio"
        | "vm.page-cluster"
        | "vm.extfrag_threshold"
        | "vm.compaction_proactiveness"
        | "vm.defrag_mode"
        | "vm.numa_stat"
        | "kernel.numa_balancing"
        | "kernel.numa_balancing_promote_rate_limit_MBps"
        | "kernel.numa_balancing_migrate_deferred" => any(""),
        // What makes a kernel panic is none of the scenario's sysctls, and never will be one here.
        _ => None,
    }
}

/// What a scenario may not do to a real machine.
pub(super) fn refusals(scenario: &Scenario, room: Room) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    for process in &scenario.processes {
        for action in process.phases.iter().flat_map(|phase| &phase.actions) {
            if let ActionKind::Sysctl { name, value } = &action.kind {
                refusals.extend(sysctl(name, *value, room.memory));
            }
        }
    }
    let threads = scenario.processes.iter().map(|process| u64::from(process.threads)).sum::<u64>();
    // The machine needs some itself.
    let limit = room.threads / 2;
    if threads > limit {
        refusals.push(Refusal::Threads { wanted: threads, limit });
    }
    let regions = scenario.processes.iter().flat_map(|process| &process.regions);
    let wanted = regions.filter(|region| region.locked).fold(0, |sum: u64, of| sum.saturating_add(worker::length(of)));
    // Whole MiB, to be read.
    let limit = room.available.saturating_sub(room.memory / 10) >> 20 << 20;
    if wanted > limit {
        refusals.push(Refusal::AllLocked { wanted: Bytes(wanted), limit: Bytes(limit) });
    }
    let mut seen = BTreeSet::new();
    refusals.retain(|refusal| seen.insert(refusal.to_string()));
    refusals
}

fn sysctl(name: &str, value: u64, memory: u64) -> Option<Refusal> {
    let limits = match floor(name, memory) {
        None => {
            return Some(Refusal::Floor {
                name: name.into(),
                value,
                limits: "scenarios must not write it".into(),
                why: "",
            });
        }
        Some(limits) => limits,
    };
    if (limits.least..=limits.most).contains(&value) || limits.or_zero && value == 0 {
        return None;
    }
    let range = match limits.most {
        u64::MAX => format!("at least {}", limits.least),
        most => format!("{} to {most}", limits.least),
    };
    let limits_text = if limits.or_zero { format!("0 or {range}") } else { range };
    Some(Refusal::Floor { name: name.into(), value, limits: limits_text, why: limits.why })
}

#[cfg(test)]
mod tests {
    use super::*;
    use mmtwin_scenario::kernel::Sysctl;
    use std::path::Path;

    const ROOM: Room = Room { memory: 8 << 30, available: 6 << 30, threads: 1000 };

    fn of(text: &str) -> Vec<String> {
        let text =
            format!("[machine]\npreset = \"lab-4n\"\n[kernel]\nrelease = \"6.1\"\n[[process]]\nname = \"p\"\n{text}");
        let scenario =
            mmtwin_scenario::parse("s", &text, Path::new(""), &[]).unwrap_or_else(|faults| panic!("{faults}"));
        refusals(&scenario, ROOM).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_sysctl_of_a_scenario_has_a_floor_and_others_are_not_written() {
        for name in Sysctl::NAMES {
            assert!(floor(name, 8 << 30).is_some_and(|floor| floor.least <= floor.most), "{name}");
        }
        for name in ["vm.panic_on_oom", "vm.overcommit_memory", "kernel.panic", "vm.drop_caches"] {
            assert!(sysctl(name, 1, 8 << 30).unwrap().to_string().contains("scenarios must not write it"), "{name}");
        }
    }

    #[test]
    fn values_that_starve_a_machine_are_refused_with_the_limit() {
        let action = |name: &str, value: u64| {
            of(&format!(
                "[[process.phase]]\n[[process.phase.action]]\nkind = \"sysctl\"\nname = \"{name}\"\nvalue = {value}\n"
            ))
        };
        let message = "vm.min_free_kbytes = 1000000: on a real machine 838 to 419430; beyond: 5 % of memory would be \
                       reserved, or too little for atomic allocations";
        assert_eq!(action("vm.min_free_kbytes", 1_000_000), [message]);
        assert_eq!(action("vm.dirty_ratio", 0).len(), 1);
        assert_eq!(action("vm.watermark_scale_factor", 3000).len(), 1);
        assert_eq!(action("kernel.watchdog_thresh", 0), Vec::<String>::new());
        assert_eq!(action("vm.swappiness", 200), Vec::<String>::new());
    }

    #[test]
    fn threads_and_locked_memory_leave_room() {
        assert_eq!(of("threads = 501\n"), ["501 threads: at most 500, half of kernel.threads-max"]);
        let locked = of("[[process.region]]\nname = \"r\"\nsize = \"6 GiB\"\nlocked = true\n");
        assert!(locked[0].starts_with("6 GiB of locked memory in total: at most 5324 MiB"), "{locked:?}");
    }
}
