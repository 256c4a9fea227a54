//! The search for a better CPU: `task_numa_find_cpu`, `task_numa_compare`, `task_numa_assign`, `load_too_imbalanced`,
//! `adjust_numa_imbalance`; 6.1, with the rules of 3.13 to 4.17 where they differ.
//!
//! CPUs are searched in ascending order; thresholds and fractions are the kernel's. One last-level cache per node is
//! assumed where a small imbalance between nodes is allowed. Kernels before 3.18 have the search of 3.18. Checked by
//! `numa_tests.rs`.

use super::task_migrate::{Busy, LOAD, NodeStats};
use super::{Numa, NumaCtx};
use crate::sched::imbalance::{adjust_numa_imbalance, imb_numa_nr};
use mmtwin_event::Kind;
use mmtwin_event::rules::Rule;
use mmtwin_event::vocabulary::{NumaSearchCpu, NumaSearchNode};
use mmtwin_scenario::kernel::TaskSearch;

/// Least improvement for a swap.
const SMALLIMP: i64 = 30;

/// A search under way.
pub(super) struct Search<'a, 'k> {
    numa: &'a Numa,
    ctx: &'a NumaCtx<'k>,
    task: usize,
    /// Node and CPU that the task is on.
    src_nid: usize,
    src: NodeStats,
    /// Distance of the node that is searched.
    distance: u8,
    /// Node that was searched last.
    pub last: usize,
    pub best_cpu: Option<u32>,
    pub best_task: Option<usize>,
    pub best_imp: i64,
    /// The CPUs that were compared, if the event is enabled.
    pub nodes: Vec<NumaSearchNode>,
    pub cpus: Vec<NumaSearchCpu>,
    wants: [bool; 2],
}

/// Result of a comparison with a CPU.
struct Verdict {
    /// The search of the node is over.
    stop: bool,
    rule: Rule,
    /// Improvement by the swap or move.
    imp: i64,
}

impl Verdict {
    fn on(rule: Rule, imp: i64) -> Verdict {
        Verdict { stop: false, rule, imp }
    }
}

/// A node that is searched.
struct Candidate {
    nid: usize,
    stats: NodeStats,
    taskimp: i64,
    groupimp: i64,
    may_move: bool,
}

impl<'a, 'k> Search<'a, 'k> {
    pub(super) fn new(numa: &'a Numa, ctx: &'a NumaCtx<'k>, task: usize, src_nid: usize) -> Search<'a, 'k> {
        let mut search = Search {
            numa,
            ctx,
            task,
            src_nid,
            src: NodeStats::of(&[], ctx.queues, |_| false),
            distance: 0,
            last: src_nid,
            best_cpu: None,
            best_task: None,
            best_imp: 0,
            nodes: Vec::new(),
            cpus: Vec::new(),
            wants: [Kind::NumaSearchNode, Kind::NumaSearchCpu].map(|kind| ctx.kernel.probe.on(kind)),
        };
        search.src = search.stats(src_nid);
        search
    }

    fn stats(&self, nid: usize) -> NodeStats {
        let cpus = &self.numa.topology.cpus[nid];
        let online: Vec<u32> = cpus.iter().copied().filter(|&cpu| self.ctx.kernel.stat.is_online(cpu)).collect();
        NodeStats::of(&online, self.ctx.queues, |cpu| self.numa.tasks[self.task].may_run_on(cpu))
    }

    /// Improvements of a node over the task's.
    fn improvements(&self, nid: usize, distance: u8, from: u8) -> (i64, i64) {
        let (to, own) = (self.numa.weights(self.task, nid, distance), self.numa.weights(self.task, self.src_nid, from));
        (to.0 - own.0, to.1 - own.1)
    }

    /// Looks at the preferred node.
    pub(super) fn visit(&mut self, nid: usize) {
        self.distance = self.numa.topology.distance(self.src_nid, nid);
        let imps = self.improvements(nid, self.distance, self.distance);
        self.look_at(nid, imps, Rule::PreferredNode);
    }

    /// Looks at the other nodes, as far as task or group would gain.
    pub(super) fn visit_others(&mut self, src: usize, preferred: usize) {
        for nid in 0..self.numa.topology.nodes() {
            if !self.numa.topology.has_cpus(nid) || nid == src || nid == preferred {
                continue;
            }
            // The distance is that of the node before: so does the kernel.
            let distance = self.numa.topology.distance(src, self.last);
            let imps = self.improvements(nid, distance, distance);
            if imps.0 < 0 && imps.1 < 0 {
                if self.wants[0] {
                    let (taskimp, groupimp) = imps;
                    let skipped = Candidate { nid, stats: self.stats(nid), taskimp, groupimp, may_move: false };
                    self.saw_node(&skipped, Rule::BothWorse);
                }
                continue;
            }
            self.distance = distance;
            self.look_at(nid, imps, Rule::OtherNode);
        }
    }

