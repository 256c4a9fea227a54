//! Costs of a cache line that several CPUs use.

use crate::units::Cost;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How close two CPUs are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Between {
    /// Threads of one core, or the same CPU.
    SameCore,
    /// Cores that share a last-level cache.
    SameCluster,
    /// Cores of one socket with different last-level caches.
    SameSocket,
    /// Different sockets.
    CrossSocket,
}

/// Costs of cache lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// A locked read-modify-write on a line that this core owns.
    pub atomic: Cost,
    /// Reading a line last written by another CPU, with no other CPU waiting for it.
    pub transfer: PerDistance,
    /// Reading a line last written on another socket whose memory is at the reader: slower than `transfer.cross_socket`
    /// (home at the writer) on Intel machines.
    pub transfer_home_reader: Cost,
    /// From one locked operation to the next on a line that CPUs queue for: its service time.
    pub handoff: PerDistance,
}

/// One cost for each closeness of two CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PerDistance {
    /// Between threads of one core.
    pub same_core: Cost,
    /// Between cores that share a last-level cache.
    pub same_cluster: Cost,
    /// Between cores of one socket with different last-level caches.
    pub same_socket: Cost,
    /// Between sockets.
    pub cross_socket: Cost,
}

impl PerDistance {
    /// The cost for this closeness.
    pub fn of(&self, between: Between) -> Cost {
        match between {
            Between::SameCore => self.same_core,
            Between::SameCluster => self.same_cluster,
            Between::SameSocket => self.same_socket,
            Between::CrossSocket => self.cross_socket,
        }
    }
}
