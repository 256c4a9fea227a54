//! The key that a fault is about, as an override would name it.

use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The key of a fault in `file`: of an override its own, else the innermost one at the place. `None`: none is there.
pub(crate) fn of(file: &str, at: Option<(usize, usize)>, text: &str, sets: &[String]) -> Option<String> {
    if let Some(number) = file.strip_prefix("--set ").and_then(|number| number.parse::<usize>().ok()) {
        let (key, _) = sets.get(number.checked_sub(1)?)?.split_once('=')?;
        return Some(key.trim().into());
    }
    let (line, column) = at?;
    let before: usize = text.split_inclusive('\n').take(line - 1).map(str::len).sum();
    let within: usize = text.get(before..)?.chars().take(column - 1).map(char::len_utf8).sum();
    let (table, _) = DeTable::parse_recoverable(text);
    let mut found = None;
    search(table.get_ref(), &mut Vec::new(), before + within, &mut found);
    found
}

/// Looks for the longest path whose key or plain value is at a byte. A table's own span is that of its header.
fn search(table: &DeTable<'_>, path: &mut Vec<String>, at: usize, found: &mut Option<String>) {
    for (key, value) in table {
        path.push(key.get_ref().to_string());
        if holds(&key.span(), at) {
            *found = Some(path.join("."));
        }
        within(value, path, at, found);
        path.pop();
    }
}

fn within(value: &Spanned<DeValue<'_>>, path: &mut Vec<String>, at: usize, found: &mut Option<String>) {
    if holds(&value.span(), at) {
        *found = Some(path.join("."));
    }
    match value.get_ref() {
        DeValue::Table(table) => search(table, path, at, found),
        DeValue::Array(values) => {
            for (number, value) in values.iter().enumerate() {
                path.push(name(value.get_ref()).unwrap_or_else(|| number.to_string()));
                within(value, path, at, found);
                path.pop();
            }
        }
        _ => {}
    }
}

fn holds(span: &Range<usize>, at: usize) -> bool {
    span.contains(&at)
}

/// An element that has a name is named by it.
fn name(value: &DeValue<'_>) -> Option<String> {
    let DeValue::Table(table) = value else { return None };
    let name = table.iter().find(|(key, _)| key.get_ref() == "name")?.1;
    Some(name.get_ref().as_str()?.to_owned())
}
