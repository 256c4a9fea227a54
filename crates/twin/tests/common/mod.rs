//! Machines and kernels that several tests use.

pub mod scenario;

use mmtwin_twin::hw::{Cpu, LoopCosts, Machine, PageCosts};
use mmtwin_twin::mm::kernel::{Kernel, KernelRules};
use mmtwin_twin::page_alloc::Rules;
use mmtwin_twin::probe::Probe;
use mmtwin_twin::vmstat::{Design, Dialect, Separate, VmStatRules};

/// Pages of a GiB.
pub const GIB: u64 = 1 << 18;

/// Costs of a machine like the published 2-socket Broadwell; that one's own are in machines/broadwell-2s-88.toml.
pub const BROADWELL: PageCosts = PageCosts {
    clock_khz: 2_194_000,
    alone: LoopCosts { work: 176.0, free_to_buddy: 0.0, count_s8: 13.0, count_u16: 4.5, count_word: 3.0 },
    shared_core: LoopCosts { work: 342.0, free_to_buddy: 0.0, count_s8: 25.85, count_u16: 13.25, count_word: 10.0 },
    refetch: 706.6,
    read_line: 706.6,
    interleave: 0,
    refill: 0,
    lru_add: 0,
};

/// A machine whose nodes have this many cores of some threads; the second threads are numbered after all first ones.
pub fn machine(nodes: u32, cores: u32, threads: u32, pages: u64) -> Machine {
    let one = |_| (0..nodes * cores).map(|core| Cpu { node: core / cores, core });
    let row = |i| (0..nodes).map(|j| if i == j { 10 } else { 21 }).collect();
    let distance = (0..nodes).map(row).collect();
    Machine::pc(&vec![pages; nodes as usize], 4096, (0..threads).flat_map(one).collect(), distance).unwrap()
}

/// The published machine: 2 nodes of 22 cores with 2 threads each, 126 GB.
pub fn broadwell() -> Machine {
    machine(2, 22, 2, 63 * GIB)
}

pub fn vmstat(design: Design, threshold: Option<u32>) -> VmStatRules {
    let (stat_interval, early_drift_marks) = (1_000_000_000, false);
    VmStatRules { design, threshold, stat_interval, hz: 250, early_drift_marks, dialect: Dialect::V4_13 }
}

pub fn kernel(machine: Machine, alloc: Rules, vmstat: VmStatRules) -> Kernel {
    Kernel::new(
        machine,
        BROADWELL,
        KernelRules { alloc, vmstat, reclaim: mmtwin_twin::mm::vmscan::Rules::V6_1 },
        Probe::off(),
    )
    .unwrap()
}

pub const DESIGNS: [Design; 6] = [
    Design::InZone,
    Design::Separate(Separate::FIRST_PATCH),
    Design::Separate(Separate::MERGED),
    Design::Switched(Separate::MERGED),
    Design::Event { zoneinfo_folds: true },
    Design::Off,
];
