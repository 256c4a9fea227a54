//! The stress tests as single events: every area, every operation on a contended line.
//!
//! Models the same as [`rates`](crate::vmalloc::rates), without rates: lines are first-come-first-served servers, areas
//! are taken from the address space and returned to it through its pools, the count is the sum of what was added and
//! subtracted. Trace events are written here. Times are picoseconds inside, so that service times of some nanoseconds
//! do not round.
//!
//! Not modelled: waiting for the locks of pools, trees and pages; more threads than CPUs; migration, except to idle CPUs.
//! Validated: same means as over rates where both run (tests/vmalloc_forms.rs); the trace is checked against the
//! trigger rule (same file).

use super::lanes::Lanes;
use super::params::{Counters, PAGE_SHIFT, PurgeAccounting};
use super::space::{Area, Mapping, Pass, Request, Space, SpaceError, VMALLOC};
use super::stress::{Frees, GUARD, Step};
use super::{Outcome, Params, stress};
use crate::hw::line::Line;
use crate::probe::{Probe, Task};
use crate::time::Timers;
use mmtwin_event::vocabulary::{AllocVmapArea, FreeVmapAreaNoflush, PurgeVmapAreaLazy};
use std::collections::VecDeque;

/// Areas that a batched purge moves between two checks of the clock.
const CHUNK: usize = 64;
/// Id of the first thread; workers follow the threads.
const FIRST_PID: u32 = 1000;

/// Runs the stress tests.
pub(super) fn run(params: &Params, probe: &mut Probe, seed: u64) -> Result<Outcome, SpaceError> {
    let mut run = Run::new(params, probe, seed);
    for thread in 0..params.workload.threads {
        run.thread(thread as usize)?;
    }
    while run.happen()? {}
    run.outcome.ran_ns = run.now / 1000;
    Ok(run.outcome)
}

struct Thread {
    /// Its current step; `None` at its end.
    current: Option<Current>,
    steps: std::vec::IntoIter<Step>,
    rounds: u64,
    /// Next step of this round.
    stage: u32,
    /// Areas of this round, and areas kept for later steps.
    areas: [u64; 2],
    kept: Vec<u64>,
    live: usize,
    cpu: usize,
}

/// A step, with the values that every event needs.
#[derive(Clone, Copy)]
struct Current {
    step: Step,
    allocated: u32,
    freed: u32,
    /// Lane of its local work.
    lane: usize,
}

impl Current {
    fn of(step: Step, lanes: &mut Lanes) -> Current {
        let lane = lanes.of((step.local_ns * 1e3) as u64);
        Current { step, allocated: step.allocated(), freed: step.freed().0, lane }
    }
}

struct Worker {
    node: usize,
    done: usize,
    inline: bool,
    started: u64,
    stage: Work,
}

#[derive(Clone, Copy, PartialEq)]
enum Work {
    /// Unlinks the next areas.
    Unlinks,
    /// Number of unlinked areas.
    Subtracts(usize),
    /// Subtracts the sum of the list.
    Sums,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    BeginPass,
    EndFlush,
    Helper(usize),
    /// A worker continues.
    Resume(u32),
    /// A parked thread continues on its CPU.
    Unpark(u32),
}

struct Run<'a> {
    p: &'a Params,
    probe: &'a mut Probe,
    now: u64,
    space: Space,
    lanes: Lanes,
    /// Times are picoseconds.
    timers: Timers<What>,
    lines: [Line; 2],
    /// Period of CPU sharing between a worker and a thread, and the worker's part of it.
    slice: (u64, u64),
    /// Lanes of the two lines' completions; the same if there is one line.
    on_line: [usize; 2],
    threads: Vec<Thread>,
    /// By CPU.
    workers: Vec<Option<Worker>>,
    threads_on: Vec<u32>,
    /// Thread that waits for its CPU, and until when; `u64::MAX`: until the worker ends.
    parked: Vec<Option<(u32, u64)>>,
    queued: bool,
    pass: Option<Pass>,
    drain_cpu: usize,
    inline: VecDeque<usize>,
    helpers_left: usize,
    delayed_helper: Option<usize>,
    outcome: Outcome,
}

fn ps(us: f64) -> u64 {
    (us * 1e6) as u64
}

