use super::*;
use mmtwin_event::container::{Container, Containers};
use mmtwin_event::{CounterRow, Event, Task};
use std::fs;

const TEXT: &str = "\
# tracer: nop
          stream-7  [000] ..... 10.000000: mm_vmscan_memcg_reclaim_begin: order=0 gfp_flags=GFP_KERNEL
          stream-7  [000] ..... 10.500000: mm_vmscan_memcg_reclaim_end: nr_reclaimed=32
         kswapd1-9  [001] ..... 11.000000: mm_vmscan_kswapd_wake: nid=1 order=0
         kswapd1-9  [001] ..... 12.000000: mm_vmscan_kswapd_sleep: nid=1
";

/// Counts what it is given.
#[derive(Default)]
struct Counts {
    events: Vec<(i32, u64)>,
    rows: Vec<String>,
}

impl Sink for Counts {
    fn event(&mut self, event: &Event<'_>) {
        self.events.push((event.pid, event.ts));
    }
    fn counters(&mut self, row: &CounterRow<'_>) {
        self.rows.push(format!("{} {} {}", row.source, row.key, row.at));
    }
}

fn read(filter: &Filter) -> Result<Counts, Error> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.txt");
    fs::write(&path, TEXT).unwrap();
    let mut file = InputFile::open(&path)?;
    let extent = Extent::of(&file);
    let mut counts = Counts::default();
    filter.read(file.input(&Default::default())?, extent, &mut counts, &mut |_| {})?;
    Ok(counts)
}

fn seconds(from: f64, to: f64) -> Filter {
    Filter { from: Some((from * 1e9) as u64), to: Some((to * 1e9) as u64), ..Filter::default() }
}

#[test]
fn events_of_a_process_a_node_or_a_time() {
    let pids = |filter: &Filter| read(filter).unwrap().events.iter().map(|(pid, _)| *pid).collect::<Vec<_>>();
    let process = |name: &str| Filter { processes: vec![name.into()], ..Filter::default() };
    assert_eq!(pids(&Filter::default()), [7, 7, 9, 9]);
    assert_eq!(pids(&process("str*")), [7, 7]);
    assert_eq!(pids(&process("9")), [9, 9]);
    assert_eq!(pids(&Filter { nodes: vec![1], ..Filter::default() }), [9, 9]);
    assert_eq!(pids(&seconds(0.5, 1.0)), [7, 9], "both ends are in it");
    assert_eq!(pids(&Filter { from: Some(0), ..process("kswapd?") }), [9, 9]);
}

#[test]
fn a_filter_that_matches_nothing_says_what_there_is() {
    let none = Filter { processes: vec!["redis*".into()], ..seconds(0.0, 3.0) };
    let error = read(&none).err().unwrap().to_string();
    for part in [
        "nothing matches process redis*, from 0 s to 3 s; it has",
        "processes: kswapd1 (2 events), stream (2 events)",
        "cgroups: none recorded",
        "time: 0 s to 2 s",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
}

/// A filter on a stream of tasks and counters as recordings have them.
fn given(filter: &Filter, give: impl Fn(&mut dyn Sink)) -> Counts {
    let mut counts = Counts::default();
    let mut part = Part::new(filter, Extent { start: Some(100), end: Some(200) }, &mut counts);
    give(&mut part);
    counts
}

#[test]
fn counters_are_those_of_the_cgroup_the_node_or_the_time() {
    let give = |sink: &mut dyn Sink| {
        let names = ["n".to_string()];
        for at in [100, 150, 200] {
            for (source, key) in [("vmstat", ""), ("numastat", "0"), ("zoneinfo", "1/Normal"), ("cgroup", "/a/b")] {
                sink.counters(&CounterRow { source, key, at, names: &names, values: &[Some(1)] });
            }
        }
    };
    let cgroup = Filter { cgroups: vec!["/a".into()], from: Some(40), ..Filter::default() };
    assert_eq!(given(&cgroup, give).rows, ["cgroup /a/b 150", "cgroup /a/b 200"]);
    let node = Filter { nodes: vec![1], to: Some(0), ..Filter::default() };
    assert_eq!(given(&node, give).rows, ["zoneinfo 1/Normal 100"]);
}

#[test]
fn a_task_is_in_its_cgroup_and_those_above() {
    let id = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    let path = format!("/system.slice/docker-{id}.scope/worker");
    let filter = |pattern: &str| Filter { cgroups: vec![pattern.into()], ..Filter::default() };
    for pattern in [&path, "/", "/system.slice/", "docker:*", "0123456789ab", "*worker", "system.slice"] {
        assert!(who::in_cgroup(&filter(pattern), &Default::default(), &path), "{pattern}");
    }
    for pattern in ["/system", "worker", "podman:*", "/system.slice/docker"] {
        assert!(!who::in_cgroup(&filter(pattern), &Default::default(), &path), "{pattern}");
    }
    let mut names = Containers::default();
    names.0.insert(id.into(), Container { name: "redis-1".into(), pod: None });
    for pattern in ["docker:redis-1", "redis-*", "0123456789ab"] {
        assert!(who::in_cgroup(&filter(pattern), &names, &path), "{pattern}");
    }
    // A thread without a cgroup of its own is where its process is.
    let mut all = who::Who::default();
    all.announce(&Task { pid: 7, tgid: 7, comm: b"redis", cgroup: Some(&path) });
    all.announce(&Task { pid: 8, tgid: 7, comm: b"io", cgroup: None });
    all.announce(&Task { pid: 9, tgid: 0, comm: b"gone", cgroup: None });
    let verdicts = [7, 8, 9].map(|pid| all.verdict(&filter("docker:*"), pid));
    assert_eq!(verdicts, [who::Verdict::In, who::Verdict::In, who::Verdict::Unknown]);
}

#[test]
fn times_are_short() {
    assert_eq!([0, 500, 1_500_000, 2_000_000_000].map(time), ["0 s", "500 ns", "1.5 ms", "2 s"]);
}
