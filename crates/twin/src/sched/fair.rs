//! Shares of threads that run on one CPU, by the rules of [`super::cfs`] or [`super::eevdf`].
//!
//! Virtual runtimes are relative to those of the CPU's other threads; all threads weigh the same, so one unit is a
//! picosecond. Another thread is picked at a tick, a timer or when a worker has run, if the running one has used its
//! slice; when one wakes that preempts; and when the running one sleeps. Checked by tests here, by when kswapd begins, stops and
//! continues in guests of reclaim-one-reader (docs/model/reclaim.md), and by how long a compiler that reads takes beside
//! those that compute (docs/model/notebook.md).

use super::cfs::Cfs;
use super::eevdf::{self, Eevdf};
use crate::time::Ps;
use std::collections::VecDeque;

/// Picoseconds of a millisecond.
pub(super) const MS: i64 = 1_000_000_000;

/// Rules of a scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FairRules {
    Cfs(Cfs),
    Eevdf(Eevdf),
}

/// What times are multiplied by on a machine of some CPUs.
pub(super) fn factor(cpus: usize) -> i64 {
    1 + i64::from(cpus.clamp(1, 8).ilog2())
}

/// Of threads alike the running one is first, then the one that came first. Those behind the queue are delayed.
fn age(at: usize, len: usize) -> usize {
    if (1..len).contains(&at) { len - at } else { at }
}

/// What a scheduler knows of a thread.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Entity {
    pub(super) vruntime: i64,
    pub(super) deadline: i64,
    /// Of a thread that is not queued.
    pub(super) vlag: i64,
    /// Where its virtual runtime is from.
    cpu: u32,
    /// It sleeps, but still counts in the average of its CPU.
    sched_delayed: bool,
}

/// The threads of a CPU, but for those that its queue knows.
#[derive(Clone, Debug, Default)]
struct Cpu {
    /// The least virtual runtime; it never decreases.
    min_vruntime: i64,
    curr: Option<Curr>,
    delayed: Vec<usize>,
}

/// The thread that ran last on a CPU.
#[derive(Clone, Copy, Debug)]
struct Curr {
    thread: usize,
    /// Its virtual runtime when it was picked.
    began: i64,
    /// It has a new deadline since (EEVDF).
    slice_used: bool,
}

/// Virtual runtimes of all threads.
#[derive(Clone, Debug)]
pub(super) struct Fair {
    rules: FairRules,
    /// By thread.
    entities: Vec<Entity>,
    cpus: Vec<Cpu>,
}

impl Fair {
    pub(super) fn new(rules: FairRules, threads: usize, cpus: usize) -> Fair {
        Fair { rules, entities: vec![Entity::default(); threads], cpus: vec![Cpu::default(); cpus] }
    }

    /// True if a thread that sleeps still counts on its CPU, where it wakes too (`sched_delayed`).
    pub(super) fn is_delayed(&self, thread: usize) -> bool {
        self.entities.get(thread).is_some_and(|entity| entity.sched_delayed)
    }

    /// The running thread of a CPU has run.
    pub(super) fn ran(&mut self, cpu: u32, thread: usize, time: Ps, queue: &VecDeque<usize>) {
        if queue.front() != Some(&thread) {
            return;
        }
        let entity = &mut self.entities[thread];
        let at = &mut self.cpus[cpu as usize];
        let picked = Curr { thread, began: entity.vruntime, slice_used: false };
        let mut curr = at.curr.filter(|curr| curr.thread == thread).unwrap_or(picked);
        entity.vruntime += time as i64;
        if let FairRules::Eevdf(rules) = self.rules {
            curr.slice_used |= rules.update_deadline(entity);
        }
        at.curr = Some(curr);
        self.update_min(cpu, queue);
    }

    fn update_min(&mut self, cpu: u32, queue: &VecDeque<usize>) {
        let least = self.vruntimes(cpu, queue).min();
        let min = &mut self.cpus[cpu as usize].min_vruntime;
        *min = least.map_or(*min, |least| least.max(*min));
    }

    /// Virtual runtimes of the threads of a CPU.
    fn vruntimes<'a>(&'a self, cpu: u32, queue: &'a VecDeque<usize>) -> impl Iterator<Item = i64> + Clone + 'a {
        let all = queue.iter().chain(&self.cpus[cpu as usize].delayed);
        all.map(|&thread| self.entities[thread].vruntime)
    }

    fn avg_vruntime(&self, cpu: u32, queue: &VecDeque<usize>) -> i64 {
        eevdf::avg_vruntime(self.vruntimes(cpu, queue), self.cpus[cpu as usize].min_vruntime)
    }

