//! Processes by their counters, at a bounded cost however many there are.
//!
//! `/proc/PID/stat` has major faults, resident pages and, where the kernel counts it (`kernel.task_delayacct`), the time
//! that was waited for block I/O. As many are read in turn as [`BUDGET`] allows; one whose counters moved is read with
//! every sample for a while.

use crate::clock;
use crate::sample::read;
use mmtwin_event::counters::{self, Row};
use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

/// CPU time of a sample's reads, in nanoseconds.
const BUDGET: u64 = 1_000_000;
/// Processes between two looks at the clock.
const STRIDE: usize = 8;
/// Most processes that are known.
const MOST: usize = 1 << 13;
/// Most processes that are read with every sample.
const MOST_BUSY: usize = 32;
/// Samples that a process stays busy for after its counters moved.
const STAYS_BUSY: u32 = 5;
/// Nanoseconds between two lists of all processes.
const LIST_EVERY: u64 = 5_000_000_000;

/// The processes of this machine.
pub struct Processes {
    proc: PathBuf,
    known: BTreeMap<i32, Known>,
    round: VecDeque<i32>,
    busy: BTreeMap<i32, u32>,
    next_list: u64,
    page: u64,
    /// Nanoseconds per clock tick; `None`: the kernel does not count delays.
    tick: Option<u64>,
    text: Vec<u8>,
}

#[derive(Default)]
struct Known {
    comm: String,
    counters: Option<(u64, Option<u64>)>,
}

/// What a process reads as.
struct Stat<'a> {
    comm: &'a str,
    major_faults: u64,
    resident: u64,
    blkio: Option<u64>,
}

