//! One step of a CPU: its thread runs until the next CPU is behind it, until something is due, or until the epoch ends. While
//! memory is reclaimed, and where accesses are drawn in bulk on CPUs of their own, it has a turn of some time, in which others
//! may wake. CPUs that share the time of one have turns by other rules ([`super::turns`]).
//!
//! Which CPU is next is in [`super::main_loop`]; what a thread does is its [`Activity`].

use super::main_loop::{Engine, Step, Stop};
use super::process::Activity;
use super::slowpath::SHORTEST_TURN;
use super::turns::Overrun;
use crate::lab_guest::turns::Turns;
use crate::mm::kernel::budget::Ended;
use crate::mm::slowpath::AllocSlowpath;
use crate::sched::TaskState;
use crate::time::{PS_PER_NS, Ps};
use crate::workload::accessor::Accessor;

impl Engine<'_> {
    /// Runs the thread of a CPU for some time.
    pub(super) fn step(&mut self, cpu: u32, clock: Ps) -> Result<(), Stop> {
        let Some(thread) = self.queues.running(cpu) else { return Ok(()) };
        if !self.has_host_cpu(cpu) {
            return Ok(());
        }
        let begin = self.kernel.clock(cpu);
        if begin > clock {
            self.make_ready(cpu);
            return Ok(());
        }
        self.kernel.begin_turn(cpu, clock, self.turns.as_ref().map_or(clock, Turns::end));
        self.run_kernel_timers(clock / PS_PER_NS);
        if clock >= self.epoch_end {
            self.end_epoch(clock)?;
            self.tick_host(clock);
            if !self.has_host_cpu(cpu) {
                return Ok(());
            }
            if self.queues.running(cpu) != Some(thread) {
                self.make_ready(cpu);
                return Ok(());
            }
        }
        if self.kernel.pay_ticks(cpu) {
            self.turns.iter_mut().for_each(Turns::tick_set);
            self.interrupted(cpu, thread, begin);
            return Ok(());
        }
        let slice = self.queues.until_hrtick(cpu);
        if slice == Some(0) {
            self.kernel.spend(cpu, self.scenario.machine.cost.hrtick.0);
            self.interrupted(cpu, thread, begin);
            self.queues.hrtick(cpu);
            return Ok(());
        }
        let due = self.due.next_at().map_or(Ps::MAX, |at| at.saturating_mul(PS_PER_NS));
        let turn_end = self.turns.as_ref().map(Turns::end);
        let slice_end = slice.map_or(Ps::MAX, |left| clock.saturating_add(left));
        let until = self.epoch_end.min(due).min(slice_end).min(turn_end.map_or(Ps::MAX, |end| end.max(clock + 1)));
        if self.recorder() == Some(thread) {
            self.record(thread, begin, until)?;
            self.requests_begin(cpu, None);
            self.process_effects(cpu, clock)?;
            return Ok(());
        }
        self.goes_on(thread);
        if turn_end.is_none() && self.run_loops_together(until)? {
            return Ok(());
        }
        if let Some(overrun) = self.threads[thread].overrun.take() {
            self.work_off(thread, overrun, begin, until)?;
            self.process_effects(cpu, clock)?;
            self.make_ready(cpu);
            return Ok(());
        }
        let (in_order, together) = match turn_end {
            // No other CPU runs meanwhile.
            Some(_) => (until, until),
            None => self.step_ends(thread, clock, due, until),
        };
        self.psi_runs(thread);
        let reclaim = self.reclaim(thread, together);
        let step = match reclaim {
            Some(step) => step,
            None => {
                self.psi_runnable(thread, self.kernel.clock(cpu));
                self.step_on(thread, in_order, together)?
            }
        };
        self.note_high(thread);
        let waits = self.psi_stepped(thread, reclaim.is_some(), step);
        let left = self.end_turn(cpu);
        self.account(cpu, thread, begin);
        let came_to = left.as_ref().map_or(until, |(ended, _)| ended.end);
        self.threads[thread].left_off = Some((came_to, self.kernel.clock(cpu)));
        match left {
            Some((ended, ends)) => {
                let requests = self.requests_begin(cpu, Some((&ended, ends)));
                self.threads[thread].overrun = Some(Overrun::new((ended, ends), requests, step, waits));
            }
            None => {
                self.requests_begin(cpu, None);
                self.end_step(thread, step, waits)?;
            }
        }
        self.process_effects(cpu, clock)?;
        self.make_ready(cpu);
        Ok(())
    }

    /// A thread goes on after others: if it was in the midst of an access, that has waited for them.
    fn goes_on(&mut self, thread: usize) {
        let Some((came_to, at)) = self.threads[thread].left_off.take() else { return };
        let waited = self.kernel.clock(self.threads[thread].caller.cpu).saturating_sub(at);
        if let Activity::Accessing(accessor) = &mut self.threads[thread].activity {
            accessor.paused(came_to, waited);
        }
    }

    /// An interrupt has taken a CPU's time since the thread began.
    fn interrupted(&mut self, cpu: u32, thread: usize, begin: Ps) {
        if self.recorder() != Some(thread) {
            self.account(cpu, thread, begin);
        }
        self.make_ready(cpu);
    }

    /// A CPU's step is over, and its turn if that has ended. What it did beyond, which is taken back, and when it would have
    /// done that.
    pub(super) fn end_turn(&mut self, cpu: u32) -> Option<(Ended, Ps)> {
        let turns = self.turns.as_mut()?;
        let ends = self.kernel.clock(cpu);
        let ended = self.kernel.end_turn(cpu, turns.end());
        turns.ends(ended.end);
        Some((ended, ends)).filter(|(ended, _)| ended.beyond > 0)
    }

    /// A thread's step is over.
    pub(super) fn end_step(&mut self, thread: usize, step: Step, waits: TaskState) -> Result<(), Stop> {
        match step {
            Step::On => {}
            Step::Asleep(until) => {
                self.threads[thread].left_off = None;
                self.sleep(thread, until, waits)?;
            }
            Step::Waiting => {
                self.threads[thread].left_off = None;
                self.stop_running(thread, waits)?;
            }
            Step::Ended => self.go_on(thread)?,
            Step::Still => return Err(self.stands_still(Some(thread)).into()),
            Step::Waits => return Err(self.waits_for_ever(thread).into()),
        }
        Ok(())
    }

    /// Until when a CPU with time of its own runs: in order with others, and if it does not depend on them.
    fn step_ends(&self, thread: usize, clock: Ps, due: Ps, until: Ps) -> (Ps, Ps) {
        // One CPU at a time, so that they reach the allocator, or marked pages, in order.
        let cpu = self.threads[thread].caller.cpu;
        let next = self.ready.first().map_or(Ps::MAX, |(at, other)| at + Ps::from(cpu < other));
        let in_order = until.min(next).max(clock + 1);
        let together = match self.reclaims() {
            true => self.turn_ends(clock, due, in_order),
            false if self.may_pass_wakeups(thread) => until.max(self.turn_ends(clock, due, in_order)),
            false => until,
        };
        (in_order, together)
    }

    /// A thread has run on its CPU since a time.
    pub(super) fn account(&mut self, cpu: u32, thread: usize, begin: Ps) {
        let ran = self.kernel.clock(cpu) - begin;
        self.threads[thread].ran += ran;
        if let Activity::Accessing(accessor) = &mut self.threads[thread].activity {
            accessor.ran += ran;
            accessor.own += self.kernel.clock(cpu) - self.kernel.turn_began().max(begin);
        }
        self.numa_ran(thread, ran);
        self.queues.ran(cpu, thread, ran);
    }

    /// True if a thread's accesses are drawn in bulk and take the same time whoever wakes meanwhile. To end a draw of a
    /// million at every wakeup on any CPU would take most of a run's time.
    fn may_pass_wakeups(&self, thread: usize) -> bool {
        let drawn = |of: &Accessor| !of.explicit && of.replay.is_none();
        matches!(&self.threads[thread].activity, Activity::Accessing(of) if drawn(of))
    }

    /// End of a CPU's turn while memory is reclaimed, or accesses are drawn in bulk. Every written page and every wakeup is a
    /// timer of its own; a turn that is longer than the shortest continues past those.
    fn turn_ends(&self, clock: Ps, due: Ps, in_order: Ps) -> Ps {
        let fixed = self.fixed.first().map_or(Ps::MAX, |at| at.saturating_mul(PS_PER_NS));
        let until = due.max(clock + self.turn - SHORTEST_TURN).min(fixed).min(self.epoch_end);
        until.min(in_order.max(clock + self.turn))
    }

    /// Runs a thread: in order with other CPUs, or independently if possible.
    fn step_on(&mut self, thread: usize, in_order: Ps, until: Ps) -> Result<Step, Stop> {
        let awaited = self.threads[thread].slowpath.as_ref().map(AllocSlowpath::request);
        // Its slow path may have exceeded its turn: it retries in the next one, and has no memory yet.
        let independent = matches!(&self.threads[thread].activity, Activity::Accessing(of) if of.replay.is_none())
            && !(self.options.explicit && self.balancing.is_some());
        let end = if independent { until } else { in_order };
        if awaited.is_some() && self.kernel.clock(self.threads[thread].caller.cpu) >= end {
            return Ok(Step::On);
        }
        self.kernel.awaited = awaited;
        let denied = std::mem::take(&mut self.threads[thread].denied);
        let step = match &mut self.threads[thread].activity {
            Activity::Nothing => Ok(Step::Ended),
            Activity::Kswapd(_) | Activity::Kcompactd(_) | Activity::Flusher(_) | Activity::BioEndIo(_) => {
                Ok(self.work_of_kernel(thread, until))
            }
            Activity::Action(..) => self.act(thread, end, denied),
            Activity::Reporting(_) => self.go_on_reporting(thread, end),
            Activity::Exiting(_) => Ok(self.go_on_exiting(thread, end)?),
            Activity::Accessing(_) => {
                self.memory.denied = denied;
                self.touch(thread, end)
            }
        };
        let got = awaited.is_some() && self.kernel.awaited.take().is_none();
        match step {
            Err(Stop::OutOfMemory(thread, failure)) => {
                if got {
                    // This is the next request.
                    self.alloc_slowpath_ends(thread);
                }
                self.alloc_slowpath(thread, failure)
            }
            step => {
                if awaited.is_some() {
                    // It has its memory.
                    self.alloc_slowpath_ends(thread);
                }
                step
            }
        }
    }
}
