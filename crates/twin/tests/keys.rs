//! No key is silent: each key of the schema changes what a run leaves (events, counters, results) in a scenario where it
//! must matter, or is refused by name and with the reason. A key that the tables lack fails.

#[path = "keys/bases.rs"]
mod bases;
#[path = "keys/schema.rs"]
mod schema;
#[path = "keys/tables.rs"]
mod tables;
#[path = "keys/workloads.rs"]
mod workloads;

use mmtwin_event::NullSink;
use mmtwin_scenario::Scenario;
use mmtwin_twin::build::manifest;
use mmtwin_twin::engine::{Options, State, kinds, run};
use mmtwin_twin::time::determinism::Hashing;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Effect of a key.
#[derive(Clone, Copy, Debug)]
enum Does<'t> {
    /// It changes a run.
    Acts,
    /// It is refused; text of the message.
    Refused(&'t str),
    /// It is read, but no small scenario is known in which it matters. Change this when one is found.
    Unseen,
    /// It names or describes something: the manifest of a run has it; otherwise the run is the same.
    Describes,
}

/// A row of a table: key | scenario, with overrides behind `;` | value, or overrides | what it does, if it does not act.
#[derive(Clone, Debug)]
struct Case<'t> {
    key: &'t str,
    base: &'t str,
    sets: Vec<String>,
    does: Does<'t>,
}

fn cases(table: &str) -> impl Iterator<Item = Case<'_>> {
    table.lines().filter(|line| !line.trim().is_empty()).map(|line| {
        let mut columns = line.split('|').map(str::trim);
        let mut next = || columns.next().unwrap_or_default();
        let (key, base, set, does) = (next(), next(), next(), next());
        let sets = match set.contains('=') {
            true => set.split(';').map(|set| set.trim().to_string()).collect(),
            false => vec![format!("{key}={set}")],
        };
        let does = match does.split_once(' ').unwrap_or((does, "")) {
            ("", "") => Does::Acts,
            ("describes", "") => Does::Describes,
            ("unseen", "") => Does::Unseen,
            ("refused", why) => Does::Refused(why),
            _ => panic!("{line}"),
        };
        Case { key, base, sets, does }
    })
}

/// Digest of events and counters, their number, and the results.
type Left = (u64, u64, String);

fn scenario(base: &str, sets: &[String]) -> Result<Scenario, String> {
    let mut parts = base.split(';').map(str::trim);
    let text = bases::text(parts.next().unwrap_or_default());
    let sets: Vec<String> = parts.map(str::to_string).chain(sets.iter().cloned()).collect();
    mmtwin_scenario::parse("base", &text, Path::new(""), &sets).map_err(|faults| faults.to_string())
}

fn left(scenario: &Scenario) -> Result<Left, String> {
    let mut null = NullSink;
    let mut hashing = Hashing::new(&mut null, None);
    let options = Options {
        state: State::default(),
        explicit: false,
        trace: None,
        events: kinds(scenario),
        progress: &mut |_| {},
    };
    let ran = run(scenario, options, &mut hashing).map_err(|error| error.to_string())?;
    let digest = hashing.finish().expect("nothing to compare with");
    Ok((digest.last, digest.count, serde_json::to_string(&ran.results).expect("JSON")))
}

fn manifest_of(scenario: &Scenario) -> String {
    serde_json::to_string(&manifest(scenario, "test")).expect("JSON")
}

/// The fault of a case, if it has one.
fn wrong(case: &Case<'_>, bases: &mut BTreeMap<String, Left>) -> Option<String> {
    let base = scenario(case.base, &[]).unwrap_or_else(|faults| panic!("{}: {faults}", case.base));
    let changed = scenario(case.base, &case.sets);
    if let Does::Refused(why) = case.does {
        let refused = match changed.and_then(|scenario| left(&scenario)) {
            Ok(_) => return Some("is not refused".into()),
            Err(refused) => refused,
        };
        let name = &case.key.rsplit('.').next().unwrap_or_default().to_lowercase();
        let config = refused.to_lowercase().contains(name) && refused.contains(why);
        return (!config).then(|| format!("is refused without its name or the reason: {refused}"));
    }
    let changed = match changed {
        Ok(changed) => changed,
        Err(faults) => return Some(faults),
    };
    let before = bases
        .entry(case.base.to_string())
        .or_insert_with(|| left(&base).unwrap_or_else(|error| panic!("{}: {error}", case.base)));
    let after = match left(&changed) {
        Ok(after) => after,
        Err(error) => return Some(error),
    };
    match case.does {
        Does::Acts if *before == after => Some("changes nothing".into()),
        Does::Unseen if *before != after => Some("matters here: it acts".into()),
        Does::Describes if *before != after => Some("changes a run".into()),
        Does::Describes if manifest_of(&base) == manifest_of(&changed) => Some("is in no manifest".into()),
        _ => None,
    }
}

/// Checks the rows of a table.
fn go_through(table: &str) {
    let mut bases = BTreeMap::new();
    let wrong: Vec<String> = cases(table)
        .filter_map(|case| wrong(&case, &mut bases).map(|what| format!("{} in {}: {what}", case.key, case.base)))
        .collect();
    assert!(wrong.is_empty(), "{} keys:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_key_of_the_schema_is_in_a_table() {
    let known: BTreeSet<String> =
        tables::ALL.iter().flat_map(|table| cases(table)).map(|c| c.key.to_string()).collect();
    let keys = schema::keys();
    let missing: Vec<&String> = keys.difference(&known).collect();
    let unknown: Vec<&String> = known.difference(&keys).collect();
    assert!(missing.is_empty() && unknown.is_empty(), "without a case: {missing:#?}\nno keys: {unknown:#?}");
}

#[test]
fn keys_of_the_kernel_act_or_are_refused() {
    go_through(tables::KERNEL);
}

#[test]
fn sysctls_act_or_are_refused() {
    go_through(tables::SYSCTL);
}

#[test]
fn keys_of_numa_balancing_act_or_are_refused() {
    go_through(tables::NUMA);
}

#[test]
fn keys_of_reclaim_act_or_are_refused() {
    go_through(tables::RECLAIM);
}

#[test]
fn keys_of_the_machine_act_or_are_refused() {
    go_through(tables::MACHINE);
}

#[test]
fn keys_of_the_workload_act_or_are_refused() {
    go_through(tables::WORKLOAD);
}

/// A sysctl that a bundle sets, as the kernel has it, is no reason to refuse a run.
#[test]
fn values_only_in_a_bundle_are_not_refused() {
    for release in mmtwin_scenario::bundle_names() {
        let text = format!("[machine]\npreset = \"lab-4n\"\n[kernel]\nrelease = \"{release}\"\n");
        let scenario = mmtwin_scenario::parse("s", &text, Path::new(""), &[]).expect("a scenario");
        let again = mmtwin_scenario::from_json(&scenario.to_json()).expect("the same scenario");
        for scenario in [scenario, again] {
            mmtwin_twin::build::check(&scenario).unwrap_or_else(|error| panic!("{release}: {error}"));
        }
    }
}
