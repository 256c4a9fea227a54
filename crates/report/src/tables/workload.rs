//! The results of a scenario's workload, from `results.json`.

use super::{metrics, text};
use crate::model::{Better, Body, Cell, Column, Finding, Gain, Metric, Table};
use mmtwin_event::results::{AccessResult, ActionResult, Ending, Latency, PhaseResult, Results};
use std::collections::BTreeMap;

/// Nodes that kernels are built for; a list that is longer is damaged.
const NODES: usize = 1024;

/// `workload`, `placement`, and a histogram for every latency that was measured.
pub fn tables(results: &Results) -> Vec<Table> {
    let mut tables = vec![work(results)];
    tables.extend(placement(results));
    for phase in &results.phases {
        let latencies = phase.accesses.iter().map(|of| (of.region.as_str(), &of.latency, "accesses to"));
        let latencies = latencies.chain(phase.actions.iter().map(|of| (of.kind.as_str(), &of.latency, "calls by")));
        for (what, latency, of) in latencies {
            tables.extend(latency.as_ref().and_then(|latency| histogram(phase, what, of, latency)));
        }
    }
    tables
}

/// What must be said first.
pub fn findings(results: &Results, input: &str) -> Vec<Finding> {
    if let Ending::Stopped { message, .. } = &results.ending {
        return vec![Finding {
            key: "run_stopped".into(),
            severity: 100,
            sentence: format!("{message}."),
            detail: "The tables cover the run until then.".into(),
            command: format!("mmtwin report {input} --table workload"),
            ..Finding::default()
        }];
    }
    let Ending::OutOfMemory { at, pid, comm, message } = &results.ending else { return Vec::new() };
    vec![Finding {
        key: "out_of_memory".into(),
        severity: 95,
        sentence: format!("out of memory after {:.3} s: {comm} (pid {pid}): {message}.", results.seconds_to(*at)),
        detail: "The OOM killer killed it. All other processes continued.".into(),
        command: format!("mmtwin report {input} --table placement,zoneinfo"),
        ..Finding::default()
    }]
}

/// Where a phase's rows belong: `process/phase`.
fn place(phase: &PhaseResult) -> String {
    format!("{}/{}", phase.process, phase.phase)
}

/// A name as a key: letters, digits and underscores.
fn key(words: &str) -> String {
    words.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect()
}

#[derive(Default)]
struct Rows {
    rows: Vec<Metric>,
    prefix: String,
    /// Rows by label.
    labels: BTreeMap<String, usize>,
}

impl Rows {
    fn add(&mut self, what: &str, unit: &'static str, better: Better, value: Cell) {
        let label = format!("{} {what}", self.prefix);
        let gain = match better {
            Better::Higher => Gain::Percent,
            Better::Lower => Gain::PercentLower,
            Better::Neutral => Gain::None,
        };
        let (key, unit) = (key(&label), unit.into());
        // Of two equal accesses of a phase the second keeps a key of its own.
        let same = self.labels.entry(label.clone()).or_default();
        *same += 1;
        let (key, label) = match *same {
            1 => (key, label),
            n => (format!("{key}_{n}"), label),
        };
        self.rows.push(Metric { key, label, unit, better, gain, decimals: None, value, published: None });
    }
}

fn work(results: &Results) -> Table {
    let mut rows = Rows::default();
    for phase in &results.phases {
        rows.prefix = place(phase);
        rows.add("duration", "s", Better::Neutral, Cell::Float((phase.end - phase.start.min(phase.end)) as f64 / 1e9));
        for access in &phase.accesses {
            rows.prefix = format!("{}: {} {}:", place(phase), access.pattern, access.region);
            accesses(&mut rows, access, phase);
        }
        for action in &phase.actions {
            let detail = if action.detail.is_empty() { String::new() } else { format!(" {}", action.detail) };
            rows.prefix = format!("{}: {}{detail}:", place(phase), action.kind);
            operations(&mut rows, action);
        }
    }
    metrics("workload", "Workload results", "Rows are process/phase: quantity.", rows.rows)
}

