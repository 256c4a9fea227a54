//! Scores of a study, by test and in one line: every cell with a published figure counts, except published figures that
//! the runs were given and figures that a parameter was fitted on alone.

use super::change::percentile;
use super::steps::{Signs, Step};
use super::{Reproduced, Reproduction};
use mmtwin_report::model::{Cell, Na, Table};
use mmtwin_scenario::published::Fixed;
use std::collections::BTreeSet;

/// Scores of a test, or of a study.
#[derive(Clone, Debug, Default)]
pub struct Score {
    /// Cells with a published figure.
    pub cells: usize,
    /// Of these, cells of quantities that the twin does not have.
    pub not_modelled: usize,
    /// Of these, cells of rows that a parameter was fitted on.
    pub fitted: usize,
    /// Cells in which 0 was published, and of these those in which the twin has 0 too.
    pub zeros: (usize, usize),
    /// Errors of all others, in percent of the published figure.
    pub errors: Vec<f64>,
    /// The same of rows that nothing was fitted on.
    pub predicted: Vec<f64>,
    /// Signs of changes.
    pub signs: Signs,
}

impl Score {
    fn cell(&mut self, published: f64, twin: Option<f64>, fitted: bool) {
        self.cells += 1;
        self.fitted += usize::from(fitted);
        match twin {
            None => self.not_modelled += 1,
            Some(twin) if published == 0.0 => {
                self.zeros.0 += 1;
                self.zeros.1 += usize::from(twin == 0.0);
            }
            Some(twin) => {
                let error = 100.0 * (twin / published - 1.0).abs();
                self.errors.push(error);
                self.predicted.extend((!fitted).then_some(error));
            }
        }
    }

    fn add(&mut self, other: &Score) {
        self.cells += other.cells;
        self.not_modelled += other.not_modelled;
        self.fitted += other.fitted;
        self.zeros = (self.zeros.0 + other.zeros.0, self.zeros.1 + other.zeros.1);
        self.errors.extend(&other.errors);
        self.predicted.extend(&other.predicted);
        let (mine, theirs) = (&mut self.signs, &other.signs);
        mine.published += theirs.published;
        mine.right += theirs.right;
        mine.opposite += theirs.opposite;
        mine.still += theirs.still;
        mine.still_too += theirs.still_too;
    }

    /// One line, in the same words for all studies.
    pub fn line(&self) -> String {
        let at = |share: f64| percentile(&mut self.errors.clone(), share).map_or("n/a".into(), error);
        let signs = self.signs;
        format!(
            "{} cells, median error {}, 90th percentile {}; published sign in {} of {} changes above the noise floor, {} of \
             {} that are above the twin's too; no change in {} of {} below it",
            self.cells,
            at(0.5),
            at(0.9),
            signs.right,
            signs.published,
            signs.right,
            signs.right + signs.opposite,
            signs.still_too,
            signs.still
        )
    }
}

impl Reproduction {
    /// Scores of each test that has any, by its label; the last is that of the study.
    pub fn scores(&self) -> Vec<(String, Score)> {
        let steps = self.steps();
        let mut labels: Vec<&str> = self.published.tests.iter().map(|test| test.label.as_str()).collect();
        labels.push("");
        let mut scores = Vec::new();
        let mut all = Score::default();
        for label in labels {
            let score = self.score(label, &steps);
            if score.cells > 0 || score.signs != Signs::default() {
                all.add(&score);
                let name = if label.is_empty() { "other rows" } else { label };
                scores.push((name.to_string(), score));
            }
        }
        scores.push(("all".into(), all));
        scores
    }

