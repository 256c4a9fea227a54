//! Nodes, CPUs, memory ranges and distances, as firmware describes them to the kernel.
//!
//! Models the SRAT (which CPU and which memory belongs to which node), the SLIT (distances) and the memory map of an
//! x86-64 PC. Not modelled: hot-plugged memory, sub-ranges of a node that interleave with another node's. Validated on
//! the zone sizes of kernels 6.1 and 6.18 (`tests/zoneinfo.rs`).

use std::ops::Range;
use thiserror::Error;

/// log2 of the page size: 4 KiB.
pub const PAGE_SHIFT: u32 = 12;
/// Bytes of a page.
pub const PAGE_SIZE: u64 = 1 << PAGE_SHIFT;
/// Distance of a node to itself.
pub const LOCAL_DISTANCE: u8 = 10;
/// Most nodes: a node mask is one word.
pub const MAX_NODES: usize = 64;
/// Memory of a PC ends here below 4 GiB: the rest belongs to devices.
const LOW_MEMORY_END: u64 = 3 << (30 - PAGE_SHIFT);
const HIGH_MEMORY_START: u64 = 4 << (30 - PAGE_SHIFT);
/// The first 640 KiB without page 0; the kernel gives none of it to the allocator.
const BIOS_MEMORY: Range<u64> = 1..0x9f;
/// Memory continues at 1 MiB.
const FIRST_MIB_END: u64 = 256;
/// Bytes that describe a page (`struct page`); they are taken from the node's own memory.
const BYTES_PER_STRUCT_PAGE: u64 = 64;

/// A NUMA node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// Memory as ranges of page frame numbers, ascending. Empty: a node without memory.
    pub memory: Vec<Range<u64>>,
    /// Ranges of `memory` that the kernel keeps before the allocator starts.
    pub reserved: Vec<Range<u64>>,
}

/// A CPU. Its number is its position in [`Machine::cpus`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// Node it belongs to.
    pub node: u32,
    /// Core it belongs to; CPUs with the same number are threads of one core and share its caches.
    pub core: u32,
}

/// The machine's shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Nodes.
    pub nodes: Vec<Node>,
    /// CPUs.
    pub cpus: Vec<Cpu>,
    /// Distance from a node (row) to a node, 10 on the diagonal.
    pub distance: Vec<Vec<u8>>,
}

/// Why a machine is impossible.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs)] // the fields are named in the messages
pub enum MachineError {
    #[error("a machine has 1 to {MAX_NODES} nodes, not {0}")]
    Nodes(usize),
    #[error("the machine has no CPU")]
    NoCpu,
    #[error("CPU {cpu} belongs to node {node}, which does not exist")]
    CpuInNoNode { cpu: usize, node: u32 },
    #[error("CPUs of core {core} belong to nodes {first} and {second}")]
    SplitCore { core: u32, first: u32, second: u32 },
    #[error("no node has memory")]
    NoMemory,
    #[error("the distance matrix has {rows} rows for {nodes} nodes")]
    DistanceRows { rows: usize, nodes: usize },
    #[error("row {row} of the distance matrix has {columns} columns for {nodes} nodes")]
    DistanceColumns { row: usize, columns: usize, nodes: usize },
    #[error("the distance of node {node} to itself is {distance}, not 10")]
    Diagonal { node: usize, distance: u8 },
    #[error("the distance from node {from} to node {to} is {distance}, not above 10")]
    Near { from: usize, to: usize, distance: u8 },
    #[error("memory {start}..{end} (page frames) of node {node} is empty, out of order or overlaps other memory")]
    Range { node: usize, start: u64, end: u64 },
    #[error("reserved memory {start}..{end} (page frames) of node {node} is not within its memory, or out of order")]
    Reserved { node: usize, start: u64, end: u64 },
    #[error("memory up to page frame {0} is more than 16 TiB")]
    TooMuchMemory(u64),
}

impl Node {
    /// Pages of memory.
    pub fn pages(&self) -> u64 {
        self.memory.iter().map(|range| range.end - range.start).sum()
    }
}

