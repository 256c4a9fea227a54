//! One task: its preferred node and why, its searches for a CPU, and the pages that its faults migrated.

use super::faults::{Faults, Migrations};
use super::figures::{self, node, seconds};
use super::moves::{self, Search};
use super::names::Names;
use super::samples::{SCHED, Sampled};
use super::{Step, Steps};
use mmtwin_event::rules::Rule;
use mmtwin_event::vocabulary::{
    MmMigratePages, MmNumaMigrateRatelimit, NumaBalance, NumaGroup, NumaMigrateRefused, NumaNodeFaults, NumaPlacement,
    NumaScanPeriod, NumaSearchCpu, NumaSearchNode, NumaTaskMigrate, SchedMigrateTask, SchedSkipVmaNuma,
};
use mmtwin_event::{CounterRow, Event, Kind};
use std::collections::{BTreeMap, VecDeque};

/// A sample: time, names and values of its counters.
type Waiting = (u64, Vec<String>, Vec<Option<u64>>);

/// Groups that a task did not join, each listed once up to this number; more are only counted.
const MAX_NOT_JOINED: usize = 256;

/// State of a task while its events are read.
pub(super) struct Task {
    pid: i32,
    /// Faults since the last step, and all of them.
    faults: Faults,
    all: Faults,
    migrations: Migrations,
    search: Search,
    nodes: Vec<NumaNodeFaults>,
    sampled: Sampled,
    /// Samples whose time has not come.
    waiting: VecDeque<Waiting>,
    /// The CPU it ran on last, and when.
    cpu: Option<(u32, u64)>,
    /// How it came to the CPU it is on.
    came: Option<(u64, i32, String)>,
    /// The last search that found nothing, since it came.
    stuck: Option<(u64, String)>,
    /// Preferred node, since when, and why.
    preferred: Option<(i32, u64, String)>,
    /// The last placement.
    placed: Option<(u64, String)>,
    /// How often it stayed in its group, by rule and both groups.
    not_joined: BTreeMap<(Rule, i32, i32), u64>,
}

impl Task {
    pub(super) fn new(pid: i32) -> Task {
        let (faults, all, migrations, search) = Default::default();
        let (nodes, sampled, waiting, cpu, came, stuck, preferred, placed, not_joined) = Default::default();
        Task {
            pid,
            faults,
            all,
            migrations,
            search,
            nodes,
            sampled,
            waiting,
            cpu,
            came,
            stuck,
            preferred,
            placed,
            not_joined,
        }
    }

    fn push(&mut self, step: Step, steps: &mut Steps) {
        self.faults.flush(&mut self.all, steps);
        self.migrations.flush(steps);
        steps.push(step);
    }

