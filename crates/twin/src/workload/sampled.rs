//! Accesses by their rates: their number in a time, and the pages that they access for the first time.
//!
//! A thread makes turns of one access of each stream; a turn takes think time, the mean latency over classes and nodes,
//! and the expected faults. `n` turns leave a page of a class with P pages and share s unaccessed with probability (1 -
//! s/P)^n and unwritten with (1 - sw/P)^n, so the pages that leave a list are a binomial number of random picks. Walks
//! are followed access by access while a page of their part is missing, and not at all afterwards. Within a chunk
//! faults are spread evenly.

use super::accessor::{AccessProgress, Accessing, Accessor};
use crate::mm::accessed::binomial::{at_least_once, binomial};
use crate::mm::accessed::hints::Hints;
use crate::mm::accessed::pool::{Class, Pool, take};
use crate::mm::filemap::Touched;
use crate::mm::kernel::Kernel;
use crate::mm::memory::AccessState;
use crate::mm::region::{Entry, Region};
use crate::page_alloc::{AllocationFailure, Caller};
use crate::time::{PS_PER_NS, Ps, Random};
use mmtwin_scenario::program::Stream;

/// A page to fault in. Small, as each of many threads has thousands of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    /// Place in the accessor's list.
    access: u32,
    page: u32,
    /// Class of its pool; 0 for walks.
    class: u16,
    /// It is read, then written if both.
    read: bool,
    write: bool,
}

/// Faults of turns that were taken, and the time between them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rest {
    /// The next one last.
    faults: Vec<Fault>,
    /// Time before each, and after the last.
    gap: Ps,
    last: Ps,
    /// The thread sleeps afterwards.
    asleep: Option<Ps>,
    /// When the next fault began.
    begun: Option<Ps>,
}

/// Time of a turn of all active streams, in picoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    /// CPU time alone on the machine, without faults.
    busy: f64,
    asleep: f64,
    /// Faults to be expected.
    faults: f64,
}

/// Runs a thread until a time, or for one turn more.
pub(super) fn run(
    accessor: &mut Accessor,
    state: &mut AccessState,
    kernel: &mut Kernel,
    caller: &mut Caller,
    until: Ps,
) -> Result<AccessProgress, AllocationFailure> {
    let cpu = caller.cpu;
    let from = kernel.machine.node_of(cpu);
    let fault_time = (state.costs.fault + kernel.allocation_time(cpu)) as f64;
    loop {
        if let Some(came) = finish(accessor, state, kernel, caller, until)? {
            return Ok(came);
        }
        if kernel.clock(cpu) >= until || kernel.has_effects() {
            break;
        }
        let start = kernel.clock(cpu);
        for access in &mut accessor.list {
            // Pages that it frees are its own.
            let given = access.renew(state, kernel, caller);
            debug_assert!(given.is_ok());
        }
        for pool in accessor.list.iter().filter_map(|access| access.pool) {
            state.pools[pool].as_mut().into_iter().for_each(Pool::refresh);
        }
        let mut turn = Turn::default();
        let mut most = None;
        for access in accessor.list.iter_mut().filter(|access| access.active()) {
            look(access, state, from);
            turn.busy += access.busy;
            turn.asleep += (access.plan.sleep * PS_PER_NS) as f64;
            turn.faults += access.expected;
            most = most.into_iter().chain([access.left().unwrap_or(u64::MAX), access.to_renewal()]).min();
        }
        let Some(most) = most else { return Ok(AccessProgress::Done) };
        accessor.pace = (turn.busy + turn.faults * fault_time + turn.asleep).max(1.0);
        let fit = (until - start) as f64 / accessor.pace;
        let mut turns = (fit as u64).clamp(1, most);
        match accessor.next_marked(state, turns) {
            Some((0, mapping, unit)) => return Ok(AccessProgress::Marked(mapping, unit)),
            Some((before, ..)) => turns = before,
            None => {}
        }
        let mut faults = std::mem::take(&mut accessor.rest.faults);
        for (number, access) in accessor.list.iter_mut().enumerate().filter(|(_, access)| access.active()) {
            let own = (turns as f64 * access.busy) as Ps;
            (access.time, access.user) = (access.time + own, access.user + own);
            note_load(access, state, from, turns);
            let before = faults.len();
            find_missing(access, number, state, kernel, turns, &mut faults);
            access.latencies.all_took(access.touch_time(), turns, (faults.len() - before) as u64);
            access.plan.stream.count += turns;
        }
        // A turn takes some time, so that the loop ends.
        let busy = ((turns as f64 * turn.busy) as Ps).max(1);
        let gap = busy / (faults.len() as Ps + 1);
        let (last, asleep) = (busy - gap * faults.len() as Ps, (turns as f64 * turn.asleep) as Ps);
        faults.reverse();
        accessor.rest = Rest { faults, gap, last, asleep: (turn.asleep > 0.0).then_some(asleep), begun: None };
    }
    Ok(if accessor.list.iter().any(Accessing::active) { AccessProgress::On } else { AccessProgress::Done })
}

