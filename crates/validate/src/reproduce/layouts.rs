//! Published tables whose lines are metrics and whose columns are kernels: each column beside the twin's, and how far the
//! twin may be from what was published.

use super::change::percent;
use super::{Reproduced, Reproduction};
use mmtwin_report::model::{Body, Cell, Column, Na, Table};
use mmtwin_scenario::published::{self, Layout};

impl Reproduction {
    /// True if a metric is a line of a layout.
    pub(super) fn is_in_layout(&self, metric: &str) -> bool {
        self.published.layouts.iter().any(|layout| layout.metrics.iter().any(|key| key == metric))
    }

    /// The tables and their bars.
    pub(super) fn layouts(&self) -> Vec<Table> {
        let mut tables: Vec<Table> = self.published.layouts.iter().map(|layout| self.layout(layout)).collect();
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
            if row.variant {
                columns.push(column(&format!("{key} twin"), label));
                continue;
            }
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
                if self.row_of(key).is_some_and(|row| row.variant) {
                    cells.push(number(ours));
                    continue;
                }
                let unit = self.metric_of(metric).map_or("", |metric| &metric.unit);
                let distance = published.zip(ours).map(|(published, ours)| error(unit, published, ours));
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

    /// How far the twin is where it has to be near.
    fn bars(&self) -> Option<Table> {
        let mut rows = Vec::new();
        for bar in &self.published.bars {
            let label = self.metric_of(&bar.metric).map_or(bar.metric.as_str(), |metric| &metric.label);
            for row in self.rows.iter().filter(|row| bar.rows.is_empty() || bar.rows.contains(&row.row.key)) {
                let (Some(said), Some(ours)) = self.values(&row.row.key, &bar.metric) else { continue };
                let (distance, limit, unit) = match (bar.percent, bar.points) {
                    (Some(limit), _) => (percent(said, ours), limit, "%"),
                    (None, limit) => (ours - said, limit.unwrap_or(0.0), "points"),
                };
                // A bar in points says nothing of a figure that is smaller than the bar.
                let verdict = match () {
                    () if bar.points.is_some() && said.abs() < limit => "not judged: published is below the bar",
                    () if distance.abs() <= limit => "met",
                    () => "missed",
                };
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

/// The twin's distance: in points of a percentage, else in percent; none from nothing.
fn error(unit: &str, published: f64, ours: f64) -> Option<String> {
    match unit {
        "%" => Some(format!("{:+.1} points", ours - published)),
        _ => (published != 0.0).then(|| format!("{:+.1} %", percent(published, ours))),
    }
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
    fn distances_of_percentages_are_in_points() {
        assert_eq!((error("pages", 0.0, 7.0), error("pages", 50.0, 49.0)), (None, Some("-2.0 %".into())));
        assert_eq!(error("%", 3.0, 97.0), Some("+94.0 points".into()));
    }
}
