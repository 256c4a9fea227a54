//! Any valid scenario reads back equal; any text at all gives a scenario or faults with a place, and never a panic.

use mmtwin_scenario::{Faults, Scenario, bundle_names, from_json, load, parse};
use proptest::prelude::*;
use std::fmt::Write;
use std::path::Path;

fn read(text: &str, sets: &[String]) -> Result<Scenario, Faults> {
    parse("s.toml", text, Path::new(""), sets)
}

/// Faults have a message and a file; texts that are read again are equal.
fn sound(result: Result<Scenario, Faults>) -> Result<(), TestCaseError> {
    match result {
        Ok(scenario) => {
            let shown = scenario.to_toml();
            let again = read(&shown, &[]).map_err(|faults| TestCaseError::fail(format!("{faults}\n{shown}")))?;
            prop_assert_eq!(&scenario, &again);
            prop_assert_eq!(scenario.hash(), again.hash());
            let json = from_json(&scenario.to_json()).map_err(|faults| TestCaseError::fail(faults.to_string()))?;
            prop_assert_eq!(scenario, json);
        }
        Err(faults) => {
            prop_assert!(!faults.all().is_empty());
            prop_assert!(faults.all().iter().all(|fault| !fault.file.is_empty() && !fault.message.is_empty()));
            prop_assert!(!faults.to_string().is_empty());
        }
    }
    Ok(())
}

/// Some node's cores, memory in units of 4 KiB, and whether it has CPUs at all.
type NodePlan = (u32, u64, bool);

fn machine(nodes: &[NodePlan], threads: u32, adjacent: bool, distances: &[u32]) -> String {
    let n = nodes.len();
    let mut text = format!("[machine]\nname = \"m\"\nthreads_per_core = {threads}\n");
    if adjacent {
        text.push_str("siblings = \"adjacent\"\n");
    }
    let distance = |a: usize, b: usize| if a == b { 10 } else { distances[a.min(b) * n + a.max(b)] };
    let rows = (0..n).map(|a| (0..n).map(|b| distance(a, b)).collect::<Vec<_>>()).collect::<Vec<_>>();
    let matrix = |figure: &str| format!("{:?}", vec![vec![figure; n]; n]);
    writeln!(text, "distance = {rows:?}").expect("a string");
    writeln!(text, "memory.latency = {}\nmemory.bandwidth = {}", matrix("90.5 ns"), matrix("50 GB/s"))
        .expect("a string");
    let mut next = 0;
    for (i, (cores, pages, has_cpus)) in nodes.iter().enumerate() {
        text.push_str("[[machine.node]]\n");
        // The first node has CPUs and memory, so that the machine is possible.
        if *has_cpus || i == 0 {
            let last = next + cores * threads - 1;
            writeln!(text, "cpus = \"{next}-{last}\"").expect("a string");
            next = last + 1;
        }
        let pages = if i == 0 || !has_cpus { pages + 1 } else { *pages };
        writeln!(text, "memory = \"{} KiB\"", pages * 4).expect("a string");
    }
    text
}

