//! `[run]`: how long, from which seed, and what is recorded.

use crate::units::{Bytes, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a scenario is run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Ends the run at this time; absent: when the last process has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<Time>,
    /// Seed of everything that is drawn at random.
    #[serde(default = "Run::default_seed")]
    pub seed: u64,
    /// Time between two records of counters and placement; 0: only at the boundaries of phases.
    #[serde(default = "Run::default_sample")]
    pub sample: Time,
    /// Trace events to record: EVENT or SYSTEM:EVENT with * and ?.
    #[serde(default)]
    pub events: Vec<String>,
    /// Ring buffer of a CPU for events, on a kernel; absent: by the machine's memory. Events that fit into a quarter of
    /// it are read when the workload has ended, and take no memory meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer: Option<Bytes>,
    /// Counters to record, by name with * and ?.
    #[serde(default = "Run::default_counters")]
    pub counters: Vec<String>,
    /// Interval in which the twin draws accesses in bulk: 100 us to 10 ms.
    #[serde(default = "Run::default_epoch")]
    pub epoch: Time,
}

impl Run {
    fn default_seed() -> u64 {
        1
    }

    fn default_sample() -> Time {
        Time(1_000_000_000)
    }

    fn default_counters() -> Vec<String> {
        vec!["*".into()]
    }

    fn default_epoch() -> Time {
        Time(4_000_000)
    }
}

impl Default for Run {
    fn default() -> Run {
        Run {
            duration: None,
            seed: Run::default_seed(),
            sample: Run::default_sample(),
            events: Vec::new(),
            buffer: None,
            counters: Run::default_counters(),
            epoch: Run::default_epoch(),
        }
    }
}
