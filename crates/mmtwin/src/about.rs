//! What an input says of itself beyond its events and counters, for the first screen of a report.

use mmtwin_event::manifest::Manifest;
use mmtwin_report::screen::About;
use mmtwin_scenario::workload::Cgroup;
use mmtwin_trace::recording::Recording;
use std::collections::BTreeMap;

/// What a recording says.
pub(crate) fn of_recording(recording: &Recording) -> About {
    let Manifest { command, evidence, start, scenario, .. } = &recording.manifest;
    About {
        command: command.clone().unwrap_or_default(),
        memory: evidence.memory,
        start: Some(*start),
        end: recording.end.as_ref().map(|end| end.end),
        limits: scenario.as_ref().map_or_else(BTreeMap::new, limits),
        filter: None,
    }
}

/// Memory limits that a resolved scenario gives its cgroups.
pub(crate) fn limits(scenario: &serde_json::Value) -> BTreeMap<String, u64> {
    let cgroups = scenario.get("cgroup").cloned();
    let cgroups: Vec<Cgroup> = cgroups.and_then(|list| serde_json::from_value(list).ok()).unwrap_or_default();
    cgroups.into_iter().filter_map(|cgroup| Some((cgroup.name, cgroup.memory.max?.0))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_cgroups_are_in_bytes() {
        let scenario = serde_json::json!({"cgroup": [{"name": "/a", "memory": {"max": "64 MiB"}}, {"name": "/b"}]});
        assert_eq!(limits(&scenario), BTreeMap::from([("/a".into(), 64 << 20)]));
        assert!(limits(&serde_json::json!({"cgroup": 5})).is_empty());
    }
}
