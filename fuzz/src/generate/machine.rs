//! Machines, kernels and cgroups.

use super::{Choices, Known, MEMORY};
use std::fmt::Write;

/// Nodes with little memory, CPUs, and often swap.
pub(super) fn machine(choices: &mut Choices<'_>, text: &mut String) -> Known {
    text.push_str("[machine]\nname = \"m\"\n");
    let nodes = choices.of(&[1, 1, 1, 1, 2, 2, 2, 3, 4]);
    let threads = choices.of(&[1, 1, 1, 2]);
    let _ = writeln!(text, "threads_per_core = {threads}");
    if choices.chance(1, 8) {
        let _ = writeln!(text, "possible_cpus = 64");
    }
    if nodes > 1 && choices.chance(1, 2) {
        let far = choices.of(&[20, 21, 31, 254]);
        let row =
            |a| -> Vec<String> { (0..nodes).map(|b| if a == b { "10".into() } else { far.to_string() }).collect() };
        let rows: Vec<String> = (0..nodes).map(|a| format!("[{}]", row(a).join(", "))).collect();
        let _ = writeln!(text, "distance = [{}]", rows.join(", "));
    }
    if choices.chance(2, 3) {
        let kib = choices.of(&[64u64, 1 << 10, 16 << 10, 64 << 10, 256 << 10, 4]);
        let synchronous = choices.chance(1, 2);
        let on_disk = !synchronous && choices.chance(1, 4);
        let _ = writeln!(text, "swap = {{ size = \"{kib} KiB\", synchronous = {synchronous}, on_disk = {on_disk} }}");
    }
    if choices.chance(1, 6) {
        let disk = choices.of(&[
            "{ latency = \"10 ms\", bandwidth = \"20 MB/s\", queue_depth = 1 }",
            "{ latency = \"4 ms\", bandwidth = \"100 MB/s\", seek = \"8 ms\", queue_depth = 4 }",
            "{ latency = \"1 us\", bandwidth = \"20 GB/s\", queue_depth = 1024 }",
        ]);
        let _ = writeln!(text, "disk = {disk}");
    }
    let (mut cpu, mut memory, mut filled) = (0u64, 0, Vec::new());
    for node in 0..nodes as u64 {
        text.push_str("[[machine.node]]\n");
        // The first node has both, so that something can run.
        let cpus = threads * if node > 0 && choices.chance(1, 6) { 0 } else { choices.of(&[1, 2, 2, 4]) };
        if cpus > 0 {
            let _ = writeln!(text, "cpus = \"{}-{}\"", cpu, cpu + cpus - 1);
        }
        let most = MEMORY / nodes as u64;
        let kib = choices.of(&[32u64 << 10, 64 << 10, 128 << 10, 256 << 10, 16 << 10, 8 << 10, 4 << 10, 20 << 10]);
        let kib = if node > 0 && cpus > 0 && choices.chance(1, 6) { 0 } else { kib.min(most) };
        if kib > 0 {
            let _ = writeln!(text, "memory = \"{kib} KiB\"");
            if kib >= 32 << 10 && choices.chance(1, 8) {
                let _ = writeln!(text, "movable = \"{} KiB\"", kib / 4);
            }
        }
        (cpu, memory) = (cpu + cpus, memory + kib);
        filled.push(kib > 0);
    }
    Known {
        nodes: nodes as u64,
        cpus: cpu,
        memory,
        filled,
        release: "",
        v2: false,
        balancing: false,
        cgroups: Vec::new(),
        sysctls: Vec::new(),
    }
}

/// A kernel with some keys of its own.
pub(super) fn kernel(choices: &mut Choices<'_>, known: &mut Known, text: &mut String) {
    let releases: Vec<&'static str> = mmtwin_scenario::bundle_names().collect();
    // Newer kernels more often: they have more mechanisms.
    known.release = match choices.chance(1, 2) {
        true => choices.of(&["6.12", "6.1", "6.18", "6.9", "4.19"]),
        false => choices.of(&releases),
    };
    let _ = writeln!(text, "[kernel]\nrelease = \"{}\"", known.release);
    known.v2 = !known.by_zone() && choices.chance(3, 4);
    let _ = writeln!(text, "cgroup = \"{}\"", if known.v2 { "v2" } else { "v1" });
    if choices.chance(1, 2) {
        let _ = writeln!(text, "thp = \"{}\"", choices.of(&["always", "madvise", "never"]));
    }
    if choices.chance(1, 4) {
        let _ = writeln!(
            text,
            "thp_defrag = \"{}\"",
            choices.of(&["always", "defer", "defer+madvise", "madvise", "never"])
        );
    }
    if choices.chance(1, 8) {
        let _ = writeln!(text, "compaction = false");
    }
    if choices.chance(1, 8) {
        let _ = writeln!(text, "hz = {}", choices.of(&[100, 250, 300, 1000]));
    }
    known.sysctls = sysctls(known.release);
    sysctl(choices, known, text);
    if choices.chance(1, 8) {
        let design = choices.of(&["zone-s8", "zone-s16", "separate-s8", "separate-u16", "events", "off"]);
        let _ = writeln!(text, "[kernel.vmstat]\nnuma_counters = \"{design}\"");
    }
    if known.balancing && choices.chance(2, 3) {
        // Scans that begin within the run.
        let (delay, period) = (choices.of(&[1, 10, 100]), choices.of(&[1, 5, 20, 100]));
        let size = choices.of(&[1, 16, 256]);
        let _ = writeln!(
            text,
            "[kernel.numa_balancing]\nscan_delay_ms = {delay}\nscan_period_min_ms = {period}\nscan_size_mb = {size}"
        );
    }
}

