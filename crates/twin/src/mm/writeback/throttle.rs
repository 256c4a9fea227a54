//! Throttling of writers: `balance_dirty_pages_ratelimited`, `balance_dirty_pages`, `dirty_poll_interval` (3.2 to
//! 6.12).
//!
//! A task checks the limits when it has dirtied some pages. Above the background limit it wakes the flusher; above free
//! run it pauses for the time of its pages at its task rate limit. A task of a cgroup is held to the limits of all memory
//! and to those of its cgroup, whichever are narrower. Not modelled: asynchronous writers, pages that an exiting task leaves to others (`dirty_throttle_leaks`). Checked by tests here and of
//! `tests/writeback.rs`.

use super::rate::{ONE, State};
use super::{Writeback, position};
use crate::mm::kernel::Kernel;
use crate::page_alloc::{Caller, TaskDirty};
use crate::time::Ns;
use mmtwin_event::vocabulary::BalanceDirtyPages;
use smallvec::SmallVec;

/// Pages between two checks of a task while a limit is exceeded: 32 KiB.
const FEW: u64 = 8;

/// Result of a check, in ticks.
struct Pause {
    /// 0 and less: none.
    ticks: i64,
    /// By how much it is shorter than it should be, because no pause is that long.
    trimmed: u64,
    period: u64,
    /// Pages per second that it is granted.
    of_task: u64,
    /// Pages that it may dirty until its next check.
    pages: u64,
    /// The narrower limits.
    state: State,
}

impl Kernel {
    /// A task's call has dirtied a page, or none; until when it has to pause.
    #[inline]
    pub(crate) fn balance_dirty_pages(&mut self, caller: &mut Caller) -> Option<Ns> {
        let (cpu, writer) = (caller.cpu, &caller.writer);
        let wb = &mut self.writeback;
        let exceeded = wb.wbs[wb.wb_of(caller.cgroup)].exceeded;
        let mut limit = if exceeded { writer.nr_dirtied_pause.min(FEW) } else { writer.nr_dirtied_pause };
        let by_cpu = &mut wb.by_cpu[cpu as usize];
        if writer.dirtied >= limit {
            *by_cpu = 0;
        } else if *by_cpu >= wb.ratelimit_pages {
            (*by_cpu, limit) = (0, 0);
        }
        if writer.dirtied < limit { None } else { self.look(caller) }
    }

    /// A task that may have paused continues, or pauses again.
    #[inline]
    pub(crate) fn go_on_writing(&mut self, caller: &mut Caller) -> Option<Ns> {
        if std::mem::take(&mut caller.writer.again) { self.look(caller) } else { None }
    }

    fn look(&mut self, caller: &mut Caller) -> Option<Ns> {
        let jiffy = 1_000_000_000 / self.reclaim.rules.hz;
        let now = self.now(caller.cpu) / jiffy;
        let wb = self.writeback.wb_of(caller.cgroup);
        let states = self.dirty_states(wb, now);
        let pause = self.writeback.look(wb, &mut caller.writer, now, states)?;
        self.note_look(caller, wb, &pause);
        let writer = &mut caller.writer;
        if pause.ticks <= 0 {
            // It was slow enough by itself; the rest is carried over, up to a second.
            if pause.ticks < -(self.writeback.rules.hz as i64) {
                (writer.dirty_paused_when, writer.dirtied) = (now, 0);
            } else if pause.period > 0 {
                (writer.dirty_paused_when, writer.dirtied) = (writer.dirty_paused_when + pause.period, 0);
            } else if writer.nr_dirtied_pause <= writer.dirtied {
                writer.nr_dirtied_pause += writer.dirtied;
            }
            return None;
        }
        let until = now + pause.ticks as u64;
        // What a pause was too long is paid later.
        let paused_when = until + pause.trimmed;
        // A writer with a rate of 0 checks again afterwards, for the same pages.
        let again = pause.of_task == 0;
        let dirtied = if again { writer.dirtied } else { 0 };
        *writer = TaskDirty { dirtied, nr_dirtied_pause: pause.pages, dirty_paused_when: paused_when, again };
        self.wait_for_writeback();
        Some(until * jiffy)
    }

    fn note_look(&mut self, caller: &Caller, number: usize, pause: &Pause) {
        let Caller { cpu, task, ref writer, .. } = *caller;
        let (hz, wb, state) = (self.reclaim.rules.hz, &self.writeback.wbs[number], &pause.state);
        // The limit is that of all memory, of whichever limits the others are.
        let limit = self.writeback.wbs[0].domain.smoothed();
        let (at, setpoint) = (self.now(cpu), (state.thresholds.freerun() + limit) / 2);
        let ms = |ticks: i64| ticks * 1000 / hz as i64;
        let now = at / (1_000_000_000 / hz);
        let since = if writer.dirty_paused_when == 0 { 0 } else { now as i64 - writer.dirty_paused_when as i64 };
        let event = BalanceDirtyPages {
            bdi: super::bdi(),
            limit,
            setpoint,
            dirty: state.dirty,
            bdi_setpoint: setpoint * state.of_disk / (state.thresholds.hard + 1),
            bdi_dirty: state.own,
            // Rates are in KiB per second, times in ms.
            dirty_ratelimit: wb.rate.ratelimit * 4,
            task_ratelimit: pause.of_task * 4,
            dirtied: writer.dirtied as u32,
            dirtied_pause: writer.nr_dirtied_pause as u32,
            paused: 0,
            pause: ms(pause.ticks),
            period: ms(pause.period as i64) as u64,
            think: ms(since),
            cgroup_ino: Some(1 + number as u64),
        };
        self.probe.write(at, cpu, task, &event, super::BDI.as_bytes());
    }
}

