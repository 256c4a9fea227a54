//! Samples of `/proc/PID/sched` of a task: its preferred node, its group, and faults by node.

use super::Step;
use super::figures::node;
use super::names::Names;
use mmtwin_event::CounterRow;

/// Source of the counters.
pub(super) const SCHED: &str = "sched";

/// The last sample of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sampled {
    known: bool,
    preferred: Option<u64>,
    group: Option<u64>,
}

fn value(row: &CounterRow<'_>, name: &str) -> Option<u64> {
    let at = row.names.iter().position(|other| other == name)?;
    row.values.get(at).copied().flatten()
}

/// Faults by node, as far as there are any; `None` if they were not sampled.
fn faults(row: &CounterRow<'_>, group: bool) -> Option<String> {
    let of = |nid: usize| {
        let word = if group { "group" } else { "task" };
        let part = |kind: &str| value(row, &format!("node{nid}_{word}_{kind}"));
        Some((nid, part("private")?.saturating_add(part("shared")?)))
    };
    // Nodes may be missing in between; kernels have at most 1024.
    let by_node: Vec<(usize, u64)> = (0..1024).filter_map(of).collect();
    let some = by_node.iter().filter(|(_, n)| *n > 0).map(|(nid, n)| format!("node {nid} {n}"));
    let some: Vec<String> = some.collect();
    match (by_node.is_empty(), some.is_empty()) {
        (true, _) => None,
        (false, true) => Some("none".into()),
        (false, false) => Some(some.join(", ")),
    }
}

impl Sampled {
    /// Takes a sample of the task; a step if its preferred node or its group is another than before, with the preferred
    /// node and what it was found on if that changed.
    pub(super) fn row(
        &mut self,
        row: &CounterRow<'_>,
        pid: i32,
        names: &Names,
    ) -> Option<(Step, Option<(i32, String)>)> {
        let (preferred, group) =
            (value(row, "numa_preferred_nid"), value(row, "numa_group_id").filter(|gid| *gid != 0));
        let now = Sampled { known: true, preferred, group };
        let before = std::mem::replace(self, now);
        if before == now || !before.known && (preferred, group) == (None, None) {
            return None;
        }
        let nid = preferred.map_or(-1, |nid| nid as i32);
        let unknown = || "not sampled".to_string();
        let in_group = group.map_or(String::new(), |gid| {
            format!(", of its group {gid}: {}", faults(row, true).unwrap_or_else(unknown))
        });
        let found = format!("memory faults of the task: {}{in_group}", faults(row, false).unwrap_or_else(unknown));
        let what = format!("sample: {} prefers {}; {found}", names.task(pid), node(nid));
        let event = "/proc/PID/sched";
        let step = Step { at: row.at, until: row.at, times: 1, event, rule: None, what, likeness: None };
        Some((step, (before.preferred != preferred).then_some((nid, found))))
    }
}
