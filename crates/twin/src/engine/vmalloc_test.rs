//! The vmalloc stress test as an action: its threads wait for each other and begin together.
//!
//! The test runs on the vmalloc model alone ([`crate::vmalloc`]): its threads keep their CPUs busy for as long as it
//! takes, and trace events carry the CPUs 0, 1, 2, ... of the test's own threads. Up to [`SINGLE`] areas every area is
//! followed; above that, and with more threads than CPUs, rates take their place, which write no trace events. The
//! pages of the areas are counted on their threads' nodes and not taken from the page allocator, nor are the counts of
//! pages that areas kept meanwhile held. Checked against a real kernel: scenarios/fidelity/vmalloc.toml.

use super::RunError;
use super::main_loop::{Engine, HORIZON, Step, Stop};
use super::process::{Activity, Working};
use crate::sched::RunQueues;
use crate::time::{Ns, PS_PER_NS};
use crate::vmalloc::stress::GUARD;
use crate::vmalloc::{Outcome, Params, StressError};
use crate::{build, vmalloc};
use mmtwin_event::results::Latency;
use mmtwin_scenario::workload::Action;
use std::collections::BTreeMap;

/// Areas that are followed one by one: some ten seconds of computing.
const SINGLE: u64 = 20_000_000;

impl Engine<'_> {
    /// A thread has reached the test. The last one runs it; all of them are done when it is over.
    pub(super) fn gather(&mut self, thread: usize, action: &Action, working: &mut Working) -> Result<Step, Stop> {
        let process = self.threads[thread].process;
        let threads = action.threads.numbers(self.scenario.processes[process].threads).len();
        if self.processes[process].gathered.len() + 1 < threads {
            self.processes[process].gathered.push(thread);
            return Ok(Step::Waiting);
        }
        let begun = self.kernel.clock(self.threads[thread].caller.cpu).div_ceil(PS_PER_NS);
        // The module is loaded first.
        let worker = &self.scenario.machine.worker;
        if working.paused == 0 && worker.module_wait.0 > 0 {
            return Ok(Step::Asleep((begun + worker.module_wait.0) * PS_PER_NS));
        }
        let start = begun + worker.module_load.0;
        let online = self.kernel.stat.online().len() as u32;
        let params = build::vmalloc_test(self.scenario, &action.kind, threads as u32, online);
        let params = params.map_err(RunError::from)?;
        let outcome = self.test(&params, start).map_err(RunError::from)?;
        let end = start.saturating_add(outcome.ran_ns).min(HORIZON) * PS_PER_NS;
        let pages = pages_per_thread(&params);
        // The test's own threads are placed like any, wherever those are that wait for them.
        let mut queues = RunQueues::new(&self.kernel.machine);
        for _ in 0..threads {
            let online = self.kernel.stat.online().iter().copied();
            if let Some(cpu) = queues.place(online, &self.kernel.machine) {
                self.kernel.count_pairs(cpu, pages);
            }
        }
        for other in std::mem::take(&mut self.processes[process].gathered) {
            self.kernel.wait(self.threads[other].caller.cpu, end);
            self.wake(other, end)?;
            if let Activity::Action(number, Some(at)) = &mut self.threads[other].activity {
                let (number, mut at) = (*number, std::mem::take(at));
                at.begun = start * PS_PER_NS;
                at.part.operations = outcome.freed / threads as u64;
                self.end_action(other, number, at);
                self.go_on(other)?;
            }
        }
        // Its work, where CPUs take turns; else it has a CPU for itself.
        let cpu = self.threads[thread].caller.cpu;
        match self.turns {
            Some(_) => self.kernel.spend(cpu, end - begun * PS_PER_NS),
            None => self.kernel.wait(cpu, end),
        }
        working.begun = start * PS_PER_NS;
        // The remainder of the threads' equal parts, and values of the whole test, are counted for the last thread.
        working.part.operations = outcome.freed - outcome.freed / threads as u64 * (threads as u64 - 1);
        working.part.more = figures(&outcome, &params);
        working.part.latency = Some(latency(&outcome));
        Ok(Step::Ended)
    }

    fn test(&mut self, params: &Params, start: Ns) -> Result<Outcome, StressError> {
        let seed = self.scenario.run.seed;
        if !is_short(params) {
            return vmalloc::stress_over_rates(params, seed);
        }
        self.kernel.probe.set_origin(start);
        let outcome = vmalloc::stress(params, &mut self.kernel.probe, seed);
        self.kernel.probe.set_origin(0);
        outcome
    }
}

/// Pages that a thread allocates for its areas, guard pages omitted.
fn pages_per_thread(params: &Params) -> u64 {
    let steps = vmalloc::stress::program(&params.workload, params.machine.online_cpus, 0, 0);
    let payload = |step: &vmalloc::stress::Step| {
        let pages: u64 = step.allocates.iter().filter(|&&pages| pages > 0).map(|&pages| u64::from(pages - GUARD)).sum();
        step.times * pages
    };
    steps.iter().map(payload).sum()
}

/// True if every area can be followed.
fn is_short(params: &Params) -> bool {
    let threads = params.workload.threads;
    let steps = vmalloc::stress::program(&params.workload, params.machine.online_cpus, 0, 0);
    // Threads differ in the order of their tests only.
    let freed: u64 = steps.iter().map(|step| step.times.saturating_mul(step.freed().0.into())).sum();
    threads <= params.machine.online_cpus && freed.saturating_mul(threads.into()) <= SINGLE
}

fn figures(outcome: &Outcome, params: &Params) -> BTreeMap<&'static str, f64> {
    let mut figures = BTreeMap::from([
        ("areas_purged", outcome.purged as f64),
        ("passes", outcome.passes as f64),
        ("passes_again", outcome.passes_again as f64),
        ("purge_subtractions", outcome.subtractions(params.rules.purge_accounting) as f64),
        ("purge_calls", outcome.calls.calls() as f64),
        ("purge_longest_us", outcome.calls.longest_ns() as f64 / 1e3),
        ("most_lazy_pages", outcome.most_lazy_pages as f64),
    ]);
    figures.extend(outcome.us_per_area().map(|us| ("purge_us_per_area", us)));
    figures
}

/// Latencies of `purge_vmap_node`.
fn latency(outcome: &Outcome) -> Latency {
    let slots = outcome.calls.slots().iter().enumerate();
    // The histogram's slots are of microseconds, the first from 0.
    let slots = slots.map(|(i, slot)| (if i == 0 { 0 } else { 1000 << i }, slot.calls)).collect();
    Latency { mean: outcome.calls.mean_us() * 1e3, slots, ..Latency::default() }
}
