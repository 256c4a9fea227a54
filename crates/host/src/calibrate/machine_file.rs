//! The machine file: this machine as a scenario names it.
//!
//! It has what the kernel says (nodes, CPUs, memory, distances) and what was measured, and under `[[machine.figure]]` where each
//! figure comes from. Everything else, such as the cost of a page fault, comes from what lies under every machine.
//! CPUs, nodes and sockets are numbered without gaps, as the twin needs them; where that changes a number of CPUs or nodes
//! a comment reports it. Nothing in the file depends on when it was made.

use super::Calibration;
use super::memory::Access;
use super::topology::{Between, Place};
use crate::TOOL;
use crate::bench::ENOUGH_CPUS;
use crate::bench::counters::Variant;
use mmtwin_event::manifest::Node;
use std::fmt::{Display, Write};

/// The text of the file.
pub fn write(calibration: &Calibration) -> String {
    let mut file = File::default();
    let nodes = nodes(calibration);
    file.describe(calibration, &nodes);
    file.nodes(calibration, &nodes);
    file.memory(&nodes, &calibration.memory);
    file.lines(calibration);
    file.costs(calibration);
    for Provenance { of, word, source } in std::mem::take(&mut file.figures) {
        file.line("");
        file.line("[[machine.figure]]");
        let of: Vec<String> = of.iter().map(|of| quoted(of)).collect();
        file.line(format_args!("of = [{}]", of.join(", ")));
        file.line(format_args!("provenance = {}", quoted(word)));
        file.line(format_args!("source = {}", quoted(&source)));
    }
    file.text
}

/// A text that grows, and where its figures come from.
#[derive(Default)]
struct File {
    text: String,
    figures: Vec<Provenance>,
}

struct Provenance {
    of: Vec<String>,
    /// `measured` or `derived`.
    word: &'static str,
    source: String,
}

/// The nodes; one without NUMA.
fn nodes(calibration: &Calibration) -> Vec<Node> {
    let evidence = &calibration.evidence;
    if evidence.nodes.is_empty() {
        let (cpus, memory) = (evidence.cpus.clone(), evidence.memory);
        return vec![Node { cpus, memory, distances: vec![10], ..Node::default() }];
    }
    evidence.nodes.clone()
}

