//! Texts computed from a record: what `%s` prints.
//!
//! Strings of the record, `__print_flags`, `__print_symbolic`, `__print_hex`, `__print_array`, bit masks, and
//! conditional expressions between them. Lists of flags are folded to numbers when the format is compiled and their
//! texts remembered by value, because a trace has few distinct ones.

use super::ctype::Int;
use super::eval::{Memory, Num, number_of};
use super::expr::Expr;
use super::out::Out;
use super::scope::{Rules, Scope};
use super::symbols::Symbols;
use mmtwin_event::names::NameTable;
use mmtwin_event::value::Shape;
use std::sync::OnceLock;

/// A text computed from a record.
#[derive(Debug)]
pub enum Text {
    /// The same for every record.
    Literal(Vec<u8>),
    /// Characters up to the first NUL.
    Chars(Memory),
    /// `__print_flags`.
    Flags(Num, Flags),
    /// `__print_symbolic`.
    Symbolic(Num, Vec<(u64, Vec<u8>)>),
    /// Condition, text if it is not 0, text if it is.
    Cond(Num, Box<(Text, Text)>),
    /// Bytes in hexadecimal with this separator; how many, all if `None`.
    Hex(Memory, Option<Num>, &'static [u8]),
    /// Numbers in braces: how many, and bytes of each.
    Array(Memory, Num, Num),
    /// A mask of bits in hexadecimal, a comma every 32 bits.
    Bitmask(Memory),
    /// A mask of bits as ranges; how many bits, all if `None`.
    BitList(Memory, Option<Num>),
    /// A string of the kernel, by its address.
    KernelString(Num),
    /// `major:minor` of a device number.
    Device(Num),
}

/// Numbers and their names, in the order of the format.
type Names = Vec<(u64, Vec<u8>)>;

/// A list of flags with its separator.
#[derive(Debug)]
pub struct Flags {
    /// (bits, name), in the order of the format.
    list: Vec<(u64, Vec<u8>)>,
    delimiter: Vec<u8>,
    rules: Rules,
    memo: Memo,
}

impl Flags {
    fn print(&self, value: u64, out: &mut Out) {
        let start = out.len();
        let mut left = value;
        for (bits, name) in &self.list {
            let named = match self.rules {
                Rules::C => left != 0 && left & bits == *bits,
                Rules::TraceCmd => {
                    // It takes numbers that look negative for unknown names, and those for the word of 0.
                    if left == 0 && (*bits as i64) < 0 {
                        out.extend(name);
                        break;
                    }
                    (*bits as i64) > 0 && left & bits == *bits
                }
            };
            if named {
                if out.len() > start {
                    out.extend(&self.delimiter);
                }
                out.extend(name);
                left &= !bits;
            }
        }
        if left != 0 {
            if out.len() > start {
                out.extend(&self.delimiter);
            }
            out.extend(b"0x");
            out.hex(left);
        }
    }
}

/// What a record's text needs besides the record.
#[derive(Clone, Copy, Debug)]
pub struct PrintContext<'a> {
    /// Numbers are big endian.
    pub big_endian: bool,
    /// Size of the kernel's `long` in bytes.
    pub long_size: u8,
    /// Kernel symbols and strings.
    pub symbols: &'a Symbols,
    /// Whose rules.
    pub rules: Rules,
}

impl Text {
    /// Prints the text of one record.
    pub fn print(&self, raw: &[u8], env: PrintContext<'_>, out: &mut Out) {
        let eval = |num: &Num| num.eval(raw, env.big_endian);
        match self {
            Text::Literal(text) => out.extend(text),
            Text::Chars(memory) => {
                let bytes = memory.of(raw, env.big_endian);
                out.extend(bytes.split(|&b| b == 0).next().unwrap_or_default());
            }
            Text::Flags(value, flags) => flags.memo.print(eval(value), out, |value, out| flags.print(value, out)),
            Text::Symbolic(value, list) => {
                let value = eval(value);
                match list.iter().find(|(number, _)| *number == value) {
                    Some((_, name)) => out.extend(name),
                    None => {
                        out.extend(b"0x");
                        out.hex(value);
                    }
                }
            }
            Text::Cond(condition, both) => {
                let text = if eval(condition) != 0 { &both.0 } else { &both.1 };
                text.print(raw, env, out);
            }
            Text::Hex(memory, count, separator) => {
                let bytes = memory.of(raw, env.big_endian);
                let count = count.as_ref().map_or(usize::MAX, |n| eval(n) as usize);
                for (i, byte) in bytes.iter().take(count).enumerate() {
                    if i > 0 {
                        out.extend(separator);
                    }
                    out.hex_digits(u64::from(*byte), 2);
                }
            }
            Text::Array(memory, count, size) => {
                let (count, size) = (eval(count) as usize, eval(size) as usize);
                out.push(b'{');
                if matches!(size, 1 | 2 | 4 | 8) {
                    for (i, element) in memory.of(raw, env.big_endian).chunks_exact(size).take(count).enumerate() {
                        out.extend(if i > 0 { b",0x" } else { b"0x" });
                        out.hex(number_of(element, env.big_endian));
                    }
                }
                out.push(b'}');
            }
            Text::Bitmask(memory) => {
                let bytes = memory.of(raw, env.big_endian);
                for at in (0..bytes.len()).rev() {
                    let index = if env.big_endian { bytes.len() - 1 - at } else { at };
                    out.hex_digits(u64::from(bytes[index]), 2);
                    if at > 0 && at % 4 == 0 {
                        out.push(b',');
                    }
                }
            }
            Text::BitList(memory, count) => {
                let count = count.as_ref().map_or(usize::MAX, |n| eval(n) as usize);
                bit_list(memory.of(raw, env.big_endian), count, env, out);
            }
            Text::KernelString(address) => {
                let address = eval(address);
                match (env.symbols.string(address), env.rules) {
                    (Some(text), _) => out.extend(text),
                    (None, Rules::TraceCmd) => out.hex(address),
                    (None, Rules::C) => {
                        out.extend(b"0x");
                        out.hex(address);
                    }
                }
            }
            Text::Device(number) => {
                let number = eval(number);
                out.decimal(number >> 20);
                out.push(b':');
                out.decimal(number & 0xf_ffff);
            }
        }
    }
}

