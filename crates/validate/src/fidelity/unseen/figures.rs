//! What is kept of a run of a generated scenario, on either arm: how it ended, the counters that are judged, and what
//! its workload achieved.

use mmtwin::Analysed;
use mmtwin_event::results::{AccessResult, Ending, PhaseResult, Results};
use mmtwin_report::fidelity;
use mmtwin_scenario::Scenario;
use mmtwin_scenario::workload::{ActionKind, Via};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Groups of quantities, in the order of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Pages scanned, reclaimed, refaulted and swapped, by list.
    Lists,
    /// What kswapd and tasks did of it.
    Split,
    /// Pages activated and deactivated.
    Activated,
    /// Stalls of allocations, and runs of kswapd.
    Stalls,
    /// NUMA balancing.
    Balancing,
    /// Allocations by node, and where pages were at the end; of machines with several nodes.
    Placement,
    /// Compaction.
    Compaction,
    /// Durations of phases that end by a count, throughput of others.
    Workload,
    /// Time from the first phase to the last, where phases end by a count.
    Makespan,
    /// What 99 % of the accesses of a phase took at most, in microseconds.
    Latency,
}

impl Group {
    /// All of them.
    pub const ALL: [Group; 10] = [
        Group::Lists,
        Group::Split,
        Group::Activated,
        Group::Stalls,
        Group::Balancing,
        Group::Placement,
        Group::Compaction,
        Group::Workload,
        Group::Makespan,
        Group::Latency,
    ];

    /// Its key in files.
    pub fn key(self) -> &'static str {
        match self {
            Group::Lists => "lists",
            Group::Split => "split",
            Group::Activated => "activated",
            Group::Stalls => "stalls",
            Group::Balancing => "balancing",
            Group::Placement => "placement",
            Group::Compaction => "compaction",
            Group::Workload => "workload",
            Group::Makespan => "makespan",
            Group::Latency => "latency",
        }
    }

    /// In words.
    pub fn title(self) -> &'static str {
        match self {
            Group::Lists => "scanned, reclaimed, refaults, swap, major faults by list",
            Group::Split => "kswapd / direct split",
            Group::Activated => "activated, deactivated",
            Group::Stalls => "stalls, pageoutrun",
            Group::Balancing => "NUMA balancing",
            Group::Placement => "node hits and misses, final placement",
            Group::Compaction => "compaction",
            Group::Workload => "workload: phase durations and throughput",
            Group::Makespan => "workload: makespan",
            Group::Latency => "workload: p99 latency of accesses",
        }
    }

    /// True for counters of the kernel.
    pub fn is_counter(self) -> bool {
        !matches!(self, Group::Workload | Group::Makespan | Group::Latency)
    }

    /// A quantity is judged if one side has this much of it: counts, seconds, accesses per second or microseconds.
    pub fn floor(self) -> f64 {
        match self {
            Group::Stalls => 100.0,
            Group::Makespan | Group::Latency => 1.0,
            // Of durations; that of throughput is in `super::compare`.
            Group::Workload => 0.1,
            _ => 1000.0,
        }
    }

    /// The group of a counter of `/proc/vmstat` or, with `node N` before it, of a node.
    fn of(name: &str) -> Option<Group> {
        if let Some(of_node) = name.strip_prefix("node ") {
            let counter = of_node.split_once(' ')?.1;
            let known = ["numa_hit", "numa_miss", "numa_foreign", "local_node", "other_node"];
            return known.contains(&counter).then_some(Group::Placement);
        }
        let lists = ["pgscan_anon", "pgscan_file", "pgsteal_anon", "pgsteal_file", "pswpin", "pswpout", "pgmajfault"];
        let split = ["pgscan_kswapd", "pgscan_direct", "pgsteal_kswapd", "pgsteal_direct"];
        let activated = ["pgactivate", "pgdeactivate", "workingset_activate_anon", "workingset_activate_file"];
        let balancing = fidelity::balancing::COUNTERS;
        match name {
            _ if lists.contains(&name) || name.starts_with("workingset_refault_") => Some(Group::Lists),
            _ if split.contains(&name) => Some(Group::Split),
            _ if activated.contains(&name) => Some(Group::Activated),
            _ if name == "pageoutrun" || name.starts_with("allocstall_") => Some(Group::Stalls),
            _ if balancing.contains(&name) => Some(Group::Balancing),
            _ if name.starts_with("compact_") => Some(Group::Compaction),
            _ => None,
        }
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// All processes did all their phases.
    Completed,
    /// At `run.duration`.
    TimeUp,
    /// A process was killed because memory ran out.
    OutOfMemory,
    /// The arm does not accept the scenario, and why.
    Refused(String),
    /// The run failed, and why.
    Failed(String),
}

