//! Machines: nodes, disk and swap, as a guest of the lab can have them.

use super::draw::Draw;
use std::fmt::Write;

/// MiB that a guest's kernel, its boot image and the agent take.
const OWN: u64 = 90;

/// What kind of machine a workload is for.
#[derive(Clone, Copy)]
pub struct Wanted {
    /// Nodes, at most 4.
    pub nodes: &'static [u64],
    /// Percentage of machines with swap.
    pub swap: u64,
    /// MiB of all nodes together.
    pub memory: &'static [u64],
}

/// One or two nodes whose memory a workload of some seconds fills.
pub const SMALL: Wanted = Wanted { nodes: &[1, 1, 1, 2], swap: 75, memory: &[384, 384, 448, 512] };
/// Several nodes.
pub const NUMA: Wanted = Wanted { nodes: &[2, 2, 3, 4], swap: 20, memory: &[768, 896, 1024] };

/// A machine.
pub struct Machine {
    /// (CPUs, MiB) by node.
    pub nodes: Vec<(u64, u64)>,
    distance: Vec<Vec<u64>>,
    /// Time of a request; 0 is a memory disk.
    disk_us: u64,
    swap: Option<Swap>,
}

struct Swap {
    mib: u64,
    /// As [`Machine::disk_us`]; 0 is synchronous.
    latency_us: u64,
}

impl Machine {
    /// Draws one.
    pub fn new(draw: &mut Draw, wanted: Wanted) -> Machine {
        let (count, memory) = (draw.pick(wanted.nodes), draw.pick(wanted.memory));
        let nodes = nodes(draw, count, memory);
        let distance = distances(draw, nodes.len());
        let disk_us = draw.pick(&[0, 0, 0, 100, 250, 500, 1000, 2000]);
        let has_swap = draw.percent(wanted.swap);
        let mib = draw.pick(&[96, 128, 192, 256]);
        let latency_us = draw.pick(&[0, 0, 0, 100, 250, 500]);
        Machine { nodes, distance, disk_us, swap: has_swap.then_some(Swap { mib, latency_us }) }
    }

    /// MiB of memory.
    pub fn memory(&self) -> u64 {
        self.nodes.iter().map(|(_, mib)| mib).sum()
    }

    /// MiB that are free after the boot.
    pub fn usable(&self) -> u64 {
        self.memory() * 98 / 100 - OWN
    }

    /// MiB of swap.
    pub fn swap_mib(&self) -> u64 {
        self.swap.as_ref().map_or(0, |swap| swap.mib)
    }

    /// True if a task that swaps in waits for a disk.
    pub fn swaps_to_disk(&self) -> bool {
        self.swap.as_ref().is_some_and(|swap| swap.latency_us > 0)
    }

    /// CPUs.
    pub fn cpus(&self) -> u64 {
        self.nodes.iter().map(|(cpus, _)| cpus).sum()
    }

    /// Nodes with memory.
    pub fn memory_nodes(&self) -> Vec<u64> {
        (0..).zip(&self.nodes).filter(|(_, (_, mib))| *mib > 0).map(|(nid, _)| nid).collect()
    }

    /// The CPUs of a node as a list; of one without, all.
    pub fn cpus_of(&self, node: u64) -> String {
        let first: u64 = self.nodes.iter().take(node as usize).map(|(cpus, _)| cpus).sum();
        match self.nodes[node as usize].0 {
            0 => list(0, self.cpus()),
            count => list(first, count),
        }
    }

    /// As TOML.
    pub fn text(&self, preset: &str) -> String {
        let mut text = format!("[machine]\npreset = \"{preset}\"\n");
        // QEMU has sockets of one size, and a socket is what shares a cache.
        let mut with = self.nodes.iter().map(|(cpus, _)| *cpus).filter(|cpus| *cpus > 0);
        let first = with.next();
        if with.any(|cpus| Some(cpus) != first) {
            text.push_str("cluster_cores = 1\n");
        }
        let row = |row: &Vec<u64>| format!("[{}]", joined(row));
        let _ = writeln!(text, "distance = [{}]", self.distance.iter().map(row).collect::<Vec<_>>().join(", "));
        let mut known: Vec<u64> = self.distance.concat();
        known.sort_unstable();
        known.dedup();
        // A guest's memory is equally far from everywhere.
        for (key, value) in [("latency", "8 ns"), ("bandwidth", "1 GB/s")] {
            let of: Vec<String> = known.iter().map(|distance| format!("{distance} = \"{value}\"")).collect();
            let _ = writeln!(text, "memory.{key} = {{ {} }}", of.join(", "));
        }
        if self.disk_us > 0 {
            let _ = writeln!(text, "disk.latency = \"{} us\"", self.disk_us);
        }
        let mut first = 0;
        for (cpus, mib) in &self.nodes {
            text.push_str("\n[[machine.node]]\n");
            if *cpus > 0 {
                let _ = writeln!(text, "cpus = \"{}\"", list(first, *cpus));
            }
            if *mib > 0 {
                let _ = writeln!(text, "memory = \"{mib} MiB\"");
            }
            first += cpus;
        }
        if let Some(Swap { mib, latency_us }) = &self.swap {
            let (synchronous, latency) = (*latency_us == 0, format!("{latency_us} us"));
            let _ = write!(
                text,
                "\n[machine.swap]\nsize = \"{mib} MiB\"\nsynchronous = {synchronous}\nlatency = \"{latency}\"\n\
                 bandwidth = \"1 GB/s\"\n"
            );
        }
        text
    }
}

/// Numbers with commas.
fn joined(numbers: &[u64]) -> String {
    numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}

/// A list of consecutive numbers as the kernel writes it.
pub fn list(first: u64, count: u64) -> String {
    match count {
        1 => first.to_string(),
        _ => format!("{first}-{}", first + count - 1),
    }
}

/// CPUs and memory of the nodes: even, uneven, or one node without CPUs or without memory.
fn nodes(draw: &mut Draw, count: u64, memory: u64) -> Vec<(u64, u64)> {
    if count == 1 {
        return vec![(draw.between(2, 4), memory)];
    }
    let even = memory / count / 32 * 32;
    let cpus = draw.pick(&[1, 2, 2]);
    let mut nodes = vec![(cpus, even); count as usize];
    let last = nodes.len() - 1;
    match draw.between(0, 9) {
        0..=4 => {}
        // Uneven memory, of which the first node has what the kernel needs.
        5 | 6 => {
            let moved = even / 2 / 32 * 32;
            nodes[0].1 += moved;
            nodes[last].1 -= moved;
        }
        // Uneven CPUs.
        7 => nodes[0].0 += 1,
        // Memory alone.
        8 => nodes[last].0 = 0,
        // CPUs alone, beside two nodes with memory or one.
        _ => {
            nodes[last].1 = 0;
            nodes[0].1 += even;
        }
    }
    if nodes.iter().map(|(cpus, _)| cpus).sum::<u64>() < 2 {
        nodes[0].0 = 2;
    }
    nodes
}

/// Distances: all alike, or in a row.
fn distances(draw: &mut Draw, count: usize) -> Vec<Vec<u64>> {
    let in_a_row = draw.percent(30);
    let between = |from: usize, to: usize| match from.abs_diff(to) as u64 {
        0 => 10,
        steps if in_a_row => 11 + 5 * steps,
        _ => 20,
    };
    (0..count).map(|from| (0..count).map(|to| between(from, to)).collect()).collect()
}
