//! Program of each thread of a process by phase: keys of the scenario turned into streams of accesses.
//!
//! A private region is divided evenly among the threads; the last part includes the remainder. Threads of a shared
//! region begin a walk at evenly spaced pages, so that they do not move as one. A thread with several streams in a
//! phase takes turns, one access of each, until each has reached its count. After its count a thread is idle until the
//! phase ends.

use super::stream::{Access, Pattern, Stream};
use super::{Arrivals, Classes, Cursor, Permutation};
use crate::units::Share;
use crate::workload as say;
use crate::workload::{Action, Policy, Process, Sharing, Via};
use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes of a page.
const PAGE: u64 = 4096;

/// One thread.
#[derive(Clone, Debug)]
pub struct Thread {
    /// Number in its process, from 0.
    pub number: u32,
    /// CPU it stays on; `None`: the scheduler decides.
    pub pinned: Option<u32>,
    /// Pages of each region that are its own to populate.
    pub parts: Vec<Range<u64>>,
    /// Its actions and accesses.
    pub phases: Vec<ThreadPhase>,
}

/// Program of a thread in one phase.
#[derive(Clone, Debug)]
pub struct ThreadPhase {
    /// Name in results.
    pub name: String,
    /// Nanoseconds it lasts; `None`: until all counts are reached.
    pub duration: Option<u64>,
    /// Done first, one after the other.
    pub actions: Vec<Action>,
    /// Then these, in turns.
    pub accesses: Vec<AccessPlan>,
}

/// How a thread accesses a region in a phase.
#[derive(Clone, Debug)]
pub struct AccessPlan {
    /// Index of the access in the scenario's phase.
    pub number: usize,
    /// Index of the region in the process.
    pub region: usize,
    /// Pages of the region that it can access.
    pub pages: Range<u64>,
    /// Which of these, counted from the first.
    pub stream: Stream,
    /// Nanoseconds of CPU time between two accesses.
    pub think: u64,
    /// Nanoseconds asleep between two accesses.
    pub sleep: u64,
    /// Accesses; `None`: as many as fit into the phase.
    pub count: Option<u64>,
    /// Way of access.
    pub via: Via,
    /// Cache lines per access.
    pub lines: u32,
    /// All threads of the access use the same pages.
    pub shared: bool,
    /// At the end of its pages they are freed.
    pub recycle: bool,
    /// When accesses arrive; `None`: each follows the one before.
    pub arrivals: Option<Arrivals>,
}

/// The threads of process number `index` of a scenario with this seed. `cpus` counts the machine's.
pub fn threads(process: &Process, index: u32, cpus: u32, seed: u64) -> Vec<Thread> {
    let allowed: Vec<u32> = match &process.cpus {
        Some(list) => list.numbers().to_vec(),
        None => (0..cpus).collect(),
    };
    let mut laws = Laws::default();
    (0..process.threads)
        .map(|number| {
            let pinned = (process.pin && !allowed.is_empty()).then(|| allowed[number as usize % allowed.len()]);
            let parts = process.regions.iter().map(|region| part(region.size.pages(), process.threads, number));
            let phases = process.phases.iter().enumerate();
            let phases = phases.map(|(i, phase)| thread_phase(process, index, phase, i, number, seed, &mut laws));
            Thread { number, pinned, parts: parts.collect(), phases: phases.collect() }
        })
        .collect()
}

