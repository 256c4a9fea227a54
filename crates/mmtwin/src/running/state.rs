//! What a recorded machine held when its workload began, for the twin to continue from.

use crate::{Analysed, Error};
use mmtwin_analysis::Analysis;
use mmtwin_analysis::counters::Sampled;
use mmtwin_event::counters::{FreeBlocks, Pageset, Problem, Row};
use mmtwin_event::{counters, manifest};
use mmtwin_twin::engine::State;
use mmtwin_twin::frame::{Migratetype, ZoneKind};
use mmtwin_twin::mm::kernel::{ListState, ZoneState};
use mmtwin_twin::page_alloc::{FreeBlocksByType, PerCpuState};

/// Files of a recorded state that are read.
pub const STATE_FILES: [&str; 6] = [
    "/proc/iomem",
    "/proc/zoneinfo",
    "/proc/mmtwin_lru",
    "/proc/mmtwin_pagesets",
    "/proc/mmtwin_shrinkers",
    "/proc/pagetypeinfo",
];

/// What has to be known of a zone.
const SIZES: [&str; 5] = ["start_pfn", "spanned", "present", "managed", "free"];

/// The state when the workload began: `state.json`, or the first sample of a recording that has none. What was counted
/// later is not looked at. `None`: of no zone there are all sizes.
///
/// # Errors
/// If a file of the state cannot be read, with its line, or lacks something.
pub fn state_of(recorded: &Analysed) -> Result<Option<State>, Error> {
    let source = &recorded.analysis.source;
    let read = match &recorded.state {
        Some(state) => of_files(state),
        None => {
            let (mut rows, at) = first_sample(&recorded.analysis);
            // Whoever recorded may have wanted other counters.
            rows.retain(|row| SIZES.iter().all(|name| row.value(name).is_some()));
            zones(&rows, &[], &[]).map(|zones| State { at, zones, ..State::default() })
        }
    };
    let state = read.map_err(|message| Error::State { recording: source.name.clone(), message })?;
    let nodes = Some(source.nodes as usize).filter(|nodes| *nodes > 0);
    Ok((!state.zones.is_empty()).then(|| State { nodes, cpu_nodes: source.cpu_nodes.clone(), ..state }))
}

/// The state of `state.json`, or what is wrong with it.
fn of_files(state: &manifest::State) -> Result<State, String> {
    let text = |path: &str| {
        debug_assert!(STATE_FILES.contains(&path), "{path}");
        state.files.get(path).map_or("", String::as_str)
    };
    let zoneinfo = read(text, "/proc/zoneinfo", counters::zoneinfo)?;
    let pagesets = read(text, "/proc/mmtwin_pagesets", counters::pagesets)?;
    let blocks = read(text, "/proc/pagetypeinfo", counters::free_blocks)?;
    let lru = read(text, "/proc/mmtwin_lru", counters::lru)?;
    let shrinkers = read(text, "/proc/mmtwin_shrinkers", counters::shrinkers)?;
    Ok(State {
        at: state.at,
        zones: zones(&zoneinfo, &pagesets, &blocks).map_err(|what| format!("state.json: {what}"))?,
        lru: state.files.contains_key("/proc/mmtwin_lru").then_some(lru),
        shrinkers,
        cpus: state.cpus.clone(),
        began: state.began.clone(),
        iomem: read(text, "/proc/iomem", counters::iomem)?,
        ..State::default()
    })
}

/// Reads one file of a state.
fn read<'t, T>(
    text: impl Fn(&str) -> &'t str,
    path: &str,
    parse: impl Fn(&'t str, &mut Vec<Problem>) -> T,
) -> Result<T, String> {
    let mut problems = Vec::new();
    let parsed = parse(text(path), &mut problems);
    match problems.first() {
        Some(problem) => Err(format!("state.json: {path}: line {}: {}", problem.line, problem.message)),
        None => Ok(parsed),
    }
}

/// Rows of zoneinfo and their time.
fn first_sample(analysis: &Analysis) -> (Vec<Row>, u64) {
    let sampled = |key: &str| analysis.counters.sampled("zoneinfo", key).map(|sampled| (key.to_string(), sampled));
    let all: Vec<_> = analysis.counters.keys("zoneinfo").into_iter().filter_map(sampled).collect();
    let at = all.first().map_or(0, |(_, sampled)| sampled.first_at);
    let row =
        |(key, sampled): (String, &Sampled)| Row { key, names: sampled.names.clone(), values: sampled.first.clone() };
    (all.into_iter().map(row).collect(), at)
}

