//! Scenarios, bundles and machine files, damaged in random but repeatable ways: each is read or refused, with a place,
//! in little memory and time.
//!
//! A round takes a file of the repository and damages values, lines and bytes of it. A tenth of MMTWIN_FUZZ_ROUNDS,
//! which are rounds of the readers, sets the rounds per target, MMTWIN_FUZZ_SEED the first seed; a failure names the
//! seed of its round.

use crate::memory::bounded;
use mmtwin_scenario::{Faults, Scenario, from_json, load, parse};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// SplitMix64: every round has its own, so that one round can be repeated alone.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    fn of<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }
}

/// Values at the edges of what types, units and limits hold.
#[rustfmt::skip]
const VALUES: &[&str] = &[
    "0", "1", "-1", "2", "255", "4096", "65535", "65536", "1000000000", "2147483647", "2147483648", "4294967295",
    "4294967296", "9223372036854775807", "9223372036854775808", "18446744073709551615", "99999999999999999999", "0.0",
    "-0.0", "1e-300", "1e308", "1e999", "nan", "inf", "-inf", "true", "1979-05-27", "\"\"", "\"0 B\"", "\"4 KiB\"",
    "\"16777215 TiB\"", "\"1e30 GiB\"", "\"4096 TiB\"", "\"128 TiB\"", "\"5124095 h\"", "\"8760 h\"", "\"0 ns\"",
    "\"1 ns\"", "\"18446744073709551615 ns\"", "\"1 B/s\"", "\"18446744 TB/s\"", "\"1000 s\"", "\"0-8191\"",
    "\"0-8192\"", "\"all\"", "\"bind:0-8191\"", "\"auto\"", "[]", "{}", "[[]]", "[0, 1]", "\"/dev/zero\"",
    "\"no/such/file.toml\"",
];

/// Pieces of text that end up anywhere.
const PIECES: &[&str] = &[
    "[",
    "]",
    "[[process]]\n",
    "[kernel]\n",
    "=",
    "\"",
    "\n",
    ".",
    "#",
    "\\",
    "é",
    "\u{0}",
    "{",
    "}",
    "'''",
    "count = 0\n",
    "instances = { count = 1000, bound = true }\n",
    "threads = 65535\n",
    "[[process.region]]\n",
    "base = \"6.1\"\n",
];

/// Damages a text in one to six places.
fn damage(text: &str, random: &mut Random) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
    for _ in 0..=random.below(6) {
        let at = random.below(lines.len());
        match random.below(9) {
            // The value of a key, most often.
            0..=3 => {
                let values: Vec<usize> = (0..lines.len()).filter(|i| lines[*i].contains('=')).collect();
                if values.is_empty() {
                    continue;
                }
                let line = &mut lines[*random.of(&values)];
                let key = line.split('=').next().unwrap_or_default().to_string();
                *line = format!("{key}= {}", random.of(VALUES));
            }
            4 if !lines.is_empty() => drop(lines.remove(at)),
            5 if !lines.is_empty() => {
                // A block again, perhaps many times.
                let block = lines[at..(at + 1 + random.below(12)).min(lines.len())].to_vec();
                let times = *random.of(&[1, 1, 2, 300]);
                let to = random.below(lines.len());
                let again: Vec<String> = (0..times).flat_map(|_| block.clone()).collect();
                lines.splice(to..to, again);
            }
            6 if !lines.is_empty() => {
                let other = random.below(lines.len());
                lines.swap(at, other);
            }
            7 if !lines.is_empty() => {
                let line = &mut lines[at];
                let byte = (0..=random.below(line.len() + 1)).rev().find(|i| line.is_char_boundary(*i)).unwrap_or(0);
                let piece: &&str = random.of(PIECES);
                line.insert_str(byte, piece);
            }
            _ => lines.truncate(at.max(1)),
        }
    }
    lines.join("\n") + "\n"
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn texts(folder: &str) -> Vec<(PathBuf, String)> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(root().join(folder)).expect("a folder").flatten().map(|e| e.path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "toml") && !path.ends_with("published.toml"));
    files.sort();
    files.into_iter().map(|path| (path.clone(), std::fs::read_to_string(path).expect("a text"))).collect()
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Accepted texts read back equal; refused ones have a fault with its place.
fn sound(result: Result<Scenario, Faults>) {
    match result {
        Ok(scenario) => {
            let shown = scenario.to_toml();
            let again =
                parse("shown.toml", &shown, Path::new(""), &[]).unwrap_or_else(|faults| panic!("{faults}\n{shown}"));
            assert_eq!(scenario, again);
            let json = from_json(&scenario.to_json()).unwrap_or_else(|faults| panic!("{faults}"));
            assert_eq!(scenario.hash(), json.hash());
        }
        Err(faults) => {
            assert!(!faults.all().is_empty() && faults.all().len() <= 101);
            assert!(faults.all().iter().all(|fault| !fault.file.is_empty() && !fault.message.is_empty()));
            assert!(faults.to_string().len() < 100_000, "a message of {} bytes", faults.to_string().len());
        }
    }
}

