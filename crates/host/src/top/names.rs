//! Names of the tasks that events come from.
//!
//! They are looked up in `/proc` when they are needed, as many as [`BUDGET`] allows, and again after some seconds in case
//! they changed. The kernel's own list of names may know one that is gone.

use crate::clock;
use crate::record::tasks::{in_proc, named};
use mmtwin_event::manifest::TaskLine;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

/// CPU time of a sample's look-ups, in nanoseconds.
const BUDGET: u64 = 1_500_000;
/// Tasks that are kept.
const MOST: usize = 4096;
/// Nanoseconds after which a task is looked up again.
const AGAIN: u64 = 10_000_000_000;

/// Tasks that were looked up.
pub struct Names {
    saved_cmdlines: PathBuf,
    known: BTreeMap<i32, TaskLine>,
}

impl Names {
    /// None yet. `saved_cmdlines` is the kernel's list.
    pub fn new(saved_cmdlines: PathBuf) -> Names {
        Names { saved_cmdlines, known: BTreeMap::new() }
    }

    /// Gives the names of these tasks to `take`, as far as they are known at `now`.
    pub fn resolve(&mut self, pids: &BTreeSet<i32>, now: u64, take: &mut dyn FnMut(&TaskLine)) {
        if self.known.len() + pids.len() > MOST {
            self.known.clear();
        }
        let until = clock::thread_cpu_time() + BUDGET;
        let mut gone = BTreeSet::new();
        for &pid in pids {
            let known = self.known.get(&pid);
            let is_due = known.is_none_or(|line| now.saturating_sub(line.at) > AGAIN);
            if is_due && clock::thread_cpu_time() < until {
                match (in_proc(pid, now), known.is_some()) {
                    (Some(line), _) => _ = self.known.insert(pid, line),
                    (None, false) => _ = gone.insert(pid),
                    (None, true) => {}
                }
            }
        }
        if !gone.is_empty() {
            let saved = fs::read(&self.saved_cmdlines).unwrap_or_default();
            let lines = named(&String::from_utf8_lossy(&saved), &mut gone, now);
            self.known.extend(lines.into_iter().map(|line| (line.pid, line)));
        }
        pids.iter().filter_map(|pid| self.known.get(pid)).for_each(take);
    }

    /// All that are known.
    pub fn lines(&self) -> impl Iterator<Item = &TaskLine> {
        self.known.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_told_by_proc_or_the_kernels_list() {
        let root = tempfile::tempdir().unwrap();
        let saved = root.path().join("saved_cmdlines");
        // No such pid can exist: the highest is 2^22.
        let gone = (1 << 22) + 7;
        fs::write(&saved, format!("{gone} gone task\n")).unwrap();
        let own = std::process::id() as i32;
        let mut names = Names::new(saved);
        let mut told = Vec::new();
        for now in [1, 2] {
            names.resolve(&BTreeSet::from([own, gone, gone + 1]), now, &mut |line| told.push((line.pid, line.at)));
        }
        assert_eq!(told, [(own, 1), (gone, 1), (own, 1), (gone, 1)]);
        assert_eq!(names.lines().count(), 2);
    }
}
