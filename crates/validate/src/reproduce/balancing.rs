//! Runs of workloads under NUMA balancing: what they achieve, what they cost, what the kernel counts.

use super::decisions::Count;
use super::{Balancing, Found};
use mmtwin_event::results::{BalancingTime, PhaseResult};
use mmtwin_report::statistics;
use mmtwin_scenario::Scenario;
use mmtwin_scenario::published::Histogram;
use mmtwin_twin::engine::{Options, State, run};
use std::collections::BTreeMap;

/// Runs a scenario. The rate is that of the first access in the last phase of each process, the time that from the
/// first phase behind the populating one to the end. Operations of a benchmark (`bops`) are accesses up to a factor.
pub(super) fn measure(scenario: &Scenario, _: Option<&Histogram>, _: &[&Scenario]) -> Result<Found, String> {
    let mut count = Count::default();
    let options =
        Options { state: State::default(), explicit: false, trace: None, events: Vec::new(), progress: &mut |_| {} };
    let ran = run(scenario, options, &mut count).map_err(|error| error.to_string())?;
    if let Some(halted) = &ran.halted {
        return Ok(Found { halted: Some(halted.to_string()), ..Found::default() });
    }
    let phases = &ran.results.phases;
    let last = phases.last().map_or("", |phase| phase.phase.as_str());
    let rate = |phase: &PhaseResult| {
        let seconds = (phase.end - phase.start) as f64 / 1e9;
        phase.accesses.first().map_or(0.0, |access| access.touches as f64 / seconds)
    };
    let work = || phases.iter().filter(|phase| phase.phase != "populate");
    let begun = work().map(|phase| phase.start).min().unwrap_or(0);
    let mut balancing = Balancing::default();
    for phase in phases {
        balancing.time.add(&phase.balancing.unwrap_or_default());
        let threads = scenario.processes.iter().find(|process| process.name == phase.process);
        balancing.of += (phase.end - phase.start) * threads.map_or(0, |process| u64::from(process.threads));
    }
    let touches = work().filter(|phase| phase.phase == last).map(rate).sum();
    let mut values = BTreeMap::from([
        ("rate", touches),
        ("bops", touches),
        ("time", (ran.end.saturating_sub(begun)) as f64 / 1e9),
        ("system", system(&balancing)),
    ]);
    let decisions = count.decisions();
    let counters = ["numa_pte_updates", "numa_huge_pte_updates", "numa_hint_faults", "numa_hint_faults_local"];
    for name in counters.into_iter().chain(["numa_pages_migrated", "numa_local"]) {
        values.insert(name, decisions.counters.get(name).copied().unwrap_or(0) as f64);
    }
    if let Some(nodes) = phases.iter().rev().find_map(|phase| phase.active_nodes) {
        values.insert("active_nodes", nodes as f64);
    }
    Ok(Found { values, balancing: Some(balancing), decisions, ..Found::default() })
}

/// The parts' medians over runs.
pub(super) fn median(runs: &[Found]) -> Option<Balancing> {
    let runs: Vec<Balancing> = runs.iter().filter_map(|run| run.balancing).collect();
    let of = |part: fn(&Balancing) -> u64| {
        let mut values: Vec<f64> = runs.iter().map(|run| part(run) as f64).collect();
        values.sort_by(f64::total_cmp);
        statistics::median(&values).map(|median| median as u64)
    };
    let time = BalancingTime {
        scan: of(|run| run.time.scan)?,
        fault: of(|run| run.time.fault)?,
        migrate: of(|run| run.time.migrate)?,
    };
    Some(Balancing { time, of: of(|run| run.of)? })
}

/// Seconds of NUMA balancing.
fn system(of: &Balancing) -> f64 {
    (of.time.scan + of.time.fault + of.time.migrate) as f64 / 1e9
}

/// Shares of counters that are sums of runs as well.
pub(super) fn derive(found: &mut Found) {
    let of = |name| found.values.get(name).copied().unwrap_or(0.0);
    let (faults, huge) = (of("numa_hint_faults"), of("numa_huge_pte_updates"));
    let marks = of("numa_pte_updates") - 512.0 * huge + huge;
    let local = 100.0 * of("numa_hint_faults_local") / faults.max(1.0);
    found.values.insert("local_percent", local);
    if marks > 0.0 {
        found.values.insert("faults_per_mark", faults / marks);
    }
}
