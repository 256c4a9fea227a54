//! A TOML file as a tree in which every value has its place.
//!
//! A scenario is layered: bundle and preset below, the file over them, `--set` on top. The layers are merged as trees
//! and only then read into types, so a fault is reported where its value was written, in any layer.

mod fault;
mod parse;
mod path;
mod read;
mod suggest;

pub use fault::{Fault, Faults};
pub(crate) use fault::{add, is_full};
pub(crate) use parse::{bare, document, json};
pub(crate) use path::{lookup, nearest, set};
pub(crate) use read::read;
pub(crate) use suggest::suggest;

use std::collections::BTreeMap;

/// Where something was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// Number of the source.
    pub source: usize,
    /// First byte.
    pub start: usize,
    /// Byte behind the last.
    pub end: usize,
}

/// A value with its place.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub place: Place,
    pub value: Value,
}

/// A value.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Text(String),
    Integer(i64),
    Float(f64),
    Bool(bool),
    /// A date or time, which no key takes.
    Date(String),
    /// A word of `--set` without quotes: a number where a number is due, else a text.
    Bare(String),
    Array(Vec<Node>),
    Table(Table),
}

/// Keys with the places of the keys themselves.
pub(crate) type Table = BTreeMap<String, (Place, Node)>;

/// The texts that places point into.
#[derive(Debug, Default)]
pub(crate) struct Sources(Vec<Source>);

/// A text.
#[derive(Debug)]
pub(crate) struct Source {
    /// Name for the user: a path, or `--set 2`.
    pub name: String,
    pub text: String,
    /// Written by the user for this run, not a preset or bundle.
    pub user: bool,
    /// Messages show its lines.
    pub shown: bool,
}

/// True if a text is meant to be one of ours: it has one of the tables, or it is an argument of the command line.
fn is_ours(name: &str, text: &str) -> bool {
    const TABLES: [&str; 7] = ["machine", "kernel", "process", "cgroup", "run", "metric", "row"];
    let begins = |line: &str| {
        let line = line.trim_start();
        let header = line.trim_start_matches('[');
        let rest = TABLES.iter().find_map(|table| header.strip_prefix(table));
        header.len() < line.len() && rest.is_some_and(|rest| rest.starts_with([']', '.']))
    };
    name.starts_with("--") || text.lines().any(begins)
}

impl Sources {
    /// Adds a preset or bundle, each after what it builds on; the number is its places' `source`.
    pub fn add_library(&mut self, name: impl Into<String>, text: impl Into<String>) -> usize {
        self.add(name.into(), text.into(), false)
    }

    fn add(&mut self, name: String, text: String, user: bool) -> usize {
        let shown = is_ours(&name, &text);
        self.0.push(Source { name, text, user, shown });
        self.0.len() - 1
    }

    /// Adds the scenario or a `--set`.
    pub fn add_user(&mut self, name: impl Into<String>, text: impl Into<String>) -> usize {
        self.add(name.into(), text.into(), true)
    }

    /// Order of the layers.
    fn rank(&self, source: usize) -> (bool, usize) {
        (self.0[source].user, source)
    }

    /// Bytes of all texts.
    pub fn bytes(&self) -> usize {
        self.0.iter().map(|source| source.text.len()).sum()
    }

    pub fn get(&self, source: usize) -> &Source {
        &self.0[source]
    }

    /// Value written at a place.
    pub fn written(&self, place: Place) -> &str {
        self.0[place.source].text.get(place.start..place.end).unwrap_or("")
    }
}

impl Node {
    /// An empty table.
    pub fn table(place: Place) -> Node {
        Node { place, value: Value::Table(Table::new()) }
    }

    /// The value of a key, if this is a table that has it.
    pub fn get(&self, key: &str) -> Option<&Node> {
        match &self.value {
            Value::Table(table) => table.get(key).map(|(_, node)| node),
            _ => None,
        }
    }

    /// The value of a key, to be changed.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        match &mut self.value {
            Value::Table(table) => table.get_mut(key).map(|(_, node)| node),
            _ => None,
        }
    }

    /// Takes a key out of a table.
    pub fn remove(&mut self, key: &str) -> Option<Node> {
        match &mut self.value {
            Value::Table(table) => table.remove(key).map(|(_, node)| node),
            _ => None,
        }
    }

    /// The topmost layer that wrote any part of this.
    pub fn topmost(&self, sources: &Sources) -> usize {
        let below = match &self.value {
            Value::Array(nodes) => nodes.iter().map(|node| node.topmost(sources)).max_by_key(|s| sources.rank(*s)),
            Value::Table(table) => {
                table.values().map(|(_, node)| node.topmost(sources)).max_by_key(|s| sources.rank(*s))
            }
            _ => None,
        };
        below.into_iter().chain([self.place.source]).max_by_key(|s| sources.rank(*s)).unwrap_or(self.place.source)
    }

    /// Lays another tree over this one: tables are merged key by key, everything else is replaced.
    pub fn overlay(&mut self, over: Node) {
        match (&mut self.value, over.value) {
            (Value::Table(below), Value::Table(above)) => {
                // An empty table that is written adds nothing, but its place is known to the user.
                self.place = over.place;
                for (key, (place, node)) in above {
                    match below.get_mut(&key) {
                        Some((below_place, below_node)) => {
                            *below_place = place;
                            below_node.overlay(node);
                        }
                        None => {
                            below.insert(key, (place, node));
                        }
                    }
                }
            }
            (below, above) => {
                *below = above;
                self.place = over.place;
            }
        }
    }
}
