//! Every key that a scenario may have, from the schema.

use serde_json::Value;
use std::collections::BTreeSet;

/// Paths of all keys that have a value: `kernel.sysctl.vm.swappiness`, `process.region.size`.
pub fn keys() -> BTreeSet<String> {
    let schema = mmtwin_scenario::schema();
    let mut keys = BTreeSet::new();
    walk(&schema, &schema, "", &mut keys);
    keys
}

fn walk(schema: &Value, of: &Value, path: &str, keys: &mut BTreeSet<String>) {
    let tables = tables(schema, of);
    if tables.is_empty() {
        keys.insert(path.to_string());
    }
    for (key, property) in tables.into_iter().flatten() {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        walk(schema, property, &path, keys);
    }
}

/// The tables that a value may be, or a list of.
fn tables<'a>(schema: &'a Value, of: &'a Value) -> Vec<&'a serde_json::Map<String, Value>> {
    if let Some(reference) = of["$ref"].as_str() {
        return tables(schema, schema.pointer(&reference[1..]).expect("what a reference leads to"));
    }
    if let Some(properties) = of["properties"].as_object() {
        return vec![properties];
    }
    let parts = ["allOf", "anyOf", "oneOf"].into_iter().filter_map(|key| of[key].as_array()).flatten();
    parts.chain(of.get("items")).flat_map(|part| tables(schema, part)).collect()
}
