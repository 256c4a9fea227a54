//! One wait of a task, with what it spent its time on as far as events tell.

use crate::findings::words::{counted, pages, percent, share, time};

/// What a task waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// An allocation reclaims: no zone had enough free pages.
    Direct,
    /// A charge reclaims: the cgroup is at its limit.
    Cgroup,
    /// Reclaim of one node, as zone_reclaim_mode asks for.
    Node,
    /// Compaction for a high-order allocation.
    Compaction,
    /// A writer is kept from dirtying pages faster than they are written.
    Dirty,
    /// Sleep for writeback, progress or congestion outside of a reclaim whose begin was seen.
    Throttled,
}

impl Cause {
    /// All causes.
    pub const ALL: [Cause; 6] =
        [Cause::Direct, Cause::Cgroup, Cause::Node, Cause::Compaction, Cause::Dirty, Cause::Throttled];

    /// In words, behind `waited 5 ms`.
    pub fn words(self) -> &'static str {
        match self {
            Cause::Direct => "in direct reclaim: the zones had too few free pages",
            Cause::Cgroup => "in reclaim of its cgroup, which was at its limit",
            Cause::Node => "in reclaim of its node (zone_reclaim_mode)",
            Cause::Compaction => "in compaction for a high-order allocation",
            Cause::Dirty => "as a writer: too many pages were dirty",
            Cause::Throttled => "throttled in reclaim",
        }
    }

    /// The same for a list.
    pub fn short(self) -> &'static str {
        match self {
            Cause::Direct => "direct reclaim",
            Cause::Cgroup => "reclaim of its cgroup",
            Cause::Node => "node reclaim",
            Cause::Compaction => "compaction",
            Cause::Dirty => "balance_dirty_pages",
            Cause::Throttled => "throttled",
        }
    }

    /// The kernel function that waits.
    pub fn function(self) -> &'static str {
        match self {
            Cause::Direct => "try_to_free_pages",
            Cause::Cgroup => "try_to_free_mem_cgroup_pages",
            Cause::Node => "node_reclaim",
            Cause::Compaction => "try_to_compact_pages",
            Cause::Dirty => "balance_dirty_pages",
            Cause::Throttled => "reclaim_throttle",
        }
    }
}

/// A wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Thread id.
    pub pid: i32,
    /// Name of the task, `NAME-PID`.
    pub who: String,
    /// Nanoseconds of the trace clock.
    pub from: u64,
    /// See `from`.
    pub until: u64,
    /// What for.
    pub cause: Cause,
    /// Order of the request; `None`: the event does not say.
    pub order: Option<i32>,
    /// Pages scanned, and freed, by shrink events in it.
    pub scanned: u64,
    /// See `scanned`.
    pub freed: u64,
    /// Pages freed, as the end says.
    pub returned: Option<u64>,
    /// Nanoseconds of it slept in throttling.
    pub throttled: u64,
    /// Nanoseconds of it in slab shrinkers.
    pub slab: u64,
    /// Pages that it wrote.
    pub written: u64,
}

impl Wait {
    /// Nanoseconds.
    pub fn length(&self) -> u64 {
        self.until.saturating_sub(self.from)
    }

    /// What it spent its time on and what came of it, as far as known.
    pub fn spent(&self) -> String {
        let mut parts = Vec::new();
        if self.scanned > 0 {
            let part =
                share(self.freed as f64, self.scanned as f64).map_or(String::new(), |p| format!(" ({})", percent(p)));
            parts.push(format!("scanned {}, freed {}{part}", pages(self.scanned), pages(self.freed)));
        } else if let Some(pages) = self.returned {
            parts.push(format!("freed {}", self::pages(pages)));
        }
        let of =
            |ns: u64| share(ns as f64, self.length() as f64).map_or(String::new(), |p| format!(" ({})", percent(p)));
        if self.throttled > 0 {
            parts.push(format!("slept {}{} in throttling", time(self.throttled as f64), of(self.throttled)));
        }
        if self.slab > 0 {
            parts.push(format!("{}{} in slab shrinkers", time(self.slab as f64), of(self.slab)));
        }
        if self.written > 0 {
            parts.push(format!("wrote {}", counted(self.written, "page")));
        }
        parts.join("; ")
    }
}