/// Prints the set bits as `0-3,5`. A mask is an array of `long`s, so on big-endian machines its bytes are out of order.
fn bit_list(bytes: &[u8], count: usize, env: PrintContext<'_>, out: &mut Out) {
    let long = usize::from(env.long_size);
    let is_set = |bit: usize| {
        let byte = bit / 8;
        let index = if env.big_endian { byte / long * long + (long - 1 - byte % long) } else { byte };
        bit < count && bytes.get(index).is_some_and(|b| b >> (bit % 8) & 1 != 0)
    };
    let end = count.min(bytes.len() * 8);
    let mut bit = 0;
    let mut first = true;
    while bit < end {
        if !is_set(bit) {
            bit += 1;
            continue;
        }
        let start = bit;
        while bit < end && is_set(bit) {
            bit += 1;
        }
        if !first {
            out.push(b',');
        }
        first = false;
        out.decimal(start as u64);
        if bit - start > 1 {
            out.push(b'-');
            out.decimal(bit as u64 - 1);
        }
    }
}

/// Texts by value: each of a fixed number of places belongs to the first value that comes for it.
#[derive(Debug)]
pub struct Memo {
    places: Vec<OnceLock<(u64, Box<[u8]>)>>,
}

impl Memo {
    /// Room for `1 << bits` values.
    pub fn new(bits: u32) -> Memo {
        Memo { places: (0..1 << bits).map(|_| OnceLock::new()).collect() }
    }

    /// Appends the text of `value`, made by `make` if it is not known.
    #[inline]
    pub fn print(&self, value: u64, out: &mut Out, make: impl Fn(u64, &mut Out)) {
        // Multiplication mixes all bits into the high ones.
        let hash = value.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let place = &self.places[hash as usize & (self.places.len() - 1)];
        let (known, text) = place.get_or_init(|| {
            let mut text = Out::default();
            make(value, &mut text);
            (value, text.as_bytes().into())
        });
        if *known == value { out.extend(text) } else { make(value, out) }
    }
}

