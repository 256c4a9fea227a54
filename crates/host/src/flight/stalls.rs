//! Tasks in reclaim or compaction for too long, and tasks killed because memory ran out, by their events.
//!
//! Begin and end of a stall may come from different CPUs, whose buffers are emptied one after the other: an end that is
//! read before its begin is kept. After lost events nothing is known of the stalls that run.

use crate::instance::Instance;
use mmtwin_trace::ring::page::Entry;
use rustc_hash::FxHashMap;
use std::time::Duration;

/// Begin and end of what tasks wait for.
const PAIRS: [[&str; 2]; 5] = [
    ["vmscan/mm_vmscan_direct_reclaim_begin", "vmscan/mm_vmscan_direct_reclaim_end"],
    ["vmscan/mm_vmscan_memcg_reclaim_begin", "vmscan/mm_vmscan_memcg_reclaim_end"],
    ["vmscan/mm_vmscan_memcg_softlimit_reclaim_begin", "vmscan/mm_vmscan_memcg_softlimit_reclaim_end"],
    ["vmscan/mm_vmscan_node_reclaim_begin", "vmscan/mm_vmscan_node_reclaim_end"],
    ["compaction/mm_compaction_begin", "compaction/mm_compaction_end"],
];
const VICTIM: &str = "oom/mark_victim";

/// Stalls that are kept; no machine has as many tasks in reclaim.
const MOST: usize = 1 << 16;

/// What an event means, by its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    Begin(u8),
    End(u8),
    Victim,
}

/// Last begin and end of a task.
#[derive(Clone, Copy, Debug, Default)]
struct Times {
    begin: u64,
    end: u64,
}

/// What events told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// This task waited for so many nanoseconds.
    Stall(i32, u64),
    /// A task was chosen to be killed.
    Victim,
}

/// Follows the events of tasks.
pub struct Stalls {
    meanings: FxHashMap<u16, Meaning>,
    /// Nanoseconds of a stall that is told; `u64::MAX`: none is.
    limit: u64,
    tasks: FxHashMap<(i32, u8), Times>,
}

impl Stalls {
    /// For the events of an instance, as far as they are enabled (`system:event`). `limit`: the longest stall that is
    /// not told; `None`: only victims are.
    pub fn new(instance: &Instance, enabled: &[String], limit: Option<Duration>) -> Stalls {
        let id = |event: &str| {
            let is_enabled = enabled.iter().any(|enabled| enabled.replacen(':', "/", 1) == event);
            is_enabled.then(|| instance.get(&format!("events/{event}/id")).ok()?.trim().parse::<u16>().ok()).flatten()
        };
        let mut meanings = FxHashMap::default();
        for (kind, [begin, end]) in (0..).zip(PAIRS) {
            // One without the other tells nothing.
            if let (Some(begin), Some(end), Some(_)) = (id(begin), id(end), limit) {
                meanings.insert(begin, Meaning::Begin(kind));
                meanings.insert(end, Meaning::End(kind));
            }
        }
        meanings.extend(id(VICTIM).map(|id| (id, Meaning::Victim)));
        Stalls::of(meanings, limit)
    }

    fn of(meanings: FxHashMap<u16, Meaning>, limit: Option<Duration>) -> Stalls {
        let limit = limit.map_or(u64::MAX, |limit| limit.as_nanos() as u64);
        Stalls { meanings, limit, tasks: FxHashMap::default() }
    }

    /// Whether stalls can be told: some events of them are enabled.
    pub fn sees_stalls(&self) -> bool {
        self.meanings.values().any(|meaning| *meaning != Meaning::Victim)
    }

    /// Takes a record.
    #[inline]
    pub fn saw(&mut self, entry: &Entry) -> Option<Told> {
        if entry.len == Entry::LOST {
            self.tasks.clear();
            return None;
        }
        let meaning = *self.meanings.get(&entry.common.id)?;
        self.take(meaning, entry.common.pid, entry.ts)
    }

