//! Scan periods: `task_nr_scan_windows`, `task_scan_min`, `task_scan_start`, `task_scan_max`,
//! `update_task_scan_period`, `update_scan_period`; 6.1, with the rules of 3.13 to 4.17.
//!
//! Pages are counted for a scan window as (rss + n - 1) / n, which the kernel's rounding gives for powers of two.
//! Of 3.13 the threshold and the missing addition are read from its series' diffs only. Checked by tests of the
//! formulas; the failure branch and its three variants by name.

use super::group::Group;
use super::{Rules, Task};
use mmtwin_event::rules::Rule;
use mmtwin_scenario::kernel::{BackoffOnMigrateFail, PeriodAdaptation, PeriodReset};

/// Largest part of the machine's bandwidth for scanning, in MB per second.
const MAX_SCAN_WINDOW: u64 = 2560;
/// Share of local or private faults, in tenths, from which scanning slows down.
const NUMA_PERIOD_THRESHOLD: u64 = 7;
/// The same of 3.13 and the 2014 series.
const OLD_THRESHOLD: u64 = 3;
/// Tenths.
const NUMA_PERIOD_SLOTS: u64 = 10;

/// Faults of one placement by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FaultTypes {
    pub shared: u64,
    pub private: u64,
}

impl Rules {
    /// Windows of `scan_size_mb` in `rss` pages, at least 1.
    fn windows(&self, rss: u64) -> u64 {
        let window = u64::from(self.config.scan_size_mb) << 8;
        let rss = if rss == 0 { window } else { rss };
        rss.div_ceil(window)
    }

    /// Shortest period for a task with this many resident pages, in milliseconds.
    pub(crate) fn scan_min(&self, rss: u64) -> u64 {
        let size = u64::from(self.config.scan_size_mb);
        let windows = if size < MAX_SCAN_WINDOW { MAX_SCAN_WINDOW / size } else { 1 };
        (1000 / windows).max(u64::from(self.config.scan_period_min_ms) / self.windows(rss))
    }

    /// A group's factor on a period.
    fn scaled(&self, period: u64, group: Option<&Group>) -> u64 {
        match group.filter(|_| self.config.period_by_group) {
            Some(group) => {
                let (shared, private) = (group.shared(), group.private());
                period * group.refcount * (shared + 1) / (private + shared + 1)
            }
            None => period,
        }
    }

    /// Period of a task that begins to scan, or whose placement is reset.
    pub(crate) fn scan_start(&self, rss: u64, group: Option<&Group>) -> u64 {
        let least = self.scan_min(rss);
        least.max(self.scaled(least, group))
    }

    /// Longest period.
    pub(crate) fn scan_max(&self, rss: u64, group: Option<&Group>) -> u64 {
        let longest = u64::from(self.config.scan_period_max_ms) / self.windows(rss);
        self.scan_min(rss).max(longest.max(self.scaled(longest, group)))
    }

