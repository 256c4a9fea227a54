//! ftrace text: the files `trace` and `trace_pipe`, what `trace-cmd report` prints, and `perf script` lines.
//!
//! One line is one event. [`line`] reads the columns before it, [`kinds`] knows its name, [`template`] reads its
//! values with what [`labels`] found in an earlier line of the same shape, [`values`] converts numbers and words, and
//! [`graph`] reads function_graph output. Where there are several CPUs, a file that is not small is read in blocks by the
//! caller's thread and one or two beside it: `lanes`.
//! Nothing is assumed of the order of fields or of the kernel's release.
//!
//! Not supported: stack traces (counted), the lines of option `raw` (they name events by numbers of the recording kernel
//! only), histograms. Events in lines without columns (option `nocontext-info`, function_graph without absolute time)
//! have time 0 and task -1, with a warning. Validated on recordings of 6.1, 6.12 and 6.18 kernels against counters
//! and `trace-cmd report`, and by generated lines of every event of the vocabulary.

mod blocks;
mod delivery;
mod graph;
mod kinds;
mod labels;
mod lane;
mod lanes;
mod line;
mod literal;
mod step;
mod template;
#[cfg(test)]
mod tests;
mod values;

use crate::{Error, Outcome};
use blocks::{Block, Blocks};
use delivery::Delivery;
use graph::Graph;
use kinds::Values;
use lane::Lane;
use line::Context;
use mmtwin_event::{Call, Kind, NullSink, Sink, Source};
use std::io::Read;
use std::ops::Range;

/// Longest line that is read, and the memory a stream takes. Real lines stay below 2 KiB.
const MAX_LINE: usize = 1 << 20;
/// An input whose first lines, so many, hold nothing of a trace is none.
const MAX_UNKNOWN_LINES: u64 = 1000;
/// So many lines in a row without an event are the end of a trace, if it ever was one: blank lines, comments and
/// what cannot be read may come without end.
const SILENCE: u64 = 1 << 20;

/// Where a text comes from.
pub enum TextInput<'a> {
    /// All of it, as of a mapped file.
    Bytes(&'a [u8]),
    /// A pipe or a decompressor.
    Stream(&'a mut dyn Read),
}

/// Delivers the events, calls and losses of a text to `sink`, in file order; `start` and `finish` are the caller's.
///
/// Lines that cannot be read become warnings of `outcome`; `progress` is told the number of events so far, now and then.
/// Errors: the stream cannot be read, or the text is no trace.
pub fn read_text(
    name: &str,
    input: TextInput<'_>,
    sink: &mut dyn Sink,
    outcome: &mut Outcome,
    progress: &mut dyn FnMut(u64),
) -> Result<(), Error> {
    let mut reader = Reader::new(Delivery::new(name, sink, outcome, progress));
    match input {
        TextInput::Bytes(text) if lanes::are_for(text) => lanes::read(&mut reader, text)?,
        TextInput::Bytes(text) => reader.lines(text)?,
        TextInput::Stream(source) => {
            let mut blocks = Blocks::new(source);
            while let Some(block) = blocks.next().map_err(|e| Error::io(name, e))? {
                match block {
                    Block::Lines(text) => reader.lines(text)?,
                    Block::TooLong => reader.too_long(),
                    Block::Endless => {
                        reader.too_long();
                        reader.give_up("a line longer than 64 MiB; the rest is not read")?;
                    }
                }
                if reader.given_up {
                    break;
                }
            }
        }
    }
    reader.end()
}

/// True if the first bytes of an input are of a text that [`read_text`] reads.
pub fn looks_like_text_trace(first_bytes: &[u8]) -> bool {
    let (mut sink, mut outcome) = (NullSink, Outcome::default());
    let mut silent = |_| {};
    let mut reader = Reader::new(Delivery::new("", &mut sink, &mut outcome, &mut silent));
    // Warnings on these lines are given when the whole text is read.
    let refused = reader.lines(first_bytes).is_err();
    !refused && reader.is_trace
}

/// What the header comments at the start of a text say of the recording.
pub fn source(name: &str, first_bytes: &[u8]) -> Source {
    let mut source = Source { name: name.into(), arm: "import".into(), ..Source::default() };
    let lines = first_bytes.split(|b| *b == b'\n').take_while(|l| l.first() == Some(&b'#') || l.starts_with(b"cpus="));
    for line in lines.map(String::from_utf8_lossy) {
        let number = |after: &str| {
            let digits = &line[line.find(after)? + after.len()..];
            digits.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
        };
        if let Some(cpus) = number("#P:").or_else(|| number("cpus=")) {
            source.cpus = cpus;
        }
        if let Some((_, release)) = line.split_once("latency trace v").and_then(|(_, rest)| rest.split_once(" on ")) {
            source.kernel = Some(release.trim().into());
        }
    }
    source
}

/// The state between lines.
struct Reader<'a> {
    delivery: Delivery<'a>,
    lane: Lane,
    graph: Graph,
    /// Something was seen that only traces have.
    is_trace: bool,
    /// Function calls that were finished.
    calls: u64,
    /// Events, calls and stacks that were seen at the last look, and the line of that.
    heard: (u64, u64),
    /// What follows is not read.
    given_up: bool,
    /// The first line that could not be read.
    odd_line: Option<String>,
}

