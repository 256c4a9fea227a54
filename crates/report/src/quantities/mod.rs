//! Every quantity of a report as a row with a stable key, `TABLE.KEY`: what `compare` puts side by side, what `--fail-on`
//! takes, and what `report --keys` lists.
//!
//! Tables of metrics are such rows already. Of the kernel's counters there is one row for each (`counters`), of lists one
//! for each figure of each row, named by the words that begin the row (`lists`). `overview` has the few quantities
//! that a person looks at first. Lists of single events, such as the victims of the OOM killer, are no quantities.

mod counters;
mod lists;
mod overview;
mod processes;

use crate::model::{Body, Report, Table};
use mmtwin_analysis::Analysis;

pub use counters::of_nodes_and_zones;
pub use overview::NAME as OVERVIEW;

/// The same report with rows instead of counters and lists, and with the overview first. What is neither (histograms,
/// series, matrices, lists of events) is kept.
pub fn of(analysis: &Analysis, mut report: Report) -> Report {
    let mut tables = vec![overview::table(analysis)];
    for table in report.tables {
        match (&table.body, table.name.as_str()) {
            (Body::List { .. }, "psi") => tables.push(counters::psi(&analysis.counters)),
            // The same as `psi`.
            (Body::List { .. }, "pressure") => {}
            (Body::List { .. }, "cgroup") => tables.push(counters::cgroups(&analysis.counters)),
            (Body::List { .. }, "vmstat" | "meminfo") => {
                tables.push(counters::system(&analysis.counters, &table));
            }
            (Body::List { .. }, "process") => tables.push(processes::table(analysis, &table)),
            (Body::List { columns, rows }, _) => match lists::labels(&table.name) {
                Some(labels) => {
                    let rows = lists::rows(labels, columns, rows);
                    tables.push(Table { body: Body::Metric(rows), ..table });
                }
                None => tables.push(table),
            },
            _ => tables.push(table),
        }
    }
    report.tables = tables;
    report
}

/// Whether a key may have a character: those of paths of cgroups, and none that the grammar of `--fail-on` splits at.
pub(crate) fn is_part(c: char) -> bool {
    c.is_alphanumeric() || "_-./:@\\+~%".contains(c)
}

/// A word as part of a key: other characters are replaced.
fn part(word: &str) -> String {
    word.chars().map(|c| if is_part(c) { c } else { '_' }).collect()
}

/// A key of one of the rows, such as `psi.memory.some`.
pub fn key(table: &str, row: &str) -> String {
    format!("{table}.{row}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::{reclaim_tables, subject_tables};
    use mmtwin_event::{CounterRow, Sink};

    fn report(analysis: &Analysis) -> Report {
        let mut report = Report::default();
        report.tables.extend(reclaim_tables(analysis));
        report.tables.extend(subject_tables(analysis));
        of(analysis, report)
    }

    fn value(report: &Report, wanted: &str) -> Option<f64> {
        let rows = report.tables.iter().filter_map(|table| match &table.body {
            Body::Metric(rows) => Some(rows.iter().map(move |row| (key(&table.name, &row.key), row.value.number()))),
            _ => None,
        });
        rows.flatten().find(|(key, _)| key == wanted).unwrap_or_else(|| panic!("no {wanted}")).1
    }

    #[test]
    fn counters_have_keys() {
        let mut analysis = Analysis::default();
        let mut row = |source: &str, key: &str, at: u64, values: &[(&str, u64)]| {
            let names: Vec<String> = values.iter().map(|(name, _)| name.to_string()).collect();
            let values: Vec<Option<u64>> = values.iter().map(|(_, value)| Some(*value)).collect();
            analysis.counters(&CounterRow { source, key, at, names: &names, values: &values });
        };
        for (at, n) in [(0, 0), (10_000_000_000, 1)] {
            row("psi", "", at, &[("memory_some_total", n * 2_500_000), ("memory_some_avg10", n)]);
            row(
                "cgroup",
                "/web",
                at,
                &[
                    ("memory.current", (2 - n) << 20),
                    ("memory.pressure.some_total", n * 1_000_000),
                    ("memory.events.max", n * 7),
                    ("memory.stat.pgsteal", n * 9),
                ],
            );
            row(
                "vmstat",
                "",
                at,
                &[("pgmajfault", n * 30), ("nr_free_pages", 500 - n), ("workingset_refault_file", n * 100)],
            );
        }
        let report = report(&analysis);
        for (key, wanted) in [
            ("psi.memory.some", 25.0),
            ("psi.memory.some_time", 2.5),
            ("cgroup./web.memory.pressure.some", 10.0),
            ("cgroup./web.memory.current", 2_097_152.0),
            ("cgroup./web.memory.events.max", 7.0),
            ("cgroup./web.memory.stat.pgsteal", 9.0),
            ("vmstat.pgmajfault", 30.0),
            ("vmstat.nr_free_pages", 499.0),
            ("overview.psi_memory_some", 25.0),
            ("overview.major_faults", 3.0),
            ("overview.refaults_file", 10.0),
        ] {
            assert_eq!(value(&report, key), Some(wanted), "{key}");
        }
        assert!(report.tables.iter().all(|table| table.name != "pressure"));
    }

    /// Nothing recorded: nothing known, and no key that the grammar of `--fail-on` cannot read.
    #[test]
    fn keys_can_be_named() {
        let report = report(&Analysis::default());
        for table in &report.tables {
            let Body::Metric(rows) = &table.body else { continue };
            for row in rows {
                assert_eq!(part(&row.key), row.key, "{}", table.name);
                assert!(row.value.number().is_none_or(|n| n == 0.0 || n == 100.0), "{}.{}", table.name, row.key);
            }
        }
    }
}
