//! The strip of time: pressure, reclaim, refaults, usage against limit, free memory against the watermarks.
//!
//! Rates of counters are spread evenly between two samples. A row that is zero all the time is omitted; what was not
//! recorded is named below.

use super::blocks::{self, Pick, levels, most, rates, sum};
use super::time::{Range, counters_have_the_clock, range};
use super::{Line, Subject, at_most, cut};
use crate::format::grid::Tone;
use crate::units;
use mmtwin_analysis::timeline::Timeline;
use mmtwin_event::Kind;

/// Most cgroups with a row.
const CGROUPS: usize = 2;
/// Longest label.
const LABEL: usize = 20;
/// Fewest blocks.
const FEWEST: usize = 12;
const GAP: usize = 2;
/// Most rows.
const ROWS: usize = 8;
/// What is added to the name of a cgroup for its memory pressure.
const PSI: &str = " PSI some";

/// One row of the strip.
struct Row {
    label: String,
    values: Vec<Option<f64>>,
    /// Height of a full block.
    full: f64,
    note: String,
}

/// What rows are made of: the subject, its time, and into how many parts it is divided.
struct Strip<'a> {
    subject: &'a Subject<'a>,
    range: Range,
    parts: usize,
}

pub(super) fn lines(subject: &Subject<'_>, width: usize) -> Vec<Line> {
    let Some(range) = range(subject) else { return absent(subject, width) };
    // Notes decide how many blocks fit, and depend on them a little.
    let labels = |rows: &[Row]| rows.iter().map(|row| row.label.chars().count()).max().unwrap_or(0).min(LABEL);
    let notes = |rows: &[Row]| rows.iter().map(|row| row.note.chars().count()).max().unwrap_or(0);
    let mut parts = width;
    let rows = loop {
        let rows = Strip { subject, range, parts }.rows();
        let fits = width.saturating_sub(labels(&rows) + notes(&rows) + 2 * GAP).max(FEWEST);
        if parts <= fits {
            break rows;
        }
        parts = fits;
    };
    let mut lines = Vec::new();
    if !rows.is_empty() {
        let block = units::time(range.length() / parts as f64);
        lines.push(Line::new(Tone::Faint, format!("Over {}, {block} per block:", units::time(range.length()))));
        let label = labels(&rows);
        lines.extend(rows.iter().map(|row| {
            let text = format!(
                "{:<label$}  {:<parts$}  {}",
                cut(&row.label, label),
                blocks::row(&row.values, row.full),
                row.note
            );
            Line::new(Tone::Plain, cut(text.trim_end(), width))
        }));
    }
    lines.extend(absent(subject, width));
    lines
}

