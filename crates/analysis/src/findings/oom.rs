//! Processes killed by the OOM killer.

use super::Finding;
use super::words::count;
use crate::Analysis;

/// No other finding is worse than a killed process.
const SEVERITY: u8 = 97;

pub fn check(a: &Analysis) -> Option<Finding> {
    let killed = match a.oom.killed {
        0 => a.counters.vmstat("oom_kill").filter(|n| *n > 0)?,
        killed => killed,
    };
    let processes = match killed {
        1 => "1 process".into(),
        _ => format!("{} processes", count(killed)),
    };
    let mut sentence = format!("the OOM killer killed {processes}");
    if let Some(victim) = a.oom.victims.first() {
        let name = victim.comm.clone().or_else(|| a.tasks.get(victim.pid).map(|task| task.name()));
        let rss = victim.anon_rss.map_or(String::new(), |kib| format!(", anon-rss {} KiB", count(kib)));
        sentence += &format!(", first {}-{}{rss}", name.as_deref().unwrap_or("<...>"), victim.pid);
    }
    Some(Finding {
        key: "oom_kill",
        severity: SEVERITY,
        sentence,
        detail: String::new(),
        table: "oom",
        ..Finding::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::fixture::Recording;
    use mmtwin_event::Kind;

    #[test]
    fn fires_by_event_or_counter() {
        let mut r = Recording::default();
        r.by(1, b"task", Kind::MmVmscanWriteFolio, 0, &[]);
        r.event(Kind::MarkVictim, 0, &[("pid", 1), ("anon_rss", 4096)]);
        assert_eq!(
            check(&r.analysis).unwrap().sentence,
            "the OOM killer killed 1 process, first task-1, anon-rss 4,096 KiB"
        );
        let mut r = Recording::default();
        r.vmstat(&[("oom_kill", 3, 5)]);
        assert_eq!(check(&r.analysis).unwrap().sentence, "the OOM killer killed 2 processes");
    }

    #[test]
    fn does_not_fire_when_nobody_was_killed() {
        let mut r = Recording::default();
        r.vmstat(&[("oom_kill", 3, 3)]);
        assert_eq!(check(&r.analysis), None);
    }
}
