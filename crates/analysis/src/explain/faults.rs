//! Totals of hinting faults: how many pages were migrated, were not, or failed to, and by which rules.

use super::figures::{rule as rule_text, seconds};
use super::{Step, Steps};
use mmtwin_event::rules::Rule;
use mmtwin_event::vocabulary::{NumaHintFault, NumaMigrateRefused};
use mmtwin_event::{Event, Kind};
use std::collections::BTreeMap;

/// Faults in an interval.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    first: u64,
    last: u64,
    /// All of them.
    pub count: u64,
    /// On pages of the CPU's node.
    pub local: u64,
    /// Whose pages were migrated, by rule.
    pub migrated: BTreeMap<Option<Rule>, u64>,
    /// Whose pages were not to be migrated, by rule.
    pub kept: BTreeMap<Option<Rule>, u64>,
    /// Whose migration failed.
    pub failed: u64,
    /// Why, where that was recorded.
    pub refused: BTreeMap<Option<Rule>, u64>,
}

impl Faults {
    /// Counts a fault.
    pub fn add(&mut self, at: u64, of: &NumaHintFault) {
        if self.count == 0 {
            self.first = at;
        }
        self.last = at;
        self.count += 1;
        let rule = Rule::of(of.rule);
        match (of.wanted, of.migrated) {
            (_, true) => *self.migrated.entry(rule).or_default() += 1,
            (true, false) => self.failed += 1,
            (false, false) if of.src_nid == of.dst_nid => self.local += 1,
            (false, false) => *self.kept.entry(rule).or_default() += 1,
        }
    }

    /// Counts why a migration failed.
    pub fn refuse(&mut self, of: &NumaMigrateRefused) {
        *self.refused.entry(Rule::of(of.rule)).or_default() += 1;
    }

    /// Adds others.
    pub fn append(&mut self, other: &Faults) {
        let add = |to: &mut BTreeMap<Option<Rule>, u64>, from: &BTreeMap<Option<Rule>, u64>| {
            from.iter().for_each(|(rule, n)| *to.entry(*rule).or_default() += n);
        };
        (self.count, self.local, self.failed) =
            (self.count + other.count, self.local + other.local, self.failed + other.failed);
        add(&mut self.migrated, &other.migrated);
        add(&mut self.kept, &other.kept);
        add(&mut self.refused, &other.refused);
    }

    /// The faults as text with their number; empty if there are none.
    pub fn text(&self) -> String {
        match self.count {
            0 => String::new(),
            1 => format!("1 hinting fault: {}", self.parts()),
            n => format!("{n} hinting faults: {}", self.parts()),
        }
    }

    fn parts(&self) -> String {
        let sum = |of: &BTreeMap<Option<Rule>, u64>| of.values().sum::<u64>();
        let mut parts = Vec::new();
        let mut part = |count: u64, what: &str, by: &BTreeMap<Option<Rule>, u64>| {
            if count > 0 {
                parts.push(format!("{count} {what}{}", rules(by)));
            }
        };
        part(self.local, "local", &BTreeMap::new());
        part(sum(&self.migrated), "migrated", &self.migrated);
        part(sum(&self.kept), "not migrated", &self.kept);
        part(self.failed, "failed to migrate", &self.refused);
        parts.join(", ")
    }

    /// Ends the interval with a step.
    pub(super) fn flush(&mut self, all: &mut Faults, steps: &mut Steps) {
        if self.count > 0 {
            all.append(self);
            let (until, times) = (self.last, self.count);
            steps.push(Step { until, times, ..Step::new(self.first, Kind::NumaHintFault, None, self.parts()) });
        }
        *self = Faults::default();
    }
}

/// How many by which rule, most first.
fn rules(by: &BTreeMap<Option<Rule>, u64>) -> String {
    let mut by: Vec<_> = by.iter().filter_map(|(rule, n)| Some(((*rule)?, *n))).collect();
    by.sort_by_key(|(rule, n)| (std::cmp::Reverse(*n), *rule));
    let by: Vec<String> = by.iter().map(|(rule, n)| format!("{n} by {}", rule_text(*rule))).collect();
    if by.is_empty() { String::new() } else { format!(" ({})", by.join("; ")) }
}

/// Page migrations of a task as kernels trace them: without the page and the rule.
#[derive(Clone, Debug, Default)]
pub(super) struct Migrations {
    first: u64,
    last: u64,
    calls: u64,
    pages: u64,
    failed: u64,
    /// CPU of the last one, and its node.
    cpu: u32,
    nid: Option<u32>,
    /// Pages in total.
    pub all: u64,
}

impl Migrations {
    /// Counts one; another node ends the interval.
    pub(super) fn add(&mut self, event: &Event<'_>, nid: Option<u32>, succeeded: u64, failed: u64, steps: &mut Steps) {
        if self.calls > 0 && (self.nid, nid.is_none().then_some(self.cpu)) != (nid, nid.is_none().then_some(event.cpu))
        {
            self.flush(steps);
        }
        if self.calls == 0 {
            self.first = event.ts;
        }
        (self.last, self.cpu, self.nid) = (event.ts, event.cpu, nid);
        self.calls += 1;
        self.pages = self.pages.saturating_add(succeeded);
        self.failed = self.failed.saturating_add(failed);
        self.all = self.all.saturating_add(succeeded);
    }

    /// Ends the interval with a step.
    pub(super) fn flush(&mut self, steps: &mut Steps) {
        if self.calls > 0 {
            let to = self.nid.map_or_else(|| format!("the node of CPU {}", self.cpu), |nid| format!("node {nid}"));
            let failed = if self.failed > 0 { format!(", {} failed", self.failed) } else { String::new() };
            let what = format!("{} pages migrated to {to} on its hinting faults{failed}", self.pages);
            let step = Step::new(self.first, Kind::MmMigratePages, None, what);
            steps.push(Step { until: self.last, times: self.calls, ..step });
        }
        *self = Migrations { all: self.all, ..Migrations::default() };
    }
}

/// `since T: ...`, or nothing.
pub(super) fn since(at: u64, faults: &Faults) -> String {
    let text = faults.text();
    if text.is_empty() { String::new() } else { format!(" Since {}: {text}.", seconds(at)) }
}
