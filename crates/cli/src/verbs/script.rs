//! `mmtwin script`.

use super::chosen;
use crate::args::{LineStyle, Script};
use crate::{Failure, reading, say};
use mmtwin_event::{Call, Event, Sink, Source, Task};
use mmtwin_trace::input::Options;
use mmtwin_trace::write::{Columns, TextStyle, TextWriter};
use std::collections::BTreeMap;
use std::io::Write;

/// Runs the verb.
pub fn run(arguments: Script) -> Result<i32, Failure> {
    let part = arguments.filtering.filter()?;
    let mut file = reading::open(reading::named_or_newest(arguments.input)?)?;
    let extent = mmtwin::Extent::of(&file);
    let input = file.input(&Options::default())?;
    let style = match arguments.style {
        LineStyle::Kernel => TextStyle::Kernel(Columns::of_release(input.source.kernel.as_deref()), None),
        LineStyle::TraceCmd => {
            TextStyle::TraceCmd { instance: input.origin.as_ref().map(|o| o.instance.clone()).unwrap_or_default() }
        }
    };
    let formats = input.formats.clone();
    let systems = formats.iter().flat_map(|f| f.iter()).map(|f| (u32::from(f.id), f.system.clone())).collect();
    let writer = TextWriter::new(std::io::stdout().lock(), "standard output", style, formats);
    let (since, until) = (arguments.since.unwrap_or(0), arguments.until.unwrap_or(u64::MAX));
    let mut filter =
        Filter { writer, since, until, patterns: arguments.events, systems, known: BTreeMap::new(), calls: 0 };
    let outcome = part.read(input, extent, &mut filter, &mut |_| {})?;
    let calls = filter.calls;
    drop(filter.writer.close()?);
    reading::warn(&outcome);
    if calls > 0 {
        say(&format!("warning: {calls} function calls are not printed; see `report --table calls`"));
    }
    Ok(0)
}

/// Lets through what was asked for.
struct Filter<W: Write> {
    writer: TextWriter<W>,
    since: u64,
    until: u64,
    patterns: Vec<String>,
    /// Trace systems of binary events by id.
    systems: BTreeMap<u32, String>,
    /// Whether an event type, by id, is wanted.
    known: BTreeMap<u32, bool>,
    /// Calls of a function_graph text.
    calls: u64,
}

impl<W: Write> Filter<W> {
    fn wants(&mut self, event: &Event<'_>) -> bool {
        if self.patterns.is_empty() {
            return true;
        }
        if let Some(wanted) = self.known.get(&event.id) {
            return *wanted;
        }
        let of_type = event.kind.schema().map_or("", |s| s.system);
        let system = self.systems.get(&event.id).map_or(of_type, String::as_str);
        let wanted = chosen(&self.patterns, system, event.name);
        self.known.insert(event.id, wanted);
        wanted
    }
}

impl<W: Write> Sink for Filter<W> {
    fn start(&mut self, source: &Source) {
        self.writer.start(source);
    }
    fn task(&mut self, task: &Task<'_>) {
        self.writer.task(task);
    }
    fn event(&mut self, event: &Event<'_>) {
        if (self.since..=self.until).contains(&event.ts) && self.wants(event) {
            self.writer.event(event);
        }
    }
    fn lost(&mut self, cpu: u32, events: Option<u64>, at: u64) {
        if (self.since..=self.until).contains(&at) {
            self.writer.lost(cpu, events, at);
        }
    }
    fn call(&mut self, _call: &Call<'_>) {
        self.calls += 1;
    }
    fn finish(&mut self) {
        self.writer.finish();
    }
}
