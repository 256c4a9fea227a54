//! Check of a recorded state that a run begins with: it is of this machine, and each of its numbers is possible for a
//! kernel on this machine.
//!
//! A recording may be damaged, or of another machine. Refused values are named; accepted ones are small enough for the
//! arithmetic of all mechanisms. Free pages, pages of CPUs' lists and pages of the LRU lists are read one after another
//! from a running kernel, but together they never exceed the managed pages of its allocator: thousands of pages are the
//! kernel's own.

use super::State;
use crate::frame::ZoneKind;
use crate::mm::kernel::{ListState, ZoneState};
use crate::page_alloc::MAX_ORDER;
use mmtwin_event::counters::Run;
use mmtwin_scenario::Machine;
use std::collections::{BTreeMap, BTreeSet};

/// Part of a node's memory by which the scenario may differ from what the kernel saw: firmware keeps some for itself.
const FIRMWARE_PART: u64 = 16;
/// More than any kernel counts of one thing: at ten million a second it takes 325 days.
const MOST_COUNTED: u64 = 1 << 48;
/// Bytes of the smallest object of a cache.
const SMALLEST_OBJECT: u64 = 8;
/// Differentials of counters of pages are 8 bits wide.
const DIFFERENTIALS: std::ops::RangeInclusive<i64> = i8::MIN as i64..=i8::MAX as i64;
/// Doublings that a CPU's list is ever at: of a batch of a page to all pages of 16 TiB.
const MOST_DOUBLINGS: u32 = 32;
/// Batches of the length of a list in the smallest zone.
const SHORTEST_HIGH: u64 = 6;
/// log2 of the fewest pages of a pageblock.
const SMALLEST_PAGEBLOCK: u32 = 9;

/// Why a run cannot begin with a state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// The difference, in words.
    #[error(
        "the state is of another machine than the scenario's: {}; use the scenario that was recorded, or change [machine]",
        .0.join("; ")
    )]
    OtherMachine(Vec<String>),
    /// A number that no kernel on the machine can have: where, and what is wrong.
    #[error("{place}: {what}: the state is damaged")]
    Impossible {
        /// Zone, list, shrinker.
        place: String,
        /// The fault.
        what: String,
    },
}

/// Refuses `what` of a place unless it holds.
fn require(holds: bool, place: impl FnOnce() -> String, what: impl FnOnce() -> String) -> Result<(), StateError> {
    if holds { Ok(()) } else { Err(StateError::Impossible { place: place(), what: what() }) }
}

/// Checks a state that a run on a machine is to begin with.
///
/// # Errors
/// If it is of another machine, or damaged.
pub fn check(state: &State, machine: &Machine) -> Result<(), StateError> {
    if state.zones.is_empty() {
        return Ok(());
    }
    state.zones.iter().try_for_each(check_sizes)?;
    same_machine(state, machine)?;
    free_by_type(&state.zones)?;
    let cpus = machine.cpus.len() as u32;
    for zone in &state.zones {
        check_lists(zone, cpus)?;
        check_blocks(zone)?;
    }
    check_lru(state, cpus)?;
    let pages: u64 = state.zones.iter().map(|zone| zone.present).sum();
    check_shrinkers(state, machine.nodes.len(), pages)
}

fn name(zone: &ZoneState) -> String {
    format!("zone {} of node {}", zone.kind.name(), zone.node)
}

/// Its pages lie where such a zone is, and no part is larger than the whole.
fn check_sizes(zone: &ZoneState) -> Result<(), StateError> {
    let ZoneState { start_pfn, spanned, present, managed, free, .. } = *zone;
    let frames = zone.kind.frames();
    let end = start_pfn.checked_add(spanned);
    let inside = start_pfn >= frames.start && end.is_some_and(|end| end <= frames.end.min(u32::MAX.into()));
    require(inside, || name(zone), || format!("{spanned} page frames from {start_pfn} on do not lie in such a zone"))?;
    let sizes = 0 < present && present <= spanned && managed <= present;
    require(sizes, || name(zone), || format!("spanned {spanned}, present {present}, managed {managed} pages"))?;
    require(free <= managed, || name(zone), || format!("{free} free pages of {managed}"))
}

