//! Counters over time: first and last value of every counter of every source, and a bounded series of some sources.
//!
//! What a counter's change means depends on its kind. Accumulating counters (`pgscan_kswapd`) have a
//! [`delta`](Counters::delta); gauges (`nr_free_pages`, all of meminfo, watermarks) have a
//! [`change`](Counters::change) that may be negative. A counter that went backwards was reset in between, so its
//! delta is not known.

use mmtwin_event::CounterRow;
use std::collections::BTreeMap;

/// Most points kept per series; when it is full every second point goes and sampling halves.
pub const MAX_POINTS: usize = 256;

/// Samples are further apart than this, in nanoseconds: reading a file of `/proc` takes longer. Saved files without a time
/// come with 0, 1, ... for their order.
const MIN_INTERVAL: u64 = 1_000;

/// Sources whose counters are all kept over time.
const WATCHED: [&str; 3] = ["vmstat", "numastat", "numa_maps"];

/// True for a counter that is kept over time. Of a cgroup, which has hundreds, those of a strip of time.
fn is_watched(source: &str, name: &str) -> bool {
    const USAGE: &[&str] = &["memory.current", "memory.max", "memory.usage_in_bytes", "memory.limit_in_bytes"];
    const HITS: &[&str] = &["memory.events.max", "memory.failcnt", "memory.pressure.some_total", "memory.stat.pgsteal"];
    match source {
        "psi" => name.ends_with("_total"),
        "cgroup" => USAGE.contains(&name) || HITS.contains(&name) || name.starts_with("memory.stat.workingset_refault"),
        _ => WATCHED.contains(&source),
    }
}

/// `nr_*` names that accumulate although the prefix says gauge.
const ACCUMULATING_NR: &[&str] = &[
    "nr_vmscan_write",
    "nr_vmscan_immediate_reclaim",
    "nr_dirtied",
    "nr_written",
    "nr_throttled_written",
    "nr_foll_pin_acquired",
    "nr_foll_pin_released",
];

/// All counters of one input.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    sources: BTreeMap<String, BTreeMap<String, Sampled>>,
}

/// The counters of one source and key.
#[derive(Clone, Debug)]
pub struct Sampled {
    /// Names, in order of appearance.
    pub names: Vec<String>,
    /// Values of the first row, parallel to `names`; `None` if the counter was not in it. Of a cgroup each counter's own
    /// first value.
    pub first: Vec<Option<u64>>,
    /// Values of the last row, likewise.
    pub last: Vec<Option<u64>>,
    /// Nanoseconds of the trace clock at the first row.
    pub first_at: u64,
    /// Nanoseconds of the trace clock at the last row.
    pub last_at: u64,
    /// Number of rows.
    pub rows: u64,
    series: Series,
}

/// Values of a source's counters over time.
#[derive(Clone, Debug)]
struct Series {
    /// Positions of the names that are kept.
    kept: Vec<usize>,
    /// Times, and values in the order of `kept`; names that appeared later are not in them.
    points: Vec<(u64, Vec<Option<u64>>)>,
    /// Rows between two kept points.
    stride: u64,
}

impl Series {
    fn push(&mut self, row: u64, at: u64, values: &[Option<u64>]) {
        if self.kept.is_empty() || !row.is_multiple_of(self.stride) {
            return;
        }
        if self.points.len() == MAX_POINTS {
            let mut keep = false;
            self.points.retain(|_| {
                keep = !keep;
                keep
            });
            self.stride *= 2;
            if !row.is_multiple_of(self.stride) {
                return;
            }
        }
        let kept = self.kept.iter().map(|&i| values.get(i).copied().flatten()).collect();
        self.points.push((at, kept));
    }
}