    fn take(&mut self, meaning: Meaning, pid: i32, at: u64) -> Option<Told> {
        let key = match meaning {
            Meaning::Victim => return Some(Told::Victim),
            Meaning::Begin(kind) | Meaning::End(kind) => (pid, kind),
        };
        if self.tasks.len() >= MOST {
            self.tasks.clear();
        }
        let times = self.tasks.entry(key).or_default();
        match meaning {
            Meaning::Begin(_) => times.begin = at,
            _ => times.end = at,
        }
        let Times { begin, end } = *times;
        if begin == 0 || end < begin {
            return None;
        }
        // A pair is whole.
        self.tasks.remove(&key);
        self.told(pid, end - begin)
    }

    /// Looks for stalls that run, when all that happened before `now` has been taken. Each is told once.
    pub fn running(&mut self, now: u64) -> Option<Told> {
        let limit = self.limit;
        // Ends without a begin are of stalls that began before the recording.
        self.tasks.retain(|_, times| times.begin > times.end || now.saturating_sub(times.end) < 10_000_000_000);
        let runs = |times: &Times| times.begin > times.end && now.saturating_sub(times.begin) > limit;
        let longest =
            self.tasks.iter().filter(|(_, times)| runs(times)).min_by_key(|(key, times)| (times.begin, **key));
        let (key, begin) = longest.map(|(key, times)| (*key, times.begin))?;
        self.tasks.remove(&key);
        self.told(key.0, now - begin)
    }

    fn told(&self, pid: i32, ns: u64) -> Option<Told> {
        (ns > self.limit && !is_daemon(pid)).then_some(Told::Stall(pid, ns))
    }
}

/// Daemons of the kernel that compact in the background: nobody waits while they do.
fn is_daemon(pid: i32) -> bool {
    let comm = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    ["kcompactd", "kswapd", "khugepaged"].iter().any(|daemon| comm.starts_with(daemon))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No process has such a number.
    const TASK: i32 = 1 << 23;

    fn stalls() -> Stalls {
        Stalls::of(FxHashMap::default(), Some(Duration::from_nanos(100)))
    }

    #[test]
    fn a_long_stall_is_told_in_whatever_order_its_events_come() {
        let mut stalls = stalls();
        assert_eq!(stalls.take(Meaning::Begin(0), TASK, 1000), None);
        assert_eq!(stalls.take(Meaning::End(0), TASK, 1100), None, "not longer than 100 ns");
        assert_eq!(stalls.take(Meaning::Begin(0), TASK, 2000), None);
        assert_eq!(stalls.take(Meaning::End(0), TASK, 2101), Some(Told::Stall(TASK, 101)));
        assert_eq!(stalls.take(Meaning::End(1), TASK, 3500), None);
        assert_eq!(stalls.take(Meaning::Begin(1), TASK, 3000), Some(Told::Stall(TASK, 500)));
        assert_eq!(stalls.take(Meaning::Victim, TASK, 1), Some(Told::Victim));
        assert!(stalls.tasks.is_empty());
    }

    #[test]
    fn a_stall_that_runs_is_told_once_unless_events_were_lost() {
        let mut stalls = stalls();
        stalls.take(Meaning::Begin(0), TASK, 1000);
        assert_eq!(stalls.running(1100), None);
        assert_eq!(stalls.running(1200), Some(Told::Stall(TASK, 200)));
        assert_eq!(stalls.running(1300), None);
        stalls.take(Meaning::Begin(0), TASK, 2000);
        let lost = Entry { ts: 0, common: Default::default(), stream: 0, chunk: 0, offset: 0, len: Entry::LOST };
        assert_eq!(stalls.saw(&lost), None);
        assert_eq!(stalls.running(9000), None);
        // An end that no begin follows is forgotten.
        stalls.take(Meaning::End(0), TASK, 2000);
        stalls.running(20_000_000_000);
        assert!(stalls.tasks.is_empty());
    }
}
