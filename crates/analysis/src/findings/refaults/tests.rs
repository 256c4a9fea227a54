//! Causes of refaults, from counters of made-up runs.

use super::*;
use crate::findings::fixture::Recording;
use mmtwin_event::{CounterRow, Sink};

/// Ten seconds of samples: (refaults, evictions) of files so far by second.
fn sampled(at: impl Fn(u64) -> (u64, u64), activated: u64, waited_ms: u64) -> Recording {
    read(at, activated, waited_ms, None, None)
}

/// The same with what was read, in pages, and major faults, both evenly over time.
fn read(
    at: impl Fn(u64) -> (u64, u64),
    activated: u64,
    waited_ms: u64,
    pages: Option<u64>,
    faults: Option<u64>,
) -> Recording {
    let mut r = Recording::default();
    let names = ["workingset_refault_file", "pgsteal_file", "workingset_activate_file", "pgpgin", "pgmajfault"];
    let names = names.map(String::from);
    for second in 0..=10 {
        let (refaults, evictions) = at(second);
        let [read, faults] = [pages.map(|n| n * 4), faults].map(|total| total.map(|n| n * second / 10));
        let values = [Some(refaults), Some(evictions), Some(activated * refaults / 100), read, faults];
        let at = second * 1_000_000_000;
        r.analysis.counters(&CounterRow { source: "vmstat", key: "", at, names: &names, values: &values });
    }
    r.counters("psi", "", &[("memory_some_total", 0, waited_ms * 1000)]);
    r.counters(
        "cgroup",
        "/a",
        &[("memory.max", 100 << 20, 100 << 20), ("memory.stat.workingset_refault_file", 0, at(10).0)],
    );
    r
}

fn cause(r: &Recording) -> Cause {
    Refaults::of(&r.analysis).unwrap().cause()
}

#[test]
fn a_second_pass_over_ten_times_the_limit_is_streaming() {
    // 256,000 pages written in five seconds, then read in five; 25,600 fit.
    let r = sampled(|s| (51_200 * s.saturating_sub(5), (51_200 * s).saturating_sub(25_600)), 0, 10);
    let refaults = Refaults::of(&r.analysis).unwrap();
    assert_eq!((refaults.capacity, refaults.cause()), (Some(25_600), Cause::Streaming));
    let distance = refaults.distance.unwrap();
    assert!((200_000..=240_000).contains(&distance), "{distance}");
    let away = refaults.away.unwrap();
    assert!((4_000_000_000..=6_000_000_000).contains(&away), "{away}");
}

#[test]
fn a_set_half_as_large_again_is_too_large() {
    // 38,400 pages in a loop; 25,600 fit, so each comes back after 12,800 evictions.
    let r = sampled(|s| ((20_000 * s).saturating_sub(12_800), 20_000 * s), 0, 10);
    let refaults = Refaults::of(&r.analysis).unwrap();
    assert_eq!(refaults.cause(), Cause::TooLarge);
    assert!(refaults.working_set().is_some_and(|n| (36_000..=40_000).contains(&n)), "{refaults:?}");
}

#[test]
fn a_loop_is_too_large_although_refaults_begin_with_the_recording() {
    // 28,160 pages are read for the first time within the first second, and then in a loop; 25,600 fit.
    for (first_reads, expected) in [(28_160, Some(2_560)), (20_000, None), (100_000, None)] {
        let at = |s: u64| (25_600 * s, 25_600 * s + 2_560 * s.min(1));
        let r = read(at, 0, 10, Some(256_000 + first_reads), None);
        let refaults = Refaults::of(&r.analysis).unwrap();
        assert_eq!(refaults.distance.is_some(), expected.is_some(), "{first_reads}: {refaults:?}");
        let cause = if expected.is_some() { Cause::TooLarge } else { Cause::Streaming };
        assert_eq!(refaults.cause(), cause, "{first_reads}");
    }
    assert_eq!(read_repeatedly(256_000, 28_160, 25_600), Some(2_560));
}

#[test]
fn what_was_waited_for_is_not_called_a_stream_without_a_distance() {
    // Two samples, as in a part of a recording.
    for (io_ms, expected) in [(100, Cause::Streaming), (4_000, Cause::Unknown)] {
        let mut r = Recording::default();
        r.vmstat(&[
            ("workingset_refault_file", 0, 200_000),
            ("workingset_activate_file", 0, 100),
            ("pgsteal_file", 0, 200_000),
            ("pgpgin", 0, 800_000),
        ]);
        r.counters("psi", "", &[("memory_some_total", 0, 10_000), ("io_some_total", 0, io_ms * 1_000)]);
        assert_eq!(cause(&r), expected, "{io_ms}");
    }
}

#[test]
fn pages_that_come_in_one_by_one_are_no_stream() {
    for (faults, expected) in [(60_000, Cause::TooLarge), (9_000, Cause::Streaming)] {
        let r = read(|s| (5_000 * s, 5_000 * s), 0, 10, Some(100_000), Some(faults));
        assert_eq!(cause(&r), expected, "{faults}");
    }
}

