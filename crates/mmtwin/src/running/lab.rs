//! Running scenarios on a real kernel in QEMU.

use super::Signals;
use crate::reading::{Analysed, analyse};
use crate::{Failure, say};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use mmtwin_lab::{Folder, Job, Kernel, Lab, Mode, Progress, Qemu, guests_at_once, run_all};
use mmtwin_scenario::Scenario;
use mmtwin_trace::input;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

/// Largest recording that a guest can leave.
const ROOM: u64 = 512 << 20;

/// What the lab is reported besides the scenario.
#[derive(Clone, Debug)]
pub struct LabOptions {
    /// `6.1`, `6.12` or a bzImage; `None`: the scenario's release.
    pub kernel: Option<String>,
    /// Modules of a bzImage.
    pub modules: Option<PathBuf>,
    /// How the guest's CPUs run.
    pub mode: Mode,
    /// Longest time of a guest.
    pub time_out: Duration,
    /// Replace recordings that are there.
    pub force: bool,
}

/// Runs scenarios, each into its recording, as many at once as do not disturb each other, and analyses them.
pub fn on_lab(runs: &[(&Scenario, PathBuf)], options: &LabOptions) -> Result<Vec<Analysed>, Failure> {
    let folder = Folder::find();
    let agent = agent(&folder)?;
    let kernels: Vec<Kernel> = runs
        .iter()
        .map(|(scenario, _)| {
            let name = options.kernel.as_deref().unwrap_or(&scenario.kernel.release);
            folder.kernel(name, options.modules.as_deref())
        })
        .collect::<Result<_, _>>()
        .map_err(failed)?;
    let lab = Lab { folder, qemu: Qemu::find().map_err(failed)? };
    let jobs: Vec<Job<'_>> = runs
        .iter()
        .zip(&kernels)
        .map(|((scenario, output), kernel)| Job {
            scenario,
            kernel,
            mode: options.mode,
            agent: &agent,
            extra: &[],
            output,
            force: options.force,
            room: ROOM,
            time_out: options.time_out,
        })
        .collect();
    let signals = Signals::take()?;
    let bars = Bars::new(runs);
    let show = |job, progress: Progress<'_>| bars.show(job, progress);
    let outcomes = run_all(&lab, &jobs, guests_at_once(options.mode), signals.stop(), &show);
    bars.end();
    signals.check()?;
    let mut analysed = Vec::new();
    for ((_, output), outcome) in runs.iter().zip(outcomes) {
        let outcome = outcome.map_err(|error| Failure::Error(format!("{}: {error}", output.display())))?;
        let (boot, total) = (outcome.boot.as_secs_f64(), outcome.total.as_secs_f64());
        say(&format!("{}: {}, {boot:.1} s to boot, {total:.1} s total", output.display(), outcome.accelerator));
        analysed.push(analyse(output, &input::Options::default())?);
        signals.check()?;
    }
    Ok(analysed)
}

fn failed(error: impl ToString) -> Failure {
    Failure::Error(error.to_string())
}

/// The agent for the guest: that of $MMTWIN_AGENT, else the lab's.
fn agent(folder: &Folder) -> Result<PathBuf, Failure> {
    let path = std::env::var_os("MMTWIN_AGENT").map_or_else(|| folder.agent(), PathBuf::from);
    match path.is_file() {
        true => Ok(path),
        false => Err(failed(format!("no mmtwin-agent at {}: run `make lab`", path.display()))),
    }
}

/// A line per guest, if somebody watches.
struct Bars {
    all: Option<MultiProgress>,
    lines: Vec<ProgressBar>,
}

impl Bars {
    fn new(runs: &[(&Scenario, PathBuf)]) -> Bars {
        if !std::io::stderr().is_terminal() {
            return Bars { all: None, lines: Vec::new() };
        }
        let all = MultiProgress::new();
        let line = |(_, output): &(&Scenario, PathBuf)| {
            let line = all.add(ProgressBar::new_spinner().with_prefix(output.display().to_string()));
            if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix}: {wide_msg}") {
                line.set_style(style);
            }
            line
        };
        let lines = runs.iter().map(line).collect();
        Bars { all: Some(all), lines }
    }

    fn show(&self, job: usize, progress: Progress<'_>) {
        if let Some(line) = self.lines.get(job) {
            let last = progress.line.unwrap_or_default();
            line.set_message(format!("{} ({} s) {last}", progress.stage, progress.elapsed.as_secs()));
        }
    }

    fn end(&self) {
        // Lines that cannot be cleared were not shown.
        let _ = self.all.as_ref().map(MultiProgress::clear);
    }
}
