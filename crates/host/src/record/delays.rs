//! Delay accounting of the tasks of a recording: what the kernel says they waited, beside what events say.
//!
//! The kernel keeps it for tasks that are started while `kernel.task_delayacct` is 1. With it on, totals of those that
//! live are taken at both ends of the recording, of those that end meanwhile as the kernel sends them. A task whose
//! totals at the start are not known has no row: how much of them is of the recording is not known.

use super::tasks::in_proc;
use super::taskstats::{Delays, NAMES, OfTask, TIMES, Taskstats};
use crate::restore::{Change, Changes};
use crate::{Error, clock};
use mmtwin_event::counters::Row;
use mmtwin_event::manifest::TaskLine;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Source of the rows; their key is a thread id.
pub const SOURCE: &str = "delays";
/// The sysctl, of Linux 5.14 on; before, tasks were accounted for always.
const SYSCTL: &str = "/proc/sys/kernel/task_delayacct";
/// Threads asked about at each end, a few microseconds each.
const MOST: usize = 4096;
/// The parent of the threads of the kernel.
const KTHREADD: i32 = 2;
/// Tasks with a row at most, those that waited longest.
const ROWS: usize = 1024;

/// Delay accounting while a recording runs.
pub struct DelayAccounting {
    listener: Taskstats,
    asked: Taskstats,
    /// Totals at the start; `None`: they are not known.
    before: BTreeMap<i32, Option<Delays>>,
    /// Growth since then.
    waited: BTreeMap<i32, Delays>,
    names: BTreeMap<i32, TaskLine>,
    /// Cgroups of parents of tasks that ended, within one turn.
    parents: BTreeMap<i32, Option<String>>,
    /// Messages of ends were lost.
    lost: bool,
    /// The sysctl, if it was switched on for this recording.
    _changes: Option<Changes>,
}

impl DelayAccounting {
    /// Begins; `None` where the kernel accounts for nothing. `wanted`: it is switched on if it is off.
    ///
    /// # Errors
    /// If it is wanted, and cannot be had.
    pub fn begin(wanted: bool, cpus: &str) -> Result<Option<DelayAccounting>, Error> {
        let connected = Taskstats::open().and_then(|mut listener| {
            listener.listen(cpus)?;
            Ok((listener, Taskstats::open()?))
        });
        let (listener, asked) = match connected {
            Ok(connected) => connected,
            Err(e) if wanted => return Err(Error::io("delay accounting (taskstats)", e)),
            Err(_) => return Ok(None),
        };
        let changes = match fs::read_to_string(SYSCTL) {
            Ok(text) if text.trim() == "0" && !wanted => return Ok(None),
            Ok(text) if text.trim() == "0" => Some(switch_on(text)?),
            _ => None,
        };
        let (before, waited, names, parents) = Default::default();
        let mut delays =
            DelayAccounting { listener, asked, before, waited, names, parents, lost: false, _changes: changes };
        // Of those that were started while it was off it knows nothing.
        let known = delays._changes.is_none();
        for (i, pid) in threads().into_iter().enumerate() {
            let totals = if known && i < MOST { delays.asked.of(pid).map(|task| task.delays) } else { None };
            delays.before.insert(pid, totals);
        }
        Ok(Some(delays))
    }

    /// Takes what has come of tasks that ended.
    pub fn gather(&mut self) {
        let mut ended = Vec::new();
        self.parents.clear();
        self.lost |= self.listener.ended(|task| ended.push(task));
        for task in ended {
            self.add(&task);
            // Another one of this number begins with nothing.
            self.before.remove(&task.pid);
        }
    }

    fn add(&mut self, task: &OfTask) {
        let grown = growth(self.before.get(&task.pid), task.delays);
        let Some(grown) = grown.filter(|grown| task.parent != KTHREADD && *grown != Delays::default()) else { return };
        let sums = self.waited.entry(task.pid).or_default();
        sums.iter_mut().zip(grown).for_each(|(sum, ns)| *sum = sum.saturating_add(ns));
        let (pid, tgid, comm) = (task.pid, task.tgid.unwrap_or(0), task.comm.clone());
        let at = clock::now();
        // Where it was it may not tell any more; it began where its parent is.
        let of_parent = || self.parents.entry(task.parent).or_insert_with(|| cgroup_of(task.parent, at)).clone();
        let cgroup = if task.parent > KTHREADD { cgroup_of(pid, at).or_else(of_parent) } else { cgroup_of(pid, at) };
        self.names.insert(pid, TaskLine { at, pid, tgid, comm, cgroup });
    }