    fn saw_node(&mut self, of: &Candidate, rule: Rule) {
        if !self.wants[0] {
            return;
        }
        self.nodes.push(NumaSearchNode {
            pid: self.numa.tasks[self.task].pid,
            nid: of.nid as i32,
            rule: rule.number(),
            taskimp: of.taskimp,
            groupimp: of.groupimp,
            nr_running: of.stats.nr_running,
            cpus: of.stats.weight,
            may_move: of.may_move,
            best_cpu: self.best_cpu.map_or(-1, |cpu| cpu as i32),
            best_pid: self.best_task.map_or(0, |task| self.numa.tasks[task].pid),
            best_imp: self.best_imp,
        });
    }

    fn look_at(&mut self, nid: usize, (taskimp, groupimp): (i64, i64), why: Rule) {
        self.last = nid;
        let stats = self.stats(nid);
        let mut candidate = Candidate { nid, stats, taskimp, groupimp, may_move: false };
        let rule = self.search(&mut candidate).unwrap_or(why);
        self.saw_node(&candidate, rule);
    }

    /// Searches a node; returns a rule if that decides without a search of its CPUs.
    fn search(&mut self, candidate: &mut Candidate) -> Option<Rule> {
        let (nid, stats) = (candidate.nid, candidate.stats);
        if !self.by_node_type() {
            if self.numa.rules.config.task_search == TaskSearch::Capacity && !self.has_capacity(&candidate.stats) {
                return Some(Rule::NoCapacity);
            }
            candidate.may_move = true;
        } else if stats.busy() == Busy::Spare {
            if self.imbalance(&stats) == 0 {
                candidate.may_move = true;
                if let Some(idle) = stats.idle_cpu {
                    self.assign(idle, None, 0);
                    return Some(Rule::IdleAtOnce);
                }
            }
        } else {
            candidate.may_move = !self.too_imbalanced(&stats, LOAD);
        }
        for &cpu in &self.numa.topology.cpus[nid] {
            if !self.numa.tasks[self.task].may_run_on(cpu) || !self.ctx.kernel.stat.is_online(cpu) {
                continue;
            }
            let before = self.best_imp;
            let verdict = match self.by_node_type() {
                true => self.compare(candidate, cpu),
                false => self.compare_old(candidate, cpu),
            };
            if self.wants[1] {
                let curr = self.ctx.queues.running(cpu).map_or(0, |task| self.numa.tasks[task].pid);
                self.cpus.push(NumaSearchCpu {
                    pid: self.numa.tasks[self.task].pid,
                    cpu: cpu as i32,
                    nid: nid as i32,
                    curr,
                    rule: verdict.rule.number(),
                    imp: verdict.imp,
                    moveimp: self.moveimp(candidate),
                    best_imp: before,
                });
            }
            if verdict.stop {
                break;
            }
        }
        None
    }

    fn by_node_type(&self) -> bool {
        self.numa.rules.config.task_search == TaskSearch::NodeType
    }

    /// `numa_has_capacity` of 4.17.
    fn has_capacity(&self, dst: &NodeStats) -> bool {
        if self.src.busy() == Busy::Spare && dst.busy() != Busy::Spare {
            return false;
        }
        self.src.load * dst.capacity * self.percent() > dst.load * self.src.capacity * 100
    }

    /// Half of the domain's allowed imbalance, in percent.
    fn percent(&self) -> i64 {
        100 + (i64::from(self.numa.rules.sched.numa_imbalance_pct) - 100) / 2
    }

    /// Tasks by which a node with spare capacity would have too many.
    fn imbalance(&self, dst: &NodeStats) -> i64 {
        let (src, dst_running) = (self.src.nr_running.saturating_sub(1), dst.nr_running + 1);
        let imbalance = dst_running.saturating_sub(src) as i64;
        adjust_numa_imbalance(imbalance, dst_running as i64, imb_numa_nr(dst.weight as i64))
    }

    /// A move of this load would increase the imbalance of the nodes.
    fn too_imbalanced(&self, dst: &NodeStats, moved: i64) -> bool {
        let (sl, sc, dl, dc) = (self.src.load, self.src.capacity, dst.load, dst.capacity);
        let now = ((dl + moved) * sc - (sl - moved) * dc).abs();
        let before = (dl * sc - sl * dc).abs();
        if self.by_node_type() {
            return now > before;
        }
        let (more, less) = ((dl + moved) * sc, (sl - moved) * dc);
        more.max(less) * 100 > more.min(less) * self.percent() && now > before
    }

    fn assign(&mut self, cpu: u32, task: Option<usize>, imp: i64) {
        (self.best_cpu, self.best_task, self.best_imp) = (Some(cpu), task, imp);
    }

    fn prefers_source(&self, task: usize) -> bool {
        self.numa.tasks[task].numa_preferred_nid == Some(self.src_nid)
    }

    /// Improvement by a swap with another task, before preferences; `None` if there is no reason to swap within a
    /// group.
    fn swap_gain(&self, candidate: &Candidate, other: usize, moveimp: i64) -> Option<i64> {
        let (own_group, their_group) = (self.numa.tasks[self.task].numa_group, self.numa.tasks[other].numa_group);
        let from = self.numa.weights(other, self.src_nid, self.distance);
        let to = self.numa.weights(other, candidate.nid, self.distance);
        let (task, group) = (from.0 - to.0, from.1 - to.1);
        if own_group == their_group {
            if candidate.stats.busy() == Busy::Spare && self.by_node_type() {
                return None;
            }
            let imp = candidate.taskimp + task;
            return Some(if their_group.is_some() { imp - imp / 16 } else { imp });
        }
        let by_group = their_group.is_some() && (own_group.is_some() || !self.by_node_type());
        Some(moveimp + if by_group { group } else { task })
    }

