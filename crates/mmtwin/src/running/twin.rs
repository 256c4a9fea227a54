//! Running a scenario on the twin: one stream of events and counters, given to whoever wants it.

use super::as_recorded::AsRecorded;
use crate::{Analysed, Error, about};
use mmtwin_analysis::Analysis;
use mmtwin_event::manifest::{End, Run, SCHEMA_VERSION};
use mmtwin_event::{CounterRow, Event, Kind, NullSink, Order, Sink, Source, Task, era};
use mmtwin_report::screen::About;
use mmtwin_scenario::Scenario;
use mmtwin_trace::Outcome;
use mmtwin_trace::access::AccessTrace;
use mmtwin_trace::recording::EventWriter;
use mmtwin_twin::build;
use mmtwin_twin::engine::{Options, Ran, RunError, State, check_state, kinds};
use mmtwin_twin::time::determinism::{Digest, Hashing};
use mmtwin_twin::workload::trace::Trace;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Program and version, as recordings name them.
const TOOL: &str = concat!("mmtwin ", env!("CARGO_PKG_VERSION"));

/// A run on the twin.
pub struct Simulated {
    /// Its statistics, as of any input.
    pub analysed: Analysed,
    /// The run itself.
    pub ran: Ran,
}

/// Gives everything to each of its sinks.
struct All<'s>(Vec<&'s mut dyn Sink>);

impl Sink for All<'_> {
    fn start(&mut self, source: &Source) {
        self.0.iter_mut().for_each(|sink| sink.start(source));
    }
    fn task(&mut self, task: &Task<'_>) {
        self.0.iter_mut().for_each(|sink| sink.task(task));
    }
    fn order(&self, _: Kind) -> Order {
        Order::Time
    }
    fn event(&mut self, event: &Event<'_>) {
        self.0.iter_mut().for_each(|sink| sink.event(event));
    }
    fn counters(&mut self, row: &CounterRow<'_>) {
        self.0.iter_mut().for_each(|sink| sink.counters(row));
    }
    fn finish(&mut self) {
        self.0.iter_mut().for_each(|sink| sink.finish());
    }
}

/// What the twin is asked for besides the scenario.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request<'a> {
    /// Name of the input in reports.
    pub name: &'a str,
    /// Recording to write, and whether one that is there is replaced.
    pub output: Option<(&'a Path, bool)>,
    /// Every access by itself.
    pub explicit: bool,
    /// Accesses that are replayed.
    pub trace: Option<&'a Trace>,
    /// Run twice and compare.
    pub check_determinism: bool,
    /// What the run begins with; `None`: a machine just booted.
    pub state: Option<&'a State>,
}

/// Runs a scenario on the twin. `progress` is told the virtual time now and then, in nanoseconds from the start of the
/// run.
///
/// A run in which memory runs out, or which the twin ends because it gets nowhere, is a result: see
/// [`Results::ending`](mmtwin_event::results::Results).
///
/// # Errors
/// If the twin has no model of what the scenario or the request asks for, if a recording cannot be written, or if two
/// runs that are to be compared differ.
pub fn run(scenario: &Scenario, request: Request<'_>, progress: &mut dyn FnMut(u64)) -> Result<Simulated, Error> {
    // Refused before a recording is begun.
    build::check(scenario).map_err(RunError::from)?;
    request.state.map_or(Ok(()), |state| check_state(state, &scenario.machine)).map_err(RunError::from)?;
    let first = match request.check_determinism {
        true => Some(digest(scenario, &request)?),
        false => None,
    };
    let mut writer = match request.output {
        Some((path, force)) => Some(writer(scenario, path, force)?),
        None => None,
    };
    let mut analysis = Analysis::default();
    let mut counting = Counting(0);
    let ran = {
        let mut watching = All(vec![&mut analysis, &mut counting]);
        let mut watched = AsRecorded::new(scenario.kernel.events.era(), &mut watching);
        let mut sinks: Vec<&mut dyn Sink> = vec![&mut watched];
        sinks.extend(writer.as_mut().map(|writer| writer as &mut dyn Sink));
        let mut all = All(sinks);
        all.start(&source(scenario, request.name));
        let mut hashing = Hashing::new(&mut all, first.clone());
        let ran = mmtwin_twin::engine::run(scenario, options(scenario, &request, progress), &mut hashing)?;
        let compared = hashing.finish();
        if first.is_some() {
            compared?;
        }
        all.finish();
        ran
    };
    if let Some(mut writer) = writer {
        writer.results(&ran.results)?;
        writer.close(End { schema_version: SCHEMA_VERSION, end: ran.end, times: Some(ran.times), ..End::default() })?;
    }
    analysis.source.times = Some(ran.times);
    let outcome = Outcome { events: counting.0, ..Outcome::default() };
    let results = Some(ran.results.clone());
    let (scenario, resolved) = (Some(scenario.hash()), scenario.to_json());
    let about = About { limits: about::limits(&resolved), ..About::default() };
    let resolved = Some(resolved);
    Ok(Simulated { analysed: Analysed { analysis, outcome, results, state: None, scenario, resolved, about }, ran })
}

