//! What the simulated kernel costs: time per allocation and free, memory per page, time per vmap area.

use crate::inputs::Result;
use crate::measure::{Cost, median, own};
use crate::table::{Bar, Row};
use mmtwin_event::NullSink;
use mmtwin_scenario::program::{Classes, Pattern, Permutation, Stream};
use mmtwin_twin::build;
use mmtwin_twin::engine::{Options, State, run};
use mmtwin_twin::hw::{Cpu, LoopCosts, Machine, PageCosts};
use mmtwin_twin::mm::kernel::{Kernel, KernelRules};
use mmtwin_twin::mm::replacement::{Clock, Lru, hits};
use mmtwin_twin::mm::vmscan as reclaim;
use mmtwin_twin::page_alloc::{Caller, Policy, Request, Rules};
use mmtwin_twin::probe::{Probe, Task};
use mmtwin_twin::vmalloc::params::Workload;
use mmtwin_twin::vmalloc::{Outcome, Params, stress, stress_over_rates};
use mmtwin_twin::vmstat::{Design, Dialect, VmStatRules};
use mmtwin_twin::workload::alloc_loop::AllocLoop;
use std::num::NonZeroU32;
use std::path::Path;

/// Pages of the memory figure.
const PAGES: u64 = 50_000_000;
/// Loops of one thread on 448 CPUs that free 20 million areas.
const AREA_LOOPS: u64 = 44_643;
const COSTS: LoopCosts =
    LoopCosts { work: 342.0, free_to_buddy: 0.0, count_s8: 26.0, count_u16: 13.0, count_word: 10.0 };

/// All rows.
pub fn rows(runs: usize) -> Result<Vec<Row>> {
    let mut rows = touches()?;
    rows.extend(memory()?);
    for (think, bar) in [("1 us", Bar::AtMost(6.0)), ("100 ns", Bar::AtMost(6.0))] {
        rows.push(balancing(runs, think, bar)?);
    }
    for (how, nodes, cores, each, bar) in [
        (Loops::Single, 1, 1, 10_000_000, Bar::AtLeast(10e6)),
        (Loops::Single, 2, 44, 100_000, Bar::None),
        (Loops::Batched, 1, 1, 5_000_000_000, Bar::AtLeast(50e6)),
        (Loops::Batched, 2, 44, 5_000_000, Bar::AtLeast(50e6)),
        (Loops::Batched, 8, 56, 1_000_000, Bar::AtLeast(50e6)),
    ] {
        rows.push(loops(runs, how, nodes, cores, each, bar)?);
    }
    for accounting in ["per-area", "batched"] {
        rows.extend(areas(runs, accounting)?);
    }
    rows.extend(replays(runs)?);
    Ok(rows)
}

fn kernel(nodes: u32, cores: u32, pages: u64) -> Result<Kernel> {
    let cpus = (0..nodes * cores).map(|core| Cpu { node: core / cores, core }).collect();
    let distance = (0..nodes).map(|i| (0..nodes).map(|j| if i == j { 10 } else { 21 }).collect()).collect();
    let machine = Machine::pc(&vec![pages; nodes as usize], 4096, cpus, distance).map_err(|e| e.to_string())?;
    let costs = PageCosts {
        clock_khz: 2_000_000,
        alone: COSTS,
        shared_core: COSTS,
        refetch: 700.0,
        read_line: 700.0,
        interleave: 0,
        refill: 0,
        lru_add: 0,
    };
    let (stat_interval, dialect) = (1_000_000_000, Dialect::V6_1);
    let vmstat = VmStatRules {
        design: Design::InZone,
        threshold: None,
        stat_interval,
        hz: 250,
        early_drift_marks: false,
        dialect,
    };
    Kernel::new(machine, costs, KernelRules { alloc: Rules::V6_1, vmstat, reclaim: reclaim::Rules::V6_1 }, Probe::off())
        .map_err(|e| e.to_string())
}

#[derive(Clone, Copy)]
enum Loops {
    Single,
    Batched,
}

fn rate(what: String, count: f64, cost: Cost, unit: &str, bar: Bar) -> Row {
    let (cpu, wall) = (count / cost.cpu, count / cost.wall);
    let figure = format!("{:.1} M {unit}/s of CPU time ({:.1} M of wall time)", cpu / 1e6, wall / 1e6);
    Row::new(&what, bar, cpu, figure)
}

fn loops(runs: usize, how: Loops, nodes: u32, cores: u32, each: u64, bar: Bar) -> Result<Row> {
    let cpus: Vec<u32> = (0..nodes * cores).collect();
    let work = AllocLoop { cpus, loops: each, request: Request::KERNEL, policy: Policy::Default };
    let run = || {
        let mut kernel = kernel(nodes, cores, 8 << 18)?;
        kernel.age_counters(1);
        own(|| {
            let done = match how {
                Loops::Single => kernel.run_loops_singly(&work),
                Loops::Batched => kernel.run_loops(&work),
            };
            done.map(|_| ()).map_err(|e| e.to_string())
        })
    };
    let cost = median((0..runs).map(|_| run()).collect::<Result<Vec<Cost>>>()?);
    let name = match how {
        Loops::Single => "one by one",
        Loops::Batched => "batched",
    };
    let cpus = nodes * cores;
    let what = format!("Twin: pages allocated and freed, {name}, {cpus} {}", if cpus == 1 { "CPU" } else { "CPUs" });
    Ok(rate(what, (each * u64::from(nodes * cores)) as f64, cost, "pairs", bar))
}

