//! Wait of an access: the latency of memory under the traffic of the epoch before.
//!
//! Every access misses the caches and moves one line from the page's node to the CPU's, a write one more back. Latency
//! follows the machine's measured curves ([`Memory`]). The traffic of an epoch decides the latencies of the next, mixed
//! half and half with what was known before, so that load and latency settle instead of swinging. Not modelled: caches,
//! the TLB, prefetching, several misses at once.

use super::Memory;
use crate::time::Ps;

/// Bytes of a cache line.
const LINE: f64 = 64.0;
/// Picoseconds of a nanosecond and of a second.
const PS_PER_NS: f64 = 1e3;
const PS_PER_S: f64 = 1e12;

/// Latencies and the traffic that decides them.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    memory: Memory,
    /// Picoseconds, by node of the CPU, then node of the memory.
    latency: Vec<f64>,
    /// Bytes per second of the epochs before, likewise.
    traffic: Vec<f64>,
    /// Bytes of this epoch.
    moved: Vec<f64>,
    /// When this epoch began.
    since: Ps,
}

impl Load {
    /// No traffic.
    pub(crate) fn new(memory: Memory) -> Load {
        let paths = memory.nodes() * memory.nodes();
        let mut load =
            Load { memory, latency: vec![0.0; paths], traffic: vec![0.0; paths], moved: vec![0.0; paths], since: 0 };
        load.set_latencies();
        load
    }

    /// Picoseconds of an access from a node to a page of the same or another node.
    #[inline]
    pub(crate) fn latency(&self, from: usize, to: usize) -> f64 {
        self.latency[from * self.memory.nodes() + to]
    }

    /// Counts accesses, `writes` the share of them that writes.
    #[inline]
    pub(crate) fn touch(&mut self, from: usize, to: usize, touches: f64, writes: f64) {
        self.moved[from * self.memory.nodes() + to] += touches * (1.0 + writes) * LINE;
    }

    /// An epoch ends.
    pub(crate) fn end_epoch(&mut self, now: Ps) {
        let time = now.saturating_sub(self.since) as f64 / PS_PER_S;
        self.since = now;
        if time <= 0.0 {
            return;
        }
        for (traffic, moved) in self.traffic.iter_mut().zip(&mut self.moved) {
            *traffic = 0.5 * (*traffic + *moved / time);
            *moved = 0.0;
        }
        self.set_latencies();
    }

    fn set_latencies(&mut self) {
        let nodes = self.memory.nodes();
        for from in 0..nodes {
            for to in 0..nodes {
                self.latency[from * nodes + to] = PS_PER_NS * self.memory.latency(from, to, &self.traffic);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Curve, Path};
    use super::*;

    #[test]
    fn latency_follows_the_traffic_of_the_epochs_before() {
        let curve = Curve::new(&[(0.5, 1.2), (1.0, 3.0)]).unwrap();
        let memory = Memory::new(1, vec![Path { idle_ns: 100.0, peak: 64e9 }], curve.clone(), curve).unwrap();
        let mut load = Load::new(memory);
        assert_eq!(load.latency(0, 0), 100_000.0);
        // A million reads in a millisecond are 64 GB/s; half of it counts in the first epoch, and writes twice.
        load.touch(0, 0, 500_000.0, 1.0);
        assert_eq!(load.latency(0, 0), 100_000.0);
        load.end_epoch(1_000_000_000);
        assert!((load.latency(0, 0) - 120_000.0).abs() < 1e-6);
        (2..40).for_each(|epoch| load.end_epoch(epoch * 1_000_000_000));
        assert!((load.latency(0, 0) - 100_000.0).abs() < 1.0);
    }
}
