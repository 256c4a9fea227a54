//! Keys of the machine and the kernel that a scenario, or a `--set`, gives itself, where presets and bundles give the rest.
//!
//! An arm that does not support the value of a key refuses it at its place, but only there: a bundle describes a kernel
//! for all arms. For a machine or kernel that is given in full, as in a recording, the keys that differ from its bundle
//! count.

use crate::tree::{Fault, Node, Sources, Value};
use std::collections::BTreeMap;

/// Keys of plain values with their places. They are no part of a scenario's content: two are always equal.
#[derive(Clone, Debug, Default)]
pub struct Written(BTreeMap<String, Fault>);

impl PartialEq for Written {
    fn eq(&self, _: &Written) -> bool {
        true
    }
}

impl Written {
    /// The keys, such as `kernel.sysctl.vm.page-cluster`.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The fault of a key, with its place; `None` if the scenario does not give the key.
    pub fn fault(&self, key: &str, message: String, help: &str) -> Option<Fault> {
        let mut fault = self.0.get(key)?.clone();
        (fault.message, fault.help) = (message, Some(help.into()));
        Some(fault)
    }

    /// Notes the keys of a table. `repeats`: it is spelled out, and has what the bundle has, if that is known.
    pub(crate) fn note(&mut self, sources: &Sources, path: &str, node: &Node, repeats: Option<Option<&Node>>) {
        match &node.value {
            Value::Table(table) => {
                for (key, (_, node)) in table {
                    let repeats = repeats.map(|below| below.and_then(|below| below.get(key)));
                    self.note(sources, &format!("{path}.{key}"), node, repeats);
                }
                return;
            }
            // Lists are made of those of several layers.
            Value::Array(_) => return,
            _ => {}
        }
        let source = sources.get(node.place.source);
        let set = source.name.starts_with("--");
        let repeated = repeats.is_some_and(|below| !set && below.is_none_or(|below| same(node, below)));
        if source.user && !repeated {
            self.0.insert(path.into(), Fault::new(sources, node.place, ""));
        }
    }
}

/// True if two values are written alike.
fn same(a: &Node, b: &Node) -> bool {
    match (&a.value, &b.value) {
        (Value::Text(a) | Value::Bare(a), Value::Text(b) | Value::Bare(b)) => a == b,
        (Value::Integer(a), Value::Integer(b)) => a == b,
        (Value::Float(a), Value::Float(b)) => a == b,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::{from_json, parse};
    use std::path::Path;

    const TEXT: &str =
        "[machine]\npreset = \"lab-4n\"\n[kernel]\nrelease = \"6.1\"\n[kernel.sysctl]\n\"vm.swappiness\" = 60\n";

    #[test]
    fn values_of_bundles_are_not_written() {
        let sets = ["kernel.hz=100".to_string()];
        let scenario = parse("s.toml", TEXT, Path::new(""), &sets).expect("a scenario");
        let keys: Vec<&str> = scenario.written.keys().collect();
        assert_eq!(keys, ["kernel.hz", "kernel.release", "kernel.sysctl.vm.swappiness", "machine.preset"]);
        let fault =
            |key| scenario.written.fault(key, "is refused".into(), "for a reason").map(|fault| fault.to_string());
        let place =
            "s.toml:6:19: is refused\n   |\n 6 | \"vm.swappiness\" = 60\n   |                   ^^ for a reason";
        assert_eq!(fault("kernel.sysctl.vm.swappiness").as_deref(), Some(place));
        assert!(fault("kernel.hz").is_some_and(|fault| fault.starts_with("--set 1: is refused")));
        assert_eq!(fault("kernel.sysctl.vm.page-cluster"), None);
    }

    #[test]
    fn of_a_kernel_given_in_full_only_differences_are() {
        let scenario = parse("s.toml", TEXT, Path::new(""), &["kernel.hz=100".into()]).expect("a scenario");
        let again = from_json(&scenario.to_json()).expect("the same scenario");
        assert_eq!(again.written.keys().next(), None, "a recording does not have the source of a key");
        let text = scenario.to_toml();
        let set = ["kernel.sysctl.vm.swappiness=60".to_string()];
        let again = parse("s.toml", &text, Path::new(""), &set).expect("the same scenario");
        let keys = again.written.keys().filter(|key| key.starts_with("kernel."));
        assert!(keys.eq(["kernel.hz", "kernel.sysctl.vm.swappiness"]));
    }
}