/// Resident memory of this process in bytes.
fn resident() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/self/status").map_err(|e| e.to_string())?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kb = line.and_then(|line| line.split_ascii_whitespace().next()?.parse::<f64>().ok());
    Ok(kb.ok_or("no VmRSS in /proc/self/status")? * 1024.0)
}

/// Most resident memory since the last reset, in bytes.
fn peak() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/self/status").map_err(|e| e.to_string())?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kb = line.and_then(|line| line.split_ascii_whitespace().next()?.parse::<f64>().ok());
    Ok(kb.ok_or("no VmHWM in /proc/self/status")? * 1024.0)
}

/// A scenario whose 448 threads access a region of 50 M pages at random: time, and memory with everything in it.
fn touches() -> Result<Vec<Row>> {
    // What describes the pages, and the watermarks, are not the region's.
    let bytes = PAGES / 25 * 24 * 4096;
    let text = format!(
        "[machine]\npreset = \"epyc-zen4-2s-448\"\n[kernel]\nrelease = \"6.1\"\nthp = \"never\"\n[[process]]\n\
         name = \"heap\"\nthreads = 448\npin = true\n[[process.region]]\nname = \"heap\"\nsize = \"{bytes} B\"\n\
         [[process.phase]]\nduration = \"400 ms\"\n[[process.phase.access]]\nregion = \"heap\"\n\
         pattern = \"uniform\"\nwrite = 1.0\nthink = \"1 us\"\n[run]\nsample = \"0 s\"\n"
    );
    let sets = [0, 1].map(|node| format!("machine.node.{node}.memory={} B", PAGES / 2 * 4096));
    let scenario = mmtwin_scenario::parse("touches", &text, Path::new(""), &sets).map_err(|e| e.to_string())?;
    // Begins a new peak.
    std::fs::write("/proc/self/clear_refs", "5").map_err(|e| e.to_string())?;
    let before = resident()?;
    let mut done = (0, 0);
    let cost = own(|| {
        let options = Options {
            state: State::default(),
            explicit: false,
            trace: None,
            events: Vec::new(),
            progress: &mut |_| {},
        };
        let ran = run(&scenario, options, &mut NullSink).map_err(|e| e.to_string())?;
        let of = ran.results.phases.iter().flat_map(|phase| &phase.accesses).next();
        done = of.map_or((0, 0), |of| (of.touches, of.faults));
        Ok(())
    })?;
    let used = peak()? - before;
    let each = used / PAGES as f64;
    let memory = format!("{each:.1} bytes per page, {:.0} MiB", used / 1048576.0);
    let what = "Twin: memory of a run on 50 M pages, touched by 448 threads";
    let (touches, faults) = (done.0 as f64, done.1 as f64);
    let name = "Twin: the same run, touches at random".to_string();
    let faulting = "Twin: the same run, page faults".to_string();
    Ok(vec![
        Row::new(what, Bar::AtMost(24.0), each, memory),
        rate(name, touches, cost, "touches", Bar::None),
        rate(faulting, faults, cost, "faults", Bar::None),
    ])
}

/// Sixty seconds of NUMA balancing: two programs of 40 threads on 8 nodes with 80 CPUs, 128 GiB accessed, one shared by
/// popularity and one private; more accesses must not cost more.
fn balancing(runs: usize, think: &str, bar: Bar) -> Result<Row> {
    let nodes = (0..8)
        .map(|node| format!("[[machine.node]]\ncpus = \"{}-{}\"\nmemory = \"32 GiB\"\n", node * 10, node * 10 + 9));
    let distance: Vec<Vec<u32>> = (0..8).map(|i| (0..8).map(|j| if i == j { 10 } else { 20 }).collect()).collect();
    let process = |name: &str, sharing: &str, pattern: &str| {
        format!(
            "[[process]]\nname = \"{name}\"\nthreads = 40\n[[process.region]]\nname = \"heap\"\nsize = \"64 GiB\"\n\
             sharing = \"{sharing}\"\npopulate = true\n[[process.phase]]\nduration = \"60 s\"\n\
             [[process.phase.access]]\nregion = \"heap\"\npattern = {pattern}\nwrite = 0.3\nthink = \"{think}\"\n"
        )
    };
    let text = format!(
        "[machine]\nname = \"big\"\ndistance = {distance:?}\n{}[kernel]\nrelease = \"6.1\"\n{}{}",
        nodes.collect::<String>(),
        process("shared", "shared", "\"zipf\"\nskew = 0.6"),
        process("private", "private", "\"uniform\"")
    );
    let scenario = mmtwin_scenario::parse("balancing", &text, Path::new(""), &[]).map_err(|e| e.to_string())?;
    let once = || {
        own(|| {
            let options = Options {
                state: State::default(),
                explicit: false,
                trace: None,
                events: Vec::new(),
                progress: &mut |_| {},
            };
            run(&scenario, options, &mut NullSink).map(|_| ()).map_err(|e| e.to_string())
        })
    };
    let cost = median((0..runs).map(|_| once()).collect::<Result<Vec<Cost>>>()?);
    let figure = format!("{:.1} s for 60 s ({:.1} s of CPU time)", cost.wall, cost.cpu);
    Ok(Row::new(&format!("Twin: NUMA balancing of 80 threads, 128 GiB, a touch per {think}"), bar, cost.wall, figure))
}

