//! Named tables, comparison, and their formats.
//!
//! [`model::Report`] is what one input gives; [`compare::compare`] puts one or several side by side, and
//! [`format::write`] prints the result as text, JSON or CSV, [`html::write`] as a page. [`screen::lines`]
//! is what a report says first, on one screen, [`side_by_side::lines`] what a comparison does; [`topics`] are the tables of
//! a subject, which [`people`] makes short. [`quantities`] gives every figure a key. [`sweep`] is a table of many runs,
//! [`openmetrics`] is for Prometheus.

pub mod column;
pub mod compare;
pub mod explain;
pub mod fail_on;
pub mod fidelity;
pub mod findings;
pub mod fleet;
pub mod format;
pub mod gain;
pub mod html;
pub mod model;
pub mod openmetrics;
pub mod people;
pub mod quantities;
mod renamed;
pub mod screen;
pub mod side_by_side;
pub mod stacks;
pub mod statistics;
mod suggest;
pub mod sweep;
pub mod tables;
pub mod topics;
pub mod units;
