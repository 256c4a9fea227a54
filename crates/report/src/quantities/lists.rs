//! Lists whose rows two inputs may have in common, as rows with keys: the words that begin a row, then the column.

use super::part;
use crate::model::Better::{Higher, Lower, Neutral};
use crate::model::{Better, Cell, Column, Gain, Metric};

/// Lists by name, and how many columns name a row. Lists that are not here are of single events or of thread ids.
const LISTS: &[(&str, usize)] = &[
    ("reclaim-by-node", 2),
    ("reclaim-by-priority", 4),
    ("lru", 1),
    ("latency", 2),
    ("kswapd", 1),
    ("throttle", 2),
    ("slab", 1),
    ("compaction-runs", 2),
    ("compaction-results", 5),
    ("compaction-deferred", 3),
    ("kcompactd", 1),
    ("migrate", 2),
    ("numa-targets", 1),
    ("numa-placement", 1),
    ("numa-skips", 1),
    ("placement", 2),
    ("alloc", 1),
    ("alloc-fallback", 2),
    ("thp", 2),
    ("calls", 1),
    ("node-vmstat", 1),
    ("numastat", 1),
    ("zoneinfo", 1),
];

/// How many columns name a row of a list; `None`: its rows have no names that last.
pub(super) fn labels(name: &str) -> Option<usize> {
    LISTS.iter().find(|(list, _)| *list == name).map(|(_, labels)| *labels)
}

/// Columns of time waited or worked, and of efficiency. Of others no direction is good by itself.
fn better(column: &Column) -> Better {
    match (column.key.as_str(), column.unit) {
        ("efficiency", _) => Higher,
        ("timed_out" | "failed" | "failed_percent" | "waits" | "written", _) => Lower,
        ("awake_percent", _) | (_, "s" | "ms" | "us" | "ns") => Lower,
        _ => Neutral,
    }
}

fn word(cell: &Cell) -> String {
    match cell {
        Cell::Text(text) => text.clone(),
        Cell::Int(number) => number.to_string(),
        Cell::Float(number) => number.to_string(),
        Cell::Na(_) => "unknown".into(),
    }
}

/// One row for each figure. Words behind the labels, such as the name of a node's kswapd, are none.
pub(super) fn rows(labels: usize, columns: &[Column], rows: &[Vec<Cell>]) -> Vec<Metric> {
    let figures = |row: &[Cell]| -> Vec<Metric> {
        let names: Vec<String> = row.iter().take(labels).map(word).collect();
        let key = names.iter().map(|name| part(name)).collect::<Vec<_>>().join(".");
        // A number alone does not say what it is.
        let shown = columns.iter().zip(row).take(labels).map(|(column, cell)| match cell {
            Cell::Text(text) => text.replace("RECLAIM_WB_", "").replace('|', " "),
            cell => format!("{} {}", column.label, word(cell)),
        });
        let label = shown.collect::<Vec<_>>().join(", ");
        let figures = columns.iter().zip(row).skip(labels);
        let figures = figures.filter(|(_, cell)| !matches!(cell, Cell::Text(_)));
        let metric = |(column, cell): (&Column, &Cell)| Metric {
            key: format!("{key}.{}", part(&column.key)),
            label: format!("{label}: {}", column.label),
            unit: column.unit.into(),
            better: better(column),
            gain: Gain::None,
            decimals: None,
            value: cell.clone(),
            published: None,
        };
        figures.map(metric).collect()
    };
    rows.iter().flat_map(|row| figures(row)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_begin_a_row_are_its_key() {
        let column = |key: &str, unit| Column { key: key.into(), label: key.into(), unit };
        let columns = ["reclaimer", "order", "max", "who"].map(|key| column(key, if key == "max" { "ms" } else { "" }));
        let row = vec![Cell::Text("cgroup limit".into()), Cell::Int(0), Cell::Float(1.5), Cell::Text("dd".into())];
        let rows = rows(2, &columns, &[row]);
        assert_eq!(rows.len(), 1);
        assert_eq!(
            (rows[0].key.as_str(), rows[0].label.as_str()),
            ("cgroup_limit.0.max", "cgroup limit, order 0: max")
        );
        assert_eq!((rows[0].better, rows[0].value.clone()), (Lower, Cell::Float(1.5)));
    }
}
