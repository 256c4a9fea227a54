//! The machine as a scenario or preset writes it: missing values are derived.

use super::resolve::HUGE_PAGE;
use super::{Costs, CpuSpeed, Curve, Disk, Figure, KernelImage, Line, Machine, Swap, Worker, Zone};
use crate::kernel::variant;
use crate::units::{Bandwidth, Bytes, Cost, List};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize as DeriveDeserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

/// `[machine]`.
#[derive(Clone, Debug, PartialEq, Serialize, DeriveDeserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Machine")]
pub(crate) struct MachineText {
    /// Machine that the other keys are taken from unless given: the name of a preset, or the path of a TOML file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    /// Name.
    #[serde(default)]
    pub name: String,
    /// Nodes, in the order of their numbers.
    pub node: Vec<NodeText>,
    /// Threads of a core.
    pub threads_per_core: u32,
    /// How the threads of a core are numbered.
    pub siblings: Siblings,
    /// Cores of a node that share a last-level cache; absent: all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_cores: Option<u32>,
    /// Size of a huge page; absent: 2 MiB, as on x86-64. The kernel groups pages by type in blocks of that size, or of the
    /// largest that it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub huge_page: Option<Bytes>,
    /// CPUs the kernel is prepared for; absent: those there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub possible_cpus: Option<u32>,
    /// Distances between nodes; absent: 10 and 20, as without a firmware table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distance: Option<Vec<Vec<u32>>>,
    /// The distance matrix need not be symmetric.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asymmetric: bool,
    /// Speed of the CPUs.
    pub cpu: CpuSpeed,
    /// Latency and bandwidth of memory.
    pub memory: MemoryText,
    /// Cost of cache lines that several CPUs use.
    pub line: Line,
    /// Cost of the kernel's own work.
    pub cost: Costs,
    /// Device below files.
    pub disk: Disk,
    /// Swap; size 0: none.
    pub swap: Swap,
    /// Memory of a workload's process besides its regions.
    pub worker: Worker,
    /// Provenance of figures.
    #[serde(default)]
    pub figure: Vec<Figure>,
}

/// `[[machine.node]]`.
#[derive(Clone, Debug, PartialEq, Serialize, DeriveDeserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Node")]
pub(crate) struct NodeText {
    /// CPUs; empty for memory without CPUs.
    #[serde(default)]
    pub cpus: List,
    /// Memory; 0 for CPUs without memory.
    #[serde(default)]
    pub memory: Bytes,
    /// Socket; absent: one of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<u32>,
    /// Part of the memory that becomes the zone Movable (kernelcore=, movablecore=).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub movable: Option<Bytes>,
    /// Zones; absent: derived from the memory of all nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<Vec<Zone>>,
}

/// `[machine.memory]`.
#[derive(Clone, Debug, PartialEq, Serialize, DeriveDeserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Memory")]
pub(crate) struct MemoryText {
    /// Latency of a read on an idle machine: a matrix, or by distance.
    pub latency: PerPair<Cost>,
    /// Most bytes per second: a matrix, or by distance.
    pub bandwidth: PerPair<Bandwidth>,
    /// Latency under load on the node's own memory: points [share of bandwidth, multiple of idle latency].
    pub local: Curve,
    /// Latency under load on another node's memory.
    pub remote: Curve,
    /// Where the kernel's code and data are, of the pages that zones do not manage: ranges of `Kernel code`, `Kernel rodata`,
    /// `Kernel data` and `Kernel bss` in /proc/iomem; absent: at the end of the zones. Compaction scans these pages in vain.
    #[serde(default, skip_serializing_if = "KernelImage::is_empty")]
    pub kernel_image: KernelImage,
}

variant! {
    /// Numbers of the threads of a core.
    pub enum Siblings {
        /// The first threads of all cores of a node are first, then the second ones: most firmware.
        Split = "split",
        /// Threads of a core follow each other: QEMU.
        Adjacent = "adjacent",
    }
}

/// A figure for each pair of nodes.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum PerPair<T> {
    /// `[node of the CPU][node of the memory]`.
    Matrix(Vec<Vec<T>>),
    /// By the pair's distance.
    ByDistance(BTreeMap<String, T>),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for PerPair<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Either<T> {
            type Value = PerPair<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a matrix, or a table by distance")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut rows: A) -> Result<PerPair<T>, A::Error> {
                let mut matrix = Vec::new();
                while let Some(row) = rows.next_element()? {
                    matrix.push(row);
                }
                Ok(PerPair::Matrix(matrix))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<PerPair<T>, A::Error> {
                let mut by_distance = BTreeMap::new();
                while let Some((distance, figure)) = entries.next_entry()? {
                    by_distance.insert(distance, figure);
                }
                Ok(PerPair::ByDistance(by_distance))
            }
        }
        deserializer.deserialize_any(Either(PhantomData))
    }
}

impl<T: JsonSchema> JsonSchema for PerPair<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("PerPairOf{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let figure = generator.subschema_for::<T>();
        json_schema!({
            "description": "A matrix [node of the CPU][node of the memory], or a table by distance",
            "oneOf": [
                { "type": "array", "items": { "type": "array", "items": figure } },
                { "type": "object", "patternProperties": { "^[0-9]+$": figure }, "additionalProperties": false }
            ],
        })
    }
}

impl From<Machine> for MachineText {
    /// The machine with everything spelled out: read again it is the same.
    fn from(machine: Machine) -> MachineText {
        let node = |node: super::Node| NodeText {
            cpus: node.cpus.into_iter().collect(),
            memory: node.memory,
            socket: Some(node.socket),
            movable: None,
            zone: Some(node.zones),
        };
        let symmetric = machine.is_symmetric();
        let swap = machine.swap.unwrap_or(Swap::NONE);
        MachineText {
            preset: None,
            name: machine.name,
            node: machine.nodes.into_iter().map(node).collect(),
            threads_per_core: machine.threads_per_core,
            siblings: machine.siblings,
            cluster_cores: machine.cluster_cores,
            huge_page: Some(machine.huge_page).filter(|size| *size != HUGE_PAGE),
            possible_cpus: Some(machine.possible_cpus),
            distance: Some(machine.distance),
            asymmetric: !symmetric,
            cpu: machine.cpu,
            memory: MemoryText {
                latency: PerPair::Matrix(machine.memory.latency),
                bandwidth: PerPair::Matrix(machine.memory.bandwidth),
                local: machine.memory.local,
                remote: machine.memory.remote,
                kernel_image: machine.memory.kernel_image,
            },
            line: machine.line,
            cost: machine.cost,
            disk: machine.disk,
            swap,
            worker: machine.worker,
            figure: machine.figures,
        }
    }
}