impl Processes {
    /// Those of this machine.
    pub fn new() -> Processes {
        let counts = fs::read_to_string("/proc/sys/kernel/task_delayacct").is_ok_and(|text| text.trim() != "0");
        let tick = counts.then(|| 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1));
        Processes::of(Path::new("/proc"), rustix::param::page_size() as u64, tick)
    }

    fn of(proc: &Path, page: u64, tick: Option<u64>) -> Processes {
        let (known, round, busy, text) = Default::default();
        Processes { proc: proc.into(), known, round, busy, next_list: 0, page, tick, text }
    }

    /// Reads those that are due at `now`: a row each, without counters if it is gone, and its name where that is new.
    pub fn read(&mut self, now: u64, take: &mut dyn FnMut(&'static str, Row), named: &mut dyn FnMut(i32, &str)) {
        let begins = self.next_list == 0;
        if now >= self.next_list {
            self.next_list = now.saturating_add(LIST_EVERY);
            self.list(take);
        }
        if self.round.is_empty() {
            self.round.extend(self.known.keys().copied());
        }
        let until = clock::thread_cpu_time() + BUDGET;
        for i in 1usize.. {
            let Some(pid) = self.round.pop_front() else { break };
            if !self.busy.contains_key(&pid) {
                self.visit(pid, take, named);
            }
            if !begins && i.is_multiple_of(STRIDE) && clock::thread_cpu_time() > until {
                break;
            }
        }
        let busy: Vec<i32> = self.busy.keys().copied().collect();
        for pid in busy {
            self.visit(pid, take, named);
            if let Some(left) = self.busy.get_mut(&pid) {
                *left -= 1;
                if *left == 0 {
                    self.busy.remove(&pid);
                }
            }
        }
    }

    /// All that is known of a process as one row: its stat, sizes in bytes of its status, and NUMA faults; `None` if it
    /// is gone.
    pub fn all(&mut self, pid: i32) -> Option<Row> {
        let directory = self.proc.join(pid.to_string());
        let mut row = self.stat(pid)?.1;
        if let Some(text) = read(&mut self.text, &directory.join("status")) {
            for line in text.lines() {
                let Some((name, value)) = line.split_once(':') else { continue };
                let mut words = value.split_ascii_whitespace();
                if let (Some(value), Some("kB")) = (words.next(), words.next()) {
                    row.push(name, value.parse::<u64>().ok().map(|kb| kb.saturating_mul(1024)));
                }
            }
        }
        if let Some(text) = read(&mut self.text, &directory.join("sched")) {
            counters::proc_sched(text, &mut row);
        }
        Some(row)
    }

    fn list(&mut self, take: &mut dyn FnMut(&'static str, Row)) {
        let entries = fs::read_dir(&self.proc).into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok()).take(MOST);
        let mut before = std::mem::take(&mut self.known);
        self.known = pids.map(|pid| (pid, before.remove(&pid).unwrap_or_default())).collect();
        for pid in before.keys() {
            self.busy.remove(pid);
            take("process", Row::new(pid.to_string()));
        }
    }

    fn visit(&mut self, pid: i32, take: &mut dyn FnMut(&'static str, Row), named: &mut dyn FnMut(i32, &str)) {
        let Some((comm, row, counters)) = self.stat(pid) else {
            self.known.remove(&pid);
            self.busy.remove(&pid);
            return take("process", Row::new(pid.to_string()));
        };
        let Some(known) = self.known.get_mut(&pid) else { return };
        if known.comm != comm {
            named(pid, &comm);
            known.comm = comm;
        }
        let moved = known.counters.replace(counters).is_some_and(|before| before != counters);
        if moved && (self.busy.len() < MOST_BUSY || self.busy.contains_key(&pid)) {
            self.busy.insert(pid, STAYS_BUSY);
        }
        take("process", row);
    }

    /// Name, row and the counters that only grow.
    fn stat(&mut self, pid: i32) -> Option<(String, Row, (u64, Option<u64>))> {
        let path = self.proc.join(format!("{pid}/stat"));
        let text = read(&mut self.text, &path)?;
        let stat = parse(text)?;
        let mut row = Row::new(pid.to_string());
        row.push("majflt", Some(stat.major_faults));
        row.push("rss", Some(stat.resident.saturating_mul(self.page)));
        let blkio = stat.blkio.zip(self.tick).map(|(ticks, tick)| ticks.saturating_mul(tick));
        if self.tick.is_some() {
            row.push("blkio_delay", blkio);
        }
        Some((stat.comm.to_string(), row, (stat.major_faults, blkio)))
    }
}

/// A line of `/proc/PID/stat`. The name is in parentheses and may hold some itself; field 3 follows it.
fn parse(text: &str) -> Option<Stat<'_>> {
    let (before, after) = text.rsplit_once(')')?;
    let fields: Vec<&str> = after.split_ascii_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    Some(Stat { comm: before.split_once('(')?.1, major_faults: field(12)?, resident: field(24)?, blkio: field(42) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(name: &str, major: u64, blkio: u64) -> String {
        let zeros = |n: usize| "0 ".repeat(n);
        format!("7 ({name}) S {}{major} {}25 {}{blkio} 0 0\n", zeros(8), zeros(11), zeros(17))
    }

    fn write(root: &Path, pid: i32, text: &str) {
        fs::create_dir_all(root.join(pid.to_string())).unwrap();
        fs::write(root.join(format!("{pid}/stat")), text).unwrap();
    }

    #[test]
    fn fields_stand_behind_the_name() {
        let text = stat("a) (b", 3, 12);
        let parsed = parse(&text).unwrap();
        assert_eq!((parsed.comm, parsed.major_faults, parsed.resident, parsed.blkio), ("a) (b", 3, 25, Some(12)));
        assert!(parse("7 (x").is_none());
    }

    #[test]
    fn processes_are_named_once_and_say_that_they_are_gone() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), 7, &stat("work", 3, 2));
        write(root.path(), 9, &stat("idle", 0, 0));
        let mut processes = Processes::of(root.path(), 4096, Some(10_000_000));
        let mut sample = |now: u64| {
            let (mut rows, mut names) = (BTreeMap::new(), Vec::new());
            processes.read(now, &mut |_, row| _ = rows.insert(row.key.clone(), row), &mut |pid, comm| {
                names.push((pid, comm.to_string()))
            });
            (rows, names)
        };
        let (rows, names) = sample(1);
        assert_eq!(names, [(7, "work".to_string()), (9, "idle".to_string())]);
        let values = ["majflt", "rss", "blkio_delay"].map(|name| rows["7"].value(name));
        assert_eq!(values, [Some(3), Some(25 * 4096), Some(20_000_000)]);
        fs::remove_dir_all(root.path().join("9")).unwrap();
        let (rows, names) = sample(2);
        assert!(rows["9"].names.is_empty() && names.is_empty());
        assert_eq!(sample(1 + LIST_EVERY).0.keys().collect::<Vec<_>>(), ["7"]);
    }

    #[test]
    fn delays_that_are_not_counted_are_not_there() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), 7, &stat("work", 3, 0));
        let mut processes = Processes::of(root.path(), 4096, None);
        processes.read(1, &mut |_, row| assert_eq!(row.value("blkio_delay"), None), &mut |_, _| {});
        assert!(processes.all(7).is_some() && processes.all(8).is_none());
    }
}
