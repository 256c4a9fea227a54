//! Reads a trace that another tool or kernel recorded: `cargo run --release --example read_trace -- trace.dat`.
//!
//! Twice: once with the analyses that come with mmtwin, once with one of its own. Without an argument it reads a recording
//! that is part of the sources.

use mmtwin::event::{CounterRow, Event, Kind, Sink, Task};
use mmtwin::{Error, Trace};
use std::collections::BTreeMap;

/// A sink sees every event once, in order, and keeps what it wants of it: here how long each task was in direct reclaim.
#[derive(Default)]
struct DirectReclaim {
    /// By task: when it began.
    begun: BTreeMap<i32, u64>,
    /// By task: how often, and nanoseconds.
    time: BTreeMap<i32, (u64, u64)>,
    /// Names of tasks.
    names: BTreeMap<i32, String>,
    /// Samples of counters, which come between the events.
    samples: u64,
}

impl Sink for DirectReclaim {
    fn task(&mut self, task: &Task<'_>) {
        self.names.insert(task.pid, String::from_utf8_lossy(task.comm).into_owned());
    }

    fn event(&mut self, event: &Event<'_>) {
        // The kind is the same for all kernels, whatever they called the event and how they laid it out.
        match event.kind {
            Kind::MmVmscanDirectReclaimBegin | Kind::MmVmscanMemcgReclaimBegin => {
                self.begun.insert(event.pid, event.ts);
            }
            Kind::MmVmscanDirectReclaimEnd | Kind::MmVmscanMemcgReclaimEnd => {
                let Some(begun) = self.begun.remove(&event.pid) else { return };
                let (count, time) = self.time.entry(event.pid).or_default();
                *count += 1;
                *time += event.ts.saturating_sub(begun);
            }
            _ => {}
        }
    }

    fn counters(&mut self, _: &CounterRow<'_>) {
        self.samples += 1;
    }
}

fn main() -> Result<(), Error> {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/host-6.18.dat");
    let path = std::env::args_os().nth(1).unwrap_or_else(|| example.into());

    let analysed = Trace::open(&path)?.analyse(&mut |events| eprintln!("{events} events"))?;
    // What is damaged is stepped over and told.
    for warning in analysed.outcome.warnings.list() {
        eprintln!("{warning}");
    }
    let report = analysed.report();
    let input = &report.input;
    println!("{}: {} events, kernel {}", input.name, input.events, input.kernel.as_deref().unwrap_or("unknown"));
    println!("lost: {}", input.lost_events.map_or("nobody knows how many".into(), |lost| lost.to_string()));
    for finding in &report.findings {
        println!("[{}] {}", finding.severity, finding.sentence);
    }

    let mut reclaim = DirectReclaim::default();
    Trace::open(&path)?.read(&mut reclaim, &mut |_| {})?;
    println!("rows of counters: {}", reclaim.samples);
    for (pid, (count, time)) in &reclaim.time {
        let name = reclaim.names.get(pid).map_or("?", String::as_str);
        println!("{name} ({pid}): in reclaim {count} times, {:.3} ms", *time as f64 / 1e6);
    }
    Ok(())
}
