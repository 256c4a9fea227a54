//! Explanations of pages, tasks and groups, of made streams of events.

mod kernels;
mod lengths;
mod pages;
mod tasks;

use super::find::NotFound;
use super::names::{Names, Place, Query, Subject};
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

    fn find(&self, asked: Query) -> Result<Subject, String> {
        let mut names = Names::new(&asked);
        self.give(&mut names);
        names.find().map_err(|error| error.to_string())
    }

    fn explain(&self, asked: Query) -> Chain {
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

fn offset(page: u64) -> Query {
    Query::Offset("one/heap".into(), page << 12)
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