    pub(super) fn event(&mut self, ev: &Event<'_>, names: &Names, steps: &mut Steps) {
        self.samples(ev.ts, names, steps);
        let own = ev.pid == self.pid;
        if own {
            self.cpu = Some((ev.cpu, ev.ts));
        }
        match ev.kind {
            Kind::NumaHintFault if own => self.faults.add(ev.ts, &ev.typed()),
            Kind::NumaMigrateRefused if own => {
                let of: NumaMigrateRefused = ev.typed();
                let rule = Rule::of(of.rule);
                self.faults.refuse(&of);
                if !names.recorded.has(Kind::NumaHintFault) {
                    let what =
                        format!("migration of a page from node {} failed: {}", of.src_nid, figures::refused(&of, rule));
                    self.push(
                        Step::new(ev.ts, ev.kind, rule, what).like([of.src_nid.into(), of.dst_nid.into(), 0, 0]),
                        steps,
                    );
                }
            }
            Kind::MmMigratePages if own && !names.recorded.has(Kind::NumaHintFault) => {
                let of: MmMigratePages = ev.typed();
                if mmtwin_event::names::MIGRATE_REASON.word(of.reason.0.into()) == crate::numa::NUMA_MISPLACED {
                    self.migrations.add(ev, names.node_of(ev.cpu), of.nr_succeeded, of.nr_failed, steps);
                }
            }
            Kind::MmNumaMigrateRatelimit => {
                let of: MmNumaMigrateRatelimit = ev.typed();
                if of.pid == self.pid && !names.recorded.has(Kind::NumaMigrateRefused) {
                    let what = format!("{} pages not migrated to node {}: rate limit reached", of.nr_pages, of.dst_nid);
                    let step = Step::new(ev.ts, ev.kind, Some(Rule::RateLimit), what);
                    self.push(step.like([of.dst_nid.into(), of.nr_pages as i64, 0, 0]), steps);
                }
            }
            Kind::SchedSkipVmaNuma if own => {
                let of: SchedSkipVmaNuma = ev.typed();
                let reason = mmtwin_event::names::NUMA_SKIP.word(of.reason.0.into());
                let what = format!("its scan skips the VMA at {:#x}: {reason}", of.vm_start.0);
                self.push(Step::new(ev.ts, ev.kind, None, what).like([of.reason.0.into(), 0, 0, 0]), steps);
            }
            Kind::NumaGroup => {
                let of: NumaGroup = ev.typed();
                if of.pid == self.pid {
                    let rule = Rule::of(of.rule);
                    let step = Step::new(ev.ts, ev.kind, rule, figures::group(&of, rule, names));
                    match rule {
                        None | Some(Rule::Created | Rule::Joined | Rule::Left) => self.push(step, steps),
                        // Every shared fault may repeat it.
                        Some(rule) => {
                            let why = (rule, of.gid, of.other_gid);
                            let is_known = self.not_joined.contains_key(&why);
                            let full = self.not_joined.len() >= MAX_NOT_JOINED && !is_known;
                            *self.not_joined.entry(if full { (rule, 0, 0) } else { why }).or_default() += 1;
                            if !is_known && !full {
                                self.push(step, steps);
                            }
                        }
                    }
                }
            }
            Kind::NumaScanPeriod => {
                let of: NumaScanPeriod = ev.typed();
                if of.pid == self.pid {
                    let rule = Rule::of(of.rule);
                    let step = Step::new(ev.ts, ev.kind, rule, figures::period(&of, rule));
                    let step = if of.old == of.period { step.like([of.period as i64, 0, 0, 0]) } else { step };
                    self.push(step, steps);
                }
            }
            Kind::NumaNodeFaults => {
                let of: NumaNodeFaults = ev.typed();
                if of.pid == self.pid {
                    self.nodes.push(of);
                }
            }
            Kind::NumaPlacement => {
                let of: NumaPlacement = ev.typed();
                if of.pid == self.pid {
                    self.placed(ev, &of, steps);
                }
            }
            Kind::NumaSearchNode => {
                let of: NumaSearchNode = ev.typed();
                if of.pid == self.pid {
                    self.search.node(of);
                }
            }
            Kind::NumaSearchCpu => {
                let of: NumaSearchCpu = ev.typed();
                if of.pid == self.pid {
                    self.search.cpu(of);
                }
            }
            Kind::NumaTaskMigrate => {
                let of: NumaTaskMigrate = ev.typed();
                if of.pid == self.pid {
                    let step = self.search.step(ev, &of, names);
                    self.searched(ev, &of, &step);
                    self.push(step, steps);
                }
            }
            Kind::SchedMoveNuma | Kind::SchedSwapNuma | Kind::SchedStickNuma => self.moved(ev, names, steps),
            Kind::SchedMigrateTask => {
                let of: SchedMigrateTask = ev.typed();
                if of.pid == self.pid {
                    let step = moves::migrate_task(ev, &of, names);
                    self.cpu = u32::try_from(of.dest_cpu).ok().map(|cpu| (cpu, ev.ts));
                    if self.came.as_ref().is_none_or(|(_, cpu, _)| *cpu != of.dest_cpu) {
                        self.came(ev.ts, of.dest_cpu, &step);
                    }
                    self.push(step, steps);
                }
            }
            Kind::NumaBalance => {
                let of: NumaBalance = ev.typed();
                if of.pid == self.pid {
                    let step = moves::balanced(ev, &of, names);
                    if of.pulled {
                        self.came(ev.ts, of.dst_cpu, &step);
                    }
                    self.push(step, steps);
                }
            }
            _ => {}
        }
    }

