//! The conversions of a format string: their parsing and what they print.
//!
//! Models the kernel's vsnprintf for what format texts use: `%d %i %u %x %X %o %c %s %p` with flags, width, precision
//! and lengths. Not supported: `%n`, `%e` and other conversions that no format text has.

use super::ctype::Int;
use super::eval::Num;
use super::expr::{Expr, PrintText};
use super::out::Out;
use super::pointer::Pointer;
use super::scope::{Rules, Scope};
use super::text::{PrintContext, Text};

/// A conversion.
#[derive(Debug)]
pub enum Conversion {
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
pub struct Spec {
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

impl Conversion {
    /// Prints it for one record.
    pub fn print(&self, raw: &[u8], env: PrintContext<'_>, out: &mut Out) {
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
    fn column(&self, raw: &[u8], env: PrintContext<'_>) -> (usize, bool) {
        // Wider than any screen is damage.
        let width = (self.width.eval(raw, env.big_endian) as i32).clamp(-4096, 4096);
        (width.unsigned_abs() as usize, self.left || width < 0)
    }

    fn precision(&self, raw: &[u8], env: PrintContext<'_>) -> Option<usize> {
        let precision = self.precision.as_ref()?.eval(raw, env.big_endian) as i32;
        usize::try_from(precision).ok().map(|p| p.min(4096))
    }

    fn text(&self, text: &Text, raw: &[u8], env: PrintContext<'_>, out: &mut Out) {
        let start = out.len();
        text.print(raw, env, out);
        if let Some(precision) = self.precision(raw, env) {
            out.truncate(start + precision);
        }
        let (width, left) = self.column(raw, env);
        out.align(start, width, left);
    }

    fn number(&self, value: u64, raw: &[u8], env: PrintContext<'_>, out: &mut Out) {
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

/// Takes a format string apart.
pub struct Compiler<'a> {
    scope: &'a Scope<'a>,
    format: &'a [u8],
    at: usize,
    arguments: std::slice::Iter<'a, Expr>,
}

impl<'a> Compiler<'a> {
    /// At the start of the format string of `text`.
    pub fn new(text: &'a PrintText, scope: &'a Scope<'a>) -> Compiler<'a> {
        Compiler { scope, format: &text.format, at: 0, arguments: text.arguments.iter() }
    }

    fn peek(&self) -> u8 {
        self.format.get(self.at).copied().unwrap_or(0)
    }

    fn argument(&mut self) -> Result<&'a Expr, String> {
        self.arguments.next().ok_or_else(|| "more conversions than arguments".into())
    }

    /// Appends the literal text from here to `literals` and compiles the conversion behind it; `None` at the end.
    pub fn next(&mut self, literals: &mut Vec<u8>) -> Result<Option<Conversion>, String> {
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
                Err(format!("unknown conversion %{}", String::from_utf8_lossy(&self.format[start..end])))
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
