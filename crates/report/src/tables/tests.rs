//! The published tables: every derived value recomputed from its raw rows, and the blocks printed as they were.

use super::*;
use mmtwin_event::Times;
use std::collections::BTreeMap;

/// The tables of the two series, as published.
const PUBLISHED: &str = include_str!("../../tests/data/published.tsv");

/// A published table.
#[derive(Default)]
struct Published {
    kind: String,
    series: String,
    place: (String, String),
    columns: Vec<String>,
    rows: Vec<(String, Vec<String>)>,
}

impl Published {
    /// A row's cells.
    fn row(&self, label: &str) -> Option<&[String]> {
        self.rows.iter().find(|(name, _)| name == label).map(|(_, cells)| cells.as_slice())
    }

    /// A number without its unit.
    fn number(&self, label: &str, column: usize) -> Option<f64> {
        let cell = &self.row(label)?[column];
        Some(cell.trim_end_matches("ms").trim_end_matches('%').parse().expect("a number"))
    }

    fn integer(&self, label: &str, column: usize) -> Option<u64> {
        self.number(label, column).map(|number| number as u64)
    }
}

fn published() -> Vec<Published> {
    let mut tables: Vec<Published> = Vec::new();
    for line in PUBLISHED.lines().filter(|line| !line.is_empty()) {
        let mut cells = line.split('\t').map(String::from);
        let head = cells.next().unwrap_or_default();
        match (head.as_str(), tables.last_mut()) {
            ("#table", _) => tables.push(Published { kind: cells.nth(1).unwrap(), ..Published::default() }),
            ("#series", Some(table)) => table.series = cells.next().unwrap(),
            ("#machine", Some(table)) => table.place.0 = cells.next().unwrap(),
            ("#test", Some(table)) => table.place.1 = cells.next().unwrap(),
            ("row", Some(table)) => table.columns = cells.collect(),
            (_, Some(table)) => table.rows.push((head, cells.collect())),
            _ => panic!("{line}"),
        }
    }
    tables
}

/// The durations of the same test.
fn duration<'a>(tables: &'a [Published], of: &Published) -> &'a Published {
    tables.iter().find(|t| t.kind == "duration" && (&t.series, &t.place) == (&of.series, &of.place)).unwrap()
}

/// Raw rows of one column of a published vmscan table.
fn raw(tables: &[Published], table: &Published, column: usize) -> vmscan::Raw {
    let of = |who: &str, what: &str| table.integer(&format!("{who} {what}"), column);
    let both = |what: &str| [of("Direct reclaim", what), of("Kswapd", what)];
    let written = |who: &str| {
        ["file async", "anon async", "file sync", "anon sync"].map(|what| of(who, &format!("write {what} I/O")))
    };
    let times = duration(tables, table);
    vmscan::Raw {
        reclaims: table.integer("Direct reclaims", column),
        scanned: both("pages scanned"),
        reclaimed: both("pages reclaimed"),
        written: [written("Direct reclaim"), written("Kswapd reclaim")],
        requests: table.integer("Wake kswapd requests", column),
        wakes: table.integer("Kswapd wakeups", column),
        stalled: table.number("Time stalled direct reclaim (seconds)", column),
        awake: table.number("Time kswapd awake (seconds)", column),
        cpu: times.number("User/Sys Time Running Test (seconds)", column),
        elapsed: times.number("Total Elapsed Time (seconds)", column),
    }
}

/// Rows of scans and reclaim of one column of a published vmstat table.
fn scan_rows(tables: &[Published], table: &Published, column: usize) -> Vec<Metric> {
    let cell = |label: &str| Cell::int(table.integer(label, column).unwrap());
    let elapsed = duration(tables, table).number("Total Elapsed Time (seconds)", column);
    let scans = mmtests::Scans {
        direct: cell("Direct pages scanned"),
        kswapd: cell("Kswapd pages scanned"),
        direct_reclaimed: cell("Direct pages reclaimed"),
        kswapd_reclaimed: cell("Kswapd pages reclaimed"),
        elapsed: Cell::float(elapsed),
    };
    let mut rows = scans.rows(true);
    if table.row("Page writes by reclaim").is_some() {
        rows.extend(mmtests::writes(cell("Page writes by reclaim"), cell("Swap Outs")));
    }
    rows
}

/// A value with the decimals of its row and the unit that was printed with it.
fn printed(row: &Metric) -> String {
    let number = row.value.number().unwrap();
    let unit = if row.unit == "%" { "%" } else { "" };
    match row.decimals {
        Some(decimals) => format!("{number:.*}{unit}", usize::from(decimals)),
        None => format!("{number}{unit}"),
    }
}

