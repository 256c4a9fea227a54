//! Published figures: `scenarios/published/NAME/published.toml`. They are data; each row has the overrides of
//! `scenario.toml` beside it for the run that it is compared with.

mod series;

pub use series::{Fixed, Noise, Parameter, Patch, Range, Test};

use crate::check::Check;
use crate::tree::{self, Fault, Faults, Sources};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A published table and what belongs to it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// The measured quantity.
    pub title: String,
    /// Where it was published, on which machine.
    pub source: String,
    /// Notes on the comparison.
    #[serde(default)]
    pub note: String,
    /// Kind of the rows' values.
    #[serde(rename = "metric")]
    pub metrics: Vec<Metric>,
    /// Rows.
    #[serde(rename = "row")]
    pub rows: Vec<Row>,
    /// Histograms.
    #[serde(default, rename = "histogram")]
    pub histograms: Vec<Histogram>,
    /// Single values that were seen.
    #[serde(default, rename = "list")]
    pub lists: Vec<Values>,
    /// Rows that are compared with each other.
    #[serde(default, rename = "pair")]
    pub pairs: Vec<Pair>,
    /// Notes on the pairs.
    #[serde(default)]
    pub pairs_note: String,
    /// Parameters of the workload that were fixed on rows; those of the machine are in its file.
    #[serde(default, rename = "parameter")]
    pub parameters: Vec<Parameter>,
    /// Tests.
    #[serde(default, rename = "test")]
    pub tests: Vec<Test>,
    /// Patches of the series, in its order.
    #[serde(default, rename = "patch")]
    pub patches: Vec<Patch>,
    /// What published figures of one kernel differ by.
    #[serde(default)]
    pub noise: Noise,
    /// Ranges of machine constants.
    #[serde(default, rename = "range")]
    pub ranges: Vec<Range>,
    /// Rows whose order is reported.
    #[serde(default, rename = "order")]
    pub orders: Vec<Ordered>,
    /// Pairs of rows of many runs, whose change is reported with its interval.
    #[serde(default, rename = "trial")]
    pub trials: Vec<Trial>,
    /// Tables as they were published, whose lines are metrics and whose columns are rows of this file.
    #[serde(default, rename = "layout")]
    pub layouts: Vec<Layout>,
    /// How near the metrics of layouts are to be.
    #[serde(default, rename = "bar")]
    pub bars: Vec<Bar>,
    /// Changes of which the part of one cause is reported.
    #[serde(default, rename = "share")]
    pub shares: Vec<Shared>,
    /// Quantities of the model that these figures do not fix, one sentence each.
    #[serde(default)]
    pub not_identifiable: Vec<String>,
}

/// A kind of value.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metric {
    /// Key in the values of a row.
    pub key: String,
    /// As a table prints it.
    pub label: String,
    /// Unit.
    pub unit: String,
    /// Which values are better.
    pub better: Better,
    /// The row whose value fixes the unit: values of the twin are multiplied so that this one is matched.
    #[serde(default)]
    pub scaled_on: Option<String>,
    /// Runs differ from the published ones, so that only pairs of rows can be compared.
    #[serde(default)]
    pub relative: bool,
}

/// Which values are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Lower ones.
    Lower,
    /// Higher ones.
    Higher,
}

/// A row.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Key, unique; a fitted figure of a machine names it as `NAME:KEY`.
    pub key: String,
    /// As a table prints it.
    pub label: String,
    /// Scenario beside `scenario.toml` that it is a run of, without its ending.
    #[serde(default)]
    pub scenario: Option<String>,
    /// Overrides, as `--set` takes them.
    #[serde(default)]
    pub set: Vec<String>,
    /// Runs, each with the next seed; values are their medians.
    #[serde(default = "one")]
    pub seeds: u32,
    /// Rows before it whose values it adds up, instead of a run.
    #[serde(default)]
    pub sum: Vec<String>,
    /// Published values by metric.
    #[serde(default)]
    pub values: BTreeMap<String, f64>,
    /// Metrics that are reported although nothing was published of them.
    #[serde(default)]
    pub unpublished: Vec<String>,
}

