//! The first reading: statistics, the longest waits, those of one task.

use super::track::Tracker;
use super::wait::{Cause, Wait};
use crate::Analysis;
use mmtwin_event::vocabulary::{MmFilemapAddToPageCache, MmFilemapDeleteFromPageCache};
use mmtwin_event::{Call, CounterRow, Event, Kind, Order, Sink, Source};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Waits kept: the longest of all, and the longest of the task that is asked for.
const KEPT: usize = 4096;
/// Cgroups of tasks kept.
const CGROUPS: usize = 1 << 16;
/// Pages that left the page cache and are looked out for.
const GONE: usize = 1 << 20;

/// A return of a page to the page cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Return {
    pub left: u64,
    pub came: u64,
    /// Who was running when it left, and when it came.
    pub evictor: String,
    pub reader: String,
    /// What the evictor was doing: the wait it was in, if it was in one.
    pub cause: Option<Cause>,
    pub dev: u64,
    pub ino: u64,
    pub page: u64,
}

/// Sums over returns.
#[derive(Clone, Debug, Default)]
pub(super) struct Returns {
    pub count: u64,
    pub by_evictor: BTreeMap<String, u64>,
    pub by_reader: BTreeMap<String, u64>,
    pub by_file: BTreeMap<(u64, u64), u64>,
    /// Every n-th one, thinned out as they become many.
    pub examples: Vec<Return>,
    every: u64,
}

/// Names apart from one another in sums over returns; more are one entry.
const NAMES: usize = 1 << 12;

impl Returns {
    fn add(&mut self, one: Return) {
        let add = |sums: &mut BTreeMap<String, u64>, name: &str| {
            let name = if sums.contains_key(name) || sums.len() < NAMES { name } else { crate::tasks::OTHERS };
            *sums.entry(name.to_owned()).or_default() += 1;
        };
        add(&mut self.by_evictor, &one.evictor);
        add(&mut self.by_reader, &one.reader);
        let file = (one.dev, one.ino);
        if self.by_file.contains_key(&file) || self.by_file.len() < NAMES {
            *self.by_file.entry(file).or_default() += 1;
        }
        let every = self.every.max(1);
        if self.count.is_multiple_of(every) {
            if self.examples.len() == NAMES {
                let mut keep = false;
                self.examples.retain(|_| {
                    keep = !keep;
                    keep
                });
                self.every = every * 2;
            }
            self.examples.push(one);
        }
        self.count += 1;
    }
}

/// A page that left: when, who ran, and in which wait.
type Gone = (u64, i32, Option<Cause>);

/// What a first reading collects.
#[derive(Default)]
pub struct Survey {
    /// All statistics.
    pub analysis: Analysis,
    /// Name or thread id of the task whose waits are all kept.
    wanted: Option<String>,
    tracker: Tracker,
    longest: BinaryHeap<Reverse<(u64, u64, usize)>>,
    waits: Vec<Wait>,
    of_wanted: Vec<Wait>,
    /// Number and nanoseconds of all waits by cause, and by name.
    pub(super) by_cause: BTreeMap<Cause, (u64, u64)>,
    pub(super) by_name: BTreeMap<String, (u64, u64)>,
    /// Cgroup of a thread, where it was recorded.
    pub(super) cgroups: BTreeMap<i32, String>,
    gone: FxHashMap<(u64, u64, u64), Gone>,
    pub(super) returns: Returns,
}

impl Survey {
    /// A first reading; of the task of this name or thread id all waits are kept.
    pub fn new(task: Option<&str>) -> Survey {
        Survey { wanted: task.map(str::to_owned), ..Survey::default() }
    }

    /// The longest waits, longest first.
    pub fn longest(&self) -> Vec<&Wait> {
        let mut waits: Vec<&Wait> = self.waits.iter().collect();
        waits.sort_by_key(|wait| (Reverse(wait.length()), wait.from));
        waits
    }

    /// Waits of the task that was asked for, longest first.
    pub fn of_wanted(&self) -> Vec<&Wait> {
        let mut waits: Vec<&Wait> = self.of_wanted.iter().collect();
        waits.sort_by_key(|wait| (Reverse(wait.length()), wait.from));
        waits
    }

