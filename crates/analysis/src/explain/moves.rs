//! Task moves by NUMA balancing as kernels trace them, as text; and the search for a CPU.

use super::figures::{node, signed};
use super::names::Names;
use super::{Step, figures};
use mmtwin_event::rules::Rule;
use mmtwin_event::vocabulary::{
    NumaBalance, NumaSearchCpu, NumaSearchNode, NumaTaskMigrate, SchedMigrateTask, SchedMoveNuma, SchedStickNuma,
    SchedSwapNuma,
};
use mmtwin_event::{Event, Kind};

/// Most nodes and CPUs kept until their search ends.
const MAX_SEARCHED: usize = 1 << 14;

/// A move of a task: its participants and its text.
pub(super) struct Moved {
    /// Tasks, each with its group's id.
    pub who: [(i32, i32); 2],
    /// CPUs that they are on afterwards; `None`: where they were.
    pub cpus: Option<[i32; 2]>,
    /// Nodes it goes from and to.
    pub nodes: (i32, i32),
    pub rule: Rule,
    pub what: String,
}

/// The move that a scheduler event reports.
pub(super) fn moved(ev: &Event<'_>, names: &Names) -> Option<Moved> {
    let at = |cpu: i32, nid: i32| format!("CPU {cpu} ({})", node(nid));
    Some(match ev.kind {
        Kind::SchedMoveNuma => {
            let of: SchedMoveNuma = ev.typed();
            let (from, to) = (at(of.src_cpu, of.src_nid), at(of.dst_cpu, of.dst_nid));
            Moved {
                who: [(of.pid, of.ngid), (0, 0)],
                cpus: Some([of.dst_cpu, -1]),
                nodes: (of.src_nid, of.dst_nid),
                rule: Rule::MoveTask,
                what: format!("{} moves from {from} to {to}", names.task(of.pid)),
            }
        }
        Kind::SchedSwapNuma => {
            let of: SchedSwapNuma = ev.typed();
            let (from, to) = (at(of.src_cpu, of.src_nid), at(of.dst_cpu, of.dst_nid));
            Moved {
                who: [(of.src_pid, of.src_ngid), (of.dst_pid, of.dst_ngid)],
                cpus: Some([of.dst_cpu, of.src_cpu]),
                nodes: (of.src_nid, of.dst_nid),
                rule: Rule::SwapTasks,
                what: format!("{} on {from} and {} on {to} swap", names.task(of.src_pid), names.task(of.dst_pid)),
            }
        }
        Kind::SchedStickNuma => {
            let of: SchedStickNuma = ev.typed();
            let from = at(of.src_cpu, of.src_nid);
            let why = match of.dst_cpu {
                ..0 => "no better CPU was found".to_string(),
                cpu => format!("the move to {} failed", at(cpu, of.dst_nid)),
            };
            Moved {
                who: [(of.src_pid, of.src_ngid), (0, 0)],
                cpus: None,
                nodes: (of.src_nid, of.dst_nid),
                rule: Rule::Stick,
                what: format!("{} stays on {from}: {why}", names.task(of.src_pid)),
            }
        }
        _ => return None,
    })
}

/// The step of a move; several alike are one only if nothing moves.
pub(super) fn step(ev: &Event<'_>, of: &Moved) -> Step {
    let step = Step::new(ev.ts, ev.kind, Some(of.rule), of.what.clone());
    match of.cpus {
        None => step.like([of.who[0].0.into(), of.nodes.0.into(), of.nodes.1.into(), 0]),
        Some(_) => step,
    }
}

/// The step of a task that changes its CPU for any reason.
pub(super) fn migrate_task(ev: &Event<'_>, of: &SchedMigrateTask, names: &Names) -> Step {
    let at = |cpu: i32| {
        let nid = u32::try_from(cpu).ok().and_then(|cpu| names.node_of(cpu));
        nid.map_or_else(|| format!("CPU {cpu}"), |nid| format!("CPU {cpu} (node {nid})"))
    };
    let what = format!("{} migrates from {} to {}", names.task(of.pid), at(of.orig_cpu), at(of.dest_cpu));
    Step::new(ev.ts, ev.kind, None, what)
}

