//! Tasks by name and cgroup.

use super::Filter;
use mmtwin_event::container::{Containers, short};
use mmtwin_event::words::glob;
use mmtwin_event::{Event, Task};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// What is known of a thread.
#[derive(Debug, Default)]
pub(super) struct Known {
    tgid: i32,
    /// All names that it had, in the order in which they were told.
    names: Vec<String>,
    /// All cgroups that it was in.
    cgroups: BTreeSet<String>,
}

/// What a filter says of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    In,
    Out,
    /// A cgroup is asked for, and the thread's is not known.
    Unknown,
}

/// All threads of an input.
#[derive(Debug, Default)]
pub(super) struct Who {
    known: BTreeMap<i32, Known>,
    /// Names of containers.
    pub containers: Arc<Containers>,
    decided: HashMap<i32, Verdict>,
}

impl Who {
    /// Takes note of a name.
    pub fn announce(&mut self, task: &Task<'_>) {
        self.decided.clear();
        let known = self.known.entry(task.pid).or_default();
        if task.tgid != 0 {
            known.tgid = task.tgid;
        }
        let name = String::from_utf8_lossy(task.comm);
        if !name.is_empty() && !known.names.iter().any(|known| *known == name) {
            known.names.push(name.into_owned());
        }
        known.cgroups.extend(task.cgroup.map(str::to_string));
    }

    /// What a filter says of the thread that wrote an event.
    pub fn wrote(&mut self, filter: &Filter, event: &Event<'_>) -> Verdict {
        if !event.comm.is_empty() {
            // Texts have the name in each line.
            let has = |known: &Known| known.names.iter().any(|name| name.as_bytes() == event.comm);
            let (pid, tgid) = (event.pid, event.tgid);
            if !self.known.get(&pid).is_some_and(|known| has(known) && (tgid == 0 || known.tgid == tgid)) {
                self.announce(&Task { pid, tgid, comm: event.comm, cgroup: None });
            }
        }
        self.verdict(filter, event.pid)
    }

    /// What a filter says of a thread.
    pub fn verdict(&mut self, filter: &Filter, pid: i32) -> Verdict {
        if let Some(verdict) = self.decided.get(&pid) {
            return *verdict;
        }
        let verdict = self.decide(filter, pid);
        self.decided.insert(pid, verdict);
        verdict
    }

    fn decide(&self, filter: &Filter, pid: i32) -> Verdict {
        let own = self.known.get(&pid);
        let leader = own.filter(|own| own.tgid != pid).and_then(|own| self.known.get(&own.tgid));
        let both = || own.into_iter().chain(leader);
        let is = |pattern: &String| match pattern.parse::<i32>() {
            Ok(id) => id == pid || own.is_some_and(|own| own.tgid == id),
            Err(_) => both().flat_map(|known| &known.names).any(|name| glob(pattern, name)),
        };
        if !filter.processes.is_empty() && !filter.processes.iter().any(is) {
            return Verdict::Out;
        }
        if filter.cgroups.is_empty() {
            return Verdict::In;
        }
        // A thread may be in another cgroup than its process.
        let groups = both().map(|known| &known.cgroups).find(|groups| !groups.is_empty());
        match groups {
            None => Verdict::Unknown,
            Some(groups) if groups.iter().any(|path| in_cgroup(filter, &self.containers, path)) => Verdict::In,
            Some(_) => Verdict::Out,
        }
    }

    /// Name of a thread for people: the last one that was told.
    pub fn name(&self, pid: i32) -> String {
        let known = self.known.get(&pid).and_then(|known| known.names.last());
        known.cloned().unwrap_or_else(|| format!("pid {pid}"))
    }

    /// All cgroups that tasks were in.
    pub fn cgroups(&self) -> impl Iterator<Item = &String> {
        self.known.values().flat_map(|known| &known.cgroups)
    }
}

/// True if a cgroup is one that a filter asks for, or below it.
pub(super) fn in_cgroup(filter: &Filter, containers: &Containers, path: &str) -> bool {
    let ends = path.char_indices().skip(1).filter(|(_, c)| *c == '/').map(|(at, _)| at).chain([path.len()]);
    let above = ["/"].into_iter().chain(ends.map(|end| &path[..end]));
    let mut above = above.map(|path| (path, [short(path), containers.short(path)]));
    above.any(|(path, names)| filter.cgroups.iter().any(|pattern| is_cgroup(pattern, path, &names)))
}

fn is_cgroup(pattern: &str, path: &str, names: &[String; 2]) -> bool {
    let pattern = if pattern.len() > 1 { pattern.trim_end_matches('/') } else { pattern };
    let own = names.iter().flat_map(|name| [name.as_str(), name.rsplit(':').next().unwrap_or(name)]);
    let mut all = [path, path.trim_start_matches('/')].into_iter().chain(own);
    all.any(|name| !name.is_empty() && glob(pattern, name))
}
