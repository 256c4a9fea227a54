//! Keys and words that were renamed. An old one is refused with the new one, [`migrate`] rewrites a file, and old
//! recordings are read.

use crate::tree::{self, Faults, Node, Place, Sources, Table, Value};

/// Old and new names of keys.
const KEYS: [(&str, &str); 11] = [
    ("shared_budget", "single_threaded_tcg"),
    ("host_cpus", "physical_cpus"),
    ("renew", "recycle"),
    ("hot_touches", "access_share"),
    ("retry_hard", "gfp_retry_mayfail"),
    ("failure_slowdown", "backoff_on_migrate_fail"),
    ("active_set_test", "active_nodes_compare"),
    ("refresh_at_join", "recompute_on_join"),
    ("balancer_hook", "migrate_degrades_locality"),
    ("local_exchange", "cpupid_xchg_on_local"),
    ("early_life", "first_scans"),
];

/// Keys with old and new words.
const WORDS: [(&str, &str, &str); 6] = [
    ("kind", "high-alloc", "high-order-alloc"),
    ("kind", "page-fill", "page-hog"),
    ("pool_decay", "empties-small", "decay-all"),
    ("pool_decay", "keeps-small", "keep-small"),
    ("counters", "one-line", "shared-cacheline"),
    ("writeback_pages", "keep-throttle-batch", "throttle-on-writeback"),
];

/// Treatment of an old name.
pub(crate) fn help(new: &str) -> String {
    format!("it is called `{new}` now: `mmtwin scenario migrate FILE` rewrites a file")
}

