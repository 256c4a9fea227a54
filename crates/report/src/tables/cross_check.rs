//! Event/counter cross-check: sums over events beside the kernel's own counters.
//!
//! Rules of the kernel (6.1, the same since 5.8 for the unzoned names): kswapd and direct reclaim move pgscan_kswapd,
//! pgscan_direct and their pgsteal twins; every reclaim of any kind moves pgscan_anon and pgscan_file; direct reclaims
//! move allocstall by at least one each (one per pass); kswapd's wake events move pageoutrun; started writes move
//! nr_vmscan_write, in pages where the event counts folios. Counters are system-wide: they also hold what happened
//! between their reading and the first or last event.

use super::mmtests::{Scans, zoned};
use super::{counters, invariants, reclaim, total};
use crate::model::{Cell, CrossCheck};
use mmtwin_analysis::Analysis;
use mmtwin_analysis::numa::Migrated;
use mmtwin_analysis::tasks::Context;
use mmtwin_event::KernelRelease;
use mmtwin_event::Kind::*;

/// The lines of reclaim for which the input has both sides; none without counters.
pub fn reclaim(analysis: &Analysis) -> Vec<CrossCheck> {
    let of = |context: Context| reclaim::pages(analysis, analysis.reclaim.context(context));
    let (scanned, reclaimed): (Vec<_>, Vec<_>) = Context::ALL.into_iter().map(of).unzip();
    let begun = analysis.reclaim.context(Context::Direct).begins;
    let writes = Context::ALL.iter().map(|&context| analysis.reclaim.context(context).writes.total()).sum();
    let counted = |kind, value: u64| analysis.recorded.value(&[kind], value);
    let stalls = zoned("allocstall_");
    let stalls: Vec<&str> = stalls.iter().map(String::as_str).chain(["allocstall"]).collect();
    let lines = [
        (
            "pgscan",
            "Pages scanned, cgroup reclaim included",
            total(scanned),
            counters(analysis, &["pgscan_anon", "pgscan_file"]),
        ),
        (
            "pgsteal",
            "Pages reclaimed, cgroup reclaim included",
            total(reclaimed),
            counters(analysis, &["pgsteal_anon", "pgsteal_file"]),
        ),
        ("allocstall", "Direct reclaims", counted(MmVmscanDirectReclaimBegin, begun), counters(analysis, &stalls)),
        (
            "nr_vmscan_write",
            "Pages written by reclaim",
            counted(MmVmscanWriteFolio, writes),
            counters(analysis, &["nr_vmscan_write"]),
        ),
    ];
    let exact = invariants::lines(analysis);
    let mut older = older(analysis);
    older.retain(|line| exact.iter().all(|known| known.key != line.key));
    exact.into_iter().chain(older).chain(reported(lines)).collect()
}

/// What kernels that split the counters by zone have in place of invariants.
fn older(analysis: &Analysis) -> Vec<CrossCheck> {
    let of = |context: Context| reclaim::pages(analysis, analysis.reclaim.context(context));
    let counts = Scans::of(analysis);
    reported([
        ("pgscan_kswapd", "Pages scanned by kswapd", of(Context::Kswapd).0, counts.kswapd),
        ("pgsteal_kswapd", "Pages reclaimed by kswapd", of(Context::Kswapd).1, counts.kswapd_reclaimed),
        ("pgscan_direct", "Pages scanned by direct reclaim", of(Context::Direct).0, counts.direct),
        ("pgsteal_direct", "Pages reclaimed by direct reclaim", of(Context::Direct).1, counts.direct_reclaimed),
    ])
}

/// The lines of everything but reclaim. Migration events and counters are in base pages since 5.8; compact_isolated
/// holds both scanners; slabs_scanned also holds what was dropped on request.
pub fn subjects(analysis: &Analysis) -> Vec<CrossCheck> {
    let counted = |kind, value: u64| analysis.recorded.value(&[kind], value);
    let compaction = &analysis.compaction;
    let migrated = |pages: fn(&Migrated) -> u64| {
        let sum = analysis.numa.migrations.values().map(pages).fold(0, u64::saturating_add);
        counted(MmMigratePages, sum)
    };
    let isolators = [MmCompactionIsolateMigratepages, MmCompactionIsolateFreepages];
    let scanners = [compaction.migrate_scanner.taken, compaction.free_scanner.taken];
    let isolated = analysis.recorded.value(&isolators, scanners).map(|[migrate, free]| [Some(migrate), Some(free)]);
    let isolated = isolated.and_then(|[migrate, free]| total([migrate, free, fast_isolated(analysis)]));
    let shrinkers = analysis.slab.by_time(&analysis.source);
    let scanned = shrinkers.iter().map(|(_, s)| s.scanned).try_fold(0, |sum: u64, n| Some(sum.saturating_add(n?)));
    let wakes = compaction.kcompactd.values().map(|k| k.wakes).sum();
    let line = |key, label, events, counter: &str| (key, label, events, counters(analysis, &[counter]));
    reported([
        line("pgmigrate_success", "Pages migrated, all reasons", migrated(|m| m.succeeded), "pgmigrate_success"),
        line("pgmigrate_fail", "Page migrations failed, all reasons", migrated(|m| m.failed), "pgmigrate_fail"),
        line("compact_isolated", "Pages isolated by compaction", isolated, "compact_isolated"),
        line(
            "compact_daemon_wake",
            "kcompactd wakeups",
            counted(MmCompactionKcompactdWake, wakes),
            "compact_daemon_wake",
        ),
        line(
            "slabs_scanned",
            "Slab objects scanned",
            analysis.recorded.value(&[MmShrinkSlabEnd], scanned).flatten(),
            "slabs_scanned",
        ),
        line("oom_kill", "Processes killed (OOM)", counted(MarkVictim, analysis.oom.killed), "oom_kill"),
    ])
}

/// Pages that compaction took from free lists without scanning, which it does from 5.1 on (`fast_isolate_freepages`). They
/// are counted as isolated, and have an event from 6.3 on.
fn fast_isolated(analysis: &Analysis) -> Option<u64> {
    if analysis.recorded.has(MmCompactionFastIsolateFreepages) {
        return Some(analysis.compaction.fast_free_scanner.taken);
    }
    let release = KernelRelease::parse(analysis.source.kernel.as_deref()?)?;
    (!release.is_at_least(5, 1)).then_some(0)
}

/// Lines whose counter is known.
fn reported<const N: usize>(lines: [(&str, &str, Option<u64>, Cell); N]) -> Vec<CrossCheck> {
    let lines = lines.into_iter().filter(|(_, _, _, counters)| counters.number().is_some());
    let lines = lines.map(|(key, label, events, counters)| CrossCheck {
        key: key.into(),
        label: label.into(),
        events: Cell::recorded(events),
        counters,
    });
    lines.collect()
}
