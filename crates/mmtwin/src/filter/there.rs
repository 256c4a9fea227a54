//! What an input has, for those who asked for something else.

use super::{time, who::Who};
use mmtwin_event::container::Containers;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// Most names of each kind.
const NAMED: usize = 8;

/// What an input has.
#[derive(Debug, Default)]
pub(super) struct There {
    /// Events by thread.
    pub events: HashMap<i32, u64>,
    pub cgroups: BTreeSet<String>,
    /// Names of containers.
    pub containers: Arc<Containers>,
    pub nodes: BTreeSet<u32>,
    /// Name of each thread with events, known at the end.
    pub names: BTreeMap<i32, String>,
    /// Nanoseconds from the start to the end.
    pub length: Option<u64>,
}

impl There {
    /// Takes the names of threads and cgroups.
    pub fn complete(&mut self, who: &Who) {
        self.names = self.events.keys().map(|pid| (*pid, who.name(*pid))).collect();
        self.cgroups.extend(who.cgroups().cloned());
        self.containers = who.containers.clone();
    }

    /// Processes by most events, cgroups, nodes, and the time, one line each.
    pub fn words(&self) -> String {
        let mut by_name: BTreeMap<&str, u64> = BTreeMap::new();
        for (pid, events) in &self.events {
            *by_name.entry(self.names.get(pid).map_or("", String::as_str)).or_default() += events;
        }
        let mut processes: Vec<(&str, u64)> = by_name.into_iter().collect();
        processes.sort_by_key(|(name, events)| (std::cmp::Reverse(*events), *name));
        let processes = processes.iter().map(|(name, events)| format!("{name} ({events} events)")).collect();
        let cgroups = self.cgroups.iter().map(|path| match self.containers.short(path) {
            short if short == *path => short,
            short => format!("{path} ({short})"),
        });
        let lines = [
            ("processes", listed(processes)),
            ("cgroups", listed(cgroups.collect())),
            ("nodes", listed(self.nodes.iter().map(u32::to_string).collect())),
            ("time", self.length.map_or_else(|| "not known".into(), |length| format!("0 s to {}", time(length)))),
        ];
        lines.map(|(what, there)| format!("\n  {what}: {there}")).concat()
    }
}

fn listed(mut names: Vec<String>) -> String {
    let more = names.len().saturating_sub(NAMED);
    names.truncate(NAMED);
    match (names.is_empty(), more) {
        (true, _) => "none recorded".into(),
        (false, 0) => names.join(", "),
        (false, more) => format!("{}, and {more} more", names.join(", ")),
    }
}
