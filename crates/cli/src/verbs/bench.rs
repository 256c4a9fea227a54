//! `mmtwin bench`.

use super::{column, print_machine, text};
use crate::Failure;
use crate::args::{Bench, BenchOptions};
use mmtwin_host::bench::figure::Figure;
use mmtwin_host::bench::threads::{Cpu, cpus};
use mmtwin_host::bench::{ENOUGH_CPUS, counters, purge};
use mmtwin_report::model::{Body, Cell, Column, Finding, Na, Table};

/// Runs the verb.
pub fn run(arguments: Bench) -> Result<i32, Failure> {
    let failed = |e: mmtwin_host::Error| Failure::Error(e.to_string());
    let cpus = cpus().map_err(failed)?;
    match arguments {
        Bench::Counters(options) => {
            let BenchOptions { duration: time, work, printing } = options;
            let costs =
                counters::measure(&cpus, &counters::Options { time, work: work.unwrap_or(counters::ALLOCATION) });
            print_machine(counter_tables(&costs.map_err(failed)?), few_cpus(&cpus), &printing)
        }
        Bench::Purge(options) => {
            let BenchOptions { duration: time, work, printing } = options;
            let costs = purge::measure(&cpus, &purge::Options { time, work: work.unwrap_or(purge::PAIR) });
            print_machine(vec![purge_table(&costs.map_err(failed)?)], few_cpus(&cpus), &printing)
        }
    }
}

/// A finding if this machine has too few CPUs to measure the cost of contention.
pub(super) fn few_cpus(cpus: &[Cpu]) -> Option<Finding> {
    let count = cpus.len();
    (count < ENOUGH_CPUS).then(|| Finding {
        key: "contention_not_calibrated".into(),
        severity: 50,
        sentence: format!("{count} CPUs cannot calibrate contention: at least {ENOUGH_CPUS} are needed."),
        detail:
            "Figures with more than one CPU are valid for this machine only and have `no` in the column Calibrates: \
                 with so few caches a contended line never queues."
                .into(),
        command: String::new(),
        ..Finding::default()
    })
}

/// Whether a figure of `threads` threads is valid for larger machines.
pub(super) fn calibrates(threads: usize, cpus: usize) -> Cell {
    text(if threads == 1 || cpus >= ENOUGH_CPUS { "yes" } else { "no" })
}

pub(super) fn number(value: f64) -> Cell {
    // Nothing here is known to better than a hundredth of a nanosecond.
    Cell::float(Some((value * 100.0).round() / 100.0))
}

fn count(value: usize) -> Cell {
    Cell::int(value as u64)
}

/// Median, slowest and fastest round.
pub(super) fn spread(figure: &Figure) -> [Cell; 3] {
    [figure.median, figure.low, figure.high].map(number)
}

/// Change of a time against a baseline, in percent; never -0.
fn change(time: f64, baseline: Option<f64>) -> Cell {
    Cell::float(baseline.map(|b| ((time - b) / b * 1000.0).round() / 10.0 + 0.0))
}

