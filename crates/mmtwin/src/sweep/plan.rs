//! The runs of a sweep, all checked before the first begins.

use super::expand::{Case, expand};
use super::faults::{Faults, label};
use super::{Fault, values};
use mmtwin_scenario::{Scenario, parse};
use mmtwin_twin::build;
use std::path::Path;
use std::sync::Arc;

/// What a sweep is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Scenario file.
    pub scenario: &'a Path,
    /// `KEY=VALUES`: a list `a,b,c`, a range `A..B:N` or `A..B:N:log`, or several of them with commas.
    pub sets: &'a [String],
    /// CSV file: keys in its first line, values of a case in each other.
    pub cases: Option<&'a Path>,
    /// Whether the values of several keys advance together; else every combination is a case.
    pub paired: bool,
    /// Seeds of each case; empty: that of the scenario.
    pub seeds: &'a [u64],
    /// Program and version: a part of what a run is known by.
    pub version: &'a str,
}

/// A scenario that was read: what its cases are laid over.
#[derive(Clone, Copy, Debug)]
pub struct Base<'a> {
    /// Its text.
    pub text: &'a str,
    /// Overrides that all cases have, `KEY=VALUE`.
    pub sets: &'a [String],
}

/// All runs of a sweep, by case and then by seed.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The scenario file, as it was named.
    pub scenario: String,
    /// Program and version.
    pub version: String,
    /// Keys whose values make the cases.
    pub keys: Vec<String>,
    /// The runs.
    pub runs: Vec<Planned>,
}

/// A run.
#[derive(Clone, Debug)]
pub struct Planned {
    /// Hash of the resolved scenario, its kernel among it, of the seed and of the version: 64 hexadecimal digits.
    pub id: String,
    /// Values of the keys.
    pub case: Vec<String>,
    /// Seed.
    pub seed: u64,
    scenario: Arc<Scenario>,
}

impl Planned {
    /// A run of a scenario with a seed. `case` are the values of the sweep's keys, which the scenario has.
    pub fn new(scenario: Arc<Scenario>, case: Vec<String>, seed: u64, version: &str) -> Planned {
        let decisive = format!("{} {seed} {version}", scenario.hash());
        Planned { id: blake3::hash(decisive.as_bytes()).to_hex().to_string(), case, seed, scenario }
    }

    /// What runs.
    pub fn scenario(&self) -> Scenario {
        let mut scenario = Scenario::clone(&self.scenario);
        scenario.run.seed = self.seed;
        scenario
    }

    /// The values as numbers of their smallest unit; `None`: it is a word.
    pub fn numbers(&self) -> Vec<Option<f64>> {
        self.case.iter().map(|value| values::number(value)).collect()
    }
}

impl Plan {
    /// Reads and checks everything.
    ///
    /// # Errors
    /// All faults: of keys and values, or, where these can be read, of every case.
    pub fn new(request: &Request<'_>) -> Result<Plan, Vec<Fault>> {
        let expanded = expand(request)?;
        let text = std::fs::read_to_string(request.scenario).map_err(|error| {
            vec![Fault { place: request.scenario.display().to_string(), message: error.to_string() }]
        })?;
        Plan::checked(request, &Base { text: &text, sets: &[] }, expanded)
    }

    /// The same of a scenario that was read before.
    ///
    /// # Errors
    /// As of [`Plan::new`].
    pub fn of_text(request: &Request<'_>, base: &Base<'_>) -> Result<Plan, Vec<Fault>> {
        Plan::checked(request, base, expand(request)?)
    }

    /// The same with cases in place of the values and the file of a request: each has a value of every key.
    ///
    /// # Errors
    /// As of [`Plan::new`].
    pub fn of_cases(
        request: &Request<'_>,
        base: &Base<'_>,
        keys: Vec<String>,
        cases: Vec<Vec<String>>,
    ) -> Result<Plan, Vec<Fault>> {
        Plan::checked(request, base, (keys, cases.into_iter().map(|case| (case, None)).collect()))
    }

