//! Reclaim by 2.6.36 and the series of 2010: micro-mapped-file-stream and stress-highalloc, the tables of its reports.

use super::reclaim_test::{self, Report};
use super::{Found, Study};
use mmtwin_analysis::Analysis;
use mmtwin_report::model::{Gain, Table};
use mmtwin_report::tables::duration::{self, Generation};
use mmtwin_report::tables::{vmscan, vmstat_gain, waits};
use mmtwin_scenario::Scenario;
use mmtwin_scenario::published::Histogram;

pub(super) const STUDY: Study = Study {
    name: "vmscan-2010",
    page: Some("docs/model/series/reclaim-2010.md"),
    scenarios: &[
        ("micro-mapped-file-stream", include_str!("../../published/vmscan-2010/micro-mapped-file-stream.toml")),
        ("stress-highalloc", include_str!("../../published/vmscan-2010/stress-highalloc.toml")),
    ],
    published: include_str!("../../published/vmscan-2010/published.toml"),
    run,
    derive: |_| {},
};

/// Lines of the report's tables that were published.
const LINES: [&str; 36] = [
    "direct_reclaims",
    "direct_pages_scanned",
    "direct_pages_reclaimed",
    "direct_write_file_async",
    "direct_write_anon_async",
    "direct_write_file_sync",
    "direct_write_anon_sync",
    "wake_kswapd_requests",
    "kswapd_wakeups",
    "kswapd_pages_scanned",
    "kswapd_pages_reclaimed",
    "kswapd_write_file_async",
    "kswapd_write_anon_async",
    "kswapd_write_file_sync",
    "kswapd_write_anon_sync",
    "stalled_seconds",
    "awake_seconds",
    "total_scanned",
    "total_reclaimed",
    "scanned_reclaimed",
    "scanned_written",
    "file_scanned_written",
    "stalled_share",
    "awake_share",
    "user_system",
    "elapsed",
    "pgalloc_dma",
    "pgalloc_dma32",
    "pgsteal_dma",
    "pgsteal_dma32",
    "pgscan_kswapd_dma",
    "pgscan_kswapd_dma32",
    "pgscan_direct_dma",
    "pgscan_direct_dma32",
    "pageoutrun",
    "allocstall",
];

/// Runs a row.
fn run(scenario: &Scenario, _: Option<&Histogram>, rivals: &[&Scenario]) -> Result<Found, String> {
    let mut found = reclaim_test::run(scenario, rivals, &Report { tables, lines: &LINES, benchmark: |_, _| {} })?;
    reclaim_test::successes(&mut found, "at_rest");
    Ok(found)
}

fn tables(analysis: &Analysis) -> Vec<Table> {
    vec![
        vmscan::table(analysis),
        waits::congestion(analysis),
        duration::table(&analysis.source, Generation::Of2010),
        vmstat_gain::table(analysis, Gain::RelativeToNew),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// A smaller file in what is left of a fuller machine.
    fn found(release: &str) -> Found {
        let sets = [
            format!("kernel.release={release}"),
            "process.others.phase.start.action.#0.count=690_000".into(),
            "process.stream.region.file.size=1 GiB".into(),
            "process.stream.phase.stream.access.#0.count=262_144".into(),
        ];
        let (name, text) = STUDY.scenarios[0];
        let scenario = mmtwin_scenario::parse(name, text, Path::new(""), &sets).unwrap_or_else(|e| panic!("{e}"));
        run(&scenario, None, &[]).unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn tables_of_a_run_agree_with_each_other() {
        let (before, after) = (found("2.6.36"), found("2.6.37"));
        for of in [&before, &after].map(|found| &found.values) {
            let sum = |keys: &[&str]| keys.iter().map(|key| of[key]).sum::<f64>();
            assert_eq!(of["kswapd_pages_scanned"], sum(&["pgscan_kswapd_dma", "pgscan_kswapd_dma32"]));
            assert_eq!(of["direct_pages_scanned"], sum(&["pgscan_direct_dma", "pgscan_direct_dma32"]));
            assert_eq!(of["total_reclaimed"], sum(&["pgsteal_dma", "pgsteal_dma32"]));
            assert_eq!(of["direct_reclaims"], of["allocstall"]);
            // What is mapped and was used is looked at twice, and some of it stays.
            assert!((35.0..=50.0).contains(&of["scanned_reclaimed"]), "{of:?}");
            assert!(of["wake_kswapd_requests"] > 100.0 * of["kswapd_wakeups"], "{of:?}");
        }
        let (before, after) = (before.values, after.values);
        assert!(before["direct_congest_time"] > 0.0 && before["direct_conditional_number"] == 0.0, "{before:?}");
        let waited = before["elapsed"] - before["user_system"];
        // A wait of so many ticks begins amid one.
        let short = before["direct_congest_time"] - waited * 1000.0;
        assert!((0.0..=4.0 * before["direct_congest_number"]).contains(&short), "{before:?}");
        assert!(after["direct_congest_number"] == 0.0 && after["direct_conditional_number"] > 0.0, "{after:?}");
        assert!(after["direct_pages_scanned"] > before["direct_pages_scanned"] && after["elapsed"] < before["elapsed"]);
    }
}