impl Counters {
    /// Takes one row.
    pub fn row(&mut self, row: &CounterRow<'_>) {
        if let Some(sampled) = self.sources.get_mut(row.source).and_then(|keys| keys.get_mut(row.key)) {
            sampled.add(row);
        } else {
            self.sources.entry(row.source.into()).or_default().insert(row.key.into(), Sampled::new(row));
        }
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// The counters of one source and key.
    pub fn sampled(&self, source: &str, key: &str) -> Option<&Sampled> {
        self.sources.get(source)?.get(key)
    }

    /// Keys of a source; those that begin with a number (nodes, zones) by that number.
    pub fn keys(&self, source: &str) -> Vec<&str> {
        let mut keys: Vec<&str> = self.sources.get(source).into_iter().flatten().map(|(k, _)| k.as_str()).collect();
        keys.sort_by_key(|k| {
            let digits = k.bytes().take_while(u8::is_ascii_digit).count();
            (k[..digits].parse::<u64>().unwrap_or(u64::MAX), *k)
        });
        keys
    }

    /// Growth of an accumulating counter from the first row to the last. `None` if there is only one row, if the
    /// counter is absent at either end, if it went backwards, or if it is a gauge. The key of a system-wide
    /// source is empty.
    pub fn delta(&self, source: &str, key: &str, name: &str) -> Option<u64> {
        if is_gauge(source, name) {
            return None;
        }
        let (first, last) = self.ends(source, key, name)?;
        last.checked_sub(first)
    }

    /// Growth of a system-wide counter of /proc/vmstat.
    pub fn vmstat(&self, name: &str) -> Option<u64> {
        self.delta("vmstat", "", name)
    }

    /// Sum of the growth of several counters of /proc/vmstat; one that this kernel does not have counts nothing,
    /// but at least one must be known.
    pub fn vmstat_sum(&self, names: &[&str]) -> Option<u64> {
        names.iter().filter_map(|n| self.vmstat(n)).reduce(u64::saturating_add)
    }

    /// Sum of the growth of a counter of /proc/vmstat over the zones it is split into (`allocstall` and
    /// `allocstall_normal` alike). `None` if there is none, or if one of them is not known.
    pub fn vmstat_prefix(&self, name: &str) -> Option<u64> {
        let zones = |n: &&String| n.strip_prefix(name).is_some_and(|rest| rest.is_empty() || is_zone(rest));
        let names = self.sampled("vmstat", "")?.names.iter().filter(zones);
        names.map(|n| self.vmstat(n)).reduce(|a, b| Some(a?.saturating_add(b?))).flatten()
    }

    /// Difference between last and first row of any counter, with its sign.
    pub fn change(&self, source: &str, key: &str, name: &str) -> Option<i128> {
        let (first, last) = self.ends(source, key, name)?;
        Some(i128::from(last) - i128::from(first))
    }

    /// Value in the last row.
    pub fn last(&self, source: &str, key: &str, name: &str) -> Option<u64> {
        let s = self.sampled(source, key)?;
        s.last[s.position(name)?]
    }

    /// Seconds between first and last row; `None` with fewer than two rows, or if it is not known when they were read.
    pub fn seconds(&self, source: &str, key: &str) -> Option<f64> {
        let s = self.sampled(source, key)?;
        let ns = s.last_at.checked_sub(s.first_at).filter(|&ns| ns > MIN_INTERVAL)?;
        Some(ns as f64 / 1e9)
    }

    /// True if a source was read more than once, whether or not it is known when.
    pub fn has_change(&self, source: &str, key: &str) -> bool {
        self.sampled(source, key).is_some_and(|s| s.rows > 1)
    }

    /// A counter over time: (nanoseconds of the trace clock, value), at most [`MAX_POINTS`] and the last row. Totals of
    /// pressure grow no faster than the time. Those of `vmstat`, `numastat` and `numa_maps`, totals of `psi`, and usage,
    /// limit, hits of it, memory pressure, reclaimed pages and refaults of `cgroup`; of others nothing.
    pub fn series(&self, source: &str, key: &str, name: &str) -> Vec<(u64, Option<u64>)> {
        let Some(s) = self.sampled(source, key) else { return Vec::new() };
        let Some(i) = s.position(name) else { return Vec::new() };
        let Some(i) = s.series.kept.iter().position(|kept| *kept == i) else { return Vec::new() };
        let at = |(at, values): &(u64, Vec<Option<u64>>)| (*at, values.get(i).copied().flatten());
        let mut points: Vec<_> = s.series.points.iter().map(at).collect();
        if points.last().is_some_and(|(at, _)| *at < s.last_at) {
            points.push((s.last_at, self.last(source, key, name)));
        }
        let is_time = is_watched(source, name) && name.ends_with("_total");
        if is_time && self.seconds(source, key).is_some() { in_time(points) } else { points }
    }

    fn ends(&self, source: &str, key: &str, name: &str) -> Option<(u64, u64)> {
        let s = self.sampled(source, key).filter(|s| s.rows > 1)?;
        let i = s.position(name)?;
        Some((s.first[i]?, s.last[i]?))
    }
}

/// Microseconds of a time over time. One that grew by more than passed was read later than its row says, as the reader
/// waited too: what is too much happened behind the row.
fn in_time(mut points: Vec<(u64, Option<u64>)>) -> Vec<(u64, Option<u64>)> {
    let mut last: Option<(u64, u64)> = None;
    for (at, total) in &mut points {
        let Some(total) = total else { continue };
        if let Some((before, known)) = last {
            *total = (*total).min(known.saturating_add(at.saturating_sub(before).div_ceil(1_000)));
        }
        last = Some((*at, *total));
    }
    points
}

impl Sampled {
    fn new(row: &CounterRow<'_>) -> Sampled {
        let values: Vec<_> = (0..row.names.len()).map(|i| row.values.get(i).copied().flatten()).collect();
        let mut sampled = Sampled {
            names: row.names.to_vec(),
            first: values.clone(),
            last: values,
            first_at: row.at,
            last_at: row.at,
            rows: 0,
            series: Series { kept: Vec::new(), points: Vec::new(), stride: 1 },
        };
        let watched = row.names.iter().enumerate().filter(|(_, name)| is_watched(row.source, name));
        sampled.series.kept = watched.map(|(i, _)| i).collect();
        sampled.sample();
        sampled
    }