/// Rounds of damage to texts; `read` is called with the damaged text, the original, and its path.
fn rounds(target: &str, texts: &[(PathBuf, String)], mut read: impl FnMut(&str, &Path) -> Result<Scenario, Faults>) {
    let seed = number("MMTWIN_FUZZ_SEED", 1);
    let (mut accepted, rounds) = (0, number("MMTWIN_FUZZ_ROUNDS", 1000).div_ceil(10));
    for round in seed..seed + rounds {
        let mut random = Random(round.wrapping_mul(0x2545_f491_4f6c_dd1d));
        let (path, text) = random.of(texts);
        let text = damage(text, &mut random);
        let ran = catch_unwind(AssertUnwindSafe(|| {
            bounded(&format!("{target}, seed {round}"), || {
                let result = read(&text, path);
                accepted += usize::from(result.is_ok());
                sound(result);
            })
        }));
        if let Err(panic) = ran {
            eprintln!("{target}: MMTWIN_FUZZ_SEED={round} MMTWIN_FUZZ_ROUNDS=1: damaged {}", path.display());
            std::panic::resume_unwind(panic);
        }
    }
    eprintln!("{target}: {rounds} rounds, {accepted} accepted");
}

#[test]
fn scenarios() {
    let mut all = texts("scenarios/examples");
    all.extend(texts("scenarios/controls"));
    all.extend(texts("scenarios/published/vmalloc-purge"));
    all.extend(texts("scenarios/published/lumpy-2012"));
    rounds("scenario", &all, |text, path| parse("s.toml", text, path.parent().expect("a folder"), &[]));
}

/// A scenario beside the file that it names.
fn with_file(name: &str, scenario: &str) -> (tempfile::TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, path) = (folder.path().join(name), folder.path().join("s.toml"));
    std::fs::write(&path, scenario).expect("a file");
    (folder, path, file)
}

#[test]
fn bundles() {
    let (_folder, scenario, file) =
        with_file("b.toml", "[machine]\npreset = \"lab-4n\"\n[kernel]\nrelease = \"b.toml\"\n");
    rounds("bundle", &texts("kernels"), |text, _| {
        std::fs::write(&file, text).expect("a file");
        load(&scenario, &[])
    });
}

#[test]
fn machines() {
    let (_folder, scenario, file) =
        with_file("m.toml", "[machine]\npreset = \"m.toml\"\n[kernel]\nrelease = \"6.12\"\n");
    rounds("machine", &texts("machines"), |text, _| {
        std::fs::write(&file, text).expect("a file");
        load(&scenario, &[])
    });
}

#[test]
fn overrides() {
    let text = std::fs::read_to_string(root().join("scenarios/examples/numastat-pages.toml")).expect("an example");
    let keys = [
        "run.seed",
        "run.duration",
        "run.sample",
        "run.epoch",
        "run.events",
        "process.0.threads",
        "process.0.instances.count",
        "process.0.region",
        "process.0.phase.0.duration",
        "machine.node",
        "machine.node.0.memory",
        "machine.preset",
        "machine.distance",
        "machine.cost.page_fault",
        "machine.disk.bandwidth",
        "kernel.release",
        "kernel.hz",
        "kernel.sysctl.vm.min_free_kbytes",
        "kernel.sysctl.vm.lowmem_reserve_ratio",
        "kernel.vmalloc.lazy_max_pages",
        "kernel.numa_balancing.scan_period_max_ms",
        "a.b.c",
        "process.#0.cpus",
        "cgroup",
        "title",
    ];
    let seed = number("MMTWIN_FUZZ_SEED", 1);
    for round in seed..seed + number("MMTWIN_FUZZ_ROUNDS", 1000).div_ceil(10) {
        let mut random = Random(round);
        let sets: Vec<String> =
            (0..=random.below(4)).map(|_| format!("{}={}", random.of(&keys), random.of(VALUES))).collect();
        bounded(&format!("overrides, seed {round}: {sets:?}"), || {
            sound(parse("s.toml", &text, Path::new("/nowhere"), &sets));
        });
    }
}
