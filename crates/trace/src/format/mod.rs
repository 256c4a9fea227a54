//! Event formats: what tracefs shows as `events/SYSTEM/EVENT/format`, compiled.
//!
//! A recording brings its own formats, so nothing here depends on the kernel that reads it. [`parse`] reads the text;
//! [`layout`] maps fields to the slots of the vocabulary; [`expr`], [`eval`], [`text`], `pointer` and [`program`]
//! turn `print fmt` into a program that prints records, compiled when the first record of its kind is printed.

pub mod common;
mod conversion;
mod ctype;
mod eval;
mod expr;
mod fallback;
mod files;
mod layout;
mod lex;
mod native;
mod out;
mod parse;
mod plugin;
mod pointer;
mod program;
mod scope;
pub mod symbols;
mod text;
mod values;

pub use common::{Common, CommonFields};
pub(crate) use files::compile;
pub use out::Out;
pub use parse::{FieldDef, Storage};
pub use symbols::Symbols;

use crate::{Error, Place};
use expr::PrintText;
use mmtwin_event::stack::{KERNEL_STACK, StackRecord};
use mmtwin_event::{Kind, Layout};
use native::Native;
use plugin::Plugin;
use program::Program;
use scope::{Rules, Scope};
use std::sync::{Arc, OnceLock};
use text::PrintContext;

/// Whose text to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// As the kernel's own `trace` file. Pointers are not hashed, for the recording has the true ones.
    Kernel,
    /// As `trace-cmd report` with its usual plugins.
    TraceCmd,
}

/// One event format.
#[derive(Debug)]
pub struct Format {
    /// Trace system (`vmscan`).
    pub system: String,
    /// Event name.
    pub name: String,
    /// Number in `common_type` of its records.
    pub id: u16,
    /// All fields, common ones first.
    pub fields: Vec<FieldDef>,
    /// The text as recorded.
    pub text: String,
    /// What the event is to the vocabulary; [`Kind::Other`] if the vocabulary does not have it or `problems` say why.
    pub kind: Kind,
    /// Slots of the vocabulary; all absent for [`Kind::Other`].
    pub layout: Layout,
    /// A record with fewer bytes does not hold all fields.
    pub size: usize,
    /// Why a known event stays untyped, in sentences.
    pub problems: Vec<String>,
    print: Print,
    plugin: Plugin,
    native: Option<Native>,
    programs: [OnceLock<Result<Program, String>>; 2],
}

/// A `print fmt`, which is parsed when something asks what it says: most events of a recording are never printed.
#[derive(Debug)]
struct Print {
    text: String,
    long_size: u8,
    /// The arguments of `trace_printk` are packed.
    packed: bool,
    parsed: OnceLock<Result<PrintText, String>>,
}

impl Print {
    fn get(&self) -> Result<&PrintText, &String> {
        let parse = || match self.packed {
            true => Err("the arguments of trace_printk are packed".into()),
            false => expr::print_text(&self.text, self.long_size),
        };
        self.parsed.get_or_init(parse).as_ref()
    }
}

/// All formats of one recording.
#[derive(Debug)]
pub struct Formats {
    list: Vec<Format>,
    /// Index in `list` + 1 by id; 0: none.
    by_id: Vec<u16>,
    common: Option<Common>,
    big_endian: bool,
    long_size: u8,
    symbols: Symbols,
}

impl Formats {
    /// No formats yet. `long_size` is the size of the recorded kernel's `long` in bytes: 4 or 8, as it is taken for
    /// where a damaged input says something else.
    pub fn new(big_endian: bool, long_size: u8) -> Formats {
        let long_size = if long_size == 4 { 4 } else { 8 };
        let (list, by_id, common, symbols) = Default::default();
        Formats { list, by_id, common, big_endian, long_size, symbols }
    }

    /// Adds the format whose text is `text`; `place` is where it stands. Returns its id. A second format of the same
    /// id replaces the first.
    pub fn add(&mut self, system: &str, text: &str, place: &Place) -> Result<u16, Error> {
        let parsed = parse::parse(text, self.long_size, place)?;
        let common = match self.common {
            Some(common) => common,
            None => Common::of(&parsed.fields, self.big_endian, place)?,
        };
        let packed = system == "ftrace" && parsed.name == "bprint";
        let print = Print { text: parsed.print, long_size: self.long_size, packed, parsed: OnceLock::new() };
        let known = Kind::of_name(&parsed.name);
        let scope = self.scope(known, &parsed.fields, Rules::C);
        let plugin = plugin::of(system, &parsed.name, &scope);
        let native = native::of(system, &parsed.name, &scope);
        let ends = parsed.fields.iter().map(|f| f.offset as usize + f.size as usize);
        let size = ends.max().unwrap_or(0);
        let (kind, layout, problems) = match layout::compile(&|| print.get().ok(), &scope) {
            Ok(layout) => (known, layout, Vec::new()),
            Err(problems) => (Kind::Other, Layout::default(), problems),
        };
        let format = Format {
            system: system.to_string(),
            name: parsed.name,
            id: parsed.id,
            fields: parsed.fields,
            text: text.to_string(),
            kind,
            layout,
            size,
            problems,
            print,
            plugin,
            native,
            programs: Default::default(),
        };
        self.common = Some(common);
        let id = format.id;
        let slot = usize::from(id);
        if self.by_id.len() <= slot {
            self.by_id.resize(slot + 1, 0);
        }
        match self.by_id[slot] {
            0 => {
                self.list.push(format);
                // There are at most 65536 ids; the last of them would not fit, and no kernel has that many events.
                self.by_id[slot] = u16::try_from(self.list.len())
                    .map_err(|_| Error::at(place.clone(), "more than 65535 event formats"))?;
            }
            n => self.list[usize::from(n) - 1] = format,
        }
        Ok(id)
    }

