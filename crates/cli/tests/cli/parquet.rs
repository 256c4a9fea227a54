//! Traces as Parquet: one table per event, with every event and its values.

use super::support::{V6, V7, ok, recording, scratch};
use parquet::file::reader::SerializedFileReader;
use parquet::record::{Field, Row};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

fn rows(path: &Path) -> Vec<Row> {
    let file = File::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let reader = SerializedFileReader::new(file).expect("Parquet");
    reader.into_iter().map(|row| row.expect("a row")).collect()
}

/// An integer of a row.
fn number(row: &Row, column: &str) -> i128 {
    let (_, field) = row.get_column_iter().find(|(name, _)| *name == column).unwrap_or_else(|| panic!("no {column}"));
    match field {
        Field::ULong(n) => (*n).into(),
        Field::UInt(n) => (*n).into(),
        Field::Long(n) => (*n).into(),
        Field::Int(n) => (*n).into(),
        other => panic!("{column} is {other}"),
    }
}

#[test]
fn every_event_is_in_the_table_of_its_name() {
    let scratch = scratch();
    let inputs = [V6.to_string(), V7.into(), recording("slab-6.18"), "tests/data/unknown-6.18.txt.gz".into()];
    for (at, input) in inputs.iter().enumerate() {
        let output = scratch.path().join(format!("{at}.parquet"));
        ok([Path::new("convert"), Path::new(input), Path::new("-o"), &output]);
        let mut printed: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for line in ok(["script", input]).lines() {
            let event = line.split(": ").nth(1).expect("an event");
            printed.entry(event.into()).or_default().push(line.into());
        }
        assert!(printed.len() > 2, "{input}");
        for (event, lines) in printed {
            let rows = rows(&output.join(format!("{event}.parquet")));
            assert_eq!(rows.len(), lines.len(), "{input}: {event}");
            for (row, line) in rows.iter().zip(&lines) {
                // The kernel prints whole microseconds, rounded.
                let us = (number(row, "ts") + 500) / 1000;
                let time = format!(" {}.{:06}: {event}: ", us / 1_000_000, us % 1_000_000);
                let task = format!("-{} ", number(row, "pid"));
                let cpu = format!(" [{:03}] ", number(row, "cpu"));
                assert!([&time, &task, &cpu].iter().all(|part| line.contains(*part)), "{input}\n{row}\n{line}");
                let values = ["nr_scanned", "nr_reclaimed", "nr_taken"].into_iter();
                for key in values.filter(|key| event.contains("lru_") && line.contains(&format!(" {key}="))) {
                    let value = format!(" {key}={} ", number(row, key));
                    assert!(line.contains(&value), "{input}\n{row}\n{line}");
                }
            }
        }
    }
}

#[test]
fn losses_have_a_table() {
    let scratch = scratch();
    let output = scratch.path().join("lost.parquet");
    ok([Path::new("convert"), Path::new(&recording("lost-6.18")), Path::new("-o"), &output]);
    let lost: i128 = rows(&output.join("lost.parquet")).iter().map(|row| number(row, "events")).sum();
    assert_eq!(lost, 258, "as the trace says");
}
