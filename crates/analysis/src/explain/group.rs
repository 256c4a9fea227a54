//! One NUMA group: its members and why they joined, its faults by node, its active nodes, and where its tasks move.

use super::faults::Faults;
use super::figures::{self, node, seconds};
use super::moves;
use super::names::Names;
use super::task::memory;
use super::{Step, Steps};
use mmtwin_event::rules::Rule;
use mmtwin_event::vocabulary::{
    NumaGroup, NumaHintFault, NumaNodeFaults, NumaPlacement, NumaTaskMigrate, UpdateNumaActiveNodesMask,
};
use mmtwin_event::{Event, Kind};
use std::collections::{BTreeMap, BTreeSet};

/// Members that a sentence names.
const NAMED: usize = 8;

/// State of a group while its events are read.
pub(super) struct Group {
    gid: i32,
    members: BTreeSet<i32>,
    /// Tasks that events named as of the group.
    seen: BTreeSet<i32>,
    faults: Faults,
    all: Faults,
    /// Tasks whose last fault failed to migrate its page; the reason is the next event.
    refused: BTreeSet<i32>,
    /// Faults by node as they come before a placement, by task.
    nodes: BTreeMap<i32, Vec<NumaNodeFaults>>,
    /// The last placement: time, faults, active nodes.
    last: Option<(u64, String, u64)>,
    /// Nodes that its tasks prefer, by task.
    preferred: BTreeMap<i32, i32>,
    /// Active nodes of the 2014 series.
    active: BTreeSet<i32>,
    moves: [u64; 3],
}

impl Group {
    pub(super) fn new(gid: i32) -> Group {
        let (members, seen, faults, all, refused, nodes) = Default::default();
        let (last, preferred, active, moves) = Default::default();
        Group { gid, members, seen, faults, all, refused, nodes, last, preferred, active, moves }
    }

    fn push(&mut self, step: Step, steps: &mut Steps) {
        self.faults.flush(&mut self.all, steps);
        steps.push(step);
    }

    pub(super) fn event(&mut self, ev: &Event<'_>, names: &Names, steps: &mut Steps) {
        match ev.kind {
            Kind::NumaGroup => self.membership(ev, &ev.typed(), names, steps),
            Kind::NumaHintFault => {
                let of: NumaHintFault = ev.typed();
                if of.gid == self.gid {
                    self.faults.add(ev.ts, &of);
                    if of.wanted && !of.migrated {
                        self.refused.insert(ev.pid);
                    }
                }
            }
            Kind::NumaMigrateRefused if self.refused.remove(&ev.pid) => self.faults.refuse(&ev.typed()),
            Kind::NumaNodeFaults => {
                let of: NumaNodeFaults = ev.typed();
                if of.gid == self.gid {
                    self.nodes.entry(of.pid).or_default().push(of);
                }
            }
            Kind::NumaPlacement => {
                let of: NumaPlacement = ev.typed();
                if of.gid == self.gid {
                    self.placed(ev, &of, names, steps);
                }
            }
            Kind::NumaTaskMigrate => {
                let of: NumaTaskMigrate = ev.typed();
                if of.gid == self.gid && of.nid != of.preferred_nid {
                    self.preferred.insert(of.pid, of.nid);
                    let what = format!(
                        "{} found {} on {} and now prefers {}",
                        names.task(of.pid),
                        if of.best_cpu < 0 { "no CPU".into() } else { format!("CPU {}", of.best_cpu) },
                        node(of.preferred_nid),
                        node(of.nid)
                    );
                    let step = Step::new(ev.ts, ev.kind, Rule::of(of.rule), what);
                    self.push(step.like([of.pid.into(), of.nid.into(), 0, 0]), steps);
                }
            }
            Kind::UpdateNumaActiveNodesMask => {
                let of: UpdateNumaActiveNodesMask = ev.typed();
                if of.gid == self.gid {
                    let word = if of.set != 0 { "becomes active" } else { "is no longer active" };
                    if of.set != 0 {
                        self.active.insert(of.nid)
                    } else {
                        self.active.remove(&of.nid)
                    };
                    let what = format!(
                        "node {} {word}: {} CPU faults, the busiest node has {}",
                        of.nid, of.faults, of.max_faults
                    );
                    self.push(Step::new(ev.ts, ev.kind, None, what), steps);
                }
            }
            Kind::SchedMoveNuma | Kind::SchedSwapNuma | Kind::SchedStickNuma => {
                let Some(of) = moves::moved(ev, names) else { return };
                let own = of.who.iter().filter(|(_, gid)| *gid == self.gid);
                let own: Vec<i32> = own.map(|(pid, _)| *pid).collect();
                if own.is_empty() {
                    return;
                }
                self.seen.extend(own);
                let kind = [Rule::MoveTask, Rule::SwapTasks, Rule::Stick].iter().position(|rule| *rule == of.rule);
                self.moves[kind.unwrap_or(0)] += 1;
                self.push(moves::step(ev, &of), steps);
            }
            _ => {}
        }
    }

