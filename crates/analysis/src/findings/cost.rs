//! What a finding cost: the time that tasks waited, and the pressure that the kernel measured beside it.

use super::words::{percent, time};
use crate::counters::Counters;
use crate::delays::Delays;
use crate::tasks::{Context, Task, is_kernel_daemon};
use crate::{Analysis, reclaim::Process};
use mmtwin_event::container::Containers;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Names said of those who waited; the others are counted.
const NAMED: usize = 3;

/// Time that tasks waited because of what a finding says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cost {
    /// Nanoseconds, summed over tasks where events tell it: with several tasks it may exceed the elapsed time.
    pub waited: u64,
    /// Who waited, longest first, at most three; empty: not recorded.
    pub by: Vec<Waiter>,
    /// How many more waited.
    pub more: u64,
    /// Path of the cgroup that all of them are in; `None`: they are in several, or it is not recorded.
    pub cgroup: Option<String>,
    /// Nanoseconds that the recording covers; `None`: not known.
    pub elapsed: Option<u64>,
    /// Names of containers among the cgroups.
    pub containers: Arc<Containers>,
    /// What tells the time.
    pub measured: Measured,
    /// The same waits by the kernel's delay accounting; `None`: not recorded.
    pub accounted: Option<Accounted>,
}

/// What the kernel's delay accounting says of the tasks of a cost, where it has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accounted {
    /// Nanoseconds by the kernel.
    pub kernel: u64,
    /// Nanoseconds of the same tasks by events.
    pub events: u64,
    /// Nanoseconds of tasks that it does not have, by events.
    pub others: u64,
}

/// What a time waited is measured by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Measured {
    /// Begins and ends of waits, task by task.
    #[default]
    Events,
    /// Pressure on memory, some: tasks that wait at once count once.
    MemoryPressure,
    /// Pressure on I/O, some, likewise.
    IoPressure,
    /// The kernel's delay accounting, summed over tasks.
    DelayAccounting,
}

impl Measured {
    /// Stable snake_case name.
    pub fn key(self) -> &'static str {
        match self {
            Measured::Events => "events",
            Measured::MemoryPressure => "memory_pressure",
            Measured::IoPressure => "io_pressure",
            Measured::DelayAccounting => "delay_accounting",
        }
    }
}

/// A task or cgroup that waited.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waiter {
    /// Name of the task, or path of the cgroup.
    pub name: String,
    /// Nanoseconds.
    pub waited: u64,
    /// Path of its cgroup; `None`: not recorded, or its tasks are in several.
    pub cgroup: Option<String>,
}

impl Cost {
    /// A wait of nobody in particular.
    pub fn of(a: &Analysis, waited: u64) -> Cost {
        Cost { waited, elapsed: elapsed(a), containers: a.source.containers.clone(), ..Cost::default() }
    }

    /// Waits by name; those of one name are one.
    pub fn by_names(a: &Analysis, waits: impl IntoIterator<Item = (String, u64)>) -> Cost {
        let waits = waits.into_iter().filter(|(_, waited)| *waited > 0);
        Cost::by_tasks(a, waits.map(|(name, waited)| ((name, None), waited)))
    }

    /// Waits of those who reclaimed, as `waited` tells for each. Nobody waits for the daemons of the kernel.
    pub fn of_reclaimers(a: &Analysis, waited: impl Fn(&Task, &Process) -> u64) -> Cost {
        let tasks = a.reclaimers().filter(|(task, _)| !is_kernel_daemon(task));
        let all: Vec<_> = tasks
            .map(|(task, process)| (task, process, waited(task, process)))
            .filter(|(_, _, waited)| *waited > 0)
            .collect();
        let accounted = accounted(a, &all);
        let named =
            |(task, _, waited): (&Task, _, _)| ((task.name(), a.tasks.cgroup(task).map(str::to_string)), waited);
        Cost { accounted, ..Cost::by_tasks(a, all.into_iter().map(named)) }
    }

