//! An event as the kernels of one era have it: fields at their offsets, and its print format.
//!
//! Offsets follow the natural alignment of C on a 64-bit machine; the dynamic strings of a record begin behind the last
//! field, without padding, while the space for the fields is rounded up to their alignment (as the kernel's trace
//! macros reserve it). Validated against the formats of 6.1 and 6.18 (see [`super`]).

use super::Era;
use super::args::{Arg, Piece};
use super::table::{Declaration, Entry};
use super::words::Words;
use crate::value::Shape;
use crate::vocabulary::{Kind, Schema};

/// An event in one era.
#[derive(Clone, Debug)]
pub struct Definition {
    /// The era.
    pub era: Era,
    /// Trace system (`vmscan`).
    pub system: &'static str,
    /// Name in that era.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// Fields behind the common ones, in order.
    pub fields: Vec<Field>,
    pub(super) schema: &'static Schema,
    pub(super) format: &'static str,
    pub(super) args: Vec<Arg>,
    pub(super) pieces: Vec<Piece>,
    /// End of the last field.
    pub(super) end: u16,
    /// The same, rounded up to the alignment of the record.
    pub(super) size: u16,
}

/// One field of a record.
#[derive(Clone, Debug)]
pub struct Field {
    /// Name in the format.
    pub name: &'static str,
    /// C type, of the elements if it is an array.
    pub c_type: &'static str,
    /// Elements of an array.
    pub array: Option<u16>,
    /// Bytes from the start of the record, its common fields included.
    pub offset: u16,
    /// Bytes.
    pub size: u16,
    /// The kernel's `signed` flag.
    pub signed: bool,
    /// How the value is held.
    pub form: Form,
    /// Position in the event's [`Schema`]; `None`: the vocabulary does not have the field.
    pub slot: Option<usize>,
    /// Words for its numbers.
    pub(super) words: Option<&'static Words>,
    /// Lines show these pages as bytes.
    pub(super) as_bytes: bool,
    /// A frame number of all ones: there is no page.
    pub(super) may_fail: bool,
}

/// How a field holds its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A number.
    Number,
    /// An array of characters, NUL-terminated.
    Chars,
    /// An array of numbers.
    Numbers,
    /// `__data_loc`: a string behind the fields.
    Text,
}

impl Field {
    fn declared(era: Era, schema: &Schema, declaration: &Declaration) -> Option<Field> {
        let Declaration { c_type, name, array } = *declaration;
        let (element, signed) = match c_type {
            "string" => (4, era.signed_char()),
            "char" => (1, era.signed_char()),
            "bool" | "unsigned char" => (1, false),
            "short" => (2, true),
            "int" | "pid_t" => (4, true),
            "unsigned int" | "gfp_t" | "isolate_mode_t" | "dev_t" | "uid_t" => (4, false),
            "long" => (8, true),
            "unsigned long" | "unsigned long long" | "size_t" | "ino_t" | "pgoff_t" => (8, false),
            _ if c_type.starts_with("enum ") => (4, false),
            _ if c_type.ends_with('*') => (8, false),
            _ => return None,
        };
        let form = match (c_type, array) {
            ("string", _) => Form::Text,
            ("char", Some(_)) => Form::Chars,
            (_, Some(_)) => Form::Numbers,
            (_, None) => Form::Number,
        };
        let size = element * array.unwrap_or(1);
        let slot = schema.slot(name.as_bytes());
        Some(Field {
            name,
            c_type,
            array,
            offset: 0,
            size,
            signed,
            form,
            slot,
            words: None,
            as_bytes: false,
            may_fail: false,
        })
    }

    fn alignment(&self) -> u16 {
        self.size / self.array.unwrap_or(1)
    }
}

impl Definition {
    fn of(era: Era, name: &'static str, entry: &Entry) -> Result<Definition, String> {
        let fail = |what: &str| format!("{name} in era {era:?}: {what}");
        let kind = Kind::of_name(name);
        let schema = kind.schema().ok_or_else(|| fail("not in the vocabulary"))?;
        let fields = entry.fields.iter().map(|d| Field::declared(era, schema, d).ok_or_else(|| fail(d.c_type)));
        let mut fields = fields.collect::<Result<Vec<Field>, String>>()?;
        let args = entry.args.iter().map(|arg| Arg::parse(arg, era, &fields).ok_or_else(|| fail(arg)));
        let args = args.collect::<Result<Vec<Arg>, String>>()?;
        let pieces = Piece::parse(entry.format).ok_or_else(|| fail("print format"))?;
        if pieces.iter().filter(|p| !matches!(p, Piece::Literal(_))).count() != args.len() {
            return Err(fail("another number of arguments than the format has"));
        }
        for arg in &args {
            match *arg {
                Arg::Words(field, words) => fields[field].words = Some(words),
                Arg::Bytes(field) => fields[field].as_bytes = true,
                Arg::Known(field) => fields[field].may_fail = true,
                _ => {}
            }
        }
        let mut definition = Definition {
            era,
            system: entry.system,
            name,
            kind,
            fields,
            schema,
            format: entry.format,
            args,
            pieces,
            end: 0,
            size: 0,
        };
        definition.place();
        Ok(definition)
    }

    /// Gives every field its offset.
    fn place(&mut self) {
        let mut alignment = 4;
        let mut end = self.era.common_size();
        for field in &mut self.fields {
            alignment = alignment.max(field.alignment());
            field.offset = end.next_multiple_of(field.alignment());
            end = field.offset + field.size;
        }
        self.end = end;
        self.size = end.next_multiple_of(alignment);
    }

    /// The same event without the fields that its printed line does not show: all that is known of an event that was
    /// read from text. Such are the zones of kswapd wakes since 4.x.
    pub fn printed(&self) -> Definition {
        let mut shown = vec![false; self.fields.len()];
        self.args.iter().flat_map(Arg::fields).for_each(|field| shown[field] = true);
        let mut position = 0;
        let positions: Vec<usize> = shown.iter().map(|shown| (position, position += usize::from(*shown)).0).collect();
        let mut kept = self.clone();
        kept.fields = self.fields.iter().zip(&shown).filter(|(_, shown)| **shown).map(|(f, _)| f.clone()).collect();
        kept.args = self.args.iter().map(|arg| arg.moved(&positions)).collect();
        kept.place();
        kept
    }

    /// The vocabulary's schema of a field.
    pub(super) fn shape(&self, field: &Field) -> Option<Shape> {
        Some(self.schema.fields.get(field.slot?)?.shape)
    }
}

/// All definitions of the entries of the tables.
pub(super) fn build(entries: &[Entry]) -> Result<Vec<Definition>, String> {
    let each = |entry| names_and_eras(entry).map(move |(name, era)| Definition::of(era, name, entry));
    entries.iter().flat_map(each).collect()
}

fn names_and_eras(entry: &Entry) -> impl Iterator<Item = (&'static str, Era)> {
    entry.names.iter().flat_map(|name| entry.eras.iter().map(|era| (*name, *era)))
}
