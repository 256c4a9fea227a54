//! `overview`: the few quantities that a person looks at first, in that order: time, waiting, reclaim, what came back,
//! faults, memory that ran out, compaction, NUMA. Rates, so that inputs of different length can be compared.

use crate::model::Better::{Higher, Lower, Neutral};
use crate::model::{Better, Body, Cell, Gain, Metric, Na, Table};
use mmtwin_analysis::Analysis;
use mmtwin_analysis::findings::elapsed;
use mmtwin_analysis::tasks::Context;
use mmtwin_event::Kind;

/// Name of the table.
pub const NAME: &str = "overview";

struct Rows<'a> {
    a: &'a Analysis,
    /// Seconds that events cover, and counters.
    seconds: Option<f64>,
    sampled: Option<f64>,
    rows: Vec<Metric>,
}

impl Rows<'_> {
    fn add(&mut self, key: &str, label: &str, unit: &'static str, better: Better, value: Cell) {
        let (key, label, unit) = (key.into(), label.into(), unit.into());
        self.rows.push(Metric { key, label, unit, better, gain: Gain::None, decimals: None, value, published: None });
    }

    /// Growth per second of the sum of counters that are all there, or of the one with a suffix for each zone.
    fn rate(&mut self, key: &str, label: &str, unit: &'static str, better: Better, grown: Option<u64>) {
        let rate = grown.zip(self.sampled).map(|(n, seconds)| n as f64 / seconds);
        self.add(key, label, unit, better, Cell::float(rate));
    }

    fn counter(&mut self, key: &str, label: &str, unit: &'static str, better: Better, name: &str) {
        let grown = self.a.counters.vmstat_prefix(name);
        self.rate(key, label, unit, better, grown);
    }

    /// Share of one counter in the sum with another.
    fn share(&mut self, key: &str, label: &str, better: Better, part: Option<u64>, whole: Option<u64>) {
        let share = part.zip(whole).filter(|(_, whole)| *whole > 0).map(|(p, w)| p as f64 * 100.0 / w as f64);
        let value = share.map_or(Cell::Na(Na::NotRecorded), Cell::Float);
        self.add(key, label, "%", better, value);
    }
}

/// The table; what was not recorded is n/a.
pub(super) fn table(a: &Analysis) -> Table {
    let seconds = a.span.length().filter(|ns| *ns > 0).map(|ns| ns as f64 / 1e9);
    let sampled = a.counters.seconds("vmstat", "");
    let mut rows = Rows { a, seconds, sampled, rows: Vec::new() };
    time(&mut rows);
    waiting(&mut rows);
    reclaim(&mut rows);
    faults(&mut rows);
    placement(&mut rows);
    let note = "Rates are over the time that was recorded; what was not recorded is n/a.";
    Table { name: NAME.into(), title: "Overview".into(), note: note.into(), body: Body::Metric(rows.rows) }
}

fn time(rows: &mut Rows<'_>) {
    let times = rows.a.source.times.filter(|times| times.elapsed > 0.0);
    let took = times.map(|times| times.elapsed).or_else(|| elapsed(rows.a).map(|ns| ns as f64 / 1e9));
    rows.add("elapsed", "elapsed", "s", Lower, Cell::float(took));
    let cpu = times.filter(|times| times.user + times.system > 0.0);
    rows.add("cpu_user", "CPU time, user", "s", Neutral, Cell::float(cpu.map(|times| times.user)));
    rows.add("cpu_system", "CPU time in the kernel", "s", Lower, Cell::float(cpu.map(|times| times.system)));
}