    /// Waits by name and cgroup.
    pub(super) fn by_tasks(a: &Analysis, waits: impl IntoIterator<Item = ((String, Option<String>), u64)>) -> Cost {
        let mut by: BTreeMap<(String, Option<String>), u64> = BTreeMap::new();
        for ((name, cgroup), waited) in waits {
            // Where some of a name lived too short for their cgroup to be seen, they are in that of the others.
            let cgroup = cgroup.or_else(|| a.tasks.cgroup_of_name(&name).map(str::to_string));
            let sum = by.entry((name, cgroup)).or_default();
            *sum = sum.saturating_add(waited);
        }
        let waited = by.values().fold(0, |sum: u64, w| sum.saturating_add(*w));
        let mut by: Vec<Waiter> =
            by.into_iter().map(|((name, cgroup), waited)| Waiter { name, waited, cgroup }).collect();
        by.sort_by_key(|w| std::cmp::Reverse(w.waited));
        let first = by.first().and_then(|waiter| waiter.cgroup.clone());
        let cgroup = first.filter(|_| by.iter().all(|waiter| waiter.cgroup == by[0].cgroup));
        let more = by.len().saturating_sub(NAMED) as u64;
        by.truncate(NAMED);
        Cost { by, more, cgroup, ..Cost::of(a, waited) }
    }

    /// Time waited as a share of the elapsed time, 1 = one task waited all the time. Above 1 several waited at once.
    pub fn share(&self) -> Option<f64> {
        self.elapsed.filter(|elapsed| *elapsed > 0).map(|elapsed| self.waited as f64 / elapsed as f64)
    }

    /// `dd, tar and 2 more in cgroup /web`, `dd (/web) and tar (/db)`; empty if it is not known who waited. The root is
    /// no cgroup to name.
    pub fn who(&self) -> String {
        let below = |cgroup: &Option<String>| {
            let path = cgroup.as_deref().filter(|path| *path != "/")?;
            Some(self.containers.short(path))
        };
        let name = |waiter: &Waiter| match below(&waiter.cgroup).filter(|_| self.cgroup.is_none()) {
            Some(cgroup) => format!("{} ({cgroup})", waiter.name),
            None => waiter.name.clone(),
        };
        let names: Vec<String> = self.by.iter().map(name).collect();
        let who = match (self.more, names.as_slice()) {
            (_, []) => return below(&self.cgroup).map_or(String::new(), |cgroup| format!("cgroup {cgroup}")),
            (0, [one]) => one.to_string(),
            (0, [first @ .., last]) => format!("{} and {last}", first.join(", ")),
            (more, names) => format!("{} and {more} more", names.join(", ")),
        };
        match below(&self.cgroup) {
            Some(cgroup) => format!("{who} in cgroup {cgroup}"),
            None => who,
        }
    }

    /// `waited 4.1 s of 10 s (41 %): dd, tar and 2 more`, or `waited 4.1 s of 10 s (41 %) by PSI of I/O`.
    pub fn words(&self) -> String {
        if self.waited == 0 && self.measured == Measured::Events {
            return "nobody waited".into();
        }
        let mut words = format!("waited {}", time(self.waited as f64));
        if let (Some(elapsed), Some(share)) = (self.elapsed, self.share()) {
            words += &format!(" of {} ({})", time(elapsed as f64), percent(share * 100.0));
            if share > 1.0 {
                words += ", summed over tasks";
            }
        }
        match self.measured {
            Measured::Events => words += &self.accounted.map_or(String::new(), Accounted::words),
            Measured::DelayAccounting => words += " by delay accounting",
            Measured::MemoryPressure => words += " by PSI of memory",
            Measured::IoPressure => words += " by PSI of I/O",
        }
        match self.who() {
            who if who.is_empty() => words,
            who => format!("{words}: {who}"),
        }
    }
}

impl Accounted {
    /// `; 4.0 s by delay accounting`, and of how much of the time it is not known.
    fn words(self) -> String {
        match self.others {
            0 => format!("; {} by delay accounting", time(self.kernel as f64)),
            others => {
                let [kernel, events, others] = [self.kernel, self.events, others].map(|ns| time(ns as f64));
                format!("; {kernel} by delay accounting of tasks with {events}, n/a of {others}")
            }
        }
    }
}