    /// Of the rows and steps of one test; with an empty label of those of none.
    fn score(&self, label: &str, steps: &[Step<'_>]) -> Score {
        let mut score = Score::default();
        let is_in = |row: &str| self.published.test_of(row).map_or("", |test| &test.label) == label;
        for row in self.rows.iter().filter(|row| is_in(&row.row.key)) {
            for metric in self.published.metrics.iter().filter(|metric| !metric.relative) {
                let key = metric.key.as_str();
                let Some(&published) = row.row.values.get(key) else { continue };
                // What sets the unit is no result.
                let unit = metric.scaled_on.as_deref() == Some(row.row.key.as_str());
                if !unit && !self.is_input(&row.row.key, key) && !self.is_fitted(row, key) {
                    score.cell(published, row.found.values.get(key).copied(), row.fitted);
                }
            }
            for list in self.published.lists.iter().filter(|list| list.row == row.row.key) {
                let ours = row.found.more.iter().find(|more| more.key == list.key).map_or(&[][..], |more| &more.values);
                let ends: &[fn(f64, f64) -> f64] =
                    if list.values.len() > 1 { &[f64::min, f64::max] } else { &[f64::max] };
                for end in ends {
                    let Some(published) = list.values.iter().copied().reduce(end) else { continue };
                    score.cell(published, ours.iter().copied().reduce(end), false);
                }
            }
        }
        // Of runs that are shorter than the published ones only ratios can be compared.
        for [before, after] in self.published.patches.iter().flat_map(|patch| &patch.steps) {
            if !is_in(after) {
                continue;
            }
            let of = |key: &String| self.rows.iter().find(|row| row.row.key == *key);
            let (Some(before), Some(after)) = (of(before), of(after)) else { continue };
            for metric in self.published.metrics.iter().filter(|metric| metric.relative) {
                let key = metric.key.as_str();
                let ratio = |a: Option<&f64>, b: Option<&f64>| Some(b? / a?).filter(|ratio| ratio.is_finite());
                let published = ratio(before.row.values.get(key), after.row.values.get(key));
                let twin = ratio(before.found.values.get(key), after.found.values.get(key));
                if let Some(published) = published {
                    score.cell(published, twin, false);
                }
            }
        }
        score.signs = Signs::of(steps.iter().filter(|step| step.test == label).flat_map(|step| &step.changes));
        score
    }

    /// True if a parameter was fitted on this figure of the row alone.
    fn is_fitted(&self, row: &Reproduced, metric: &str) -> bool {
        self.published.parameters.iter().any(|parameter| {
            let here = parameter.row == row.row.key && parameter.how != Fixed::Input;
            here && parameter.metrics.iter().any(|key| key == metric)
        })
    }

    /// Scores by test, the study's in the title.
    pub(super) fn score_table(&self) -> Option<Table> {
        let scores = self.scores();
        let line = |(label, score): &(String, Score)| {
            let at = |errors: &[f64], share| {
                percentile(&mut errors.to_vec(), share).map_or(Cell::Na(Na::Undefined), |e| Cell::Text(error(e)))
            };
            let signs = score.signs;
            let share = |part: usize, of: usize| match of {
                0 => Cell::Text("-".into()),
                of => Cell::Text(format!("{part} of {of}")),
            };
            vec![
                Cell::Text(label.clone()),
                Cell::Int(score.cells as i128),
                Cell::Int(score.not_modelled as i128),
                at(&score.errors, 0.5),
                at(&score.errors, 0.9),
                at(&score.predicted, 0.5),
                share(score.zeros.1, score.zeros.0),
                share(signs.right, signs.published),
                share(signs.opposite, signs.published),
                share(signs.still_too, signs.still),
            ]
        };
        let (_, all) = scores.last()?;
        if all.cells == 0 && all.signs == Signs::default() {
            return None;
        }
        let columns = [
            "test",
            "cells",
            "not modelled",
            "median error",
            "90th percentile",
            "of rows not fitted",
            "0 in both",
            "published sign",
            "opposite sign",
            "none in both",
        ];
        let title = format!("{}: {}", self.name, all.line());
        let mut table = self.list("score", &title, columns, scores.iter().map(line).collect())?;
        table.note = self.floor_note();
        Some(table)
    }

    /// Parameters that were fixed with the published figures known, and figures that are inputs.
    pub(super) fn parameter_table(&self) -> Option<Table> {
        let row_name = |key: &str| {
            let row = self.rows.iter().find(|row| row.row.key == key);
            row.map_or_else(|| key.to_string(), |row| self.name_of(row))
        };
        let mut rows = Vec::new();
        let mut seen = BTreeSet::new();
        for (name, row) in &self.parameters {
            rows.push(["fitted".to_string(), name.clone(), row_name(row)]);
        }
        for parameter in &self.published.parameters {
            let how = match parameter.how {
                Fixed::Fitted => "fitted",
                Fixed::Chosen => "chosen, results seen",
                Fixed::Input => "published figure as input",
            };
            let line = [how.to_string(), parameter.name.clone(), row_name(&parameter.row)];
            if seen.insert(line.clone()) {
                rows.push(line);
            }
        }
        if rows.is_empty() {
            rows.push(["none", "every figure is predicted", "-"].map(String::from));
        }
        let rows: Vec<_> = rows.into_iter().map(|line| line.map(Cell::Text).to_vec()).collect();
        let title = format!("{}: parameters that were fixed with published figures known", self.published.title);
        let mut table = self.list("parameters", &title, ["how", "parameter", "on"], rows)?;
        table.note = format!("Source of the figures: {}. {}", self.published.source, self.published.note);
        Some(table)
    }
}

/// An error for people.
fn error(percent: f64) -> String {
    match percent {
        p if p >= 9.95 => format!("{p:.0} %"),
        p if p >= 0.995 => format!("{p:.1} %"),
        p => format!("{p:.2} %"),
    }
}