fn accesses(rows: &mut Rows, access: &AccessResult, phase: &PhaseResult) {
    let seconds = phase.end.saturating_sub(phase.start) as f64 / 1e9;
    let per = |part: f64, whole: f64| Cell::float((whole > 0.0).then(|| part / whole));
    rows.add("threads", "", Better::Neutral, Cell::int(access.threads.into()));
    rows.add("accesses", "", Better::Higher, Cell::int(access.touches));
    rows.add("accesses per second", "/s", Better::Higher, per(access.touches as f64, seconds));
    rows.add("CPU time per access", "ns", Better::Lower, per(access.cpu_time as f64, access.touches as f64));
    rows.add("page faults", "", Better::Neutral, Cell::int(access.faults));
    let us = |of: fn(&Latency) -> Option<u64>| access.latency.as_ref().and_then(of).map(|ns| ns as f64 / 1000.0);
    rows.add("latency p50", "us", Better::Lower, Cell::float(us(|latency| latency.p50)));
    rows.add("latency p99", "us", Better::Lower, Cell::float(us(|latency| latency.p99)));
}

fn operations(rows: &mut Rows, action: &ActionResult) {
    rows.add("threads", "", Better::Neutral, Cell::int(action.threads.into()));
    rows.add("operations", "", Better::Neutral, Cell::int(action.operations));
    if action.failures > 0 {
        rows.add("failures", "", Better::Lower, Cell::int(action.failures));
    }
    rows.add("time per operation", "ns", Better::Lower, Cell::float(action.mean));
    for (name, value) in &action.more {
        let better = if name == "operations_per_second" { Better::Higher } else { Better::Neutral };
        let (label, unit) = match name.as_str() {
            "operations_per_second" => ("operations per second".to_string(), "/s"),
            "most_lazy_pages" => ("lazy pages max".to_string(), "pages"),
            "passes_again" => ("repeated passes".to_string(), ""),
            "purge_longest_us" => ("purge max".to_string(), "us"),
            name => match name.strip_suffix("_us") {
                Some(rest) => (rest.replace('_', " "), "us"),
                None => (name.replace('_', " "), ""),
            },
        };
        rows.add(&label, unit, better, Cell::Float(*value));
    }
}

fn placement(results: &Results) -> Option<Table> {
    let nodes = results.phases.iter().flat_map(|phase| &phase.placement).map(|at| at.nodes.len()).max().unwrap_or(0);
    let nodes = nodes.min(NODES);
    let mut columns = vec![column("phase", "phase", ""), column("region", "region", "")];
    columns.extend((0..nodes).map(|node| column(&format!("n{node}"), &format!("N{node}"), "pages")));
    let mut rows = Vec::new();
    for phase in &results.phases {
        for at in &phase.placement {
            let mut row = vec![text(place(phase)), text(at.region.as_str())];
            row.extend((0..nodes).map(|node| Cell::int(at.nodes.get(node).copied().unwrap_or(0))));
            rows.push(row);
        }
    }
    let note = "At the end of each phase. Pages that were never accessed are on no node.";
    (nodes > 0).then(|| super::list("placement", "Page placement by node", note, columns, rows))
}

fn column(key: &str, label: &str, unit: &'static str) -> Column {
    Column { key: key.into(), label: label.into(), unit }
}

