//! How well the twin's NUMA balancing agrees with the kernel's: the four counters it is judged by, when pages were where
//! they stay, and where that was.
//!
//! Pages are settled when 90 % of them are on the nodes where they are at the end of the run; what counts is the number on each node.

use super::{Count, Fidelity, Observed, Row, compare, count, median_of};
use crate::statistics::median;
use mmtwin_analysis::Analysis;
use std::collections::BTreeMap;

/// The counters that are judged.
pub const COUNTERS: [&str; 4] =
    ["numa_pte_updates", "numa_hint_faults", "numa_hint_faults_local", "numa_pages_migrated"];
/// The quantity of when pages were where they stay.
pub const SETTLED: &str = "seconds until 90 % of pages are where they end";
/// Part of the pages that is where it stays.
const PART: f64 = 0.9;

/// A scenario's NUMA balancing.
#[derive(Clone, Debug, PartialEq)]
pub struct Balanced {
    /// By counter of [`COUNTERS`]; `None`: not known on both sides.
    pub counts: [Option<Count>; 4],
    /// How much later the twin's pages are settled, in percent.
    pub settled: Option<f64>,
    /// Greatest difference of a node's part of a region's pages at the end, in percentage points.
    pub elsewhere: Option<f64>,
}

/// What a comparison says of NUMA balancing; `None`: there was none.
pub fn balanced(fidelity: &Fidelity) -> Option<Balanced> {
    let row = |name: &str| fidelity.rows.iter().find(|row| row.name == name);
    row(COUNTERS[0])?;
    let settled = row(SETTLED).and_then(Row::error_percent);
    Some(Balanced { counts: COUNTERS.map(|name| count(row(name)?)), settled, elsewhere: elsewhere(fidelity) })
}

/// How far the kernel's runs are from each other, judged as the twin is: each by the others, of settling the error in
/// percent without its sign, of places the percentage points; medians. What the kernel itself does not repeat, no twin
/// can be held to.
pub fn apart(kernel: &[Observed]) -> (Option<f64>, Option<f64>) {
    let judged = |at: usize| {
        let others: Vec<Observed> = [&kernel[..at], &kernel[at + 1..]].concat();
        balanced(&compare(&others, &kernel[at..=at], &[]))
    };
    let all: Vec<Balanced> = (0..kernel.len()).filter_map(judged).collect();
    let middle = |of: fn(&Balanced) -> Option<f64>| {
        let mut values: Vec<f64> = all.iter().filter_map(of).collect();
        values.sort_by(f64::total_cmp);
        median(&values)
    };
    (middle(|of| of.settled.map(f64::abs)), middle(|of| of.elsewhere))
}

/// Rows of where pages are at the ends of phases are named `process/phase region pages on node N`.
fn elsewhere(fidelity: &Fidelity) -> Option<f64> {
    let mut regions: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
    for row in &fidelity.rows {
        if let Some((region, _)) = row.name.split_once(" pages on node ") {
            regions.entry(region).or_default().push(row);
        }
    }
    let apart = |rows: &Vec<&Row>| {
        let (kernel, twin) = rows.iter().fold((0.0, 0.0), |all, row| (all.0 + row.of_kernel(), all.1 + row.of_twin()));
        let of = |row: &&Row| 100.0 * (row.of_twin() / f64::max(twin, 1.0) - row.of_kernel() / f64::max(kernel, 1.0));
        rows.iter().map(|row| of(row).abs()).fold(0.0, f64::max)
    };
    regions.values().map(apart).reduce(f64::max)
}

/// The median error of all counters that are judged, in percent.
pub fn median_error<'a>(all: impl Iterator<Item = &'a Balanced>) -> Option<f64> {
    median_of(all.flat_map(|of| of.counts).flatten())
}

