//! Reading a tree into types, with all its faults.
//!
//! The types are read by serde, which gives up at the first error. So a value that cannot be read is noted, left out,
//! and the tree is read again: a list does without the element, a table without the key, and where the key is needed
//! the table itself is left out of what is around it. What is wrong independently is found in one go, and a fault
//! that only follows from another is not reported.
//!
//! Unknown keys and words are known here to be wrong, since serde tells the reader the names of a type's fields and
//! values; that is where suggestions come from.

use super::{Fault, Faults, Node, Place, Sources, Table, Value, suggest};
use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, EnumAccess, Error as _, Expected, IntoDeserializer, MapAccess, SeqAccess,
    Unexpected, VariantAccess, Visitor,
};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;

/// Values that are left out at most; a file with more faults is another kind of file.
const MAX_ROUNDS: usize = 64;

/// Reads a tree. `what` names the tree in messages about missing keys.
pub(crate) fn read<T: DeserializeOwned>(sources: &Sources, tree: &Node, what: &str) -> Result<T, Faults> {
    let reading = Reading { sources, faults: RefCell::default(), bad: RefCell::default() };
    let at = At { node: tree, path: what.into(), reading: &reading };
    for _ in 0..MAX_ROUNDS {
        let before = reading.bad.borrow().len();
        match T::deserialize(at.clone()) {
            Ok(value) if reading.faults.borrow().is_empty() => return Ok(value),
            Ok(_) => break,
            Err(error) => at.failed(error),
        };
        if reading.bad.borrow().len() == before || at.is_bad() {
            break;
        }
    }
    if reading.faults.borrow().is_empty() {
        at.note(tree.place, "cannot be read", None);
    }
    Err(Faults::new(reading.faults.into_inner()))
}

struct Reading<'a> {
    sources: &'a Sources,
    faults: RefCell<Vec<Fault>>,
    /// Addresses of the nodes that are left out.
    bad: RefCell<BTreeSet<*const Node>>,
}

/// A node that is being read.
#[derive(Clone)]
struct At<'a> {
    node: &'a Node,
    /// Keys that lead to it, for messages.
    path: String,
    reading: &'a Reading<'a>,
}