    /// Number and nanoseconds of all waits.
    pub fn total(&self) -> (u64, u64) {
        self.by_cause.values().fold((0, 0), |(n, ns), of| (n + of.0, ns.saturating_add(of.1)))
    }

    /// First time of the recording, from which relative times count.
    pub fn begins(&self) -> u64 {
        let sampled = self.analysis.counters.sampled("vmstat", "").map(|sampled| sampled.first_at);
        let first = self.analysis.span.first;
        match (first, sampled.filter(|_| self.analysis.source.arm != "import")) {
            (Some(a), Some(b)) => a.min(b),
            (a, b) => a.or(b).unwrap_or(0),
        }
    }

    fn keep(&mut self, wait: Wait) {
        let length = wait.length();
        let of = self.by_cause.entry(wait.cause).or_default();
        *of = (of.0 + 1, of.1.saturating_add(length));
        let name = wait.who.rsplit_once('-').map_or(wait.who.as_str(), |(name, _)| name).to_owned();
        let name = if self.by_name.len() < NAMES || self.by_name.contains_key(&name) {
            name
        } else {
            crate::tasks::OTHERS.into()
        };
        let wanted = self.wanted.as_ref().is_some_and(|wanted| *wanted == name || *wanted == wait.pid.to_string());
        let of = self.by_name.entry(name).or_default();
        *of = (of.0 + 1, of.1.saturating_add(length));
        if wanted && self.of_wanted.len() < KEPT {
            self.of_wanted.push(wait.clone());
        }
        if self.waits.len() < KEPT {
            self.longest.push(Reverse((length, wait.from, self.waits.len())));
            self.waits.push(wait);
        } else if let Some(Reverse((shortest, _, at))) = self.longest.peek().copied()
            && length > shortest
        {
            self.longest.pop();
            self.longest.push(Reverse((length, wait.from, at)));
            self.waits[at] = wait;
        }
    }

    fn page(&mut self, ev: &Event<'_>) {
        if ev.kind == Kind::MmFilemapDeleteFromPageCache {
            let e: MmFilemapDeleteFromPageCache = ev.typed();
            let cause = self.tracker.cause(ev.pid);
            if self.gone.len() < GONE {
                self.gone.insert((e.dev.0, e.ino.0, e.ofs), (ev.ts, ev.pid, cause));
            }
            return;
        }
        let e: MmFilemapAddToPageCache = ev.typed();
        let (dev, ino, page) = (e.dev.0, e.ino.0, e.ofs);
        let Some((left, pid, cause)) = self.gone.remove(&(dev, ino, page)) else { return };
        let evictor = self.analysis.tasks.get(pid).map_or(pid.to_string(), |task| task.name());
        let reader = self.analysis.tasks.of(ev).name();
        self.returns.add(Return { left, came: ev.ts, evictor, reader, cause, dev, ino, page });
    }
}

impl Sink for Survey {
    fn start(&mut self, source: &Source) {
        self.analysis.start(source);
    }

    fn task(&mut self, task: &mmtwin_event::Task<'_>) {
        self.analysis.task(task);
        if let Some(cgroup) = task.cgroup.filter(|_| self.cgroups.len() < CGROUPS) {
            self.cgroups.insert(task.pid, cgroup.to_owned());
        }
    }

    fn order(&self, _: Kind) -> Order {
        Order::Time
    }

    fn event(&mut self, ev: &Event<'_>) {
        self.analysis.event(ev);
        if let Some(wait) = self.tracker.event(ev, &mut self.analysis.tasks) {
            self.keep(wait);
        }
        if matches!(ev.kind, Kind::MmFilemapAddToPageCache | Kind::MmFilemapDeleteFromPageCache) {
            self.page(ev);
        }
    }

    fn lost(&mut self, cpu: u32, events: Option<u64>, at: u64) {
        self.analysis.lost(cpu, events, at);
        // An end may be among them.
        self.tracker.forget();
    }

    fn counters(&mut self, row: &CounterRow<'_>) {
        self.analysis.counters(row);
    }

    fn call(&mut self, call: &Call<'_>) {
        self.analysis.call(call);
    }
}