fn counter_tables(costs: &counters::Costs) -> Vec<Table> {
    let machine = format!("CPUs: {}, nodes: {}", costs.cpus, costs.nodes);
    let cycles = |time: &Figure| match costs.cycles {
        Some(cycles) => number(time.median * cycles),
        None => Cell::Na(Na::NotRecorded),
    };
    let threshold = |t: Option<u32>| t.map_or(text("none"), |t| Cell::int(t.into()));
    let table = |name: &str, title: &str, note: &str, columns: Vec<Column>, rows: Vec<Vec<Cell>>| Table {
        name: name.into(),
        title: format!("{title} ({machine})"),
        note: note.into(),
        body: Body::List { columns, rows },
    };

    let base = |threads| {
        let is_base = |u: &&counters::Update| u.variant == counters::Variant::ZoneS8 && u.threads == threads;
        costs.updates.iter().find(is_base).map(|u| u.time.median)
    };
    let updates = costs.updates.iter().map(|u| {
        let mut row = vec![text(u.variant.name()), threshold(u.threshold), count(u.threads)];
        row.extend(spread(&u.time));
        let operations = number(u.threads as f64 * 1e3 / u.time.median);
        row.extend([cycles(&u.time), change(u.time.median, base(u.threads)), operations]);
        row.push(calibrates(u.threads, costs.cpus));
        row
    });
    // A threshold is compared within its design: the width of a difference has a cost of its own.
    let swept = |variant| {
        let is_base = |u: &&counters::Update| u.variant == variant && u.threshold == Some(counters::BASE);
        costs.thresholds.iter().find(is_base).map(|u| u.time.median)
    };
    let thresholds = costs.thresholds.iter().map(|u| {
        let mut row = vec![text(u.variant.name()), threshold(u.threshold), count(u.threads)];
        row.extend(spread(&u.time));
        row.extend([cycles(&u.time), change(u.time.median, swept(u.variant))]);
        row.push(calibrates(u.threads, costs.cpus));
        row
    });
    let reads = costs.reads.iter().map(|r| {
        let file = match r.file {
            counters::File::Numastat => "numastat, all nodes",
            counters::File::Vmstat => "/proc/vmstat",
        };
        let mut row = vec![text(r.variant.name()), text(file), count(r.threads)];
        row.extend(spread(&r.time));
        row.extend([cycles(&r.time), calibrates(r.threads + 1, costs.cpus)]);
        row
    });
    let time = |label| {
        [
            column("time", label, "ns"),
            column("low", "Fastest", "ns"),
            column("high", "Slowest", "ns"),
            column("cycles", "TSC", "cycles"),
        ]
    };
    let marked = column("calibrates", "Calibrates", "");
    let [design, limit, threads] =
        [column("design", "Design", ""), column("threshold", "Threshold", ""), column("threads", "Threads", "")];
    let update_columns = [
        &[design.clone(), limit.clone(), threads.clone()][..],
        &time("Alloc+free"),
        &[column("change_percent", "vs zone-s8", "%"), column("throughput", "Throughput", "M/s"), marked.clone()],
    ];
    let sweep_columns = [
        &[design.clone(), limit, threads][..],
        &time("Alloc+free"),
        &[column("change_percent", "vs 125", "%"), marked.clone()],
    ];
    let read_columns =
        [&[design, column("file", "File", ""), column("threads", "Allocating", "")][..], &time("Read"), &[marked]];
    vec![
        table(
            "bench-counters",
            "NUMA counters: updates",
            "CPU time of a thread: median, fastest and slowest round. Each allocation updates numa_hit and local_node.",
            update_columns.concat(),
            updates.collect(),
        ),
        table(
            "bench-thresholds",
            "NUMA counters: published thresholds",
            "Changes are relative to threshold 125 of the same design: the width of the per-CPU counter has its own cost.",
            sweep_columns.concat(),
            thresholds.collect(),
        ),
        table(
            "bench-reads",
            "NUMA counters: reads",
            "One CPU reads all six items; formatting as text is not included.",
            read_columns.concat(),
            reads.collect(),
        ),
    ]
}

fn purge_table(costs: &purge::Costs) -> Table {
    let rows = costs.purges.iter().map(|p| {
        let mut row = vec![count(p.purging), count(p.freeing)];
        row.extend(spread(&p.per_area));
        row.extend(spread(&p.batched));
        let gain = (p.per_area.median - p.batched.median) / p.per_area.median * 1000.0;
        row.push(Cell::float(Some(gain.round() / 10.0)));
        row.extend([p.per_area, p.batched].map(|f| number(f.median * f64::from(costs.areas) / 1e3)));
        row.push(calibrates(p.purging + p.freeing, costs.cpus));
        row
    });
    let columns = vec![
        column("purging", "Purging", ""),
        column("freeing", "Freeing", ""),
        column("per_area", "Per area", "ns"),
        column("per_area_low", "Fastest", "ns"),
        column("per_area_high", "Slowest", "ns"),
        column("batched", "Batched", "ns"),
        column("batched_low", "Fastest", "ns"),
        column("batched_high", "Slowest", "ns"),
        column("gain_percent", "Gain", "%"),
        column("per_area_list", "List, per area", "us"),
        column("batched_list", "List, batched", "us"),
        column("calibrates", "Calibrates", ""),
    ];
    Table {
        name: "bench-purge".into(),
        title: format!("vmalloc purge accounting (CPUs: {}, areas per list: {})", costs.cpus, costs.areas),
        note: "Time per area of a purge list: median, fastest and slowest round.".into(),
        body: Body::List { columns, rows: rows.collect() },
    }
}
