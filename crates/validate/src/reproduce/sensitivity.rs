//! Whether the verdict survives other machine constants: each at both ends of its range, everything else as it is.

use super::steps::Signs;
use super::{Agreement, Reproduction, Request, Study, reproduce_as};
use crate::Error;
use mmtwin_report::model::{Body, Cell, Column, Table};
use mmtwin_scenario::published::{Published, Range};

/// So many constants are named as those that matter most.
const MOST: usize = 3;

/// What comes of a range.
struct Outcome<'a> {
    range: &'a Range,
    /// Signs at its lower and upper end.
    ends: [Signs; 2],
    /// Verdicts that either end changes.
    changed: usize,
}

/// Runs the patches of a study with each constant at the ends of its range, one seed. `sets`: further overrides for every
/// row, as `--set` takes them. `None`: the study states no ranges.
///
/// # Errors
/// If a run is refused or fails.
pub fn sensitivity(study: &Study, sets: &[String]) -> Result<Option<Table>, Error> {
    let failed = |message: String| Error::Study { study: study.name, message };
    let published = Published::parse(study.name, study.published).map_err(|faults| failed(faults.to_string()))?;
    if published.ranges.is_empty() {
        return Ok(None);
    }
    let run = |tests: &[String], constant: Option<String>| {
        let sets: Vec<String> = sets.iter().cloned().chain(constant).collect();
        reproduce_as(study, &Request { sets: &sets, tests, seeds: Some(1), ..Request::default() })
    };
    let base = run(&[], None)?;
    let mut outcomes = Vec::new();
    for range in &published.ranges {
        let mut changed = vec![false; verdicts(&base, &range.tests).len()];
        let mut ends = [Signs::default(); 2];
        for (end, signs) in range.ends.iter().zip(&mut ends) {
            let there = run(&range.tests, Some(format!("{}={end}", range.key)))?;
            let (before, after) = (verdicts(&base, &range.tests), verdicts(&there, &range.tests));
            changed.iter_mut().zip(before.iter().zip(&after)).for_each(|(changed, (a, b))| *changed |= a != b);
            *signs = signs_of(&there, &range.tests);
        }
        outcomes.push(Outcome { range, ends, changed: changed.into_iter().filter(|changed| *changed).count() });
    }
    outcomes.sort_by(|a, b| b.changed.cmp(&a.changed).then_with(|| a.range.key.cmp(&b.range.key)));
    let share = |signs: Signs| Cell::Text(format!("{} of {}", signs.right, signs.published));
    let line = |(place, outcome): (usize, &Outcome<'_>)| {
        let range = outcome.range;
        let judged = verdicts(&base, &range.tests).len();
        vec![
            Cell::Text(range.key.clone()),
            Cell::Text(range.ends.join(" to ")),
            Cell::Text(if range.tests.is_empty() { "all".into() } else { range.tests.join("; ") }),
            Cell::Text(format!("{} of {judged}", outcome.changed)),
            share(outcome.ends[0]),
            share(signs_of(&base, &range.tests)),
            share(outcome.ends[1]),
            Cell::Text(if place < MOST && outcome.changed > 0 { "matters most".into() } else { String::new() }),
            Cell::Text(range.source.clone()),
        ]
    };
    let columns = [
        ("constant", "constant"),
        ("range", "range"),
        ("tests", "tests"),
        ("verdicts_changed", "verdicts that change"),
        ("at_the_lower_end", "published sign, lower end"),
        ("as_it_is", "as it is"),
        ("at_the_upper_end", "upper end"),
        ("most", ""),
        ("source", "source of the range"),
    ];
    Ok(Some(Table {
        name: format!("{}-sensitivity", study.name),
        title: format!("{}: verdicts with machine constants at the ends of their ranges", study.name),
        note: "Each constant by itself, one seed: a verdict is whether a published change is there, opposite or not."
            .into(),
        body: Body::List {
            columns: columns.map(|(key, label)| Column { key: key.into(), label: label.into(), unit: "" }).to_vec(),
            rows: outcomes.iter().enumerate().map(line).collect(),
        },
    }))
}

/// Verdicts of all changes in some tests; none: in all.
fn verdicts(reproduction: &Reproduction, tests: &[String]) -> Vec<Option<Agreement>> {
    let steps = reproduction.steps();
    let of = steps.iter().filter(|step| tests.is_empty() || tests.iter().any(|test| test == step.test));
    of.flat_map(|step| step.changes.iter().map(|change| change.agreement)).collect()
}

fn signs_of(reproduction: &Reproduction, tests: &[String]) -> Signs {
    let steps = reproduction.steps();
    let of = steps.iter().filter(|step| tests.is_empty() || tests.iter().any(|test| test == step.test));
    Signs::of(of.flat_map(|step| &step.changes))
}
