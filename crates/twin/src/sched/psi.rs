//! Pressure stall information: `psi_task_change`, `psi_group_change`, `test_state`, `collect_percpu_times` (5.17 to 6.18).
//!
//! Each CPU counts, for the system and for each cgroup, tasks that wait for I/O, that stall on memory and that are
//! runnable, and adds up the time in which some of them, or all that are not idle, wait. A total is the average over
//! the CPUs, each weighted by the time in which it was not idle since the last reading. Not modelled: the averages of
//! 10, 60 and 300 s, pressure on CPUs, the worker that reads every 2 s. Checked by tests here.

use crate::time::{PS_PER_NS, Ps};

/// What a task does, or waits for. One that runs in reclaim runs and stalls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TaskState {
    /// It waits for a disk (`TSK_IOWAIT`).
    pub iowait: bool,
    /// It reclaims, or waits for a page of the working set (`TSK_MEMSTALL`).
    pub memstall: bool,
    /// It runs or waits for a CPU (`TSK_RUNNING`).
    pub running: bool,
}

/// Time for which tasks waited: `some` of them, or all that were not idle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waited {
    pub some: Ps,
    pub full: Ps,
}

/// Totals of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub memory: Waited,
    pub io: Waited,
}

/// States of a group on a CPU (`enum psi_states`).
const IO_SOME: usize = 0;
const IO_FULL: usize = 1;
const MEM_SOME: usize = 2;
const MEM_FULL: usize = 3;
const NONIDLE: usize = 4;
const STATES: usize = 5;

/// A group on a CPU (`struct psi_group_cpu`).
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    iowait: u32,
    memstall: u32,
    running: u32,
    memstall_running: u32,
    /// The task on the CPU is one of the group, and stalls.
    reclaims: bool,
    active: [bool; STATES],
    since: Ps,
    /// Time in each state, and what of it has been read.
    times: [Ps; STATES],
    read: [Ps; STATES],
}

impl Counts {
    fn advance(&mut self, at: Ps) {
        let passed = at.saturating_sub(self.since);
        self.since += passed;
        for (time, active) in self.times.iter_mut().zip(self.active) {
            *time += if active { passed } else { 0 };
        }
    }

    fn count(&mut self, state: TaskState, by: i32) {
        let add = |count: &mut u32, is: bool| *count = count.saturating_add_signed(if is { by } else { 0 });
        add(&mut self.iowait, state.iowait);
        add(&mut self.memstall, state.memstall);
        add(&mut self.running, state.running);
        add(&mut self.memstall_running, state.memstall && state.running);
    }

    /// `test_state`. All stall on memory also where the task on the CPU does: the others cannot run meanwhile.
    fn test(&mut self) {
        let Counts { iowait, memstall, running, memstall_running, reclaims, .. } = *self;
        self.active[IO_SOME] = iowait > 0;
        self.active[IO_FULL] = iowait > 0 && running == 0;
        self.active[MEM_SOME] = memstall > 0;
        self.active[MEM_FULL] = reclaims || memstall > 0 && running == memstall_running;
        self.active[NONIDLE] = iowait + memstall + running > 0;
    }
}

/// A task as it was counted last.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    cgroup: usize,
    cpu: u32,
    state: TaskState,
}

/// Pressure of all groups.
#[derive(Clone, Debug)]
pub(crate) struct Psi {
    /// By cgroup, the root first: the one above.
    parents: Vec<usize>,
    /// By CPU and group.
    counts: Vec<Counts>,
    tasks: Vec<Counted>,
    /// By CPU: the task on it.
    current: Vec<Option<usize>>,
    totals: Vec<Totals>,
    /// Time between two ticks, in which idleness is measured.
    jiffy: Ps,
}

impl Psi {
    /// Idle CPUs, with the cgroup above each and the cgroup of each task. The root is the first and its own parent.
    pub(crate) fn new(cpus: usize, parents: Vec<usize>, cgroups: impl Iterator<Item = usize>, hz: u64) -> Psi {
        let groups = parents.len();
        Psi {
            parents,
            counts: vec![Counts::default(); cpus * groups],
            tasks: cgroups.map(|cgroup| Counted { cgroup, ..Counted::default() }).collect(),
            current: vec![None; cpus],
            totals: vec![Totals::default(); groups],
            jiffy: 1_000_000_000 / hz.max(1) * PS_PER_NS,
        }
    }