impl Strip<'_> {
    fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        rows.extend(self.pressure("memory PSI some", "memory_some_total"));
        rows.extend(self.pressure("io PSI some", "io_some_total"));
        rows.extend(self.stalled());
        rows.extend(self.reclaimed());
        rows.extend(self.refaults());
        rows.extend(self.migrated());
        let mut cgroups = self.cgroups();
        let free = self.free();
        let room = ROWS.saturating_sub(rows.len() + usize::from(free.is_some()));
        cgroups.truncate(room);
        rows.extend(cgroups);
        rows.extend(free);
        rows
    }

    /// Growth per second of a counter of vmstat or psi.
    fn rates(&self, source: &str, key: &str, name: &str) -> Vec<Option<f64>> {
        let known = counters_have_the_clock(self.subject);
        let points = if known { self.subject.analysis.counters.series(source, key, name) } else { Vec::new() };
        rates(&points, self.range, self.parts)
    }

    fn vmstat(&self, names: &[&str]) -> Vec<Option<f64>> {
        sum(names.iter().map(|name| self.rates("vmstat", "", name)))
    }

    /// A row of what is above 0 at some time, as high as its largest value.
    fn row(&self, label: &str, values: Vec<Option<f64>>, note: impl Fn(f64) -> String) -> Option<Row> {
        let full = most(&values).filter(|most| *most > 0.0)?;
        Some(Row { label: label.into(), values, full, note: format!("max {}", note(full)) })
    }

    /// Share of the time in which some task waited. The kernel counts microseconds.
    fn pressure(&self, label: &str, name: &str) -> Option<Row> {
        let shares = self.rates("psi", "", name).into_iter().map(|rate| Some(rate? / 1e4)).collect();
        self.row(label, shares, units::percent)
    }

    /// The same of a cgroup.
    fn pressure_of(&self, cgroup: &str) -> Option<Row> {
        let rates = self.rates("cgroup", cgroup, "memory.pressure.some_total");
        let shares = rates.into_iter().map(|rate| Some(rate? / 1e4)).collect();
        let label = cut(&self.subject.analysis.source.containers.short(cgroup), LABEL - PSI.len());
        self.row(&format!("{label}{PSI}"), shares, units::percent)
    }

    /// Events have the time of everything, samples that of the end of an interval.
    fn timeline(&self, line: &Timeline, per_second: f64) -> Vec<Option<f64>> {
        let part = |i| {
            let (start, end) = self.range.part(i, self.parts);
            Some(line.between(start, end) * per_second / (end - start).max(1) as f64)
        };
        (0..self.parts).map(part).collect()
    }

    fn stalled(&self) -> Option<Row> {
        let tasks = self.timeline(&self.subject.analysis.reclaim.stalled_over_time, 1.0);
        self.row("stalled in reclaim", tasks, |tasks| format!("{} tasks", units::three(tasks)))
    }

    fn reclaimed(&self) -> Option<Row> {
        let analysis = self.subject.analysis;
        let whole = analysis.recorded.has(Kind::MmVmscanLruShrinkInactive) && !analysis.losses.any();
        let pages = if whole {
            self.timeline(&analysis.reclaim.reclaimed_over_time, 1e9)
        } else {
            let names = names(self.subject, |name| name == "pgsteal_anon" || name == "pgsteal_file");
            let by_reclaimer = || names_of_steals(self.subject);
            let names = if names.is_empty() { by_reclaimer() } else { names };
            self.vmstat(&names)
        };
        self.row("reclaimed", pages, |pages| format!("{}/s", units::pages(pages)))
    }

    fn refaults(&self) -> Option<Row> {
        let names = names(self.subject, |name| name.starts_with("workingset_refault"));
        self.row("refaults", self.vmstat(&names), |pages| format!("{}/s", units::count(pages)))
    }

    fn migrated(&self) -> Option<Row> {
        let pages = self.vmstat(&["numa_pages_migrated"]);
        self.row("NUMA migrations", pages, |pages| format!("{}/s", units::pages(pages)))
    }

    /// Usage of the cgroups that are nearest to their limit, or largest.
    fn cgroups(&self) -> Vec<Row> {
        let (counters, containers) = (&self.subject.analysis.counters, &self.subject.analysis.source.containers);
        let mut rows: Vec<(f64, &str, Row)> = Vec::new();
        for key in counters.keys("cgroup") {
            let series = ["memory.current", "memory.usage_in_bytes"].map(|name| counters.series("cgroup", key, name));
            let Some(points) = series.into_iter().find(|points| !points.is_empty()) else { continue };
            let values = levels(&points, self.range, self.parts, Pick::Most);
            let Some(peak) = most(&values).filter(|peak| *peak > 0.0) else { continue };
            let limit = limit(self.subject, key);
            let note = match limit {
                Some(limit) => format!("max {} of {}", units::bytes(peak), units::bytes(limit)),
                None => format!("max {}, no limit", units::bytes(peak)),
            };
            let full = limit.map_or(peak, |limit| limit.max(peak));
            // Where there is no limit, size alone says little.
            let weight = limit.map_or(peak / 1e30, |limit| peak / limit.max(1.0));
            rows.push((weight, key, Row { label: containers.short(key), values, full, note }));
        }
        rows.sort_by(|(a, ..), (b, ..)| b.total_cmp(a));
        let pressure = rows.first().and_then(|(_, key, _)| self.pressure_of(key));
        pressure.into_iter().chain(rows.into_iter().take(CGROUPS).map(|(.., row)| row)).collect()
    }

    /// Free memory beside the sum of the low watermarks, where kswapd is woken.
    fn free(&self) -> Option<Row> {
        if !counters_have_the_clock(self.subject) {
            return None;
        }
        let counters = &self.subject.analysis.counters;
        let points = counters.series("vmstat", "", "nr_free_pages");
        let values = levels(&points, self.range, self.parts, Pick::Least);
        let full = most(&values)?;
        let least = values.iter().flatten().copied().reduce(f64::min)?;
        let zones = counters.keys("zoneinfo").into_iter().filter(|key| key.contains('/'));
        let low = zones.filter_map(|zone| counters.last("zoneinfo", zone, "low")).reduce(u64::saturating_add);
        let low = low.map_or(String::new(), |low| format!(", low {}", units::pages(low as f64)));
        Some(Row { label: "free memory".into(), values, full, note: format!("min {}{low}", units::pages(least)) })
    }
}