#[test]
fn every_derived_value_is_recomputed_to_its_last_digit() {
    let tables = published();
    let mut checked: BTreeMap<&str, usize> = BTreeMap::new();
    let mut check = |kind: &'static str, table: &Published, label: &str, column: usize, computed: String| {
        let Some(cells) = table.row(label) else { return };
        assert_eq!(computed, cells[column], "{} {} {:?}: {label}", table.series, table.kind, table.place);
        *checked.entry(kind).or_default() += 1;
    };
    for table in &tables {
        let gain_rule = |label: &str| match table.kind.as_str() {
            "vmstat-gain" => Some(Gain::RelativeToNew),
            "success" => Some(Gain::Points),
            "benchmark" if label.starts_with("Overhead") => Some(Gain::PercentLower),
            "benchmark" => Some(Gain::Percent),
            _ => None,
        };
        for (label, cells) in &table.rows {
            let Some(rule) = gain_rule(label) else { continue };
            for column in (1..cells.len()).step_by(2) {
                let numbers = (table.number(label, 0).unwrap(), table.number(label, column - 1).unwrap());
                let gain = rule.of(numbers.0, numbers.1).unwrap();
                check("gains", table, label, column, format!("{gain:.2}"));
            }
        }
        for column in 0..table.columns.len() {
            let derived = match table.kind.as_str() {
                "ftrace-vmscan" => raw(&tables, table, column).rows().split_off(17),
                "mmtests-vmstat" => {
                    let rows = scan_rows(&tables, table, column).into_iter();
                    rows.filter(|row| row.decimals.is_some() || row.key.starts_with("page_writes_")).collect()
                }
                _ => continue,
            };
            let kind = if table.kind == "ftrace-vmscan" { "vmscan" } else { "vmstat" };
            derived.iter().for_each(|row| check(kind, table, &row.label, column, printed(row)));
        }
    }
    assert_eq!(checked["gains"], 192);
    assert_eq!(checked["vmscan"], 112);
    assert_eq!(checked["vmstat"], 92);
    assert_eq!(checked.values().sum::<usize>(), 396);
}

#[test]
fn sums_that_hold_in_the_published_rows() {
    for table in published() {
        for column in 0..table.columns.len() {
            let of = |label: &str| table.integer(label, column);
            if let Some(stalls) = of("Compaction stalls") {
                assert_eq!(Some(stalls), of("Compaction success").zip(of("Compaction failures")).map(|(a, b)| a + b));
            }
        }
        for (label, cells) in table.rows.iter().filter(|_| table.kind == "text-size") {
            let numbers: Vec<u64> = cells[..4].iter().map(|cell| cell.parse().unwrap()).collect();
            assert_eq!(numbers[3], numbers[..3].iter().sum::<u64>(), "{label}");
            assert_eq!(cells[4], format!("{:x}", numbers[3]), "{label}");
        }
    }
}

/// The table of an empty analysis, with the values of one published column by label.
fn filled(mut template: Table, table: &Published, column: usize) -> Table {
    let Body::Metric(rows) = &mut template.body else { panic!("a metric table") };
    rows.retain(|row| table.row(&row.label).is_some());
    for row in rows {
        let number = table.number(&row.label, column).unwrap();
        let whole = row.decimals.is_none() && number.fract() == 0.0;
        row.value = if whole { Cell::Int(number as i128) } else { Cell::Float(number) };
    }
    template
}

/// The block as printed, each line with its blanks collapsed.
fn block(names: &[String], columns: &[Table]) -> Vec<String> {
    let inputs: Vec<(&str, &Table)> = names.iter().map(String::as_str).zip(columns).collect();
    let text = historic::print(&inputs).unwrap();
    let lines = text.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.filter(|line| !line.is_empty()).collect()
}

