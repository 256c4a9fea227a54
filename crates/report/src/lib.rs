//! Named tables, comparison, and their formats.

pub mod model;
