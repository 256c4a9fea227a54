//! The files of real kernels against those of the twin on the same machines: rows, layout, zone sizes, watermarks,
//! reserves, list sizes and thresholds. Counts that depend on what the kernel has done are not compared.

#![allow(clippy::single_range_in_vec_init)] // memory really is a list of ranges

use crate::common::{BROADWELL, kernel, vmstat};
use mmtwin_twin::hw::{Cpu, Machine, Node};
use mmtwin_twin::mm::kernel::{Kernel, KernelRules};
use mmtwin_twin::page_alloc::Rules;
use mmtwin_twin::probe::Probe;
use mmtwin_twin::vmstat::{Design, Dialect, VmStatRules, dialect};
use std::ops::Range;

/// Rows that follow from the machine and the rules alone.
const FIXED: [&str; 15] = [
    "min",
    "low",
    "high",
    "promo",
    "spanned",
    "present",
    "managed",
    "cma",
    "protection:",
    "batch:",
    "high:",
    "high_min:",
    "high_max:",
    "boost",
    "start_pfn:",
];

/// A file with the values that depend on what has happened removed, and those of a row more.
fn comparable(text: &str, but: &str) -> Vec<String> {
    let line = |line: &str| {
        let name = line.split_ascii_whitespace().next().unwrap_or_default();
        let fixed = FIXED.contains(&name) && name != but;
        let shown = fixed || ["Node", "cpu:", "vm", "per-node", "pagesets"].contains(&name);
        match line.trim_end().rfind(' ') {
            Some(_) if name == but => name.to_string(),
            Some(at) if !shown => line[..=at].to_string(),
            _ => line.to_string(),
        }
    };
    text.lines().map(line).collect()
}

fn assert_same(ours: &[String], real: &[String]) {
    for (number, (ours, real)) in ours.iter().zip(real).enumerate() {
        assert_eq!(ours, real, "line {}", number + 1);
    }
    assert_eq!(ours.len(), real.len());
}

fn node(memory: &[Range<u64>], reserved: &[Range<u64>]) -> Node {
    Node { memory: memory.to_vec(), reserved: reserved.to_vec() }
}

fn names(text: &str) -> Vec<&str> {
    text.lines().map(|line| line.split(' ').next().unwrap_or_default()).collect()
}

/// A kernel's file without the rows of counters that no mechanism keeps: those are not shown.
fn kept(text: &str, kernel: &Kernel) -> String {
    let shown = |line: &&str| {
        let name = line.split_ascii_whitespace().next().unwrap_or_default();
        name != "node_unreclaimable:" && (kernel.stat.keeps(&kernel.alloc, name) || !kernel.stat.is_counter(name))
    };
    text.lines().filter(shown).map(|line| format!("{line}\n")).collect()
}

/// All rows of `/proc/vmstat` of a release, kept or not.
fn rows(dialect: Dialect) -> Vec<&'static str> {
    dialect::zone_rows(dialect)
        .into_iter()
        .chain(dialect::node_rows(dialect))
        .chain(dialect::other_rows(dialect))
        .collect()
}

/// A guest of 4 nodes with 2 CPUs each.
fn guest() -> Kernel {
    let reserve = |end: u64, pages: u64| end - pages..end;
    let nodes = vec![
        node(&[1..159, 256..0x2_0000], &[1..159, reserve(0x2_0000, 126_976 - 116_655)]),
        node(&[0x2_0000..0x4_0000], &[reserve(0x4_0000, 2214)]),
        node(&[0x4_0000..0x6_0000], &[reserve(0x6_0000, 2214)]),
        node(&[0x6_0000..0x7_8000, 0x7_c000..0x7_ffdf], &[reserve(0x7_ffdf, 2475)]),
    ];
    let cpus = (0..8).map(|cpu| Cpu { node: cpu / 2, core: cpu }).collect();
    let distance = (0..4).map(|i| (0..4).map(|j| if i == j { 10 } else { 20 }).collect()).collect();
    // The kernel computed it, and the reserves, before the initial file system was freed.
    let alloc = Rules { min_free_kbytes: Some(5388), ..Rules::V6_1 };
    let rules = VmStatRules { dialect: Dialect::V6_1, ..vmstat(Design::Event { zoneinfo_folds: false }, None) };
    kernel(Machine::new(nodes, cpus, distance).unwrap(), alloc, rules)
}

