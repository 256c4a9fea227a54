//! One step of a template: the literal before a value, and how the value is taken.
//!
//! A word of a table is looked up among those met before; numbers are read without a table. What a step cannot read
//! ([`None`]) has another shape, and is learned again.

use super::MAX_LINE;
use super::labels::{self, Label};
use super::literal::Literal;
use super::values::{device, hex, signed_decimal, word_value};
use mmtwin_event::value::{Bytes, Shape};
use mmtwin_event::{Schema, Slots};

#[derive(Debug)]
pub(super) struct Step {
    /// What stands before the value.
    pub literal: Literal,
    pub take: Take,
    /// [`NOWHERE`]: the value is stepped over.
    pub slot: u8,
    /// Text when it was observed last, and the number of changes of this text.
    pub last: Vec<u8>,
    pub changes: u32,
}

/// Slot of a value that no field of the vocabulary takes.
pub(super) const NOWHERE: u8 = u8::MAX;

/// How a value is taken.
#[derive(Debug)]
pub(super) enum Take {
    /// Decimal digits with an optional minus.
    Decimal,
    /// Hexadecimal digits; `0x` is part of the literal before.
    Hex,
    /// `(null)`, part of the literal before.
    Zero,
    Device,
    /// A word of a table or a truth value, with the words met so far.
    Word(Shape, Vec<(Box<[u8]>, u64)>),
    /// Characters up to a space or comma.
    Run,
    /// A symbol with an optional ` [module]`.
    Symbol,
    /// Characters up to the given text.
    Until(Box<[u8]>),
    /// Characters up to the end of the line.
    Rest,
    /// A value with a number in parentheses behind it, as option `fields` prints both. True: that number is the value,
    /// as signed numbers are readable only there.
    Noted(Box<Take>, bool),
}

/// Words kept per step; flag sets and names have few different values in practice.
const WORDS: usize = 16;

impl Step {
    fn new(take: Take, slot: u8) -> Step {
        Step { literal: Literal::new(b""), take, slot, last: Vec::new(), changes: 0 }
    }

    /// A step over a value whose end only the next label tells.
    pub fn open_ended(schema: &Schema, payload: &[u8], labels: &[Label], index: usize) -> Step {
        let end = labels::value_end(schema, payload, labels, index);
        let take = match labels.get(index + 1) {
            Some(next) => Take::Until(payload[end..next.value.max(end)].into()),
            None => Take::Rest,
        };
        Step::new(take, NOWHERE)
    }

    /// How the value of a known field is taken, and where it begins behind `0x` and the like.
    pub fn of(schema: &Schema, payload: &[u8], labels: &[Label], index: usize, slot: usize) -> Option<(Step, usize)> {
        let begin = labels[index].value;
        let value = &payload[begin..];
        let shape = schema.fields[slot].shape;
        let (take, skip) = match shape {
            Shape::Str => (Step::open_ended(schema, payload, labels, index).take, 0),
            Shape::Sym => (Take::Symbol, 0),
            Shape::Gfp => (Take::Run, 0),
            Shape::Dev => (Take::Device, 0),
            Shape::Bool | Shape::Flags(_) | Shape::Name(_) => (Take::Word(shape, Vec::new()), 0),
            Shape::Int | Shape::Uint | Shape::Hex if value.starts_with(b"0x") => (Take::Hex, 2),
            Shape::Hex if value.starts_with(b"(null)") => (Take::Zero, 6),
            Shape::Hex => (Take::Hex, 0),
            Shape::Int | Shape::Uint if value.starts_with(b"(") => (Take::Decimal, 1),
            Shape::Int | Shape::Uint => (Take::Decimal, 0),
        };
        let begin = begin + skip;
        let mut step = Step::new(take, slot as u8);
        if shape == Shape::Str {
            return Some((step, begin));
        }
        let (_, end) = step.value(payload, begin)?;
        if note(payload, end).is_some() {
            step.take = Take::Noted(Box::new(step.take), shape == Shape::Int);
        } else if !is_unit(&payload[end..]) && matches!(step.take, Take::Decimal | Take::Hex) {
            return None;
        }
        Some((step, begin))
    }

    /// Reads the literal and the value at `at`; gives the offset behind them.
    #[inline(always)]
    pub fn read(&mut self, text: &[u8], at: usize, slots: &mut Slots) -> Option<usize> {
        if !self.literal.stands_at(text, at) {
            return None;
        }
        let (value, end) = self.value(text, at + self.literal.bytes.len())?;
        if let Some(slot) = slots.values.get_mut(usize::from(self.slot)) {
            *slot = value;
        }
        Some(end)
    }

