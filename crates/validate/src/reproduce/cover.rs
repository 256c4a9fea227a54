//! Tables as a cover letter prints them: one column per kernel, the rows of the published posting, of the twin alone.

use super::Reproduction;
use mmtwin_report::model::{self, Body, Cell, Gain, Metric, Table};
use mmtwin_report::tables::historic::{self, BENCHMARK};
use mmtwin_scenario::published::{self, Better, Layout};

impl Reproduction {
    /// The tables of the series: those of its posting, or, where that has none with a column per kernel, a line for each
    /// quantity before and after each patch.
    pub fn cover_letter(&self) -> String {
        let of_layouts = self.published.layouts.iter().filter_map(|layout| self.block(layout));
        let mut blocks: Vec<String> = of_layouts.collect();
        if blocks.is_empty() {
            blocks.extend(self.published.patches.iter().filter_map(|patch| self.before_and_after(&patch.name)));
        }
        blocks.into_iter().map(|block| block + "\n").collect()
    }

    fn block(&self, layout: &Layout) -> Option<String> {
        let rows: Vec<_> =
            layout.rows.iter().filter_map(|key| self.rows.iter().find(|row| row.row.key == *key)).collect();
        let tables: Vec<Table> = rows
            .iter()
            .map(|row| {
                let metrics =
                    layout.metrics.iter().filter_map(|key| self.published.metrics.iter().find(|m| m.key == *key));
                let lines = metrics.map(|metric| {
                    let value = row.found.values.get(metric.key.as_str()).copied();
                    line(&metric.key, &metric.label, metric, value, &layout.block)
                });
                table(&layout.block, &layout.title, lines.collect())
            })
            .collect();
        // What stands before the kernel in a label is in the title.
        let names = rows.iter().map(|row| row.row.label.rsplit(": ").next().unwrap_or_default());
        historic::print(&names.zip(&tables).collect::<Vec<_>>())
    }

    fn before_and_after(&self, patch: &str) -> Option<String> {
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for step in self.steps().iter().filter(|step| step.patch == patch) {
            for change in &step.changes {
                let Some((from, to)) = change.twin.and_then(|twin| twin.values) else { continue };
                let label = match step.test {
                    "" => change.metric.label.clone(),
                    test => format!("{test}: {}", change.metric.label),
                };
                let key = format!("{} {}", step.test, change.metric.key);
                before.push(line(&key, &label, change.metric, Some(from), BENCHMARK));
                after.push(line(&key, &label, change.metric, Some(to), BENCHMARK));
            }
        }
        let title = format!("{}: {patch}", self.published.title);
        let (before, after) = (table(BENCHMARK, &title, before), table(BENCHMARK, &title, after));
        historic::print(&[("before", &before), ("after", &after)])
            .filter(|_| !matches!(&before.body, Body::Metric(rows) if rows.is_empty()))
    }
}

fn line(key: &str, label: &str, metric: &published::Metric, value: Option<f64>, block: &str) -> Metric {
    let (better, gain) = match metric.better {
        Better::Higher if metric.unit == "%" => (model::Better::Higher, Gain::Points),
        Better::Higher => (model::Better::Higher, Gain::Percent),
        Better::Lower => (model::Better::Lower, Gain::PercentLower),
    };
    Metric {
        key: key.into(),
        label: label.into(),
        unit: metric.unit.clone().into(),
        better,
        gain: if block == BENCHMARK { gain } else { Gain::RelativeToNew },
        decimals: None,
        value: Cell::float(value),
        published: None,
    }
}

fn table(name: &str, title: &str, rows: Vec<Metric>) -> Table {
    Table { name: name.into(), title: title.into(), note: String::new(), body: Body::Metric(rows) }
}
