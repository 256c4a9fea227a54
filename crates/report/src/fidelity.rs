//! How well the twin agrees with a real kernel: the same scenario on both, quantity by quantity.
//!
//! The kernel ran it with several seeds, so each quantity has a median and a range; the twin's median is inside that
//! range or outside. Quantities are those that the twin keeps: what counters grew by, where the watermarks are, where
//! the pages of regions were at the end, and how many events of each kind there were. The kernel's own work (its
//! threads, the agent's start) is in its counters and not in the twin's: where it was measured, what counters
//! accumulated without a workload is taken off first. When counters grew is compared in [`curves`].

pub mod balancing;
pub mod curves;
pub mod in_order;
pub mod reclaim;

use crate::model::{Body, Cell, Na, Table};
use crate::statistics;
use crate::tables::column;
use curves::{CurveRow, Growth};
use mmtwin_analysis::Analysis;
use mmtwin_analysis::counters::is_gauge;
use mmtwin_event::results::Results;
use mmtwin_event::vocabulary::SCHEMAS;
use std::collections::BTreeMap;

/// What is compared of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// Values by (group, name).
    pub values: BTreeMap<(u8, String), f64>,
    /// When counters grew.
    pub growth: BTreeMap<String, Growth>,
}

/// Groups: counters of the machine, of nodes, values of zones.
const MACHINE: u8 = 0;
const NODES: u8 = 1;
const ZONES: u8 = 2;

/// Values of zoneinfo that are compared as they are.
const ZONE: [&str; 5] = ["min", "low", "high", "managed", "present"];

/// A quantity on both sides.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// What it is.
    pub name: String,
    /// Group that it belongs to.
    group: u8,
    /// The kernel's values, sorted.
    pub kernel: Vec<f64>,
    /// Median of the kernel's values without a workload, if they were measured and count.
    pub background: Option<f64>,
    /// The twin's, sorted.
    pub twin: Vec<f64>,
}

/// What was compared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fidelity {
    /// All quantities that the twin has.
    pub rows: Vec<Row>,
    /// Quantities of the kernel that the twin does not keep.
    pub unknown: usize,
    /// When counters grew, of those that have enough samples.
    pub curves: Vec<CurveRow>,
}

/// Greatest error of a counter, in percent.
pub const MAX_ERROR_PERCENT: f64 = 30.0;
/// Counts below are not judged.
const MIN_COUNT: f64 = 1000.0;

/// A counter that a mechanism is judged by: how far the twin's median is from the kernel's, 30 % at most, or between the
/// kernel's own runs where those are farther apart than that. Fewer than 1000 are shown and not judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Count {
    /// How far the twin's median is above the kernel's, in percent.
    pub error: f64,
    /// As it should be; `None`: too small to be judged.
    pub good: Option<bool>,
}

fn count(row: &Row) -> Option<Count> {
    let (kernel, error) = (row.of_kernel() - row.background.unwrap_or(0.0), row.error_percent()?);
    let range = row.kernel.last()? - row.kernel.first()?;
    let good = error.abs() <= MAX_ERROR_PERCENT || 100.0 * range > MAX_ERROR_PERCENT * kernel && row.inside();
    Some(Count { error, good: (kernel >= MIN_COUNT).then_some(good) })
}

/// The median error of those that are judged, in percent.
pub fn median_of(counts: impl Iterator<Item = Count>) -> Option<f64> {
    let mut errors: Vec<f64> = counts.filter(|count| count.good.is_some()).map(|count| count.error.abs()).collect();
    errors.sort_by(f64::total_cmp);
    statistics::median(&errors)
}

/// How a counter of a node or of the whole machine is called.
fn label(key: &str, name: &str) -> String {
    if key.is_empty() { name.into() } else { format!("node {key} {name}") }
}

