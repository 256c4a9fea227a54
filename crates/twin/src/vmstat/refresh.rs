//! Folding of differentials: `vmstat_update`, `vmstat_shepherd`, `quiet_vmstat`; 4.13 to 6.18.
//!
//! The work of a CPU runs about every `vm.stat_interval` while there is something to fold, and then stops. At the same
//! interval the shepherd checks for CPUs that have something again. Both are rounded to whole seconds, for CPUs with an
//! offset of three ticks each. The work waits while its CPU is idle, until the CPU wakes: idle CPUs of the lab's guests
//! were seen to fold about once a second, so it is done here when the shepherd runs. A CPU that becomes idle with work
//! pending folds at once. Not modelled: isolated CPUs (6.12 does not queue work there), the countdown that drains a
//! remote node's pages. Checked by tests here and in `tests/allocator`.

use crate::time::{Ns, Timers};

const SECOND: Ns = 1_000_000_000;
/// Ticks between the timers of neighbouring CPUs.
const SKEW_TICKS: u64 = 3;

/// The sysctl is a positive 32-bit number of seconds.
const MAX_INTERVAL: Ns = (i32::MAX as Ns) * SECOND;

/// Work of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A CPU folds.
    Update,
    /// The shepherd checks all CPUs.
    Shepherd,
}

/// Timers of all CPUs.
#[derive(Clone, Debug)]
pub struct Refresh {
    timers: Timers<Work>,
    interval: Ns,
    tick: Ns,
    /// By CPU: its work is queued or waits.
    pending: Vec<bool>,
    /// By CPU: its work became due while it was idle.
    late: Vec<bool>,
    idle: Vec<bool>,
}

impl Refresh {
    /// After boot: all CPUs idle and only the shepherd waiting.
    pub fn new(cpus: usize, interval: Ns, hz: u32) -> Refresh {
        let mut refresh = Refresh {
            timers: Timers::default(),
            interval: interval.clamp(1, MAX_INTERVAL),
            tick: SECOND / Ns::from(hz.max(1)),
            pending: vec![false; cpus],
            late: vec![false; cpus],
            idle: vec![true; cpus],
        };
        refresh.timers.set(refresh.rounded(0, 0), 0, Work::Shepherd);
        refresh
    }

    /// Sets the interval for timers set from now on.
    pub fn set_interval(&mut self, interval: Ns) {
        self.interval = interval.clamp(1, MAX_INTERVAL);
    }

    /// The interval from `now` on, rounded to a whole second (less than a quarter of it down), earlier by the skew.
    fn rounded(&self, now: Ns, cpu: u32) -> Ns {
        let skew = u64::from(cpu) * SKEW_TICKS * self.tick;
        let due = now + self.interval;
        let rest = (due + skew) % SECOND;
        let whole = due + skew - rest + if rest < SECOND / 4 { 0 } else { SECOND };
        match whole.checked_sub(skew) {
            Some(at) if at > now => at,
            _ => due,
        }
    }

    /// Time of the next timer.
    pub fn next_at(&self) -> Option<Ns> {
        self.timers.next_at()
    }

    /// The next timer due by a time: time, CPU, work.
    pub fn take(&mut self, until: Ns) -> Option<(Ns, u32, Work)> {
        while let Some(timer) = self.timers.take(until) {
            if timer.what == Work::Update && self.idle[timer.cpu as usize] {
                self.late[timer.cpu as usize] = true;
                continue;
            }
            if timer.what == Work::Shepherd {
                self.timers.set(self.rounded(timer.at, timer.cpu), timer.cpu, Work::Shepherd);
            }
            return Some((timer.at, timer.cpu, timer.what));
        }
        None
    }

    /// A CPU has folded by its work and found something, or not.
    pub fn folded(&mut self, now: Ns, cpu: u32, changed: bool) {
        self.pending[cpu as usize] = changed;
        if changed {
            self.timers.set(self.rounded(now, cpu), cpu, Work::Update);
        }
    }

    /// The work of a CPU has been queued by an earlier run of it: it is due at the next whole second.
    pub fn queued(&mut self, now: Ns, cpu: u32) {
        let skew = u64::from(cpu) * SKEW_TICKS * self.tick;
        self.pending[cpu as usize] = true;
        self.timers.set((now + skew) / SECOND * SECOND + SECOND - skew, cpu, Work::Update);
    }

    /// True if the work of a CPU is queued or waits.
    pub fn pending(&self, cpu: u32) -> bool {
        self.pending[cpu as usize]
    }

    /// A CPU begins to run. True if its work was due meanwhile and must run now.
    pub fn leave_idle(&mut self, cpu: u32) -> bool {
        self.idle[cpu as usize] = false;
        std::mem::take(&mut self.late[cpu as usize])
    }

    /// Another event wakes a CPU briefly. True if its work became due while it was idle and must run now.
    pub fn wake(&mut self, cpu: u32) -> bool {
        std::mem::take(&mut self.late[cpu as usize])
    }

    /// A CPU becomes idle.
    pub fn enter_idle(&mut self, cpu: u32) {
        self.idle[cpu as usize] = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(refresh: &mut Refresh, until: Ns) -> Vec<(Ns, u32, Work)> {
        std::iter::from_fn(|| refresh.take(until)).collect()
    }

    #[test]
    fn work_runs_at_whole_seconds_less_the_skew() {
        let mut refresh = Refresh::new(4, SECOND, 250);
        (0..4).for_each(|cpu| {
            refresh.leave_idle(cpu);
        });
        assert_eq!(taken(&mut refresh, SECOND), [(SECOND, 0, Work::Shepherd)]);
        refresh.folded(SECOND + 10, 2, true);
        refresh.folded(SECOND + 10, 3, false);
        assert!(refresh.pending(2) && !refresh.pending(3));
        let expected = [(2 * SECOND - 24_000_000, 2, Work::Update), (2 * SECOND, 0, Work::Shepherd)];
        assert_eq!(taken(&mut refresh, 2 * SECOND), expected);
    }

    #[test]
    fn work_queued_before_is_due_at_the_next_second() {
        let mut refresh = Refresh::new(2, SECOND, 250);
        (0..2).for_each(|cpu| {
            refresh.leave_idle(cpu);
            refresh.queued(SECOND * 7 / 2, cpu);
        });
        let updates = taken(&mut refresh, 4 * SECOND).into_iter().filter(|(_, _, work)| *work == Work::Update);
        let expected = [(4 * SECOND - 12_000_000, 1, Work::Update), (4 * SECOND, 0, Work::Update)];
        assert_eq!(updates.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn work_waits_for_an_idle_cpu() {
        let mut refresh = Refresh::new(2, SECOND, 250);
        refresh.folded(0, 1, true);
        assert_eq!(taken(&mut refresh, SECOND), [(SECOND, 0, Work::Shepherd)]);
        assert!(refresh.pending(1) && refresh.leave_idle(1) && !refresh.leave_idle(1));
        refresh.enter_idle(1);
        refresh.folded(SECOND, 1, true);
        assert_eq!(taken(&mut refresh, 2 * SECOND), [(2 * SECOND, 0, Work::Shepherd)]);
        assert!(refresh.wake(1) && !refresh.wake(1) && !refresh.leave_idle(1));
    }
}