fn waiting(rows: &mut Rows<'_>) {
    for (resource, tasks) in [("memory", "some"), ("memory", "full"), ("io", "some"), ("io", "full")] {
        let waited = rows.a.counters.delta("psi", "", &format!("{resource}_{tasks}_total"));
        let share = waited.zip(rows.a.counters.seconds("psi", "")).map(|(us, seconds)| us as f64 / 1e4 / seconds);
        let (key, label) = (format!("psi_{resource}_{tasks}"), format!("PSI {resource} {tasks}"));
        rows.add(&key, &label, "%", Lower, Cell::float(share));
    }
    let (a, seconds) = (rows.a, rows.seconds);
    // Of one task that waited all the time it is 100 %, of several it may be more.
    let share = |ns: u64| Cell::float(seconds.map(|seconds| ns as f64 / 1e7 / seconds));
    for (key, label, context, begin) in [
        ("stalled_direct", "waited in direct reclaim", Context::Direct, Kind::MmVmscanDirectReclaimBegin),
        ("stalled_cgroup", "waited in reclaim of a cgroup", Context::Memcg, Kind::MmVmscanMemcgReclaimBegin),
    ] {
        let waited = a.reclaimers().map(|(_, process)| process.waited(context)).fold(0u64, u64::saturating_add);
        let waited = a.recorded.value(&[begin], waited);
        rows.add(key, label, "%", Lower, waited.map_or(Cell::Na(Na::NotRecorded), share));
    }
    let paused = a.recorded.value(&[Kind::BalanceDirtyPages], a.throttle.writer_waits.total());
    rows.add("throttled_writers", "writers throttled", "%", Lower, paused.map_or(Cell::Na(Na::NotRecorded), share));
}

fn reclaim(rows: &mut Rows<'_>) {
    let counters = &rows.a.counters;
    let sum = |names: &[&str]| counters.vmstat_sum(names);
    let scanned = sum(&["pgscan_anon", "pgscan_file"]).or_else(|| sum(&["pgscan_kswapd", "pgscan_direct"]));
    let freed = sum(&["pgsteal_anon", "pgsteal_file"]).or_else(|| sum(&["pgsteal_kswapd", "pgsteal_direct"]));
    rows.counter("direct_reclaims", "direct reclaims", "/s", Lower, "allocstall");
    rows.rate("scanned", "scanned by reclaim", "pages/s", Lower, scanned);
    rows.rate("freed", "freed by reclaim", "pages/s", Neutral, freed);
    rows.share("efficiency", "freed of scanned", Higher, freed, scanned);
    rows.counter("refaults_anon", "refaults, anonymous", "pages/s", Lower, "workingset_refault_anon");
    rows.counter("refaults_file", "refaults, file", "pages/s", Lower, "workingset_refault_file");
    rows.counter("swap_out", "swapped out", "pages/s", Lower, "pswpout");
    rows.counter("swap_in", "swapped in", "pages/s", Lower, "pswpin");
}

fn faults(rows: &mut Rows<'_>) {
    rows.counter("major_faults", "major faults", "/s", Lower, "pgmajfault");
    rows.counter("faults", "page faults", "/s", Neutral, "pgfault");
    let killed = rows.a.counters.vmstat("oom_kill");
    let killed = killed.or_else(|| rows.a.recorded.value(&[Kind::MarkVictim], rows.a.oom.killed));
    rows.add("oom_kills", "OOM kills", "", Lower, Cell::recorded(killed));
    let free = rows.a.counters.series("vmstat", "", "nr_free_pages");
    let least = free.iter().filter_map(|(_, value)| *value).min();
    rows.add("free_min", "least free memory", "pages", Neutral, Cell::recorded(least));
    rows.counter("compact_stalls", "stalls in compaction", "/s", Lower, "compact_stall");
    rows.counter("thp_fallback", "huge pages not had", "/s", Lower, "thp_fault_fallback");
}

fn placement(rows: &mut Rows<'_>) {
    let counters = &rows.a.counters;
    let (faults, local) = (counters.vmstat("numa_hint_faults"), counters.vmstat("numa_hint_faults_local"));
    let node = counters.vmstat("numa_local");
    let all = node.zip(counters.vmstat("numa_other")).map(|(local, other)| local.saturating_add(other));
    rows.share("numa_faults_local", "NUMA hinting faults local", Higher, local, faults);
    rows.counter("numa_migrated", "NUMA pages migrated", "pages/s", Neutral, "numa_pages_migrated");
    rows.share("numa_alloc_local", "allocated on the own node", Higher, node, all);
}
