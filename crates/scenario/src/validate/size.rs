//! How large a scenario may be: everything that is multiplied, by a machine that runs it or by the twin, with the
//! product and its limit.

use super::process::{MAX_INSTANCES, MAX_THREADS};
use crate::Scenario;
use crate::check::Check;
use crate::units::{Bytes, Time};
use crate::workload::{Access, Action, ActionKind, Pattern, Phase, Policy, Process, Threads};

/// Processes at most: half of the kernel's default `pid_max`.
const MAX_PROCESSES: u128 = 1 << 14;
/// Threads of all processes at most.
const MAX_ALL_THREADS: u128 = 1 << 17;
/// Regions of all processes at most.
const MAX_ALL_REGIONS: u128 = 1 << 17;
/// Limit of the threads' programs: each thread's regions, phases, accesses and actions, some 256 bytes each.
const MAX_PARTS: u128 = 1 << 20;
/// Numbers of CPUs, nodes and threads that are listed, with those of every instance.
const MAX_LISTED: u128 = 1 << 24;
/// Limit of the memory of all regions: the address space of x86-64.
const MAX_BYTES: u128 = 1 << 52;
/// Cgroups, regions and phases of a process, and accesses and actions of a phase at most.
const MAX_TABLES: usize = 1024;
/// Letters of a name at most (`NAME_MAX`).
const MAX_NAME: usize = 255;
/// Letters of a cgroup's path at most (`PATH_MAX`).
const MAX_PATH: usize = 4095;
/// Patterns of events or counters, and letters of each, at most.
const MAX_PATTERNS: usize = 1024;
/// The longest time: a year.
const MAX_TIME: Time = Time(365 * 86_400_000_000_000);
/// Samples of a run at most.
const MAX_SAMPLES: u64 = 10_000_000;
/// Limit of operations: integers that a double represents exactly.
const MAX_OPERATIONS: u128 = 1 << 53;
/// An access whose popularity follows a Zipf law keeps its classes.
const ZIPF_PARTS: u128 = 8;

/// Checks the size. False: it is too large for closer checks.
pub(super) fn check(scenario: &Scenario, check: &mut Check<'_>) -> bool {
    run(scenario, check);
    let mut sound = within(check, "cgroup", "cgroups", scenario.cgroups.len() as u128, MAX_TABLES as u128);
    for (i, cgroup) in scenario.cgroups.iter().enumerate() {
        check.require(cgroup.name.len() <= MAX_PATH, &format!("cgroup.#{i}.name"), || {
            format!("a path has at most {MAX_PATH} bytes")
        });
    }
    for (i, process) in scenario.processes.iter().enumerate() {
        sound &= self::process(process, &format!("process.#{i}"), check);
    }
    products(scenario, check) && sound
}

/// A fault if a number is above its limit.
fn within(check: &mut Check<'_>, path: &str, what: &str, number: u128, most: u128) -> bool {
    check.require(number <= most, path, || format!("{number} {what}: there are at most {most}"));
    number <= most
}

/// A fault if a time is longer than any run.
fn short(check: &mut Check<'_>, path: &str, time: Time) {
    check.require(time <= MAX_TIME, path, || format!("{time}: the longest time is {MAX_TIME} (a year)"));
}

fn run(scenario: &Scenario, check: &mut Check<'_>) {
    let run = &scenario.run;
    for (key, time) in [("duration", run.duration.unwrap_or_default()), ("sample", run.sample)] {
        short(check, &format!("run.{key}"), time);
    }
    for (key, list) in [("events", &run.events), ("counters", &run.counters)] {
        within(check, &format!("run.{key}"), "patterns", list.len() as u128, MAX_PATTERNS as u128);
        check.require(list.iter().all(|pattern| pattern.len() <= MAX_NAME), &format!("run.{key}"), || {
            format!("a pattern has at most {MAX_NAME} bytes")
        });
    }
    let longest = scenario.processes.iter().map(|process| length(process).unwrap_or(0)).max().unwrap_or(0);
    let length = run.duration.map_or(longest, |duration| u128::from(duration.0));
    let samples = length / u128::from(run.sample.0.max(1));
    check.require(run.sample.0 == 0 || samples <= u128::from(MAX_SAMPLES), "run.sample", || {
        let length = Time(u64::try_from(length).unwrap_or(u64::MAX));
        format!("{samples} samples, one every {} for {length}: there are at most {MAX_SAMPLES}", run.sample)
    });
}

/// When a process ends, in nanoseconds from the start of the run; `None`: when all is done.
fn length(process: &Process) -> Option<u128> {
    let phases = process.phases.iter().map(|phase| Some(u128::from(phase.duration?.0)));
    Some(u128::from(process.start.0) + phases.sum::<Option<u128>>()?)
}

