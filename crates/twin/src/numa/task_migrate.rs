//! Moving a task to its memory: `numa_migrate_preferred`, `task_numa_migrate`, `update_numa_stats`; 3.13 to 6.12.
//!
//! A runnable task counts as load 1024 and its CPU's capacity as 1024, so a node has spare capacity, is fully busy or
//! is overloaded by the number of its runnable tasks alone. A move or swap succeeds at once. Not modelled:
//! `numa_migrate_on`, failing migrations, capacity taken by interrupts. Checked by `numa_tests.rs` and whole runs.

use super::task_compare::Search;
use super::{Numa, NumaCtx, group_weight, nid_of, task_weight, write_period};
use crate::probe::Task as TaskIds;
use crate::sched::RunQueues;
use mmtwin_event::Kind;
use mmtwin_event::rules::Rule;
use mmtwin_event::vocabulary::{NumaTaskMigrate, SchedMoveNuma, SchedStickNuma, SchedSwapNuma};
use mmtwin_scenario::kernel::{ActiveSet, PeriodReset, SearchPrefers};

/// Load of a runnable task, and capacity of a CPU.
pub(super) const LOAD: i64 = 1024;

/// Target of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Move {
    /// To a CPU.
    To(u32),
    /// To a CPU whose running task is swapped to its own.
    Swap(u32, usize),
}

/// How busy a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Busy {
    Spare,
    Fully,
    Overloaded,
}

/// Sums over the CPUs of a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodeStats {
    pub load: i64,
    pub capacity: i64,
    pub nr_running: u64,
    pub weight: u64,
    pub idle_cpu: Option<u32>,
}

impl NodeStats {
    pub(super) fn busy(&self) -> Busy {
        match self.nr_running.cmp(&self.weight) {
            std::cmp::Ordering::Less => Busy::Spare,
            std::cmp::Ordering::Equal => Busy::Fully,
            std::cmp::Ordering::Greater => Busy::Overloaded,
        }
    }

    /// Sums over these CPUs, with an idle one that the task may use: the lowest whose core is idle, else the lowest.
    pub(super) fn of(cpus: &[u32], queues: &RunQueues, may_use: impl Fn(u32) -> bool) -> NodeStats {
        let nr_running: u64 = cpus.iter().map(|&cpu| queues.len(cpu) as u64).sum();
        let idle = || cpus.iter().copied().filter(|&cpu| queues.len(cpu) == 0 && may_use(cpu));
        let idle_cpu = idle().find(|&cpu| queues.core_is_idle(cpu)).or_else(|| idle().next());
        let weight = cpus.len() as u64;
        NodeStats { load: nr_running as i64 * LOAD, capacity: weight as i64 * LOAD, nr_running, weight, idle_cpu }
    }
}

impl Numa {
    /// Tries to move a task to its preferred node. Called in its fault.
    pub(crate) fn numa_migrate_preferred(&mut self, ctx: &mut NumaCtx<'_>, task: usize) -> Option<Move> {
        let (rules, of) = (self.rules, &mut self.tasks[task]);
        let jiffies = rules.jiffies(ctx.kernel.now(of.cpu));
        let preferred = of.numa_preferred_nid.filter(|_| !of.numa_faults.is_empty())?;
        let mut interval = rules.hz;
        if rules.config.retry_by_period {
            interval = interval.min(rules.ms_to_jiffies(of.numa_scan_period) / 16);
        }
        of.numa_migrate_retry = jiffies + interval;
        if ctx.kernel.machine.node_of(of.cpu) == preferred {
            return None;
        }
        self.task_numa_migrate(ctx, task, preferred)
    }

