//! Every target on its seeds, on what was found before, and on a fixed number of changed inputs from fixed seeds: no panic,
//! no hang, at most 1 GiB, and the same twice.
//!
//! `MMTWIN_FUZZ_ROUNDS` sets the rounds, of which each target has a share; `MMTWIN_FUZZ_SEED` the first seed. A failure
//! names the seed of its round.

use mmtwin_fuzz::{Random, Seen, Target, targets, watch};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

#[global_allocator]
static ALLOCATOR: watch::Limited = watch::Limited;

/// How much longer than with optimisations an input may take here.
const SLOWER: u64 = 6;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// Runs an input twice; `what` names it.
fn twice(target: &Target, what: &str, input: &[u8]) -> Seen {
    let run = || watch::within(target.name, what, target.seconds * SLOWER, || (target.run)(input));
    let once = catch_unwind(AssertUnwindSafe(run));
    let once = once.unwrap_or_else(|_| panic!("target {}, {what}: it panicked", target.name));
    // The twin has run twice by then.
    if target.name != "twin" {
        assert_eq!(once, run(), "target {}, {what}: two runs differ", target.name);
    }
    once
}

/// Inputs of a folder beside this crate, by name.
fn kept(folder: &str, target: &Target) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join(target.name);
    let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
    let mut files: Vec<_> = entries.map(|entry| entry.path()).collect();
    files.sort();
    let read =
        |path: &std::path::PathBuf| std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    files.iter().map(|path| (path.display().to_string(), read(path))).collect()
}

fn fuzz(name: &str) {
    let target = targets::named(name).expect("a target");
    let seeds = (target.seeds)();
    assert!(!seeds.is_empty(), "a target has seeds");
    let mut accepted = 0;
    let found = kept("regressions", target);
    for (i, seed) in seeds.iter().enumerate() {
        accepted += u64::from(twice(target, &format!("seed input {i}"), seed).accepted);
    }
    for (file, input) in &found {
        twice(target, file, input);
    }
    let corpus: Vec<&Vec<u8>> = seeds.iter().chain(found.iter().map(|(_, input)| input)).collect();
    let (first, rounds) = (number("MMTWIN_FUZZ_SEED", 1), number("MMTWIN_FUZZ_ROUNDS", 300) * target.share / 1000);
    for seed in first..first + rounds {
        let mut random = Random(seed);
        let mut input = corpus[random.below(corpus.len())].clone();
        let other = corpus[random.below(corpus.len())];
        (target.mutate)(&mut input, other, &mut random);
        accepted += u64::from(twice(target, &format!("seed {seed}"), &input).accepted);
    }
    println!("{name}: {} inputs, {accepted} accepted", seeds.len() as u64 + rounds);
    assert!(accepted * 4 >= seeds.len() as u64, "{name}: most inputs are refused, so little is tested");
}

/// A test for each target.
macro_rules! tests {
    ($($test:ident $name:literal)+) => {
        $(#[test] fn $test() { fuzz($name); })+

        #[test]
        fn every_target_has_a_test() {
            let all: Vec<&str> = targets::TARGETS.iter().map(|target| target.name).collect();
            assert_eq!(all, [$($name),+]);
        }
    };
}

tests! {
    format "format"
    pages "pages"
    text "text"
    saved "saved"
    counters "counters"
    csv "csv"
    parquet "parquet"
    dat "dat"
    dat_parts "dat-parts"
    convert "convert"
    tracefs "tracefs"
    recording "recording"
    container "container"
    packed "packed"
    scenario "scenario"
    machine "machine"
    bundle "bundle"
    set "set"
    fail_on "fail-on"
    pattern "pattern"
    state "state"
    twin "twin"
}
