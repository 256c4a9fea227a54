//! Recordings of real kernels, as far as their events tell.

use super::*;

/// What a real kernel leaves.
fn kernel(events: Vec<EventBuilder>) -> Stream {
    let source = Source { arm: "host".into(), ..Source::default() };
    Stream { source, tasks: vec![(172, 170, "wl0"), (173, 170, "wl1")], events, samples: Vec::new() }
}

#[test]
fn a_task_of_a_real_kernel_as_far_as_its_events_tell() {
    let migrate = |at, cpu| {
        let made =
            EventBuilder::new(Kind::MmMigratePages).at(at).pid(173).cpu(cpu).set("nr_succeeded", 3).set("nr_failed", 1);
        made.set("mode", 0).set("reason", 5)
    };
    let stick =
        EventBuilder::new(Kind::SchedStickNuma).at(3_000).pid(173).cpu(1).set("src_pid", 173).set("src_tgid", 170);
    let stick = stick.set("src_ngid", 172).set("src_cpu", 1).set("src_nid", 0).set("dst_cpu", -1).set("dst_nid", -1);
    let limit = EventBuilder::new(Kind::MmNumaMigrateRatelimit).at(4_000).pid(173).set("pid", 173).set("dst_nid", 0);
    let limit = limit.set("nr_pages", 512).text("comm", "wl1");
    let stream = kernel(vec![migrate(1_000, 1), migrate(2_000, 1), stick, limit, moved(5_000, 172, [3, 1], [0, 0])]);
    let chain = stream.explain(Query::Task("wl1".into()));
    let reported: Vec<_> = chain.steps.iter().map(|step| (step.times, step.rule, step.what.as_str())).collect();
    let expected = [
        (2, None, "6 pages migrated to node 0 on its hinting faults, 2 failed"),
        (1, Some(Rule::Stick), "wl1-173 stays on CPU 1 (node 0): no better CPU was found"),
        (1, Some(Rule::RateLimit), "512 pages not migrated to node 0: rate limit reached"),
    ];
    assert_eq!(reported, expected);
    let gaps: Vec<&str> = chain.gaps.iter().map(|gap| gap.fix.as_str()).collect();
    let expected = [
        "kernels do not trace it; run the scenario on the twin with run.events mmtwin:numa_*",
        "record sched:sched_swap_numa",
        "record sched:sched_migrate_task",
        "no event reports it; sample /proc/PID/sched, as the twin does",
    ];
    assert_eq!(gaps, expected);
    assert!(chain.answer.contains("No recorded event reports a move."), "{}", chain.answer);
    let group = stream.explain(Query::Group("172".into()));
    assert!(group.answer.starts_with("Events name 1 task of group 172: wl1-173."), "{}", group.answer);
}

#[test]
fn a_page_of_a_real_kernel_as_far_as_its_events_tell() {
    let entry = |kind, at| EventBuilder::new(kind).at(at).pid(173).cpu(2).set("addr", 0x7000).set("order", 0);
    let set = entry(Kind::SetMigrationPte, 1_000).set("pte", 0x1f);
    let remove = entry(Kind::RemoveMigrationPte, 2_000).set("pte", 0x8000_0000_0123_4867u64 as i64);
    let done =
        EventBuilder::new(Kind::MmMigratePages).at(3_000).pid(173).cpu(2).set("nr_succeeded", 1).set("nr_failed", 0);
    let touch =
        EventBuilder::new(Kind::PageFaultUser).at(500).pid(173).cpu(2).set("address", 0x7123).set("error_code", 6);
    let elsewhere = EventBuilder::new(Kind::PageFaultUser).at(500).pid(173).set("address", 0x8123).set("error_code", 6);
    let stream = kernel(vec![touch, elsewhere, set, remove, done.set("mode", 0).set("reason", 5)]);
    let chain = stream.explain(Query::Address("170".into(), 0x7123));
    let reported: Vec<&str> = chain.steps.iter().map(|step| step.what.as_str()).collect();
    let expected = [
        "wl1-173 on CPU 2 has a page fault on it: write, not present or PROT_NONE",
        "wl1-173 on CPU 2 unmaps it for migration",
        "wl1-173 on CPU 2 maps it in frame 0x1234",
        "migration ends: 1 pages migrated, 0 failed, reason numa_misplaced",
    ];
    assert_eq!(reported, expected);
    let answer =
        "It is on an unknown node, frame 0x1234 since 0.000003 s: migrated on a hinting fault of wl1-173 on CPU 2.";
    assert_eq!(chain.answer, answer);
    assert_eq!(chain.gaps.len(), 1);
    let alloc = EventBuilder::new(Kind::MmPageAlloc).at(1).pid(172).set("pfn", 0x100).set("order", 3);
    let chain = kernel(vec![alloc]).explain(Query::Frame(0x105));
    assert_eq!(chain.steps[0].what, "wl0-172 on CPU 0 allocates its frame (8 pages)");
    assert_eq!(chain.answer, "Its node, and why it is there, were not recorded.");
    assert_eq!(chain.gaps.last().map(|gap| gap.fix.as_str()), Some("record kmem:mm_page_free"));
}

#[test]
fn samples_tell_where_a_task_prefers_to_be() {
    let sample = |preferred, group| {
        vec![
            ("numa_preferred_nid", preferred),
            ("numa_group_id", Some(group)),
            ("node0_task_private", Some(7)),
            ("node0_task_shared", Some(1)),
            ("node0_group_private", Some(70)),
            ("node0_group_shared", Some(1)),
        ]
    };
    let mut stream = kernel(Vec::new());
    stream.samples = vec![
        (1_000, "173", sample(None, 0)),
        (2_000, "173", sample(Some(0), 172)),
        (3_000, "173", sample(Some(0), 172)),
    ];
    let chain = stream.explain(Query::Task("173".into()));
    let reported: Vec<&str> = chain.steps.iter().map(|step| step.what.as_str()).collect();
    let expected = "sample: wl1-173 prefers node 0; memory faults of the task: node 0 8, of its group 172: node 0 71";
    assert_eq!(reported, [expected]);
    assert!(chain.answer.contains("It prefers node 0 since 0.000002 s: as sampled"), "{}", chain.answer);
}
