//! Choice of CPUs for threads, and their time slices.
//!
//! Models the choice at fork (`find_idlest_group`, `find_idlest_cpu`) as the least loaded allowed CPU, of the least
//! loaded node, whose core is idle; and how threads of a CPU share it ([`fair`]), or with `kernel.sched.fair = "turns"` slices of equal
//! length, in turn. A thread wakes on an idle CPU of its node, and CPUs pull waiting threads ([`balance`]); with NUMA
//! balancing it also moves to the node of its memory (`numa/task_migrate.rs`). Not modelled: priorities, the cost of a
//! switch. Checked by tests here, by `tests/run.rs` and by durations in guests (docs/fidelity.md).

mod balance;
mod cfs;
mod eevdf;
mod fair;
pub(crate) mod imbalance;
mod psi;

pub(crate) use balance::{BalanceRules, BalanceTask, Balancer, Hooks, Level, Locality, NodeMove};
pub(crate) use cfs::Cfs;
pub(crate) use eevdf::Eevdf;
pub(crate) use fair::FairRules;
pub(crate) use psi::{Psi, TaskState, Totals};

use crate::hw::Machine;
use crate::time::Ps;
use fair::Fair;
use std::collections::VecDeque;
use std::ops::Range;

/// Threads by CPU: the first runs, the others wait for their slices.
#[derive(Clone, Debug)]
pub(crate) struct RunQueues {
    queues: Vec<VecDeque<usize>>,
    /// Threads placed on each CPU, those that sleep included.
    placed: Vec<u32>,
    siblings: Vec<Vec<u32>>,
    /// By CPU.
    nodes: Vec<usize>,
    /// Runtimes of threads, where rules use them.
    fair: Option<Fair>,
    /// Threads that work for a node, by their numbers, and how many of them run or wait.
    node_threads: Range<usize>,
    node_threads_queued: usize,
}

impl RunQueues {
    /// Nothing runs.
    pub(crate) fn new(machine: &Machine) -> RunQueues {
        let cpus = machine.cpus.len();
        RunQueues {
            queues: vec![VecDeque::new(); cpus],
            placed: vec![0; cpus],
            siblings: machine.siblings(),
            nodes: (0..cpus as u32).map(|cpu| machine.node_of(cpu)).collect(),
            fair: None,
            node_threads: 0..0,
            node_threads_queued: 0,
        }
    }

    /// Threads, by their numbers, share CPUs by the rules of a scheduler.
    pub(crate) fn share_fairly(&mut self, rules: FairRules, threads: usize) {
        self.fair = Some(Fair::new(rules, threads, self.queues.len()));
    }

    /// Threads that work for a node, none of which is on a queue yet.
    pub(crate) fn count_node_threads(&mut self, threads: Range<usize>) {
        self.node_threads = threads;
    }

    /// How many threads that work for a node run or wait.
    pub(crate) fn node_threads_queued(&self) -> usize {
        self.node_threads_queued
    }

    /// A thread has run on its CPU for a time.
    pub(crate) fn ran(&mut self, cpu: u32, thread: usize, time: Ps) {
        self.fair.iter_mut().for_each(|fair| fair.ran(cpu, thread, time, &self.queues[cpu as usize]));
    }

    /// Chooses a CPU among some and keeps a place there. `None` if there are none.
    pub(crate) fn place(&mut self, allowed: impl Iterator<Item = u32>, machine: &Machine) -> Option<u32> {
        let mut load = vec![(0u64, 0u64); machine.nodes.len()];
        for (cpu, &placed) in self.placed.iter().enumerate() {
            let node = &mut load[machine.cpus[cpu].node as usize];
            *node = (node.0 + u64::from(placed), node.1 + 1);
        }
        let key = |cpu: &u32| {
            let (threads, cpus) = load[machine.node_of(*cpu)];
            let core: u32 = self.siblings[*cpu as usize].iter().map(|&sibling| self.placed[sibling as usize]).sum();
            // Load per CPU of the node in thousandths: nodes need not be of one size.
            (self.placed[*cpu as usize], threads * 1000 / cpus.max(1), core, *cpu)
        };
        let cpu = allowed.min_by_key(key)?;
        self.placed[cpu as usize] += 1;
        Some(cpu)
    }

    /// A thread leaves its CPU.
    pub(crate) fn leave(&mut self, cpu: u32) {
        let placed = &mut self.placed[cpu as usize];
        *placed = placed.saturating_sub(1);
    }

