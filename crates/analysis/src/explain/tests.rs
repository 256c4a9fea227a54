use super::find::NotFound;
use super::names::{Asked, Names, Place, Subject};
use super::{Chain, Explain, MAX_STEPS, Step, Steps};
use crate::testing::EventBuilder;
use mmtwin_event::rules::Rule;
use mmtwin_event::{CounterRow, Kind, Sink, Source, Task};
use proptest::prelude::*;

const START: u64 = 0x7f00_0000_0000;

/// A row of `/proc/PID/sched`: time, thread id, counters.
type Sample = (u64, &'static str, Vec<(&'static str, Option<u64>)>);

/// What a recording gives, twice.
#[derive(Default)]
struct Stream {
    source: Source,
    tasks: Vec<(i32, i32, &'static str)>,
    events: Vec<EventBuilder>,
    samples: Vec<Sample>,
}

impl Stream {
    /// Of two processes on two nodes with two CPUs each.
    fn twin(events: Vec<EventBuilder>) -> Stream {
        let source = Source { arm: "twin".into(), cpu_nodes: vec![0, 0, 1, 1], ..Source::default() };
        let tasks = vec![(10, 10, "one"), (11, 10, "one"), (20, 20, "two")];
        Stream { source, tasks, events, samples: Vec::new() }
    }

    fn give(&self, sink: &mut dyn Sink) {
        sink.start(&self.source);
        for &(pid, tgid, comm) in &self.tasks {
            sink.task(&Task { pid, tgid, comm: comm.as_bytes(), cgroup: None });
        }
        for (at, key, values) in &self.samples {
            let names: Vec<String> = values.iter().map(|(name, _)| name.to_string()).collect();
            let values: Vec<Option<u64>> = values.iter().map(|(_, value)| *value).collect();
            sink.counters(&CounterRow { source: "sched", key, at: *at, names: &names, values: &values });
        }
        self.events.iter().for_each(|event| sink.event(&event.event()));
        sink.finish();
    }

    fn find(&self, asked: Asked) -> Result<Subject, String> {
        let mut names = Names::new(&asked);
        self.give(&mut names);
        names.find().map_err(|error| error.to_string())
    }

    fn explain(&self, asked: Asked) -> Chain {
        let mut names = Names::new(&asked);
        self.give(&mut names);
        let subject = names.find().unwrap_or_else(|error| panic!("{error}"));
        let mut explain = Explain::new(&names, subject);
        self.give(&mut explain);
        explain.chain()
    }
}

fn mapping(tgid: i64, region: i64, name: &str) -> EventBuilder {
    let made = EventBuilder::new(Kind::NumaMapping).set("tgid", tgid).set("vm_start", START as i64);
    made.set("vm_end", (START + (64 << 12)) as i64).set("region_id", region).text("region", name)
}

/// A fault of task 10 or 11 of process `one` on page `page`, that is on node `src`, by a CPU of node `dst`.
fn fault(
    at: u64,
    pid: i32,
    page: u64,
    (src, dst): (i64, i64),
    rule: Rule,
    wanted: bool,
    frames: [i64; 2],
) -> EventBuilder {
    let made = EventBuilder::new(Kind::NumaHintFault).at(at).pid(pid).cpu(2 * dst as u32).set("tgid", 10);
    let made = made.set("addr", (START + (page << 12)) as i64).set("nr_pages", 1).set("pfn", frames[0]);
    let made = made.set("new_pfn", frames[1]).set("src_nid", src).set("dst_nid", dst).set("last_cpu", 1);
    let made = made.set("last_pid", 11).set("last_nid", 0).set("rule", rule as i64).set("wanted", wanted.into());
    let made = made.set("migrated", i64::from(frames[0] != frames[1])).set("preferred_nid", 0).set("scan_seq", 7);
    let made = made.set("gid", 11).set("cpu_src", 10).set("cpu_dst", 20).set("mem_src", 30).set("mem_dst", 40);
    made.set("deferred", 0)
}

fn offset(page: u64) -> Asked {
    Asked::Offset("one/heap".into(), page << 12)
}

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
        Asked::Frame(0x100),
        Asked::Frame(0x200),
        Asked::Address("one".into(), START + 0x5008),
        Asked::Address("10".into(), START + 0x5fff),
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
    let chain = stream.explain(Asked::Frame(0x205));
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
    assert_eq!(stream.find(Asked::Frame(0x100)).unwrap_err(), held);
    let near = stream.find(Asked::Frame(0x150)).unwrap_err();
    let expected = "no page in frame 0x150: the recording has 2 hinting faults on pages of one/heap (64 pages, 2 faults); the \
                    nearest frames of pages that faulted are 0x100 and 0x200";
    assert_eq!(near, expected);
}

