//! Page by page: the zones that a workload's own pages came from, and what they counted, on a kernel and on the twin.
//!
//! A page is the workload's if one of its threads allocated it and it can be moved: memory of its regions. Everything
//! else in the recording (`kmem:mm_page_alloc` of all tasks) is taken off the NUMA counters again: page tables, the
//! kernel's own structures, the recorder. Such an allocation is taken for a hit, as it is wherever its node has memory.

use crate::Error;
use mmtwin_event::vocabulary::MmPageAlloc;
use mmtwin_event::{CounterRow, Event, Kind, Sink, Task};
use mmtwin_scenario::Scenario;
use mmtwin_trace::Outcome;
use mmtwin_trace::recording::Recording;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

/// The kernel's number of the migratetype of pages that can be moved.
const MOVABLE: i32 = 1;
/// A name in the kernel is this long.
const COMM: usize = 15;

/// Where a run had the workload's pages, and what they counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Placed {
    threads: Vec<Thread>,
    /// Node of every zone.
    zones: BTreeMap<String, usize>,
    /// Least, low and high mark of every zone.
    watermarks: BTreeMap<String, Vec<Option<u64>>>,
    /// By NUMA counter: what the workload's pages counted on each node.
    counted: BTreeMap<String, BTreeMap<usize, i64>>,
}

/// The pages of a thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Thread {
    process: String,
    number: usize,
    /// Their zones in the order of allocation, each with how many came from it one after the other.
    pages: Zones,
}

type Zones = Vec<(String, u64)>;

/// A run's pages.
#[derive(Debug, Default)]
struct Pages {
    zones: BTreeMap<String, (usize, Range<u64>)>,
    watermarks: BTreeMap<String, Vec<Option<u64>>>,
    /// By pid: thread group and name.
    tasks: BTreeMap<i32, (i32, String)>,
    allocated: Vec<Allocated>,
    /// By counter and node: time and value of the first and of the last sample.
    numastat: BTreeMap<(String, usize), [(u64, u64); 2]>,
}

#[derive(Clone, Copy, Debug)]
struct Allocated {
    ts: u64,
    cpu: u32,
    pid: i32,
    pfn: u64,
    movable: bool,
}

/// How two runs agree.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Agreement {
    /// Pages of the workload on the kernel.
    pub pages: u64,
    /// Pages that are in another zone on the twin, or on one side only. One thread's pages are compared in the order of
    /// their allocation; of several threads only how many are in each zone, as their order is chance.
    pub elsewhere: u64,
    /// The same of each thread by itself: of several, which of them got the last pages of a zone is chance too.
    pub by_thread: u64,
    /// NUMA counters that were compared: of the nodes that the workload has pages of.
    pub counters: u64,
    /// Sum of their differences on the two sides.
    pub counted_otherwise: u64,
    /// Watermarks of zones that were compared.
    pub watermarks: u64,
    /// Those that differ.
    pub other_watermarks: u64,
}

impl Agreement {
    /// Adds those of another run.
    pub(super) fn add(&mut self, other: &Agreement) {
        self.pages += other.pages;
        self.elsewhere += other.elsewhere;
        self.by_thread += other.by_thread;
        self.counters += other.counters;
        self.counted_otherwise += other.counted_otherwise;
        self.watermarks += other.watermarks;
        self.other_watermarks += other.other_watermarks;
    }
}

/// Reads a recording that has the allocations of pages.
pub(super) fn placed(scenario: &Scenario, path: &Path) -> Result<Placed, Error> {
    let (mut pages, mut outcome) = (Pages::default(), Outcome::default());
    Recording::open(path)?.read(&mut pages, &mut outcome)?;
    match outcome.lost_total() {
        (0, 0) => Ok(pages.placed(scenario)),
        _ => Err(Error::Fidelity(format!("{}: events were lost, so pages cannot be compared", path.display()))),
    }
}