    fn came(&mut self, at: u64, cpu: i32, step: &Step) {
        let rule = step.rule.map_or(String::new(), |rule| format!(" ({})", figures::rule(rule)));
        self.came = Some((at, cpu, format!("{}{rule}", step.what)));
        self.stuck = None;
    }

    fn searched(&mut self, ev: &Event<'_>, of: &NumaTaskMigrate, step: &Step) {
        if of.best_cpu < 0 {
            self.stuck = Some((ev.ts, step.what.clone()));
        }
        if of.nid != of.preferred_nid {
            let why = match of.best_cpu {
                ..0 => {
                    "no CPU was found, and task_numa_migrate then sets the preferred node of a grouped task to its current node"
                }
                _ => "task_numa_migrate sets the preferred node of a grouped task to the node of the CPU it found",
            };
            let why = why.to_string();
            self.preferred = Some((of.nid, ev.ts, why));
        }
    }

    fn moved(&mut self, ev: &Event<'_>, names: &Names, steps: &mut Steps) {
        let Some(of) = moves::moved(ev, names) else { return };
        if of.who.iter().all(|(pid, _)| *pid != self.pid) {
            return;
        }
        let step = moves::step(ev, &of);
        match of.cpus {
            Some(cpus) => {
                let cpu = cpus[usize::from(of.who[0].0 != self.pid)];
                self.came(ev.ts, cpu, &step);
                self.cpu = u32::try_from(cpu).ok().map(|cpu| (cpu, ev.ts));
            }
            None if self.stuck.as_ref().is_none_or(|(at, _)| *at != ev.ts) => {
                self.stuck = Some((ev.ts, step.what.clone()));
            }
            None => {}
        }
        self.push(step, steps);
    }

    fn placed(&mut self, ev: &Event<'_>, of: &NumaPlacement, steps: &mut Steps) {
        let faults = memory(&std::mem::take(&mut self.nodes), of.gid);
        let rule = Rule::of(of.rule);
        let change = match of.nid == of.old_nid {
            true => {
                format!("preferred node unchanged: {}", if of.nid < 0 { "none".into() } else { of.nid.to_string() })
            }
            false => format!(
                "preferred node {} -> {}",
                if of.old_nid < 0 { "none".into() } else { of.old_nid.to_string() },
                of.nid
            ),
        };
        let active =
            if of.gid != 0 { format!("; active nodes of the group: {}", of.active_nodes) } else { String::new() };
        let what = format!("scan pass {} completed: {change}; {faults}{active}", of.scan_seq);
        let step = Step::new(ev.ts, ev.kind, rule, what);
        if of.nid != of.old_nid || self.preferred.is_none() && of.nid >= 0 {
            let rule = rule.map_or(String::new(), figures::rule);
            self.preferred = Some((of.nid, ev.ts, rule));
        }
        self.placed = Some((ev.ts, faults));
        let step = if of.nid == of.old_nid { step.like([of.nid.into(), of.gid.into(), 0, 0]) } else { step };
        self.push(step, steps);
    }

    /// Takes a sample, which waits for the events before it: recordings deliver all counters first.
    pub(super) fn counters(&mut self, row: &CounterRow<'_>, names: &Names) {
        // Placement events are more exact.
        if row.source == SCHED && row.key == self.pid.to_string() && !names.recorded.has(Kind::NumaPlacement) {
            self.waiting.push_back((row.at, row.names.to_vec(), row.values.to_vec()));
        }
    }

