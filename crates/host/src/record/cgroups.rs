//! Cgroups that are sampled without being asked for: the command's own, those near their limit when the recording
//! begins, and every one that hits its limit, stalls or has a task killed.
//!
//! Which do, few small files tell: `memory.events.local` and `memory.pressure`, or `memory.failcnt` and
//! `memory.oom_control` of version 1. What they said at the start is kept, so that the growth of a cgroup that is found
//! later is that since the start; of one that is made later it is all. A look takes [`BUDGET`] at most, and the next one
//! continues there: however many cgroups there are, the cost per sample is bounded. With 1,000 of them on a busy machine
//! of 2 CPUs (version 1, Linux 6.18) the first look, at all of them, took some 40 ms, and each sample 1.9 ms more than
//! without them.
//!
//! Not seen: cgroups that are made and removed between two looks; on version 1, without a limit, those that only reclaim
//! for the whole machine finds pages in.

use crate::cgroup::{self, Mount, Version};
use crate::clock;
use crate::sample::read;
use mmtwin_event::counters::{Row, cgroup_file};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// CPU time of a look after the first one, in nanoseconds.
const BUDGET: u64 = 2_000_000;
/// Cgroups between two looks at the clock.
const STRIDE: usize = 8;
/// Most cgroups that are sampled unasked: each takes some 100 us per sample.
const MOST: usize = 32;
/// A cgroup that stalled for less, in microseconds, does not matter.
const MIN_STALL: u64 = 1_000;
/// Of its limit a cgroup uses more than this at the start: it will reach it.
const NEAR_PERCENT: u64 = 90;
/// Version 1 writes no limit as a number near the largest possible.
const UNLIMITED: u64 = 1 << 60;
/// A directory is read again after so many rounds even if the number of its directories is the same.
const READ_AGAIN: u32 = 8;

/// Finds cgroups that matter.
pub struct Cgroups {
    mount: Mount,
    groups: BTreeMap<PathBuf, Group>,
    /// Directories that are still to be looked at in this round.
    round: Vec<PathBuf>,
    rounds: u32,
    sampled: BTreeSet<PathBuf>,
    /// Cgroups that matter beyond [`MOST`].
    omitted: BTreeSet<PathBuf>,
    /// Time of the first sample.
    started: u64,
    /// A process of the command.
    command: Option<u32>,
    text: Vec<u8>,
}

/// A cgroup.
struct Group {
    /// What it counted at the start; 0 if it was made later.
    first: Row,
    /// Links of its directory: two, and one for each below it.
    links: u64,
    below: Vec<PathBuf>,
}

/// A cgroup to sample from now on.
pub struct Found {
    /// Path below the mount.
    pub key: String,
    /// Its directory.
    pub directory: PathBuf,
    /// What it counted when the recording began.
    pub first: Row,
}

impl Cgroups {
    /// Those of this machine; `None` without memory cgroups. Those of `sampled` are sampled already.
    pub fn new(mounts: &[Mount], sampled: &[PathBuf]) -> Option<Cgroups> {
        let has_memory = |mount: &&Mount| match mount.version {
            Version::V1 => true,
            Version::V2 => fs::read_to_string(mount.path.join("cgroup.controllers"))
                .is_ok_and(|text| text.split_whitespace().any(|controller| controller == "memory")),
        };
        let mount = mounts.iter().find(has_memory)?.clone();
        let (groups, round, omitted, text) = Default::default();
        let sampled = sampled.iter().cloned().collect();
        Some(Cgroups { mount, groups, round, rounds: 0, sampled, omitted, started: 0, command: None, text })
    }

    /// The command runs, or will run as a child of this process.
    pub fn command(&mut self, pid: u32) {
        self.command = Some(pid);
    }

    /// When the recording began: the time of the first figures of all that is found.
    pub fn started(&self) -> u64 {
        self.started
    }

    /// How many cgroups matter and are not sampled.
    pub fn omitted(&self) -> usize {
        self.omitted.len()
    }

    /// The command's own cgroup, if it is not sampled yet. The root is the machine, whose counters are sampled anyway.
    pub fn of_command(&mut self) -> Option<Found> {
        let text = fs::read_to_string(format!("/proc/{}/cgroup", self.command?)).ok()?;
        let path = cgroup::of_task(&text).filter(|path| *path != "/")?;
        let found = cgroup::find(path, std::slice::from_ref(&self.mount)).ok()?;
        let (_, directory) = found.into_iter().next()?;
        let first = match self.groups.get(&directory) {
            Some(group) => group.first.clone(),
            None => zeroed(&self.counted(&directory)),
        };
        self.found(directory, first)
    }

