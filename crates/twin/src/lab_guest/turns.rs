//! Turns of the CPUs of the lab's guest in mode exact: QEMU runs them one after another (`-icount`).
//!
//! The rule is QEMU's (`accel/tcg/tcg-accel-ops-rr.c` and `-icount.c`, release 10): in each round every CPU has a turn as
//! long as the time to the next timer divided by the number of QEMU's CPUs, idle ones too, so that rounds become shorter
//! until the timer is due. The timer runs when the CPU behind the one that used the rest is about to run: that one loses
//! its turn, and those behind it have turns of a new length. Where a timer is set that is earlier than all others, the turn
//! ends, and every CPU's next turn has a new length. A busy CPU's tick, which it sets when it has handled the one before or
//! leaves idle, is as early as those of the other busy CPUs but for rounding: one of as many such timers is the earliest.
//! One that leaves idle sets it in the midst of its first turn; since 7.1, where its own timer has woken it, when it has
//! switched to the thread (`CONFIG_HRTIMER_REARM_DEFERRED`), so that it loses nothing: with this two threads of a 7.3 guest, one
//! of which computes and one sleeps, have their shares within 5 %, without within 11 (docs/model/notebook.md, "Disks that take
//! time").
//! A CPU that is the only busy one has turn after turn; one that it wakes has its own after the one under way.
//!
//! Not modelled: turns shorter than [`SHORTEST`] (QEMU's are as short as 16 instructions, and the first CPU has what is left).
//! Checked by tests here and by guests in which a thread sleeps or reads from a disk beside one that computes
//! (docs/model/notebook.md, "Turns of one clock").

use crate::time::{OfObject, Ps, Random, Use};
use mmtwin_scenario::machine::qemu_cpus;

/// Shortest turn: 10 us, a step of the simulation.
const SHORTEST: Ps = 10_000_000;

/// From the interrupt that wakes a CPU to its setting the tick (by sched events of guests, 6.1).
const LEAVE_IDLE: Ps = 20_000_000;

/// What is known of the turns.
#[derive(Clone, Debug)]
pub(crate) struct Turns {
    /// Whose turn it is or was, and until when.
    cpu: u32,
    end: Ps,
    lasts: bool,
    /// When it began, if its CPU is the only one that is busy: turn after turn until the timer.
    alone: Option<Ps>,
    /// Length of the turns of this round.
    length: Ps,
    /// By CPU: its next turn has a new length.
    kicked: Vec<bool>,
    /// The next turn is that of a CPU behind this one.
    behind: u32,
    /// CPUs that have set their next tick since the last one.
    ticked: u64,
    /// The next tick, and the next timer of any kind.
    tick: Ps,
    timer: Ps,
    random: OfObject,
    draws: u64,
}

/// Timers of the guest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Next {
    /// When the busy CPUs' next tick is.
    pub tick: Ps,
    /// When the next other timer is.
    pub due: Ps,
}

impl Turns {
    /// Of this many CPUs, none of which has had a turn.
    pub(crate) fn new(cpus: usize, seed: u64) -> Turns {
        Turns {
            cpu: 0,
            end: 0,
            lasts: false,
            alone: None,
            length: 0,
            kicked: vec![true; cpus],
            behind: 0,
            ticked: 0,
            tick: 0,
            timer: 0,
            random: Random::new(seed, Use::Turns).of(0),
            draws: 0,
        }
    }

    /// When the turn ends.
    pub(crate) fn end(&self) -> Ps {
        self.end
    }

    /// The turn of a CPU is over at a time.
    pub(crate) fn ends(&mut self, at: Ps) {
        self.end = at;
    }

    /// The CPU whose turn has not ended.
    pub(crate) fn lasting(&self, now: Ps) -> Option<u32> {
        Some(self.cpu).filter(|_| self.lasts && now < self.end)
    }

    /// A timer has run.
    pub(crate) fn timer_ran(&mut self) {
        self.kick();
        self.behind = self.cpu + 1;
    }

    /// A timer is set.
    pub(crate) fn timer_set(&mut self, at: Ps) {
        if at < self.timer {
            self.kick();
        }
    }

    /// A busy CPU has handled its tick and sets the next one: if that is earlier than those that the others have set, its
    /// turn ends.
    pub(crate) fn tick_set(&mut self) {
        self.ticked += 1;
        if self.is_earliest(self.ticked) {
            self.kick();
        }
    }

    /// Another CPU leaves idle: one that was alone has the rest of this round's turn.
    pub(crate) fn other_wakes(&mut self, now: Ps) {
        let Some(mut end) = self.alone.take().filter(|_| self.lasts) else { return };
        let cpus = u64::from(qemu_cpus(self.kicked.len() as u32));
        while end <= now {
            end += (self.timer.saturating_sub(end) / cpus).max(SHORTEST);
        }
        self.end = self.end.min(end);
    }

    /// The turn ends, and every CPU's next turn has a new length (`qemu_cpu_kick`).
    pub(crate) fn kick(&mut self) {
        self.lasts = false;
        self.kicked.fill(true);
    }

