//! Published tables whose lines are metrics and whose columns are kernels: each column beside the twin's, changes between
//! columns, and how far the twin may be from what was published.

use super::{Reproduced, Reproduction};
use mmtwin_report::model::{Body, Cell, Column, Na, Table};
use mmtwin_scenario::published::{self, Layout};

/// Changes above so many percent are judged.
const JUDGED_PERCENT: f64 = 10.0;
/// So many percent of the judged changes are to have the published sign.
const SIGNS_PERCENT: f64 = 80.0;

impl Reproduction {
    /// True if a metric is a line of a layout.
    pub(super) fn is_in_layout(&self, metric: &str) -> bool {
        self.published.layouts.iter().any(|layout| layout.metrics.iter().any(|key| key == metric))
    }

    /// The tables, what changed between their columns, and their bars.
    pub(super) fn layouts(&self) -> Vec<Table> {
        let mut tables: Vec<Table> = self.published.layouts.iter().map(|layout| self.layout(layout)).collect();
        tables.extend(self.changes());
        tables.extend(self.bars());
        tables
    }

    fn row_of(&self, key: &str) -> Option<&Reproduced> {
        self.rows.iter().find(|row| row.row.key == key)
    }

    /// A published value and the twin's.
    fn values(&self, row: &str, metric: &str) -> (Option<f64>, Option<f64>) {
        let Some(row) = self.row_of(row) else { return (None, None) };
        (row.row.values.get(metric).copied(), row.found.values.get(metric).copied())
    }

    fn metric_of(&self, key: &str) -> Option<&published::Metric> {
        self.published.metrics.iter().find(|metric| metric.key == key)
    }

    fn layout(&self, layout: &Layout) -> Table {
        let mut columns = vec![column("row", "row")];
        let mut fitted = Vec::new();
        for key in &layout.rows {
            let Some(row) = self.row_of(key) else { continue };
            let label = row.row.label.as_str();
            columns.extend([
                column(&format!("{key} published"), label),
                column(&format!("{key} twin"), "twin"),
                column(&format!("{key} error"), "error"),
            ]);
            fitted.extend(row.fitted.then_some(label));
        }
        let line = |metric: &String| {
            let label = self.metric_of(metric).map_or(metric.as_str(), |metric| &metric.label);
            let mut cells = vec![Cell::Text(label.into())];
            for key in &layout.rows {
                let (published, ours) = self.values(key, metric);
                let distance = published.zip(ours).map(|(published, ours)| error(published, ours));
                cells.extend([number(published), number(ours)]);
                cells.push(distance.flatten().map_or(Cell::Na(Na::NotRecorded), Cell::Text));
            }
            cells
        };
        let note = match fitted.is_empty() {
            true => String::new(),
            false => format!("Parameters were fitted to {}; other columns are predicted.", fitted.join(", ")),
        };
        Table {
            name: format!("{}-{}", self.name, layout.key),
            title: layout.title.clone(),
            note,
            body: Body::List { columns, rows: layout.metrics.iter().map(line).collect() },
        }
    }

    /// Whether lines change as they were published to, from the first column to each of the others.
    fn changes(&self) -> Option<Table> {
        let (mut rows, mut right) = (Vec::new(), 0);
        for layout in &self.published.layouts {
            let (Some(least), Some((base, others))) = (layout.judged, layout.rows.split_first()) else { continue };
            for metric in &layout.metrics {
                let published = |row: &String| self.values(row, metric).0;
                if !layout.rows.iter().filter_map(published).any(|value| value >= least) {
                    continue;
                }
                for row in others {
                    let ((was, ours_was), (is, ours_is)) = (self.values(base, metric), self.values(row, metric));
                    let (Some(said), Some(ours)) = (was.zip(is), ours_was.zip(ours_is)) else { continue };
                    let (said, ours) = (change(said.0, said.1), change(ours.0, ours.1));
                    if said.abs() <= JUDGED_PERCENT {
                        continue;
                    }
                    let as_published = ours != 0.0 && (ours > 0.0) == (said > 0.0);
                    right += usize::from(as_published);
                    let label = self.metric_of(metric).map_or(metric.as_str(), |metric| &metric.label);
                    let column = self.row_of(row).map_or("", |row| &row.row.label);
                    let verdict = match () {
                        () if as_published => "as published",
                        () if ours == 0.0 => "no change",
                        () => "opposite sign",
                    };
                    let cells = [label.into(), column.into(), percent(said), percent(ours), verdict.into()];
                    rows.push(cells.map(Cell::Text).to_vec());
                }
            }
        }
        let title = format!(
            "Changes above {JUDGED_PERCENT} % from the first column on: {right} of {} have the published sign, {:.0} % (bar \
             {SIGNS_PERCENT} %)",
            rows.len(),
            100.0 * right as f64 / rows.len().max(1) as f64
        );
        self.list("changes", &title, ["line", "column", "published", "twin", "verdict"], rows)
    }

