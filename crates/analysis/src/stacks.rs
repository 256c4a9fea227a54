//! Kernel stacks: from where tasks enter reclaim, compaction and waits, how often, and how long they stayed.
//!
//! A `kernel_stack` record belongs to the event before it of the same task on the same CPU. What begins there is over
//! with the end event of the same task; an event that tells its own duration needs none. Stacks that differ in an
//! address are different ones, so two calls within one function are.

use crate::tasks::Tasks;
use mmtwin_event::stack::{KERNEL_STACK, StackRecord};
use mmtwin_event::vocabulary as typed;
use mmtwin_event::{Event, Kind, Source};
use rustc_hash::{FxHashMap, FxHasher};
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

/// Stacks kept apart; those that come later are counted together.
const MOST: usize = 1 << 16;
/// Addresses of a stack that are kept; kernels record at most some hundred.
const DEEPEST: usize = 256;
/// Beginnings that may be open at once: kernels have at most four times as many threads.
const MOST_OPEN: usize = 1 << 20;

/// All stacks of an input.
#[derive(Clone, Debug, Default)]
pub struct Stacks {
    record: Option<StackRecord>,
    list: Vec<Stack>,
    by_hash: FxHashMap<u64, usize>,
    /// By CPU: the event that a stack would belong to.
    last: Vec<Option<Last>>,
    /// What has begun and not ended, by task and kind of its end.
    open: FxHashMap<(i32, Kind), Open>,
    /// Stacks beyond those kept apart.
    pub others: u64,
}

/// One stack of one kind of event and one name of tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stack {
    /// The event.
    event: Kind,
    /// Name of the task; empty if unknown.
    comm: Vec<u8>,
    /// Addresses of callers, the innermost first.
    addresses: Vec<u64>,
    /// How often.
    count: u64,
    /// How many of these have a known duration.
    timed: u64,
    /// Nanoseconds of those.
    waited: u64,
}

/// An event that may be followed by its stack.
#[derive(Clone, Copy, Debug)]
struct Last {
    kind: Kind,
    pid: i32,
    at: u64,
    /// What the event itself says of its duration, in nanoseconds.
    lasted: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    at: u64,
    stack: usize,
}

/// The kind that ends what a kind begins.
fn end_of(kind: Kind) -> Option<Kind> {
    use Kind::*;
    Some(match kind {
        MmVmscanDirectReclaimBegin => MmVmscanDirectReclaimEnd,
        MmVmscanMemcgReclaimBegin => MmVmscanMemcgReclaimEnd,
        MmVmscanMemcgSoftlimitReclaimBegin => MmVmscanMemcgSoftlimitReclaimEnd,
        MmVmscanNodeReclaimBegin => MmVmscanNodeReclaimEnd,
        MmCompactionBegin => MmCompactionEnd,
        _ => return None,
    })
}

impl Stacks {
    pub(crate) fn start(&mut self, source: &Source) {
        self.record = source.stack;
    }

    /// True if stacks were recorded.
    pub(crate) fn are_recorded(&self) -> bool {
        self.record.is_some()
    }

    /// Takes any event.
    #[inline]
    pub(crate) fn event(&mut self, ev: &Event<'_>, tasks: &mut Tasks) {
        use Kind::*;
        match ev.kind {
            Other if ev.name == KERNEL_STACK => self.stack(ev, tasks),
            MmVmscanDirectReclaimBegin
            | MmVmscanMemcgReclaimBegin
            | MmVmscanMemcgSoftlimitReclaimBegin
            | MmVmscanNodeReclaimBegin
            | MmCompactionBegin
            | MarkVictim => self.begin(ev, None),
            MmVmscanThrottled => {
                let us = ev.typed::<typed::MmVmscanThrottled>().usec_delayed;
                self.begin(ev, Some(u64::try_from(us).unwrap_or(0).saturating_mul(1000)));
            }
            WritebackCongestionWait => {
                let us = ev.typed::<typed::WritebackCongestionWait>().usec_delayed;
                self.begin(ev, Some(u64::from(us).saturating_mul(1000)));
            }
            WritebackWaitIffCongested => {
                let us = ev.typed::<typed::WritebackWaitIffCongested>().usec_delayed;
                self.begin(ev, Some(u64::from(us).saturating_mul(1000)));
            }
            BalanceDirtyPages => {
                let ms = ev.typed::<typed::BalanceDirtyPages>().pause;
                self.begin(ev, Some(u64::try_from(ms).unwrap_or(0).saturating_mul(1_000_000)));
            }
            MmVmscanDirectReclaimEnd
            | MmVmscanMemcgReclaimEnd
            | MmVmscanMemcgSoftlimitReclaimEnd
            | MmVmscanNodeReclaimEnd
            | MmCompactionEnd => self.end(ev),
            _ => {}
        }
    }