impl Scope<'_> {
    /// Compiles an expression that is a text.
    pub fn text(&self, expr: &Expr) -> Result<Text, String> {
        match expr {
            Expr::Text(text) => Ok(Text::Literal(text.clone())),
            Expr::Cast(_, inner) => self.text(inner),
            Expr::Cond(condition, a, b) => {
                let condition = self.number(condition)?;
                let (a, b) = (self.text(a)?, self.text(b)?);
                Ok(match condition.num.constant() {
                    Some(0) => b,
                    Some(_) => a,
                    None => Text::Cond(condition.num, Box::new((a, b))),
                })
            }
            Expr::Call(function, arguments) => self.text_call(function, arguments),
            Expr::Field(name) => {
                let field = self.field(name)?;
                match field.number_bits() {
                    Some(_) if !field.is_chars() => Ok(Text::KernelString(self.number(expr)?.num)),
                    _ => Ok(Text::Chars(self.memory(field)?)),
                }
            }
            Expr::Name(name) if name == "NULL" => Ok(Text::Literal(b"(null)".to_vec())),
            _ => Ok(Text::KernelString(self.number(expr)?.num)),
        }
    }

    fn text_call(&self, function: &str, arguments: &[Expr]) -> Result<Text, String> {
        // Kernels from 6.11 on spell some with a suffix for 64-bit values.
        match (function.trim_end_matches("_u64"), arguments) {
            ("__get_str" | "__get_rel_str" | "__get_dynamic_array" | "__get_rel_dynamic_array", [Expr::Name(name)]) => {
                Ok(Text::Chars(self.memory(self.field(name)?)?))
            }
            ("__get_bitmask" | "__get_rel_bitmask", [Expr::Name(name)]) => {
                Ok(Text::Bitmask(self.memory(self.field(name)?)?))
            }
            ("__get_cpumask" | "__get_rel_cpumask", [Expr::Name(name)]) => {
                let memory = self.memory(self.field(name)?)?;
                Ok(if self.rules == Rules::C { Text::Bitmask(memory) } else { Text::BitList(memory, None) })
            }
            ("__print_flags", [value, Expr::Text(delimiter), list @ ..]) => {
                let (value, list) = self.value_and_names(value, list)?;
                let (delimiter, memo) = (delimiter.clone(), Memo::new(6));
                Ok(Text::Flags(value, Flags { list, delimiter, rules: self.rules, memo }))
            }
            ("__print_symbolic", [value, list @ ..]) => {
                let (value, list) = self.value_and_names(value, list)?;
                Ok(Text::Symbolic(value, list))
            }
            ("__print_hex", [array, count]) => self.hex(array, Some(count), b" "),
            ("__print_hex_str", [array, count]) => self.hex(array, Some(count), b""),
            ("__print_array", [array, count, size]) => {
                let (memory, _) = self.memory_of(array)?;
                Ok(Text::Array(memory, self.number(count)?.num, self.number(size)?.num))
            }
            ("__print_dynamic_array", [Expr::Name(name), size]) => {
                let memory = self.memory(self.field(name)?)?;
                Ok(Text::Array(memory, Num::Const(u64::MAX), self.number(size)?.num))
            }
            ("jbd2_dev_to_name", [device]) if self.rules == Rules::TraceCmd => {
                Ok(Text::Device(self.number(device)?.num))
            }
            _ => Err(format!("unknown function {function}")),
        }
    }

    /// A value and the names it can have, both as `unsigned long`, which is what the kernel compares.
    fn value_and_names(&self, value: &Expr, list: &[Expr]) -> Result<(Num, Names), String> {
        let mut list = self.names(list, self.table(value))?;
        let mut value = self.number(value)?.num;
        if self.long_size == 4 && self.rules == Rules::C {
            let long = Int { bits: 32, signed: false };
            value = Num::Wrap(long, Box::new(value));
            list.iter_mut().for_each(|(number, _)| *number = long.wrap(*number));
        }
        Ok((value, list))
    }

    /// Bytes in hexadecimal.
    pub fn hex(&self, array: &Expr, count: Option<&Expr>, separator: &'static [u8]) -> Result<Text, String> {
        let (memory, _) = self.memory_of(array)?;
        let count = count.map(|c| self.number(c)).transpose()?;
        Ok(Text::Hex(memory, count.map(|c| c.num), separator))
    }

    /// The vocabulary's table for an expression that is a field with one.
    fn table(&self, value: &Expr) -> Option<&'static NameTable> {
        match value {
            Expr::Cast(_, inner) => self.table(inner),
            Expr::Field(name) => {
                let schema = self.kind.schema()?;
                match schema.fields[schema.slot(name.as_bytes())?].shape {
                    Shape::Name(table) => Some(table),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// The entries of a list of names, as numbers. `table` knows numbers that the format omits; entries that stay
    /// without a number are omitted, so their values print as numbers.
    pub fn names(&self, list: &[Expr], table: Option<&NameTable>) -> Result<Vec<(u64, Vec<u8>)>, String> {
        let mut names = Vec::new();
        for entry in list {
            let Expr::List(pair) = entry else { return Err("a list of names has an entry that is not a pair".into()) };
            match pair.as_slice() {
                [value, Expr::Text(word)] => {
                    let known = match self.rules {
                        Rules::C => self.number(value).ok().and_then(|v| v.num.constant()),
                        Rules::TraceCmd => Some(self.listed_by_trace_cmd(value)),
                    };
                    let usual = |t: &NameTable| t.index_of(word).map(|i| t.numbers[i as usize]);
                    let number = known.or_else(|| table.and_then(usual));
                    names.extend(number.map(|n| (n, word.clone())));
                }
                // The end mark `{ 0, NULL }`.
                [_, _] => {}
                _ => return Err("a list of names has an entry that is not a pair".into()),
            }
        }
        Ok(names)
    }

    /// The number that trace-cmd gives an entry: it knows a few names, takes a single other name or a negative number
    /// for all ones and names within an expression for 0, and ignores casts around the whole.
    fn listed_by_trace_cmd(&self, value: &Expr) -> u64 {
        let known = ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];
        match value {
            Expr::Cast(_, inner) => self.listed_by_trace_cmd(inner),
            Expr::Name(name) => match name.as_str() {
                "HRTIMER_NORESTART" => 0,
                "HRTIMER_RESTART" => 1,
                _ => known.iter().position(|k| name.strip_suffix("_SOFTIRQ") == Some(k)).map_or(u64::MAX, |i| i as u64),
            },
            _ => {
                let nameless = Scope { symbols: &Symbols::default(), ..*self };
                let number = nameless.number(value).ok().and_then(|v| v.num.constant());
                number.filter(|n| (*n as i64) >= 0).unwrap_or(u64::MAX)
            }
        }
    }
}
