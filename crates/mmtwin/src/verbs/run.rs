//! `mmtwin run`.

use super::print;
use crate::cli::{Arm, KernelFile, Run};
use crate::reading::{Analysed, analyse};
use crate::running::{Request, Simulated, simulate};
use crate::{Failure, say};
use mmtwin_event::results::{Ending, Results};
use mmtwin_host::workload;
use mmtwin_report::compare;
use mmtwin_scenario::{Scenario, load};
use mmtwin_trace::input::Options as Reading;
use std::io::Write;

/// Runs the verb.
pub fn run(arguments: Run) -> Result<i32, Failure> {
    let scenario = load(&arguments.scenario, &arguments.sets).map_err(|faults| Failure::Error(faults.to_string()))?;
    let results = match arguments.on {
        Arm::Twin => on_twin(&scenario, &arguments)?,
        Arm::Host => on_host(&scenario, &arguments)?,
    };
    let Ending::OutOfMemory { at, pid, comm, message } = &results.ending else { return Ok(0) };
    say(&format!("error: out of memory after {:.3} s: {comm} (pid {pid}): {message}", *at as f64 / 1e9));
    Ok(1)
}

fn on_twin(scenario: &Scenario, arguments: &Run) -> Result<Results, Failure> {
    let file = arguments.scenario.to_string_lossy();
    let output = arguments.output.as_deref();
    let shown = output.map(|path| path.to_string_lossy());
    let request = Request {
        name: shown.as_deref().unwrap_or(&file),
        output: output.map(|path| (path, arguments.force)),
        explicit: arguments.explicit,
        check_determinism: arguments.check_determinism,
    };
    let mut simulated = simulate(scenario, request)?;
    for note in &simulated.ran.results.notes {
        say(&format!("note: {note}"));
    }
    if arguments.check_determinism {
        say("both runs gave the same events and counters");
    }
    match arguments.file {
        Some(file) => std::io::stdout().write_all(text(&mut simulated, file).as_bytes())?,
        None => tables(&simulated.analysed, arguments)?,
    }
    Ok(simulated.ran.results)
}

/// Runs the workload on this machine. Without `-o` the recording is gone when it has been reported on.
fn on_host(scenario: &Scenario, arguments: &Run) -> Result<Results, Failure> {
    let of_twin = arguments.explicit || arguments.check_determinism || arguments.file.is_some();
    if of_twin {
        let message = "--explicit, --check-determinism and --file are for the simulated kernel, not for --on host";
        return Err(Failure::Usage(message.into()));
    }
    let scratch = tempfile::tempdir()?;
    let output = arguments.output.clone().unwrap_or_else(|| scratch.path().join("run.mmt"));
    let options = workload::Options { output: output.clone(), force: arguments.force, ..workload::Options::default() };
    let outcome = workload::run(scenario, &options, &mut say).map_err(|error| Failure::Error(error.to_string()))?;
    for note in &outcome.results.notes {
        say(&format!("note: {note}"));
    }
    tables(&analyse(&output.to_string_lossy(), &Reading::default())?, arguments)?;
    Ok(outcome.results)
}

fn tables(analysed: &Analysed, arguments: &Run) -> Result<(), Failure> {
    let mut report = analysed.report();
    if arguments.output.is_none() {
        // There is nothing to report on but another run.
        report.input.name = arguments.scenario.to_string_lossy().into_owned();
        for finding in &mut report.findings {
            finding.command = finding.command.replacen("mmtwin report", "mmtwin run", 1);
        }
    }
    print(&mut compare::single(report), &arguments.printing)
}

/// A statistics file as the modelled kernel shows it when the run has ended; files of nodes one after another.
fn text(simulated: &mut Simulated, file: KernelFile) -> String {
    let kernel = &mut simulated.ran.kernel;
    let (stat, alloc, nodes) = (&mut kernel.stat, &kernel.alloc, 0..kernel.machine.nodes.len());
    match file {
        KernelFile::Zoneinfo => stat.zoneinfo_text(alloc).0,
        KernelFile::Vmstat => stat.vmstat_text(alloc).0,
        KernelFile::Buddyinfo => stat.buddyinfo_text(alloc),
        KernelFile::Numastat => {
            nodes.map(|node| format!("node{node}/numastat\n{}", stat.numastat_text(node, alloc).0)).collect()
        }
        KernelFile::NodeVmstat => {
            nodes.map(|node| format!("node{node}/vmstat\n{}", stat.node_vmstat_text(node, alloc).0)).collect()
        }
    }
}
