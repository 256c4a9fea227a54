//! Reading a tree into types, with all its faults.
//!
//! The types are read by serde, which stops at the first error. So a value that cannot be read is noted, omitted, and
//! the tree is read again: a list is read without the element, a table without the key, and if the key is required the
//! table itself is omitted. Independent faults are found together, and a fault that only follows from another is not
//! reported.
//!
//! Unknown keys and words are recognised here, since serde passes the names of a type's fields and values; suggestions
//! are made from these.

mod access;
mod deserialize;
mod wrong;

use super::{Fault, Faults, Node, Place, Sources, Table, Value, add, is_full, suggest};
use crate::renamed;
use serde::de::DeserializeOwned;
use std::cell::RefCell;
use std::collections::BTreeSet;
use wrong::{Wrong, shown};

/// Values that are omitted at most; a file with more faults is another kind of file.
const MAX_ROUNDS: usize = 64;
/// Bytes of all rereads of a file; larger files have their faults reported in fewer rounds.
const MAX_BYTES: usize = 16 << 20;

/// Reads a tree. `what` names the tree in messages about missing keys.
pub(crate) fn read<T: DeserializeOwned>(sources: &Sources, tree: &Node, what: &str) -> Result<T, Faults> {
    let reading = Reading { sources, faults: RefCell::default(), bad: RefCell::default() };
    let at = At { node: tree, path: what.into(), reading: &reading };
    let rounds = (MAX_BYTES / sources.bytes().max(1)).clamp(2, MAX_ROUNDS);
    let mut through = false;
    for _ in 0..rounds {
        let before = reading.bad.borrow().len();
        match T::deserialize(at.clone()) {
            Ok(value) if reading.faults.borrow().is_empty() => return Ok(value),
            Ok(_) => through = true,
            Err(_) if reading.is_full() => through = true,
            Err(error) => drop(at.failed(error)),
        };
        if through {
            break;
        }
        if reading.bad.borrow().len() == before || at.is_bad() {
            through = true;
            break;
        }
    }
    if reading.faults.borrow().is_empty() {
        at.note(tree.place, "cannot be read", None);
    }
    if !through {
        let file = sources.get(tree.place.source).name.as_str();
        let more = || Fault::of_file(file, "there may be more faults: correct these first");
        add(&mut reading.faults.borrow_mut(), more);
    }
    Err(Faults::new(reading.faults.into_inner()))
}

struct Reading<'a> {
    sources: &'a Sources,
    faults: RefCell<Vec<Fault>>,
    /// Addresses of the nodes that are omitted.
    bad: RefCell<BTreeSet<*const Node>>,
}

impl Reading<'_> {
    fn is_full(&self) -> bool {
        is_full(&self.faults.borrow())
    }
}

/// A node that is being read.
#[derive(Clone)]
struct At<'a> {
    node: &'a Node,
    /// Keys that lead to it, for messages.
    path: String,
    reading: &'a Reading<'a>,
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
        let new = || Fault::new(self.reading.sources, place, message).help(help);
        add(&mut self.reading.faults.borrow_mut(), new);
    }

    /// Records the fault of this node and omits what it must.
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

    /// The text found here instead of the expected one.
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
                Err(self.mismatch(&format!("an integer from {least} to {most}")))
            }
        }
    }

    /// Notes keys that are not among those known.
    fn check_keys(&self, table: &Table, known: &[&'static str]) {
        for (key, (place, _)) in table.iter().filter(|(key, _)| !known.contains(&key.as_str())) {
            if self.reading.is_full() {
                return;
            }
            let of = if self.path.is_empty() { String::new() } else { format!(" in `{}`", self.path) };
            let help = renamed::key(key, known).map(renamed::help).or_else(|| renamed::gone(key, known));
            let near = || suggest(key, known.iter().copied()).map(|word| format!("did you mean `{word}`?"));
            let help =
                help.or_else(near).or_else(|| (known.len() <= 12).then(|| format!("known keys: {}", known.join(", "))));
            self.note(*place, format!("unknown key `{}`{of}", shown(key)), help);
        }
    }
}

/// A number as it is written.
#[derive(Clone, Copy)]
enum Number {
    Integer(i64),
    Float(f64),
}

/// Name of a text in messages.
const TEXT: &str = "a text in quotes";