    fn membership(&mut self, ev: &Event<'_>, of: &NumaGroup, names: &Names, steps: &mut Steps) {
        let rule = Rule::of(of.rule);
        let (from, to) = (of.gid == self.gid, of.other_gid == self.gid);
        match rule {
            Some(Rule::Created) if from => drop(self.members.insert(of.pid)),
            Some(Rule::Joined) if to => drop(self.members.insert(of.pid)),
            Some(Rule::Joined | Rule::Left) if from => drop(self.members.remove(&of.pid)),
            // Why two groups do not join; a page that is shared with no member is not reported.
            Some(Rule::LargerGroup | Rule::YoungerGroup | Rule::OtherMemory) if from || to => {}
            _ => return,
        }
        let step = Step::new(ev.ts, ev.kind, rule, figures::group(of, rule, names));
        let step = match rule {
            Some(Rule::Created | Rule::Joined | Rule::Left) => step,
            _ => step.like([of.gid.into(), of.other_gid.into(), 0, 0]),
        };
        self.push(step, steps);
    }

    fn placed(&mut self, ev: &Event<'_>, of: &NumaPlacement, names: &Names, steps: &mut Steps) {
        let faults = memory(&self.nodes.remove(&of.pid).unwrap_or_default(), of.gid);
        let before = self.last.as_ref().map(|(_, _, active)| *active);
        self.seen.insert(of.pid);
        self.preferred.insert(of.pid, of.nid);
        if of.nid != of.old_nid || before != Some(of.active_nodes) {
            let prefers = match of.nid == of.old_nid {
                true => format!("still prefers {}", node(of.nid)),
                false => format!("prefers {} instead of {}", node(of.nid), node(of.old_nid)),
            };
            let what = format!(
                "{} {prefers}; {faults}; active nodes: {}, the busiest has {} CPU faults",
                names.task(of.pid),
                of.active_nodes,
                of.max_faults_cpu
            );
            self.push(Step::new(ev.ts, ev.kind, Rule::of(of.rule), what), steps);
        }
        self.last = Some((ev.ts, faults, of.active_nodes));
    }

    pub(super) fn finish(mut self, names: &Names, steps: &mut Steps) -> String {
        self.faults.flush(&mut self.all, steps);
        let gid = self.gid;
        let members = if self.members.is_empty() { &self.seen } else { &self.members };
        let tasks = figures::count(members.len() as u64, "task");
        let named: Vec<String> = members.iter().take(NAMED).map(|pid| names.task(*pid)).collect();
        let more = members.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let mut answer = match (names.recorded.has(Kind::NumaGroup), self.members.is_empty()) {
            (true, true) => format!("Group {gid} has no tasks left."),
            (true, false) => format!("Group {gid} has {tasks}: {}{more}.", named.join(", ")),
            (false, _) => format!("Events name {tasks} of group {gid}: {}{more}.", named.join(", ")),
        };
        if let Some((at, faults, active)) = &self.last {
            answer.push_str(&format!(" At {}: active nodes {active}, {faults}.", seconds(*at)));
        } else if names.recorded.has(Kind::UpdateNumaActiveNodesMask) {
            let active: Vec<String> = self.active.iter().map(i32::to_string).collect();
            let active = if active.is_empty() { "not recorded".into() } else { active.join(", ") };
            answer.push_str(&format!(" Its active nodes are {active}."));
        }
        let mut by_node: BTreeMap<i32, u64> = BTreeMap::new();
        let of_members = self.preferred.iter().filter(|(pid, _)| members.contains(pid));
        of_members.for_each(|(_, nid)| *by_node.entry(*nid).or_default() += 1);
        if !by_node.is_empty() {
            let by_node: Vec<String> =
                by_node.iter().map(|(nid, n)| format!("{} ({})", node(*nid), figures::count(*n, "task"))).collect();
            answer.push_str(&format!(" Its tasks prefer {}.", by_node.join(", ")));
        }
        let [moved, swapped, stuck] = self.moves;
        if moved + swapped + stuck > 0 {
            answer.push_str(&format!(" Task moves: {moved}, swaps: {swapped}, searches without a CPU: {stuck}."));
        }
        let faults = self.all.text();
        if !faults.is_empty() {
            answer.push_str(&format!(" Total: {faults}."));
        }
        answer
    }
}
