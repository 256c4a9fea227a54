//! Memory control groups.

use crate::units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A cgroup with its limits: `memory.max = "1 GiB"`, as the files are called.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cgroup {
    /// Path below the mount, such as `/web` or `/web/static`; a parent is listed too.
    pub name: String,
    /// Files `memory.*`.
    #[serde(default, skip_serializing_if = "CgroupMemory::is_empty")]
    pub memory: CgroupMemory,
}

/// Memory limits and protections of a cgroup; absent: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CgroupMemory {
    /// Hard limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<Bytes>,
    /// Above it tasks are slowed down (version 2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<Bytes>,
    /// Below it memory is reclaimed only where nothing else is left (version 2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<Bytes>,
    /// Below it memory is not reclaimed (version 2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<Bytes>,
    /// Files `memory.swap.*`.
    #[serde(default, skip_serializing_if = "CgroupSwap::is_empty")]
    pub swap: CgroupSwap,
}

/// Swap limit of a cgroup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CgroupSwap {
    /// Hard limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<Bytes>,
}

impl CgroupMemory {
    fn is_empty(&self) -> bool {
        *self == CgroupMemory::default()
    }
}

impl CgroupSwap {
    fn is_empty(&self) -> bool {
        *self == CgroupSwap::default()
    }
}
