//! Arguments and conversions of print formats: text of the tables, the kernel's C text, and values.
//!
//! A page's address and its frame number are converted with the virtual memory map of x86-64 (4-level page tables,
//! no KASLR) and 64 bytes per `struct page`; before 2.6.39 that structure had 56.

use super::Era;
use super::layout::Field;
use super::words::{Words, words};

/// Where x86-64 kernels map the page structures.
pub(super) const VMEMMAP: u64 = 0xffff_ea00_0000_0000;
/// Bytes of a page structure.
pub(super) const PAGE_STRUCT: u64 = 64;

/// An argument; numbers are positions of fields.
#[derive(Clone, Copy, Debug)]
pub(super) enum Arg {
    Field(usize),
    Words(usize, &'static Words),
    Symbol(usize),
    Major(usize),
    Minor(usize),
    /// Address of a page frame; if checked, frame -1 has none.
    Page(usize, bool),
    /// Frame number of a page; if checked, NULL has 0.
    Pfn(usize, bool),
    Known(usize),
    Limit(usize),
    Bytes(usize),
    Nodes(usize),
    /// Field, bits of it (`None`: all), text if set, text if not.
    Choice(usize, Option<u64>, &'static str, &'static str),
    Equal(usize, Operand),
    Less(usize, u64),
    Constant(u64),
}

/// Operand of a comparison with a field.
#[derive(Clone, Copy, Debug)]
pub(super) enum Operand {
    Field(usize),
    Number(u64),
}

impl Arg {
    /// Reads an argument of the tables.
    pub fn parse(text: &'static str, era: Era, fields: &[Field]) -> Option<Arg> {
        let field = |name: &str| fields.iter().position(|f| f.name == name);
        if let Some((condition, texts)) = text.split_once('?').filter(|(_, texts)| !texts.is_empty()) {
            let (set, clear) = texts.split_once(':')?;
            let space = |text| if text == "_" { " " } else { text };
            let (name, bits) = match condition.split_once("&0x") {
                Some((name, bits)) => (name, Some(u64::from_str_radix(bits, 16).ok()?)),
                None => (condition, None),
            };
            return Some(Arg::Choice(field(name)?, bits, space(set), space(clear)));
        }
        if let Some((name, other)) = text.split_once("==") {
            let operand = match other.parse() {
                Ok(number) => Operand::Number(number),
                Err(_) => Operand::Field(field(other)?),
            };
            return Some(Arg::Equal(field(name)?, operand));
        }
        if let Some((name, other)) = text.split_once('<') {
            return Some(Arg::Less(field(name)?, other.parse().ok()?));
        }
        let Some((name, how)) = text.split_once(':') else {
            return text.parse().map(Arg::Constant).ok().or_else(|| field(text).map(Arg::Field));
        };
        let f = field(name)?;
        Some(match how {
            "symbol" => Arg::Symbol(f),
            "major" => Arg::Major(f),
            "minor" => Arg::Minor(f),
            "page" | "page?" => Arg::Page(f, how.ends_with('?')),
            "pfn" | "pfn?" => Arg::Pfn(f, how.ends_with('?')),
            "known" => Arg::Known(f),
            "limit" => Arg::Limit(f),
            "bytes" => Arg::Bytes(f),
            "nodes" => Arg::Nodes(f),
            table => Arg::Words(f, words(era, table)?),
        })
    }

    /// The fields that it reads.
    pub fn fields(&self) -> impl Iterator<Item = usize> + use<> {
        let (first, second) = match *self {
            Arg::Field(f)
            | Arg::Words(f, _)
            | Arg::Symbol(f)
            | Arg::Major(f)
            | Arg::Minor(f)
            | Arg::Page(f, _)
            | Arg::Pfn(f, _)
            | Arg::Known(f)
            | Arg::Limit(f)
            | Arg::Bytes(f)
            | Arg::Nodes(f)
            | Arg::Choice(f, ..)
            | Arg::Less(f, _)
            | Arg::Equal(f, Operand::Number(_)) => (Some(f), None),
            Arg::Equal(f, Operand::Field(g)) => (Some(f), Some(g)),
            Arg::Constant(_) => (None, None),
        };
        first.into_iter().chain(second)
    }

    /// The same argument after its fields have moved to `positions`.
    pub fn moved(mut self, positions: &[usize]) -> Arg {
        match &mut self {
            Arg::Field(f)
            | Arg::Words(f, _)
            | Arg::Symbol(f)
            | Arg::Major(f)
            | Arg::Minor(f)
            | Arg::Page(f, _)
            | Arg::Pfn(f, _)
            | Arg::Known(f)
            | Arg::Limit(f)
            | Arg::Bytes(f)
            | Arg::Nodes(f)
            | Arg::Choice(f, ..)
            | Arg::Less(f, _)
            | Arg::Equal(f, Operand::Number(_)) => *f = positions[*f],
            Arg::Equal(f, Operand::Field(g)) => (*f, *g) = (positions[*f], positions[*g]),
            Arg::Constant(_) => {}
        }
        self
    }

