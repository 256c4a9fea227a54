//! Scenarios in which keys must matter: one frame of machine, kernel, workload and run, with what each base changes.
//! They are small, and their workloads ([`super::workloads`]) use all mechanisms that the name of the base stands for.

use super::workloads::{self, toml};

const NO_BALANCING: &str = "sysctl = { 'kernel.numa_balancing' = 0 }";

/// Provenance of a figure of the machine.
const FIGURE: &str = "[machine.cost]; sample = '3 ms'; [[machine.figure]]; of = ['cost.sample']; provenance = 'fitted'; \
                      source = 'here'; fits = ['x:y']";

/// A zone that is spelled out.
const ZONE: &str = "[[machine.node.zone]]; kind = 'DMA32'; start_pfn = 4096; spanned = 20480; present = 20480; \
                    managed = 19000";

/// The end of DMA32 and the start of Normal.
const NORMAL: &str = "[[machine.node.zone]]; kind = 'DMA32'; start_pfn = 1044480; spanned = 4096; present = 4096; \
                      managed = 4000; [[machine.node.zone]]; kind = 'Normal'; start_pfn = 1048576; spanned = 8192; \
                      present = 8192; managed = 8000";

/// Four nodes in a ring, each with one core of two threads.
fn ring(memory: &str) -> String {
    let nodes = ["0-1", "2-3", "4-5", "6-7"]
        .map(|cpus| format!("[[machine.node]]\ncpus = '{cpus}'\nmemory = '{memory}'\n"))
        .concat();
    toml("[machine]; name = 'm'; threads_per_core = 2; siblings = 'adjacent'")
        + "distance = [[10, 20, 31, 20], [20, 10, 20, 31], [31, 20, 10, 20], [20, 31, 20, 10]]\n"
        + &nodes
        + &toml("[machine.swap]; size = '512 MiB'; latency = '100 us'; bandwidth = '200 MB/s'")
}

/// One node with explicit zones.
fn zoned(memory: &str, zones: &str) -> String {
    format!("[machine]\n[[machine.node]]\ncpus = '0-1'\nmemory = '{memory}'\n{}", toml(zones))
}

/// The frame: a machine, keys of the kernel, a workload, keys of the run.
fn scenario(machine: &str, release: &str, kernel: &str, workload: &str, run: &str) -> String {
    let run = if run.is_empty() { String::new() } else { toml(&format!("[run]; {run}")) };
    format!("{machine}[kernel]\nrelease = '{release}'\n{}{workload}{run}", toml(kernel))
}

/// NUMA balancing with short scan periods.
fn numa(release: &str, thp: &str) -> String {
    let kernel = format!(
        "thp = '{thp}'; sysctl = {{ 'kernel.numa_balancing' = 1 }}; [kernel.numa_balancing]; scan_delay_ms = 50; \
         scan_period_min_ms = 50; scan_period_max_ms = 1000; scan_size_mb = 4"
    );
    let run = "duration = '1500 ms'; sample = '500 ms'; events = ['sched:*', 'mmtwin:*']";
    scenario(&ring("256 MiB"), release, &kernel, &workloads::numa(), run)
}

/// A workload that is larger than memory.
fn reclaim(release: &str, more: &str) -> String {
    let balancing = if release.starts_with('6') { NO_BALANCING } else { "" };
    let compaction = if release.starts_with('2') { "" } else { ", 'compaction:*'" };
    let run = format!("duration = '300 ms'; sample = '100 ms'; events = ['vmscan:*'{compaction}]");
    let workload = workloads::streams() + &workloads::writers() + more;
    scenario(&ring("24 MiB"), release, &format!("thp = 'never'; {balancing}"), &workload, &run)
}

/// The same on one node with explicit zones.
fn reclaim_zones(release: &str, machine: &str) -> String {
    let workload = workloads::streams() + &workloads::writers();
    scenario(machine, release, NO_BALANCING, &workload, "duration = '300 ms'; events = ['vmscan:*']")
}

/// Processes in cgroups.
fn cgroups(release: &str, workload: &str) -> String {
    let run = "duration = '500 ms'; sample = '100 ms'; events = ['vmscan:*']";
    scenario(&ring("12 MiB"), release, &format!("thp = 'never'; {NO_BALANCING}"), workload, run)
}

/// The scenario of a name: its subject, and the release after a dash.
pub fn text(name: &str) -> String {
    let (what, release) = name.split_once('-').unwrap_or_else(|| panic!("{name} names no release"));
    let pages = workloads::pages();
    match what {
        "numa" => numa(release, "never"),
        "numahuge" => numa(release, "always"),
        "reclaim" => reclaim(release, ""),
        "lookup" => reclaim(release, &workloads::lookup()),
        "normal" => reclaim_zones(release, &zoned("48 MiB", NORMAL)),
        "zone" => reclaim_zones(release, &zoned("80 MiB", ZONE)),
        "cgroup" => cgroups(release, &workloads::nested_cgroups()),
        "madvise" => cgroups(release, workloads::MADVISE),
        "limit" => cgroups(release, &workloads::one_cgroup()),
        "counters" => {
            let run = "sample = '50 ms'; events = ['vmscan:*']";
            scenario(&ring("64 MiB"), release, "thp = 'never'", workloads::LOOPS, run)
        }
        "vmalloc" => scenario(&ring("256 MiB"), release, "", &workloads::vmalloc(), ""),
        "huge" => {
            let run =
                "duration = '1 s'; sample = '500 ms'; events = ['vmscan:*', 'compaction:*', 'kmem:mm_page_alloc']";
            scenario(&ring("32 MiB"), release, NO_BALANCING, workloads::HUGE, run)
        }
        "foreign" => {
            let run = "duration = '3 s'; events = ['writeback:*']";
            scenario(&ring("64 MiB"), release, NO_BALANCING, &workloads::one_file_of_two_cgroups(), run)
        }
        "shared" => scenario(&ring("64 MiB"), release, NO_BALANCING, &workloads::shared(), ""),
        "write" => scenario(&ring("64 MiB"), release, "", &workloads::journal(), "duration = '7 s'"),
        "preset" => scenario("[machine]\npreset = 'broadwell-2s'\n", release, "", &pages, ""),
        "figure" => scenario(&(ring("64 MiB") + &toml(FIGURE)), release, "", &pages, ""),
        _ => panic!("there is no scenario {what}"),
    }
}