impl<'a> Run<'a> {
    fn new(p: &'a Params, probe: &'a mut Probe, seed: u64) -> Run<'a> {
        let cpus = p.machine.online_cpus as usize;
        let slice = ps(p.machine.slice_us).max(1);
        let mut lanes = Lanes::default();
        let first = lanes.ordered();
        let second = if p.rules.counters == Counters::Aligned { lanes.ordered() } else { first };
        let thread = |i: u32| {
            let mut steps = stress::program(&p.workload, cpus as u32, i, seed).into_iter();
            let (current, cpu) = (steps.next().map(|step| Current::of(step, &mut lanes)), i as usize);
            Thread { current, steps, rounds: 0, stage: 0, areas: [0; 2], kept: Vec::new(), live: 0, cpu }
        };
        let threads: Vec<Thread> = (0..p.workload.threads).map(thread).collect();
        let space = Space::new(p.rules, cpus as u32, p.machine.possible_cpus, VMALLOC);
        let outcome = Outcome { nr_purged: vec![0; space.nodes()], ..Outcome::default() };
        Run {
            p,
            probe,
            now: 0,
            lanes,
            timers: Timers::default(),
            lines: [Line::new(p.machine.line_ns); 2],
            slice: (slice, (slice as f64 * p.machine.worker_share) as u64),
            on_line: [first, second],
            threads_on: (0..cpus).map(|cpu| u32::from(cpu < threads.len())).collect(),
            threads,
            workers: (0..cpus).map(|_| None).collect(),
            parked: vec![None; cpus],
            queued: false,
            pass: None,
            drain_cpu: 0,
            inline: VecDeque::new(),
            helpers_left: 0,
            delayed_helper: None,
            space,
            outcome,
        }
    }

    /// False if nothing is left to happen.
    fn happen(&mut self) -> Result<bool, SpaceError> {
        let timer = self.timers.next_at().unwrap_or(u64::MAX);
        if let Some((at, customer)) = self.lanes.take(timer.saturating_sub(1)) {
            self.now = at;
            self.turn(customer)?;
            return Ok(true);
        }
        let Some(timer) = self.timers.take(u64::MAX) else { return Ok(false) };
        self.now = timer.at;
        match timer.what {
            What::BeginPass => self.begin_pass(),
            What::EndFlush => self.end_flush(),
            What::Helper(node) => self.begin_helper(node),
            What::Unpark(thread) => {
                // A thread that was parked twice has two timers; the earlier one may come while it runs.
                let parked = &mut self.parked[timer.cpu as usize];
                if *parked == Some((thread, timer.at)) {
                    *parked = None;
                    self.thread(thread as usize)?;
                }
            }
            What::Resume(cpu) => self.work(cpu as usize),
        }
        Ok(true)
    }

    /// Threads come first, then workers by CPU.
    fn turn(&mut self, customer: u32) -> Result<(), SpaceError> {
        match (customer as usize).checked_sub(self.threads.len()) {
            None => self.thread(customer as usize),
            Some(cpu) => {
                self.work(cpu);
                Ok(())
            }
        }
    }

    /// An operation on the line of the lazy count (0) or of the other count (1).
    fn operate(&mut self, line: usize, customer: u32) {
        let lane = self.on_line[line];
        // Equal lanes are one line.
        let server = if self.on_line[0] == self.on_line[1] { 0 } else { line };
        let done = self.lines[server].serve(self.now);
        self.lanes.push(lane, done, customer);
    }

    /// A worker and a thread on one CPU take turns, the worker first. Returns when the caller may continue; `None`:
    /// now.
    fn waits_until(&self, cpu: usize, is_worker: bool) -> Option<u64> {
        let worker = self.workers[cpu].as_ref()?;
        let (slice, of_worker) = self.slice;
        let alone = of_worker == slice;
        if self.threads_on[cpu] == 0 || is_worker && alone {
            return None;
        }
        let since = (self.now - worker.started) % slice;
        let workers_turn = since < of_worker;
        match (is_worker, workers_turn) {
            (true, true) | (false, false) => None,
            (true, false) => Some(self.now + slice - since),
            (false, true) if alone => Some(u64::MAX),
            (false, true) => Some(self.now + of_worker - since),
        }
    }

    fn thread(&mut self, i: usize) -> Result<(), SpaceError> {
        let cpu = self.threads[i].cpu;
        if let Some(until) = self.waits_until(cpu, false) {
            if let Some(idle) = (0..self.workers.len()).find(|&c| self.threads_on[c] == 0 && self.workers[c].is_none())
            {
                self.threads_on[cpu] -= 1;
                self.threads_on[idle] += 1;
                self.threads[i].cpu = idle;
            } else {
                self.parked[cpu] = Some((i as u32, until));
                if until < u64::MAX {
                    self.timers.set(until, cpu as u32, What::Unpark(i as u32));
                }
                return Ok(());
            }
        }
        loop {
            let thread = &mut self.threads[i];
            let Some(Current { step, allocated, freed, lane }) = thread.current else { return Ok(()) };
            let stage = thread.stage;
            thread.stage += 1;
            if stage < allocated {
                let start = self.alloc(i, step.allocates[stage as usize])?;
                let thread = &mut self.threads[i];
                if step.frees == Frees::Own {
                    thread.areas[stage as usize] = start;
                } else {
                    thread.kept.push(start);
                    thread.live += 1;
                }
                self.operate(1, i as u32);
                return Ok(());
            }
            if stage == allocated {
                self.lanes.push(lane, self.now, i as u32);
                return Ok(());
            }
            let (area, added) = ((stage - allocated - 1) / 2, (stage - allocated - 1) % 2 == 1);
            if area < freed {
                if added {
                    self.free(i, step, area)?;
                }
                self.operate(usize::from(added), i as u32);
                return Ok(());
            }
            self.end_round(i, step);
        }
    }

    fn end_round(&mut self, i: usize, step: Step) {
        let thread = &mut self.threads[i];
        thread.stage = 0;
        thread.rounds += 1;
        if thread.live == 0 {
            thread.kept.clear();
        }
        if thread.rounds == step.times {
            thread.rounds = 0;
            thread.current = thread.steps.next().map(|step| Current::of(step, &mut self.lanes));
            if thread.current.is_none() {
                self.threads_on[thread.cpu] -= 1;
            }
        }
    }

    fn alloc(&mut self, i: usize, pages: u32) -> Result<u64, SpaceError> {
        let cpu = self.threads[i].cpu as u32;
        let size = u64::from(pages - GUARD) << PAGE_SHIFT;
        let mapping = Mapping::Vmalloc { nid: 0 };
        let request = Request { size, align: 1, range: None, cpu, mapping, caller: "test_vmalloc" };
        let (at, probe, events) = (self.now / 1000, &mut *self.probe, self.p.rules.trace_events);
        let task = task(i);
        let area = self.space.alloc(&request, |search| {
            if events {
                let (vstart, vend) = VMALLOC;
                let failed = i32::from(search.failed);
                let size = u64::from(pages) << PAGE_SHIFT;
                let event = AllocVmapArea { va_start: search.addr, size, align: 1, vstart, vend, failed };
                probe.write(at, cpu, task, &event, b"");
            }
        })?;
        Ok(area.start)
    }

    fn free(&mut self, i: usize, step: Step, area: u32) -> Result<(), SpaceError> {
        let thread = &mut self.threads[i];
        let start = match step.frees {
            Frees::Own => thread.areas[area as usize],
            Frees::Kept { first, stride, .. } => {
                thread.live -= 1;
                thread.kept[first as usize + stride as usize * thread.rounds as usize]
            }
            Frees::Nothing => return Ok(()),
        };
        let cpu = thread.cpu;
        let (_, lazy) = self.space.free(start)?;
        self.outcome.freed += 1;
        let nr_lazy_max = self.space.lazy_max();
        if self.p.rules.trace_events {
            let event = FreeVmapAreaNoflush { va_start: start, nr_lazy: lazy, nr_lazy_max };
            self.probe.write(self.now / 1000, cpu as u32, task(i), &event, b"");
        }
        if lazy > nr_lazy_max && !self.queued {
            self.queued = true;
            // A work that is queued while it runs stays on its CPU: workqueues run a work once at a time.
            if self.pass.is_none() {
                self.drain_cpu = cpu;
                self.timers.set(self.now + ps(self.p.machine.wake_us), cpu as u32, What::BeginPass);
            }
        }
        Ok(())
    }

    fn begin_pass(&mut self) {
        self.queued = false;
        self.outcome.passes += 1;
        self.outcome.most_lazy_pages = self.outcome.most_lazy_pages.max(self.space.vmap_lazy_nr());
        let pass = self.space.begin_pass(false);
        self.inline = (0..pass.lists.len()).filter(|&node| !pass.lists[node].is_empty()).collect();
        let flush = self.p.machine.tlb_flush.ns(self.p.machine.online_cpus) / 1e3;
        let flush = if self.inline.is_empty() { 0 } else { ps(flush) };
        self.pass = Some(pass);
        self.timers.set(self.now + flush, self.drain_cpu as u32, What::EndFlush);
    }

    fn end_flush(&mut self) {
        let helpers = self.pass.as_ref().map_or(0, |pass| pass.helpers as usize);
        self.helpers_left = helpers;
        let starts = self.now + ps(self.p.machine.wake_us);
        for node in self.inline.drain(..helpers) {
            self.timers.set(starts, (node % self.workers.len()) as u32, What::Helper(node));
        }
        match self.inline.pop_front() {
            Some(node) => self.begin_work(node, self.drain_cpu, true),
            None => self.end_pass(),
        }
    }

    fn begin_helper(&mut self, node: usize) {
        let cpu = node % self.workers.len();
        if self.workers[cpu].is_some() {
            // The drain worker's CPU runs one work after another.
            self.delayed_helper = Some(node);
        } else {
            self.begin_work(node, cpu, false);
        }
    }

    fn begin_work(&mut self, node: usize, cpu: usize, inline: bool) {
        self.space.begin_node(node);
        self.workers[cpu] = Some(Worker { node, done: 0, inline, started: self.now, stage: Work::Unlinks });
        self.work(cpu);
    }

    fn work(&mut self, cpu: usize) {
        let customer = (self.threads.len() + cpu) as u32;
        if let Some(until) = self.waits_until(cpu, true) {
            self.timers.set(until, cpu as u32, What::Resume(cpu as u32));
            return;
        }
        let (Some(pass), Some(worker)) = (&self.pass, &mut self.workers[cpu]) else { return };
        let list: &[Area] = &pass.lists[worker.node];
        let local = self.p.machine.purge_local_us;
        let per_area = self.p.rules.purge_accounting == PurgeAccounting::PerArea;
        match worker.stage {
            Work::Unlinks if worker.done == list.len() && per_area => self.end_work(cpu),
            Work::Unlinks if worker.done == list.len() => {
                worker.stage = Work::Sums;
                self.operate(0, customer);
            }
            Work::Unlinks => {
                let areas = if per_area { 1 } else { CHUNK.min(list.len() - worker.done) };
                worker.stage = Work::Subtracts(areas);
                let delay = ps(local * areas as f64);
                if areas == CHUNK || per_area {
                    let lane = self.lanes.of(delay);
                    self.lanes.push(lane, self.now, customer);
                } else {
                    self.timers.set(self.now + delay, cpu as u32, What::Resume(cpu as u32));
                }
            }
            Work::Subtracts(areas) => {
                let (node, from) = (worker.node, worker.done);
                worker.done += areas;
                worker.stage = Work::Unlinks;
                list[from..from + areas].iter().for_each(|&area| self.space.purge_area(pass, node, area));
                if per_area {
                    self.operate(0, customer);
                } else {
                    self.work(cpu);
                }
            }
            Work::Sums => self.end_work(cpu),
        }
    }

    fn end_work(&mut self, cpu: usize) {
        let (Some(pass), Some(worker)) = (&self.pass, self.workers[cpu].take()) else { return };
        self.space.end_node(pass, worker.node);
        let ns = (self.now - worker.started) / 1000;
        self.outcome.purged += pass.lists[worker.node].len() as u64;
        if ns > self.outcome.calls.longest_ns() {
            self.outcome.nr_purged = pass.lists.iter().map(|list| list.len() as u64).collect();
        }
        self.outcome.calls.add(ns);
        if worker.inline
            && let Some(node) = self.inline.pop_front()
        {
            return self.begin_work(node, cpu, true);
        }
        if !worker.inline {
            self.helpers_left -= 1;
        }
        if let Some((thread, until)) = &mut self.parked[cpu] {
            *until = self.now;
            self.timers.set(self.now, cpu as u32, What::Unpark(*thread));
        }
        if worker.inline
            && let Some(node) = self.delayed_helper.take()
        {
            self.begin_work(node, cpu, false);
        }
        if self.helpers_left == 0 && self.inline.is_empty() && !self.workers.iter().any(Option::is_some) {
            self.end_pass();
        }
    }

    fn end_pass(&mut self) {
        let Some(pass) = self.pass.take() else { return };
        if self.p.rules.trace_events {
            let (start, end) = pass.range;
            let event = PurgeVmapAreaLazy { start, end, num_purged: pass.areas() as u32 };
            let task = task(self.threads.len() + self.drain_cpu);
            self.probe.write(self.now / 1000, self.drain_cpu as u32, task, &event, b"");
        }
        if self.queued {
            self.outcome.passes_again += 1;
            self.timers.set(self.now, self.drain_cpu as u32, What::BeginPass);
        }
    }
}

fn task(i: usize) -> Task {
    let pid = (FIRST_PID + i as u32) as i32;
    Task { pid, tgid: pid }
}