    /// Ends: rows of the start, which are 0, and of the end, at most so many, and names of their tasks.
    pub fn finish(mut self, most: usize) -> Finished {
        self.gather();
        for pid in threads().into_iter().take(MOST) {
            if let Some(task) = self.asked.of(pid) {
                self.add(&task);
            }
        }
        let mut waited: Vec<(i32, Delays)> = std::mem::take(&mut self.waited).into_iter().collect();
        waited.sort_by_key(|(pid, delays)| {
            (std::cmp::Reverse(delays[..TIMES].iter().fold(0, |sum: u64, ns| sum.saturating_add(*ns))), *pid)
        });
        let omitted = waited.len().saturating_sub(most.min(ROWS));
        waited.truncate(most.min(ROWS));
        let row = |(pid, delays): &(i32, Delays)| {
            let mut row = Row::new(pid.to_string());
            NAMES.iter().zip(delays).for_each(|(name, ns)| row.push(*name, Some(*ns)));
            row
        };
        let last: Vec<Row> = waited.iter().map(row).collect();
        let first = last.iter().map(|row| Row { values: vec![Some(0); row.values.len()], ..row.clone() }).collect();
        let kept: BTreeSet<i32> = waited.iter().map(|(pid, _)| *pid).collect();
        let names = std::mem::take(&mut self.names).into_values().filter(|line| kept.contains(&line.pid)).collect();
        let mut notes = Vec::new();
        if self.lost {
            notes.push(
                "delay accounting of some tasks that ended was lost: more ended at once than there was room for".into(),
            );
        }
        if omitted > 0 {
            notes.push(format!("delay accounting of {omitted} more tasks, which waited least, is not recorded"));
        }
        Finished { first, last, names, notes }
    }
}

/// What is to be written at the end.
#[derive(Default)]
pub struct Finished {
    /// Rows at the start.
    pub first: Vec<Row>,
    /// Rows at the end.
    pub last: Vec<Row>,
    /// Names of their tasks: events may have none of them.
    pub names: Vec<TaskLine>,
    /// What the user may want to know.
    pub notes: Vec<String>,
}

/// Totals less those at the start, of a task that has begun since then none; `None`: those at the start are not known.
fn growth(before: Option<&Option<Delays>>, mut now: Delays) -> Option<Delays> {
    let before = before.map_or(Some(Delays::default()), |before| *before)?;
    now.iter_mut().zip(before).for_each(|(now, before)| *now = now.saturating_sub(before));
    Some(now)
}

fn cgroup_of(pid: i32, at: u64) -> Option<String> {
    in_proc(pid, at)?.cgroup
}

/// Switches the sysctl on, and off again when the result is dropped, however this process ends.
fn switch_on(before: String) -> Result<Changes, Error> {
    let mut changes = Changes::guarded()?;
    changes.note(Change::Value { file: SYSCTL.into(), before, set: vec![1] })?;
    fs::write(SYSCTL, "1").map_err(|e| Error::io(SYSCTL, e))?;
    Ok(changes)
}

/// Thread ids of this machine.
fn threads() -> Vec<i32> {
    let numbers = |path: &Path| {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok()).collect::<Vec<_>>()
    };
    let processes = numbers(Path::new("/proc"));
    processes.into_iter().flat_map(|pid| numbers(Path::new(&format!("/proc/{pid}/task")))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_task_waited_before_is_not_of_the_recording() {
        let (before, now) = ([5, 0, 0, 0, 0, 0, 9], [7, 0, 1, 0, 0, 0, 8]);
        assert_eq!(growth(Some(&Some(before)), now), Some([2, 0, 1, 0, 0, 0, 0]));
        assert_eq!(growth(None, now), Some(now), "it has begun meanwhile");
        assert_eq!(growth(Some(&None), now), None);
    }
}