    fn task_numa_migrate(&mut self, ctx: &mut NumaCtx<'_>, task: usize, preferred: usize) -> Option<Move> {
        let cpu = self.tasks[task].cpu;
        let src = ctx.kernel.machine.node_of(cpu);
        if (0..self.topology.nodes()).filter(|&nid| self.topology.has_cpus(nid)).count() < 2 {
            // No domain spans nodes: the task cannot leave.
            self.tasks[task].numa_preferred_nid = Some(src);
            self.write_search(ctx, task, (src, preferred), None, Rule::OneDomain);
            return None;
        }
        let mut search = Search::new(self, ctx, task, src);
        search.visit(preferred);
        let spread = self.groups.of(&self.tasks[task]).is_some_and(|group| group.active_nodes > 1);
        if search.best_cpu.is_none() || spread {
            search.visit_others(src, preferred);
        }
        let (best_cpu, best_task, last) = (search.best_cpu, search.best_task, search.last);
        let (imp, nodes, cpus) = (search.best_imp, search.nodes, search.cpus);
        let (at, ids) = (ctx.kernel.now(cpu), self.ids(task));
        cpus.iter().for_each(|event| ctx.kernel.probe.write(at, cpu, ids, event, b""));
        nodes.iter().for_each(|event| ctx.kernel.probe.write(at, cpu, ids, event, b""));
        self.follow_the_group(ctx, task, src, best_cpu, last);
        let rule = match (best_cpu, best_task) {
            (None, _) => Rule::Stick,
            (Some(_), None) => Rule::MoveTask,
            (Some(_), Some(_)) => Rule::SwapTasks,
        };
        self.write_search(ctx, task, (src, preferred), best_cpu.map(|cpu| (cpu, best_task, imp)), rule);
        let Some(to) = best_cpu else {
            if self.rules.config.stick_event {
                self.stick(ctx, task);
            }
            return None;
        };
        if self.rules.config.period_reset == PeriodReset::Move {
            let rss = self.rss(ctx.memory, self.tasks[task].mm);
            let period = self.rules.scan_start(rss, self.groups.of(&self.tasks[task]));
            let old = std::mem::replace(&mut self.tasks[task].numa_scan_period, period);
            write_period(&mut ctx.kernel.probe, at, old, &self.tasks[task], Rule::MigrateReset);
        }
        let dst_nid = ctx.kernel.machine.node_of(to) as i32;
        let (src_cpu, src_nid, dst_cpu) = (cpu as i32, src as i32, to as i32);
        let ngid = self.ngid(task);
        match best_task {
            None => {
                let (pid, tgid) = (ids.pid, ids.tgid);
                let event = SchedMoveNuma { pid, tgid, ngid, src_cpu, src_nid, dst_cpu, dst_nid };
                ctx.kernel.probe.write(at, cpu, ids, &event, b"");
                Some(Move::To(to))
            }
            Some(with) => {
                let other = self.ids(with);
                let event = SchedSwapNuma {
                    src_pid: ids.pid,
                    src_tgid: ids.tgid,
                    src_ngid: ngid,
                    src_cpu,
                    src_nid,
                    dst_pid: other.pid,
                    dst_tgid: other.tgid,
                    dst_ngid: self.ngid(with),
                    dst_cpu,
                    dst_nid,
                };
                ctx.kernel.probe.write(at, cpu, ids, &event, b"");
                Some(Move::Swap(to, with))
            }
        }
    }

    /// Writes `numa_task_migrate`: nodes the task is on and preferred, and the CPU, task and improvement that were best.
    fn write_search(
        &self,
        ctx: &mut NumaCtx<'_>,
        task: usize,
        (src, preferred): (usize, usize),
        best: Option<(u32, Option<usize>, i64)>,
        rule: Rule,
    ) {
        if !ctx.kernel.probe.on(Kind::NumaTaskMigrate) {
            return;
        }
        let of = &self.tasks[task];
        let event = NumaTaskMigrate {
            pid: of.pid,
            gid: self.ngid(task),
            rule: rule.number(),
            src_cpu: of.cpu as i32,
            src_nid: src as i32,
            preferred_nid: preferred as i32,
            nid: nid_of(of.numa_preferred_nid),
            best_cpu: best.map_or(-1, |(cpu, ..)| cpu as i32),
            best_pid: best.and_then(|(_, with, _)| with).map_or(0, |with| self.tasks[with].pid),
            best_imp: best.map_or(0, |(.., imp)| imp),
        };
        ctx.kernel.probe.write(ctx.kernel.now(of.cpu), of.cpu, self.ids(task), &event, b"");
    }

    /// A task of a group prefers the node that the search chose, or stays with the one it is on.
    fn follow_the_group(&mut self, ctx: &NumaCtx<'_>, task: usize, src: usize, best: Option<u32>, last: usize) {
        let Some(group) = self.groups.of(&self.tasks[task]) else { return };
        let nid = match self.rules.config.search_prefers {
            SearchPrefers::Placed => return,
            SearchPrefers::LastActive => {
                let active = match self.rules.config.active_set {
                    ActiveSet::Count => group.is_active(last) && group.active_nodes > 1,
                    ActiveSet::None
                    | ActiveSet::FortyTwenty
                    | ActiveSet::SixThreeSixteenths
                    | ActiveSet::SixThreeSixteenthsMemory => group.mask >> last & 1 == 1,
                };
                if !active {
                    return;
                }
                last
            }
            SearchPrefers::Found => best.map_or(src, |cpu| ctx.kernel.machine.node_of(cpu)),
        };
        self.tasks[task].numa_preferred_nid = Some(nid);
    }

    /// No CPU was found.
    fn stick(&self, ctx: &mut NumaCtx<'_>, task: usize) {
        let (cpu, ids) = (self.tasks[task].cpu, self.ids(task));
        let event = SchedStickNuma {
            src_pid: ids.pid,
            src_tgid: ids.tgid,
            src_ngid: self.ngid(task),
            src_cpu: cpu as i32,
            src_nid: ctx.kernel.machine.node_of(cpu) as i32,
            dst_cpu: -1,
            dst_nid: -1,
            dst_pid: Some(0),
            dst_tgid: Some(0),
            dst_ngid: Some(0),
        };
        ctx.kernel.probe.write(ctx.kernel.now(cpu), cpu, ids, &event, b"");
    }

    fn ids(&self, task: usize) -> TaskIds {
        TaskIds { pid: self.tasks[task].pid, tgid: self.tasks[task].tgid }
    }

    fn ngid(&self, task: usize) -> i32 {
        self.groups.of(&self.tasks[task]).map_or(0, |group| group.gid)
    }

    /// Weights of a node for a task and for its group.
    pub(super) fn weights(&self, task: usize, nid: usize, limit: u8) -> (i64, i64) {
        let of = &self.tasks[task];
        let group = group_weight(&self.topology, &self.groups, of, nid, limit);
        (task_weight(&self.topology, of, nid, limit), group)
    }
}
