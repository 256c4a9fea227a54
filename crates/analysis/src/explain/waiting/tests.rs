//! Waits made by hand.

use super::follow::Follow;
use super::*;
use crate::testing::EventBuilder;
use mmtwin_event::{CounterRow, Sink, Source};

const MS: u64 = 1_000_000;

/// Two waits of `dd`, one of `tar`, and a kswapd, which does not wait.
fn events() -> Vec<EventBuilder> {
    let event = |kind, at: u64, pid, comm: &'static [u8]| EventBuilder::new(kind).at(at).pid(pid).comm(comm);
    let scan = |at, scanned, freed| {
        let made = event(Kind::MmVmscanLruShrinkInactive, at, 7, b"dd").set("nr_scanned", scanned);
        made.set("nr_reclaimed", freed).set("priority", 12).set("nr_dirty", 3)
    };
    vec![
        event(Kind::MmVmscanKswapdWake, 0, 2, b"kswapd0").set("nid", 0),
        event(Kind::MmVmscanWakeupKswapd, 5 * MS, 7, b"dd").set("nid", 0).set("order", 3),
        event(Kind::MmVmscanDirectReclaimBegin, 10 * MS, 7, b"dd").set("order", 3),
        event(Kind::MmVmscanMemcgReclaimBegin, 11 * MS, 8, b"tar").set("order", 0),
        scan(12 * MS, 32, 8),
        event(Kind::MmVmscanMemcgReclaimEnd, 13 * MS, 8, b"tar").set("nr_reclaimed", 32),
        scan(14 * MS, 32, 24),
        event(Kind::MmVmscanThrottled, 24 * MS, 7, b"dd").set("usec_delayed", 8_000).set("usec_timeout", 100_000),
        event(Kind::MmVmscanDirectReclaimEnd, 30 * MS, 7, b"dd").set("nr_reclaimed", 32),
        event(Kind::MmPageAlloc, 31 * MS, 7, b"dd").set("order", 3),
        event(Kind::MmVmscanDirectReclaimBegin, 40 * MS, 7, b"dd").set("order", 0),
        event(Kind::MmVmscanDirectReclaimEnd, 41 * MS, 7, b"dd").set("nr_reclaimed", 1),
        event(Kind::MmVmscanKswapdSleep, 50 * MS, 2, b"kswapd0").set("nid", 0),
    ]
}

fn survey(task: Option<&str>) -> Survey {
    let mut survey = Survey::new(task);
    survey.start(&Source { name: "r.mmt".into(), arm: "host".into(), ..Source::default() });
    events().iter().for_each(|made| survey.event(&made.event()));
    survey
}

fn chain(survey: &Survey, question: Question) -> Chain {
    match survey.answer(&question).unwrap_or_else(|e| panic!("{e}")) {
        Answer::Chain(chain) => *chain,
        Answer::Follow(target) => {
            let mut follow = Follow::new(*target);
            follow.start(&Source::default());
            events().iter().for_each(|made| follow.event(&made.event()));
            follow.chain()
        }
    }
}

#[test]
fn the_longest_waits_come_first() {
    let chain = chain(&survey(None), Question::Longest);
    let what: Vec<&str> = chain.steps.iter().map(|step| step.what.as_str()).collect();
    assert_eq!(what.len(), 3);
    assert!(
        what[0].starts_with("1. dd-7 waited 20 ms in direct reclaim (order 3), 10 ms after the start: "),
        "{what:?}"
    );
    assert!(what[0].ends_with("scanned 256 KiB, freed 128 KiB (50 %); slept 8.0 ms (40 %) in throttling"), "{what:?}");
    assert!(what[1].starts_with("2. tar-8 waited 2.0 ms in reclaim of its cgroup"), "{what:?}");
    assert!(
        chain.answer.starts_with("3 waits took 23 ms (46 % of 50 ms): 2 direct reclaim, 21 ms; 1 reclaim"),
        "{}",
        chain.answer
    );
    assert!(chain.answer.contains("Who: dd 21 ms, tar 2.0 ms.") && chain.answer.contains("explain r.mmt --stall 1"));
}

