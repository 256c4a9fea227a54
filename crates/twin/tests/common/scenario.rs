//! Scenarios run in memory.

use mmtwin_event::value::Lru;
use mmtwin_event::vocabulary::{
    MmVmscanLruIsolate, MmVmscanLruShrinkInactive, MmVmscanWriteFolio, WritebackCongestionWait,
    WritebackWaitIffCongested,
};
use mmtwin_event::{CounterRow, Event, Kind, Sink};
use mmtwin_scenario::Scenario;
use mmtwin_twin::engine::{Options, Ran, State, run};
use mmtwin_twin::workload::trace::Trace;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::Path;

/// Two nodes of 1 GiB with four CPUs each, kernel 6.1 without huge pages and NUMA balancing.
pub const MACHINE: &str = "[machine]\nname = \"m\"\ndistance = [[10, 20], [20, 10]]\n[[machine.node]]\ncpus = \"0-3\"\n\
    memory = \"1 GiB\"\n[[machine.node]]\ncpus = \"4-7\"\nmemory = \"1 GiB\"\n[kernel]\nrelease = \"6.1\"\n\
    thp = \"never\"\nsysctl = { \"kernel.numa_balancing\" = 0 }\n";

/// A run with the last counters it left.
pub struct Finished {
    ran: Ran,
    counters: BTreeMap<(String, String, String), u64>,
    /// Events in order, as (time, CPU, name).
    pub events: Vec<(u64, u32, String)>,
    /// Scanned and reclaimed pages of all `mm_vmscan_lru_shrink_inactive` events of kswapd, and of others.
    pub shrunk: [(u64, u64); 2],
    /// Scanned pages of all `mm_vmscan_lru_isolate` events of inactive lists of files.
    pub isolated: u64,
    /// Sums of the events of reclaim for blocks.
    pub blocks: Blocks,
}

/// Sums of the events of reclaim for blocks.
#[derive(Default)]
pub struct Blocks {
    /// Neighbours: taken, of these dirty, refused.
    pub neighbours: [u64; 3],
    /// Isolations in lumpy mode.
    pub lumpy: u64,
    /// Writes and batches of the synchronous pass.
    pub sync_writes: u64,
    pub sync_batches: u64,
    /// Writes of anonymous memory, of files.
    pub writes: [u64; 2],
    /// Writes of files by tasks.
    pub task_file_writes: u64,
    /// Timeout and delay of every wait for congestion, conditional ones second.
    pub waits: [Vec<(u32, u32)>; 2],
}

impl Deref for Finished {
    type Target = Ran;
    fn deref(&self) -> &Ran {
        &self.ran
    }
}

impl Finished {
    /// True if a counter was recorded.
    pub fn has(&self, source: &str, key: &str, name: &str) -> bool {
        self.counters.contains_key(&(source.to_string(), key.to_string(), name.to_string()))
    }

    /// The last value of a counter.
    pub fn counter(&self, source: &str, key: &str, name: &str) -> u64 {
        let key = (source.to_string(), key.to_string(), name.to_string());
        *self.counters.get(&key).unwrap_or_else(|| panic!("no {key:?}"))
    }
}

#[derive(Default)]
struct Kept {
    counters: BTreeMap<(String, String, String), u64>,
    events: Vec<(u64, u32, String)>,
    shrunk: [(u64, u64); 2],
    isolated: u64,
    blocks: Blocks,
    at: u64,
}

impl Sink for Kept {
    fn event(&mut self, event: &Event<'_>) {
        self.events.push((event.ts, event.cpu, event.name.to_string()));
        if event.kind == Kind::MmVmscanLruShrinkInactive {
            let of = event.typed::<MmVmscanLruShrinkInactive>();
            let sum = &mut self.shrunk[usize::from(event.pid >= FIRST_TASK)];
            *sum = (sum.0 + of.nr_scanned, sum.1 + of.nr_reclaimed);
            self.blocks.sync_batches += u64::from(of.flags.0 & SYNC > 0);
        }
        if event.kind == Kind::MmVmscanLruIsolate {
            let of = event.typed::<MmVmscanLruIsolate>();
            self.isolated += if of.lru == Some(INACTIVE_FILE) { of.nr_scanned } else { 0 };
        }
        self.blocks.add(event);
    }
    fn counters(&mut self, row: &CounterRow<'_>) {
        assert!(row.at >= self.at, "counters in order of time");
        self.at = row.at;
        for (name, value) in row.names.iter().zip(row.values) {
            let key = (row.source.to_string(), row.key.to_string(), name.clone());
            // A task without a preferred node and a cgroup without a limit have none to show.
            let may_lack =
                ["numa_preferred_nid", "memory.max", "memory.high", "memory.swap.max"].contains(&name.as_str());
            assert!(value.is_some() || may_lack, "{name} has no value");
            value.map(|value| self.counters.insert(key, value));
        }
    }
}

