//! Scenarios, machine files, kernel bundles and `--set`: what is read means the same when it is written out.

use crate::{Random, Seen, hash, mutate, samples, scratch};
use mmtwin_scenario::{bundle_names, bundle_text, from_json, parse, preset_names, preset_text, schema};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

/// Keys and words of the language, from its schema.
static WORDS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut words = Vec::new();
    gather(&serde_json::to_value(schema()).expect("JSON"), &mut words);
    words.extend(
        ["\"1 GiB\"", "\"0 B\"", "\"10 ms\"", "\"0-3\"", "\"all\"", "[[process]]", "[kernel]", "true"]
            .map(String::from),
    );
    words.sort();
    words.dedup();
    words
});

fn gather(schema: &Value, words: &mut Vec<String>) {
    match schema {
        Value::Object(table) => {
            for (key, value) in table {
                if let ("properties", Value::Object(properties)) = (key.as_str(), value) {
                    words.extend(properties.keys().cloned());
                }
                if let ("const", Value::String(word)) = (key.as_str(), value) {
                    words.push(format!("\"{word}\""));
                }
                if let ("enum", Value::Array(list)) = (key.as_str(), value) {
                    words.extend(list.iter().map(Value::to_string));
                }
                gather(value, words);
            }
        }
        Value::Array(list) => list.iter().for_each(|value| gather(value, words)),
        _ => {}
    }
}

/// By lines, keys, words and numbers.
pub fn mutate(input: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let words: Vec<&str> = (0..8).filter_map(|_| random.of(&WORDS)).map(String::as_str).collect();
    mutate::text_of(&words, input, other, random);
}

/// Scenarios that come with the program.
pub fn seeds() -> Vec<Vec<u8>> {
    ["scenarios/examples", "scenarios/guide", "scenarios/controls", "scenarios/fidelity"]
        .iter()
        .flat_map(|folder| samples::files(folder, ".toml", usize::MAX))
        .collect()
}

/// A scenario's text.
pub fn run(input: &[u8]) -> Seen {
    checked(&String::from_utf8_lossy(input), Path::new(""), &[])
}

/// What is accepted is the same when it is spelled out.
fn checked(text: &str, directory: &Path, sets: &[String]) -> Seen {
    let scenario = match parse("fuzz.toml", text, directory, sets) {
        Ok(scenario) => scenario,
        Err(faults) => return Seen::refused(faults),
    };
    let json = scenario.to_json();
    let again = from_json(&json).unwrap_or_else(|faults| panic!("its own JSON is refused: {faults}"));
    // A kernel's file that says less than the one of that release which comes with the program is not spelled out: what
    // it does not have is read from that one.
    let is_own = directory.join("k.toml").exists();
    assert!(
        is_own || again.to_json() == json,
        "a scenario read again from its own JSON is {}, not {json}",
        again.to_json()
    );
    let spelled = scenario.to_toml();
    let again = parse("shown.toml", &spelled, directory, &[]);
    let again = again.unwrap_or_else(|faults| panic!("what `scenario show` prints is refused: {faults}"));
    assert!(is_own || again.hash() == scenario.hash(), "a scenario read again from what `scenario show` prints");
    Seen::accepted(hash(spelled.as_bytes()))
}

/// Machines that come with the program.
pub fn machine_seeds() -> Vec<Vec<u8>> {
    preset_names().filter_map(preset_text).map(|text| text.as_bytes().to_vec()).collect()
}

/// A machine's file.
pub fn run_machine(input: &[u8]) -> Seen {
    let text = "[machine]\npreset = \"./m.toml\"\n[kernel]\nrelease = \"6.1\"\n";
    scratch::directory(BTreeMap::from([("m.toml".to_string(), input.to_vec())]), |top| checked(text, top, &[]))
}

/// Kernels that come with the program.
pub fn bundle_seeds() -> Vec<Vec<u8>> {
    bundle_names().filter_map(bundle_text).map(|text| text.as_bytes().to_vec()).collect()
}

/// A kernel's file.
pub fn run_bundle(input: &[u8]) -> Seen {
    let text = "[machine]\nname = \"m\"\n[[machine.node]]\ncpus = \"0-3\"\nmemory = \"1 GiB\"\n[kernel]\nrelease = \"./k.toml\"\n";
    scratch::directory(BTreeMap::from([("k.toml".to_string(), input.to_vec())]), |top| checked(text, top, &[]))
}

/// What is set is set on this.
const BASE: &str = "[machine]\nname = \"m\"\n[[machine.node]]\ncpus = \"0-3\"\nmemory = \"1 GiB\"\n[kernel]\nrelease = \"6.1\"\n\
    [[process]]\nname = \"p\"\n[[process.region]]\nname = \"r\"\nsize = \"1 MiB\"\n[[process.phase]]\nduration = \"1 s\"\n\
    [[process.phase.access]]\nregion = \"r\"\npattern = \"uniform\"\n";

/// Overrides, one a line.
pub fn set_seeds() -> Vec<Vec<u8>> {
    let seeds = [
        "kernel.vmstat.numa_counters=off\nprocess.p.threads=8",
        "kernel.sysctl.vm.swappiness=10\nmachine.node.0.memory=8GiB",
        "machine.preset=broadwell-2s\nkernel.release=6.12",
        "process.p.region.r.size=12 MiB\nprocess.0.phase.0.access.0.pattern=sequential",
        "run.events=[\"vmscan:*\"]\nrun.seed=7\nrun.duration=1 s",
        "machine.swap={size=\"1 GiB\", synchronous=true}\nmachine.distance=[[10]]",
    ];
    seeds.map(|seed| seed.as_bytes().to_vec()).to_vec()
}

/// Overrides of a scenario.
pub fn run_set(input: &[u8]) -> Seen {
    let text = String::from_utf8_lossy(input);
    let sets: Vec<String> = text.lines().take(8).map(str::to_string).collect();
    checked(BASE, Path::new(""), &sets)
}
