//! Statistics and findings of whole recordings.

mod findings;
mod invariants;
mod verdicts;
