//! Changes of JSON that leave it JSON: values, types, keys, lengths.

use super::{EDGES, text};
use crate::Random;
use serde_json::{Number, Value};

/// Changes a JSON document in one to five places; what is no JSON is changed as text.
pub fn json(bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let parsed = (!random.one_in(12)).then(|| serde_json::from_slice::<Value>(bytes).ok()).flatten();
    let Some(mut value) = parsed else { return text(bytes, other, random) };
    for _ in 0..=random.below(5) {
        change(pick(&mut value, random), random);
    }
    *bytes = serde_json::to_vec(&value).unwrap_or_default();
}

/// A random node: at every level one of its children, or sometimes the node itself.
fn pick<'v>(value: &'v mut Value, random: &mut Random) -> &'v mut Value {
    let children = match value {
        Value::Array(list) => list.len(),
        Value::Object(table) => table.len(),
        _ => 0,
    };
    if children == 0 || random.one_in(8) {
        return value;
    }
    let which = random.below(children);
    match value {
        Value::Array(list) => pick(&mut list[which], random),
        Value::Object(table) => match table.values_mut().nth(which) {
            Some(child) => pick(child, random),
            None => unreachable!("a table has as many values as it has"),
        },
        leaf => leaf,
    }
}

fn change(value: &mut Value, random: &mut Random) {
    match value {
        _ if random.one_in(10) => *value = other_type(random),
        Value::Number(_) => *value = number(random),
        Value::Bool(truth) => *truth = !*truth,
        Value::String(string) => {
            let mut bytes = std::mem::take(string).into_bytes();
            let lender = bytes.clone();
            text(&mut bytes, &lender, random);
            *string = String::from_utf8_lossy(&bytes).into_owned();
        }
        Value::Array(list) if !list.is_empty() => {
            let (from, to) = (random.below(list.len()), random.below(list.len()));
            match random.below(5) {
                0 => drop(list.remove(from)),
                1 => list.truncate(to),
                2 => list.swap(from, to),
                3 => {
                    let element = list[from].clone();
                    list.extend(std::iter::repeat_n(element, 1 + random.below(8)));
                }
                _ => list.insert(to, other_type(random)),
            }
        }
        Value::Object(table) if !table.is_empty() => {
            let key = |random: &mut Random, table: &serde_json::Map<String, Value>| {
                table.keys().nth(random.below(table.len())).cloned().unwrap_or_default()
            };
            let (from, to) = (key(random, table), key(random, table));
            match random.below(4) {
                0 => drop(table.remove(&from)),
                1 => {
                    let lent = table.get(&from).cloned().unwrap_or_default();
                    table.insert(to, lent);
                }
                2 => {
                    let taken = table.remove(&from).unwrap_or_default();
                    table.insert(format!("{from}{}", random.below(10)), taken);
                }
                _ => drop(table.insert(from, other_type(random))),
            }
        }
        _ => *value = other_type(random),
    }
}

fn number(random: &mut Random) -> Value {
    let edge = EDGES[random.below(EDGES.len())];
    match random.below(8) {
        0 => Value::Number((edge as i64).wrapping_neg().into()),
        1 => Number::from_f64(edge as f64 / 3.0).map_or(Value::Null, Value::Number),
        2 => Number::from_f64([1e308, -1e308, 1e-320, -0.0][random.below(4)]).map_or(Value::Null, Value::Number),
        3 => Value::Number(edge.wrapping_add(1).into()),
        4 => Value::Number(edge.wrapping_sub(1).into()),
        5 => Value::Number(random.below(70_000).into()),
        _ => Value::Number(edge.into()),
    }
}

fn other_type(random: &mut Random) -> Value {
    match random.below(7) {
        0 => Value::Null,
        1 => Value::Bool(true),
        2 => Value::String(String::new()),
        3 => Value::Array(Vec::new()),
        4 => Value::Object(serde_json::Map::new()),
        _ => number(random),
    }
}