    /// The format of an id.
    #[inline]
    pub fn get(&self, id: u16) -> Option<&Format> {
        let n = *self.by_id.get(usize::from(id))?;
        self.list.get(usize::from(n).checked_sub(1)?)
    }

    /// All formats, in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = &Format> {
        self.list.iter()
    }

    /// Where the common fields are: as the first format says, before it as in every kernel.
    #[inline]
    pub fn common(&self) -> Common {
        self.common.unwrap_or_else(|| Common::usual(self.big_endian))
    }

    /// Numbers are big endian.
    pub fn big_endian(&self) -> bool {
        self.big_endian
    }

    /// Size of the recorded kernel's `long` in bytes.
    pub fn long_size(&self) -> u8 {
        self.long_size
    }

    /// What records of the kernel's stack look like; `None`: there is no format of them.
    pub fn stack_record(&self) -> Option<StackRecord> {
        let format = self.list.iter().find(|f| f.system == "ftrace" && f.name == KERNEL_STACK)?;
        let offset = u16::try_from(format.fields.iter().find(|f| f.name == "caller")?.offset).ok()?;
        Some(StackRecord { offset, long_size: self.long_size, big_endian: self.big_endian })
    }

    /// Gives the symbols of the recorded kernel, sorted by address (see [`symbols::parse_kallsyms`]).
    pub fn set_symbols(&mut self, kallsyms: Arc<Vec<(u64, String)>>) {
        self.symbols.set_kallsyms(kallsyms);
        self.forget_programs();
    }

    /// Gives the strings of the recorded kernel by address (see [`symbols::parse_printk`]).
    pub fn set_printk(&mut self, strings: Vec<(u64, Vec<u8>)>) {
        self.symbols.set_printk(strings);
        self.forget_programs();
    }

    /// Programs remember what they printed for a symbol.
    fn forget_programs(&mut self) {
        for format in &mut self.list {
            format.programs = Default::default();
        }
    }

    fn scope<'a>(&'a self, kind: Kind, fields: &'a [FieldDef], rules: Rules) -> Scope<'a> {
        Scope { kind, fields, long_size: self.long_size, big_endian: self.big_endian, rules, symbols: &self.symbols }
    }

    fn env(&self, rules: Rules) -> PrintContext<'_> {
        PrintContext { big_endian: self.big_endian, long_size: self.long_size, symbols: &self.symbols, rules }
    }
}

impl Style {
    /// Prints an event's name as it stands before a payload. trace-cmd pads names to 20 characters.
    pub fn name(self, name: &str, out: &mut Out) {
        let start = out.len();
        out.extend(name.as_bytes());
        out.extend(b": ");
        if self == Style::TraceCmd {
            out.align(start, 22, true);
        }
    }

    fn rules(self) -> Rules {
        match self {
            Style::Kernel => Rules::C,
            Style::TraceCmd => Rules::TraceCmd,
        }
    }
}

impl Format {
    /// Its records are stacks of the event before them, and no events of their own.
    pub fn is_stack(&self) -> bool {
        self.kind == Kind::Other && self.system == "ftrace" && matches!(self.name.as_str(), KERNEL_STACK | "user_stack")
    }

    /// Prints the payload of a record: what follows `event: `. `formats` are those this format belongs to.
    pub fn print(&self, formats: &Formats, raw: &[u8], style: Style, out: &mut Out) {
        self.print_record(formats, raw, style, false, out);
    }

    /// Prints the name of the event as it stands in a line, then the payload.
    pub fn print_named(&self, formats: &Formats, raw: &[u8], style: Style, out: &mut Out) {
        self.print_record(formats, raw, style, true, out);
    }

    fn print_record(&self, formats: &Formats, raw: &[u8], style: Style, mut named: bool, out: &mut Out) {
        let env = formats.env(style.rules());
        if let (Some(native), true) = (&self.native, named) {
            if native.print(raw, env, out) {
                return;
            }
            // The tracer's own texts begin without a name; a record that is shown field by field needs it.
            named = style == Style::TraceCmd || raw.len() < self.size || self.program(formats, style).is_err();
        }
        let short = raw.len() < self.size;
        if short || style == Style::TraceCmd && self.plugin != Plugin::None {
            if named {
                style.name(&self.name, out);
                named = false;
            }
            if !short && self.plugin.print(raw, env, out) {
                return;
            }
        }
        match self.program(formats, style) {
            Ok(program) if !short => program.run(raw, env, named, out),
            _ => {
                if named {
                    style.name(&self.name, out);
                }
                fallback::print(self, raw, env, style, out);
            }
        }
    }

    /// Tasks that a record of the scheduler names: pid and name.
    pub fn named_tasks<'r>(&self, raw: &'r [u8], big_endian: bool) -> [Option<(i32, &'r [u8])>; 2] {
        self.plugin.named_tasks(raw, big_endian)
    }

    /// Why records of this format are printed field by field; `None` if they are printed as the kernel prints them.
    pub fn unprintable(&self, formats: &Formats, style: Style) -> Option<&str> {
        self.program(formats, style).as_ref().err().map(String::as_str)
    }

    fn program(&self, formats: &Formats, style: Style) -> &Result<Program, String> {
        self.programs[style as usize].get_or_init(|| match self.print.get() {
            Ok(text) => {
                let mut name = Out::default();
                style.name(&self.name, &mut name);
                Program::compile(name.as_bytes(), text, &formats.scope(self.kind, &self.fields, style.rules()))
            }
            Err(why) => Err(why.clone()),
        })
    }
}

#[cfg(test)]
mod tests;