    /// Looks for cgroups that matter by now; `now` is the time of the sample that follows.
    pub fn look(&mut self, now: u64) -> Vec<Found> {
        let begins = self.rounds == 0 && self.started == 0;
        if begins {
            self.started = now;
        }
        if self.round.is_empty() {
            self.round.push(self.mount.path.clone());
        }
        let until = clock::thread_cpu_time() + BUDGET;
        let mut found = Vec::new();
        for i in 1usize.. {
            let Some(directory) = self.round.pop() else { break };
            found.extend(self.visit(directory, begins));
            if !begins && i.is_multiple_of(STRIDE) && clock::thread_cpu_time() > until {
                break;
            }
        }
        if self.round.is_empty() {
            self.rounds += 1;
        }
        // Last: its first figures are known then.
        found.extend(self.of_command());
        found
    }

    fn visit(&mut self, directory: PathBuf, begins: bool) -> Option<Found> {
        let Ok(links) = fs::metadata(&directory).map(|metadata| metadata.nlink()) else {
            self.groups.remove(&directory);
            return None;
        };
        let rounds = self.rounds;
        let known = self.groups.get(&directory);
        // Some file systems do not count.
        let again = known.is_none_or(|group| group.links != links || links < 2)
            || (links > 2 && rounds.is_multiple_of(READ_AGAIN));
        let below = if again { directories(&directory, links) } else { Vec::new() };
        let now = self.counted(&directory);
        let group = self.groups.entry(directory.clone()).or_insert_with(|| {
            let first = if begins { now.clone() } else { zeroed(&now) };
            Group { first, links, below: Vec::new() }
        });
        if again {
            (group.links, group.below) = (links, below);
        }
        self.round.extend(group.below.iter().cloned());
        if growth(&now, &group.first).any(|(_, grown)| grown.is_none()) {
            // Another cgroup of the same name.
            group.first = zeroed(&now);
        }
        let first = group.first.clone();
        let matters = matters(&now, &first) || (begins && self.is_near_its_limit(&directory));
        if matters && directory != self.mount.path { self.found(directory, first) } else { None }
    }

    fn found(&mut self, directory: PathBuf, first: Row) -> Option<Found> {
        if self.sampled.contains(&directory) {
            return None;
        }
        if self.sampled.len() >= MOST {
            self.omitted.insert(directory);
            return None;
        }
        self.sampled.insert(directory.clone());
        let below = directory.strip_prefix(&self.mount.path).unwrap_or(&directory);
        let key = format!("/{}", below.display());
        Some(Found { first: Row { key: key.clone(), ..first }, key, directory })
    }

    /// Forgets cgroups that have been removed: over days their number has no bound.
    pub fn forget_removed(&mut self) {
        self.groups.retain(|directory, _| directory.exists());
        self.sampled.retain(|directory| directory.exists());
        self.omitted.retain(|directory| directory.exists());
    }

    /// What a cgroup counts of hits, kills and stalls.
    fn counted(&mut self, directory: &Path) -> Row {
        let files: &[[&str; 2]] = match self.mount.version {
            Version::V1 => &[["memory.failcnt", ""], ["memory.oom_control", ""]],
            // Before 5.2 events are those of the cgroups below too.
            Version::V2 => &[["memory.events.local", "memory.events"], ["memory.pressure", ""]],
        };
        let (mut row, mut problems) = (Row::default(), Vec::new());
        for names in files {
            for name in names.iter().filter(|name| !name.is_empty()) {
                if let Some(text) = read(&mut self.text, &directory.join(name)) {
                    cgroup_file(name, text, &mut row, &mut problems);
                    break;
                }
            }
        }
        counts(row)
    }

    fn is_near_its_limit(&mut self, directory: &Path) -> bool {
        let files = match self.mount.version {
            Version::V1 => ["memory.usage_in_bytes", "memory.limit_in_bytes"],
            Version::V2 => ["memory.current", "memory.max"],
        };
        let values = files.map(|file| read(&mut self.text, &directory.join(file))?.trim().parse::<u64>().ok());
        let [Some(usage), Some(limit)] = values else { return false };
        (4096..UNLIMITED).contains(&limit) && usage > limit / 100 * NEAR_PERCENT
    }
}

/// Directories below one that has so many links.
fn directories(path: &Path, links: u64) -> Vec<PathBuf> {
    if links == 2 {
        return Vec::new();
    }
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()).collect()
}

/// Only counts of what happened, no states.
fn counts(row: Row) -> Row {
    let mut kept = Row::default();
    for (name, value) in row.names.into_iter().zip(row.values) {
        let event = name.starts_with("memory.events") || name == "memory.failcnt" || name.ends_with(".oom_kill");
        if event || name.ends_with("_total") {
            kept.push(name, value);
        }
    }
    kept
}

/// The same counts at 0.
fn zeroed(row: &Row) -> Row {
    Row { values: row.values.iter().map(|value| value.map(|_| 0)).collect(), ..row.clone() }
}

/// Growth of each count; `None`: it is smaller than it was.
fn growth<'a>(now: &'a Row, first: &'a Row) -> impl Iterator<Item = (&'a str, Option<u64>)> {
    let known =
        |name: &'a String, value: &Option<u64>| Some((name.as_str(), (*value)?.checked_sub(first.value(name)?)));
    now.names.iter().zip(&now.values).filter_map(move |(name, value)| known(name, value))
}

