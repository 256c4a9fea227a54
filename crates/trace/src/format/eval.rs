//! Numbers computed from a record: what expressions become when their format is compiled.
//!
//! Values are held in 64 bits, extended from their C type; operators wrap as that type does. Constant parts are folded.

use super::ctype::Int;
use mmtwin_event::Place;

/// A number computed from a record.
#[derive(Clone, Debug, PartialEq)]
pub enum Num {
    /// The same for every record.
    Const(u64),
    /// A field.
    Field(Place),
    /// Narrowed to a type.
    Wrap(Int, Box<Num>),
    /// An operator on one value, of the given type.
    Unary(Unary, Int, Box<Num>),
    /// An operator on two values of the given type.
    Binary(Binary, Int, Box<(Num, Num)>),
    /// Condition, value if it is not 0, value if it is.
    Cond(Box<(Num, Num, Num)>),
    /// Length in bytes of a part of the record.
    Length(Memory),
    /// An element of an array of numbers.
    Element(Memory, Int, Box<Num>),
}

/// Operators on one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unary {
    /// `-`
    Negate,
    /// `~`
    Invert,
    /// `!`
    Not,
}

/// Operators on two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // their names say it
pub enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    ShiftLeft,
    ShiftRight,
    And,
    Or,
    Xor,
    Equal,
    NotEqual,
    Less,
    Greater,
    LessEqual,
    GreaterEqual,
    LogicAnd,
    LogicOr,
}

/// A run of bytes of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// At a fixed place: offset and length.
    Inline(u32, u32),
    /// Where a `__data_loc` word says.
    Located(Place),
    /// Where a `__rel_loc` word says.
    Relative(Place),
    /// From an offset to the end.
    Rest(u32),
}

impl Memory {
    /// The bytes; those that lie beyond the record are missing.
    pub fn of(self, raw: &[u8], big_endian: bool) -> &[u8] {
        let (start, len) = match self {
            Memory::Inline(offset, len) => (offset as usize, len as usize),
            Memory::Rest(offset) => (offset as usize, usize::MAX),
            Memory::Located(place) | Memory::Relative(place) => {
                let word = place.number(raw, big_endian);
                let base = if let Memory::Relative(_) = self { usize::from(place.offset) + 4 } else { 0 };
                (base + (word & 0xffff) as usize, (word >> 16) as usize)
            }
        };
        let rest = raw.get(start..).unwrap_or_default();
        &rest[..len.min(rest.len())]
    }
}

impl Num {
    /// The value for one record.
    #[inline]
    pub fn eval(&self, raw: &[u8], big_endian: bool) -> u64 {
        match self {
            Num::Field(place) => place.number(raw, big_endian),
            _ => self.compute(raw, big_endian),
        }
    }

    fn compute(&self, raw: &[u8], big_endian: bool) -> u64 {
        let eval = |num: &Num| num.eval(raw, big_endian);
        match self {
            Num::Const(value) => *value,
            Num::Field(place) => place.number(raw, big_endian),
            Num::Wrap(int, num) => int.wrap(eval(num)),
            Num::Unary(op, int, num) => op.apply(*int, eval(num)),
            Num::Binary(Binary::LogicAnd, _, both) => u64::from(eval(&both.0) != 0 && eval(&both.1) != 0),
            Num::Binary(Binary::LogicOr, _, both) => u64::from(eval(&both.0) != 0 || eval(&both.1) != 0),
            Num::Binary(op, int, both) => op.apply(*int, eval(&both.0), eval(&both.1)),
            Num::Cond(all) => eval(if eval(&all.0) != 0 { &all.1 } else { &all.2 }),
            Num::Length(memory) => match memory {
                Memory::Located(place) | Memory::Relative(place) => place.number(raw, big_endian) >> 16,
                _ => memory.of(raw, big_endian).len() as u64,
            },
            Num::Element(memory, int, index) => {
                let size = usize::from(int.bits / 8);
                let start = usize::try_from(eval(index)).ok().and_then(|i| i.checked_mul(size));
                let bytes = start.and_then(|s| memory.of(raw, big_endian).get(s..)?.get(..size));
                bytes.map_or(0, |b| int.wrap(number_of(b, big_endian)))
            }
        }
    }

    /// The value if it is the same for every record.
    pub fn constant(&self) -> Option<u64> {
        if let Num::Const(value) = self { Some(*value) } else { None }
    }

