//! What the counters of a recorded cgroup tell, of both versions of the interface.

use super::words::size;
use crate::Analysis;
use crate::counters::Counters;
use mmtwin_event::container::Containers;

/// Version 1 writes an unlimited cgroup as a number near the largest possible; no machine has that much.
const UNLIMITED: u64 = 1 << 60;

/// A recorded cgroup.
#[derive(Clone, Copy, Debug)]
pub struct Cgroup<'a> {
    /// Its path.
    pub key: &'a str,
    counters: &'a Counters,
    containers: &'a Containers,
}

impl<'a> Cgroup<'a> {
    /// All that were recorded.
    pub fn all(a: &'a Analysis) -> impl Iterator<Item = Cgroup<'a>> {
        let (counters, containers) = (&a.counters, &*a.source.containers);
        counters.keys("cgroup").into_iter().map(move |key| Cgroup { key, counters, containers })
    }

    /// Last value of the first of some files that it has.
    fn last(&self, names: [&str; 2]) -> Option<u64> {
        names.iter().find_map(|name| self.counters.last("cgroup", self.key, name))
    }

    /// Growth of the first of some counters that it has.
    fn grew(&self, names: &[&str]) -> Option<u64> {
        names.iter().find_map(|name| self.counters.delta("cgroup", self.key, name))
    }

    /// Hard limit in bytes; `None`: unlimited or not recorded.
    pub fn limit(&self) -> Option<u64> {
        self.last(["memory.max", "memory.limit_in_bytes"]).filter(|bytes| *bytes < UNLIMITED)
    }

    /// `memory.high` in bytes; `None`: unlimited or not recorded.
    pub fn high(&self) -> Option<u64> {
        self.counters.last("cgroup", self.key, "memory.high").filter(|bytes| *bytes < UNLIMITED)
    }

    /// Bytes in use at the end.
    pub fn usage(&self) -> Option<u64> {
        self.last(["memory.current", "memory.usage_in_bytes"])
    }

    /// Most bytes in use since it exists.
    pub fn peak(&self) -> Option<u64> {
        self.last(["memory.peak", "memory.max_usage_in_bytes"])
    }

    /// The same if it was reached in this recording.
    pub fn new_peak(&self) -> Option<u64> {
        let names = ["memory.peak", "memory.max_usage_in_bytes"];
        let grew = names.iter().find_map(|name| self.counters.change("cgroup", self.key, name));
        self.peak().filter(|_| grew.is_some_and(|bytes| bytes > 0))
    }

    /// Bytes that only swap could take: anonymous and shared memory.
    pub fn anon(&self) -> Option<u64> {
        let last = |name: &str| self.counters.last("cgroup", self.key, name);
        match self.last(["memory.stat.anon", "memory.stat.rss"]) {
            Some(anon) => Some(anon.saturating_add(last("memory.stat.shmem").unwrap_or(0))),
            // The twin counts its lists.
            None => Some(last("memory.stat.inactive_anon")?.saturating_add(last("memory.stat.active_anon")?)),
        }
    }

    /// How often its limit was hit: once per charge that had to reclaim.
    pub fn hits(&self) -> Option<u64> {
        self.grew(&["memory.events.local.max", "memory.events.max", "memory.failcnt"])
    }

    /// How often tasks were slowed down above `memory.high`.
    pub fn above_high(&self) -> Option<u64> {
        self.grew(&["memory.events.local.high", "memory.events.high"])
    }

    /// Processes of this cgroup that were killed for its limit or that of a parent.
    pub fn oom_kills(&self) -> Option<u64> {
        self.grew(&["memory.events.local.oom_kill", "memory.events.oom_kill", "memory.oom_control.oom_kill"])
    }

    /// Refaults of its pages.
    pub fn refaults(&self) -> Option<u64> {
        let sum = |names: &[&str]| names.iter().filter_map(|name| self.grew(&[name])).reduce(u64::saturating_add);
        sum(&["memory.stat.workingset_refault_anon", "memory.stat.workingset_refault_file"])
            .or_else(|| sum(&["memory.stat.workingset_refault"]))
    }

    /// Share of the time in which some task of it waited for memory, 1 = all the time; `None`: not recorded.
    pub fn pressure(&self, tasks: &str) -> Option<f64> {
        let waited = self.counters.delta("cgroup", self.key, &format!("memory.pressure.{tasks}_total"))?;
        // The last sample may have been read later than its time says.
        Some((waited as f64 / 1e6 / self.counters.seconds("cgroup", self.key)?).min(1.0))
    }

    /// Pages scanned and reclaimed for it; version 1 does not count them.
    pub fn reclaim(&self) -> [Option<u64>; 2] {
        ["memory.stat.pgscan", "memory.stat.pgsteal"].map(|name| self.grew(&[name]))
    }

    /// Its name for people, as of [`Containers::short`].
    pub fn name(&self) -> String {
        self.containers.short(self.key)
    }

    /// `cgroup /web (limit 512 MiB)`.
    pub fn words(&self) -> String {
        match self.limit() {
            Some(limit) => format!("cgroup {} (limit {})", self.name(), size(limit)),
            None => format!("cgroup {}", self.name()),
        }
    }

    /// The trial of another limit in the twin.
    pub fn try_limit(&self, bytes: u64) -> String {
        let mib = bytes.div_ceil(1 << 20);
        format!("mmtwin run --on twin SCENARIO --set cgroup.{}.memory.max=\"{mib} MiB\"", self.key)
    }
}

/// The cgroup whose limit was hit most often.
pub fn at_its_limit(a: &Analysis) -> Option<Cgroup<'_>> {
    let hit = Cgroup::all(a).filter_map(|cgroup| Some((cgroup.hits().filter(|n| *n > 0)?, cgroup)));
    hit.max_by_key(|(n, _)| *n).map(|(_, cgroup)| cgroup)
}

/// The cgroup with most refaults.
pub fn with_most_refaults(a: &Analysis) -> Option<(u64, Cgroup<'_>)> {
    let all = Cgroup::all(a).filter_map(|cgroup| Some((cgroup.refaults().filter(|n| *n > 0)?, cgroup)));
    all.max_by_key(|(n, _)| *n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::fixture::Recording;

    #[test]
    fn both_versions_tell_their_limit() {
        let mut r = Recording::default();
        r.counters("cgroup", "/two", &[("memory.max", 64 << 20, 64 << 20), ("memory.events.max", 1, 3)]);
        let one = [
            ("memory.limit_in_bytes", 0x7fff_ffff_ffff_f000, 0x7fff_ffff_ffff_f000),
            ("memory.oom_control.oom_kill", 0, 2),
            ("memory.failcnt", 0, 7),
        ];
        r.counters("cgroup", "/one", &one);
        let all: Vec<_> = Cgroup::all(&r.analysis).map(|c| (c.words(), c.hits(), c.oom_kills())).collect();
        let expected =
            [("cgroup /one".to_string(), Some(7), Some(2)), ("cgroup /two (limit 64 MiB)".into(), Some(2), None)];
        assert_eq!(all, expected);
        assert_eq!(at_its_limit(&r.analysis).map(|c| c.key), Some("/one"));
    }
}
