//! The command that explains a finding: who waited, why pages came back, why a process was killed.

use crate::Analysis;
use mmtwin_event::Kind;

/// Events of which `mmtwin explain` makes waits.
const WAITS: [Kind; 5] = [
    Kind::MmVmscanDirectReclaimBegin,
    Kind::MmVmscanMemcgReclaimBegin,
    Kind::MmCompactionBegin,
    Kind::BalanceDirtyPages,
    Kind::MmVmscanThrottled,
];

/// The command for a finding of this key; `None`: it says all that is known.
pub(super) fn command(a: &Analysis, key: &str) -> Option<String> {
    let subject = match key {
        "oom_kill" => "--oom",
        "refault_thrash" | "swap_storm" => "--refault",
        "direct_reclaim"
        | "cgroup_limit"
        | "cgroup_near_limit"
        | "kswapd_lags"
        | "writeback_throttling"
        | "dirty_throttling"
        | "scan_efficiency"
        | "slab_dominates"
        | "high_order_reclaim"
        | "thp_stalls"
            if WAITS.iter().any(|kind| a.recorded.count(*kind) > 0) =>
        {
            "--stall"
        }
        _ => return None,
    };
    Some(format!("mmtwin explain {} {subject}", a.source.name))
}

/// The command that explains where a task and its pages went: of the one that moved most.
pub(super) fn task(a: &Analysis) -> String {
    let most = a.numa.top_tasks().into_iter().find(|task| task.pid > 0);
    let task = most.map_or("TASK".to_owned(), |task| task.pid.to_string());
    format!("mmtwin explain {} --task {task}", a.source.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::{RULES, fixture::Recording};

    #[test]
    fn what_can_be_explained_has_a_command() {
        let mut r = Recording::default();
        assert_eq!(command(&r.analysis, "cgroup_limit"), None);
        r.event(Kind::MmVmscanMemcgReclaimBegin, 0, &[("order", 0)]);
        r.analysis.source.name = "r.mmt".into();
        assert_eq!(command(&r.analysis, "cgroup_limit").as_deref(), Some("mmtwin explain r.mmt --stall"));
        assert_eq!(command(&r.analysis, "oom_kill").as_deref(), Some("mmtwin explain r.mmt --oom"));
        assert_eq!(command(&r.analysis, "lost_events"), None);
        assert_eq!(task(&r.analysis), "mmtwin explain r.mmt --task TASK");
        // A key that is misspelt here would never be explained.
        let explained = RULES.iter().filter(|rule| command(&r.analysis, rule.key).is_some());
        assert_eq!(explained.count(), 13);
    }
}
