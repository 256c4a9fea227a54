//! What the simulated kernel costs: time per allocation and free, memory per page.
//!
//! Prints one line per figure: name, value, bar. Rates are per second of CPU time, so that other work on the machine
//! disturbs them little. Run with `cargo bench -p mmtwin-twin --bench twin`.

use mmtwin_twin::alloc::{Caller, Policy, Request, Rules};
use mmtwin_twin::kernel::{AllocLoop, Kernel, KernelRules, LoopResult};
use mmtwin_twin::machine::{Cpu, LoopCosts, Machine, PageCosts};
use mmtwin_twin::probe::{Probe, Task};
use mmtwin_twin::vmstat::{Design, Dialect, VmStatRules};

const RUNS: usize = 3;
/// Pages of the memory figure.
const PAGES: u64 = 50_000_000;
const COSTS: LoopCosts = LoopCosts { work: 342.0, count_s8: 26.0, count_u16: 13.0, count_word: 10.0 };

fn kernel(nodes: u32, cores: u32, pages: u64, design: Design, alloc: Rules) -> Kernel {
    let cpus = (0..nodes * cores).map(|core| Cpu { node: core / cores, core }).collect();
    let distance = (0..nodes).map(|i| (0..nodes).map(|j| if i == j { 10 } else { 21 }).collect()).collect();
    let machine = Machine::pc(&vec![pages; nodes as usize], 4096, cpus, distance).expect("a possible machine");
    let costs = PageCosts { clock_khz: 2_000_000, alone: COSTS, shared_core: COSTS, refetch: 700.0, read_line: 700.0 };
    let vmstat = VmStatRules { design, threshold: None, stat_interval: 1_000_000_000, hz: 250, dialect: Dialect::V6_1 };
    Kernel::new(machine, costs, KernelRules { alloc, vmstat }, Probe::off()).expect("a possible kernel")
}

fn report(name: &str, value: f64, unit: &str, bar: &str) {
    println!("{name:<64} {value:>10.2} {unit:<10} {bar}");
}

/// Median rate of runs, millions per second.
fn median(mut run: impl FnMut() -> f64) -> f64 {
    let mut rates: Vec<f64> = (0..RUNS).map(|_| run()).collect();
    rates.sort_by(f64::total_cmp);
    rates[RUNS / 2]
}

fn loops(nodes: u32, cores: u32, each: u64, run: impl Fn(&mut Kernel, &AllocLoop) -> LoopResult) -> f64 {
    median(|| {
        let mut kernel = kernel(nodes, cores, 8 << 18, Design::InZone, Rules::V6_1);
        kernel.age_counters(1);
        let cpus: Vec<u32> = (0..nodes * cores).collect();
        let total = each * cpus.len() as u64;
        let work = AllocLoop { cpus, loops: each, request: Request::KERNEL, policy: Policy::Default };
        let begin = cpu_seconds();
        run(&mut kernel, &work);
        total as f64 / (cpu_seconds() - begin) / 1e6
    })
}

/// Seconds of CPU time of this process, user and system, in steps of 10 ms.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // After the name in parentheses come the state and ten more fields, then the two times.
    let fields = text.rsplit_once(')').map_or("", |(_, rest)| rest).split_ascii_whitespace();
    fields.skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// A line of `/proc/self/status` in MiB.
fn status(name: &str) -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let kb = line.and_then(|line| line.split_ascii_whitespace().nth(1)?.parse::<f64>().ok());
    kb.unwrap_or(f64::NAN) / 1024.0
}

fn memory() {
    let before = status("VmRSS");
    let mut kernel = kernel(4, 112, PAGES / 4, Design::InZone, Rules::V6_1);
    report("resident memory with 50 M pages, nothing allocated", status("VmRSS") - before, "MiB", "");
    let mut tasks: Vec<Caller> = (0..448).map(|cpu| Caller::new(cpu, Task::default(), Policy::Default)).collect();
    let (mut allocated, begin) = (0u64, cpu_seconds());
    'all: loop {
        for task in &mut tasks {
            if kernel.allocate(task, &Request::USER).is_err() {
                break 'all;
            }
            allocated += 1;
        }
    }
    let rate = allocated as f64 / (cpu_seconds() - begin) / 1e6;
    let used = status("VmRSS") - before;
    report("  every page allocated singly by 448 CPUs", used, "MiB", "at most 1229 MiB with all else per page");
    report("  bytes per page", used * 1048576.0 / PAGES as f64, "B", "at most 24 with all else per page");
    report("  allocations until memory is full", rate, "M/s", "");
}

fn main() {
    memory();
    let single = |kernel: &mut Kernel, work: &AllocLoop| kernel.run_loops_singly(work).expect("loops run");
    let many = |kernel: &mut Kernel, work: &AllocLoop| kernel.run_loops(work).expect("loops run");
    report("alloc+free pairs one by one, 1 CPU", loops(1, 1, 10_000_000, single), "M/s", "at least 10 M/s");
    report("alloc+free pairs one by one, 88 CPUs", loops(2, 44, 100_000, single), "M/s", "");
    report("alloc+free pairs batched, 1 CPU", loops(1, 1, 5_000_000_000, many), "M/s", "at least 50 M/s");
    report("alloc+free pairs batched, 88 CPUs", loops(2, 44, 5_000_000, many), "M/s", "at least 50 M/s");
    report("alloc+free pairs batched, 448 CPUs", loops(8, 56, 1_000_000, many), "M/s", "at least 50 M/s");
}
