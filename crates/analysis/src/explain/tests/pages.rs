//! Pages: where they are, why they moved or stayed.

use super::*;

#[test]
fn a_page_follows_stays_and_is_refused() {
    let refused =
        EventBuilder::new(Kind::NumaMigrateRefused).at(4_000_001).pid(10).set("pfn", 0x200).set("nr_pages", 1);
    let refused = refused.set("src_nid", 1).set("dst_nid", 0).set("rule", Rule::NodeFull as i64).set("have", 99);
    let stream = Stream::twin(vec![
        mapping(10, 3, "one/heap"),
        fault(1_000_000, 10, 5, (0, 1), Rule::TwoStage, false, [0x100, 0x100]),
        fault(1_500_000, 10, 6, (0, 1), Rule::Private, true, [0x101, 0x300]),
        fault(2_000_000, 10, 5, (0, 1), Rule::TripleCpu, true, [0x100, 0x200]),
        fault(3_000_000, 11, 5, (1, 0), Rule::ThreeQuarters, false, [0x200, 0x200]),
        fault(3_500_000, 11, 5, (1, 0), Rule::ThreeQuarters, false, [0x200, 0x200]),
        fault(4_000_000, 10, 5, (1, 0), Rule::Private, true, [0x200, 0x200]),
        refused.set("limit", 120),
        fault(5_000_000, 11, 5, (1, 1), Rule::Local, false, [0x200, 0x200]),
    ]);
    let chain = stream.explain(offset(5));
    assert_eq!((chain.title.as_str(), chain.gaps.len(), chain.dropped), ("page one/heap:0x5000", 0, None));
    let rules: Vec<_> = chain.steps.iter().map(|step| (step.at / 1000, step.times, step.rule)).collect();
    let expected = [
        (1000, 1, Some(Rule::TwoStage)),
        (2000, 1, Some(Rule::TripleCpu)),
        (3000, 2, Some(Rule::ThreeQuarters)),
        (4000, 1, Some(Rule::Private)),
        (4000, 1, Some(Rule::NodeFull)),
        (5000, 1, Some(Rule::Local)),
    ];
    assert_eq!(rules, expected);
    let what = |at: usize| chain.steps[at].what.as_str();
    assert!(
        what(0).contains("is not migrated from node 0: the previous fault was by one-11 on CPU 1, node 0, not node 1"),
        "{}",
        what(0)
    );
    assert!(what(1).contains(
        "is migrated from node 0, frame 0x100, to frame 0x200: group 11 has 20 CPU faults on node 1 > 3 x 10"
    ));
    assert!(what(2).contains("x 3 = 1800 > 10 (node 1) x 40 (node 0) x 4 = 1600"), "{}", what(2));
    assert!(what(4).contains("the best zone of node 0 has 99 free pages, required: more than 120"), "{}", what(4));
    let answer = "It is on node 1, frame 0x200 since 0.002000 s: migrated from node 0 on a fault of one-10 \
         (should_numa_migrate_memory: more than three times";
    assert!(chain.answer.starts_with(answer), "{}", chain.answer);
    let since = "Since 0.002000 s: 4 hinting faults: 1 local, 2 not migrated (2 by should_numa_migrate_memory: memory \
                 faults per CPU fault, with 3/4 hysteresis), 1 failed to migrate (1 by migrate_balanced_pgdat: no zone of the node stays above its high watermark).";
    assert!(chain.answer.ends_with(since), "{}", chain.answer);
    // By any of its names it is the same page.
    for asked in [
        Query::Frame(0x100),
        Query::Frame(0x200),
        Query::Address("one".into(), START + 0x5008),
        Query::Address("10".into(), START + 0x5fff),
    ] {
        assert_eq!(stream.find(asked), Ok(Subject::Page(Place::Region(3, 5))));
    }
}

#[test]
fn a_page_of_a_huge_page_and_of_two_processes() {
    let huge = |at, tgid: i64, first: i64| {
        let made = fault(at, 10, 0, (0, 1), Rule::Private, true, [first, first + 0x1000]);
        made.set("tgid", tgid).set("nr_pages", 512)
    };
    let mut stream = Stream::twin(vec![mapping(10, 3, "one/heap"), mapping(20, 3, "two/heap")]);
    stream.events.extend([huge(1, 10, 0x200), huge(2, 20, 0x1200)]);
    let chain = stream.explain(Query::Frame(0x205));
    assert_eq!((chain.title.as_str(), chain.steps.len()), ("page one/heap:0x5000", 2));
    assert!(chain.steps[0].what.contains("as one of 512 pages from node 0, frame 0x205, to frame 0x1205"));
    assert!(chain.answer.starts_with("It is on node 1, frame 0x2205 since"), "{}", chain.answer);
}

