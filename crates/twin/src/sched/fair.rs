//! Shares of threads that run on one CPU: `place_entity`, `check_preempt_wakeup` and `check_preempt_tick` of CFS (before
//! 6.6), `pick_eevdf` and `update_deadline` of EEVDF (since), where all weigh the same.
//!
//! Virtual runtimes are relative to those of the CPU's other threads. A thread that wakes is placed at their minimum,
//! under CFS half a period before it, and preempts the running thread if it is far enough behind; under EEVDF only
//! after that has used a slice. At a tick, or after a worker has run, the thread with the least runtime runs, if the
//! running one has used its slice. So a thread that often waits for a disk runs soon after it wakes. Not modelled:
//! weights, groups, lag that is kept, and the mean instead of the least where a thread wakes among several. Checked by
//! tests here, by when kswapd begins, stops and continues in guests of reclaim-one-reader (docs/model/reclaim.md), and
//! by how long a compiler that reads takes beside those that compute (docs/model/notebook.md).

use crate::time::Ps;
use std::collections::VecDeque;

const MS: Ps = 1_000_000_000;

/// Rules of a scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FairRules {
    /// Credit of a thread that wakes.
    credit: Ps,
    /// Time in which each thread of a CPU is to run once.
    period: Ps,
    /// Least slice.
    least: Ps,
    /// Lag at which a thread that wakes preempts; `None`: it waits until the running thread has used a slice.
    behind: Option<Ps>,
}

impl FairRules {
    /// CFS, whose times grow with the number of CPUs up to eight (`sched_latency`, `sched_min_granularity`,
    /// `sched_wakeup_granularity`).
    pub(crate) fn cfs(cpus: usize) -> FairRules {
        let factor = factor(cpus);
        let (period, least) = (6 * MS * factor, MS * 3 / 4 * factor);
        FairRules { credit: period / 2, period, least, behind: Some(MS * factor) }
    }

    /// EEVDF (`sched_base_slice`).
    pub(crate) fn eevdf(cpus: usize) -> FairRules {
        FairRules { credit: 0, period: 0, least: MS * 3 / 4 * factor(cpus), behind: None }
    }

    fn slice(&self, threads: usize) -> Ps {
        (self.period / threads.max(1) as Ps).max(self.least)
    }
}

fn factor(cpus: usize) -> Ps {
    1 + Ps::from(cpus.clamp(1, 8).ilog2())
}

/// How much threads have had.
#[derive(Clone, Debug)]
pub(super) struct Fair {
    rules: FairRules,
    /// By thread: its time, and the CPU that this is to be compared on.
    times: Vec<(Ps, u32)>,
    /// By CPU: where its threads are at least.
    floors: Vec<Ps>,
    /// By CPU: last thread, and its runtime when it began.
    since: Vec<Option<(usize, Ps)>>,
}

impl Fair {
    pub(super) fn new(rules: FairRules, threads: usize, cpus: usize) -> Fair {
        let times = vec![(0, 0); threads];
        // So that there is room for a credit.
        Fair { rules, times, floors: vec![rules.credit; cpus], since: vec![None; cpus] }
    }

    /// A thread has run on a CPU.
    pub(super) fn ran(&mut self, cpu: u32, thread: usize, time: Ps, queue: &VecDeque<usize>) {
        let Some(&(before, of)) = self.times.get(thread) else { return };
        let before = if of == cpu { before } else { self.floors[cpu as usize] };
        let since = &mut self.since[cpu as usize];
        if since.is_none_or(|(last, _)| last != thread) {
            *since = Some((thread, before));
        }
        self.times[thread] = (before + time, cpu);
        self.raise(cpu, queue);
    }

    /// The minimum runtime of a CPU's threads never decreases.
    fn raise(&mut self, cpu: u32, queue: &VecDeque<usize>) {
        let least = queue.iter().filter_map(|&thread| self.time(cpu, thread)).min();
        let floor = &mut self.floors[cpu as usize];
        *floor = least.map_or(*floor, |least| least.max(*floor));
    }

    /// A thread's time on a CPU, if it has run there.
    fn time(&self, cpu: u32, thread: usize) -> Option<Ps> {
        self.times.get(thread).filter(|(_, of)| *of == cpu).map(|(time, _)| *time)
    }

    /// Used part of a thread's slice.
    fn had(&self, cpu: u32, thread: usize) -> Ps {
        let begun = self.since[cpu as usize].filter(|(last, _)| *last == thread);
        begun.zip(self.time(cpu, thread)).map_or(0, |((_, begun), now)| now.saturating_sub(begun))
    }

    /// A thread wakes; true if it preempts the running one.
    pub(super) fn wakes(&mut self, cpu: u32, thread: usize, queue: &VecDeque<usize>) -> bool {
        self.raise(cpu, queue);
        let Some(&(before, of)) = self.times.get(thread) else { return false };
        let first = self.floors[cpu as usize] - self.rules.credit;
        let time = if of == cpu && self.rules.credit > 0 { before.max(first) } else { first };
        self.times[thread] = (time, cpu);
        if self.since[cpu as usize].is_some_and(|(last, _)| last == thread) {
            self.since[cpu as usize] = None;
        }
        let Some(&running) = queue.front() else { return false };
        let ahead = self.time(cpu, running).unwrap_or(self.floors[cpu as usize]);
        match self.rules.behind {
            Some(behind) => ahead > time + behind,
            None => ahead >= time && self.had(cpu, running) >= self.rules.least,
        }
    }