impl Machine {
    /// A PC whose nodes have this many pages, one after another in physical memory: as usual the first MiB is the
    /// firmware's, and node memory between 3 GiB and 4 GiB moves above 4 GiB. `struct page` arrays are reserved at the
    /// top of each node, `kernel` pages (image and early allocations) below the top of the first with memory.
    pub fn pc(pages: &[u64], kernel: u64, cpus: Vec<Cpu>, distance: Vec<Vec<u8>>) -> Result<Machine, MachineError> {
        let mut nodes = Vec::with_capacity(pages.len());
        let (mut at, mut kernel) = (0, kernel);
        for &count in pages {
            let mut node = Node::default();
            let mut left = count;
            while left > 0 {
                if at == 0 {
                    let low = BIOS_MEMORY.end.min(left);
                    if low > BIOS_MEMORY.start {
                        node.memory.push(BIOS_MEMORY.start..low);
                        node.reserved.push(BIOS_MEMORY.start..low);
                    }
                    left -= FIRST_MIB_END.min(left);
                    at = FIRST_MIB_END;
                    continue;
                }
                let (next, after) =
                    if at < LOW_MEMORY_END { (LOW_MEMORY_END, HIGH_MEMORY_START) } else { (u64::MAX, at) };
                let end = next.min(at.saturating_add(left));
                node.memory.push(at..end);
                left -= end - at;
                at = if end == next { after } else { end };
            }
            if let Some(last) = node.memory.last() {
                let wanted = (node.pages() * BYTES_PER_STRUCT_PAGE).div_ceil(PAGE_SIZE) + std::mem::take(&mut kernel);
                let first = last.start.max(last.end.saturating_sub(wanted));
                if first >= FIRST_MIB_END && first < last.end {
                    node.reserved.push(first..last.end);
                }
            }
            nodes.push(node);
        }
        Machine::new(nodes, cpus, distance)
    }

    /// Checks a machine.
    pub fn new(nodes: Vec<Node>, cpus: Vec<Cpu>, distance: Vec<Vec<u8>>) -> Result<Machine, MachineError> {
        let machine = Machine { nodes, cpus, distance };
        machine.check_cpus()?;
        machine.check_distance()?;
        machine.check_memory()?;
        Ok(machine)
    }

    /// Node of a CPU.
    #[inline]
    pub fn node_of(&self, cpu: u32) -> usize {
        self.cpus[cpu as usize].node as usize
    }

    /// CPUs of a node, ascending.
    pub fn cpus_of(&self, node: usize) -> Vec<u32> {
        (0..self.cpus.len() as u32).filter(|&cpu| self.node_of(cpu) == node).collect()
    }

    /// Node of a page; `None` if it is not memory.
    pub fn node_of_page(&self, page: u64) -> Option<usize> {
        self.nodes.iter().position(|node| node.memory.iter().any(|range| range.contains(&page)))
    }

    /// The other threads of each CPU's core.
    pub fn siblings(&self) -> Vec<Vec<u32>> {
        let mut cores = std::collections::BTreeMap::<u32, Vec<u32>>::new();
        for (cpu, at) in (0..).zip(&self.cpus) {
            cores.entry(at.core).or_default().push(cpu);
        }
        (0..)
            .zip(&self.cpus)
            .map(|(cpu, at)| cores[&at.core].iter().copied().filter(|&other| other != cpu).collect())
            .collect()
    }

    /// One past the last page frame.
    pub fn end_pfn(&self) -> u64 {
        self.nodes.iter().flat_map(|node| &node.memory).map(|range| range.end).max().unwrap_or(0)
    }

    fn check_cpus(&self) -> Result<(), MachineError> {
        if self.nodes.is_empty() || self.nodes.len() > MAX_NODES {
            return Err(MachineError::Nodes(self.nodes.len()));
        }
        if self.cpus.is_empty() {
            return Err(MachineError::NoCpu);
        }
        let mut node_of_core = std::collections::BTreeMap::new();
        for (cpu, &Cpu { node, core }) in self.cpus.iter().enumerate() {
            if node as usize >= self.nodes.len() {
                return Err(MachineError::CpuInNoNode { cpu, node });
            }
            let first = *node_of_core.entry(core).or_insert(node);
            if first != node {
                return Err(MachineError::SplitCore { core, first, second: node });
            }
        }
        Ok(())
    }

    fn check_distance(&self) -> Result<(), MachineError> {
        let nodes = self.nodes.len();
        if self.distance.len() != nodes {
            return Err(MachineError::DistanceRows { rows: self.distance.len(), nodes });
        }
        for (from, row) in self.distance.iter().enumerate() {
            if row.len() != nodes {
                return Err(MachineError::DistanceColumns { row: from, columns: row.len(), nodes });
            }
            for (to, &distance) in row.iter().enumerate() {
                if from == to && distance != LOCAL_DISTANCE {
                    return Err(MachineError::Diagonal { node: from, distance });
                }
                if from != to && distance <= LOCAL_DISTANCE {
                    return Err(MachineError::Near { from, to, distance });
                }
            }
        }
        Ok(())
    }

    fn check_memory(&self) -> Result<(), MachineError> {
        let mut all = Vec::new();
        for (number, node) in self.nodes.iter().enumerate() {
            let mut before = 0;
            for &Range { start, end } in &node.memory {
                if start >= end || start < before {
                    return Err(MachineError::Range { node: number, start, end });
                }
                before = end;
                all.push((start, end, number));
            }
            let mut before = 0;
            for &Range { start, end } in &node.reserved {
                let inside = node.memory.iter().any(|memory| memory.start <= start && end <= memory.end);
                if start >= end || start < before || !inside {
                    return Err(MachineError::Reserved { node: number, start, end });
                }
                before = end;
            }
        }
        if all.is_empty() {
            return Err(MachineError::NoMemory);
        }
        all.sort_unstable();
        if let Some(pair) = all.windows(2).find(|pair| pair[1].0 < pair[0].1) {
            return Err(MachineError::Range { node: pair[1].2, start: pair[1].0, end: pair[1].1 });
        }
        // Page frames are 32-bit numbers, and the last one means "none".
        let end = self.end_pfn();
        if end >= u64::from(u32::MAX) { Err(MachineError::TooMuchMemory(end)) } else { Ok(()) }
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init)] // memory really is a list of ranges
mod tests {
    use super::*;

