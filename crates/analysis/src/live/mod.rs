//! This machine now: rates between the last two samples of its counters, and sums of the events between them.
//!
//! [`Live`] is a [`Sink`] like [`Analysis`](crate::Analysis), but what it keeps is of the last interval only.
//! [`Live::close`] ends an interval and gives a [`Snapshot`], plain data for whoever draws it. `rates` has the counters,
//! `waits` the events. What the kernel does not count or trace is `None`.

mod rates;
mod snapshot;
mod waits;

pub use rates::{Counters, Rates};
pub use snapshot::{Cgroup, Node, Pressure, Process, Snapshot, System};
pub use waits::{Kswapd, Sums, WaitReason, Waited};

use crate::counters::is_gauge;
use crate::recorded::Recorded;
use mmtwin_event::{CounterRow, Event, Kind, Sink, Source};
use std::collections::BTreeMap;
use waits::Waits;

/// Most tasks whose names are kept.
const MAX_NAMES: usize = 1 << 14;
/// Counters of a process that only grow.
const PROCESS_COUNTS: [&str; 2] = ["majflt", "blkio_delay"];
/// Events of tasks that begin to wait for memory.
const WAITS: [Kind; 5] = [
    Kind::MmVmscanDirectReclaimBegin,
    Kind::MmVmscanMemcgReclaimBegin,
    Kind::MmVmscanNodeReclaimBegin,
    Kind::MmCompactionBegin,
    Kind::BalanceDirtyPages,
];

/// A task's name.
#[derive(Clone, Debug)]
struct Name {
    process: i32,
    comm: String,
    cgroup: Option<String>,
}
/// Takes samples and events.
#[derive(Clone, Debug, Default)]
pub struct Live {
    rates: Rates,
    waits: Waits,
    recorded: Recorded,
    names: BTreeMap<i32, Name>,
    closed: Option<u64>,
}

impl Live {
    /// Ends an interval at a time in nanoseconds of the trace clock.
    pub fn close(&mut self, at: u64) -> Snapshot {
        let sums = self.waits.close(at);
        let seconds = self.closed.replace(at).and_then(|before| at.checked_sub(before)).map(|ns| ns as f64 / 1e9);
        let seconds = seconds.filter(|seconds| *seconds > 0.0);
        let processes = self.processes(&sums, seconds);
        let cgroups = self.cgroups(&processes);
        let (pressure, system, nodes) = (self.pressure(), self.system(&sums, seconds), self.nodes(&sums, seconds));
        Snapshot { at, seconds, pressure, system, nodes, cgroups, processes, lost: sums.lost }
    }

    /// Counters of a source and key, by name: last value and, of those that only grow, growth per second.
    pub fn counters(&self, source: &str, key: &str) -> Vec<(String, Option<u64>, Option<f64>)> {
        let grows = |name: &str| match source {
            "process" => PROCESS_COUNTS.contains(&name),
            _ => !is_gauge(source, name),
        };
        let counters = self.rates.of(source, key).into_iter().flat_map(Counters::iter);
        counters.map(|(name, last, rate)| (name.to_string(), last, rate.filter(|_| grows(name)))).collect()
    }

    fn pressure(&self) -> Pressure {
        let psi = self.rates.of("psi", "");
        let share = |name: &str| share(psi?.rate(name));
        Pressure {
            memory_some: share("memory_some_total"),
            memory_full: share("memory_full_total"),
            io_some: share("io_some_total"),
            io_full: share("io_full_total"),
            cpu_some: share("cpu_some_total"),
        }
    }

