//! Every rule on recordings of real kernels: where it must find something, and where it must not. What each recording
//! is stands in `tests/data/findings/README.md`.

use mmtwin_analysis::Analysis;
use mmtwin_analysis::findings::all;
use mmtwin_event::{CounterRow, Event, Sink, Source, counters};
use mmtwin_trace::Outcome;
use mmtwin_trace::text::{TextInput, read_text};
use std::path::{Path, PathBuf};

fn data(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/findings").join(file)
}

/// Feeds the counters saved before or after a recording, if there are any.
fn saved(analysis: &mut Analysis, recording: &str, when: &str, at: u64) {
    for file in ["vmstat", "numastat"] {
        let Ok(text) = std::fs::read_to_string(data(&format!("{recording}.{when}.{file}"))) else { continue };
        let mut problems = Vec::new();
        let (source, rows) = counters::saved(file, &text, &mut problems).expect("a file of counters");
        assert_eq!(problems, [], "{recording}.{when}.{file}");
        for row in &rows {
            analysis.counters(&CounterRow { source, key: &row.key, at, names: &row.names, values: &row.values });
        }
    }
}

fn analysis(recording: &str) -> Analysis {
    let mut analysis = Analysis::default();
    analysis.start(&Source { name: recording.into(), ..Source::default() });
    saved(&mut analysis, recording, "before", 0);
    let mut outcome = Outcome::default();
    let packed = std::fs::read(data(&format!("{recording}.txt.gz"))).unwrap_or_else(|e| panic!("{recording}: {e}"));
    let mut text = flate2::read::GzDecoder::new(&packed[..]);
    read_text(recording, TextInput::Stream(&mut text), &mut analysis, &mut outcome, &mut |_| {}).expect("a trace");
    // Their order, as it is not known when they were saved.
    saved(&mut analysis, recording, "after", 1);
    analysis.finish();
    analysis
}

/// Checks which rules find something; those in neither list may.
fn check(recording: &str, must: &[&str], must_not: &[&str]) {
    let found = all(&analysis(recording));
    let keys: Vec<&str> = found.iter().map(|f| f.key).collect();
    for key in must {
        assert!(keys.contains(key), "{recording}: {key} is missing in {keys:?}");
    }
    let wrong: Vec<_> = found.iter().filter(|f| must_not.contains(&f.key)).map(|f| (f.key, &f.sentence)).collect();
    assert!(wrong.is_empty(), "{recording}: {wrong:?}");
}

#[test]
fn cgroup_that_reads_more_than_its_limit() {
    let must_not =
        ["scan_efficiency", "direct_reclaim", "slab_dominates", "kswapd_never_sleeps", "lost_events", "refault_thrash"];
    check("cgroup-6.18", &["cgroup_limit", "refault_streaming"], &must_not);
    let sentence = "a cgroup hit its limit 355 times: 115 k pages scanned for 88,589 freed (efficiency 77 %), \
                    total stall time 14 ms, 149 k refaults";
    assert!(all(&analysis("cgroup-6.18")).iter().any(|f| f.sentence == sentence));
}

#[test]
fn cgroup_that_reads_in_large_folios() {
    let must_not = ["refault_thrash", "scan_efficiency", "direct_reclaim", "slab_dominates", "lost_events"];
    check("readahead-6.18", &["cgroup_limit"], &must_not);
    let sentence = "a cgroup hit its limit 94 times: 49,666 pages scanned for 49,665 freed (efficiency 100 %)";
    let found = all(&analysis("readahead-6.18"));
    assert!(found.iter().any(|f| f.sentence.starts_with(sentence)), "{found:?}");
}

#[test]
fn cgroup_that_touches_its_limit() {
    check("startup-6.18", &[], &["cgroup_limit", "scan_efficiency", "refault_thrash", "slab_dominates"]);
}

#[test]
fn four_small_nodes_under_load() {
    let must =
        ["direct_reclaim", "high_order_reclaim", "scan_efficiency", "refault_thrash", "numa_locality", "numa_fallback"];
    let must_not =
        ["cgroup_limit", "kswapd_never_sleeps", "writeback_throttling", "vmalloc_purge", "lost_events", "oom_kill"];
    check("reclaim-6.1", &must, &must_not);
    let sentence = "direct reclaim stalled khugepaged 7 times, total 3.4 s (2.8 % of the recorded time)";
    assert!(all(&analysis("reclaim-6.1")).iter().any(|f| f.sentence.starts_with(sentence)));
}

#[test]
fn kswapd_that_does_not_get_ahead() {
    check(
        "kswapd-6.1",
        &["kswapd_never_sleeps", "scan_efficiency"],
        &["direct_reclaim", "cgroup_limit", "lost_events"],
    );
}

#[test]
fn numa_balancing_that_settles() {
    let must_not = [
        "numa_locality",
        "numa_convergence",
        "numa_migration_failures",
        "numa_fallback",
        "refault_thrash",
        "direct_reclaim",
    ];
    check("numa-6.1", &[], &must_not);
    let analysis = analysis("numa-6.1");
    let migrated = analysis.numa.reason("numa_misplaced").map(|m| m.succeeded);
    assert_eq!(migrated, analysis.counters.vmstat("numa_pages_migrated"), "events and counters agree to the page");
}

#[test]
fn cgroup_full_of_dentries() {
    check(
        "slab-6.18",
        &["slab_dominates"],
        &["cgroup_limit", "writeback_throttling", "scan_efficiency", "lost_events"],
    );
}

#[test]
fn cgroup_that_writes_more_than_its_limit() {
    check(
        "writeback-6.18",
        &["writeback_throttling", "cgroup_limit"],
        &["slab_dominates", "lost_events", "direct_reclaim"],
    );
}

#[test]
fn buffer_that_is_too_small() {
    check("lost-6.18", &["lost_events"], &["kswapd_never_sleeps", "direct_reclaim", "vmalloc_purge"]);
}

#[test]
fn purges_of_two_kernels() {
    check("vmalloc-6.12-fgraph", &["vmalloc_purge"], &["lost_events", "direct_reclaim"]);
    check("vmalloc-6.1-fgraph", &[], &["vmalloc_purge"]);
    let analysis = analysis("vmalloc-6.12-fgraph");
    let purge = analysis.calls.get("__purge_vmap_area_lazy").expect("calls of the purge");
    assert_eq!((purge.usecs.count, purge.longest / 1000), (61, 17_543));
}

/// An event sink that counts: the recordings are as whole as their readme says.
#[test]
fn recordings_are_readable_to_the_last_line() {
    struct Counted(u64);
    impl Sink for Counted {
        fn event(&mut self, _: &Event<'_>) {
            self.0 += 1;
        }
    }
    for (recording, events) in [("cgroup-6.18", 5988), ("reclaim-6.1", 3178), ("kswapd-6.1", 2004), ("numa-6.1", 14282)]
    {
        let packed = std::fs::read(data(&format!("{recording}.txt.gz"))).expect("a recording");
        let (mut counted, mut outcome) = (Counted(0), Outcome::default());
        let mut text = flate2::read::GzDecoder::new(&packed[..]);
        read_text(recording, TextInput::Stream(&mut text), &mut counted, &mut outcome, &mut |_| {}).expect("a trace");
        assert_eq!(
            (counted.0, outcome.warnings.list().len()),
            (events, 0),
            "{recording}: {:?}",
            outcome.warnings.list()
        );
    }
}
