//! Time of CPUs, in picoseconds, because some costs are a few nanoseconds, and the time that work takes.
//! CPUs that share one budget are in [`super::budget`].

use super::{Kernel, KernelError};
use crate::hw::{CounterType, LoopCosts, PageCosts};
use crate::time::{Ns, OfObject, PS_PER_NS, Ps, Random, Use};

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

    /// True if a CPU has something to run.
    pub(crate) fn is_busy(&self, cpu: u32) -> bool {
        self.busy[cpu as usize]
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
        if let Some(budget) = &mut self.budget {
            budget.spend(time);
        }
        let clock = &mut self.clocks[cpu as usize];
        *clock = clock.saturating_add(time);
    }

    /// An interrupt takes some time of a CPU if that is busy: an idle one has it to spare.
    pub(crate) fn interrupt(&mut self, cpu: u32, time: Ps) {
        if !self.busy[cpu as usize] {
            return;
        }
        match &mut self.budget {
            Some(budget) => budget.interrupt(cpu, time),
            None => self.spend(cpu, time),
        }
    }

    /// An interrupt takes some time of a CPU, busy or idle: who waits for what has caused it goes on later.
    pub(crate) fn interrupt_any(&mut self, cpu: u32, time: Ps) {
        match &mut self.budget {
            Some(budget) => budget.interrupt(cpu, time),
            None => self.spend(cpu, time),
        }
    }

    /// Work beside the CPUs' own takes a time of the budget that they share, if they do.
    pub(crate) fn spend_beside(&mut self, time: Ps) {
        self.budget.iter_mut().for_each(|budget| budget.spend(time));
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
pub(super) mod tests {
    use super::super::KernelRules;
    use super::*;
    use crate::hw::{Cpu, Machine};
    use crate::page_alloc::Rules;
    use crate::probe::Probe;
    use crate::vmstat::{Design, Dialect, VmStatRules};

    /// A kernel on a machine of one node.
    pub(in super::super) fn cpus(cpus: u32) -> Kernel {
        let cpus = (0..cpus).map(|core| Cpu { node: 0, core }).collect();
        let machine = Machine::pc(&[1 << 16], 0, cpus, vec![vec![10]]).unwrap();
        let costs = PageCosts::of_work(100.0);
        let (design, dialect) = (Design::Off, Dialect::V6_1);
        let early_drift_marks = false;
        let vmstat =
            VmStatRules { design, threshold: None, stat_interval: 1_000_000_000, hz: 250, early_drift_marks, dialect };
        let rules = KernelRules { alloc: Rules::V6_1, vmstat, reclaim: crate::mm::vmscan::Rules::V6_1 };
        Kernel::new(machine, costs, rules, Probe::off()).unwrap()
    }

    #[test]
    fn busy_cpus_pay_for_their_ticks() {
        const MS: Ps = 1_000_000_000;
        let mut kernel = cpus(2);
        assert!(!kernel.pay_ticks(0), "they take no time");
        kernel.set_tick_costs(MS / 50, 0);
        kernel.wait(1, 9 * MS);
        (0..2).for_each(|cpu| kernel.leave_idle(cpu).unwrap());
        kernel.spend(0, 9 * MS);
        // 9 ms later two ticks of 4 ms are due.
        assert_eq!((kernel.pay_ticks(0), kernel.clock(0)), (true, 9 * MS + 2 * MS / 50));
        assert_eq!((kernel.pay_ticks(0), kernel.pay_ticks(1)), (false, false), "paid, and idle until 9 ms");
    }

    #[test]
    fn the_tick_of_a_cpu_that_is_idle_for_a_moment_takes_time_of_all() {
        const MS: Ps = 1_000_000_000;
        let mut kernel = cpus(2);
        kernel.share_budget(0);
        kernel.set_tick_costs(MS / 50, MS / 20);
        let mut idles_until = |at: Ps| {
            let before = kernel.budget_used();
            kernel.enter_idle(1).unwrap();
            kernel.wait(1, at);
            kernel.leave_idle(1).unwrap();
            kernel.budget_used().unwrap() - before.unwrap()
        };
        let taken = [3 * MS, 5 * MS, 7 * MS, 20 * MS].map(&mut idles_until);
        assert_eq!(taken, [0, MS / 20, 0, 0], "the third has no tick, and the last stops it");
    }
}