/// Why a value was not read.
#[derive(Debug)]
enum Wrong {
    /// The fault is noted already.
    Noted,
    /// The table lacks a key.
    Missing(&'static str),
    /// A type's own complaint. It may begin with the key of the table that it is about, and a colon.
    Message(String),
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wrong::Noted => f.write_str("noted"),
            Wrong::Missing(key) => write!(f, "missing key `{key}`"),
            Wrong::Message(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for Wrong {}

impl serde::de::Error for Wrong {
    fn custom<T: fmt::Display>(message: T) -> Wrong {
        Wrong::Message(message.to_string())
    }

    fn missing_field(field: &'static str) -> Wrong {
        Wrong::Missing(field)
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Wrong {
        Wrong::Message(format!("expected {expected}, found {}", describe(found)))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Wrong {
        Wrong::Message(format!("expected {expected}, found {}", describe(found)))
    }

    fn invalid_length(length: usize, expected: &dyn Expected) -> Wrong {
        Wrong::Message(format!("expected {expected}, found {length} elements"))
    }
}

fn describe(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Str(text) => format!("\"{}\"", shown(text)),
        Unexpected::Signed(number) => format!("the number {number}"),
        Unexpected::Unsigned(number) => format!("the number {number}"),
        Unexpected::Float(number) => format!("the number {number}"),
        Unexpected::Bool(value) => format!("{value}"),
        Unexpected::Seq => "a list".into(),
        Unexpected::Map => "a table".into(),
        other => other.to_string(),
    }
}

/// A word as it is repeated in a message.
fn shown(text: &str) -> String {
    if text.chars().count() > 40 { format!("{}...", text.chars().take(40).collect::<String>()) } else { text.into() }
}

impl<'a> At<'a> {
    fn child(&self, key: &str, node: &'a Node) -> At<'a> {
        let path = if self.path.is_empty() { key.into() } else { format!("{}.{key}", self.path) };
        At { node, path, reading: self.reading }
    }

    fn is_bad(&self) -> bool {
        self.reading.bad.borrow().contains(&std::ptr::from_ref(self.node))
    }

    fn leave_out(&self, node: &Node) {
        self.reading.bad.borrow_mut().insert(std::ptr::from_ref(node));
    }

    fn note(&self, place: Place, message: impl Into<String>, help: Option<String>) {
        self.reading.faults.borrow_mut().push(Fault::new(self.reading.sources, place, message).help(help));
    }

    /// Notes what went wrong with this node and leaves out what must be.
    fn failed(&self, wrong: Wrong) -> Wrong {
        match wrong {
            Wrong::Noted => {}
            Wrong::Missing(key) => {
                // A key that is there but cannot be read was noted when it was found.
                if self.node.get(key).is_none() {
                    let of = if self.path.is_empty() { String::new() } else { format!(" in `{}`", self.path) };
                    self.note(self.node.place, format!("missing key `{key}`{of}"), None);
                }
                self.leave_out(self.node);
            }
            Wrong::Message(message) => {
                let about = message.split_once(": ").and_then(|(key, rest)| Some((self.node.get(key)?, rest)));
                match about {
                    Some((node, rest)) => self.note(node.place, rest, None),
                    None => self.note(self.node.place, message, None),
                }
                self.leave_out(self.node);
            }
        }
        Wrong::Noted
    }

    /// What is written here instead of what is expected.
    fn mismatch(&self, expected: &str) -> Wrong {
        let written = shown(self.reading.sources.written(self.node.place));
        let help = (expected == TEXT && matches!(self.node.value, Value::Integer(_) | Value::Float(_)))
            .then(|| format!("write \"{written}\""));
        let found = match &self.node.value {
            Value::Text(text) | Value::Bare(text) => format!("\"{}\"", shown(text)),
            Value::Integer(number) => format!("the number {number}"),
            Value::Float(number) => format!("the number {number}"),
            Value::Bool(value) => value.to_string(),
            Value::Date(_) => "a date".into(),
            Value::Array(_) => "a list".into(),
            Value::Table(_) => "a table".into(),
        };
        self.note(self.node.place, format!("expected {expected}, found {found}"), help);
        self.leave_out(self.node);
        Wrong::Noted
    }

    fn table(&self) -> Result<&'a Table, Wrong> {
        match &self.node.value {
            Value::Table(table) => Ok(table),
            _ => Err(self.mismatch("a table")),
        }
    }

    /// The value as a number, where a bare word may be one.
    fn number(&self) -> Option<Number> {
        match &self.node.value {
            Value::Integer(integer) => Some(Number::Integer(*integer)),
            Value::Float(float) => Some(Number::Float(*float)),
            Value::Bare(word) => match word.replace('_', "").parse::<i64>() {
                Ok(integer) => Some(Number::Integer(integer)),
                Err(_) => {
                    let float = word.parse::<f64>().ok().filter(|f| f.is_finite());
                    float.filter(|_| word.starts_with(|c: char| c.is_ascii_digit() || c == '-')).map(Number::Float)
                }
            },
            _ => None,
        }
    }

    fn integer(&self, least: i64, most: u64) -> Result<i64, Wrong> {
        match self.number() {
            Some(Number::Integer(value)) if value >= least && (value < 0 || value.unsigned_abs() <= most) => Ok(value),
            _ => {
                let most = most.min(i64::MAX as u64);
                Err(self.mismatch(&format!("a whole number from {least} to {most}")))
            }
        }
    }

    /// Notes keys that are not among those known.
    fn check_keys(&self, table: &Table, known: &[&'static str]) {
        for (key, (place, _)) in table.iter().filter(|(key, _)| !known.contains(&key.as_str())) {
            let of = if self.path.is_empty() { String::new() } else { format!(" in `{}`", self.path) };
            let help = suggest(key, known.iter().copied()).map(|word| format!("did you mean `{word}`?"));
            let help = help.or_else(|| (known.len() <= 12).then(|| format!("known keys: {}", known.join(", "))));
            self.note(*place, format!("unknown key `{}`{of}", shown(key)), help);
        }
    }
}

#[derive(Clone, Copy)]
enum Number {
    Integer(i64),
    Float(f64),
}

const TEXT: &str = "a text in quotes";

/// Whole numbers by their type's limits.
macro_rules! integers {
    ($($method:ident $type:ty)+) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
            let value = self.integer(<$type>::MIN as i64, <$type>::MAX as u64)?;
            visitor.visit_i64::<Wrong>(value).map_err(|wrong| self.failed(wrong))
        })+
    };
}

impl<'de> serde::Deserializer<'de> for At<'_> {
    type Error = Wrong;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        let result = match (&self.node.value, self.number()) {
            (Value::Array(_), _) => return self.deserialize_seq(visitor),
            (Value::Table(_), _) => return self.deserialize_map(visitor),
            (_, Some(Number::Integer(value))) => visitor.visit_i64(value),
            (_, Some(Number::Float(value))) => visitor.visit_f64(value),
            (Value::Bool(value), _) => visitor.visit_bool(*value),
            (Value::Text(text) | Value::Bare(text) | Value::Date(text), _) => visitor.visit_str(text),
            (Value::Integer(_) | Value::Float(_), None) => Err(Wrong::Noted),
        };
        result.map_err(|wrong| self.failed(wrong))
    }

