//! `mmtwin sweep`.

use super::{colour, sweep_ray};
use crate::args::{Engine, Output, ReportFormat, Showing, Sweep, SweepReport, SweepRun, SweepVerb};
use crate::output::mode_of;
use crate::signals::Signals;
use crate::{Failure, progress, say, terminal};
use mmtwin::sweep::{Error, Options, Plan, Request, read, run as run_all};
use mmtwin_report::format::Style;
use mmtwin_report::screen;
use mmtwin_report::sweep::{self as report, Status};
use std::path::Path;

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Error(error.to_string())
    }
}

/// Runs the verb.
pub fn run(arguments: Sweep) -> Result<i32, Failure> {
    match (arguments.verb, arguments.run) {
        (Some(SweepVerb::Report(arguments)), _) => {
            match &arguments.html {
                Some(file) => write_page(&arguments, file)?,
                None => show(&read(&arguments.input)?, &arguments.showing)?,
            }
            Ok(0)
        }
        (None, Some(run)) if run.engine == Engine::Ray => {
            if !arguments.showing.curves.is_empty() {
                check_curves(&plan(&run)?, &arguments.showing)?;
            }
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

/// The runs, all checked.
fn plan(arguments: &SweepRun) -> Result<Plan, Failure> {
    let seeds = arguments.seeds.as_ref().map_or(&[][..], |seeds| &seeds.0);
    let plan = Plan::new(&Request {
        scenario: &arguments.scenario,
        sets: &arguments.sets,
        cases: arguments.cases.as_deref(),
        paired: arguments.paired,
        seeds,
        version: concat!("mmtwin ", env!("MMTWIN_VERSION")),
    });
    plan.map_err(|faults| {
        let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
        Failure::Error(faults.join("\n"))
    })
}

/// Refuses curves that no run could give.
fn check_curves(plan: &Plan, showing: &Showing) -> Result<(), Failure> {
    let differ = plan.runs.iter().any(|run| run.case != plan.runs[0].case);
    let check = |name: &String| report::check_curve(&plan.keys, differ, name);
    showing.curves.iter().try_for_each(check).map_err(|error| Failure::Usage(format!("--curve: {error}")))
}

fn sweep(arguments: &SweepRun, showing: &Showing) -> Result<i32, Failure> {
    let plan = plan(arguments)?;
    check_curves(&plan, showing)?;
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

/// The sweep as one HTML file.
fn write_page(arguments: &SweepReport, file: &Path) -> Result<(), Failure> {
    let output = Output { output: Some(file.into()), force: arguments.force };
    output.check(ReportFormat::Html, false)?;
    let sweep = read(&arguments.input)?;
    let page = report::page(&sweep, &arguments.showing.curves);
    let page = page.map_err(|error| Failure::Usage(format!("--curve: {error}")))?;
    output.write(page.as_bytes(), mode_of([&arguments.input]), false)
}