    /// True if the running thread has used its slice.
    pub(super) fn slice_ends(&self, cpu: u32, queue: &VecDeque<usize>) -> bool {
        queue.front().is_some_and(|&thread| self.had(cpu, thread) >= self.rules.slice(queue.len()))
    }

    /// Whether a worker that wakes can take the CPU for a moment.
    pub(super) fn yields(&self, cpu: u32, queue: &VecDeque<usize>) -> bool {
        self.rules.behind.is_some() || self.slice_ends(cpu, queue)
    }

    /// The place in a queue of the thread that is to run.
    pub(super) fn pick(&self, cpu: u32, queue: &VecDeque<usize>) -> Option<usize> {
        let time = |thread: usize| self.time(cpu, thread).unwrap_or(self.floors[cpu as usize]);
        (0..queue.len()).min_by_key(|&at| (time(queue[at]), at))
    }
}

#[cfg(test)]
mod tests {
    use super::super::RunQueues;
    use super::super::tests::machine;
    use super::*;

    const READER: usize = 0;
    const KSWAPD: usize = 1;

    /// A CPU on which a reader has run for 10 ms, and kswapd has just been woken.
    fn woken(rules: FairRules) -> RunQueues {
        let mut queues = RunQueues::new(&machine());
        queues.share_fairly(rules, KSWAPD + 1);
        queues.enqueue(0, READER);
        queues.ran(0, READER, 10 * MS);
        queues.enqueue(0, KSWAPD);
        queues
    }

    #[test]
    fn kswapd_preempts_and_yields_at_the_tick_after_its_slice() {
        let mut queues = woken(FairRules::cfs(1));
        assert_eq!(queues.running(0), Some(KSWAPD));
        // Half of 6 ms each.
        queues.ran(0, KSWAPD, 5 * MS / 2);
        queues.rotate(0);
        assert_eq!(queues.running(0), Some(KSWAPD));
        queues.ran(0, KSWAPD, 4 * MS);
        queues.rotate(0);
        assert_eq!(queues.running(0), Some(READER));
        // The reader is 4 ms further then, and kswapd 3.5.
        queues.ran(0, READER, 4 * MS);
        queues.rotate(0);
        assert_eq!(queues.running(0), Some(KSWAPD));
    }

    #[test]
    fn a_worker_ends_the_turn_of_the_thread_with_the_most_runtime() {
        for (ran, runs) in [(2 * MS, KSWAPD), (4 * MS, READER)] {
            let mut queues = woken(FairRules::cfs(1));
            queues.ran(0, KSWAPD, ran);
            queues.reschedule(0);
            assert_eq!(queues.running(0), Some(runs));
        }
        let mut queues = woken(FairRules::eevdf(1));
        queues.ran(0, KSWAPD, MS / 2);
        queues.reschedule(0);
        assert_eq!(queues.running(0), Some(KSWAPD), "its slice is not over");
        queues.ran(0, KSWAPD, MS / 2);
        queues.reschedule(0);
        assert_eq!(queues.running(0), Some(READER));
    }

    #[test]
    fn since_6_6_a_thread_that_has_just_begun_keeps_the_cpu() {
        let mut queues = woken(FairRules::eevdf(8));
        assert_eq!(queues.running(0), Some(KSWAPD));
        queues.ran(0, KSWAPD, MS);
        queues.dequeue(0, KSWAPD);
        queues.ran(0, READER, MS);
        queues.enqueue(0, KSWAPD);
        assert_eq!(queues.running(0), Some(READER), "it has had 1 of 3 ms");
        queues.ran(0, READER, 4 * MS);
        queues.rotate(0);
        assert_eq!(queues.running(0), Some(KSWAPD));
    }

    #[test]
    fn sleep_is_no_claim_against_a_kernel_thread() {
        for rules in [FairRules::cfs(1), FairRules::eevdf(1)] {
            let mut queues = RunQueues::new(&machine());
            queues.share_fairly(rules, 3);
            // The first thread sleeps for the second that the other one runs.
            queues.enqueue(0, READER);
            queues.ran(0, READER, MS);
            queues.dequeue(0, READER);
            queues.enqueue(0, 1);
            queues.ran(0, 1, 1000 * MS);
            queues.dequeue(0, 1);
            queues.enqueue(0, READER);
            queues.enqueue(0, 2);
            (0..3).for_each(|_| {
                queues.ran(0, READER, 4 * MS);
                queues.rotate(0);
            });
            assert_eq!(queues.running(0), Some(2), "{rules:?}");
        }
    }

    #[test]
    fn a_thread_that_wakes_runs_before_one_that_computes() {
        let mut queues = RunQueues::new(&machine());
        queues.share_fairly(FairRules::cfs(1), 3);
        (0..2).for_each(|thread| {
            queues.enqueue(0, thread);
        });
        queues.ran(0, 0, 8 * MS);
        queues.rotate(0);
        queues.ran(0, 1, 6 * MS);
        queues.enqueue(0, 2);
        assert_eq!(queues.running(0), Some(2));
    }
}
