//! The host of a guest with more CPUs, which are threads of the host, than the host has (`machine.cpu.physical_cpus`).
//!
//! While no more CPUs are busy than the host has, each runs at full speed; of more some wait. An idle CPU is a thread
//! that sleeps. The host is Linux 6.18 (`kernel/sched/fair.c`) with 250 ticks a second, its threads are of one weight.
//! Each of its CPUs has a run queue: eligible threads, whose virtual runtime is not above the average
//! (`vruntime_eligible`), run first, and of these the one with the earliest deadline, which is a slice after the start
//! of its last one. A running thread keeps the CPU until then (`RUN_TO_PARITY`), which is checked at ticks and at
//! wake-ups. Negative lag is forgotten when a thread sleeps (`DELAY_ZERO`), positive lag is kept: a thread that sleeps
//! often waits for a slice when it has used its share, and runs at once otherwise. A thread wakes on its last CPU if
//! that is idle, else on an idle one, else on its last; an idle CPU pulls a waiting thread, and queues are balanced
//! periodically.
//!
//! Not modelled: that a wakeup may be placed on the waker's CPU (`wake_affine`), the emulator's own threads and other
//! programs on the host, ticks elsewhere than at the epochs' ends, that a CPU whose turn extends past the wakeup of
//! another has already used that time. Page loops of all CPUs together ([`crate::workload::alloc_loop`]) do not wait.
//! Checked by tests here, and by how long phases take in guests and how late kswapd begins there
//! (docs/model/reclaim.md).

use crate::time::Ps;
use std::cmp::Reverse;

/// Slice of a host of one CPU (`sysctl_sched_base_slice`), which grows with the logarithm of their number up to eight.
const BASE_SLICE: i64 = 700_000_000;
/// How far a thread is behind at most (`entity_lag`): a tick, which is more than two slices of few CPUs.
const MOST_LAG: i64 = 4_000_000_000;
/// Ticks, for each CPU, until one that is busy takes a thread from another: it tries every 16 ms times their number
/// (`busy_factor`), and half of a thread's load is as much as is uneven at the second try (`nr_balance_failed`).
const UNEVEN_TICKS: u64 = 8;

/// State of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum RunState {
    #[default]
    Sleeps,
    Waits,
    Runs,
}

/// A CPU of the guest as a thread of the host. Times are in picoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Thread {
    state: RunState,
    /// The host's CPU that it runs on, waits for or ran on last.
    on: usize,
    /// Its clock at the last update.
    clock: Ps,
    /// Its runtime, relative to the others of its CPU when it is enqueued there (`vruntime`).
    ran: i64,
    deadline: i64,
    /// End of its protected time on the CPU: its deadline when it was picked.
    kept: i64,
    /// Its lag when it went to sleep.
    lag: i64,
}

/// The host.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    cpus: usize,
    slice: i64,
    ticks: u64,
    threads: Vec<Thread>,
}

impl Host {
    /// A host with some CPUs and all threads asleep; `None` if it has a CPU for each thread.
    pub(crate) fn new(cpus: u32, threads: usize) -> Option<Host> {
        let cpus = cpus as usize;
        let slice = BASE_SLICE * (1 + i64::from(cpus.clamp(1, 8).ilog2()));
        (cpus > 0 && cpus < threads).then(|| Host { cpus, slice, ticks: 0, threads: vec![Thread::default(); threads] })
    }

    /// A CPU of the guest has one of the host's.
    pub(crate) fn runs(&self, cpu: u32) -> bool {
        self.threads[cpu as usize].state == RunState::Runs
    }

    /// A CPU of the guest has nothing to do.
    pub(crate) fn sleeps(&self, cpu: u32) -> bool {
        self.threads[cpu as usize].state == RunState::Sleeps
    }

