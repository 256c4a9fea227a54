//! What a recorded machine held when its workload began, for the twin to go on from.

use crate::Failure;
use crate::reading::Analysed;
use mmtwin_analysis::Analysis;
use mmtwin_analysis::counters::Sampled;
use mmtwin_event::counters::{self, FreeBlocks, Pageset, Row};
use mmtwin_twin::alloc::{Apart, PerCpuState, ZoneKind};
use mmtwin_twin::kernel::{ListState, ZoneState};
use mmtwin_twin::page::Migratetype;
use mmtwin_twin::run::State;

/// The state when the workload began: `state.json`, or the first sample of a recording that has none. What was counted
/// later is not looked at. `None`: only some of the zones' counters were recorded.
pub fn state_of(recorded: &Analysed) -> Result<Option<State>, Failure> {
    let name = &recorded.analysis.source.name;
    let mut problems = Vec::new();
    let file = |path: &str| recorded.state.as_ref().and_then(|state| state.files.get(path)).map(String::as_str);
    let lru = file("/proc/mmtwin_lru").map(|text| counters::lru(text, &mut problems));
    let shrinkers = counters::shrinkers(file("/proc/mmtwin_shrinkers").unwrap_or(""), &mut problems);
    let cpus = recorded.state.as_ref().map_or(Vec::new(), |state| state.cpus.clone());
    let (rows, pagesets, at) = match &recorded.state {
        Some(state) => {
            let text = |path: &str| state.files.get(path).map_or("", String::as_str);
            let rows = counters::zoneinfo(text("/proc/zoneinfo"), &mut problems);
            (rows, counters::pagesets(text("/proc/mmtwin_pagesets"), &mut problems), state.at)
        }
        None => {
            let (rows, at) = first_sample(&recorded.analysis);
            (rows, Vec::new(), at)
        }
    };
    let blocks = counters::free_blocks(file("/proc/pagetypeinfo").unwrap_or(""));
    let zones: Vec<ZoneState> = rows.iter().filter_map(|row| zone_state(row, &pagesets, &blocks)).collect();
    match problems.first() {
        Some(problem) => Err(Failure::Error(format!("{name}: state.json: line {}: {}", problem.line, problem.message))),
        None => Ok((!zones.is_empty()).then_some(State { at, zones, lru, shrinkers, cpus })),
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

/// Node and kind of a row of a zone.
fn zone(row: &Row) -> Option<(usize, ZoneKind)> {
    let (node, name) = row.key.split_once('/')?;
    Some((node.parse().ok()?, ZoneKind::ALL.into_iter().find(|kind| kind.name() == name)?))
}

/// A zone's state; `None` if the row lacks something.
fn zone_state(row: &Row, pagesets: &[Pageset], blocks: &[FreeBlocks]) -> Option<ZoneState> {
    let (node, kind) = zone(row)?;
    let here = |set: &&Pageset| set.node as usize == node && set.zone == kind.name();
    let sets = || pagesets.iter().filter(here);
    // A zone that no CPU has used yet has no lists.
    let sum = |name: &str| row.value(name).unwrap_or(0);
    Some(ZoneState {
        node,
        kind,
        start_pfn: row.value("start_pfn")?,
        spanned: row.value("spanned")?,
        present: row.value("present")?,
        managed: row.value("managed")?,
        free: row.value("free")?,
        apart: apart(node, kind, blocks),
        free_diffs: sets().map(|set| (set.cpu, set.free_diff)).collect(),
        lists: match sets().next() {
            None => ListState::Sum { pages: sum("pagesets_count"), high: sum("pagesets_high") },
            Some(_) => ListState::PerCpu(sets().map(|set| (set.cpu, lists(set))).collect()),
        },
    })
}

/// Free blocks of a zone that are not for pages that can be moved.
fn apart(node: usize, kind: ZoneKind, blocks: &[FreeBlocks]) -> Vec<Apart> {
    let here = blocks.iter().filter(|of| of.node as usize == node && of.zone == kind.name());
    let typed = here.filter_map(|of| match of.of.as_str() {
        "Unmovable" => Some((Migratetype::Unmovable, of)),
        "Reclaimable" => Some((Migratetype::Reclaimable, of)),
        _ => None,
    });
    typed.map(|(of, said)| Apart { of, blocks: said.blocks.clone(), pageblocks: said.pageblocks }).collect()
}

fn lists(set: &Pageset) -> PerCpuState {
    let list = |&(order, of, blocks): &(u32, usize, u64)| Some((order, *Migratetype::ALL.get(of)?, blocks));
    PerCpuState {
        high: set.high,
        alloc_doublings: set.alloc_factor,
        free_doublings: set.free_factor,
        freed: set.free_count,
        lists: set.lists.iter().filter_map(list).collect(),
    }
}
