//! Paths in sentences and in JSON.

use super::names::{Kind, Names};
use serde_json::Value;

/// Replaces paths in a text. Those below `/proc` and `/sys` name things of the kernel and stay.
pub fn paths(text: &str, names: &mut Names) -> String {
    let is_end = |c: char| c.is_whitespace() || ",;:=\"'()[]{}<>".contains(c);
    let mut replaced = String::with_capacity(text.len());
    for word in text.split_inclusive(is_end) {
        let end = word.chars().next_back().filter(|&c| is_end(c)).map_or(0, char::len_utf8);
        let (path, end) = word.split_at(word.len() - end);
        replaced.push_str(&one_path(path, names));
        replaced.push_str(end);
    }
    replaced
}

fn one_path(word: &str, names: &mut Names) -> String {
    let kernels = ["/proc", "/sys"]
        .iter()
        .any(|root| word.strip_prefix(root).is_some_and(|r| r.is_empty() || r.starts_with('/')));
    let names_something = word.starts_with('/') && word.bytes().any(|b| b != b'/');
    let shown = word.split('/').all(|part| part.is_empty() || names.shows(part));
    if !names_something || kernels || shown { word.to_string() } else { format!("/{}", names.of(Kind::Path, word)) }
}

/// Replaces paths in all strings of a value, those of keys too.
pub fn paths_in(value: &mut Value, names: &mut Names) {
    match value {
        Value::String(text) => *text = paths(text, names),
        Value::Array(list) => list.iter_mut().for_each(|item| paths_in(item, names)),
        Value::Object(map) => {
            for (key, mut item) in std::mem::take(map) {
                paths_in(&mut item, names);
                map.insert(paths(&key, names), item);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Every string that a scenario has below a key of this name.
pub fn strings_below<'a>(value: &'a Value, keys: &[&str], found: &mut Vec<&'a str>) {
    match value {
        Value::Array(list) => list.iter().for_each(|item| strings_below(item, keys, found)),
        Value::Object(map) => {
            for (key, item) in map {
                match item.as_str() {
                    Some(text) if keys.contains(&key.as_str()) => found.push(text),
                    _ => strings_below(item, keys, found),
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_people_are_replaced_and_those_of_the_kernel_stay() {
        let mut names = Names::default();
        names.show("web");
        let text = "/proc/sys/vm: /home/alice/x.toml (again '/home/alice/x.toml'), /web, 5/7, / and file=/swap";
        let expected = "/proc/sys/vm: /path-1 (again '/path-1'), /web, 5/7, / and file=/path-2";
        assert_eq!(paths(text, &mut names), expected);
        let mut value = serde_json::json!({"/srv/a": ["/srv/a", 5, null, {"k": "-o /srv/b"}]});
        paths_in(&mut value, &mut names);
        assert_eq!(value, serde_json::json!({"/path-3": ["/path-3", 5, null, {"k": "-o /path-4"}]}));
    }
}