/// What the kernel says that reclaimers waited. Its sums have all reclaim of a task, so what events say of reclaim that is
/// not in a cost is taken off. `None` without a task that it has.
fn accounted(a: &Analysis, all: &[(&Task, &Process, u64)]) -> Option<Accounted> {
    let mut by_pid: BTreeMap<i32, (u64, u64)> = BTreeMap::new();
    for (task, process, waited) in all {
        let (of_cost, in_all) = by_pid.entry(task.pid).or_default();
        *of_cost = of_cost.saturating_add(*waited);
        let reclaim = [Context::Direct, Context::Memcg].map(|context| process.waited(context));
        *in_all = in_all.saturating_add(reclaim[0].saturating_add(reclaim[1]));
    }
    let mut sums = Accounted::default();
    let mut found = false;
    for (pid, (of_cost, in_all)) in by_pid {
        match Delays::of(a, pid).and_then(|delays| delays.freepages) {
            Some(freepages) => {
                found = true;
                let besides = in_all.saturating_sub(of_cost);
                sums.kernel = sums.kernel.saturating_add(freepages.saturating_sub(besides));
                sums.events = sums.events.saturating_add(of_cost);
            }
            None => sums.others = sums.others.saturating_add(of_cost),
        }
    }
    found.then_some(sums)
}

/// Pressure stall information beside a finding, as shares of the elapsed time from 0 to 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pressure {
    /// Cgroup; empty: the system.
    pub of: String,
    /// Some task waited for memory.
    pub memory_some: Option<f64>,
    /// All tasks waited for memory.
    pub memory_full: Option<f64>,
    /// Some task waited for I/O.
    pub io_some: Option<f64>,
    /// The cgroup's name for people; `None`: the system.
    pub name: Option<String>,
}

impl Pressure {
    /// That of a cgroup if it was recorded there, else that of the system.
    pub fn of(a: &Analysis, cgroup: Option<&str>) -> Option<Pressure> {
        let of_cgroup = |key: &str| {
            let name = Some(a.source.containers.short(key));
            Some(Pressure { name, ..Pressure::of_cgroup(&a.counters, key)? })
        };
        cgroup.and_then(of_cgroup).or_else(|| Pressure::of_system(&a.counters))
    }

    fn of_system(counters: &Counters) -> Option<Pressure> {
        let share = |name: &str| stalled(counters, "psi", "", name);
        Pressure {
            of: String::new(),
            memory_some: share("memory_some_total"),
            memory_full: share("memory_full_total"),
            io_some: share("io_some_total"),
            name: None,
        }
        .known()
    }

    fn of_cgroup(counters: &Counters, key: &str) -> Option<Pressure> {
        let share = |name: &str| stalled(counters, "cgroup", key, name);
        Pressure {
            of: key.into(),
            memory_some: share("memory.pressure.some_total"),
            memory_full: share("memory.pressure.full_total"),
            io_some: share("io.pressure.some_total"),
            name: None,
        }
        .known()
    }

    fn known(self) -> Option<Pressure> {
        [self.memory_some, self.memory_full, self.io_some].iter().any(Option::is_some).then_some(self)
    }

    /// `PSI of /web: memory some 38 %, full 12 %, io some 30 %`.
    pub fn words(&self) -> String {
        let of = self.name.as_deref().unwrap_or("the system");
        let parts = [("memory some", self.memory_some), ("memory full", self.memory_full), ("io some", self.io_some)];
        let parts = parts.iter().filter_map(|(name, share)| Some(format!("{name} {}", percent((*share)? * 100.0))));
        format!("PSI of {of}: {}", parts.collect::<Vec<_>>().join(", "))
    }
}

/// A total of microseconds as a share of the time between its first and last sample.
fn stalled(counters: &Counters, source: &str, key: &str, name: &str) -> Option<f64> {
    let share = counters.delta(source, key, name)? as f64 / 1e6 / counters.seconds(source, key)?;
    // The last sample may have been read later than its time says.
    Some(share.min(1.0))
}