#[test]
fn counters_of_a_cgroup_are_enough() {
    let rows = |names: &[&str]| {
        let mut r = Recording::default();
        let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
        for second in 0..=10 {
            let (refaults, evictions) = ((20_000 * second).max(12_800) - 12_800, 20_000 * second);
            let values = [100 << 20, refaults, evictions].map(Some);
            let at = second * 1_000_000_000;
            r.analysis.counters(&CounterRow { source: "cgroup", key: "/a", at, names: &names, values: &values });
        }
        r
    };
    let r = rows(&["memory.max", "memory.stat.workingset_refault_file", "memory.stat.pgsteal"]);
    let refaults = Refaults::of(&r.analysis).unwrap();
    assert_eq!((refaults.total, refaults.freed, refaults.cause()), (187_200, 200_000, Cause::TooLarge));
    assert!(refaults.working_set().is_some_and(|n| (36_000..=40_000).contains(&n)), "{refaults:?}");
    let r = rows(&["memory.limit_in_bytes", "memory.stat.workingset_refault_file", "memory.stat.pgpgout"]);
    assert!(Refaults::of(&r.analysis).is_none(), "version 1 does not tell what was evicted");
}

#[test]
fn few_refaults_count_if_somebody_waited() {
    for (waited_ms, expected) in [(10, false), (900, true)] {
        assert_eq!(Refaults::of(&sampled(|s| (200 * s, 300 * s), 0, waited_ms).analysis).is_some(), expected);
    }
}

#[test]
fn waiting_tells_thrash_from_streaming_where_the_distance_is_not_known() {
    let steady = |s| (20_000 * s, 20_000 * s);
    assert_eq!(cause(&sampled(steady, 0, 10)), Cause::Streaming);
    assert_eq!(cause(&sampled(steady, 0, 2_900)), Cause::TooLarge);
    assert_eq!(cause(&sampled(steady, 40, 10)), Cause::TooLarge);
}

#[test]
fn refaults_that_end_are_a_transition_and_without_evictions_a_cold_start() {
    let settles = |s: u64| (12_000 * s.min(4), 12_000 * s.min(4) + 30_000);
    assert_eq!(cause(&sampled(settles, 60, 100)), Cause::Transition);
    assert_eq!(cause(&sampled(|s| (20_000 * s.min(4), 100 * s), 60, 100)), Cause::ColdStart);
}

#[test]
fn more_returns_than_pages_fit_are_no_transition_although_they_end() {
    // 25,600 pages fit.
    let ends = |rate: u64| move |s: u64| (rate * s.min(4), rate * s.min(4) + 30_000);
    assert_eq!(cause(&sampled(ends(12_000), 60, 100)), Cause::Transition);
    assert_eq!(cause(&sampled(ends(14_000), 60, 100)), Cause::TooLarge);
}

#[test]
fn refaults_belong_to_the_cgroup_at_its_limit_if_the_system_does_not_reclaim() {
    for (stalls, of) in [(0, Some("/box")), (7, None)] {
        let mut r = Recording::default();
        r.vmstat(&[
            ("workingset_refault_anon", 0, 90_000),
            ("pgsteal_anon", 0, 100_000),
            ("pgscan_kswapd", 3, 3),
            ("allocstall_normal", 0, stalls),
        ]);
        r.counters("cgroup", "/box", &[("memory.events.max", 0, 3_139)]);
        assert_eq!(Refaults::of(&r.analysis).unwrap().cgroup.map(|cgroup| cgroup.key), of);
    }
}

#[test]
fn a_cgroup_that_was_not_recorded_has_no_known_capacity() {
    for (scanned, capacity) in [(0, None), (9, Some(5_000_000))] {
        let mut r = Recording::default();
        r.vmstat(&[
            ("workingset_refault_file", 0, 90_000),
            ("pgsteal_file", 0, 100_000),
            ("pgscan_kswapd", 0, scanned),
            ("allocstall_normal", 0, 0),
            ("nr_inactive_anon", 0, 0),
            ("nr_active_anon", 0, 0),
            ("nr_inactive_file", 0, 0),
            ("nr_active_file", 0, 0),
            ("nr_free_pages", 5_000_000, 5_000_000),
        ]);
        assert_eq!(Refaults::of(&r.analysis).unwrap().capacity, capacity);
    }
}

#[test]
fn anonymous_pages_are_waited_for() {
    let mut r = Recording::default();
    r.vmstat(&[
        ("workingset_refault_anon", 0, 90_000),
        ("workingset_refault_file", 0, 10_000),
        ("workingset_activate_anon", 0, 193),
        ("pgsteal_anon", 0, 100_000),
    ]);
    assert_eq!(cause(&r), Cause::TooLarge);
}

#[test]
fn few_that_were_waited_for_in_a_part_of_the_time_count() {
    // Of 40 s eight, in which 600 pages a second came back.
    for (io_ms, counts) in [(100, true), (40, false)] {
        let mut r = Recording::default();
        let names = ["workingset_refault_anon", "pgsteal_anon", "pgpgin"].map(String::from);
        for second in 0..=40u64 {
            let (at, passed) = (second * 1_000_000_000, second.saturating_sub(20).min(8));
            let values = [600 * passed, 20_000 + 600 * passed, 2_400 * passed].map(Some);
            r.analysis.counters(&CounterRow { source: "vmstat", key: "", at, names: &names, values: &values });
            let (names, io) = (["io_some_total".to_string()], [Some(io_ms * 1_000 * passed)]);
            r.analysis.counters(&CounterRow { source: "psi", key: "", at, names: &names, values: &io });
        }
        assert_eq!(Refaults::of(&r.analysis).is_some(), counts, "{io_ms}");
    }
}
