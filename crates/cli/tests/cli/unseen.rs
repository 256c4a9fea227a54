//! `mmtwin fidelity generate`, `run`, `test` and `search`: scenarios that a seed draws.

use super::support::{mmtwin, scratch};
use super::transcripts::transcript_in;

#[test]
fn a_seed_draws_a_scenario() {
    let scratch = scratch();
    let transcript = |name: &str, arguments: &[&str]| transcript_in(scratch.path(), name, arguments);
    transcript("fidelity-generate", &["fidelity", "generate", "--seed", "7"]);
    let printed = mmtwin(["fidelity", "generate", "--seed", "7"]).out;
    let directory = scratch.path().join("made").to_string_lossy().into_owned();
    let written = ["fidelity", "generate", "--seed", "7", "-o", &directory];
    assert_eq!(mmtwin(written).status, 0);
    let file = scratch.path().join("made/seed-7.toml");
    assert_eq!(std::fs::read(&file).expect("the scenario"), printed);
    // It is not replaced.
    assert_eq!(mmtwin(written).status, 1);
    assert_eq!(mmtwin(["scenario", "check", &file.to_string_lossy()]).status, 0);
}

#[test]
fn what_cannot_be_judged_is_said() {
    let scratch = scratch();
    let transcript = |name: &str, arguments: &[&str]| transcript_in(scratch.path(), name, arguments);
    transcript("fidelity-run-seeds", &["fidelity", "run", "--seeds", "1999..2000", "--directory", "SCRATCH"]);
    transcript("fidelity-search-nothing", &["fidelity", "search", "--seed", "7", "--directory", "SCRATCH"]);
    transcript("fidelity-search-test-set", &["fidelity", "search", "--seed", "1000"]);
    transcript("fidelity-test-nothing", &["fidelity", "test", "--directory", "SCRATCH"]);
}