/// The recorded machine has the nodes, CPUs and memory of the scenario's.
fn same_machine(state: &State, machine: &Machine) -> Result<(), StateError> {
    let mut differ = Vec::new();
    let recorded = state.zones.iter().map(|zone| zone.node.saturating_add(1)).chain(state.nodes).max().unwrap_or(0);
    if recorded > machine.nodes.len() || state.nodes.is_some_and(|nodes| nodes != machine.nodes.len()) {
        differ.push(format!("nodes: {recorded} recorded, {} in the scenario", machine.nodes.len()));
    }
    let nodes: Vec<u32> = machine.cpus.iter().map(|cpu| cpu.node).collect();
    if !state.cpu_nodes.is_empty() && state.cpu_nodes.len() != nodes.len() {
        differ.push(format!("CPUs: {} recorded, {} in the scenario", state.cpu_nodes.len(), nodes.len()));
    } else if let Some(cpu) = state.cpu_nodes.iter().zip(&nodes).position(|(recorded, config)| recorded != config) {
        differ.push(format!("CPU {cpu}: of node {} recorded, {} in the scenario", state.cpu_nodes[cpu], nodes[cpu]));
    }
    for (number, node) in machine.nodes.iter().enumerate() {
        let zones: Vec<&ZoneState> = state.zones.iter().filter(|zone| zone.node == number).collect();
        let recorded: u64 = zones.iter().map(|zone| zone.present).sum();
        let config: u64 = node.zones.iter().map(|zone| zone.present).sum();
        if recorded.abs_diff(config) > recorded.max(config) / FIRMWARE_PART {
            let of_zone = |zone: &&ZoneState| format!("{} {}", zone.kind.name(), zone.present);
            let by_zone: Vec<String> = zones.iter().map(of_zone).collect();
            let by_zone = if by_zone.is_empty() { "no zone".into() } else { by_zone.join(", ") };
            differ.push(format!("node {number}: {recorded} pages recorded ({by_zone}), {config} in the scenario"));
        }
    }
    if differ.is_empty() { Ok(()) } else { Err(StateError::OtherMachine(differ)) }
}

/// No zone occurs twice, and none overlaps another.
fn free_by_type(zones: &[ZoneState]) -> Result<(), StateError> {
    let mut by_place: Vec<&ZoneState> = zones.iter().collect();
    by_place.sort_by_key(|zone| zone.start_pfn);
    for pair in by_place.windows(2) {
        let holds = pair[0].start_pfn + pair[0].spanned <= pair[1].start_pfn;
        require(holds, || name(pair[1]), || format!("begins in {}", name(pair[0])))?;
    }
    let mut seen = BTreeSet::new();
    zones
        .iter()
        .try_for_each(|zone| require(seen.insert((zone.node, zone.kind)), || name(zone), || "is there twice".into()))
}

/// Pages of CPUs' lists of a zone; `None`: more than can be counted.
fn listed(zone: &ZoneState) -> Option<u64> {
    match &zone.lists {
        ListState::Sum { pages, .. } => Some(*pages),
        ListState::PerCpu(lists) => {
            let mut lists = lists.iter().flat_map(|of| &of.1.lists);
            lists.try_fold(0u64, |sum, &(order, _, blocks)| sum.checked_add(blocks.checked_mul(1 << order)?))
        }
    }
}

/// The lists of all CPUs, and what these have not yet counted.
fn check_lists(zone: &ZoneState, cpus: u32) -> Result<(), StateError> {
    let place = |cpu: u32| move || format!("{}, lists of CPU {cpu}", name(zone));
    let longest = zone.managed.max(SHORTEST_HIGH);
    let mut seen = BTreeSet::new();
    match &zone.lists {
        ListState::Sum { high, .. } => {
            let most = longest * u64::from(cpus);
            require(*high <= most, || name(zone), || format!("lists of {high} pages, at most {most}"))?;
        }
        ListState::PerCpu(lists) => {
            for (cpu, of) in lists {
                require(*cpu < cpus, place(*cpu), || format!("the machine has {cpus} CPUs"))?;
                require(seen.insert(*cpu), place(*cpu), || "they are there twice".into())?;
                let orders = of.lists.iter().all(|list| list.0 <= MAX_ORDER);
                require(orders, place(*cpu), || format!("blocks above order {MAX_ORDER}"))?;
                require(of.high <= longest, place(*cpu), || format!("high {} in a zone of {longest} pages", of.high))?;
                let freed = of.freed <= longest;
                require(freed, place(*cpu), || format!("free_count {} in a zone of {longest} pages", of.freed))?;
                let doublings = of.alloc_doublings.max(of.free_doublings);
                require(doublings <= MOST_DOUBLINGS, place(*cpu), || format!("a factor of {doublings}"))?;
            }
        }
    }
    for (cpu, diff) in &zone.free_diffs {
        require(*cpu < cpus, place(*cpu), || format!("the machine has {cpus} CPUs"))?;
        require(DIFFERENTIALS.contains(diff), place(*cpu), || format!("free_diff {diff} does not fit in 8 bits"))?;
    }
    let pages = listed(zone).and_then(|pages| pages.checked_add(zone.free)).unwrap_or(u64::MAX);
    let what = || format!("{} free pages and those of CPUs' lists are more than its {}", zone.free, zone.managed);
    require(pages <= zone.managed, || name(zone), what)
}

