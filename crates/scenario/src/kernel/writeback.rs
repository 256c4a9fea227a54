//! Rules of writeback that differ between kernels.

use super::variant::variant;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Writeback.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Writeback {
    /// Periodic writing leaves files alone that have not expired, even those that other work has begun
    /// (`writeback_sb_inodes`; 6.10 and newer).
    pub only_expired: bool,
    /// Where there is swap, limits of dirty pages are parts of anonymous memory too (`global_dirtyable_memory`; before
    /// 3.14).
    pub dirtyable_anon: bool,
    /// A task that is above the limits of its cgroup has the flushers of others write what it has dirtied in their files
    /// (`mem_cgroup_flush_foreign`; 5.4 and newer).
    pub foreign_flush: bool,
    /// Mechanism that ends the delays of dm-delay, the disk of the lab's guests.
    pub dm_delay: DmDelay,
}

variant! {
    /// The clock of dm-delay.
    pub enum DmDelay {
        /// A timer and a worker that is bound to a CPU: before 6.7.
        Timer = "timer",
        /// A thread, which runs on any CPU: 6.7 and newer.
        Thread = "thread",
    }
}
