//! Records for the lines of a text.
//!
//! A line of an event that the vocabulary types is encoded as a record of its kernel's era and printed again. If the
//! print is the line, the record is written, under the era's format. Otherwise (a field that is not printed, a hashed
//! pointer, a kernel between the eras, an event without a type) the line becomes an event of its name in the system
//! `text`: it holds the text behind the name, which is what its format prints, and beside it the values that the line
//! shows. So what is printed from the file is the line, always, and the file can be analysed as the text can.
//! Printed functions get addresses of their own, with the distances that the lines show.
//! Not supported: GFP flags of such events where the kernel's release is unknown, for their bits differ.
//! Validated by the check itself, and with `trace-cmd report` on files made from texts of kernels 6.1 and 6.18.

use super::meta::FormatText;
use crate::format::{Formats, Out, Style};
use crate::functions::Functions;
use crate::{Error, Place, Warnings};
use mmtwin_event::era::{self, Common, Era, Values, gfp_bits};
use mmtwin_event::names::UNNAMED;
use mmtwin_event::value::{Bytes, Shape};
use mmtwin_event::vocabulary::FieldSchema;
use mmtwin_event::{Event, Fields, Kind};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// First id for formats; the kernel's own tracers have those below.
const FIRST_ID: u16 = 100;
/// Name for events whose own name trace-cmd could not read.
const ODD_NAME: &str = "text_line";
/// The common fields of text events; they are those of every kernel since 3.x.
const COMMON_FIELDS: &str = "\
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;
";
/// Where the values begin: behind the common fields, the word that says where the text is, and 4 bytes unused.
const VALUES: usize = 16;

/// How the records of a format are made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// As kernels of an era do.
    Era(Era),
    /// As text with the values of these slots, one bit each.
    Text(u32),
}

/// Makes records, and keeps what is needed to read them.
pub(super) struct Lines {
    /// Formats made so far, those of eras only; for the check.
    formats: Formats,
    /// The formats' texts, and if a record is written under it.
    texts: Vec<(FormatText, bool)>,
    /// By name: index in `texts` of its formats.
    by_name: FxHashMap<String, Vec<(Way, usize)>>,
    /// Eras to try, the likeliest first.
    eras: Vec<Era>,
    functions: Functions,
    printed: Out,
}

impl Lines {
    /// For a text of this kernel release, if it is known.
    pub fn new(release: Option<&str>) -> Lines {
        let eras = match release.and_then(Era::of_release) {
            Some(era) => vec![era],
            None => Era::ALL.into_iter().rev().collect(),
        };
        let formats = Formats::new(false, 8);
        let (texts, by_name, functions, printed) = Default::default();
        Lines { formats, texts, by_name, eras, functions, printed }
    }

    /// The record of a line. What of it cannot be kept is noted in `left_out`.
    pub fn record(&mut self, event: &Event<'_>, left_out: &mut Warnings) -> Result<Vec<u8>, Error> {
        if event.kind != Kind::Other {
            for i in 0..self.eras.len() {
                if let Some(record) = self.typed(self.eras[i], event)? {
                    self.eras[..=i].rotate_right(1);
                    return Ok(record);
                }
            }
        }
        // Names that are no words are those of functions that called trace_printk.
        let is_word = event.name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') && !event.name.is_empty();
        let (name, before, between) = if is_word { (event.name, "", "") } else { (ODD_NAME, event.name, ": ") };
        if !is_word {
            let message = "an event name that is not a word is written at the start of the text of `text_line`";
            left_out.add(|| Place::file(event.name), message);
        }
        let values = self.values(event);
        let shown = values.iter().fold(0, |mask, (slot, _)| mask | 1 << slot);
        let fields = || values.iter().filter_map(|(slot, _)| event.kind.schema()?.fields.get(*slot));
        let index = self.format(Way::Text(shown), name, |id| ("text", text_format(name, id, fields())))?;
        self.texts[index].1 = true;
        let text_at = VALUES + values.len() * 8;
        let before_text = text_at + before.len() + between.len();
        let parts = [before.as_bytes(), between.as_bytes(), event.raw, b"\0"];
        let length = parts.iter().map(|p| p.len()).sum::<usize>();
        let mut record = id_of(index).to_le_bytes().to_vec();
        record.extend([event.flags, event.preempt_count]);
        record.extend(event.pid.to_le_bytes());
        record.extend(u64::from(location(text_at, length)).to_le_bytes());
        for (_, value) in values {
            record.extend(match value {
                Value::Number(number) => number.to_le_bytes(),
                Value::Text(text) => {
                    u64::from(location(before_text + text.start as usize, text.len as usize + 1)).to_le_bytes()
                }
            });
        }
        parts.iter().for_each(|p| record.extend_from_slice(p));
        Ok(record)
    }

