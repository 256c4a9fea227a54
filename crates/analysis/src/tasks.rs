//! Who runs: one entry per process as a trace names it (thread id and name), with the reclaim it is in.
//!
//! A lookup by thread id happens for every reclaim event, so the last task of each CPU is remembered and the rest
//! is one probe of an [`Index`]. A thread that changes its name becomes a new entry, as it does in every report
//! made from printed traces, and keeps the reclaim it is in. Names come with each text line or, in binary
//! sources, from [`Sink::task`](mmtwin_event::Sink::task); `<...>` is the kernel's word for an unknown name.

use crate::index::Index;
use mmtwin_event::{Event, Fields, Kind};
use std::collections::BTreeMap;

/// Longest name of a task, without its NUL.
const COMM: usize = 15;
/// Entries of their own. Those who come later are one entry without a state: what they do belongs to no context.
/// Kernels have at most four times as many threads at once.
const LISTED: usize = 1 << 20;
/// Name of the entry of those who have none of their own; its thread id is -1.
pub const OTHERS: &str = "<others>";
/// CPUs that have a remembered task; those above share the places.
const CACHED_CPUS: usize = 1024;

/// On whose behalf a task reclaims.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Context {
    /// Unknown: proactive reclaim, khugepaged, or a start before the trace or lost.
    #[default]
    Other,
    /// An allocation that could not wait for kswapd.
    Direct,
    /// kswapd.
    Kswapd,
    /// A cgroup at its limit.
    Memcg,
    /// A cgroup above its soft limit.
    MemcgSoftlimit,
    /// Reclaim of one node under `zone_reclaim_mode`.
    Node,
}

impl Context {
    /// All contexts, in the order of tables.
    pub const ALL: [Context; 6] =
        [Context::Direct, Context::Kswapd, Context::Memcg, Context::MemcgSoftlimit, Context::Node, Context::Other];

    /// Stable snake_case name.
    pub fn key(self) -> &'static str {
        match self {
            Context::Other => "other",
            Context::Direct => "direct",
            Context::Kswapd => "kswapd",
            Context::Memcg => "cgroup",
            Context::MemcgSoftlimit => "cgroup_softlimit",
            Context::Node => "node",
        }
    }
}

/// One process of a trace.
#[derive(Clone, Debug, Default)]
pub struct Task {
    /// Thread id; 0 is the idle task of every CPU.
    pub pid: i32,
    /// Thread group id, 0 if unknown.
    pub tgid: i32,
    pub(crate) comm: [u8; COMM],
    pub(crate) comm_len: u8,
    /// True for the kernel's kswapd threads, by name or because it woke as one.
    pub kswapd: bool,
    /// The reclaim it is in now.
    pub context: Context,
    /// What `context` is nested in: soft-limit reclaim runs inside kswapd or direct reclaim.
    pub(crate) outer: Open,
    /// The reclaim of `context`, if its begin was seen.
    pub(crate) open: Open,
    /// The shrinker it runs, if its begin was seen.
    pub(crate) shrinking: Option<crate::slab::Run>,
    /// Position in the reclaim statistics per process, plus 1; 0 = none.
    pub(crate) process: u32,
    /// The entry made before this one for the same thread id, plus 1; 0 = none.
    pub(crate) before: u32,
}

/// A reclaim that has begun.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Open {
    /// In which context; `Other` = none.
    pub context: Context,
    /// Nanoseconds.
    pub begin: u64,
    /// CPU of the begin.
    pub cpu: u32,
    /// Order of the request.
    pub order: i32,
}

impl Task {
    /// Name, without NUL; empty if unknown.
    pub fn comm(&self) -> &[u8] {
        &self.comm[..usize::from(self.comm_len)]
    }

    /// Name for people: unknown names are the kernel's `<...>`, bytes that are no UTF-8 are replaced.
    pub fn name(&self) -> String {
        match (self.comm(), self.pid) {
            (b"", 0) => "<idle>".into(),
            (b"", _) => "<...>".into(),
            (comm, _) => String::from_utf8_lossy(comm).into_owned(),
        }
    }

    /// Stands for those who have no entry of their own.
    pub(crate) fn others() -> Task {
        let mut task = Task { pid: -1, ..Task::default() };
        task.set_comm(OTHERS.as_bytes());
        task
    }

    /// It begins a reclaim; that of a soft limit runs inside another.
    pub(crate) fn enter(&mut self, begun: Open) {
        let context = begun.context;
        let nested =
            context == Context::MemcgSoftlimit && !matches!(self.context, Context::Other | Context::MemcgSoftlimit);
        self.outer = if nested { Open { context: self.context, ..self.open } } else { Open::default() };
        self.open = begun;
        self.context = context;
    }