    /// How far the twin is where it has to be near.
    fn bars(&self) -> Option<Table> {
        let mut rows = Vec::new();
        for bar in &self.published.bars {
            let label = self.metric_of(&bar.metric).map_or(bar.metric.as_str(), |metric| &metric.label);
            for row in self.rows.iter().filter(|row| bar.rows.is_empty() || bar.rows.contains(&row.row.key)) {
                let (Some(said), Some(ours)) = self.values(&row.row.key, &bar.metric) else { continue };
                let (distance, limit, unit) = match (bar.percent, bar.points) {
                    (Some(limit), _) => (change(said, ours), limit, "%"),
                    (None, limit) => (ours - said, limit.unwrap_or(0.0), "points"),
                };
                let verdict = if distance.abs() <= limit { "met" } else { "missed" };
                let column = Cell::Text(row.row.label.clone());
                let figures = [format!("{distance:+.1} {unit}"), format!("{limit} {unit}"), verdict.into()];
                let mut cells = vec![Cell::Text(label.into()), column, number(Some(said)), number(Some(ours))];
                cells.extend(figures.map(Cell::Text));
                rows.push(cells);
            }
        }
        let columns = ["line", "column", "published", "twin", "distance", "bar", "verdict"];
        self.list("bars", "Required accuracy of the twin", columns, rows)
    }
}

fn column(key: &str, label: &str) -> Column {
    Column { key: key.replace(['-', ' '], "_"), label: label.into(), unit: "" }
}

fn number(value: Option<f64>) -> Cell {
    match value {
        Some(value) if value.fract() == 0.0 => Cell::Int(value as i128),
        Some(value) => Cell::Text(format!("{value:.2}")),
        None => Cell::Na(Na::NotRecorded),
    }
}

/// Percent from one value to another; a beginning from nothing is a rise without measure.
fn change(from: f64, to: f64) -> f64 {
    match from == to {
        true => 0.0,
        false => 100.0 * (to - from) / from,
    }
}

fn percent(change: f64) -> String {
    match change.is_finite() {
        true => format!("{change:+.0} %"),
        false => "from 0".into(),
    }
}

/// The twin's distance; none from nothing.
fn error(published: f64, ours: f64) -> Option<String> {
    (published != 0.0).then(|| format!("{:+.1} %", change(published, ours)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mmtwin_scenario::published::{Layout, Published};
    use std::path::Path;

    /// The figures are those that the report's tests recompute.
    #[test]
    fn published_figures_are_the_published_ones() {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../report/tests/data/published.tsv");
        let data = std::fs::read_to_string(data).unwrap_or_else(|e| panic!("{e}"));
        let mut tables = 0;
        for study in [super::super::vmscan_2010::STUDY, super::super::lumpy_2012::STUDY] {
            let published = Published::parse(study.name, study.published).unwrap_or_else(|e| panic!("{e}"));
            // Raw counters of 2010 are chosen, and PPC64's stand under other names.
            let raw = |layout: &&Layout| study.name == "vmscan-2010" && layout.key.ends_with("vmstat");
            for layout in published.layouts.iter().filter(|layout| !raw(layout)) {
                // "Table 2, X86-64: ..." is table 2, "Table 17: ..." is table 17.
                let number = layout.title.trim_start_matches("Table ").split([',', ':']).next().unwrap_or_default();
                let title = format!("#table\t{number}\t");
                let mut lines = data.lines().skip_while(|line| !line.starts_with(&title)).skip(1);
                let names = lines.find(|line| line.starts_with("row\t")).unwrap_or_else(|| panic!("no table {number}"));
                let is_value: Vec<bool> = names.split('\t').skip(1).map(|name| name != "gain").collect();
                let lines: Vec<&str> = lines.take_while(|line| !line.starts_with("#table")).collect();
                for (place, metric) in layout.metrics.iter().enumerate() {
                    let cells = lines[place].split('\t').skip(1).zip(&is_value).filter(|(_, value)| **value);
                    let cells: Vec<&str> = cells.map(|(cell, _)| cell.trim_end_matches(['%', 'm', 's'])).collect();
                    assert_eq!(cells.len(), layout.rows.len(), "table {number}, {metric}");
                    for (row, cell) in layout.rows.iter().zip(cells) {
                        let of =
                            published.rows.iter().find(|known| known.key == *row).unwrap_or_else(|| panic!("{row}"));
                        assert_eq!(of.values.get(metric).copied(), cell.parse().ok(), "table {number}, {metric}");
                    }
                }
                tables += 1;
            }
        }
        assert_eq!(tables, 28);
    }

    #[test]
    fn changes_have_signs_even_from_nothing() {
        assert_eq!((change(4.0, 5.0), change(4.0, 3.0), change(0.0, 0.0)), (25.0, -25.0, 0.0));
        assert!(change(0.0, 7.0) > 0.0);
        assert_eq!((percent(change(0.0, 7.0)), percent(-12.4)), ("from 0".into(), "-12 %".into()));
        assert_eq!((error(0.0, 7.0), error(50.0, 49.0)), (None, Some("-2.0 %".into())));
    }
}