    fn cpus(nodes: &[u32]) -> Vec<Cpu> {
        (0..).zip(nodes).map(|(core, &node)| Cpu { node, core }).collect()
    }

    fn flat(nodes: usize) -> Vec<Vec<u8>> {
        (0..nodes).map(|i| (0..nodes).map(|j| if i == j { 10 } else { 21 }).collect()).collect()
    }

    #[test]
    fn a_pc_has_a_hole_below_four_gib() {
        let machine = Machine::pc(&[1 << 20, 0, 1 << 20], 100, cpus(&[0, 0, 2]), flat(3)).unwrap();
        assert_eq!(machine.nodes[0].memory, [1..0x9f, 256..0xc_0000, 0x10_0000..0x14_0000]);
        assert_eq!(machine.nodes[0].pages(), (1 << 20) - 256 + 0x9e);
        assert_eq!(machine.nodes[1].pages(), 0);
        assert_eq!(machine.nodes[2].memory, [0x14_0000..0x24_0000]);
        // 64 bytes for each page, and the kernel on the first node.
        assert_eq!(machine.nodes[2].reserved, [0x24_0000 - 0x4000..0x24_0000]);
        assert_eq!(machine.nodes[0].reserved[1], 0x14_0000 - 0x4000 + 1 - 100..0x14_0000);
    }

    #[test]
    fn threads_of_a_core_are_siblings() {
        let threads = [0, 1, 0, 1].map(|core| Cpu { node: 0, core }).to_vec();
        let machine = Machine::pc(&[1 << 16], 0, threads, flat(1)).unwrap();
        assert_eq!(machine.siblings(), [[2], [3], [0], [1]]);
    }

    #[test]
    fn impossible_machines_are_refused_with_a_reason() {
        let pc = |pages: &[u64], nodes: &[u32], distance| Machine::pc(pages, 0, cpus(nodes), distance).unwrap_err();
        assert_eq!(pc(&[], &[0], flat(0)), MachineError::Nodes(0));
        assert_eq!(pc(&[1 << 20; 65], &[0], flat(65)), MachineError::Nodes(65));
        assert_eq!(pc(&[1 << 20], &[], flat(1)), MachineError::NoCpu);
        assert_eq!(pc(&[1 << 20], &[0, 1], flat(1)), MachineError::CpuInNoNode { cpu: 1, node: 1 });
        assert_eq!(pc(&[0, 0], &[0], flat(2)), MachineError::NoMemory);
        assert_eq!(pc(&[1 << 20; 2], &[0], flat(1)), MachineError::DistanceRows { rows: 1, nodes: 2 });
        let error = MachineError::DistanceColumns { row: 1, columns: 1, nodes: 2 };
        assert_eq!(pc(&[1 << 20; 2], &[0], vec![vec![10, 20], vec![20]]), error);
        let error = MachineError::Diagonal { node: 1, distance: 11 };
        assert_eq!(pc(&[1 << 20; 2], &[0], vec![vec![10, 20], vec![20, 11]]), error);
        let error = MachineError::Near { from: 1, to: 0, distance: 10 };
        assert_eq!(pc(&[1 << 20; 2], &[0], vec![vec![10, 20], vec![10, 10]]), error);
        assert_eq!(pc(&[1 << 33], &[0], flat(1)), MachineError::TooMuchMemory((1 << 33) + (1 << 18)));
        let split = vec![Cpu { node: 0, core: 0 }, Cpu { node: 1, core: 0 }];
        let error = MachineError::SplitCore { core: 0, first: 0, second: 1 };
        assert_eq!(Machine::pc(&[1 << 20; 2], 0, split, flat(2)).unwrap_err(), error);
    }

    #[test]
    fn memory_may_not_overlap() {
        let node = |memory: &[Range<u64>]| Node { memory: memory.to_vec(), reserved: Vec::new() };
        let two = |a, b| Machine::new(vec![a, b], cpus(&[0]), flat(2)).unwrap_err();
        assert_eq!(two(node(&[0..10, 20..30]), node(&[25..40])), MachineError::Range { node: 1, start: 25, end: 40 });
        assert_eq!(two(node(&[5..9, 2..3]), node(&[])), MachineError::Range { node: 0, start: 2, end: 3 });
        let outside = Node { memory: vec![5..9], reserved: vec![8..10] };
        assert_eq!(two(outside, node(&[])), MachineError::Reserved { node: 0, start: 8, end: 10 });
    }
}
