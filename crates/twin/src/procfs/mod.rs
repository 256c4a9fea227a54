//! Files of /proc and /sys as text, as the modelled kernel prints them.
//!
//! Reading may change counters and always costs the words and lines that it reads
//! ([`ReadCost`](crate::vmstat::ReadCost)).

pub mod vmallocinfo;
pub(crate) mod vmstat;
pub(crate) mod zoneinfo;
