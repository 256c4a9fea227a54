//! The machine with all values filled in, as the twin, the lab and the host arm read it.
//!
//! CPUs are numbered 0, 1, 2, ... without gaps, nodes likewise; every matrix is indexed `[from][to]` by node.

mod bounds;
mod cost;
mod figure;
mod image;
mod line;
mod memory;
pub(crate) mod resolve;
pub(crate) mod text;
mod worker;
mod zone;

pub use cost::Costs;
pub use figure::{Figure, Provenance};
pub use image::{KernelImage, KernelImageError};
pub use line::{Between, Line, PerDistance};
pub use memory::{Curve, CurveError, Memory};
pub use text::Siblings;
pub use worker::Worker;
pub use zone::{Zone, ZoneKind};

use crate::units::{Bandwidth, Bytes, Frequency, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;

/// A machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Name of the preset, or what the scenario calls it.
    pub name: String,
    /// CPUs; the index is the CPU's number. All are online at the start.
    pub cpus: Vec<Cpu>,
    /// CPUs the kernel is prepared for (`cpu_possible_mask`); at least as many as there are.
    pub possible_cpus: u32,
    /// Threads of a core.
    pub threads_per_core: u32,
    /// How the threads of a core are numbered.
    pub siblings: Siblings,
    /// Cores of a node that share a last-level cache; `None`: all of them.
    pub cluster_cores: Option<u32>,
    /// Size of a huge page.
    pub huge_page: Bytes,
    /// Nodes; the index is the nid.
    pub nodes: Vec<Node>,
    /// Distances as the firmware reports them (SLIT): 10 on the diagonal, 11 to 254 elsewhere.
    pub distance: Vec<Vec<u32>>,
    /// Speed of the CPUs.
    pub cpu: CpuSpeed,
    /// Latency and bandwidth of memory.
    pub memory: Memory,
    /// Cost of cache lines that several CPUs use.
    pub line: Line,
    /// Cost of the kernel's own work.
    pub cost: Costs,
    /// Device below files.
    pub disk: Disk,
    /// Swap; `None`: the machine has none.
    pub swap: Option<Swap>,
    /// Memory of a workload's process besides its regions.
    pub worker: Worker,
    /// Provenance of each figure.
    pub figures: Vec<Figure>,
}

/// Where a CPU sits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// Node.
    pub node: u32,
    /// Socket (package).
    pub socket: u32,
    /// Cores that share a last-level cache, counted over the whole machine.
    pub cluster: u32,
    /// Core, counted over the whole machine.
    pub core: u32,
    /// Thread of the core, from 0.
    pub thread: u32,
}

/// A node: CPUs, memory, or both.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Socket it belongs to.
    pub socket: u32,
    /// CPUs, ascending; empty for memory without CPUs.
    pub cpus: Vec<u32>,
    /// Memory; 0 for CPUs without memory.
    pub memory: Bytes,
    /// Populated zones, by ascending address; empty without memory.
    pub zones: Vec<Zone>,
}

/// How fast the CPUs are.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CpuSpeed {
    /// Cycles per second, also of the time-stamp counter.
    pub frequency: Frequency,
    /// How many times longer a thread of a core takes for its own work while all threads of the core are busy.
    pub smt_slowdown: f64,
    /// All CPUs share the cycles of one, one at a time: a guest under `-accel tcg,thread=single -icount`.
    pub single_threaded_tcg: bool,
    /// CPUs of the host that runs this machine as a guest, each of whose CPUs is a thread there (`-accel
    /// tcg,thread=multi`): no more run at once. Absent: each has one of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub physical_cpus: Option<NonZeroU32>,
}

/// The device that holds files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Disk {
    /// Time of one request on an idle device; 0: a memory disk, whose requests end before the call returns.
    pub latency: Time,
    /// Bytes per second.
    pub bandwidth: Bandwidth,
    /// Seek time between requests that do not follow each other; synchronous requests then go first. 0: it does not
    /// seek.
    #[serde(default, skip_serializing_if = "Time::is_zero")]
    pub seek: Time,
    /// Requests end at ticks of the kernel, as those of its target dm-delay do, which delayed the lab's disks once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ticks: bool,
    /// It is memory behind a delay, and so is the swap device: the CPU that submits a read copies the data, and the read
    /// ends a latency later, whatever others there are. As the lab's disks, of whose writes the bandwidth is that of the
    /// threads that copy them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub memory_backed: bool,
    /// Requests the device queue takes (`nr_requests`).
    pub queue_depth: u32,
    /// Writes whose bios and other objects of the block layer, those of device-mapper targets included, share a page of slab
    /// memory; up to 64. The pages that a bio points to are listed in a page of their own.
    pub bios_per_page: NonZeroU32,
    /// Blocks of 4 KiB that a commit of the file system's journal writes (jbd2); up to 65536.
    pub journal_blocks: NonZeroU32,
    /// When the flusher first looks for what is dirty, from the start; 0: drawn from the interval of its periodic wakeups.
    #[serde(default, skip_serializing_if = "Time::is_zero")]
    pub first_flush: Time,
}

/// Swap space. Size 0 stands for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Swap {
    /// Size.
    pub size: Bytes,
    /// Reads and writes end before the call returns, and nothing is read ahead: memory used as a disk (pmem, zram).
    pub synchronous: bool,
    /// It is a part of the disk that holds files, as fast as that, with the same queue.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub on_disk: bool,
    /// Time of one request on an idle device.
    pub latency: Time,
    /// Bytes per second.
    pub bandwidth: Bandwidth,
}

impl Swap {
    /// No swap.
    pub(crate) const NONE: Swap =
        Swap { size: Bytes(0), synchronous: false, on_disk: false, latency: Time(0), bandwidth: Bandwidth(0) };
}

impl Machine {
    /// Memory of all nodes in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.nodes.iter().map(|node| node.memory.0).sum()
    }

    /// True if every distance is the same in both directions.
    pub fn is_symmetric(&self) -> bool {
        let nodes = 0..self.distance.len();
        nodes.clone().all(|a| nodes.clone().all(|b| self.distance[a][b] == self.distance[b][a]))
    }

    /// How close two CPUs are.
    pub fn between(&self, a: u32, b: u32) -> Between {
        let (a, b) = (&self.cpus[a as usize], &self.cpus[b as usize]);
        if a.core == b.core {
            Between::SameCore
        } else if a.cluster == b.cluster {
            Between::SameCluster
        } else if a.socket == b.socket {
            Between::SameSocket
        } else {
            Between::CrossSocket
        }
    }
}

/// How many CPUs QEMU runs, one after another, for a guest of some in mode exact: 16 to 32 for 2 to 8, so that busy ones have
/// equal parts of its time. With more CPUs of their own the first turn is short, and rounds take long.
pub fn qemu_cpus(cpus: u32) -> u32 {
    match cpus {
        2..=8 => cpus * 4.max(16_u32.div_ceil(cpus)),
        _ => cpus,
    }
}
