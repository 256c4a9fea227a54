//! `mmtwin run`.

use super::print;
use crate::cli::{KernelFile, Run};
use crate::running::{Request, Simulated, simulate};
use crate::{Failure, say};
use mmtwin_event::results::Ending;
use mmtwin_report::compare;
use mmtwin_scenario::load;
use std::io::Write;

/// Runs the verb.
pub fn run(arguments: Run) -> Result<i32, Failure> {
    let scenario = load(&arguments.scenario, &arguments.sets).map_err(|faults| Failure::Error(faults.to_string()))?;
    let file = arguments.scenario.to_string_lossy();
    let output = arguments.output.as_deref();
    let shown = output.map(|path| path.to_string_lossy());
    let request = Request {
        name: shown.as_deref().unwrap_or(&file),
        output: output.map(|path| (path, arguments.force)),
        explicit: arguments.explicit,
        check_determinism: arguments.check_determinism,
    };
    let mut simulated = simulate(&scenario, request)?;
    for note in &simulated.ran.results.notes {
        say(&format!("note: {note}"));
    }
    if arguments.check_determinism {
        say("both runs gave the same events and counters");
    }
    match arguments.file {
        Some(file) => std::io::stdout().write_all(text(&mut simulated, file).as_bytes())?,
        None => {
            let mut report = simulated.analysed.report();
            if output.is_none() {
                // There is nothing to report on but another run.
                report.findings.iter_mut().for_each(|finding| {
                    finding.command = finding.command.replacen("mmtwin report", "mmtwin run", 1);
                });
            }
            print(&mut compare::single(report), &arguments.printing)?;
        }
    }
    let Ending::OutOfMemory { at, pid, comm, message } = &simulated.ran.results.ending else { return Ok(0) };
    say(&format!("error: out of memory after {:.3} s: {comm} (pid {pid}): {message}", *at as f64 / 1e9));
    Ok(1)
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