    /// A thread wakes on its CPU. True if the CPU was idle.
    pub(crate) fn enqueue(&mut self, cpu: u32, thread: usize) -> bool {
        self.add(cpu, thread, false)
    }

    /// A thread that migrates comes to a CPU. True if the CPU was idle.
    pub(crate) fn attach(&mut self, cpu: u32, thread: usize) -> bool {
        self.add(cpu, thread, true)
    }

    fn add(&mut self, cpu: u32, thread: usize, migrates: bool) -> bool {
        self.node_threads_queued += usize::from(self.node_threads.contains(&thread));
        let queue = &mut self.queues[cpu as usize];
        self.fair.iter_mut().for_each(|fair| fair.enqueue(cpu, thread, queue, migrates));
        // As `rq->cfs_tasks` has them: behind the running one the last that came.
        let at = if self.fair.is_some() { queue.len().min(1) } else { queue.len() };
        queue.insert(at, thread);
        if self.fair.as_ref().is_some_and(|fair| fair.preempts(cpu, thread, queue)) {
            self.pick(cpu);
        }
        self.len(cpu) == 1
    }

    /// True if a thread that sleeps wakes where it fell asleep, as that queue still has it (`ttwu_runnable`).
    pub(crate) fn is_delayed(&self, thread: usize) -> bool {
        self.fair.as_ref().is_some_and(|fair| fair.is_delayed(thread))
    }

    /// True if rules decide when a kernel thread that wakes runs.
    pub(crate) fn is_fair(&self) -> bool {
        self.fair.is_some()
    }

    /// A thread wakes up and runs on its CPU at once, unless rules decide when. True if the CPU was idle.
    pub(crate) fn enqueue_first(&mut self, cpu: u32, thread: usize) -> bool {
        if self.fair.is_some() {
            return self.enqueue(cpu, thread);
        }
        self.node_threads_queued += usize::from(self.node_threads.contains(&thread));
        let queue = &mut self.queues[cpu as usize];
        queue.push_front(thread);
        queue.len() == 1
    }

    /// A thread sleeps. True if its CPU is idle now.
    pub(crate) fn dequeue(&mut self, cpu: u32, thread: usize) -> bool {
        self.remove(cpu, thread, false)
    }

    /// A thread leaves its CPU for another one. True if its CPU is idle now.
    pub(crate) fn detach(&mut self, cpu: u32, thread: usize) -> bool {
        self.remove(cpu, thread, true)
    }

    fn remove(&mut self, cpu: u32, thread: usize, migrates: bool) -> bool {
        let queue = &mut self.queues[cpu as usize];
        let Some(at) = queue.iter().position(|&of| of == thread) else { return false };
        self.fair.iter_mut().for_each(|fair| fair.dequeue(cpu, thread, queue, migrates));
        queue.remove(at);
        self.node_threads_queued -= usize::from(self.node_threads.contains(&thread));
        if at == 0 {
            self.pick(cpu);
        }
        self.len(cpu) == 0
    }

    /// True if a thread runs or waits on a CPU.
    pub(crate) fn holds(&self, cpu: u32, thread: usize) -> bool {
        self.queues[cpu as usize].contains(&thread)
    }

    /// The thread that runs on a CPU.
    pub(crate) fn running(&self, cpu: u32) -> Option<usize> {
        self.queues[cpu as usize].front().copied()
    }

    /// The thread that runs on a CPU that may not exist.
    pub(crate) fn running_on(&self, cpu: u32) -> Option<usize> {
        self.queues.get(cpu as usize)?.front().copied()
    }

    /// The node of a CPU.
    pub(crate) fn node_of(&self, cpu: u32) -> usize {
        self.nodes[cpu as usize]
    }

    /// Number of CPUs.
    pub(crate) fn cpus(&self) -> usize {
        self.queues.len()
    }

    /// Threads of a CPU, the running one first.
    pub(crate) fn all(&self, cpu: u32) -> impl Iterator<Item = usize> {
        self.queues[cpu as usize].iter().copied()
    }

    /// Waiting threads of a CPU, first those that were picked or came longest ago.
    pub(crate) fn waiting_longest(&self, cpu: u32) -> impl Iterator<Item = usize> {
        let queue = &self.queues[cpu as usize];
        let fair = self.fair.is_some();
        (1..queue.len()).map(move |at| queue[if fair { queue.len() - at } else { at }])
    }

