//! What samples of `/proc/PID/sched` tell of a task: its preferred node, its group, and faults by node.

use super::figures::node;
use super::names::Names;
use super::{Step, Steps};
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

/// Faults by node, as far as there are any.
fn faults(row: &CounterRow<'_>, group: bool) -> String {
    let of = |nid: usize| {
        let word = if group { "group" } else { "task" };
        let part = |kind: &str| value(row, &format!("node{nid}_{word}_{kind}"));
        Some((nid, part("private")?.saturating_add(part("shared")?)))
    };
    // Nodes may be missing in between; kernels have at most 1024.
    let by_node = (0..1024).filter_map(of).filter(|(_, n)| *n > 0);
    let by_node: Vec<String> = by_node.map(|(nid, n)| format!("node {nid} {n}")).collect();
    if by_node.is_empty() { "none".into() } else { by_node.join(", ") }
}

impl Sampled {
    /// Takes a sample of the task; a step if its preferred node or its group is another than before. Returns the
    /// preferred node with what it was found on, if it changed.
    pub(super) fn row(
        &mut self,
        row: &CounterRow<'_>,
        pid: i32,
        names: &Names,
        steps: &mut Steps,
    ) -> Option<(i32, String)> {
        let (preferred, group) =
            (value(row, "numa_preferred_nid"), value(row, "numa_group_id").filter(|gid| *gid != 0));
        let now = Sampled { known: true, preferred, group };
        let before = std::mem::replace(self, now);
        if before == now || !before.known && (preferred, group) == (None, None) {
            return None;
        }
        let nid = preferred.map_or(-1, |nid| nid as i32);
        let in_group = group.map_or(String::new(), |gid| format!(", in group {gid} with {}", faults(row, true)));
        let found = format!("memory faults of its own: {}{in_group}", faults(row, false));
        let what = format!("a sample finds that {} prefers {}; {found}", names.task(pid), node(nid));
        steps.push(Step {
            at: row.at,
            until: row.at,
            times: 1,
            event: "/proc/PID/sched",
            rule: None,
            what,
            likeness: None,
        });
        (before.preferred != preferred).then_some((nid, found))
    }
}
