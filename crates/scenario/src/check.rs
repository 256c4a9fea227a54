//! Collects what is wrong with a scenario that could be read.

use crate::tree::{Fault, Faults, Node, Sources, add, is_full, lookup, nearest};

/// A scenario's tree, and the faults found so far.
pub(crate) struct Check<'a> {
    pub sources: &'a Sources,
    pub tree: &'a Node,
    faults: Vec<Fault>,
}

impl<'a> Check<'a> {
    pub fn new(sources: &'a Sources, tree: &'a Node) -> Check<'a> {
        Check { sources, tree, faults: Vec::new() }
    }

    /// Something is wrong with the value at a path, or is missing there.
    pub fn fault(&mut self, path: &str, message: impl Into<String>) {
        self.fault_help(path, message, None);
    }

    /// True if there are so many that no more are listed.
    pub fn is_full(&self) -> bool {
        is_full(&self.faults)
    }

    /// The same, with what would be right.
    pub fn fault_help(&mut self, path: &str, message: impl Into<String>, help: Option<String>) {
        let (sources, tree) = (self.sources, self.tree);
        add(&mut self.faults, || Fault::new(sources, nearest(tree, path), message).help(help));
    }

    /// A fault unless the condition holds.
    pub fn require(&mut self, holds: bool, path: &str, message: impl FnOnce() -> String) {
        if !holds && !self.is_full() {
            self.fault(path, message());
        }
    }

    /// True if the scenario or a `--set`, not a preset or bundle, has a value at the path.
    pub fn is_given(&self, path: &str) -> bool {
        lookup(self.tree, path).is_some_and(|node| self.sources.get(node.topmost(self.sources)).user)
    }

    /// True if nothing was found.
    pub fn is_clean(&self) -> bool {
        self.faults.is_empty()
    }

    /// The value, unless there are faults.
    pub fn finish<T>(self, value: Option<T>) -> Result<T, Faults> {
        match value {
            Some(value) if self.faults.is_empty() => Ok(value),
            _ => Err(Faults::new(self.faults)),
        }
    }
}
