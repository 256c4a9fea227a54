//! Attribution: what each patch of a series changes, in decisions of the kernel and in every quantity that was published
//! on both sides of it.

use super::change::{Agreement, Floor, Moved};
use super::decisions::Difference;
use super::{Found, Reproduced, Reproduction};
use mmtwin_report::model::{Body, Cell, Column, Na, Table};
use mmtwin_scenario::published::{Fixed, Metric};

/// A patch in a test.
pub struct Step<'a> {
    /// Name of the patch.
    pub patch: &'a str,
    /// Label of the test; empty: the study has one.
    pub test: &'a str,
    /// Runs of each kernel.
    pub runs: usize,
    /// What the kernels decided differently.
    pub decisions: Difference,
    /// Changes of quantities.
    pub changes: Vec<Change<'a>>,
}

/// Change of a quantity.
pub struct Change<'a> {
    /// The quantity.
    pub metric: &'a Metric,
    /// As published; `None`: of a variant.
    pub published: Option<Moved>,
    /// The twin's; `None`: not modelled.
    pub twin: Option<Moved>,
    /// Whether both agree.
    pub agreement: Option<Agreement>,
}

/// How many changes agree, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signs {
    /// Published changes above the noise floor.
    pub published: usize,
    /// Of these, those with the published sign.
    pub right: usize,
    /// Those with the opposite sign.
    pub opposite: usize,
    /// Published figures without a change above the noise floor.
    pub still: usize,
    /// Of these, those that have none in the twin either.
    pub still_too: usize,
}

impl Signs {
    /// Counts changes.
    pub(super) fn of<'c>(changes: impl Iterator<Item = &'c Change<'c>>) -> Signs {
        let mut signs = Signs::default();
        for agreement in changes.filter_map(|change| Some((change.agreement?, change.published?))) {
            let (agreement, published) = agreement;
            match published.sign == super::change::Sign::None {
                true => {
                    signs.still += 1;
                    signs.still_too += usize::from(agreement == Agreement::NoneInBoth);
                }
                false => {
                    signs.published += 1;
                    signs.right += usize::from(agreement == Agreement::Sign);
                    signs.opposite += usize::from(agreement == Agreement::Opposite);
                }
            }
        }
        signs
    }
}