    fn add(&mut self, row: &CounterRow<'_>) {
        self.last_at = row.at;
        self.last.fill(None);
        if self.names == row.names {
            self.last.iter_mut().zip(row.values).for_each(|(last, v)| *last = *v);
        } else {
            for (name, value) in row.names.iter().zip(row.values) {
                let i = self.position(name).unwrap_or_else(|| {
                    self.names.push(name.clone());
                    self.first.push(None);
                    self.last.push(None);
                    if is_watched(row.source, name) {
                        self.series.kept.push(self.names.len() - 1);
                    }
                    self.names.len() - 1
                });
                self.last[i] = *value;
            }
        }
        if row.source == "cgroup" {
            // Of a cgroup that is found later, the begin has what it counted then of a few things; the growth of others
            // is that since it was found.
            self.first.iter_mut().zip(&self.last).for_each(|(first, last)| *first = first.or(*last));
        }
        self.sample();
    }

    fn sample(&mut self) {
        self.series.push(self.rows, self.last_at, &self.last);
        self.rows += 1;
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|n| n == name)
    }
}

/// True for values that go up and down: sizes and states, not counts of what happened.
pub fn is_gauge(source: &str, name: &str) -> bool {
    match source {
        "meminfo" => true,
        "psi" => !name.ends_with("total"),
        "cgroup" => !is_cgroup_count(name),
        _ if name.starts_with("nr_") => !ACCUMULATING_NR.contains(&name),
        "zoneinfo" => name == "workingset_nodes" || !["numa_", "pg", "workingset_"].iter().any(|p| name.starts_with(p)),
        _ => name == "workingset_nodes",
    }
}

/// What the kernel appends to a counter's name for each zone.
pub(crate) fn is_zone(suffix: &str) -> bool {
    matches!(suffix, "_dma" | "_dma32" | "_normal" | "_high" | "_movable" | "_device")
}