/// Free blocks of types other than movable.
fn check_blocks(zone: &ZoneState) -> Result<(), StateError> {
    let (mut pages, mut pageblocks) = (Some(0u64), 0u64);
    for of in &zone.free_by_type {
        let place = || format!("{}, type {:?}", name(zone), of.of);
        let orders = of.blocks.len() <= MAX_ORDER as usize + 1;
        require(orders, place, || format!("free blocks of {} orders", of.blocks.len()))?;
        let blocks = (0..).zip(&of.blocks);
        pages = blocks
            .fold(pages, |sum: Option<u64>, (order, blocks)| sum?.checked_add(blocks.checked_mul(1u64 << order)?));
        pageblocks = pageblocks.saturating_add(of.pageblocks.unwrap_or(0));
    }
    let blocks = pages.is_some_and(|pages| pages <= zone.managed);
    require(blocks, || name(zone), || format!("free blocks of more than its {} pages", zone.managed))?;
    // A zone that begins or ends within a pageblock has a part of one more.
    let most = (zone.spanned >> SMALLEST_PAGEBLOCK) + 2;
    require(pageblocks <= most, || name(zone), || format!("{pageblocks} pageblocks, at most {most}"))
}

/// Pages on the LRU lists and in the batches before them.
fn check_lru(state: &State, cpus: u32) -> Result<(), StateError> {
    let Some(lru) = &state.lru else { return Ok(()) };
    let mut left: BTreeMap<(usize, ZoneKind), u64> = BTreeMap::new();
    for zone in &state.zones {
        let taken = zone.free + listed(zone).unwrap_or(0);
        left.insert((zone.node, zone.kind), zone.managed - taken.min(zone.managed));
    }
    let mut take = |place: &dyn Fn() -> String, node: u32, run: &Run| {
        let kind = ZoneKind::ALL.into_iter().find(|kind| kind.name() == run.zone);
        let zone = kind.and_then(|kind| left.get_mut(&(node as usize, kind)));
        let Some(left) = zone else {
            return require(false, place, || format!("pages of zone {}, which node {node} does not have", run.zone));
        };
        require(run.order <= MAX_ORDER, place, || format!("a folio of order {}", run.order))?;
        let pages = run.folios.saturating_mul(1 << run.order);
        let what = || format!("{} more folios of order {} than zone {} has pages for", run.folios, run.order, run.zone);
        require(pages <= *left, place, what)?;
        *left -= pages;
        Ok(())
    };
    for vec in &lru.lruvecs {
        let place = || format!("LRU lists of cgroup {} on node {}", vec.cgroup, vec.node);
        let counted = [vec.anon_cost, vec.file_cost, vec.nonresident_age, vec.refaults_anon, vec.refaults_file];
        let most = counted.into_iter().max().unwrap_or(0);
        require(most <= MOST_COUNTED, place, || format!("{most} is more than a kernel counts"))?;
        vec.lists.iter().flatten().try_for_each(|run| take(&place, vec.node, run))?;
    }
    for batch in &lru.batches {
        let place = || format!("batch {} of CPU {}", batch.name, batch.cpu);
        require(batch.cpu < cpus, place, || format!("the machine has {cpus} CPUs"))?;
        batch.runs.iter().try_for_each(|(node, run)| take(&place, *node, run))?;
    }
    Ok(())
}

/// Caches: no more objects than fit into memory.
fn check_shrinkers(state: &State, nodes: usize, pages: u64) -> Result<(), StateError> {
    let most = pages * (crate::hw::PAGE_SIZE / SMALLEST_OBJECT);
    for shrinker in &state.shrinkers {
        let place = || format!("shrinker {}", shrinker.name);
        let node = shrinker.node;
        require((node as usize) < nodes, place, || format!("node {node} of a machine of {nodes} nodes"))?;
        require(shrinker.objects <= most, place, || format!("{} objects, at most {most}", shrinker.objects))?;
        // A shrinker never defers more than twice what it had.
        let deferred = shrinker.deferred <= 2 * most;
        require(deferred, place, || format!("{} deferred, at most {}", shrinker.deferred, 2 * most))?;
        require(shrinker.batch <= 2 * most, place, || format!("a batch of {} objects", shrinker.batch))?;
    }
    Ok(())
}
