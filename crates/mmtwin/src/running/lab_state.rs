//! Whether a twin's run began with the memory that the lab's kernel had when its workload began.

use super::state::state_of;
use crate::Analysed;
use mmtwin_analysis::Analysis;

/// Free memory that differs by less than this share is that of the same state.
const SAME: f64 = 0.01;

/// What must be said where runs of a twin stand beside the lab's of the same scenario; `None`: they do not, or the lab's
/// recording has no state.
pub fn state_of_the_lab(columns: &[(&str, &[Analysed])]) -> Option<String> {
    let first = |arm: &str| {
        columns
            .iter()
            .filter_map(|(_, runs)| runs.first())
            .find(|run| run.analysis.source.arm == arm && run.resolved.is_some())
    };
    let (lab, twin) = (first("lab")?, first("twin")?);
    let state = state_of(lab).ok().flatten()?;
    let had = state.zones.iter().map(|zone| zone.free).sum::<u64>() as f64;
    let has = free_at_first(&twin.analysis)? as f64;
    if (had - has).abs() <= SAME * had {
        return Some("The twin began with the free memory that the lab's kernel had.".into());
    }
    let mib = |pages: f64| format!("{:.0} MiB", pages * 4096.0 / f64::from(1 << 20));
    Some(format!(
        "The twin began with {} free, the lab's kernel with {}: `mmtwin run SCENARIO --from-state {}` begins where the lab \
         did.",
        mib(has),
        mib(had),
        lab.analysis.source.name
    ))
}

/// Free pages at the first sample.
fn free_at_first(analysis: &Analysis) -> Option<u64> {
    let sampled = analysis.counters.sampled("vmstat", "")?;
    let at = sampled.names.iter().position(|name| name == "nr_free_pages")?;
    sampled.first.get(at).copied().flatten()
}