impl Accessing {
    /// What an access takes without think time and faults, as of the last turn.
    fn touch_time(&self) -> Ps {
        (self.busy - (self.plan.think * PS_PER_NS) as f64) as Ps
    }
}

/// Handles the faults of the turns that were made, up to a time or until there are effects for the engine.
fn finish(
    accessor: &mut Accessor,
    state: &mut AccessState,
    kernel: &mut Kernel,
    caller: &mut Caller,
    until: Ps,
) -> Result<Option<AccessProgress>, AllocationFailure> {
    let cpu = caller.cpu;
    while let Some(&fault) = accessor.rest.faults.last() {
        if kernel.clock(cpu) >= until || kernel.has_effects() {
            return Ok(Some(AccessProgress::On));
        }
        // A fault that failed or waited was charged its time.
        let begun = accessor.rest.begun.unwrap_or_else(|| {
            kernel.spend(cpu, accessor.rest.gap);
            kernel.clock(cpu)
        });
        accessor.rest.begun = Some(begun);
        let access = &mut accessor.list[fault.access as usize];
        match fault_in(&fault, access, state, kernel, caller)? {
            Touched::Done => {}
            Touched::Wait(until) => return Ok(Some(AccessProgress::Asleep(until))),
            Touched::Again => return Ok(Some(AccessProgress::On)),
            Touched::Locked => return Ok(Some(AccessProgress::Waiting)),
        }
        access.latencies.took(begun, kernel.clock(cpu) + access.touch_time());
        access.count_faults(kernel, cpu, &state.costs);
        accessor.rest.begun = None;
        accessor.rest.faults.pop();
    }
    kernel.spend(cpu, std::mem::take(&mut accessor.rest.last));
    Ok(accessor.rest.asleep.take().map(|time| AccessProgress::Asleep(kernel.clock(cpu).saturating_add(time))))
}

/// Looks where the pages of a stream are: what an access takes, by node, and the faults to be expected. That is asked for
/// several times until the turns are made, and the tables of a region with a part for each thread are long.
fn look(access: &mut Accessing, state: &AccessState, from: usize) {
    access.by_node.clear();
    let writes = access.plan.stream.writes().get();
    let mut latency = 0.0;
    let mut take = |node: Option<usize>, share: f64| {
        // Pages that were never written count as local.
        latency += share * state.load.latency(from, node.unwrap_or(from));
        access.by_node.extend(node.map(|node| (node, share)));
    };
    access.expected = match access.pool.and_then(|number| state.pools[number].as_ref()) {
        Some(pool) => {
            if pool.mean.nowhere > 0.0 {
                take(None, pool.mean.nowhere);
            }
            let shares = pool.mean.by_node.iter().enumerate().filter(|(_, share)| **share > 0.0);
            shares.for_each(|(node, &share)| take(Some(node), share));
            let of_class = |class: &Class| {
                class.share * (class.absent.len() as f64 + class.zero.len() as f64 * writes) / class.pages as f64
            };
            if pool.mean.missing { pool.classes.iter().map(of_class).sum() } else { 0.0 }
        }
        None => {
            let (region, pages) = (&state.regions[access.region], &access.plan.pages);
            let part = region.within(pages);
            let placed: u64 = part.by_node.iter().sum();
            if placed == 0 {
                take(None, 1.0);
            }
            for (node, &pages) in part.by_node.iter().enumerate().filter(|(_, pages)| **pages > 0) {
                take(Some(node), pages as f64 / placed as f64);
            }
            // Missing pages of a walk follow each other.
            match part {
                part if part.absent > 0 => 1.0,
                part if part.zero > 0 => writes,
                _ if region.unmapped_within(access.mapper, pages) > 0 => 1.0,
                _ => 0.0,
            }
        }
    };
    access.busy = (access.plan.think * PS_PER_NS) as f64 + latency * f64::from(access.plan.lines);
}

fn note_load(access: &Accessing, state: &mut AccessState, from: usize, touches: u64) {
    let writes = access.plan.stream.writes().get();
    let lines = touches as f64 * f64::from(access.plan.lines);
    for &(node, share) in &access.by_node {
        state.load.touch(from, node, lines * share, writes);
    }
}