    fn checked(request: &Request<'_>, base: &Base<'_>, expanded: (Vec<String>, Vec<Case>)) -> Result<Plan, Vec<Fault>> {
        let (keys, all) = expanded;
        let name = request.scenario.display().to_string();
        let (mut runs, mut known) = (Vec::new(), std::collections::HashMap::new());
        let mut faults = Faults::new(request, &keys, base.sets.len());
        for (case, line) in &all {
            let own = keys.iter().zip(case).map(|(key, value)| format!("{key}={value}"));
            let sets: Vec<String> = base.sets.iter().cloned().chain(own).collect();
            let directory = request.scenario.parent().unwrap_or(Path::new(""));
            let scenario = match parse(&name, base.text, directory, &sets) {
                Ok(scenario) => scenario,
                Err(wrong) => {
                    wrong.all().iter().for_each(|fault| faults.of_scenario(fault, case, *line));
                    continue;
                }
            };
            if let Err(error) = build::check(&scenario) {
                faults.add(name.clone(), error.to_string(), case, *line);
                continue;
            }
            if let Some(other) = known.insert(scenario.hash(), case.clone()) {
                let message = format!("the same scenario as with {}", label(&keys, &other));
                faults.add(name.clone(), message, case, *line);
            }
            let scenario = Arc::new(scenario);
            let own = [scenario.run.seed];
            for seed in if request.seeds.is_empty() { &own[..] } else { request.seeds } {
                runs.push(Planned::new(scenario.clone(), case.clone(), *seed, request.version));
            }
        }
        match faults.sentences(all.len()) {
            none if none.is_empty() => Ok(Plan { scenario: name, version: request.version.into(), keys, runs }),
            found => Err(found),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCENARIO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/guide/container-limit.toml");

    fn plan(sets: &[&str], cases: Option<&Path>, paired: bool, seeds: &[u64]) -> Result<Plan, String> {
        let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
        let request = Request { scenario: Path::new(SCENARIO), sets: &sets, cases, paired, seeds, version: "v" };
        let text = |faults: Vec<Fault>| faults.iter().map(Fault::to_string).collect::<Vec<_>>().join("\n");
        Plan::new(&request).map_err(|faults| text(faults).replace(SCENARIO, "SCENARIO"))
    }

    const LIMIT: &str = "cgroup./box.memory.max";

    #[test]
    fn every_combination_or_pairs() {
        let limits = format!("{LIMIT}=480MiB..720MiB:3");
        let sets = [limits.as_str(), "kernel.sysctl.vm.swappiness=10,60,100"];
        let all = plan(&sets, None, false, &[1, 2]).unwrap();
        assert_eq!((all.runs.len(), all.runs[2].case[1].as_str(), all.runs[3].seed), (18, "60", 2));
        assert_eq!(all.runs[1].scenario().run.seed, 2);
        assert_eq!(all.runs[0].numbers(), [Some(503_316_480.0), Some(10.0)]);
        let pairs = plan(&sets, None, true, &[]).unwrap();
        assert_eq!(pairs.runs.iter().map(|run| run.case[1].as_str()).collect::<Vec<_>>(), ["10", "60", "100"]);
        let ids: std::collections::BTreeSet<&String> = all.runs.iter().map(|run| &run.id).collect();
        assert_eq!(ids.len(), 18);
        assert_eq!(pairs.runs[1].id.len(), 64);
        // A run is known by what it is, not by how it was asked for.
        let one = plan(&["kernel.sysctl.vm.swappiness=60", &format!("{LIMIT}=600MiB")], None, false, &[7]).unwrap();
        let same = plan(&[&format!("{LIMIT}=614400KiB"), "kernel.sysctl.vm.swappiness=60"], None, false, &[7]).unwrap();
        assert_eq!(one.runs[0].id, same.runs[0].id);
    }

    #[test]
    fn all_faults_of_values_are_said() {
        let wrong = plan(&["a", "b=1..2", "run.seed=1,2", "c=1", "c=2"], Some(Path::new("/none.csv")), false, &[]);
        let wrong = wrong.expect_err("faults");
        let lines: Vec<&str> = wrong.lines().collect();
        assert_eq!(lines.len(), 5, "{wrong}");
        assert_eq!(lines[0], "--set 1: `a`: expected KEY=VALUES");
        assert!(lines[1].starts_with("--set 2: b: `1..2` does not say how many values"), "{wrong}");
        assert!(lines[4].starts_with("/none.csv: "), "{wrong}");
        let pairs = plan(&["a=1,2", "b=1,2,3"], None, true, &[]).expect_err("a fault");
        assert_eq!(pairs, "--paired: a has 2 values, another key 3");
        let many = plan(&["a=1..9999:9999", "b=1..9999:9999"], None, false, &[]).expect_err("a fault");
        assert_eq!(many, "sweep: more than 100000 runs");
    }

    #[test]
    fn all_faults_of_cases_are_said_with_their_place() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("cases.csv");
        std::fs::write(&file, format!("{LIMIT},kernel.thp\n\n480 MiB,never\nmuch,never\n512 MiB,often\n")).unwrap();
        let wrong = plan(&["kernel.sysctl.vm.swappines=10,20"], Some(&file), false, &[]).expect_err("faults");
        assert!(wrong.contains("--set 1: kernel.sysctl.vm.swappines: "), "{wrong}");
        let wrong =
            plan(&[], Some(&file), false, &[]).expect_err("faults").replace(&file.display().to_string(), "CASES");
        assert!(wrong.contains(&format!("CASES:4: {LIMIT}: ")), "{wrong}");
        assert!(wrong.contains("CASES:5: kernel.thp: "), "{wrong}");
        assert_eq!(wrong.lines().count(), 2, "{wrong}");
        let same = plan(&[&format!("{LIMIT}=512 MiB,524288 KiB")], None, false, &[]).expect_err("the same twice");
        assert_eq!(same, format!("SCENARIO: the same scenario as with {LIMIT}=512 MiB ({LIMIT}=524288 KiB)"));
    }
}
