//! CPUs that share the time of one, as those of QEMU do where it runs them one after another (`-icount`): while one has
//! its turn, the others stand still. Idle time is skipped.
//!
//! Whose turn it is, and for how long, is in [`crate::lab_guest::turns`]. What a step does beyond its turn is taken back
//! here and done in later turns ([`crate::engine`]). A CPU that waits for others (`pause`, while they flush their TLBs)
//! ends its turn. An interrupt is handled when its CPU has a turn, and the work of going idle takes time of the others.
//!
//! Spin locks whose holder has no turn are in [`super::spinlock`]. Not modelled: other locks whose holder has none, but those of
//! a page that is being added and of a file that is written to. Checked by tests here and by times in guests
//! (docs/model/notebook.md, "Turns of one clock").

use super::Kernel;
use super::spinlock::{Section, Spinlocks};
use crate::time::Ps;
use std::collections::VecDeque;

/// What a CPU has left idle by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    /// A timer of its own.
    ByTimer,
    /// Another CPU.
    ByOther,
}

/// The time that all CPUs share.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    /// Until when it is used.
    used: Ps,
    /// When the step under way began.
    began: Ps,
    /// When the CPU that has its turn began to wait for others, each time.
    waits_at: Vec<Ps>,
    /// By CPU: interrupts that it has not handled.
    interrupts: Vec<Ps>,
    /// By CPU: it has left idle, and has had no turn since.
    woken: Vec<Option<Woken>>,
    /// What it takes to go idle.
    enter_idle: Ps,
    pub(super) locks: Spinlocks,
}

/// How a step has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ended {
    /// What was done beyond the turn, which is taken back.
    pub beyond: Ps,
    /// When the turn ends.
    pub end: Ps,
    /// How much of that is left each time that the CPU waits for others, the first time first.
    pub waits: VecDeque<Ps>,
    /// What of it is done under locks, the first first.
    pub sections: VecDeque<Section>,
}

impl Budget {
    /// A CPU waits for others: its turn is over.
    pub(crate) fn waits(&self) -> bool {
        !self.waits_at.is_empty()
    }

    /// Something takes a time of it.
    pub(super) fn spend(&mut self, time: Ps) {
        self.used += time;
    }

    /// A CPU that has no turn is interrupted for a time.
    pub(super) fn interrupt(&mut self, cpu: u32, time: Ps) {
        self.interrupts[cpu as usize] += time;
    }

    pub(super) fn leave_idle(&mut self, cpu: u32) {
        self.woken[cpu as usize] = Some(Woken::ByOther);
    }

    pub(super) fn enter_idle(&mut self) {
        self.used += self.enter_idle;
    }
}

impl Kernel {
    /// All CPUs share the time of one; going idle takes a CPU a time.
    pub(crate) fn share_budget(&mut self, enter_idle: Ps) {
        let cpus = self.clocks.len();
        let (interrupts, woken) = (vec![0; cpus], vec![None; cpus]);
        let (waits_at, locks) = (Vec::new(), Spinlocks::default());
        self.budget = Some(Budget { used: 0, began: 0, waits_at, interrupts, woken, enter_idle, locks });
    }

    /// Until when the budget is used that the CPUs share, if they do.
    pub(crate) fn budget_used(&self) -> Option<Ps> {
        self.budget.as_ref().map(|budget| budget.used)
    }

    /// How many CPUs have a part of the time of one.
    pub(crate) fn sharers(&self) -> usize {
        let busy = self.busy.iter().filter(|busy| **busy).count();
        if self.budget.is_some() { busy.max(1) } else { 1 }
    }

    /// When the step under way began, which others' turns were before; 0 if each CPU has its own budget.
    pub(crate) fn turn_began(&self) -> Ps {
        self.budget.as_ref().map_or(0, |budget| budget.began)
    }

    /// If a CPU has left idle, and its first turn since begins at a time, by what. What it runs has not run before.
    pub(crate) fn take_woken(&mut self, cpu: u32, at: Ps) -> Option<Woken> {
        let woken = self.budget.as_mut()?.woken[cpu as usize].take();
        if woken.is_some() {
            self.wait(cpu, at);
        }
        woken
    }

    /// A CPU that has left idle did so by a timer of its own.
    pub(crate) fn woken_by_timer(&mut self, cpu: u32) {
        let woken = self.budget.as_mut().and_then(|budget| budget.woken[cpu as usize].as_mut());
        woken.into_iter().for_each(|by| *by = Woken::ByTimer);
    }

