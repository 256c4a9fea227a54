//! Records that have no program: every field as ` name=value`.
//!
//! Numbers, pointers, texts and arrays look as in `trace-cmd report`, which marks such records `[FAILED TO PARSE]`.
//! A field that lies beyond the end of a short record is printed as `name=?`.

use super::out::Out;
use super::parse::{FieldDef, Storage};
use super::scope::{Rules, Scope};
use super::text::PrintContext;
use super::{Format, Style};
use mmtwin_event::Place;

/// Prints all fields that are not common to all events.
pub fn print(format: &Format, raw: &[u8], env: PrintContext<'_>, style: Style, out: &mut Out) {
    let start = out.len();
    if style == Style::TraceCmd {
        out.extend(b"[FAILED TO PARSE]");
    }
    for field in format.fields.iter().filter(|f| !f.common) {
        if out.len() > start {
            out.push(b' ');
        }
        out.extend(field.name.as_bytes());
        out.push(b'=');
        if field.offset as usize + field.size as usize > raw.len() {
            out.push(b'?');
        } else {
            value(format, field, raw, env, out);
        }
    }
}

fn value(format: &Format, field: &FieldDef, raw: &[u8], env: PrintContext<'_>, out: &mut Out) {
    if let (Some(bits), Ok(offset)) = (field.number_bits(), u16::try_from(field.offset)) {
        let place = Place { offset, bits, signed: field.signed, ..Place::default() };
        let value = place.number(raw, env.big_endian);
        let wide = field.c_type.contains("long");
        if field.c_type.contains('*') || wide && !field.signed {
            out.extend(b"0x");
            out.hex(value);
        } else if field.signed {
            out.signed(value as i64);
        } else {
            out.decimal(value);
        }
        return;
    }
    let scope = Scope {
        kind: format.kind,
        fields: &format.fields,
        long_size: env.long_size,
        big_endian: env.big_endian,
        rules: Rules::C,
        symbols: env.symbols,
    };
    let Ok(memory) = scope.memory(field) else { return out.push(b'?') };
    let bytes = memory.of(raw, env.big_endian);
    let text = bytes.split(|&b| b == 0).next().unwrap_or_default();
    let readable = |b: &u8| b.is_ascii_graphic() || b.is_ascii_whitespace();
    if (field.is_chars() || field.storage == Storage::Rest) && text.iter().all(readable) {
        return out.extend(text);
    }
    out.extend(b"ARRAY[");
    for (i, byte) in bytes.iter().enumerate() {
        if i > 0 {
            out.extend(b", ");
        }
        out.hex_digits(u64::from(*byte), 2);
    }
    out.push(b']');
}
