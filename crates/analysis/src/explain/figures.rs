//! Figures of decisions as text.

use super::names::Names;
use mmtwin_event::rules::Rule;
use mmtwin_event::vocabulary::{NumaGroup, NumaHintFault, NumaMigrateRefused, NumaScanPeriod};

/// A time of the trace clock.
pub fn seconds(at: u64) -> String {
    format!("{}.{:06} s", at / 1_000_000_000, at / 1000 % 1_000_000)
}

/// Kernel function and title of a rule.
pub fn rule(rule: Rule) -> String {
    format!("{}: {}", rule.function(), rule.title())
}

/// A number of things whose plural is regular.
pub(super) fn count(number: u64, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

/// A node, or that there is none.
pub(super) fn node(nid: i32) -> String {
    if nid < 0 { "no node".into() } else { format!("node {nid}") }
}

/// A number with its sign.
pub(super) fn signed(number: i64) -> String {
    format!("{number:+}")
}

/// The last accessor before a hinting fault.
fn before(of: &NumaHintFault, names: &Names) -> String {
    match (of.last_cpu, of.last_pid) {
        (..0, _) => "no previous fault".into(),
        (cpu, ..0) => format!("the previous fault was on CPU {cpu}, {}", node(of.last_nid)),
        (cpu, pid) => format!("the previous fault was by {} on CPU {cpu}, {}", names.task(pid), node(of.last_nid)),
    }
}

/// What a hinting fault was decided on.
pub(super) fn fault(of: &NumaHintFault, by: Option<Rule>, names: &Names) -> String {
    let (src, dst, gid) = (of.src_nid, of.dst_nid, of.gid);
    let memory = || format!("group {gid} has {} memory faults on node {dst}, {} on node {src}", of.mem_dst, of.mem_src);
    match by {
        Some(Rule::FirstScans) => {
            let preferred = if of.preferred_nid < 0 { "none".into() } else { of.preferred_nid.to_string() };
            format!("preferred node {preferred}, scan pass {}; {}", of.scan_seq, before(of, names))
        }
        Some(Rule::TwoStage) => format!("{}, not node {dst}", before(of, names)),
        Some(Rule::TripleCpu) => {
            let triple = 3 * u128::from(of.cpu_src);
            format!(
                "group {gid} has {} CPU faults on node {dst} > 3 x {} on node {src} = {triple}",
                of.cpu_dst, of.cpu_src
            )
        }
        Some(Rule::ThreeQuarters) => {
            let left = u128::from(of.cpu_dst) * u128::from(of.mem_src) * 3;
            let right = u128::from(of.cpu_src) * u128::from(of.mem_dst) * 4;
            let sign = if left > right { ">" } else { "<=" };
            format!(
                "group {gid}: CPU faults {} (node {dst}) x memory faults {} (node {src}) x 3 = {left} {sign} {} (node \
                 {src}) x {} (node {dst}) x 4 = {right}",
                of.cpu_dst, of.mem_src, of.cpu_src, of.mem_dst
            )
        }
        Some(Rule::BothActive) => {
            let sign = if of.wanted { "less" } else { "not less" };
            format!("{}, 3/4 of which are {}: {sign}", memory(), u128::from(of.mem_src) * 3 / 4)
        }
        Some(Rule::DstInactive | Rule::SrcInactive) => memory(),
        Some(Rule::Deferred) => format!("{} more shared faults are deferred", of.deferred),
        Some(Rule::Local) => String::new(),
        _ => before(of, names),
    }
}

/// Why a migration that was wanted did not happen.
pub(super) fn refused(of: &NumaMigrateRefused, by: Option<Rule>) -> String {
    let (dst, have, limit) = (of.dst_nid, of.have, of.limit);
    match by {
        Some(Rule::RateLimit) => {
            format!("{have} pages were migrated to node {dst} in the rate-limit window, limit {limit}")
        }
        Some(Rule::NodeFull) => {
            format!("the best zone of node {dst} has {have} free pages, required: more than {limit}")
        }
        _ => format!("no page could be allocated on node {dst}; its best zone has {have} free pages"),
    }
}

/// What happened to a task's group.
pub(super) fn group(of: &NumaGroup, by: Option<Rule>, names: &Names) -> String {
    let tasks = |number| count(number, "task");
    let other = || match of.other_gid {
        0 => format!("{}, which has none", names.task(of.other_pid)),
        gid => format!("{} of group {gid} ({})", names.task(of.other_pid), tasks(of.other_tasks)),
    };
    match by {
        Some(Rule::Created) => format!("{} creates group {}", names.task(of.pid), of.gid),
        Some(Rule::Joined) => {
            let from = if of.gid > 0 {
                format!("leaves group {} ({}) and ", of.gid, tasks(of.nr_tasks))
            } else {
                String::new()
            };
            format!(
                "{} {from}joins group {} of {} ({})",
                names.task(of.pid),
                of.other_gid,
                names.task(of.other_pid),
                tasks(of.other_tasks)
            )
        }
        Some(Rule::Left) => {
            format!("{} exits and leaves group {} ({})", names.task(of.pid), of.gid, tasks(of.nr_tasks))
        }
        Some(Rule::NotRunning) => {
            format!(
                "{} stays in group {}: the last accessor of its page no longer runs on that CPU",
                names.task(of.pid),
                of.gid
            )
        }
        _ => format!(
            "{} stays in group {} ({}), shares a page with {}",
            names.task(of.pid),
            of.gid,
            tasks(of.nr_tasks),
            other()
        ),
    }
}

/// How a scan period was set.
pub(super) fn period(of: &NumaScanPeriod, by: Option<Rule>) -> String {
    let change = format!("scan period {} -> {} ms", of.old, of.period);
    let share = |part: u64, other: u64| match part.checked_add(other).filter(|all| *all > 0) {
        Some(all) => format!("{part} of {all} ({}/10)", u128::from(part) * 10 / u128::from(all)),
        None => "none".into(),
    };
    match by {
        Some(Rule::ScanStart | Rule::MovedNode | Rule::MigrateReset) => change,
        Some(Rule::FailedMigration) => format!("{change}: {} pages could not be migrated", of.failed),
        _ => format!("{change}: local {}, private {}", share(of.local, of.remote), share(of.private, of.shared)),
    }
}