/// Memory limit of a cgroup in bytes; `None` if it has none.
pub(crate) fn limit(subject: &Subject<'_>, key: &str) -> Option<f64> {
    /// What version 1 shows where there is none: the largest number of whole pages.
    const NONE: u64 = 1 << 62;
    let counters = &subject.analysis.counters;
    let counted = ["memory.max", "memory.limit_in_bytes"].iter().find_map(|name| counters.last("cgroup", key, name));
    let limit = counted.or_else(|| subject.about.limits.get(key).copied());
    limit.filter(|limit| *limit < NONE).map(|limit| limit as f64)
}

/// Counters of vmstat that this input has.
fn names<'a>(subject: &Subject<'a>, wanted: impl Fn(&str) -> bool) -> Vec<&'a str> {
    let sampled = subject.analysis.counters.sampled("vmstat", "");
    sampled.into_iter().flat_map(|s| &s.names).map(String::as_str).filter(|name| wanted(name)).collect()
}

/// `pgsteal_kswapd` and `pgsteal_direct`, by zone before 4.8.
fn names_of_steals<'a>(subject: &Subject<'a>) -> Vec<&'a str> {
    names(subject, |name| name.starts_with("pgsteal_kswapd") || name.starts_with("pgsteal_direct"))
}

/// What matters and was not recorded, or could not be read.
fn absent(subject: &Subject<'_>, width: usize) -> Vec<Line> {
    let mut lines = missing(subject, width);
    let names: Vec<&str> = subject.analysis.recorded.not_understood().map(|(name, _)| name).collect();
    if !names.is_empty() {
        let count: u64 = subject.analysis.recorded.not_understood().map(|(_, count)| count).sum();
        let text = format!("not understood: {} of this kernel ({})", names.join(", "), units::counted(count, "event"));
        lines.extend(at_most(&text, width, 2).into_iter().map(|text| Line::new(Tone::Faint, text)));
    }
    lines
}

/// One line of what matters and was not recorded.
fn missing(subject: &Subject<'_>, width: usize) -> Vec<Line> {
    let analysis = subject.analysis;
    let counters = &analysis.counters;
    let mut what = Vec::new();
    let arm = subject.report.input.arm.as_str();
    // Counters of the machine are there then, and were not asked for.
    let filtered = subject.report.input.filter.is_some() && arm != "import";
    let of_cgroup = |key: &&str| counters.delta("cgroup", key, "memory.pressure.some_total").is_some();
    let pressure = !counters.keys("psi").is_empty() || counters.keys("cgroup").iter().any(of_cgroup);
    if !pressure && !filtered && arm != "twin" {
        what.push("PSI");
    }
    match (counters.has_change("vmstat", ""), filtered) {
        (true, _) if counters.seconds("vmstat", "").is_none() || !counters_have_the_clock(subject) => {
            what.push("counters over time");
        }
        (true, _) => {}
        (false, true) if counters.sampled("vmstat", "").is_some() => what.push("two samples of counters in this time"),
        (false, true) => {}
        (false, false) => what.extend(["refaults", "free memory"]),
    }
    const EVENTS: &str = "reclaim events";
    if !analysis.recorded.has_any(&[Kind::MmVmscanLruShrinkInactive, Kind::MmVmscanDirectReclaimBegin]) {
        what.push(EVENTS);
    }
    if what.is_empty() {
        return Vec::new();
    }
    let how = match arm {
        "import" => " (`mmtwin record` has them)",
        "host" if what == ["PSI"] => " (boot with psi=1)",
        "twin" | "lab" if filtered => "",
        "twin" | "lab" => match what[..] {
            [EVENTS] => " (`run.events` of the scenario chooses)",
            [.., EVENTS] => " (`run.events` and `run.counters` of the scenario choose)",
            _ => " (`run.counters` of the scenario chooses)",
        },
        _ => "",
    };
    let text = format!("not recorded: {}{how}", what.join(", "));
    at_most(&text, width, 2).into_iter().map(|text| Line::new(Tone::Faint, text)).collect()
}