#[test]
fn a_wait_is_followed_from_its_begin_to_the_page() {
    for which in [Which::Nth(1), Which::At(20 * MS), Which::After(10 * MS)] {
        let chain = chain(&survey(None), Question::Stall(which));
        let steps: Vec<(u64, &str, &str)> =
            chain.steps.iter().map(|step| (step.at / MS, step.event, step.what.as_str())).collect();
        assert_eq!(
            steps,
            [
                (
                    5,
                    "mm_vmscan_wakeup_kswapd",
                    "wakeup_kswapd: asks the kswapd of node 0 for order 3, 5.0 ms before it waits itself"
                ),
                (10, "mm_vmscan_kswapd_wake", "kswapd of node 0 is awake, since 10 ms"),
                (
                    10,
                    "mm_vmscan_direct_reclaim_begin",
                    "try_to_free_pages for order 3 on CPU 0: no zone has enough free pages"
                ),
                (
                    12,
                    "mm_vmscan_lru_shrink_inactive",
                    "shrink_inactive_list of node 0, priority 12: 256 KiB scanned, 128 KiB freed; kept 6 dirty"
                ),
                (
                    24,
                    "mm_vmscan_throttled",
                    "reclaim_throttle: slept 8.0 ms of at most 100 ms, VMSCAN_THROTTLE_WRITEBACK"
                ),
                (
                    24,
                    "silence",
                    "no event for 6.0 ms: it worked on, did not run, or waited for a disk (record sched:sched_switch, block:*)"
                ),
                (30, "mm_vmscan_direct_reclaim_end", "returns: 128 KiB freed, 20 ms after its begin"),
                (31, "mm_page_alloc", "gets the page of order 3, 1.0 ms after reclaim"),
            ]
        );
        assert!(chain.answer.contains("1 other task waited at the same time, tar-8 the longest"), "{}", chain.answer);
        assert!(chain.answer.ends_with("the longest of 3 waits, 87 % of all waiting."), "{}", chain.answer);
        assert!(
            chain
                .gaps
                .iter()
                .any(|gap| gap.fix == "mmtwin record -e 'vmscan:mm_shrink_slab_start,vmscan:mm_vmscan_write_folio'"),
            "{:?}",
            chain.gaps
        );
    }
}

#[test]
fn counters_tell_when_no_event_does() {
    let mut survey = Survey::new(None);
    for (at, us) in [(0, 0), (1000 * MS, 250_000), (2000 * MS, 260_000)] {
        let names = ["memory_some_total".to_string()];
        survey.counters(&CounterRow { source: "psi", key: "", at, names: &names, values: &[Some(us)] });
    }
    let chain = chain(&survey, Question::Longest);
    assert_eq!(chain.steps.len(), 2);
    let first = "1. tasks of the system waited 250 ms of the 1.0 s from here (25 %), 0.0 ns after the start";
    assert_eq!(chain.steps[0].what, first);
}

#[test]
fn a_long_silence_is_told() {
    let mut survey = Survey::new(None);
    let begin = EventBuilder::new(Kind::MmVmscanDirectReclaimBegin).at(MS).pid(7).comm(b"dd").set("order", 0);
    let end = EventBuilder::new(Kind::MmVmscanDirectReclaimEnd).at(9 * MS).pid(7).comm(b"dd").set("nr_reclaimed", 5);
    [&begin, &end].into_iter().for_each(|made| survey.event(&made.event()));
    let Ok(Answer::Follow(target)) = survey.answer(&Question::Stall(Which::Nth(1))) else { panic!("a wait") };
    let mut follow = Follow::new(*target);
    [&begin, &end].into_iter().for_each(|made| follow.event(&made.event()));
    let chain = follow.chain();
    assert!(chain.steps.iter().any(|step| step.what.starts_with("no event for 8.0 ms")), "{:?}", chain.steps);
}

#[test]
fn a_task_by_name_or_number() {
    for name in ["dd", "7"] {
        let chain = chain(&survey(Some(name)), Question::Task(name.into()));
        assert_eq!(chain.steps.len(), 2, "{name}");
        assert!(
            chain.answer.starts_with(&format!("{name} waited 21 ms in 2 waits (42 % of the time), 91 %")),
            "{}",
            chain.answer
        );
    }
    let error = survey(Some("de")).answer(&Question::Task("de".into())).unwrap_err();
    assert!(error.to_string().starts_with("no task `de`; the recording has dd, tar, kswapd0"), "{error}");
}

