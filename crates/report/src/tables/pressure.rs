//! `pressure`: for how long tasks waited for memory, I/O and CPUs, of the totals of pressure stall information.

use super::{column, list, text};
use crate::model::{Cell, Table};
use mmtwin_analysis::counters::Counters;

/// What the kernel measures, in the order of the table.
const RESOURCES: [&str; 3] = ["memory", "io", "cpu"];

/// Of the system first, then of every recorded cgroup. Totals are microseconds.
pub fn table(counters: &Counters) -> Table {
    let system = counters.keys("psi").into_iter().map(|key| ("psi", key));
    let cgroups = counters.keys("cgroup").into_iter().map(|key| ("cgroup", key));
    let mut rows = Vec::new();
    for (source, key) in system.chain(cgroups) {
        for resource in RESOURCES {
            for tasks in ["some", "full"] {
                let name = match source {
                    "psi" => format!("{resource}_{tasks}_total"),
                    _ => format!("{resource}.pressure.{tasks}_total"),
                };
                let Some(waited) = counters.delta(source, key, &name) else { continue };
                let share = counters.seconds(source, key).map(|seconds| waited as f64 / 1e4 / seconds);
                rows.push(vec![
                    text(if key.is_empty() { "system" } else { key }),
                    text(resource),
                    text(tasks),
                    Cell::Float(waited as f64 / 1e6),
                    Cell::float(share),
                ]);
            }
        }
    }
    let columns = vec![
        column("of", "of", ""),
        column("resource", "waited for", ""),
        column("tasks", "tasks", ""),
        column("waited", "waited", "s"),
        column("share", "share", "%"),
    ];
    let note =
        "some: at least one task waited; full: all tasks that could run did. Between the first and the last sample.";
    list("pressure", "Pressure (PSI)", note, columns, rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Body;
    use mmtwin_event::CounterRow;

    #[test]
    fn totals_are_shares_of_the_time() {
        let mut counters = Counters::default();
        for (at, value) in [(0, 10), (10_000_000_000, 2_500_010)] {
            let names = ["memory_some_total".to_string(), "memory_some_avg10".to_string()];
            counters.row(&CounterRow { source: "psi", key: "", at, names: &names, values: &[Some(value), Some(3)] });
        }
        let Body::List { rows, .. } = table(&counters).body else { panic!("a list") };
        assert_eq!(rows, [vec![text("system"), text("memory"), text("some"), Cell::Float(2.5), Cell::Float(25.0)]]);
    }
}
