//! From a format's fields to the slots of the vocabulary.
//!
//! A field is matched by any of its names. What a slot needs and the format does not have, or has in a form that the
//! slot cannot be read from, leaves the whole event untyped: better no type than a wrong number.

use super::expr::{Expr, PrintText};
use super::parse::{FieldDef, Storage};
use super::scope::Scope;
use mmtwin_event::names::NameTable;
use mmtwin_event::value::Shape;
use mmtwin_event::vocabulary::FieldSchema;
use mmtwin_event::{Form, Layout, MAX_SLOTS, Place};

/// No record is longer: offsets within it are 16 bits wide.
const LONGEST_RECORD: u32 = u16::MAX as u32;

/// What a format prints, for those who ask.
type Print<'p> = &'p dyn Fn() -> Option<&'p PrintText>;

/// Compiles the layout of an event. `Err` says in sentences why it stays untyped.
pub fn compile(print: Print<'_>, scope: &Scope<'_>) -> Result<Layout, Vec<String>> {
    let (mut places, mut tables, mut problems) = ([Place::default(); MAX_SLOTS], Vec::new(), Vec::new());
    let Some(schema) = scope.kind.schema() else { return Ok(Layout::default()) };
    for (slot, wanted) in schema.fields.iter().enumerate() {
        let names = || wanted.aliases.iter().copied().chain([wanted.name]);
        let Some(field) = scope.fields.iter().find(|f| !f.common && names().any(|n| n == f.name)) else {
            if wanted.required {
                problems.push(format!("the format has no field {}; the event stays untyped", wanted.name));
            }
            continue;
        };
        match place(wanted, field) {
            Ok(mut place) => {
                if let Shape::Name(table) = wanted.shape {
                    place.form = Form::Word(tables.len() as u8);
                    tables.push(words(table, &field.name, print, scope));
                }
                places[slot] = place;
            }
            // A number where a text is wanted and the like: what the field means cannot be told.
            Err(_) if !wanted.required && matches!(wanted.shape, Shape::Str) => {}
            Err(why) => problems.push(format!("field {} {why}; the event stays untyped", field.name)),
        }
    }
    match problems.is_empty() {
        true => Ok(Layout::compile(places, tables, scope.big_endian)),
        false => Err(problems),
    }
}

/// Where the value of a field is, in the form that its slot needs.
fn place(wanted: &FieldSchema, field: &FieldDef) -> Result<Place, String> {
    if field.offset.saturating_add(field.size) > LONGEST_RECORD {
        return Err(format!("has the impossible offset {} and size {}", field.offset, field.size));
    }
    let offset = field.offset as u16;
    if let Shape::Str = wanted.shape {
        let (bits, form) = match field.storage {
            Storage::DataLoc => (32, Form::DataLoc),
            Storage::RelLoc => (32, Form::RelLoc),
            Storage::Inline if field.is_chars() => (8, Form::Chars(field.size as u16)),
            _ => return Err("is not text".into()),
        };
        return Ok(Place { offset, bits, signed: false, form });
    }
    match field.number_bits() {
        Some(bits) => Ok(Place { offset, bits, signed: field.signed, form: Form::Number }),
        None => Err(format!("is not a number of 1, 2, 4 or 8 bytes but `{}` of {}", field.c_type, field.size)),
    }
}

/// The kernel's number of each word of a table: from the list that the format prints this field with; words without a
/// number there, and all words where there is no list, have the number of 6.x kernels.
fn words(table: &NameTable, field: &str, print: Print<'_>, scope: &Scope<'_>) -> Vec<(u64, u64)> {
    let list = print().and_then(|p| p.arguments.iter().find_map(|a| list_of(a, field)));
    match list.and_then(|l| scope.names(l, Some(table)).ok()) {
        Some(names) => names.iter().filter_map(|(number, word)| Some((*number, table.index_of(word)?))).collect(),
        None => table.numbers.iter().zip(0..).map(|(number, index)| (*number, index)).collect(),
    }
}

/// The `{number, "word"}` list with which an argument prints a field.
fn list_of<'e>(expr: &'e Expr, field: &str) -> Option<&'e [Expr]> {
    match expr {
        Expr::Cast(_, inner) | Expr::Unary(_, inner) => list_of(inner, field),
        Expr::Binary(_, a, b) => list_of(a, field).or_else(|| list_of(b, field)),
        Expr::Cond(_, a, b) => list_of(a, field).or_else(|| list_of(b, field)),
        Expr::Call(function, arguments) => match (function.as_str(), arguments.as_slice()) {
            ("__print_symbolic", [value, list @ ..]) if is_field(value, field) => Some(list),
            ("__print_flags", [value, _, list @ ..]) if is_field(value, field) => Some(list),
            _ => None,
        },
        _ => None,
    }
}

fn is_field(expr: &Expr, field: &str) -> bool {
    match expr {
        Expr::Field(name) => name == field,
        Expr::Cast(_, inner) => is_field(inner, field),
        _ => false,
    }
}
