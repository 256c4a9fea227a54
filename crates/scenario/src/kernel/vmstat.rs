//! Designs of the per-CPU counters of zones and NUMA events.

use super::variant::variant;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;

/// Largest threshold of 8-bit differentials.
pub const MAX_THRESHOLD_S8: u32 = 126;
/// Largest threshold of differentials widened to 16 bits with a sign.
pub const MAX_THRESHOLD_S16: u32 = 32_766;
/// Largest threshold of 16-bit differentials without a sign: the series' constant is one less than it could be.
pub const MAX_THRESHOLD_U16: u32 = 65_534;

/// Per-CPU counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Vmstat {
    /// Design of the NUMA counters.
    pub numa_counters: NumaCounters,
    /// Threshold of the NUMA counters' differentials; `"auto"` is the design's own rule. A number is fixed, also
    /// under pressure.
    pub threshold: Threshold,
    /// On overflow a NUMA differential is set back to minus half the threshold, not to 0, and the shared counter
    /// runs ahead by as much. Only designs with signed differentials can.
    pub overstep: bool,
    /// Reading a zone's or node's NUMA counters adds the online CPUs' differentials.
    pub snapshot_reads: bool,
    /// Reading `/proc/zoneinfo` folds event counters first: design `events` since late 2024.
    pub zoneinfo_folds: bool,
    /// On a machine of several CPUs every zone has a drift mark, so that thresholds change while kswapd is awake: as CPUs
    /// come online there are no watermarks yet (`vmstat_cpu_online`, 4.12 and newer).
    pub early_drift_marks: bool,
    /// Counters that the test for unfolded counters of a CPU checks.
    pub needs_update: NeedsUpdate,
    /// Rows and layout of the statistics files.
    pub files: Files,
}

variant! {
    /// Where NUMA events (`numa_hit`, `numa_miss`, ...) are counted.
    pub enum NumaCounters {
        /// 4.13 and older: among the zone counters, signed 8-bit differentials with the zone's threshold.
        ZoneS8 = "zone-s8",
        /// The same with differentials of 16 bits, for thresholds above 126.
        ZoneS16 = "zone-s16",
        /// First step of the 2017 series: an array of their own, still 8-bit with a copy of the zone's threshold.
        SeparateS8 = "separate-s8",
        /// The 2017 series, 4.14 to 5.13: an array of their own, unsigned 16-bit differentials, fixed threshold.
        SeparateU16 = "separate-u16",
        /// 5.14 and newer: plain per-CPU words, folded by readers.
        Events = "events",
        /// Not counted.
        Off = "off",
    }
}

variant! {
    /// The test whether a CPU has counters to fold.
    pub enum NeedsUpdate {
        /// All differentials are checked.
        All = "all",
        /// 4.14 to 4.19: only as many bytes of the NUMA differentials as there are items, so the first three.
        ItemsAsBytes = "items-as-bytes",
        /// Zone counters only: design `events`.
        ZoneOnly = "zone-only",
    }
}

variant! {
    /// Layout of zoneinfo, vmstat, numastat, buddyinfo and pagetypeinfo.
    pub enum Files {
        /// 2.6.36 and 2.6.37: rows of zones only.
        V2_6_36 = "2.6.36",
        /// 3.2 to 3.4-rc: the same with huge pages, pages reclaimed by zone and by kswapd.
        V3_3 = "3.3",
        /// 3.4 to 3.7: pages reclaimed by zone and by reclaimer.
        V3_5 = "3.5",
        /// 4.13 and older: NUMA rows among the zone rows.
        V4_13 = "4.13",
        /// The 2017 series: NUMA rows behind the zone rows.
        V4_14 = "4.14",
        /// 6.1.
        V6_1 = "6.1",
        /// 6.12.
        V6_12 = "6.12",
        /// 6.18.
        V6_18 = "6.18",
        /// 7.3.
        V7_3 = "7.3",
    }
}

/// Threshold of a differential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threshold {
    /// The design's own rule: the zone's threshold, from online CPUs and size; 65533 for `separate-u16`.
    Auto,
    /// This one; at least 1 and as large as the design's differentials hold.
    Fixed(u32),
}

impl NumaCounters {
    /// Largest threshold its differentials hold; `None`: it has none.
    pub fn max_threshold(self) -> Option<u32> {
        match self {
            NumaCounters::ZoneS8 | NumaCounters::SeparateS8 => Some(MAX_THRESHOLD_S8),
            NumaCounters::ZoneS16 => Some(MAX_THRESHOLD_S16),
            NumaCounters::SeparateU16 => Some(MAX_THRESHOLD_U16),
            NumaCounters::Events | NumaCounters::Off => None,
        }
    }
}

impl Serialize for Threshold {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Threshold::Auto => serializer.serialize_str("auto"),
            Threshold::Fixed(t) => serializer.serialize_u32(*t),
        }
    }
}

impl<'de> Deserialize<'de> for Threshold {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use crate::units::Auto;
        use serde::de::Error;
        match Auto::<u64>::deserialize(deserializer)? {
            Auto::Auto => Ok(Threshold::Auto),
            Auto::Given(0) => Err(D::Error::custom("a threshold of 0 would never let a counter stay on its CPU")),
            Auto::Given(t) => u32::try_from(t).map(Threshold::Fixed).map_err(|_| {
                D::Error::custom(format!("a threshold of {t} is too large: the largest is {MAX_THRESHOLD_U16}"))
            }),
        }
    }
}

impl JsonSchema for Threshold {
    fn schema_name() -> Cow<'static, str> {
        "Threshold".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "oneOf": [{ "const": "auto" }, { "type": "integer", "minimum": 1, "maximum": MAX_THRESHOLD_U16 }]
        })
    }
}
