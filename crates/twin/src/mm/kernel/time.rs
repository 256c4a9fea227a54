//! Time of CPUs, in picoseconds, because some costs are a few nanoseconds, and the time that work takes.
//!
//! CPUs may share one budget, as those of an emulator with a single thread do: the busy ones take turns in equal
//! slices, and idle time is skipped. Each of N busy CPUs has every Nth slice, so its work takes N times as long,
//! however short the slices are; that is what is charged. A slice is the time to the next tick divided by QEMU's
//! CPUs ([`qemu_cpus`]; `icount_percpu_budget`); it counts only while memory is reclaimed, elsewhere the order of slices within
//! an epoch is omitted. Checked by a test here, by `tests/run.rs`, and by the guests of docs/fidelity.md.

use super::{Kernel, KernelError, budget};
use crate::hw::{CounterType, LoopCosts, PageCosts};
use crate::time::{Ns, OfObject, PS_PER_NS, Ps, Random, Use};
use mmtwin_scenario::machine::qemu_cpus;

/// Largest cost that is believed: a second.
const MAX_COST: Ps = 1_000_000_000_000;

/// Picoseconds of an allocation, its free, a page freed to the buddy lists and an increment of each counter type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) allocate: Ps,
    pub(crate) free: Ps,
    pub(super) free_to_buddy: Ps,
    counts: [Ps; CounterType::ALL.len()],
}

impl Times {
    pub(super) fn of(costs: &PageCosts, of: &LoopCosts) -> Times {
        let work = costs.picoseconds(of.work);
        let counts = CounterType::ALL.map(|counter| costs.picoseconds(of.count(counter)));
        Times { allocate: work / 2, free: work - work / 2, free_to_buddy: costs.picoseconds(of.free_to_buddy), counts }
    }
}

/// Wait of a CPU for a zone's line that another CPU has written. All its readers fetch it at once and are served one
/// after another in an unknown order: the first hardly waits, the last twice the mean. If all fetches took the mean,
/// the counters of CPUs would stay in step with each other and with the folds, which is up to a tenth cheaper.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fetches {
    mean: Ps,
    random: OfObject,
    done: u64,
}

impl Fetches {
    pub(super) fn of_cpus(cpus: usize, mean: Ps, seed: u64) -> Vec<Fetches> {
        let random = Random::new(seed, Use::LineFetch);
        (0..cpus as u64).map(|cpu| Fetches { mean, random: random.of(cpu), done: 0 }).collect()
    }

    /// Time of the next fetch.
    #[inline]
    pub(crate) fn next(&mut self) -> Ps {
        let time = self.random.below(self.done, 2 * self.mean + 1);
        self.done += 1;
        time
    }
}

impl Kernel {
    /// Sets the time to write an event.
    pub(crate) fn set_event_time(&mut self, time: Ps) {
        self.event_time = time;
    }

    /// All CPUs share the time of one, or each has its own.
    pub fn set_single_threaded_tcg(&mut self, shared: bool) {
        self.single_threaded_tcg = shared;
        self.set_share();
    }

    /// The set of busy CPUs has changed: their shares of a shared budget.
    pub(super) fn set_share(&mut self) {
        self.share = match self.single_threaded_tcg {
            true => (0..self.clocks.len()).filter(|&cpu| self.uses_budget(cpu)).count().max(1) as u64,
            false => 1,
        };
        if self.share == 1 {
            self.left.fill(0);
        }
    }

    /// A CPU is busy at the time of the step under way: it has something to run, or what it ran last, which has been
    /// simulated already, ends later.
    fn uses_budget(&self, cpu: usize) -> bool {
        self.busy[cpu] || self.clocks[cpu] > self.step_at
    }

    /// A step of a CPU begins; when the first of the CPUs ends that share its budget and will idle then.
    pub(crate) fn begin_step(&mut self, cpu: u32) -> Ps {
        if !self.single_threaded_tcg {
            return Ps::MAX;
        }
        self.step_at = self.clocks[cpu as usize];
        self.set_share();
        let ends = self.clocks.iter().zip(&self.busy).filter(|(clock, busy)| !**busy && **clock > self.step_at);
        ends.map(|(clock, _)| *clock).min().unwrap_or(Ps::MAX)
    }

    /// True if a CPU has something to run.
    pub(crate) fn is_busy(&self, cpu: u32) -> bool {
        self.busy[cpu as usize]
    }

    /// How many times longer work takes now than it does alone on the machine.
    pub(crate) fn share(&self) -> u64 {
        self.share
    }

    /// Length of the slice of a CPU from a time on while others run: a slice of the shared budget, or 0.
    pub(crate) fn slice(&self, clock: Ps) -> Ps {
        let slice = (self.tick - clock % self.tick) / u64::from(qemu_cpus(self.clocks.len() as u32));
        if self.single_threaded_tcg { slice * self.share } else { 0 }
    }

    /// Time of a CPU.
    pub fn now(&self, cpu: u32) -> Ns {
        self.clocks[cpu as usize] / PS_PER_NS
    }

    /// Time of a CPU in picoseconds.
    #[inline]
    pub(crate) fn clock(&self, cpu: u32) -> Ps {
        self.clocks[cpu as usize]
    }

    /// Time of an allocation alone on the machine with all cache lines near.
    pub(crate) fn allocation_time(&self, cpu: u32) -> Ps {
        self.times(cpu).allocate + 2 * self.count_time(cpu)
    }

    /// A CPU does work that takes it some time alone on the machine, with the events that it has written for it.
    #[inline]
    pub(crate) fn spend(&mut self, cpu: u32, time: Ps) {
        let time = time + self.probe.take_unpaid() * self.event_time;
        let left = &mut self.left[cpu as usize];
        let time = if *left == 0 { time.saturating_mul(self.share) } else { budget::faster(time, self.share, left) };
        let clock = &mut self.clocks[cpu as usize];
        *clock = clock.saturating_add(time);
    }

