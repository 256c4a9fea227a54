//! Memory latency: a chain of dependent loads through memory of one node, followed by a CPU of another.
//!
//! The chain visits every cache line of a buffer four times as large as the largest cache, in an order no prefetcher can
//! follow. The buffer is bound to its node (`MPOL_BIND`) and asks for huge pages, so that address translation adds
//! little. On a machine of one node nothing is bound.

use crate::Error;
use crate::bench::figure::{Figure, ROUNDS};
use crate::bench::threads::{Cpu, on};
use crate::{clock, shuffle};
use memmap2::{Advice, MmapMut};
use mmtwin_event::manifest::Evidence;
use std::fs;
use std::hint::black_box;

/// Latency from a node to a node.
#[derive(Clone, Copy, Debug)]
pub struct Latency {
    /// Node of the CPU.
    pub from: u32,
    /// Node of the memory.
    pub to: u32,
    /// Nanoseconds of a load.
    pub time: Figure,
}

/// Bytes of a cache line.
const LINE: usize = 64;

/// The smallest and the largest buffer.
const BYTES: (u64, u64) = (64 << 20, 1 << 30);

/// Loads of one round.
const LOADS: u32 = 1 << 18;

/// Measures from each node with CPUs to each node with memory. `cache` is the size of the largest cache. Nodes whose
/// memory cannot be had are left out, with a note. Fails if a CPU cannot be had.
pub fn measure(cpus: &[Cpu], evidence: &Evidence, cache: u64, notes: &mut Vec<String>) -> Result<Vec<Latency>, Error> {
    let mut from: Vec<Cpu> = cpus.to_vec();
    from.sort_by_key(|cpu| cpu.node);
    from.dedup_by_key(|cpu| cpu.node);
    let Some(&first) = from.first() else { return Ok(Vec::new()) };
    let memory: Vec<u32> = evidence.nodes.iter().filter(|n| n.memory.is_some_and(|kb| kb > 0)).map(|n| n.id).collect();
    let several = memory.len() > 1;
    // A kernel without NUMA has no nodes and all its memory in the node that CPUs are said to be on.
    let memory = if memory.is_empty() { vec![first.node] } else { memory };
    let mut latencies = Vec::new();
    for to in memory {
        let bytes = cache.saturating_mul(4).clamp(BYTES.0, BYTES.1);
        if let Some(free) = free_bytes(to).filter(|&free| free / 2 < bytes) {
            notes.push(format!("node {to}: {} MiB free, too little to measure its latency", free >> 20));
            continue;
        }
        let local = from.iter().copied().find(|cpu| cpu.node == to).unwrap_or(first);
        let chain = match on(local, || chain(bytes, several.then_some(to)))? {
            Ok(chain) => chain,
            Err(error) => {
                notes.push(format!("node {to}: its memory cannot be had: {error}"));
                continue;
            }
        };
        for cpu in &from {
            let rounds = on(*cpu, || (0..ROUNDS).map(|_| follow(&chain)).collect())?;
            latencies.extend(Figure::of(rounds).map(|time| Latency { from: cpu.node, to, time }));
        }
    }
    latencies.sort_by_key(|latency| (latency.from, latency.to));
    Ok(latencies)
}

/// Free memory of a node; `None` if the kernel does not tell.
fn free_bytes(node: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/sys/devices/system/node/node{node}/meminfo")).ok()?;
    let value = text.lines().find_map(|line| line.split_once("MemFree:"))?.1;
    value.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// A buffer, on this node if one is given, whose lines each hold the number of the next.
fn chain(bytes: u64, node: Option<u32>) -> std::io::Result<MmapMut> {
    if let Some(node) = node {
        bind(node)?;
    }
    let mut buffer = MmapMut::map_anon(bytes as usize)?;
    // Huge pages are better but not needed: a kernel without them refuses.
    let _ = buffer.advise(Advice::HugePage);
    let order = shuffle::order((buffer.len() / LINE) as u32);
    let next = order.iter().skip(1).chain(order.first());
    for (&line, next) in order.iter().zip(next) {
        buffer[line as usize * LINE..][..4].copy_from_slice(&next.to_ne_bytes());
    }
    Ok(buffer)
}

/// Follows a chain for some loads; nanoseconds each.
fn follow(chain: &[u8]) -> f64 {
    let next = |line: u32| {
        let start = line as usize * LINE;
        chain.get(start..start + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_ne_bytes)
    };
    let begin = clock::thread_cpu_time();
    let last = (0..LOADS).fold(0, |line, _| next(line));
    black_box(last);
    (clock::thread_cpu_time() - begin) as f64 / f64::from(LOADS)
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
    // call changes where memory that this thread touches later comes from, and nothing that exists already.
    let result = unsafe { libc::syscall(libc::SYS_set_mempolicy, libc::MPOL_BIND, mask.as_ptr(), bits) };
    if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::threads::cpus;
    use crate::evidence;

    #[test]
    fn a_chain_visits_every_line() {
        let chain = chain(LINE as u64 * 1000, None).unwrap();
        let mut line = 0;
        let mut seen = vec![false; 1000];
        for _ in 0..1000 {
            assert!(!std::mem::replace(&mut seen[line], true));
            line = u32::from_ne_bytes(chain[line * LINE..][..4].try_into().unwrap()) as usize;
        }
        assert_eq!(line, 0);
        assert!(follow(&chain) > 0.0);
    }

    /// On every machine with NUMA, memory can be bound to the node one is on, and not to one that is not there.
    #[test]
    fn memory_is_bound_to_nodes_that_exist() {
        let cpu = cpus().unwrap()[0];
        if free_bytes(cpu.node).is_some() {
            assert!(on(cpu, || chain(1 << 20, Some(cpu.node)).is_ok()).unwrap());
        }
        for gone in [1023, 1024, u32::MAX] {
            assert!(on(cpu, || bind(gone).is_err()).unwrap(), "{gone}");
        }
    }

    #[test]
    fn every_node_of_this_machine() {
        let mut notes = Vec::new();
        let evidence = evidence::collect();
        let cpus = cpus().unwrap();
        let latencies = measure(&cpus, &evidence, 0, &mut notes).unwrap();
        assert!(!latencies.is_empty() || !notes.is_empty());
        assert!(latencies.iter().all(|l| l.time.low > 0.0), "{latencies:?}");
    }
}
