//! `mmtwin calibrate`.

use super::bench::{calibrates, few_cpus, number, spread};
use super::{column, print_machine, text};
use crate::args::Calibrate;
use crate::{Failure, say};
use mmtwin_host::bench::figure::Figure;
use mmtwin_host::calibrate::memory::Access;
use mmtwin_host::calibrate::topology::Between;
use mmtwin_host::calibrate::{Calibration, machine_file, measure};
use mmtwin_report::model::{Body, Cell, Na, Table};
use mmtwin_trace::output::FileOutput;
use std::collections::BTreeSet;

/// Runs the verb.
pub fn run(arguments: Calibrate) -> Result<i32, Failure> {
    let output = &arguments.output;
    // Said before minutes are spent on measuring.
    FileOutput::check(output, arguments.force)?;
    let calibration = measure(&mut say).map_err(|e| Failure::Error(e.to_string()))?;
    calibration.notes.iter().for_each(|note| say(note));
    let text = machine_file::write(&calibration);
    FileOutput::open(output, arguments.force, 0o666)?.write(text.as_bytes())?;
    say(&format!("wrote {}", output.display()));
    print_machine(tables(&calibration), few_cpus(&calibration.cpus), &arguments.printing)
}

fn tables(calibration: &Calibration) -> Vec<Table> {
    vec![
        atomics(calibration),
        pairs(calibration, "transfer"),
        pairs(calibration, "handoff"),
        memory(calibration, "latency"),
        memory(calibration, "bandwidth"),
    ]
}

fn atomics(calibration: &Calibration) -> Table {
    let cpus = calibration.cpus.len();
    let row = |what: &str, count: usize, figure: &Figure| {
        let [time, low, high] = spread(figure);
        vec![text(what), Cell::int(count as u64), time, low, high, calibrates(count, cpus)]
    };
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    rows.extend(calibration.uncontended.map(|add| row("uncontended addition", 1, &add)));
    for between in Between::ALL {
        let [transfer, handoff] = [calibration.transfer(between), calibration.handoff(between)];
        let what = between.key().replace('_', " ");
        rows.extend(transfer.map(|figure| row(&format!("transfer, {what}"), 2, &figure)));
        rows.extend(handoff.map(|figure| row(&format!("hand-off, {what}"), 2, &figure)));
    }
    rows.extend(calibration.contended.iter().map(|c| row("hand-off, all CPUs adding", c.cpus, &c.handoff)));
    Table {
        name: "calibrate-atomics".into(),
        title: format!("Atomics on one cache line (CPUs: {cpus})"),
        note: "Transfer: a line last written by another CPU (half a round trip). Hand-off: from one atomic addition to the \
               next while several CPUs add. Median, lowest and highest pair or round."
            .into(),
        body: Body::List {
            columns: vec![
                column("what", "What", ""),
                column("cpus", "CPUs", ""),
                column("time", "Time", "ns"),
                column("low", "Lowest", "ns"),
                column("high", "Highest", "ns"),
                column("calibrates", "Calibrates", ""),
            ],
            rows,
        },
    }
}

/// A time of every pair as a matrix.
fn pairs(calibration: &Calibration, what: &str) -> Table {
    let count = calibration.cpus.len();
    let mut values = vec![vec![Cell::Na(Na::NotRecorded); count]; count];
    for pair in &calibration.pairs {
        let time = number(if what == "transfer" { pair.transfer.median } else { pair.handoff.median });
        let (a, b) = pair.cpus;
        values[a][b] = time.clone();
        values[b][a] = time;
    }
    let names: Vec<String> = calibration.cpus.iter().map(|cpu| cpu.id.to_string()).collect();
    let title =
        if what == "transfer" { "Transfer of a cache line between CPUs" } else { "Hand-off between two adding CPUs" };
    Table {
        name: format!("calibrate-{what}"),
        title: title.into(),
        note: String::new(),
        body: Body::Matrix {
            rows: names.clone(),
            columns: names,
            axes: ("CPU".into(), "CPU".into()),
            unit: "ns",
            values,
        },
    }
}

/// A figure of every pair of nodes as a matrix.
fn memory(calibration: &Calibration, what: &str) -> Table {
    let nodes = |of: fn(&Access) -> u32| calibration.memory.iter().map(of).collect::<BTreeSet<u32>>();
    let (from, to) = (nodes(|a| a.from), nodes(|a| a.to));
    let (title, unit, note) = if what == "latency" {
        ("Memory latency", "ns", "Dependent loads over more memory than the caches of a node.")
    } else {
        ("Memory bandwidth", "GB/s", "All CPUs of a node read concurrently.")
    };
    let cell = |from: u32, to: u32| {
        let access = calibration.memory.iter().find(|a| (a.from, a.to) == (from, to));
        let figure = access.map(|a| if what == "latency" { a.latency } else { a.bandwidth });
        figure.map_or(Cell::Na(Na::NotRecorded), |figure| number(figure.median))
    };
    let names = |nodes: &BTreeSet<u32>| nodes.iter().map(u32::to_string).collect();
    Table {
        name: format!("calibrate-{what}"),
        title: title.into(),
        note: note.into(),
        body: Body::Matrix {
            rows: names(&from),
            columns: names(&to),
            axes: ("CPU node".into(), "memory node".into()),
            unit,
            values: from.iter().map(|&from| to.iter().map(|&to| cell(from, to)).collect()).collect(),
        },
    }
}
