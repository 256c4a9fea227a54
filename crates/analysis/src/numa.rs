//! NUMA balancing: where tasks and pages went.
//!
//! From sched_{move,swap,stick}_numa and mm_migrate_pages. A stick without a destination (-1) means that no CPU
//! was found; with one, that the move was tried and refused. To 5.4 sticks were traced for refused moves only.
//! What hinting faults saw (local or remote) is known from counters alone.

pub mod groups;

use crate::histogram::Timeline;
use crate::index::Index;
use crate::tasks::Task;
use mmtwin_event::names::{MIGRATE_MODE, MIGRATE_REASON};
use mmtwin_event::vocabulary::{
    MmMigratePages, MmNumaMigrateRatelimit, SchedMoveNuma, SchedSkipVmaNuma, SchedStickNuma, SchedSwapNuma,
    UpdateNumaActiveNodesMask,
};
use mmtwin_event::{Event, Kind};
use std::collections::BTreeMap;

/// Largest number of different (reason, mode) pairs kept separate; more can only come from a damaged file.
const MAX_KINDS: usize = 256;
/// What the pairs beyond [`MAX_KINDS`] are counted under.
const OTHERS: (u32, u32) = (u32::MAX, u32::MAX);
/// Nodes that kernels are built for at most; other numbers are taken for damage and counted under [`NO_NODE`].
const MAX_NODES: i32 = 1024;
/// Largest number of a CPU that is kept separate.
const MAX_CPU: u32 = 8191;
/// Tasks that are kept separate; those beyond are merged as thread -1.
const MAX_SEPARATE: u32 = 1 << 18;
/// Tasks whose migrations are kept by CPU.
const MAX_TASKS: u32 = 1024;
/// The kernel's number for no node.
pub const NO_NODE: i32 = -1;
/// Migration for a hinting fault.
pub const NUMA_MISPLACED: &str = "numa_misplaced";

/// Counts from node to node.
pub type NodeMatrix = BTreeMap<(i32, i32), u64>;

/// Everything about NUMA balancing that events tell.
#[derive(Clone, Debug, Default)]
pub struct Numa {
    /// Tasks moved, from node to node.
    pub moves: NodeMatrix,
    /// Pairs of tasks swapped, by the node of the first and of the second.
    pub swaps: NodeMatrix,
    /// Tasks that should have moved and did not, from node to node; to [`NO_NODE`] if no CPU was found.
    pub sticks: NodeMatrix,
    /// Page migrations by index into the tables of reasons and modes.
    pub migrations: BTreeMap<(u32, u32), Migrated>,
    /// Pages migrated by NUMA balancing, over time.
    pub migrated_over_time: Timeline,
    /// Areas skipped by the scanner, by index into the table of reasons.
    pub skips: BTreeMap<u32, u64>,
    /// Pages whose migration hit the rate limit (to 4.18).
    pub rate_limited_pages: u64,
    /// Pages migrated in hinting faults, by the CPU that faulted.
    pub migrated_by_cpu: BTreeMap<u32, u64>,
    /// Active nodes of groups (2014 series).
    pub groups: groups::Groups,
    by_pid: Index,
    tasks: Vec<TaskMoves>,
    /// Pages by task (position in `tasks`) and CPU.
    by_task_cpu: BTreeMap<(u32, u32), u64>,
}

/// What happened to one task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskMoves {
    /// Thread id.
    pub pid: i32,
    /// Moves to another CPU's node.
    pub moves: u64,
    /// Swaps with another task.
    pub swaps: u64,
    /// Wanted, not done.
    pub sticks: u64,
    /// Pages it migrated in its own hinting faults.
    pub pages: u64,
}

/// Sums over migrations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Migrated {
    /// Calls.
    pub calls: u64,
    /// Base pages moved.
    pub succeeded: u64,
    /// Base pages not moved.
    pub failed: u64,
    /// Huge pages moved; `None` if the kernel does not say.
    pub thp_succeeded: Option<u64>,
    /// Huge pages not moved.
    pub thp_failed: Option<u64>,
    /// Huge pages split.
    pub thp_split: Option<u64>,
}

impl Migrated {
    /// Percent of pages that could not be moved.
    pub fn failed_percent(&self) -> Option<f64> {
        let tried = self.succeeded as f64 + self.failed as f64;
        (tried > 0.0).then(|| self.failed as f64 * 100.0 / tried)
    }

    fn add(&mut self, other: &Migrated) {
        let plus = |a: Option<u64>, b: Option<u64>| b.map_or(a, |b| Some(a.unwrap_or(0).saturating_add(b)));
        self.calls += other.calls;
        self.succeeded = self.succeeded.saturating_add(other.succeeded);
        self.failed = self.failed.saturating_add(other.failed);
        self.thp_succeeded = plus(self.thp_succeeded, other.thp_succeeded);
        self.thp_failed = plus(self.thp_failed, other.thp_failed);
        self.thp_split = plus(self.thp_split, other.thp_split);
    }
}

