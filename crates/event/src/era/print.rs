//! Lines from values: the payload that a kernel of an era prints for an event.
//!
//! Pointers are 16 hexadecimal digits (hashed since 4.15, so a line's own value is printed again); NULL is `(null)`
//! up to 3.x, padded to the width of a pointer since 2.6.39. A function is printed as the values spell it.

use super::Era;
use super::args::{Arg, Operand, PAGE_STRUCT, Piece, VMEMMAP};
use super::encode::{Gap, Held, Values};
use super::layout::Definition;
use std::borrow::Cow;

/// Value of an argument.
enum Shown<'a> {
    Number(u64),
    Text(Cow<'a, [u8]>),
}

impl Definition {
    /// Text that the kernel prints behind `event: `.
    pub fn print(&self, values: Values<'_>) -> Result<Vec<u8>, Gap> {
        let mut line = Vec::new();
        let mut args = self.args.iter();
        for piece in &self.pieces {
            if let Piece::Literal(text) = piece {
                line.extend_from_slice(text.as_bytes());
            } else if let Some(arg) = args.next() {
                let shown = self.shown(arg, &values)?;
                self.convert(piece, shown, &mut line);
            }
        }
        Ok(line)
    }

    fn convert(&self, piece: &Piece, shown: Shown<'_>, line: &mut Vec<u8>) {
        let number = match shown {
            Shown::Number(number) => number,
            Shown::Text(text) => {
                line.extend_from_slice(&text);
                if let Piece::Text(width) = piece {
                    line.resize(line.len() + width.saturating_sub(text.len()), b' ');
                }
                return;
            }
        };
        let text = match piece {
            Piece::Signed(bits) => ((number << (64 - bits)) as i64 >> (64 - bits)).to_string(),
            Piece::Unsigned(bits) => (number << (64 - bits) >> (64 - bits)).to_string(),
            Piece::Hex => format!("{number:x}"),
            Piece::UpperHex => format!("{number:X}"),
            _ if number != 0 || self.era >= Era::V6_1 => format!("{number:016x}"),
            _ if self.era == Era::V2_6_36 => "(null)".to_string(),
            _ => format!("{:>16}", "(null)"),
        };
        line.extend_from_slice(text.as_bytes());
    }

    fn shown<'a>(&self, arg: &Arg, values: &Values<'a>) -> Result<Shown<'a>, Gap> {
        let held = |f: usize| self.held(&self.fields[f], values);
        let number = |f: usize| match held(f)? {
            Held::Number(number) => Ok(number),
            Held::Text(_) | Held::Symbol(_) => Err(Gap::Missing { event: self.name, field: self.fields[f].name }),
        };
        let slot = |name: &[u8]| {
            let slot = self.schema.slot(name).filter(|slot| values.slots.present >> slot & 1 == 1);
            slot.map(|slot| values.slots.values[slot])
        };
        let text = |text: &'static str| Shown::Text(Cow::Borrowed(text.as_bytes()));
        Ok(match *arg {
            Arg::Field(f) | Arg::Symbol(f) => match held(f)? {
                Held::Number(number) => Shown::Number(number),
                Held::Text(text) | Held::Symbol(text) => Shown::Text(Cow::Borrowed(text)),
            },
            Arg::Words(f, words) => Shown::Text(Cow::Owned(words.text(number(f)?).into_bytes())),
            Arg::Major(f) => Shown::Number(number(f)? >> 20),
            Arg::Minor(f) => Shown::Number(number(f)? & 0xfffff),
            Arg::Page(f, checked) => Shown::Number(match (slot(b"page"), number(f)?) {
                (Some(page), _) => page,
                (None, u64::MAX) if checked => 0,
                (None, pfn) => VMEMMAP.wrapping_add(pfn.wrapping_mul(PAGE_STRUCT)),
            }),
            Arg::Pfn(f, checked) => Shown::Number(match (slot(b"pfn"), number(f)?) {
                (Some(pfn), _) => pfn,
                (None, 0) if checked => 0,
                (None, page) => page.wrapping_sub(VMEMMAP) / PAGE_STRUCT,
            }),
            Arg::Known(f) => Shown::Number(match number(f)? {
                u64::MAX => 0,
                pfn => pfn,
            }),
            Arg::Limit(f) => Shown::Number(1u64.wrapping_shl(number(f)? as u32)),
            Arg::Bytes(f) => Shown::Number(number(f)? << 12),
            // The vocabulary does not have bit maps, so a line's values do not either.
            Arg::Nodes(f) => return Err(Gap::Missing { event: self.name, field: self.fields[f].name }),
            Arg::Choice(f, bits, set, clear) => {
                text(if number(f)? & bits.unwrap_or(u64::MAX) != 0 { set } else { clear })
            }
            Arg::Equal(f, Operand::Field(g)) => Shown::Number((number(f)? == number(g)?).into()),
            Arg::Equal(f, Operand::Number(n)) => Shown::Number((number(f)? == n).into()),
            Arg::Less(f, n) => Shown::Number(((number(f)? as i64) < n as i64).into()),
            Arg::Constant(n) => Shown::Number(n),
        })
    }
}