/// False: it has too many tables to check each.
fn process(process: &Process, path: &str, check: &mut Check<'_>) -> bool {
    short(check, &format!("{path}.start"), process.start);
    let lasts = process.phases.iter().map(|phase| u128::from(phase.duration.unwrap_or_default().0)).sum::<u128>();
    check.require(lasts + u128::from(process.start.0) <= u128::from(MAX_TIME.0), path, || {
        format!("its phases last more than {MAX_TIME} (a year) together")
    });
    let most = MAX_TABLES as u128;
    let mut sound = within(check, &format!("{path}.region"), "regions of a process", regions(process), most)
        & within(check, &format!("{path}.phase"), "phases of a process", process.phases.len() as u128, most);
    let regions = process.regions.iter().enumerate().map(|(i, region)| (format!("{path}.region.#{i}"), region));
    let names = regions.flat_map(|(path, region)| {
        [(format!("{path}.name"), Some(&region.name)), (format!("{path}.file"), region.file.as_ref())]
    });
    let phases = process.phases.iter().enumerate();
    let names = names.chain(phases.map(|(i, phase)| (format!("{path}.phase.#{i}.name"), phase.name.as_ref())));
    for (path, name) in names {
        check.require(name.is_none_or(|name| name.len() <= MAX_NAME), &path, || {
            format!("a name has at most {MAX_NAME} bytes")
        });
    }
    for (i, phase) in process.phases.iter().enumerate() {
        let path = format!("{path}.phase.#{i}");
        let parts = phase.accesses.len() + phase.actions.len();
        sound &= within(check, &path, "accesses and actions of a phase", parts as u128, most);
        short(check, &format!("{path}.duration"), phase.duration.unwrap_or_default());
        for (j, access) in phase.accesses.iter().enumerate() {
            self::access(access, &format!("{path}.access.#{j}"), check);
        }
        for (j, action) in phase.actions.iter().enumerate() {
            self::action(action, &format!("{path}.action.#{j}"), check);
        }
    }
    sound
}

fn access(access: &Access, path: &str, check: &mut Check<'_>) {
    short(check, &format!("{path}.think"), access.think);
    short(check, &format!("{path}.sleep"), access.sleep);
    let arrival = access.arrival.map_or(Time(0), |arrival| arrival.interval);
    short(check, &format!("{path}.arrival"), arrival);
    let sleep = Time(access.think.0.saturating_add(access.sleep.0).saturating_add(arrival.0));
    repeated(access.count, sleep, "think and sleep", path, check);
}

/// The total time of a repeated action fits into 64 bits.
fn repeated(count: Option<u64>, time: Time, what: &str, path: &str, check: &mut Check<'_>) {
    let count = count.unwrap_or(0);
    let path = format!("{path}.count");
    check.require(u128::from(count) <= MAX_OPERATIONS, &path, || format!("a count is at most {MAX_OPERATIONS}"));
    let whole = u128::from(count) * u128::from(time.0);
    check
        .require(whole <= i64::MAX as u128, &path, || format!("{count} times {time} of {what} is more than 292 years"));
}

fn action(action: &Action, path: &str, check: &mut Check<'_>) {
    let operations = |check: &mut Check<'_>, key: &str, factors: &[(&str, u128)]| {
        let product = factors.iter().fold(1u128, |product, (_, factor)| product.saturating_mul(*factor));
        check.require(product <= MAX_OPERATIONS, &format!("{path}.{key}"), || {
            let factors: Vec<String> = factors.iter().map(|(what, factor)| format!("{factor} {what}")).collect();
            format!("{} are {product}: at most {MAX_OPERATIONS}", factors.join(" x "))
        });
    };
    match &action.kind {
        ActionKind::PageLoop { order, hold, count, .. } => {
            let pages = ("pages each", 1u128 << order);
            operations(check, "count", &[("allocations", count.unwrap_or(0).into()), pages]);
            let held = u128::from(*hold) << order;
            let path = format!("{path}.hold");
            check.require(held <= MAX_BYTES >> 12, &path, || {
                format!("{hold} allocations of {} pages are more than can be addressed", 1u64 << order)
            });
        }
        ActionKind::PageHog { order, count, .. } => {
            operations(check, "count", &[("allocations", count.unwrap_or(0).into()), ("pages each", 1u128 << order)]);
        }
        ActionKind::HighOrderAlloc { count, interval, .. } => {
            short(check, &format!("{path}.interval"), *interval);
            repeated(Some(*count), *interval, "`interval`", path, check);
        }
        ActionKind::VmallocTest { tests, loops, repeat, pages } => {
            let rounds = [("loops", u128::from(*loops)), ("runs", (*repeat).into()), ("tests", tests.len() as u128)];
            operations(check, "loops", &rounds);
            operations(check, "pages", &[rounds[0], rounds[1], ("pages", (*pages).into())]);
        }
        ActionKind::Read { count, interval, .. } => {
            short(check, &format!("{path}.interval"), *interval);
            repeated(*count, *interval, "`interval`", path, check);
        }
        ActionKind::ModuleCycle { name, count } => {
            check.require(name.len() <= MAX_NAME, &format!("{path}.name"), || {
                format!("a name has at most {MAX_NAME} bytes")
            });
            repeated(*count, Time(0), "", path, check);
        }
        ActionKind::Lookup { count } => repeated(*count, Time(0), "", path, check),
        ActionKind::Sleep { time } => short(check, &format!("{path}.time"), *time),
        ActionKind::Discard { count, interval, .. } => {
            short(check, &format!("{path}.interval"), *interval);
            repeated(Some(*count), *interval, "`interval`", path, check);
        }
        ActionKind::CpuOffline { .. } | ActionKind::CpuOnline { .. } | ActionKind::Sysctl { .. } => {}
        ActionKind::CgroupLimit { .. } | ActionKind::MemoryReclaim { .. } => {}
    }
}

