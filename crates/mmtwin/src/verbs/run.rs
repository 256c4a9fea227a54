//! `mmtwin run`.

use super::print;
use crate::cli::{Arm, KernelFile, LabMode, Run};
use crate::reading::{Analysed, analyse};
use crate::running::{LabOptions, Request, Signals, Simulated, access_trace, on_host, on_lab, simulate, state_of};
use crate::{Failure, parallel, say};
use mmtwin_event::results::Ending;
use mmtwin_lab::Mode;
use mmtwin_report::compare;
use mmtwin_report::model::Report;
use mmtwin_scenario::{Scenario, load};
use mmtwin_trace::input::Options;
use std::io::Write;
use std::path::{Path, PathBuf};

/// A scenario with its seed, and where its recording goes if it is kept.
struct Job {
    seed: u64,
    scenario: Scenario,
    output: Option<PathBuf>,
}

/// Runs the verb.
pub fn run(arguments: Run) -> Result<i32, Failure> {
    let of_twin = arguments.explicit || arguments.check_determinism || arguments.file.is_some();
    let of_twin = of_twin || arguments.from_state.is_some() || arguments.access_trace.is_some();
    if of_twin && arguments.on != Arm::Twin {
        let message = "--explicit, --check-determinism, --file, --from-state and --access-trace are for the simulated \
                       kernel, not for --on";
        return Err(Failure::Usage(message.into()));
    }
    if arguments.file.is_some() && arguments.seeds.is_some() {
        return Err(Failure::Usage("--file shows one run, not those of --seeds".into()));
    }
    let jobs = jobs(&arguments)?;
    if arguments.on == Arm::Lab {
        // Before there is anything that would be left behind.
        Signals::take()?;
    }
    let scratch = tempfile::tempdir()?;
    let kept = |job: &Job| job.output.clone().unwrap_or_else(|| scratch.path().join(recording(job.seed)));
    let analysed = match arguments.on {
        Arm::Twin => match on_twin(&jobs, &arguments)? {
            Some(analysed) => analysed,
            None => return Ok(0),
        },
        Arm::Host => {
            jobs.iter().map(|job| on_host(&job.scenario, &kept(job), arguments.force)).collect::<Result<_, _>>()?
        }
        Arm::Lab => {
            let runs: Vec<(&Scenario, PathBuf)> = jobs.iter().map(|job| (&job.scenario, kept(job))).collect();
            on_lab(&runs, &lab_options(&arguments))?
        }
    };
    tables(&analysed, &arguments)?;
    let mut status = 0;
    for results in analysed.iter().filter_map(|analysed| analysed.results.as_ref()) {
        if let Ending::OutOfMemory { at, pid, comm, message } = &results.ending {
            say(&format!(
                "error: out of memory after {:.3} s: {comm} (pid {pid}) was killed: {message}",
                *at as f64 / 1e9
            ));
            status = crate::status::OUT_OF_MEMORY;
        }
    }
    Ok(status)
}

/// The scenario once, or once per seed.
fn jobs(arguments: &Run) -> Result<Vec<Job>, Failure> {
    let read = |sets: &[String]| load(&arguments.scenario, sets).map_err(|faults| Failure::Error(faults.to_string()));
    let Some(seeds) = &arguments.seeds else {
        let scenario = read(&arguments.sets)?;
        return Ok(vec![Job { seed: scenario.run.seed, scenario, output: arguments.output.clone() }]);
    };
    if let Some(directory) = &arguments.output {
        std::fs::create_dir_all(directory)?;
    }
    let job = |&seed: &u64| {
        let sets = [&arguments.sets[..], &[format!("run.seed={seed}")]].concat();
        let output = arguments.output.as_ref().map(|directory| directory.join(recording(seed)));
        Ok(Job { seed, scenario: read(&sets)?, output })
    };
    seeds.0.iter().map(job).collect()
}

/// Name of the recording of a seed.
fn recording(seed: u64) -> String {
    format!("seed-{seed}.mmt")
}

/// Runs all jobs on the twin, as many at once as there are CPUs. `None`: a file was printed instead.
fn on_twin(jobs: &[Job], arguments: &Run) -> Result<Option<Vec<Analysed>>, Failure> {
    let state = match &arguments.from_state {
        Some(recording) => {
            let state = state_of(&analyse(recording, &Options::default())?)?;
            let missing = || Failure::Error(format!("{}: no zoneinfo to begin from", name(recording)));
            Some(state.ok_or_else(missing)?)
        }
        None => None,
    };
    // Seeds do not change which threads and pages there are.
    let trace = match (&arguments.access_trace, jobs.first()) {
        (Some(trace), Some(job)) => Some(access_trace(trace, &job.scenario)?),
        _ => None,
    };
    let simulate = |job: &Job| {
        let output = job.output.as_deref();
        let name = output.unwrap_or(&arguments.scenario).to_string_lossy();
        simulate(
            &job.scenario,
            Request {
                name: &name,
                output: output.map(|path| (path, arguments.force)),
                explicit: arguments.explicit,
                trace: trace.as_ref(),
                check_determinism: arguments.check_determinism,
                state: state.as_ref(),
            },
        )
    };
    if let ([job], Some(file)) = (jobs, arguments.file) {
        std::io::stdout().write_all(text(&mut simulate(job)?, file).as_bytes())?;
        return Ok(None);
    }
    let analysed = parallel::each(jobs, |job| simulate(job).map(|simulated| simulated.analysed))?;
    // Notes are about the scenario, so those of one run are those of all.
    for note in analysed.first().and_then(|analysed| analysed.results.as_ref()).iter().flat_map(|of| &of.notes) {
        say(&format!("note: {note}"));
    }
    if arguments.check_determinism {
        say("both runs gave the same events and counters");
    }
    Ok(Some(analysed))
}

fn lab_options(arguments: &Run) -> LabOptions {
    let lab = &arguments.lab;
    LabOptions {
        kernel: lab.kernel.clone(),
        modules: lab.modules.clone(),
        mode: match lab.mode {
            LabMode::Exact => Mode::Exact,
            LabMode::Smp => Mode::Smp,
        },
        time_out: lab.time_out,
        force: arguments.force,
    }
}

fn tables(analysed: &[Analysed], arguments: &Run) -> Result<(), Failure> {
    let report = |analysed: &Analysed| {
        let mut report = analysed.report();
        if arguments.output.is_none() {
            // There is nothing to report on but another run.
            report.input.name = name(&arguments.scenario);
            for finding in &mut report.findings {
                finding.command = finding.command.replacen("mmtwin report", "mmtwin run", 1);
            }
        }
        report
    };
    let mut reports: Vec<Report> = analysed.iter().map(report).collect();
    let mut comparison = match reports.len() {
        1 => compare::single(reports.remove(0)),
        _ => compare::compare(vec![(name(&arguments.scenario), reports)]),
    };
    print(&mut comparison, &arguments.printing)
}

fn name(path: &Path) -> String {
    path.to_string_lossy().into_owned()
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
