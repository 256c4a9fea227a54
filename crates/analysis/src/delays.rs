//! What tasks waited by the kernel's delay accounting (source `delays`, by thread id).
//!
//! The kernel measures begin and end of each wait itself, so its sums are what times from events and parts of pressure
//! are judged by. They are sums over tasks: tasks that wait at once count each. Waits of one kind may lie within another:
//! reads that were waited for are `blkio`, whoever needed them.
//!
//! A thread cannot wait for longer than the recording took. The kernel says so nevertheless now and then: `blkio` of a
//! thread on Linux 6.18 was the time since boot, as of a wait whose begin it had not noted. Such a sum is not known.

use crate::Analysis;
use crate::findings::elapsed;
use crate::tasks::Task;

/// Source of the counters.
const SOURCE: &str = "delays";

/// Nanoseconds that a task waited; `None`: the kernel's sum is impossible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delays {
    /// For disks, reads and writes.
    pub blkio: Option<u64>,
    /// Within reads from swap: all of them where swap is in memory, else until they were submitted.
    pub swapin: Option<u64>,
    /// In direct reclaim and in that of cgroups.
    pub freepages: Option<u64>,
    /// For pages that came back and were in use when they were evicted.
    pub thrashing: Option<u64>,
    /// In compaction.
    pub compact: Option<u64>,
    /// Bytes that it had read from disks; `None`: not recorded.
    pub read: Option<u64>,
}

impl Delays {
    /// Those of a thread; `None`: not recorded, or it did not wait.
    pub fn of(a: &Analysis, pid: i32) -> Option<Delays> {
        let key = pid.to_string();
        let longest = elapsed(a).unwrap_or(u64::MAX);
        let grown = |name| a.counters.delta(SOURCE, &key, name).map(|ns| Some(ns).filter(|ns| *ns <= longest));
        Some(Delays {
            blkio: grown("blkio_ns")?,
            swapin: grown("swapin_ns")?,
            freepages: grown("freepages_ns")?,
            thrashing: grown("thrashing_ns")?,
            compact: grown("compact_ns")?,
            read: a.counters.delta(SOURCE, &key, "read_bytes"),
        })
    }

    /// Those of all threads that have some, with what is known of the thread.
    pub fn all(a: &Analysis) -> Vec<(Task, Delays)> {
        let pids = a.counters.keys(SOURCE).into_iter().filter_map(|key| key.parse::<i32>().ok());
        let task = |pid| a.tasks.get(pid).cloned().unwrap_or(Task { pid, ..Task::default() });
        pids.filter_map(|pid| Some((task(pid), Delays::of(a, pid)?))).collect()
    }

    /// True if there is any.
    pub fn are_recorded(a: &Analysis) -> bool {
        !a.counters.keys(SOURCE).is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::fixture::Recording;

    #[test]
    fn both_ends_tell_what_a_thread_waited() {
        let mut r = Recording::default();
        r.vmstat(&[("pgfault", 0, 1)]);
        let names = ["blkio_ns", "swapin_ns", "freepages_ns", "thrashing_ns", "compact_ns"];
        r.counters("delays", "7", &names.map(|name| (name, 0, if name == "freepages_ns" { 5 } else { 0 })));
        r.analysis.tasks.announce(7, 7, b"dd");
        let none = Some(0);
        let waited =
            Delays { blkio: none, swapin: none, freepages: Some(5), thrashing: none, compact: none, read: None };
        assert_eq!((Delays::of(&r.analysis, 7), Delays::of(&r.analysis, 9)), (Some(waited), None));
        r.counters("delays", "8", &names.map(|name| (name, 0, 23_811_853_478_933)));
        assert_eq!(Delays::of(&r.analysis, 8), Some(Delays::default()), "it took 10 s");
        let all = Delays::all(&r.analysis);
        assert_eq!((all.len(), all[0].0.name().as_str()), (2, "dd"));
    }
}