#[test]
fn what_there_is_not_is_said() {
    let nothing = Survey::new(None);
    let answer = |question: Question| match nothing.answer(&question) {
        Ok(Answer::Chain(chain)) => chain.answer,
        Ok(Answer::Follow(_)) => panic!("{question:?}"),
        Err(error) => error.to_string(),
    };
    assert!(answer(Question::Longest).starts_with("No wait: none of their events was recorded"));
    assert!(answer(Question::Stall(Which::Nth(1))).starts_with("no wait: none"));
    assert!(answer(Question::Refault).starts_with("whether pages came back is not known"));
    assert!(answer(Question::Oom).starts_with("whether memory ran out is not known"));
    assert!(answer(Question::Cgroup("/a".into())).starts_with("no cgroup `/a`: the recording has none"));
    let error = survey(None).answer(&Question::Stall(Which::Nth(9))).unwrap_err();
    assert_eq!(error.to_string(), "no wait 9: the 3 longest are kept, 1 is the longest");
}

#[test]
fn pages_are_seen_to_leave_and_to_come_back() {
    let mut survey = survey(None);
    let page = |kind, at: u64, pid, comm: &'static [u8]| {
        EventBuilder::new(kind).at(at).pid(pid).comm(comm).set("ino", 5).set("ofs", 9)
    };
    survey.event(&page(Kind::MmFilemapDeleteFromPageCache, 60 * MS, 2, b"kswapd0").event());
    survey.event(&page(Kind::MmFilemapAddToPageCache, 90 * MS, 8, b"tar").event());
    let chain = chain(&survey, Question::Refault);
    assert_eq!(chain.steps.len(), 2);
    assert_eq!(chain.steps[1].what, "page 0x9 comes back for tar after 30 ms");
    assert!(chain.answer.contains("1 folio; evicted by kswapd0 100 %; read again by tar 100 %"), "{}", chain.answer);
}

#[test]
fn a_cgroup_by_the_end_of_its_path() {
    let mut survey = Survey::new(None);
    for (at, usage, hits) in [(0, 10 << 20, 0), (1000 * MS, 64 << 20, 5), (2000 * MS, 32 << 20, 6)] {
        let names = ["memory.current", "memory.max", "memory.events.max"].map(String::from);
        let values = [Some(usage), Some(64 << 20), Some(hits)];
        survey.counters(&CounterRow { source: "cgroup", key: "/pod/web", at, names: &names, values: &values });
    }
    let chain = chain(&survey, Question::Cgroup("/web".into()));
    assert!(
        chain.answer.starts_with("cgroup /pod/web (limit 64 MiB) used up to 64 MiB; it hit its limit 6 times"),
        "{}",
        chain.answer
    );
    let what: Vec<&str> = chain.steps.iter().map(|step| step.what.as_str()).collect();
    assert!(what.contains(&"64 MiB in use, the most, 1.0 s after the start"), "{what:?}");
    assert!(what.contains(&"5 hits of its limit in the 1.0 s from here, the most, 0.0 ns after the start"), "{what:?}");
    let error = survey.answer(&Question::Cgroup("/db".into())).unwrap_err();
    assert!(error.to_string().starts_with("no cgroup `/db`; the recording has /pod/web"), "{error}");
}

#[test]
fn kills_are_told_with_what_was_tried() {
    let mut survey = survey(None);
    let kill = EventBuilder::new(Kind::MarkVictim).at(45 * MS).set("pid", 7).set("anon_rss", 2048);
    survey.event(&kill.event());
    let chain = chain(&survey, Question::Oom);
    let what: Vec<&str> = chain.steps.iter().map(|step| step.what.as_str()).collect();
    assert!(
        what[0].starts_with("in the second before, 3 waits in direct reclaim, 23 ms: 256 KiB scanned for"),
        "{what:?}"
    );
    assert_eq!(what[1], "oom_kill_process: dd-7 is killed with 2 MiB of anonymous memory, 45 ms after the start");
    assert!(chain.answer.starts_with("1 process killed"), "{}", chain.answer);
}
