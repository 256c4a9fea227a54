//! Upper bounds of a machine's figures: beyond them products do not fit into 64 bits.

use super::text::MachineText;
use super::worker;
use crate::check::Check;
use crate::units::{Bandwidth, Cost, Time};

/// The largest cost of one operation.
const MAX_COST: Cost = Cost(1_000_000_000_000);
/// The longest request of a device.
const MAX_REQUEST: Time = Time(100_000_000_000);
/// Bandwidths of memory and devices.
const BANDWIDTHS: (Bandwidth, Bandwidth) = (Bandwidth(1_000), Bandwidth(1_000_000_000_000_000));
/// Requests in a device's queue at most.
const MAX_QUEUE: u32 = 65_536;
/// Bios of 64 bytes in a page.
const MAX_BIOS: u32 = 64;
/// Blocks of a journal's commit at most: a fourth of a journal of 1 GiB.
const MAX_JOURNAL: u32 = 65_536;
/// Ticks of a grace period at most.
const MAX_GRACE: u32 = 1000;
/// Largest multiple of the idle latency.
const MAX_MULTIPLE: f64 = 1e6;
/// Points of a curve, and letters of a name, at most.
const MAX_LENGTH: usize = 255;
/// Nodes times CPUs at most: every zone has lists for every CPU.
const MAX_PAGESETS: usize = 1 << 20;

/// Checks the figures that are single values.
pub(super) fn check(text: &MachineText, check: &mut Check<'_>) {
    check.require(text.name.len() <= MAX_LENGTH, "machine.name", || format!("a name has at most {MAX_LENGTH} bytes"));
    let cpus = text.node.iter().map(|node| node.cpus.len()).sum::<usize>();
    let pagesets = cpus.saturating_mul(text.node.len());
    check.require(pagesets <= MAX_PAGESETS, "machine.node", || {
        let nodes = text.node.len();
        format!(
            "{nodes} nodes x {cpus} CPUs are {pagesets}, for each of which a kernel has lists: at most {MAX_PAGESETS}"
        )
    });
    for (table, costs) in [("line", serde_json::to_value(text.line)), ("cost", serde_json::to_value(text.cost))] {
        each(&costs.unwrap_or_default(), &format!("machine.{table}"), check);
    }
    let (disk, swap) = (&text.disk, &text.swap);
    for (key, time) in [("disk.latency", disk.latency), ("disk.seek", disk.seek), ("swap.latency", swap.latency)] {
        check.require(time <= MAX_REQUEST, &format!("machine.{key}"), || {
            format!("{time}: a request takes at most {MAX_REQUEST}")
        });
    }
    bandwidth(disk.bandwidth, "machine.disk.bandwidth", check);
    if swap.size.0 > 0 {
        bandwidth(swap.bandwidth, "machine.swap.bandwidth", check);
    }
    check.require(disk.queue_depth <= MAX_QUEUE, "machine.disk.queue_depth", || {
        format!("a queue takes at most {MAX_QUEUE} requests")
    });
    check.require(disk.bios_per_page.get() <= MAX_BIOS, "machine.disk.bios_per_page", || {
        format!("a page has at most {MAX_BIOS} bios")
    });
    check.require(disk.journal_blocks.get() <= MAX_JOURNAL, "machine.disk.journal_blocks", || {
        format!("a commit has at most {MAX_JOURNAL} blocks")
    });
    check.require(text.cost.rcu_grace_ticks.get() <= MAX_GRACE, "machine.cost.rcu_grace_ticks", || {
        format!("a grace period has at most {MAX_GRACE} ticks")
    });
    worker::check(text, check);
    let frequency = text.cpu.frequency.0;
    check.require(frequency <= 1_000_000_000_000, "machine.cpu.frequency", || "a frequency is at most 1000 GHz".into());
    for (key, curve) in [("local", &text.memory.local), ("remote", &text.memory.remote)] {
        let points = curve.points();
        let sound = points.len() <= MAX_LENGTH && points.iter().all(|[_, multiple]| *multiple <= MAX_MULTIPLE);
        check.require(sound, &format!("machine.memory.{key}"), || {
            format!("a curve has at most {MAX_LENGTH} points and multiples up to {MAX_MULTIPLE}")
        });
    }
}

/// Checks the latencies and bandwidths of all pairs of nodes.
pub(super) fn pairs(latency: &[Vec<Cost>], bandwidths: &[Vec<Bandwidth>], check: &mut Check<'_>) {
    if let Some(cost) = latency.iter().flatten().find(|cost| **cost > MAX_COST) {
        check.fault("machine.memory.latency", format!("{cost}: a latency is at most {MAX_COST}"));
    }
    let beyond = |of: &&Bandwidth| !(BANDWIDTHS.0..=BANDWIDTHS.1).contains(of);
    if let Some(found) = bandwidths.iter().flatten().find(beyond) {
        bandwidth(*found, "machine.memory.bandwidth", check);
    }
}

fn bandwidth(found: Bandwidth, path: &str, check: &mut Check<'_>) {
    check.require((BANDWIDTHS.0..=BANDWIDTHS.1).contains(&found), path, || {
        format!("{found}: a bandwidth is {} to {}", BANDWIDTHS.0, BANDWIDTHS.1)
    });
}

/// Every cost of a table, and of those in it. Shares are numbers, not texts.
fn each(value: &serde_json::Value, path: &str, check: &mut Check<'_>) {
    match value {
        serde_json::Value::Object(members) => {
            members.iter().for_each(|(key, value)| each(value, &format!("{path}.{key}"), check));
        }
        serde_json::Value::String(text) => {
            let cost = text.parse().unwrap_or(Cost(0));
            check.require(cost <= MAX_COST, path, || format!("{cost}: a cost is at most {MAX_COST}"));
        }
        _ => {}
    }
}
