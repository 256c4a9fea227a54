//! Every example scenario has the recorded digests of events, counters and results.
//!
//! `make golden` runs this test in a release build and for another target CPU as well. `MMTWIN_GOLDEN=write` writes the
//! digests again.

use mmtwin_event::NullSink;
use mmtwin_twin::engine::{Options, State, kinds, run};
use mmtwin_twin::time::determinism::Hashing;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// 64-bit FNV-1a.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[test]
fn examples_have_the_recorded_digests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let directory = fs::read_dir(root.join("scenarios/examples")).expect("examples");
    let mut examples: Vec<_> = directory.map(|entry| entry.expect("an entry").path()).collect();
    examples.sort();
    let mut text = String::new();
    for example in examples {
        let scenario = mmtwin_scenario::load(&example, &[]).unwrap_or_else(|faults| panic!("{faults}"));
        let mut sink = NullSink;
        let mut hashing = Hashing::new(&mut sink, None);
        let options = Options {
            state: State::default(),
            explicit: false,
            trace: None,
            events: kinds(&scenario),
            progress: &mut |_| {},
        };
        let ran = run(&scenario, options, &mut hashing).unwrap_or_else(|error| panic!("{error}"));
        let digest = hashing.finish().unwrap_or_else(|difference| panic!("{difference}"));
        let results = hash(&serde_json::to_vec(&ran.results).expect("JSON"));
        let name = example.file_stem().and_then(|name| name.to_str()).expect("UTF-8");
        let _ = writeln!(text, "{name}: {:#018x} of {}, results {results:#018x}", digest.last, digest.count);
    }
    let golden = root.join("tests/golden/digests.txt");
    if std::env::var_os("MMTWIN_GOLDEN").is_some_and(|value| value == "write") {
        fs::write(&golden, text).expect("digests are written");
        return;
    }
    let expected = fs::read_to_string(&golden).expect("digests");
    assert_eq!(text, expected, "a run has changed; MMTWIN_GOLDEN=write accepts it");
}
