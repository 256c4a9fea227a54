//! A sink that prints events as lines of text.
//!
//! Models two printers: the kernel's `trace` file and `trace-cmd report`. Task names of binary sources come by
//! [`Sink::task`], and from the scheduler events themselves, as in trace-cmd. Validated line for line against both.

use super::columns::{Clock, Columns, Header, cpu, task};
use crate::format::{Formats, Out, Style};
use crate::{Error, Outcome};
use mmtwin_event::{Event, Fields, Sink, Source, Task};
use rustc_hash::FxHashMap;
use std::io::Write;
use std::sync::Arc;

/// Whose lines to print.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextStyle {
    /// As the kernel's `trace` file, with the comments above the lines or without.
    Kernel(Columns, Option<Header>),
    /// As `trace-cmd report`: an instance's name, if not empty, stands before each line.
    TraceCmd {
        /// Name of the instance, empty for the top one.
        instance: String,
    },
}

/// Writes a stream of events as text.
pub struct TextWriter<W: Write> {
    to: W,
    name: String,
    style: TextStyle,
    formats: Option<Arc<Formats>>,
    tasks: FxHashMap<i32, TaskColumns>,
    /// Losses by CPU that stand before the next event of that CPU.
    lost: Vec<(u32, Option<u64>)>,
    out: Out,
    clock: Clock,
    error: Option<Error>,
}

/// Text that is handed on when it is this long.
const CHUNK: usize = 1 << 16;

/// `COMM-PID ` as it stands in a line, within its first bytes.
#[derive(Clone, Copy)]
struct TaskColumns {
    text: [u8; 40],
    len: u8,
}

impl<W: Write> TextWriter<W> {
    /// A writer to `to`, which messages call `name`. `formats` are those of the source, if it is binary.
    pub fn new(to: W, name: &str, style: TextStyle, formats: Option<Arc<Formats>>) -> TextWriter<W> {
        let (tasks, lost, out) = Default::default();
        let clock = Clock::new(None);
        TextWriter { to, name: name.into(), style, formats, tasks, lost, out, clock, error: None }
    }

    /// Hands on what is left. The first error of any write comes out here.
    pub fn close(mut self) -> Result<W, Error> {
        self.hand_on();
        if self.error.is_none() {
            self.error = self.to.flush().err().map(|e| Error::io(&self.name, e));
        }
        match self.error {
            Some(error) => Err(error),
            None => Ok(self.to),
        }
    }

    /// A write has failed: further events are not printed.
    pub fn failed(&self) -> bool {
        self.error.is_some()
    }

    fn hand_on(&mut self) {
        if self.error.is_none() {
            self.error = self.to.write_all(self.out.as_bytes()).err().map(|e| Error::io(&self.name, e));
        }
        self.out.truncate(0);
    }

    /// The name of the instance stands before each event, and before the loss that belongs to it.
    fn print_instance(&mut self) {
        if let TextStyle::TraceCmd { instance } = &self.style
            && !instance.is_empty()
        {
            self.out.extend(instance.as_bytes());
            self.out.extend(b": ");
        }
    }

    /// Prints the losses of a CPU, or of all.
    fn print_losses(&mut self, of: Option<u32>) {
        let kernel = self.style.style() == Style::Kernel;
        let out = &mut self.out;
        self.lost.retain(|&(cpu, events)| {
            if of.is_some_and(|of| of != cpu) {
                return true;
            }
            out.extend(b"CPU:");
            out.decimal(cpu.into());
            out.extend(if kernel { b" [LOST " } else { b" [" });
            if let Some(events) = events {
                out.decimal(events);
                out.push(b' ');
            }
            out.extend(if kernel { b"EVENTS]\n" } else { b"EVENTS DROPPED]\n" });
            false
        });
    }

    fn print_task(&mut self, event: &Event<'_>) {
        if event.comm.is_empty() {
            let style = &self.style;
            let known = self.tasks.entry(event.pid).or_insert_with(|| {
                let comm = if event.pid == 0 { b"<idle>".as_slice() } else { b"<...>" };
                TaskColumns::new(style, comm, event.pid)
            });
            self.out.extend(&known.text[..usize::from(known.len)]);
        } else {
            self.style.task(event.comm, event.pid, &mut self.out);
        }
    }