/// It hit a limit, had a task killed or stalled since.
fn matters(now: &Row, first: &Row) -> bool {
    growth(now, first).any(|(name, grown)| match grown {
        None => false,
        Some(grown) if name.ends_with("_total") => name.ends_with("some_total") && grown >= MIN_STALL,
        // Reclaim below a protection concerns the cgroup that asked for it.
        Some(grown) => grown > 0 && !name.ends_with(".low"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hierarchy of files in a directory.
    struct Hierarchy(tempfile::TempDir);

    impl Hierarchy {
        fn new() -> Hierarchy {
            Hierarchy(tempfile::tempdir().unwrap())
        }
        fn write(&self, cgroup: &str, files: &[(&str, &str)]) {
            let directory = self.0.path().join(cgroup);
            fs::create_dir_all(&directory).unwrap();
            files.iter().for_each(|(name, text)| fs::write(directory.join(name), text).unwrap());
        }
        fn cgroups(&self, version: Version) -> Cgroups {
            if version == Version::V2 {
                self.write("", &[("cgroup.controllers", "cpu memory\n")]);
            }
            Cgroups::new(&[Mount { path: self.0.path().into(), version }], &[]).unwrap()
        }
    }

    fn keys(found: &[Found]) -> Vec<&str> {
        found.iter().map(|found| found.key.as_str()).collect()
    }

    #[test]
    fn a_cgroup_that_hits_its_limit_is_found_with_what_it_counted_at_the_start() {
        let tree = Hierarchy::new();
        let oom = "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n";
        tree.write("a/web", &[("memory.failcnt", "7\n"), ("memory.oom_control", oom)]);
        tree.write("b", &[("memory.failcnt", "3\n"), ("memory.oom_control", oom)]);
        let mut cgroups = tree.cgroups(Version::V1);
        assert_eq!(keys(&cgroups.look(5)), [""; 0]);
        tree.write("a/web", &[("memory.failcnt", "9\n")]);
        tree.write("new", &[("memory.failcnt", "1\n"), ("memory.oom_control", oom)]);
        let mut found = cgroups.look(9);
        found.sort_by(|a, b| a.key.cmp(&b.key));
        assert_eq!(keys(&found), ["/a/web", "/new"]);
        assert_eq!(found[0].first.value("memory.failcnt"), Some(7));
        assert_eq!(found[1].first.value("memory.failcnt"), Some(0), "made after the start");
        assert_eq!(found[0].first.value("memory.oom_control.under_oom"), None, "a state, not a count");
        assert_eq!((keys(&cgroups.look(10)).len(), cgroups.started()), (0, 5));
    }

    #[test]
    fn stalls_matter_from_a_millisecond_on_and_protection_does_not() {
        let tree = Hierarchy::new();
        let pressure = |total: u64| format!("some avg10=0.00 avg60=0.00 avg300=0.00 total={total}\n");
        let write = |low: u64, total: u64| {
            tree.write("web", &[("memory.events.local", &format!("low {low}\nmax 0\n"))]);
            tree.write("web", &[("memory.pressure", &pressure(total))]);
        };
        write(0, 50);
        let mut cgroups = tree.cgroups(Version::V2);
        cgroups.look(0);
        write(9, 1_000);
        assert_eq!(keys(&cgroups.look(1)), [""; 0]);
        write(9, 1_050);
        assert_eq!(keys(&cgroups.look(2)), ["/web"]);
    }

    #[test]
    fn one_near_its_limit_is_sampled_from_the_start_and_no_more_than_some() {
        let tree = Hierarchy::new();
        tree.write("near", &[("memory.current", "95\n"), ("memory.max", "100\n")]);
        tree.write("far", &[("memory.current", "50\n"), ("memory.max", "100\n")]);
        tree.write("free", &[("memory.current", "50\n"), ("memory.max", "max\n")]);
        let mut cgroups = tree.cgroups(Version::V2);
        assert_eq!(keys(&cgroups.look(0)), [""; 0], "no limit is below a page");
        tree.write("near", &[("memory.current", "95000\n"), ("memory.max", "100000\n")]);
        let mut cgroups = tree.cgroups(Version::V2);
        assert_eq!(keys(&cgroups.look(0)), ["/near"]);
        for i in 0..2 * MOST {
            tree.write(&format!("many/{i}"), &[("memory.events", "max 1\n")]);
        }
        let found = cgroups.look(1).len() + cgroups.look(2).len();
        assert_eq!((found, cgroups.omitted()), (MOST - 1, MOST + 1));
        fs::remove_dir_all(tree.0.path().join("many")).unwrap();
        cgroups.forget_removed();
        assert_eq!((cgroups.sampled.len(), cgroups.omitted()), (1, 0));
    }
}