/// Seconds from the first sample with all pages to when most of them are on the nodes where they are at the end, between
/// samples in proportion. `None`: where they are was not sampled, or they hardly moved.
pub fn settled(analysis: &Analysis) -> Option<f64> {
    let counters = &analysis.counters;
    let mut samples: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for key in counters.keys("numa_maps") {
        for name in &counters.sampled("numa_maps", key)?.names {
            for (at, pages) in counters.series("numa_maps", key, name) {
                samples.entry(at).or_default().push(pages.unwrap_or(0));
            }
        }
    }
    let samples: Vec<(u64, Vec<u64>)> = samples.into_iter().collect();
    let most = samples.iter().map(|(_, pages)| pages.iter().sum::<u64>()).max().filter(|most| *most > 0)?;
    // A process that has ended has no pages.
    let whole = |(_, pages): &&(u64, Vec<u64>)| pages.iter().sum::<u64>() == most;
    let (start, last) = (samples.iter().find(whole)?.0, &samples.iter().rfind(whole)?.1);
    let there = |pages: &[u64]| {
        let away: u64 = pages.iter().zip(last).map(|(now, end)| now.abs_diff(*end)).sum();
        1.0 - away as f64 / 2.0 / most as f64
    };
    let parts: Vec<(f64, f64)> =
        samples.iter().filter(whole).map(|(at, pages)| ((at - start) as f64 / 1e9, there(pages))).collect();
    let after = parts.iter().rposition(|(_, part)| *part < PART)?;
    let ((t0, p0), (t1, p1)) = (parts[after], *parts.get(after + 1)?);
    Some(t0 + (t1 - t0) * (PART - p0) / (p1 - p0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mmtwin_event::{CounterRow, Sink};

    fn row(name: &str, kernel: &[f64], twin: f64) -> Row {
        Row { name: name.into(), group: 0, kernel: kernel.to_vec(), background: None, twin: vec![twin] }
    }

    #[test]
    fn a_nodes_part_of_a_region_is_compared() {
        let rows = vec![
            row("numa_pte_updates", &[2000.0], 2100.0),
            row("a/0 own pages on node 0", &[50.0], 60.0),
            row("a/0 own pages on node 1", &[50.0], 40.0),
            row("a/0 more pages on node 0", &[10.0], 20.0),
            row("a/0 more pages on node 1", &[10.0], 20.0),
        ];
        let of = balanced(&Fidelity { rows, ..Fidelity::default() }).unwrap();
        assert!((of.elsewhere.unwrap() - 10.0).abs() < 1e-9);
        assert_eq!((of.counts[1], of.settled, median_error([&of].into_iter())), (None, None, Some(5.0)));
        assert_eq!(balanced(&Fidelity::default()), None);
    }

    #[test]
    fn runs_of_the_kernel_are_judged_by_each_other() {
        let run = |marks: f64, settled: f64, pages: [f64; 2]| {
            let mut run = Observed::default();
            run.values.insert((0, COUNTERS[0].into()), marks);
            run.values.insert((5, SETTLED.into()), settled);
            for (node, pages) in pages.into_iter().enumerate() {
                run.values.insert((3, format!("a/0 own pages on node {node}")), pages);
            }
            run
        };
        let all = [run(10.0, 2.0, [40.0, 60.0]), run(10.0, 2.0, [50.0, 50.0]), run(10.0, 3.0, [60.0, 40.0])];
        // 2 beside 2.5, 2 beside 2.5, 3 beside 2; 40 of 100 beside 55, 50 beside 50, 60 beside 45.
        let (settled, elsewhere) = apart(&all);
        assert_eq!((settled, elsewhere.map(f64::round)), (Some(20.0), Some(15.0)));
        assert_eq!(apart(&all[..1]), (None, None));
    }

    #[test]
    fn pages_settle_between_samples() {
        let mut analysis = Analysis::default();
        let names: Vec<String> = vec!["N0".into(), "N1".into()];
        for (second, values) in [(0, [0, 0]), (1, [100, 0]), (2, [60, 40]), (3, [20, 80]), (4, [10, 90]), (5, [0, 0])] {
            let values = values.map(Some);
            let row = CounterRow {
                source: "numa_maps",
                key: "p/r",
                names: &names,
                values: &values,
                at: second * 1_000_000_000,
            };
            analysis.counters(&row);
        }
        // 0.1, 0.5, 0.9, 1.0 of 100 pages from second 1 on.
        assert!((settled(&analysis).unwrap() - 2.0).abs() < 1e-9);
        assert_eq!(settled(&Analysis::default()), None);
    }
}
