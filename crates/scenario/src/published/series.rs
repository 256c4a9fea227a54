//! What a study says of its patches: tests, neighbouring kernels, noise of the published figures, and how parameters of the
//! workload were fixed.

use super::Published;
use crate::check::Check;
use serde::Deserialize;
use std::collections::BTreeSet;

/// A test: rows of one workload on one machine, which scores are grouped by.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Test {
    /// As a table prints it.
    pub label: String,
    /// Keys of its rows. A row is in one test at most.
    pub rows: Vec<String>,
}

/// A patch: pairs of rows whose kernels differ by it alone.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Patch {
    /// Its name, unique.
    pub name: String,
    /// Keys of the row before and of the row after it, a pair for each test.
    pub steps: Vec<[String; 2]>,
}

/// What published figures of one kernel differ by.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Noise {
    /// In percent of a figure.
    pub percent: f64,
    /// Where that was published, or how it was chosen.
    pub source: String,
}

impl Default for Noise {
    fn default() -> Noise {
        Noise { percent: 10.0, source: "chosen, as none was published".into() }
    }
}

/// How a parameter of the workload was fixed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fixed {
    /// Fitted: computed so that figures of the row come out.
    #[default]
    Fitted,
    /// Chosen among several after their results were seen.
    Chosen,
    /// A published figure of the row is an input of the run.
    Input,
}

/// A parameter of the workload that was fixed on a row.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// Its meaning.
    pub name: String,
    /// Key of the row that it was fixed on.
    pub row: String,
    /// How.
    #[serde(default)]
    pub how: Fixed,
    /// Published metrics that come out for this reason alone, and in no score: of every row of the test of `row`.
    #[serde(default)]
    pub metrics: Vec<String>,
}

/// Range of a machine constant.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Range {
    /// Key, as `--set` takes it.
    pub key: String,
    /// Its lowest and highest value, as `--set` takes them.
    pub ends: [String; 2],
    /// Where the range is from.
    pub source: String,
    /// Label of the tests that it is for; none: all.
    #[serde(default)]
    pub tests: Vec<String>,
}

impl Published {
    /// The test that a row belongs to.
    pub fn test_of(&self, row: &str) -> Option<&Test> {
        self.tests.iter().find(|test| test.rows.iter().any(|key| key == row))
    }

    pub(super) fn check_series(&self, check: &mut Check<'_>) {
        let has = |key: &str| self.rows.iter().any(|row| row.key == key);
        let metric = |key: &String| self.metrics.iter().any(|metric| metric.key == *key);
        let (mut seen, mut labels) = (BTreeSet::new(), BTreeSet::new());
        for (i, test) in self.tests.iter().enumerate() {
            check.require(labels.insert(&test.label), &format!("test.#{i}.label"), || "listed twice".into());
            for (j, row) in test.rows.iter().enumerate() {
                let path = format!("test.#{i}.rows.{j}");
                check.require(has(row), &path, || "no such row".into());
                check.require(seen.insert(row), &path, || "a row is in one test".into());
            }
        }
        let mut names = BTreeSet::new();
        for (i, patch) in self.patches.iter().enumerate() {
            check.require(names.insert(&patch.name), &format!("patch.#{i}.name"), || "listed twice".into());
            let known = patch.steps.iter().flatten().all(|row| has(row));
            check.require(known, &format!("patch.#{i}.steps"), || "one of these is no row".into());
        }
        for (i, parameter) in self.parameters.iter().enumerate() {
            check.require(has(&parameter.row), &format!("parameter.#{i}.row"), || "no such row".into());
            let known = parameter.metrics.iter().all(metric);
            check.require(known, &format!("parameter.#{i}.metrics"), || "one of these is no metric".into());
        }
        for (i, row) in self.rows.iter().enumerate() {
            let known = row.unpublished.iter().all(metric);
            check.require(known, &format!("row.#{i}.unpublished"), || "one of these is no metric".into());
        }
        for (i, range) in self.ranges.iter().enumerate() {
            let known = range.tests.iter().all(|label| labels.contains(label));
            check.require(known, &format!("range.#{i}.tests"), || "one of these is no test".into());
        }
    }
}