impl End {
    /// True if the counters of the run can be compared.
    pub fn is_whole(&self) -> bool {
        matches!(self, End::Completed | End::TimeUp)
    }

    /// True if the runs ended alike, whatever the words.
    pub fn is_like(&self, other: &End) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// What is kept of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// How it ended.
    pub end: End,
    /// Counters that are judged, but for those that are 0.
    pub counters: BTreeMap<String, f64>,
    /// Phases by process and phase.
    pub phases: BTreeMap<String, Phase>,
}

/// A phase of a process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// It has a duration in the scenario.
    pub timed: bool,
    /// Seconds from the first phase of the run.
    pub start: f64,
    /// Its end likewise.
    pub end: f64,
    /// Accesses per second and access of the scenario.
    pub rates: Vec<f64>,
    /// Latencies by access of the scenario; `None` of fewer accesses than [`ENOUGH_ACCESSES`]. Empty: of a run before they
    /// were kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latencies: Vec<Option<Tail>>,
}

/// The slowest accesses.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tail {
    /// Microseconds that 99 % of the accesses took at most.
    pub p99: f64,
    /// The kernel works in one of a hundred or more: they are calls, or that many have page faults.
    pub in_kernel: bool,
}

/// Accesses from which on their 99 % says something.
const ENOUGH_ACCESSES: u64 = 1000;

impl Figures {
    /// Without what an idle guest counts.
    pub fn take_off(&mut self, idle: &BTreeMap<String, f64>) {
        self.counters.iter_mut().for_each(|(name, value)| *value -= idle.get(name).copied().unwrap_or(0.0));
    }

    /// A run that left nothing.
    pub fn none(end: End) -> Figures {
        Figures { end, counters: BTreeMap::new(), phases: BTreeMap::new() }
    }

    /// The figures of a run that was analysed.
    pub fn of(analysed: &Analysed, scenario: &Scenario) -> Figures {
        let Some(results) = &analysed.results else { return Figures::none(End::Failed("no results".into())) };
        let end = match &results.ending {
            Ending::Completed => End::Completed,
            Ending::TimeUp => End::TimeUp,
            Ending::OutOfMemory { .. } => End::OutOfMemory,
            Ending::Stopped { message, .. } => End::Failed(message.clone()),
        };
        let several = scenario.machine.nodes.iter().filter(|node| node.memory.0 > 0).count() > 1;
        let observed = fidelity::observe(&analysed.analysis, None).values;
        let judged = |name: &str| Group::of(name).filter(|group| several || *group != Group::Placement).is_some();
        let counters = observed.into_iter().map(|((_, name), value)| (name, value));
        let mut counters: BTreeMap<String, f64> =
            counters.filter(|(name, value)| judged(name) && *value != 0.0).collect();
        if several {
            counters.extend(placement(results));
        }
        Figures { end, counters, phases: phases(results, scenario) }
    }
}

/// The group of a quantity of [`Figures::counters`].
pub fn group(name: &str) -> Group {
    Group::of(name).unwrap_or(Group::Placement)
}

