//! Statistics of hinting faults: `task_numa_fault`, `task_numa_group`; 3.13 to 6.12.
//!
//! Placement runs before the fault is counted, so it does not include the fault that started it. Not modelled: memory
//! tiering, faults of tasks without memory. Checked by tests of groups and of whole runs.

use super::active::Moment;
use super::filter::{UNSET, cpu_of, matches};
use super::placement::PlacementCtx;
use super::task::{CPUBUF, MEMBUF, fault_index};
use super::{Groups, Numa, NumaCtx, active, placement, write_group};
use crate::probe::{Probe, Task as TaskIds};
use mmtwin_event::rules::Rule;
use mmtwin_scenario::kernel::{ActiveSet, NumaBalancing, PlacementAt, RecomputeOnJoin, SharedPages};

/// A hinting fault that is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    /// The task that faulted on the page before.
    pub last: u32,
    /// Node of the page now.
    pub mem_node: usize,
    /// Base pages.
    pub pages: u64,
    /// The page was migrated here.
    pub migrated: bool,
    /// It should have and could not.
    pub failed: bool,
    /// It was on the CPU's node before.
    pub was_local: bool,
    /// Several address spaces map it.
    pub shared: bool,
    /// Its entry is not writable, so no tasks are grouped by it (`TNF_NO_GROUP`).
    pub no_group: bool,
}

impl Numa {
    /// Books a fault of a task; true if the task should now be moved to its preferred node.
    pub(crate) fn task_numa_fault(&mut self, ctx: &mut NumaCtx<'_>, task: usize, fault: &Fault) -> bool {
        let nodes = self.topology.nodes();
        let cpu = self.tasks[task].cpu;
        let (cpu_node, at) = (ctx.kernel.machine.node_of(cpu), ctx.kernel.now(cpu));
        let jiffies = self.rules.jiffies(at);
        let of = &mut self.tasks[task];
        if of.numa_faults.is_empty() {
            of.numa_faults = vec![0; 8 * nodes];
            of.total_numa_faults = 0;
            of.locality = Default::default();
        }
        let private = fault.last == UNSET || matches(of.pid, fault.last);
        let private = private || !fault.no_group && self.task_numa_group(ctx, task, fault);
        let local = fault.was_local || !private && self.counts_as_local(task, cpu_node, fault.mem_node);
        let retry = jiffies > self.tasks[task].numa_migrate_retry;
        let mut migrate = false;
        if retry || self.rules.config.placement_at == PlacementAt::EveryFault {
            migrate = self.place(ctx, task);
        }
        let of = &self.tasks[task];
        migrate |= retry && (self.rules.config.first_retry || of.numa_migrate_retry > 0);
        let of = &mut self.tasks[task];
        if fault.migrated {
            of.numa_pages_migrated += fault.pages;
        }
        if fault.failed {
            of.locality.failed += fault.pages;
        }
        of.numa_faults[fault_index(nodes, MEMBUF, fault.mem_node, private)] += fault.pages;
        of.numa_faults[fault_index(nodes, CPUBUF, cpu_node, private)] += fault.pages;
        *(if local { &mut of.locality.local } else { &mut of.locality.remote }) += fault.pages;
        migrate
    }

    /// Shared memory of a group that interleaves over several nodes is as near as it can be on any of them.
    fn counts_as_local(&self, task: usize, cpu_node: usize, mem_node: usize) -> bool {
        let Some(group) = self.groups.of(&self.tasks[task]).filter(|group| group.active_nodes > 1) else {
            return false;
        };
        let config = &self.rules.config;
        config.active_set_is_local
            && match config.active_set {
                ActiveSet::Count => group.is_active(cpu_node) && group.is_active(mem_node),
                ActiveSet::None
                | ActiveSet::FortyTwenty
                | ActiveSet::SixThreeSixteenths
                | ActiveSet::SixThreeSixteenthsMemory => group.mask >> cpu_node & group.mask >> mem_node & 1 == 1,
            }
    }

    fn place(&mut self, ctx: &mut NumaCtx<'_>, task: usize) -> bool {
        let (mm, rules) = (self.tasks[task].mm, self.rules);
        let moment = self.moment(ctx, task);
        if self.tasks[task].numa_scan_seq == self.mms[mm].seq_at(moment.at) {
            return false;
        }
        let rss = self.rss(ctx.memory, mm);
        let mut placement_ctx = PlacementCtx {
            rules: &rules,
            topology: &self.topology,
            groups: &mut self.groups,
            mm: &mut self.mms[mm],
            rss,
            probe: &mut ctx.kernel.probe,
            moment,
            jiffies: rules.jiffies(moment.at),
        };
        let placed = placement::task_numa_placement(&mut placement_ctx, &mut self.tasks[task]);
        self.divided_by_zero += u64::from(placed.divided_by_zero);
        placed.migrate
    }

    fn moment(&self, ctx: &NumaCtx<'_>, task: usize) -> Moment {
        let of = &self.tasks[task];
        Moment { at: ctx.kernel.now(of.cpu), cpu: of.cpu, ids: TaskIds { pid: of.pid, tgid: of.tgid } }
    }