    /// Handles the samples up to a time.
    fn samples(&mut self, until: u64, names: &Names, steps: &mut Steps) {
        while self.waiting.front().is_some_and(|(at, ..)| *at <= until) {
            let Some((at, counters, values)) = self.waiting.pop_front() else { return };
            let key = self.pid.to_string();
            let row = CounterRow { source: SCHED, key: &key, at, names: &counters, values: &values };
            let Some((step, nid)) = self.sampled.row(&row, self.pid, names) else { continue };
            if let Some((nid, found)) = nid {
                self.preferred = Some((nid, at, format!("as sampled, with {found}")));
            }
            self.push(step, steps);
        }
    }

    pub(super) fn finish(mut self, names: &Names, steps: &mut Steps) -> String {
        self.samples(u64::MAX, names, steps);
        self.faults.flush(&mut self.all, steps);
        self.migrations.flush(steps);
        let name = names.task(self.pid);
        let nid = self.cpu.and_then(|(cpu, _)| names.node_of(cpu));
        let mut answer = match (self.cpu, nid) {
            (Some((cpu, at)), Some(nid)) => {
                format!("{name} was on CPU {cpu}, node {nid}, at its last event ({}).", seconds(at))
            }
            (Some((cpu, at)), None) => format!("{name} was on CPU {cpu} at its last event ({}).", seconds(at)),
            (None, _) => format!("No recorded event tells the CPU of {name}."),
        };
        match &self.came {
            Some((at, _, how)) => answer.push_str(&format!(" It moved there at {}: {how}.", seconds(*at))),
            None if names.recorded.has(Kind::SchedMoveNuma) && names.recorded.has(Kind::SchedSwapNuma) => {
                answer.push_str(" NUMA balancing did not move it.");
            }
            None => answer.push_str(" No recorded event reports a move."),
        }
        if let Some((preferred, at, why)) = &self.preferred {
            answer.push_str(&format!(" It prefers {} since {}: {why}.", node(*preferred), seconds(*at)));
            if let Some((at, faults)) = &self.placed {
                answer.push_str(&format!(" At its last placement ({}): {faults}.", seconds(*at)));
            }
        }
        if let Some((at, why)) = &self.stuck {
            answer.push_str(&format!(" Last, at {}: {why}.", seconds(*at)));
        }
        let mut not_joined: BTreeMap<Rule, u64> = BTreeMap::new();
        self.not_joined.iter().for_each(|((rule, ..), n)| *not_joined.entry(*rule).or_default() += n);
        if !not_joined.is_empty() {
            let not_joined: Vec<String> =
                not_joined.iter().map(|(rule, n)| format!("{n} by {}", figures::rule(*rule))).collect();
            answer.push_str(&format!(" Shared faults without a join: {}.", not_joined.join("; ")));
        }
        let faults = self.all.text();
        if !faults.is_empty() {
            answer.push_str(&format!(" Total: {faults}."));
        } else if self.migrations.all > 0 {
            answer.push_str(&format!(" Total: {} pages migrated on its hinting faults.", self.migrations.all));
        }
        answer
    }
}

/// Memory faults by node at a placement, of the group if there is one.
pub(super) fn memory(nodes: &[NumaNodeFaults], gid: i32) -> String {
    if nodes.is_empty() {
        return "faults by node not recorded".into();
    }
    let by = |value: fn(&NumaNodeFaults) -> u64| {
        let parts: Vec<String> =
            nodes.iter().filter(|of| value(of) > 0).map(|of| format!("node {} {}", of.nid, value(of))).collect();
        if parts.is_empty() { "none".into() } else { parts.join(", ") }
    };
    match gid {
        0 => format!("memory faults: {}", by(|of| of.mem)),
        _ => format!("memory faults of group {gid}: {}; of the task: {}", by(|of| of.group_mem), by(|of| of.mem)),
    }
}
