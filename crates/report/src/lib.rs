//! Named tables, comparison, and their formats.
//!
//! [`model::Report`] is what one input gives; [`compare::compare`] puts one or several side by side, and
//! [`format::write`] prints the result as text, JSON or CSV. [`screen::lines`]
//! is what a report says first, on one screen; [`topics`] are the tables of a subject, which [`people`] makes short.

pub mod column;
pub mod compare;
pub mod explain;
pub mod fail_on;
pub mod fidelity;
pub mod findings;
pub mod format;
pub mod gain;
pub mod model;
pub mod people;
mod renamed;
pub mod screen;
pub mod stacks;
pub mod statistics;
mod suggest;
pub mod tables;
pub mod topics;
pub mod units;
