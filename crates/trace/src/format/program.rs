//! A `print fmt`, compiled: literals and conversions with their arguments.
//!
//! Models the kernel's vsnprintf for what format texts use: `%d %i %u %x %X %o %c %s %p` with flags, width, precision
//! and lengths. A format with a conversion or an argument that cannot be computed does not compile: the reason is
//! kept and its records are printed field by field. Validated against the text of a 6.18 kernel and of trace-cmd.

use super::ctype::Int;
use super::eval::{Num, Rules, Scope};
use super::expr::{Expr, PrintText};
use super::out::{Out, decimal_at, hex_at};
use super::pointer::Pointer;
use super::text::{Env, Text};

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

/// A conversion.
#[derive(Debug)]
enum Conversion {
    /// `%d`, `%lu`, `%x` and the like without flags; true if hexadecimal.
    Plain(Num, Int, bool),
    /// Any other number.
    Number(Num, Spec),
    /// `%s` without width.
    Text(Text),
    /// `%s` in a column.
    Column(Text, Spec),
    /// `%p` and its extensions.
    Pointer(Pointer),
}

/// Flags, width, precision and kind of a conversion.
#[derive(Debug)]
struct Spec {
    left: bool,
    zero: bool,
    plus: bool,
    space: bool,
    alternative: bool,
    width: Num,
    precision: Option<Num>,
    kind: u8,
    int: Int,
}