fn thread_phase(
    process: &Process,
    index: u32,
    phase: &say::Phase,
    at: usize,
    number: u32,
    seed: u64,
    laws: &mut Laws,
) -> ThreadPhase {
    let takes_part = |threads: &say::Threads| threads.contain(number);
    let accesses = phase.accesses.iter().enumerate().filter(|(_, access)| takes_part(&access.threads));
    let plans = accesses.filter_map(|(i, access)| {
        let region = process.regions.iter().position(|region| region.name == access.region)?;
        let all = process.regions[region].size.pages();
        let sharing = access.sharing.unwrap_or(process.regions[region].sharing);
        let pages = match sharing {
            Sharing::Shared => 0..all,
            Sharing::Private => part(all, process.threads, number),
        };
        // A region of fewer pages than threads leaves some without.
        if pages.is_empty() {
            return None;
        }
        // Which page is popular is a fact of the region, the same for all threads and phases.
        let object = u64::from(index) << 32 | region as u64;
        let shared = sharing == Sharing::Shared;
        let start = if shared { part(all, process.threads, number).start } else { 0 };
        let pattern = pattern(access.pattern, pages.end - pages.start, start, seed, object, laws);
        let object = stream_number(index, number, at, i);
        let stream = Stream::new(pattern, access.write.get(), seed, object);
        let arrivals = access.arrival.map(|arrival| Arrivals::new(arrival.interval.0, arrival.law, seed, object));
        let (think, sleep, lines) = (access.think.0, access.sleep.0, access.lines);
        let (count, via, recycle) = (access.count, access.via, access.recycle);
        let number = i;
        Some(AccessPlan { number, region, pages, stream, think, sleep, count, via, lines, shared, recycle, arrivals })
    });
    ThreadPhase {
        name: phase.name.clone().unwrap_or_else(|| at.to_string()),
        duration: phase.duration.map(|time| time.0),
        actions: phase.actions.iter().filter(|action| takes_part(&action.threads)).cloned().collect(),
        accesses: plans.collect(),
    }
}

/// The policy of a region: its own, or that of the process.
pub fn policy(process: &Process, region: usize) -> &Policy {
    process.regions[region].policy.as_ref().unwrap_or(&process.policy)
}

/// Index of a region, and those of its pages that a thread frees: a range of its part, or of the whole of a shared
/// region. `None`: there is no such region.
pub fn discarded(process: &Process, thread: u32, region: &str, range: [Share; 2]) -> Option<(usize, Range<u64>)> {
    let index = process.regions.iter().position(|of| of.name == region)?;
    let all = process.regions[index].size.pages();
    let own = match process.regions[index].sharing {
        Sharing::Shared => 0..all,
        Sharing::Private => part(all, process.threads, thread),
    };
    // Pages are far fewer than the integers that a double represents exactly.
    let edge = |share: Share| own.start + ((own.end - own.start) as f64 * share.get()) as u64;
    Some((index, edge(range[0])..edge(range[1])))
}

/// Part `number` of `n` of the pages 0..all.
fn part(all: u64, n: u32, number: u32) -> Range<u64> {
    let n = u64::from(n.max(1));
    let edge = |i: u64| (u128::from(all) * u128::from(i) / u128::from(n)) as u64;
    edge(number.into())..edge(u64::from(number) + 1)
}

/// The numbers of streams differ for all accesses of a scenario: 2^16 accesses, 2^16 phases, 2^16 threads and
/// processes are more than any has.
fn stream_number(process: u32, thread: u32, phase: usize, access: usize) -> u64 {
    u64::from(process) << 48 | u64::from(thread) << 32 | (phase as u64) << 16 | access as u64
}

/// Classes by pages and the bits of the exponent: to compute them takes as long as a million accesses, and all threads
/// of a process have the same, or two of them where they divide a region.
type Laws = BTreeMap<(u64, u64), Classes>;

fn pattern(pattern: say::Pattern, pages: u64, start: u64, seed: u64, object: u64, laws: &mut Laws) -> Pattern {
    let draws = |classes| Pattern::Draws(classes, Permutation::new(pages, seed, object));
    match pattern {
        say::Pattern::Sequential => Pattern::Walk(Cursor::new(pages, 1, start)),
        say::Pattern::Strided { stride } => Pattern::Walk(Cursor::new(pages, stride.0 / PAGE, start)),
        say::Pattern::Uniform => draws(Classes::uniform(pages)),
        say::Pattern::Zipf { skew } => {
            let law = laws.entry((pages, skew.to_bits())).or_insert_with(|| Classes::zipf(pages, skew));
            draws(law.clone())
        }
        say::Pattern::HotCold { hot, access_share } => {
            draws(Classes::hot_cold(pages, (hot.get() * pages as f64) as u64, access_share.get()))
        }
    }
}

/// An access of a thread, or another step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseAccess {
    /// Index in [`ThreadPhase::accesses`].
    pub access: usize,
    /// Page of the region and kind of access.
    pub what: Access,
}

