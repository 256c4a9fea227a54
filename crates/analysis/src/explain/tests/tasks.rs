//! Tasks and groups: placement, moves, refusals.

use super::*;

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
    let chain = stream.explain(Query::Task("10".into()));
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
    let chain = stream.explain(Query::Task("10".into()));
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
    let chain = stream.explain(Query::Group("11".into()));
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
    let asked = Query::Task("two".into());
    let stream = Stream::twin(Vec::new());
    let mut names = Names::new(&asked);
    stream.give(&mut names);
    let mut explain = Explain::new(&names, Subject::Task(20));
    explain.lost(1, Some(5), 10);
    explain.lost(2, None, 20);
    let gap = &explain.chain().gaps[0];
    assert_eq!(gap.what, "what happened in 2 gaps, where at least 5 events were lost");
}
