//! Which charts a page has, in their order.

use super::chart::{Charts, Counter, Line, Unit};
use crate::screen::{Subject, counters_have_the_clock, limit};
use crate::units::PAGE;
use mmtwin_analysis::explain::waiting::Cause;
use mmtwin_analysis::series::{Bins, Group, Series};
use mmtwin_analysis::tasks::Context;
use mmtwin_event::Kind;

/// Most charts of cgroups, of zones and of regions, and most lines of the pressure of cgroups.
const CGROUPS: usize = 8;
const ZONES: usize = 16;
const REGIONS: usize = 12;
/// Microseconds of stall per second as a percentage.
const STALLED: f64 = 1e-4;

/// All charts of a run that begins at `start`, in nanoseconds of the trace clock.
pub(super) fn all(subject: &Subject<'_>, series: &Series, start: u64) -> Charts {
    let mut charts = Charts::new(start);
    let sampled = counters_have_the_clock(subject);
    pressure(&mut charts, series, sampled);
    waits(&mut charts, subject, series);
    reclaim(&mut charts, subject, series, sampled);
    cgroups(&mut charts, subject, series, sampled);
    zones(&mut charts, series, sampled);
    counters(&mut charts, series, sampled);
    numa(&mut charts, subject, series, sampled);
    vmalloc(&mut charts, subject, series);
    charts
}

/// Counters of a source without keys; `sampled`: they have the clock of the events.
fn system<'a>(series: &'a Series, source: &str, sampled: bool) -> Option<&'a Group> {
    series.samples.group(source, "").filter(|_| sampled)
}

fn pressure(charts: &mut Charts, series: &Series, sampled: bool) {
    for (what, title) in [("memory", "Memory pressure (PSI)"), ("io", "I/O pressure (PSI)")] {
        let [some, full] = ["some", "full"].map(|kind| format!("{what}_{kind}_total"));
        let wanted = [(some.as_str(), "some", STALLED), (full.as_str(), "full", STALLED)];
        let lines = system(series, "psi", sampled).map(|group| charts.counters("psi", "", group, &wanted));
        let note = "share of the time in which some task, or all of them, waited";
        charts.push(format!("psi-{what}"), title, Unit::Percent, note, lines.unwrap_or_default());
    }
}

fn waits(charts: &mut Charts, subject: &Subject<'_>, series: &Series) {
    let kinds = [Kind::MmVmscanDirectReclaimBegin, Kind::MmVmscanMemcgReclaimBegin, Kind::BalanceDirtyPages];
    let rows: Vec<_> = Cause::ALL.iter().enumerate().map(|(row, cause)| (row, cause.short().to_owned())).collect();
    let lines = of_events(charts, subject, &kinds, "waits", &series.waited, &rows, 1e-9);
    charts.push("waits", "Tasks that wait for memory", Unit::Tasks, "from events, by what they wait for", lines);
}

/// Lines of sums of events, if these events were recorded.
fn of_events(
    charts: &mut Charts,
    subject: &Subject<'_>,
    kinds: &[Kind],
    name: &str,
    bins: &Bins,
    rows: &[(usize, String)],
    factor: f64,
) -> Vec<Line> {
    match subject.analysis.recorded.has_any(kinds) && !bins.is_empty() {
        true => charts.sums(name, bins, rows, factor),
        false => Vec::new(),
    }
}

fn reclaim(charts: &mut Charts, subject: &Subject<'_>, series: &Series, sampled: bool) {
    let title = "Reclaimed memory, by who reclaims";
    let names = |context: &Context| match context {
        Context::Memcg => "cgroup at its limit",
        Context::MemcgSoftlimit => "cgroup above its soft limit",
        Context::Direct => "direct reclaim",
        context => context.key(),
    };
    let rows: Vec<_> = Context::ALL.iter().map(|context| names(context).to_owned()).enumerate().collect();
    let kinds = [Kind::MmVmscanLruShrinkInactive];
    let mut lines = of_events(charts, subject, &kinds, "reclaimed", &series.reclaimed, &rows, PAGE);
    let mut note = "from mm_vmscan_lru_shrink_inactive";
    if lines.is_empty() {
        note = "from pgsteal_* of /proc/vmstat, which does not tell cgroups apart";
        let wanted = [
            ("pgsteal_direct", "direct reclaim", PAGE),
            ("pgsteal_kswapd", "kswapd", PAGE),
            ("pgsteal_khugepaged", "khugepaged", PAGE),
            ("pgsteal_proactive", "proactive", PAGE),
        ];
        lines = vmstat(charts, series, sampled, &wanted);
    }
    charts.push("reclaimed", title, Unit::BytesPerSecond, note, lines);
    let nodes: Vec<_> = (0..series.awake.rows().max(1)).map(|node| (node, format!("node {node}"))).collect();
    let kinds = [Kind::MmVmscanKswapdWake, Kind::MmVmscanKswapdSleep];
    let lines = of_events(charts, subject, &kinds, "awake", &series.awake, &nodes, 1e-7);
    charts.push("kswapd", "kswapd awake", Unit::Percent, "from its wake-ups to its sleeps", lines);
    let wanted = [
        ("workingset_refault_anon", "anonymous", 1.0),
        ("workingset_refault_file", "file", 1.0),
        ("workingset_refault", "all", 1.0),
    ];
    let lines = vmstat(charts, series, sampled, &wanted);
    charts.push("refaults", "Refaults", Unit::PerSecond, "pages that came back (workingset_refault_*)", lines);
}

