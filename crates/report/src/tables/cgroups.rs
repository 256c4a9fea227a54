//! `cgroups`: the recorded cgroups, one line each, those that waited longest first.

use super::{column, list, seconds, text};
use crate::model::{Cell, Na, Table};
use mmtwin_analysis::Analysis;
use mmtwin_analysis::findings::Cgroup;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Those with counters, and those whose tasks waited.
pub fn table(analysis: &Analysis) -> Table {
    let waited = analysis.waited_by_cgroup();
    let mut all: BTreeMap<&str, Option<Cgroup<'_>>> = waited.keys().map(|path| (*path, None)).collect();
    all.extend(Cgroup::all(analysis).map(|cgroup| (cgroup.key, Some(cgroup))));
    let mut rows: Vec<((u64, u64), Vec<Cell>)> = Vec::new();
    for (path, cgroup) in all {
        let waits = waited.get(path).copied();
        let pressure = |tasks| cgroup.and_then(|cgroup| cgroup.pressure(tasks)).map(|share| share * 100.0);
        let [scanned, reclaimed] = cgroup.map_or([None; 2], |cgroup| cgroup.reclaim());
        let hits = cgroup.and_then(|cgroup| cgroup.hits());
        let bytes = |bytes: Option<u64>| Cell::float(bytes.map(|bytes| bytes as f64 / (1 << 20) as f64));
        let row = vec![
            text(path),
            Some(analysis.source.containers.short(path))
                .filter(|name| name != path)
                .map_or(Cell::Na(Na::Undefined), text),
            bytes(cgroup.and_then(|cgroup| cgroup.limit())),
            bytes(cgroup.and_then(|cgroup| cgroup.high())),
            bytes(cgroup.and_then(|cgroup| cgroup.usage())),
            bytes(cgroup.and_then(|cgroup| cgroup.peak())),
            waits.map_or(Cell::Na(Na::NotRecorded), |ns| seconds(ns.into())),
            Cell::float(pressure("some")),
            Cell::float(pressure("full")),
            Cell::recorded(hits),
            Cell::recorded(cgroup.and_then(|cgroup| cgroup.above_high())),
            Cell::recorded(scanned),
            Cell::recorded(reclaimed),
            Cell::recorded(cgroup.and_then(|cgroup| cgroup.refaults())),
            Cell::recorded(cgroup.and_then(|cgroup| cgroup.oom_kills())),
        ];
        rows.push(((waits.unwrap_or(0), hits.unwrap_or(0)), row));
    }
    rows.sort_by_key(|(order, _)| Reverse(*order));
    let columns = vec![
        column("cgroup", "cgroup", ""),
        column("name", "name", ""),
        column("limit", "limit", "MiB"),
        column("high", "high", "MiB"),
        column("usage", "usage", "MiB"),
        column("peak", "peak", "MiB"),
        column("waited", "waited", "s"),
        column("psi_some", "PSI some", "%"),
        column("psi_full", "PSI full", "%"),
        column("hits", "limit hit", ""),
        column("above_high", "above high", ""),
        column("scanned", "scanned", "pages"),
        column("reclaimed", "reclaimed", "pages"),
        column("refaults", "refaults", "pages"),
        column("oom_kills", "OOM kills", ""),
    ];
    let note = "waited: in reclaim, of the tasks that are in the cgroup itself. Usage is that of the end, peak that since \
                the cgroup exists; counts and PSI are those of the recording.";
    list("cgroups", "Memory cgroups", note, columns, rows.into_iter().map(|(_, row)| row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Body;
    use mmtwin_event::{CounterRow, Sink};

    #[test]
    fn a_cgroup_is_one_line_and_what_is_not_counted_is_not_known() {
        let mut analysis = Analysis::default();
        let names = ["memory.usage_in_bytes", "memory.limit_in_bytes", "memory.failcnt"].map(String::from);
        for (at, hits) in [(0, 5), (1_000_000_000, 12)] {
            let values = [Some(3 << 20), Some(4 << 20), Some(hits)];
            analysis.counters(&CounterRow { source: "cgroup", key: "/lxc/web", at, names: &names, values: &values });
        }
        let Body::List { columns, rows } = table(&analysis).body else { panic!("a list") };
        let cell = |key: &str| rows[0][columns.iter().position(|column| column.key == key).unwrap()].clone();
        assert_eq!((rows.len(), cell("name"), cell("limit")), (1, text("lxc:web"), Cell::Float(4.0)));
        assert_eq!((cell("hits"), cell("usage")), (Cell::Int(7), Cell::Float(3.0)));
        assert!(["waited", "psi_some", "refaults"].iter().all(|key| cell(key).na().is_some()));
    }
}
