//! `--set KEY=VALUE`: a path with dots, and a TOML value or a bare word.

use crate::kernel::Sysctl;
use crate::tree::{self, Fault, Faults, Node, Place, Sources};

/// Parts of a key at most: more than the language has.
const MAX_PARTS: usize = 32;

/// An override.
pub(super) struct Override {
    path: String,
    value: Node,
    /// Of the key.
    place: Place,
}

/// Reads the arguments of every `--set`.
pub(super) fn parse(sources: &mut Sources, sets: &[String]) -> Result<Vec<Override>, Faults> {
    let mut overrides = Vec::new();
    let mut faults = Vec::new();
    for (i, text) in sets.iter().enumerate() {
        let source = sources.add_user(format!("--set {}", i + 1), text.as_str());
        match one(sources, source, text) {
            Ok(set) => overrides.push(set),
            Err(wrong) => faults.extend_from_slice(wrong.all()),
        }
    }
    if faults.is_empty() { Ok(overrides) } else { Err(Faults::new(faults)) }
}

fn one(sources: &Sources, source: usize, text: &str) -> Result<Override, Faults> {
    let place = |start, end| Place { source, start, end };
    let Some(at) = text.find('=') else {
        let fault = Fault::new(sources, place(0, text.len()), "expected KEY=VALUE");
        return Err(fault.help(Some("such as kernel.vmstat.numa_counters=off")).into());
    };
    // Quotes only keep a key with dots together, and such keys are known without them.
    let path: String = text[..at].trim().chars().filter(|c| !matches!(c, '"' | '\'')).collect();
    let key = place(0, text[..at].trim_end().len());
    if path.is_empty() || path.split('.').any(|part| part.trim().is_empty()) {
        return Err(Fault::new(sources, key, "a part of the key is empty").into());
    }
    if path.split('.').count() > MAX_PARTS {
        return Err(Fault::new(sources, key, "a key of so many parts means nothing here").into());
    }
    Ok(Override { path, value: tree::bare(sources, place(at + 1, text.len()))?, place: key })
}

impl Override {
    /// True if it decides which preset or bundle is loaded.
    pub(super) fn chooses_layer(&self) -> bool {
        matches!(self.path.as_str(), "machine" | "kernel" | "machine.preset" | "kernel.release")
    }

    /// Puts the value into the tree.
    pub(super) fn apply(&self, tree: &mut Node, sources: &Sources) -> Result<(), Fault> {
        tree::set(tree, &self.path, self.value.clone(), sources, self.place, Sysctl::NAMES)
    }
}