    fn print_payload(&mut self, event: &Event<'_>) {
        let style = self.style.style();
        let formats = self.formats.as_ref().filter(|_| !matches!(event.fields, Fields::Text(_)));
        let format = formats.and_then(|f| f.get(u16::try_from(event.id).ok()?));
        match (formats, format) {
            (Some(formats), Some(format)) => {
                format.print_named(formats, event.raw, style, &mut self.out);
                // Scheduler events name tasks; names that came before stay.
                for (pid, comm) in format.named_tasks(event.raw, formats.big_endian()).into_iter().flatten() {
                    let unknown = self.tasks.get(&pid).is_none_or(TaskColumns::is_unknown);
                    if unknown && pid != 0 {
                        self.tasks.insert(pid, TaskColumns::new(&self.style, comm, pid));
                    }
                }
            }
            (Some(_), None) => {
                self.out.extend(b"[UNKNOWN EVENT] type=");
                self.out.decimal(event.id.into());
                self.out.extend(b" record=");
                event.raw.iter().for_each(|byte| self.out.hex_digits((*byte).into(), 2));
            }
            (None, _) => {
                style.name(event.name, &mut self.out);
                self.out.extend(event.raw);
            }
        }
        // Markers end in a line break of their own.
        if self.out.as_bytes().last() == Some(&b'\n') {
            self.out.truncate(self.out.len() - 1);
        }
        self.out.push(b'\n');
    }
}

impl TextStyle {
    fn style(&self) -> Style {
        match self {
            TextStyle::Kernel(..) => Style::Kernel,
            TextStyle::TraceCmd { .. } => Style::TraceCmd,
        }
    }

    fn task(&self, comm: &[u8], pid: i32, out: &mut Out) {
        match self {
            TextStyle::Kernel(columns, _) => columns.task(comm, pid, out),
            TextStyle::TraceCmd { .. } => task(comm, pid, 5, out),
        }
    }
}

impl TaskColumns {
    fn new(style: &TextStyle, comm: &[u8], pid: i32) -> TaskColumns {
        let mut out = Out::default();
        style.task(&comm[..comm.len().min(24)], pid, &mut out);
        let mut text = [0; 40];
        let printed = out.as_bytes();
        text[..printed.len()].copy_from_slice(printed);
        TaskColumns { text, len: printed.len() as u8 }
    }

    fn is_unknown(&self) -> bool {
        self.text[..usize::from(self.len)].trim_ascii_start().starts_with(b"<...>-")
    }
}

impl<W: Write> Sink for TextWriter<W> {
    fn start(&mut self, source: &Source) {
        self.clock = Clock::new(source.clock.as_deref());
        match &self.style {
            TextStyle::Kernel(columns, Some(header)) => columns.header(*header, &mut self.out),
            TextStyle::Kernel(_, None) => {}
            TextStyle::TraceCmd { .. } => {
                self.out.extend(b"cpus=");
                self.out.decimal(source.cpus.into());
                self.out.push(b'\n');
            }
        }
    }

    fn task(&mut self, task: &Task<'_>) {
        self.tasks.insert(task.pid, TaskColumns::new(&self.style, task.comm, task.pid));
    }

    fn event(&mut self, event: &Event<'_>) {
        if self.error.is_some() {
            return;
        }
        self.print_instance();
        if !self.lost.is_empty() {
            self.print_losses(Some(event.cpu));
        }
        self.print_task(event);
        match &self.style {
            TextStyle::Kernel(columns, _) => columns.context(event, &mut self.clock, &mut self.out),
            TextStyle::TraceCmd { .. } => {
                cpu(event.cpu, &mut self.out);
                self.clock.print(event.ts, &mut self.out);
            }
        }
        self.print_payload(event);
        if self.out.len() >= CHUNK {
            self.hand_on();
        }
    }

    fn lost(&mut self, cpu: u32, events: Option<u64>, _at: u64) {
        if cpu == Outcome::SOME_CPU {
            self.out.extend(b"# lost events: ");
            match events {
                Some(events) => self.out.decimal(events),
                None => self.out.extend(b"unknown number"),
            }
            return self.out.push(b'\n');
        }
        self.lost.push((cpu, events));
    }

    fn finish(&mut self) {
        self.print_losses(None);
        self.hand_on();
    }
}