    /// Tasks that share a page join one group; true if the fault counts as private nevertheless.
    fn task_numa_group(&mut self, ctx: &mut NumaCtx<'_>, task: usize, fault: &Fault) -> bool {
        let nodes = self.topology.nodes();
        let cpu = self.tasks[task].cpu;
        let (node, at) = (ctx.kernel.machine.node_of(cpu), ctx.kernel.now(cpu));
        if self.tasks[task].numa_group.is_none() {
            self.groups.create(&mut self.tasks[task], nodes, node);
            write_group(&mut ctx.kernel.probe, at, &self.groups, &self.tasks[task], None, Rule::Created);
        }
        let other = ctx.queues.running_on(cpu_of(fault.last));
        let met = other.filter(|&other| matches(self.tasks[other].pid, fault.last));
        let Some(other) = met else {
            write_group(&mut ctx.kernel.probe, at, &self.groups, &self.tasks[task], None, Rule::NotRunning);
            return false;
        };
        let (of, theirs) = (&self.tasks[task], &self.tasks[other]);
        let Some(mut rule) = self.groups.joins(of, theirs) else { return false };
        let stranger = rule == Rule::Joined && of.mm != theirs.mm && !fault.shared;
        if stranger {
            rule = Rule::OtherMemory;
        }
        write_group(&mut ctx.kernel.probe, at, &self.groups, of, Some(theirs), rule);
        if rule != Rule::Joined {
            return stranger;
        }
        let (from, to, moment) = (of.numa_group, theirs.numa_group, self.moment(ctx, task));
        if let Some(to) = to {
            self.groups.join(&mut self.tasks[task], to);
        }
        let (joined, nodes) = (self.tasks[task].numa_group, self.topology.nodes());
        recompute_on_join(&mut self.groups, &self.rules.config, (joined, from), nodes, &mut ctx.kernel.probe, moment);
        false
    }
}

/// The 2014 series computes an active set when a task has joined a group: that of the group which the task left in the
/// postings that read the task's group before they change it, that of the joined one later. A group without tasks is
/// freed.
fn recompute_on_join(
    groups: &mut Groups,
    config: &NumaBalancing,
    (joined, left): (Option<usize>, Option<usize>),
    nodes: usize,
    probe: &mut Probe,
    moment: Moment,
) {
    if config.shared_pages != SharedPages::ActiveSet {
        return;
    }
    let of = match config.recompute_on_join {
        RecomputeOnJoin::None => [None, None],
        RecomputeOnJoin::Left => [None, left],
        RecomputeOnJoin::Joined => [joined, None],
        RecomputeOnJoin::Both => [joined, left],
    };
    for group in of.into_iter().flatten() {
        if let Some(group) = groups.get_mut(group) {
            active::update(group, nodes, config.active_set, probe, moment);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::task::CPU;
    use super::super::{Rules, Task};
    use super::*;

    /// Masks of the groups that a task leaves and joins, both of which began on node 0. The tasks that stay have
    /// faulted on node 1 in the one and on node 2 in the other; the task itself on node 0.
    fn masks(release: &str, at_join: Option<RecomputeOnJoin>) -> [u64; 2] {
        let mut config = Rules::of(release).config;
        config.recompute_on_join = at_join.unwrap_or(config.recompute_on_join);
        let (nodes, mut groups) = (4, Groups::default());
        let task = |pid: i32, nid: usize| {
            let mut task = Task::new(pid, 1, 0, None);
            task.numa_faults = vec![0; 8 * nodes];
            task.numa_faults[fault_index(nodes, CPU, nid, false)] = 100;
            task
        };
        let [mut stays, mut goes, mut other] = [task(1, 1), task(2, 0), task(3, 2)];
        groups.create(&mut stays, nodes, 0);
        groups.create(&mut other, nodes, 0);
        groups.join(&mut goes, 0);
        groups.join(&mut goes, 1);
        let moment = Moment { at: 0, cpu: 0, ids: TaskIds::default() };
        recompute_on_join(&mut groups, &config, (goes.numa_group, Some(0)), nodes, &mut Probe::off(), moment);
        [&stays, &other].map(|task| groups.of(task).map_or(0, |group| group.mask))
    }

    #[test]
    fn a_join_refreshes_the_group_that_the_posting_reads() {
        // The left group has lost the task's faults: node 0 is not active any more. The joined one has them.
        let (left, joined) = ([0b0010, 0b0001], [0b0001, 0b0101]);
        for release in ["2014-v1", "2014-v2", "2014-v3"] {
            assert_eq!(masks(release, None), left, "{release}");
        }
        assert_eq!(masks("2014-v4", None), joined);
        assert_eq!(masks("2014-v1", Some(RecomputeOnJoin::Joined)), joined);
        assert_eq!(masks("2014-v4", Some(RecomputeOnJoin::Both)), [left[0], joined[1]]);
        for release in ["merged-3.15", "6.1"] {
            assert_eq!(masks(release, None), [0b0001; 2], "{release}");
        }
    }
}
