//! Compiling C expressions to numbers of a record.
//!
//! Two sets of rules. `Rules::C` is what the kernel computes: C types, integer promotion, wrap-around, pointers in
//! units of what they point to. `Rules::TraceCmd` is what `trace-cmd report` computes: fields are read without sign,
//! everything is 64 bits wide, only casts to the plain types narrow, and unknown names are addresses of kernel symbols
//! or 0.

use super::ctype::{Int, int_of};
use super::eval::{Binary, Memory, Num, Unary};
use super::expr::Expr;
use super::parse::{FieldDef, Storage};
use super::symbols::Symbols;
use mmtwin_event::{Kind, Place};

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
    /// What the event is to the vocabulary, whose tables know numbers that a format omits.
    pub kind: Kind,
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

/// A compiled number with its C type.
#[derive(Clone, Debug, PartialEq)]
pub struct Typed {
    /// The number.
    pub num: Num,
    /// Its type. What `num` gives is extended to 64 bits from it.
    pub int: Int,
    /// For a pointer: what it points to.
    points_to: Option<Pointee>,
}

/// What a pointer points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pointee {
    /// Something of this many bytes.
    Sized(u64),
    /// A structure of a size that no format tells.
    Unsized,
}

/// Where x86-64 kernels map the page structures if they do not randomise their layout.
const VMEMMAP: u64 = 0xffff_ea00_0000_0000;

impl Typed {
    fn new(num: Num, int: Int) -> Typed {
        Typed { num: num.folded(), int, points_to: None }
    }
}

