//! Kernel stacks for people, and for programs that draw flame graphs.

use crate::format::wrap;
use crate::tables::stacks::BETWEEN;
use crate::units;
use mmtwin_analysis::Analysis;
use mmtwin_analysis::stacks::Named;
use std::collections::BTreeMap;

/// Stacks printed for people.
const PRINTED: usize = 10;
/// Tasks named with a stack.
const TASKS: usize = 3;

/// What a line of a folded file counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// How often.
    Count,
    /// Microseconds waited; stacks without a known duration are not in it.
    Waited,
}

/// Stacks that differ only in the name of the task.
struct Group {
    stack: Named,
    tasks: Vec<(String, u64)>,
}

/// The stacks in which most time was waited, within a width: a line about each, and below it its functions.
pub fn lines(analysis: &Analysis, name: &str, width: usize) -> Vec<String> {
    let stacks = analysis.stacks.by_time(&analysis.source);
    if stacks.is_empty() {
        let with = analysis.source.stacks.len();
        let why = match with {
            0 => "no stacks were recorded: mmtwin record -g".to_string(),
            _ => format!("none of the {} recorded with stacks happened", units::counted(with as u64, "event")),
        };
        return wrap(&format!("{name}: {why}"), width);
    }
    let sum = |part: fn(&Named) -> u64| stacks.iter().fold(0u64, |sum, stack| sum.saturating_add(part(stack)));
    let (count, timed, waited) = (sum(|s| s.count), sum(|s| s.timed), sum(|s| s.waited));
    let groups = grouped(stacks);
    let unnamed = match analysis.stacks.others {
        0 => String::new(),
        others => format!("; {} more are not told apart", units::count(others as f64)),
    };
    let waited = match timed {
        0 => "time waited: n/a".to_string(),
        _ => format!("{} waited in {} of them", units::time(waited as f64), units::count(timed as f64)),
    };
    let (count, different) = (units::counted(count, "stack"), units::count(groups.len() as f64));
    let mut lines = wrap(&format!("{name}: {count}, {different} different; {waited}{unnamed}"), width);
    for Group { stack, tasks } in groups.iter().take(PRINTED) {
        let waited = if stack.timed > 0 { units::time(stack.waited as f64) } else { "n/a".into() };
        let times = units::counted(stack.count, "time");
        lines.push(String::new());
        lines.extend(wrap(&format!("{waited} in {times}: {} ({})", stack.event_name(), named(tasks)), width));
        let functions = wrap(&stack.functions.join(" < "), width.saturating_sub(4));
        lines.extend(functions.into_iter().map(|line| format!("    {line}")));
    }
    if groups.len() > PRINTED {
        let more = units::count((groups.len() - PRINTED) as f64);
        lines.push(String::new());
        lines.extend(wrap(&format!("{more} more: --table stacks, or mmtwin convert {name} -o NAME.folded"), width));
    }
    lines
}

/// Names of the first tasks, those with most stacks first.
fn named(tasks: &[(String, u64)]) -> String {
    let names: Vec<&str> = tasks.iter().take(TASKS).map(|(name, _)| name.as_str()).collect();
    match tasks.len() - names.len() {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

fn grouped(stacks: Vec<Named>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut by = BTreeMap::new();
    for stack in stacks {
        let at = *by.entry((stack.event, stack.functions.clone())).or_insert(groups.len());
        if let Some(Group { stack: sum, tasks }) = groups.get_mut(at) {
            tasks.push((stack.task.clone(), stack.count));
            sum.count = sum.count.saturating_add(stack.count);
            sum.timed = sum.timed.saturating_add(stack.timed);
            sum.waited = sum.waited.saturating_add(stack.waited);
        } else {
            groups.push(Group { tasks: vec![(stack.task.clone(), stack.count)], stack });
        }
    }
    groups.iter_mut().for_each(|group| group.tasks.sort_by_key(|(_, count)| std::cmp::Reverse(*count)));
    groups.sort_by_key(|g| (std::cmp::Reverse(g.stack.waited), std::cmp::Reverse(g.stack.count)));
    groups
}

/// Lines `task;outermost;...;innermost;event N`, sorted, as programs that draw flame graphs read them.
pub fn folded(analysis: &Analysis, weight: Weight) -> Vec<String> {
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for stack in analysis.stacks.by_time(&analysis.source) {
        let frames = std::iter::once(stack.task.as_str())
            .chain(stack.functions.iter().rev().map(String::as_str))
            .chain([stack.event_name()]);
        // What separates must not be in a name.
        let path = frames.map(|frame| frame.replace([';', '\n'], "_")).collect::<Vec<_>>().join(BETWEEN);
        let value = match weight {
            Weight::Count => stack.count,
            Weight::Waited => stack.waited / 1000,
        };
        let sum = sums.entry(path).or_default();
        *sum = sum.saturating_add(value);
    }
    sums.into_iter().filter(|(_, value)| *value > 0).map(|(path, value)| format!("{path} {value}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use mmtwin_analysis::testing::EventBuilder;
    use mmtwin_event::stack::{KERNEL_STACK, StackRecord};
    use mmtwin_event::{Event, Kind, Sink, Source};
    use std::sync::Arc;

    /// Two tasks that reclaim from one place, one that is throttled elsewhere.
    fn analysis() -> Analysis {
        let symbols = [(100, "charge"), (200, "read"), (300, "write")];
        let kallsyms = Arc::new(symbols.map(|(at, name)| (at, name.to_string())).to_vec());
        let stack = Some(StackRecord { offset: 0, long_size: 8, big_endian: false });
        let mut analysis = Analysis::default();
        analysis.start(&Source { stack, kallsyms, ..Source::default() });
        let raw = |addresses: [u64; 2]| addresses.map(u64::to_le_bytes).concat();
        for (pid, comm, at) in [(1, &b"dd"[..], 1000), (2, b"tar", 5000), (1, b"dd", 9000)] {
            let event = |kind, at| EventBuilder::new(kind).pid(pid).comm(comm).at(at);
            analysis.event(&event(Kind::MmVmscanMemcgReclaimBegin, at).event());
            let record = raw([101, 201 + at]);
            let record = if at == 1000 { raw([101, 205]) } else { record };
            let record = if at == 5000 { raw([103, 205]) } else { record };
            let other = event(Kind::Other, at + 1);
            analysis.event(&Event { name: KERNEL_STACK, raw: &record, ..other.event() });
            analysis.event(&event(Kind::MmVmscanMemcgReclaimEnd, at + 2000).event());
        }
        analysis
    }

    #[test]
    fn stacks_are_told_with_who_and_how_long() {
        let expected = "\
r: 3 stacks, 2 different; 6.00 us waited in 3 of them

4.00 us in 2 times: mm_vmscan_memcg_reclaim_begin (dd, tar)
    charge < read

2.00 us in 1 time: mm_vmscan_memcg_reclaim_begin (dd)
    charge < write";
        assert_eq!(lines(&analysis(), "r", 80).join("\n"), expected);
        assert_eq!(lines(&Analysis::default(), "r", 80), ["r: no stacks were recorded: mmtwin record -g"]);
    }

    #[test]
    fn folded_lines_begin_with_the_task() {
        let event = "mm_vmscan_memcg_reclaim_begin";
        let line = |path: &str, n: u64| format!("{path};{event} {n}");
        let expected = |n| [line("dd;read;charge", n), line("dd;write;charge", n), line("tar;read;charge", n)];
        assert_eq!(folded(&analysis(), Weight::Count), expected(1));
        assert_eq!(folded(&analysis(), Weight::Waited), expected(2));
    }
}
