//! Designs of vmalloc.

use super::variant::variant;
use crate::units::Auto;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// vmalloc.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Vmalloc {
    /// How free address space is kept.
    pub free_space: FreeSpace,
    /// Nodes of busy and lazily freed areas.
    pub vmap_nodes: VmapNodes,
    /// When purged areas are subtracted from `vmap_lazy_nr`.
    pub purge_accounting: PurgeAccounting,
    /// Areas that a purge frees from the pools of areas ready for use.
    pub pool_decay: PoolDecay,
    /// Whether `vmap_lazy_nr` shares a cache line with the count of all pages.
    pub counters: AreaCounters,
    /// How TLBs are flushed.
    pub tlb_flush: TlbFlush,
    /// Pages freed lazily that start a purge; `"auto"` is 32 MiB x fls(online CPUs).
    pub lazy_max_pages: LazyMax,
    /// The kernel has the trace events of the system `vmalloc`.
    pub events: bool,
}

/// Pages, or the kernel's own rule.
pub type LazyMax = Auto<u64>;

variant! {
    /// Free address space.
    pub enum FreeSpace {
        /// Before 5.2: no structure of its own; a sorted list of busy areas is searched for holes.
        BusyList = "busy-list",
        /// 5.2 and newer: a tree with the largest free size below each node.
        AugmentedTree = "augmented-tree",
    }
}

variant! {
    /// When a purge subtracts what it purged.
    pub enum PurgeAccounting {
        /// One locked subtraction per area.
        PerArea = "per-area",
        /// One per list: the patch of 2024, in 6.12.
        Batched = "batched",
    }
}

variant! {
    /// Rest that a normal pass leaves in a pool of fewer than four areas.
    pub enum PoolDecay {
        /// 6.9 to 6.12: nothing.
        DecayAll = "decay-all",
        /// 6.18: all of them.
        KeepSmall = "keep-small",
    }
}

variant! {
    /// Cache line of `vmap_lazy_nr`.
    pub enum AreaCounters {
        /// On the line of the system-wide count of pages: three locked operations per pair on one line.
        SharedCacheline = "shared-cacheline",
        /// On lines of their own.
        Aligned = "aligned",
    }
}

variant! {
    /// How the TLBs of all CPUs are flushed.
    pub enum TlbFlush {
        /// By interrupts to all online CPUs, waiting for each.
        Ipi = "ipi",
        /// By one broadcast, where the CPU can (6.18 on some).
        Broadcast = "broadcast",
    }
}

/// Nodes of vmap areas: `"single"`, `"auto"` or a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VmapNodes {
    /// Before 6.9: one busy tree, one purge tree, no pools and no helpers.
    Single,
    /// 6.9 and newer: min(possible CPUs, 128).
    Auto,
    /// This many, 1 to 128.
    Fixed(u32),
}

impl VmapNodes {
    /// The most nodes a kernel makes.
    pub const MAX: u32 = 128;

    /// Nodes on a machine with this many possible CPUs; `None`: the design without nodes.
    pub fn count(self, possible_cpus: u32) -> Option<u32> {
        match self {
            VmapNodes::Single => None,
            VmapNodes::Auto => Some(possible_cpus.clamp(1, VmapNodes::MAX)),
            VmapNodes::Fixed(nodes) => Some(nodes),
        }
    }
}

mod nodes {
    //! Reading and writing [`VmapNodes`](super::VmapNodes).

    use super::VmapNodes;
    use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
    use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};
    use serde::ser::{Serialize, Serializer};
    use std::borrow::Cow;
    use std::fmt;

    impl Serialize for VmapNodes {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            match self {
                VmapNodes::Single => serializer.serialize_str("single"),
                VmapNodes::Auto => serializer.serialize_str("auto"),
                VmapNodes::Fixed(nodes) => serializer.serialize_u32(*nodes),
            }
        }
    }

    struct Words;

    impl Visitor<'_> for Words {
        type Value = VmapNodes;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("\"single\", \"auto\" or a number from 1 to 128")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<VmapNodes, E> {
            match text {
                "single" => Ok(VmapNodes::Single),
                "auto" => Ok(VmapNodes::Auto),
                _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
            }
        }

        fn visit_i64<E: Error>(self, number: i64) -> Result<VmapNodes, E> {
            match u32::try_from(number) {
                Ok(nodes @ 1..=VmapNodes::MAX) => Ok(VmapNodes::Fixed(nodes)),
                _ => Err(E::invalid_value(Unexpected::Signed(number), &self)),
            }
        }

        fn visit_u64<E: Error>(self, number: u64) -> Result<VmapNodes, E> {
            self.visit_i64(i64::try_from(number).unwrap_or(i64::MAX))
        }
    }

    impl<'de> Deserialize<'de> for VmapNodes {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_any(Words)
        }
    }

    impl JsonSchema for VmapNodes {
        fn schema_name() -> Cow<'static, str> {
            "VmapNodes".into()
        }

        fn json_schema(_: &mut SchemaGenerator) -> Schema {
            json_schema!({
                "oneOf": [
                    { "enum": ["single", "auto"] },
                    { "type": "integer", "minimum": 1, "maximum": VmapNodes::MAX }
                ]
            })
        }
    }
}
