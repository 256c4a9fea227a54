//! Names, thread groups and cgroups of the tasks that events come from.
//!
//! Every pid seen in a page is looked up once in `/proc`, soon after, and again at the end in case it changed its
//! name. For one that is gone by then the kernel's own short list of names (`saved_cmdlines`) may know the name.
//! Look-ups are bounded per second, so a storm of short-lived tasks costs names, not CPU time.

use crate::cgroup;
use mmtwin_event::manifest::TaskLine;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::PathBuf;

/// Look-ups per second, and at once after a quiet second: with some 20 us each, half a percent of a CPU.
const PER_SECOND: u64 = 250;
const BILLION: u64 = 1_000_000_000;
/// Look-ups again at the end.
const AT_END: usize = 4096;
/// No pid is larger (`PID_MAX_LIMIT` of 64-bit kernels).
const PID_MAX: usize = 1 << 22;

/// Tasks seen, looked up and waiting to be.
pub struct Tasks {
    saved_cmdlines: Option<PathBuf>,
    seen: Vec<u64>,
    last: i32,
    waiting: VecDeque<i32>,
    /// Not in `/proc` when looked up.
    gone: BTreeSet<i32>,
    known: BTreeMap<i32, TaskLine>,
    /// Look-ups that are allowed now, in billionths, and when that was so.
    allowed: u64,
    counted_at: u64,
}

impl Tasks {
    /// No tasks yet. `saved_cmdlines` is the kernel's list, where it can be read.
    pub fn new(saved_cmdlines: Option<PathBuf>) -> Tasks {
        let (seen, waiting, gone, known) = Default::default();
        let allowed = PER_SECOND * BILLION;
        Tasks { saved_cmdlines, seen, last: 0, waiting, gone, known, allowed, counted_at: 0 }
    }

    /// Notes a pid. The idle task needs no name.
    #[inline]
    pub fn saw(&mut self, pid: i32) {
        if pid == self.last || pid <= 0 || pid as usize >= PID_MAX {
            return;
        }
        self.last = pid;
        let (word, bit) = (pid as usize / 64, 1 << (pid % 64));
        if word >= self.seen.len() {
            self.seen.resize(word + 1, 0);
        }
        if self.seen[word] & bit == 0 {
            self.seen[word] |= bit;
            self.waiting.push_back(pid);
        }
    }

    /// Looks up some of those that wait. Returns what is new.
    pub fn look_up(&mut self, now: u64) -> Vec<TaskLine> {
        let passed = now.saturating_sub(self.counted_at).min(BILLION);
        self.counted_at = now;
        self.allowed = (self.allowed + passed * PER_SECOND).min(PER_SECOND * BILLION);
        let count = (self.allowed / BILLION).min(self.waiting.len() as u64);
        self.allowed -= count * BILLION;
        if count == 0 { Vec::new() } else { self.take(count as usize, now) }
    }

    /// Looks up what is left, and what may have changed since.
    pub fn finish(&mut self, now: u64) -> Vec<TaskLine> {
        let mut lines = self.take(AT_END, now);
        let known: Vec<TaskLine> = self.known.values().take(AT_END).cloned().collect();
        for old in known {
            if let Some(new) = in_proc(old.pid, now).filter(|new| !is_ending(new.pid))
                && (&new.comm, new.tgid, &new.cgroup) != (&old.comm, old.tgid, &old.cgroup)
            {
                lines.push(new);
            }
        }
        lines
    }

    /// True for a task whose cgroup was found when it was looked up.
    pub fn knows(&self, pid: i32) -> bool {
        self.known.get(&pid).is_some_and(|line| line.cgroup.is_some())
    }

    /// Forgets all tasks but those that wait, at most some: whoever writes events in pieces names the tasks of each.
    pub fn renew(&mut self) {
        self.seen.clear();
        self.last = 0;
        self.gone.clear();
        self.known.clear();
        self.waiting.truncate(AT_END);
        for pid in std::mem::take(&mut self.waiting) {
            self.saw(pid);
        }
    }

    fn take(&mut self, most: usize, now: u64) -> Vec<TaskLine> {
        let mut lines = Vec::new();
        for _ in 0..most {
            let Some(pid) = self.waiting.pop_front() else { break };
            match in_proc(pid, now) {
                Some(line) => {
                    self.known.insert(pid, line.clone());
                    lines.push(line);
                }
                None => _ = self.gone.insert(pid),
            }
        }
        if !self.gone.is_empty()
            && let Some(path) = &self.saved_cmdlines
        {
            let saved = fs::read(path).unwrap_or_default();
            lines.extend(named(&String::from_utf8_lossy(&saved), &mut self.gone, now));
        }
        lines
    }
}

