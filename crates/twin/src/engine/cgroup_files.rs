//! Files of cgroups, of both versions, and of pressure stall information, as far as what is in them happens here.
//!
//! A cgroup of version 1 has no pressure, protection or events, and its `memory.stat` does not count reclaim. Of
//! `memory.stat` the lists are known, of the others what the mechanisms of reclaim count. Usage of version 1 with swap
//! (`memory.memsw.*`) has no limit here.

use crate::hw::PAGE_SHIFT;
use crate::mm::kernel::Kernel;
use crate::mm::lru::{List, PerType};
use crate::mm::memcg::{Events, Group};
use crate::sched::Totals;
use crate::time::{PS_PER_NS, Ps};
use mmtwin_event::counters::Row;
use mmtwin_scenario::Scenario;
use mmtwin_scenario::kernel::CgroupVersion;

/// What version 1 shows as the limit of a cgroup that has none.
const UNLIMITED: u64 = i64::MAX as u64 & !0xfff;

/// The machine's pressure.
pub(super) fn system(totals: &Totals) -> Row {
    let mut row = Row::new("");
    pressure(&mut row, totals, &["memory_", "io_"]);
    row
}

/// Totals of memory and I/O in microseconds, under these prefixes.
fn pressure(row: &mut Row, totals: &Totals, prefixes: &[&str; 2]) {
    let us = |time: Ps| Some(time / PS_PER_NS / 1000);
    for (prefix, waited) in prefixes.iter().zip([totals.memory, totals.io]) {
        row.push(format!("{prefix}some_total"), us(waited.some));
        row.push(format!("{prefix}full_total"), us(waited.full));
    }
}

/// Files of the scenario's cgroups; `totals` is the pressure of the root and of these, or empty.
pub(super) fn cgroups(scenario: &Scenario, kernel: &Kernel, totals: &[Totals]) -> Vec<Row> {
    let numbers = scenario.cgroups.iter().zip(1..);
    let row = |(config, number): (&mmtwin_scenario::workload::Cgroup, usize)| {
        let mut row = Row::new(config.name.as_str());
        let group = &kernel.reclaim.groups[number];
        match scenario.kernel.cgroup {
            CgroupVersion::V1 => version_1(&mut row, group),
            CgroupVersion::V2 => version_2(&mut row, group),
        }
        stat(&mut row, kernel, number, scenario.kernel.cgroup);
        if let (CgroupVersion::V2, Some(totals)) = (scenario.kernel.cgroup, totals.get(number)) {
            pressure(&mut row, totals, &["memory.pressure.", "io.pressure."]);
        }
        row
    };
    numbers.map(row).collect()
}

fn bytes(pages: u64) -> Option<u64> {
    Some(pages << PAGE_SHIFT)
}

fn version_1(row: &mut Row, group: &Group) {
    let limit = |pages: Option<u64>| pages.map_or(Some(UNLIMITED), bytes);
    for (name, value) in [
        ("memory.usage_in_bytes", bytes(group.usage)),
        ("memory.max_usage_in_bytes", bytes(group.peak)),
        ("memory.limit_in_bytes", limit(group.config.max)),
        ("memory.failcnt", Some(group.events.failcnt)),
        ("memory.memsw.usage_in_bytes", bytes(group.usage + group.swap)),
        ("memory.oom_control.oom_kill", Some(group.local.oom_kill)),
    ] {
        row.push(name, value);
    }
}

fn version_2(row: &mut Row, group: &Group) {
    let limits = group.config;
    let limit = |pages: Option<u64>| pages.and_then(bytes);
    for (name, value) in [
        ("memory.current", bytes(group.usage)),
        ("memory.peak", bytes(group.peak)),
        ("memory.min", bytes(limits.min)),
        ("memory.low", bytes(limits.low)),
        ("memory.high", limit(limits.high)),
        ("memory.max", limit(limits.max)),
        ("memory.swap.current", bytes(group.swap)),
        ("memory.swap.max", limit(limits.swap_max)),
    ] {
        row.push(name, value);
    }
    for (file, Events { low, high, max, oom, oom_kill, .. }) in
        [("memory.events", group.events), ("memory.events.local", group.local)]
    {
        for (name, value) in [("low", low), ("high", high), ("max", max), ("oom", oom), ("oom_kill", oom_kill)] {
            row.push(format!("{file}.{name}"), Some(value));
        }
    }
    row.push("memory.swap.events.max", Some(group.events.swap_max));
    row.push("memory.swap.events.fail", Some(group.events.swap_fail));
}

/// `memory.stat`: in version 1 of the cgroup itself, in version 2 with those below.
fn stat(row: &mut Row, kernel: &Kernel, number: usize, version: CgroupVersion) {
    let (reclaim, group) = (&kernel.reclaim, &kernel.reclaim.groups[number]);
    let alone = version == CgroupVersion::V1;
    let events = if alone { group.local } else { group.events };
    let mut push = |name: &str, value| row.push(format!("memory.stat.{name}"), value);
    let pages = |place: usize, list: List| match reclaim.lru.number(place, number) {
        lruvec if alone => reclaim.lru.vec(lruvec).pages(list),
        lruvec => reclaim.lru.pages(lruvec, list),
    };
    for (name, list) in [
        ("inactive_anon", List::InactiveAnon),
        ("active_anon", List::ActiveAnon),
        ("inactive_file", List::InactiveFile),
        ("active_file", List::ActiveFile),
    ] {
        push(name, bytes((0..reclaim.lru.places()).map(|place| pages(place, list)).sum()));
    }
    push("pgmajfault", Some(events.pgmajfault));
    let by_type = |push: &mut dyn FnMut(&str, Option<u64>), name: &str, [anon, file]: PerType| {
        push(&format!("workingset_{name}_anon"), Some(anon));
        push(&format!("workingset_{name}_file"), Some(file));
    };
    if reclaim.rules.workingset {
        by_type(&mut push, "refault", events.refaults);
    }
    if alone {
        return;
    }
    if reclaim.rules.workingset {
        by_type(&mut push, "activate", events.activates);
        by_type(&mut push, "restore", events.restores);
    }
    for (name, [kswapd, direct]) in [("pgscan", events.scanned), ("pgsteal", events.reclaimed)] {
        push(name, Some(kswapd + direct));
        push(&format!("{name}_kswapd"), Some(kswapd));
        push(&format!("{name}_direct"), Some(direct));
    }
}