    /// Sets the scan period after a placement, by a rule; `Some` gives the jiffies until the address space is scanned
    /// again.
    pub(crate) fn update_task_scan_period(
        &self,
        task: &mut Task,
        types: FaultTypes,
        rss: u64,
        group: Option<&Group>,
    ) -> (Option<u64>, Rule) {
        let (local, remote) = (task.locality.local, task.locality.remote);
        let failed = match self.config.backoff_on_migrate_fail {
            BackoffOnMigrateFail::None => false,
            BackoffOnMigrateFail::Literal | BackoffOnMigrateFail::Cleared => task.locality.failed > 0,
        };
        if local + types.shared == 0 || failed {
            task.numa_scan_period = task.numa_scan_period_max.min(task.numa_scan_period << 1);
            if self.config.backoff_on_migrate_fail == BackoffOnMigrateFail::Cleared {
                task.locality = Default::default();
            }
            let rule = if failed { Rule::FailedMigration } else { Rule::NothingShared };
            return (Some(self.ms_to_jiffies(task.numa_scan_period)), rule);
        }
        let slot = task.numa_scan_period.div_ceil(NUMA_PERIOD_SLOTS) as i64;
        let local_ratio = (local * NUMA_PERIOD_SLOTS).checked_div(local + remote).unwrap_or(0);
        let types_sum = types.private + types.shared;
        let over = |ratio: u64, threshold: u64| (ratio as i64 - threshold as i64).max(1) * slot;
        let adaptation = self.config.period_adaptation;
        let (change, rule) = if adaptation != PeriodAdaptation::PrivateOrLocal {
            let merged = adaptation == PeriodAdaptation::LocalSeven;
            let threshold = if merged { NUMA_PERIOD_THRESHOLD } else { OLD_THRESHOLD };
            if local_ratio >= threshold {
                (over(local_ratio, threshold), Rule::MostlyLocal)
            } else {
                // Private faults show where memory belongs, shared ones only that another task uses it too.
                let all = types_sum + u64::from(merged);
                let ratio = (types.private * NUMA_PERIOD_SLOTS).div_ceil(all.max(1)) as i64;
                let less = (threshold as i64 - local_ratio as i64) * slot * ratio;
                (-less / NUMA_PERIOD_SLOTS as i64, Rule::ScanFaster)
            }
        } else {
            let private_ratio = (types.private * NUMA_PERIOD_SLOTS).checked_div(types_sum).unwrap_or(0);
            if private_ratio >= NUMA_PERIOD_THRESHOLD {
                (over(private_ratio, NUMA_PERIOD_THRESHOLD), Rule::MostlyPrivate)
            } else if local_ratio >= NUMA_PERIOD_THRESHOLD {
                (over(local_ratio, NUMA_PERIOD_THRESHOLD), Rule::MostlyLocal)
            } else {
                (-((NUMA_PERIOD_THRESHOLD - local_ratio.max(private_ratio)) as i64) * slot, Rule::ScanFaster)
            }
        };
        let (least, most) = (self.scan_min(rss) as i64, self.scan_max(rss, group) as i64);
        task.numa_scan_period = (task.numa_scan_period as i64 + change).clamp(least, most) as u64;
        task.locality = Default::default();
        (None, rule)
    }

    /// A task with fault statistics has moved to another node: its memory may be far now.
    pub(crate) fn update_scan_period(&self, task: &mut Task, from: usize, to: usize, rss: u64, group: Option<&Group>) {
        let resets = self.config.period_reset == PeriodReset::NodeChange;
        if !resets || task.numa_faults.is_empty() || from == to {
            return;
        }
        // Scanning is fast already without a preferred node, and moves to it or between other nodes change nothing.
        let known = task.numa_scan_seq != 0;
        let preferred = task.numa_preferred_nid;
        if known && (preferred == Some(to) || preferred.is_some_and(|preferred| preferred != from)) {
            return;
        }
        task.numa_scan_period = self.scan_start(rss, group);
    }
}

#[cfg(test)]
mod tests {
    use super::super::task::Locality;
    use super::*;

    fn task(period: u64, local: u64, remote: u64, failed: u64) -> Task {
        let mut task = Task::new(1, 1, 0, None);
        (task.numa_scan_period, task.numa_scan_period_max) = (period, 60_000);
        task.locality = Locality { remote, local, failed };
        task
    }

    #[test]
    fn periods_shrink_with_the_memory() {
        let rules = Rules::of("6.1");
        // 256 MB are a window: with 1 GB the shortest period is a quarter, but never below 100 ms.
        assert_eq!(
            [0, 1, 65_536, 65_537, 1 << 18, 1 << 25].map(|rss| rules.scan_min(rss)),
            [1000, 1000, 1000, 500, 250, 100]
        );
        assert_eq!([0, 1 << 18, 1 << 25].map(|rss| rules.scan_max(rss, None)), [60_000, 15_000, 117]);
        let mut rules = rules;
        rules.config.scan_size_mb = 4096;
        assert_eq!(rules.scan_min(1 << 25), 1000);
    }

    #[test]
    fn groups_with_shared_memory_scan_together() {
        let mut group = Group::new(7, 2, 0, 0);
        group.refcount = 8;
        group.faults[..4].copy_from_slice(&[300, 100, 0, 0]);
        let rules = Rules::of("6.1");
        assert_eq!(rules.scan_start(0, Some(&group)), 1000 * 8 * 301 / 401);
        assert_eq!(rules.scan_max(1 << 18, Some(&group)), 15_000 * 8 * 301 / 401);
        assert_eq!(Rules::of("merged-3.15").scan_start(0, Some(&group)), 1000);
    }

