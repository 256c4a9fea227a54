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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Outcome, Place};
    use mmtwin_event::{Kind, Slots};

    const SWITCH: &str = include_str!("../../tests/data/formats/sched_switch-6.18.txt");

    fn event<'a>(pid: i32, cpu: u32, id: u32, raw: &'a [u8]) -> Event<'a> {
        Event {
            ts: 52_035_058_000,
            cpu,
            pid,
            tgid: 0,
            flags: 0,
            preempt_count: 0,
            kind: Kind::Other,
            id,
            comm: b"",
            name: "",
            raw,
            fields: Fields::Untyped,
        }
    }

    fn written(style: TextStyle, formats: Option<Formats>, feed: impl Fn(&mut TextWriter<Vec<u8>>)) -> Vec<String> {
        let mut writer = TextWriter::new(Vec::new(), "lines", style, formats.map(Arc::new));
        feed(&mut writer);
        writer.finish();
        let bytes = writer.close().unwrap();
        String::from_utf8(bytes).unwrap().lines().map(str::to_string).collect()
    }

    /// A `sched_switch` from `ab` (pid 211) to `cd` (pid 220), and the formats to print it.
    fn switch() -> (Formats, u16, Vec<u8>) {
        let mut formats = Formats::new(false, 8);
        let id = formats.add("sched", SWITCH, &Place::file("f")).unwrap();
        let format = formats.get(id).unwrap();
        let mut raw = vec![0; format.size];
        for (name, bytes) in
            [("prev_comm", b"ab".as_slice()), ("prev_pid", &[211]), ("next_comm", b"cd"), ("next_pid", &[220])]
        {
            let at = format.fields.iter().find(|f| f.name == name).unwrap().offset as usize;
            raw[at..at + bytes.len()].copy_from_slice(bytes);
        }
        (formats, id, raw)
    }

    #[test]
    fn tasks_are_named_by_the_source_and_by_the_scheduler() {
        let (formats, id, raw) = switch();
        let lines = written(TextStyle::TraceCmd { instance: "lab".into() }, Some(formats), |w| {
            w.start(&Source { cpus: 2, ..Source::default() });
            w.task(&Task { pid: 211, tgid: 0, comm: b"by source", cgroup: None });
            for pid in [0, 211, 220, 220] {
                w.event(&event(pid, 3, id.into(), &raw));
            }
        });
        let rest = "[003]    52.035058: sched_switch:         ab:211 [0] R ==> cd:220 [0]";
        let expected = [
            "cpus=2".to_string(),
            format!("lab:           <idle>-0     {rest}"),
            format!("lab:        by source-211   {rest}"),
            format!("lab:               cd-220   {rest}"),
            format!("lab:               cd-220   {rest}"),
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_task_is_unknown_until_it_is_named() {
        let (formats, id, raw) = switch();
        let lines = written(TextStyle::Kernel(Columns::NoFlags, None), Some(formats), |w| {
            w.event(&event(220, 0, id.into(), &raw));
            w.event(&event(220, 0, id.into(), &raw));
        });
        assert!(lines[0].starts_with("           <...>-220   [000]"), "{}", lines[0]);
        assert!(lines[1].starts_with("              cd-220   [000]"), "{}", lines[1]);
    }

    #[test]
    fn losses_stand_before_the_next_event_of_their_cpu() {
        let (formats, id, raw) = switch();
        let feed = |w: &mut TextWriter<Vec<u8>>| {
            w.lost(Outcome::SOME_CPU, Some(9), 0);
            w.lost(1, Some(252), 0);
            w.lost(0, None, 0);
            for cpu in [2, 0, 1] {
                w.event(&event(0, cpu, id.into(), &raw));
            }
            w.lost(5, None, 0);
        };
        let short = |lines: Vec<String>| lines.iter().map(|l| l.chars().take(30).collect()).collect::<Vec<String>>();
        let lines = short(written(TextStyle::Kernel(Columns::NoFlags, None), Some(formats), feed));
        let task = "          <idle>-0     ";
        let expected = [
            "# lost events: 9".to_string(),
            format!("{task}[002]  "),
            "CPU:0 [LOST EVENTS]".into(),
            format!("{task}[000]  "),
            "CPU:1 [LOST 252 EVENTS]".into(),
            format!("{task}[001]  "),
            "CPU:5 [LOST EVENTS]".into(),
        ];
        assert_eq!(lines, expected);
        let (formats, ..) = switch();
        let lines = short(written(TextStyle::TraceCmd { instance: "lab".into() }, Some(formats), feed));
        assert_eq!(lines[2], "lab: CPU:0 [EVENTS DROPPED]");
        assert_eq!(&lines[3][..23], task);
        assert_eq!(lines[4], "lab: CPU:1 [252 EVENTS DROPPED");
    }

    #[test]
    fn payloads_of_text_stay_and_unknown_records_are_kept_as_bytes() {
        let slots = Slots::default();
        let line = Event {
            comm: b"kworker/u8:1-ext4",
            name: "sched_switch",
            raw: b"prev_comm=a  b",
            fields: Fields::Text(&slots),
            ..event(9, 0, 0, b"")
        };
        let style = || TextStyle::Kernel(Columns::NoFlags, Some(Header::default()));
        let lines = written(style(), None, |w| {
            w.start(&Source::default());
            w.event(&line);
        });
        assert_eq!(lines.last().unwrap(), "kworker/u8:1-ext4-9     [000]    52.035058: sched_switch: prev_comm=a  b");
        let (formats, ..) = switch();
        let lines = written(style(), Some(formats), |w| w.event(&event(9, 0, 65535, &[0xab, 0])));
        assert!(lines[0].ends_with("52.035058: [UNKNOWN EVENT] type=65535 record=ab00"), "{}", lines[0]);
    }

    #[test]
    fn a_failed_write_comes_out_at_the_end() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
                Err(std::io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let (formats, id, raw) = switch();
        let style = TextStyle::Kernel(Columns::NoFlags, None);
        let mut writer = TextWriter::new(Full, "full.txt", style, Some(Arc::new(formats)));
        for _ in 0..2000 {
            writer.event(&event(0, 0, id.into(), &raw));
        }
        assert!(writer.failed());
        assert!(writer.close().err().unwrap().to_string().starts_with("full.txt: "));
    }
}