    /// Begins the next turn: whose of the busy CPUs it is. `woken`: it has left idle, and has yet to set its tick.
    pub(crate) fn begin(
        &mut self,
        now: Ps,
        next: Next,
        is_busy: impl Fn(u32) -> bool,
        woken: impl FnOnce(u32) -> bool,
    ) -> Option<u32> {
        if self.tick <= now {
            self.timer_ran();
            (self.tick, self.ticked) = (next.tick, 0);
        }
        self.timer = next.tick.min(next.due);
        let limit = self.timer.saturating_sub(now);
        let cpus = self.kicked.len() as u32;
        let later = (self.behind + 1..cpus).find(|&cpu| is_busy(cpu));
        let cpu = later.or_else(|| (0..cpus).find(|&cpu| is_busy(cpu)))?;
        if std::mem::take(&mut self.kicked[cpu as usize]) || later.is_none() {
            self.length = (limit / u64::from(qemu_cpus(cpus))).max(SHORTEST);
        }
        let busy = (0..cpus).filter(|&cpu| is_busy(cpu)).count() as u64;
        let mut length = if busy == 1 { limit } else { self.length.min(limit) };
        if woken(cpu) && busy > 1 && next.tick <= next.due && self.is_earliest(busy) {
            length = length.min(LEAVE_IDLE);
            self.kicked.fill(true);
        }
        (self.cpu, self.behind, self.end, self.lasts) = (cpu, cpu, now + length, true);
        self.alone = (busy == 1).then_some(now);
        Some(cpu)
    }

    /// True if of some timers for the same tick the last that was set is the earliest.
    fn is_earliest(&mut self, timers: u64) -> bool {
        self.draws += 1;
        self.random.below(self.draws, timers) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: Ps = 1_000_000;
    const TICKS: Next = Next { tick: 4000 * US, due: Ps::MAX };

    /// Turns at a moment when the tick is known, and the last turn was that of CPU 0.
    fn turns() -> Turns {
        Turns { tick: TICKS.tick, timer: TICKS.tick, kicked: vec![false; 4], length: 250 * US, ..Turns::new(4, 1) }
    }

    #[test]
    fn rounds_become_shorter_until_a_timer_is_due() {
        let mut turns = turns();
        let (mut now, mut had) = (0, Vec::new());
        while now < TICKS.tick {
            let cpu = turns.begin(now, TICKS, |cpu| cpu != 2, |_| false).unwrap();
            had.push((cpu, (turns.end() - now) / US));
            now = turns.end();
        }
        // Of 16 CPUs of QEMU three are busy: a round takes three sixteenths of what is left.
        assert_eq!(had[..6], [(1, 250), (3, 250), (0, 218), (1, 218), (3, 218), (0, 177)]);
        assert!(had[..had.len() - 1].iter().all(|&(_, length)| length >= 10), "{had:?}");
        let sum = |of: u32| had.iter().filter(|(cpu, _)| *cpu == of).map(|(_, length)| length).sum::<u64>();
        assert!(
            [0, 1, 3].iter().all(|&cpu| sum(cpu).abs_diff(1333) < 250),
            "parts differ by less than a turn: {had:?}"
        );
    }

    #[test]
    fn a_cpu_alone_has_all_until_the_timer() {
        let mut turns = turns();
        let due = Next { due: 900 * US, ..TICKS };
        assert_eq!((turns.begin(0, due, |cpu| cpu == 2, |_| true), turns.end()), (Some(2), 900 * US));
        assert_eq!((turns.lasting(800 * US), turns.lasting(900 * US)), (Some(2), None));
    }

    #[test]
    fn who_is_behind_the_last_loses_its_turn_when_a_timer_runs() {
        let mut turns = turns();
        turns.begin(0, TICKS, |cpu| cpu == 0, |_| false);
        turns.timer_ran();
        assert_eq!(turns.begin(100 * US, TICKS, |cpu| cpu < 3, |_| false), Some(2));
        assert_eq!((turns.end() - 100 * US) / US, 243);
    }

    #[test]
    fn an_earlier_timer_ends_the_turn() {
        let mut turns = turns();
        turns.begin(0, TICKS, |cpu| cpu < 2, |_| false);
        turns.timer_set(5000 * US);
        assert!(turns.lasting(10 * US).is_some());
        turns.timer_set(500 * US);
        assert!(turns.lasting(10 * US).is_none());
        let soon = Next { due: 500 * US, ..TICKS };
        turns.begin(20 * US, soon, |cpu| cpu < 2, |_| false);
        assert_eq!(turns.end(), 50 * US);
    }

    #[test]
    fn a_cpu_that_is_woken_waits_for_a_turn_and_not_for_the_timer() {
        let mut turns = turns();
        turns.begin(0, TICKS, |cpu| cpu == 1, |_| false);
        assert_eq!(turns.end(), TICKS.tick, "alone");
        turns.other_wakes(300 * US);
        // A sixteenth of 4 ms, and one of the rest.
        assert_eq!(turns.end() / US, 484);
        turns.other_wakes(310 * US);
        assert_eq!(turns.end() / US, 484, "it is not alone any more");
    }

    #[test]
    fn the_first_tick_that_is_set_ends_a_turn_and_the_second_one_in_two() {
        let mut turns = turns();
        let ends = |turns: &mut Turns| {
            turns.begin(0, TICKS, |cpu| cpu < 2, |_| false);
            turns.tick_set();
            turns.lasting(1).is_none()
        };
        let ended: [u32; 2] = (0..1000).fold([0; 2], |mut ended, _| {
            turns.ticked = 0;
            (0..2).for_each(|cpu| ended[cpu] += u32::from(ends(&mut turns)));
            ended
        });
        assert!(ended[0] == 1000 && (400..600).contains(&ended[1]), "{ended:?}");
    }

    #[test]
    fn of_two_cpus_every_second_that_leaves_idle_loses_its_turn() {
        let mut turns = turns();
        let cut = |turns: &mut Turns| {
            turns.kick();
            turns.behind = 0;
            turns.begin(0, TICKS, |cpu| cpu < 2, |_| true);
            turns.end() == LEAVE_IDLE
        };
        assert!((400..600).contains(&(0..1000).filter(|_| cut(&mut turns)).count()));
    }
}