/// The first task of a scenario; kernel threads have lower numbers.
const FIRST_TASK: i32 = 1000;
const INACTIVE_FILE: Lru = Lru(2);
/// `RECLAIM_WB_FILE` and `RECLAIM_WB_SYNC`.
const FILE: u32 = 2;
const SYNC: u32 = 4;

impl Blocks {
    fn add(&mut self, event: &Event<'_>) {
        match event.kind {
            Kind::MmVmscanLruIsolate => {
                let of = event.typed::<MmVmscanLruIsolate>();
                let more = [of.contig_taken, of.contig_dirty, of.contig_failed].map(Option::unwrap_or_default);
                self.neighbours.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
                self.lumpy += u64::from(of.isolate_mode == Some(2));
            }
            Kind::MmVmscanWriteFolio => {
                let flags = event.typed::<MmVmscanWriteFolio>().flags.0;
                self.writes[usize::from(flags & FILE > 0)] += 1;
                self.task_file_writes += u64::from(flags & FILE > 0 && event.pid >= FIRST_TASK);
                self.sync_writes += u64::from(flags & SYNC > 0);
            }
            Kind::WritebackCongestionWait => {
                let of = event.typed::<WritebackCongestionWait>();
                self.waits[0].push((of.usec_timeout, of.usec_delayed));
            }
            Kind::WritebackWaitIffCongested => {
                let of = event.typed::<WritebackWaitIffCongested>();
                self.waits[1].push((of.usec_timeout, of.usec_delayed));
            }
            _ => {}
        }
    }
}

/// Runs a scenario with overrides.
pub fn ran_with(text: &str, sets: &[String]) -> Finished {
    let scenario =
        mmtwin_scenario::parse("test", text, Path::new(""), sets).unwrap_or_else(|faults| panic!("{faults}"));
    run_it(&scenario, false, None, State::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn scenario(text: &str) -> Result<Scenario, String> {
    mmtwin_scenario::parse("test", text, Path::new(""), &[]).map_err(|faults| faults.to_string())
}

fn run_it(scenario: &Scenario, explicit: bool, trace: Option<Trace>, state: State) -> Result<Finished, String> {
    let mut kept = Kept::default();
    let events = mmtwin_twin::engine::kinds(scenario);
    let options = Options { state, explicit, trace, events, progress: &mut |_| {} };
    let ran = run(scenario, options, &mut kept).map_err(|error| error.to_string())?;
    assert!(kept.events.is_sorted_by_key(|event| (event.0, event.1)), "events in order");
    let Kept { counters, events, shrunk, isolated, blocks, .. } = kept;
    Ok(Finished { ran, counters, events, shrunk, isolated, blocks })
}

/// Runs a scenario.
pub fn ran(text: &str) -> Finished {
    run_it(&scenario(text).unwrap(), false, None, State::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs a scenario from a state.
pub fn ran_from(text: &str, state: State) -> Finished {
    run_it(&scenario(text).unwrap(), false, None, state).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs a scenario in explicit mode.
pub fn ran_explicitly(text: &str) -> Finished {
    run_it(&scenario(text).unwrap(), true, None, State::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// Replays an access trace: time, pid, page and whether it is written.
pub fn replayed(text: &str, touches: impl IntoIterator<Item = (u64, i32, u64, bool)>) -> Finished {
    let scenario = scenario(text).unwrap();
    let mut trace = Trace::new(&scenario);
    touches.into_iter().for_each(|(at, pid, page, write)| trace.add(at, pid, page, write).unwrap());
    run_it(&scenario, false, Some(trace), State::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// Why a scenario is refused.
pub fn refused(text: &str) -> String {
    scenario(text)
        .and_then(|scenario| run_it(&scenario, false, None, State::default()))
        .err()
        .unwrap_or_else(|| panic!("it runs"))
}

/// A process's region.
pub fn region(name: &str, megabytes: u64, kind: &str) -> String {
    format!("[[process.region]]\nname = \"{name}\"\nsize = \"{megabytes} MiB\"\nkind = \"{kind}\"\n")
}

/// An access of a phase to a region.
pub fn access(region: &str, rest: &str) -> String {
    format!("[[process.phase.access]]\nregion = \"{region}\"\n{rest}\n")
}

/// The last value of a row of `/proc/vmstat`.
pub fn count(run: &Finished, name: &str) -> u64 {
    run.counter("vmstat", "", name)
}

/// How many events of a name there were.
pub fn events(run: &Finished, name: &str) -> u64 {
    run.events.iter().filter(|event| event.2 == name).count() as u64
}