impl File {
    fn line(&mut self, line: impl Display) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "{line}");
    }

    fn figure(&mut self, of: Vec<String>, word: &'static str, how: &str) {
        if !of.is_empty() {
            self.figures.push(Provenance { of, word, source: format!("{TOOL} calibrate: {how}") });
        }
    }

    fn measured(&mut self, of: Vec<String>, how: &str) {
        self.figure(of, "measured", how);
    }

    fn describe(&mut self, calibration: &Calibration, nodes: &[Node]) {
        let model = calibration.evidence.cpu_model.as_deref().unwrap_or("unknown CPU");
        self.line(format_args!("# Measured by {TOOL} calibrate."));
        calibration.notes.iter().for_each(|note| self.line(format_args!("# {}", one_line(note))));
        if online(nodes).into_iter().zip(0..).any(|(id, index)| id != index) {
            self.line("# CPU numbers of this file are not those of the kernel, which have gaps.");
        }
        if nodes.iter().zip(0..).any(|(node, index)| node.id != index) {
            let ids: Vec<String> = nodes.iter().map(|n| n.id.to_string()).collect();
            self.line(format_args!("# Nodes of this file are the kernel's nodes {}.", ids.join(", ")));
        }
        self.line("");
        self.line("[machine]");
        self.line(format_args!("name = {}", quoted(model)));
        let threads = calibration.threads_per_core();
        self.line(format_args!("threads_per_core = {threads}"));
        let adjacent = |place: &Place| place.siblings.windows(2).any(|pair| pair[0] + 1 == pair[1]);
        let siblings = if calibration.places.iter().any(adjacent) { "adjacent" } else { "split" };
        self.line(format_args!("siblings = {}", quoted(siblings)));
        if let Some(cluster) = calibration.places.iter().map(|place| place.cluster.len() / threads).max() {
            self.line(format_args!("cluster_cores = {}", cluster.max(1)));
        }
        let rows: Vec<String> = nodes.iter().map(|n| list(&n.distances)).collect();
        self.line(format_args!("distance = [{}]", rows.join(", ")));
        let distance = |a: usize, b: usize| nodes[a].distances.get(b);
        if (0..nodes.len()).any(|a| (0..a).any(|b| distance(a, b) != distance(b, a))) {
            self.line("asymmetric = true");
        }
        if let Some(cycles) = calibration.cycles {
            self.line(format_args!("cpu.frequency = \"{:.0} MHz\"", cycles * 1e3));
            self.measured(vec!["cpu.frequency".into()], "the time-stamp counter against CLOCK_MONOTONIC");
        }
    }

    fn nodes(&mut self, calibration: &Calibration, nodes: &[Node]) {
        let online = online(nodes);
        let mut sockets: Vec<u32> = calibration.places.iter().map(|place| place.socket).collect();
        sockets.sort_unstable();
        sockets.dedup();
        for node in nodes {
            let cpus: Vec<u32> = node.cpus.iter().map(|cpu| online.partition_point(|id| id < cpu) as u32).collect();
            self.line("");
            self.line("[[machine.node]]");
            self.line(format_args!("cpus = {}", quoted(&ranges(&cpus))));
            self.line(format_args!("memory = \"{} KiB\"", node.memory.unwrap_or(0)));
            let place = calibration.places.iter().find(|place| place.node == node.id);
            if let Some(socket) = place.and_then(|place| sockets.binary_search(&place.socket).ok()) {
                self.line(format_args!("socket = {socket}"));
            }
        }
    }

    fn memory(&mut self, nodes: &[Node], accesses: &[Access]) {
        let ids: Vec<u32> = nodes.iter().map(|node| node.id).collect();
        let latency = matrix(&ids, accesses, |access| access.latency.median, f64::max);
        let bandwidth = matrix(&ids, accesses, |access| access.bandwidth.median, f64::min);
        let Some((latency, bandwidth)) = latency.zip(bandwidth) else { return };
        self.line("");
        self.line("[machine.memory]");
        self.line(format_args!("latency = {}", rows(&latency, "ns")));
        self.line(format_args!("bandwidth = {}", rows(&bandwidth, "GB/s")));
        let whole = accesses.len() == ids.len() * ids.len();
        let rest = "; for a node without CPUs or memory the opposite direction, else the worst of all";
        let (word, rest) = if whole { ("measured", "") } else { ("derived", rest) };
        let how = "dependent loads in random order, huge pages requested";
        self.figure(vec!["memory.latency".into()], word, &format!("{how}{rest}"));
        let how = "all CPUs of a node read sequentially";
        self.figure(vec!["memory.bandwidth".into()], word, &format!("{how}{rest}"));
    }

    fn lines(&mut self, calibration: &Calibration) {
        self.line("");
        self.line("[machine.line]");
        if let Some(add) = calibration.uncontended {
            self.line(format_args!("atomic = {}", time(add.median)));
            self.measured(vec!["line.atomic".into()], "atomic additions to an uncontended line, median CPU");
        }
        let cpus = calibration.cpus.len();
        let enough = cpus >= ENOUGH_CPUS;
        if !enough {
            self.line(format_args!("# {cpus} CPUs cannot calibrate contention: handoff is not set"));
        }
        let [mut transfers, mut handoffs] = [Vec::new(), Vec::new()];
        for between in Between::ALL {
            if let Some(transfer) = calibration.transfer(between) {
                self.line(format_args!("transfer.{} = {}", between.key(), time(transfer.median)));
                transfers.push(format!("line.transfer.{}", between.key()));
            }
            if let Some(handoff) = calibration.handoff(between).filter(|_| enough) {
                self.line(format_args!("handoff.{} = {}", between.key(), time(handoff.median)));
                handoffs.push(format!("line.handoff.{}", between.key()));
            }
        }
        self.measured(transfers, "half a round trip of compare-and-exchange, median pair of CPUs");
        self.measured(handoffs, "two CPUs adding to one line, median pair");
    }

    fn costs(&mut self, calibration: &Calibration) {
        let of = |variant: Variant| calibration.counters.iter().find(|u| u.variant == variant).map(|u| u.time.median);
        let Some(off) = of(Variant::Off) else { return };
        let keys = [
            (Variant::ZoneS8, "numa_counters_s8"),
            (Variant::SeparateU16, "numa_counters_u16"),
            (Variant::Events, "numa_counters_events"),
        ];
        let costs = keys.into_iter().filter_map(|(variant, key)| Some((key, of(variant)? - off)));
        // On a busy machine a difference of about a nanosecond can drown; then it is not known.
        let costs: Vec<(&str, f64)> = costs.filter(|(_, cost)| *cost >= 0.05).collect();
        if costs.is_empty() {
            return;
        }
        self.line("");
        self.line("[machine.cost]");
        costs.iter().for_each(|(key, cost)| self.line(format_args!("{key} = {}", time(*cost))));
        let of = costs.iter().map(|(key, _)| format!("cost.{key}")).collect();
        self.measured(of, "numa_hit and local_node of one thread in user space, minus the same loop without counters");
    }
}

