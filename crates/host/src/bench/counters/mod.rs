//! The page allocator's NUMA counters, design by design: what an update and a read cost on this machine.
//!
//! An operation is one order-0 allocation and free, as the published loop (page_bench03) makes them: read the zone's
//! free-page words for the watermark, count a hit and a local allocation, and do what else an allocation does, here
//! [`Work`] for a given time. Each node with CPUs has one zone; each CPU allocates from its own node, as in
//! the publication.
//!
//! Not modelled: the zones beside Normal, which make reads more expensive; the other items that share a CPU's slot; the
//! fold that every CPU does once a second or two, too rare to be seen. Words lie in the zone's array as in the kernel,
//! because it decides which line an update takes away from the readers of the free pages. Checked by tests: once all
//! threads are done, snapshot reads are exact and plain ones within the bounds of each design.

pub mod event;
pub mod measure;
pub mod off;
pub mod separate_s8;
pub mod separate_u16;
pub mod shared;
pub mod zone_items;

pub use measure::{Costs, File, Options, Read, Update, measure, measure_alone};

use super::threads::{Cpu, Gate, paced};
use super::work::Work;
use shared::{ITEMS, Place};
use std::time::Duration;

/// The thresholds of the published table.
pub const THRESHOLDS: [u32; 9] = [32, 64, 125, 256, 512, 4096, 20_000, 30_000, 65_533];

/// The base of the published table: the largest threshold that the kernel's formula gives.
pub const BASE: u32 = 125;

/// The threshold of the published series.
pub const SERIES: u32 = 65_533;

/// The largest threshold of differences of 16 bits with a sign.
pub const LARGEST_S16: u32 = 32_766;

/// What an allocation and free takes beside its counters: 176 cycles, published for one thread with statistics off, at
/// the 2.194 GHz of the machine of the threshold table.
pub const ALLOCATION: Duration = Duration::from_nanos(80);

/// Designs of the NUMA counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// Items among the zone's own (4.13).
    ZoneS8,
    /// The same with 16 bits, for thresholds that 8 bits cannot hold.
    ZoneS16,
    /// An array of their own, else the same: the first step of the series.
    SeparateS8,
    /// An array of their own, 16 bits, a fixed threshold, snapshot reads (4.14 to 5.13).
    SeparateU16,
    /// The same, switched off by `vm.numa_stat` (4.15 on).
    Off,
    /// Per-CPU words that only reads fold (5.14 on).
    Events,
}

impl Variant {
    /// Those of kernels, oldest first.
    pub const OF_KERNELS: [Variant; 5] =
        [Variant::ZoneS8, Variant::SeparateS8, Variant::SeparateU16, Variant::Off, Variant::Events];

    /// The name that scenarios use.
    pub fn name(self) -> &'static str {
        match self {
            Variant::ZoneS8 => "zone-s8",
            Variant::ZoneS16 => "zone-s16",
            Variant::SeparateS8 => "separate-s8",
            Variant::SeparateU16 => "separate-u16",
            Variant::Off => "off",
            Variant::Events => "events",
        }
    }

    /// The threshold of an ordinary kernel on a large machine.
    pub fn threshold(self) -> Option<u32> {
        match self {
            Variant::ZoneS8 | Variant::ZoneS16 | Variant::SeparateS8 => Some(BASE),
            Variant::SeparateU16 => Some(SERIES),
            Variant::Off | Variant::Events => None,
        }
    }
}

/// The counters of a machine: zones by node, slots by index of the CPU, both from 0.
pub trait Design: Sync {
    /// The free pages of a node's zone, as a watermark test reads them.
    fn watermark(&self, node: usize) -> u64;

    /// Counts one allocation by this CPU from its own node: `numa_hit` and `numa_local`. Returns what it read.
    fn count(&self, cpu: usize, node: usize) -> u64;

    /// Allocations from one update of the shared words to the next, in the long run; 1 if they are never updated.
    fn period(&self) -> u64;

    /// Moves this CPU's differences to the shared words, as the periodic fold does; called by its owner only.
    fn fold(&self, cpu: usize, node: usize);

    /// `numastat` of a node: hit, miss, foreign, interleave, local, other.
    fn numastat(&self, node: usize) -> [u64; ITEMS];

    /// The same of the system, as `/proc/vmstat` shows them.
    fn vmstat(&self) -> [u64; ITEMS];

    /// Allocates and frees until the run is over, then folds what the CPU has; nanoseconds each. A method, so that it
    /// is compiled for each design.
    fn allocate(&self, cpu: usize, cpus: usize, node: usize, work: Work, gate: &Gate) -> f64 {
        // CPUs that begin at the same point would overflow together, which those of a running machine do not.
        for _ in 0..self.period() * cpu as u64 / cpus as u64 {
            self.count(cpu, node);
        }
        let mut chain = 1;
        let nanoseconds = paced(gate, || {
            // Looking at the clock of the run now and then only: its line is shared.
            for _ in 0..BATCH {
                chain ^= self.watermark(work.once_known(node, chain));
                chain ^= self.count(work.once_known(cpu, chain), node);
                chain = work.after(chain);
            }
        });
        self.fold(cpu, node);
        nanoseconds / f64::from(BATCH)
    }
}

/// Allocations between two looks at whether the run is over.
const BATCH: u32 = 64;

/// Builds a design for a machine, with a threshold that its differences hold. Fails if the zones cannot be put on their
/// nodes.
pub fn build(variant: Variant, threshold: u32, cpus: &[Cpu]) -> Result<Box<dyn Design>, crate::Error> {
    let among = matches!(variant, Variant::ZoneS8 | Variant::ZoneS16);
    let shared = shared::Shared::new(cpus, if among { Place::ZoneItems } else { Place::Behind })?;
    let slots = cpus.len();
    Ok(match variant {
        Variant::ZoneS8 => Box::new(zone_items::S8::new(shared, slots, threshold)),
        Variant::ZoneS16 => Box::new(zone_items::S16::new(shared, slots, threshold)),
        Variant::SeparateS8 => Box::new(separate_s8::SeparateS8::new(shared, slots, threshold)),
        Variant::SeparateU16 => Box::new(separate_u16::SeparateU16::new(shared, slots, threshold)),
        Variant::Off => Box::new(off::Off::new(separate_u16::SeparateU16::new(shared, slots, SERIES))),
        Variant::Events => Box::new(event::EventCounters::new(shared, slots)),
    })
}

#[cfg(test)]
mod tests;
