//! What a hinting fault leaves in a task's statistics: `task_numa_fault`, `task_numa_group`; 3.13 to 6.12.
//!
//! Placement runs before the fault is booked, so it never sees the fault that started it. Left out: memory tiering,
//! faults of tasks without memory. Checked by tests of groups and of whole runs.

use super::active::{self, Moment};
use super::decisions::write_group;
use super::filter::{UNSET, cpu_of, matches};
use super::placement::{self, Scene};
use super::rules::Era;
use super::task::{CPUBUF, MEMBUF, fault_index};
use super::{Env, Numa};
use crate::probe::Task as Who;
use mmtwin_event::rules::Rule;
use mmtwin_scenario::kernel::{ActiveSet, RefreshAtJoin, SharedPages};

/// A hinting fault that is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    /// Who faulted on the page before.
    pub last: u32,
    /// Node of the page now.
    pub mem_node: usize,
    /// Base pages.
    pub pages: u64,
    /// The page came here.
    pub migrated: bool,
    /// It should have and could not.
    pub failed: bool,
    /// It was on the CPU's node before.
    pub was_local: bool,
    /// Several address spaces map it.
    pub shared: bool,
}

impl Numa {
    /// Books a fault of a task; true if the task should now be moved to its preferred node.
    pub(crate) fn task_numa_fault(&mut self, env: &mut Env<'_>, task: usize, fault: &Fault) -> bool {
        let nodes = self.topology.nodes();
        let cpu = self.tasks[task].cpu;
        let (cpu_node, at) = (env.kernel.machine.node_of(cpu), env.kernel.now(cpu));
        let jiffies = self.rules.jiffies(at);
        let of = &mut self.tasks[task];
        if of.numa_faults.is_empty() {
            of.numa_faults = vec![0; 8 * nodes];
            of.total_numa_faults = 0;
            of.locality = Default::default();
        }
        let private = fault.last == UNSET || matches(of.pid, fault.last) || self.task_numa_group(env, task, fault);
        let local = fault.was_local || !private && self.counts_as_local(task, cpu_node, fault.mem_node);
        let retry = jiffies > self.tasks[task].numa_migrate_retry;
        let mut migrate = false;
        if retry || self.rules.era <= Era::V4_14 {
            migrate = self.place(env, task);
        }
        let of = &self.tasks[task];
        migrate |= retry && (self.rules.era > Era::V3_13 || of.numa_migrate_retry > 0);
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
        match self.rules.said.active_set {
            ActiveSet::Count => group.is_active(cpu_node) && group.is_active(mem_node),
            _ if self.rules.era == Era::V3_18 => group.mask >> cpu_node & group.mask >> mem_node & 1 == 1,
            ActiveSet::None | ActiveSet::FortyTwenty | ActiveSet::SixThreeSixteenths => false,
        }
    }

    fn place(&mut self, env: &mut Env<'_>, task: usize) -> bool {
        let (mm, rules) = (self.tasks[task].mm, self.rules);
        let moment = self.moment(env, task);
        if self.tasks[task].numa_scan_seq == self.mms[mm].seq_at(moment.at) {
            return false;
        }
        let rss = self.rss(env.memory, mm);
        let mut scene = Scene {
            rules: &rules,
            topology: &self.topology,
            groups: &mut self.groups,
            mm: &mut self.mms[mm],
            rss,
            probe: &mut env.kernel.probe,
            moment,
            jiffies: rules.jiffies(moment.at),
        };
        let placed = placement::task_numa_placement(&mut scene, &mut self.tasks[task]);
        self.divided_by_zero += u64::from(placed.divided_by_zero);
        placed.migrate
    }

    fn moment(&self, env: &Env<'_>, task: usize) -> Moment {
        let of = &self.tasks[task];
        Moment { at: env.kernel.now(of.cpu), cpu: of.cpu, who: Who { pid: of.pid, tgid: of.tgid } }
    }

    /// Who shares a page shares a group; true if the fault counts as private all the same.
    fn task_numa_group(&mut self, env: &mut Env<'_>, task: usize, fault: &Fault) -> bool {
        let nodes = self.topology.nodes();
        let cpu = self.tasks[task].cpu;
        let (node, at) = (env.kernel.machine.node_of(cpu), env.kernel.now(cpu));
        if self.tasks[task].numa_group.is_none() {
            self.groups.create(&mut self.tasks[task], nodes, node);
            write_group(&mut env.kernel.probe, at, &self.groups, &self.tasks[task], None, Rule::Created);
        }
        let other = env.queues.running_on(cpu_of(fault.last));
        let met = other.filter(|&other| matches(self.tasks[other].pid, fault.last));
        let Some(other) = met else {
            write_group(&mut env.kernel.probe, at, &self.groups, &self.tasks[task], None, Rule::NotRunning);
            return false;
        };
        let (of, theirs) = (&self.tasks[task], &self.tasks[other]);
        let Some(mut rule) = self.groups.joins(of, theirs) else { return false };
        let stranger = rule == Rule::Joined && of.mm != theirs.mm && !fault.shared;
        if stranger {
            rule = Rule::OtherMemory;
        }
        write_group(&mut env.kernel.probe, at, &self.groups, of, Some(theirs), rule);
        if rule != Rule::Joined {
            return stranger;
        }
        let (from, to) = (of.numa_group, theirs.numa_group);
        if let Some(to) = to {
            self.groups.join(&mut self.tasks[task], to);
        }
        self.refresh_at_join(env, task, from);
        false
    }

    /// The 2014 series computes the active set of the joined group anew.
    fn refresh_at_join(&mut self, env: &mut Env<'_>, task: usize, from: Option<usize>) {
        let (said, moment, nodes) = (self.rules.said, self.moment(env, task), self.topology.nodes());
        if said.refresh_at_join == RefreshAtJoin::None || said.shared_pages != SharedPages::ActiveSet {
            return;
        }
        let left = from.filter(|_| said.refresh_at_join == RefreshAtJoin::Both);
        for group in self.tasks[task].numa_group.into_iter().chain(left) {
            if let Some(group) = self.groups.get_mut(group) {
                active::update(group, nodes, said.active_set, &mut env.kernel.probe, moment);
            }
        }
    }
}
