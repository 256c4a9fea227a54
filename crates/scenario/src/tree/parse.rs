//! From TOML, JSON and the words of `--set` to trees.

use super::{Fault, Faults, Node, Place, Sources, Table, Value, add};
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// Tables and arrays within each other: far more than the language has, far less than the stack.
const MAX_DEPTH: usize = 32;

/// Reads a TOML text that is already among the sources.
pub(crate) fn document(sources: &Sources, source: usize) -> Result<Node, Faults> {
    let text = &sources.get(source).text;
    let whole = Place { source, start: 0, end: 0 };
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        let fault = |error: &toml::de::Error| {
            let span = error.span().unwrap_or(0..0);
            let place = Place { source, start: span.start, end: span.end };
            Fault::new(sources, place, format!("TOML: {}", error.message().replace('\n', ", ")))
        };
        // The places of all faults would reveal the lengths of the words of a foreign file.
        let listed = if sources.get(source).shown { 100 } else { 1 };
        return Err(Faults::new(errors.iter().take(listed).map(fault).collect()));
    }
    let mut reader = Reader { sources, source, faults: Vec::new() };
    let value = reader.table(table.get_ref(), 0);
    if reader.faults.is_empty() { Ok(Node { place: whole, value }) } else { Err(Faults::new(reader.faults)) }
}

/// Reads a word of `--set`, which is one TOML value, or a bare word.
pub(crate) fn bare(sources: &Sources, place: Place) -> Result<Node, Faults> {
    let text = sources.written(place).trim();
    if !text.starts_with(['"', '\'', '[', '{']) {
        return Ok(Node { place, value: Value::Bare(text.into()) });
    }
    match DeValue::parse(text) {
        Ok(value) => {
            let mut reader = Reader { sources, source: place.source, faults: Vec::new() };
            let mut node = reader.node(&value, 0);
            if let Some(fault) = reader.faults.pop() {
                return Err(fault.into());
            }
            // Spans of the value are relative to its own text, and the whole is short enough to be the place.
            relocate(&mut node, place);
            Ok(node)
        }
        Err(error) => Err(Fault::new(sources, place, format!("TOML: {}", error.message())).into()),
    }
}

fn relocate(node: &mut Node, to: Place) {
    node.place = to;
    match &mut node.value {
        Value::Array(nodes) => nodes.iter_mut().for_each(|node| relocate(node, to)),
        Value::Table(table) => {
            for (place, node) in table.values_mut() {
                *place = to;
                relocate(node, to);
            }
        }
        _ => {}
    }
}

/// A tree of a JSON value; all of it has the place of its source. `None`: beyond TOML (`null`, a number above 64 bits).
pub(crate) fn json(value: &serde_json::Value, place: Place) -> Option<Node> {
    use serde_json::Value as Json;
    let value = match value {
        Json::Null => return None,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => match number.as_i64() {
            Some(integer) => Value::Integer(integer),
            None if number.is_f64() => Value::Float(number.as_f64()?),
            None => return None,
        },
        Json::String(text) => Value::Text(text.clone()),
        Json::Array(values) => Value::Array(values.iter().map(|v| json(v, place)).collect::<Option<_>>()?),
        Json::Object(members) => {
            let member = |(key, value): (&String, _)| Some((key.clone(), (place, json(value, place)?)));
            Value::Table(members.iter().map(member).collect::<Option<Table>>()?)
        }
    };
    Some(Node { place, value })
}

struct Reader<'a> {
    sources: &'a Sources,
    source: usize,
    faults: Vec<Fault>,
}

impl Reader<'_> {
    fn place(&self, span: std::ops::Range<usize>) -> Place {
        Place { source: self.source, start: span.start, end: span.end }
    }

    fn table(&mut self, table: &DeTable<'_>, depth: usize) -> Value {
        let entries = table.iter().map(|(key, value)| {
            let place = self.place(key.span());
            (key.get_ref().to_string(), (place, self.node(value, depth + 1)))
        });
        Value::Table(entries.collect())
    }

    fn array(&mut self, array: &DeArray<'_>, depth: usize) -> Value {
        Value::Array(array.iter().map(|value| self.node(value, depth + 1)).collect())
    }

    fn node(&mut self, value: &Spanned<DeValue<'_>>, depth: usize) -> Node {
        let place = self.place(value.span());
        let mut wrong = |message: &str| {
            add(&mut self.faults, || Fault::new(self.sources, place, message));
            Value::Bool(false)
        };
        let value = match value.get_ref() {
            _ if depth > MAX_DEPTH => wrong("nested too deeply"),
            DeValue::String(text) => Value::Text(text.to_string()),
            DeValue::Boolean(value) => Value::Bool(*value),
            DeValue::Datetime(date) => Value::Date(date.to_string()),
            DeValue::Integer(integer) => match i64::from_str_radix(integer.as_str(), integer.radix()) {
                Ok(integer) => Value::Integer(integer),
                Err(_) => wrong("the number is too large: whole numbers go up to 9223372036854775807"),
            },
            DeValue::Float(float) => match float.as_str().parse::<f64>() {
                Ok(float) if float.is_finite() => Value::Float(float),
                _ => wrong("the number is infinite or none"),
            },
            DeValue::Array(array) => self.array(array, depth),
            DeValue::Table(table) => self.table(table, depth),
        };
        Node { place, value }
    }
}
