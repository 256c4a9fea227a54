//! Provenance of a machine's figures.

use super::text::MachineText;
use crate::check::Check;
use crate::tree::{Node, Value, lookup, nearest, suggest};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Provenance of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Provenance {
    /// Measured on such a machine.
    Measured,
    /// Computed from measured figures, or taken from the nearest machine that was measured; the source says how.
    Derived,
    /// Fitted to published results, which `fits` names.
    Fitted,
    /// An order of magnitude, not measured on such a machine.
    Assumed,
    /// Given in the scenario, or with `--set`.
    Given,
}

/// The provenance of some figures of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Keys below `machine`, such as `line.atomic`; a table stands for all figures in it.
    pub of: Vec<String>,
    /// Their provenance.
    pub provenance: Provenance,
    /// Where they were published, or how they were computed.
    pub source: String,
    /// Published rows that a fitted figure was fixed on, as `NAME:ROW`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fits: Vec<String>,
}

/// Tables of a machine whose values are figures.
const TABLES: [&str; 7] = ["cpu", "memory", "line", "cost", "disk", "swap", "worker"];
/// Keys of `memory` that are one figure, whether written as a matrix or by distance.
const WHOLE: [&str; 2] = ["memory.latency", "memory.bandwidth"];

/// Keys below `machine` of all figures, in a fixed order.
fn keys(machine: &Node) -> Vec<String> {
    fn below(node: &Node, path: &str, keys: &mut Vec<String>) {
        match &node.value {
            Value::Table(table) if !WHOLE.contains(&path) => {
                table.iter().for_each(|(key, (_, node))| below(node, &format!("{path}.{key}"), keys));
            }
            _ => keys.push(path.into()),
        }
    }
    let mut keys = Vec::new();
    for table in TABLES {
        if let Some(node) = machine.get(table) {
            below(node, table, &mut keys);
        }
    }
    keys
}

/// True if `of` is the key, or a table around it.
fn covers(of: &str, key: &str) -> bool {
    key.strip_prefix(of).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Checks `[[machine.figure]]`: keys exist, and only fitted figures name the rows that they fit.
pub(super) fn check(figures: &[Figure], check: &mut Check<'_>) {
    let Some(machine) = check.tree.get("machine") else { return };
    let keys = keys(machine);
    for (i, figure) in figures.iter().enumerate() {
        let path = format!("machine.figure.#{i}");
        for (j, of) in figure.of.iter().enumerate() {
            if !keys.iter().any(|key| covers(of, key)) && !check.is_full() {
                let near = suggest(of, keys.iter().map(String::as_str));
                let help = near.map(|word| format!("did you mean \"{word}\"?"));
                check.fault_help(&format!("{path}.of.#{j}"), format!("there is no figure \"{of}\" of a machine"), help);
            }
        }
        check.require(!figure.of.is_empty(), &path, || "the figures this is about are missing".into());
        check.require((figure.provenance == Provenance::Fitted) != figure.fits.is_empty(), &path, || {
            "`fits` names the published rows of a fitted figure; other figures have none".into()
        });
    }
}

/// The provenance of every figure, from its own layer. Figures that the scenario gives without a provenance are
/// `given`. Equal provenances are one entry. A figure with the value of an absent one is not written in a resolved
/// machine and has no entry: read again, there would be no such figure.
pub(super) fn gather(text: &MachineText, check: &Check<'_>) -> Vec<Figure> {
    let Some(machine) = check.tree.get("machine") else { return Vec::new() };
    let figures = &text.figure;
    let written = serde_json::to_value(text).expect("every value of a machine is one of JSON");
    let is_written = |key: &String| written.pointer(&format!("/{}", key.replace('.', "/"))).is_some();
    let layer_of = |i: usize| nearest(check.tree, &format!("machine.figure.#{i}.source")).source;
    let layers: Vec<usize> = (0..figures.len()).map(layer_of).collect();
    let mut entries: Vec<Figure> = Vec::new();
    for key in keys(machine).into_iter().filter(is_written) {
        let layer = lookup(machine, &key).map_or(0, |node| node.topmost(check.sources));
        let is_user = check.sources.get(layer).user;
        let about = figures
            .iter()
            .zip(&layers)
            .filter(|(figure, said_in)| **said_in == layer && figure.of.iter().any(|of| covers(of, &key)));
        // The most particular entry counts.
        let length = |figure: &Figure| figure.of.iter().filter(|of| covers(of, &key)).map(String::len).max();
        let known = about.map(|(figure, _)| figure).max_by_key(|figure| length(figure));
        let (provenance, source, fits) = match known {
            Some(figure) => (figure.provenance, figure.source.clone(), figure.fits.clone()),
            None if is_user => (Provenance::Given, "scenario".into(), Vec::new()),
            None => (Provenance::Assumed, "not stated".into(), Vec::new()),
        };
        let same = |entry: &&mut Figure| entry.provenance == provenance && entry.source == source && entry.fits == fits;
        match entries.iter_mut().find(same) {
            Some(entry) => entry.of.push(key),
            None => entries.push(Figure { of: vec![key], provenance, source, fits }),
        }
    }
    entries
}
