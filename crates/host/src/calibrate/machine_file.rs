//! The machine file: this machine as a scenario names it.
//!
//! It has what the kernel says (nodes, CPUs, memory, distances) and what was measured, nothing else, and under
//! `[[figure]]` where each figure comes from. CPUs and nodes are numbered without gaps, as the twin needs them; where that
//! changes a number a comment says so. Nothing in the file depends on when it was made.

use super::Calibration;
use super::latency::Latency;
use super::topology::Between;
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
    file.memory(&nodes, &calibration.latencies);
    file.lines(calibration);
    file.costs(calibration);
    for Provenance { of, source } in std::mem::take(&mut file.figures) {
        file.line("");
        file.line("[[figure]]");
        let of: Vec<String> = of.iter().map(|of| quoted(of)).collect();
        file.line(format_args!("of = [{}]", of.join(", ")));
        file.line("provenance = \"measured\"");
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

    fn measured(&mut self, of: Vec<String>, how: &str) {
        if !of.is_empty() {
            self.figures.push(Provenance { of, source: format!("{TOOL} calibrate: {how}") });
        }
    }

    fn describe(&mut self, calibration: &Calibration, nodes: &[Node]) {
        let model = calibration.evidence.cpu_model.as_deref().unwrap_or("unknown CPU");
        self.line(format_args!("# {}, measured by {TOOL} calibrate", one_line(model)));
        calibration.notes.iter().for_each(|note| self.line(format_args!("# {}", one_line(note))));
        let mut online: Vec<u32> = nodes.iter().flat_map(|n| n.cpus.iter().copied()).collect();
        online.sort_unstable();
        if online.iter().zip(0..).any(|(&id, index)| id != index) {
            self.line("# CPU numbers of this file are not the kernel's, which have gaps");
        }
        if nodes.iter().zip(0..).any(|(node, index)| node.id != index) {
            let ids: Vec<String> = nodes.iter().map(|n| n.id.to_string()).collect();
            self.line(format_args!("# nodes of this file are the kernel's nodes {}", ids.join(", ")));
        }
        self.line(format_args!("threads_per_core = {}", calibration.threads_per_core()));
        let rows: Vec<String> = nodes.iter().map(|n| list(&n.distances)).collect();
        self.line(format_args!("distance = [{}]", rows.join(", ")));
        for node in nodes {
            let cpus: Vec<u32> = node.cpus.iter().map(|cpu| online.partition_point(|id| id < cpu) as u32).collect();
            self.line("");
            self.line("[[node]]");
            self.line(format_args!("cpus = {}", quoted(&ranges(&cpus))));
            self.line(format_args!("memory = \"{} KiB\"", node.memory.unwrap_or(0)));
        }
        if let Some(cycles) = calibration.cycles {
            self.line("");
            self.line("[cpu]");
            self.line(format_args!("frequency = \"{:.0} MHz\"", cycles * 1e3));
            self.measured(vec!["cpu.frequency".into()], "the time-stamp counter against CLOCK_MONOTONIC");
        }
    }

    fn memory(&mut self, nodes: &[Node], latencies: &[Latency]) {
        let of = |from: u32, to: u32| latencies.iter().find(|l| (l.from, l.to) == (from, to));
        // A matrix with holes is none: nodes without CPUs or without memory have no latency of their own.
        let row = |from: &Node| -> Option<String> {
            let row: Option<Vec<String>> = nodes.iter().map(|to| Some(time(of(from.id, to.id)?.time.median))).collect();
            Some(format!("[{}]", row?.join(", ")))
        };
        self.line("");
        let rows: Option<Vec<String>> = nodes.iter().map(row).collect();
        if let Some(rows) = rows {
            self.line("[memory]");
            self.line(format_args!("latency = [{}]", rows.join(", ")));
            self.measured(vec!["memory.latency".into()], "dependent loads in random order, huge pages asked for, idle");
        } else {
            self.line("# memory.latency is not known for every pair of nodes; what is known, from CPUs to memory:");
            for Latency { from, to, time } in latencies {
                self.line(format_args!("# node {from} to {to}: {:.1} ns", time.median));
            }
        }
    }

    fn lines(&mut self, calibration: &Calibration) {
        self.line("");
        self.line("[line]");
        if let Some(add) = calibration.uncontended {
            self.line(format_args!("atomic = {}", time(add.median)));
            self.measured(vec!["line.atomic".into()], "locked additions to a line of one's own, median CPU");
        }
        let [mut transfers, mut handoffs] = [Vec::new(), Vec::new()];
        for between in Between::ALL {
            if let Some(transfer) = calibration.transfer(between) {
                self.line(format_args!("transfer.{} = {}", between.key(), time(transfer.median)));
                transfers.push(format!("line.transfer.{}", between.key()));
            }
            if let Some(handoff) = calibration.handoff(between) {
                self.line(format_args!("handoff.{} = {}", between.key(), time(handoff.median)));
                handoffs.push(format!("line.handoff.{}", between.key()));
            }
        }
        self.measured(transfers, "half a round trip of compare-and-exchange, median pair of CPUs");
        let doubt = "two CPUs adding to one line, median pair; too few CPUs to calibrate contention";
        let enough = calibration.cpus.len() >= ENOUGH_CPUS;
        self.measured(handoffs, if enough { "two CPUs adding to one line, median pair" } else { doubt });
    }

    fn costs(&mut self, calibration: &Calibration) {
        let of = |variant: Variant| calibration.counters.iter().find(|u| u.variant == variant).map(|u| u.time.median);
        let Some(off) = of(Variant::Off) else { return };
        let keys = [
            (Variant::ZoneItems, "numa_counters_s8"),
            (Variant::SeparateU16, "numa_counters_u16"),
            (Variant::EventCounters, "numa_counters_events"),
        ];
        let costs = keys.into_iter().filter_map(|(variant, key)| Some((key, of(variant)? - off)));
        // On a busy machine a difference of about a nanosecond can drown; then it is not known.
        let costs: Vec<(&str, f64)> = costs.filter(|(_, cost)| *cost >= 0.05).collect();
        if costs.is_empty() {
            return;
        }
        self.line("");
        self.line("[cost]");
        costs.iter().for_each(|(key, cost)| self.line(format_args!("{key} = {}", time(*cost))));
        let of = costs.iter().map(|(key, _)| format!("cost.{key}")).collect();
        self.measured(of, "hit and local of one thread in user space, less the same loop with counters off");
    }
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
