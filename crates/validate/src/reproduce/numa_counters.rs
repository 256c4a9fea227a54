//! The NUMA counters of the page allocator by threshold (2017): page_bench03.

use super::Found;
use super::decisions::Count;
use mmtwin_scenario::Scenario;
use mmtwin_scenario::published::Histogram;
use mmtwin_twin::engine::{Options, State};
use std::collections::BTreeMap;

/// Runs the page loop.
pub(super) fn run(scenario: &Scenario, _: Option<&Histogram>, _: &[&Scenario]) -> Result<Found, String> {
    let options =
        Options { state: State::default(), explicit: false, trace: None, events: Vec::new(), progress: &mut |_| {} };
    let mut count = Count::default();
    let ran = mmtwin_twin::engine::run(scenario, options, &mut count).map_err(|error| error.to_string())?;
    if let Some(halted) = ran.halted {
        return Err(halted.to_string());
    }
    let action = ran.results.phases.iter().flat_map(|phase| &phase.actions).next();
    let (Some(nanoseconds), Some(action)) = (action.and_then(|action| action.mean), action) else {
        return Err("the scenario has no page-loop".into());
    };
    let cycles = nanoseconds * scenario.machine.cpu.frequency.0 as f64 / 1e9;
    let throughput = action.more.get("operations_per_second").copied().unwrap_or(0.0);
    Ok(Found {
        values: BTreeMap::from([("cycles", cycles), ("throughput", throughput)]),
        decisions: count.decisions(),
        ..Found::default()
    })
}