/// Names of lost tasks in a text of lines `PID COMM`. Those that are named are no longer in `gone`.
pub(crate) fn named(saved: &str, gone: &mut BTreeSet<i32>, at: u64) -> Vec<TaskLine> {
    let line = |l: &str| {
        let (pid, comm) = l.split_once(' ')?;
        let pid = pid.parse().ok()?;
        (comm != "<...>" && gone.remove(&pid)).then(|| TaskLine { at, pid, comm: comm.into(), ..TaskLine::default() })
    };
    saved.lines().filter_map(line).collect()
}

/// Name, thread group and cgroup of a task that runs at `at`; `None` if it is gone.
pub(crate) fn in_proc(pid: i32, at: u64) -> Option<TaskLine> {
    let status = fs::read(format!("/proc/{pid}/status")).ok()?;
    let (comm, tgid) = parse_status(&String::from_utf8_lossy(&status))?;
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    // Read after its cgroup: a task that was not ending by then was in it.
    let cgroup = cgroup::of_task(&groups).filter(|_| !is_ending(pid)).map(str::to_string);
    Some(TaskLine { at, pid, tgid, comm, cgroup })
}

/// Whether a task is on its way out (`PF_EXITING`) or gone: the kernel then shows the root for its cgroup, which says
/// nothing of where it was.
fn is_ending(pid: i32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| parse_flags(&stat).is_none_or(|f| f & 4 != 0))
}

/// `PF_*` flags in a line of `/proc/PID/stat`. The name is in parentheses and may hold some itself.
fn parse_flags(stat: &str) -> Option<u32> {
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(6)?.parse().ok()
}

/// Name and thread group. The kernel escapes newline and backslash in the name.
fn parse_status(status: &str) -> Option<(String, i32)> {
    let field = |name: &str| status.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(":\t"));
    let comm = field("Name")?.replace("\\n", "\n").replace("\\\\", "\\");
    Some((comm, field("Tgid")?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pid_is_looked_up_once() {
        let mut tasks = Tasks::new(None);
        let own = std::process::id() as i32;
        for pid in [own, own, 0, -1, i32::MAX, own] {
            tasks.saw(pid);
        }
        let lines = tasks.look_up(5);
        assert_eq!(lines.len(), 1);
        assert_eq!((lines[0].pid, lines[0].tgid, lines[0].at), (own, own, 5));
        assert!(!lines[0].comm.is_empty());
        tasks.saw(own);
        assert!(tasks.look_up(6).is_empty());
        assert!(tasks.finish(7).is_empty(), "nothing changed");
    }

    #[test]
    fn a_renewed_list_names_tasks_again_and_keeps_those_that_wait() {
        let mut tasks = Tasks::new(None);
        let own = std::process::id() as i32;
        tasks.saw(own);
        assert_eq!(tasks.look_up(5).len(), 1);
        tasks.renew();
        tasks.saw(own);
        assert_eq!(tasks.look_up(5 + BILLION).len(), 1);
        (1..=2 * AT_END as i32).for_each(|pid| tasks.saw(pid));
        tasks.renew();
        assert_eq!(tasks.waiting.len(), AT_END);
    }

    #[test]
    fn the_kernels_list_names_those_that_are_gone() {
        let root = tempfile::tempdir().unwrap();
        let saved = root.path().join("saved_cmdlines");
        // No such pid can exist: it is the largest possible plus nothing that runs here.
        let pid = PID_MAX as i32 - 1;
        fs::write(&saved, format!("7 other\n{pid} gone task\n")).unwrap();
        let mut tasks = Tasks::new(Some(saved));
        tasks.saw(pid);
        let lines = tasks.look_up(1);
        assert_eq!((lines.len(), lines[0].comm.as_str(), lines[0].tgid), (1, "gone task", 0));
    }

    #[test]
    fn look_ups_are_bounded() {
        let mut tasks = Tasks::new(None);
        (1..=PER_SECOND as i32 + 100).for_each(|pid| tasks.saw(pid));
        let mut left = |at| {
            tasks.look_up(at);
            tasks.waiting.len()
        };
        assert_eq!([left(0), left(0), left(BILLION / 5), left(BILLION)], [100, 100, 50, 0]);
    }

    #[test]
    fn flags_stand_behind_the_name() {
        assert_eq!(parse_flags("15925 (a) b) Z 15920 15920 15110 0 -1 4194308 123 0\n"), Some(4_194_308));
        assert_eq!(parse_flags("15925 (a"), None);
    }

    #[test]
    fn names_lose_the_kernels_escapes() {
        assert_eq!(parse_status("Name:\ta\\\\b\nUmask:\t0022\nTgid:\t9\n"), Some(("a\\b".into(), 9)));
        assert_eq!(parse_status("Name:\tx\n"), None);
    }
}