#[test]
fn what_there_is_not_is_said_with_what_there_is() {
    let stream = Stream::twin(vec![mapping(10, 3, "one/heap"), mapping(20, 4, "two/heap")]);
    let error = |asked| stream.find(asked).unwrap_err();
    for (asked, expected) in [
        (Asked::Task("one".into()), "2 tasks are named `one`; specify --task with a thread id: 10, 11"),
        (
            Asked::Task("tw".into()),
            "no task `tw`; the recording has 3 tasks: one-10, one-11, two-20; did you mean `two`?",
        ),
        (Asked::Task("21".into()), "no task `21`; the recording has 3 tasks: one-10, one-11, two-20"),
        (
            Asked::Group("11".into()),
            "no NUMA group `11`: the recording has none; record sched:sched_*_numa, \
             sched:update_numa_active_nodes_mask or mmtwin:numa_group",
        ),
        (Asked::Offset("heap".into(), 0), "several regions are named `heap`: one/heap, two/heap"),
        (Asked::Offset("two/heap".into(), 64 << 12), "offset 0x40000 is outside two/heap, which has 0x40000 bytes"),
        (Asked::Offset("two/hep".into(), 0), "no region `two/hep`; regions: one/heap, two/heap"),
        (Asked::Address("three".into(), 0), "no process `three`; processes: one-10, two-20"),
        (Asked::Address("two".into(), 5), "no page of two at 0x5: two has two/heap at 0x7f0000000000-0x7f0000040000"),
        (
            Asked::Frame(7),
            "no page in frame 0x7: the recording has no hinting faults; record mmtwin:numa_hint_fault (the \
             twin), migrate:set_migration_pte with migrate:remove_migration_pte, exceptions:page_fault_user or kmem:mm_page_alloc",
        ),
    ] {
        assert_eq!(error(asked), expected);
    }
    assert_eq!(stream.find(Asked::Task("two".into())), Ok(Subject::Task(20)));
    assert_eq!(stream.find(Asked::Task("11".into())), Ok(Subject::Task(11)));
    let empty = Stream::default();
    let nothing = empty.find(Asked::Task("x".into())).unwrap_err();
    assert_eq!(nothing, "no task `x`: the recording has no tasks");
    assert!(matches!(Names::default().find(), Err(NotFound::Unknown(_))));
    let groups = Stream::twin(vec![group(1, 10, Rule::Joined, (10, 1), (11, 11))]);
    assert_eq!(groups.find(Asked::Group("11".into())), Ok(Subject::Group(11)));
    let member =
        Stream::twin(vec![group(1, 20, Rule::Created, (20, 1), (0, 0)), group(2, 12, Rule::Left, (20, 1), (0, 0))]);
    let error = member.find(Asked::Group("12".into())).unwrap_err();
    assert_eq!(error, "no NUMA group `12`; the recording has 1 group: 20; task 12 was in group 20");
}

fn group(at: u64, pid: i32, rule: Rule, (gid, tasks): (i64, i64), (other, other_gid): (i64, i64)) -> EventBuilder {
    let made = EventBuilder::new(Kind::NumaGroup)
        .at(at)
        .pid(pid)
        .set("pid", pid.into())
        .set("gid", gid)
        .set("nr_tasks", tasks);
    made.set("rule", rule as i64).set("other_pid", other).set("other_gid", other_gid).set("other_tasks", 2)
}

