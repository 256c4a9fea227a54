//! A run that begins with a recorded state, whatever was done to the state: it is refused with the place, or it runs.

use mmtwin::running::state_of;
use mmtwin::{Analysed, Request, Trace, run};
use mmtwin_event::manifest::State;
use mmtwin_scenario::{Scenario, load};
use std::fs::File;
use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Files of a state that the twin reads.
const READ: [&str; 5] =
    ["/proc/zoneinfo", "/proc/mmtwin_lru", "/proc/mmtwin_pagesets", "/proc/mmtwin_shrinkers", "/proc/pagetypeinfo"];
const MUTANTS: u64 = 600;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A recording of a guest with a cgroup, unpacked.
fn recorded() -> (TempDir, Analysed) {
    let packed = root().join("tests/data/recordings/reclaim-cgroup-6.1.tar.zst");
    let directory = tempfile::tempdir().expect("a directory");
    let stream = zstd::Decoder::new(File::open(packed).expect("a recording")).expect("Zstandard");
    tar::Archive::new(stream).unpack(directory.path()).expect("a recording");
    let analysed = Trace::open(directory.path()).and_then(|mut trace| trace.analyse(&mut |_| {})).expect("a recording");
    (directory, analysed)
}

/// Its scenario, cut short: what a state does wrong it does at once.
fn scenario() -> Scenario {
    let sets = ["run.seed=1", "run.duration=\"120 ms\"", "process.0.phase.0.access.0.count=2000"];
    let sets = sets.map(String::from);
    load(&root().join("scenarios/fidelity/reclaim-cgroup.toml"), &sets).unwrap_or_else(|faults| panic!("{faults}"))
}

/// Begins a run with a state; what is said of it where it is refused.
fn begin(recorded: &mut Analysed, state: State, scenario: &Scenario) -> Result<(), String> {
    recorded.state = Some(state);
    let state = state_of(recorded).map_err(|error| error.to_string())?;
    run(scenario, Request { name: "t", state: state.as_ref(), ..Request::default() }, &mut |_| {})
        .map_err(|error| error.to_string())?;
    Ok(())
}

/// xorshift64
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end.max(1) as u64) as usize
    }

    fn of<'t>(&mut self, list: &[&'t str]) -> &'t str {
        list[self.below(list.len())]
    }
}

/// Numbers that are too large, too small or none.
const NUMBERS: [&str; 17] = [
    "0",
    "1",
    "-1",
    "2",
    "11",
    "63",
    "64",
    "127",
    "4095",
    "65536",
    "2147483647",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "18446744073709551615",
    "18446744073709551616",
    "x",
];

/// Where numbers of a text are.
fn numbers(text: &str) -> Vec<std::ops::Range<usize>> {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let begins = (0..bytes.len()).filter(|&at| digit(at) && (at == 0 || !digit(at - 1)));
    begins.map(|at| at..(at..).find(|&end| !digit(end)).unwrap_or(at)).collect()
}

/// Changes a text: a number, a byte, a line.
fn change(text: &mut String, random: &mut Random) {
    let mut lines: Vec<String> = text.lines().map(String::from).collect();
    let (a, b) = (random.below(lines.len()), random.below(lines.len()));
    match random.below(10) {
        0 => {
            lines.remove(a);
        }
        1 => lines.insert(b, lines[a].clone()),
        2 => lines.swap(a, b),
        3 => {
            let at = random.below(lines[a].len());
            lines[a].truncate(at);
        }
        4 => {
            let mut bytes = lines[a].clone().into_bytes();
            let at = random.below(bytes.len());
            bytes.get_mut(at).into_iter().for_each(|byte| *byte = b" =/*,:0a9"[random.below(9)]);
            lines[a] = String::from_utf8(bytes).expect("ASCII");
        }
        _ => {
            let all = numbers(text);
            let at = all[random.below(all.len())].clone();
            let value: u64 = text[at.clone()].parse().unwrap_or(0);
            let near =
                [value.wrapping_add(1), value.wrapping_sub(1), value.wrapping_mul(2), value ^ 1 << random.below(64)];
            let with = match random.below(3) {
                0 => near[random.below(4)].to_string(),
                _ => random.of(&NUMBERS).to_string(),
            };
            text.replace_range(at, &with);
            return;
        }
    }
    *text = lines.join("\n") + "\n";
}

/// Each in a test of its own, so that they take two CPUs.
#[test]
fn a_damaged_state_is_refused_or_runs() {
    mutants(1..=MUTANTS / 2);
}

#[test]
fn another_damaged_state_is_refused_or_runs() {
    mutants(MUTANTS / 2 + 1..=MUTANTS);
}

