//! `/proc/zoneinfo`.
//!
//! Format: a header `Node N, zone NAME`, from 4.8 on `per-node stats` before a node's first zone, then the zone's
//! watermarks and sizes, its statistics (followed by NUMA counters since 4.14), per-CPU page sets and a few last lines.
//! Per-CPU page sets are folded over the CPUs: sums of `count` and `high`, the largest `batch` and threshold. That of a
//! single CPU is omitted.

use super::{Problem, Row, lines};

/// Rows of `/proc/zoneinfo`: key `0/Normal` for a zone, `0` for the per-node statistics of a node. Names are as
/// printed, except `free` (`pages free`), `protection_0` ... and, over all CPUs, `pagesets_count`, `pagesets_high`
/// (and `_min`, `_max`), `pagesets_batch` and `vm_stats_threshold`.
pub fn zoneinfo(text: &str, problems: &mut Vec<Problem>) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut zone = String::new();
    let mut in_pagesets = false;
    for (line, text) in lines(text) {
        let text = text.trim();
        if let Some((node, name)) = text.strip_prefix("Node ").and_then(|r| r.split_once(", zone")) {
            zone = format!("{}/{}", node.trim(), name.trim());
            rows.push(Row::new(zone.as_str()));
            in_pagesets = false;
            continue;
        }
        let Some(row) = rows.last_mut() else {
            problems.push(Problem { line, message: "expected `Node N, zone NAME` first" });
            continue;
        };
        if text == "per-node stats" {
            // Stands before the zone's own lines.
            row.key = zone.split('/').next().unwrap_or_default().to_string();
        } else if let Some(free) = text.strip_prefix("pages free") {
            if row.key != zone {
                rows.push(Row::new(zone.as_str()));
            }
            if let Some(row) = rows.last_mut() {
                row.push("free", free.trim().parse().ok());
            }
        } else if text == "pagesets" {
            in_pagesets = true;
        } else if let Some(list) = text.strip_prefix("protection:") {
            let list = list.trim().trim_start_matches('(').trim_end_matches(')');
            for (i, value) in list.split(',').enumerate() {
                row.push(format!("protection_{i}"), value.trim().parse().ok());
            }
        } else {
            match split(text) {
                Some((name, value)) if in_pagesets => pageset(name, value, row),
                Some((name, value)) => row.push(name, value.parse().ok()),
                None if text.starts_with("cpu:") => {}
                None => problems.push(Problem { line, message: "expected a name and a value" }),
            }
        }
    }
    rows
}

/// `name   value` or `name:   value`; names of page-set lines may hold spaces.
fn split(text: &str) -> Option<(&str, &str)> {
    let (name, value) = match text.split_once(':') {
        Some(parts) => parts,
        None => text.split_once(char::is_whitespace)?,
    };
    let value = value.trim();
    (!value.is_empty() && !value.contains(' ')).then_some((name, value))
}

/// Folds a line of a CPU's page set; the lines behind the last page set are the zone's again.
fn pageset(name: &str, value: &str, row: &mut Row) {
    let value: Option<u64> = value.parse().ok();
    let (name, largest) = match name {
        "cpu" => return,
        "batch" => ("pagesets_batch".to_string(), true),
        "vm stats threshold" => ("vm_stats_threshold".to_string(), true),
        "count" | "high" | "high_min" | "high_max" => (format!("pagesets_{name}"), false),
        other => return row.push(other, value),
    };
    match row.names.iter().position(|n| *n == name) {
        None => row.push(name, value),
        Some(i) => {
            row.values[i] = match (row.values[i], value) {
                (Some(a), Some(b)) => Some(if largest { a.max(b) } else { a.saturating_add(b) }),
                _ => None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODERN: &str = include_str!("../../tests/data/zoneinfo-6.18");
    const NUMA: &str = include_str!("../../tests/data/zoneinfo-6.1-numa");
    const OLD: &str = "\
Node 0, zone   Normal
  pages free     1000
        min      10
        low      12
        high     15
        scanned  0
    nr_free_pages 1000
        protection: (0, 2)
  pagesets
    cpu: 0
              count: 3
              high:  42
              batch: 7
  vm stats threshold: 6
    cpu: 1
              count: 4
              high:  42
              batch: 7
  vm stats threshold: 8
  all_unreclaimable: 0
  start_pfn:         4096
";

    fn get<'a>(rows: &'a [Row], key: &str) -> &'a Row {
        rows.iter().find(|r| r.key == key).unwrap_or_else(|| panic!("no row {key}"))
    }

    #[test]
    fn node_and_zone_parts_of_a_modern_kernel() {
        let mut problems = Vec::new();
        let rows = zoneinfo(MODERN, &mut problems);
        assert_eq!(problems, []);
        let keys: Vec<_> = rows.iter().map(|r| r.key.as_str()).collect();
        assert_eq!(keys, ["0", "0/DMA", "0/DMA32", "0/Normal", "0/Movable", "0/Device"]);
        assert!(get(&rows, "0").value("workingset_refault_file").is_some());
        assert_eq!(get(&rows, "0").value("nr_free_pages"), None);
        let dma = get(&rows, "0/DMA");
        assert_eq!((dma.value("free"), dma.value("nr_free_pages")), (Some(3840), Some(3840)));
        assert_eq!(dma.value("managed"), Some(3840));
        assert_eq!(dma.value("start_pfn"), Some(1));
    }

    #[test]
    fn every_node_has_its_rows() {
        let rows = zoneinfo(NUMA, &mut Vec::new());
        for node in 0..2 {
            assert!(get(&rows, &node.to_string()).value("nr_inactive_anon").is_some());
        }
        assert!(get(&rows, "1/DMA32").value("numa_hit").is_some());
    }

    #[test]
    fn page_sets_of_the_cpus_are_folded() {
        let mut problems = Vec::new();
        let rows = zoneinfo(OLD, &mut problems);
        assert_eq!(problems, []);
        assert_eq!(rows.len(), 1);
        let expected = [
            ("free", 1000),
            ("scanned", 0),
            ("protection_1", 2),
            ("pagesets_count", 7),
            ("pagesets_high", 84),
            ("pagesets_batch", 7),
            ("vm_stats_threshold", 8),
            ("all_unreclaimable", 0),
            ("start_pfn", 4096),
        ];
        for (name, value) in expected {
            assert_eq!(rows[0].value(name), Some(value), "{name}");
        }
    }

    #[test]
    fn any_prefix_is_readable() {
        for end in (0..OLD.len()).filter(|&i| OLD.is_char_boundary(i)) {
            zoneinfo(&OLD[..end], &mut Vec::new());
        }
        let mut problems = Vec::new();
        assert!(zoneinfo("  pages free 3\n", &mut problems).is_empty());
        assert_eq!(problems.len(), 1);
    }
}
