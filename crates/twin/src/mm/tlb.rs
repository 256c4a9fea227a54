//! Flushing the TLBs of other CPUs: `flush_tlb_mm_range`, `try_to_unmap_flush` (6.1 to 7.3).
//!
//! Who takes a page out of the page tables of a process, or puts another in its place, waits until the CPUs that run its
//! threads have flushed, and interrupts them. An idle CPU flushes when it runs a thread again (lazy TLB), which takes no
//! time here; a page that is marked for hinting faults is in no TLB (`pte_accessible`). Where the threads run is noted once
//! an epoch. Not modelled: flushes of mappings that are made read-only (writeback, marking for hinting faults); CPUs from
//! the 64th on are one. Checked by a test here and by guests (docs/model/notebook.md, "Copies of the zero page in several
//! threads").

use crate::mm::costs::FaultCosts;
use crate::mm::kernel::Kernel;

/// Where the threads of a region's processes run: a bit for each CPU, the last one for all from there on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cpus(u64);

impl Cpus {
    /// And on those.
    pub(crate) fn with(self, others: Cpus) -> Cpus {
        Cpus(self.0 | others.0)
    }

    /// And on one more.
    pub(crate) fn and(self, cpu: u32) -> Cpus {
        Cpus(self.0 | 1 << cpu.min(63))
    }

    /// Those without one.
    pub(crate) fn without(self, cpu: u32) -> Cpus {
        Cpus(self.0 & !(1 << cpu.min(63)))
    }

    fn has(self, cpu: u32) -> bool {
        self.0 >> cpu.min(63) & 1 == 1
    }
}

/// A CPU waits until others have flushed, which interrupts those of them that are at work; false if there are none.
pub(crate) fn flush(kernel: &mut Kernel, costs: &FaultCosts, cpu: u32, on: Cpus) -> bool {
    let others = on.without(cpu);
    if others == Cpus::default() {
        return false;
    }
    let mut any = false;
    for other in 0..kernel.machine.cpus.len() as u32 {
        if others.has(other) && kernel.is_busy(other) {
            kernel.interrupt(other, costs.interrupt);
            any = true;
        }
    }
    if any {
        kernel.wait_for_others(cpu);
    }
    any
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_beyond_the_last_bit_are_one() {
        let on = Cpus::default().and(3).and(70).without(3);
        assert_eq!([3, 62, 63, 447].map(|cpu| on.has(cpu)), [false, false, true, true]);
        assert_eq!(on.with(Cpus::default().and(3)), Cpus::default().and(63).and(3));
    }
}
