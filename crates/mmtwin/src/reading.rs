//! From an input to a report.

use crate::filter::{Extent, Filter, Seen};
use crate::{Error, about};
use arrow_array::RecordBatch;
use mmtwin_analysis::Analysis;
use mmtwin_analysis::series::{OverTime, Series};
use mmtwin_event::Sink;
use mmtwin_event::manifest::State;
use mmtwin_event::results::Results;
use mmtwin_report::model::{Finding, InputInfo, Report};
use mmtwin_report::screen::About;
use mmtwin_report::{findings, tables};
use mmtwin_trace::Outcome;
use mmtwin_trace::input::{Input, InputFile, Options};
use mmtwin_trace::recording::Recording;
use mmtwin_trace::write::BatchSink;
use std::ffi::OsStr;

/// A trace of a kernel, whatever wrote it: a recording of mmtwin, `trace.dat` of trace-cmd (versions 6 and 7), the text of
/// ftrace, a copied tracefs directory, a directory or archive of a trace with saved `/proc` files; compressed or not.
/// What it is, its content says, not its name.
///
/// ```
/// # fn main() -> Result<(), mmtwin::Error> {
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/host-6.18.dat");
/// let mut trace = mmtwin::Trace::open(path)?;
/// let report = trace.analyse(&mut |_events| {})?.report();
/// assert!(report.input.kernel.is_some_and(|kernel| kernel.starts_with("6.18")));
/// for finding in &report.findings {
///     println!("{}", finding.sentence);
/// }
/// # Ok(())
/// # }
/// ```
pub struct Trace {
    name: String,
    file: InputFile,
    options: Options,
    filter: Filter,
}

impl Trace {
    /// Opens a file or directory; `-` is standard input.
    ///
    /// # Errors
    /// If it cannot be opened, or is no trace.
    pub fn open(name: impl AsRef<OsStr>) -> Result<Trace, Error> {
        Trace::open_with(name, Options::default())
    }

    /// The same, with what is known of the input and not written in it.
    ///
    /// # Errors
    /// As [`Trace::open`].
    pub fn open_with(name: impl AsRef<OsStr>, options: Options) -> Result<Trace, Error> {
        let file = InputFile::open(&name)?;
        Ok(Trace { name: name.as_ref().to_string_lossy().into_owned(), file, options, filter: Filter::default() })
    }

    /// The same, of which only a part is read.
    pub fn only(self, filter: Filter) -> Trace {
        Trace { filter, ..self }
    }

    /// Of a directory or archive that is no recording: what of it is read, in words.
    pub fn taken(&self) -> Option<&str> {
        self.file.taken()
    }

    /// The recording, if it is one.
    pub fn recording(&self) -> Option<&Recording> {
        self.file.recording()
    }

    /// Gives all events and counters to a sink. `progress` is told the number of events so far, now and then.
    ///
    /// What is damaged is stepped over and told by the [`Outcome`], with what the kernel lost. A pipe or a compressed
    /// file can be read once.
    ///
    /// # Errors
    /// If nothing of it can be read, or the filter lets nothing through.
    pub fn read(&mut self, sink: &mut dyn Sink, progress: &mut dyn FnMut(u64)) -> Result<Outcome, Error> {
        let extent = Extent::of(&self.file);
        self.filter.read(input(&mut self.file, &self.name, &self.options)?, extent, sink, progress)
    }

    /// The same, with what was seen of the whole if only a part is read.
    fn read_part(
        &mut self,
        sink: &mut dyn Sink,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(Outcome, Option<Seen>), Error> {
        if self.filter.is_empty() {
            return Ok((self.read(sink, progress)?, None));
        }
        let extent = Extent::of(&self.file);
        let input = input(&mut self.file, &self.name, &self.options)?;
        let (outcome, seen) = self.filter.read_part(input, extent, sink, progress)?;
        Ok((outcome, Some(seen)))
    }

    /// Reads all of it into statistics, of which [`Analysed::report`] makes tables. `progress` as in [`Trace::read`].
    ///
    /// # Errors
    /// As [`Trace::read`].
    pub fn analyse(&mut self, progress: &mut dyn FnMut(u64)) -> Result<Analysed, Error> {
        let mut analysis = Analysis::default();
        let (outcome, seen) = self.read_part(&mut analysis, progress)?;
        Ok(self.analysed(analysis, outcome, seen))
    }

    /// The same, with what happened over time: for pictures, in bounded memory.
    ///
    /// # Errors
    /// As [`Trace::read`].
    pub fn analyse_over_time(&mut self, progress: &mut dyn FnMut(u64)) -> Result<(Analysed, Series), Error> {
        let mut over_time = OverTime::default();
        let (outcome, seen) = self.read_part(&mut over_time, progress)?;
        let OverTime { analysis, series } = over_time;
        Ok((self.analysed(analysis, outcome, seen), series))
    }

    /// Gives the rows of one of its tables as record batches of at most 65,536 rows: of an event by its name
    /// (`mm_vmscan_direct_reclaim_begin`), or `counters.SOURCE`, `tasks`, `lost`, `calls`, with the columns of the Parquet
    /// file that `mmtwin convert` writes for it. Returns all tables with their numbers of rows, sorted by name, too.
    /// `progress` as in [`Trace::read`].
    ///
    /// # Errors
    /// As [`Trace::read`].
    pub fn rows(
        &mut self,
        table: &str,
        take: &mut dyn FnMut(RecordBatch),
        progress: &mut dyn FnMut(u64),
    ) -> Result<(Outcome, Vec<(String, u64)>), Error> {
        let extent = Extent::of(&self.file);
        let input = input(&mut self.file, &self.name, &self.options)?;
        let mut sink = BatchSink::new(table, input.formats.clone(), take);
        let outcome = self.filter.read(input, extent, &mut sink, progress)?;
        Ok((outcome, sink.close()?))
    }

    /// Statistics, with what the input says of itself.
    fn analysed(&self, mut analysis: Analysis, outcome: Outcome, seen: Option<Seen>) -> Analysed {
        let recording = self.recording();
        let mut about = recording.map_or_else(About::default, about::of_recording);
        if let Some(seen) = &seen {
            analysis.is_part_of(seen.window, &seen.kinds);
            (about.start, about.end) = seen.window.unzip();
            about.filter = Some(self.filter.note());
        }
        // What a workload achieved is known of all of it.
        let results = recording.and_then(|recording| recording.results.clone()).filter(|_| seen.is_none());
        let resolved = recording.and_then(|recording| recording.manifest.scenario.clone());
        let today = resolved.as_ref().and_then(|value| mmtwin_scenario::from_json(value).ok());
        let stored = recording.and_then(|recording| recording.manifest.scenario_hash.clone());
        Analysed {
            about,
            analysis,
            outcome,
            results,
            state: recording.and_then(|recording| recording.state.clone()),
            scenario: today.map(|scenario| scenario.hash()).or(stored),
            resolved,
        }
    }

    /// Its name as it was given.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// An input under the name that the user gave it: an archive is unpacked into a directory that will be gone.
fn input<'a>(file: &'a mut InputFile, name: &str, options: &Options) -> Result<Input<'a>, Error> {
    let mut input = file.input(options)?;
    if name != "-" {
        input.source.name = name.into();
    }
    Ok(input)
}