    integers! {
        deserialize_u8 u8
        deserialize_u16 u16
        deserialize_u32 u32
        deserialize_u64 u64
        deserialize_i8 i8
        deserialize_i16 i16
        deserialize_i32 i32
        deserialize_i64 i64
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        let value = match self.number() {
            Some(Number::Float(value)) => value,
            Some(Number::Integer(value)) => value as f64,
            None => return Err(self.mismatch("a number")),
        };
        visitor.visit_f64::<Wrong>(value).map_err(|wrong| self.failed(wrong))
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        let value = match &self.node.value {
            Value::Bool(value) => *value,
            Value::Bare(word) if word == "true" || word == "false" => word == "true",
            _ => return Err(self.mismatch("true or false")),
        };
        visitor.visit_bool::<Wrong>(value).map_err(|wrong| self.failed(wrong))
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match &self.node.value {
            Value::Text(text) | Value::Bare(text) => {
                visitor.visit_str::<Wrong>(text).map_err(|wrong| self.failed(wrong))
            }
            _ => {
                let expecting = (&visitor as &dyn Expected).to_string();
                Err(self.mismatch(if expecting == "a string" { TEXT } else { &expecting }))
            }
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        let Value::Array(nodes) = &self.node.value else { return Err(self.mismatch("a list")) };
        let elements = nodes.iter().enumerate().map(|(i, node)| At { path: format!("{}[{i}]", self.path), node, ..self.clone() });
        let elements = elements.filter(|at| !at.is_bad());
        visitor.visit_seq(Elements(elements)).map_err(|wrong| self.failed(wrong))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Wrong> {
        // A tuple cannot do without an element.
        if let Value::Array(nodes) = &self.node.value
            && nodes.iter().any(|node| At { node, ..self.clone() }.is_bad())
        {
            self.leave_out(self.node);
            return Err(Wrong::Noted);
        }
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        let members = Members { at: &self, left: self.table()?.iter(), known: None, value: None };
        visitor.visit_map(members).map_err(|wrong| self.failed(wrong))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self, _: &'static str, fields: &'static [&'static str], visitor: V,
    ) -> Result<V::Value, Wrong> {
        let table = self.table()?;
        self.check_keys(table, fields);
        let members = Members { at: &self, left: table.iter(), known: Some(fields), value: None };
        visitor.visit_map(members).map_err(|wrong| self.failed(wrong))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self, _: &'static str, words: &'static [&'static str], visitor: V,
    ) -> Result<V::Value, Wrong> {
        let expected = || match words {
            [first, second] => format!("\"{first}\" or \"{second}\""),
            _ => format!("one of {}", words.iter().map(|w| format!("\"{w}\"")).collect::<Vec<_>>().join(", ")),
        };
        let (Value::Text(word) | Value::Bare(word)) = &self.node.value else {
            return Err(self.mismatch(&expected()));
        };
        match words.iter().find(|known| *known == word) {
            Some(word) => visitor.visit_enum(Word(word)),
            None => {
                let near = suggest(word, words.iter().copied()).map(|word| format!("did you mean \"{word}\"?"));
                let known = if near.is_some() && words.len() > 6 { String::new() } else { format!(": expected {}", expected()) };
                self.note(self.node.place, format!("unknown value \"{}\"{known}", shown(word)), near);
                self.leave_out(self.node);
                Err(Wrong::Noted)
            }
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! { i128 u128 char bytes byte_buf unit unit_struct tuple_struct identifier }
}

struct Elements<I>(I);

impl<'a, 'de, I: Iterator<Item = At<'a>>> SeqAccess<'de> for Elements<I> {
    type Error = Wrong;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Wrong> {
        let element = |at: At<'a>| seed.deserialize(at.clone()).map_err(|wrong| at.failed(wrong));
        self.0.next().map(element).transpose()
    }
}

struct Members<'r, 'a> {
    at: &'r At<'a>,
    left: std::collections::btree_map::Iter<'a, String, (Place, Node)>,
    /// Keys that are passed on; `None`: all.
    known: Option<&'static [&'static str]>,
    value: Option<At<'a>>,
}

impl<'de> MapAccess<'de> for Members<'_, '_> {
    type Error = Wrong;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Wrong> {
        for (key, (_, node)) in self.left.by_ref() {
            let at = self.at.child(key, node);
            if at.is_bad() || self.known.is_some_and(|known| !known.contains(&key.as_str())) {
                continue;
            }
            self.value = Some(at);
            let key: StrDeserializer<'_, Wrong> = key.as_str().into_deserializer();
            return seed.deserialize(key).map(Some);
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Wrong> {
        let at = self.value.take().ok_or_else(|| Wrong::custom("a value without its key"))?;
        seed.deserialize(at.clone()).map_err(|wrong| at.failed(wrong))
    }
}

/// A word of an enum.
struct Word(&'static str);

impl<'de> EnumAccess<'de> for Word {
    type Error = Wrong;
    type Variant = Word;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Word), Wrong> {
        let word: StrDeserializer<'_, Wrong> = self.0.into_deserializer();
        Ok((seed.deserialize(word)?, self))
    }
}

impl<'de> VariantAccess<'de> for Word {
    type Error = Wrong;

    fn unit_variant(self) -> Result<(), Wrong> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, _: T) -> Result<T::Value, Wrong> {
        Err(Wrong::custom("a value that is no word"))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Wrong> {
        Err(Wrong::custom("a value that is no word"))
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], _: V) -> Result<V::Value, Wrong> {
        Err(Wrong::custom("a value that is no word"))
    }
}
