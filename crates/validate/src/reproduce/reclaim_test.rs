//! Tests of reclaim as their reports told of them: a run with its trace events, of which the report's own tables are made.
//!
//! A process called "others" has the memory that others had; it is no part of the test, and the counters' window begins
//! when it has that. All other processes are the test: its time goes from the start of the first to the end of the last, and
//! of its CPU time what programs think is the user's.

use super::Found;
use super::decisions::Count;
use mmtwin::running::source;
use mmtwin_analysis::Analysis;
use mmtwin_event::results::{PhaseResult, Results};
use mmtwin_event::{CounterRow, Event, Kind, Order, Sink, Source, Task, Times};
use mmtwin_report::model::{Body, Table};
use mmtwin_scenario::Scenario;
use mmtwin_scenario::workload::{ActionName, Phase};
use mmtwin_twin::engine::{Options, Ran, State, kinds};

/// Who is no part of the test.
const OTHERS: &str = "others";

/// Lines of waits for congested devices, which every report has.
const WAITS: [&str; 12] = [
    "direct_congest_number",
    "direct_congest_time",
    "direct_congest_full",
    "direct_conditional_number",
    "direct_conditional_time",
    "direct_conditional_full",
    "kswapd_congest_number",
    "kswapd_congest_time",
    "kswapd_congest_full",
    "kswapd_conditional_number",
    "kswapd_conditional_time",
    "kswapd_conditional_full",
];

/// What is made of a run.
pub(super) struct Report {
    /// The report's tables.
    pub tables: fn(&Analysis) -> Vec<Table>,
    /// Lines of them that were published, besides those of waits.
    pub lines: &'static [&'static str],
    /// What the benchmark itself told.
    pub benchmark: fn(&Results, &mut Found),
}

/// Runs a test, beside kernels whose run it may be too.
pub(super) fn run(scenario: &Scenario, rivals: &[&Scenario], report: &Report) -> Result<Found, String> {
    let mut analysis = Analysis::default();
    analysis.start(&source(scenario, "twin"));
    let options = Options {
        state: State::default(),
        explicit: false,
        trace: None,
        events: kinds(scenario),
        progress: &mut |_| {},
    };
    let after_others = scenario.processes.iter().any(|process| process.name == OTHERS);
    let mut count = Count::default();
    let mut window = Window { analysis: &mut analysis, count: &mut count, after_others };
    let ran = mmtwin_twin::engine::run_beside(scenario, rivals, options, &mut window);
    let (ran, alike) = ran.map_err(|error| error.to_string())?;
    if let Some(halted) = &ran.halted {
        // What is measured of a part of a test is no result.
        return Ok(Found { halted: Some(halted.to_string()), alike, ..Found::default() });
    }
    analysis.finish();
    analysis.source.times = Some(times(scenario, &ran).ok_or("only background processes run")?);
    let mut found = Found { decisions: count.decisions(), alike, ..Found::default() };
    for table in (report.tables)(&analysis) {
        let Body::Metric(rows) = table.body else { continue };
        for row in rows {
            let line = report.lines.iter().copied().chain(WAITS).find(|line| *line == row.key).zip(row.value.number());
            found.values.extend(line);
        }
    }
    attempts(&ran.results, &mut found);
    (report.benchmark)(&ran.results, &mut found);
    Ok(found)
}

/// CPU time and elapsed time of the test.
fn times(scenario: &Scenario, ran: &Ran) -> Option<Times> {
    const SECOND: f64 = 1e9;
    let phases = || ran.results.phases.iter().filter(|phase| phase.process != OTHERS);
    let (start, end) = (phases().map(|phase| phase.start).min()?, phases().map(|phase| phase.end).max()?);
    let of_test = |name: &String| name != OTHERS && scenario.processes.iter().any(|process| process.name == *name);
    let cpu: u64 = ran.cpu_time.iter().filter(|(name, _)| of_test(name)).map(|(_, time)| time).sum();
    let user: u64 = phases().map(|phase| thought(scenario, phase)).sum();
    let user = user.min(cpu);
    let seconds = |ns: u64| ns as f64 / SECOND;
    Some(Times { user: seconds(user), system: seconds(cpu - user), elapsed: seconds(end - start) })
}

/// For how long the programs of a phase have computed.
fn thought(scenario: &Scenario, result: &PhaseResult) -> u64 {
    let process = scenario.processes.iter().find(|process| process.name == result.process);
    let mut phases = process.into_iter().flat_map(|process| process.phases.iter().enumerate());
    let is_it = |(number, phase): &(usize, &Phase)| match &phase.name {
        Some(name) => *name == result.phase,
        None => number.to_string() == result.phase,
    };
    let Some((_, phase)) = phases.find(is_it) else { return 0 };
    phase.accesses.iter().zip(&result.accesses).map(|(said, did)| said.think.0 * did.touches).sum()
}

/// Attempts to get blocks, by phase.
fn attempts(results: &Results, found: &mut Found) {
    let name = ActionName::HighOrderAlloc.to_string();
    for phase in &results.phases {
        let made = phase.actions.iter().filter(|action| action.kind == name);
        let made: Vec<_> = made.flat_map(|action| action.attempts.iter().copied()).collect();
        if !made.is_empty() {
            found.attempts.push((phase.phase.clone(), made));
        }
    }
}

/// Notes what part of the attempts got their block in each pass, in percent without fraction; `last`: the line of the pass
/// with the machine at rest.
pub(super) fn successes(found: &mut Found, last: &'static str) {
    for (key, phase) in [("pass_1", "pass-1"), ("pass_2", "pass-2"), (last, "rest")] {
        let attempts = found.attempts.iter().find(|(name, _)| name == phase).map(|(_, attempts)| attempts);
        let percent = attempts.and_then(|attempts| {
            let got = attempts.iter().filter(|attempt| attempt.success).count();
            (100 * got).checked_div(attempts.len())
        });
        found.values.extend(percent.map(|percent| (key, percent as f64)));
    }
}

/// Gives all events on, and counters from when others have their memory; at time 0 nothing has run yet.
struct Window<'a> {
    analysis: &'a mut Analysis,
    count: &'a mut Count,
    after_others: bool,
}

impl Sink for Window<'_> {
    fn start(&mut self, source: &Source) {
        self.analysis.start(source);
    }
    fn task(&mut self, task: &Task<'_>) {
        self.analysis.task(task);
    }
    fn order(&self, _: Kind) -> Order {
        Order::Time
    }
    fn event(&mut self, event: &Event<'_>) {
        self.count.event(event);
        self.analysis.event(event);
    }
    fn counters(&mut self, row: &CounterRow<'_>) {
        self.count.counters(row);
        if row.at > 0 || !self.after_others {
            self.analysis.counters(row);
        }
    }
}
