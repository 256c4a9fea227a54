//! Numbers computed from a record: expression trees, compiled once per format.
//!
//! Two sets of rules. `Rules::C` is what the kernel computes: C types, integer promotion, wrap-around. `Rules::TraceCmd`
//! is what `trace-cmd report` computes: fields are read without sign, everything is 64 bits wide, only casts to the
//! plain types narrow, and unknown names are addresses of kernel symbols or 0. Constant parts are folded.

use super::ctype::{Int, int_of};
use super::expr::Expr;
use super::parse::{FieldDef, Storage};
use super::symbols::Symbols;
use mmtwin_event::Place;

/// Whose arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rules {
    /// The kernel's: C.
    C,
    /// That of `trace-cmd report`.
    TraceCmd,
}

/// What an expression may refer to.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    /// Fields of the event.
    pub fields: &'a [FieldDef],
    /// Size of the kernel's `long` in bytes.
    pub long_size: u8,
    /// Numbers are big endian.
    pub big_endian: bool,
    /// Whose arithmetic.
    pub rules: Rules,
    /// Kernel symbols, for unknown names under the rules of trace-cmd.
    pub symbols: &'a Symbols,
}

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

/// A compiled number with its C type.
#[derive(Clone, Debug, PartialEq)]
pub struct Typed {
    /// The number.
    pub num: Num,
    /// Its type. What `num` gives is extended to 64 bits from it.
    pub int: Int,
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
    fn folded(self) -> Num {
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
    fn of(op: &str) -> Option<Binary> {
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

    fn is_shift(self) -> bool {
        matches!(self, Binary::ShiftLeft | Binary::ShiftRight)
    }

    fn is_truth(self) -> bool {
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

impl<'a> Scope<'a> {
    /// The field of a name.
    pub fn field(&self, name: &str) -> Result<&'a FieldDef, String> {
        self.fields.iter().find(|f| f.name == name).ok_or_else(|| format!("there is no field {name}"))
    }

    /// The place of a number of `size` bytes.
    fn place(&self, field: &FieldDef, bits: u8, signed: bool) -> Result<Place, String> {
        let offset = u16::try_from(field.offset).map_err(|_| format!("field {} lies beyond any record", field.name))?;
        Ok(Place { offset, bits, signed, ..Place::default() })
    }

    /// The bytes of a field.
    pub fn memory(&self, field: &FieldDef) -> Result<Memory, String> {
        Ok(match field.storage {
            Storage::Inline => Memory::Inline(field.offset, field.size),
            Storage::Rest => Memory::Rest(field.offset),
            Storage::DataLoc => Memory::Located(self.place(field, 32, false)?),
            Storage::RelLoc => Memory::Relative(self.place(field, 32, false)?),
        })
    }

    /// The bytes that an expression points to, and the field they belong to: an array field or `__get_dynamic_array`.
    pub fn memory_of(&self, expr: &Expr) -> Result<(Memory, &'a FieldDef), String> {
        match expr {
            Expr::Cast(_, inner) => self.memory_of(inner),
            Expr::Unary("&", inner) => self.memory_of(inner),
            Expr::Index(inner, index) if **index == Expr::Number(0, Int::INT) => self.memory_of(inner),
            Expr::Field(name) => {
                let field = self.field(name)?;
                Ok((self.memory(field)?, field))
            }
            Expr::Call(function, arguments) => match (function.as_str(), arguments.as_slice()) {
                (
                    "__get_dynamic_array"
                    | "__get_rel_dynamic_array"
                    | "__get_str"
                    | "__get_rel_str"
                    | "__get_sockaddr"
                    | "__get_rel_sockaddr"
                    | "__get_bitmask"
                    | "__get_rel_bitmask"
                    | "__get_cpumask"
                    | "__get_rel_cpumask",
                    [Expr::Name(name)],
                ) => {
                    let field = self.field(name)?;
                    Ok((self.memory(field)?, field))
                }
                _ => Err(format!("the function {function} is not known")),
            },
            _ => Err("not an array of the record".into()),
        }
    }

    /// Compiles an expression that is a number.
    pub fn number(&self, expr: &Expr) -> Result<Typed, String> {
        let c = self.rules == Rules::C;
        let typed = |num: Num, int: Int| Typed { num: num.folded(), int: if c { int } else { Int::U64 } };
        match expr {
            Expr::Number(value, int) => Ok(typed(Num::Const(*value), *int)),
            Expr::Text(_) | Expr::List(_) => Err("a string where a number is needed".into()),
            Expr::Name(name) => self.unknown(name),
            Expr::Field(name) => {
                let field = self.field(name)?;
                let bits = field.number_bits().ok_or_else(|| format!("field {name} is not a number"))?;
                let signed = c && field.signed;
                Ok(typed(Num::Field(self.place(field, bits, signed)?), Int { bits, signed }))
            }
            Expr::Cast(name, inner) => {
                let inner = self.number(inner)?;
                Ok(match self.cast_to(name) {
                    Some(int) if int.bits == 64 => typed(inner.num, int),
                    Some(int) => typed(Num::Wrap(int, Box::new(inner.num)), int),
                    None => inner,
                })
            }
            Expr::SizeOf(name) => {
                let int = int_of(name, self.long_size).ok_or_else(|| format!("the size of {name} is not known"))?;
                Ok(typed(Num::Const(u64::from(int.bits / 8)), Int { bits: self.long_size * 8, signed: false }))
            }
            Expr::Unary(op, inner) => self.unary(op, inner),
            Expr::Binary(op, a, b) => self.binary(op, a, b),
            Expr::Cond(condition, a, b) => {
                let condition = self.number(condition)?;
                let (a, b) = (self.number(a)?, self.number(b)?);
                let int = if c { a.int.common(b.int) } else { Int::U64 };
                let branch = |t: Typed| if t.int == int { t.num } else { Num::Wrap(int, Box::new(t.num)).folded() };
                Ok(typed(Num::Cond(Box::new((condition.num, branch(a), branch(b)))), int))
            }
            Expr::Index(array, index) => {
                let index = self.number(index)?;
                let (memory, int) = self.array(array)?;
                Ok(typed(Num::Element(memory, int, Box::new(index.num)), int))
            }
            Expr::Call(function, arguments) => self.call(function, arguments),
        }
    }

    fn unknown(&self, name: &str) -> Result<Typed, String> {
        let constant = |value, int| Ok(Typed { num: Num::Const(value), int });
        match (name, self.rules) {
            ("true", _) => constant(1, Int::INT),
            ("false" | "NULL", _) => constant(0, Int::INT),
            (_, Rules::TraceCmd) => constant(self.symbols.address(name).unwrap_or(0), Int::U64),
            // The start of the array of page structures is not in any format; see `pointer` for what is printed.
            ("vmemmap_base" | "vmemmap", Rules::C) => constant(0, Int::U64),
            (_, Rules::C) => Err(format!("the format does not say what {name} is")),
        }
    }

    /// The type that a cast narrows to; `None`: the value stays as it is.
    fn cast_to(&self, name: &str) -> Option<Int> {
        match self.rules {
            Rules::C => int_of(name, self.long_size),
            Rules::TraceCmd => {
                let plain = ["u8", "u16", "u32", "s8", "s16", "s32", "char", "short", "int"];
                let base = name.strip_prefix("unsigned ").unwrap_or(name);
                let bits = plain.contains(&base).then(|| int_of(base, self.long_size))??.bits;
                Some(Int { bits, signed: false })
            }
        }
    }

    fn unary(&self, op: &str, inner: &Expr) -> Result<Typed, String> {
        if op == "*" {
            let (memory, int) = self.array(inner)?;
            return Ok(Typed { num: Num::Element(memory, int, Box::new(Num::Const(0))), int });
        }
        let inner = self.number(inner)?;
        let (op, int) = match op {
            "-" => (Unary::Negate, inner.int.promoted()),
            "~" => (Unary::Invert, inner.int.promoted()),
            "!" => (Unary::Not, Int::INT),
            _ => return Err("the address of a field is not recorded".into()),
        };
        Ok(Typed { num: Num::Unary(op, int, Box::new(inner.num)).folded(), int })
    }

    fn binary(&self, op: &str, a: &Expr, b: &Expr) -> Result<Typed, String> {
        let (a, b) = (self.number(a)?, self.number(b)?);
        let op = Binary::of(op).ok_or_else(|| format!("the operator {op} is not supported"))?;
        if self.rules == Rules::TraceCmd {
            return Ok(Typed { num: Num::Binary(op, Int::U64, Box::new((a.num, b.num))).folded(), int: Int::U64 });
        }
        let int = if op.is_shift() { a.int.promoted() } else { a.int.common(b.int) };
        let widen = |t: Typed| {
            let same = t.int == int || t.int.bits < int.bits && (!t.int.signed || int.signed);
            if same { t.num } else { Num::Wrap(int, Box::new(t.num)).folded() }
        };
        let (a, b) = (widen(a), if op.is_shift() { b.num } else { widen(b) });
        let num = Num::Binary(op, int, Box::new((a, b))).folded();
        Ok(Typed { num, int: if op.is_truth() { Int::INT } else { int } })
    }

    /// The bytes and the element type of an array expression.
    fn array(&self, expr: &Expr) -> Result<(Memory, Int), String> {
        let mut pointed = None;
        if let Expr::Cast(name, _) = expr {
            let target = name.strip_suffix('*').map(str::trim);
            pointed = target.and_then(|t| int_of(t, self.long_size));
        }
        let (memory, field) = self.memory_of(expr)?;
        let element = field.element_size(self.long_size);
        let own = matches!(element, 1 | 2 | 4 | 8).then_some(Int { bits: element as u8 * 8, signed: field.signed });
        let int = pointed.or(own).ok_or_else(|| format!("field {} is no array of numbers", field.name))?;
        Ok((memory, int))
    }

    fn call(&self, function: &str, arguments: &[Expr]) -> Result<Typed, String> {
        match (function, arguments) {
            ("__get_dynamic_array_len" | "__get_rel_dynamic_array_len", [Expr::Name(name)]) => {
                Ok(Typed { num: Num::Length(self.memory(self.field(name)?)?), int: Int::INT })
            }
            ("__builtin_expect", [value, _]) => self.number(value),
            ("__builtin_constant_p", [_]) => Ok(Typed { num: Num::Const(0), int: Int::INT }),
            // trace-cmd prints jiffies as they are; the kernel divides by its HZ, which no format tells.
            ("jiffies_to_msecs", [value]) if self.rules == Rules::TraceCmd => self.number(value),
            ("jiffies_to_msecs" | "jiffies_to_usecs", _) => Err("the HZ of the recorded kernel is not known".into()),
            _ => Err(format!("the function {function} is not known")),
        }
    }
}