    fn moveimp(&self, candidate: &Candidate) -> i64 {
        let grouped = self.numa.tasks[self.task].numa_group.is_some();
        if grouped { candidate.groupimp } else { candidate.taskimp }
    }

    /// Compares with the task that runs on a CPU.
    fn compare(&mut self, candidate: &Candidate, cpu: u32) -> Verdict {
        let moveimp = self.moveimp(candidate);
        let Some(other) = self.ctx.queues.running(cpu).filter(|&other| self.numa.tasks[other].alive) else {
            if !candidate.may_move || moveimp < self.best_imp {
                return Verdict::on(Rule::IdleRefused, moveimp);
            }
            self.assign(candidate.stats.idle_cpu.unwrap_or(cpu), None, moveimp);
            return Verdict { stop: true, rule: Rule::IdleCpu, imp: moveimp };
        };
        if other == self.task {
            return Verdict { stop: true, rule: Rule::Itself, imp: 0 };
        }
        let them = &self.numa.tasks[other];
        if !them.may_run_on(self.numa.tasks[self.task].cpu) {
            return Verdict::on(Rule::Bound, 0);
        }
        let held_prefers = self.best_task.is_some_and(|held| self.prefers_source(held));
        let (prefers, is_home) = (self.prefers_source(other), them.numa_preferred_nid == Some(candidate.nid));
        if held_prefers && !prefers {
            return Verdict::on(Rule::CurrentBestBetter, 0);
        }
        let Some(mut imp) = self.swap_gain(candidate, other, moveimp) else {
            return Verdict::on(Rule::SameGroupRoom, 0);
        };
        if is_home {
            imp -= imp / 16;
        }
        if prefers {
            imp += imp / 8;
        }
        if candidate.may_move && moveimp > imp && moveimp > self.best_imp {
            self.assign(cpu, None, moveimp);
            return Verdict::on(Rule::PlainMove, moveimp);
        }
        let better_partner = self.best_task.is_some() && !held_prefers && prefers;
        // All tasks have the same load, so a swap never changes the balance.
        if better_partner || imp >= SMALLIMP && imp > self.best_imp + SMALLIMP / 2 {
            self.assign(cpu, Some(other), imp);
            let rule = if better_partner { Rule::BetterPartner } else { Rule::Swap };
            return Verdict { stop: !candidate.may_move && prefers, rule, imp };
        }
        Verdict::on(Rule::TooSmall, imp)
    }

    /// The comparison of 4.17 and older: no least improvement, and capacity decides about idle CPUs.
    fn compare_old(&mut self, candidate: &Candidate, cpu: u32) -> Verdict {
        let moveimp = self.moveimp(candidate);
        let other = self.ctx.queues.running(cpu).filter(|&other| self.numa.tasks[other].alive);
        if other == Some(self.task) {
            return Verdict::on(Rule::Itself, 0);
        }
        let mut imp = moveimp;
        if let Some(other) = other {
            if !self.numa.tasks[other].may_run_on(self.numa.tasks[self.task].cpu) {
                return Verdict::on(Rule::Bound, 0);
            }
            imp = self.swap_gain(candidate, other, moveimp).unwrap_or(moveimp);
        }
        if imp <= self.best_imp && moveimp <= self.best_imp {
            return Verdict::on(Rule::NoBetter, imp);
        }
        let (src, dst) = (&self.src, &candidate.stats);
        if other.is_none() && src.nr_running <= src.weight && dst.busy() != Busy::Spare {
            return Verdict::on(Rule::IdleRefused, imp);
        }
        let own_cpu = self.numa.tasks[self.task].cpu;
        let alone = self.ctx.queues.len(own_cpu) == 1 && self.ctx.queues.len(cpu) == 1;
        if let Some(other) = other.filter(|_| alone && imp > self.best_imp) {
            self.assign(cpu, Some(other), imp);
            return Verdict::on(Rule::Swap, imp);
        }
        if moveimp > imp && moveimp > self.best_imp && !self.too_imbalanced(dst, LOAD) {
            // A little less, so that an idle CPU wins.
            self.assign(cpu, None, moveimp - 1);
            return Verdict::on(Rule::PlainMove, moveimp - 1);
        }
        let moved = if other.is_some() { 0 } else { LOAD };
        if imp > self.best_imp && !self.too_imbalanced(dst, moved) {
            let to = if other.is_some() { cpu } else { dst.idle_cpu.unwrap_or(cpu) };
            self.assign(to, other, imp);
            return Verdict::on(if other.is_some() { Rule::Swap } else { Rule::IdleCpu }, imp);
        }
        Verdict::on(Rule::NoBetter, imp)
    }
}
