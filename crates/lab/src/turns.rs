//! CPUs that the guest's kernel does not use, so that those it uses have equal parts of QEMU's time in mode exact.
//!
//! QEMU 10 (`accel/tcg/tcg-accel-ops-rr.c`) runs the CPUs one after another. A turn is the time to the next timer, divided
//! by the number of all CPUs, idle ones too, so rounds become shorter until the timer is due; the last instructions are
//! those of the first busy CPU. When the next one is about to run, the timer runs, and a new round begins behind that: its
//! first turns, the longest, are those of the CPUs from the third on. Four busy CPUs of four get 14, 14, 39 and 33 % of
//! the time while timers of devices end the rounds; the CPUs' own ticks begin rounds elsewhere. The more CPUs there
//! are, the shorter is the first turn: with 16, four busy ones get 25 % each (24.5 to 25.4), if the HPET is stopped
//! (module/hpet.c). Idle ones take time of the host: docs/model/notebook.md has figures.

use crate::options::Mode;
use crate::plan::Smp;
use mmtwin_scenario::machine::qemu_cpus;

/// What QEMU is told of CPUs; sockets beyond the guest's own are those that it does not use.
pub(crate) fn with_idle(smp: Smp, mode: Mode) -> Smp {
    let may = mode == Mode::Exact && smp.cpus == smp.possible;
    let times = if may { qemu_cpus(smp.cpus) / smp.cpus.max(1) } else { 1 };
    Smp { cpus: smp.cpus * times, possible: smp.possible * times, sockets: smp.sockets * times, ..smp }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_cpus_get_company() {
        let smp = |cpus: u32, possible: u32| Smp { cpus, possible, sockets: possible / 2, cores: 2, threads: 1 };
        let all = |cpus, possible, mode| with_idle(smp(cpus, possible), mode).cpus;
        assert_eq!(with_idle(smp(4, 4), Mode::Exact), smp(16, 16));
        assert_eq!((all(2, 2, Mode::Exact), all(8, 8, Mode::Exact), all(10, 10, Mode::Exact)), (16, 32, 10));
        assert_eq!((all(4, 8, Mode::Exact), all(4, 4, Mode::Smp)), (4, 4), "CPUs to be added, and CPUs of their own");
    }
}