    #[test]
    fn local_or_private_faults_slow_scanning_down() {
        let rules = Rules::of("6.1");
        let after = |local, remote, shared, private| {
            let mut task = task(1000, local, remote, 0);
            assert_eq!(rules.update_task_scan_period(&mut task, FaultTypes { shared, private }, 0, None).0, None);
            assert_eq!(task.locality, Locality::default());
            task.numa_scan_period
        };
        assert_eq!(after(0, 100, 10, 90), 1000 + 2 * 100);
        assert_eq!(after(0, 100, 30, 70), 1000 + 100);
        assert_eq!(after(90, 10, 90, 10), 1000 + 200);
        // 7 - max(2, 3) slots faster, but the shortest period is a second.
        assert_eq!(after(20, 80, 70, 30), 1000);
        let mut long = task(10_000, 20, 80, 0);
        rules.update_task_scan_period(&mut long, FaultTypes { shared: 70, private: 30 }, 0, None);
        assert_eq!(long.numa_scan_period, 10_000 - 4 * 1000);
    }

    #[test]
    fn a_failed_migration_keeps_slowing_down() {
        let mut rules = Rules::of("6.1");
        let types = FaultTypes { shared: 50, private: 50 };
        let mut at = task(1000, 50, 50, 1);
        let failed = Rule::FailedMigration;
        assert_eq!(rules.update_task_scan_period(&mut at, types, 0, None), (Some(500), failed));
        assert_eq!(rules.update_task_scan_period(&mut at, types, 0, None), (Some(1000), failed));
        assert_eq!((at.numa_scan_period, at.locality.failed), (4000, 1));
        rules.config.backoff_on_migrate_fail = BackoffOnMigrateFail::Cleared;
        rules.update_task_scan_period(&mut at, types, 0, None);
        assert_eq!((at.numa_scan_period, at.locality), (8000, Locality::default()));
        rules.config.backoff_on_migrate_fail = BackoffOnMigrateFail::None;
        let mut at = task(10_000, 50, 50, 1);
        assert_eq!(rules.update_task_scan_period(&mut at, types, 0, None), (None, Rule::ScanFaster));
        assert_eq!(at.numa_scan_period, 8000);
        // Nothing local, nothing shared.
        let mut at = task(40_000, 0, 9, 0);
        rules.update_task_scan_period(&mut at, FaultTypes { shared: 0, private: 9 }, 0, None);
        assert_eq!((at.numa_scan_period, at.locality.remote), (60_000, 9));
    }

    #[test]
    fn older_kernels_look_at_locality_alone() {
        let mut rules = Rules::of("3.13");
        rules.config.period_adaptation = PeriodAdaptation::LocalSeven;
        let mut at = task(10_000, 20, 80, 5);
        rules.update_task_scan_period(&mut at, FaultTypes { shared: 70, private: 30 }, 0, None);
        // 5 slots of 1000, of which ceil(300 / 101) tenths.
        assert_eq!(at.numa_scan_period, 10_000 - 5 * 1000 * 3 / 10);
        let mut at = task(10_000, 30, 70, 5);
        Rules::of("3.13").update_task_scan_period(&mut at, FaultTypes { shared: 70, private: 30 }, 0, None);
        assert_eq!(at.numa_scan_period, 11_000);
    }

    #[test]
    fn moving_away_from_the_preferred_node_starts_again() {
        let rules = Rules::of("6.1");
        let moved = |seq, preferred, from, to, rules: &Rules| {
            let mut at = task(9000, 0, 0, 0);
            (at.numa_scan_seq, at.numa_preferred_nid, at.numa_faults) = (seq, preferred, vec![0; 16]);
            rules.update_scan_period(&mut at, from, to, 0, None);
            at.numa_scan_period
        };
        assert_eq!(moved(3, Some(1), 0, 1, &rules), 9000);
        assert_eq!(moved(3, Some(1), 0, 2, &rules), 9000);
        assert_eq!(moved(3, Some(1), 1, 2, &rules), 1000);
        assert_eq!(moved(0, Some(1), 0, 1, &rules), 1000);
        assert_eq!(moved(3, None, 0, 1, &rules), 1000);
        assert_eq!(moved(3, Some(1), 1, 2, &Rules::of("4.17")), 9000);
    }
}