fn workload(patterns: &[(u8, u64, f64)]) -> String {
    let mut text = String::from("[[process]]\nname = \"p\"\nthreads = 3\npolicy = \"interleave:all\"\n");
    text.push_str("[[process.region]]\nname = \"r\"\nsize = \"3 MiB\"\nkind = \"shmem\"\nfile = \"f\"\n");
    for (kind, number, share) in patterns {
        text.push_str("[[process.phase]]\nduration = \"7 ms\"\n");
        let access = |rest: String| {
            format!("[[process.phase.access]]\nregion = \"r\"\nwrite = {share:?}\nthink = \"{number} ns\"\n{rest}\n")
        };
        let action = |rest: String| format!("[[process.phase.action]]\nthreads = \"0,2\"\n{rest}\n");
        let count = number + 1;
        text.push_str(&match kind {
            0 => access("pattern = \"sequential\"".into()),
            1 => access(format!("pattern = \"strided\"\nstride = \"{} KiB\"", count * 4)),
            2 => access(format!("pattern = \"zipf\"\nskew = {:?}\nvia = \"syscall\"", share + 0.1)),
            3 => access(format!("pattern = \"hot-cold\"\nhot = {share:?}\naccess_share = \"12.5 %\"\ncount = {count}")),
            4 => action(format!(
                "kind = \"page-loop\"\norder = {}\nhold = {count}\nrate = \"{count} pages/s\"",
                number % 11
            )),
            5 => action(format!(
                "kind = \"page-hog\"\ngfp = \"GFP_ATOMIC\"\nnode = 0\npolicy = \"bind:0\"\ncount = {count}"
            )),
            6 => action(format!("kind = \"vmalloc-test\"\ntests = [\"full_fit_alloc_test\"]\nloops = {count}")),
            7 => action(format!("kind = \"read\"\nfile = \"zoneinfo\"\ninterval = \"{number} us\"\ncount = {count}")),
            8 => action(format!("kind = \"sysctl\"\nname = \"vm.swappiness\"\nvalue = {}", number % 101)),
            9 => action(format!("kind = \"module-cycle\"\nname = \"xfs\"\ncount = {count}")),
            10 => action(format!("kind = \"lookup\"\ncount = {count}")),
            _ => action(format!("kind = \"sleep\"\ntime = \"{number} ns\"")),
        });
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn valid_scenarios_read_back_equal(
        nodes in prop::collection::vec((1u32..9, 0u64..4_000_000, any::<bool>()), 1..6),
        threads in 1u32..3,
        adjacent in any::<bool>(),
        distances in prop::collection::vec(11u32..255, 36),
        bundle in prop::sample::select(bundle_names().collect::<Vec<_>>()),
        patterns in prop::collection::vec((0u8..12, 0u64..100_000, 0.0f64..1.0), 0..6),
        seed in 0i64..i64::MAX,
    ) {
        let text = format!(
            "{}[kernel]\nrelease = \"{bundle}\"\n[run]\nseed = {seed}\n{}",
            machine(&nodes, threads, adjacent, &distances),
            workload(&patterns),
        );
        let result = read(&text, &[]);
        if let Err(faults) = &result {
            return Err(TestCaseError::fail(format!("{faults}\n{text}")));
        }
        sound(result)?;
    }

    #[test]
    fn any_text_gives_a_scenario_or_faults(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        sound(read(&String::from_utf8_lossy(&bytes), &[]))?;
    }

    #[test]
    fn any_override_gives_a_scenario_or_faults(key in "[a-z0-9_.#\"\\[]{0,30}", value in ".{0,20}") {
        let text = example("numastat-pages");
        sound(read(&text, &[format!("{key}={value}")]))?;
        sound(read(&text, &[format!("process.0.{key}={value}"), format!("kernel.{key}={value}")]))?;
    }

    #[test]
    fn mutated_scenarios_give_a_scenario_or_faults(
        name in prop::sample::select(vec!["numastat-pages", "vmalloc-purge-small", "interleave-memoryless"]),
        cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0u8..4), 1..4),
        insert in prop::sample::select(vec!["=", "\"", "[[", "]", "\n", "0", "-1", "{}", ".", "99999999999999999999", "é", "nan", "1e400", "''"]),
    ) {
        let mut text: Vec<char> = example(name).chars().collect();
        for (at, to, kind) in cuts {
            let (at, to) = (at.index(text.len()), to.index(text.len()));
            match kind {
                0 => { text.splice(at..at, insert.chars()); }
                1 => { text.remove(at); }
                2 => { text.swap(at, to); }
                // A piece is repeated elsewhere: tables and keys occur twice.
                _ => {
                    let piece: Vec<char> = text[at..(at + 40).min(text.len())].to_vec();
                    text.splice(to..to, piece);
                }
            }
        }
        sound(read(&text.into_iter().collect::<String>(), &[]))?;
    }
}

fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../scenarios/examples/{name}.toml"));
    std::fs::read_to_string(path).expect("an example")
}

#[test]
fn damaged_presets_and_bundles_give_faults() {
    let folder = tempfile::tempdir().expect("a folder");
    let scenario = folder.path().join("s.toml");
    std::fs::write(&scenario, "[machine]\npreset = \"m.toml\"\n[kernel]\nrelease = \"6.1\"\n").expect("a file");
    let fault = |machine: &str| {
        std::fs::write(folder.path().join("m.toml"), machine).expect("a file");
        load(&scenario, &[]).map_or_else(|faults| faults.to_string(), |_| "no fault".into())
    };
    assert_eq!(fault("base = \"lab-4n\"\n[machine]\nname = \"mine\"\n"), "no fault");
    assert!(fault("base = \"m.toml\"\n[machine]\n").ends_with("m.toml: the preset builds on itself"));
    assert!(
        fault("base = \"lab-4x\"\n[machine]\n")
            .contains("m.toml: there is no preset \"lab-4x\"; did you mean \"lab-4n\"?")
    );
    assert!(fault("machine = 3\n").contains("m.toml: has no table [machine]"));
    assert!(fault("[machine]\n[kernel]\n").contains("m.toml:2:2: unknown key `kernel`"));
    assert!(fault("[machine]\nline.atomic = 6\n").contains("m.toml:2:15: expected a cost with its unit"));
    assert!(fault("[machine\n").contains("m.toml:1:"));
}

#[test]
fn a_machine_file_is_a_preset() {
    let folder = tempfile::tempdir().expect("a folder");
    let of = |preset: &str| {
        let text = format!("[machine]\npreset = \"{preset}\"\n[kernel]\nrelease = \"6.1\"\n");
        parse("s.toml", &text, folder.path(), &[]).unwrap_or_else(|faults| panic!("{faults}"))
    };
    let scenario = of("epyc-milan-2s");
    std::fs::write(folder.path().join("mine.toml"), scenario.machine.to_toml()).expect("a file");
    assert_eq!(of("./mine.toml"), scenario);
}

#[test]
fn a_bundle_of_a_file_reads_back_without_the_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let bundle = "base = \"6.1\"\n[kernel]\nrelease = \"mine\"\nhz = 1000\n";
    std::fs::write(folder.path().join("mine.toml"), bundle).expect("a file");
    let text = "[machine]\npreset = \"lab-4n\"\n[kernel]\nrelease = \"mine.toml\"\n";
    let scenario = parse("s.toml", text, folder.path(), &[]).expect("a scenario");
    assert_eq!((scenario.kernel.release.as_str(), scenario.kernel.hz), ("mine", 1000));
    assert_eq!(read(&scenario.to_toml(), &[]).expect("a scenario"), scenario);
}
