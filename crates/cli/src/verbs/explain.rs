//! `mmtwin explain`.

use super::{print, styled};
use crate::args::{Explain, Format, Printing};
use crate::{Failure, progress, reading};
use mmtwin::Trace;
use mmtwin_analysis::explain;
use mmtwin_analysis::explain::names::{Asked, Names};
use mmtwin_report::compare::single;
use mmtwin_report::format::chain;
use mmtwin_report::model::InputInfo;
use mmtwin_trace::input::Options;

/// Runs the verb.
pub fn run(arguments: Explain) -> Result<i32, Failure> {
    let Explain { input: path, page, task, group, recorded, format, window } = arguments;
    let filter = window.filter()?;
    let options = Options { recorded, ..Options::default() };
    let asked = page.or(task.map(Asked::Task)).or(group.map(Asked::Group));
    let Some(asked) = asked else { return Err(Failure::Usage("specify --page, --task or --group".into())) };
    let name = path.to_string_lossy().into_owned();
    if name == "-" {
        return Err(Failure::Usage("explain reads its input twice: specify a file, not standard input".into()));
    }
    let mut trace = reading::open_trace(&path, &options)?.only(filter.clone());
    let mut names = Names::new(&asked);
    let outcome = progress::events(&name, |progress| trace.read(&mut names, progress))?;
    reading::warn(&outcome);
    let subject = names.find().map_err(|e| Failure::Error(format!("{name}: {e}")))?;
    // Which steps belong to the subject is known only now.
    let mut explain = explain::Explain::new(&names, subject);
    let mut again = Trace::open_with(&path, options)?.only(filter.clone());
    progress::events(&name, |progress| again.read(&mut explain, progress))?;
    let chain = explain.chain();
    if format == Format::Table {
        styled(|style, out| chain::write(&chain, style, out))?;
        return Ok(0);
    }
    let info = InputInfo {
        name: names.source.name.clone(),
        arm: names.source.arm.clone(),
        kernel: names.source.kernel.clone(),
        lost_events: outcome.lost_events(),
        lost_at_least: outcome.lost_total().0,
        incomplete: mmtwin::cuts(&outcome, &names.source.name),
        events: outcome.events,
        counters_only: false,
        scenario: trace.recording().and_then(|recording| recording.manifest.scenario_hash.clone()),
        filter: (!filter.is_empty()).then(|| format!("only {}", filter.words())),
    };
    let command = format!("mmtwin script {name}");
    let mut report = single(mmtwin_report::explain::report(&chain, info, command));
    report.cross_check = None;
    print(&mut report, &Printing { tables: Vec::new(), format })?;
    Ok(0)
}
