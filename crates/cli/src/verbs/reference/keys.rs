//! The page of scenario keys, from the JSON Schema of scenario files.

use super::head;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write;

/// The page.
pub fn page() -> String {
    let schema = mmtwin_scenario::schema();
    let mut keys = Keys { schema: &schema, tables: Vec::new(), seen: BTreeSet::new() };
    keys.table("", &schema);
    let mut page = head(
        "Scenario keys",
        "Every key of a scenario file, as `mmtwin scenario schema` has it. A key that is absent has the value of the \
         machine preset or of the kernel bundle; [scenario.md](scenario.md) says how values are written and how the tables fit together.",
    );
    for table in keys.tables {
        page.push_str(&table);
    }
    page
}

struct Keys<'a> {
    schema: &'a Value,
    tables: Vec<String>,
    /// Definitions that have a table already.
    seen: BTreeSet<String>,
}

impl<'a> Keys<'a> {
    /// A table with its keys, before the tables in it.
    fn table(&mut self, path: &str, of: &'a Value) {
        let place = self.tables.len();
        self.tables.push(String::new());
        let mut text = match path {
            "" => String::from("\n## Top level\n"),
            _ => format!("\n## `{path}`\n"),
        };
        let described =
            of["description"].as_str().filter(|text| !path.is_empty() && !text.contains(&format!("[{path}]")));
        if let Some(description) = described {
            let _ = write!(text, "\n{description}\n");
        }
        text.push('\n');
        let required: Vec<&str> = of["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for (key, property) in of["properties"].as_object().into_iter().flatten() {
            self.key(path, key, property, required.contains(&key.as_str()), &mut text);
        }
        self.tables[place] = text;
    }

    fn key(&mut self, path: &str, key: &str, property: &'a Value, required: bool, text: &mut String) {
        let (of, list, named) = self.resolved(property);
        let description = property["description"].as_str().or(of["description"].as_str()).unwrap_or_default();
        let mut facts: Vec<String> = Vec::new();
        if required {
            facts.push("required".into());
        }
        let is_table = of["properties"].is_object();
        if !is_table {
            facts.extend(value(of, list, named));
        }
        if let Some(default) = property.get("default").filter(|default| !default.is_null() && !is_table && !list) {
            facts.push(format!("default `{default}`"));
        }
        let facts = if facts.is_empty() { String::new() } else { format!(" ({})", facts.join("; ")) };
        let _ = writeln!(text, "- `{key}`{facts}: {}", description.replace('\n', " "));
        for word in of["oneOf"].as_array().into_iter().flatten() {
            if let (Some(word), Some(what)) = (word["const"].as_str(), word["description"].as_str()) {
                let _ = writeln!(text, "  - `\"{word}\"`: {}", what.replace('\n', " "));
            }
        }
        if is_table {
            let inner = if path.is_empty() { key.to_string() } else { format!("{path}.{key}") };
            let name = if list { format!("[[{inner}]]") } else { format!("[{inner}]") };
            if self.seen.insert(format!("{of:p}")) {
                self.nested(&inner, &name, of);
            }
        }
    }

    fn nested(&mut self, inner: &str, name: &str, of: &'a Value) {
        let place = self.tables.len();
        self.table(inner, of);
        self.tables[place] = self.tables[place].replacen(&format!("`{inner}`"), &format!("`{name}`"), 1);
    }

    /// What a property is beyond references, null and lists; whether it is a list of that; the last definition's name.
    fn resolved(&self, property: &'a Value) -> (&'a Value, bool, &'a str) {
        if let Some(reference) = property["$ref"].as_str() {
            let of = reference.strip_prefix('#').and_then(|place| self.schema.pointer(place)).unwrap_or(property);
            return (of, false, reference.rsplit('/').next().unwrap_or_default());
        }
        let some = |one: &&Value| one["type"] != "null";
        if let Some([one]) =
            property["anyOf"].as_array().map(|any| any.iter().filter(some).collect::<Vec<_>>()).as_deref()
        {
            return self.resolved(one);
        }
        let is_list =
            property["type"] == "array" || property["type"].as_array().is_some_and(|t| t.contains(&"array".into()));
        if is_list && property["items"].is_object() {
            let (of, _, named) = self.resolved(&property["items"]);
            return (of, true, named);
        }
        (property, false, "")
    }
}

/// What values it may have.
fn value(of: &Value, list: bool, named: &str) -> Option<String> {
    let has_words = of["oneOf"].as_array().is_some_and(|all| all.iter().all(|one| one["const"].is_string()));
    if has_words {
        return list.then(|| "list".into());
    }
    let kind = match &of["type"] {
        Value::String(kind) => kind.clone(),
        Value::Array(kinds) => {
            kinds.iter().filter_map(Value::as_str).filter(|kind| *kind != "null").collect::<Vec<_>>().join(" or ")
        }
        _ => String::new(),
    };
    let mut text = match kind.as_str() {
        _ if !named.is_empty() => spaced(named),
        "string" => "text".into(),
        "object" => "table".into(),
        other => other.to_string(),
    };
    let bounds =
        [("minimum", "from"), ("maximum", "to")].map(|(key, word)| of.get(key).map(|v| format!(" {word} {v}")));
    text.extend(bounds.into_iter().flatten());
    if list {
        text = format!("list of {text}");
    }
    Some(text).filter(|text| !text.is_empty())
}

/// `PageRate` as `page rate`.
fn spaced(name: &str) -> String {
    let mut words = String::new();
    for (at, letter) in name.char_indices() {
        if at > 0 && letter.is_ascii_uppercase() {
            words.push(' ');
        }
        words.push(letter.to_ascii_lowercase());
    }
    words
}
