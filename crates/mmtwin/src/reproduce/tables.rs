//! What a reproduction prints: metrics beside the published ones, pairs of rows, histograms, what else is known of the
//! runs, and what the published figures cannot tell.

use super::{More, Reproduced, Reproduction};
use mmtwin_report::model::{self, Body, Cell, Column, Gain, Metric, Table};
use mmtwin_scenario::published::{self, Better, Pair};

impl Reproduction {
    /// One table per metric, then the others.
    pub fn tables(&self) -> Vec<Table> {
        let mut tables: Vec<Table> = self.published.metrics.iter().filter_map(|metric| self.metric(metric)).collect();
        tables.extend(self.pairs());
        tables.extend(self.histograms());
        tables.extend(self.more());
        tables.extend(self.not_identifiable());
        tables
    }

    /// What must be said of the runs, one sentence each.
    pub fn remarks(&self) -> impl Iterator<Item = String> {
        self.rows
            .iter()
            .filter_map(|row| row.found.remark.as_ref().map(|remark| format!("{}: {remark}", row.row.label)))
    }

    fn metric(&self, metric: &published::Metric) -> Option<Table> {
        let rows = self.rows.iter().filter_map(|Reproduced { row, found, fitted }| {
            let published = Some(model::Published { value: *row.values.get(&metric.key)?, fitted: *fitted });
            let better = match metric.better {
                Better::Lower => model::Better::Lower,
                Better::Higher => model::Better::Higher,
            };
            let ours = found.values.get(metric.key.as_str()).copied();
            Some(self::row(&row.key, &row.label, metric.unit.clone().into(), better, ours, published))
        });
        let fitted = self.rows.iter().filter(|row| row.fitted).count();
        let note = format!(
            "Source: {}. {fitted} rows were fitted with as many parameters or more: {}. {}",
            self.published.source,
            self.parameters.iter().cloned().collect::<Vec<_>>().join(", "),
            self.published.note
        );
        let title = format!("{}: {}", self.published.title, metric.label);
        self.metrics(&metric.key, title, note, rows.collect())
    }

    /// A table of metrics, if there are any.
    fn metrics(&self, name: &str, title: String, note: String, rows: Vec<Metric>) -> Option<Table> {
        let name = format!("{}-{}", self.name, name.replace('_', "-"));
        (!rows.is_empty()).then_some(Table { name, title, note, body: Body::Metric(rows) })
    }

    fn pairs(&self) -> Option<Table> {
        let rows = self.published.pairs.iter().filter_map(|pair| self.pair(pair)).flatten();
        let note = "A row is fitted if both of its latencies are.".into();
        self.metrics("gain", "Before beside after".into(), note, rows.collect())
    }

    fn pair(&self, pair: &Pair) -> Option<[Metric; 2]> {
        let of = |key: &String| self.rows.iter().find(|row| row.row.key == *key);
        let (before, after) = (of(&pair.before)?, of(&pair.after)?);
        let published = before.row.values.get(&pair.metric)? / after.row.values.get(&pair.metric)?;
        let found = |row: &Reproduced| row.found.values.get(pair.metric.as_str()).copied();
        let ours = found(before).zip(found(after)).map(|(before, after)| before / after);
        let fitted = before.fitted && after.fitted;
        // As the gains were published; more digits would be of the rounding of the latencies.
        let rounded = |value: f64| (value * 100.0).round() / 100.0;
        let gain = |ratio: f64| 100.0 - 100.0 / ratio;
        let row = |what: &str, label: &str, unit: &'static str, of: &dyn Fn(f64) -> f64| {
            let published = Some(model::Published { value: rounded(of(published)), fitted });
            let (key, label) = (format!("{}-{what}", pair.key), format!("{}: {label}", pair.label));
            row(&key, &label, unit.into(), model::Better::Higher, ours.map(of), published)
        };
        Some([row("ratio", "before / after", "", &|ratio| ratio), row("gain", "gain", "%", &gain)])
    }

    fn histograms(&self) -> impl Iterator<Item = Table> {
        self.published.histograms.iter().flat_map(|published| {
            let ours = self.rows.iter().find(|row| row.row.key == published.row);
            let label = ours.map_or_else(String::new, |row| row.row.label.clone());
            let highest =
                |i: usize| published.slots.get(i + 1).map_or_else(|| published.slots[i][0] * 2 - 1, |n| n[0] - 1);
            let theirs =
                published.slots.iter().enumerate().map(|(i, &[low, count])| (low, highest(i), count)).collect();
            let table = |whose: &str, slots: Vec<(u64, u64, u64)>, mean: f64, total: u64| Table {
                name: format!("{}-histogram-{whose}", self.name),
                title: format!("{label}: {whose}"),
                note: String::new(),
                body: Body::Histogram { unit: "us", slots, mean: Some(mean), total },
            };
            let ours = ours.map(|row| row.found.latencies.clone()).unwrap_or_default();
            [
                table("published", theirs, published.average as f64, published.total),
                table("twin", ours.slots, ours.mean, ours.total),
            ]
        })
    }

    fn more(&self) -> Option<Table> {
        let rows = self.rows.iter().flat_map(|row| row.found.more.iter().flat_map(|more| self.quantity(row, more)));
        let note = "Of one run, not of the mean. No row was fitted on these.".into();
        self.metrics("more", "The runs in more detail".into(), note, rows.collect())
    }

    /// One row for a single value, two for the least and the greatest of many.
    fn quantity(&self, of: &Reproduced, more: &More) -> Vec<Metric> {
        let published = self.published.lists.iter().find(|list| list.row == of.row.key && list.key == more.key);
        let row = |end: &str, choose: fn(f64, f64) -> f64| {
            let published = published.and_then(|list| list.values.iter().copied().reduce(choose));
            let published = published.map(|value| model::Published { value, fitted: false });
            let key = format!("{} {} {end}", of.row.key, more.key);
            let label = format!("{}: {} {end}", of.row.label, more.label);
            let ours = more.values.iter().copied().reduce(choose);
            self::row(key.trim_end(), label.trim_end(), more.unit.into(), model::Better::Neutral, ours, published)
        };
        match more.values.len() {
            0 | 1 => vec![row("", f64::max)],
            _ => vec![row("least", f64::min), row("greatest", f64::max)],
        }
    }

    fn not_identifiable(&self) -> Option<Table> {
        let quantities = &self.published.not_identifiable;
        let column = Column { key: "quantity".into(), label: "quantity".into(), unit: "" };
        (!quantities.is_empty()).then(|| Table {
            name: format!("{}-not-identifiable", self.name),
            title: "What the published figures cannot tell".into(),
            note: String::new(),
            body: Body::List {
                columns: vec![column],
                rows: quantities.iter().map(|quantity| vec![Cell::Text(quantity.clone())]).collect(),
            },
        })
    }
}

fn row(
    key: &str,
    label: &str,
    unit: std::borrow::Cow<'static, str>,
    better: model::Better,
    ours: Option<f64>,
    published: Option<model::Published>,
) -> Metric {
    Metric {
        key: key.replace(['-', ' '], "_"),
        label: label.into(),
        unit,
        better,
        gain: Gain::None,
        decimals: ours.map(decimals),
        value: Cell::float(ours),
        published,
    }
}

/// Decimals that give four significant digits, or all before the point; none for whole numbers.
fn decimals(value: f64) -> u8 {
    match value.abs() {
        v if v >= 1000.0 || v.fract() == 0.0 => 0,
        v if v >= 100.0 => 1,
        v if v >= 10.0 => 2,
        _ => 3,
    }
}