    fn system(&self, sums: &Sums, seconds: Option<f64>) -> System {
        let vmstat = self.rates.of("vmstat", "");
        let rate = |name: &str| vmstat?.rate(name);
        let sum = |names: &[&str]| vmstat?.sum(names);
        let zones = |name: &str| vmstat?.zones(name);
        let kb = |name: &str| Some(self.rates.of("meminfo", "")?.last(name)?.saturating_mul(1024));
        // Reclaim for cgroups moves only the counters that tell anonymous pages from file pages.
        let cgroup = |what: &str| {
            let all = sum(&[&format!("{what}_anon"), &format!("{what}_file")])?;
            let others = ["kswapd", "khugepaged", "proactive"].map(|who| rate(&format!("{what}_{who}")));
            let others: f64 = others.into_iter().flatten().sum();
            Some((all - others - zones(&format!("{what}_direct"))?).max(0.0))
        };
        let moved = [Kind::SchedMoveNuma, Kind::SchedSwapNuma];
        System {
            total: kb("MemTotal"),
            available: kb("MemAvailable"),
            scanned_kswapd: zones("pgscan_kswapd"),
            stolen_kswapd: zones("pgsteal_kswapd"),
            scanned_direct: zones("pgscan_direct"),
            stolen_direct: zones("pgsteal_direct"),
            scanned_cgroup: cgroup("pgscan"),
            stolen_cgroup: cgroup("pgsteal"),
            allocstalls: zones("allocstall"),
            compact_stalls: rate("compact_stall"),
            refaults_anon: rate("workingset_refault_anon"),
            refaults_file: rate("workingset_refault_file").or_else(|| rate("workingset_refault")),
            swapped_in: rate("pswpin"),
            swapped_out: rate("pswpout"),
            major_faults: rate("pgmajfault"),
            local: part(rate("numa_local"), rate("numa_other")),
            hint_faults: rate("numa_hint_faults"),
            hint_local: rate("numa_hint_faults")
                .and_then(|all| part(rate("numa_hint_faults_local"), Some(all - rate("numa_hint_faults_local")?))),
            migrated: rate("numa_pages_migrated"),
            moves: self.events(&moved, sums.moves, seconds),
            vmalloc: kb("VmallocUsed"),
            purges: self.events(&[Kind::PurgeVmapAreaLazy], sums.purges, seconds),
            purged: self.events(&[Kind::PurgeVmapAreaLazy], sums.purged, seconds),
            kills: rate("oom_kill").or_else(|| self.events(&[Kind::MarkVictim], sums.victims, seconds)),
        }
    }

    /// Events per second, if all of these kinds are recorded.
    fn events(&self, kinds: &[Kind], count: u64, seconds: Option<f64>) -> Option<f64> {
        self.recorded.value(kinds, count as f64 / seconds?)
    }

    fn nodes(&self, sums: &Sums, seconds: Option<f64>) -> Vec<Node> {
        let nodes: Vec<(u32, &Counters)> =
            self.rates.keys("node_vmstat").filter_map(|(key, counters)| Some((key.parse().ok()?, counters))).collect();
        let only = nodes.len() == 1;
        let node = |(id, counters): &(u32, &Counters)| {
            // Until kernels count by node, a machine of one node knows it nevertheless.
            let machine = |name: &str| self.rates.of("vmstat", "").filter(|_| only)?.zones(name);
            let kswapd = sums.kswapds.get(id).copied().unwrap_or_default();
            let awake = seconds.map(|seconds| kswapd.awake as f64 / 1e7 / seconds);
            let refaults = ["workingset_refault_anon", "workingset_refault_file", "workingset_refault"];
            Node {
                id: *id,
                free: counters.last("nr_free_pages"),
                scanned: counters.rate("pgscan_kswapd").or_else(|| machine("pgscan_kswapd")),
                stolen: counters.rate("pgsteal_kswapd").or_else(|| machine("pgsteal_kswapd")),
                wakes: self.events(&[Kind::MmVmscanKswapdWake], kswapd.wakes, seconds),
                awake: awake.filter(|_| self.recorded.has_any(&[Kind::MmVmscanKswapdWake, Kind::MmVmscanKswapdSleep])),
                refaults: counters.sum(&refaults),
                local: part(counters.rate("numa_local"), counters.rate("numa_other")),
                misses: counters.rate("numa_miss"),
            }
        };
        let mut nodes: Vec<Node> = nodes.iter().map(node).collect();
        nodes.sort_by_key(|node| node.id);
        nodes
    }

