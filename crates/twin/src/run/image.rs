//! What a process has besides its regions: heap, data, and the stacks of its threads, as far as NUMA balancing sees it.
//!
//! Scanners mark these areas like any other, threads fault in them on their own node all the time, and the per-VMA
//! filter of 6.12 takes as long for an area of two pages as for a large one; so the smallest programs decide when scan
//! periods grow and which pass is finished. Areas, how many of their pages are there, and how many a thread keeps
//! touching are those of a worker of mmtwin-agent (`smaps`, `Referenced` 2 s after `clear_refs`; a heap as in a guest).
//! They are put where their threads begin, before the run's first sample. Left out: what is never scanned (code,
//! read-only data, guard pages).

use super::RunError;
use super::engine::Engine;
use crate::access::{Mapping, Region, Shape, Unit};
use crate::alloc::{Caller, Policy};
use crate::kernel::KernelError;
use crate::machine::PAGE_SIZE;
use std::ops::Range;

/// Addresses of images: above all regions.
const FIRST_ADDRESS: u64 = 0x7ff0_0000_0000;

/// Touches per second of a page that is touched all the time.
const ALWAYS: f64 = 1e3;

/// An area of a process.
struct Area {
    pages: u64,
    /// Pages that are there, the first ones.
    present: u64,
    /// Of these, those that a thread keeps touching; the first thread before the others.
    touched: Vec<(usize, Range<u32>)>,
}

/// The areas of a process with these threads, in ascending order of address.
fn areas(threads: Range<usize>) -> Vec<Area> {
    let (main, others) = (threads.start, threads.start + 1..threads.end);
    let untouched = |pages, present| Area { pages, present, touched: Vec::new() };
    let heaps = others.clone().zip(0..).map(|(thread, i)| (thread, 6 + 3 * i..9 + 3 * i));
    let heap: Vec<_> = std::iter::once((main, 0..6)).chain(heaps).collect();
    // More threads have more of it.
    let used = 213 + 3 * threads.len() as u64;
    let mut areas = vec![Area { pages: used + 44, present: used, touched: heap }, untouched(4, 4), untouched(6, 3)];
    // Stacks for signals, which nobody gets, then those of the threads.
    areas.extend(others.clone().map(|_| untouched(2, 0)));
    areas.extend(others.map(|thread| Area { pages: 64, present: 3, touched: vec![(thread, 0..2)] }));
    // The first thread's stack for signals, the vDSO, the stack.
    areas.extend([untouched(2, 0), untouched(2, 0), Area { pages: 33, present: 8, touched: vec![(main, 0..2)] }]);
    areas
}

/// Makes the image of every process. Gives back what each thread keeps touching, as units of mappings.
pub(super) fn load(engine: &mut Engine<'_>) -> Result<Vec<Vec<(usize, Unit)>>, RunError> {
    let mut touched = vec![Vec::new(); engine.threads.len()];
    let cpus: Vec<u32> = (0..engine.threads.len()).map(|thread| engine.first_cpu(thread)).collect();
    // They take their places when they start.
    cpus.iter().for_each(|&cpu| engine.queues.leave(cpu));
    for number in 0..engine.processes.len() {
        let threads = engine.processes[number].threads.clone();
        let mut address = FIRST_ADDRESS;
        for area in areas(threads.clone()) {
            let owner = area.touched.first().map_or(threads.start, |(thread, _)| *thread);
            let region = present(engine, owner, cpus[owner], &area)?;
            engine.processes[number].image.push(region);
            let mut mapping = Mapping::new(number, region, area.pages, address);
            mapping.pace = ALWAYS;
            address += (area.pages + 1) * PAGE_SIZE;
            for (thread, pages) in area.touched {
                let units = pages.map(|page| (engine.memory.mappings.len(), Unit { page, huge: false }));
                touched[thread].extend(units);
            }
            engine.memory.mappings.push(mapping);
        }
    }
    Ok(touched)
}

/// An area's pages, from the CPU on which the thread begins that owns it. The number of the region.
fn present(engine: &mut Engine<'_>, owner: usize, cpu: u32, area: &Area) -> Result<usize, RunError> {
    let nodes = engine.kernel.machine.nodes.len();
    let (pages, parts, anon, file, huge, exec, locked, policy) =
        (area.pages, 1, true, false, false, false, false, Policy::Default);
    let shape = Shape { pages, parts, anon, file, huge, exec, locked, policy };
    let mut region = Region::new(shape, nodes, engine.memory.next_base());
    region.users = 1;
    let mut caller = Caller { cpu, policy: Policy::Default, ..engine.threads[owner].caller };
    for page in 0..area.present {
        let fault = region.fault(&mut engine.kernel, &mut caller, &engine.memory.costs, page, true);
        fault.map_err(KernelError::from)?;
    }
    engine.memory.regions.push(region);
    Ok(engine.memory.regions.len() - 1)
}
