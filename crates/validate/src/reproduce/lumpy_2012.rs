//! Reclaim by 3.3, 3.4-rc2 and the series of 2012 that removed lumpy reclaim: fs-mark, postmark, the mapped files of micro,
//! and stress-highalloc, the tables of its report; and what its questions that were left open come to.

use super::reclaim_test::{self, Report};
use super::{Found, Study};
use mmtwin_analysis::Analysis;
use mmtwin_event::results::{PhaseResult, Results};
use mmtwin_report::model::Table;
use mmtwin_report::tables::duration::{self, Generation};
use mmtwin_report::tables::{mmtests, waits};
use mmtwin_scenario::Scenario;
use mmtwin_scenario::published::Histogram;

const HIGHALLOC: (&str, &str) = ("stress-highalloc", include_str!("../../published/lumpy-2012/stress-highalloc.toml"));

pub(super) const STUDY: Study = Study {
    name: "lumpy-2012",
    page: Some("docs/model/series/reclaim-2012.md"),
    scenarios: &[
        HIGHALLOC,
        ("fsmark-threaded", include_str!("../../published/lumpy-2012/fsmark-threaded.toml")),
        ("postmark", include_str!("../../published/lumpy-2012/postmark.toml")),
        ("micro", include_str!("../../published/lumpy-2012/micro.toml")),
    ],
    published: include_str!("../../published/lumpy-2012/published.toml"),
    run,
    derive: |_| {},
};

/// What the series left open.
pub(super) const EXPLAINED: Study = Study {
    name: "explain-2012",
    page: None,
    scenarios: &[HIGHALLOC],
    published: include_str!("../../published/explain-2012/published.toml"),
    run,
    derive: |_| {},
};

/// Lines of the report's tables that were published.
const LINES: [&str; 47] = [
    "system",
    "user_system",
    "elapsed",
    "page_ins",
    "page_outs",
    "swap_ins",
    "swap_outs",
    "direct_pages_scanned",
    "kswapd_pages_scanned",
    "kswapd_pages_reclaimed",
    "direct_pages_reclaimed",
    "kswapd_efficiency",
    "kswapd_velocity",
    "direct_efficiency",
    "direct_velocity",
    "direct_scans",
    "page_writes",
    "page_writes_file",
    "page_writes_anon",
    "reclaim_immediate",
    "rescued_immediate",
    "slabs_scanned",
    "direct_inode_steals",
    "kswapd_inode_steals",
    "kswapd_skipped_wait",
    "thp_fault_alloc",
    "thp_collapse_alloc",
    "thp_splits",
    "thp_fault_fallback",
    "thp_collapse_fail",
    "compact_stalls",
    "compact_success",
    "compact_failures",
    "compact_moved",
    "compact_move_failure",
    "direct_writes_anon_sync",
    "direct_writes_anon_async",
    "direct_writes_file_sync",
    "direct_writes_file_async",
    "direct_writes_mixed_sync",
    "direct_writes_mixed_async",
    "kswapd_writes_anon_sync",
    "kswapd_writes_anon_async",
    "kswapd_writes_file_sync",
    "kswapd_writes_file_async",
    "kswapd_writes_mixed_sync",
    "kswapd_writes_mixed_async",
];

/// Bytes of a page, of a file of fs-mark, and of a megabyte of postmark.
const PAGE: f64 = 4096.0;
const FILE: f64 = 30.0 * 1024.0 * 1024.0;
const MEGABYTE: f64 = 1024.0 * 1024.0;
/// Transactions of postmark, and the mean size of its files, which are of 3096 bytes to 5 MiB.
const TRANSACTIONS: f64 = 15_000.0;
const MAIL: f64 = (3096.0 + 5.0 * MEGABYTE) / 2.0;

/// Runs a row.
fn run(scenario: &Scenario, _: Option<&Histogram>, rivals: &[&Scenario]) -> Result<Found, String> {
    let mut found = reclaim_test::run(scenario, rivals, &Report { tables, lines: &LINES, benchmark })?;
    reclaim_test::successes(&mut found, "rested");
    Ok(found)
}

fn tables(analysis: &Analysis) -> Vec<Table> {
    vec![
        duration::table(&analysis.source, Generation::Of2012),
        mmtests::of_2012(analysis),
        waits::congestion(analysis),
        waits::writepage(analysis),
    ]
}

/// What fs-mark and postmark print.
fn benchmark(results: &Results, found: &mut Found) {
    let of = |process: &'static str| results.phases.iter().filter(move |phase| phase.process == process);
    let files: Vec<f64> = of("fs_mark").map(|phase| bytes(phase) / FILE / seconds(phase)).collect();
    if !files.is_empty() {
        let mean = files.iter().sum::<f64>() / files.len() as f64;
        let variance = files.iter().map(|rate| (rate - mean) * (rate - mean)).sum::<f64>() / files.len() as f64;
        let least = files.iter().copied().fold(f64::INFINITY, f64::min);
        let most = files.iter().copied().fold(0.0, f64::max);
        let lines =
            [("files_min", least), ("files_mean", mean), ("files_stddev", variance.sqrt()), ("files_max", most)];
        found.values.extend(lines);
    }
    let phase = |name: &str| of("postmark").find(|phase| phase.phase == name);
    if let (Some(create), Some(transact)) = (phase("create"), phase("transactions")) {
        let all = seconds(create) + seconds(transact);
        let (written, read) = transact.accesses.iter().partition::<Vec<_>, _>(|access| access.region == "new");
        let pages = |accesses: &[&mmtwin_event::results::AccessResult]| {
            accesses.iter().map(|access| access.touches).sum::<u64>() as f64 * PAGE
        };
        found.values.extend([
            ("transactions", (TRANSACTIONS / seconds(transact)).floor()),
            ("megabytes_read", pages(&read) / MEGABYTE / all),
            ("megabytes_written", (bytes(create) + pages(&written)) / MEGABYTE / all),
            ("created_alone", (bytes(create) / MAIL / seconds(create)).floor()),
            // Half of the transactions create or delete, each as often.
            ("created_transact", (TRANSACTIONS / 4.0 / seconds(transact)).floor()),
            ("deleted_transact", (TRANSACTIONS / 4.0 / seconds(transact)).floor()),
        ]);
    }
}

/// What a phase has accessed.
fn bytes(phase: &PhaseResult) -> f64 {
    phase.accesses.iter().map(|access| access.touches).sum::<u64>() as f64 * PAGE
}

fn seconds(phase: &PhaseResult) -> f64 {
    (phase.end - phase.start) as f64 / 1e9
}
