//! Where a machine's figures come from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a figure came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Provenance {
    /// Measured on such a machine.
    Measured,
    /// Computed from measured figures, or taken from the nearest machine that was measured; the source says how.
    Derived,
    /// Fixed so that published results come out; `fits` names them.
    Fitted,
    /// An order of magnitude nobody measured on such a machine.
    Assumed,
    /// Given in the scenario, or with `--set`.
    Given,
}

/// The provenance of some figures of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Keys below `machine`, such as `line.atomic`; a table stands for all figures in it.
    pub of: Vec<String>,
    /// How they came about.
    pub provenance: Provenance,
    /// Where they were published, or how they were computed.
    pub source: String,
    /// Published rows that a fitted figure was fixed on, as `NAME:ROW`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fits: Vec<String>,
}
