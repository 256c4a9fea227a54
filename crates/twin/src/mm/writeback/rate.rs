//! Write bandwidth of the disk, and the rate at which its writers may dirty pages: `wb_update_write_bandwidth`,
//! `wb_update_dirty_ratelimit`, `domain_update_dirty_limit`, `fprop_fraction_percpu` (3.2 to 6.12).
//!
//! All estimates are updated at most every 200 ms. Each cgroup that writes has its own for the one disk. Not modelled:
//! several disks, and writes by others than the flusher and reclaim. Checked by tests of the arithmetic here.

use super::Thresholds;

/// Pages per second that a disk is believed to write before it has: 100 MB/s.
const FIRST_BANDWIDTH: u64 = 100 << 8;
/// Fixed point of ratios.
pub(super) const ONE: u64 = 1 << 10;

/// Dirty pages and limits at one check (`struct dirty_throttle_control`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    pub thresholds: Thresholds,
    /// Pages that are dirty or under writeback.
    pub dirty: u64,
    /// The hard limit, which follows the threshold down slowly.
    pub limit: u64,
    /// Of the files of the writer's cgroup on the disk: such pages, and their part of the hard limit.
    pub own: u64,
    pub of_disk: u64,
}

/// The hard limit of all memory or of a cgroup, smoothed (`struct wb_domain`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Domain {
    limit: u64,
    /// Tick of its last update.
    at: u64,
}

impl Domain {
    /// The hard limit (`hard_dirty_limit`).
    pub(super) fn hard(&self, thresholds: Thresholds) -> u64 {
        thresholds.hard.max(self.limit)
    }

    /// Limits have been set (`writeback_set_ratelimit`).
    pub(super) fn set(&mut self, hard: u64) {
        self.limit = hard;
    }

    /// The limit that chunks of writing are measured by.
    pub(super) fn smoothed(&self) -> u64 {
        self.limit
    }

    /// It follows its threshold up at once and down slowly, and never below what is dirty.
    pub(super) fn update(&mut self, now: u64, hz: u64, state: &State) {
        if now < self.at + hz / 5 {
            return;
        }
        if self.limit < state.thresholds.hard {
            self.limit = state.thresholds.hard;
        } else {
            let floor = state.thresholds.hard.max(state.dirty);
            self.limit -= self.limit.saturating_sub(floor) >> 5;
        }
        self.at = now;
    }
}

/// How fast files of a cgroup are written to the disk (`struct bdi_writeback`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    /// Pages per second: measured, and smoothed once more.
    bandwidth: u64,
    pub average: u64,
    /// Pages per second that each task may dirty, and what it would have to be.
    pub ratelimit: u64,
    balanced: u64,
    /// Tick of the last update, and the pages dirtied and written until then.
    at: u64,
    dirtied: u64,
    written: u64,
    /// Writes that have ended, halved every three seconds; period of the last one.
    completions: u64,
    period: u64,
    /// Tick of an update that follows the end of the last write (`bw_dwork`).
    update_at: Option<u64>,
}

impl Default for Rate {
    /// Of a disk that has written nothing yet.
    fn default() -> Rate {
        let (bandwidth, average, ratelimit, balanced) =
            (FIRST_BANDWIDTH, FIRST_BANDWIDTH, FIRST_BANDWIDTH, FIRST_BANDWIDTH);
        let (at, dirtied, written, completions, period) = (0, 0, 0, 0, 0);
        Rate { bandwidth, average, ratelimit, balanced, at, dirtied, written, completions, period, update_at: None }
    }
}

impl Rate {
    /// Writes have ended in a period of three seconds.
    pub(super) fn completed(&mut self, pages: u64, period: u64) {
        self.decay(period);
        self.completions += pages;
    }

    fn decay(&mut self, period: u64) {
        let passed = period.saturating_sub(self.period);
        self.completions = self.completions.checked_shr(passed.min(64) as u32).unwrap_or(0);
        self.period = self.period.max(period);
    }

    /// Pages whose writes have ended lately, as they count in a period.
    pub(super) fn completions(&mut self, period: u64) -> u64 {
        self.decay(period);
        self.completions
    }

    /// True if an update is due: 200 ms after the last.
    pub(super) fn is_due(&self, now: u64, hz: u64) -> bool {
        now > self.at + hz / 5
    }

    /// The last write of a file has ended: an update follows.
    pub(super) fn writes_end(&mut self, now: u64, hz: u64) {
        self.update_at.get_or_insert(now + hz / 5);
    }

    /// Does the update that follows the end of writes, if it is over. Nothing was written since.
    pub(super) fn settle(&mut self, now: u64, hz: u64, counts: (u64, u64)) {
        if let Some(at) = self.update_at.take_if(|at| *at <= now) {
            self.update(at.max(self.at), hz, counts, &[]);
        }
    }

    /// Writing begins at a tick after the disk has been idle for more than a second: that time does not count
    /// (`wb_bandwidth_estimate_start`).
    pub(super) fn begin(&mut self, now: u64, hz: u64, (dirtied, written): (u64, u64)) {
        if now > self.at + hz {
            (self.at, self.dirtied, self.written) = (now, dirtied, written);
        }
    }

