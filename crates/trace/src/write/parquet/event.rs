//! The columns of an event beside those that all events have.
//!
//! A typed event has the fields of the vocabulary, so its columns are the same for every kernel. An event without type
//! has the fields of its recorded format: numbers, texts, and the bytes of everything else. A line without type is
//! kept as it is.

use super::column::{Column, Type, Value};
use crate::format::{FieldDef, Format, Formats, Storage};
use crate::write::fields::{characters, gfp_words, holds};
use mmtwin_event::value::{Shape, Sym};
use mmtwin_event::{Event, Place, Schema, Source, Symbol};

/// Name and type of the columns of a typed event.
pub(super) fn typed_columns(schema: &Schema) -> Vec<(&str, Type)> {
    let of = |shape| match shape {
        Shape::Int => Type::Int64,
        Shape::Uint | Shape::Hex => Type::UInt64,
        Shape::Bool => Type::Bool,
        Shape::Str => Type::Text,
        Shape::Sym | Shape::Gfp | Shape::Flags(_) | Shape::Name(_) | Shape::Dev => Type::Words,
    };
    schema.fields.iter().map(|f| (f.name, of(f.shape))).collect()
}

/// Adds the fields of a typed event. Returns the bytes they take.
pub(super) fn push_typed(
    event: &Event<'_>,
    schema: &Schema,
    formats: Option<&Formats>,
    source: &Source,
    columns: &mut [Column],
) -> usize {
    let mut bytes = 0;
    for (slot, (field, column)) in schema.fields.iter().zip(columns).enumerate() {
        if !holds(event, slot) {
            bytes += column.push_null();
            continue;
        }
        let value = event.slot(slot);
        bytes += match field.shape {
            Shape::Int => column.push(Value::Int(value as i64)),
            Shape::Uint | Shape::Hex => column.push(Value::Uint(value)),
            Shape::Bool => column.push(Value::Bool(value != 0)),
            Shape::Str => column.push_option(characters(event, value).map(Value::Text)),
            Shape::Flags(table) => column.push_word(value, || table.flags_text(value).into()),
            Shape::Name(table) => column.push_word(value, || table.word(value).into_owned().into()),
            Shape::Dev => column.push_word(value, || format!("{}:{}", value >> 20, value & 0xf_ffff).into()),
            Shape::Sym => match event.symbol(Sym(value)) {
                Symbol::Name(name) => column.push(Value::Text(name)),
                Symbol::Address(address) => column.push_word(address, || {
                    source.symbol(address).map_or_else(|| format!("{address:#x}"), str::to_string).into()
                }),
            },
            Shape::Gfp => match event.text_of(value) {
                Some(words) => column.push(Value::Text(words)),
                None => column.push_word(value, || gfp_words(event, field, value, formats)),
            },
        };
    }
    bytes
}

/// Name and type of the columns of the events of a format.
pub(super) fn format_columns(format: &Format) -> Vec<(&str, Type)> {
    let of = |field: &FieldDef| match field.number_bits() {
        Some(_) if field.c_type == "bool" => Type::Bool,
        Some(_) if field.signed => Type::Int64,
        Some(_) => Type::UInt64,
        None if field.is_chars() && field.storage != Storage::Rest => Type::Text,
        None => Type::Bytes,
    };
    own_fields(format).map(|f| (f.name.as_str(), of(f))).collect()
}

fn own_fields(format: &Format) -> impl Iterator<Item = &FieldDef> {
    format.fields.iter().filter(|f| !f.common)
}

/// Adds the fields of a record. Returns the bytes they take.
pub(super) fn push_record(raw: &[u8], format: &Format, formats: &Formats, columns: &mut [Column]) -> usize {
    let mut bytes = 0;
    for (field, column) in own_fields(format).zip(columns) {
        let value = match field.number_bits() {
            Some(bits) => number(raw, field, bits, formats.big_endian()).map(|number| match column {
                Column::Bool(_) => Value::Bool(number != 0),
                Column::Int64(_) => Value::Int(number as i64),
                _ => Value::Uint(number),
            }),
            None => format.bytes(formats, field, raw).map(|bytes| match column {
                Column::Text(_) => Value::Text(bytes),
                _ => Value::Bytes(bytes),
            }),
        };
        bytes += column.push_option(value);
    }
    bytes
}

/// A number of a record; `None` if the record ends before it.
fn number(raw: &[u8], field: &FieldDef, bits: u8, big_endian: bool) -> Option<u64> {
    let offset = u16::try_from(field.offset).ok()?;
    raw.get(usize::from(offset)..)?.get(..usize::from(bits / 8))?;
    let place = Place { offset, bits, signed: field.signed, ..Place::default() };
    Some(place.number(raw, big_endian))
}