/// The new name of a key, if it is known at that place.
pub(crate) fn key(old: &str, known: &[&'static str]) -> Option<&'static str> {
    KEYS.iter().find(|(known, _)| *known == old).map(|(_, new)| *new).filter(|new| known.contains(new))
}

/// Treatment of a removed key, if its replacement is known at that place.
pub(crate) fn gone(old: &str, known: &[&'static str]) -> Option<String> {
    let help = match old {
        "rules" if known.contains(&"period_adaptation") => {
            "each rule is a key of its own now: take `release`, or give those keys"
        }
        "tlb_wait" if known.contains(&"tlb_interrupt") => {
            "remove it: where CPUs share a budget, one that waits for others goes on when they have had turns"
        }
        _ => return None,
    };
    Some(help.into())
}

/// The new form of a word, if it is known at that place.
pub(crate) fn word(old: &str, known: &[&'static str]) -> Option<&'static str> {
    WORDS.iter().find(|(_, known, _)| *known == old).map(|(_, _, new)| *new).filter(|new| known.contains(new))
}

/// Gives keys and words of an old recording their new names.
pub(crate) fn apply(node: &mut Node) {
    match &mut node.value {
        Value::Array(nodes) => nodes.iter_mut().for_each(apply),
        Value::Table(table) => {
            for (key, (place, mut node)) in std::mem::take(table) {
                if let Value::Text(text) = &node.value
                    && let Some(new) = of_word(&key, text)
                {
                    node.value = Value::Text(new.into());
                }
                if let Value::Array(items) = &mut node.value {
                    for item in items {
                        if let Value::Text(text) = &mut item.value
                            && let Some(new) = of_figure(&key, text)
                        {
                            *text = new;
                        }
                    }
                }
                apply(&mut node);
                table.insert(of_key(&key).map_or(key, str::to_string), (place, node));
            }
        }
        _ => {}
    }
}

fn of_key(old: &str) -> Option<&'static str> {
    KEYS.iter().find(|(known, _)| *known == old).map(|(_, new)| *new)
}

/// The new name of a figure in a list of those that have one provenance (`machine.figure.of`).
fn of_figure(key: &str, old: &str) -> Option<String> {
    let (table, name) = old.rsplit_once('.').filter(|_| key == "of")?;
    of_key(name).map(|new| format!("{table}.{new}"))
}

fn of_word(key: &str, old: &str) -> Option<&'static str> {
    WORDS.iter().find(|(of, known, _)| *of == key && *known == old).map(|(_, _, new)| *new)
}

/// A scenario, bundle or preset file with the names of today; everything else stays as it is, comments too. The number is
/// how many names were rewritten. `name` is what messages call the file.
///
/// # Errors
/// If the text is not TOML.
pub fn migrate(name: &str, text: &str) -> Result<(String, usize), Faults> {
    let mut sources = Sources::default();
    let source = sources.add_user(name, text);
    let tree = tree::document(&sources, source)?;
    let mut changes = Vec::new();
    if let Value::Table(table) = &tree.value {
        find(table, &sources, &mut changes);
    }
    changes.sort_by_key(|(place, _)| std::cmp::Reverse(place.start));
    // A table that is written in several places has one key for all of them.
    changes.dedup_by_key(|(place, _)| place.start);
    let mut migrated = text.to_string();
    changes.iter().for_each(|(place, new)| migrated.replace_range(place.start..place.end, new));
    Ok((migrated, changes.len()))
}

fn find(table: &Table, sources: &Sources, changes: &mut Vec<(Place, String)>) {
    for (key, (place, node)) in table {
        let written = sources.written(*place).trim_matches(['"', '\'']);
        if let Some(new) = of_key(key).filter(|_| written == key) {
            changes.push((*place, new.into()));
        }
        match &node.value {
            Value::Text(text) => {
                let new = of_word(key, text).filter(|_| sources.written(node.place).trim_matches(['"', '\'']) == text);
                changes.extend(new.map(|new| (node.place, format!("\"{new}\""))));
            }
            Value::Table(table) => find(table, sources, changes),
            Value::Array(nodes) => {
                for node in nodes {
                    match &node.value {
                        Value::Table(table) => find(table, sources, changes),
                        Value::Text(text) => {
                            let new = of_figure(key, text).map(|new| (node.place, format!("\"{new}\"")));
                            changes.extend(new);
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;
    use std::path::Path;

    const OLD: &str = r#"# Of a guest.
[machine]
preset = "lab-4n"
cpu.shared_budget = true # one CPU at a time
[[machine.figure]]
of = ["cpu.shared_budget"]
provenance = "assumed"
source = "a guess"
[kernel]
release = "6.9"
numa_balancing = { failure_slowdown = "none", early_life = false }
[kernel.vmalloc]
counters  =  "one-line"   # as before 6.18
[[process]]
name = "high-alloc"
[[process.region]]
name = "heap"
size = "1 MiB"
[[process.phase]]
duration = "1 s"
[[process.phase.access]]
region = "heap"
pattern = "hot-cold"
hot = 0.1
hot_touches = 0.9
[[process.phase.action]]
kind = "high-alloc"
order = 9
count = 1
retry_hard = true
"#;

    #[test]
    fn files_are_rewritten_and_keep_the_rest() {
        let refused = parse("s.toml", OLD, Path::new(""), &[]).expect_err("old names").to_string();
        for (old, new) in KEYS.iter().filter(|(old, _)| OLD.contains(old)) {
            assert!(refused.contains(&format!("unknown key `{old}`")) && refused.contains(&help(new)), "{refused}");
        }
        assert!(refused.contains("s.toml:4:5: "), "{refused}");
        assert!(
            refused.contains(&help("high-order-alloc")) && refused.contains(&help("shared-cacheline")),
            "{refused}"
        );
        let gone =
            parse("s.toml", "[kernel]\nrelease = \"6.1\"\n[machine.cost]\ntlb_wait = \"9 us\"\n", Path::new(""), &[])
                .expect_err("no more a key");
        assert!(gone.to_string().contains("remove it: where CPUs share a budget"), "{gone}");
        let (new, count) = migrate("s.toml", OLD).expect("TOML");
        assert_eq!(count, 8);
        let scenario = parse("s.toml", &new, Path::new(""), &[]).unwrap_or_else(|faults| panic!("{new}\n{faults}"));
        assert_eq!(scenario.processes[0].name, "high-alloc");
        assert!(
            new.contains("# one CPU at a time") && new.contains("counters  =  \"shared-cacheline\"   # as"),
            "{new}"
        );
        assert_eq!(migrate("s.toml", &new).expect("TOML"), (new.clone(), 0));
        assert_eq!(migrate("s.toml", "a = ").expect_err("no TOML").all().len(), 1);
    }

    #[test]
    fn old_recordings_are_read() {
        let (new, _) = migrate("s.toml", OLD).expect("TOML");
        let scenario = parse("s.toml", &new, Path::new(""), &[]).expect("a scenario");
        let mut json = scenario.to_json().to_string();
        for (old, new) in KEYS {
            json = json.replace(&format!("\"{new}\":"), &format!("\"{old}\":"));
            json = json.replace(&format!(".{new}\""), &format!(".{old}\""));
        }
        for (_, old, new) in WORDS {
            json = json.replace(&format!("\"{new}\""), &format!("\"{old}\""));
        }
        let mut old: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        old["machine"]["cost"]["tlb_wait"] = "310 us".into();
        old["machine"]["figure"][0]["of"].as_array_mut().expect("a list").push("cost.tlb_wait".into());
        assert_eq!(crate::from_json(&old).unwrap_or_else(|faults| panic!("{faults}")), scenario);
    }
}