/// A placement of task 10 with faults on both nodes.
fn placement(at: u64, (old, nid): (i64, i64), faults: [i64; 2]) -> Vec<EventBuilder> {
    let of_node = |nid: usize| {
        let made =
            EventBuilder::new(Kind::NumaNodeFaults).at(at).pid(10).set("pid", 10).set("gid", 11).set("nid", nid as i64);
        made.set("mem", faults[nid] / 2).set("cpu", 1).set("group_mem", faults[nid]).set("group_cpu", 2)
    };
    let made = EventBuilder::new(Kind::NumaPlacement).at(at).pid(10).set("pid", 10).set("gid", 11).set("scan_seq", 4);
    let made = made.set("rule", Rule::MostFaults as i64).set("best_nid", nid).set("best_faults", faults[nid as usize]);
    let made = made.set("old_nid", old).set("nid", nid).set("active_nodes", 1).set("max_faults_cpu", 9);
    vec![of_node(0), of_node(1), made]
}

fn moved(at: u64, pid: i64, from: [i64; 2], to: [i64; 2]) -> EventBuilder {
    let made = EventBuilder::new(Kind::SchedMoveNuma)
        .at(at)
        .pid(pid as i32)
        .cpu(from[0] as u32)
        .set("pid", pid)
        .set("tgid", 10);
    let made = made.set("ngid", 11).set("src_cpu", from[0]).set("src_nid", from[1]);
    made.set("dst_cpu", to[0]).set("dst_nid", to[1])
}

#[test]
fn a_task_is_placed_looks_for_a_cpu_and_moves() {
    let mut stream = Stream::twin(vec![fault(1_000, 10, 5, (0, 0), Rule::Local, false, [1, 1])]);
    stream.events.push(group(2_000, 10, Rule::Joined, (10, 1), (11, 11)));
    stream.events.extend(placement(3_000, (-1, 1), [40, 60]));
    let of_cpu = |cpu: i64, imp: i64, rule: Rule| {
        let made =
            EventBuilder::new(Kind::NumaSearchCpu).at(3_000).pid(10).set("pid", 10).set("cpu", cpu).set("nid", 1);
        made.set("curr", 20).set("rule", rule as i64).set("imp", imp).set("moveimp", 200).set("best_imp", 0)
    };
    stream.events.extend([of_cpu(2, 12, Rule::TooSmall), of_cpu(3, 200, Rule::PlainMove)]);
    let node = EventBuilder::new(Kind::NumaSearchNode).at(3_000).pid(10).set("pid", 10).set("nid", 1);
    let node = node.set("rule", Rule::PreferredNode as i64).set("taskimp", -5).set("groupimp", 200);
    let node = node.set("nr_running", 2).set("cpus", 2).set("may_move", 1);
    stream.events.push(node.set("best_cpu", 3).set("best_pid", 0).set("best_imp", 200));
    let search = EventBuilder::new(Kind::NumaTaskMigrate).at(3_000).pid(10).set("pid", 10).set("gid", 11);
    let search = search.set("rule", Rule::MoveTask as i64).set("src_cpu", 0).set("src_nid", 0).set("preferred_nid", 1);
    stream.events.push(search.set("nid", 1).set("best_cpu", 3).set("best_pid", 0).set("best_imp", 200));
    stream.events.push(moved(3_000, 10, [0, 0], [3, 1]));
    stream.events.extend(placement(9_000, (1, 1), [10, 60]));
    let chain = stream.explain(Asked::Task("10".into()));
    let events: Vec<&str> = chain.steps.iter().map(|step| step.event).collect();
    let expected =
        ["numa_hint_fault", "numa_group", "numa_placement", "numa_task_migrate", "sched_move_numa", "numa_placement"];
    assert_eq!(events, expected);
    let what = |at: usize| chain.steps[at].what.as_str();
    assert_eq!(what(0), "1 local");
    assert_eq!(what(1), "one-10 leaves group 10 (1 task) and joins group 11 of one-11 (2 tasks)");
    let placed = "scan pass 4 completed: preferred node none -> 1; memory faults of group 11: node 0 40, node 1 60; of the task: \
                  node 0 20, node 1 30; active nodes of the group: 1";
    assert_eq!(what(2), placed);
    let searched = "one-10 on node 0 searches for a CPU, first on its preferred node 1: CPU 3 is best, improvement 200; node \
                    1: task -5, group +200, 2 running on 2 CPUs, CPU 3 of two-20: improvement 200 against best 0 \
                    (task_numa_compare: a move improves more than a swap)";
    assert_eq!(what(3), searched);
    let answer = "one-10 was on CPU 3, node 1, at its last event (0.000003 s). It moved there at 0.000003 s: one-10 moves from \
                  CPU 0 (node 0) to CPU 3 (node 1) (task_numa_migrate: move). It prefers node 1 since 0.000003 s: \
                  task_numa_placement: node with most memory faults. At its last placement (0.000009 s): memory faults of group 11: node 0 10, \
                  node 1 60; of the task: node 0 5, node 1 30. Total: 1 hinting fault: 1 local.";
    let answer_at_end = answer
        .replace("CPU 3, node 1, at its last event (0.000003 s)", "CPU 0, node 0, at its last event (0.000009 s)");
    // Events made here are of CPU 0.
    assert_eq!(chain.answer, answer_at_end);
}

