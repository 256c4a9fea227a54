//! Runs in the lab, with a line per guest while they run.

use crate::say;
use crate::signals::Signals;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use mmtwin::Error;
use mmtwin::running::LabOptions;
use mmtwin_lab::{Outcome, Progress};
use mmtwin_scenario::Scenario;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// Runs scenarios, each into its recording: what came of each of them.
pub fn each_on_lab(runs: &[(&Scenario, PathBuf)], options: &LabOptions) -> Result<Vec<Result<Outcome, Error>>, Error> {
    let signals = signals()?;
    let bars = Bars::new(runs);
    let show = |job, progress: Progress<'_>| bars.show(job, progress);
    let outcomes = mmtwin::running::on_lab(runs, options, signals.stop(), &show);
    bars.end();
    signals.check()?;
    outcomes
}

/// Runs scenarios, each into its recording; `then` is called for each that is done, in their order.
pub fn on_lab<E: From<Error>>(
    runs: &[(&Scenario, PathBuf)],
    options: &LabOptions,
    mut then: impl FnMut(&Path) -> Result<(), E>,
) -> Result<(), E> {
    for ((_, output), outcome) in runs.iter().zip(each_on_lab(runs, options)?) {
        let outcome = outcome?;
        let (boot, total) = (outcome.boot.as_secs_f64(), outcome.total.as_secs_f64());
        say(&format!("{}: {}, {boot:.1} s to boot, {total:.1} s total", output.display(), outcome.accelerator));
        then(output)?;
        signals()?.check()?;
    }
    Ok(())
}

fn signals() -> Result<&'static Signals, Error> {
    Signals::take().map_err(|error| Error::Trace(mmtwin_trace::Error::io("signals", error)))
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