impl Program {
    /// Compiles the format string and its arguments. `name` is the event's name as it stands in a line.
    pub fn compile(name: &[u8], text: &PrintText, scope: &Scope<'_>) -> Result<Program, String> {
        let mut compiler = Compiler { scope, format: &text.format, at: 0, arguments: text.arguments.iter() };
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
    pub fn run(&self, raw: &[u8], env: Env<'_>, named: bool, out: &mut Out) {
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

impl Conversion {
    fn print(&self, raw: &[u8], env: Env<'_>, out: &mut Out) {
        match self {
            Conversion::Plain(num, int, true) => out.hex(int.wrap(num.eval(raw, env.big_endian))),
            Conversion::Plain(num, int, false) => {
                let value = int.wrap(num.eval(raw, env.big_endian));
                if int.signed { out.signed(value as i64) } else { out.decimal(value) }
            }
            Conversion::Number(num, spec) => spec.number(num.eval(raw, env.big_endian), raw, env, out),
            Conversion::Text(text) => text.print(raw, env, out),
            Conversion::Column(text, spec) => spec.text(text, raw, env, out),
            Conversion::Pointer(pointer) => pointer.print(raw, env, out),
        }
    }
}

impl Spec {
    /// Width in columns and alignment; a negative width from a `*` aligns to the left.
    fn column(&self, raw: &[u8], env: Env<'_>) -> (usize, bool) {
        // Wider than any screen is damage.
        let width = (self.width.eval(raw, env.big_endian) as i32).clamp(-4096, 4096);
        (width.unsigned_abs() as usize, self.left || width < 0)
    }

    fn precision(&self, raw: &[u8], env: Env<'_>) -> Option<usize> {
        let precision = self.precision.as_ref()?.eval(raw, env.big_endian) as i32;
        usize::try_from(precision).ok().map(|p| p.min(4096))
    }

    fn text(&self, text: &Text, raw: &[u8], env: Env<'_>, out: &mut Out) {
        let start = out.len();
        text.print(raw, env, out);
        if let Some(precision) = self.precision(raw, env) {
            out.truncate(start + precision);
        }
        let (width, left) = self.column(raw, env);
        out.align(start, width, left);
    }

    fn number(&self, value: u64, raw: &[u8], env: Env<'_>, out: &mut Out) {
        let value = self.int.wrap(value);
        let (width, left) = self.column(raw, env);
        let start = out.len();
        if self.kind == b'c' {
            out.push(value as u8);
            return out.align(start, width, left);
        }
        let negative = self.int.signed && (value as i64) < 0;
        match self.kind {
            _ if negative => out.push(b'-'),
            b'd' if self.plus => out.push(b'+'),
            b'd' if self.space => out.push(b' '),
            b'x' | b'X' if self.alternative && (value != 0 || env.rules == Rules::C) => out.extend(b"0x"),
            b'o' if self.alternative && value != 0 => out.push(b'0'),
            _ => {}
        }
        let digits_start = out.len();
        match self.kind {
            b'x' | b'X' => out.hex(value),
            b'o' => octal(value, out),
            _ if self.int.signed => out.decimal((value as i64).unsigned_abs()),
            _ => out.decimal(value),
        }
        let digits = out.len() - digits_start;
        let prefix = digits_start - start;
        let precision = self.precision(raw, env);
        let wanted = match precision {
            Some(precision) => precision,
            None if self.zero && !left => width.saturating_sub(prefix),
            None => 0,
        };
        if digits < wanted {
            out.align(digits_start, wanted, false);
            out.replace(digits_start, wanted - digits, b'0');
        }
        if self.kind == b'X' {
            out.capitalise(start);
        }
        out.align(start, width, left);
    }
}

fn octal(value: u64, out: &mut Out) {
    let digits = (66 - (value | 1).leading_zeros()) / 3;
    for i in (0..digits).rev() {
        out.push(b'0' + (value >> (3 * i) & 7) as u8);
    }
}

struct Compiler<'a> {
    scope: &'a Scope<'a>,
    format: &'a [u8],
    at: usize,
    arguments: std::slice::Iter<'a, Expr>,
}

impl<'a> Compiler<'a> {
    fn peek(&self) -> u8 {
        self.format.get(self.at).copied().unwrap_or(0)
    }

    fn argument(&mut self) -> Result<&'a Expr, String> {
        self.arguments.next().ok_or_else(|| "there are more conversions than arguments".into())
    }

    /// Appends the literal text from here to `literals` and compiles the conversion behind it; `None` at the end.
    fn next(&mut self, literals: &mut Vec<u8>) -> Result<Option<Conversion>, String> {
        while let Some(&byte) = self.format.get(self.at) {
            self.at += 1;
            if byte != b'%' {
                literals.push(byte);
            } else if self.peek() == b'%' {
                literals.push(b'%');
                self.at += 1;
            } else {
                return self.conversion().map(Some);
            }
        }
        Ok(None)
    }

    /// Compiles the conversion whose `%` has been read.
    fn conversion(&mut self) -> Result<Conversion, String> {
        let start = self.at;
        let (mut left, mut zero, mut plus, mut space, mut alternative) = (false, false, false, false, false);
        loop {
            match self.peek() {
                b'-' => left = true,
                b'0' => zero = true,
                b'+' => plus = true,
                b' ' => space = true,
                b'#' => alternative = true,
                _ => break,
            }
            self.at += 1;
        }
        let (width, width_expr) = self.size()?;
        let precision = if self.peek() == b'.' {
            self.at += 1;
            Some(self.size()?.0.unwrap_or(Num::Const(0)))
        } else {
            None
        };
        let (mut longs, mut shorts, mut long) = (0u8, 0u8, false);
        loop {
            match self.peek() {
                b'l' => longs = longs.saturating_add(1),
                b'h' => shorts = shorts.saturating_add(1),
                b'L' | b'j' | b'q' => longs = 2,
                b'z' | b'Z' | b't' => long = true,
                _ => break,
            }
            self.at += 1;
        }
        let kind = self.peek();
        self.at += 1;
        let bits = match (longs, shorts) {
            (0, 0) if long => self.scope.long_size * 8,
            (0, 0) => 32,
            (0, 1) => 16,
            (0, _) => 8,
            (1, _) => self.scope.long_size * 8,
            _ => 64,
        };
        let plain = !left && !zero && !plus && !space && !alternative && width.is_none() && precision.is_none();
        let width = width.unwrap_or(Num::Const(0));
        let spec = |kind, int| Spec { left, zero, plus, space, alternative, width, precision, kind, int };
        match kind {
            b'd' | b'i' | b'u' | b'x' | b'X' | b'o' | b'c' => {
                let kind = if kind == b'i' { b'd' } else { kind };
                let int = Int { bits, signed: kind == b'd' };
                let num = self.scope.number(self.argument()?)?.num;
                Ok(match kind {
                    b'd' | b'u' | b'x' if plain => Conversion::Plain(num, int, kind == b'x'),
                    _ => Conversion::Number(num, spec(kind, int)),
                })
            }
            b's' => {
                let text = self.scope.text(self.argument()?)?;
                Ok(if plain { Conversion::Text(text) } else { Conversion::Column(text, spec(kind, Int::INT)) })
            }
            b'p' => {
                let argument = self.argument()?;
                let letters = &self.format[self.at.min(self.format.len())..];
                let (pointer, taken) = self.scope.pointer(letters, width_expr, argument)?;
                self.at += taken;
                Ok(Conversion::Pointer(pointer))
            }
            _ => {
                let end = self.at.min(self.format.len());
                Err(format!("the conversion %{} is not known", String::from_utf8_lossy(&self.format[start..end])))
            }
        }
    }

    /// A width or a precision: digits, or `*` with its argument.
    fn size(&mut self) -> Result<(Option<Num>, Option<&'a Expr>), String> {
        if self.peek() == b'*' {
            self.at += 1;
            let argument = self.argument()?;
            return Ok((Some(self.scope.number(argument)?.num), Some(argument)));
        }
        let mut size = None;
        while self.peek().is_ascii_digit() {
            size = Some((size.unwrap_or(0u64) * 10 + u64::from(self.peek() - b'0')).min(4096));
            self.at += 1;
        }
        Ok((size.map(Num::Const), None))
    }
}