fn vmstat(charts: &mut Charts, series: &Series, sampled: bool, wanted: &[Counter<'_>]) -> Vec<Line> {
    let group = system(series, "vmstat", sampled);
    group.map(|group| charts.counters("vmstat", "", group, wanted)).unwrap_or_default()
}

/// Usage against limit, of those that are nearest to it, then the largest.
fn cgroups(charts: &mut Charts, subject: &Subject<'_>, series: &Series, sampled: bool) {
    let usage = |group: &Group| ["memory.current", "memory.usage_in_bytes"].into_iter().find(|name| has(group, name));
    let mut chosen: Vec<(f64, &str, &Group, &str)> = Vec::new();
    for (key, group) in series.samples.groups("cgroup").filter(|_| sampled) {
        let Some(name) = usage(group) else { continue };
        let points = group.points(name).unwrap_or_default();
        let peak = points.into_iter().flatten().fold(0.0, f64::max);
        // Where there is no limit, size alone says little.
        let weight = limit(subject, key).map_or(peak / 1e30, |limit| peak / limit.max(1.0));
        chosen.push((weight, key, group, name));
    }
    chosen.sort_by(|(a, ..), (b, ..)| b.total_cmp(a));
    chosen.truncate(CGROUPS);
    if chosen.is_empty() {
        charts.missing.push("Memory of cgroups".into());
    }
    let mut stalled = Vec::new();
    for (_, key, group, name) in chosen {
        let mut lines = charts.counters("cgroup", key, group, &[(name, "usage", 1.0)]);
        // Before it was told, a limit that has changed is drawn as it was.
        let counted = ["memory.max", "memory.limit_in_bytes"].map(|name| (name, "limit", 1.0));
        let mut limits = charts.counters("cgroup", key, group, &counted);
        limits.retain(|line| line.y.iter().flat_map(|value| value.0).all(|bytes| bytes < NO_LIMIT));
        limits.iter_mut().for_each(|line| line.limit = true);
        if limits.is_empty() {
            let constant = lines.first().zip(limit(subject, key));
            limits.extend(constant.map(|(line, limit)| Charts::constant(line, "limit", limit)));
        }
        lines.append(&mut limits);
        let short = subject.analysis.source.containers.short(key);
        let title = format!("Memory of cgroup {short}");
        charts.push(format!("cgroup:{key}"), &title, Unit::Bytes, "usage against its limit", lines);
        let wanted = [("memory.pressure.some_total", short)];
        let wanted: Vec<_> = wanted.iter().map(|(name, label)| (*name, label.as_str(), STALLED)).collect();
        stalled.extend(charts.counters("cgroup", key, group, &wanted));
    }
    let note = "memory.pressure (some): share of the time in which a task of the cgroup waited";
    charts.push("cgroup-psi", "Memory pressure of cgroups (PSI)", Unit::Percent, note, stalled);
}

/// What version 1 shows where there is none: the largest number of whole pages.
const NO_LIMIT: f64 = (1u64 << 62) as f64;

fn has(group: &Group, name: &str) -> bool {
    group.names().any(|known| known == name)
}

/// Free memory against the watermarks.
fn zones(charts: &mut Charts, series: &Series, sampled: bool) {
    let zones: Vec<_> = series.samples.groups("zoneinfo").filter(|(_, group)| sampled && has(group, "free")).collect();
    // Zones without memory have no watermarks.
    let held = |(_, group): &&(&str, &Group)| {
        group.points("high").unwrap_or_default().into_iter().flatten().any(|pages| pages > 0.0)
    };
    for (key, group) in zones.iter().filter(held).take(ZONES) {
        let wanted = [("free", "free", PAGE), ("high", "high", PAGE), ("low", "low", PAGE), ("min", "min", PAGE)];
        let mut lines = charts.counters("zoneinfo", key, group, &wanted);
        lines.iter_mut().skip(1).for_each(|line| line.limit = true);
        let (node, zone) = key.split_once('/').unwrap_or(("", *key));
        let title = format!("Free memory of zone {zone}, node {node}");
        charts.push(format!("zone:{key}"), &title, Unit::Bytes, "against its watermarks", lines);
    }
    if zones.is_empty() {
        let lines = vmstat(charts, series, sampled, &[("nr_free_pages", "free", PAGE)]);
        charts.push("free", "Free memory", Unit::Bytes, "of all zones (nr_free_pages)", lines);
    }
}

/// Swap, dirty pages, compaction and huge pages.
fn counters(charts: &mut Charts, series: &Series, sampled: bool) {
    let lines = vmstat(charts, series, sampled, &[("pswpout", "out", PAGE), ("pswpin", "in", PAGE)]);
    charts.push("swap", "Swap traffic", Unit::BytesPerSecond, "pswpout, pswpin", lines);
    let wanted = [
        ("nr_dirty", "dirty", PAGE),
        ("nr_writeback", "writeback", PAGE),
        ("nr_dirty_threshold", "threshold", PAGE),
        ("nr_dirty_background_threshold", "background threshold", PAGE),
    ];
    let mut lines = vmstat(charts, series, sampled, &wanted);
    lines.iter_mut().filter(|line| line.name.ends_with("threshold")).for_each(|line| line.limit = true);
    charts.push("dirty", "Dirty and under writeback", Unit::Bytes, "against the thresholds", lines);
    let lines = vmstat(charts, series, sampled, &[("nr_dirtied", "dirtied", PAGE), ("nr_written", "written", PAGE)]);
    charts.push("writeback", "Dirtied and written", Unit::BytesPerSecond, "nr_dirtied, nr_written", lines);
    let wanted = [
        ("compact_stall", "stalls", 1.0),
        ("compact_success", "successes", 1.0),
        ("compact_fail", "failures", 1.0),
        ("compact_daemon_wake", "kcompactd woken", 1.0),
    ];
    let lines = vmstat(charts, series, sampled, &wanted);
    charts.push("compaction", "Compaction", Unit::PerSecond, "compact_*", lines);
    let wanted = [
        ("thp_fault_alloc", "allocated at a fault", 1.0),
        ("thp_fault_fallback", "small pages instead", 1.0),
        ("thp_collapse_alloc", "collapsed by khugepaged", 1.0),
        ("thp_split_page", "split", 1.0),
    ];
    let lines = vmstat(charts, series, sampled, &wanted);
    charts.push("thp", "Transparent huge pages", Unit::PerSecond, "thp_*", lines);
}

fn numa(charts: &mut Charts, subject: &Subject<'_>, series: &Series, sampled: bool) {
    let wanted = [("numa_hint_faults_local", "local", 1.0), ("numa_hint_faults", "local and remote", 1.0)];
    let lines = vmstat(charts, series, sampled, &wanted);
    charts.push("numa-faults", "NUMA hinting faults", Unit::PerSecond, "numa_hint_faults*", lines);
    let wanted = [
        ("numa_pages_migrated", "by NUMA balancing", PAGE),
        ("pgmigrate_success", "all", PAGE),
        ("pgmigrate_fail", "failed", PAGE),
    ];
    let mut lines = vmstat(charts, series, sampled, &wanted);
    let mut note = "numa_pages_migrated, pgmigrate_*";
    if lines.is_empty() {
        note = "from mm_migrate_pages";
        let rows = [(0, "migrated".to_owned()), (1, "failed".to_owned())];
        lines = of_events(charts, subject, &[Kind::MmMigratePages], "migrated", &series.migrated, &rows, PAGE);
    }
    charts.push("migrations", "Page migrations", Unit::BytesPerSecond, note, lines);
    let rows = [(0, "moved".to_owned()), (1, "exchanged".to_owned())];
    let kinds = [Kind::SchedMoveNuma, Kind::SchedSwapNuma];
    let lines = of_events(charts, subject, &kinds, "moved", &series.moved, &rows, 1.0);
    let title = "Tasks that NUMA balancing moved to another node";
    charts.push("numa-moves", title, Unit::PerSecond, "sched_move_numa, sched_swap_numa", lines);
    for (key, group) in series.samples.groups("numa_maps").filter(|_| sampled).take(REGIONS) {
        let mut nodes: Vec<&str> = group.names().filter(|name| name.starts_with('N')).collect();
        nodes.sort_by_key(|name| (name.len(), *name));
        let labels: Vec<String> = nodes.iter().map(|name| format!("node {}", &name[1..])).collect();
        let wanted: Vec<_> = nodes.iter().zip(&labels).map(|(name, label)| (*name, label.as_str(), PAGE)).collect();
        let lines = charts.counters("numa_maps", key, group, &wanted);
        let title = format!("Where the pages of {key} are");
        charts.push(format!("region:{key}"), &title, Unit::Bytes, "by node (numa_maps)", lines);
    }
}

fn vmalloc(charts: &mut Charts, subject: &Subject<'_>, series: &Series) {
    let rows = [(0, "areas purged".to_owned()), (1, "passes".to_owned())];
    let kinds = [Kind::PurgeVmapAreaLazy];
    let lines = of_events(charts, subject, &kinds, "purged", &series.purged, &rows, 1.0);
    charts.push("vmalloc", "vmalloc purges", Unit::PerSecond, "from purge_vmap_area_lazy", lines);
}