/// An input, analysed.
pub struct Analysed {
    /// All statistics.
    pub analysis: Analysis,
    /// What the reader had to say: events, losses, warnings.
    pub outcome: Outcome,
    /// What the workload of a scenario achieved.
    pub results: Option<Results>,
    /// What the machine held when the workload began.
    pub state: Option<State>,
    /// Hash of the scenario that ran, with the keys of today: an older recording has that of the same scenario today.
    pub scenario: Option<String>,
    /// The scenario itself, resolved, as it was recorded; [`scenarios::of_today`](crate::scenarios::of_today) translates it.
    pub resolved: Option<serde_json::Value>,
    /// What else the input says of itself.
    pub about: About,
}

impl Analysed {
    /// All tables and findings, and sums over events beside the counters that should agree with them.
    pub fn report(&self) -> Report {
        let source = &self.analysis.source;
        let incomplete = cuts(&self.outcome, &source.name);
        let mut cross_check = Vec::new();
        // Counters and events of a part are not those of the same things.
        if self.about.filter.is_none() {
            cross_check.extend(tables::cross_check::reclaim(&self.analysis));
            cross_check.extend(tables::cross_check::subjects(&self.analysis));
        }
        let mut all = self.results.as_ref().map_or_else(Vec::new, tables::workload::tables);
        all.extend(tables::reclaim_tables(&self.analysis));
        all.extend(tables::subject_tables(&self.analysis));
        let mut found: Vec<Finding> = incomplete_input(&incomplete, &source.name).into_iter().collect();
        found.extend(self.results.iter().flat_map(|results| tables::workload::findings(results, &source.name)));
        found.extend(findings::of(&self.analysis));
        Report {
            input: InputInfo {
                name: source.name.clone(),
                arm: source.arm.clone(),
                kernel: source.kernel.clone(),
                lost_events: self.outcome.lost_events(),
                lost_at_least: self.outcome.lost_total().0,
                incomplete,
                events: self.outcome.events,
                counters_only: self.outcome.events == 0
                    && self.outcome.lost_total() == (0, 0)
                    && self.analysis.recorded.is_empty()
                    && !self.analysis.counters.is_empty(),
                scenario: self.scenario.clone(),
                filter: self.about.filter.clone(),
            },
            findings: found,
            cross_check,
            tables: all,
        }
    }
}

impl Analysed {
    /// The report with a row for each quantity, by its stable key: see [`mmtwin_report::quantities`]. Reclaim has a table
    /// for each reclaimer.
    pub fn quantities(&self) -> Report {
        let mut report = self.report();
        report.tables.extend(tables::reclaim::per_context(&self.analysis));
        mmtwin_report::quantities::of(&self.analysis, report)
    }
}

/// What an input lacks, each with its place in it.
pub fn cuts(outcome: &Outcome, name: &str) -> Vec<String> {
    let inside = |cut: String| match cut.strip_prefix(name).map(|rest| rest.trim_start_matches([':', '/', ' '])) {
        Some(rest) if !rest.is_empty() => rest.to_string(),
        _ => cut,
    };
    outcome.cuts().into_iter().map(inside).collect()
}

/// An incomplete input: every sum may be too small.
fn incomplete_input(cuts: &[String], name: &str) -> Option<Finding> {
    let more = match cuts.len() {
        0 => return None,
        1 => String::new(),
        n => format!(", and {} more", n - 1),
    };
    Some(Finding {
        key: "input_incomplete".into(),
        severity: 96,
        sentence: format!("the input is incomplete: {}{more}.", cuts[0]),
        detail: "It is not known how much is missing: sums are too small, and open intervals have no end.".into(),
        command: format!("mmtwin report {name} --table lost-events"),
        ..Finding::default()
    })
}
