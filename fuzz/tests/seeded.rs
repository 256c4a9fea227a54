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

/// The message of a panic.
fn said(panic: &(dyn std::any::Any + Send)) -> &str {
    panic.downcast_ref::<String>().map_or_else(|| *panic.downcast_ref().unwrap_or(&""), String::as_str)
}

/// Runs an input twice; `what` names it. What fails is kept as a file.
fn twice(target: &Target, what: &str, input: &[u8]) -> Result<Seen, String> {
    let run = || watch::within(target.name, what, target.seconds * SLOWER, || (target.run)(input));
    let both = || {
        let once = run();
        // The twin has run twice by then.
        assert!(target.name == "twin" || once == run(), "two runs differ");
        once
    };
    catch_unwind(AssertUnwindSafe(both)).map_err(|panic| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let file =
            folder.join(format!("{}-{}", target.name, what.rsplit('/').next().unwrap_or(what).replace(' ', "-")));
        // The message is enough where this cannot be written.
        let _ = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&file, (target.built)(input)));
        format!("{what}: {} ({})", said(&*panic), file.display())
    })
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
    let (mut accepted, mut inputs, mut failures) = (0u64, 0u64, Vec::new());
    let mut one = |what: &str, input: &[u8]| {
        inputs += 1;
        match twice(target, what, input) {
            Ok(seen) => accepted += u64::from(seen.accepted),
            Err(failure) => failures.push(failure),
        }
    };
    let found = kept("regressions", target);
    seeds.iter().enumerate().for_each(|(i, seed)| one(&format!("seed input {i}"), seed));
    found.iter().for_each(|(file, input)| one(file, input));
    let corpus: Vec<&Vec<u8>> = seeds.iter().chain(found.iter().map(|(_, input)| input)).collect();
    let (first, rounds) = (number("MMTWIN_FUZZ_SEED", 1), number("MMTWIN_FUZZ_ROUNDS", 300) * target.share / 1000);
    for seed in first..first + rounds {
        let mut random = Random(seed);
        let mut input = corpus[random.below(corpus.len())].clone();
        let other = corpus[random.below(corpus.len())];
        (target.mutate)(&mut input, other, &mut random);
        one(&format!("seed {seed}"), &input);
    }
    println!("{name}: {inputs} inputs, {accepted} accepted, {} failed", failures.len());
    assert!(failures.is_empty(), "target {name}:\n{}", failures.join("\n"));
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
