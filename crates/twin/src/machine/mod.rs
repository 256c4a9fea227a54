//! The hardware.

pub mod line;