#[test]
fn blocks_print_as_published() {
    let tables = published();
    let nothing = Analysis::default();
    let mut lines = 0;
    for table in &tables {
        let names = if table.kind == "vmstat-gain" {
            table.columns.iter().step_by(2).cloned().collect()
        } else {
            table.columns.clone()
        };
        let column = |i: usize| match (table.kind.as_str(), table.series.as_str()) {
            ("ftrace-vmscan", _) => Some(metrics("vmscan", "", "", raw(&tables, table, i).rows())),
            ("ftrace-congestion", _) => Some(filled(waits::congestion(&nothing), table, i)),
            ("ftrace-writepage", _) => Some(filled(waits::writepage(&nothing), table, i)),
            ("duration", "2010") => {
                Some(filled(duration::table(&nothing.source, duration::Generation::Of2010), table, i))
            }
            ("duration", _) => Some(filled(duration::table(&nothing.source, duration::Generation::Of2012), table, i)),
            ("mmtests-vmstat", _) => Some(filled(mmtests::of_2012(&nothing), table, i)),
            ("vmstat-gain", _) => {
                let rows = table.rows.iter().map(|(label, _)| Metric {
                    gain: Gain::RelativeToNew,
                    ..row(label, label, "", Better::Neutral, Some(2), Cell::Float(table.number(label, 2 * i).unwrap()))
                });
                Some(metrics("vmstat-gain-2010", "", "", rows.collect()))
            }
            _ => None,
        };
        let columns: Option<Vec<Table>> = (0..names.len()).map(column).collect();
        let Some(columns) = columns else { continue };
        let got = block(&names, &columns);
        // Names of 18 characters touch the next column, as they did then.
        assert_eq!(got[0].replace(' ', ""), names.concat(), "titles");
        // One block repeats the label of its last row with figures that nothing explains.
        let mut labels = std::collections::BTreeSet::new();
        let rows: Vec<_> = table.rows.iter().filter(|(label, _)| labels.insert(label)).collect();
        assert_eq!(got.len() - 1, rows.len(), "{} {:?}", table.kind, table.place);
        for (line, (label, cells)) in got[1..].iter().zip(rows) {
            let line = match table.kind.as_str() {
                "vmstat-gain" => {
                    line.replace("( ", "").replace(['(', ')'], "").replace("% ", " ").trim_end_matches('%').into()
                }
                _ => line.clone(),
            };
            assert_eq!(line, format!("{label} {}", cells.join(" ")), "{} {:?}", table.kind, table.place);
            lines += 1;
        }
    }
    assert_eq!(lines, 14 + 10 + 4 * 24 + 6 * 12 + 4 * 2 + 4 * 3 + 13 + 12 + 21 + 32 + 12);
}

#[test]
fn widths_are_those_of_the_scripts() {
    let raw =
        vmscan::Raw { reclaims: Some(443), stalled: Some(4.338), scanned: [Some(10), Some(90)], ..Default::default() };
    let table = metrics("vmscan", "title", "", raw.rows());
    let text = historic::print(&[("x86-64-vmscan-traceonly-v2r2", &table), ("b", &table)]).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[1], format!("{:12}{:>18}", "", "64-vmscan"));
    assert_eq!(lines[2], format!("{:12}{:>18}{:>18}", "", "traceonly-v2r2", "b"));
    assert_eq!(lines[3], format!("{:<40}{:>10} {:>10}", "Direct reclaims", 443, 443));
    assert_eq!(lines[18], format!("{:<40}{:>10} {:>10}", "Time stalled direct reclaim (seconds)", "4.34", "4.34"));
    assert_eq!(lines[20], "", "a blank line before the derived rows");
    assert_eq!(lines[21], format!("{:<40}{:>10}{:>10}", "Total pages scanned", 100, 100));
    assert_eq!(lines[22], format!("{:<40}{:>10} {:>10}", "Total pages reclaimed", "n/a", "n/a"));
}

#[test]
fn sums_of_times_print_shortest() {
    let times = Times { user: 5.3, system: 5.3, elapsed: 13.0 };
    let source = mmtwin_event::Source { times: Some(times), ..Default::default() };
    let text = historic::print(&[("a", &duration::table(&source, duration::Generation::Of2010))]).unwrap();
    assert!(text.contains("      10.6\n") && text.contains("     13.00\n"), "{text}");
}

#[test]
fn tables_of_nothing_are_not_zeros() {
    for table in reclaim_tables(&Analysis::default()) {
        if let Body::Metric(rows) = &table.body {
            for row in rows {
                assert!(row.value.na().is_some(), "{}: {} {:?}", table.name, row.key, row.value);
            }
        }
    }
}

#[test]
fn names_and_keys_are_unique() {
    let mut names = std::collections::BTreeSet::new();
    for table in reclaim_tables(&Analysis::default()) {
        assert!(names.insert(table.name.clone()), "{} twice", table.name);
        if let Body::Metric(rows) = &table.body {
            let keys: std::collections::BTreeSet<_> = rows.iter().map(|row| &row.key).collect();
            assert_eq!(keys.len(), rows.len(), "{}", table.name);
        }
    }
}
