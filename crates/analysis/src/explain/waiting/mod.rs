//! Who waited for memory, when, and why: the chain from an allocation to reclaim, to the disk, and back.
//!
//! A first reading (a [`Survey`]) takes all statistics and keeps the longest waits, those of the task that is asked for,
//! and the kills. Most questions are answered from it; one wait is followed step by step by a second reading
//! ([`follow::Follow`]). What was not recorded is a [`Gap`] with the event to record. Kernels do not trace which rule of
//! reclaim acted; kernel functions are named in the steps.

mod cgroup;
pub mod follow;
mod list;
mod oom;
mod question;
mod refault;
mod survey;
mod target;
#[cfg(test)]
mod tests;
mod track;
mod wait;

use super::gaps::Gap;
use super::{Chain, Step};
use mmtwin_event::Kind;
pub use question::{Answer, Question, Which};
pub use survey::Survey;
pub use track::Tracker;
pub use wait::{Cause, Wait};

/// Steps of an answer that is to fit one screen.
const STEPS: usize = 10;

/// What was not recorded, of events that would tell more: one gap for all, with the command that records them.
fn missing(survey: &Survey, events: &[(Kind, &str)]) -> Option<Gap> {
    let absent: Vec<_> = events.iter().filter(|(kind, _)| !survey.analysis.recorded.has(*kind)).collect();
    let name = |kind: Kind| kind.schema().map(|schema| format!("{}:{}", schema.system, schema.name));
    let names: Vec<String> = absent.iter().filter_map(|(kind, _)| name(*kind)).collect();
    let what: Vec<&str> = absent.iter().map(|(_, what)| *what).collect();
    let fix = match survey.analysis.source.arm.as_str() {
        "twin" => format!("mmtwin run SCENARIO --set 'run.events=[\"{}\"]'", names.join("\", \"")),
        _ => format!("mmtwin record -e '{}'", names.join(",")),
    };
    let gap = || Gap { what: what.join(", "), fix };
    (!absent.is_empty()).then(gap)
}

/// A chain of steps, in time order, of which there are not too many.
fn chain(title: String, mut steps: Vec<Step>, gaps: Vec<Gap>, answer: String) -> Chain {
    steps.sort_by_key(|step| step.at);
    let dropped = steps.len().saturating_sub(STEPS) as u64;
    let cut = STEPS / 2;
    if dropped > 0 {
        steps.drain(cut..cut + dropped as usize);
    }
    Chain { title, steps, dropped: (dropped > 0).then_some((cut, dropped)), gaps, answer }
}
