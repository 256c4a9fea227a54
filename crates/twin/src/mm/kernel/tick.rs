//! The tick (`tick_sched_timer`, 4.13 to 7.3): a timer interrupt of every CPU, `kernel.hz` times a second. One that is idle
//! for longer stops it (`tick_nohz_idle_stop_tick`).
//!
//! A measured time (`machine.cost.tick`), paid when a CPU's next step begins, at once for all ticks since the last. The tick
//! of an idle CPU (`tick_idle`) takes time of the others where all share that of one. Not modelled: what a tick does, which
//! has rules of its own where it matters (scheduler, counters, NUMA scanner), and how long a CPU expects to be idle, for
//! which the time that it was idle is taken. Checked by tests and by think time and sleeps in guests (docs/model/notebook.md,
//! "Time of samples and ticks" and "Short sleeps").

use super::Kernel;
use crate::time::Ps;

/// What ticks take.
#[derive(Clone, Debug, Default)]
pub(super) struct Ticks {
    work: Ps,
    /// That of an idle CPU.
    idle: Ps,
    /// By CPU: until when its ticks are paid; empty: they take no time.
    paid: Vec<Ps>,
}

impl Ticks {
    /// A CPU was idle until a time: what its ticks took since they were paid, which is a step before it went idle, if it did
    /// not stop them.
    pub(super) fn begin(&mut self, cpu: u32, at: Ps, tick: Ps) -> Ps {
        let Some(paid) = self.paid.get_mut(cpu as usize) else { return 0 };
        let since = std::mem::replace(paid, at);
        if at.saturating_sub(since) > tick { 0 } else { (at / tick - since / tick) * self.idle }
    }
}

impl Kernel {
    /// Sets what a tick takes of a busy CPU, and of an idle one.
    pub(crate) fn set_tick_costs(&mut self, work: Ps, idle: Ps) {
        let cpus = if work > 0 || idle > 0 { self.clocks.len() } else { 0 };
        self.ticks = Ticks { work, idle, paid: vec![0; cpus] };
    }

    /// The first tick after a time.
    pub(crate) fn tick_after(&self, at: Ps) -> Ps {
        at - at % self.tick + self.tick
    }

    /// A busy CPU pays for its ticks until now. True if there were any.
    pub(crate) fn pay_ticks(&mut self, cpu: u32) -> bool {
        let clock = self.clocks[cpu as usize];
        let Some(paid) = self.ticks.paid.get_mut(cpu as usize) else { return false };
        let ticks = clock / self.tick - *paid / self.tick;
        *paid = clock;
        if ticks > 0 {
            self.spend(cpu, ticks * self.ticks.work);
        }
        ticks > 0
    }
}