/// The zones that have memory, with the lists of their CPUs and their free blocks by type.
fn zones(rows: &[Row], pagesets: &[Pageset], blocks: &[FreeBlocks]) -> Result<Vec<ZoneState>, String> {
    let mut zones = Vec::new();
    // Rows without a zone are a node's own.
    for (row, (node, zone)) in rows.iter().filter_map(|row| Some((row, row.key.split_once('/')?))) {
        if row.value("present") == Some(0) {
            continue;
        }
        let name = || format!("zone {zone} of node {node}");
        let number = node.parse().map_err(|_| format!("invalid node `{node}` of {}", name()))?;
        let kind = ZoneKind::ALL.into_iter().find(|kind| kind.name() == zone);
        let kind = kind.ok_or_else(|| format!("{}: this zone type is not modelled", name()))?;
        let value =
            |what: &str| row.value(what).ok_or_else(|| format!("{}: {what} is missing or not a number", name()));
        zones.push(zone_state((number, kind), row, value, pagesets, blocks)?);
    }
    let known = |node: u32, name: &str| zones.iter().any(|zone| zone.node == node as usize && zone.kind.name() == name);
    let lists = pagesets.iter().filter(|set| !set.lists.is_empty()).map(|set| (set.node, &set.zone));
    let free = blocks.iter().filter(|of| of.blocks.iter().any(|count| *count > 0)).map(|of| (of.node, &of.zone));
    match lists.chain(free).find(|(node, zone)| !known(*node, zone)) {
        Some((node, zone)) => Err(format!("pages of zone {zone} of node {node}, which is not in zoneinfo")),
        None => Ok(zones),
    }
}

/// A zone's state.
fn zone_state(
    (node, kind): (usize, ZoneKind),
    row: &Row,
    value: impl Fn(&str) -> Result<u64, String>,
    pagesets: &[Pageset],
    blocks: &[FreeBlocks],
) -> Result<ZoneState, String> {
    let here = |set: &&Pageset| set.node as usize == node && set.zone == kind.name();
    let sets = || pagesets.iter().filter(here);
    // A zone that no CPU has used yet has no lists.
    let sum = |name: &str| if row.names.iter().any(|at| at == name) { value(name) } else { Ok(0) };
    Ok(ZoneState {
        node,
        kind,
        start_pfn: value("start_pfn")?,
        spanned: value("spanned")?,
        present: value("present")?,
        managed: value("managed")?,
        free: value("free")?,
        free_by_type: free_by_type(node, kind, blocks),
        free_diffs: sets().map(|set| (set.cpu, set.free_diff)).collect(),
        lists: match sets().next() {
            None => ListState::Sum { pages: sum("pagesets_count")?, high: sum("pagesets_high")? },
            Some(_) => ListState::PerCpu(sets().map(|set| Ok((set.cpu, lists(set)?))).collect::<Result<_, String>>()?),
        },
    })
}

/// Free blocks of a zone that are not for pages that can be moved.
fn free_by_type(node: usize, kind: ZoneKind, blocks: &[FreeBlocks]) -> Vec<FreeBlocksByType> {
    let here = blocks.iter().filter(|of| of.node as usize == node && of.zone == kind.name());
    let typed = here.filter_map(|of| match of.of.as_str() {
        "Unmovable" => Some((Migratetype::Unmovable, of)),
        "Reclaimable" => Some((Migratetype::Reclaimable, of)),
        _ => None,
    });
    typed.map(|(of, said)| FreeBlocksByType { of, blocks: said.blocks.clone(), pageblocks: said.pageblocks }).collect()
}

/// The lists of a CPU. Only pages of the types that the page allocator knows are kept by CPU.
fn lists(set: &Pageset) -> Result<PerCpuState, String> {
    let list = |&(order, of, blocks): &(u32, usize, u64)| {
        let known = Migratetype::ALL.get(of).map(|of| (order, *of, blocks));
        known.ok_or_else(|| {
            format!("pagesets of CPU {} in zone {}: migratetype {of} is not modelled", set.cpu, set.zone)
        })
    };
    Ok(PerCpuState {
        high: set.high,
        alloc_doublings: set.alloc_factor,
        free_doublings: set.free_factor,
        freed: set.free_count,
        lists: set.lists.iter().map(list).collect::<Result<_, String>>()?,
    })
}
