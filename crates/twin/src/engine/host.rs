//! CPUs that wait for one of the host's ([`Host`]).

use super::main_loop::Engine;
use crate::lab_guest::host::Host;
use crate::time::Ps;

impl Engine<'_> {
    /// True if a CPU of the machine has one of the host's.
    pub(crate) fn has_host_cpu(&self, cpu: u32) -> bool {
        self.host.as_ref().is_none_or(|host| host.runs(cpu))
    }

    /// Reassigns the host's CPUs after changes of the busy CPUs since the last call.
    pub(crate) fn share_host(&mut self) {
        let Some(mut host) = self.host.take() else { return };
        host.note(|cpu| self.kernel.clock(cpu));
        let cpus = 0..self.queues.cpus() as u32;
        let (busy, idle): (Vec<u32>, Vec<u32>) = cpus.partition(|&cpu| self.kernel.is_busy(cpu));
        for cpu in idle {
            let next = if host.sleeps(cpu) { None } else { host.sleep(cpu) };
            next.into_iter().for_each(|next| self.run_on_host(&mut host, next, self.kernel.clock(cpu)));
        }
        for cpu in busy {
            if host.sleeps(cpu) && host.wake(cpu) {
                self.run_on_host(&mut host, cpu, self.kernel.clock(cpu));
            }
        }
        self.host = Some(host);
    }

    /// The host's tick.
    pub(crate) fn tick_host(&mut self, at: Ps) {
        let Some(mut host) = self.host.take() else { return };
        host.note(|cpu| self.kernel.clock(cpu));
        for cpu in host.tick() {
            self.run_on_host(&mut host, cpu, at);
        }
        self.host = Some(host);
    }

    fn run_on_host(&mut self, host: &mut Host, cpu: u32, at: Ps) {
        self.kernel.wait(cpu, at);
        host.begin(cpu, self.kernel.clock(cpu));
        self.make_ready(cpu);
    }
}
