//! kcompactd in a run: a thread of each node that is woken and shares its CPU, as kswapd's does.

use super::RunError;
use super::engine::{Engine, Step};
use super::process::Doing;
use crate::alloc::{Caller, Policy, ZONES};
use crate::compaction::Kcompactd;
use crate::kernel::Ps;
use crate::probe::Task;
use crate::reclaim::{Poll, World};

/// Id of the first kcompactd: behind those of 64 kswapds.
const FIRST_KCOMPACTD: i32 = 124;

impl Engine<'_> {
    /// Makes the threads, one per node with memory.
    pub(super) fn start_kcompactds(&mut self) {
        for node in 0..self.kernel.machine.nodes.len() {
            if (0..ZONES).all(|kind| self.kernel.alloc.zones[node * ZONES + kind].managed == 0) {
                continue;
            }
            let pid = FIRST_KCOMPACTD + node as i32;
            let cpu = self.kernel.machine.cpus_of(node).first().copied().unwrap_or(0);
            let caller = Caller::new(cpu, Task { pid, tgid: pid }, Policy::Default);
            let doing = Doing::Kcompactd(Box::new(Kcompactd::new(node)));
            let thread = self.add_kernel_thread(format!("kcompactd{node}"), caller, doing);
            self.kcompactds.push((node, thread));
        }
    }

    /// Wakes those who are asked for.
    pub(super) fn attend_compaction(&mut self, at: Ps) -> Result<(), RunError> {
        for node in std::mem::take(&mut self.kernel.compaction.wakes) {
            let Some(&(_, thread)) = self.kcompactds.iter().find(|(of, _)| *of == node) else { continue };
            let cpus = self.kernel.machine.cpus_of(node);
            self.wake_kernel_thread(thread, cpus, at)?;
        }
        Ok(())
    }

    /// Lets a kcompactd work until a time.
    pub(super) fn compact_node(&mut self, thread: usize, until: Ps) -> Step {
        let at = &mut self.threads[thread];
        let Doing::Kcompactd(kcompactd) = &mut at.doing else { return Step::Ended };
        let (cpu, task) = (at.caller.cpu, at.caller.task);
        let mut world = World { kernel: &mut self.kernel, memory: &mut self.memory, cpu, task };
        while world.kernel.clock(cpu) < until && !world.kernel.wants_attention() {
            match kcompactd.step(&mut world) {
                Poll::On => {}
                Poll::Sleep(until, _) => return Step::Asleep(until),
                Poll::Done(()) => return Step::Waiting,
            }
        }
        Step::On
    }
}
