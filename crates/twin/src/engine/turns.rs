//! CPUs that share the time of one take turns ([`Turns`](crate::lab_guest::turns::Turns)): which is next, and the work of a
//! step that is beyond its CPU's turn.
//!
//! A step simulates at least one access, a batch of reclaim or the like, which may take longer than the turn. Its effects
//! are there at once, but its end, and so the thread's next sleep, is when its CPU has had turns for all of it.

use super::main_loop::{Due, Engine, Step, Stop};
use crate::lab_guest::turns::Next;
use crate::mm::kernel::Kernel;
use crate::mm::kernel::budget::{Ended, Woken};
use crate::mm::kernel::spinlock::Section;
use crate::sched::TaskState;
use crate::time::{PS_PER_NS, Ps};
use std::collections::VecDeque;

/// A request that a slow disk has been given.
#[derive(Clone, Copy, Debug)]
pub(super) struct Begun {
    /// How long it takes.
    takes: Ps,
    end: Due,
}

/// What is left to do of a step.
#[derive(Clone, Debug)]
pub(crate) struct Overrun {
    /// Work.
    left: Ps,
    /// How much of it is left each time that the CPU waits for others, the first time first.
    pauses: VecDeque<Ps>,
    /// How much of it is left when it gives a slow disk a request, the first one first.
    requests: VecDeque<(Ps, Begun)>,
    /// What of it is done under locks, the first first.
    sections: VecDeque<Section>,
    /// When it would have ended without the others' turns.
    ends: Ps,
    /// How the step ends.
    step: Step,
    waits: TaskState,
}

impl Overrun {
    pub(super) fn new(
        (ended, ends): (Ended, Ps),
        requests: VecDeque<(Ps, Begun)>,
        step: Step,
        waits: TaskState,
    ) -> Overrun {
        Overrun { left: ended.beyond, pauses: ended.waits, requests, sections: ended.sections, ends, step, waits }
    }

    /// Work that follows what is left.
    fn add(&mut self, more: Ended) {
        self.pauses
            .iter_mut()
            .chain(self.requests.iter_mut().map(|(left, _)| left))
            .for_each(|left| *left += more.beyond);
        for section in &mut self.sections {
            (section.from, section.to) = (section.from + more.beyond, section.to + more.beyond);
        }
        self.pauses.extend(more.waits);
        self.sections.extend(more.sections);
        (self.left, self.ends) = (self.left + more.beyond, self.ends + more.beyond);
    }

    /// The next work of some time takes locks, and holds the last if that is not released by then. Returns the work until one
    /// that another CPU holds, if there is.
    fn take_locks(&mut self, kernel: &mut Kernel, cpu: u32, time: Ps) -> Option<Ps> {
        let left = self.left - time;
        while let Some(&Section { lock, from, to }) = self.sections.front().filter(|section| section.from > left) {
            let taken = from > self.left;
            if !taken && kernel.is_locked(lock, cpu) {
                return Some(self.left - from);
            }
            if to < left {
                kernel.hold(lock, cpu);
                break;
            }
            self.sections.pop_front();
        }
        None
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
        let (kernel, deferred) = (&mut self.kernel, self.scenario.kernel.sched.hrtimer_rearm_deferred);
        let woken = |cpu| kernel.take_woken(cpu, now).is_some_and(|by| !(deferred && by == Woken::ByTimer));
        turns.begin(now, next, is_busy, woken).map(|cpu| (now, cpu))
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
            none => *none = Some(Overrun::new((more, ends), VecDeque::new(), Step::On, TaskState::default())),
        }
    }

    /// Goes on with what is left of a step, until a time.
    pub(super) fn work_off(&mut self, thread: usize, mut overrun: Overrun, begin: Ps, until: Ps) -> Result<(), Stop> {
        let cpu = self.threads[thread].caller.cpu;
        let pause = overrun.pauses.front().copied();
        let request = overrun.requests.front().map(|(left, _)| *left);
        let next = pause.max(request).unwrap_or(0);
        let room = until.saturating_sub(self.kernel.clock(cpu));
        let time = room.min(overrun.left - next);
        let spins = overrun.take_locks(&mut self.kernel, cpu, time);
        let time = spins.unwrap_or(time);
        self.kernel.spend(cpu, if spins.is_some() { room } else { time });
        self.account(cpu, thread, begin);
        overrun.left -= time;
        while let Some(&(left, begun)) = overrun.requests.front()
            && left == overrun.left
        {
            overrun.requests.pop_front();
            self.request_begins(cpu, self.kernel.clock(cpu) + begun.takes, begun.end);
        }
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

    /// A CPU has given slow disks requests in a step; which it gives them in what is left of that.
    pub(super) fn requests_begin(&mut self, cpu: u32, left: Option<(&Ended, Ps)>) -> VecDeque<(Ps, Begun)> {
        // Nobody notices the end of a read that costs nothing where nobody else's turn ends by it.
        if self.turns.is_none() && self.memory.costs.read_end == 0 {
            self.memory.reads.clear();
        }
        let mut later = VecDeque::new();
        if self.memory.reads.is_empty() && self.memory.ends.is_empty() {
            return later;
        }
        self.writes_begin(cpu, self.memory.ends.len());
        let of = &mut self.memory;
        let reads = of.reads.drain(..).map(|(submitted, until)| (submitted, until, Due::ReadEnds));
        let writes =
            of.ends.drain(..).map(|(until, number)| (of.requests.submitted(number), until, Due::Written(number)));
        let mut requests: Vec<_> = reads.chain(writes).collect();
        requests.sort_by_key(|(submitted, ..)| *submitted);
        for (submitted, until, end) in requests {
            match left.filter(|(ended, ends)| submitted > ends - ended.beyond) {
                Some((_, ends)) => later.push_back((ends - submitted, Begun { takes: until - submitted, end })),
                None => self.request_begins(cpu, until, end),
            }
        }
        later
    }

    /// A timer of a disk is set for the end of a request.
    fn request_begins(&mut self, cpu: u32, until: Ps, end: Due) {
        self.turns.iter_mut().for_each(|turns| turns.timer_set(until));
        self.due.set(until.div_ceil(PS_PER_NS), cpu, end);
    }

    /// The disk is done with a request to read, which interrupts the CPU that has asked.
    pub(super) fn read_ends(&mut self, cpu: u32, at: Ps) {
        self.kernel.wait(cpu, at);
        self.kernel.interrupt_any(cpu, self.memory.costs.read_end);
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
