//! Reclaim by 2.6.36 and the series of 2010: micro-mapped-file-stream, the tables of its reports.
//!
//! Every row is a run with its trace events, of which the report's own tables are made. The counters' window begins when
//! others have the memory that they had before the benchmark.

use super::{Found, Study};
use crate::running::source;
use mmtwin_analysis::Analysis;
use mmtwin_event::{CounterRow, Event, Kind, Order, Sink, Source, Task, Times};
use mmtwin_report::model::{Body, Gain};
use mmtwin_report::tables::duration::{self, Generation};
use mmtwin_report::tables::{vmscan, vmstat_gain, waits};
use mmtwin_scenario::Scenario;
use mmtwin_scenario::published::Histogram;
use mmtwin_twin::run::{Options, State, kinds};

pub(super) const STUDY: Study = Study {
    name: "vmscan-2010",
    scenarios: &[(
        "micro-mapped-file-stream",
        include_str!("../../../../scenarios/published/vmscan-2010/micro-mapped-file-stream.toml"),
    )],
    published: include_str!("../../../../scenarios/published/vmscan-2010/published.toml"),
    run,
    derive: |_| {},
};

/// The process whose last phase is the benchmark.
const STREAM: &str = "stream";

/// Lines of the report's tables that were published.
const LINES: [&str; 48] = [
    "direct_reclaims",
    "direct_pages_scanned",
    "direct_pages_reclaimed",
    "direct_write_file_async",
    "direct_write_anon_async",
    "direct_write_file_sync",
    "direct_write_anon_sync",
    "wake_kswapd_requests",
    "kswapd_wakeups",
    "kswapd_pages_scanned",
    "kswapd_pages_reclaimed",
    "kswapd_write_file_async",
    "kswapd_write_anon_async",
    "kswapd_write_file_sync",
    "kswapd_write_anon_sync",
    "stalled_seconds",
    "awake_seconds",
    "total_scanned",
    "total_reclaimed",
    "scanned_reclaimed",
    "scanned_written",
    "file_scanned_written",
    "stalled_share",
    "awake_share",
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
    "user_system",
    "elapsed",
    "pgalloc_dma",
    "pgalloc_dma32",
    "pgsteal_dma",
    "pgsteal_dma32",
    "pgscan_kswapd_dma",
    "pgscan_kswapd_dma32",
    "pgscan_direct_dma",
    "pgscan_direct_dma32",
    "pageoutrun",
    "allocstall",
];

/// Runs a row.
fn run(scenario: &Scenario, _: Option<&Histogram>) -> Result<Found, String> {
    let mut analysis = Analysis::default();
    analysis.start(&source(scenario, "twin"));
    let options = Options {
        state: State::default(),
        explicit: false,
        trace: None,
        events: kinds(scenario),
        progress: &mut |_| {},
    };
    let ran =
        mmtwin_twin::run::run(scenario, options, &mut Window(&mut analysis)).map_err(|error| error.to_string())?;
    analysis.finish();
    let stream = ran.results.phases.iter().rfind(|phase| phase.process == STREAM);
    let stream = stream.ok_or("the scenario has no stream")?;
    let elapsed = (stream.end - stream.start) as f64 / 1e9;
    // Nobody else waits in reclaim, and it has a CPU of its own: what it does not wait it works.
    let waited = [false, true].map(|conditional| analysis.congestion.of(false, conditional).delayed_us as f64 / 1e6);
    let system = elapsed - waited[0] - waited[1];
    analysis.source.times = Some(Times { user: 0.0, system, elapsed });
    let tables = [
        vmscan::table(&analysis),
        waits::congestion(&analysis),
        duration::table(&analysis.source, Generation::Of2010),
        vmstat_gain::table(&analysis, Gain::RelativeToNew),
    ];
    let mut found = Found::default();
    for table in tables {
        let Body::Metric(rows) = table.body else { continue };
        for row in rows {
            let line = LINES.into_iter().find(|line| *line == row.key).zip(row.value.number());
            found.values.extend(line);
        }
    }
    Ok(found)
}

/// Gives all events on, and counters from when the first phase has ended; at time 0 nothing has run yet.
struct Window<'a>(&'a mut Analysis);

impl Sink for Window<'_> {
    fn start(&mut self, source: &Source) {
        self.0.start(source);
    }
    fn task(&mut self, task: &Task<'_>) {
        self.0.task(task);
    }
    fn order(&self, _: Kind) -> Order {
        Order::Time
    }
    fn event(&mut self, event: &Event<'_>) {
        self.0.event(event);
    }
    fn counters(&mut self, row: &CounterRow<'_>) {
        if row.at > 0 {
            self.0.counters(row);
        }
    }
}
