//! Lets a part of a stream through.

use super::there::There;
use super::who::{Verdict, Who, in_cgroup};
use super::{Extent, Filter};
use mmtwin_event::{Call, CounterRow, Event, Kind, Order, Sink, Source, Task};

/// Names of fields that say which node an event is about.
const NODE_FIELDS: [&str; 5] = ["nid", "node", "node_id", "src_nid", "dst_nid"];
/// Sources of counters with a row for each node or zone.
const BY_NODE: [&str; 4] = ["node_vmstat", "numastat", "meminfo", "zoneinfo"];

/// What was let through, and what was seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// Events let through.
    pub events: u64,
    /// Of those, events without a type.
    pub untyped: u64,
    /// Rows of counters let through.
    pub rows: u64,
    /// Events of tasks whose cgroup is not known, where one was asked for.
    pub unattributed: u64,
    /// Kinds of events seen in the time asked for, let through or not.
    pub kinds: Vec<Kind>,
    /// The time asked for, as far as the input has it.
    pub window: Option<(u64, u64)>,
}

/// A sink for the whole that gives a part of it to another.
pub(super) struct Part<'s> {
    filter: &'s Filter,
    sink: &'s mut dyn Sink,
    extent: Extent,
    cpu_nodes: Vec<u32>,
    /// By kind: slots of [`NODE_FIELDS`].
    node_slots: Vec<Vec<usize>>,
    who: Who,
    there: There,
    kinds: [bool; Kind::COUNT],
    /// Of events, in the clock of the trace.
    first: Option<u64>,
    last: u64,
    seen: Seen,
}

impl<'s> Part<'s> {
    pub fn new(filter: &'s Filter, extent: Extent, sink: &'s mut dyn Sink) -> Part<'s> {
        let fields = |i: usize| mmtwin_event::vocabulary::SCHEMAS.get(i.wrapping_sub(1)).map(|schema| schema.fields);
        let slots = |i| {
            let fields = fields(i).into_iter().flatten().enumerate();
            fields.filter(|(_, field)| NODE_FIELDS.contains(&field.name)).map(|(slot, _)| slot).collect()
        };
        Part {
            filter,
            sink,
            extent,
            cpu_nodes: Vec::new(),
            node_slots: (0..Kind::COUNT).map(slots).collect(),
            who: Who::default(),
            there: There::default(),
            kinds: [false; Kind::COUNT],
            first: extent.start,
            last: extent.end.unwrap_or(0),
            seen: Seen::default(),
        }
    }

    /// What was let through, and what the input has.
    pub fn seen(mut self) -> (Seen, There) {
        let whole = self.first.map(|first| (first, self.last.max(first)));
        self.there.length = whole.map(|(first, last)| last - first);
        self.there.complete(&self.who);
        self.seen.window = whole.map(|(first, last)| {
            let from = first.saturating_add(self.filter.from.unwrap_or(0)).min(last);
            let to = self.filter.to.map_or(last, |to| first.saturating_add(to).min(last));
            (from, to.max(from))
        });
        let kinds = std::iter::once(Kind::Other).chain(mmtwin_event::vocabulary::SCHEMAS.iter().map(|s| s.kind));
        self.seen.kinds = kinds.filter(|kind| self.kinds[*kind as usize]).collect();
        (self.seen, self.there)
    }

    fn is_timed(&self) -> bool {
        self.filter.from.is_some() || self.filter.to.is_some()
    }

    /// Whether a time is asked for; without a known begin only what no time was asked for is.
    fn at(&self, at: u64) -> bool {
        let Some(start) = self.first.filter(|_| self.is_timed()) else { return !self.is_timed() };
        let from = start.saturating_add(self.filter.from.unwrap_or(0));
        let to = self.filter.to.map_or(u64::MAX, |to| start.saturating_add(to));
        (from..=to).contains(&at)
    }

    fn on_node(&mut self, event: &Event<'_>) -> bool {
        if self.filter.nodes.is_empty() {
            return true;
        }
        let wanted = |node: i64| self.filter.nodes.iter().any(|wanted| i64::from(*wanted) == node);
        let slots = self.node_slots[event.kind as usize].iter().filter(|slot| event.has(**slot));
        // A node that is not known, -1, is that of the CPU.
        let nodes = slots.map(|slot| event.slot(*slot) as i64).filter(|node| *node >= 0);
        let (mut named, mut any) = (false, false);
        for node in nodes {
            (named, any) = (true, any || wanted(node));
            self.there.nodes.extend(u32::try_from(node));
        }
        if named { any } else { self.cpu_on_node(event.cpu) }
    }

    fn cpu_on_node(&self, cpu: u32) -> bool {
        self.cpu_nodes.get(cpu as usize).is_some_and(|node| self.filter.nodes.contains(node))
    }

    /// Whether a row of counters is of what is asked for.
    fn row(&mut self, row: &CounterRow<'_>) -> bool {
        let filter = self.filter;
        let of_node = || {
            let node = row.key.split('/').next().and_then(|node| node.parse().ok());
            BY_NODE.contains(&row.source) && node.is_some_and(|node| filter.nodes.contains(&node))
        };
        let process = match row.source {
            "sched" | "delays" => row.key.parse().ok().map(|pid| self.who.verdict(filter, pid) == Verdict::In),
            _ => None,
        };
        let of_region = || {
            let process = row.key.split('/').next().filter(|_| row.source == "numa_maps");
            process.is_some_and(|name| filter.processes.iter().any(|p| mmtwin_event::words::glob(p, name)))
        };
        (filter.nodes.is_empty() || of_node())
            && (filter.processes.is_empty() || process.unwrap_or_else(of_region))
            && (filter.cgroups.is_empty()
                || process
                    .unwrap_or_else(|| row.source == "cgroup" && in_cgroup(filter, &self.who.containers, row.key)))
            && self.at(row.at)
    }
}

