//! The end of an epoch: accesses that were drawn for it are settled, the scheduler balances, and events are final.

use super::RunError;
use super::main_loop::Engine;
use super::process::Activity;
use crate::mm::tlb::Cpus;
use crate::time::{PS_PER_NS, Ps};
use crate::workload::accessor::Accessor;

impl Engine<'_> {
    /// Ends the epoch that ends at a time, and begins the next.
    pub(super) fn end_epoch(&mut self, clock: Ps) -> Result<(), RunError> {
        self.not_batchable = false;
        self.memory.load.end_epoch(clock);
        let accessors = self.threads.iter_mut().filter_map(|thread| match &mut thread.activity {
            Activity::Accessing(accessor) => Some(accessor),
            Activity::Nothing
            | Activity::Action(..)
            | Activity::Kswapd(_)
            | Activity::Kcompactd(_)
            | Activity::Flusher(_)
            | Activity::BioEndIo(_)
            | Activity::Reporting(_)
            | Activity::Exiting(_) => None,
        });
        self.memory.end_epoch(accessors.flat_map(Accessor::take_touches));
        self.note_cpus();
        // No CPU can be at work before this time any more.
        self.kernel.probe.drain(clock / PS_PER_NS, self.sink);
        (self.options.progress)(clock / PS_PER_NS);
        let epoch = self.scenario.run.epoch.0 * PS_PER_NS;
        self.epoch_ended = clock;
        self.epoch_end = clock - clock % epoch + epoch;
        self.numa_tick(clock);
        self.balance_load(clock)?;
        (0..self.queues.cpus() as u32).for_each(|cpu| self.queues.rotate(cpu));
        self.spread_kernel_threads()?;
        self.numa_begin_epoch(clock, self.epoch_end);
        Ok(())
    }

    /// Stores the CPUs of each region's threads, whose TLBs may have its pages.
    fn note_cpus(&mut self) {
        if self.memory.costs.interrupt == 0 && !self.reclaims() {
            return;
        }
        self.memory.regions.iter_mut().for_each(|region| region.cpus = Cpus::default());
        for process in self.processes.iter().filter(|process| process.lives()) {
            let cpus = self.threads[process.threads.clone()].iter().map(|thread| thread.caller.cpu);
            let cpus = cpus.fold(Cpus::default(), Cpus::and);
            for &region in process.regions.iter().chain(&process.image) {
                let of = &mut self.memory.regions[region].cpus;
                *of = of.with(cpus);
            }
        }
    }
}