/// Values at the edges of what is allowed, and others.
fn sysctl(choices: &mut Choices<'_>, known: &mut Known, text: &mut String) {
    text.push_str("[kernel.sysctl]\n");
    let has = |name: &str| known.sysctls.iter().any(|known| known == name);
    let balancing = has("kernel.numa_balancing") && choices.chance(1, 2);
    if has("kernel.numa_balancing") {
        let _ = writeln!(text, "\"kernel.numa_balancing\" = {}", u64::from(balancing));
    }
    let values: [(&str, &[u64]); 17] = [
        ("vm.swappiness", &[0, 1, 60, 100]),
        ("vm.min_free_kbytes", &[64, 1, 512, 2048, 8192, 65536]),
        ("vm.watermark_scale_factor", &[10, 1, 100, 1000, 3000]),
        ("vm.watermark_boost_factor", &[0, 1, 15_000, 50_000]),
        ("vm.zone_reclaim_mode", &[0, 1, 3, 7]),
        ("vm.min_unmapped_ratio", &[0, 1, 50, 100]),
        ("vm.dirty_background_ratio", &[0, 5, 10, 100]),
        ("vm.dirty_ratio", &[0, 1, 20, 100]),
        ("vm.dirty_expire_centisecs", &[0, 1, 100, 3000]),
        ("vm.dirty_writeback_centisecs", &[0, 1, 100, 500]),
        ("vm.page-cluster", &[0, 1, 3, 10]),
        ("vm.extfrag_threshold", &[0, 500, 1000]),
        ("vm.vfs_cache_pressure", &[0, 1, 100, 1000]),
        ("vm.compaction_proactiveness", &[0, 20, 100]),
        ("vm.percpu_pagelist_high_fraction", &[0, 8, 100]),
        ("vm.numa_stat", &[0, 1]),
        ("vm.stat_interval", &[1, 2]),
    ];
    for (name, values) in values {
        let refused = name == "vm.zone_reclaim_mode" && known.by_zone();
        if choices.chance(1, 6) && has(name) && !refused {
            let _ = writeln!(text, "\"{name}\" = {}", choices.of(values));
        }
    }
    if choices.chance(1, 12) {
        let _ = writeln!(text, "\"vm.dirty_bytes\" = {}", choices.of(&[8192u64, 1 << 20, 1 << 40]));
    }
    if choices.chance(1, 12) {
        let _ = writeln!(text, "\"vm.dirty_background_bytes\" = {}", choices.of(&[4096u64, 1 << 20, 1 << 40]));
    }
    known.balancing = balancing;
}

/// Names of the sysctls that a kernel has, those of the bundles it builds on among them.
fn sysctls(release: &str) -> Vec<String> {
    let (mut names, mut next) = (Vec::new(), Some(release.to_string()));
    while let Some(text) = next.as_deref().and_then(mmtwin_scenario::bundle_text) {
        let quoted = text.lines().filter_map(|line| Some(line.strip_prefix('"')?.split_once('"')?.0.to_string()));
        names.extend(quoted);
        let base = text.lines().find_map(|line| line.strip_prefix("base = \"")?.strip_suffix('"'));
        next = base.map(str::to_string);
    }
    names
}

/// Cgroups with limits around what the machine has.
pub(super) fn cgroups(choices: &mut Choices<'_>, known: &mut Known, text: &mut String) {
    for number in 0..choices.of(&[0u64, 0, 0, 1, 1, 2, 3]) {
        let parent = known.cgroups.last().filter(|_| choices.chance(1, 3)).cloned().unwrap_or_default();
        let name = format!("{parent}/g{number}");
        let _ = writeln!(text, "[[cgroup]]\nname = \"{name}\"");
        known.cgroups.push(name);
        if known.by_zone() {
            continue;
        }
        let mut limit = |key: &str, times: u64, of: u64, parts: &[u64]| {
            if choices.chance(times, of) {
                let kib = (known.memory / choices.of(parts)).max(4);
                let _ = writeln!(text, "memory.{key} = \"{kib} KiB\"");
            }
        };
        limit("max", 2, 3, &[2, 4, 8, 16, 64, 1024, 1]);
        limit("swap.max", 1, 4, &[4, 64, 1_000_000]);
        if known.v2 {
            limit("high", 1, 3, &[2, 4, 8, 64]);
            limit("low", 1, 4, &[2, 4, 8, 1]);
            limit("min", 1, 6, &[4, 8, 64, 1]);
        }
    }
}
