//! Throttling of writers: `balance_dirty_pages_ratelimited`, `balance_dirty_pages`, `dirty_poll_interval` (3.2 to
//! 6.12).
//!
//! A task checks the limits when it has dirtied some pages. Above the background limit it wakes the flusher; above free
//! run it pauses for the time of its pages at its task rate limit. Not modelled: limits of cgroups, asynchronous
//! writers, pages that an exiting task leaves to others (`dirty_throttle_leaks`). Checked by tests here and of
//! `tests/writeback.rs`.

use super::rate::{ONE, State};
use super::{Writeback, position};
use crate::mm::kernel::Kernel;
use crate::page_alloc::TaskDirty;
use crate::probe::Task;
use crate::time::Ns;
use mmtwin_event::vocabulary::BalanceDirtyPages;

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
}

impl Kernel {
    /// A task's call has dirtied a page, or none; until when it has to pause.
    #[inline]
    pub(crate) fn balance_dirty_pages(&mut self, cpu: u32, task: Task, writer: &mut TaskDirty) -> Option<Ns> {
        let wb = &mut self.writeback;
        let mut limit = if wb.exceeded { writer.nr_dirtied_pause.min(FEW) } else { writer.nr_dirtied_pause };
        let by_cpu = &mut wb.by_cpu[cpu as usize];
        if writer.dirtied >= limit {
            *by_cpu = 0;
        } else if *by_cpu >= wb.ratelimit_pages {
            (*by_cpu, limit) = (0, 0);
        }
        if writer.dirtied < limit { None } else { self.look(cpu, task, writer) }
    }

    /// A task that may have paused continues, or pauses again.
    #[inline]
    pub(crate) fn go_on_writing(&mut self, cpu: u32, task: Task, writer: &mut TaskDirty) -> Option<Ns> {
        if std::mem::take(&mut writer.again) { self.look(cpu, task, writer) } else { None }
    }

