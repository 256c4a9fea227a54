//! CPUs that share the time of one take turns ([`Turns`](crate::lab_guest::turns::Turns)): which is next, and the work of a
//! step that is beyond its CPU's turn.
//!
//! A step simulates at least one access, a batch of reclaim or the like, which may take longer than the turn. Its effects
//! are there at once, but its end, and so the thread's next sleep, is when its CPU has had turns for all of it.

use super::main_loop::{Engine, Step, Stop};
use crate::lab_guest::turns::Next;
use crate::mm::kernel::budget::Ended;
use crate::sched::TaskState;
use crate::time::{PS_PER_NS, Ps};
use std::collections::VecDeque;

/// What is left to do of a step.
#[derive(Clone, Debug)]
pub(crate) struct Overrun {
    /// Work.
    left: Ps,
    /// How much of it is left each time that the CPU waits for others, the first time first.
    pauses: VecDeque<Ps>,
    /// When it would have ended without the others' turns.
    ends: Ps,
    /// How the step ends.
    step: Step,
    waits: TaskState,
}

impl Overrun {
    pub(super) fn new(ended: Ended, ends: Ps, step: Step, waits: TaskState) -> Overrun {
        Overrun { left: ended.beyond, pauses: ended.waits, ends, step, waits }
    }

    /// Work that follows what is left.
    fn add(&mut self, more: Ended) {
        self.pauses.iter_mut().for_each(|left| *left += more.beyond);
        self.pauses.extend(more.waits);
        (self.left, self.ends) = (self.left + more.beyond, self.ends + more.beyond);
    }
}

impl Engine<'_> {
    /// The CPU that runs next, and from when on.
    pub(super) fn next_cpu(&mut self) -> Option<(Ps, u32)> {
        let first = self.ready.first()?;
        let Some((turns, used)) = self.turns.as_mut().zip(self.kernel.budget_used()) else { return Some(first) };
        let now = used.max(first.0);
        let ready = &self.ready;
        let is_busy = |cpu: u32| ready.clock(cpu).is_some_and(|clock| clock <= now);
        if let Some(cpu) = turns.lasting(now).filter(|&cpu| is_busy(cpu)) {
            return Some((now, cpu));
        }
        let next = Next {
            tick: self.kernel.tick_after(now),
            due: self.due.next_at().map_or(Ps::MAX, |at| at.saturating_mul(PS_PER_NS)),
        };
        if next.due <= now {
            // The timer is first, whoever is next.
            return Some((now, first.1));
        }
        let kernel = &mut self.kernel;
        turns.begin(now, next, is_busy, |cpu| kernel.take_woken(cpu, now)).map(|cpu| (now, cpu))
    }

    /// What a thread has done outside its steps since `begun`, where CPUs take turns, it does in its next ones. It has run
    /// until `ran_until` before.
    pub(super) fn defer(&mut self, thread: usize, ran_until: Ps, begun: Ps) {
        if self.turns.is_none() {
            return;
        }
        let cpu = self.threads[thread].caller.cpu;
        let ends = self.kernel.clock(cpu);
        let more = self.kernel.end_turn(cpu, begun.max(ran_until));
        self.account(cpu, thread, ran_until);
        if more.beyond == 0 {
            return;
        }
        match &mut self.threads[thread].overrun {
            Some(overrun) => overrun.add(more),
            none => *none = Some(Overrun::new(more, ends, Step::On, TaskState::default())),
        }
    }

    /// Goes on with what is left of a step, until a time.
    pub(super) fn work_off(&mut self, thread: usize, mut overrun: Overrun, begin: Ps, until: Ps) -> Result<(), Stop> {
        let cpu = self.threads[thread].caller.cpu;
        let pause = overrun.pauses.front().copied();
        let time = until.saturating_sub(self.kernel.clock(cpu)).min(overrun.left - pause.unwrap_or(0));
        self.kernel.spend(cpu, time);
        self.account(cpu, thread, begin);
        overrun.left -= time;
        if pause == Some(overrun.left) {
            overrun.pauses.pop_front();
            if self.kernel.others_are_busy(cpu) {
                let at = self.kernel.clock(cpu);
                self.turns.iter_mut().for_each(|turns| turns.ends(at));
            }
        }
        self.threads[thread].left_off = Some((overrun.ends - overrun.left, self.kernel.clock(cpu)));
        if overrun.left > 0 {
            self.threads[thread].overrun = Some(overrun);
            return Ok(());
        }
        // What it waits for began later by the others' turns.
        let later = self.kernel.clock(cpu).saturating_sub(overrun.ends);
        let step = match overrun.step {
            Step::Asleep(until) => Step::Asleep(until + later),
            step => step,
        };
        self.end_step(thread, step, overrun.waits)
    }

    /// True if a thread was about to sleep when what is left of its step is done: it stays awake.
    pub(super) fn stays_awake(&mut self, thread: usize) -> bool {
        let Some(overrun) = &mut self.threads[thread].overrun else { return false };
        let sleeps = matches!(overrun.step, Step::Asleep(_) | Step::Waiting);
        if sleeps {
            overrun.step = Step::On;
        }
        sleeps
    }
}
