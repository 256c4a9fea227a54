//! Memory cgroups, at a bounded cost however many there are.
//!
//! All of them are visited in turn, as many as [`BUDGET`] allows, and of each only small files are read: pressure or hits
//! of the limit, and usage. One that stalled or hit its limit since its last visit, in which a task waited, or that the
//! user chose, is busy for some samples: it is read with every sample, `memory.stat` too. The tree is walked again now
//! and then, a part of it with each sample.

use super::file::OpenFile;
use crate::cgroup::{self, Mount, Version};
use crate::{Error, clock};
use mmtwin_event::counters::{Row, cgroup_file};
use rustix::process::{Resource, getrlimit};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// CPU time of the visits of a sample, and of its part of a walk, in nanoseconds.
const BUDGET: u64 = 1_500_000;
/// Cgroups between two looks at the clock.
const STRIDE: usize = 8;
/// Most cgroups that are known.
const MOST: usize = 1 << 14;
/// Most cgroups that are read with every sample.
const MOST_BUSY: usize = 32;
/// Samples that a cgroup stays busy for after the last sign of it.
const STAYS_BUSY: u32 = 10;
/// A cgroup that stalled for less, in microseconds, between two visits is not busy.
const MIN_STALL: u64 = 1_000;
/// Nanoseconds between two walks.
const WALK_EVERY: u64 = 20_000_000_000;
/// Most files that are kept open.
const MOST_OPEN: usize = 4096;

/// Files that are read at each visit: those that show a stall or a hit first.
fn brief(version: Version) -> &'static [&'static str] {
    match version {
        Version::V1 => &["memory.failcnt", "memory.usage_in_bytes"],
        Version::V2 => &["memory.pressure", "memory.current"],
    }
}

/// What is read of a busy one beside that.
fn rest(version: Version) -> &'static [&'static str] {
    match version {
        Version::V1 => &["memory.limit_in_bytes", "memory.oom_control", "memory.stat"],
        // Before 5.2 events are those of the cgroups below too.
        Version::V2 => &["memory.max", "memory.events.local", "memory.events", "memory.swap.current", "memory.stat"],
    }
}

/// The cgroups of this machine.
pub struct Cgroups {
    mount: Option<Mount>,
    /// Only those that fit one of these; none: all.
    wanted: Vec<glob::Pattern>,
    groups: BTreeMap<String, Group>,
    /// Those that are still to be visited in this round.
    round: VecDeque<String>,
    busy: BTreeMap<String, u32>,
    /// Directories that a walk has still to read.
    walk: Vec<PathBuf>,
    /// Those that this walk found.
    found: BTreeSet<String>,
    next_walk: u64,
    /// All were visited once, so that there is something to be seen.
    begun: bool,
    open: usize,
    most_open: usize,
    text: Vec<u8>,
}

struct Group {
    directory: PathBuf,
    /// Those of `brief`, if they are kept open.
    files: Option<Vec<OpenFile>>,
    /// What the first of `brief` counted at the last visit.
    seen: Option<u64>,
}

impl Cgroups {
    /// Those that fit one of the patterns; none: all.
    ///
    /// # Errors
    /// A pattern that cannot be read or that no cgroup fits now.
    pub fn new(patterns: &[String]) -> Result<Cgroups, Error> {
        let mounts = cgroup::mounts();
        for pattern in patterns {
            cgroup::find(pattern, &mounts)?;
        }
        let has_memory = |mount: &&Mount| match mount.version {
            Version::V1 => true,
            Version::V2 => fs::read_to_string(mount.path.join("cgroup.controllers"))
                .is_ok_and(|text| text.split_whitespace().any(|controller| controller == "memory")),
        };
        Cgroups::of(mounts.iter().find(has_memory).cloned(), patterns)
    }

    fn of(mount: Option<Mount>, patterns: &[String]) -> Result<Cgroups, Error> {
        let below = |pattern: &str| {
            let path = Path::new(pattern);
            let below = mount.as_ref().and_then(|mount| path.strip_prefix(&mount.path).ok()).unwrap_or(path);
            format!("/{}", below.display().to_string().trim_matches('/'))
        };
        let compiled = patterns.iter().map(|pattern| {
            let fail = |e: glob::PatternError| Error::CgroupPattern { pattern: pattern.clone(), message: e.msg.into() };
            glob::Pattern::new(&below(pattern)).map_err(fail)
        });
        let wanted = compiled.collect::<Result<_, _>>()?;
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let most_open = usize::try_from(limit / 2).unwrap_or(MOST_OPEN).min(MOST_OPEN);
        let (groups, round, busy, walk, found, text) = Default::default();
        let (next_walk, begun, open) = (0, false, 0);
        Ok(Cgroups { mount, wanted, groups, round, busy, walk, found, next_walk, begun, open, most_open, text })
    }

    /// A task in this cgroup waited, or the user chose it: it is read with every sample for a while.
    pub fn mark_busy(&mut self, key: &str) {
        if self.groups.contains_key(key) && (self.busy.len() < MOST_BUSY || self.busy.contains_key(key)) {
            self.busy.insert(key.into(), STAYS_BUSY);
        }
    }

