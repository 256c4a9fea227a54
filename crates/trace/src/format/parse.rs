//! The text of an event's `format` file: name, ID, fields and `print fmt`.
//!
//! Covers the texts of Linux 2.6.36 to 6.18: common fields of every era, fields without `signed:`, `__data_loc` and
//! `__rel_loc`, arrays with numeric or symbolic length. Not supported: nothing; lines that are none of these are kept in
//! the recorded text. Validated on every format of a 6.18 kernel and on hand-made texts of the older eras.

use super::ctype::int_of;
use crate::{At, Error, Place};

/// One field of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldDef {
    /// Name.
    pub name: String,
    /// C type as printed, without the name and without array brackets behind the name.
    pub c_type: String,
    /// Byte offset from the start of the record.
    pub offset: u32,
    /// Size in bytes; 0: the rest of the record.
    pub size: u32,
    /// Sign-extend.
    pub signed: bool,
    /// Number of elements of a fixed array, where the text or the size tells.
    pub array: Option<u32>,
    /// One of the fields that every event has (`common_type`, ...).
    pub common: bool,
    /// Where its bytes are.
    pub storage: Storage,
}

/// How a field stores its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// In place: a number, a structure or an array of fixed size.
    Inline,
    /// `__data_loc`: 32 bits, low half offset from the record start, high half length.
    DataLoc,
    /// `__rel_loc`: the same, offset from the end of the field.
    RelLoc,
    /// An array of unknown length at the end of the record (`buf[]`).
    Rest,
}

impl FieldDef {
    /// Width of the number in bits if the field is a single number that fits 64 bits.
    pub fn number_bits(&self) -> Option<u8> {
        let single = self.storage == Storage::Inline && self.array.is_none();
        (single && matches!(self.size, 1 | 2 | 4 | 8)).then(|| self.size as u8 * 8)
    }

    /// The field is made of characters.
    pub fn is_chars(&self) -> bool {
        let words = self.c_type.split(|c: char| c == '[' || c.is_whitespace());
        let bytes = words.clone().any(|w| w == "char") && !self.c_type.contains('*');
        bytes && (self.array.is_some() || self.storage != Storage::Inline)
    }

    /// Size of an element in bytes: of the array, or of the number itself.
    pub fn element_size(&self, long_size: u8) -> u32 {
        match (self.storage, self.array) {
            (Storage::Inline, Some(n)) => self.size / n.max(1),
            (Storage::Inline, None) => self.size,
            _ => int_of(self.c_type.trim_end_matches(['[', ']', ' ']), long_size).map_or(1, |i| u32::from(i.bits / 8)),
        }
    }
}

/// What a format text says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// Event name.
    pub name: String,
    /// Number that `common_type` of its records holds.
    pub id: u16,
    /// All fields, in the order of the text.
    pub fields: Vec<FieldDef>,
    /// What follows `print fmt:`.
    pub print: String,
}

/// Parses a format text. `place` is where the text stands, for errors.
pub fn parse(text: &str, long_size: u8, place: &Place) -> Result<Parsed, Error> {
    let bad = |number: usize, message: String| {
        let mut at = place.clone();
        if let At::File = at.at {
            at.at = At::Line(number as u64 + 1);
        }
        Error::at(at, message)
    };
    let (mut name, mut id) = (None, None);
    let mut fields = Vec::new();
    let mut print = String::new();
    let mut consumed = 0;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let start = consumed;
        consumed += line.len();
        let line = line.trim();
        if let Some(rest) = line.strip_prefix("name:") {
            name = Some(rest.trim().to_string());
        } else if let Some(rest) = line.strip_prefix("ID:") {
            let parsed = rest.trim().parse::<u16>();
            id = Some(parsed.map_err(|_| bad(number, format!("event ID `{}` is not a 16-bit number", rest.trim())))?);
        } else if let Some(rest) = line.strip_prefix("field:") {
            fields.push(field(rest, long_size).map_err(|message| bad(number, message))?);
        } else if line.starts_with("print fmt:") {
            // The rest of the text: string literals may contain line breaks.
            let from = start + text[start..].find("fmt:").unwrap_or(0) + "fmt:".len();
            print = text[from..].trim().to_string();
            break;
        }
    }
    match (name, id) {
        (Some(name), Some(id)) if !name.is_empty() => Ok(Parsed { name, id, fields, print }),
        (None, _) => Err(bad(0, "a format text without a `name:` line".into())),
        (Some(name), Some(_)) => Err(bad(0, format!("a format text with an empty name{name}"))),
        (Some(name), None) => Err(bad(0, format!("the format of {name} has no `ID:` line"))),
    }
}

