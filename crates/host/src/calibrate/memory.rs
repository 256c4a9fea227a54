//! Memory of each node as CPUs of each node see it: [`latency`] and [`bandwidth`].
//!
//! Both are measured on one buffer per node, four times as large as the caches of the CPUs that read it. It is bound to its
//! node (`MPOL_BIND`) and asks for huge pages, so that address translation adds little. On a machine of one node
//! nothing is bound.

use super::{bandwidth, latency};
use crate::Error;
use crate::bench::figure::{Figure, ROUNDS};
use crate::bench::threads::{Cpu, on};
use memmap2::{Advice, MmapMut};
use mmtwin_event::manifest::Evidence;
use std::fs;

/// Memory of a node, seen from a node.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// Node of the CPUs.
    pub from: u32,
    /// Node of the memory.
    pub to: u32,
    /// Nanoseconds of a load by one CPU.
    pub latency: Figure,
    /// Bytes per nanosecond that all CPUs read: GB/s.
    pub bandwidth: Figure,
}

/// The smallest and the largest buffer.
const BYTES: (u64, u64) = (64 << 20, 1 << 30);

/// Measures from each node with CPUs to each node with memory. `caches` is the size of the last-level caches of the
/// node that has most. Nodes whose memory is not available are omitted, with a note. Fails if a CPU is not available.
pub fn measure(cpus: &[Cpu], evidence: &Evidence, caches: u64, notes: &mut Vec<String>) -> Result<Vec<Access>, Error> {
    let mut by_node = cpus.to_vec();
    by_node.sort_by_key(|cpu| (cpu.node, cpu.id));
    let Some(&first) = by_node.first() else { return Ok(Vec::new()) };
    let memory: Vec<u32> = evidence.nodes.iter().filter(|n| n.memory.is_some_and(|kb| kb > 0)).map(|n| n.id).collect();
    let several = memory.len() > 1;
    // A kernel without NUMA has no nodes and all its memory in the node that CPUs are said to be on.
    let memory = if memory.is_empty() { vec![first.node] } else { memory };
    let mut accesses = Vec::new();
    for to in memory {
        let bytes = caches.saturating_mul(4).clamp(BYTES.0, BYTES.1);
        if let Some(free) = free_bytes(to).filter(|&free| free / 2 < bytes) {
            notes.push(format!("node {to}: {} MiB free, not enough to measure its memory", free >> 20));
            continue;
        }
        let local = by_node.iter().copied().find(|cpu| cpu.node == to).unwrap_or(first);
        let buffer = on(local, || {
            let mut buffer = buffer(bytes, several.then_some(to))?;
            latency::chain(&mut buffer);
            Ok::<_, std::io::Error>(buffer)
        })?;
        let buffer = match buffer {
            Ok(buffer) => buffer,
            Err(error) => {
                notes.push(format!("node {to}: cannot allocate its memory: {error}"));
                continue;
            }
        };
        for cpus in by_node.chunk_by(|a, b| a.node == b.node) {
            let from = cpus[0];
            let latency = on(from, || (0..ROUNDS).map(|_| latency::follow(&buffer)).collect())?;
            let bandwidth: Result<_, Error> = (0..ROUNDS).map(|_| bandwidth::read(&buffer, cpus)).collect();
            let both = Figure::of(latency).zip(Figure::of(bandwidth?));
            accesses.extend(both.map(|(latency, bandwidth)| Access { from: from.node, to, latency, bandwidth }));
        }
    }
    accesses.sort_by_key(|access| (access.from, access.to));
    Ok(accesses)
}

/// Free memory of a node; `None` if the kernel does not tell.
fn free_bytes(node: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/sys/devices/system/node/node{node}/meminfo")).ok()?;
    let value = text.lines().find_map(|line| line.split_once("MemFree:"))?.1;
    value.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// A buffer, on this node if one is given. The policy is that of the thread, which must end with it.
fn buffer(bytes: u64, node: Option<u32>) -> std::io::Result<MmapMut> {
    if let Some(node) = node {
        bind(node)?;
    }
    let buffer = MmapMut::map_anon(bytes as usize)?;
    // Huge pages are better but not needed: a kernel without them refuses.
    let _ = buffer.advise(Advice::HugePage);
    Ok(buffer)
}

/// Has this thread's new memory come from one node only.
fn bind(node: u32) -> std::io::Result<()> {
    const BITS: usize = libc::c_ulong::BITS as usize;
    let mut mask = [0 as libc::c_ulong; 1024 / BITS];
    let word = mask.get_mut(node as usize / BITS).ok_or(std::io::ErrorKind::InvalidInput)?;
    *word = 1 << (node as usize % BITS);
    // The kernel takes the number of bits and one more.
    let bits = mask.len() * BITS + 1;
    // SAFETY: the kernel reads `bits` - 1 bits from the mask, which is that long and lives until the call is over. The
    // call changes where memory that this thread accesses later comes from, and nothing that exists already.
    let result = unsafe { libc::syscall(libc::SYS_set_mempolicy, libc::MPOL_BIND, mask.as_ptr(), bits) };
    if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::threads::cpus;
    use crate::evidence;

    /// On every machine with NUMA, memory can be bound to the node one is on, and not to one that is not there.
    #[test]
    fn memory_is_bound_to_nodes_that_exist() {
        let cpu = cpus().unwrap()[0];
        if free_bytes(cpu.node).is_some() {
            let touched = on(cpu, || buffer(1 << 20, Some(cpu.node)).map(|mut b| b.fill(1)).is_ok());
            assert!(touched.unwrap());
        }
        for gone in [1023, 1024, u32::MAX] {
            assert!(on(cpu, || bind(gone).is_err()).unwrap(), "{gone}");
        }
    }

    #[test]
    fn every_node_of_this_machine() {
        let mut notes = Vec::new();
        let cpus = cpus().unwrap();
        let accesses = measure(&cpus, &evidence::collect(), 0, &mut notes).unwrap();
        assert!(!accesses.is_empty() || !notes.is_empty());
        assert!(accesses.iter().all(|a| a.latency.low > 0.0 && a.bandwidth.low > 0.0), "{accesses:?}");
    }
}