/// All numbers that instances and threads multiply. True if single items can be checked.
fn products(scenario: &Scenario, check: &mut Check<'_>) -> bool {
    let listed = "processes with their instances";
    let sum = |of: &dyn Fn(&Process) -> u128| {
        let all = scenario.processes.iter().map(|process| instances(process).saturating_mul(of(process)));
        all.fold(0u128, u128::saturating_add)
    };
    let threads = |process: &Process| u128::from(process.threads.min(MAX_THREADS));
    let cpus = scenario.machine.cpus.len() as u128;
    within(check, "process", listed, sum(&|_| 1), MAX_PROCESSES)
        & within(check, "process", "threads of all processes and instances", sum(&threads), MAX_ALL_THREADS)
        & within(check, "process", "regions of all processes and instances", sum(&regions), MAX_ALL_REGIONS)
        & within(
            check,
            "process",
            "parts of all threads (their regions, phases, accesses and actions)",
            sum(&|process| threads(process).saturating_mul(parts(process))),
            MAX_PARTS,
        )
        & within(
            check,
            "process",
            "CPUs, nodes and threads in the lists of all processes and instances",
            sum(&|process| numbers(process, cpus)),
            MAX_LISTED,
        )
        & memory(sum(&|process| process.regions.iter().map(|region| u128::from(region.size.0)).sum()), check)
}

fn memory(bytes: u128, check: &mut Check<'_>) -> bool {
    check.require(bytes <= MAX_BYTES, "process", || {
        let most = Bytes(MAX_BYTES as u64);
        format!("regions of {bytes} bytes in all processes and instances: there are at most {most}")
    });
    bytes <= MAX_BYTES
}

/// How many there are. One that is beyond its own limit is refused for that.
fn instances(process: &Process) -> u128 {
    u128::from(process.instances.count.min(MAX_INSTANCES))
}

fn regions(process: &Process) -> u128 {
    process.regions.len() as u128
}

/// State of each thread.
fn parts(process: &Process) -> u128 {
    let of_access = |access: &Access| if matches!(access.pattern, Pattern::Zipf { .. }) { ZIPF_PARTS } else { 1 };
    let of_phase = |phase: &Phase| 1 + phase.accesses.iter().map(of_access).sum::<u128>() + phase.actions.len() as u128;
    1 + regions(process) + process.phases.iter().map(of_phase).sum::<u128>()
}

/// Numbers in a process's lists.
fn numbers(process: &Process, cpus: u128) -> u128 {
    let of_policy = |policy: &Policy| policy.listed().map_or(0, |list| list.len());
    let of_threads = |threads: &Threads| match threads {
        Threads::All => 0,
        Threads::These(list) => list.len(),
    };
    let regions = process.regions.iter().flat_map(|region| [&region.policy, &region.populate_policy]).flatten();
    let phases = process.phases.iter().flat_map(|phase| {
        let accesses = phase.accesses.iter().map(|access| of_threads(&access.threads));
        accesses.chain(phase.actions.iter().map(|action| of_threads(&action.threads)))
    });
    let own = process.cpus.as_ref().map_or(0, |cpus| cpus.len()) + of_policy(&process.policy);
    let listed = own + regions.map(of_policy).sum::<usize>() + phases.sum::<usize>();
    listed as u128 + if process.instances.bound { cpus } else { 0 }
}