fn options<'a>(scenario: &Scenario, request: &Request<'_>, progress: &'a mut dyn FnMut(u64)) -> Options<'a> {
    let (state, trace) = (request.state.cloned().unwrap_or_default(), request.trace.cloned());
    Options { state, explicit: request.explicit, trace, events: kinds(scenario), progress }
}

/// Reads an access trace for a scenario.
///
/// # Errors
/// If it cannot be read, or a row names a page that the scenario does not have.
pub fn access_trace(path: &Path, scenario: &Scenario) -> Result<Trace, Error> {
    let (mut rows, mut trace) = (AccessTrace::open_path(path)?, Trace::new(scenario));
    while let Some(access) = rows.next() {
        let access = access?;
        let added = trace.add(access.time, access.pid, access.page, access.write);
        added.map_err(|source| Error::Access { place: rows.place(), source })?;
    }
    Ok(trace)
}

/// Counts the events that pass.
struct Counting(u64);

impl Sink for Counting {
    fn event(&mut self, _: &Event<'_>) {
        self.0 += 1;
    }
}

/// The digest of a run that nobody watches.
fn digest(scenario: &Scenario, request: &Request<'_>) -> Result<Digest, Error> {
    let mut sink = NullSink;
    let mut hashing = Hashing::new(&mut sink, None);
    mmtwin_twin::engine::run(scenario, options(scenario, request, &mut |_| {}), &mut hashing)?;
    Ok(hashing.finish()?)
}

fn writer(scenario: &Scenario, path: &Path, force: bool) -> Result<EventWriter, Error> {
    let manifest = build::manifest(scenario, TOOL);
    let mut writer = EventWriter::create(path, force, manifest, scenario.kernel.events.era(), kinds(scenario))?;
    let started = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let (schema_version, pid, tool) = (SCHEMA_VERSION, std::process::id(), TOOL.into());
    writer.run(&Run { schema_version, started, host, pid, tool })?;
    Ok(writer)
}

/// What a run on the twin is, as inputs say it of themselves.
pub fn source(scenario: &Scenario, name: &str) -> Source {
    let full = |kind: &Kind| {
        era::of_kind(scenario.kernel.events.era(), *kind).map(|found| format!("{}:{}", found.system, found.name))
    };
    Source {
        name: name.into(),
        arm: "twin".into(),
        kernel: Some(scenario.kernel.version.clone()),
        cpus: scenario.machine.cpus.len() as u32,
        nodes: scenario.machine.nodes.len() as u32,
        cpu_nodes: scenario.machine.cpus.iter().map(|cpu| cpu.node).collect(),
        clock: Some("mono".into()),
        enabled: Some(kinds(scenario).iter().filter_map(full).collect()),
        dirty_bytes: scenario.kernel.sysctl.vm_dirty_bytes.filter(|bytes| *bytes > 0),
        ..Source::default()
    }
}