    /// A task is in this state, on this CPU, from a time on.
    pub(crate) fn set(&mut self, task: usize, cpu: u32, state: TaskState, at: Ps) {
        let Some(&before) = self.tasks.get(task) else { return };
        if (before.cpu, before.state) == (cpu, state) {
            return;
        }
        if before.cpu != cpu {
            self.change(before, at, |counts| {
                counts.reclaims &= !(before.state.memstall && before.state.running);
                counts.count(before.state, -1);
            });
        }
        let (moved, now) = (before.cpu != cpu, Counted { cpu, state, ..before });
        let on_cpu = self.current[cpu as usize] == Some(task);
        self.change(now, at, |counts| {
            if !moved {
                counts.count(before.state, -1);
            }
            counts.count(state, 1);
            if on_cpu {
                counts.reclaims = state.memstall && state.running;
            }
        });
        self.tasks[task] = now;
    }

    /// The state that a task was given last.
    pub(crate) fn state(&self, task: usize) -> TaskState {
        self.tasks.get(task).map_or(TaskState::default(), |task| task.state)
    }

    /// A task is the one on a CPU from a time on.
    pub(crate) fn runs(&mut self, task: usize, cpu: u32, at: Ps) {
        let before = self.current[cpu as usize].replace(task);
        if before == Some(task) {
            return;
        }
        for (task, reclaims) in [(before, false), (Some(task), true)] {
            let of = task.and_then(|task| self.tasks.get(task).copied()).filter(|of| of.cpu == cpu);
            if let Some(of) = of.filter(|of| of.state.memstall && of.state.running) {
                self.change(of, at, |counts| counts.reclaims = reclaims);
            }
        }
    }

    /// The task on a CPU has stalled for a part of the time since its state was set: it read pages of the working set
    /// from a device that is read by the CPU.
    pub(crate) fn add_stall(&mut self, task: usize, time: Ps, at: Ps) {
        let Some(&of) = self.tasks.get(task) else { return };
        self.change(of, at, |counts| {
            for state in [MEM_SOME, MEM_FULL] {
                counts.times[state] += if counts.active[state] { 0 } else { time };
            }
        });
    }

    /// Changes the groups of a task on its CPU, the root last.
    fn change(&mut self, of: Counted, at: Ps, how: impl Fn(&mut Counts)) {
        let mut group = of.cgroup;
        loop {
            let counts = &mut self.counts[of.cpu as usize * self.parents.len() + group];
            counts.advance(at);
            how(counts);
            counts.test();
            if group == 0 {
                return;
            }
            group = self.parents[group];
        }
    }