    /// Updates all estimates at a tick. `dirtied` and `written` are counted since the start; a writer has the states of
    /// its domains, each with its position.
    pub(super) fn update(&mut self, now: u64, hz: u64, (dirtied, written): (u64, u64), domains: &[(State, u64)]) {
        let elapsed = now.saturating_sub(self.at).max(1);
        for (state, position) in domains {
            self.update_ratelimit(elapsed, hz, state, dirtied, *position);
        }
        self.update_bandwidth(elapsed, hz, written);
        (self.at, self.dirtied, self.written) = (now, dirtied, written);
    }

    fn update_bandwidth(&mut self, elapsed: u64, hz: u64, written: u64) {
        let period = (3 * hz).next_power_of_two();
        let pages = written.saturating_sub(self.written) * hz;
        if elapsed > period {
            (self.bandwidth, self.average) = (pages / elapsed, (pages / elapsed).max(1));
            return;
        }
        let now = (pages + self.bandwidth * (period - elapsed)) >> period.ilog2();
        let (old, average) = (self.bandwidth, self.average);
        if average > old && old >= now {
            self.average -= (average - old) >> 3;
        }
        if average < old && old <= now {
            self.average += (old - average) >> 3;
        }
        (self.bandwidth, self.average) = (now, self.average.max(1));
    }

    fn update_ratelimit(&mut self, elapsed: u64, hz: u64, state: &State, dirtied: u64, position: u64) {
        let setpoint = (state.thresholds.freerun() + state.limit) / 2;
        let dirty_rate = dirtied.saturating_sub(self.dirtied) * hz / elapsed;
        let of_task = ((self.ratelimit * position) >> ONE.ilog2()) + 1;
        // Rate of each task at which all of them together dirty as fast as the disk writes.
        let balanced = (of_task * self.average / (dirty_rate | 1)).min(self.average);
        let wanted = if state.dirty < setpoint {
            self.balanced.min(balanced).min(of_task).max(self.ratelimit)
        } else {
            self.balanced.max(balanced).max(of_task).min(self.ratelimit)
        };
        let step = wanted.abs_diff(self.ratelimit);
        // Small steps are made smaller, so that noise does not move it.
        let shift = self.ratelimit / (2 * step + 1);
        let step = if shift < 64 { (step >> shift).div_ceil(8) } else { 0 };
        self.ratelimit =
            if self.ratelimit < balanced { self.ratelimit + step } else { self.ratelimit.saturating_sub(step) };
        self.ratelimit = self.ratelimit.max(1);
        self.balanced = balanced;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bandwidth_is_believed_slowly() {
        let mut rate = Rate::default();
        let mut now = 1000;
        rate.update(now, 250, (0, 0), &[]);
        let first = rate.average;
        // 10,000 pages per second for a minute.
        let mut written = 0;
        for i in 1..=300 {
            (now, written) = (now + 50, written + 2000);
            rate.update(now, 250, (0, written), &[]);
            if i == 1 {
                assert!(rate.average > first * 9 / 10, "{}", rate.average);
            }
        }
        assert!(rate.average.abs_diff(10_000) < 300, "{}", rate.average);
        // After a long pause what was written is all that counts.
        rate.update(now + 5000, 250, (0, written + 2000), &[]);
        assert_eq!(rate.average, 100);
    }

    #[test]
    fn tasks_converge_to_the_write_bandwidth_of_the_disk() {
        let mut rate = Rate { average: 5000, bandwidth: 5000, ..Rate::default() };
        let thresholds = Thresholds { background: 10_000, hard: 20_000 };
        let mut state = State { thresholds, dirty: 15_000, limit: 20_000, own: 15_000, of_disk: 20_000 };
        let (mut now, mut dirtied, mut written) = (0, 0, 0);
        for _ in 0..600 {
            now += 51;
            let ratio = super::super::position::ratio(&state, rate.average);
            // Two tasks, each as fast as it may be, in a bit more than 200 ms.
            dirtied += 2 * ((rate.ratelimit * ratio) >> 10) / 5;
            written += 1000.min(dirtied - written);
            state.dirty = 15_000 + dirtied - written;
            state.own = state.dirty;
            rate.update(now, 250, (dirtied, written), &[(state, ratio)]);
        }
        assert!(rate.ratelimit.abs_diff(2500) < 500, "{}", rate.ratelimit);
        assert!((15_000..20_000).contains(&state.dirty), "{}", state.dirty);
    }

    #[test]
    fn what_was_written_is_forgotten() {
        let mut rate = Rate::default();
        assert_eq!(rate.completions(7), 0);
        rate.completed(5, 8);
        assert_eq!([8, 9, 10, 11].map(|period| rate.completions(period)), [5, 2, 1, 0]);
    }

    #[test]
    fn the_hard_limit_falls_slowly() {
        let mut domain = Domain::default();
        let at = |hard, dirty| State { thresholds: Thresholds { background: 0, hard }, dirty, ..State::default() };
        domain.update(50, 250, &at(3200, 0));
        assert_eq!(domain.hard(Thresholds { background: 0, hard: 1000 }), 3200);
        domain.update(100, 250, &at(1600, 0));
        domain.update(101, 250, &at(1600, 0));
        assert_eq!(domain.smoothed(), 3150);
        domain.update(200, 250, &at(1600, 3150));
        assert_eq!(domain.smoothed(), 3150);
    }
}