    /// Threads of one of the host's CPUs that do something.
    fn state(&self, on: usize, what: RunState) -> impl Iterator<Item = u32> + use<'_> {
        let threads = (0..).zip(&self.threads);
        threads.filter(move |(_, thread)| (thread.on, thread.state) == (on, what)).map(|(cpu, _)| cpu)
    }

    fn is_idle(&self, on: usize) -> bool {
        self.state(on, RunState::Runs).next().is_none()
    }

    /// Runnable threads of one of the host's CPUs, and their mean runtime.
    fn mean(&self, on: usize) -> (i64, i64) {
        let awake = self.threads.iter().filter(|thread| thread.on == on && thread.state != RunState::Sleeps);
        let (count, sum) = awake.fold((0, 0), |(count, sum), thread| (count + 1, sum + i128::from(thread.ran)));
        (count, (sum / i128::from(count.max(1))) as i64)
    }

    /// Accounts the running threads; one that has reached its deadline is assigned the next one.
    pub(crate) fn note(&mut self, clock: impl Fn(u32) -> Ps) {
        for (cpu, thread) in (0..).zip(&mut self.threads).filter(|(_, thread)| thread.state == RunState::Runs) {
            let now = clock(cpu).max(thread.clock);
            thread.ran += (now - thread.clock) as i64;
            thread.clock = now;
            if thread.ran >= thread.deadline {
                thread.deadline = thread.ran + self.slice;
            }
        }
    }

    /// Order in which threads of a CPU run.
    fn rank(&self, cpu: u32) -> (bool, i64) {
        let thread = &self.threads[cpu as usize];
        (thread.ran > self.mean(thread.on).1, thread.deadline)
    }

    fn first(&self, on: usize) -> Option<u32> {
        self.state(on, RunState::Waits).min_by_key(|&cpu| self.rank(cpu))
    }

    /// The first waiting thread of one of the host's CPUs preempts the running one, if it is before it in order.
    fn preempt(&mut self, on: usize) -> Option<u32> {
        let first = self.first(on)?;
        let running = self.state(on, RunState::Runs).next();
        if let Some(running) = running {
            let thread = &self.threads[running as usize];
            if thread.ran < thread.kept || self.rank(first) >= self.rank(running) {
                return None;
            }
            self.threads[running as usize].state = RunState::Waits;
        }
        Some(first)
    }

    /// A thread runs from a time on.
    pub(crate) fn begin(&mut self, cpu: u32, clock: Ps) {
        let thread = &mut self.threads[cpu as usize];
        (thread.state, thread.kept, thread.clock) = (RunState::Runs, thread.deadline, clock);
    }

    /// Enqueues a thread on one of the host's CPUs; its lag is kept if it is one of that CPU's threads.
    fn place(&mut self, cpu: u32, on: usize, lag: i64) {
        let (others, mean) = self.mean(on);
        let thread = &mut self.threads[cpu as usize];
        let ran = if others > 0 { mean - lag * (others + 1) / others } else { thread.ran };
        thread.deadline += ran - thread.ran;
        (thread.on, thread.state, thread.ran) = (on, RunState::Waits, ran);
    }

    /// A thread sleeps; returns the thread that runs in its place, if one waits, on this CPU or another.
    pub(crate) fn sleep(&mut self, cpu: u32) -> Option<u32> {
        let (had_cpu, on) = (self.runs(cpu), self.threads[cpu as usize].on);
        let lag = self.mean(on).1 - self.threads[cpu as usize].ran;
        let thread = &mut self.threads[cpu as usize];
        (thread.state, thread.lag) = (RunState::Sleeps, lag.clamp(0, MOST_LAG));
        if !had_cpu {
            return None;
        }
        let next = self.first(on).or_else(|| (0..self.cpus).find_map(|other| self.first(other)))?;
        self.threads[next as usize].on = on;
        Some(next)
    }

    /// A thread wakes; true if it runs at once.
    pub(crate) fn wake(&mut self, cpu: u32) -> bool {
        let Thread { on: before, lag, ran, .. } = self.threads[cpu as usize];
        let on = std::iter::once(before).chain(0..self.cpus).find(|&on| self.is_idle(on)).unwrap_or(before);
        self.threads[cpu as usize].deadline = ran + self.slice;
        self.place(cpu, on, lag);
        self.preempt(on) == Some(cpu)
    }

    /// A tick: the threads that run now and waited before.
    pub(crate) fn tick(&mut self) -> Vec<u32> {
        self.ticks += 1;
        if self.ticks.is_multiple_of(UNEVEN_TICKS * self.cpus as u64) {
            self.even_out();
        }
        (0..self.cpus).filter_map(|on| self.preempt(on)).collect()
    }

    /// A CPU pulls a waiting thread from a busier one.
    fn even_out(&mut self) {
        let count = |on: &usize| self.mean(*on).0;
        let most = (0..self.cpus).max_by_key(|on| (count(on), Reverse(*on))).unwrap_or(0);
        let least = (0..self.cpus).min_by_key(count).unwrap_or(0);
        let moves = if count(&most) > count(&least) { self.first(most) } else { None };
        if let Some(cpu) = moves {
            let lag = (self.mean(most).1 - self.threads[cpu as usize].ran).clamp(-MOST_LAG, MOST_LAG);
            self.threads[cpu as usize].state = RunState::Sleeps;
            self.place(cpu, least, lag);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Ps = 1_000_000_000;

    /// Runs the runnable threads for some ticks; returns the runtime of each.
    fn run(host: &mut Host, clocks: &mut [Ps], ticks: u64) -> Vec<Ps> {
        let mut ran = vec![0; clocks.len()];
        for _ in 0..ticks {
            for (cpu, clock) in clocks.iter_mut().enumerate().filter(|(cpu, _)| host.runs(*cpu as u32)) {
                *clock += 4 * MS;
                ran[cpu] += 4 * MS;
            }
            host.note(|cpu| clocks[cpu as usize]);
            for cpu in host.tick() {
                host.begin(cpu, clocks[cpu as usize]);
            }
        }
        ran
    }

    fn wake(host: &mut Host, cpu: u32, clock: Ps) -> bool {
        let runs = host.wake(cpu);
        if runs {
            host.begin(cpu, clock);
        }
        runs
    }

    #[test]
    fn threads_have_about_equal_shares() {
        assert!(Host::new(0, 4).is_none() && Host::new(4, 4).is_none());
        let mut host = Host::new(2, 4).unwrap();
        assert_eq!(host.slice, 1_400_000_000);
        let mut clocks = [0; 4];
        // Two have a CPU each, a third waits.
        assert!(wake(&mut host, 0, 0) && wake(&mut host, 1, 0) && !wake(&mut host, 2, 0));
        assert_eq!(run(&mut host, &mut clocks, 1)[3], 0);
        // The same is always taken when queues are evened out, as slices and tries are in step here.
        let ran = run(&mut host, &mut clocks, 960);
        assert_eq!(ran, [3, 3, 2, 0].map(|part| part * 960 * MS));
        // The CPU of a thread that sleeps pulls a waiting one, from any queue.
        let waiting = (0..3).find(|&cpu| !host.runs(cpu));
        let running = (0..3).filter(|&cpu| host.runs(cpu)).collect::<Vec<u32>>();
        assert_eq!(host.sleep(running[0]), waiting);
        host.begin(waiting.unwrap(), 0);
        assert_eq!(host.sleep(running[1]), None);
    }

    #[test]
    fn a_thread_waits_after_its_share_and_not_before() {
        let mut host = Host::new(1, 2).unwrap();
        assert!(wake(&mut host, 0, 0));
        // A slice is 0.7 ms: the first has begun its second one when the other wakes with nothing owed to it.
        host.note(|_| MS);
        assert!(!host.wake(1));
        // It waits for the tick, and sleeps before it has used its share.
        host.note(|_| 4 * MS);
        assert_eq!(host.tick(), [1]);
        host.begin(1, 4 * MS);
        host.note(|_| 4 * MS + MS / 2);
        assert_eq!(host.sleep(1), Some(0));
        host.begin(0, 4 * MS + MS / 2);
        assert_eq!(host.threads[1].lag, 1_250_000_000);
        // So it runs at once the next time, unless the first has just been picked.
        assert!(!host.wake(1));
        host.threads[1].state = RunState::Sleeps;
        host.note(|_| 6 * MS);
        assert!(host.wake(1) && !host.runs(0));
        host.begin(1, 6 * MS);
        assert_eq!(host.mean(0).1 - host.threads[1].ran, 1_250_000_000);
    }
}
