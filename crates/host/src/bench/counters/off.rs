//! NUMA counters switched off by `vm.numa_stat`, as from 4.15 on.
//!
//! Models the branch at the top of `zone_statistics`. The kernel patches it out of the code; here it is a test of a flag
//! that is never written, which the processor predicts. Words and differences were zeroed by the switch, so every read
//! shows 0, at its usual cost.

use super::Design;
use super::separate_u16::SeparateU16;
use super::shared::ITEMS;
use std::sync::atomic::{AtomicBool, Ordering};

/// The design.
pub struct Off {
    counters: SeparateU16,
    on: AtomicBool,
}

impl Off {
    /// Switches counters off that have not counted yet.
    pub fn new(counters: SeparateU16) -> Off {
        Off { counters, on: AtomicBool::new(false) }
    }
}

impl Design for Off {
    #[inline]
    fn watermark(&self, node: usize) -> u64 {
        self.counters.watermark(node)
    }

    #[inline]
    fn count(&self, cpu: usize, node: usize) -> u64 {
        if self.on.load(Ordering::Relaxed) { self.counters.count(cpu, node) } else { 0 }
    }

    fn period(&self) -> u64 {
        1
    }

    fn fold(&self, cpu: usize, node: usize) {
        self.counters.fold(cpu, node);
    }

    fn numastat(&self, node: usize) -> [u64; ITEMS] {
        self.counters.numastat(node)
    }

    fn vmstat(&self) -> [u64; ITEMS] {
        self.counters.vmstat()
    }
}
