//! The words that all CPUs share: a zone's, and the system's.
//!
//! A zone's array begins on a line of its own. In 4.13 the six NUMA items are words 12 to 17 and free CMA pages word
//! 18; later the zone has 13 items and the NUMA words follow, so that free CMA pages are word 12 and the NUMA words 13
//! to 18. Free pages are word 0 in both. The system has an array of the same kind.

use crate::Error;
use crate::bench::threads::{Cpu, Padded, on};
use std::sync::atomic::{AtomicI64, Ordering};

/// NUMA items: hit, miss, foreign, interleave, local, other.
pub const ITEMS: usize = 6;

/// Index of `numa_hit` among them.
pub const HIT: usize = 0;

/// Index of `numa_local` among them.
pub const LOCAL: usize = 4;

const WORDS: usize = 19;

/// Where the NUMA words are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Among the zone's items, before the free CMA pages.
    ZoneItems,
    /// Behind the zone's items.
    Behind,
}

impl Place {
    fn first(self) -> usize {
        match self {
            Place::ZoneItems => 12,
            Place::Behind => 13,
        }
    }

    fn free_cma(self) -> usize {
        match self {
            Place::ZoneItems => 18,
            Place::Behind => 12,
        }
    }
}

/// An array of words. A page of its own, so that it can lie on one node.
#[repr(align(4096))]
struct Words([AtomicI64; WORDS]);

impl Words {
    fn new() -> Box<Words> {
        Box::new(Words(std::array::from_fn(|_| AtomicI64::new(0))))
    }
}

/// The shared words of a machine.
pub struct Shared {
    zones: Vec<Box<Words>>,
    system: Box<Words>,
    place: Place,
}

/// Numbers nodes from 0, in the order of their first CPU. Returns the index of each CPU's node.
pub fn nodes(cpus: &[Cpu]) -> Vec<usize> {
    let mut seen: Vec<u32> = Vec::new();
    let mut index = |node: u32| {
        seen.iter().position(|&n| n == node).unwrap_or_else(|| {
            seen.push(node);
            seen.len() - 1
        })
    };
    cpus.iter().map(|cpu| index(cpu.node)).collect()
}

impl Shared {
    /// A zone for each node that has one of these CPUs, all words 0. Each is first touched on its node, which is where
    /// the kernel then puts it. Fails if a CPU is not available.
    pub fn new(cpus: &[Cpu], place: Place) -> Result<Shared, Error> {
        let of = nodes(cpus);
        let count = of.iter().max().map_or(0, |last| last + 1);
        let first_cpus = (0..count).filter_map(|node| Some(cpus[of.iter().position(|&n| n == node)?]));
        let zones: Result<Vec<_>, Error> = first_cpus.map(|cpu| on(cpu, Words::new)).collect();
        Ok(Shared { zones: zones?, system: Words::new(), place })
    }

    /// Number of zones.
    pub fn zones(&self) -> usize {
        self.zones.len()
    }

    /// Adds to an item of a zone and of the system: two locked additions.
    #[inline]
    pub fn add(&self, node: usize, item: usize, by: i64) {
        let word = self.place.first() + item;
        self.zones[node].0[word].fetch_add(by, Ordering::Relaxed);
        self.system.0[word].fetch_add(by, Ordering::Relaxed);
    }

    /// The free pages of a zone with its free CMA pages, as the watermark test reads them.
    #[inline]
    pub fn watermark(&self, node: usize) -> u64 {
        let words = &self.zones[node].0;
        (words[0].load(Ordering::Relaxed) + words[self.place.free_cma()].load(Ordering::Relaxed)) as u64
    }

    /// A zone's item as it stands; negative for a moment where differences go both ways.
    #[inline]
    pub fn zone(&self, node: usize, item: usize) -> i64 {
        self.zones[node].0[self.place.first() + item].load(Ordering::Relaxed)
    }

    /// A plain read of a zone's items: negative ones are shown as 0.
    #[inline]
    pub fn plain(&self, node: usize) -> [u64; ITEMS] {
        std::array::from_fn(|item| self.zone(node, item).max(0) as u64)
    }

    /// A plain read of the system's items: negative ones are shown as 0.
    #[inline]
    pub fn system(&self) -> [u64; ITEMS] {
        let first = self.place.first();
        std::array::from_fn(|item| self.system.0[first + item].load(Ordering::Relaxed).max(0) as u64)
    }
}

/// What each CPU has of its own for each zone. A thread counts in its own node's zone only, but a read of a zone looks
/// at all CPUs.
pub struct Slots<T>(Vec<Vec<Padded<T>>>);

impl<T> Slots<T> {
    /// A slot for each zone and CPU.
    pub fn new(zones: usize, cpus: usize, slot: impl Fn() -> T) -> Slots<T> {
        Slots((0..zones).map(|_| (0..cpus).map(|_| Padded(slot())).collect()).collect())
    }

    /// The slot of a CPU for a zone.
    #[inline]
    pub fn get(&self, node: usize, cpu: usize) -> &T {
        &self.0[node][cpu].0
    }

    /// All CPUs' slots for a zone.
    pub fn zone(&self, node: usize) -> impl Iterator<Item = &T> {
        self.0[node].iter().map(|slot| &slot.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_numbered_by_their_first_cpu() {
        let on = |nodes: &[u32]| nodes.iter().map(|&node| Cpu { id: 0, node }).collect::<Vec<_>>();
        assert_eq!(nodes(&on(&[2, 2, 0, 2, 5])), [0, 0, 1, 0, 2]);
        assert!(nodes(&[]).is_empty());
    }

    #[test]
    fn numa_words_end_where_the_layouts_say() {
        assert_eq!(Place::Behind.first() + ITEMS, WORDS);
        assert_eq!(Place::ZoneItems.first() + ITEMS, Place::ZoneItems.free_cma());
    }
}
