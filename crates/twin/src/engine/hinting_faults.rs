//! Hinting faults in a run: drawn at the start of an epoch, handled at their time (`do_numa_page`).
//!
//! The first accesses to marked pages in the coming epoch are drawn for all threads at once, so that the order in which
//! CPUs are simulated does not decide which thread faults first. A thread has a drawn fault of its regions at the
//! access for which it was drawn, one of its program's image at its time, to an eighth of an epoch.

use super::RunError;
use super::balancing::Balancing;
use super::main_loop::{Engine, Step, Stop};
use super::process::Activity;
use crate::mm::accessed::hints::Hit;
use crate::mm::memory::AccessState;
use crate::mm::prot_numa::Unit;
use crate::numa::NumaCtx;
use crate::numa::task_migrate::Move;
use crate::time::{PS_PER_NS, Ps};
use crate::workload::accessor::{AccessProgress, Accessor};
use std::collections::BTreeMap;

/// Parts of an epoch; a thread handles the faults of a part at once.
const SLICES: Ps = 8;
/// Random numbers for images of processes: objects distinct from those of pools.
const IMAGE: u64 = 1 << 63;

/// A drawn first access.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub at: Ps,
    pub mapping: usize,
    pub unit: Unit,
}

/// Expected accesses of a stream: thread, place in the thread's list, number of accesses.
type Share = ((usize, usize), u64);