    fn begin(&mut self, ev: &Event<'_>, lasted: Option<u64>) {
        let cpu = ev.cpu as usize;
        if self.record.is_none() || cpu >= 1 << 13 {
            return;
        }
        if self.last.len() <= cpu {
            self.last.resize(cpu + 1, None);
        }
        self.last[cpu] = Some(Last { kind: ev.kind, pid: ev.pid, at: ev.ts, lasted });
        if let Some(end) = end_of(ev.kind) {
            // One whose end was lost is not ended by that of the next.
            self.open.remove(&(ev.pid, end));
        }
    }

    fn end(&mut self, ev: &Event<'_>) {
        if self.open.is_empty() {
            return;
        }
        if let Some(Open { at, stack }) = self.open.remove(&(ev.pid, ev.kind))
            && let Some(stack) = self.list.get_mut(stack)
        {
            stack.timed += 1;
            stack.waited = stack.waited.saturating_add(ev.ts.saturating_sub(at));
        }
    }

    fn stack(&mut self, ev: &Event<'_>, tasks: &mut Tasks) {
        let (Some(record), Some(last)) = (self.record, self.last.get_mut(ev.cpu as usize)) else { return };
        let Some(last) = last.take().filter(|last| last.pid == ev.pid) else { return };
        let addresses: Vec<u64> = record.addresses(ev.raw).take(DEEPEST).collect();
        let Some(stack) = self.position(last.kind, tasks.of(ev).comm(), addresses) else { return };
        let found = &mut self.list[stack];
        found.count += 1;
        match (last.lasted, end_of(last.kind)) {
            (Some(ns), _) => {
                found.timed += 1;
                found.waited = found.waited.saturating_add(ns);
            }
            (None, Some(end)) if self.open.len() < MOST_OPEN => {
                self.open.insert((ev.pid, end), Open { at: last.at, stack });
            }
            (None, _) => {}
        }
    }

    /// Where such a stack is in the list, a new one at its end.
    fn position(&mut self, event: Kind, comm: &[u8], addresses: Vec<u64>) -> Option<usize> {
        let mut hasher = FxHasher::default();
        (event, comm, &addresses).hash(&mut hasher);
        let mut hash = hasher.finish();
        // Others of the same hash are stepped over.
        while let Some(&at) = self.by_hash.get(&hash) {
            let stack = &self.list[at];
            if stack.event == event && stack.comm == comm && stack.addresses == addresses {
                return Some(at);
            }
            hash = hash.wrapping_add(1);
        }
        if self.list.len() >= MOST {
            self.others += 1;
            return None;
        }
        self.by_hash.insert(hash, self.list.len());
        let comm = comm.to_vec();
        self.list.push(Stack { event, comm, addresses, count: 0, timed: 0, waited: 0 });
        Some(self.list.len() - 1)
    }

    /// All stacks by the names of their functions, those in which most time was waited first, then the most frequent.
    pub fn by_time(&self, source: &Source) -> Vec<Named> {
        let mut sums: BTreeMap<(Kind, Vec<String>, String), [u64; 3]> = BTreeMap::new();
        for stack in &self.list {
            let sum = sums.entry((stack.event, stack.functions(source), stack.task())).or_default();
            for (sum, part) in sum.iter_mut().zip([stack.count, stack.timed, stack.waited]) {
                *sum = sum.saturating_add(part);
            }
        }
        let sums = sums.into_iter();
        let mut stacks: Vec<Named> = sums
            .map(|((event, functions, task), [count, timed, waited])| Named {
                event,
                functions,
                task,
                count,
                timed,
                waited,
            })
            .collect();
        // The sort is stable: equal ones keep the order of their names.
        stacks.sort_by_key(|s| (std::cmp::Reverse(s.waited), std::cmp::Reverse(s.count)));
        stacks
    }
}

/// Stacks of one kind of event and one name of tasks that have the same functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The event.
    pub event: Kind,
    /// Names of the functions, the innermost first.
    pub functions: Vec<String>,
    /// Name of the tasks.
    pub task: String,
    /// How often.
    pub count: u64,
    /// How many of these have a known duration.
    pub timed: u64,
    /// Nanoseconds of those.
    pub waited: u64,
}

