//! Progress of long reads: on standard error, only if that is a terminal.

use indicatif::{ProgressBar, ProgressStyle};
use mmtwin_event::{Call, CounterRow, Event, Kind, Order, Sink, Source, Task};
use std::io::IsTerminal;
use std::time::Duration;

/// Events between two looks at the clock.
const STEP: u64 = 1 << 18;

/// Passes a stream on and shows how far it is.
struct Progress<'s> {
    sink: &'s mut dyn Sink,
    bar: ProgressBar,
    events: u64,
}

/// Runs `read` with `sink`, showing progress if somebody is there to see it.
pub fn shown<T>(what: &str, sink: &mut dyn Sink, read: impl FnOnce(&mut dyn Sink) -> T) -> T {
    if !std::io::stderr().is_terminal() {
        return read(sink);
    }
    let bar = ProgressBar::new_spinner().with_message(what.to_string());
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}: {human_pos} events, {per_sec}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    let mut progress = Progress { sink, bar, events: 0 };
    let result = read(&mut progress);
    progress.bar.finish_and_clear();
    result
}

/// Runs something that tells its virtual time in nanoseconds now and then; `end` is when it will end, if that is known.
pub fn virtual_time<T>(what: &str, end: Option<u64>, run: impl FnOnce(&mut dyn FnMut(u64)) -> T) -> T {
    if !std::io::stderr().is_terminal() {
        return run(&mut |_| {});
    }
    let (bar, template) = match end {
        Some(end) => (ProgressBar::new(end / 1_000_000), "{spinner} {msg}: {pos} of {len} ms of virtual time {bar:30}"),
        None => (ProgressBar::new_spinner(), "{spinner} {msg}: {pos} ms of virtual time"),
    };
    let bar = bar.with_message(what.to_string());
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    let result = run(&mut |now| bar.set_position(now / 1_000_000));
    bar.finish_and_clear();
    result
}

impl Sink for Progress<'_> {
    fn start(&mut self, source: &Source) {
        self.sink.start(source);
    }
    fn task(&mut self, task: &Task<'_>) {
        self.sink.task(task);
    }
    fn order(&self, kind: Kind) -> Order {
        self.sink.order(kind)
    }
    fn event(&mut self, event: &Event<'_>) {
        self.events += 1;
        if self.events.is_multiple_of(STEP) {
            self.bar.set_position(self.events);
        }
        self.sink.event(event);
    }
    fn lost(&mut self, cpu: u32, events: Option<u64>, at: u64) {
        self.sink.lost(cpu, events, at);
    }
    fn counters(&mut self, row: &CounterRow<'_>) {
        self.sink.counters(row);
    }
    fn call(&mut self, call: &Call<'_>) {
        self.sink.call(call);
    }
    fn finish(&mut self) {
        self.sink.finish();
    }
}