    /// A thread comes to a CPU whose queue does not have it yet: it wakes or migrates.
    pub(super) fn enqueue(&mut self, cpu: u32, thread: usize, queue: &VecDeque<usize>, migrates: bool) {
        if thread >= self.entities.len() {
            self.entities.resize(thread + 1, Entity::default());
        }
        self.update_min(cpu, queue);
        let before = self.entities[thread];
        let min_vruntime = self.cpus[cpu as usize].min_vruntime;
        match self.rules {
            FairRules::Cfs(rules) => {
                let vruntime = before.vruntime + min_vruntime - self.cpus[before.cpu as usize].min_vruntime;
                let vruntime = if before.cpu == cpu { before.vruntime } else { vruntime };
                self.entities[thread].vruntime = if migrates { vruntime } else { rules.place(vruntime, min_vruntime) };
            }
            FairRules::Eevdf(rules) => {
                let stays = before.sched_delayed && before.cpu == cpu;
                let vlag = if stays { rules.vlag(&before, self.avg_vruntime(cpu, queue)).min(0) } else { before.vlag };
                self.dequeue_delayed(thread, vlag);
                if !stays || vlag == 0 {
                    let (avg, others) = (self.avg_vruntime(cpu, queue), self.vruntimes(cpu, queue).count());
                    rules.place(&mut self.entities[thread], avg, others, migrates);
                }
            }
        }
        self.entities[thread].cpu = cpu;
    }

    /// A thread that sleeps no longer counts on its CPU.
    fn dequeue_delayed(&mut self, thread: usize, vlag: i64) {
        let entity = &mut self.entities[thread];
        (entity.sched_delayed, entity.vlag) = (false, vlag);
        self.cpus[entity.cpu as usize].delayed.retain(|&other| other != thread);
    }

    /// A thread leaves a queue, which has it yet: it sleeps or migrates.
    pub(super) fn dequeue(&mut self, cpu: u32, thread: usize, queue: &VecDeque<usize>, migrates: bool) {
        self.cpus[cpu as usize].curr.take_if(|curr| curr.thread == thread);
        let FairRules::Eevdf(rules) = self.rules else { return };
        let vlag = rules.vlag(&self.entities[thread], self.avg_vruntime(cpu, queue));
        self.entities[thread].vlag = vlag;
        if vlag < 0 && !migrates {
            self.entities[thread].sched_delayed = true;
            self.cpus[cpu as usize].delayed.push(thread);
        }
    }

    /// True if a thread that has come to a CPU makes it pick again.
    pub(super) fn preempts(&self, cpu: u32, thread: usize, queue: &VecDeque<usize>) -> bool {
        let Some(&running) = queue.front().filter(|&&running| running != thread) else { return false };
        match self.rules {
            FairRules::Cfs(rules) => rules.preempts(self.entities[thread].vruntime, self.entities[running].vruntime),
            FairRules::Eevdf(_) => !self.is_protected(cpu, running, queue),
        }
    }

    /// True if the running thread keeps its CPU: it is eligible, and has not used its slice.
    fn is_protected(&self, cpu: u32, running: usize, queue: &VecDeque<usize>) -> bool {
        !self.has_used_slice(cpu, running) && self.entities[running].vruntime <= self.avg_vruntime(cpu, queue)
    }

    /// What is known of a thread if it ran last on a CPU.
    fn curr(&self, cpu: u32, thread: usize) -> Option<Curr> {
        self.cpus[cpu as usize].curr.filter(|curr| curr.thread == thread)
    }

    fn has_used_slice(&self, cpu: u32, thread: usize) -> bool {
        self.curr(cpu, thread).is_some_and(|curr| curr.slice_used)
    }

    /// True if the running thread has used its slice.
    pub(super) fn slice_ends(&self, cpu: u32, queue: &VecDeque<usize>) -> bool {
        let Some(&running) = queue.front() else { return false };
        match self.rules {
            FairRules::Cfs(rules) => {
                let now = self.entities[running].vruntime;
                let ran = self.curr(cpu, running).map_or(0, |curr| now - curr.began);
                let first = queue.iter().skip(1).map(|&thread| self.entities[thread].vruntime).min();
                rules.slice_ends(queue.len(), ran, first.map_or(0, |first| now - first))
            }
            FairRules::Eevdf(_) => self.has_used_slice(cpu, running),
        }
    }

    /// How much of its slice the running thread has left, if a timer ends it (`hrtick_start_fair`).
    pub(super) fn until_hrtick(&self, cpu: u32, queue: &VecDeque<usize>) -> Option<Ps> {
        let FairRules::Eevdf(rules) = self.rules else { return None };
        let &running = queue.front().filter(|_| rules.hrtick && queue.len() > 1)?;
        let entity = &self.entities[running];
        Some(if self.has_used_slice(cpu, running) { 0 } else { (entity.deadline - entity.vruntime).max(0) as Ps })
    }

    /// The running thread begins a slice.
    pub(super) fn begin_slice(&mut self, cpu: u32) {
        self.cpus[cpu as usize].curr.iter_mut().for_each(|curr| curr.slice_used = false);
    }

