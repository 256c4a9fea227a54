//! Who takes everything that a reader gives.

use crate::{Seen, hash};
use mmtwin::Analysed;
use mmtwin_analysis::Analysis;
use mmtwin_event::{Call, CounterRow, Event, Sink, Source, Task};
use mmtwin_report::format::{self, Format, Style};
use mmtwin_report::{compare, tables};
use mmtwin_trace::input::{Input, InputFile, Options};
use mmtwin_trace::{Error, Outcome};

/// Takes every field of every event into one number.
#[derive(Default)]
pub struct Everything {
    pub events: u64,
    pub sum: u64,
}

impl Everything {
    fn add(&mut self, value: u64) {
        self.sum = self.sum.wrapping_mul(31).wrapping_add(value);
    }

    /// Of all that came, with what the reader had to say.
    pub fn digest(&self, outcome: &Outcome) -> u64 {
        let told: String = outcome.warnings.list().iter().map(|warning| format!("{warning}\n")).collect();
        self.sum.wrapping_mul(31).wrapping_add(self.events) ^ hash(without_temporary(&told).as_bytes())
    }
}

impl Sink for Everything {
    fn task(&mut self, task: &Task<'_>) {
        self.add(task.pid as u64 ^ hash(task.comm));
    }
    fn event(&mut self, event: &Event<'_>) {
        self.events += 1;
        self.add(event.ts);
        let fields = event.kind.schema().map_or(0, |schema| schema.fields.len());
        for slot in (0..fields).filter(|slot| event.has(*slot)) {
            self.add(event.slot(slot));
        }
    }
    fn lost(&mut self, cpu: u32, events: Option<u64>, at: u64) {
        self.add(u64::from(cpu) ^ events.unwrap_or(7) ^ at);
    }
    fn counters(&mut self, row: &CounterRow<'_>) {
        self.add(row.at ^ hash(row.source.as_bytes()) ^ hash(row.key.as_bytes()));
        row.values.iter().for_each(|value| self.add(value.unwrap_or(3)));
    }
    fn call(&mut self, call: &Call<'_>) {
        self.add(call.nanoseconds ^ hash(call.function.as_bytes()));
    }
}

/// Gives the same to two.
struct Both<'s>(&'s mut dyn Sink, &'s mut dyn Sink);

impl Sink for Both<'_> {
    fn start(&mut self, source: &Source) {
        self.0.start(source);
        self.1.start(source);
    }
    fn task(&mut self, task: &Task<'_>) {
        self.0.task(task);
        self.1.task(task);
    }
    fn event(&mut self, event: &Event<'_>) {
        self.0.event(event);
        self.1.event(event);
    }
    fn lost(&mut self, cpu: u32, events: Option<u64>, at: u64) {
        self.0.lost(cpu, events, at);
        self.1.lost(cpu, events, at);
    }
    fn counters(&mut self, row: &CounterRow<'_>) {
        self.0.counters(row);
        self.1.counters(row);
    }
    fn call(&mut self, call: &Call<'_>) {
        self.0.call(call);
        self.1.call(call);
    }
    fn finish(&mut self) {
        self.0.finish();
        self.1.finish();
    }
}

/// Reads an input to its end and analyses it.
pub fn analysed(file: Result<InputFile, Error>) -> Result<(Analysed, u64), Error> {
    let mut file = file?;
    let recording = file.recording();
    let results = recording.and_then(|recording| recording.results.clone());
    let state = recording.and_then(|recording| recording.state.clone());
    let input: Input<'_> = file.input(&Options::default())?;
    let (mut analysis, mut all) = (Analysis::default(), Everything::default());
    let outcome = input.read(&mut Both(&mut analysis, &mut all))?;
    let digest = all.digest(&outcome);
    Ok((
        Analysed { analysis, outcome, about: Default::default(), results, state, scenario: None, resolved: None },
        digest,
    ))
}

/// Reads an input and prints every table of it in a format.
pub fn reported(file: Result<InputFile, Error>, as_format: Format) -> Seen {
    let (analysed, digest) = match analysed(file) {
        Ok(analysed) => analysed,
        Err(error) => return Seen::refused(without_temporary(&error.to_string())),
    };
    let mut report = analysed.report();
    report.tables.extend(tables::reclaim::per_context(&analysed.analysis));
    let comparison = compare::single(report);
    let mut printed = Vec::new();
    format::write(&comparison, as_format, &Style { width: 120, ..Style::default() }, &mut printed).expect("memory");
    Seen::accepted(digest ^ hash(without_temporary(&String::from_utf8_lossy(&printed)).as_bytes()))
}

/// A text without the names of temporary directories, which differ from run to run: `.tmp` and six letters.
fn without_temporary(text: &str) -> String {
    let mut pieces = text.split(".tmp");
    let mut without = pieces.next().unwrap_or_default().to_string();
    for piece in pieces {
        let name = piece.bytes().take(6).take_while(u8::is_ascii_alphanumeric).count();
        without.push_str(&piece[name..]);
    }
    without
}

/// An input is printed in one of the formats.
pub fn format_of(input: &[u8]) -> Format {
    match input.len() % 3 {
        0 => Format::Table,
        1 => Format::Json,
        _ => Format::Csv,
    }
}
