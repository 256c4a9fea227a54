//! Paths into a tree: `process.spec1.region.0.size`, `kernel.sysctl.vm.swappiness`.
//!
//! A part of a path is a key, the number of an array's element, or the value of the element's key `name`; `#2` is the
//! third element, with any names. A key that has dots itself, such as a sysctl's, is found without quotes too.

use super::{Fault, Faults, Node, Place, Sources, Table, Value};

/// The node at a path.
pub(crate) fn lookup<'a>(tree: &'a Node, path: &str) -> Option<&'a Node> {
    if path.is_empty() {
        return Some(tree);
    }
    match &tree.value {
        Value::Table(table) => splits(path).find_map(|(key, rest)| lookup(&table.get(key)?.1, rest)),
        Value::Array(nodes) => splits(path).find_map(|(part, rest)| lookup(&nodes[element(nodes, part)?], rest)),
        _ => None,
    }
}

/// The place of the value at a path, or of the innermost table around it that was written; for a table, of its key.
pub(crate) fn nearest(tree: &Node, path: &str) -> Place {
    let mut place = tree.place;
    let mut node = tree;
    let mut path = path;
    while !path.is_empty() {
        let step = splits(path).find_map(|(part, rest)| match &node.value {
            Value::Table(table) => table.get(part).map(|(key, node)| (key, node, rest)),
            Value::Array(nodes) => element(nodes, part).map(|i| (&nodes[i].place, &nodes[i], rest)),
            _ => None,
        });
        let Some((key, next, rest)) = step else { break };
        let table = matches!(next.value, Value::Table(_)) && matches!(node.value, Value::Table(_));
        place = if table { *key } else { next.place };
        (node, path) = (next, rest);
    }
    place
}

/// Puts a value at a path, with tables along the way where there are none; a table is laid over the one there is.
/// `dotted` are keys that may be new and have dots.
///
/// # Errors
/// If the path leads through something that is not a table or array, or to an element that does not exist.
pub(crate) fn set(
    tree: &mut Node,
    path: &str,
    value: Node,
    sources: &Sources,
    place: Place,
    dotted: &[&str],
) -> Result<(), Faults> {
    let wrong = |message: String| Err(Fault::new(sources, place, message).into());
    let (part, rest) = match &tree.value {
        Value::Table(table) => whole_key(table, path, dotted),
        Value::Array(_) => path.split_once('.').unwrap_or((path, "")),
        _ => return wrong(format!("there is no `{path}` here: the key before it has a plain value")),
    };
    if part.is_empty() {
        return wrong("a part of the key is empty".into());
    }
    match &mut tree.value {
        Value::Table(table) => {
            if rest.is_empty() {
                match (table.get_mut(part), &value.value) {
                    (Some((_, below)), Value::Table(_)) => below.overlay(value),
                    _ => {
                        table.insert(part.into(), (place, value));
                    }
                }
                return Ok(());
            }
            let (_, next) = table.entry(part.into()).or_insert_with(|| (place, Node::table(place)));
            set(next, rest, value, sources, place, dotted)
        }
        Value::Array(nodes) => {
            let Some(index) = element(nodes, part) else {
                let names: Vec<&str> = nodes.iter().filter_map(name).collect();
                let known = match names.is_empty() {
                    true => format!("0 to {}", nodes.len().saturating_sub(1)),
                    false => names.join(", "),
                };
                return wrong(format!(
                    "there is no `{part}` in this list, which has {} elements ({known})",
                    nodes.len()
                ));
            };
            if rest.is_empty() {
                nodes[index] = value;
                return Ok(());
            }
            set(&mut nodes[index], rest, value, sources, place, dotted)
        }
        _ => Ok(()),
    }
}

/// The first key of a path: one with dots that the table has or that is known, all of it in a table where every key
/// has dots, else the first part.
fn whole_key<'a>(table: &Table, path: &'a str, dotted: &[&str]) -> (&'a str, &'a str) {
    if !table.is_empty() && table.keys().all(|key| key.contains('.')) {
        return (path, "");
    }
    let first = path.split_once('.').unwrap_or((path, ""));
    // Of `kernel.numa_balancing.vma_filter`, the beginning is a sysctl's name only where there is no table `kernel`.
    let may_be_new = !table.contains_key(first.0);
    let known = |key: &str| key.contains('.') && (table.contains_key(key) || may_be_new && dotted.contains(&key));
    splits(path).find(|(key, _)| known(key)).unwrap_or(first)
}

/// Every way to split a path at a dot, the longest first part first.
fn splits(path: &str) -> impl Iterator<Item = (&str, &str)> {
    let dots = path.match_indices('.').map(|(i, _)| i).collect::<Vec<_>>();
    std::iter::once((path, "")).chain(dots.into_iter().rev().map(move |i| (&path[..i], &path[i + 1..])))
}

/// The element with this name or number.
fn element(nodes: &[Node], part: &str) -> Option<usize> {
    if let Some(number) = part.strip_prefix('#') {
        return number.parse().ok().filter(|i| *i < nodes.len());
    }
    let named = nodes.iter().position(|node| name(node) == Some(part));
    named.or_else(|| part.parse::<usize>().ok().filter(|i| *i < nodes.len()))
}

fn name(node: &Node) -> Option<&str> {
    match &node.get("name")?.value {
        Value::Text(name) | Value::Bare(name) => Some(name),
        _ => None,
    }
}
