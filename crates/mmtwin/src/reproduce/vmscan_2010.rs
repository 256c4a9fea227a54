//! Reclaim by 2.6.36 and the series of 2010: micro-mapped-file-stream, the tables of its reports.
//!
//! Every row is a run with its trace events, of which the report's own tables are made. The counters' window begins when
//! others have the memory that they had before the benchmark.

use super::{Found, Study};
use crate::running::source;
use mmtwin_analysis::Analysis;
use mmtwin_event::vocabulary::WritebackCongestionWait;
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
    let mut window = Window { analysis: &mut analysis, stream: None, waited_us: 0 };
    let ran = mmtwin_twin::run::run(scenario, options, &mut window).map_err(|error| error.to_string())?;
    let waited = window.waited_us as f64 / 1e6;
    analysis.finish();
    let stream = ran.results.phases.iter().rfind(|phase| phase.process == STREAM);
    let stream = stream.ok_or("the scenario has no stream")?;
    let elapsed = (stream.end - stream.start) as f64 / 1e9;
    // It has a CPU of its own: when it does not wait it works.
    analysis.source.times = Some(Times { user: 0.0, system: elapsed - waited, elapsed });
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
struct Window<'a> {
    analysis: &'a mut Analysis,
    /// Thread of the benchmark.
    stream: Option<i32>,
    /// For how long it has waited.
    waited_us: u64,
}

impl Sink for Window<'_> {
    fn start(&mut self, source: &Source) {
        self.analysis.start(source);
    }
    fn task(&mut self, task: &Task<'_>) {
        if task.comm == STREAM.as_bytes() {
            self.stream = Some(task.pid);
        }
        self.analysis.task(task);
    }
    fn order(&self, _: Kind) -> Order {
        Order::Time
    }
    fn event(&mut self, event: &Event<'_>) {
        // The other kind of wait never lasts here.
        if event.kind == Kind::WritebackCongestionWait && self.stream == Some(event.pid) {
            self.waited_us += u64::from(event.typed::<WritebackCongestionWait>().usec_delayed);
        }
        self.analysis.event(event);
    }
    fn counters(&mut self, row: &CounterRow<'_>) {
        if row.at > 0 {
            self.analysis.counters(row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mmtwin_scenario::published::Published;
    use std::path::Path;

    /// A smaller file in what is left of a fuller machine.
    fn found(release: &str) -> Found {
        let sets = [
            format!("kernel.release={release}"),
            "process.others.phase.start.action.#0.count=690_000".into(),
            "process.stream.region.file.size=1 GiB".into(),
            "process.stream.phase.stream.access.#0.count=262_144".into(),
        ];
        let (name, text) = STUDY.scenarios[0];
        let scenario = mmtwin_scenario::parse(name, text, Path::new(""), &sets).unwrap_or_else(|e| panic!("{e}"));
        run(&scenario, None).unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn tables_of_a_run_agree_with_each_other() {
        let (before, after) = (found("2.6.36"), found("2.6.37"));
        for of in [&before, &after].map(|found| &found.values) {
            let sum = |keys: &[&str]| keys.iter().map(|key| of[key]).sum::<f64>();
            assert_eq!(of["kswapd_pages_scanned"], sum(&["pgscan_kswapd_dma", "pgscan_kswapd_dma32"]));
            assert_eq!(of["direct_pages_scanned"], sum(&["pgscan_direct_dma", "pgscan_direct_dma32"]));
            assert_eq!(of["total_reclaimed"], sum(&["pgsteal_dma", "pgsteal_dma32"]));
            assert_eq!(of["direct_reclaims"], of["allocstall"]);
            // What is mapped and was used is looked at twice, and some of it stays.
            assert!((35.0..=50.0).contains(&of["scanned_reclaimed"]), "{of:?}");
            assert!(of["wake_kswapd_requests"] > 100.0 * of["kswapd_wakeups"], "{of:?}");
        }
        let (before, after) = (before.values, after.values);
        assert!(before["direct_congest_time"] > 0.0 && before["direct_conditional_number"] == 0.0, "{before:?}");
        let waited = before["elapsed"] - before["user_system"];
        assert!((waited * 1000.0 - before["direct_congest_time"]).abs() < 0.01, "{before:?}");
        assert!(after["direct_congest_number"] == 0.0 && after["direct_conditional_number"] > 0.0, "{after:?}");
        assert!(after["direct_pages_scanned"] > before["direct_pages_scanned"] && after["elapsed"] < before["elapsed"]);
    }

    /// The figures are those that the report's tests recompute.
    #[test]
    fn published_figures_are_the_published_ones() {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../report/tests/data/published.tsv");
        let data = std::fs::read_to_string(data).unwrap_or_else(|e| panic!("{e}"));
        let published = Published::parse(STUDY.name, STUDY.published).unwrap_or_else(|e| panic!("{e}"));
        let mut compared = 0;
        for layout in published.layouts.iter().filter(|layout| !layout.key.ends_with("vmstat")) {
            // "Table 2, X86-64: ..." is table 2.
            let number = layout.title.trim_start_matches("Table ").split(',').next().unwrap_or_default();
            let mut lines = data.lines().skip_while(|line| !line.starts_with(&format!("#table\t{number}\t")));
            lines.find(|line| line.starts_with("row\t")).unwrap_or_else(|| panic!("no table {number}"));
            for (metric, line) in layout.metrics.iter().zip(lines) {
                let cells = line.split('\t').skip(1).map(|cell| cell.trim_end_matches(['%', 'm', 's']));
                for (row, cell) in layout.rows.iter().zip(cells) {
                    let row = published.rows.iter().find(|known| known.key == *row).map(|row| row.values[metric]);
                    assert_eq!(row, cell.parse().ok(), "table {number}, {metric}");
                    compared += 1;
                }
            }
        }
        assert_eq!(compared, 2 * 4 * (24 + 12 + 2));
    }
}