impl<'a> Reader<'a> {
    fn new(delivery: Delivery<'a>) -> Reader<'a> {
        Reader {
            delivery,
            lane: Lane::default(),
            graph: Graph::default(),
            is_trace: false,
            calls: 0,
            heard: (0, 0),
            given_up: false,
            odd_line: None,
        }
    }

    /// Whole lines; only the very last one of an input may lack its end.
    fn lines(&mut self, text: &[u8]) -> Result<(), Error> {
        let mut at = 0;
        while at < text.len() && !self.given_up {
            let rest = &text[at..];
            self.delivery.line += 1;
            let len = match self.usual_line(rest) {
                Some(len) => len,
                None => self.any_line(rest)?,
            };
            at += len + 1;
        }
        Ok(())
    }

    /// The line at the start of `text`, if it looks like recent ones: gives its length. It must have a line end.
    #[inline(always)]
    fn usual_line(&mut self, text: &[u8]) -> Option<usize> {
        let line = self.lane.usual(text)?;
        self.deliver(&line.context, &text[line.context.comm.clone()], line.index, &text[line.payload]);
        Some(line.len)
    }

    /// Any line; gives its length.
    #[inline(never)]
    fn any_line(&mut self, text: &[u8]) -> Result<usize, Error> {
        let end = memchr::memchr(b'\n', text);
        let line = &text[..end.unwrap_or(text.len())];
        if line.len() > MAX_LINE {
            self.warn("a line longer than 1 MiB was skipped");
            return Ok(line.len());
        }
        let bare = line.strip_suffix(b"\r").unwrap_or(line);
        let known = self.event_line(bare) || self.other_line(bare.trim_ascii_end());
        match (known, end) {
            (true, Some(_)) => {}
            (true, None) => self.warn("the last line has no line end: it may be cut short"),
            (false, None) => {
                let place = self.delivery.place();
                let message = "the last line is truncated and was skipped";
                self.delivery.outcome.warnings.cut(|| place, message);
            }
            (false, Some(_)) => self.refuse(line)?,
        }
        let heard = self.delivery.outcome.events + self.delivery.outcome.stacks + self.calls;
        if heard != self.heard.0 {
            self.heard = (heard, self.delivery.line);
        } else if self.delivery.line - self.heard.1 > SILENCE {
            self.give_up("1,048,576 lines in a row without an event; nothing behind them is read")?;
        }
        Ok(line.len())
    }

    /// Stops reading, with an error if there was nothing to read.
    fn give_up(&mut self, why: &str) -> Result<(), Error> {
        let place = self.delivery.place();
        if self.delivery.outcome.events + self.calls == 0 {
            return Err(Error::at(place, format!("{why}, and no event was before it: this is not a trace")));
        }
        self.given_up = true;
        self.delivery.outcome.warnings.cut(|| place, why);
        Ok(())
    }

    fn too_long(&mut self) {
        self.delivery.line += 1;
        self.warn("a line longer than 1 MiB was skipped");
    }

    /// A line that nothing here reads.
    fn refuse(&mut self, line: &[u8]) -> Result<(), Error> {
        self.warn("a line that is not an event was skipped");
        self.odd_line.get_or_insert_with(|| excerpt(line));
        if !self.is_trace && self.delivery.line >= MAX_UNKNOWN_LINES { Err(self.unknown()) } else { Ok(()) }
    }

    fn end(mut self) -> Result<(), Error> {
        if !self.is_trace {
            return Err(self.unknown());
        }
        if self.lane.names.is_full() {
            self.warn("more event names than any kernel has: further ones are named `?`");
        }
        self.delivery.finish();
        Ok(())
    }

    fn unknown(&self) -> Error {
        let message = match (&self.odd_line, self.delivery.line) {
            (_, 0) => "it is empty".to_string(),
            (Some(line), _) => {
                format!("no line of the kinds that ftrace, trace-cmd report and perf script print, but `{line}`")
            }
            (None, lines) => format!("no event in {lines} lines"),
        };
        Error::Unknown { file: self.delivery.name.into(), message }
    }

    #[cold]
    fn warn(&mut self, message: &str) {
        self.delivery.warn(message);
    }

    /// A line with columns.
    fn event_line(&mut self, line: &[u8]) -> bool {
        let Some(context) = self.lane.columns.read(line) else { return false };
        self.is_trace = true;
        let (comm, rest) = (&line[context.comm.clone()], &line[context.event..]);
        if self.event(&context, comm, rest) {
            return true;
        }
        // Columns without `name:` are the head of a stack trace, or a line of the function tracer.
        if rest.starts_with(b"<") && memchr::memmem::find(rest, b"stack trace").is_some() {
            self.delivery.outcome.stacks += 1;
            return true;
        }
        let is_function = memchr::memmem::find(rest, b" <-").is_some();
        if is_function {
            let index = self.lane.names.named(b"function:");
            self.deliver(&context, comm, index, rest);
        }
        is_function
    }

    /// `name: payload`.
    fn event(&mut self, context: &Context, comm: &[u8], text: &[u8]) -> bool {
        let Some((index, at)) = self.lane.names.find(text, context.place) else { return false };
        let name = self.lane.names.get(index);
        if name.is_stack {
            self.delivery.outcome.stacks += 1;
            return true;
        }
        name.read(&text[at..]);
        self.deliver(context, comm, index, &text[at..]);
        true
    }

    /// Gives an event whose values were read.
    #[inline(always)]
    fn deliver(&mut self, context: &Context, comm: &[u8], index: usize, payload: &[u8]) {
        let name = self.lane.names.get(index);
        self.delivery.event(context, comm, index, name, payload, name.values());
    }

    /// Gives an event of a line that a lane read.
    #[inline(always)]
    fn given(&mut self, context: &Context, text: &[u8], id: usize, payload: Range<usize>, values: Values<'_>) {
        self.is_trace = true;
        let (comm, payload) = (&text[context.comm.clone()], &text[payload]);
        self.delivery.event(context, comm, id, self.lane.names.get(id), payload, values);
    }

    /// A line without the columns of an event.
    #[inline(never)]
    fn other_line(&mut self, line: &[u8]) -> bool {
        let bare = line.trim_ascii_start();
        if bare.is_empty() || bare.starts_with(b"=>") {
            return true;
        }
        if line.starts_with(b"#") {
            self.header(line);
            return true;
        }
        if let Some((cpu, events)) = loss(bare) {
            self.is_trace = true;
            self.delivery.losses.push((cpu, events));
            self.delivery.outcome.add_lost(cpu, events);
            return true;
        }
        let report_head = line.starts_with(b"cpus=") || line.starts_with(b"version = ");
        if report_head || (line.starts_with(b"CPU ") && line.ends_with(b" is empty")) {
            return true;
        }
        self.graph_line(line) || self.bare_event(line)
    }

    /// `# tracer: nop` and `# entries-in-buffer/entries-written: 10/25   #P:2`.
    fn header(&mut self, line: &[u8]) {
        self.is_trace |= line.starts_with(b"# tracer: ") || line.starts_with(b"##### CPU ");
        let entries = || {
            let rest = line.strip_prefix(b"# entries-in-buffer/entries-written: ")?;
            let (kept, slash) = values::decimal(rest, 0)?;
            let (written, _) = values::decimal(rest, slash + 1)?;
            written.checked_sub(kept).filter(|n| *n > 0)
        };
        if let Some(overwritten) = entries() {
            let cpu = Outcome::SOME_CPU;
            self.delivery.losses.push((cpu, Some(overwritten)));
            self.delivery.outcome.add_lost(cpu, Some(overwritten));
        }
    }

    fn graph_line(&mut self, line: &[u8]) -> bool {
        match self.graph.read(line) {
            None => false,
            Some(graph::Line::Other) => true,
            Some(graph::Line::Call { cpu, nanoseconds, function }) => {
                self.is_trace = true;
                self.calls += 1;
                match function {
                    Some(function) => self.delivery.sink.call(&Call { function: &function, cpu, nanoseconds }),
                    None => self.warn("the end of a function without a start was skipped"),
                }
                true
            }
            Some(graph::Line::Comment { cpu, ts, task, text }) => {
                if ts.is_none() {
                    self.warn("events without a time have time 0");
                }
                let task = task.unwrap_or_default();
                let (comm, pid) = task.rsplit_once('-').unwrap_or((&task, ""));
                let context =
                    Context { cpu, pid: pid.parse().unwrap_or(-1), ts: ts.unwrap_or(0), ..Context::default() };
                self.event(&context, comm.as_bytes(), text)
            }
        }
    }

    /// `event: payload` alone (option `nocontext-info`). Any prose may look like that, so either a header or the
    /// vocabulary must vouch for it.
    fn bare_event(&mut self, line: &[u8]) -> bool {
        let Some(label) = kinds::label(line) else { return false };
        let is_known = || std::str::from_utf8(&label[..label.len() - 1]).is_ok_and(|n| Kind::of_name(n) != Kind::Other);
        if !self.is_trace && !is_known() {
            return false;
        }
        self.is_trace = true;
        self.warn("events without columns have time 0, CPU 0 and task -1");
        self.event(&Context { pid: -1, ..Context::default() }, b"", line)
    }
}

/// `CPU:0 [LOST 252 EVENTS]`, `CPU:0 [252 EVENTS DROPPED]`, or either without the number: CPU and number.
fn loss(line: &[u8]) -> Option<(u32, Option<u64>)> {
    let at = if line.starts_with(b"CPU:") { 0 } else { memchr::memmem::find(line, b": CPU:")? + 2 };
    let (cpu, end) = values::decimal(line, at + 4)?;
    let note = line.get(end..)?.trim_ascii().strip_prefix(b"[")?.strip_suffix(b"]")?;
    let events = match note {
        b"LOST EVENTS" | b"EVENTS DROPPED" => None,
        _ => {
            let number = note.strip_prefix(b"LOST ").and_then(|n| n.strip_suffix(b" EVENTS"));
            let number = number.or_else(|| note.strip_suffix(b" EVENTS DROPPED"))?;
            let (events, end) = values::decimal(number, 0)?;
            (end == number.len()).then_some(Some(events))?
        }
    };
    Some((u32::try_from(cpu).ok()?, events))
}

/// The start of a line, for messages.
fn excerpt(line: &[u8]) -> String {
    line[..line.len().min(60)].escape_ascii().to_string()
}