    /// It ends the reclaim it is in. Gives that, and whether it ran inside another.
    pub(crate) fn leave(&mut self) -> (Open, bool) {
        let open = self.open;
        let nested = self.outer.context != Context::Other;
        self.open = if nested { self.outer } else { Open::default() };
        self.outer = Open::default();
        self.context = match self.open.context {
            Context::Other if self.kswapd => Context::Kswapd,
            outer => outer,
        };
        (open, nested)
    }

    /// It wakes or sleeps as kswapd: it is one, whatever its name.
    pub(crate) fn is_kswapd(&mut self) {
        self.kswapd = true;
        self.open = Open::default();
        self.outer = Open::default();
        self.context = Context::Kswapd;
    }

    fn set_comm(&mut self, comm: &[u8]) {
        let comm = &comm[..comm.len().min(COMM)];
        self.comm = [0; COMM];
        self.comm[..comm.len()].copy_from_slice(comm);
        self.comm_len = comm.len() as u8;
        if is_kswapd(comm) {
            self.kswapd = true;
            if self.context == Context::Other {
                self.context = Context::Kswapd;
            }
        }
    }
}

/// `kswapd` followed by the number of a node.
fn is_kswapd(comm: &[u8]) -> bool {
    matches!(comm.strip_prefix(b"kswapd"), Some(n) if !n.is_empty() && n.iter().all(u8::is_ascii_digit))
}

/// The entries of one thread id.
#[derive(Clone, Copy, Debug)]
struct Thread {
    /// The one of its present name.
    now: u32,
    /// The one made last; the others depend on it.
    newest: u32,
}

/// The daemons that reclaim and compact in the background; khugepaged does so to allocate a huge page that nobody waits
/// for.
pub fn is_kernel_daemon(task: &Task) -> bool {
    task.kswapd || task.comm().starts_with(b"kcompactd") || task.comm() == b"khugepaged"
}

/// All tasks of a stream, in the order in which they appeared.
#[derive(Clone, Debug, Default)]
pub struct Tasks {
    list: Vec<Task>,
    by_pid: Index,
    /// Thread id and entry plus 1 of the last task seen on a CPU.
    last: Vec<(i32, u32)>,
    /// By position in `by_pid`.
    threads: Vec<Thread>,
    /// Paths of cgroups, and that of thread ids by its position.
    cgroups: Vec<String>,
    in_cgroup: BTreeMap<i32, u32>,
    /// The entry of those beyond [`LISTED`], once there are any, and how often one of them was looked up.
    shared: Option<u32>,
    beyond: u64,
}

impl Tasks {
    /// The task that wrote an event.
    #[inline(always)]
    pub fn of(&mut self, ev: &Event<'_>) -> &mut Task {
        // Events of binary sources, which have neither name nor group, mostly find their task at once.
        let entry = match self.last.get(ev.cpu as usize % CACHED_CPUS) {
            Some(&(pid, entry)) if pid == ev.pid && entry != 0 && ev.comm.is_empty() && ev.tgid == 0 => entry - 1,
            _ => self.find(ev),
        };
        &mut self.list[entry as usize]
    }

    /// The entry of the task that wrote an event, with what the event says of it.
    #[inline(never)]
    fn find(&mut self, ev: &Event<'_>) -> u32 {
        let cpu = ev.cpu as usize % CACHED_CPUS;
        let mut entry = match self.last.get(cpu) {
            Some(&(pid, entry)) if pid == ev.pid && entry != 0 => entry - 1,
            _ => {
                let at = self.position(ev.pid);
                let entry = self.threads[at as usize].now;
                if self.last.len() <= cpu {
                    self.last.resize(cpu + 1, (0, 0));
                }
                // The shared entry is looked up every time.
                self.last[cpu] = (ev.pid, if Some(entry) == self.shared { 0 } else { entry + 1 });
                entry
            }
        };
        if !ev.comm.is_empty() && self.list[entry as usize].comm() != ev.comm {
            let at = self.position(ev.pid);
            entry = self.rename(at, ev.comm);
        }
        if Some(entry) == self.shared {
            self.beyond += 1;
            // Another thread may have left it in a reclaim.
            self.list[entry as usize] = Task { process: self.list[entry as usize].process, ..Task::others() };
            return entry;
        }
        if ev.tgid != 0 {
            self.list[entry as usize].tgid = ev.tgid;
        }
        entry
    }

    /// Takes note that a task wrote an event. False: it has no entry of its own.
    pub(crate) fn ran(&mut self, cpu: u32, pid: i32) -> bool {
        let event = Event {
            ts: 0,
            cpu,
            pid,
            tgid: 0,
            flags: 0,
            preempt_count: 0,
            kind: Kind::Other,
            id: 0,
            comm: b"",
            name: "",
            raw: b"",
            fields: Fields::Untyped,
        };
        self.of(&event);
        // That of all others is never remembered.
        self.last.get(cpu as usize % CACHED_CPUS).is_some_and(|(_, entry)| *entry != 0)
    }

