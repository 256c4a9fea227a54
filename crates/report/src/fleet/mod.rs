//! Many recordings on one page: a line each, worst first, and the findings that several have.
//!
//! Of a recording only a [`Summary`] is kept, some kilobytes, so that thousands fit in memory. [`lines`] is the page for
//! people, [`write_json`] and [`write_csv`] are for programs.

mod data;
mod text;

pub use data::{write_csv, write_json};
pub use text::lines;

use crate::model::{Finding, Report};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Findings of a lower severity need no action.
const HARMLESS: u8 = mmtwin_analysis::findings::HARMLESS;

/// What is kept of one recording.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Summary {
    /// Path as found.
    pub name: String,
    /// `twin`, `lab`, `host` or `import`.
    pub arm: String,
    /// Kernel release; `None`: not known.
    pub kernel: Option<String>,
    /// Seconds that it covers; `None`: not known.
    pub seconds: Option<f64>,
    /// Events read.
    pub events: u64,
    /// Events the kernel lost; `None`: the source cannot tell.
    pub lost_events: Option<u64>,
    /// Its findings, worst first.
    pub findings: Vec<Found>,
}

/// A finding of one recording.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// Stable snake_case name of the rule.
    pub key: String,
    /// How bad, 0..=100.
    pub severity: u8,
    /// Nanoseconds that tasks waited because of it, summed over tasks; `None`: the recording does not tell.
    pub waited_ns: Option<u64>,
    /// The same as a share of the elapsed time, 1 = one task waited all the time.
    pub share: Option<f64>,
    /// Pressure on memory (some) beside it, as a share of the elapsed time.
    pub memory_some: Option<f64>,
    /// Pressure on I/O (some) beside it.
    pub io_some: Option<f64>,
    /// Path of the cgroup whose tasks waited; `None`: several, or not recorded.
    pub cgroup: Option<String>,
    /// One sentence with its numbers.
    pub sentence: String,
}

/// A recording that could not be read.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Unreadable {
    /// Path as found.
    pub name: String,
    /// Why.
    pub error: String,
}

/// A finding that several recordings have.
#[derive(Clone, Debug, Serialize)]
pub struct Common {
    /// Stable snake_case name of the rule.
    pub key: String,
    /// Recordings that have it.
    pub recordings: u64,
    /// Nanoseconds waited because of it in all of them; `None`: none of them tells.
    pub waited_ns: Option<u64>,
    /// The recording where it is worst.
    pub worst: String,
    /// What it says there.
    pub sentence: String,
    #[serde(skip)]
    severity: u8,
}

/// All recordings.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Fleet {
    /// Those that were read, worst first.
    pub recordings: Vec<Summary>,
    /// Those that were not, by name.
    pub unreadable: Vec<Unreadable>,
}

impl Summary {
    /// Of a report and the time that its recording covers.
    pub fn of(report: &Report, elapsed_ns: Option<u64>) -> Summary {
        Summary {
            name: report.input.name.clone(),
            arm: report.input.arm.clone(),
            kernel: report.input.kernel.clone(),
            seconds: elapsed_ns.map(|ns| ns as f64 / 1e9),
            events: report.input.events,
            lost_events: report.input.lost_events,
            findings: report.findings.iter().map(Found::of).collect(),
        }
    }

    /// Those that need action.
    pub fn problems(&self) -> impl Iterator<Item = &Found> {
        self.findings.iter().filter(|found| found.severity >= HARMLESS)
    }

    /// Share of the elapsed time waited because of its worst problem: cost, else pressure on memory.
    pub fn share(&self) -> Option<f64> {
        let of = |found: &Found| found.share.or(found.memory_some);
        self.problems().filter_map(of).max_by(f64::total_cmp)
    }

    fn severity(&self) -> u8 {
        self.findings.first().map_or(0, |found| found.severity)
    }
}

