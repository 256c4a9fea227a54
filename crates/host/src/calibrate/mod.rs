//! Measuring this machine for the twin: what atomics cost between its CPUs and how far its memory is.
//!
//! [`measure`] takes the figures, [`machine_file::write`] makes the file of them that scenarios name as their machine.

pub mod atomics;
mod bandwidth;
mod latency;
pub mod machine_file;
pub mod memory;
pub mod topology;

use crate::bench::counters::{Options, Update, measure_alone};
use crate::bench::figure::{Cycles, Figure};
use crate::bench::threads::{Cpu, cpus};
use crate::{Error, evidence};
use atomics::{Contended, Pair};
use memory::Access;
use mmtwin_event::manifest::Evidence;
use std::time::Duration;
use topology::{Between, Place};

/// Everything measured, and what it was measured on.
#[derive(Clone, Debug)]
pub struct Calibration {
    /// Machine and kernel.
    pub evidence: Evidence,
    /// CPUs that were measured.
    pub cpus: Vec<Cpu>,
    /// Where each of them is.
    pub places: Vec<Place>,
    /// Nanoseconds of a locked addition to a line that nobody else uses, over all CPUs.
    pub uncontended: Option<Figure>,
    /// Every pair of CPUs, the lower number first.
    pub pairs: Vec<Pair>,
    /// 2, 4, ... and all CPUs adding to one line.
    pub contended: Vec<Contended>,
    /// From each node with CPUs to each node with memory.
    pub memory: Vec<Access>,
    /// Each design of the NUMA counters on one CPU alone.
    pub counters: Vec<Update>,
    /// Cycles of the time-stamp counter per nanosecond, where it has a fixed frequency.
    pub cycles: Option<f64>,
    /// What could not be measured, and why.
    pub notes: Vec<String>,
}

impl Calibration {
    /// The transfer of a line between CPUs as close as this: the median pair. `None` if there are none.
    pub fn transfer(&self, between: Between) -> Option<Figure> {
        Figure::of(self.at(between).map(|pair| pair.transfer.median).collect())
    }

    /// The hand-off between two CPUs as close as this that add: the median pair. `None` if there are none.
    pub fn handoff(&self, between: Between) -> Option<Figure> {
        Figure::of(self.at(between).map(|pair| pair.handoff.median).collect())
    }

    /// Threads of the core that has most of them.
    pub fn threads_per_core(&self) -> usize {
        self.places.iter().map(|place| place.siblings.len()).max().unwrap_or(1)
    }

    fn at(&self, between: Between) -> impl Iterator<Item = &Pair> {
        self.pairs.iter().filter(move |pair| {
            let (a, b) = pair.cpus;
            Between::of(&self.places[a], self.cpus[b].id, &self.places[b]) == between
        })
    }
}

/// Measures this machine; `progress` hears what comes next. Fails if a CPU is not available.
pub fn measure(progress: &mut dyn FnMut(&str)) -> Result<Calibration, Error> {
    let cycles = Cycles::begin();
    let evidence = evidence::collect();
    let cpus = cpus()?;
    let places = topology::places(&cpus);
    progress("atomics of every CPU");
    let uncontended = atomics::uncontended(&cpus)?;
    progress(&format!(
        "transfers and hand-offs between {} pairs of CPUs",
        cpus.len() * cpus.len().saturating_sub(1) / 2
    ));
    let pairs = atomics::pairs(&cpus)?;
    progress("contended atomics");
    let contended = atomics::contended(&cpus)?;
    progress("counters of one CPU");
    // Bare: beside the work of an allocation, differences of a nanosecond drown on a busy machine.
    let alone = Options { time: Duration::from_millis(100), work: Duration::ZERO };
    let counters = cpus.first().map_or(Ok(Vec::new()), |&cpu| measure_alone(cpu, &alone))?;
    progress("memory");
    let mut notes = Vec::new();
    let memory = memory::measure(&cpus, &evidence, topology::caches_of_a_node(&cpus, &places), &mut notes)?;
    let cycles = cycles.and_then(|c| c.per_nanosecond());
    Ok(Calibration { evidence, cpus, places, uncontended, pairs, contended, memory, counters, cycles, notes })
}
