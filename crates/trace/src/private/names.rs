//! Names and their pseudonyms.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What a name is the name of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A task.
    Task,
    /// A directory below the mount of a cgroup hierarchy.
    Cgroup,
    /// A machine.
    Host,
    /// A file.
    Path,
    /// A function or object of a kernel module.
    Symbol,
    /// A kernel module.
    Module,
    /// Some text of an event.
    Text,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Kind::Task => "task",
            Kind::Cgroup => "cgroup",
            Kind::Host => "host",
            Kind::Path => "path",
            Kind::Symbol => "symbol",
            Kind::Module => "module",
            Kind::Text => "text",
        }
    }
}

/// Pseudonyms, numbered by kind in the order in which their names appeared. As JSON it is the table by which their
/// owner reads a scrubbed recording, and gives other recordings the same pseudonyms.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Names {
    by_kind: BTreeMap<Kind, BTreeMap<String, String>>,
    /// Names that are shown anyway.
    #[serde(skip)]
    shown: BTreeSet<String>,
}

impl Names {
    /// Shows a name: the author of a scenario gave it.
    pub fn show(&mut self, name: &str) {
        self.shown.insert(name.to_string());
    }

    /// Whether a name is shown.
    pub fn shows(&self, name: &str) -> bool {
        self.shown.contains(name)
    }

    /// The pseudonym of a name.
    pub fn of(&mut self, kind: Kind, name: &str) -> String {
        if self.shows(name) {
            return name.to_string();
        }
        let names = self.by_kind.entry(kind).or_default();
        let next = names.len() + 1;
        names.entry(name.to_string()).or_insert_with(|| format!("{}-{next}", kind.word())).clone()
    }

    /// Name of a task. Those of kernel threads and of the recorder stay: they tell who reclaims, and nothing of anybody.
    pub fn task(&mut self, comm: &str) -> String {
        // Instances of a scenario's process have their number behind its name.
        let shown = self.shows(comm.trim_end_matches(|c: char| c.is_ascii_digit()));
        if comm.is_empty() || shown || is_known(comm) { comm.to_string() } else { self.of(Kind::Task, comm) }
    }

    /// Path of a cgroup. Its depth and the kinds of systemd's units stay.
    pub fn cgroup(&mut self, path: &str) -> String {
        let part = |part: &str| match part {
            "" | "system.slice" | "user.slice" | "machine.slice" | "init.scope" | "kubepods.slice" | "kubepods"
            | "docker" => part.to_string(),
            _ if self.shows(part) => part.to_string(),
            _ => {
                let unit = part.rsplit_once('.').map(|(_, unit)| unit);
                let unit = unit.filter(|unit| ["slice", "scope", "service"].contains(unit));
                let pseudonym = self.of(Kind::Cgroup, part);
                unit.map_or(pseudonym.clone(), |unit| format!("{pseudonym}.{unit}"))
            }
        };
        path.split('/').map(part).collect::<Vec<_>>().join("/")
    }

    /// Names of a kind with their pseudonyms.
    pub fn iter(&self) -> impl Iterator<Item = (Kind, &str, &str)> {
        self.by_kind.iter().flat_map(|(kind, names)| {
            names.iter().map(move |(name, pseudonym)| (*kind, name.as_str(), pseudonym.as_str()))
        })
    }

    /// How many names of each kind have a pseudonym.
    pub fn counts(&self) -> impl Iterator<Item = (&'static str, usize)> {
        self.by_kind.iter().map(|(kind, names)| (kind.word(), names.len()))
    }
}

/// Names that the kernel gives, a known word and behind it numbers and what workers work on, and the recorder's own.
fn is_known(comm: &str) -> bool {
    const ALONE: &[&str] = &[
        "kthreadd",
        "khugepaged",
        "ksmd",
        "oom_reaper",
        "kdevtmpfs",
        "kauditd",
        "khungtaskd",
        "writeback",
        "<idle>",
        "<...>",
    ];
    const NUMBERED: &[&str] =
        &["kswapd", "kcompactd", "kdamond.", "ksoftirqd/", "migration/", "cpuhp/", "swapper/", "idle_inject/"];
    const WORKERS: &[&str] = &["kworker/", "rcu_", "rcuop/", "rcuos/", "rcuog/"];
    let digits = |rest: &str| rest.bytes().all(|b| b.is_ascii_digit());
    ALONE.contains(&comm)
        || ["swapper", "mmtwin", "mmtwin-agent"].contains(&comm)
        || NUMBERED.iter().any(|name| comm.strip_prefix(name).is_some_and(digits))
        || WORKERS.iter().any(|name| comm.starts_with(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_pseudonym_and_kernel_threads_keep_theirs() {
        let mut names = Names::default();
        assert_eq!(
            [names.task("redis-server"), names.task("psql"), names.task("redis-server")],
            ["task-1", "task-2", "task-1"]
        );
        for thread in ["kswapd0", "kcompactd12", "kworker/0:1-events", "swapper/3", "khugepaged"] {
            assert_eq!(names.task(thread), thread);
        }
        assert_eq!(names.task("kswapd-of-alice"), "task-3");
    }

    #[test]
    fn cgroup_paths_keep_their_depth_and_units() {
        let mut names = Names::default();
        names.show("web");
        assert_eq!(names.cgroup("/"), "/");
        assert_eq!(
            names.cgroup("/user.slice/user-1000.slice/alice.scope"),
            "/user.slice/cgroup-1.slice/cgroup-2.scope"
        );
        assert_eq!(names.cgroup("/docker/0123abcd"), "/docker/cgroup-3");
        assert_eq!(names.cgroup("/web/user-1000.slice"), "/web/cgroup-1.slice");
    }

    #[test]
    fn a_table_of_names_is_read_back() {
        let mut names = Names::default();
        names.task("a");
        let mut read: Names = serde_json::from_str(&serde_json::to_string(&names).unwrap()).unwrap();
        assert_eq!([read.task("b"), read.task("a")], ["task-2", "task-1"]);
    }
}