impl<'a> Scope<'a> {
    /// The field of a name.
    pub fn field(&self, name: &str) -> Result<&'a FieldDef, String> {
        self.fields.iter().find(|f| f.name == name).ok_or_else(|| format!("no field {name}"))
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
                _ => Err(format!("unknown function {function}")),
            },
            _ => Err("not an array of the record".into()),
        }
    }

    /// Compiles an expression that is a number.
    pub fn number(&self, expr: &Expr) -> Result<Typed, String> {
        let c = self.rules == Rules::C;
        let typed = |num: Num, int: Int| Typed::new(num, if c { int } else { Int::U64 });
        match expr {
            Expr::Number(value, int) => Ok(typed(Num::Const(*value), *int)),
            Expr::Text(_) | Expr::List(_) => Err("a string where a number is needed".into()),
            Expr::Name(name) => self.unknown(name),
            Expr::Field(name) => {
                let field = self.field(name)?;
                let bits = field.number_bits().ok_or_else(|| format!("field {name} is not a number"))?;
                let signed = c && field.signed;
                let points_to = self.pointee(&field.c_type);
                Ok(Typed { points_to, ..typed(Num::Field(self.place(field, bits, signed)?), Int { bits, signed }) })
            }
            Expr::Cast(name, inner) => {
                let inner = self.number(inner)?;
                let points_to = self.pointee(name);
                Ok(match self.cast_to(name) {
                    Some(int) if int.bits == 64 => Typed { points_to, ..typed(inner.num, int) },
                    Some(int) => Typed { points_to, ..typed(Num::Wrap(int, Box::new(inner.num)), int) },
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
                let points_to = a.points_to.or(b.points_to);
                let int = if c { a.int.common(b.int) } else { Int::U64 };
                let branch = |t: Typed| if t.int == int { t.num } else { Num::Wrap(int, Box::new(t.num)).folded() };
                Ok(Typed { points_to, ..typed(Num::Cond(Box::new((condition.num, branch(a), branch(b)))), int) })
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
        let constant = |value, int| Ok(Typed::new(Num::Const(value), int));
        match (name, self.rules) {
            ("true", _) => constant(1, Int::INT),
            ("false" | "NULL", _) => constant(0, Int::INT),
            (_, Rules::TraceCmd) => constant(self.symbols.address(name).unwrap_or(0), Int::U64),
            ("vmemmap_base", Rules::C) => constant(VMEMMAP, Int::U64),
            (_, Rules::C) => Err(format!("unknown name {name}")),
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
            return Ok(Typed::new(Num::Element(memory, int, Box::new(Num::Const(0))), int));
        }
        let inner = self.number(inner)?;
        let (op, int) = match op {
            "-" => (Unary::Negate, inner.int.promoted()),
            "~" => (Unary::Invert, inner.int.promoted()),
            "!" => (Unary::Not, Int::INT),
            _ => return Err("the address of a field is not recorded".into()),
        };
        Ok(Typed::new(Num::Unary(op, int, Box::new(inner.num)), int))
    }

    fn binary(&self, op: &str, a: &Expr, b: &Expr) -> Result<Typed, String> {
        let (a, b) = (self.number(a)?, self.number(b)?);
        let op = Binary::of(op).ok_or_else(|| format!("the operator {op} is not supported"))?;
        if self.rules == Rules::TraceCmd {
            return Ok(Typed::new(Num::Binary(op, Int::U64, Box::new((a.num, b.num))), Int::U64));
        }
        if matches!(op, Binary::Add | Binary::Subtract) && (a.points_to.is_some() || b.points_to.is_some()) {
            return self.pointer_arithmetic(op, a, b);
        }
        let int = if op.is_shift() { a.int.promoted() } else { a.int.common(b.int) };
        let widen = |t: Typed| {
            let same = t.int == int || t.int.bits < int.bits && (!t.int.signed || int.signed);
            if same { t.num } else { Num::Wrap(int, Box::new(t.num)).folded() }
        };
        let (a, b) = (widen(a), if op.is_shift() { b.num } else { widen(b) });
        let num = Num::Binary(op, int, Box::new((a, b)));
        Ok(Typed::new(num, if op.is_truth() { Int::INT } else { int }))
    }

    /// What a pointer of a type points to; `None`: it is no pointer, or trace-cmd does not care.
    fn pointee(&self, c_type: &str) -> Option<Pointee> {
        let target = c_type.trim_end().strip_suffix('*').filter(|_| self.rules == Rules::C)?.trim();
        Some(match target.strip_prefix("const ").unwrap_or(target) {
            "void" => Pointee::Sized(1),
            // The size on all 64-bit kernels whose formats compute with it.
            "struct page" => Pointee::Sized(u64::from(self.long_size) * 8),
            other => int_of(other, self.long_size).map_or(Pointee::Unsized, |i| Pointee::Sized(u64::from(i.bits / 8))),
        })
    }

    /// Pointer plus or minus number, number plus pointer, pointer minus pointer: in units of what they point to.
    fn pointer_arithmetic(&self, op: Binary, a: Typed, b: Typed) -> Result<Typed, String> {
        let long = |signed| Int { bits: self.long_size * 8, signed };
        let compute = |op, int, a, b| Num::Binary(op, int, Box::new((a, b))).folded();
        let Some(Pointee::Sized(size)) = a.points_to.or(b.points_to) else {
            return Err("computes with the size of a structure that is not known".into());
        };
        let scaled = |t: Typed| compute(Binary::Multiply, long(false), t.num, Num::Const(size));
        if a.points_to.is_some() && b.points_to.is_some() {
            let distance = compute(op, long(true), a.num, b.num);
            return Ok(Typed::new(compute(Binary::Divide, long(true), distance, Num::Const(size)), long(true)));
        }
        let points_to = a.points_to.or(b.points_to);
        let (a, b) = if a.points_to.is_some() { (a.num, scaled(b)) } else { (scaled(a), b.num) };
        Ok(Typed { points_to, ..Typed::new(compute(op, long(false), a, b), long(false)) })
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
        let own = matches!(element, 1 | 2 | 4 | 8).then(|| Int { bits: element as u8 * 8, signed: field.signed });
        let int = pointed.or(own).ok_or_else(|| format!("field {} is not an array of numbers", field.name))?;
        Ok((memory, int))
    }

    fn call(&self, function: &str, arguments: &[Expr]) -> Result<Typed, String> {
        match (function, arguments) {
            ("__get_dynamic_array_len" | "__get_rel_dynamic_array_len", [Expr::Name(name)]) => {
                Ok(Typed::new(Num::Length(self.memory(self.field(name)?)?), Int::INT))
            }
            ("__builtin_expect", [value, _]) => self.number(value),
            ("__builtin_constant_p", [_]) => Ok(Typed::new(Num::Const(0), Int::INT)),
            // trace-cmd prints jiffies as they are; the kernel divides by its HZ, which no format tells.
            ("jiffies_to_msecs", [value]) if self.rules == Rules::TraceCmd => self.number(value),
            ("jiffies_to_msecs" | "jiffies_to_usecs", _) => Err("the HZ of the recorded kernel is not known".into()),
            _ => Err(format!("unknown function {function}")),
        }
    }
}