    /// Totals by group up to a time, the root first.
    pub(crate) fn read(&mut self, at: Ps) -> &[Totals] {
        let groups = self.parents.len();
        for (group, totals) in self.totals.iter_mut().enumerate() {
            let (mut sums, mut weights) = ([0u128; STATES], 0u128);
            for counts in self.counts.iter_mut().skip(group).step_by(groups) {
                counts.advance(at);
                let passed = |state: usize| counts.times[state] - counts.read[state];
                let weight = u128::from(passed(NONIDLE) / self.jiffy);
                weights += weight;
                for (state, sum) in sums.iter_mut().enumerate() {
                    *sum += u128::from(passed(state)) * weight;
                }
                counts.read = counts.times;
            }
            let mean = |state: usize| (sums[state] / weights.max(1)) as Ps;
            let add = |to: &mut Waited, some: usize, full: usize| {
                (to.some, to.full) = (to.some + mean(some), to.full + mean(full));
            };
            add(&mut totals.memory, MEM_SOME, MEM_FULL);
            add(&mut totals.io, IO_SOME, IO_FULL);
        }
        &self.totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Ps = 1_000_000_000;
    const RUNS: TaskState = TaskState { iowait: false, memstall: false, running: true };
    const RECLAIMS: TaskState = TaskState { memstall: true, ..RUNS };
    const STALLS: TaskState = TaskState { running: false, ..RECLAIMS };
    const READS: TaskState = TaskState { iowait: true, memstall: false, running: false };
    const IDLE: TaskState = TaskState { running: false, ..RUNS };

    /// Tasks 0 and 1 are in /a, 2 in /a/b, 3 in the root; two CPUs.
    fn psi() -> Psi {
        Psi::new(2, vec![0, 0, 1], [1, 1, 2, 0].into_iter(), 250)
    }

    /// Some and full of memory and of I/O in milliseconds: of the root, /a and /a/b.
    fn read(psi: &mut Psi, at: Ps) -> Vec<[Ps; 4]> {
        let ms = |of: &Totals| [of.memory.some, of.memory.full, of.io.some, of.io.full].map(|time| time / MS);
        psi.read(at).iter().map(ms).collect()
    }

    #[test]
    fn a_stall_counts_for_all_above_and_full_where_nobody_else_runs() {
        let mut psi = psi();
        psi.set(2, 0, RECLAIMS, 0);
        psi.runs(2, 0, 0);
        psi.set(3, 0, RUNS, 100 * MS);
        // It reclaims and another one waits for the CPU: nobody is productive.
        assert_eq!(read(&mut psi, 200 * MS), [[200, 200, 0, 0]; 3]);
        psi.set(2, 0, STALLS, 200 * MS);
        psi.runs(3, 0, 200 * MS);
        assert_eq!(read(&mut psi, 300 * MS), [[300, 200, 0, 0], [300, 300, 0, 0], [300, 300, 0, 0]]);
        psi.set(2, 0, IDLE, 300 * MS);
        psi.set(3, 0, IDLE, 300 * MS);
        assert_eq!(read(&mut psi, 900 * MS)[0], [300, 200, 0, 0]);
    }

    #[test]
    fn a_task_that_waits_for_its_cpu_in_reclaim_is_not_full_while_another_runs() {
        let mut psi = psi();
        psi.set(0, 0, RECLAIMS, 0);
        psi.set(1, 0, RUNS, 0);
        psi.runs(1, 0, 0);
        assert_eq!(read(&mut psi, 100 * MS)[1], [100, 0, 0, 0]);
        psi.runs(0, 0, 100 * MS);
        assert_eq!(read(&mut psi, 300 * MS)[1], [300, 200, 0, 0]);
        psi.runs(1, 0, 300 * MS);
        assert_eq!(read(&mut psi, 400 * MS)[1], [400, 200, 0, 0]);
    }

    #[test]
    fn cpus_are_weighted_by_the_time_in_which_they_are_not_idle() {
        let mut psi = psi();
        psi.set(0, 0, READS, 0);
        psi.set(1, 1, RUNS, 0);
        assert_eq!(read(&mut psi, 100 * MS)[1], [0, 0, 50, 50]);
        psi.set(1, 1, IDLE, 100 * MS);
        assert_eq!(read(&mut psi, 200 * MS)[1], [0, 0, 150, 150], "the other CPU is idle");
        psi.set(0, 1, READS, 200 * MS);
        assert_eq!(read(&mut psi, 300 * MS)[1], [0, 0, 250, 250], "it has moved");
        // Less than a tick has no weight.
        assert_eq!(read(&mut psi, 303 * MS)[1], [0, 0, 250, 250]);
    }

    #[test]
    fn reads_by_the_cpu_itself_are_stalls() {
        let mut psi = psi();
        psi.set(0, 0, RUNS, 0);
        psi.add_stall(0, 30 * MS, 100 * MS);
        assert_eq!(read(&mut psi, 100 * MS)[1], [30, 30, 0, 0]);
        // In reclaim the time is counted anyway.
        psi.set(0, 0, RECLAIMS, 100 * MS);
        psi.add_stall(0, 30 * MS, 200 * MS);
        assert_eq!(read(&mut psi, 200 * MS)[1], [130, 130, 0, 0]);
    }
}