fn node(nid: i32) -> i32 {
    if (0..MAX_NODES).contains(&nid) { nid } else { NO_NODE }
}

impl Numa {
    /// Takes one event of this subject.
    #[inline]
    pub fn event(&mut self, ev: &Event<'_>, task: &Task) {
        match ev.kind {
            Kind::MmMigratePages => self.migrated(ev, task.pid, &ev.typed()),
            Kind::UpdateNumaActiveNodesMask => {
                let e: UpdateNumaActiveNodesMask = ev.typed();
                self.groups.update(ev.ts, e.gid, node(e.nid), e.set != 0, e.faults, e.max_faults);
            }
            Kind::SchedMoveNuma => self.moved(&ev.typed()),
            Kind::SchedSwapNuma => self.swapped(&ev.typed()),
            Kind::SchedStickNuma => self.stuck(&ev.typed()),
            Kind::SchedSkipVmaNuma => {
                let mut reason = ev.typed::<SchedSkipVmaNuma>().reason.0;
                if self.skips.len() >= MAX_KINDS && !self.skips.contains_key(&reason) {
                    reason = OTHERS.0;
                }
                *self.skips.entry(reason).or_default() += 1;
            }
            Kind::MmNumaMigrateRatelimit => {
                let pages = ev.typed::<MmNumaMigrateRatelimit>().nr_pages;
                self.rate_limited_pages = self.rate_limited_pages.saturating_add(pages);
            }
            _ => {}
        }
    }

    fn task(&mut self, pid: i32) -> &mut TaskMoves {
        let (at, new) = self.by_pid.insert_up_to(pid as u32 as u64, MAX_SEPARATE);
        if new {
            let pid = if self.tasks.len() < MAX_SEPARATE as usize { pid } else { -1 };
            self.tasks.push(TaskMoves { pid, ..TaskMoves::default() });
        }
        &mut self.tasks[at as usize]
    }

    fn moved(&mut self, ev: &SchedMoveNuma) {
        *self.moves.entry((node(ev.src_nid), node(ev.dst_nid))).or_default() += 1;
        self.task(ev.pid).moves += 1;
    }

    fn swapped(&mut self, ev: &SchedSwapNuma) {
        *self.swaps.entry((node(ev.src_nid), node(ev.dst_nid))).or_default() += 1;
        self.task(ev.src_pid).swaps += 1;
        self.task(ev.dst_pid).swaps += 1;
    }

    fn stuck(&mut self, ev: &SchedStickNuma) {
        *self.sticks.entry((node(ev.src_nid), node(ev.dst_nid))).or_default() += 1;
        self.task(ev.src_pid).sticks += 1;
    }

    #[inline]
    fn migrated(&mut self, event: &Event<'_>, pid: i32, ev: &MmMigratePages) {
        let mut kind = (ev.reason.0, ev.mode.0);
        if self.migrations.len() >= MAX_KINDS && !self.migrations.contains_key(&kind) {
            kind = OTHERS;
        }
        self.migrations.entry(kind).or_default().add(&Migrated {
            calls: 1,
            succeeded: ev.nr_succeeded,
            failed: ev.nr_failed,
            thp_succeeded: ev.nr_thp_succeeded,
            thp_failed: ev.nr_thp_failed,
            thp_split: ev.nr_thp_split,
        });
        if is_reason(ev.reason.0, NUMA_MISPLACED) {
            self.migrated_over_time.add(event.ts, ev.nr_succeeded);
            let task = self.task(pid);
            task.pages = task.pages.saturating_add(ev.nr_succeeded);
            let cpu = event.cpu.min(MAX_CPU);
            let by_cpu = self.migrated_by_cpu.entry(cpu).or_default();
            *by_cpu = by_cpu.saturating_add(ev.nr_succeeded);
            let task = self.by_pid.insert_up_to(pid as u32 as u64, MAX_SEPARATE).0;
            if task < MAX_TASKS {
                let of_task = self.by_task_cpu.entry((task, cpu)).or_default();
                *of_task = of_task.saturating_add(ev.nr_succeeded);
            }
        }
    }

    /// Sums over the modes of one reason, by its word; `None` if it never occurred.
    pub fn reason(&self, word: &str) -> Option<Migrated> {
        let of_reason = self.migrations.iter().filter(|((reason, _), _)| is_reason(*reason, word));
        of_reason.fold(None, |sum, (_, m)| {
            let mut sum = sum.unwrap_or_default();
            Migrated::add(&mut sum, m);
            Some(sum)
        })
    }

