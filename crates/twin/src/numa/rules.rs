//! The tunables and variants of one kernel.
//!
//! `mmtwin_scenario`'s [`NumaBalancing`] names every switch; here are only what follows from several of them and the
//! units: jiffies and the kernel's clock tick.

use crate::time::Ns;
use mmtwin_scenario::kernel::{NumaBalancing, Sched};

/// Rules of a kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// Tunables and variants.
    pub config: NumaBalancing,
    /// The scheduler's.
    pub sched: Sched,
    /// Ticks per second.
    pub hz: u64,
    /// Bits of a CPU number in a cpupid: ceil(log2 NR_CPUS).
    pub cpu_bits: u32,
    /// `kernel.numa_balancing_migrate_deferred`.
    pub migrate_deferred: u32,
}

impl Rules {
    /// `TICK_NSEC`.
    pub(crate) fn tick(&self) -> Ns {
        1_000_000_000 / self.hz
    }

    /// Ticks since boot.
    pub(crate) fn jiffies(&self, now: Ns) -> u64 {
        now / self.tick()
    }

    /// `msecs_to_jiffies`: rounds up.
    pub(crate) fn ms_to_jiffies(&self, ms: u64) -> u64 {
        (ms * self.hz).div_ceil(1000)
    }
}

#[cfg(test)]
impl Rules {
    /// Kernel 6.1 as Debian builds it, or another bundle.
    pub(crate) fn of(release: &str) -> Rules {
        let text = format!(
            "[machine]\n[[machine.node]]\ncpus = \"0\"\nmemory = \"1 GiB\"\n[kernel]\nrelease = \"{release}\"\n"
        );
        let scenario = mmtwin_scenario::parse("test", &text, std::path::Path::new(""), &[]);
        crate::build::numa_rules(&scenario.unwrap_or_else(|faults| panic!("{faults}")).kernel)
    }
}
