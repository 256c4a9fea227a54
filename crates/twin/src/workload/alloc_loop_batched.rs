//! Many loops at once.
//!
//! A loop that leaves its CPU's list unchanged and uses no buddy list repeats exactly: only counters and time advance.
//! Counters advance by their closed form up to the loop that writes the shared words. Those loops are simulated one by
//! one in order of (time, CPU) and logged per zone; every CPU of another core pays for fetching the line in its first
//! loop that begins after the log entry. The number of loops of a CPU until its own next write depends on the entries
//! before it, so a CPU is only advanced as far as the log is complete, and continued later. Checked: counters, lists,
//! lines and times equal those of single loops (`tests/allocator`).

use super::alloc_loop::{AllocLoopTask, Steady};
use crate::mm::kernel::Kernel;
use crate::mm::kernel::time::Fetches;
use crate::page_alloc::Policy;
use crate::time::Ps;
use crate::vmstat::NumaItem;
use mmtwin_event::Kind;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

/// Notes that a log may have before those that all CPUs have passed are dropped.
const LOG_NOTES: usize = 1 << 12;

/// Writes of one zone's shared words, in order.
#[derive(Debug)]
struct Log {
    zone: usize,
    /// Notes dropped.
    base: u64,
    /// When and by which CPU.
    notes: Vec<(Ps, u32)>,
    /// Length at which dropping is tried.
    full: usize,
}

/// A CPU on its way.
#[derive(Debug)]
struct Runner {
    /// Position among the loopers.
    at: usize,
    cpu: u32,
    /// Position of its zone's log.
    log: usize,
    steady: Steady,
    /// When the next loop begins.
    start: Ps,
    /// Time of a loop that fetches nothing.
    work: Ps,
    fetches: Fetches,
    /// Loops to do.
    left: u64,
    /// Loops before the one that writes the shared words.
    quiet: u64,
    /// Loops done that counters do not have yet.
    uncounted: u64,
    /// The next loop must fetch the line.
    stale: bool,
    /// Start of the last loop that is certain to have read the line.
    looked: (Ps, u32),
    /// First note not passed.
    next: u64,
}

impl Runner {
    /// Loops that begin before `end` and do not write the shared words.
    fn room(&self, end: Ps) -> u64 {
        let before_end = if self.start < end { (end - self.start).div_ceil(self.work) } else { 0 };
        before_end.min(self.quiet).min(self.left)
    }

    /// Does some loops that fetch nothing.
    fn pass(&mut self, loops: u64) {
        if loops > 0 {
            self.start += loops * self.work;
            self.looked = (self.start - self.work, self.cpu);
            self.count(loops);
        }
    }

    /// Does one loop that fetches the line.
    fn fetch(&mut self) {
        self.looked = (self.start, self.cpu);
        self.start += self.work + self.fetches.next();
        self.stale = false;
        self.count(1);
    }

    fn count(&mut self, loops: u64) {
        self.left -= loops;
        self.uncounted += loops;
        self.quiet = self.quiet.saturating_sub(loops);
    }

    /// Moves to the first log entry that takes the line from this CPU.
    fn note(&mut self, log: &Log, siblings: &[u32]) -> Option<(Ps, u32)> {
        loop {
            let &note = log.notes.get((self.next - log.base) as usize)?;
            if note >= self.looked && note.1 != self.cpu && !siblings.contains(&note.1) {
                return Some(note);
            }
            self.next += 1;
        }
    }

    /// Does all loops that known notes make certain, except those after the last. Half of the time of a run is spent here,
    /// so it does not divide where the next note is near, and does not ask for [`Runner::room`].
    fn settle(&mut self, log: &Log, siblings: &[u32], end: Ps) {
        while self.start < end && self.quiet > 0 && self.left > 0 {
            if self.stale {
                self.fetch();
                continue;
            }
            let Some((at, cpu)) = self.note(log, siblings) else { return };
            // The first loop that begins after the note, CPUs deciding between equal times.
            let ahead = at.saturating_sub(self.start);
            let mut before = if ahead <= self.work { u64::from(ahead > 0) } else { ahead.div_ceil(self.work) };
            before += u64::from((self.start + before * self.work, self.cpu) < (at, cpu));
            if before >= self.quiet.min(self.left) || self.start + before * self.work >= end {
                return;
            }
            self.pass(before);
            self.stale = true;
        }
    }

    /// When something happens that is more than passing: the write, the last loop, or the end.
    fn due(&self, end: Ps) -> Ps {
        self.start + self.room(end) * self.work
    }
}

impl Kernel {
    /// False if every loop must be seen or differs from the one before.
    pub(super) fn can_batch(&self, loop_tasks: &[AllocLoopTask]) -> bool {
        let seen = self.probe.on(Kind::MmPageAlloc) || self.probe.on(Kind::MmPageFree);
        !seen && loop_tasks.iter().all(|at| !matches!(at.caller.policy, Policy::Interleave(_)))
    }