/// Hits of a cache of 100,000 pages, for accesses of a million by popularity.
fn replays(runs: usize) -> Result<[Row; 2]> {
    let (pages, size, touches) = (1_000_000, NonZeroU32::new(100_000).ok_or("no pages")?, 50_000_000);
    let pattern = Pattern::Draws(Classes::zipf(pages.into(), 0.9), Permutation::new(pages.into(), 1, 0));
    let trace: Vec<u32> = Stream::new(pattern, 0.0, 1, 0).take(touches).map(|touch| touch.page as u32).collect();
    let row = |name: &str, replay: &dyn Fn() -> u64| {
        let mut found = 0;
        let mut once = || {
            own(|| {
                found = replay();
                Ok(())
            })
        };
        let cost = median((0..runs).map(|_| once()).collect::<Result<Vec<Cost>>>()?);
        let percent = 100.0 * found as f64 / touches as f64;
        let what = format!("Twin: {name} alone, 1 M pages by popularity of which 100,000 fit ({percent:.1} % hits)");
        Ok::<_, String>(rate(what, touches as f64, cost, "touches", Bar::AtLeast(20e6)))
    };
    Ok([
        row("LRU", &|| hits(&mut Lru::new(size, pages), &trace))?,
        row("CLOCK", &|| hits(&mut Clock::new(size, pages), &trace))?,
    ])
}

/// Memory of a kernel whose pages were all allocated singly by 448 CPUs.
fn memory() -> Result<Vec<Row>> {
    let before = resident()?;
    let mut kernel = kernel(4, 112, PAGES / 4)?;
    let mut tasks: Vec<Caller> = (0..448).map(|cpu| Caller::new(cpu, Task::default(), Policy::Default)).collect();
    let mut allocated = 0u64;
    let cost = own(|| {
        'all: loop {
            for task in &mut tasks {
                if kernel.allocate(task, &Request::USER).is_err() {
                    break 'all Ok(());
                }
                allocated += 1;
            }
        }
    })?;
    let used = resident()? - before;
    let each = used / PAGES as f64;
    let figure = format!("{each:.1} bytes per page, {:.0} MiB", used / 1048576.0);
    let what = "Twin: memory of 50 M pages, all allocated by 448 CPUs";
    let filling = "Twin: allocations until that memory is full".into();
    Ok(vec![Row::new(what, Bar::AtMost(24.0), each, figure), rate(filling, allocated as f64, cost, "pages", Bar::None)])
}

/// The parameters of the published run with per-area or batched accounting.
fn params(accounting: &str) -> Result<Params> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/published/vmalloc-purge/scenario.toml");
    let set = format!("kernel.vmalloc.purge_accounting={accounting}");
    let scenario = mmtwin_scenario::load(Path::new(path), &[set]).map_err(|e| e.to_string())?;
    build::vmalloc(&scenario).map_err(|e| e.to_string())
}

fn areas(runs: usize, accounting: &str) -> Result<[Row; 2]> {
    let published = params(accounting)?;
    let short =
        Params { workload: Workload { tests: 1, loops: AREA_LOOPS, ..published.workload }, ..published.clone() };
    let time = |run: &dyn Fn() -> std::result::Result<Outcome, String>| -> Result<(u64, Cost)> {
        let mut purged = 0;
        let mut once = || {
            own(|| {
                purged = run()?.purged;
                Ok(())
            })
        };
        let cost = median((0..runs).map(|_| once()).collect::<Result<Vec<Cost>>>()?);
        Ok((purged, cost))
    };
    let row = |what: String, (purged, cost): (u64, Cost), bar| {
        let million = purged as f64 / 1e6;
        let figure = format!(
            "{:.1} s for {million:.0} M areas, {:.1} M areas/s ({:.1} s of CPU time)",
            cost.wall,
            million / cost.wall,
            cost.cpu
        );
        Row::new(&what, bar, cost.wall, figure)
    };
    let singly = time(&|| stress(&short, &mut Probe::off(), 1).map_err(|e| e.to_string()))?;
    let over_rates = time(&|| stress_over_rates(&published, 1).map_err(|e| e.to_string()))?;
    Ok([
        row(format!("Twin: vmap areas purged on 448 CPUs, single events, {accounting}"), singly, Bar::AtMost(10.0)),
        row(format!("Twin: the published purge run, over rates, {accounting}"), over_rates, Bar::None),
    ])
}