/// The accesses of a thread in a phase, in turns.
#[derive(Clone, Debug)]
pub struct PhaseAccesses {
    accesses: Vec<AccessPlan>,
    turn: usize,
}

impl PhaseAccesses {
    /// From the beginning of the phase.
    pub fn new(phase: &ThreadPhase) -> PhaseAccesses {
        PhaseAccesses { accesses: phase.accesses.clone(), turn: 0 }
    }
}

impl Iterator for PhaseAccesses {
    type Item = PhaseAccess;

    fn next(&mut self) -> Option<PhaseAccess> {
        for _ in 0..self.accesses.len() {
            let access = self.turn;
            self.turn = (self.turn + 1) % self.accesses.len();
            let plan = &mut self.accesses[access];
            if plan.count.is_none_or(|count| plan.stream.count < count) {
                let what = plan.stream.next()?;
                return Some(PhaseAccess { access, what: Access { page: plan.pages.start + what.page, ..what } });
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{Bytes, Share, Time};
    use crate::workload::{Access as Say, Huge, Instances, Phase, Region, RegionKind, Threads};

    fn region(name: &str, pages: u64, sharing: Sharing) -> Region {
        Region {
            name: name.into(),
            size: Bytes(pages * PAGE),
            kind: RegionKind::Anon,
            sharing,
            file: None,
            huge: Huge::Default,
            policy: None,
            populate: false,
            populate_policy: None,
            exec: false,
            locked: false,
            temporary: false,
            sparse: false,
            files: None,
        }
    }

    fn access(region: &str, pattern: say::Pattern, count: Option<u64>) -> Say {
        let (think, sleep) = (Time(2000), Time(0));
        let write = Share::new(0.0).unwrap();
        let (region, threads, via, lines, sharing) = (region.into(), Threads::All, Via::Mmap, 1, None);
        let (recycle, arrival) = (false, None);
        Say { region, threads, pattern, think, sleep, write, via, lines, sharing, count, recycle, arrival }
    }

    fn process(threads: u32, accesses: Vec<Say>) -> Process {
        Process {
            name: "p".into(),
            threads,
            cpus: Some("4-5".parse().unwrap()),
            pin: true,
            policy: Policy::default(),
            start_node: None,
            cgroup: None,
            start: Time(0),
            instances: Instances::default(),
            regions: vec![region("own", 10, Sharing::Private), region("all", 8, Sharing::Shared)],
            phases: vec![Phase { name: None, duration: None, accesses, actions: Vec::new() }],
        }
    }

    #[test]
    fn threads_share_and_divide() {
        let accesses = vec![
            access("own", say::Pattern::Sequential, Some(4)),
            access("all", say::Pattern::Strided { stride: Bytes(2 * PAGE) }, Some(2)),
        ];
        let threads = threads(&process(3, accesses), 0, 8, 1);
        assert_eq!(threads.iter().map(|t| t.pinned).collect::<Vec<_>>(), [Some(4), Some(5), Some(4)]);
        let touches: Vec<Vec<(usize, u64)>> = threads
            .iter()
            .map(|t| PhaseAccesses::new(&t.phases[0]).map(|touch| (touch.access, touch.what.page)).collect())
            .collect();
        let expected = [
            vec![(0, 0), (1, 0), (0, 1), (1, 2), (0, 2), (0, 0)],
            vec![(0, 3), (1, 2), (0, 4), (1, 4), (0, 5), (0, 3)],
            vec![(0, 6), (1, 5), (0, 7), (1, 7), (0, 8), (0, 9)],
        ];
        assert_eq!(touches, expected);
    }

    #[test]
    fn popular_pages_are_the_same_for_all_threads() {
        let threads = threads(&process(2, vec![access("all", say::Pattern::Zipf { skew: 2.0 }, Some(400))]), 0, 8, 1);
        let favourite = |thread: &Thread| {
            let mut counts = [0; 8];
            PhaseAccesses::new(&thread.phases[0]).for_each(|touch| counts[touch.what.page as usize] += 1);
            (0..8).max_by_key(|&page| counts[page]).unwrap()
        };
        assert_eq!(favourite(&threads[0]), favourite(&threads[1]));
    }
}
