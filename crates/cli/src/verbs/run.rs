//! `mmtwin run`.

use super::append;
use super::compare::screen;
use super::report::one_screen;
use crate::args::{Arm, Format, KernelFile, LabMode, Run};
use crate::lab::on_lab;
use crate::reading::analyse;
use crate::signals::Signals;
use crate::{Failure, parallel, progress, say, status, terminal, tidy};
use mmtwin::running::{LabOptions, access_trace, on_host, state_of};
use mmtwin::{Analysed, Request, Simulated};
use mmtwin_event::results::Ending;
use mmtwin_host::restore;
use mmtwin_lab::Mode;
use mmtwin_report::compare;
use mmtwin_report::model::Report;
use mmtwin_report::screen::Subject;
use mmtwin_report::side_by_side;
use mmtwin_scenario::{Scenario, load};
use mmtwin_trace::input::Options;
use mmtwin_trace::recording::Writer;
use mmtwin_twin::engine::check_state;
use std::io::Write;
use std::path::{Path, PathBuf};

/// A scenario with its seed, and where its recording goes if it is kept.
struct Job {
    seed: u64,
    scenario: Scenario,
    output: Option<PathBuf>,
}

/// A folder for recordings that are not kept.
enum Scratch {
    Plain(tempfile::TempDir),
    /// Removed later if this process is killed.
    Real(restore::Scratch),
}