/// CPUs of all nodes, ascending.
fn online(nodes: &[Node]) -> Vec<u32> {
    let mut online: Vec<u32> = nodes.iter().flat_map(|n| n.cpus.iter().copied()).collect();
    online.sort_unstable();
    online
}

/// A figure for each pair of nodes; `None` if nothing was measured. What has no figure, because a node has no CPUs or no
/// memory, is filled: a machine needs all, though nothing ever happens between such nodes.
fn matrix(
    ids: &[u32],
    accesses: &[Access],
    value: impl Fn(&Access) -> f64,
    worse: fn(f64, f64) -> f64,
) -> Option<Vec<Vec<f64>>> {
    let worst = accesses.iter().map(&value).reduce(worse)?;
    let at = |from: u32, to: u32| accesses.iter().find(|a| (a.from, a.to) == (from, to)).map(&value);
    let cell = |from: u32, to: u32| at(from, to).or_else(|| at(to, from)).unwrap_or(worst);
    Some(ids.iter().map(|&from| ids.iter().map(|&to| cell(from, to)).collect()).collect())
}

/// A matrix in TOML; one decimal.
fn rows(matrix: &[Vec<f64>], unit: &str) -> String {
    let row = |row: &Vec<f64>| {
        let cells: Vec<String> = row.iter().map(|value| format!("\"{value:.1} {unit}\"")).collect();
        format!("[{}]", cells.join(", "))
    };
    let rows: Vec<String> = matrix.iter().map(row).collect();
    format!("[{}]", rows.join(", "))
}

/// Nanoseconds with one decimal: more is noise.
fn time(nanoseconds: f64) -> String {
    format!("\"{nanoseconds:.1} ns\"")
}

fn list(numbers: &[u32]) -> String {
    let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
    format!("[{}]", numbers.join(", "))
}

/// Ascending numbers as the kernel writes lists: `0-3,8`.
fn ranges(numbers: &[u32]) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b).filter_map(|run| run.first().zip(run.last()));
    let runs = runs.map(|(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") });
    runs.collect::<Vec<_>>().join(",")
}

/// A TOML string.
fn quoted(text: &str) -> String {
    format!("\"{}\"", one_line(text).replace('\\', "\\\\").replace('"', "\\\""))
}

/// Without line feeds and other control characters.
fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}

#[cfg(test)]
mod tests;