#[test]
fn a_guest_with_kernel_6_1() {
    let mut kernel = guest();
    let (text, _) = kernel.stat.zoneinfo_text(&kernel.alloc);
    let real = kept(include_str!("data/zoneinfo-6.1.txt"), &kernel);
    assert_same(&comparable(&text, "protection:"), &comparable(&real, "protection:"));
    let (text, _) = kernel.stat.vmstat_text(&kernel.alloc);
    let real = include_str!("data/vmstat-6.1.txt");
    assert_eq!(names(&text), names(&kept(real, &kernel)));
    assert_eq!(rows(Dialect::V6_1), names(real));
    // A counter without a mechanism is not shown as 0.
    let absent =
        ["nr_mlock", "pgpromote_success", "thp_collapse_alloc", "balloon_inflate", "drop_slab", "node_unreclaimable:"];
    let shown = text + &kernel.stat.zoneinfo_text(&kernel.alloc).0 + &kernel.stat.node_vmstat_text(0, &kernel.alloc).0;
    assert_eq!(absent.into_iter().filter(|name| shown.contains(name)).collect::<Vec<_>>(), [""; 0]);
    assert!(shown.contains("pgscan_kswapd 0"));
}

#[test]
fn a_host_with_kernel_6_18() {
    let managed = [772_915, 1_802_240];
    let nodes = vec![node(
        &[1..159, 256..782_336 + 4096, 0x10_0000..0x64_0000],
        &[1..159, 782_336 + 4096 - (782_336 - managed[0])..782_336 + 4096, 0x10_0000 + managed[1]..0x64_0000],
    )];
    let cpus = (0..2).map(|core| Cpu { node: 0, core }).collect();
    let machine = Machine::new(nodes, cpus, vec![vec![10]]).unwrap();
    let vmstat = VmStatRules { dialect: Dialect::V6_18, ..vmstat(Design::Event { zoneinfo_folds: true }, None) };
    let rules = KernelRules { alloc: Rules::V6_12, vmstat, reclaim: mmtwin_twin::mm::vmscan::Rules::V6_1 };
    let mut kernel = Kernel::new(machine, BROADWELL, rules, Probe::off()).unwrap();
    let (text, _) = kernel.stat.zoneinfo_text(&kernel.alloc);
    // The length of a list moves between its bounds.
    let real = kept(include_str!("data/zoneinfo-6.18.txt"), &kernel);
    assert_same(&comparable(&text, "high:"), &comparable(&real, "high:"));
    let (text, _) = kernel.stat.vmstat_text(&kernel.alloc);
    let real = include_str!("data/vmstat-6.18.txt");
    assert_eq!(names(&text), names(&kept(real, &kernel)));
    assert_eq!(rows(Dialect::V6_18), names(real));
}

#[test]
fn a_guest_with_kernel_6_12_counts_node_reclaims_that_had_enough() {
    assert_eq!(rows(Dialect::V6_12), names(include_str!("data/vmstat-6.12.txt")));
    assert!(!rows(Dialect::V6_1).contains(&"zone_reclaim_success"));
}

#[test]
fn numa_rows_move_with_the_series() {
    let rows = |dialect: Dialect| {
        let rows = dialect::zone_rows(dialect).into_iter().chain(dialect::node_rows(dialect));
        rows.skip(11).take(9).map(String::from).collect::<Vec<_>>()
    };
    let numa = ["numa_hit", "numa_miss", "numa_foreign", "numa_interleave", "numa_local", "numa_other"];
    let before: Vec<&str> = ["nr_zspages"].into_iter().chain(numa).chain(["nr_free_cma", "nr_inactive_anon"]).collect();
    let after: Vec<&str> = ["nr_zspages", "nr_free_cma"].into_iter().chain(numa).chain(["nr_inactive_anon"]).collect();
    assert_eq!((rows(Dialect::V4_13), rows(Dialect::V4_14)), (owned(&before), owned(&after)));
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| name.to_string()).collect()
}

#[test]
fn a_4_13_zone_prints_four_kinds() {
    let mut kernel =
        kernel(crate::common::machine(1, 16, 1, crate::common::GIB), Rules::V4_13, vmstat(Design::InZone, None));
    let (text, _) = kernel.stat.zoneinfo_text(&kernel.alloc);
    assert_eq!(text.matches("zone ").count(), 4);
    assert!(text.contains("        protection: (0, ") && text.contains("  vm stats threshold: 10\n"));
    assert!(text.contains("              count: 0\n              high:  0\n              batch: 1\n"));
    assert!(text.contains("  start_pfn:           1\nNode 0, zone    DMA32\n"));
    assert!(!text.contains("boost") && !text.contains("Device"));
}
