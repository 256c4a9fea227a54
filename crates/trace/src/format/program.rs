//! A `print fmt`, compiled: literals, numbers and other conversions, in the order of the line.
//!
//! A format with a conversion or an argument that cannot be computed does not compile: the reason is kept and its
//! records are printed field by field. Validated against the text of a 6.18 kernel and of trace-cmd.

use super::conversion::{Compiler, Conversion};
use super::ctype::Int;
use super::eval::Num;
use super::expr::PrintText;
use super::out::{Out, decimal_at, hex_at};
use super::scope::Scope;
use super::text::PrintContext;

/// Literals are copied in blocks of this size.
const BLOCK: usize = 32;

/// A compiled `print fmt`.
#[derive(Debug)]
pub struct Program {
    /// The event's name as it stands in a line.
    name: Vec<Step>,
    groups: Vec<Group>,
}

/// Literals and plain numbers, whose length has a bound, and a conversion of unknown length behind them.
#[derive(Debug)]
struct Group {
    steps: Vec<Step>,
    end: Option<Conversion>,
}

/// A literal, or a part of one, and perhaps a number behind it.
#[derive(Debug)]
struct Step {
    block: [u8; BLOCK],
    len: u8,
    number: Number,
}

/// No step prints more: a block and the digits of a number with its sign.
const STEP_BOUND: usize = BLOCK + 21;

/// A plain number. The usual ones, little-endian fields in decimal, have kinds of their own.
#[derive(Debug)]
enum Number {
    None,
    U32(u16),
    I32(u16),
    U64(u16),
    I64(u16),
    Other(Box<(Num, Int, bool)>),
}

impl Number {
    fn new(num: Num, int: Int, hex: bool, big_endian: bool) -> Number {
        if let (Num::Field(place), false, false) = (&num, hex, big_endian) {
            // A field as wide as the conversion is printed as the conversion says; narrower ones are extended first.
            match (place.bits, int.bits, int.signed) {
                (32, 32, false) => return Number::U32(place.offset),
                (32, 32, true) => return Number::I32(place.offset),
                (32, 64, _) if !place.signed => return Number::U32(place.offset),
                (64, 64, false) => return Number::U64(place.offset),
                (64, 64, true) => return Number::I64(place.offset),
                // Little endian: the low half stands first.
                (64, 32, false) => return Number::U32(place.offset),
                (64, 32, true) => return Number::I32(place.offset),
                _ => {}
            }
        }
        Number::Other(Box::new((num, int, hex)))
    }
}

/// Appends `literal` to `steps`, with `number` behind it.
fn add_step(steps: &mut Vec<Step>, literal: &[u8], number: Number) {
    let mut chunks = literal.chunks(BLOCK).peekable();
    let step = |chunk: &[u8], number| {
        let mut block = [0; BLOCK];
        block[..chunk.len()].copy_from_slice(chunk);
        Step { block, len: chunk.len() as u8, number }
    };
    while let Some(chunk) = chunks.next() {
        if chunks.peek().is_none() {
            return steps.push(step(chunk, number));
        }
        steps.push(step(chunk, Number::None));
    }
    if !matches!(number, Number::None) {
        steps.push(step(b"", number));
    }
}

/// Prints steps.
#[inline]
fn run_steps(steps: &[Step], raw: &[u8], big_endian: bool, out: &mut Out) {
    let room = out.tail(steps.len() * STEP_BOUND);
    let mut at = 0;
    for step in steps {
        room[at..at + BLOCK].copy_from_slice(&step.block);
        at += usize::from(step.len);
        at = match &step.number {
            Number::None => at,
            Number::U32(offset) => decimal_at(room, at, u32::from_le_bytes(bytes_at(raw, *offset)).into()),
            Number::U64(offset) => decimal_at(room, at, u64::from_le_bytes(bytes_at(raw, *offset))),
            Number::I32(offset) => signed_at(room, at, i32::from_le_bytes(bytes_at(raw, *offset)).into()),
            Number::I64(offset) => signed_at(room, at, i64::from_le_bytes(bytes_at(raw, *offset))),
            Number::Other(number) => {
                let (num, int, hex) = &**number;
                let value = int.wrap(num.eval(raw, big_endian));
                match (hex, int.signed) {
                    (true, _) => hex_at(room, at, value),
                    (false, true) => signed_at(room, at, value as i64),
                    (false, false) => decimal_at(room, at, value),
                }
            }
        };
    }
    out.advance(at);
}

/// Bytes of a field; the caller has checked that the record holds all fields.
#[inline]
fn bytes_at<const N: usize>(raw: &[u8], offset: u16) -> [u8; N] {
    let offset = usize::from(offset);
    raw.get(offset..offset + N).and_then(|b| b.try_into().ok()).unwrap_or([0; N])
}

#[inline]
fn signed_at(room: &mut [u8], at: usize, value: i64) -> usize {
    if value < 0 {
        room[at] = b'-';
        return decimal_at(room, at + 1, value.unsigned_abs());
    }
    decimal_at(room, at, value as u64)
}

impl Program {
    /// Compiles the format string and its arguments. `name` is the event's name as it stands in a line.
    pub fn compile(name: &[u8], text: &PrintText, scope: &Scope<'_>) -> Result<Program, String> {
        let mut compiler = Compiler::new(text, scope);
        let mut program = Program { name: Vec::new(), groups: Vec::new() };
        add_step(&mut program.name, name, Number::None);
        let mut steps = Vec::new();
        loop {
            let mut literal = Vec::new();
            let conversion = compiler.next(&mut literal)?;
            if let Some(Conversion::Plain(num, int, hex)) = conversion {
                add_step(&mut steps, &literal, Number::new(num, int, hex, scope.big_endian));
                continue;
            }
            add_step(&mut steps, &literal, Number::None);
            let last = conversion.is_none();
            program.groups.push(Group { steps: std::mem::take(&mut steps), end: conversion });
            if last {
                return Ok(program);
            }
        }
    }

    /// Prints one record that holds all fields, the event's name in front if `named`.
    pub fn run(&self, raw: &[u8], env: PrintContext<'_>, named: bool, out: &mut Out) {
        if named {
            run_steps(&self.name, raw, env.big_endian, out);
        }
        for group in &self.groups {
            run_steps(&group.steps, raw, env.big_endian, out);
            if let Some(conversion) = &group.end {
                conversion.print(raw, env, out);
            }
        }
    }
}
