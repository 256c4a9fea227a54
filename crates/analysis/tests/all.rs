//! Statistics and findings of whole recordings.

mod findings;
mod halves;
mod invariants;
mod verdicts;