impl Reproduction {
    /// Every patch in every test.
    pub fn steps(&self) -> Vec<Step<'_>> {
        let of = |key: &String| self.rows.iter().find(|row| row.row.key == *key);
        let pairs = self.published.patches.iter().flat_map(|patch| patch.steps.iter().map(move |step| (patch, step)));
        let steps = pairs.filter_map(|(patch, [before, after])| {
            let (before, after) = (of(before)?, of(after)?);
            let test = self.published.test_of(&after.row.key).map_or("", |test| &test.label);
            let (a, b) = (before.all_runs(), after.all_runs());
            Some(Step {
                patch: &patch.name,
                test,
                runs: a.len().min(b.len()),
                decisions: Difference::between(&a, &b),
                changes: self.changes(before, after),
            })
        });
        steps.collect()
    }

    fn changes<'a>(&'a self, before: &'a Reproduced, after: &'a Reproduced) -> Vec<Change<'a>> {
        let change = |metric: &'a Metric| {
            let key = metric.key.as_str();
            let floor = Floor { percent: self.published.noise.percent, unit: &metric.unit };
            let trial =
                self.published.trials.iter().find(|trial| {
                    trial.metric == key && trial.before == before.row.key && trial.after == after.row.key
                });
            let values = before.row.values.get(key).zip(after.row.values.get(key));
            let published = match (values, trial) {
                (Some((from, to)), _) => Some(floor.single(*from, *to)),
                (None, trial) => trial.map(|trial| floor.published(trial.published)),
            };
            let unpublished = after.row.unpublished.iter().any(|name| name == key);
            if published.is_none() && !unpublished {
                return None;
            }
            if self.is_input(&after.row.key, key) {
                return None;
            }
            let of = |row: &Reproduced| row.all_runs().iter().filter_map(|run| run.values.get(key).copied()).collect();
            let (a, b): (Vec<f64>, Vec<f64>) = (of(before), of(after));
            let twin = floor.of_runs(&a, &b);
            let agreement = published.map(|published| Agreement::of(published.sign, twin.map(|twin| twin.sign)));
            Some(Change { metric, published, twin, agreement })
        };
        self.published.metrics.iter().filter_map(change).collect()
    }

    /// True if a metric of a row is a published figure that the runs were given.
    pub(super) fn is_input(&self, row: &str, metric: &str) -> bool {
        let test = self.published.test_of(row).map(|test| &test.label);
        self.published.parameters.iter().any(|parameter| {
            let same = parameter.row == row || self.published.test_of(&parameter.row).map(|test| &test.label) == test;
            parameter.how == Fixed::Input && same && parameter.metrics.iter().any(|key| key == metric)
        })
    }

    /// Every judged quantity of every patch, or of one.
    pub fn changes_table(&self, patch: Option<&str>) -> Option<Table> {
        let mut rows = Vec::new();
        for step in self.steps().iter().filter(|step| patch.is_none_or(|patch| step.patch == patch)) {
            for change in &step.changes {
                let text = |moved: Option<String>| moved.map_or(Cell::Na(Na::NotRecorded), Cell::Text);
                let noise = change.twin.and_then(|twin| twin.noise).map(super::change::short);
                rows.push(vec![
                    Cell::Text(step.patch.into()),
                    Cell::Text(step.test.into()),
                    Cell::Text(change.metric.label.clone()),
                    text(change.published.map(|moved| moved.text())),
                    text(change.twin.map(|moved| moved.text())),
                    text(change.twin.and_then(|moved| moved.interval_text())),
                    text(noise.map(|noise| noise.trim_start_matches('+').to_string())),
                    text(change.agreement.map(|agreement| agreement.word().into())),
                ]);
            }
        }
        let columns =
            ["patch", "test", "quantity", "published", "twin", "95 % interval", "noise of the twin", "verdict"];
        let title = format!("{}: change of each published quantity by each patch", self.name);
        let mut table = self.list("changes-by-patch", &title, columns, rows)?;
        table.note = self.floor_note();
        Some(table)
    }

    /// What counts as no change.
    pub(super) fn floor_note(&self) -> String {
        let noise = &self.published.noise;
        format!(
            "No change: at most {} % of the figure ({}); of counts also at most 2 sqrt(a + b), of percentages a point; of \
             the twin with several seeds also what its runs of one kernel differ by, or an interval with 0 in it.",
            noise.percent, noise.source
        )
    }
}

/// What each patch does, a row for each test of it.
pub fn by_patch(reproductions: &[Reproduction]) -> Option<Table> {
    let mut rows = Vec::new();
    for reproduction in reproductions {
        for step in reproduction.steps() {
            let signs = Signs::of(step.changes.iter());
            let share = |part: usize, of: usize| match of {
                0 => Cell::Text("-".into()),
                of => Cell::Text(format!("{part} of {of}")),
            };
            rows.push(vec![
                Cell::Text(reproduction.name.into()),
                Cell::Text(step.patch.into()),
                Cell::Text(step.test.into()),
                Cell::Int((step.runs - step.decisions.halted.min(step.runs)) as i128),
                Cell::Text(step.decisions.text()),
                share(signs.right, signs.published),
                share(signs.opposite, signs.published),
                share(signs.still_too, signs.still),
            ]);
        }
    }
    let columns = [
        ("series", "series"),
        ("patch", "patch"),
        ("test", "test"),
        ("seeds", "seeds"),
        ("decisions", "decisions changed"),
        ("published_sign", "published sign"),
        ("opposite_sign", "opposite sign"),
        ("no_change", "none in both"),
    ];
    (!rows.is_empty()).then(|| Table {
        name: "by-patch".into(),
        title: "What each patch changes: decisions of the kernel, and published changes that the twin has".into(),
        note: "Decisions: trace events and counters of runs with the same seed that the patch changes, per run. \"published \
               sign\": of published changes above the noise floor; those that are neither there nor opposite are no \
               change in the twin, or not modelled."
            .into(),
        body: Body::List {
            columns: columns.map(|(key, label)| Column { key: key.into(), label: label.into(), unit: "" }).to_vec(),
            rows,
        },
    })
}

impl Reproduced {
    /// All runs of the row.
    pub(super) fn all_runs(&self) -> Vec<&Found> {
        match self.runs.is_empty() {
            true => vec![&self.found],
            false => self.runs.iter().collect(),
        }
    }
}