/// Everything of a run that is compared.
pub fn observe(analysis: &Analysis, results: Option<&Results>) -> Observed {
    let mut seen = BTreeMap::new();
    let counters = &analysis.counters;
    for (group, source) in [(MACHINE, "vmstat"), (NODES, "numastat")] {
        for key in counters.keys(source) {
            let names = counters.sampled(source, key).map(|sampled| sampled.names.clone()).unwrap_or_default();
            for name in names {
                if let Some(change) = counters.change(source, key, &name) {
                    seen.insert((group, label(key, &name)), change as f64);
                }
            }
        }
    }
    for key in counters.keys("zoneinfo") {
        for name in ZONE {
            // The lab's own memory has a zone that no other machine has.
            if let Some(value) = counters.last("zoneinfo", key, name).filter(|_| !key.ends_with("/Device")) {
                seen.insert((ZONES, format!("zone {key} {name}")), value as f64);
            }
        }
    }
    for phase in results.iter().flat_map(|results| &results.phases) {
        for at in &phase.placement {
            for (node, &pages) in at.nodes.iter().enumerate() {
                let what = format!("{}/{} {} pages on node {node}", phase.process, phase.phase, at.region);
                seen.insert((3, what), pages as f64);
            }
        }
    }
    for schema in SCHEMAS.iter() {
        if analysis.recorded.has(schema.kind) {
            seen.insert(
                (4, format!("events {}:{}", schema.system, schema.name)),
                analysis.recorded.count(schema.kind) as f64,
            );
        }
    }
    if let Some(seconds) = balancing::settled(analysis) {
        seen.insert((5, balancing::SETTLED.into()), (1000.0 * seconds).round() / 1000.0);
    }
    Observed { values: seen, growth: curves::growth(analysis, results) }
}

/// Puts runs of the kernel and of the twin side by side. `background` are runs of the kernel without a workload, if
/// there are any.
pub fn compare(kernel: &[Observed], twin: &[Observed], background: &[Observed]) -> Fidelity {
    let values = |runs: &[Observed], key: &(u8, String)| {
        let mut values: Vec<f64> = runs.iter().filter_map(|run| run.values.get(key)).copied().collect();
        values.sort_by(f64::total_cmp);
        values
    };
    let mut keys: Vec<&(u8, String)> = kernel.iter().flat_map(|run| run.values.keys()).collect();
    keys.sort();
    keys.dedup();
    let of =
        |runs: &[Observed]| -> Vec<BTreeMap<String, Growth>> { runs.iter().map(|run| run.growth.clone()).collect() };
    let mut fidelity = Fidelity::default();
    for key in keys {
        // Only what accumulates adds up.
        let adds_up = [MACHINE, NODES].contains(&key.0) && !is_gauge("vmstat", &key.1);
        let idle = Some(values(background, key)).filter(|idle| adds_up && !idle.is_empty());
        let row = Row {
            name: key.1.clone(),
            group: key.0,
            kernel: values(kernel, key),
            background: idle.map(|idle| median(&idle)),
            twin: values(twin, key),
        };
        match row.twin.is_empty() {
            true => fidelity.unknown += 1,
            // What neither side moved says nothing.
            false if row.kernel.iter().chain(&row.twin).all(|value| *value == 0.0) => {}
            false => fidelity.rows.push(row),
        }
    }
    fidelity.curves = curves::compare(&of(kernel), &of(twin));
    // What the twin does not keep has no curve to be missed.
    fidelity.curves.retain(|curve| fidelity.rows.iter().any(|row| row.name == curve.name));
    fidelity
}

/// The median, 0 of nothing.
fn median(sorted: &[f64]) -> f64 {
    statistics::median(sorted).unwrap_or(0.0)
}

impl Row {
    /// Median of the kernel's runs.
    pub fn of_kernel(&self) -> f64 {
        median(&self.kernel)
    }

    /// Median of the twin's runs.
    pub fn of_twin(&self) -> f64 {
        median(&self.twin)
    }

    /// The kernel's value for which the twin's median stands: with the background.
    fn expected(&self) -> f64 {
        self.of_twin() + self.background.unwrap_or(0.0)
    }