/// A published histogram of a row.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Histogram {
    /// Key of the row.
    pub row: String,
    /// Unit of the slots.
    pub unit: String,
    /// Lowest value of each slot, ascending, and how often it was seen.
    pub slots: Vec<[u64; 2]>,
    /// Published average.
    pub average: u64,
    /// Published total.
    pub total: u64,
    /// Published count.
    pub count: u64,
}

/// Published single values of a row.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Values {
    /// Key of the row.
    pub row: String,
    /// Key.
    pub key: String,
    /// As a table prints it.
    pub label: String,
    /// The values.
    pub values: Vec<f64>,
}

/// Two rows, of which the ratio and the gain are reported.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pair {
    /// Key, unique.
    pub key: String,
    /// As a table prints it.
    pub label: String,
    /// Key of the metric.
    pub metric: String,
    /// Key of the row before the change.
    pub before: String,
    /// Key of the row after it.
    pub after: String,
}

/// Rows from the best to the worst.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ordered {
    /// As a table prints it.
    pub label: String,
    /// Key of the metric.
    pub metric: String,
    /// Keys of the rows as they were published, the best first.
    pub rows: Vec<String>,
}

/// A change between two rows of many runs.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trial {
    /// As a table prints it.
    pub label: String,
    /// Key of the metric.
    pub metric: String,
    /// Key of the row before the change.
    pub before: String,
    /// Key of the row after it.
    pub after: String,
    /// Published change in percent.
    pub published: f64,
}

/// A published table whose lines are metrics; a metric that is a line of one is reported there only.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layout {
    /// Key, unique.
    pub key: String,
    /// As it was called.
    pub title: String,
    /// The table of reports whose layout it has.
    pub block: String,
    /// Keys of its lines.
    pub metrics: Vec<String>,
    /// Keys of its columns, the one that the others are compared with first.
    pub rows: Vec<String>,
}

/// How near a metric is to be to the published one, in every row of layouts.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bar {
    /// Key of the metric.
    pub metric: String,
    /// Largest distance, in percent of the published value.
    #[serde(default)]
    pub percent: Option<f64>,
    /// Largest distance in the metric's own unit.
    #[serde(default)]
    pub points: Option<f64>,
    /// Keys of the rows that it is for; none: all.
    #[serde(default)]
    pub rows: Vec<String>,
}

/// Part of a change due to one cause: from one row to another, and that one without the cause.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shared {
    /// As a table prints it.
    pub label: String,
    /// Key of the metric.
    pub metric: String,
    /// Key of the row before the change.
    pub from: String,
    /// Key of the row after it.
    pub to: String,
    /// Key of the row after it without the thing.
    pub without: String,
}

fn one() -> u32 {
    1
}

impl Published {
    /// Reads a file of published figures.
    ///
    /// # Errors
    /// Every fault that was found, with its place.
    pub fn load(path: &Path) -> Result<Published, Faults> {
        let name = path.display().to_string();
        let text =
            crate::load::read(path, crate::load::Named::ByUser).map_err(|message| Fault::of_file(&name, message))?;
        Published::parse(&name, &text)
    }

