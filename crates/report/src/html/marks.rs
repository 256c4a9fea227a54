//! Where on the time axis a finding is marked: at its longest wait, at a kill, or where its chart is highest.

use super::chart::Charts;
use super::number::seconds;
use crate::model::Finding;
use crate::screen::Subject;
use mmtwin_analysis::explain::waiting::{Cause, Wait};
use mmtwin_analysis::oom::Victim;
use mmtwin_analysis::series::Series;
use serde::Serialize;

/// A mark of a finding.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Mark {
    /// Key of the finding.
    key: String,
    /// Seconds since the begin of the recording.
    at: f64,
    /// What happened then.
    what: String,
}

/// What tells when a finding was worst.
enum Place {
    /// The kills.
    Kills,
    /// The purge of most areas.
    Purge,
    /// The longest wait for one of these.
    Waits(&'static [Cause]),
    /// The largest value of a chart.
    Chart(&'static str),
}

/// Where to look, the best first.
fn places(key: &str) -> &'static [Place] {
    use Cause::*;
    use Place::*;
    match key {
        "oom_kill" => &[Kills],
        "cgroup_limit" | "cgroup_near_limit" => &[Waits(&[Cgroup]), Chart("cgroup-psi"), Chart("psi-memory")],
        "direct_reclaim" | "kswapd_lags" | "node_imbalance" => &[Waits(&[Direct]), Chart("reclaimed")],
        "high_order_reclaim" | "scan_efficiency" | "slab_dominates" => {
            &[Waits(&[Direct, Cgroup, Node]), Chart("reclaimed")]
        }
        "writeback_throttling" => &[Waits(&[Throttled, Direct, Cgroup]), Chart("dirty")],
        "dirty_throttling" => &[Waits(&[Dirty]), Chart("dirty")],
        "thp_stalls" | "proactive_compaction" => &[Waits(&[Compaction]), Chart("compaction")],
        "refault_thrash" | "refault_transition" | "refault_streaming" | "refault_cold_start" => &[Chart("refaults")],
        "swap_storm" => &[Chart("swap")],
        "kswapd_never_sleeps" => &[Chart("kswapd"), Chart("reclaimed")],
        "numa_locality" => &[Chart("numa-faults")],
        "numa_convergence" | "numa_migration_failures" => &[Chart("migrations")],
        "vmalloc_purge" => &[Purge, Chart("vmalloc")],
        _ => &[],
    }
}

/// Marks of findings, in their order. `start` is the begin of the recording in nanoseconds of the trace clock.
pub(super) fn all(subject: &Subject<'_>, charts: &Charts, series: &Series, start: u64) -> Vec<Mark> {
    let (waits, victims) = (series.waits.kept(), subject.analysis.oom.victims.as_slice());
    let seen = Seen { charts, series, waits: &waits, victims, start };
    let of_finding = |finding: &Finding| {
        let mut found_at = places(&finding.key).iter().map(|place| moments(place, &seen));
        let moments = found_at.find(|moments| !moments.is_empty()).unwrap_or_default();
        moments.into_iter().map(|(at, what)| Mark { key: finding.key.clone(), at, what }).collect::<Vec<_>>()
    };
    subject.report.findings.iter().flat_map(of_finding).collect()
}

/// Where to look for moments.
struct Seen<'a> {
    charts: &'a Charts,
    series: &'a Series,
    waits: &'a [&'a Wait],
    victims: &'a [Victim],
    start: u64,
}

/// Of a victim of the OOM killer.
pub(super) fn killed(victim: &Victim) -> String {
    format!("killed by the OOM killer: {}-{}", victim.comm.as_deref().unwrap_or("<...>"), victim.pid)
}

/// Seconds and what happened.
fn moments(place: &Place, seen: &Seen<'_>) -> Vec<(f64, String)> {
    let Seen { charts, series, waits, victims, start } = seen;
    let since = |at: u64| seconds(at.saturating_sub(*start));
    match place {
        Place::Kills => victims.iter().map(|victim| (since(victim.at), killed(victim))).collect(),
        Place::Purge => {
            let purge = series.purge_peak.filter(|(_, areas)| *areas > 0);
            purge.map(|(at, areas)| (since(at), format!("{areas} areas are purged, the most"))).into_iter().collect()
        }
        Place::Waits(causes) => {
            let of_causes = waits.iter().filter(|wait| causes.contains(&wait.cause));
            let longest = of_causes.max_by_key(|wait| (wait.length(), std::cmp::Reverse(wait.from)));
            longest.map(|wait| (since(wait.from), format!("the longest wait: {}", wait.who))).into_iter().collect()
        }
        Place::Chart(id) => {
            let chart = charts.charts.iter().find(|chart| chart.id == *id);
            let lines = chart.into_iter().flat_map(|chart| &chart.lines).filter(|line| !line.limit);
            let peaks = lines.filter_map(|line| line.peak(&charts.axes)).filter(|(_, value)| *value > 0.0);
            let most = peaks.reduce(|most, next| if next.1 > most.1 { next } else { most });
            let title = chart.map_or("", |chart| chart.title.as_str());
            most.map(|(at, _)| (*at, format!("most: {title}"))).into_iter().collect()
        }
    }
}