/// Compares two runs of a scenario.
pub(super) fn compare(kernel: &Placed, twin: &Placed) -> Agreement {
    let mut found = Agreement::default();
    let alone = kernel.threads.len() == 1 && twin.threads.len() == 1;
    let key = |thread: &Thread| (thread.process.clone(), thread.number);
    for of in kernel.threads.iter().chain(&twin.threads).map(key).collect::<BTreeSet<_>>() {
        let side =
            |side: &Placed| side.threads.iter().find(|thread| key(thread) == of).map(|thread| thread.pages.clone());
        let (a, b) = (side(kernel).unwrap_or_default(), side(twin).unwrap_or_default());
        found.pages += a.iter().map(|(_, pages)| pages).sum::<u64>();
        found.by_thread += if alone { in_order(&a, &b) } else { in_all(&a, &b) };
    }
    found.elsewhere = if alone { found.by_thread } else { in_all(&kernel.together(), &twin.together()) };
    let zones = kernel.together().into_iter().chain(twin.together());
    let nodes: BTreeSet<usize> = zones.filter_map(|(zone, _)| kernel.zones.get(&zone).copied()).collect();
    for (name, counted) in &kernel.counted {
        for (node, counted) in counted.iter().filter(|(node, _)| nodes.contains(node)) {
            if let Some(other) = twin.counted.get(name).and_then(|counted| counted.get(node)) {
                found.counters += 1;
                found.counted_otherwise += counted.abs_diff(*other);
            }
        }
    }
    for (zone, marks) in &twin.watermarks {
        let others = kernel.watermarks.get(zone).cloned().unwrap_or_default();
        found.watermarks += marks.len() as u64;
        found.other_watermarks += marks.iter().zip(others).filter(|(a, b)| **a != *b).count() as u64;
    }
    found
}

/// Pages that differ, one after the other.
fn in_order(a: &Zones, b: &Zones) -> u64 {
    let each = |zones: &Zones| -> Vec<String> {
        zones.iter().flat_map(|(zone, pages)| std::iter::repeat_n(zone.clone(), *pages as usize)).collect()
    };
    let (a, b) = (each(a), each(b));
    let differing = a.iter().zip(&b).filter(|(a, b)| a != b).count();
    (differing + a.len().abs_diff(b.len())) as u64
}

/// Pages that differ in how many are in each zone.
fn in_all(a: &Zones, b: &Zones) -> u64 {
    let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
    a.iter().for_each(|(zone, pages)| *counts.entry(zone).or_default() += *pages as i64);
    b.iter().for_each(|(zone, pages)| *counts.entry(zone).or_default() -= *pages as i64);
    let more = |sign: i64| counts.values().map(|n| (n * sign).max(0) as u64).sum::<u64>();
    more(1).max(more(-1))
}

impl Placed {
    /// The pages of all threads.
    fn together(&self) -> Zones {
        self.threads.iter().flat_map(|thread| thread.pages.iter().cloned()).collect()
    }
}

impl Pages {
    /// The zone of a page frame.
    fn zone(&self, pfn: u64) -> Option<&str> {
        self.zones.iter().find(|(_, (_, frames))| frames.contains(&pfn)).map(|(zone, _)| zone.as_str())
    }