    /// An interrupt takes some time of a CPU if that is busy: an idle one has it to spare.
    pub(crate) fn interrupt(&mut self, cpu: u32, time: Ps) {
        if self.busy[cpu as usize] {
            self.spend(cpu, time);
        }
    }

    /// An interrupt of all CPUs but one.
    pub(crate) fn interrupt_others(&mut self, cpu: u32, time: Ps) {
        if self.share > 1 {
            (0..self.clocks.len() as u32).filter(|&other| other != cpu).for_each(|other| self.interrupt(other, time));
            return;
        }
        let others = self.clocks.iter_mut().zip(&self.busy).enumerate();
        let busy = others.filter(|(other, (_, busy))| **busy && *other != cpu as usize);
        busy.for_each(|(_, (clock, _))| *clock = clock.saturating_add(time));
    }

    /// Work beside the CPUs' own takes a time of the budget that they share, if they do. True if they do.
    pub(crate) fn spend_beside(&mut self, time: Ps) -> bool {
        if self.single_threaded_tcg {
            let busy = self.clocks.iter_mut().zip(&self.busy).filter(|(_, busy)| **busy);
            busy.for_each(|(clock, _)| *clock += time);
        }
        self.single_threaded_tcg
    }

    /// A CPU is idle until a time, if that is in the future.
    pub(crate) fn wait(&mut self, cpu: u32, until: Ps) {
        let clock = &mut self.clocks[cpu as usize];
        *clock = (*clock).max(until);
    }

    /// Current time of an allocation on a CPU.
    #[inline]
    pub(crate) fn times(&self, cpu: u32) -> &Times {
        &self.times[usize::from(self.neighbours[cpu as usize] > 0)]
    }

    /// Time of an increment of a NUMA counter.
    #[inline]
    pub(crate) fn count_time(&self, cpu: u32) -> Ps {
        self.stat.numa.counter_type().map_or(0, |counter| self.times(cpu).counts[counter as usize])
    }
}

/// Refuses costs that cannot be.
pub(super) fn check_costs(costs: &PageCosts) -> Result<(), KernelError> {
    let of = |at: &LoopCosts| [at.work, at.free_to_buddy, at.count_s8, at.count_u16, at.count_word];
    let all = of(&costs.alone).into_iter().chain(of(&costs.shared_core)).chain([costs.refetch, costs.read_line]);
    let good = costs.clock_khz > 0 && { all }.all(|cost| cost >= 0.0 && costs.picoseconds(cost) <= MAX_COST);
    // A loop that takes no time would never end.
    let moves = costs.picoseconds(costs.alone.work) > 1 && costs.picoseconds(costs.shared_core.work) > 1;
    if good && moves { Ok(()) } else { Err(KernelError::Costs) }
}

#[cfg(test)]
mod tests {
    use super::super::KernelRules;
    use super::*;
    use crate::hw::{Cpu, Machine};
    use crate::page_alloc::Rules;
    use crate::probe::Probe;
    use crate::vmstat::{Design, Dialect, VmStatRules};

    /// Two CPUs that share one budget.
    fn two_cpus() -> Kernel {
        let cpus = (0..2).map(|core| Cpu { node: 0, core }).collect();
        let machine = Machine::pc(&[1 << 16], 0, cpus, vec![vec![10]]).unwrap();
        let alone = LoopCosts { work: 100.0, free_to_buddy: 0.0, count_s8: 0.0, count_u16: 0.0, count_word: 0.0 };
        let costs = PageCosts { clock_khz: 1_000_000, alone, shared_core: alone, refetch: 0.0, read_line: 0.0 };
        let (design, dialect) = (Design::Off, Dialect::V6_1);
        let vmstat = VmStatRules { design, threshold: None, stat_interval: 1_000_000_000, hz: 250, dialect };
        let rules = KernelRules { alloc: Rules::V6_1, vmstat, reclaim: crate::mm::vmscan::Rules::V6_1 };
        let mut kernel = Kernel::new(machine, costs, rules, Probe::off()).unwrap();
        kernel.set_single_threaded_tcg(true);
        kernel
    }

    #[test]
    fn work_that_was_simulated_ahead_takes_its_part_of_the_budget() {
        let mut kernel = two_cpus();
        (0..2).for_each(|cpu| kernel.leave_idle(cpu).unwrap());
        assert_eq!((kernel.begin_step(1), kernel.share()), (Ps::MAX, 2));
        kernel.spend(1, 500);
        kernel.enter_idle(1).unwrap();
        // CPU 0 is behind it, and shares with it until then.
        assert_eq!((kernel.begin_step(0), kernel.share()), (1000, 2));
        kernel.spend(0, 500);
        assert_eq!((kernel.clock(0), kernel.begin_step(0), kernel.share()), (1000, Ps::MAX, 1));
    }

    #[test]
    fn busy_cpus_pay_for_their_ticks() {
        const MS: Ps = 1_000_000_000;
        let mut kernel = two_cpus();
        assert!(!kernel.pay_ticks(0), "they take no time");
        kernel.set_tick_cost(MS / 50);
        kernel.wait(1, 9 * MS);
        (0..2).for_each(|cpu| kernel.leave_idle(cpu).unwrap());
        kernel.spend(0, 9 * MS / 2);
        // 9 ms later two ticks of 4 ms are due, each of which takes twice its time.
        assert_eq!((kernel.pay_ticks(0), kernel.clock(0)), (true, 9 * MS + 4 * MS / 50));
        assert_eq!((kernel.pay_ticks(0), kernel.pay_ticks(1)), (false, false), "paid, and idle until 9 ms");
    }
}
