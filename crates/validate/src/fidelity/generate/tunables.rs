//! The kernel and its tunables. Most are the defaults, as on most machines; what a workload is about departs from them
//! more often.

use super::draw::Draw;
use super::machine::Machine;
use std::fmt::Write;

/// What a workload is about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Focus {
    /// Reclaim alone.
    Reclaim,
    /// Dirty pages and their limits.
    Dirty,
    /// NUMA balancing.
    Balancing,
    /// Huge pages.
    Huge,
}

/// Percentage of scenarios in which a tunable departs from its default.
const RARELY: u64 = 15;
/// The same for what the workload is about.
const OFTEN: u64 = 60;

/// The guest that runs a release, and the text of `[kernel]`.
pub struct Kernel {
    /// Preset of the machine.
    pub preset: &'static str,
    /// The tables.
    pub text: String,
}

/// The preset of the lab's guest with a release.
pub fn preset(release: &str) -> &'static str {
    match release {
        "6.12" => "lab-4n-6.12",
        "7.3" => "lab-4n-7.3",
        _ => "lab-4n",
    }
}

/// Draws one.
pub fn kernel(draw: &mut Draw, focus: Focus, machine: &Machine) -> Kernel {
    let release = draw.pick(&["6.1", "6.12"]);
    let mut text = format!("\n[kernel]\nrelease = \"{release}\"\n");
    let thp = match focus {
        Focus::Huge => draw.pick(&["always", "always", "madvise"]),
        _ => draw.pick(&["never", "never", "never", "madvise", "always"]),
    };
    let _ = writeln!(text, "thp = \"{thp}\"");
    if thp != "never" && draw.percent(if focus == Focus::Huge { OFTEN } else { RARELY }) {
        let _ = writeln!(text, "thp_defrag = \"{}\"", draw.pick(&["always", "defer", "defer+madvise", "never"]));
    }
    let balancing = if focus == Focus::Balancing { 90 } else { 25 };
    let balancing = machine.nodes.len() > 1 && draw.percent(balancing);
    text.push_str("\n[kernel.sysctl]\n");
    let mut set = |name: &str, value: u64| {
        let _ = writeln!(text, "\"{name}\" = {value}");
    };
    set("kernel.numa_balancing", balancing.into());
    let eighths = if draw.percent(RARELY) { draw.pick(&[4, 16, 32]) } else { 8 };
    set("vm.min_free_kbytes", min_free_kbytes(machine) * eighths / 8);
    sysctls(draw, focus, machine, &mut set);
    if balancing && draw.percent(OFTEN) {
        let least = draw.pick(&[100, 250, 500, 1000]);
        let _ = write!(
            text,
            "\n[kernel.numa_balancing]\nscan_delay_ms = {}\nscan_period_min_ms = {least}\nscan_period_max_ms = {}\n\
             scan_size_mb = {}\n",
            draw.pick(&[200, 500, 1000]),
            least * draw.pick(&[4, 16, 60]),
            draw.pick(&[16, 64, 256]),
        );
    }
    Kernel { preset: preset(release), text }
}

/// What the kernel computes itself from the memory that it manages. A guest computes it while its boot image is in
/// memory, which the twin does not know: so it is always given.
fn min_free_kbytes(machine: &Machine) -> u64 {
    let managed_kib = machine.memory() * 1024 * 95 / 100;
    (managed_kib * 16).isqrt() / 64 * 64
}

/// Sysctls with their values. `vm.page-cluster` and `vm.compaction_proactiveness` have the kernel's default, or are off.
fn sysctls(draw: &mut Draw, focus: Focus, machine: &Machine, set: &mut dyn FnMut(&str, u64)) {
    let often = |of: Focus| if focus == of { OFTEN } else { RARELY };
    // (sysctl, percentage, values)
    let drawn: [(&str, u64, &[u64]); 14] = [
        ("vm.swappiness", 50, &[0, 1, 10, 30, 100, 133, 180, 200]),
        ("vm.watermark_scale_factor", 30, &[30, 50, 100, 200, 300]),
        ("vm.watermark_boost_factor", RARELY, &[0, 5000]),
        ("vm.page-cluster", 40, &[0]),
        ("vm.compaction_proactiveness", 40, &[0]),
        ("vm.vfs_cache_pressure", RARELY, &[20, 50, 200, 500]),
        ("vm.extfrag_threshold", often(Focus::Huge), &[100, 300, 700, 900]),
        ("vm.percpu_pagelist_high_fraction", RARELY, &[8, 32, 128]),
        ("vm.stat_interval", RARELY, &[2, 5, 10]),
        ("vm.dirty_background_ratio", often(Focus::Dirty), &[2, 5, 20, 30]),
        ("vm.dirty_ratio", often(Focus::Dirty), &[35, 40, 60]),
        ("vm.dirty_expire_centisecs", often(Focus::Dirty), &[200, 500, 1000]),
        ("vm.dirty_writeback_centisecs", often(Focus::Dirty), &[50, 100, 200]),
        ("vm.min_unmapped_ratio", RARELY, &[5, 20]),
    ];
    for (name, percentage, values) in drawn {
        if draw.percent(percentage) {
            set(name, draw.pick(values));
        }
    }
    if machine.nodes.len() > 1 && draw.percent(20) {
        set("vm.zone_reclaim_mode", draw.pick(&[1, 3, 7]));
    }
}
