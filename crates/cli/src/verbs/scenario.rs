//! `mmtwin scenario`.

use crate::Failure;
use crate::args::{Scenario, ScenarioCheck, ScenarioFormat, ScenarioMigrate, ScenarioShow, ScenarioVerb};
use mmtwin_scenario::units::Bytes;
use mmtwin_scenario::{load, migrate, schema};
use std::fs;
use std::io::Write;

/// Runs the verb.
pub fn run(arguments: Scenario) -> Result<i32, Failure> {
    match arguments.verb {
        ScenarioVerb::Check(arguments) => check(&arguments),
        ScenarioVerb::Show(arguments) => show(&arguments),
        ScenarioVerb::Migrate(arguments) => rewrite(&arguments),
        ScenarioVerb::New(arguments) => super::scenario_new::run(&arguments),
        ScenarioVerb::Schema => print(&format!("{:#}\n", schema())),
    }
}

/// Says of every file what it describes, or what is wrong; files behind a wrong one are checked too.
fn check(arguments: &ScenarioCheck) -> Result<i32, Failure> {
    let mut faults = Vec::new();
    for file in &arguments.files {
        match load(file, &arguments.sets) {
            Ok(scenario) => {
                let machine = &scenario.machine;
                let threads: u64 = scenario.processes.iter().map(|process| u64::from(process.threads)).sum();
                print(&format!(
                    "{}: machine {}, nodes {}, CPUs {}, memory {}; kernel {}; processes {}, threads {threads}; hash {}\n",
                    file.display(),
                    machine.name,
                    machine.nodes.len(),
                    machine.cpus.len(),
                    Bytes(machine.memory_bytes()),
                    scenario.kernel.release,
                    scenario.processes.len(),
                    scenario.hash(),
                ))?;
            }
            Err(wrong) => faults.push(wrong.to_string()),
        }
    }
    if faults.is_empty() { Ok(0) } else { Err(Failure::Error(faults.join("\n"))) }
}

/// Rewrites files of earlier releases. A file that has nothing of theirs stays untouched.
fn rewrite(arguments: &ScenarioMigrate) -> Result<i32, Failure> {
    for file in &arguments.files {
        let name = file.display();
        let failed = |error: std::io::Error| Failure::Error(format!("{name}: {error}"));
        let text = fs::read_to_string(file).map_err(failed)?;
        let wrong = |faults: mmtwin_scenario::Faults| Failure::Error(faults.to_string());
        let (migrated, names) = migrate(&name.to_string(), &text).map_err(wrong)?;
        if names > 0 {
            fs::write(file, migrated).map_err(failed)?;
        }
        print(&format!("{name}: {names} names rewritten\n"))?;
    }
    Ok(0)
}

fn show(arguments: &ScenarioShow) -> Result<i32, Failure> {
    let scenario = load(&arguments.file, &arguments.sets).map_err(|faults| Failure::Error(faults.to_string()))?;
    match arguments.format {
        ScenarioFormat::Toml => print(&scenario.to_toml()),
        ScenarioFormat::Json => print(&format!("{:#}\n", scenario.to_json())),
    }
}

fn print(text: &str) -> Result<i32, Failure> {
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(0)
}
