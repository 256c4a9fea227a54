//! Invariants on recordings of real kernels: equal to the page. What each recording is stands in
//! `tests/data/invariants/README.md`.

use mmtwin_analysis::Analysis;
use mmtwin_analysis::invariants::{Unknown, all};
use mmtwin_event::{CounterRow, Sink, Source, counters};
use mmtwin_trace::Outcome;
use mmtwin_trace::text::{TextInput, read_text};
use std::path::Path;

/// Reads a recording; what was enabled and never occurred is 0.
fn analysis(recording: &str, enabled: &[&str]) -> Analysis {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data").join(recording);
    let file = |ending: &str| format!("{}.{ending}", directory.display());
    let mut analysis = Analysis::default();
    let enabled = Some(enabled.iter().map(|name| name.to_string()).collect());
    analysis.start(&Source { name: recording.into(), arm: "import".into(), enabled, ..Source::default() });
    let saved = |analysis: &mut Analysis, when: &str, at: u64| {
        let text = std::fs::read_to_string(file(when)).expect("counters");
        let (source, rows) = counters::saved("vmstat", &text, &mut Vec::new()).expect("a file of counters");
        for row in &rows {
            analysis.counters(&CounterRow { source, key: &row.key, at, names: &row.names, values: &row.values });
        }
    };
    saved(&mut analysis, "before.vmstat", 0);
    let packed = std::fs::read(file("txt.gz")).expect("a trace");
    let mut text = flate2::read::GzDecoder::new(&packed[..]);
    let mut outcome = Outcome::default();
    read_text(recording, TextInput::Stream(&mut text), &mut analysis, &mut outcome, &mut |_| {}).expect("a trace");
    assert_eq!(outcome.warnings.list(), []);
    saved(&mut analysis, "after.vmstat", 1);
    analysis.finish();
    analysis
}

/// Both sides of what is known, by key.
fn known(analysis: &Analysis) -> Vec<(&'static str, i128, i128)> {
    all(analysis).into_iter().filter_map(|line| Some((line.key, line.events.ok()?, line.counters.ok()?))).collect()
}

#[test]
fn kswapd_and_direct_reclaim_agree_with_their_counters() {
    let analysis = analysis("invariants/reclaim-6.1", &["mm_vmscan_memcg_reclaim_begin"]);
    let expected = [
        ("pgscan_kswapd", 491_678, 491_678),
        ("pgsteal_kswapd", 276_787, 276_787),
        ("pgscan_direct", 15_985, 15_985),
        ("pgsteal_direct", 1805, 1805),
        ("memcg_scanned", 0, 0),
        ("memcg_reclaimed", 0, 0),
        ("pageoutrun", 323, 323),
    ];
    assert_eq!(known(&analysis), expected);
}

#[test]
fn reclaim_for_a_limit_moves_neither_the_counters_of_kswapd_nor_those_of_direct_reclaim() {
    let enabled = ["mm_vmscan_direct_reclaim_begin", "mm_vmscan_kswapd_wake"];
    let analysis = analysis("invariants/cgroup-6.18", &enabled);
    let expected = [
        ("pgscan_kswapd", 0, 0),
        ("pgsteal_kswapd", 0, 0),
        ("pgscan_direct", 0, 0),
        ("pgsteal_direct", 0, 0),
        ("memcg_scanned", 199_689, 199_689),
        ("memcg_reclaimed", 133_461, 133_461),
        ("pageoutrun", 0, 0),
    ];
    assert_eq!(known(&analysis), expected);
}

#[test]
fn what_was_not_recorded_is_not_known() {
    let mut analysis = analysis("invariants/cgroup-6.18", &[]);
    let direct = all(&analysis).into_iter().find(|line| line.key == "pgscan_direct").expect("a line");
    assert_eq!(direct.events, Err(Unknown::NotRecorded));
    assert_eq!(direct.difference(), Err(Unknown::NotRecorded));
    analysis.lost(1, Some(3), 7);
    assert!(all(&analysis).iter().all(|line| line.events == Err(Unknown::Lost)));
}

#[test]
fn hinting_faults_agree_with_the_pages_they_moved() {
    let analysis = analysis("findings/numa-6.1", &[]);
    assert_eq!(known(&analysis), [("numa_pages_migrated", 14_276, 14_276)]);
}
