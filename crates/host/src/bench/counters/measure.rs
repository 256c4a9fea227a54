//! The measurement: which designs run on which CPUs, and for how long.

use super::{BASE, Design, LARGEST_S16, SERIES, THRESHOLDS, Variant, build, shared};
use crate::Error;
use crate::bench::figure::{Cycles, Figure, ROUNDS, in_rounds, mean};
use crate::bench::steps;
use crate::bench::threads::{Cpu, paced, together};
use crate::bench::work::Work;
use std::hint::black_box;
use std::time::Duration;

/// How to measure.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Time for each cell, over all its rounds.
    pub time: Duration,
    /// What an allocation and free does beside its counters.
    pub work: Duration,
}

/// What an update costs.
#[derive(Clone, Copy, Debug)]
pub struct Update {
    /// The design.
    pub variant: Variant,
    /// Its threshold, where it has one.
    pub threshold: Option<u32>,
    /// Threads that allocate.
    pub threads: usize,
    /// Nanoseconds per allocation and free.
    pub time: Figure,
}

/// Files that show the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum File {
    /// `numastat` of every node.
    Numastat,
    /// `/proc/vmstat`.
    Vmstat,
}

/// What a read costs.
#[derive(Clone, Copy, Debug)]
pub struct Read {
    /// The design.
    pub variant: Variant,
    /// What is read.
    pub file: File,
    /// Threads that allocate meanwhile.
    pub threads: usize,
    /// Nanoseconds per read of all six items.
    pub time: Figure,
}

/// Everything measured.
#[derive(Clone, Debug)]
pub struct Costs {
    /// CPUs that ran.
    pub cpus: usize,
    /// Nodes that they are on.
    pub nodes: usize,
    /// Each design with 1, 2, 4, ... and all CPUs.
    pub updates: Vec<Update>,
    /// The published thresholds on all CPUs, design by design, then counters switched off.
    pub thresholds: Vec<Update>,
    /// Reads by one CPU, with the others idle and busy.
    pub reads: Vec<Read>,
    /// Cycles of the time-stamp counter per nanosecond, where it has a fixed frequency.
    pub cycles: Option<f64>,
}

/// Measures on these CPUs. Fails if one of them is not available.
pub fn measure(cpus: &[Cpu], options: &Options) -> Result<Costs, Error> {
    let cycles = Cycles::begin();
    let bench = Bench::new(cpus, options)?;
    Ok(Costs {
        cpus: cpus.len(),
        nodes: bench.count,
        updates: bench.updates(&designs(cpus.len()))?,
        thresholds: bench.updates(&sweep(cpus.len()))?,
        reads: bench.reads()?,
        cycles: cycles.and_then(|c| c.per_nanosecond()),
    })
}

/// Measures each design on one CPU alone. Fails if it is not available.
pub fn measure_alone(cpu: Cpu, options: &Options) -> Result<Vec<Update>, Error> {
    Bench::new(&[cpu], options)?.updates(&designs(1))
}

/// A design with its threshold, and how many threads allocate.
type Cell = (Variant, Option<u32>, usize);

fn designs(cpus: usize) -> Vec<Cell> {
    let of = |variant: Variant| steps(cpus).into_iter().map(move |threads| (variant, variant.threshold(), threads));
    Variant::OF_KERNELS.into_iter().flat_map(of).collect()
}

/// The published sweep, design by design: in 8 bits as far as they hold, in 16 bits with a sign as the patched base
/// may have had it, and in 16 bits without as the series has it. Only within a design is the threshold all that changes.
fn sweep(cpus: usize) -> Vec<Cell> {
    let up_to = |variant, largest: u32| {
        THRESHOLDS.into_iter().filter(move |&t| t <= largest).map(move |t| (variant, Some(t), cpus))
    };
    let [s8, s16, u16] = [(Variant::ZoneS8, BASE), (Variant::ZoneS16, LARGEST_S16), (Variant::SeparateU16, SERIES)]
        .map(|(v, t)| up_to(v, t));
    s8.chain(s16).chain(u16).chain([(Variant::Off, None, cpus)]).collect()
}

struct Bench<'a> {
    cpus: &'a [Cpu],
    /// Index of each CPU's node.
    nodes: Vec<usize>,
    /// Number of nodes.
    count: usize,
    round: Duration,
    work: Work,
}

impl Bench<'_> {
    fn new<'a>(cpus: &'a [Cpu], options: &Options) -> Result<Bench<'a>, Error> {
        let nodes = shared::nodes(cpus);
        Ok(Bench {
            cpus,
            count: nodes.iter().max().map_or(0, |last| last + 1),
            nodes,
            round: options.time / ROUNDS,
            work: Work::lasting(options.work, cpus)?,
        })
    }

    fn updates(&self, cells: &[Cell]) -> Result<Vec<Update>, Error> {
        let figures = in_rounds(cells, |&(variant, threshold, threads)| {
            let design = build(variant, threshold.unwrap_or(SERIES), self.cpus)?;
            let times = together(&self.cpus[..threads], self.round, |cpu, gate| {
                design.allocate(cpu, threads, self.nodes[cpu], self.work, gate)
            })?;
            Ok(mean(&times))
        })?;
        let update = |(&(variant, threshold, threads), time)| Update { variant, threshold, threads, time };
        Ok(cells.iter().zip(figures).map(update).collect())
    }

    fn reads(&self) -> Result<Vec<Read>, Error> {
        let mut cells = Vec::new();
        for variant in Variant::OF_KERNELS {
            for file in [File::Numastat, File::Vmstat] {
                let busy = Some(self.cpus.len() - 1).filter(|&n| n > 0);
                cells.extend(Some(0).into_iter().chain(busy).map(|threads| (variant, file, threads)));
            }
        }
        let figures = in_rounds(&cells, |&(variant, file, threads)| {
            let design = build(variant, variant.threshold().unwrap_or(SERIES), self.cpus)?;
            let times = together(&self.cpus[..=threads], self.round, |cpu, gate| match cpu {
                0 => paced(gate, || self.read(&*design, file)),
                cpu => design.allocate(cpu, self.cpus.len(), self.nodes[cpu], self.work, gate),
            })?;
            Ok(times[0])
        })?;
        let read = |((variant, file, threads), time)| Read { variant, file, threads, time };
        Ok(cells.into_iter().zip(figures).map(read).collect())
    }

    fn read(&self, design: &dyn Design, file: File) {
        match file {
            File::Numastat => (0..self.count).for_each(|node| _ = black_box(design.numastat(node))),
            File::Vmstat => _ = black_box(design.vmstat()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_sweep_is_whole() {
        let cells = sweep(8);
        let at = |variant: Variant| cells.iter().filter(move |c| c.0 == variant).filter_map(|c| c.1);
        assert!(at(Variant::ZoneS8).eq([32, 64, 125]));
        assert!(at(Variant::ZoneS16).eq(THRESHOLDS[..8].iter().copied()));
        assert!(at(Variant::SeparateU16).eq(THRESHOLDS));
        assert_eq!(cells.last(), Some(&(Variant::Off, None, 8)));
        assert_eq!(designs(6).len(), Variant::OF_KERNELS.len() * 4);
    }
}
