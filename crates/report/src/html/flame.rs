//! A flame graph: stacks as a tree, from the outermost function to the event.

use mmtwin_analysis::Analysis;
use serde::Serialize;
use std::collections::BTreeMap;

/// Most functions of a graph; below them stacks end early.
const MOST: usize = 4000;
/// Functions that have less than this part of everything are omitted.
const LEAST: f64 = 1e-3;

/// A function with those that it called.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Frame {
    name: String,
    /// Nanoseconds waited, or how often.
    value: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    calls: Vec<Frame>,
}

/// A graph.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Flame {
    /// `ns`, or `times` where no stack has a known duration.
    unit: &'static str,
    root: Frame,
}

#[derive(Default)]
struct Tree {
    value: u64,
    calls: BTreeMap<String, Tree>,
}

/// The graph of a run; `None` if no stacks were recorded.
pub(super) fn of(analysis: &Analysis) -> Option<Flame> {
    let stacks = analysis.stacks.by_time(&analysis.source);
    let timed = stacks.iter().any(|stack| stack.waited > 0);
    let mut root = Tree::default();
    for stack in &stacks {
        let value = if timed { stack.waited } else { stack.count };
        let outermost_first = stack.functions.iter().rev().map(String::as_str);
        let path = [stack.task.as_str()].into_iter().chain(outermost_first).chain([stack.event_name()]);
        root.value = root.value.saturating_add(value);
        let mut at = &mut root;
        for name in path {
            at = at.calls.entry(name.to_owned()).or_default();
            at.value = at.value.saturating_add(value);
        }
    }
    let least = (root.value as f64 * LEAST) as u64;
    let mut room = MOST;
    let unit = if timed { "ns" } else { "times" };
    (root.value > 0).then(|| Flame { unit, root: frame("all", root, least.max(1), &mut room) })
}

/// The widest first, as far as there is room.
fn frame(name: &str, tree: Tree, least: u64, room: &mut usize) -> Frame {
    let mut calls: Vec<(String, Tree)> = tree.calls.into_iter().filter(|(_, call)| call.value >= least).collect();
    // The sort is stable: equal ones keep the order of their names.
    calls.sort_by_key(|(_, call)| std::cmp::Reverse(call.value));
    let mut kept = Vec::new();
    for (name, call) in calls {
        if *room == 0 {
            break;
        }
        *room -= 1;
        kept.push(frame(&name, call, least, room));
    }
    Frame { name: name.to_owned(), value: tree.value, calls: kept }
}