    fn look(&mut self, cpu: u32, task: Task, writer: &mut TaskDirty) -> Option<Ns> {
        let jiffy = 1_000_000_000 / self.reclaim.rules.hz;
        let now = self.now(cpu) / jiffy;
        let state = self.dirty_state(now);
        let pause = self.writeback.look(writer, now, &state)?;
        self.note_look(cpu, task, writer, &state, &pause);
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

    /// Dirty pages and limits.
    pub(super) fn dirty_state(&mut self, now: u64) -> State {
        let thresholds = self.thresholds();
        let limit = self.writeback.rate.hard(thresholds);
        let period = self.writeback.period(now);
        let of_disk = self.writeback.rate.part(thresholds.hard, period);
        State { thresholds, dirty: self.dirty_pages() + self.pages_under_writeback(), limit, of_disk }
    }

    fn note_look(&mut self, cpu: u32, task: Task, writer: &TaskDirty, state: &State, pause: &Pause) {
        let (hz, wb) = (self.reclaim.rules.hz, &self.writeback);
        let (at, setpoint) = (self.now(cpu), (state.thresholds.freerun() + state.limit) / 2);
        let ms = |ticks: i64| ticks * 1000 / hz as i64;
        let now = at / (1_000_000_000 / hz);
        let since = if writer.dirty_paused_when == 0 { 0 } else { now as i64 - writer.dirty_paused_when as i64 };
        let event = BalanceDirtyPages {
            bdi: super::bdi(),
            limit: state.limit,
            setpoint,
            dirty: state.dirty,
            bdi_setpoint: setpoint * state.of_disk / (state.thresholds.hard + 1),
            bdi_dirty: state.dirty,
            // Rates are in KiB per second, times in ms.
            dirty_ratelimit: wb.rate.ratelimit * 4,
            task_ratelimit: pause.of_task * 4,
            dirtied: writer.dirtied as u32,
            dirtied_pause: writer.nr_dirtied_pause as u32,
            paused: 0,
            pause: ms(pause.ticks),
            period: ms(pause.period as i64) as u64,
            think: ms(since),
            cgroup_ino: Some(1),
        };
        self.probe.write(at, cpu, task, &event, super::BDI.as_bytes());
    }
}

impl Writeback {
    /// Check of a writer at a tick: length of its pause, if any.
    fn look(&mut self, writer: &mut TaskDirty, now: u64, state: &State) -> Option<Pause> {
        let (background, freerun) = (state.thresholds.background, state.thresholds.freerun());
        if !self.rules.laptop_mode && self.dirty_now > background && !self.running {
            self.wake_now();
        }
        let hz = self.rules.hz;
        if state.dirty <= freerun {
            *writer = TaskDirty {
                nr_dirtied_pause: poll_interval(state.dirty, state.thresholds.hard),
                dirty_paused_when: now,
                ..TaskDirty::default()
            };
            return None;
        }
        if !self.running {
            self.wake_now();
        }
        self.rate.settle(now, hz, (self.dirtied, self.written));
        self.exceeded = state.dirty > state.of_disk && state.dirty > state.thresholds.hard;
        let ratio = position::ratio(state, self.rate.average);
        if self.rate.is_due(now, hz) {
            self.rate.update(now, hz, state, (self.dirtied, self.written), Some(ratio));
        }
        let ratelimit = self.rate.ratelimit;
        let of_task = (ratelimit * ratio) >> ONE.ilog2();
        let longest = position::longest_pause(state.dirty, self.rate.average, hz);
        let (shortest, pages) = position::shortest_pause(longest, (of_task, ratelimit), self.rate.average, hz);
        if of_task == 0 {
            return Some(Pause { ticks: longest as i64, trimmed: 0, period: longest, of_task, pages });
        }
        let period = hz * writer.dirtied / of_task;
        let since = if writer.dirty_paused_when > 0 { now as i64 - writer.dirty_paused_when as i64 } else { 0 };
        let pause = period as i64 - since;
        let ticks = if pause < shortest as i64 { pause.min(0) } else { pause.min(longest as i64) };
        let trimmed = (pause - longest as i64).clamp(0, longest as i64) as u64;
        Some(Pause { ticks, trimmed, period, of_task, pages })
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
        State { thresholds, dirty, limit: 20_000, of_disk: 20_000 }
    }

    #[test]
    fn writers_are_free_until_halfway() {
        let mut wb = Writeback::new(Rules::DEFAULT, 1);
        let mut writer = TaskDirty { dirtied: 100, ..TaskDirty::default() };
        wb.dirty_now = 9000;
        assert!(wb.look(&mut writer, 1000, &state(12_000)).is_none() && !wb.wants_wake());
        // 8000 pages are left: its next check is after the root of the power of two below.
        assert_eq!((writer.nr_dirtied_pause, writer.dirtied), (64, 0));
        wb.dirty_now = 10_001;
        assert!(wb.look(&mut writer, 1000, &state(12_000)).is_none() && wb.wants_wake());
        assert_eq!([poll_interval(100, 99), poll_interval(0, 1 << 20)], [1, 1024]);
    }

    #[test]
    fn above_it_they_pause_for_what_they_have_dirtied() {
        let mut wb = Writeback::new(Rules::DEFAULT, 1);
        let mut writer = TaskDirty { dirtied: 1024, dirty_paused_when: 999, ..TaskDirty::default() };
        let pause = wb.look(&mut writer, 1000, &state(17_500)).unwrap();
        // 25,600 pages a second are granted at first, at the set point: 1024 take 10 ticks, of which one has passed.
        assert_eq!((pause.period, pause.ticks), (10, 9));
        let pause = wb.look(&mut writer, 1000, &state(20_000)).unwrap();
        // At the limit nothing is granted: an eighth of what is dirty takes the disk 25 ticks.
        assert_eq!((pause.of_task, pause.ticks), (0, 25));
        assert!(wb.rate.ratelimit > 0);
    }
}