    /// Takes over which shrinkers threads run now, from a copy that has seen the same events.
    pub(crate) fn take_shrinking(&mut self, copy: &Tasks) {
        let own = |entry: &u32| Some(*entry) != copy.shared;
        for same in copy.threads.iter().map(|thread| thread.now).filter(own).map(|now| &copy.list[now as usize]) {
            if let Some(at) = self.by_pid.get(u64::from(same.pid as u32)) {
                let entry = self.threads[at as usize].now;
                self.list[entry as usize].shrinking = same.shrinking;
            }
        }
    }

    /// Events of tasks that have no entry of their own, for there are more than 1,048,576 of them.
    pub fn beyond(&self) -> u64 {
        self.beyond
    }

    /// A name announced apart from events.
    pub fn announce(&mut self, pid: i32, tgid: i32, comm: &[u8]) {
        let at = self.position(pid);
        let entry = match comm.is_empty() {
            true => self.threads[at as usize].now,
            false => self.rename(at, comm),
        };
        if tgid != 0 {
            self.list[entry as usize].tgid = tgid;
        }
    }

    /// The cgroup of a thread, as a source announces it; of several the last.
    pub fn announce_cgroup(&mut self, pid: i32, path: &str) {
        if self.in_cgroup.len() >= LISTED && !self.in_cgroup.contains_key(&pid) {
            return;
        }
        let at = self.cgroups.iter().position(|known| known == path).unwrap_or_else(|| {
            self.cgroups.push(path.to_string());
            self.cgroups.len() - 1
        });
        self.in_cgroup.insert(pid, at as u32);
    }

    /// Path of the cgroup of a task, or else of its process; `None` if it is not recorded.
    pub fn cgroup(&self, task: &Task) -> Option<&str> {
        let at = self.in_cgroup.get(&task.pid).or_else(|| self.in_cgroup.get(&task.tgid))?;
        self.cgroups.get(*at as usize).map(String::as_str)
    }

    /// The cgroup that all tasks of a name are in, as far as it is recorded.
    pub fn cgroup_of_name(&self, name: &str) -> Option<&str> {
        let mut cgroups = self.list.iter().filter(|task| task.name() == name).filter_map(|task| self.cgroup(task));
        let first = cgroups.next()?;
        cgroups.all(|other| other == first).then_some(first)
    }

    /// The current entry of a thread id.
    pub fn get(&self, pid: i32) -> Option<&Task> {
        let at = self.by_pid.get(pid as u32 as u64)?;
        self.list.get(self.threads.get(at as usize)?.now as usize)
    }

    /// All entries, in order of appearance.
    pub fn iter(&self) -> impl Iterator<Item = &Task> {
        self.list.iter()
    }

    fn position(&mut self, pid: i32) -> u32 {
        // A list that is full of other names of known threads has no room for new threads either.
        let most = if self.list.len() < LISTED { LISTED as u32 } else { 0 };
        let (at, new) = self.by_pid.insert_up_to(pid as u32 as u64, most);
        if new {
            let entry = self.list.len() as u32;
            self.threads.push(Thread { now: entry, newest: entry });
            let shared = self.list.len() >= LISTED;
            self.list.push(if shared { Task::others() } else { Task { pid, ..Task::default() } });
            self.shared = shared.then_some(entry);
        }
        at
    }