impl Found {
    fn of(finding: &Finding) -> Found {
        let (cost, pressure) = (finding.cost.as_ref(), finding.pressure.as_ref());
        Found {
            key: finding.key.clone(),
            severity: finding.severity,
            waited_ns: cost.map(|cost| cost.waited),
            share: cost.and_then(|cost| cost.share()),
            memory_some: pressure.and_then(|pressure| pressure.memory_some),
            io_some: pressure.and_then(|pressure| pressure.io_some),
            cgroup: cost.and_then(|cost| cost.cgroup.clone()),
            sentence: finding.sentence.clone(),
        }
    }
}

impl Fleet {
    /// Puts recordings into their order: worst first, by severity, then by share of time waited, then by name.
    pub fn new(mut recordings: Vec<Summary>, mut unreadable: Vec<Unreadable>) -> Fleet {
        recordings.sort_by(|a, b| {
            let shares = b.share().unwrap_or(-1.0).total_cmp(&a.share().unwrap_or(-1.0));
            b.severity().cmp(&a.severity()).then(shares).then_with(|| a.name.cmp(&b.name))
        });
        unreadable.sort_by(|a, b| a.name.cmp(&b.name));
        Fleet { recordings, unreadable }
    }

    /// Problems by rule, those of most recordings first.
    pub fn common(&self) -> Vec<Common> {
        let mut all: BTreeMap<&str, Common> = BTreeMap::new();
        for summary in &self.recordings {
            for found in summary.problems() {
                let common = all.entry(&found.key).or_insert_with(|| Common {
                    key: found.key.clone(),
                    recordings: 0,
                    waited_ns: None,
                    worst: summary.name.clone(),
                    sentence: found.sentence.clone(),
                    severity: found.severity,
                });
                common.recordings += 1;
                if let Some(waited) = found.waited_ns {
                    common.waited_ns = Some(common.waited_ns.unwrap_or(0).saturating_add(waited));
                }
                if found.severity > common.severity {
                    common.severity = found.severity;
                    common.worst.clone_from(&summary.name);
                    common.sentence.clone_from(&found.sentence);
                }
            }
        }
        let mut all: Vec<Common> = all.into_values().collect();
        all.sort_by(|a, b| b.recordings.cmp(&a.recordings).then(b.severity.cmp(&a.severity)).then(a.key.cmp(&b.key)));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(name: &str, findings: &[(&str, u8, Option<u64>)]) -> Summary {
        let found = findings.iter().map(|(key, severity, waited)| Found {
            key: (*key).into(),
            severity: *severity,
            waited_ns: *waited,
            share: waited.map(|ns| ns as f64 / 1e9),
            sentence: format!("{key} in {name}"),
            ..Found::default()
        });
        Summary { name: name.into(), seconds: Some(1.0), findings: found.collect(), ..Summary::default() }
    }

    #[test]
    fn worst_first_and_the_order_does_not_depend_on_who_was_read_first() {
        let all = vec![
            summary("d", &[]),
            summary("c", &[("streaming", 10, None)]),
            summary("b", &[("limit", 60, Some(200))]),
            summary("a", &[("limit", 60, Some(100))]),
            summary("e", &[("oom", 95, None)]),
        ];
        let names = |all: Vec<Summary>| -> Vec<String> {
            Fleet::new(all, Vec::new()).recordings.into_iter().map(|summary| summary.name).collect()
        };
        assert_eq!(names(all.clone()), ["e", "b", "a", "c", "d"]);
        assert_eq!(names(all.into_iter().rev().collect()), ["e", "b", "a", "c", "d"]);
    }

    #[test]
    fn common_findings_are_problems_of_several_recordings() {
        let fleet = Fleet::new(
            vec![
                summary("a", &[("limit", 60, Some(100)), ("streaming", 10, None)]),
                summary("b", &[("limit", 80, None)]),
                summary("c", &[("oom", 95, None)]),
            ],
            Vec::new(),
        );
        let common = fleet.common();
        let of = |at: usize| (common[at].key.as_str(), common[at].recordings, common[at].waited_ns);
        assert_eq!((common.len(), of(0), of(1)), (2, ("limit", 2, Some(100)), ("oom", 1, None)));
        assert_eq!((common[0].worst.as_str(), common[0].sentence.as_str()), ("b", "limit in b"));
    }
}