    /// Whether the twin's median, with the background, is within the kernel's range.
    pub fn inside(&self) -> bool {
        let twin = self.expected();
        self.kernel.first().is_some_and(|low| twin >= *low) && self.kernel.last().is_some_and(|high| twin <= *high)
    }

    /// How far the twin's median is above the kernel's without the background, in percent. Not known beside 0.
    pub fn error_percent(&self) -> Option<f64> {
        let kernel = self.of_kernel() - self.background.unwrap_or(0.0);
        (kernel != 0.0).then(|| 100.0 * (self.of_twin() - kernel) / kernel.abs())
    }

    /// A size or a mark of a zone that is the same in all runs of both sides.
    pub fn is_zone_as_it_is(&self) -> bool {
        let all = || self.kernel.iter().chain(&self.twin);
        self.group == ZONES && all().all(|value| *value == self.kernel[0])
    }
}

impl Fidelity {
    /// (inside the kernel's range, within 5 % of its median or inside, all).
    pub fn counts(&self) -> (usize, usize, usize) {
        let inside = self.rows.iter().filter(|row| row.inside()).count();
        let near = |row: &&Row| row.inside() || row.error_percent().is_some_and(|error| error.abs() <= 5.0);
        (inside, self.rows.iter().filter(near).count(), self.rows.len())
    }

    /// (curves that are no farther from the kernel's median than a run of the kernel, all that the twin has).
    pub fn curves_inside(&self) -> (usize, usize) {
        let known = || self.curves.iter().filter_map(|row| Some((row.distance?, row.spread)));
        (known().filter(|(distance, spread)| distance <= spread).count(), known().count())
    }

    /// Median error of all quantities, in percent; 0 of none.
    pub fn median_error(&self) -> f64 {
        let mut errors: Vec<f64> = self.rows.iter().filter_map(Row::error_percent).map(f64::abs).collect();
        errors.sort_by(f64::total_cmp);
        median(&errors)
    }

    /// One line of verdict.
    pub fn summary(&self) -> String {
        let (inside, near, all) = self.counts();
        format!(
            "{inside} of {all} quantities inside the kernel's range, {near} inside or within 5 % of its median; median \
             error {:.1} %; {} quantities of the kernel are not kept by the twin",
            self.median_error(),
            self.unknown
        )
    }

    /// As a table.
    pub fn table(&self) -> Table {
        let cells = |row: &Row| {
            let number = |value: Option<&f64>| value.map_or(Cell::Na(Na::NotRecorded), |value| Cell::Float(*value));
            vec![
                Cell::Text(row.name.clone()),
                Cell::Float(row.of_kernel()),
                number(row.kernel.first()),
                number(row.kernel.last()),
                number(row.background.as_ref()),
                Cell::Float(row.of_twin()),
                Cell::float(row.error_percent().map(|error| (10.0 * error).round() / 10.0)),
                Cell::Text(if row.inside() { "inside" } else { "outside" }.into()),
            ]
        };
        let columns = vec![
            column("quantity", "quantity", ""),
            column("kernel", "kernel", ""),
            column("low", "min", ""),
            column("high", "max", ""),
            column("background", "background", ""),
            column("twin", "twin", ""),
            column("error_percent", "error", "%"),
            column("verdict", "verdict", ""),
        ];
        Table {
            name: "fidelity".into(),
            title: "Twin and kernel side by side".into(),
            note: format!("{}. Kernel and twin are medians of their runs.", self.summary()),
            body: Body::List { columns, rows: self.rows.iter().map(cells).collect() },
        }
    }
}

