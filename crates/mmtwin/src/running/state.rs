//! What a recorded machine held when its workload began, for the twin to go on from.

use crate::Failure;
use crate::reading::Analysed;
use mmtwin_analysis::Analysis;
use mmtwin_event::counters::{self, Pageset, Row};
use mmtwin_scenario::Scenario;
use mmtwin_twin::alloc::{PerCpuState, ZoneKind};
use mmtwin_twin::kernel::ZoneState;
use mmtwin_twin::page::Migratetype;

/// Zones of a machine and what they held.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    /// Rows of zones in `/proc/zoneinfo`.
    rows: Vec<Row>,
    /// All per-CPU lists; empty where the lab's module was not there.
    pagesets: Vec<Pageset>,
}

/// The state when the workload began: `state.json`, or the first sample of a recording that is not a scenario's. What
/// was counted later is not looked at.
pub fn state_of(recorded: &Analysed) -> Result<State, Failure> {
    let name = &recorded.analysis.source.name;
    let mut problems = Vec::new();
    let (mut rows, pagesets) = match &recorded.state {
        Some(state) => {
            let text = |path: &str| state.files.get(path).map_or("", String::as_str);
            let rows = counters::zoneinfo(text("/proc/zoneinfo"), &mut problems);
            (rows, counters::pagesets(text("/proc/mmtwin_pagesets"), &mut problems))
        }
        None => (first_sample(&recorded.analysis), Vec::new()),
    };
    rows.retain(|row| zone(row).is_some());
    match problems.first() {
        Some(problem) => Err(Failure::Error(format!("{name}: state.json: line {}: {}", problem.line, problem.message))),
        None if rows.is_empty() => Err(Failure::Error(format!("{name}: no zoneinfo to begin from"))),
        None => Ok(State { rows, pagesets }),
    }
}

fn first_sample(analysis: &Analysis) -> Vec<Row> {
    let counters = &analysis.counters;
    let row = |key: &str| {
        let sampled = counters.sampled("zoneinfo", key)?;
        Some(Row { key: key.into(), names: sampled.names.clone(), values: sampled.first.clone() })
    };
    counters.keys("zoneinfo").into_iter().filter_map(row).collect()
}

/// Node and kind of a row of a zone.
fn zone(row: &Row) -> Option<(usize, ZoneKind)> {
    let (node, name) = row.key.split_once('/')?;
    Some((node.parse().ok()?, ZoneKind::ALL.into_iter().find(|kind| kind.name() == name)?))
}

impl State {
    /// The scenario on a machine whose zones are as large as they were: a kernel keeps some of a node's memory to
    /// itself, and how much depends on its release.
    pub fn on_its_machine(&self, scenario: &Scenario) -> Scenario {
        let mut scenario = scenario.clone();
        for row in &self.rows {
            let Some((node, kind)) = zone(row) else { continue };
            let zones = scenario.machine.nodes.get_mut(node).map_or(&mut [][..], |node| &mut node.zones[..]);
            // Both kinds are in the kernel's order.
            let Some(zone) = zones.iter_mut().find(|zone| zone.kind as usize == kind as usize) else { continue };
            let of = |name: &str| row.value(name).filter(|value| *value > 0);
            if let (Some(start), Some(spanned), Some(present), Some(managed)) =
                (of("start_pfn"), of("spanned"), of("present"), of("managed"))
            {
                (zone.start_pfn, zone.spanned, zone.present, zone.managed) = (start, spanned, present, managed);
            }
        }
        scenario
    }

    /// What the twin's zones are to hold.
    pub fn zones(&self) -> Vec<ZoneState> {
        let of = |row: &Row| {
            let (node, kind) = zone(row)?;
            let here = |set: &&Pageset| set.node as usize == node && set.zone == kind.name();
            let sets = || self.pagesets.iter().filter(here);
            Some(ZoneState {
                node,
                kind,
                free: row.value("free")?,
                free_diffs: sets().map(|set| (set.cpu, set.free_diff)).collect(),
                lists: sets().map(|set| (set.cpu, lists(set))).collect(),
            })
        };
        self.rows.iter().filter_map(of).collect()
    }
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