/// Parses `TYPE NAME;  offset:N;  size:N;  signed:N;`.
fn field(text: &str, long_size: u8) -> Result<FieldDef, String> {
    let mut parts = text.split(';').map(str::trim);
    let declaration = parts.next().unwrap_or_default();
    let (mut offset, mut size, mut signed) = (None, None, None);
    for part in parts.filter(|p| !p.is_empty()) {
        let Some((key, value)) = part.split_once(':') else { continue };
        let number =
            value.trim().parse::<u32>().map_err(|_| format!("field `{declaration}`: `{part}` is not a number"));
        match key {
            "offset" => offset = Some(number?),
            "size" => size = Some(number?),
            "signed" => signed = Some(number? != 0),
            _ => {}
        }
    }
    let (Some(offset), Some(size)) = (offset, size) else {
        return Err(format!("field `{declaration}` has no offset or no size"));
    };
    let (name, c_type, length) = split_declaration(declaration)?;
    let int = int_of(c_type, long_size);
    let located = c_type.split_whitespace().find_map(|word| match word {
        "__data_loc" => Some(Storage::DataLoc),
        "__rel_loc" => Some(Storage::RelLoc),
        _ => None,
    });
    let storage = match (located, length) {
        (Some(located), _) if size == 4 => located,
        (Some(_), _) => return Err(format!("field `{declaration}` is located elsewhere but its size is not 4")),
        (None, Some("")) if size == 0 => Storage::Rest,
        (None, _) => Storage::Inline,
    };
    let array = match (storage, length) {
        (Storage::Inline, Some(length)) => {
            let element = int.map_or(1, |i| u32::from(i.bits / 8));
            let by_size = (size.is_multiple_of(element)).then_some(size / element);
            let written = length.parse().ok().filter(|&n: &u32| n > 0 && size.is_multiple_of(n));
            Some(written.or(by_size).unwrap_or(size))
        }
        _ => None,
    };
    Ok(FieldDef {
        name: name.to_string(),
        c_type: c_type.to_string(),
        offset,
        size,
        signed: signed.unwrap_or_else(|| int.is_some_and(|i| i.signed)),
        array,
        common: name.starts_with("common_"),
        storage,
    })
}

/// Splits `TYPE NAME[LENGTH]` into name, type and length.
fn split_declaration(declaration: &str) -> Result<(&str, &str, Option<&str>), String> {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    // A pointer to a function: `int (*name)(void *)`.
    if let Some((before, after)) = declaration.split_once("(*") {
        let name = after.split(')').next().unwrap_or_default().trim();
        if !name.is_empty() && name.chars().all(word) {
            return Ok((name, declaration[..before.len() + 2].trim(), None));
        }
    }
    let (declared, length) = match declaration.split_once('[') {
        // `__data_loc char[] name`: the brackets belong to the type.
        Some((_, rest)) if !rest.ends_with(']') => (declaration, None),
        Some((before, rest)) => (before.trim_end(), Some(rest.split(']').next().unwrap_or_default().trim())),
        None => (declaration, None),
    };
    let name_start =
        declared.rfind(|c: char| !word(c)).map_or(0, |i| i + declared[i..].chars().next().map_or(1, char::len_utf8));
    let (c_type, name) = declared.split_at(name_start);
    if name.is_empty() {
        return Err(format!("field `{declaration}` has no name"));
    }
    Ok((name, c_type.trim(), length))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(line: &str) -> FieldDef {
        field(line, 8).unwrap()
    }

    #[test]
    fn declarations_of_every_kind() {
        let comm = one("char comm[TASK_COMM_LEN];\toffset:8;\tsize:16;\tsigned:1;");
        assert_eq!((comm.name.as_str(), comm.array, comm.is_chars()), ("comm", Some(16), true));
        let mem = one("unsigned long mem_allowed[16];\toffset:40;\tsize:128;\tsigned:0;");
        assert_eq!((mem.c_type.as_str(), mem.array, mem.element_size(8)), ("unsigned long", Some(16), 8));
        let name = one("__data_loc char[] name;\toffset:12;\tsize:4;\tsigned:0;");
        assert_eq!((name.name.as_str(), name.storage, name.is_chars()), ("name", Storage::DataLoc, true));
        let values = one("__rel_loc u64[] args;\toffset:12;\tsize:4;\tsigned:0;");
        assert_eq!((values.storage, values.element_size(8)), (Storage::RelLoc, 8));
        let mask = one("__data_loc cpumask_t * cpumask;\toffset:12;\tsize:4;\tsigned:0;");
        assert_eq!((mask.name.as_str(), mask.storage), ("cpumask", Storage::DataLoc));
        let buf = one("char buf[];\toffset:16;\tsize:0;\tsigned:0;");
        assert_eq!((buf.storage, buf.array), (Storage::Rest, None));
        let pointer = one("struct page * page;\toffset:8;\tsize:8;\tsigned:0;");
        assert_eq!(
            (pointer.name.as_str(), pointer.c_type.as_str(), pointer.number_bits()),
            ("page", "struct page *", Some(64))
        );
        let call = one("void (*func)(struct rcu_head *);\toffset:8;\tsize:8;\tsigned:0;");
        assert_eq!((call.name.as_str(), call.number_bits()), ("func", Some(64)));
        assert!(one("long x;\toffset:8;\tsize:8;").signed);
        assert!(!one("unsigned long x;\toffset:8;\tsize:8;").signed);
    }

    #[test]
    fn bad_texts_are_errors_with_their_place() {
        let error = |text: &str| parse(text, 8, &Place::file("f")).unwrap_err().to_string();
        assert_eq!(error("ID: 1\n"), "f:1: a format text without a `name:` line");
        assert_eq!(error("name: a\n"), "f:1: the format of a has no `ID:` line");
        assert_eq!(error("name: a\nID: 70000\n"), "f:2: event ID `70000` is not a 16-bit number");
        assert_eq!(
            error("name: a\nID: 7\nfield:int x;\toffset:q;\tsize:4;"),
            "f:3: field `int x`: `offset:q` is not a number"
        );
        assert_eq!(error("name: a\nID: 7\nfield:int x;\tsize:4;"), "f:3: field `int x` has no offset or no size");
        assert_eq!(error("name: a\nID: 7\nfield:*;\toffset:0;\tsize:4;"), "f:3: field `*` has no name");
    }
}
