//! The tunables and variants of one kernel, and the generations of the code.
//!
//! `mmtwin_scenario`'s [`NumaBalancing`] names every switch; here are only what follows from several of them and the
//! units: jiffies and the kernel's clock tick.

use crate::time::Ns;
use mmtwin_scenario::kernel::{NumaBalancing, Rules as Generation};

/// Generations of the code, in order of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Era {
    /// 3.13 and 3.14-rc.
    V3_13,
    /// The 2014 series as posted.
    V2014,
    /// As merged, to about 4.13.
    V3_18,
    /// 4.14 to 4.17.
    V4_14,
    /// 4.19.
    V4_19,
    /// 6.1.
    V6_1,
    /// 6.8 and newer.
    V6_12,
}

/// What a kernel does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// Tunables and variants.
    pub config: NumaBalancing,
    /// Generation.
    pub era: Era,
    /// Ticks per second.
    pub hz: u64,
    /// Bits of a CPU number in a cpupid: ceil(log2 NR_CPUS).
    pub cpu_bits: u32,
    /// `kernel.numa_balancing_migrate_deferred`.
    pub migrate_deferred: u32,
    /// `imbalance_pct` of the lowest NUMA domain.
    pub imbalance_pct: u64,
    /// Within so long a task that ran is cache-hot.
    pub migration_cost: Ns,
    /// Failed balancings before a task that should stay is moved.
    pub cache_nice_tries: u32,
}

impl Rules {
    /// The generation of a scenario's rules.
    pub(crate) fn era_of(config: Generation) -> Era {
        match config {
            Generation::V3_13 => Era::V3_13,
            Generation::V2014 => Era::V2014,
            Generation::V3_18 => Era::V3_18,
            Generation::V4_14 => Era::V4_14,
            Generation::V4_19 => Era::V4_19,
            Generation::V6_1 => Era::V6_1,
            Generation::V6_12 => Era::V6_12,
        }
    }

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