    /// Runs the loops of steady CPUs that begin before a time; their number.
    pub(super) fn run_many(&mut self, loop_tasks: &mut [AllocLoopTask], order: u32, end: Ps) -> u64 {
        let mut logs: Vec<Log> = Vec::new();
        let mut runners: Vec<Runner> = Vec::new();
        for (at, loop_task) in loop_tasks.iter().enumerate() {
            if let Some(steady) = loop_task.steady.filter(|_| loop_task.left > 0) {
                runners.push(self.runner(at, loop_task, steady, &mut logs));
            }
        }
        let mut next: BinaryHeap<_> =
            runners.iter().enumerate().map(|(i, runner)| Reverse((runner.due(end), runner.cpu, i))).collect();
        // The first runner is replaced in its place: that is one way through the heap, not two.
        while let Some(mut first) = next.peek_mut() {
            let Reverse((due, cpu, i)) = *first;
            let runner = &mut runners[i];
            let log = &mut logs[runner.log];
            let siblings = &self.siblings[cpu as usize];
            runner.settle(log, siblings, end);
            if runner.due(end) == due {
                runner.pass(runner.room(end));
                if runner.left == 0 || runner.start >= end {
                    PeekMut::pop(first);
                    continue;
                }
                if runner.stale || runner.note(log, siblings).is_some() {
                    runner.fetch();
                } else {
                    runner.pass(1);
                }
                log.notes.push(runner.looked);
                self.stat.lines.write(log.zone, cpu);
                self.settle_counters(runner, order);
                if logs[runner.log].notes.len() >= logs[runner.log].full {
                    let which = runner.log;
                    self.drop_notes(&mut logs[which], which, &mut runners);
                }
            }
            *first = Reverse((runners[i].due(end), cpu, i));
        }
        let mut done = 0;
        for runner in &mut runners {
            self.settle_counters(runner, order);
            let log = &logs[runner.log];
            if runner.stale || runner.note(log, &self.siblings[runner.cpu as usize]).is_some() {
                self.stat.lines.take(log.zone, runner.cpu);
            } else {
                self.stat.lines.read(log.zone, runner.cpu);
            }
            let clock = std::mem::replace(&mut self.clocks[runner.cpu as usize], runner.start);
            self.spend_beside(runner.start - clock);
            self.fetches[runner.cpu as usize] = runner.fetches;
            done += loop_tasks[runner.at].left - runner.left;
            loop_tasks[runner.at].left = runner.left;
        }
        done
    }

    fn runner(&self, at: usize, loop_task: &AllocLoopTask, steady: Steady, logs: &mut Vec<Log>) -> Runner {
        let log = logs.iter().position(|log| log.zone == steady.zone).unwrap_or_else(|| {
            logs.push(Log { zone: steady.zone, base: 0, notes: Vec::new(), full: LOG_NOTES });
            logs.len() - 1
        });
        let times = self.times(loop_task.cpu);
        let counts = self.counts(&steady);
        Runner {
            at,
            cpu: loop_task.cpu,
            log,
            start: self.clocks[loop_task.cpu as usize],
            work: times.allocate + times.free + counts.len() as Ps * self.count_time(loop_task.cpu),
            fetches: self.fetches[loop_task.cpu as usize],
            left: loop_task.left,
            quiet: self.quiet_loops(loop_task.cpu, &steady),
            uncounted: 0,
            stale: !self.stat.lines.current(steady.zone, loop_task.cpu),
            looked: (0, 0),
            next: 0,
            steady,
        }
    }

    /// Counts of a steady loop.
    fn counts(&self, steady: &Steady) -> [NumaItem; 2] {
        [NumaItem::Hit, if steady.local { NumaItem::Local } else { NumaItem::Other }]
    }

    /// Loops of a CPU before the one that writes the shared words.
    fn quiet_loops(&self, cpu: u32, steady: &Steady) -> u64 {
        let until = |item| self.stat.numa.until_shared(steady.zone, cpu, item);
        self.counts(steady).into_iter().filter_map(until).min().map_or(u64::MAX, |until| until - 1)
    }

    /// Advances the counters to the state of a runner.
    fn settle_counters(&mut self, runner: &mut Runner, order: u32) {
        let loops = std::mem::take(&mut runner.uncounted);
        for item in self.counts(&runner.steady) {
            self.stat.numa.run(runner.steady.zone, runner.cpu, item, loops);
        }
        let kind = self.alloc.zones[runner.steady.zone].kind;
        self.stat.events.allocated[kind as usize] += loops << order;
        self.stat.events.freed += loops << order;
        runner.quiet = self.quiet_loops(runner.cpu, &runner.steady);
    }

    /// Drops the notes that all CPUs have passed.
    fn drop_notes(&self, log: &mut Log, which: usize, runners: &mut [Runner]) {
        let end = log.base + log.notes.len() as u64;
        let mut passed = end;
        for runner in runners.iter_mut().filter(|runner| runner.log == which) {
            let first = runner.note(log, &self.siblings[runner.cpu as usize]);
            if runner.left == 0 && first.is_some() {
                // It reads no more: it has lost the line.
                (runner.stale, runner.next) = (true, end);
            }
            passed = passed.min(runner.next);
        }
        log.notes.drain(..(passed - log.base) as usize);
        log.base = passed;
        log.full = LOG_NOTES.max(2 * log.notes.len());
    }
}