    fn processes(&self, sums: &Sums, seconds: Option<f64>) -> Vec<Process> {
        let has_waits = self.recorded.has_any(&WAITS);
        let mut processes: BTreeMap<i32, Process> = BTreeMap::new();
        let named = |pid: i32, name: Option<&Name>| {
            let (comm, cgroup) = name.map(|n| (n.comm.clone(), n.cgroup.clone())).unwrap_or_default();
            Process { pid, comm, cgroup, waited: has_waits.then(Waited::default), ..Process::default() }
        };
        for (key, counters) in self.rates.keys("process") {
            let Ok(pid) = key.parse() else { continue };
            processes.insert(
                pid,
                Process {
                    major_faults: counters.rate("majflt"),
                    io: counters.rate("blkio_delay").map(|ns| ns / 1e7),
                    resident: counters.last("rss"),
                    ..named(pid, self.names.get(&pid))
                },
            );
        }
        for (task, waited) in &sums.tasks {
            let name = self.names.get(task);
            // Daemons compact so that nobody has to wait.
            if name.is_some_and(|name| name.comm.starts_with("kcompactd")) {
                continue;
            }
            let pid = name.map_or(*task, |name| name.process);
            let process = processes.entry(pid).or_insert_with(|| named(pid, self.names.get(&pid).or(name)));
            process.waited.get_or_insert_default().merge(waited);
        }
        let share = |process: &mut Process| {
            let ns = process.waited.as_ref().map(Waited::total)?;
            Some(ns as f64 / 1e7 / seconds?)
        };
        processes
            .into_values()
            .map(|mut process| {
                process.share = share(&mut process);
                process
            })
            .collect()
    }

    fn cgroups(&self, processes: &[Process]) -> Vec<Cgroup> {
        let has_waits = self.recorded.has_any(&WAITS);
        let mut waited: BTreeMap<&str, f64> = BTreeMap::new();
        for process in processes {
            if let (Some(cgroup), Some(share)) = (&process.cgroup, process.share) {
                *waited.entry(cgroup).or_default() += share;
            }
        }
        let cgroup = |(key, counters): (&str, &Counters)| {
            let first = |names: &[&str]| names.iter().find_map(|name| counters.last(name));
            let rate = |names: &[&str]| names.iter().find_map(|name| counters.rate(name));
            let refaults = ["memory.stat.workingset_refault_anon", "memory.stat.workingset_refault_file"];
            // Version 1 writes no limit as a number near the largest possible.
            let limit = first(&["memory.max", "memory.limit_in_bytes"]).filter(|limit| *limit < 1 << 60);
            Cgroup {
                key: key.into(),
                some: share(counters.rate("memory.pressure.some_total")),
                full: share(counters.rate("memory.pressure.full_total")),
                waited: has_waits.then(|| waited.get(key).copied().unwrap_or(0.0)),
                usage: first(&["memory.current", "memory.usage_in_bytes"]),
                limit,
                hits: rate(&["memory.events.local.max", "memory.events.max", "memory.failcnt"]),
                refaults: counters.sum(&refaults).or_else(|| counters.rate("memory.stat.workingset_refault")),
                kills: rate(&["memory.events.local.oom_kill", "memory.events.oom_kill", "memory.oom_control.oom_kill"]),
            }
        };
        self.rates.keys("cgroup").map(cgroup).collect()
    }
}

impl Sink for Live {
    fn start(&mut self, source: &Source) {
        self.recorded = Recorded::default();
        self.recorded.start(source);
    }

    fn task(&mut self, task: &mmtwin_event::Task<'_>) {
        if self.names.len() >= MAX_NAMES && !self.names.contains_key(&task.pid) {
            // Those that matter are told again.
            self.names.clear();
        }
        let process = if task.tgid > 0 { task.tgid } else { task.pid };
        let comm = String::from_utf8_lossy(task.comm).into_owned();
        // Who only knows the name leaves the cgroup as it was told.
        let before = self.names.remove(&task.pid).and_then(|name| name.cgroup);
        let cgroup = task.cgroup.map(str::to_string).or(before);
        self.names.insert(task.pid, Name { process, comm, cgroup });
    }

    fn event(&mut self, ev: &Event<'_>) {
        self.waits.event(ev);
    }

    fn lost(&mut self, _cpu: u32, events: Option<u64>, _at: u64) {
        self.waits.lost(events);
    }

    fn counters(&mut self, row: &CounterRow<'_>) {
        self.rates.row(row);
    }
}

/// Microseconds per second, in percent.
fn share(rate: Option<f64>) -> Option<f64> {
    rate.map(|us| us / 1e4)
}