#[test]
fn a_repeated_refusal_is_reported_once() {
    let mut stream = Stream::twin(Vec::new());
    for at in 1..=5 {
        stream.events.push(group(at * 1000, 10, Rule::NotRunning, (11, 3), (0, 0)));
        stream.events.push(fault(at * 1000, 10, at, (0, 1), Rule::TwoStage, false, [1, 1]));
    }
    stream.events.push(group(9_000, 10, Rule::LargerGroup, (11, 3), (20, 20)));
    let chain = stream.explain(Asked::Task("10".into()));
    let reported: Vec<_> = chain.steps.iter().map(|step| (step.event, step.times)).collect();
    assert_eq!(reported, [("numa_group", 1), ("numa_hint_fault", 5), ("numa_group", 1)]);
    let not_joined = "Shared faults without a join: 5 by task_numa_group: last accessor no longer runs on that CPU; 1 by \
                 task_numa_group: the larger group does not join.";
    assert!(chain.answer.contains(not_joined), "{}", chain.answer);
}

#[test]
fn a_group_grows_and_its_tasks_go_where_it_faults() {
    let mut stream = Stream::twin(vec![group(1_000, 11, Rule::Created, (11, 1), (0, 0))]);
    stream.events.push(group(2_000, 10, Rule::Joined, (10, 1), (11, 11)));
    stream.events.push(group(2_500, 10, Rule::NotRunning, (11, 2), (0, 0)));
    stream.events.extend(placement(3_000, (-1, 1), [40, 60]));
    stream.events.push(fault(3_500, 10, 5, (0, 1), Rule::ThreeQuarters, true, [1, 2]));
    stream.events.push(moved(4_000, 10, [0, 0], [3, 1]));
    stream.events.extend(placement(5_000, (1, 1), [40, 70]));
    stream.events.push(group(6_000, 11, Rule::Left, (11, 2), (0, 0)));
    let chain = stream.explain(Asked::Group("11".into()));
    assert_eq!(chain.title, "NUMA group 11 (created by one-11)");
    let events: Vec<&str> = chain.steps.iter().map(|step| step.event).collect();
    let expected = ["numa_group", "numa_group", "numa_placement", "numa_hint_fault", "sched_move_numa", "numa_group"];
    assert_eq!(events, expected);
    let answer = "Group 11 has 1 task: one-10. At 0.000005 s: active nodes 1, memory faults of group 11: node 0 40, \
                  node 1 70; of the task: node 0 20, node 1 35. Its tasks prefer node 1 (1 task). Task moves: 1, swaps: 0, \
                  searches without a CPU: 0. Total: 1 hinting fault: 1 migrated (1 by \
                  should_numa_migrate_memory: memory faults per CPU fault, with 3/4 hysteresis).";
    assert_eq!(chain.answer, answer);
}

#[test]
fn lost_events_are_a_gap() {
    let asked = Asked::Task("two".into());
    let stream = Stream::twin(Vec::new());
    let mut names = Names::new(&asked);
    stream.give(&mut names);
    let mut explain = Explain::new(&names, Subject::Task(20));
    explain.lost(1, Some(5), 10);
    explain.lost(2, None, 20);
    let gap = &explain.chain().gaps[0];
    assert_eq!(gap.what, "what happened in 2 gaps, where at least 5 events were lost");
}

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
    let chain = stream.explain(Asked::Task("wl1".into()));
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
    let group = stream.explain(Asked::Group("172".into()));
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
    let chain = stream.explain(Asked::Address("170".into(), 0x7123));
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
    let chain = kernel(vec![alloc]).explain(Asked::Frame(0x105));
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
    let chain = stream.explain(Asked::Task("173".into()));
    let reported: Vec<&str> = chain.steps.iter().map(|step| step.what.as_str()).collect();
    let expected = "sample: wl1-173 prefers node 0; memory faults of the task: node 0 8, of its group 172: node 0 71";
    assert_eq!(reported, [expected]);
    assert!(chain.answer.contains("It prefers node 0 since 0.000002 s: as sampled"), "{}", chain.answer);
}