    /// Gives the thread at `at` a name; returns its entry.
    #[cold]
    fn rename(&mut self, at: u32, comm: &[u8]) -> u32 {
        let comm = &comm[..comm.len().min(COMM)];
        let Thread { now, newest } = self.threads[at as usize];
        if comm == b"<...>" || comm == b"<idle>" || self.list[now as usize].comm() == comm || Some(now) == self.shared {
            return now;
        }
        if self.list[now as usize].comm_len == 0 {
            self.list[now as usize].set_comm(comm);
            return now;
        }
        let mut known = Some(newest);
        while let Some(entry) = known.filter(|&e| self.list[e as usize].comm() != comm) {
            known = self.list[entry as usize].before.checked_sub(1);
        }
        if known.is_none() && self.list.len() >= LISTED {
            // It keeps the name it had.
            return now;
        }
        let entry = known.unwrap_or_else(|| {
            let old = &self.list[now as usize];
            let mut task = Task { pid: old.pid, tgid: old.tgid, before: newest + 1, ..Task::default() };
            task.set_comm(comm);
            self.list.push(task);
            self.list.len() as u32 - 1
        });
        self.threads[at as usize] = Thread { now: entry, newest: newest.max(entry) };
        self.last.clear();
        let Task { context, outer, open, .. } = self.list[now as usize];
        let task = &mut self.list[entry as usize];
        (task.context, task.outer, task.open) = (context, outer, open);
        entry
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::EventBuilder;

    fn names(tasks: &Tasks) -> Vec<String> {
        tasks.iter().map(|t| format!("{}-{}", t.name(), t.pid)).collect()
    }

    #[test]
    fn a_name_that_changes_back_and_forth_makes_two_entries() {
        let mut tasks = Tasks::default();
        for round in 0..6 {
            let comm: &[u8] = if round % 2 == 0 { b"sh" } else { b"stream" };
            tasks.of(&EventBuilder::new(Kind::MmVmscanKswapdSleep).pid(7).comm(comm).event());
        }
        assert_eq!(names(&tasks), ["sh-7", "stream-7"]);
    }

    #[test]
    fn unknown_names_are_filled_in_and_never_replace_known_ones() {
        let mut tasks = Tasks::default();
        tasks.of(&EventBuilder::new(Kind::MmVmscanKswapdSleep).pid(7).comm(b"<...>").event());
        tasks.announce(7, 5, b"stream");
        tasks.of(&EventBuilder::new(Kind::MmVmscanKswapdSleep).pid(7).comm(b"<...>").event());
        assert_eq!(names(&tasks), ["stream-7"]);
        assert_eq!(tasks.get(7).unwrap().tgid, 5);
        assert!(tasks.get(8).is_none());
    }

    #[test]
    fn a_new_name_keeps_the_reclaim_it_is_in() {
        let mut tasks = Tasks::default();
        tasks.of(&EventBuilder::new(Kind::MmVmscanKswapdSleep).pid(7).comm(b"sh").event()).context = Context::Direct;
        let task = tasks.of(&EventBuilder::new(Kind::MmVmscanKswapdSleep).pid(7).comm(b"stream").event());
        assert_eq!(task.context, Context::Direct);
    }

    #[test]
    fn a_thread_is_in_the_cgroup_of_its_process_unless_it_has_one() {
        let mut tasks = Tasks::default();
        for (pid, tgid, comm) in [(7, 7, &b"web"[..]), (8, 7, b"io"), (9, 9, b"web"), (10, 10, b"cron")] {
            tasks.announce(pid, tgid, comm);
        }
        [(7, "/a"), (9, "/old"), (9, "/b")].iter().for_each(|(pid, path)| tasks.announce_cgroup(*pid, path));
        let cgroups: Vec<_> = tasks.iter().map(|task| tasks.cgroup(task)).collect();
        assert_eq!(cgroups, [Some("/a"), Some("/a"), Some("/b"), None]);
        assert_eq!(["web", "io", "cron"].map(|name| tasks.cgroup_of_name(name)), [None, Some("/a"), None]);
    }

    #[test]
    fn cpus_beyond_the_cache_share_it_without_mixing_tasks() {
        let mut tasks = Tasks::default();
        for pid in [3, 4, 3, 4] {
            for cpu in [1, 1 + CACHED_CPUS as u32, u32::MAX] {
                let task = tasks.of(&EventBuilder::new(Kind::MmVmscanKswapdSleep).pid(pid).cpu(cpu).event());
                assert_eq!(task.pid, pid);
            }
        }
        assert_eq!(tasks.iter().count(), 2);
    }

    #[test]
    fn only_numbered_kswapds_are_kswapd() {
        for (comm, kswapd) in [(&b"kswapd0"[..], true), (b"kswapd12", true), (b"kswapd", false), (b"kswapdx", false)] {
            assert_eq!(is_kswapd(comm), kswapd);
        }
    }

    #[test]
    fn threads_beyond_the_bound_share_an_entry_without_a_state() {
        let mut tasks = Tasks::default();
        (0..LISTED as i32).for_each(|pid| tasks.announce(pid, 0, b"t"));
        for pid in [-7, -8] {
            let task = tasks.of(&EventBuilder::new(Kind::MmVmscanKswapdSleep).pid(pid).comm(b"kswapd9").event());
            assert_eq!((task.name().as_str(), task.context, task.kswapd), (OTHERS, Context::Other, false));
            task.context = Context::Direct;
        }
        // Those that are known stay themselves, with the name they had.
        let task = tasks.of(&EventBuilder::new(Kind::MmVmscanKswapdSleep).pid(5).comm(b"new").event());
        assert_eq!((task.pid, task.name().as_str()), (5, "t"));
        assert_eq!((tasks.iter().count(), tasks.beyond()), (LISTED + 1, 2));
    }
}