/// The missing pages that some accesses of a stream reach.
fn find_missing(
    access: &Accessing,
    number: usize,
    state: &mut AccessState,
    kernel: &Kernel,
    turns: u64,
    faults: &mut Vec<Fault>,
) {
    let (region, stream) = (&state.regions[access.region], &access.plan.stream);
    if let Some(pool) = access.pool.and_then(|number| state.pools[number].as_mut()) {
        if !pool.mean.missing {
            return;
        }
        pool.stale = true;
        for class in 0..pool.classes.len() {
            let base = Fault { access: number as u32, page: 0, class: class as u16, read: false, write: true };
            pick(pool, base, stream.writes().get(), turns, region, kernel, &state.random, faults);
        }
    } else if access.expected > 0.0 {
        let seen = (&state.regions[access.region], access.mapper);
        follow(stream, number as u32, access.plan.pages.start, turns, seen, faults);
    }
}

/// Follows a walk access by access.
fn follow(
    stream: &Stream,
    access: u32,
    first: u64,
    turns: u64,
    (region, mapper): (&Region, usize),
    faults: &mut Vec<Fault>,
) {
    for touch in (stream.count..stream.count + turns).map(|count| stream.at(count)) {
        let page = first + touch.page;
        if !region.is_mapped(mapper, page, touch.write) {
            let (read, write) = (!touch.write, touch.write);
            faults.push(Fault { access, page: page as u32, class: 0, read, write });
        }
    }
}

/// Picks the pages of a class that leave its lists.
#[allow(clippy::too_many_arguments)] // separate borrows cannot be passed as one struct
fn pick(
    pool: &mut Pool,
    base: Fault,
    writes: f64,
    turns: u64,
    region: &Region,
    kernel: &Kernel,
    random: &Random,
    faults: &mut Vec<Fault>,
) {
    let number = usize::from(base.class);
    let of = &pool.classes[number];
    let each = of.share / of.pages as f64;
    let (zero, absent) = (of.zero.len() as u64, of.absent.len() as u64);
    if zero + absent == 0 {
        return;
    }
    let touched = at_least_once(each, turns);
    let written = at_least_once(each * writes, turns);
    let (object, seen) = (pool.number, (region, pool.mapper));
    let mut count = |among, p| {
        let draw = pool.draw();
        pool.draws += 1;
        binomial(among, p, random, object, draw)
    };
    let (zero, absent) = (count(zero, written), count(absent, touched));
    for _ in 0..zero {
        let draw = pool.draw();
        let class = &mut pool.classes[number];
        let at = random.below(object, draw, class.zero.len() as u64);
        let page = take(&mut class.zero, at);
        keep(Fault { page, ..base }, class, seen, kernel, pool.hints.as_mut(), faults);
    }
    for _ in 0..absent {
        let (draw, kind) = (pool.draw(), pool.draw());
        let at = random.below(object, draw, pool.classes[number].absent.len() as u64);
        let page = pool.pick_absent(number, at);
        let class = &mut pool.classes[number];
        // Of the accessed pages some are written first, some read first and written later, the others only read.
        let kind = random.fraction(object, kind) * touched;
        let first = writes * touched;
        let (read, write) = (kind >= first, kind < written.max(first));
        keep(Fault { page, read, write, ..base }, class, seen, kernel, pool.hints.as_mut(), faults);
    }
}

/// Keeps a fault if its page is still missing; else the page is noted as it is.
fn keep(
    fault: Fault,
    class: &mut Class,
    seen: (&Region, usize),
    kernel: &Kernel,
    hints: Option<&mut Hints>,
    faults: &mut Vec<Fault>,
) {
    match seen.0.entry_of(seen.1, fault.page.into()) {
        Entry::Zero if fault.write => faults.push(fault),
        Entry::Absent | Entry::Gone(_) => faults.push(fault),
        Entry::Zero | Entry::Present(_) => class.add(fault.page, seen, kernel, hints),
    }
}

/// Faults a page in.
fn fault_in(
    fault: &Fault,
    access: &mut Accessing,
    state: &mut AccessState,
    kernel: &mut Kernel,
    caller: &mut Caller,
) -> Result<Touched, AllocationFailure> {
    let number = access.region;
    let (page, start) = (u64::from(fault.page), kernel.clock(caller.cpu));
    for (wanted, write) in [(fault.read, false), (fault.write, true)] {
        while wanted && !state.regions[number].is_mapped(access.mapper, page, write) {
            let came = state.fault(kernel, caller, (number, access.mapper, &mut access.reader), page, write);
            if !matches!(came, Ok(Touched::Done)) {
                access.time += kernel.clock(caller.cpu) - start;
            }
            match came? {
                Touched::Done => access.note_fault(),
                later => return Ok(later),
            }
        }
    }
    let region = &state.regions[number];
    access.time += kernel.clock(caller.cpu) - start;
    if let Some(pool) = access.pool.and_then(|number| state.pools[number].as_mut()) {
        pool.stale = true;
        pool.classes[usize::from(fault.class)].add(fault.page, (region, access.mapper), kernel, pool.hints.as_mut());
    }
    Ok(Touched::Done)
}