#[test]
fn frames_that_held_several_pages_are_ambiguous() {
    let stream = Stream::twin(vec![
        mapping(10, 3, "one/heap"),
        fault(1_000, 10, 5, (0, 1), Rule::Private, true, [0x100, 0x200]),
        fault(2_000, 10, 6, (0, 0), Rule::Local, false, [0x100, 0x100]),
    ]);
    let held = "frame 0x100 held 2 pages one after another; specify --page: one/heap:0x5000 (from 0.000001 s), one/heap:0x6000 \
                (from 0.000002 s)";
    assert_eq!(stream.find(Query::Frame(0x100)).unwrap_err(), held);
    let near = stream.find(Query::Frame(0x150)).unwrap_err();
    let expected = "no page in frame 0x150: the recording has 2 hinting faults on pages of one/heap (64 pages, 2 faults); the \
                    nearest frames of pages that faulted are 0x100 and 0x200";
    assert_eq!(near, expected);
}

#[test]
fn what_there_is_not_is_said_with_what_there_is() {
    let stream = Stream::twin(vec![mapping(10, 3, "one/heap"), mapping(20, 4, "two/heap")]);
    let error = |asked| stream.find(asked).unwrap_err();
    for (asked, expected) in [
        (Query::Task("one".into()), "2 tasks are named `one`; specify --task with a thread id: 10, 11"),
        (
            Query::Task("tw".into()),
            "no task `tw`; the recording has 3 tasks: one-10, one-11, two-20; did you mean `two`?",
        ),
        (Query::Task("21".into()), "no task `21`; the recording has 3 tasks: one-10, one-11, two-20"),
        (
            Query::Group("11".into()),
            "no NUMA group `11`: the recording has none; record sched:sched_*_numa, \
             sched:update_numa_active_nodes_mask or mmtwin:numa_group",
        ),
        (Query::Offset("heap".into(), 0), "several regions are named `heap`: one/heap, two/heap"),
        (Query::Offset("two/heap".into(), 64 << 12), "offset 0x40000 is outside two/heap, which has 0x40000 bytes"),
        (Query::Offset("two/hep".into(), 0), "no region `two/hep`; regions: one/heap, two/heap"),
        (Query::Address("three".into(), 0), "no process `three`; processes: one-10, two-20"),
        (Query::Address("two".into(), 5), "no page of two at 0x5: two has two/heap at 0x7f0000000000-0x7f0000040000"),
        (
            Query::Frame(7),
            "no page in frame 0x7: the recording has no hinting faults; record mmtwin:numa_hint_fault (the \
             twin), migrate:set_migration_pte with migrate:remove_migration_pte, exceptions:page_fault_user or kmem:mm_page_alloc",
        ),
    ] {
        assert_eq!(error(asked), expected);
    }
    assert_eq!(stream.find(Query::Task("two".into())), Ok(Subject::Task(20)));
    assert_eq!(stream.find(Query::Task("11".into())), Ok(Subject::Task(11)));
    let empty = Stream::default();
    let nothing = empty.find(Query::Task("x".into())).unwrap_err();
    assert_eq!(nothing, "no task `x`: the recording has no tasks");
    assert!(matches!(Names::default().find(), Err(NotFound::Unknown(_))));
    let groups = Stream::twin(vec![group(1, 10, Rule::Joined, (10, 1), (11, 11))]);
    assert_eq!(groups.find(Query::Group("11".into())), Ok(Subject::Group(11)));
    let member =
        Stream::twin(vec![group(1, 20, Rule::Created, (20, 1), (0, 0)), group(2, 12, Rule::Left, (20, 1), (0, 0))]);
    let error = member.find(Query::Group("12".into())).unwrap_err();
    assert_eq!(error, "no NUMA group `12`; the recording has 1 group: 20; task 12 was in group 20");
}