impl Writeback {
    /// Check of a writer of a cgroup's tasks at a tick, with the state of all memory and of the cgroup: length of its
    /// pause, if any.
    fn look(
        &mut self,
        number: usize,
        writer: &mut TaskDirty,
        now: u64,
        (global, cgroup): (State, Option<State>),
    ) -> Option<Pause> {
        let hz = self.rules.hz;
        if !self.rules.laptop_mode && self.dirty() > global.thresholds.background && !self.wbs[number].running {
            self.wake_now(number);
        }
        let states: SmallVec<[State; 2]> = std::iter::once(global).chain(cgroup).collect();
        if states.iter().all(|state| state.dirty <= state.thresholds.freerun()) {
            let polls = states.iter().map(|state| poll_interval(state.dirty, state.thresholds.hard));
            *writer = TaskDirty {
                nr_dirtied_pause: polls.min().unwrap_or(1),
                dirty_paused_when: now,
                ..TaskDirty::default()
            };
            return None;
        }
        if !self.wbs[number].running {
            self.wake_now(number);
        }
        self.flush_foreign(number, now * 1_000_000_000 / hz);
        let counts = self.wbs[number].counts();
        let wb = &mut self.wbs[number];
        wb.rate.settle(now, hz, counts);
        wb.exceeded = states.iter().any(|state| state.own > state.of_disk && state.dirty > state.thresholds.hard);
        let average = wb.rate.average;
        let placed: SmallVec<[(State, u64); 2]> =
            states.iter().map(|state| (*state, position::ratio(state, average))).collect();
        if wb.rate.is_due(now, hz) {
            for (domain, (state, _)) in [0, number].into_iter().zip(&placed) {
                self.wbs[domain].domain.update(now, hz, state);
            }
            self.wbs[number].rate.update(now, hz, counts, &placed);
        }
        let (state, ratio) = placed.into_iter().min_by_key(|(_, ratio)| *ratio)?;
        let (ratelimit, average) = (self.wbs[number].rate.ratelimit, self.wbs[number].rate.average);
        let of_task = (ratelimit * ratio) >> ONE.ilog2();
        let longest = position::longest_pause(state.own, average, hz);
        let (shortest, pages) = position::shortest_pause(longest, (of_task, ratelimit), average, hz);
        if of_task == 0 {
            return Some(Pause { ticks: longest as i64, trimmed: 0, period: longest, of_task, pages, state });
        }
        let period = hz * writer.dirtied / of_task;
        let since = if writer.dirty_paused_when > 0 { now as i64 - writer.dirty_paused_when as i64 } else { 0 };
        let pause = period as i64 - since;
        let ticks = if pause < shortest as i64 { pause.min(0) } else { pause.min(longest as i64) };
        let trimmed = (pause - longest as i64).clamp(0, longest as i64) as u64;
        Some(Pause { ticks, trimmed, period, of_task, pages, state })
    }
}

/// Pages that a writer may dirty between two checks below the free-run ceiling (`dirty_poll_interval`).
fn poll_interval(dirty: u64, hard: u64) -> u64 {
    if hard > dirty { 1 << ((hard - dirty).ilog2() >> 1) } else { 1 }
}

#[cfg(test)]
mod tests {
    use super::super::{Rules, Thresholds, Writeback};
    use super::*;

    fn state(dirty: u64) -> State {
        let thresholds = Thresholds { background: 10_000, hard: 20_000 };
        State { thresholds, dirty, limit: 20_000, own: dirty, of_disk: 20_000 }
    }

    #[test]
    fn writers_are_free_until_halfway() {
        let mut wb = Writeback::new(Rules::DEFAULT, 1);
        let mut writer = TaskDirty { dirtied: 100, ..TaskDirty::default() };
        wb.wbs[0].dirty = 9000;
        assert!(wb.look(0, &mut writer, 1000, (state(12_000), None)).is_none() && !wb.wants_wake());
        // 8000 pages are left: its next check is after the root of the power of two below.
        assert_eq!((writer.nr_dirtied_pause, writer.dirtied), (64, 0));
        wb.wbs[0].dirty = 10_001;
        assert!(wb.look(0, &mut writer, 1000, (state(12_000), None)).is_none() && wb.wants_wake());
        assert_eq!([poll_interval(100, 99), poll_interval(0, 1 << 20)], [1, 1024]);
    }

    #[test]
    fn above_it_they_pause_for_what_they_have_dirtied() {
        let mut wb = Writeback::new(Rules::DEFAULT, 1);
        let mut writer = TaskDirty { dirtied: 1024, dirty_paused_when: 999, ..TaskDirty::default() };
        let pause = wb.look(0, &mut writer, 1000, (state(17_500), None)).unwrap();
        // 25,600 pages a second are granted at first, at the set point: 1024 take 10 ticks, of which one has passed.
        assert_eq!((pause.period, pause.ticks), (10, 9));
        let pause = wb.look(0, &mut writer, 1000, (state(20_000), None)).unwrap();
        // At the limit nothing is granted: an eighth of what is dirty takes the disk 25 ticks.
        assert_eq!((pause.of_task, pause.ticks), (0, 25));
        assert!(wb.wbs[0].rate.ratelimit > 0);
    }
}