/// Cgroup values that accumulate: those of event files, pressure totals, and what memory.stat shares with vmstat.
fn is_cgroup_count(name: &str) -> bool {
    const PREFIXES: &[&str] = &["pg", "workingset_", "thp_", "zsw", "numa_"];
    let (file, leaf) = name.rsplit_once('.').unwrap_or(("", name));
    match file {
        // Version 1 has the sums of a cgroup and those below as `total_`.
        "memory.stat" => PREFIXES.iter().any(|p| leaf.strip_prefix("total_").unwrap_or(leaf).starts_with(p)),
        _ if file.ends_with(".pressure") => leaf.ends_with("_total"),
        _ => file.contains("events") || leaf == "failcnt" || leaf == "oom_kill",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn row(counters: &mut Counters, source: &str, key: &str, at: u64, values: &[(&str, Option<u64>)]) {
        let names: Vec<String> = values.iter().map(|(n, _)| n.to_string()).collect();
        let values: Vec<_> = values.iter().map(|(_, v)| *v).collect();
        counters.row(&CounterRow { source, key, at, names: &names, values: &values });
    }

    #[test]
    fn delta_needs_both_ends() {
        let mut c = Counters::default();
        row(&mut c, "vmstat", "", 0, &[("pgfault", Some(10)), ("pgfree", None), ("nr_free_pages", Some(9))]);
        assert_eq!(c.vmstat("pgfault"), None, "one row has no delta");
        row(
            &mut c,
            "vmstat",
            "",
            2_000_000_000,
            &[("pgfault", Some(14)), ("pgfree", Some(3)), ("nr_free_pages", Some(2))],
        );
        assert_eq!(c.vmstat("pgfault"), Some(4));
        assert_eq!(c.vmstat("pgfree"), None);
        assert_eq!(c.vmstat("no_such"), None);
        assert_eq!(c.vmstat_sum(&["pgfault", "pgfree"]), Some(4));
        assert_eq!(c.vmstat_sum(&["pgfree"]), None);
        assert_eq!(c.vmstat_prefix("pgf"), None, "pgfault is no zone of pgf");
        assert_eq!(c.vmstat("nr_free_pages"), None, "a gauge has no delta");
        assert_eq!(c.change("vmstat", "", "nr_free_pages"), Some(-7));
        assert_eq!(c.seconds("vmstat", ""), Some(2.0));
    }

    #[test]
    fn the_order_of_saved_files_is_no_time() {
        let mut c = Counters::default();
        row(&mut c, "vmstat", "", 0, &[("pgfault", Some(10))]);
        assert!(!c.has_change("vmstat", ""));
        row(&mut c, "vmstat", "", 1, &[("pgfault", Some(14))]);
        assert_eq!((c.vmstat("pgfault"), c.seconds("vmstat", "")), (Some(4), None));
        assert!(c.has_change("vmstat", "") && !c.has_change("vmstat", "0"));
    }

    #[test]
    fn pressure_takes_no_more_time_than_passed() {
        let mut c = Counters::default();
        // The second row was read one and a half seconds late.
        let totals = [(0, 5), (1_000_000_000, 2_500_005), (3_000_000_000, 2_500_005), (3_500_000_000, 2_600_005)];
        for (at, total) in totals {
            row(&mut c, "psi", "", at, &[("memory_some_total", Some(total)), ("memory_some_avg10", Some(total))]);
            row(&mut c, "vmstat", "", at, &[("pgfault", Some(total))]);
        }
        let values = |source, name| c.series(source, "", name).iter().filter_map(|p| p.1).collect::<Vec<_>>();
        assert_eq!(values("psi", "memory_some_total"), [5, 1_000_005, 2_500_005, 2_600_005]);
        assert_eq!(values("vmstat", "pgfault"), totals.map(|(_, n)| n));
        let mut saved = Counters::default();
        for (at, total) in [(0, 5), (1, 500)] {
            row(&mut saved, "psi", "", at, &[("io_some_total", Some(total))]);
        }
        assert_eq!(saved.series("psi", "", "io_some_total"), [(0, Some(5)), (1, Some(500))], "no time is known");
    }

    #[test]
    fn counter_that_went_backwards_has_no_delta() {
        let mut c = Counters::default();
        row(&mut c, "numastat", "0", 0, &[("numa_hit", Some(10))]);
        row(&mut c, "numastat", "0", 1, &[("numa_hit", Some(3))]);
        assert_eq!(c.delta("numastat", "0", "numa_hit"), None);
    }

    #[test]
    fn columns_may_appear_and_vanish() {
        let mut c = Counters::default();
        row(&mut c, "vmstat", "", 0, &[("a", Some(1)), ("b", Some(1))]);
        row(&mut c, "vmstat", "", 1, &[("c", Some(5)), ("a", Some(4))]);
        assert_eq!((c.vmstat("a"), c.vmstat("b"), c.vmstat("c")), (Some(3), None, None));
        assert_eq!(c.last("vmstat", "", "c"), Some(5));
    }

    #[test]
    fn rows_with_too_few_values_are_not_taken_for_old_ones() {
        let mut c = Counters::default();
        let names = ["a".to_string(), "b".to_string()];
        c.row(&CounterRow { source: "vmstat", key: "", at: 0, names: &names, values: &[Some(1), Some(2)] });
        c.row(&CounterRow { source: "vmstat", key: "", at: 1, names: &names, values: &[Some(4)] });
        assert_eq!((c.vmstat("a"), c.vmstat("b")), (Some(3), None));
    }

    #[test]
    fn node_keys_sort_by_number() {
        let mut c = Counters::default();
        for key in ["10/DMA", "2/Normal", "2/DMA", "/web"] {
            row(&mut c, "zoneinfo", key, 0, &[("low", Some(1))]);
        }
        assert_eq!(c.keys("zoneinfo"), ["2/DMA", "2/Normal", "10/DMA", "/web"]);
    }

    #[test]
    fn accumulating_names_are_told_from_gauges() {
        for (source, name) in [
            ("vmstat", "nr_free_pages"),
            ("meminfo", "MemFree"),
            ("zoneinfo", "low"),
            ("zoneinfo", "pagesets_high"),
            ("zoneinfo", "workingset_nodes"),
            ("psi", "memory_some_avg10"),
            ("cgroup", "memory.current"),
            ("cgroup", "memory.stat.file"),
            ("cgroup", "memory.numa_stat.anon.N0"),
            ("cgroup", "memory.numa_stat.total"),
            ("cgroup", "memory.numa_stat.hierarchical_total"),
            ("cgroup", "memory.numa_stat.hierarchical_file.N0"),
            ("cgroup", "memory.stat.total_rss"),
        ] {
            assert!(is_gauge(source, name), "{name}");
        }
        for (source, name) in [
            ("vmstat", "nr_written"),
            ("vmstat", "pgfault"),
            ("zoneinfo", "numa_miss"),
            ("zoneinfo", "workingset_refault_file"),
            ("zoneinfo", "workingset_nodereclaim"),
            ("zoneinfo", "pgdemote_kswapd"),
            ("numastat", "local_node"),
            ("psi", "memory_some_total"),
            ("cgroup", "memory.events.local.max"),
            ("cgroup", "memory.failcnt"),
            ("cgroup", "memory.oom_control.oom_kill"),
            ("cgroup", "memory.pressure.some_total"),
            ("cgroup", "io.pressure.full_total"),
            ("cgroup", "memory.stat.pgscan"),
            ("cgroup", "memory.stat.total_pgfault"),
        ] {
            assert!(!is_gauge(source, name), "{name}");
        }
    }

    proptest! {
        #[test]
        fn series_is_bounded_and_keeps_both_ends(rows in 1u64..3000) {
            let mut c = Counters::default();
            for i in 0..rows {
                row(&mut c, "vmstat", "", i * 10, &[("numa_hint_faults", Some(i))]);
            }
            let s = c.series("vmstat", "", "numa_hint_faults");
            prop_assert!(s.len() <= MAX_POINTS + 1);
            prop_assert_eq!(s[0], (0, Some(0)));
            prop_assert_eq!(*s.last().unwrap(), ((rows - 1) * 10, Some(rows - 1)));
            prop_assert!(s.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 < w[1].1));
        }
    }
}
