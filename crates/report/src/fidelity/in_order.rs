//! How well the twin's events of reclaim agree with the kernel's, one by one: on one CPU every event follows from those
//! before, so two runs can be laid side by side.
//!
//! An event is its type and its `nr_*` values; addresses, times and flags are not compared. Those that are equal from the
//! first on are counted, and of the kernel's first thousand those that are equal when both are aligned: the longest common
//! subsequence with the twin's first thousand. An event on one side only is not equal to anything.

use mmtwin_event::{Event, Sink};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Events that are aligned.
pub const ALIGNED: usize = 1000;

/// One event of reclaim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Name of the event.
    name: Cow<'static, str>,
    values: Vec<u64>,
}

/// Takes the events of reclaim out of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Steps(pub Vec<Step>);

impl Sink for Steps {
    fn event(&mut self, event: &Event<'_>) {
        let Some(schema) = event.kind.schema().filter(|schema| schema.system == "vmscan") else { return };
        if self.0.len() < ALIGNED {
            let counts = schema.fields.iter().enumerate().filter(|(_, field)| field.name.starts_with("nr_"));
            let values = counts.map(|(slot, _)| event.slot(slot)).collect();
            self.0.push(Step { name: Cow::Borrowed(schema.name), values });
        }
    }
}

/// How the events of two runs agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InOrder {
    /// Events that are equal before the first that is not.
    pub first: usize,
    /// Events of the kernel that are equal after alignment, of this many.
    pub aligned: usize,
    /// The kernel's events that were aligned.
    pub of: usize,
}

impl InOrder {
    /// Part of the kernel's events that are equal after alignment, in percent.
    pub fn percent(&self) -> f64 {
        100.0 * self.aligned as f64 / self.of.max(1) as f64
    }
}

/// Compares the kernel's events with the twin's.
pub fn compare(kernel: &Steps, twin: &Steps) -> InOrder {
    let first = kernel.0.iter().zip(&twin.0).take_while(|(a, b)| a == b).count();
    InOrder { first, aligned: common(&kernel.0, &twin.0), of: kernel.0.len() }
}

/// Length of the longest common subsequence.
fn common(a: &[Step], b: &[Step]) -> usize {
    let mut before = vec![0; b.len() + 1];
    for step in a {
        let mut row = vec![0; b.len() + 1];
        for (at, other) in b.iter().enumerate() {
            row[at + 1] = if step == other { before[at] + 1 } else { row[at].max(before[at + 1]) };
        }
        before = row;
    }
    before.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_aligned() {
        let steps = |values: &[u64]| {
            Steps(
                values
                    .iter()
                    .map(|&value| Step { name: "mm_vmscan_lru_isolate".into(), values: vec![value] })
                    .collect(),
            )
        };
        let kernel = steps(&[1, 2, 3, 4, 5]);
        assert_eq!(compare(&kernel, &kernel), InOrder { first: 5, aligned: 5, of: 5 });
        assert_eq!(compare(&kernel, &steps(&[1, 2, 9, 3, 5])), InOrder { first: 2, aligned: 4, of: 5 });
        assert_eq!(compare(&kernel, &steps(&[])), InOrder { first: 0, aligned: 0, of: 5 });
        assert_eq!(compare(&kernel, &steps(&[2, 1])).percent(), 20.0);
        let mut other = kernel.clone();
        other.0[0].name = "mm_vmscan_lru_shrink_active".into();
        assert_eq!(compare(&kernel, &other), InOrder { first: 0, aligned: 4, of: 5 });
    }
}