impl Fidelity {
    /// The curves as a table.
    pub fn curve_table(&self) -> Table {
        let percent = |share: f64| (1000.0 * share).round() / 10.0;
        let cells = |row: &CurveRow| {
            let of_twin = row.distance.map_or(Cell::Na(Na::NotRecorded), |share| Cell::Float(percent(share)));
            vec![Cell::Text(row.name.clone()), of_twin, Cell::Float(percent(row.spread))]
        };
        let columns = vec![
            column("counter", "counter", ""),
            column("distance_percent", "twin", "%"),
            column("spread_percent", "kernel", "%"),
        ];
        Table {
            name: "fidelity-curves".into(),
            title: "Growth of counters over time".into(),
            note: "Largest distance of the growth curves from the median of the kernel's runs, as share of the growth over \
                   the workload: of the median of the twin, and of the farthest run of the kernel."
                .into(),
            body: Body::List { columns, rows: self.curves.iter().map(cells).collect() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(values: &[(&str, f64)]) -> Observed {
        let values = values.iter().map(|(name, value)| ((0, name.to_string()), *value)).collect();
        Observed { values, ..Observed::default() }
    }

    #[test]
    fn counters_are_judged_by_their_error_or_by_the_kernels_own_range() {
        let of = |kernel: &[f64], twin: f64| {
            count(&Row {
                name: "x".into(),
                group: MACHINE,
                kernel: kernel.to_vec(),
                background: None,
                twin: vec![twin],
            })
            .unwrap()
        };
        assert_eq!(of(&[1000.0, 1000.0, 1100.0], 1290.0), Count { error: 29.0, good: Some(true) });
        assert_eq!(of(&[1000.0, 1000.0, 1100.0], 1310.0), Count { error: 31.0, good: Some(false) });
        assert_eq!(of(&[1000.0, 2000.0, 4000.0], 3900.0), Count { error: 95.0, good: Some(true) });
        assert_eq!(of(&[1000.0, 2000.0, 4000.0], 900.0), Count { error: -55.0, good: Some(false) });
        assert_eq!(of(&[1000.0, 1000.0, 1400.0], 990.0), Count { error: -1.0, good: Some(true) });
        assert_eq!(of(&[900.0, 900.0, 900.0], 90.0), Count { error: -90.0, good: None });
    }

    #[test]
    fn the_background_is_taken_off_what_accumulates() {
        let kernel = [run(&[("numa_hit", 110.0), ("nr_free_pages", -50.0)])];
        let (twin, idle) =
            (run(&[("numa_hit", 99.0), ("nr_free_pages", -50.0)]), run(&[("numa_hit", 10.0), ("nr_free_pages", 7.0)]));
        let fidelity = compare(&kernel, &[twin], &[idle]);
        let [free, hit] = &fidelity.rows[..] else { panic!("{fidelity:?}") };
        assert_eq!((free.background, free.inside()), (None, true));
        assert_eq!((hit.background, hit.inside(), hit.error_percent()), (Some(10.0), false, Some(-1.0)));
    }

    #[test]
    fn the_twin_is_judged_by_the_kernel_s_range() {
        let kernel = [
            run(&[("numa_hit", 100.0), ("pgscan", 7.0), ("idle", 0.0), ("numa_miss", 10.0)]),
            run(&[("numa_hit", 110.0), ("pgscan", 9.0), ("idle", 0.0), ("numa_miss", 10.0)]),
            run(&[("numa_hit", 104.0), ("pgscan", 9.0), ("idle", 0.0), ("numa_miss", 10.0)]),
        ];
        let twin = [run(&[("numa_hit", 101.0), ("idle", 0.0), ("numa_miss", 9.0)])];
        let fidelity = compare(&kernel, &twin, &[]);
        assert_eq!((fidelity.counts(), fidelity.unknown), ((1, 1, 2), 1));
        let hit = &fidelity.rows[0];
        assert_eq!((hit.of_kernel(), hit.inside()), (104.0, true));
        assert!((hit.error_percent().unwrap() + 2.884).abs() < 0.001);
        assert_eq!(fidelity.rows[1].error_percent(), Some(-10.0));
        assert!(fidelity.summary().starts_with("1 of 2 quantities inside"), "{}", fidelity.summary());
    }
}