    /// Whether a thread belongs to the workload: which process, by name.
    fn process<'a>(&self, scenario: &'a Scenario, pid: i32) -> Option<&'a str> {
        let (_, comm) = self.tasks.get(&pid)?;
        let named = |name: &&str| name.bytes().take(COMM).eq(comm.bytes());
        scenario.processes.iter().map(|process| process.name.as_str()).find(named)
    }

    /// What is compared of them.
    fn placed(&self, scenario: &Scenario) -> Placed {
        let zones = self.zones.iter().map(|(zone, (node, _))| (zone.clone(), *node));
        let mut counted: BTreeMap<String, BTreeMap<usize, i64>> = BTreeMap::new();
        for ((name, node), change) in self.counted(scenario) {
            counted.entry(name).or_default().insert(node, change);
        }
        let (threads, zones) = (self.by_thread(scenario), zones.collect());
        Placed { threads, zones, watermarks: self.watermarks.clone(), counted }
    }

    /// The workload's pages.
    fn by_thread(&self, scenario: &Scenario) -> Vec<Thread> {
        let mut pids: BTreeMap<&str, BTreeSet<i32>> = BTreeMap::new();
        let own = || {
            let own = self.allocated.iter().filter(|page| page.movable);
            own.filter_map(|page| Some((self.process(scenario, page.pid)?, page)))
        };
        own().for_each(|(name, page)| _ = pids.entry(name).or_default().insert(page.pid));
        let mut threads: BTreeMap<(&str, usize), Zones> = BTreeMap::new();
        for (name, page) in own() {
            let number = pids[name].iter().position(|pid| *pid == page.pid).unwrap_or_default();
            let (zone, pages) = (self.zone(page.pfn).unwrap_or_default(), threads.entry((name, number)).or_default());
            match pages.last_mut() {
                Some((last, count)) if last == zone => *count += 1,
                _ => pages.push((zone.into(), 1)),
            }
        }
        let thread =
            |((process, number), pages): ((&str, usize), Zones)| Thread { process: process.into(), number, pages };
        threads.into_iter().map(thread).collect()
    }

    /// What the workload's pages counted, by counter and node.
    fn counted(&self, scenario: &Scenario) -> BTreeMap<(String, usize), i64> {
        let change = |[first, last]: &[(u64, u64); 2]| last.1 as i64 - first.1 as i64;
        let mut counted: BTreeMap<(String, usize), i64> =
            self.numastat.iter().map(|(key, samples)| (key.clone(), change(samples))).collect();
        for page in self.allocated.iter().filter(|page| !page.movable || self.process(scenario, page.pid).is_none()) {
            let Some(node) = self.zone(page.pfn).map(|zone| self.zones[zone].0) else { continue };
            let from = scenario.machine.cpus.get(page.cpu as usize).map(|cpu| cpu.node as usize);
            let place = if from == Some(node) { "local_node" } else { "other_node" };
            for counter in ["numa_hit", place] {
                let key = (counter.to_string(), node);
                let Some([first, last]) = self.numastat.get(&key) else { continue };
                if (first.0..last.0).contains(&page.ts) {
                    counted.entry(key).and_modify(|count| *count -= 1);
                }
            }
        }
        counted
    }
}

impl Sink for Pages {
    fn task(&mut self, task: &Task<'_>) {
        self.tasks.insert(task.pid, (task.tgid, String::from_utf8_lossy(task.comm).into_owned()));
    }

    fn event(&mut self, event: &Event<'_>) {
        if event.kind == Kind::MmPageAlloc {
            let page = event.typed::<MmPageAlloc>();
            // An allocation that failed has no page.
            let Some(pfn) = page.pfn else { return };
            let (ts, cpu, pid, movable) = (event.ts, event.cpu, event.pid, page.migratetype == MOVABLE);
            self.allocated.push(Allocated { ts, cpu, pid, pfn, movable });
        }
    }

    fn counters(&mut self, row: &CounterRow<'_>) {
        let value = |name: &str| row.names.iter().position(|n| n == name).and_then(|at| row.values[at]);
        match row.source {
            "zoneinfo" if !self.zones.contains_key(row.key) => {
                let node = row.key.split_once('/').and_then(|(node, _)| node.parse().ok());
                if let (Some(node), Some(start), Some(spanned)) = (node, value("start_pfn"), value("spanned"))
                    && spanned > 0
                    && !row.key.ends_with("/Device")
                {
                    self.zones.insert(row.key.into(), (node, start..start + spanned));
                    self.watermarks.insert(row.key.into(), ["min", "low", "high"].map(value).to_vec());
                }
            }
            "numastat" => {
                let Ok(node) = row.key.parse() else { return };
                for (name, value) in row.names.iter().zip(row.values) {
                    let sample = (row.at, value.unwrap_or(0));
                    self.numastat.entry((name.clone(), node)).or_insert([sample; 2])[1] = sample;
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_compared_in_order_or_by_number() {
        let zones = |names: &str| names.chars().map(|zone| (zone.to_string(), 1)).collect::<Zones>();
        let (a, b) = (zones("aabb"), zones("ababb"));
        assert_eq!((in_order(&a, &b), in_all(&a, &b)), (3, 1));
        assert_eq!((in_order(&a, &a), in_all(&a, &zones("bbaa"))), (0, 0));
        assert_eq!(in_all(&a, &Zones::new()), 4);
        let packed = vec![("a".to_string(), 2), ("b".to_string(), 2)];
        assert_eq!((in_order(&a, &packed), in_all(&a, &packed)), (0, 0));
    }
}