#[test]
fn the_middle_of_long_chains_is_left_out_and_counted() {
    let mut steps = Steps::default();
    for at in 0..2 * MAX_STEPS as u64 + 7 {
        steps.push(Step::new(at, Kind::NumaGroup, None, at.to_string()));
    }
    let (kept, dropped) = steps.finish();
    assert_eq!((kept.len(), dropped), (2 * MAX_STEPS, Some((MAX_STEPS, 7))));
    assert_eq!((kept[MAX_STEPS - 1].at, kept[MAX_STEPS].at), (MAX_STEPS as u64 - 1, MAX_STEPS as u64 + 7));
}

proptest! {
    /// Every fault of a page is a step of its chain or one of several alike; the answer has the node of the last.
    #[test]
    fn a_pages_chain_has_all_of_its_faults(
        faults in prop::collection::vec((0..4u64, 0..2i64, any::<bool>(), any::<bool>(), 0..Rule::ALL.len()), 1..60),
        page in 0..4u64,
    ) {
        let mut stream = Stream::twin(vec![mapping(10, 3, "one/heap")]);
        let (mut nodes, mut frames) = ([0i64; 4], [10i64, 20, 30, 40]);
        for (at, &(of, dst, wanted, done, rule)) in faults.iter().enumerate() {
            let number = of as usize;
            let (src, before) = (nodes[number], frames[number]);
            let wanted = wanted && src != dst;
            if wanted && done {
                (nodes[number], frames[number]) = (dst, before + 1);
            }
            let rule = Rule::ALL[rule];
            stream.events.push(fault(at as u64, 10, of, (src, dst), rule, wanted, [before, frames[number]]));
        }
        let own = faults.iter().filter(|(of, ..)| *of == page).count() as u64;
        let chain = stream.explain(offset(page));
        prop_assert_eq!(chain.steps.iter().map(|step| step.times).sum::<u64>(), own);
        prop_assert!(chain.steps.windows(2).all(|pair| pair[0].until <= pair[1].at));
        let start = match own {
            0 => "It had no hinting fault".to_string(),
            _ => format!("It is on node {}, frame {:#x}", nodes[page as usize], frames[page as usize]),
        };
        prop_assert!(chain.answer.starts_with(&start), "{}", chain.answer);
    }

    /// Events with any numbers in their fields, of a damaged file say.
    #[test]
    fn any_numbers_are_explained(
        rows in prop::collection::vec((0..mmtwin_event::vocabulary::SCHEMAS.len(), prop::collection::vec(any::<i64>(), 24)), 0..40),
        small in any::<bool>(),
    ) {
        let mut stream = Stream::twin(Vec::new());
        for (at, (kind, numbers)) in rows.iter().enumerate() {
            let schema = &mmtwin_event::vocabulary::SCHEMAS[*kind];
            let made = EventBuilder::new(schema.kind).at(at as u64).pid(10);
            let value = |slot: usize| if small { numbers[slot] & 15 } else { numbers[slot] };
            let set = |made: EventBuilder, (slot, field): (usize, &mmtwin_event::vocabulary::FieldSchema)| made.set(field.name, value(slot));
            stream.events.push(schema.fields.iter().enumerate().fold(made, set));
        }
        for asked in [Asked::Task("10".into()), Asked::Frame(9), Asked::Group("9".into()), Asked::Address("10".into(), 9), Asked::Offset("r".into(), 0)] {
            let mut names = Names::new(&asked);
            stream.give(&mut names);
            if let Ok(subject) = names.find() {
                let mut explain = Explain::new(&names, subject);
                stream.give(&mut explain);
                prop_assert!(!explain.chain().answer.is_empty());
            }
        }
    }
}