    /// Whether a worker that wakes can take the CPU for a moment.
    pub(super) fn yields(&self, cpu: u32, queue: &VecDeque<usize>) -> bool {
        let running = queue.front().filter(|_| matches!(self.rules, FairRules::Eevdf(_)));
        running.is_none_or(|&running| !self.is_protected(cpu, running, queue))
    }

    /// The place in a queue of the thread that is to run.
    pub(super) fn pick(&mut self, cpu: u32, queue: &VecDeque<usize>) -> Option<usize> {
        let FairRules::Eevdf(_) = self.rules else {
            return (0..queue.len()).min_by_key(|&at| (self.entities[queue[at]].vruntime, age(at, queue.len())));
        };
        loop {
            let avg = self.avg_vruntime(cpu, queue);
            let all = queue.iter().chain(&self.cpus[cpu as usize].delayed);
            let eligible = all.enumerate().filter(|(_, thread)| self.entities[**thread].vruntime <= avg);
            // Of two alike the running one gives way.
            let key = |thread: usize| (self.entities[thread].deadline, self.curr(cpu, thread).is_some());
            let (at, &thread) = eligible.min_by_key(|(at, thread)| (key(**thread), age(*at, queue.len())))?;
            if at < queue.len() {
                return Some(at);
            }
            self.dequeue_delayed(thread, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::RunQueues;
    use super::super::tests::machine;
    use super::*;

    const READER: usize = 0;
    const KSWAPD: usize = 1;
    const MS: Ps = super::MS as Ps;

    fn cfs(cpus: usize) -> FairRules {
        FairRules::Cfs(Cfs::new(cpus))
    }

    fn eevdf(cpus: usize) -> FairRules {
        FairRules::Eevdf(Eevdf::new(cpus, 250))
    }

    #[test]
    fn a_timer_ends_a_slice() {
        let mut queues = RunQueues::new(&machine());
        queues.share_fairly(FairRules::Eevdf(Eevdf::new(4, 250).with_hrtick()), 2);
        queues.enqueue(0, READER);
        assert_eq!(queues.until_hrtick(0), None, "nobody waits");
        queues.enqueue(0, KSWAPD);
        let (first, slice) = (queues.running(0).unwrap(), MS * 21 / 10);
        assert_eq!(queues.until_hrtick(0), Some(slice));
        queues.ran(0, first, MS);
        assert_eq!(queues.until_hrtick(0), Some(slice - MS));
        queues.ran(0, first, 2 * MS);
        assert_eq!(queues.until_hrtick(0), Some(0));
        queues.hrtick(0);
        assert_ne!(queues.running(0), Some(first));
        assert_eq!(queues.until_hrtick(0), Some(slice));
        // Two that come from other CPUs without a slice.
        queues.attach(1, 2);
        queues.attach(1, 3);
        assert_eq!(queues.until_hrtick(1), Some(0));
        (0..2).for_each(|_| queues.hrtick(1));
        assert_eq!(queues.until_hrtick(1), Some(slice));
    }

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
        let mut queues = woken(cfs(1));
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
            let mut queues = woken(cfs(1));
            queues.ran(0, KSWAPD, ran);
            queues.reschedule(0);
            assert_eq!(queues.running(0), Some(runs));
        }
        // It has a negative lag, before its slice ends.
        let mut queues = woken(eevdf(1));
        queues.ran(0, KSWAPD, MS / 2);
        queues.reschedule(0);
        assert_eq!(queues.running(0), Some(READER));
    }

    #[test]
    fn since_6_6_a_positive_lag_preempts_and_a_negative_one_waits() {
        let mut queues = RunQueues::new(&machine());
        queues.share_fairly(eevdf(1), 3);
        queues.enqueue(0, READER);
        queues.enqueue(0, 1);
        queues.ran(0, READER, MS / 4);
        // It sleeps with a lag of -1/8 ms, and still counts in the average.
        queues.dequeue(0, READER);
        assert!(queues.is_delayed(READER));
        assert_eq!(queues.running(0), Some(1));
        queues.ran(0, 1, MS / 8);
        queues.enqueue(0, READER);
        assert!(!queues.is_delayed(READER));
        assert_eq!(queues.running(0), Some(1), "it is not eligible yet");
        // Both have a lag of 0 after another eighth; after that the next thread has a negative one.
        queues.ran(0, 1, MS / 4);
        queues.dequeue(0, READER);
        queues.ran(0, 1, MS / 4);
        queues.enqueue(0, READER);
        assert_eq!(queues.running(0), Some(READER), "its lag was kept");
    }

    #[test]
    fn since_6_6_a_thread_that_has_just_begun_keeps_the_cpu() {
        let mut queues = woken(eevdf(8));
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
        for rules in [cfs(1), eevdf(1)] {
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
        queues.share_fairly(cfs(1), 3);
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