impl Named {
    /// Name of the event.
    pub fn event_name(&self) -> &'static str {
        self.event.schema().map_or("", |schema| schema.name)
    }
}

impl Stack {
    /// Names of its functions, the innermost first, without those by which the kernel records it; an address where the
    /// recording has no symbol.
    fn functions(&self, source: &Source) -> Vec<String> {
        let name = |address: &u64| source.symbol(*address).map_or_else(|| format!("{address:#x}"), str::to_string);
        let names = self.addresses.iter().map(name);
        names.skip_while(|name| TRACING.iter().any(|own| name.starts_with(own))).collect()
    }

    /// Name of the task.
    fn task(&self) -> String {
        if self.comm.is_empty() { "<...>".into() } else { String::from_utf8_lossy(&self.comm).into_owned() }
    }
}

/// How functions begin that are innermost because the stack is recorded there.
const TRACING: [&str; 6] = [
    "trace_event_raw_event_",
    "trace_event_buffer_commit",
    "event_triggers_",
    "stacktrace_trigger",
    "__traceiter_",
    "do_trace_event_raw_event_",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Analysis;
    use crate::testing::EventBuilder;
    use mmtwin_event::Sink;
    use std::sync::Arc;

    const RECORD: StackRecord = StackRecord { offset: 16, long_size: 8, big_endian: false };

    fn stack(cpu: u32, pid: i32, at: u64, addresses: &[u64], analysis: &mut Analysis) {
        let raw = [vec![0; 16], addresses.iter().flat_map(|a| a.to_le_bytes()).collect()].concat();
        let builder = EventBuilder::new(Kind::Other).pid(pid).cpu(cpu).comm(b"dd").at(at);
        analysis.event(&Event { name: KERNEL_STACK, raw: &raw, ..builder.event() });
    }

    fn analysis() -> Analysis {
        let symbols = [(100, "trace_event_raw_event_x"), (200, "try_charge"), (300, "read"), (400, "write")];
        let kallsyms = Arc::new(symbols.map(|(at, name)| (at, name.to_string())).to_vec());
        let mut analysis = Analysis::default();
        analysis.start(&Source { stack: Some(RECORD), kallsyms, ..Source::default() });
        analysis
    }

    #[test]
    fn stacks_belong_to_the_event_before_and_last_until_its_end() {
        let mut a = analysis();
        let event = |a: &mut Analysis, kind, cpu, pid, at| {
            a.event(&EventBuilder::new(kind).cpu(cpu).pid(pid).comm(b"dd").at(at).event());
        };
        use Kind::*;
        event(&mut a, MmVmscanMemcgReclaimBegin, 0, 7, 10);
        event(&mut a, MmVmscanMemcgReclaimBegin, 1, 8, 11);
        stack(0, 7, 12, &[105, 205, 305], &mut a);
        stack(1, 8, 12, &[105, 205, 405], &mut a);
        event(&mut a, MmVmscanMemcgReclaimEnd, 0, 7, 110);
        event(&mut a, MmVmscanMemcgReclaimBegin, 0, 7, 200);
        stack(0, 7, 201, &[105, 205, 305], &mut a);
        // Its end is lost; the next has another stack.
        event(&mut a, MmVmscanMemcgReclaimBegin, 0, 7, 300);
        stack(0, 7, 301, &[105, 205, 405], &mut a);
        event(&mut a, MmVmscanMemcgReclaimEnd, 1, 7, 350);
        // Of another task, and of no event.
        stack(0, 9, 400, &[105, 305], &mut a);
        stack(1, 8, 401, &[105, 305], &mut a);
        let found = a.stacks.by_time(&a.source);
        let found: Vec<_> =
            found.iter().map(|s| (s.task.clone(), s.functions.join(" < "), s.count, s.timed, s.waited)).collect();
        let line = |path: &str, count, timed, waited| ("dd".to_string(), path.to_string(), count, timed, waited);
        assert_eq!(found, [line("try_charge < read", 2, 1, 100), line("try_charge < write", 2, 1, 50)]);
    }

    #[test]
    fn an_input_without_stack_records_has_none() {
        let mut a = Analysis::default();
        a.start(&Source::default());
        a.event(&EventBuilder::new(Kind::MmVmscanMemcgReclaimBegin).event());
        stack(0, 1, 5, &[1], &mut a);
        assert!(a.stacks.by_time(&a.source).is_empty());
    }
}