fn mutants(seeds: RangeInclusive<u64>) {
    let (_directory, mut analysed) = recorded();
    let (base, scenario) = (analysed.state.clone().expect("a state"), scenario());
    assert_eq!(begin(&mut analysed, base.clone(), &scenario), Ok(()));
    let (mut refused, mut ran, mut panicked) = (0, 0, Vec::new());
    let all = seeds.clone().count();
    for seed in seeds {
        let (mut state, mut random) = (base.clone(), Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        let mut changed = String::new();
        for _ in 0..=random.below(3) {
            let file = random.of(&READ);
            change(state.files.get_mut(file).expect("a file"), &mut random);
            changed += file;
        }
        if random.below(20) == 0 {
            state.at = random.of(&NUMBERS).parse().unwrap_or(u64::MAX);
            state.cpus = vec![vec![u32::MAX, 7], Vec::new()];
            state.began = vec![vec![3], vec![u32::MAX]];
        }
        let begun = catch_unwind(AssertUnwindSafe(|| begin(&mut analysed, state, &scenario)));
        match begun {
            Err(_) => panicked.push((seed, changed)),
            Ok(Ok(())) => ran += 1,
            Ok(Err(message)) => {
                let said = ["state.json", "zone", "LRU", "batch", "shrinker", "another machine"];
                assert!(said.iter().any(|word| message.contains(word)), "mutant {seed}: {message}");
                refused += 1;
            }
        }
    }
    assert_eq!(panicked, []);
    assert!(refused > all / 4 && ran > all / 20, "{refused} refused, {ran} ran");
}

#[test]
fn what_is_impossible_is_named() {
    let (_directory, mut analysed) = recorded();
    let (base, scenario) = (analysed.state.clone().expect("a state"), scenario());
    for (file, from, to, message) in [
        (
            "pagetypeinfo",
            "2      2      1      0 \n",
            "2      2      1      4294967295 \n",
            "zone DMA32 of node 0: free blocks of more than its",
        ),
        (
            "pagetypeinfo",
            "1      2      1      0      1",
            "1      2      -1      0      1",
            "/proc/pagetypeinfo: line 10: expected counts",
        ),
        (
            "mmtwin_lru",
            "lru_add runs=0/",
            "lru_add runs=2147483647/",
            "batch lru_add of CPU 1: pages of zone DMA32, which node 2147483647",
        ),
        ("mmtwin_lru", "batch cpu=1", "batch cpu=2", "batch lru_add of CPU 2: the machine has 2 CPUs"),
        (
            "mmtwin_lru",
            "DMA32/0/srd*112",
            "DMA32/0/srd*1120000",
            "LRU lists of cgroup / on node 0: 1120000 more folios",
        ),
        ("mmtwin_lru", "anon_cost=0", "anon_cost=18446744073709551615", "is more than a kernel counts"),
        (
            "mmtwin_pagesets",
            "zone=DMA32 cpu=1",
            "zone=DMA32 cpu=9",
            "zone DMA32 of node 0, lists of CPU 9: the machine has 2 CPUs",
        ),
        ("mmtwin_pagesets", "1/1:118", "", "/proc/mmtwin_pagesets: line 4: expected the page lists"),
        ("mmtwin_pagesets", "0/1:118", "0/1:1180000", "are more than its"),
        ("mmtwin_pagesets", "0/1:118", "60/1:118", "lists of CPU 1: blocks above order 13"),
        (
            "mmtwin_shrinkers",
            "objects=95",
            "objects=9223372036854775807",
            "shrinker kfree_rcu_shrink_scan: 9223372036854775807 objects",
        ),
        (
            "mmtwin_shrinkers",
            "node=0 objects=95",
            "node=3 objects=95",
            "shrinker kfree_rcu_shrink_scan: node 3 of a machine of 1 nodes",
        ),
        (
            "zoneinfo",
            "managed  244743",
            "managed  944743",
            "zone DMA32 of node 0: spanned 542176, present 258016, managed 944743",
        ),
        (
            "zoneinfo",
            "pages free     231385",
            "pages free     x",
            "zone DMA32 of node 0: free is missing or not a number",
        ),
        (
            "zoneinfo",
            "Node 0, zone    DMA32",
            "Node 0, zone  HighMem",
            "zone HighMem of node 0: this zone type is not modelled",
        ),
        (
            "zoneinfo",
            "start_pfn:           4096",
            "start_pfn:           1040000",
            "page frames from 1040000 on do not lie in such a zone",
        ),
        ("zoneinfo", "present  258016", "present  158016", "managed 244743"),
    ] {
        let mut state = base.clone();
        let text = state.files.get_mut(&format!("/proc/{file}")).expect("a file");
        // What a guest printed, whatever its widths.
        let squeeze = |text: &str| text.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
        let (plain, from) = (text.lines().map(squeeze).collect::<Vec<_>>().join("\n"), squeeze(from));
        if !to.is_empty() {
            assert!(plain.contains(from.trim_end()), "{file}: {from}");
            *text = plain.replacen(from.trim_end(), squeeze(to).trim_end(), 1);
        } else {
            *text = text.replacen("lists=0/0:36", "lists=0:36", 1);
        }
        let refused = begin(&mut analysed, state, &scenario).expect_err(message);
        assert!(refused.contains(message), "{refused}");
    }
}

#[test]
fn a_state_of_another_machine_is_refused_by_what_differs() {
    let (_directory, analysed) = recorded();
    let state = state_of(&analysed).expect("a state").expect("zones");
    let check = |sets: &[&str]| {
        let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
        let path = root().join("scenarios/fidelity/reclaim-cgroup.toml");
        let scenario = load(&path, &sets).unwrap_or_else(|faults| panic!("{faults}"));
        mmtwin_twin::engine::check_state(&state, &scenario.machine).map_err(|error| error.to_string())
    };
    assert_eq!(check(&[]), Ok(()));
    // Firmware keeps some.
    assert_eq!(check(&["machine.node.0.memory=\"1050 MiB\""]), Ok(()));
    for (set, differs) in [
        (
            "machine.node.0.memory=\"2 GiB\"",
            "node 0: 262014 pages recorded (DMA 3998, DMA32 258016), 524190 in the scenario",
        ),
        ("machine.node.0.cpus=\"0-3\"", "CPUs: 2 recorded, 4 in the scenario"),
    ] {
        let message = check(&[set]).expect_err(set);
        assert!(message.contains("of another machine") && message.contains(differs), "{message}");
    }
}