/// What a part is of itself and another, in percent; `None` if both are 0.
fn part(part: Option<f64>, other: Option<f64>) -> Option<f64> {
    let (part, other) = (part?, other?);
    (part + other > 0.0).then(|| 100.0 * part / (part + other))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::EventBuilder;

    const SECOND: u64 = 1_000_000_000;

    fn row(live: &mut Live, seconds: u64, source: &str, key: &str, counters: &[(&str, u64)]) {
        let names: Vec<String> = counters.iter().map(|(name, _)| name.to_string()).collect();
        let values: Vec<Option<u64>> = counters.iter().map(|(_, value)| Some(*value)).collect();
        live.counters(&CounterRow { source, key, at: seconds * SECOND, names: &names, values: &values });
    }

    #[test]
    fn rates_are_those_of_the_interval_and_absent_counters_are_unknown() {
        let mut live = Live::default();
        for (at, psi, scanned, all) in [(1, 0, 0, 0), (3, 500_000, 200, 300)] {
            row(&mut live, at, "psi", "", &[("memory_some_total", psi)]);
            let vmstat = [
                ("pgscan_kswapd", scanned),
                ("pgscan_direct", 0),
                ("pgscan_anon", 0),
                ("pgscan_file", all),
                ("numa_local", 3 * all),
                ("numa_other", all),
            ];
            row(&mut live, at, "vmstat", "", &vmstat);
            row(&mut live, at, "node_vmstat", "0", &[("nr_free_pages", 7), ("numa_miss", 2 * at)]);
            row(&mut live, at, "meminfo", "", &[("MemAvailable", 3)]);
            if at == 1 {
                let first = live.close(SECOND);
                assert_eq!(
                    (first.seconds, first.pressure.memory_some, first.system.scanned_kswapd),
                    (None, None, None)
                );
            }
        }
        let snapshot = live.close(3 * SECOND);
        assert_eq!(snapshot.seconds, Some(2.0));
        assert_eq!((snapshot.pressure.memory_some, snapshot.pressure.io_some), (Some(25.0), None));
        let system = snapshot.system;
        assert_eq!((system.scanned_kswapd, system.scanned_cgroup, system.local), (Some(100.0), Some(50.0), Some(75.0)));
        assert_eq!((system.stolen_kswapd, system.purges, system.available), (None, None, Some(3072)));
        let node = snapshot.nodes[0];
        assert_eq!((node.free, node.scanned, node.misses), (Some(7), Some(100.0), Some(2.0)));
        assert_eq!((node.wakes, node.awake), (None, None), "without events");
    }

    #[test]
    fn waits_of_threads_are_those_of_their_process_and_cgroup() {
        let mut live = Live::default();
        let enabled = ["vmscan:mm_vmscan_memcg_reclaim_begin", "vmscan:mm_vmscan_memcg_reclaim_end"];
        live.start(&Source { enabled: Some(enabled.map(String::from).into()), ..Source::default() });
        for (pid, cgroup) in [(20, "/web"), (21, "/web"), (20, "/web")] {
            live.task(&mmtwin_event::Task { pid, tgid: 20, comm: b"server", cgroup: Some(cgroup) });
        }
        row(&mut live, 1, "cgroup", "/web", &[("memory.failcnt", 1), ("memory.limit_in_bytes", 4096)]);
        row(&mut live, 1, "cgroup", "/db", &[("memory.limit_in_bytes", u64::MAX >> 1)]);
        live.close(SECOND);
        for (kind, at, pid) in [
            (Kind::MmVmscanMemcgReclaimBegin, SECOND, 20),
            (Kind::MmVmscanMemcgReclaimBegin, SECOND, 21),
            (Kind::MmVmscanMemcgReclaimEnd, SECOND + SECOND / 2, 21),
        ] {
            live.event(&EventBuilder::new(kind).at(at).pid(pid).event());
        }
        row(&mut live, 2, "cgroup", "/web", &[("memory.failcnt", 5)]);
        let snapshot = live.close(2 * SECOND);
        assert_eq!(snapshot.processes.len(), 1);
        let process = &snapshot.processes[0];
        assert_eq!((process.pid, process.comm.as_str(), process.share), (20, "server", Some(150.0)));
        assert_eq!(process.waited.unwrap().main_reason(), Some(WaitReason::Cgroup));
        let [db, web] = &snapshot.cgroups[..] else { panic!("{:?}", snapshot.cgroups) };
        assert_eq!((web.waited, web.hits, web.limit), (Some(150.0), Some(4.0), Some(4096)));
        assert_eq!((db.waited, db.hits, db.limit, db.some), (Some(0.0), None, None, None));
    }
}