    /// Words of reason and mode for a key of [`Numa::migrations`].
    pub fn words(kind: (u32, u32)) -> (String, String) {
        if kind == OTHERS {
            return ("(others)".into(), String::new());
        }
        (MIGRATE_REASON.word(kind.0.into()).into(), MIGRATE_MODE.word(kind.1.into()).into())
    }

    /// Pages that a task migrated in its own hinting faults, by the node of the CPU it ran on, ascending. `cpu_nodes` is
    /// the node of every CPU. Only for the first thousand tasks.
    pub fn pages_of_task(&self, pid: i32, cpu_nodes: &[u32]) -> BTreeMap<u32, u64> {
        let mut pages = BTreeMap::new();
        let Some(task) = self.by_pid.get(pid as u32 as u64) else { return pages };
        for ((_, cpu), n) in self.by_task_cpu.range((task, 0)..=(task, u32::MAX)) {
            if let Some(node) = cpu_nodes.get(*cpu as usize) {
                *pages.entry(*node).or_default() += n;
            }
        }
        pages
    }

    /// Tasks with anything counted: most moves, swaps and sticks first, then most pages, then by thread id.
    pub fn top_tasks(&self) -> Vec<TaskMoves> {
        let mut tasks = self.tasks.clone();
        tasks.sort_by_key(|t| (std::cmp::Reverse((t.moves + t.swaps + t.sticks, t.pages)), t.pid));
        tasks
    }
}

pub(crate) fn is_reason(index: u32, word: &str) -> bool {
    MIGRATE_REASON.words.get(index as usize) == Some(&word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::Context;
    use crate::testing::{EventBuilder, task};
    use mmtwin_event::names::UNNAMED;

    fn migration(reason: u32, mode: u32, succeeded: i64, failed: i64) -> EventBuilder {
        EventBuilder::new(Kind::MmMigratePages)
            .set("reason", reason.into())
            .set("mode", mode.into())
            .set("nr_succeeded", succeeded)
            .set("nr_failed", failed)
            .set("nr_thp_failed", 0)
    }

    fn take(n: &mut Numa, pid: i32, made: EventBuilder) {
        n.event(&made.pid(pid).event(), &task(pid, Context::Other));
    }

    #[test]
    fn reasons_are_summed_over_modes_and_kept_apart() {
        let mut n = Numa::default();
        take(&mut n, 7, migration(5, 0, 3, 1));
        take(&mut n, 7, migration(5, UNNAMED as u32 | 3, 2, 0));
        take(&mut n, 8, migration(0, 0, 9, 0));
        let numa = n.reason(NUMA_MISPLACED).unwrap();
        assert_eq!((numa.calls, numa.succeeded, numa.failed), (2, 5, 1));
        assert_eq!((numa.thp_succeeded, numa.thp_failed), (None, Some(0)));
        assert_eq!(n.reason("demotion"), None);
        assert_eq!(n.migrated_over_time.since(0), 5);
        assert_eq!(n.top_tasks(), [TaskMoves { pid: 7, pages: 5, ..TaskMoves::default() }]);
        assert_eq!(Numa::words((5, UNNAMED as u32 | 3)).1, "0x3");
    }

    #[test]
    fn moves_swaps_and_sticks_count_for_both_tasks_and_nodes() {
        let mut n = Numa::default();
        let nodes = |kind, from, to| EventBuilder::new(kind).set("src_nid", from).set("dst_nid", to);
        take(&mut n, 1, nodes(Kind::SchedMoveNuma, 0, 2).set("pid", 7));
        take(&mut n, 1, nodes(Kind::SchedSwapNuma, 1, 3).set("src_pid", 7).set("dst_pid", 8));
        take(&mut n, 1, nodes(Kind::SchedStickNuma, 1, -1).set("src_pid", 9));
        assert_eq!((n.moves[&(0, 2)], n.swaps[&(1, 3)], n.sticks[&(1, NO_NODE)]), (1, 1, 1));
        let top: Vec<_> = n.top_tasks().iter().map(|t| (t.pid, t.moves, t.swaps, t.sticks)).collect();
        assert_eq!(top, [(7, 1, 1, 0), (8, 0, 1, 0), (9, 0, 0, 1)]);
    }

    #[test]
    fn damaged_numbers_stay_bounded() {
        let mut n = Numa::default();
        for i in 0..2 * MAX_KINDS as u32 {
            take(&mut n, 1, migration(i, i, -1, -1));
        }
        assert_eq!(n.migrations.len(), MAX_KINDS + 1);
        assert_eq!(n.migrations.values().map(|m| m.calls).sum::<u64>(), 2 * MAX_KINDS as u64);
        take(&mut n, 1, EventBuilder::new(Kind::SchedMoveNuma).set("src_nid", i64::MAX).set("dst_nid", 2));
        assert_eq!(n.moves[&(NO_NODE, 2)], 1);
    }
}