    /// True if nothing runs on a CPU and its siblings.
    pub(crate) fn core_is_idle(&self, cpu: u32) -> bool {
        self.len(cpu) == 0 && self.siblings[cpu as usize].iter().all(|&sibling| self.len(sibling) == 0)
    }

    /// A thread's place is on another CPU now.
    pub(crate) fn replace(&mut self, from: u32, to: u32) {
        self.leave(from);
        self.placed[to as usize] += 1;
    }

    /// Two running threads change their CPUs.
    pub(crate) fn swap(&mut self, a: u32, b: u32) {
        let (one, other) = (self.running(a), self.running(b));
        for (cpu, thread) in [(a, one), (b, other)] {
            thread.into_iter().for_each(|thread| {
                self.detach(cpu, thread);
            });
        }
        for (cpu, thread) in [(a, other), (b, one)] {
            let Some(thread) = thread else { continue };
            self.attach(cpu, thread);
            if self.fair.is_none() {
                self.queues[cpu as usize].rotate_right(1);
            }
        }
    }

    /// Runnable threads of a CPU.
    pub(crate) fn len(&self, cpu: u32) -> usize {
        self.queues[cpu as usize].len()
    }

    /// A tick: the next thread runs, if the running one has used its slice.
    pub(crate) fn rotate(&mut self, cpu: u32) {
        let queue = &mut self.queues[cpu as usize];
        if queue.len() < 2 {
            return;
        }
        match &self.fair {
            Some(fair) if fair.slice_ends(cpu, queue) => self.pick(cpu),
            Some(_) => {}
            None => queue.rotate_left(1),
        }
    }

    /// How long the running thread of a CPU runs yet until a timer ends its slice; `None`: there is no timer.
    pub(crate) fn until_hrtick(&self, cpu: u32) -> Option<Ps> {
        self.fair.as_ref()?.until_hrtick(cpu, &self.queues[cpu as usize])
    }

    /// The timer that ends a slice: the next thread runs.
    pub(crate) fn hrtick(&mut self, cpu: u32) {
        // One that came without any slice has a new deadline too.
        self.running(cpu).into_iter().for_each(|running| self.ran(cpu, running, 0));
        self.pick(cpu);
        self.fair.iter_mut().for_each(|fair| fair.begin_slice(cpu));
    }

    /// A kernel worker has used a CPU briefly: the next thread is picked again.
    pub(crate) fn reschedule(&mut self, cpu: u32) {
        let queue = &self.queues[cpu as usize];
        if self.fair.as_ref().is_some_and(|fair| queue.len() > 1 && fair.yields(cpu, queue)) {
            self.pick(cpu);
        }
    }

    /// Another thread may run.
    fn pick(&mut self, cpu: u32) {
        let queue = &mut self.queues[cpu as usize];
        let next = self.fair.as_mut().and_then(|fair| fair.pick(cpu, queue));
        let thread = next.and_then(|next| queue.remove(next));
        thread.into_iter().for_each(|thread| queue.push_front(thread));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hw::Cpu;

    /// Two nodes of two cores with two threads each: CPUs 0 and 4 share a core.
    pub(super) fn machine() -> Machine {
        let cpu = |cpu: u32| Cpu { node: cpu % 4 / 2, core: cpu % 4 };
        Machine::pc(&[1 << 18, 1 << 18], 0, (0..8).map(cpu).collect(), vec![vec![10, 20], vec![20, 10]]).unwrap()
    }

    #[test]
    fn threads_spread_over_nodes_cores_and_cpus() {
        let machine = machine();
        let mut queues = RunQueues::new(&machine);
        let order: Vec<u32> = (0..10).filter_map(|_| queues.place(0..8, &machine)).collect();
        assert_eq!(order, [0, 2, 1, 3, 4, 6, 5, 7, 0, 2]);
        queues.leave(5);
        assert_eq!(queues.place(0..8, &machine), Some(5));
        assert_eq!(queues.place([3, 7].into_iter(), &machine), Some(3));
        assert_eq!(queues.place(std::iter::empty(), &machine), None);
    }

    #[test]
    fn slices_go_round() {
        let mut queues = RunQueues::new(&machine());
        assert!(queues.enqueue(1, 7) && !queues.enqueue(1, 8));
        queues.rotate(1);
        assert_eq!((queues.running(1), queues.len(1)), (Some(8), 2));
        assert!(!queues.dequeue(1, 8) && queues.dequeue(1, 7) && !queues.dequeue(1, 7));
        assert_eq!(queues.running(1), None);
    }
}