    /// Value at `at` and the offset behind it.
    #[inline(always)]
    pub fn value(&mut self, text: &[u8], at: usize) -> Option<(u64, usize)> {
        match &mut self.take {
            Take::Decimal => signed_decimal(text, at),
            Take::Hex => hex(text, at),
            other => other.value(text, at),
        }
    }
}

impl Take {
    /// The same for what is no plain number.
    #[inline(never)]
    fn value(&mut self, text: &[u8], at: usize) -> Option<(u64, usize)> {
        match self {
            // Plain numbers come here only as part of `Noted`.
            Take::Decimal => signed_decimal(text, at),
            Take::Hex => hex(text, at),
            Take::Noted(inner, use_note) => {
                let (value, end) = inner.value(text, at)?;
                let (noted, end) = note(text, end)?;
                Some((if *use_note { noted } else { value }, end))
            }
            Take::Zero => Some((0, at)),
            Take::Device => device(text, at),
            Take::Word(shape, known) => word(text, at, *shape, known),
            Take::Run => Some(range(at, at + run(text.get(at..)?))),
            Take::Symbol => Some(range(at, at + symbol(text.get(at..)?))),
            Take::Until(mark) => {
                let rest = rest_of_line(text, at)?;
                open_ended(&rest[..memchr::memmem::find(rest, mark)?], at)
            }
            Take::Rest => open_ended(rest_of_line(text, at)?, at),
        }
    }
}

#[inline(always)]
pub(super) fn range(start: usize, end: usize) -> (u64, usize) {
    (Bytes { start: start as u32, len: (end - start) as u32 }.to_slot(), end)
}

/// A value of any characters. With a `=` it may hold a field that this shape does not have: only learning can tell.
fn open_ended(value: &[u8], at: usize) -> Option<(u64, usize)> {
    (!value.contains(&b'=')).then_some(range(at, at + value.len()))
}

fn rest_of_line(text: &[u8], at: usize) -> Option<&[u8]> {
    let rest = text.get(at..)?;
    let rest = &rest[..rest.len().min(MAX_LINE)];
    Some(&rest[..memchr::memchr(b'\n', rest).unwrap_or(rest.len())])
}

/// Length of the characters up to a space, a comma or the end of the line.
fn run(text: &[u8]) -> usize {
    let text = &text[..text.len().min(MAX_LINE)];
    memchr::memchr3(b' ', b',', b'\n', text).unwrap_or(text.len())
}

fn symbol(text: &[u8]) -> usize {
    let name = run(text);
    let module = text[name..].strip_prefix(b" [").and_then(|rest| rest.iter().take(64).position(|b| *b == b']'));
    module.map_or(name, |len| name + 2 + len + 1)
}

/// A word of a table, and the spaces that pad it.
fn word(text: &[u8], at: usize, shape: Shape, known: &mut Vec<(Box<[u8]>, u64)>) -> Option<(u64, usize)> {
    let rest = text.get(at..)?;
    let ends_at = |len: usize| matches!(rest.get(len), None | Some(b' ' | b',' | b'\n'));
    let met = known.iter().find(|(word, _)| rest.starts_with(word) && ends_at(word.len()));
    let (value, end) = match met {
        Some((word, value)) => (*value, at + word.len()),
        None => {
            let end = run(rest);
            let value = word_value(shape, &rest[..end])?;
            if known.len() < WORDS {
                known.push((rest[..end].into(), value));
            }
            (value, at + end)
        }
    };
    let padding = text[end..].iter().take_while(|b| **b == b' ').count().saturating_sub(1);
    Some((value, end + padding))
}

/// ` (NUMBER)` at `at`.
fn note(text: &[u8], at: usize) -> Option<(u64, usize)> {
    let open = text.get(at..)?.starts_with(b" (");
    let (value, end) = if open { signed_decimal(text, at + 2)? } else { return None };
    (text.get(end) == Some(&b')')).then_some((value, end + 1))
}

/// What follows a number is no part of it: nothing, punctuation, or a unit.
fn is_unit(rest: &[u8]) -> bool {
    let letters = rest.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
    matches!(&rest[..letters], b"" | b"B" | b"kB")
}