/// The step of a load-balancing decision on a task.
pub(super) fn balanced(ev: &Event<'_>, of: &NumaBalance, names: &Names) -> Step {
    let what = format!(
        "CPU {} (node {}) {} {} from CPU {} (node {}); it prefers {}",
        of.dst_cpu,
        of.dst_nid,
        if of.pulled { "pulls" } else { "does not pull" },
        names.task(of.pid),
        of.src_cpu,
        of.src_nid,
        node(of.preferred_nid)
    );
    let step = Step::new(ev.ts, ev.kind, Rule::of(of.rule), what);
    if of.pulled { step } else { step.like([of.pid.into(), of.src_nid.into(), of.dst_nid.into(), 0]) }
}

/// Nodes and CPUs that a task's search has compared so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Search {
    nodes: Vec<NumaSearchNode>,
    cpus: Vec<NumaSearchCpu>,
}

impl Search {
    pub(super) fn node(&mut self, of: NumaSearchNode) {
        if self.nodes.len() < MAX_SEARCHED {
            self.nodes.push(of);
        }
    }

    pub(super) fn cpu(&mut self, of: NumaSearchCpu) {
        if self.cpus.len() < MAX_SEARCHED {
            self.cpus.push(of);
        }
    }

    /// The step of its end.
    pub(super) fn step(&mut self, ev: &Event<'_>, of: &NumaTaskMigrate, names: &Names) -> Step {
        let rule = Rule::of(of.rule);
        let became = match of.best_cpu {
            ..0 => "none found".to_string(),
            cpu if of.best_pid != 0 => {
                format!("CPU {cpu} of {} is best, improvement {}", names.task(of.best_pid), of.best_imp)
            }
            cpu => format!("CPU {cpu} is best, improvement {}", of.best_imp),
        };
        let prefers = match of.nid == of.preferred_nid {
            true => String::new(),
            false => format!("; it now prefers {}", node(of.nid)),
        };
        let mut what = format!(
            "{} on node {} searches for a CPU, first on its preferred node {}: {became}{prefers}",
            names.task(of.pid),
            of.src_nid,
            of.preferred_nid
        );
        for at in &self.nodes {
            what.push_str(&format!("; {}", self.searched(at, of.gid != 0, names)));
        }
        *self = Search::default();
        let step = Step::new(ev.ts, ev.kind, rule, what);
        match of.best_cpu {
            ..0 => step.like([of.pid.into(), of.src_nid.into(), of.preferred_nid.into(), of.nid.into()]),
            _ => step,
        }
    }

    /// What was found on a node.
    fn searched(&self, at: &NumaSearchNode, grouped: bool, names: &Names) -> String {
        let of_group = if grouped { format!(", group {}", signed(at.groupimp)) } else { String::new() };
        let mut text = format!(
            "node {}: task {}{of_group}, {} running on {} CPUs",
            at.nid,
            signed(at.taskimp),
            at.nr_running,
            at.cpus
        );
        let rule = Rule::of(at.rule);
        match rule {
            Some(Rule::PreferredNode | Rule::OtherNode) if at.may_move => {}
            Some(Rule::PreferredNode | Rule::OtherNode) | None => {
                text.push_str(", no capacity: only a swap is allowed")
            }
            Some(rule) => text.push_str(&format!(" ({})", figures::rule(rule))),
        }
        // The comparison with the largest improvement.
        let here = self.cpus.iter().filter(|cpu| cpu.nid == at.nid);
        if let Some(cpu) = here.max_by_key(|cpu| (cpu.imp, std::cmp::Reverse(cpu.cpu))) {
            let rule = Rule::of(cpu.rule).map_or(String::new(), |rule| format!(" ({})", figures::rule(rule)));
            let whose = match cpu.curr {
                0 => format!("idle CPU {}", cpu.cpu),
                curr => format!("CPU {} of {}", cpu.cpu, names.task(curr)),
            };
            text.push_str(&format!(", {whose}: improvement {} against best {}{rule}", cpu.imp, cpu.best_imp));
        }
        text
    }
}