/// Pages by region and node at the end of the last phase of each process.
fn placement(results: &Results) -> BTreeMap<String, f64> {
    let mut pages = BTreeMap::new();
    // Phases of a process are in their order.
    for phase in &results.phases {
        for at in &phase.placement {
            for (node, count) in at.nodes.iter().enumerate() {
                pages.insert(format!("{} {} pages on node {node}", phase.process, at.region), *count as f64);
            }
        }
    }
    pages.retain(|_, count| *count > 0.0);
    pages
}

fn phases(results: &Results, scenario: &Scenario) -> BTreeMap<String, Phase> {
    let origin = results.phases.iter().map(|phase| phase.start).min().unwrap_or(0);
    // Milliseconds are enough.
    let seconds = |at: u64| (at.saturating_sub(origin) / 1_000_000) as f64 / 1000.0;
    let said = |process: &str, phase: &str| {
        let of = scenario.processes.iter().find(|of| of.name == process)?;
        of.phases.get(phase.parse::<usize>().ok()?)
    };
    // One that waits and sets a sysctl takes as long everywhere.
    let works = |phase: &&PhaseResult| {
        let waits = |kind: &ActionKind| matches!(kind, ActionKind::Sleep { .. } | ActionKind::Sysctl { .. });
        let idle = |of: &mmtwin_scenario::workload::Phase| {
            of.accesses.is_empty() && of.actions.iter().all(|action| waits(&action.kind))
        };
        said(&phase.process, &phase.phase).is_none_or(|of| !idle(of))
    };
    // The kernel populates regions by touching them.
    let via = |phase: &PhaseResult, access: usize| {
        said(&phase.process, &phase.phase).and_then(|of| of.accesses.get(access)).map_or(Via::Mmap, |of| of.via)
    };
    let one = |phase: &PhaseResult| {
        let lasted = (phase.end.saturating_sub(phase.start)) as f64 / 1e9;
        let rate = |touches: u64| (touches as f64 / lasted.max(1e-3)).round();
        let figures = Phase {
            timed: said(&phase.process, &phase.phase).is_some_and(|of| of.duration.is_some()),
            start: seconds(phase.start),
            end: seconds(phase.end),
            rates: phase.accesses.iter().map(|access| rate(access.touches)).collect(),
            latencies: phase.accesses.iter().enumerate().map(|(at, access)| tail(access, via(phase, at))).collect(),
        };
        (format!("{}/{}", phase.process, phase.phase), figures)
    };
    results.phases.iter().filter(works).map(one).collect()
}

fn tail(access: &AccessResult, via: Via) -> Option<Tail> {
    let p99 = access.latency.as_ref()?.p99.filter(|_| access.touches >= ENOUGH_ACCESSES)?;
    let in_kernel = via == Via::Syscall || access.faults.saturating_mul(100) >= access.touches;
    Some(Tail { p99: p99 as f64 / 1000.0, in_kernel })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_have_groups() {
        let of = |name: &str| Group::of(name).map(Group::key);
        assert_eq!(of("pgscan_anon"), Some("lists"));
        assert_eq!(of("workingset_refault_file"), Some("lists"));
        assert_eq!(of("pgscan_direct"), Some("split"));
        assert_eq!(of("pgscan_direct_throttle"), None);
        assert_eq!(of("allocstall_dma32"), Some("stalls"));
        assert_eq!(of("node 1 numa_hit"), Some("placement"));
        assert_eq!((of("numa_hit"), of("pgfault")), (None, None));
        assert_eq!(group("server own pages on node 1").key(), "placement");
    }

    #[test]
    fn endings_are_alike_whatever_their_words() {
        assert!(End::Failed("a".into()).is_like(&End::Failed("b".into())));
        assert!(!End::Completed.is_like(&End::TimeUp));
        assert!(End::TimeUp.is_whole() && !End::OutOfMemory.is_whole());
    }
}
