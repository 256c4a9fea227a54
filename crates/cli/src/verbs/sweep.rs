//! `mmtwin sweep`.

use super::{colour, sweep_ray};
use crate::args::{Engine, Showing, Sweep, SweepRun, SweepVerb};
use crate::signals::Signals;
use crate::{Failure, progress, say, terminal};
use mmtwin::sweep::{Error, Options, Plan, Request, read, run as run_all};
use mmtwin_report::format::Style;
use mmtwin_report::screen;
use mmtwin_report::sweep::{self as report, Status};

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Error(error.to_string())
    }
}

/// Runs the verb.
pub fn run(arguments: Sweep) -> Result<i32, Failure> {
    match (arguments.verb, arguments.run) {
        (Some(SweepVerb::Report(arguments)), _) => {
            show(&read(&arguments.input)?, &arguments.showing)?;
            Ok(0)
        }
        (None, Some(run)) if run.engine == Engine::Ray => {
            sweep_ray::run(&run)?;
            let sweep = read(&run.output)?;
            show(&sweep, &arguments.showing)?;
            Ok(failures(&sweep))
        }
        (None, Some(run)) if run.address.is_some() => Err(Failure::Usage("--address is of --engine ray".into())),
        (None, Some(run)) => sweep(&run, &arguments.showing),
        (None, None) => Err(Failure::Usage("a sweep needs a scenario and -o".into())),
    }
}

fn sweep(arguments: &SweepRun, showing: &Showing) -> Result<i32, Failure> {
    let seeds = arguments.seeds.as_ref().map_or(&[][..], |seeds| &seeds.0);
    let plan = Plan::new(&Request {
        scenario: &arguments.scenario,
        sets: &arguments.sets,
        cases: arguments.cases.as_deref(),
        paired: arguments.paired,
        seeds,
        version: concat!("mmtwin ", env!("MMTWIN_VERSION")),
    });
    let plan = plan.map_err(|faults| {
        let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
        Failure::Error(faults.join("\n"))
    })?;
    let signals = Signals::take()?;
    let threads = arguments.jobs.or_else(|| std::thread::available_parallelism().ok()).map_or(1, usize::from);
    let options = Options { threads, force: arguments.force, stop: signals.stop() };
    let name = arguments.scenario.display().to_string();
    let done = progress::runs(&name, |told| run_all(&plan, &arguments.output, &options, told))?;
    if done.stopped {
        let (rows, output) = (done.sweep.rows.len(), arguments.output.display());
        say(&format!("{rows} of {} runs are in {output}; the same command continues", plan.runs.len()));
        return Err(signals.check().map_or_else(Failure::from, |()| Failure::Error("stopped".into())));
    }
    if done.kept > 0 {
        say(&format!("{} of {} runs were there", done.kept, plan.runs.len()));
    }
    show(&done.sweep, showing)?;
    Ok(failures(&done.sweep))
}

/// Exit status 1 if a run could not be run to an end; that memory ran out in one is a result.
fn failures(sweep: &report::Sweep) -> i32 {
    let failed = sweep.rows.iter().any(|row| matches!(row.status, Status::Failed | Status::Stopped));
    i32::from(failed)
}

fn show(sweep: &report::Sweep, showing: &Showing) -> Result<(), Failure> {
    let width = terminal::screen_width().max(screen::NARROWEST);
    let style = Style { width, colour: colour(), ..Style::default() };
    let mut lines = report::lines(sweep, &style, showing.all);
    let mut wrong = None;
    for name in &showing.curves {
        match report::curve(sweep, name, &style) {
            Ok(curve) => lines.extend([String::new()].into_iter().chain(curve)),
            Err(error) => wrong = Some(error),
        }
    }
    let text: String = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
    terminal::show(text.as_bytes(), !showing.no_pager)?;
    // The table is there all the same: it may have taken long.
    wrong.map_or(Ok(()), |error| Err(Failure::Usage(format!("--curve: {error}"))))
}