    /// A CPU goes on at a time, and handles its interrupts. Its turn ends at another, as far as is known.
    pub(crate) fn begin_turn(&mut self, cpu: u32, at: Ps, end: Ps) {
        let Some(budget) = &mut self.budget else { return };
        budget.locks.begin_turn(cpu, end);
        budget.used = budget.used.max(at);
        budget.began = at;
        let interrupts = std::mem::take(&mut budget.interrupts[cpu as usize]);
        let clock = &mut self.clocks[cpu as usize];
        *clock = (*clock).max(at);
        self.spend(cpu, interrupts);
    }

    /// A CPU's step is over, and its turn is until a time, or until it waited for others. Takes back what it did beyond
    /// that.
    pub(crate) fn end_turn(&mut self, cpu: u32, end: Ps) -> Ended {
        let Some(budget) = &mut self.budget else { return Ended { end, ..Ended::default() } };
        let mut waits = std::mem::take(&mut budget.waits_at).into_iter().peekable();
        let end = waits.next_if(|&at| at <= end).unwrap_or(end);
        let clock = &mut self.clocks[cpu as usize];
        let did = *clock;
        let beyond = did.saturating_sub(end);
        budget.used -= beyond;
        *clock -= beyond;
        let sections = budget.locks.end_turn(cpu, end, did);
        Ended { beyond, end, waits: waits.map(|at| did - at).collect(), sections }
    }

    /// A CPU waits until others have done something for it: if they share its budget, it goes on when they have had turns.
    pub(crate) fn wait_for_others(&mut self, cpu: u32) {
        if self.budget.is_some() && self.others_are_busy(cpu) {
            let clock = self.clocks[cpu as usize];
            self.budget.iter_mut().for_each(|budget| budget.waits_at.push(clock));
        }
    }

    /// A CPU spins until a time; where it shares its budget, for a moment, until the others have had turns.
    pub(crate) fn spin(&mut self, cpu: u32, until: Ps) {
        const MOMENT: Ps = 1_000_000;
        let left = until.saturating_sub(self.clocks[cpu as usize]);
        self.spend(cpu, if self.budget.is_some() { MOMENT } else { left.max(1) });
        self.wait_for_others(cpu);
    }

    /// True if another CPU has something to run.
    pub(crate) fn others_are_busy(&self, cpu: u32) -> bool {
        self.busy.iter().enumerate().any(|(other, busy)| *busy && other != cpu as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::super::time::tests::cpus;
    use super::*;

    /// Two busy CPUs that share a budget.
    fn two_cpus() -> Kernel {
        let mut kernel = cpus(2);
        kernel.share_budget(0);
        (0..2).for_each(|cpu| kernel.leave_idle(cpu).unwrap());
        kernel
    }

    #[test]
    fn one_cpu_stands_still_while_the_other_works() {
        let mut kernel = two_cpus();
        kernel.begin_turn(0, 0, 400);
        kernel.spend(0, 500);
        let ended = kernel.end_turn(0, 400);
        assert_eq!((ended.beyond, ended.end, kernel.clock(0)), (100, 400, 400), "the rest is for its next turn");
        kernel.begin_turn(1, 400, 400);
        kernel.spend(1, 50);
        assert_eq!((kernel.clock(1), kernel.budget_used()), (450, Some(450)));
    }

    #[test]
    fn who_waits_for_others_ends_its_turn() {
        let mut kernel = two_cpus();
        kernel.begin_turn(0, 0, 400);
        kernel.spend(0, 100);
        kernel.wait_for_others(0);
        kernel.interrupt(1, 30);
        kernel.spend(0, 50);
        kernel.wait_for_others(0);
        kernel.spend(0, 30);
        let waits = VecDeque::from([30]);
        assert_eq!(
            kernel.end_turn(0, 400),
            Ended { beyond: 80, end: 100, waits, ..Ended::default() },
            "and waits again 30 before its end"
        );
        kernel.begin_turn(1, 100, 400);
        assert_eq!(kernel.clock(1), 130, "it was interrupted");
        kernel.enter_idle(1).unwrap();
        kernel.begin_turn(0, 130, 400);
        kernel.wait_for_others(0);
        kernel.spend(0, 50);
        assert_eq!(kernel.end_turn(0, 400), Ended { end: 400, ..Ended::default() }, "the other is idle");
    }

    #[test]
    fn going_idle_takes_time_of_the_others() {
        let mut kernel = cpus(2);
        kernel.share_budget(20);
        (0..2).for_each(|cpu| kernel.leave_idle(cpu).unwrap());
        assert_eq!(
            (kernel.take_woken(1, 50), kernel.take_woken(1, 60), kernel.clock(1)),
            (Some(Woken::ByOther), None, 50)
        );
        kernel.begin_turn(1, 100, 400);
        kernel.enter_idle(1).unwrap();
        assert_eq!(kernel.budget_used(), Some(120));
    }
}