    /// Replaces an operation on constants by its result.
    pub fn folded(self) -> Num {
        let constant = match &self {
            Num::Wrap(_, num) | Num::Unary(_, _, num) => num.constant().is_some(),
            Num::Binary(_, _, both) => both.0.constant().is_some() && both.1.constant().is_some(),
            _ => false,
        };
        match self {
            _ if constant => Num::Const(self.compute(&[], false)),
            Num::Cond(all) => match all.0.constant() {
                Some(0) => all.2,
                Some(_) => all.1,
                None => Num::Cond(all),
            },
            other => other,
        }
    }
}

/// The number that at most 8 bytes hold.
pub fn number_of(bytes: &[u8], big_endian: bool) -> u64 {
    let add = |sum: u64, &b: &u8| sum << 8 | u64::from(b);
    if big_endian { bytes.iter().fold(0, add) } else { bytes.iter().rev().fold(0, add) }
}

impl Unary {
    fn apply(self, int: Int, a: u64) -> u64 {
        match self {
            Unary::Negate => int.wrap(a.wrapping_neg()),
            Unary::Invert => int.wrap(!a),
            Unary::Not => u64::from(a == 0),
        }
    }
}

impl Binary {
    /// By its spelling.
    pub fn of(op: &str) -> Option<Binary> {
        Some(match op {
            "+" => Binary::Add,
            "-" => Binary::Subtract,
            "*" => Binary::Multiply,
            "/" => Binary::Divide,
            "%" => Binary::Remainder,
            "<<" => Binary::ShiftLeft,
            ">>" => Binary::ShiftRight,
            "&" => Binary::And,
            "|" => Binary::Or,
            "^" => Binary::Xor,
            "==" => Binary::Equal,
            "!=" => Binary::NotEqual,
            "<" => Binary::Less,
            ">" => Binary::Greater,
            "<=" => Binary::LessEqual,
            ">=" => Binary::GreaterEqual,
            "&&" => Binary::LogicAnd,
            "||" => Binary::LogicOr,
            _ => return None,
        })
    }

    /// The types of its sides are not made equal.
    pub fn is_shift(self) -> bool {
        matches!(self, Binary::ShiftLeft | Binary::ShiftRight)
    }

    /// Its result is 0 or 1.
    pub fn is_truth(self) -> bool {
        use Binary::*;
        matches!(self, Equal | NotEqual | Less | Greater | LessEqual | GreaterEqual | LogicAnd | LogicOr)
    }

    /// `a op b` in the type `int`, to which both have been extended. Division by 0 gives 0: there is no such record.
    fn apply(self, int: Int, a: u64, b: u64) -> u64 {
        let (sa, sb) = (a as i64, b as i64);
        let value = match self {
            Binary::Add => a.wrapping_add(b),
            Binary::Subtract => a.wrapping_sub(b),
            Binary::Multiply => a.wrapping_mul(b),
            Binary::Divide if int.signed => sa.checked_div(sb).unwrap_or(0) as u64,
            Binary::Divide => a.checked_div(b).unwrap_or(0),
            Binary::Remainder if int.signed => sa.checked_rem(sb).unwrap_or(0) as u64,
            Binary::Remainder => a.checked_rem(b).unwrap_or(0),
            // x86 takes the low bits of the distance; C leaves larger ones undefined.
            Binary::ShiftLeft => a.wrapping_shl(b as u32 & (u32::from(int.bits) - 1)),
            Binary::ShiftRight if int.signed => sa.wrapping_shr(b as u32 & (u32::from(int.bits) - 1)) as u64,
            Binary::ShiftRight => a.wrapping_shr(b as u32 & (u32::from(int.bits) - 1)),
            Binary::And => a & b,
            Binary::Or => a | b,
            Binary::Xor => a ^ b,
            Binary::Equal => return u64::from(a == b),
            Binary::NotEqual => return u64::from(a != b),
            Binary::Less if int.signed => return u64::from(sa < sb),
            Binary::Less => return u64::from(a < b),
            Binary::Greater if int.signed => return u64::from(sa > sb),
            Binary::Greater => return u64::from(a > b),
            Binary::LessEqual if int.signed => return u64::from(sa <= sb),
            Binary::LessEqual => return u64::from(a <= b),
            Binary::GreaterEqual if int.signed => return u64::from(sa >= sb),
            Binary::GreaterEqual => return u64::from(a >= b),
            Binary::LogicAnd => return u64::from(a != 0 && b != 0),
            Binary::LogicOr => return u64::from(a != 0 || b != 0),
        };
        int.wrap(value)
    }
}
