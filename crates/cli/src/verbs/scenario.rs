//! `mmtwin scenario`.

use crate::Failure;
use crate::args::{Scenario, ScenarioCheck, ScenarioFormat, ScenarioShow, ScenarioVerb};
use mmtwin_scenario::units::Bytes;
use mmtwin_scenario::{load, schema};
use std::io::Write;

/// Runs the verb.
pub fn run(arguments: Scenario) -> Result<i32, Failure> {
    match arguments.verb {
        ScenarioVerb::Check(arguments) => check(&arguments),
        ScenarioVerb::Show(arguments) => show(&arguments),
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