/// Slots in microseconds where nothing is shorter, else in nanoseconds.
fn histogram(phase: &PhaseResult, what: &str, of: &str, latency: &Latency) -> Option<Table> {
    let calls = latency.slots.iter().fold(0, |calls: u64, slot| calls.saturating_add(slot.1));
    let least = latency.slots.iter().map(|slot| slot.0).filter(|&least| least > 0).min().unwrap_or(0);
    let (unit, scale) = if least >= 1000 { ("us", 1000) } else { ("ns", 1) };
    let next =
        |i: usize| latency.slots.get(i + 1).map_or(latency.slots[i].0.max(scale).saturating_mul(2), |slot| slot.0);
    let slot = |i: usize| {
        let low = latency.slots[i].0 / scale;
        (low, ((next(i) / scale).max(1) - 1).max(low), latency.slots[i].1)
    };
    let slots = (0..latency.slots.len()).map(slot).collect();
    let mean = latency.mean / scale as f64;
    let body = Body::Histogram { unit, slots, mean: Some(mean), total: (mean * calls as f64) as u64 };
    (calls > 0).then(|| Table {
        name: format!("latency-{}", key(&format!("{} {what}", place(phase))).replace('_', "-")),
        title: format!("{}: latency, {of} {what}", place(phase)),
        note: String::new(),
        body,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use mmtwin_event::results::Placement;

    fn results() -> Results {
        let access = AccessResult {
            region: "heap".into(),
            pattern: "zipf".into(),
            threads: 2,
            touches: 1000,
            faults: 10,
            cpu_time: 500_000,
            latency: None,
        };
        let latency = Latency { mean: 2500.0, slots: vec![(0, 0), (2000, 3), (4000, 1)], ..Latency::default() };
        let action =
            ActionResult { kind: "vmalloc-test".into(), threads: 1, latency: Some(latency), ..ActionResult::default() };
        let placement = vec![Placement { region: "heap".into(), nodes: vec![3, 4] }];
        let (process, phase) = ("p".into(), "0".into());
        let accesses = vec![access.clone(), access];
        let phase = PhaseResult {
            process,
            phase,
            end: 2_000_000_000,
            accesses,
            actions: vec![action],
            placement,
            ..PhaseResult::default()
        };
        Results { phases: vec![phase], ..Results::default() }
    }

    #[test]
    fn rows_have_keys_of_their_own() {
        let tables = tables(&results());
        let Body::Metric(rows) = &tables[0].body else { panic!("{:?}", tables[0].body) };
        let keys: std::collections::BTreeSet<&str> = rows.iter().map(|row| row.key.as_str()).collect();
        assert_eq!(keys.len(), rows.len());
        let value = |key: &str| rows.iter().find(|row| row.key == key).map(|row| row.value.clone());
        assert_eq!(value("p_0__zipf_heap__accesses_per_second"), Some(Cell::Float(500.0)));
        assert_eq!(value("p_0__zipf_heap__cpu_time_per_access"), Some(Cell::Float(500.0)));
        assert_eq!(value("p_0__vmalloc_test__time_per_operation").and_then(|cell| cell.number()), None);
        let names: Vec<&str> = tables.iter().map(|table| table.name.as_str()).collect();
        assert_eq!(names, ["workload", "placement", "latency-p-0-vmalloc-test"]);
        let Body::Histogram { unit, slots, .. } = &tables[2].body else { panic!() };
        assert_eq!((*unit, &slots[..]), ("us", &[(0, 1, 0), (2, 3, 3), (4, 7, 1)][..]));
    }

    /// Numbers and lengths of a results.json come from anywhere.
    #[test]
    fn absurd_numbers_are_no_overflow_and_take_no_time() {
        let mut results = results();
        let slots = vec![(u64::MAX, u64::MAX), (0, u64::MAX), (u64::MAX, 1)];
        results.phases[0].actions[0].latency = Some(Latency { mean: f64::MAX, slots, ..Latency::default() });
        results.phases[0].placement[0].nodes = vec![u64::MAX; 100_000];
        (results.phases[0].start, results.phases[0].end) = (u64::MAX, 0);
        results.phases = vec![results.phases.remove(0); 2000];
        let tables = tables(&results);
        let Body::List { columns, .. } = &tables[1].body else { panic!("{:?}", tables[1].name) };
        assert_eq!(columns.len(), NODES + 2);
    }

    #[test]
    fn out_of_memory_is_the_first_finding() {
        let ending = Ending::OutOfMemory { at: 1_500_000_000, pid: 7, comm: "hog".into(), message: "no pages".into() };
        let found = findings(&Results { ending, ..results() }, "r.mmt");
        assert_eq!(found[0].sentence, "out of memory after 1.500 s: hog (pid 7): no pages.");
        assert!(findings(&results(), "r.mmt").is_empty());
    }
}
