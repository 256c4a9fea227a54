//! Puts the images of the processes into memory before the run ([`areas`]).

use super::RunError;
use super::main_loop::Engine;
use crate::build::{self, BuildError};
use crate::hw::PAGE_SIZE;
use crate::lab_guest::image::{ALWAYS, FIRST_ADDRESS, areas};
use crate::mm::prot_numa::{Mapping, Unit};
use crate::page_alloc::{Caller, Policy};

/// Makes the image of every process. Returns what each thread keeps touching, as units of mappings.
pub(super) fn load(engine: &mut Engine<'_>) -> Result<Vec<Vec<(usize, Unit)>>, RunError> {
    let mut touched = vec![Vec::new(); engine.threads.len()];
    let cpus: Vec<u32> = (0..engine.workload_threads).map(|thread| engine.first_cpu(thread)).collect();
    // They take their places when they start.
    cpus.iter().for_each(|&cpu| engine.queues.leave(cpu));
    let heap = build::heap(&engine.scenario.machine);
    for number in 0..engine.scenario.processes.len() {
        let threads = engine.processes[number].threads.clone();
        let mut address = FIRST_ADDRESS;
        for area in areas(threads.clone(), heap) {
            let owner = area.touched.first().map_or(threads.start, |(thread, _)| *thread);
            // The first thread has used its stack before it populates anything.
            let policy = policy(engine, number, owner != threads.start)?;
            let policy = match policy {
                Policy::Interleave(mask) => mask.nth(address / PAGE_SIZE).map_or(policy, Policy::Preferred),
                policy => policy,
            };
            let mut caller = Caller { cpu: cpus[owner], policy: Policy::Default, ..engine.threads[owner].caller };
            let region = area.region(&mut engine.kernel, &engine.memory, &mut caller, policy);
            engine.memory.regions.push(region);
            let region = engine.memory.regions.len() - 1;
            engine.processes[number].image.push(region);
            let mut mapping = Mapping::new(number, region, area.pages, address);
            mapping.pace = ALWAYS;
            mapping.balance = build::balance(&engine.scenario.processes[number].policy, &engine.scenario.machine);
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

/// The policy under which a process's memory is first needed; for stacks that are used while it `populates`, that of the
/// first region it populates.
fn policy(engine: &Engine<'_>, process: usize, populates: bool) -> Result<Policy, BuildError> {
    let config = &engine.scenario.processes[process];
    let populated = config.regions.iter().find(|region| region.populate && populates);
    let policy = populated.and_then(|region| region.populate_policy.as_ref()).unwrap_or(&config.policy);
    build::policy(policy, &engine.scenario.machine)
}