impl Scratch {
    fn path(&self) -> &Path {
        match self {
            Scratch::Plain(folder) => folder.path(),
            Scratch::Real(folder) => folder.path(),
        }
    }
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
        return Err(Failure::Usage("--file prints one run and cannot be combined with --seeds".into()));
    }
    let jobs = jobs(&arguments)?;
    let _made = match (&arguments.seeds, &arguments.output) {
        (Some(_), Some(directory)) => Made::directories(directory)?,
        _ => Made(Vec::new()),
    };
    // Said before anything runs.
    jobs.iter()
        .filter_map(|job| job.output.as_deref())
        .try_for_each(|output| Writer::check(output, arguments.force))?;
    if arguments.on == Arm::Lab {
        // Before there is anything that would be left behind.
        Signals::take()?;
    }
    if arguments.on == Arm::Host {
        restore::recover(&mut say);
        restore::remove_instances(&mut say);
    }
    let scratch = match arguments.on {
        // It needs none.
        Arm::Twin => None,
        Arm::Host => Some(Scratch::Real(restore::Scratch::create()?)),
        Arm::Lab => Some(Scratch::Plain(tempfile::tempdir()?)),
    };
    let scratch = scratch.as_ref().map_or(Path::new(""), Scratch::path);
    let kept = |job: &Job| job.output.clone().unwrap_or_else(|| scratch.join(recording(job.seed)));
    let analysed = match arguments.on {
        Arm::Twin => match on_twin(&jobs, &arguments)? {
            Some(analysed) => analysed,
            None => return Ok(0),
        },
        Arm::Host => {
            let real = |job: &Job| {
                on_host(&job.scenario, &kept(job), arguments.force, &mut say)?;
                analyse(kept(job), &Options::default())
            };
            jobs.iter().map(real).collect::<Result<_, _>>()?
        }
        Arm::Lab => {
            let runs: Vec<(&Scenario, PathBuf)> = jobs.iter().map(|job| (&job.scenario, kept(job))).collect();
            let mut analysed = Vec::new();
            on_lab(&runs, &lab_options(&arguments), |output| {
                analysed.push(analyse(output, &Options::default())?);
                Ok::<_, Failure>(())
            })?;
            analysed
        }
    };
    tables(&analysed, &arguments)?;
    let mut status = 0;
    for results in analysed.iter().filter_map(|analysed| analysed.results.as_ref()) {
        if let Ending::OutOfMemory { at, pid, comm, message } = &results.ending {
            let after = results.seconds_to(*at);
            say(&format!("error: out of memory after {after:.3} s: {comm} (pid {pid}) was killed: {message}"));
            status = status::OUT_OF_MEMORY;
        }
    }
    for results in analysed.iter().filter_map(|analysed| analysed.results.as_ref()) {
        if let Ending::Stopped { message, .. } = &results.ending {
            say(&format!("error: {message}"));
            status = 1;
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
    let job = |&seed: &u64| {
        let sets = [&arguments.sets[..], &[format!("run.seed={seed}")]].concat();
        let output = arguments.output.as_ref().map(|directory| directory.join(recording(seed)));
        Ok(Job { seed, scenario: read(&sets)?, output })
    };
    seeds.0.iter().map(job).collect()
}

/// Directories that were made for recordings. Those that nothing is in at the end are removed.
struct Made(Vec<PathBuf>);

impl Made {
    /// Makes a directory and those above it that are missing.
    fn directories(directory: &Path) -> Result<Made, Failure> {
        let failed = |e: std::io::Error| Failure::Error(format!("{}: {e}", directory.display()));
        let missing = directory.ancestors().take_while(|path| !path.as_os_str().is_empty() && !path.exists());
        let made = Made(missing.map(PathBuf::from).collect());
        std::fs::create_dir_all(directory).map_err(failed)?;
        Ok(made)
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        // The deepest is first; one with something in it cannot be removed.
        self.0.iter().all(|path| std::fs::remove_dir(path).is_ok());
    }
}

/// Name of the recording of a seed.
fn recording(seed: u64) -> String {
    format!("seed-{seed}.mmt")
}

/// Runs all jobs on the twin, as many at once as there are CPUs. `None`: a file was printed instead.
fn on_twin(jobs: &[Job], arguments: &Run) -> Result<Option<Vec<Analysed>>, Failure> {
    if arguments.output.is_some() {
        tidy::on_signals()?;
    }
    let state = match &arguments.from_state {
        Some(recording) => {
            let state = state_of(&analyse(recording, &Options::default())?)?;
            let failed = |what: String| Failure::Error(format!("{}: {what}", name(recording)));
            let state = state.ok_or_else(|| failed("the recording has no zoneinfo to start from".into()))?;
            for job in jobs {
                check_state(&state, &job.scenario.machine).map_err(|error| failed(error.to_string()))?;
            }
            Some(state)
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
        let request = Request {
            name: &name,
            output: output.map(|path| (path, arguments.force)),
            explicit: arguments.explicit,
            trace: trace.as_ref(),
            check_determinism: arguments.check_determinism,
            state: state.as_ref(),
        };
        let end = job.scenario.run.duration.map(|duration| duration.0);
        let ran = progress::virtual_time(&name, end, |progress| mmtwin::run(&job.scenario, request, progress));
        Ok::<Simulated, Failure>(ran?)
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
        say("both runs have the same events and counters");
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
                let next = finding.next.take();
                let name = &analysed.analysis.source.name;
                finding.next = next.map(|next| match next.strip_prefix("mmtwin explain ") {
                    Some(rest) => format!("mmtwin explain {} after -o REC", rest.replacen(name.as_str(), "REC", 1)),
                    None => next,
                });
            }
        }
        report
    };
    let mut reports: Vec<Report> = analysed.iter().map(report).collect();
    let all = arguments.amount.all || !arguments.printing.tables.is_empty();
    let mut text = Vec::new();
    match (analysed, reports.as_slice()) {
        ([analysed], [report]) if !all && arguments.printing.format == Format::Table => {
            let (analysis, about, kept) = (&analysed.analysis, &analysed.about, arguments.output.is_some());
            one_screen(&Subject { analysis, report, about, chosen: None, kept }, &mut text);
        }
        _ if all || arguments.printing.format != Format::Table => {
            let mut comparison = match reports.len() {
                1 => compare::single(reports.remove(0)),
                _ => compare::compare(vec![(name(&arguments.scenario), reports)]),
            };
            append(&mut comparison, &arguments.printing, &mut text)?;
        }
        _ => {
            let scenario = name(&arguments.scenario);
            let comparison = mmtwin::compare(&[(&scenario, analysed)]);
            let command = format!("mmtwin run {scenario} --seeds {}", seeds(arguments));
            screen(&side_by_side::Subject { comparison: &comparison, command: &command, aside: None }, &mut text);
        }
    }
    Ok(terminal::show(&text, !arguments.amount.no_pager)?)
}

/// The seeds as somebody would write them.
fn seeds(arguments: &Run) -> String {
    let seeds = arguments.seeds.iter().flat_map(|seeds| &seeds.0);
    let seeds: Vec<u64> = seeds.copied().collect();
    match seeds.as_slice() {
        [first, .., last] if last - first + 1 == seeds.len() as u64 => format!("{first}..{last}"),
        seeds => seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(","),
    }
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
