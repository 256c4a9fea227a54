//! JSON Schema of a scenario file.

use crate::load::File;
use serde_json::Value;

/// The schema: every key with what it means, its values and limits. Keys of `[machine]` and `[kernel]` may all be
/// omitted, since a preset and a bundle give them; that the kernel names one is all that is required.
pub fn schema() -> Value {
    let mut schema = schemars::schema_for!(File).to_value();
    if let Some(top) = schema.as_object_mut() {
        top.insert("title".into(), "mmtwin scenario".into());
        top.insert("required".into(), serde_json::json!(["kernel"]));
    }
    let mut layered = Vec::new();
    for table in ["machine", "kernel"] {
        layered.extend(schema.pointer(&format!("/properties/{table}/$ref")).and_then(Value::as_str).map(definition));
    }
    // A layered table is layered with all its members, except the elements of lists, which are given whole.
    let mut done = 0;
    while let Some(name) = layered.get(done).cloned() {
        done += 1;
        let Some(of) = schema.pointer_mut(&format!("/$defs/{name}")).and_then(Value::as_object_mut) else { continue };
        of.remove("required");
        let properties = of.get("properties").and_then(Value::as_object);
        let references = properties.into_iter().flat_map(|p| p.values());
        let names: Vec<String> =
            references.filter_map(|property| property.get("$ref")?.as_str()).map(definition).collect();
        layered.extend(names.into_iter().filter(|name| !layered.contains(name)).collect::<Vec<_>>());
    }
    if let Some(kernel) = schema.pointer_mut("/$defs/Kernel").and_then(Value::as_object_mut) {
        kernel.insert("required".into(), serde_json::json!(["release"]));
    }
    schema
}

/// The name of the definition that a reference leads to.
fn definition(reference: &str) -> String {
    reference.rsplit('/').next().unwrap_or(reference).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layered_tables_require_nothing_but_the_release() {
        let schema = schema();
        let required = |name: &str| schema.pointer(&format!("/$defs/{name}/required")).cloned();
        assert_eq!(required("Kernel"), Some(serde_json::json!(["release"])));
        for name in ["Machine", "Vmstat", "Sysctl", "Costs", "Line", "PerDistance", "Memory"] {
            assert!(schema.pointer(&format!("/$defs/{name}")).is_some(), "{name} is in the schema");
            assert_eq!(required(name), None, "{name}");
        }
        assert_eq!(required("Process"), Some(serde_json::json!(["name"])));
    }

    #[test]
    fn every_key_and_word_has_a_description() {
        let schema = schema();
        let definitions = schema["$defs"].as_object().expect("definitions");
        for (name, definition) in definitions {
            for (key, property) in definition.get("properties").and_then(Value::as_object).into_iter().flatten() {
                assert!(property.get("description").is_some(), "{name}.{key}");
            }
            for word in definition.get("oneOf").and_then(Value::as_array).into_iter().flatten() {
                let has_words = word.get("const").is_some_and(|w| w != "auto");
                assert!(!has_words || word.get("description").is_some(), "{name}: {word}");
            }
        }
    }
}