    /// What a line shows, by slot, in the numbers that a format without lists of words has.
    fn values(&mut self, event: &Event<'_>) -> Vec<(usize, Value)> {
        let (Fields::Text(slots), Some(schema)) = (event.fields, event.kind.schema()) else { return Vec::new() };
        let mut values = Vec::new();
        for (slot, field) in schema.fields.iter().enumerate() {
            if slots.present >> slot & 1 == 0 {
                continue;
            }
            let held = slots.values[slot];
            let text = Bytes::from_slot(held);
            let value = match field.shape {
                Shape::Int | Shape::Uint | Shape::Hex | Shape::Bool | Shape::Flags(_) | Shape::Dev => {
                    Value::Number(held)
                }
                Shape::Name(_) if held & UNNAMED != 0 => Value::Number(held & !UNNAMED),
                Shape::Name(table) => match table.numbers.get(held as usize) {
                    Some(number) => Value::Number(*number),
                    None => continue,
                },
                Shape::Str => Value::Text(text),
                Shape::Sym => Value::Number(self.functions.address(text.of(event.raw))),
                Shape::Gfp => match self.eras[..] {
                    [era] => match gfp_bits(era, text.of(event.raw)) {
                        Some(bits) => Value::Number(bits),
                        None => continue,
                    },
                    _ => continue,
                },
            };
            values.push((slot, value));
        }
        values
    }

    /// The record of an era, if what it prints is the line.
    fn typed(&mut self, era: Era, event: &Event<'_>) -> Result<Option<Vec<u8>>, Error> {
        let (Fields::Text(slots), Some(definition)) = (event.fields, era::find(era, event.name)) else {
            return Ok(None);
        };
        let index = self.format(Way::Era(era), event.name, |id| (definition.system, definition.format_text(id)))?;
        let common = Common { pid: event.pid, flags: event.flags, preempt_count: event.preempt_count };
        let known = self.functions.count();
        let mut address = |printed: &[u8]| self.functions.address(printed);
        let values = Values { slots, raw: event.raw };
        let Ok(record) = definition.encode(id_of(index), common, values, &mut address) else { return Ok(None) };
        if self.functions.count() > known {
            self.formats.set_symbols(Arc::new(self.functions.symbols()));
        }
        let Some(format) = self.formats.get(id_of(index)) else { return Ok(None) };
        self.printed.truncate(0);
        format.print(&self.formats, &record, Style::Kernel, &mut self.printed);
        if self.printed.as_bytes() != event.raw {
            return Ok(None);
        }
        self.texts[index].1 = true;
        Ok(Some(record))
    }

    /// Index of a format, which `make` gives (system, text) of if it is new.
    fn format(
        &mut self,
        way: Way,
        name: &str,
        make: impl FnOnce(u16) -> (&'static str, String),
    ) -> Result<usize, Error> {
        let known = self.by_name.get(name).and_then(|of_name| of_name.iter().find(|(w, _)| *w == way));
        if let Some((_, index)) = known {
            return Ok(*index);
        }
        let index = self.texts.len();
        let place = Place::file(name);
        if index >= usize::from(u16::MAX - FIRST_ID) {
            return Err(Error::at(place, "more event names than a trace.dat can have"));
        }
        let (system, text) = make(id_of(index));
        if let Way::Era(_) = way {
            self.formats.add(system, &text, &place)?;
        }
        self.texts.push((FormatText { system: system.into(), text, offset: 0 }, false));
        self.by_name.entry(name.into()).or_default().push((way, index));
        Ok(index)
    }

    /// The formats that records were written under, and the text of kallsyms.
    pub fn close(self) -> (Vec<FormatText>, Vec<u8>) {
        let formats = self.texts.into_iter().filter(|(_, used)| *used).map(|(text, _)| text);
        (formats.collect(), self.functions.kallsyms())
    }
}

/// A value of a text event.
enum Value {
    Number(u64),
    /// A range of the text.
    Text(Bytes),
}

/// The word of a `__data_loc` field.
fn location(at: usize, length: usize) -> u32 {
    (length as u32) << 16 | at as u32
}

/// A format that prints the text and nothing else.
fn text_format<'s>(name: &str, id: u16, fields: impl Iterator<Item = &'s FieldSchema>) -> String {
    let mut declared = String::new();
    for (i, field) in fields.enumerate() {
        let (declaration, size, signed) = match field.shape {
            Shape::Str => ("__data_loc char[]", 4, 0),
            Shape::Int => ("s64", 8, 1),
            _ => ("u64", 8, 0),
        };
        let offset = VALUES + 8 * i;
        let name = field.name;
        declared += &format!("\tfield:{declaration} {name};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n");
    }
    format!(
        "name: {name}\nID: {id}\nformat:\n{COMMON_FIELDS}\n\
         \tfield:__data_loc char[] text;\toffset:8;\tsize:4;\tsigned:0;\n{declared}\n\
         print fmt: \"%s\", __get_str(text)\n"
    )
}

fn id_of(index: usize) -> u16 {
    FIRST_ID + index as u16
}