    /// All files of a cgroup as one row; `None` if it is gone.
    pub fn all(&mut self, key: &str) -> Option<Row> {
        let directory = self.groups.get(key)?.directory.clone();
        let mut row = Row::new(key);
        cgroup::FILES.iter().for_each(|file| read_into(&directory, file, &mut self.text, &mut row));
        (!row.names.is_empty()).then_some(row)
    }

    /// Reads those that are due at `now`. One that is gone gives a row without counters.
    pub fn read(&mut self, now: u64, take: &mut dyn FnMut(&'static str, Row)) {
        let Some(version) = self.mount.as_ref().map(|mount| mount.version) else { return };
        self.walk(now, take);
        let until = clock::thread_cpu_time() + BUDGET;
        if self.round.is_empty() {
            self.round.extend(self.groups.keys().cloned());
        }
        for i in 1usize.. {
            let Some(key) = self.round.pop_front() else { break };
            if !self.busy.contains_key(&key) {
                self.visit(&key, version, false, take);
            }
            if self.begun && i.is_multiple_of(STRIDE) && clock::thread_cpu_time() > until {
                break;
            }
        }
        self.begun = true;
        let busy: Vec<String> = self.busy.keys().cloned().collect();
        for key in busy {
            self.visit(&key, version, true, take);
            if let Some(left) = self.busy.get_mut(&key).filter(|_| self.wanted.is_empty()) {
                *left -= 1;
                if *left == 0 {
                    self.busy.remove(&key);
                }
            }
        }
    }

    fn visit(&mut self, key: &str, version: Version, whole: bool, take: &mut dyn FnMut(&'static str, Row)) {
        let Some(group) = self.groups.get_mut(key) else { return };
        let mut row = Row::new(key);
        let names = brief(version);
        if group.files.is_none() && self.open + names.len() <= self.most_open {
            let files: Vec<OpenFile> =
                names.iter().filter_map(|name| OpenFile::open(&group.directory.join(name))).collect();
            if files.len() == names.len() {
                self.open += files.len();
                group.files = Some(files);
            }
        }
        match &group.files {
            Some(files) => {
                for (name, kept) in names.iter().zip(files) {
                    if let Some(text) = kept.read(&mut self.text) {
                        cgroup_file(name, text, &mut row, &mut Vec::new());
                    }
                }
            }
            None => names.iter().for_each(|name| read_into(&group.directory, name, &mut self.text, &mut row)),
        }
        let first = group.seen.is_none();
        if whole || first {
            rest(version)
                .iter()
                .filter(|name| whole || **name != "memory.stat")
                .for_each(|name| read_into(&group.directory, name, &mut self.text, &mut row));
        }
        if row.names.is_empty() {
            self.forget(key, take);
            return;
        }
        let (sign, least) = match version {
            Version::V1 => (row.value("memory.failcnt"), 1),
            Version::V2 => (row.value("memory.pressure.some_total"), MIN_STALL),
        };
        let before = std::mem::replace(&mut group.seen, sign.or(Some(0)));
        // The root is the machine, which has counters of its own.
        let grew = key != "/" && sign.zip(before).is_some_and(|(now, before)| now.saturating_sub(before) >= least);
        take("cgroup", row);
        if grew {
            self.mark_busy(key);
        }
    }

    fn forget(&mut self, key: &str, take: &mut dyn FnMut(&'static str, Row)) {
        if let Some(files) = self.groups.remove(key).and_then(|group| group.files) {
            self.open -= files.len();
        }
        self.busy.remove(key);
        take("cgroup", Row::new(key));
    }

    /// Walks the tree, or a part of it: the first time all of it.
    fn walk(&mut self, now: u64, take: &mut dyn FnMut(&'static str, Row)) {
        let Some(mount) = &self.mount else { return };
        if now >= self.next_walk && self.walk.is_empty() {
            self.walk.push(mount.path.clone());
            self.found.clear();
            self.next_walk = now.saturating_add(WALK_EVERY);
        }
        if self.walk.is_empty() {
            return;
        }
        let root = mount.path.clone();
        let until = clock::thread_cpu_time() + BUDGET;
        for i in 1usize.. {
            let Some(directory) = self.walk.pop().filter(|_| self.found.len() < MOST) else {
                self.walk.clear();
                break;
            };
            // A directory has two links, and one for each below it; some file systems do not count.
            if fs::metadata(&directory).map_or(0, |metadata| metadata.nlink()) != 2 {
                let below = fs::read_dir(&directory).into_iter().flatten().flatten();
                self.walk.extend(below.filter(|e| e.file_type().is_ok_and(|kind| kind.is_dir())).map(|e| e.path()));
            }
            let key = format!("/{}", directory.strip_prefix(&root).unwrap_or(&directory).display());
            if self.is_wanted(&key) && (self.groups.contains_key(&key) || directory.join("memory.stat").is_file()) {
                if !self.groups.contains_key(&key) {
                    self.groups.insert(key.clone(), Group { directory, files: None, seen: None });
                    if !self.wanted.is_empty() {
                        self.mark_busy(&key);
                    }
                }
                self.found.insert(key);
            }
            if self.begun && i.is_multiple_of(STRIDE) && clock::thread_cpu_time() > until {
                return;
            }
        }
        let gone: Vec<String> = self.groups.keys().filter(|key| !self.found.contains(*key)).cloned().collect();
        gone.iter().for_each(|key| self.forget(key, take));
    }

    fn is_wanted(&self, key: &str) -> bool {
        let options = glob::MatchOptions { require_literal_separator: true, ..glob::MatchOptions::new() };
        self.wanted.is_empty() || self.wanted.iter().any(|pattern| pattern.matches_with(key, options))
    }
}

fn read_into(directory: &Path, file: &str, text: &mut Vec<u8>, row: &mut Row) {
    if let Some(text) = crate::sample::read(text, &directory.join(file)) {
        cgroup_file(file, text, row, &mut Vec::new());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(directory: &Path, failcnt: u64) {
        fs::create_dir_all(directory).unwrap();
        for (file, text) in [
            ("memory.failcnt", failcnt.to_string()),
            ("memory.usage_in_bytes", "4096".into()),
            ("memory.limit_in_bytes", "8192".into()),
            ("memory.stat", "pgfault 1\n".into()),
        ] {
            fs::write(directory.join(file), text).unwrap();
        }
    }

    fn read(cgroups: &mut Cgroups, now: u64) -> BTreeMap<String, Row> {
        let mut rows = BTreeMap::new();
        cgroups.read(now, &mut |_, row| _ = rows.insert(row.key.clone(), row));
        rows
    }

    fn cgroups(root: &Path, patterns: &[&str]) -> Cgroups {
        let patterns: Vec<String> = patterns.iter().map(|p| p.to_string()).collect();
        Cgroups::of(Some(Mount { path: root.into(), version: Version::V1 }), &patterns).unwrap()
    }

    #[test]
    fn one_that_hits_its_limit_is_read_whole_for_a_while() {
        let root = tempfile::tempdir().unwrap();
        let (web, db) = (root.path().join("web"), root.path().join("web/db"));
        [root.path(), &web, &db].iter().for_each(|directory| write(directory, 0));
        let mut cgroups = cgroups(root.path(), &[]);
        let rows = read(&mut cgroups, 1);
        assert_eq!(rows.keys().collect::<Vec<_>>(), ["/", "/web", "/web/db"]);
        assert_eq!(rows["/web"].value("memory.limit_in_bytes"), Some(8192), "known from the first visit on");
        assert_eq!(rows["/web"].value("memory.stat.pgfault"), None);
        write(&db, 3);
        assert_eq!(read(&mut cgroups, 2)["/web/db"].value("memory.stat.pgfault"), Some(1));
        let whole = |cgroups: &mut Cgroups, now| read(cgroups, now)["/web/db"].value("memory.stat.pgfault").is_some();
        let samples = (3u64..).take_while(|now| whole(&mut cgroups, *now)).count();
        assert_eq!(samples, STAYS_BUSY as usize - 1);
        cgroups.mark_busy("/none");
        assert!(cgroups.busy.is_empty());
        assert_eq!(cgroups.all("/web").unwrap().value("memory.stat.pgfault"), Some(1));
    }

    #[test]
    fn those_that_come_and_go_are_found_by_the_next_walk() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), 0);
        write(&root.path().join("old"), 0);
        let mut cgroups = cgroups(root.path(), &[]);
        assert_eq!(read(&mut cgroups, 1).len(), 2);
        let open = cgroups.open;
        fs::remove_dir_all(root.path().join("old")).unwrap();
        write(&root.path().join("new"), 0);
        let rows = read(&mut cgroups, 1 + WALK_EVERY);
        assert!(rows["/old"].names.is_empty(), "it is gone");
        assert_eq!(rows["/new"].value("memory.usage_in_bytes"), Some(4096));
        assert_eq!(cgroups.open, open);
    }

    #[test]
    fn those_that_are_asked_for_are_read_whole_and_no_others() {
        let root = tempfile::tempdir().unwrap();
        ["a1", "a2/in", "b"].iter().for_each(|name| write(&root.path().join(name), 0));
        write(&root.path().join("a2"), 0);
        let mut cgroups = cgroups(root.path(), &["/a*"]);
        let rows = read(&mut cgroups, 1);
        assert_eq!(rows.keys().collect::<Vec<_>>(), ["/a1", "/a2"]);
        assert!(rows["/a1"].value("memory.stat.pgfault").is_some());
    }

    #[test]
    fn without_memory_cgroups_there_are_none() {
        let mut cgroups = Cgroups::of(None, &[]).unwrap();
        assert!(read(&mut cgroups, 1).is_empty() && cgroups.all("/").is_none());
    }
}