impl Sink for Part<'_> {
    fn start(&mut self, source: &Source) {
        self.cpu_nodes.clone_from(&source.cpu_nodes);
        self.there.nodes.extend(&source.cpu_nodes);
        self.who.containers = source.containers.clone();
        self.sink.start(source);
    }

    fn task(&mut self, task: &Task<'_>) {
        self.who.announce(task);
        self.sink.task(task);
    }

    fn order(&self, kind: Kind) -> Order {
        // A trace without a recorded start begins with its first event.
        if self.is_timed() && self.extent.start.is_none() { Order::Time } else { self.sink.order(kind) }
    }

    fn event(&mut self, event: &Event<'_>) {
        *self.there.events.entry(event.pid).or_default() += 1;
        if self.first.is_none_or(|first| event.ts < first) {
            self.first = Some(event.ts);
        }
        self.last = self.last.max(event.ts);
        let verdict = self.who.wrote(self.filter, event);
        if !self.at(event.ts) {
            return;
        }
        self.kinds[event.kind as usize] = true;
        self.seen.unattributed += u64::from(verdict == Verdict::Unknown);
        if verdict == Verdict::In && self.on_node(event) {
            self.seen.events += 1;
            self.seen.untyped += u64::from(event.kind == Kind::Other);
            self.sink.event(event);
        }
    }

    /// Losses concern everything: what was lost may have been asked for.
    fn lost(&mut self, cpu: u32, events: Option<u64>, at: u64) {
        self.sink.lost(cpu, events, at);
    }

    fn counters(&mut self, row: &CounterRow<'_>) {
        if row.source == "cgroup" && !self.there.cgroups.contains(row.key) {
            self.there.cgroups.insert(row.key.to_string());
        }
        if row.source == "numastat" {
            self.there.nodes.extend(row.key.parse::<u32>().ok());
        }
        if self.row(row) {
            self.seen.rows += 1;
            self.sink.counters(row);
        }
    }

    /// A call has neither a task nor a time.
    fn call(&mut self, call: &Call<'_>) {
        let attributed = self.filter.processes.is_empty() && self.filter.cgroups.is_empty() && !self.is_timed();
        if attributed && (self.filter.nodes.is_empty() || self.cpu_on_node(call.cpu)) {
            self.sink.call(call);
        }
    }

    fn finish(&mut self) {
        self.sink.finish();
    }
}