/// Nanoseconds that a recording covers: its events, or its counters where they go on for longer.
pub fn elapsed(a: &Analysis) -> Option<u64> {
    let sampled = ["vmstat", "psi"].iter().filter_map(|source| a.counters.seconds(source, ""));
    let sampled = sampled.map(|seconds| (seconds * 1e9) as u64);
    sampled.chain(a.span.length()).max().filter(|ns| *ns > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::fixture::Recording;

    #[test]
    fn who_waited_is_named_up_to_three() {
        let mut r = Recording::default();
        r.vmstat(&[("pgfault", 0, 1)]);
        let waits = |names: &[(&str, u64)]| names.iter().map(|(n, w)| (n.to_string(), *w)).collect::<Vec<_>>();
        let of = |names: &[(&str, u64)]| Cost::by_names(&r.analysis, waits(names));
        assert_eq!(of(&[("dd", 500_000_000), ("dd", 500_000_000)]).words(), "waited 1.0 s of 10 s (10 %): dd");
        assert_eq!(of(&[("a", 1), ("b", 3), ("idle", 0)]).who(), "b and a");
        let many = of(&[("a", 5), ("b", 4), ("c", 3), ("d", 2), ("e", 1)]);
        assert_eq!((many.who().as_str(), many.waited), ("a, b, c and 2 more", 15));
        let more = of(&[("a", 15_000_000_000)]);
        assert_eq!(more.words(), "waited 15 s of 10 s (150 %), summed over tasks: a");
    }

    #[test]
    fn cgroups_of_those_who_waited_are_named() {
        let mut r = Recording::default();
        r.analysis.tasks.announce(7, 7, b"dd");
        r.analysis.tasks.announce(8, 8, b"tar");
        r.analysis.tasks.announce_cgroup(7, "/system.slice/web.service");
        let who = |r: &Recording| Cost::by_names(&r.analysis, [("dd".into(), 2), ("tar".into(), 1)]).who();
        assert_eq!(who(&r), "dd (web.service) and tar");
        r.analysis.tasks.announce_cgroup(8, "/system.slice/web.service");
        assert_eq!(who(&r), "dd and tar in cgroup web.service");
        r.analysis.tasks.announce_cgroup(8, "/");
        assert_eq!(who(&r), "dd (web.service) and tar");
    }

    #[test]
    fn tasks_of_a_name_are_named_once_unless_they_are_in_several_cgroups() {
        let mut r = Recording::default();
        (7..10).for_each(|pid| r.analysis.tasks.announce(pid, pid, b"xxhsum"));
        r.analysis.tasks.announce_cgroup(7, "/a");
        let who = |r: &Recording| {
            let tasks = [7, 8, 9].map(|pid| r.analysis.tasks.get(pid).unwrap());
            let cgroup = |task| r.analysis.tasks.cgroup(task).map(str::to_string);
            let waits = tasks.into_iter().zip(1..).map(|(task, waited)| ((task.name(), cgroup(task)), waited));
            Cost::by_tasks(&r.analysis, waits).who()
        };
        assert_eq!(who(&r), "xxhsum in cgroup /a");
        r.analysis.tasks.announce_cgroup(8, "/b");
        assert_eq!(who(&r), "xxhsum, xxhsum (/b) and xxhsum (/a)");
    }

    #[test]
    fn a_wait_without_a_known_time_has_no_share() {
        let cost = Cost::of(&Analysis::default(), 5_000);
        assert_eq!((cost.share(), cost.words().as_str()), (None, "waited 5.0 us"));
    }

    #[test]
    fn pressure_is_that_of_the_cgroup_if_recorded() {
        let mut r = Recording::default();
        assert_eq!(Pressure::of(&r.analysis, None), None);
        r.counters("psi", "", &[("memory_some_total", 5, 500_005), ("io_some_total", 0, 3_000_000)]);
        r.counters("cgroup", "/web", &[("memory.pressure.some_total", 0, 4_000_000)]);
        let words = |cgroup| Pressure::of(&r.analysis, cgroup).map(|p| p.words());
        assert_eq!(words(None).as_deref(), Some("PSI of the system: memory some 5.0 %, io some 30 %"));
        assert_eq!(words(Some("/web")).as_deref(), Some("PSI of /web: memory some 40 %"));
        assert_eq!(words(Some("/db")), words(None));
    }

    #[test]
    fn a_late_sample_gives_no_more_than_all_of_the_time() {
        let mut r = Recording::default();
        r.counters("psi", "", &[("memory_some_total", 0, 12_000_000)]);
        assert_eq!(Pressure::of(&r.analysis, None).and_then(|pressure| pressure.memory_some), Some(1.0));
    }

    #[test]
    fn saved_files_without_a_time_give_no_pressure() {
        let mut r = Recording::default();
        for (at, total) in [(0, 1), (1, 900)] {
            let names = ["memory_some_total".to_string()];
            use mmtwin_event::{CounterRow, Sink};
            let row = CounterRow { source: "psi", key: "", at, names: &names, values: &[Some(total)] };
            r.analysis.counters(&row);
        }
        assert_eq!(Pressure::of(&r.analysis, None), None);
    }
}