    /// Reads published figures; `name` is what messages call the text.
    ///
    /// # Errors
    /// Every fault that was found, with its place.
    pub fn parse(name: &str, text: &str) -> Result<Published, Faults> {
        let mut sources = Sources::default();
        let source = sources.add_user(name, text);
        let tree = tree::document(&sources, source)?;
        let published: Published = tree::read(&sources, &tree, "")?;
        let mut check = Check::new(&sources, &tree);
        let metrics: BTreeSet<&str> = published.metrics.iter().map(|metric| metric.key.as_str()).collect();
        let mut rows = BTreeSet::new();
        for (i, row) in published.rows.iter().enumerate() {
            check.require(rows.insert(row.key.as_str()), &format!("row.#{i}.key"), || "listed twice".into());
            check.require(row.seeds > 0, &format!("row.#{i}.seeds"), || "a row is run once at least".into());
            for (j, part) in row.sum.iter().enumerate() {
                let before = part != &row.key && rows.contains(part.as_str());
                check.require(before, &format!("row.#{i}.sum.{j}"), || "no such row before it".into());
            }
            for key in row.values.keys() {
                check.require(metrics.contains(key.as_str()), &format!("row.#{i}.values.{key}"), || {
                    format!("there is no metric {key}")
                });
            }
        }
        for (i, histogram) in published.histograms.iter().enumerate() {
            let path = format!("histogram.#{i}");
            check.require(rows.contains(histogram.row.as_str()), &format!("{path}.row"), || "no such row".into());
            let ascending = histogram.slots.windows(2).all(|pair| pair[0][0] < pair[1][0]);
            check.require(ascending, &format!("{path}.slots"), || "slots ascend".into());
        }
        for (i, metric) in published.metrics.iter().enumerate() {
            let row = metric.scaled_on.as_ref().map(|key| published.rows.iter().find(|row| row.key == *key));
            let has = row.is_none_or(|row| row.is_some_and(|row| row.values.contains_key(&metric.key)));
            check.require(has, &format!("metric.#{i}.scaled_on"), || format!("no such row with {}", metric.key));
        }
        published.check_series(&mut check);
        for (i, order) in published.orders.iter().enumerate() {
            check.require(metrics.contains(order.metric.as_str()), &format!("order.#{i}.metric"), || {
                format!("there is no metric {}", order.metric)
            });
            let known = order.rows.iter().all(|row| rows.contains(row.as_str()));
            check.require(known, &format!("order.#{i}.rows"), || "one of these is no row".into());
        }
        for (i, trial) in published.trials.iter().enumerate() {
            for (name, key) in [("before", &trial.before), ("after", &trial.after)] {
                let path = format!("trial.#{i}.{name}");
                check.require(rows.contains(key.as_str()), &path, || "no such row".into());
            }
        }
        let mut layouts = BTreeSet::new();
        for (i, layout) in published.layouts.iter().enumerate() {
            let path = format!("layout.#{i}");
            check.require(layouts.insert(layout.key.as_str()), &format!("{path}.key"), || "listed twice".into());
            let known = layout.metrics.iter().all(|key| metrics.contains(key.as_str()));
            check.require(known, &format!("{path}.metrics"), || "one of these is no metric".into());
            let known = layout.rows.iter().all(|key| rows.contains(key.as_str()));
            check.require(known, &format!("{path}.rows"), || "one of these is no row".into());
        }
        for (i, bar) in published.bars.iter().enumerate() {
            let known = metrics.contains(bar.metric.as_str());
            check.require(known, &format!("bar.#{i}.metric"), || format!("there is no metric {}", bar.metric));
            let one = bar.percent.is_some() != bar.points.is_some();
            check.require(one, &format!("bar.#{i}"), || "a bar is in percent or in points".into());
            let known = bar.rows.iter().all(|row| rows.contains(row.as_str()));
            check.require(known, &format!("bar.#{i}.rows"), || "one of these is no row".into());
        }
        for (i, share) in published.shares.iter().enumerate() {
            let known = metrics.contains(share.metric.as_str());
            check.require(known, &format!("share.#{i}.metric"), || format!("there is no metric {}", share.metric));
            for (name, key) in [("from", &share.from), ("to", &share.to), ("without", &share.without)] {
                let path = format!("share.#{i}.{name}");
                check.require(rows.contains(key.as_str()), &path, || "no such row".into());
            }
        }
        for (i, list) in published.lists.iter().enumerate() {
            check.require(rows.contains(list.row.as_str()), &format!("list.#{i}.row"), || "no such row".into());
        }
        let mut pairs = BTreeSet::new();
        for (i, pair) in published.pairs.iter().enumerate() {
            check.require(pairs.insert(pair.key.as_str()), &format!("pair.#{i}.key"), || "listed twice".into());
            for (name, key) in [("before", &pair.before), ("after", &pair.after)] {
                let row = published.rows.iter().find(|row| row.key == *key);
                let has = row.is_some_and(|row| row.values.contains_key(&pair.metric));
                check.require(has, &format!("pair.#{i}.{name}"), || format!("no such row with {}", pair.metric));
            }
        }
        check.finish(Some(published))
    }
}