    /// C text of the argument, as format files have it.
    pub fn c_text(&self, fields: &[Field]) -> String {
        let rec = |f: usize| format!("REC->{}", fields[f].name);
        match *self {
            Arg::Field(f) if fields[f].c_type == "string" => format!("__get_str({})", fields[f].name),
            Arg::Field(f) => rec(f),
            Arg::Words(f, words) => words_text(&rec(f), words),
            Arg::Symbol(f) => format!("(void *){}", rec(f)),
            Arg::Major(f) => format!("((unsigned int) ({} >> 20))", rec(f)),
            Arg::Minor(f) => format!("((unsigned int) ({} & 0xfffff))", rec(f)),
            Arg::Page(f, false) => format!("({VMEMMAP:#x}UL + {} * {PAGE_STRUCT})", rec(f)),
            Arg::Page(f, true) => {
                format!("{0} != -1UL ? ({VMEMMAP:#x}UL + {0} * {PAGE_STRUCT}) : ((void *)0)", rec(f))
            }
            Arg::Pfn(f, false) => format!("(((unsigned long){} - {VMEMMAP:#x}UL) / {PAGE_STRUCT})", rec(f)),
            Arg::Pfn(f, true) => {
                format!("{0} ? (((unsigned long){0} - {VMEMMAP:#x}UL) / {PAGE_STRUCT}) : 0", rec(f))
            }
            Arg::Known(f) => format!("{0} != -1UL ? {0} : 0", rec(f)),
            Arg::Limit(f) => format!("1UL << {}", rec(f)),
            Arg::Bytes(f) => format!("{} << 12", rec(f)),
            Arg::Nodes(f) => format!("{}, {}", u32::from(fields[f].size) * 8, rec(f)),
            Arg::Choice(f, None, set, clear) => format!("{} ? \"{set}\" : \"{clear}\"", rec(f)),
            Arg::Choice(f, Some(bits), set, clear) => format!("({} & {bits:#x}) ? \"{set}\" : \"{clear}\"", rec(f)),
            Arg::Equal(f, Operand::Field(g)) => format!("{} == {}", rec(f), rec(g)),
            Arg::Equal(f, Operand::Number(n)) => format!("{} == {n}", rec(f)),
            Arg::Less(f, n) => format!("{} < {n}", rec(f)),
            Arg::Constant(n) => n.to_string(),
        }
    }
}

fn words_text(rec: &str, words: &Words) -> String {
    let entries: Vec<String> = words
        .entries
        .iter()
        .map(|(n, word)| if words.flags { format!("{{{n:#x}, \"{word}\"}}") } else { format!("{{{n}, \"{word}\"}}") })
        .collect();
    let entries = entries.join(", ");
    match words.flags {
        true => format!("({rec}) ? __print_flags({rec}, \"|\", {entries}) : \"{}\"", words.none),
        false => format!("__print_symbolic({rec}, {entries})"),
    }
}

/// Literal text or a conversion of a print format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Literal(&'static str),
    /// `%d` of this many bits.
    Signed(u32),
    /// `%u` of this many bits.
    Unsigned(u32),
    /// `%x`.
    Hex,
    /// `%X`.
    UpperHex,
    /// `%s`, left-aligned in this many columns.
    Text(usize),
    /// `%p`.
    Pointer,
    /// `%pS`, `%pF`.
    Symbol,
    /// `%*pbl`.
    Nodes,
}

impl Piece {
    /// Parses a format; `None` if it has a conversion that no event of the tables needs.
    pub fn parse(format: &'static str) -> Option<Vec<Piece>> {
        let mut pieces = Vec::new();
        let mut rest = format;
        while let Some((literal, conversion)) = rest.split_once('%') {
            if !literal.is_empty() {
                pieces.push(Piece::Literal(literal));
            }
            let known = CONVERSIONS.iter().find(|(text, _)| conversion.starts_with(text));
            let (text, piece) = known?;
            pieces.push(*piece);
            rest = &conversion[text.len()..];
        }
        if !rest.is_empty() {
            pieces.push(Piece::Literal(rest));
        }
        Some(pieces)
    }
}

/// Conversions; longer ones before those they begin with.
static CONVERSIONS: &[(&str, Piece)] = &[
    ("hd", Piece::Signed(16)),
    ("d", Piece::Signed(32)),
    ("ld", Piece::Signed(64)),
    ("lld", Piece::Signed(64)),
    ("u", Piece::Unsigned(32)),
    ("lu", Piece::Unsigned(64)),
    ("zu", Piece::Unsigned(64)),
    ("lx", Piece::Hex),
    ("lX", Piece::UpperHex),
    ("s", Piece::Text(0)),
    ("-8s", Piece::Text(8)),
    ("*pbl", Piece::Nodes),
    ("pS", Piece::Symbol),
    ("pF", Piece::Symbol),
    ("p", Piece::Pointer),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_parsed() {
        let pieces = Piece::parse("bdi %s: ino=%lu zone=%-8s, %pS").unwrap();
        use Piece::*;
        let expected = [
            Literal("bdi "),
            Text(0),
            Literal(": ino="),
            Unsigned(64),
            Literal(" zone="),
            Text(8),
            Literal(", "),
            Symbol,
        ];
        assert_eq!(pieces, expected);
        assert_eq!(Piece::parse("%q"), None);
    }
}
