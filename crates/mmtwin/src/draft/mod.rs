//! New scenarios: a commented file that runs, with a machine from this host, from a recording or of its own.
//!
//! `basis` has the machine and the kernel, `workload` the processes. Sysctls that the twin would refuse are written as
//! comments, so that the file runs as it is.

mod basis;
mod workload;

pub use basis::{Basis, BasisError};
pub use workload::Archetype;

use mmtwin_scenario::kernel::Sysctl;
use mmtwin_scenario::{Scenario, bundle_names};
use mmtwin_twin::build;
use std::fmt::Write;

/// The text of a scenario.
///
/// # Errors
/// If the machine cannot be described in a scenario, or not be simulated; in words.
pub fn text(archetype: Archetype, basis: &Basis) -> Result<String, String> {
    let plain = assembled(archetype, basis, "");
    let scenario = runs(&plain)?;
    let defaults = scenario.to_json();
    let default = |name: &str| defaults.pointer("/kernel/sysctl").and_then(|all| all.get(name)).cloned();
    let mut sysctls = String::new();
    // While these are 0 another sysctl applies, as without them.
    let unset = |name: &str, value: u64| value == 0 && Sysctl::EVERYWHERE.contains(&name);
    let differs = |name: &str, value: u64| default(name) != Some(value.into()) && !unset(name, value);
    for (name, value) in basis.sysctls.iter().filter(|(name, value)| differs(name, **value)) {
        let line = format!("\"{name}\" = {value}\n");
        let refused = runs(&assembled(archetype, basis, &line)).is_err();
        let _ = if refused { write!(sysctls, "# not simulated: {line}") } else { write!(sysctls, "{line}") };
    }
    Ok(assembled(archetype, basis, &sysctls))
}

/// The scenario of a text, if the twin runs it.
fn runs(text: &str) -> Result<Scenario, String> {
    let scenario = Scenario::parse(text, &[]).map_err(|faults| faults.to_string())?;
    build::check(&scenario).map_err(|error| error.to_string())?;
    Ok(scenario)
}

fn assembled(archetype: Archetype, basis: &Basis, sysctls: &str) -> String {
    let mut text = format!("# {}\n# The machine is that of {}.\n", archetype.sentence(), basis.origin);
    let _ = write!(text, "title = \"{}\"\n\n{}\n{}", archetype.title(), basis.machine(), basis.kernel(&bundle(basis)));
    if !sysctls.is_empty() {
        let _ = write!(text, "\n# What differs from the defaults of the release.\n[kernel.sysctl]\n{sysctls}");
    }
    let _ = write!(text, "\n{}\n{RUN}", archetype.processes(basis));
    text
}

const RUN: &str = r#"# mmtwin run FILE; mmtwin sweep FILE --set KEY=A..B:8 -o OUT.parquet tries several values of a key.
[run]
seed = 1
sample = "1 s"
"#;

/// The bundle of the kernel's release: the newest that is not newer, else the oldest.
fn bundle(basis: &Basis) -> String {
    let version = |name: &str| -> Vec<u32> {
        name.split('.').map_while(|part| part.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()).collect()
    };
    let releases =
        bundle_names().filter(|name| name.chars().all(|c| c.is_ascii_digit() || c == '.') && name.contains('.'));
    let mut releases: Vec<(Vec<u32>, &str)> = releases.map(|name| (version(name), name)).collect();
    releases.sort();
    let (wanted, oldest) = (version(&basis.release), releases.first());
    let found = releases.iter().rev().find(|(version, _)| *version <= wanted).or(oldest);
    found.map_or_else(|| basis.release.clone(), |(_, name)| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Request, run};
    use mmtwin_event::manifest::{Evidence, Node, Uname};

    fn short(text: &str) -> mmtwin_event::results::Results {
        let scenario = Scenario::parse(text, &["run.duration=200 ms"]).unwrap_or_else(|e| panic!("{text}\n{e}"));
        run(&scenario, Request::default(), &mut |_| {}).unwrap_or_else(|e| panic!("{text}\n{e}")).ran.results
    }

    #[test]
    fn every_archetype_runs() {
        for archetype in Archetype::ALL {
            let text = text(archetype, &Basis::of(archetype)).unwrap_or_else(|e| panic!("{}: {e}", archetype.title()));
            let results = short(&text);
            assert!(!results.phases.is_empty(), "{text}");
            assert_eq!(results.ending, mmtwin_event::results::Ending::TimeUp, "{text}");
            assert!(text.lines().all(|line| line.len() <= 120), "{text}");
        }
    }

    fn evidence() -> Evidence {
        let node = |id: u32| Node {
            id,
            cpus: vec![2 * id, 2 * id + 1],
            memory: Some(1_000_000),
            distances: if id == 0 { vec![10, 21] } else { vec![21, 10] },
            ..Node::default()
        };
        let files = [
            ("/proc/sys/vm/swappiness", "10"),
            ("/proc/sys/vm/page-cluster", "3"),
            ("/proc/sys/vm/drop_caches", "0"),
            ("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never"),
            ("/proc/swaps", "Filename Type Size Used Priority\n/dev/vda2 partition 1048572 0 -2"),
        ];
        Evidence {
            uname: Uname { release: "6.14.3-generic".into(), ..Uname::default() },
            memory: Some(2_000_000),
            nodes: vec![node(0), node(1)],
            cpus: vec![0, 1, 2, 3],
            files: files.map(|(path, text)| (path.to_owned(), text.to_owned())).into(),
            ..Evidence::default()
        }
    }

    #[test]
    fn a_machine_is_described_from_evidence() {
        let basis = Basis::of_evidence(&evidence(), "a recording").unwrap();
        let text = text(Archetype::Cache, &basis).unwrap();
        for line in [
            "# The machine is that of a recording.",
            "distance = [[10, 21], [21, 10]]",
            "cpus = \"2-3\"",
            "memory = \"976 MiB\"",
            "release = \"6.12\" # the newest that is modelled and not newer than 6.14.3-generic",
            "thp = \"madvise\"",
            "\"vm.swappiness\" = 10",
            "size = \"1023 MiB\"",
        ] {
            assert!(text.lines().any(|there| there == line), "{line}\n{text}");
        }
        assert!(!text.contains("drop_caches"));
        short(&text);
    }

    #[test]
    fn a_machine_without_memory_is_none() {
        let nothing = Basis::of_evidence(&Evidence::default(), "x").unwrap_err();
        assert_eq!(nothing.to_string(), "the memory of the machine is not known");
    }
}