impl Engine<'_> {
    /// An epoch begins: draws the first accesses of marked pages.
    pub(super) fn numa_begin_epoch(&mut self, clock: Ps, end: Ps) {
        if self.balancing.is_none() {
            return;
        }
        for thread in &mut self.threads {
            if let Activity::Accessing(accessor) = &mut thread.activity {
                forget_ahead(Some(accessor), &mut self.memory);
            }
        }
        if self.memory.mappings.iter().any(|mapping| mapping.marked() > 0) {
            self.draw(clock, end);
        }
    }

    /// Draws the first accesses to marked pages in the time from `clock` to `end`.
    fn draw(&mut self, clock: Ps, end: Ps) {
        let Some(Balancing { pending, image, .. }) = &mut self.balancing else { return };
        // Pages of programs' images that will be accessed, with time and thread.
        let mut found: Vec<(usize, Unit, Ps, usize)> = Vec::new();
        let mut paces = vec![0; self.memory.mappings.len()];
        let mut by_pool: BTreeMap<usize, (usize, Vec<Share>)> = BTreeMap::new();
        let sharers = self.kernel.sharers() as f64;
        for (thread, at) in self.threads.iter_mut().enumerate() {
            let Activity::Accessing(accessor) = &mut at.activity else { continue };
            let pace = accessor.pace * sharers;
            let runs = self.queues.running(at.caller.cpu) == Some(thread);
            let from = if runs { self.kernel.clock(at.caller.cpu).max(clock) } else { clock };
            if runs {
                // Every turn accesses all of it, so any thread that shares a page can be the first.
                let random = self.memory.hint_random.of(IMAGE | thread as u64);
                for (number, &(mapping, unit)) in (0..).zip(&image[thread]) {
                    if self.memory.mappings[mapping].has(unit) {
                        let at = from + random.below(clock.wrapping_add(number), pace as u64);
                        found.push((mapping, unit, at, thread));
                    }
                }
            }
            let sleeps = accessor.list.iter().any(|access| access.plan.sleep > 0);
            // A thread that sleeps between accesses wakes within the time.
            let wakes = sleeps && !self.queues.holds(at.caller.cpu, thread);
            if accessor.explicit || pace <= 0.0 || !(runs || wakes) {
                continue;
            }
            let time = end.saturating_sub(from);
            let turns = (time as f64 / pace) as u64 + 1;
            for (number, access) in accessor.list.iter().enumerate() {
                let Some(mapping) = access.mapping.filter(|_| access.active()) else { continue };
                let touches = turns.min(access.left().unwrap_or(u64::MAX));
                paces[mapping] += touches;
                if let Some(pool) = access.pool {
                    by_pool.entry(pool).or_insert_with(|| (mapping, Vec::new())).1.push(((thread, number), touches));
                }
            }
        }
        let seconds = (end - clock) as f64 / PS_PER_NS as f64 / 1e9;
        for (mapping, touches) in self.memory.mappings.iter_mut().zip(paces).filter(|(_, touches)| *touches > 0) {
            mapping.pace = touches as f64 / seconds / self.memory.regions[mapping.region].len() as f64;
        }
        let mut hits: Vec<Hit> = Vec::new();
        for (number, (mapping, threads)) in by_pool {
            let of = &self.memory.mappings[mapping];
            let Some(pool) = self.memory.pools[number].as_mut().filter(|_| of.marked() > 0) else { continue };
            let Some(hints) = &mut pool.hints else { continue };
            let touches: Vec<u64> = threads.iter().map(|(_, touches)| *touches).collect();
            hints.draw(&touches, of, &self.memory.hint_random, pool.number, &mut hits);
            let mut by_thread = vec![Vec::new(); threads.len()];
            for hit in hits.drain(..) {
                by_thread[hit.thread].push(hit);
            }
            for (&((thread, number), touches), hits) in threads.iter().zip(by_thread) {
                let Activity::Accessing(accessor) = &mut self.threads[thread].activity else { continue };
                let access = &mut accessor.list[number];
                let count = access.plan.stream.count;
                let hits = hits.iter().map(|hit| (hit.touch(count, touches), hit.unit)).collect();
                access.ahead.drawn(hits, count + touches);
            }
        }
        // The first one has the fault.
        found.sort_unstable();
        found.dedup_by_key(|found| (found.0, found.1));
        found.sort_unstable_by_key(|&(mapping, unit, at, thread)| (thread, at, mapping, unit));
        for (mapping, unit, at, thread) in found {
            pending[thread].push_back(Pending { at, mapping, unit });
        }
    }

    /// Runs a thread's memory accesses with its hinting faults.
    pub(super) fn touch(&mut self, thread: usize, until: Ps) -> Result<Step, Stop> {
        let slice = self.scenario.run.epoch.0 * PS_PER_NS / SLICES;
        loop {
            let cpu = self.threads[thread].caller.cpu;
            let next = self.balancing.as_ref().and_then(|of| of.pending[thread].front().copied());
            let Some(next) = next.filter(|next| next.at < until) else { break };
            let clock = self.kernel.clock(cpu);
            if clock >= until {
                return Ok(Step::On);
            }
            if next.at > clock + slice {
                let step = self.touch_unmarked(thread, next.at)?;
                if step != Step::On || self.threads[thread].caller.cpu != cpu {
                    return Ok(step);
                }
            }
            let Some(balancing) = &mut self.balancing else { break };
            balancing.pending[thread].pop_front();
            if self.hint_fault(thread, next.mapping, next.unit)? {
                return Ok(Step::On);
            }
        }
        self.touch_unmarked(thread, until)
    }

    /// The same up to the next drawn fault; explicit accesses have their faults here.
    fn touch_unmarked(&mut self, thread: usize, until: Ps) -> Result<Step, Stop> {
        loop {
            let at = &mut self.threads[thread];
            let Activity::Accessing(accessor) = &mut at.activity else { return Ok(Step::Ended) };
            match accessor.run(&mut self.memory, &mut self.kernel, &mut at.caller, until) {
                Ok(AccessProgress::On) => return Ok(Step::On),
                Ok(AccessProgress::Asleep(until)) => return Ok(Step::Asleep(until)),
                Ok(AccessProgress::Waiting) => return Ok(Step::Waiting),
                Ok(AccessProgress::Done) => return Ok(Step::Ended),
                Ok(AccessProgress::Marked(mapping, unit)) => {
                    if self.hint_fault(thread, mapping, unit)? {
                        return Ok(Step::On);
                    }
                }
                Err(failure) => return Err(Stop::OutOfMemory(thread, failure)),
            }
        }
    }

    /// A thread accesses a marked page; true if it is on another CPU afterwards.
    fn hint_fault(&mut self, thread: usize, mapping: usize, unit: Unit) -> Result<bool, RunError> {
        let Some(Balancing { numa, .. }) = &mut self.balancing else { return Ok(false) };
        if !self.memory.mappings[mapping].has(unit) {
            return Ok(false);
        }
        let mut ctx = NumaCtx { kernel: &mut self.kernel, memory: &mut self.memory, queues: &self.queues };
        let cpu = self.threads[thread].caller.cpu;
        let (before, began) = (ctx.kernel.stat.events.faults, ctx.kernel.clock(cpu));
        let asks = numa.do_numa_page(&mut ctx, thread, mapping, unit);
        if let Activity::Accessing(accessor) = &mut self.threads[thread].activity {
            let (faults, ended) = (ctx.kernel.stat.events.faults, ctx.kernel.clock(cpu));
            accessor.note_hints(mapping, unit, faults - before, (began, ended));
        }
        if !asks {
            return Ok(false);
        }
        match numa.numa_migrate_preferred(&mut ctx, thread) {
            None => return Ok(false),
            Some(Move::To(cpu)) => self.move_thread(thread, cpu)?,
            Some(Move::Swap(cpu, with)) => {
                let own = self.threads[thread].caller.cpu;
                self.queues.swap(own, cpu);
                let now = self.kernel.now(own);
                self.set_cpu(thread, cpu, now);
                self.set_cpu(with, own, now);
                self.make_ready(cpu);
            }
        }
        self.not_batchable = false;
        Ok(true)
    }

    /// A thread has another activity: its drawn pages wait for other threads again.
    pub(super) fn numa_forget(&mut self, thread: usize) {
        let Some(balancing) = &mut self.balancing else { return };
        let of = &mut self.threads[thread];
        let accessor =
            if let Activity::Accessing(accessor) = &mut of.activity { Some(accessor) } else { of.touched.as_mut() };
        forget_ahead(accessor, &mut self.memory);
        for Pending { mapping, unit, .. } in balancing.pending[thread].drain(..) {
            if self.memory.mappings[mapping].has(unit) {
                self.memory.list(mapping, unit);
            }
        }
    }
}

/// Units that a thread has not reached wait for other threads again.
fn forget_ahead(accessor: Option<&mut Accessor>, memory: &mut AccessState) {
    let Some(accessor) = accessor else { return };
    accessor.forget_ahead(|mapping, unit| {
        if memory.mappings[mapping].has(unit) {
            memory.list(mapping, unit);
        }
    });
}
