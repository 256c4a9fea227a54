//! The NUMA counters of the page allocator by threshold (2017): page_bench03.

use super::Found;
use mmtwin_scenario::Scenario;
use mmtwin_scenario::published::Histogram;
use std::collections::BTreeMap;

/// Runs the page loop.
pub(super) fn run(scenario: &Scenario, _: Option<&Histogram>) -> Result<Found, String> {
    let result = mmtwin_twin::run::page_loop(scenario).map_err(|error| error.to_string())?;
    let values = BTreeMap::from([("cycles", result.cycles()), ("throughput", result.throughput())]);
    Ok(Found { values, ..Found::default() })
}
