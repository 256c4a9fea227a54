//! The fields of an event as `DebugAnnotation`s.

use super::packets::Packets;
use super::proto::Message;
use crate::format::Formats;
use crate::write::fields::{characters, gfp_words, holds};
use mmtwin_event::value::{Shape, Sym};
use mmtwin_event::{Event, Schema, Source, Symbol};
use std::io::Write;

/// Field of `TrackEvent`.
const ANNOTATIONS: u32 = 4;
/// Longest text of a payload.
const LONGEST: usize = 1024;

/// Adds the fields of an event: those of the vocabulary, or the text of a line without type.
pub(super) fn fields<W: Write>(
    to: &mut Message,
    event: &Event<'_>,
    source: &Source,
    formats: Option<&Formats>,
    packets: &mut Packets<W>,
) {
    match event.kind.schema() {
        Some(schema) => typed(to, event, schema, source, formats, packets),
        // A record without type has a format of its own, and no text.
        None if formats.is_none() => {
            let payload = &event.raw[..event.raw.len().min(LONGEST)];
            text(to, "payload", payload, packets);
        }
        None => {}
    }
}

fn typed<W: Write>(
    to: &mut Message,
    event: &Event<'_>,
    schema: &'static Schema,
    source: &Source,
    formats: Option<&Formats>,
    packets: &mut Packets<W>,
) {
    for (slot, field) in schema.fields.iter().enumerate().filter(|(slot, _)| holds(event, *slot)) {
        let (value, name) = (event.slot(slot), field.name);
        match field.shape {
            Shape::Int => number(to, name, 4, value, packets),
            Shape::Uint => number(to, name, 3, value, packets),
            Shape::Bool => number(to, name, 2, u64::from(value != 0), packets),
            Shape::Hex => text(to, name, format!("{value:#x}").as_bytes(), packets),
            Shape::Str => text(to, name, characters(event, value).unwrap_or_default(), packets),
            Shape::Flags(table) => text(to, name, table.flags_text(value).as_bytes(), packets),
            Shape::Name(table) => text(to, name, table.word(value).as_bytes(), packets),
            Shape::Dev => text(to, name, format!("{}:{}", value >> 20, value & 0xf_ffff).as_bytes(), packets),
            Shape::Sym => match event.symbol(Sym(value)) {
                Symbol::Name(symbol) => text(to, name, symbol, packets),
                Symbol::Address(address) => match source.symbol(address) {
                    Some(symbol) => text(to, name, symbol.as_bytes(), packets),
                    None => text(to, name, format!("{address:#x}").as_bytes(), packets),
                },
            },
            Shape::Gfp => match event.text_of(value) {
                Some(words) => text(to, name, words, packets),
                None => {
                    let field_name = packets.field_name(name);
                    let words = packets.words((event.id, slot, value), || gfp_words(event, field, value, formats));
                    to.nested(ANNOTATIONS, |to| {
                        to.number(1, field_name).text(6, words);
                    });
                }
            },
        }
    }
}

/// A number: field 2 is a boolean, 3 unsigned, 4 signed.
pub(super) fn number<W: Write>(to: &mut Message, name: &'static str, field: u32, value: u64, packets: &mut Packets<W>) {
    let name = packets.field_name(name);
    to.nested(ANNOTATIONS, |to| {
        to.number(1, name).number(field, value);
    });
}

/// A text.
pub(super) fn text<W: Write>(to: &mut Message, name: &'static str, value: &[u8], packets: &mut Packets<W>) {
    let name = packets.field_name(name);
    to.nested(ANNOTATIONS, |to| {
        to.number(1, name).text(6, value);
    });
}
