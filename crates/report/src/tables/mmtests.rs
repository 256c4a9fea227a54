//! `mmtests-vmstat` and its successors: rows computed from counters of /proc/vmstat by the MMTests comparison scripts of
//! 2012 and by the current ones.
//!
//! A row whose counters this kernel does not have is n/a; the scripts print 0. Where they let the last zone read win
//! instead of adding (allocation stalls), the sum over zones is printed.

use super::{counters, derived, metrics, row};
use crate::model::Better::{Higher, Lower, Neutral};
use crate::model::{Better, Cell, Metric, Na, Table};
use mmtwin_analysis::Analysis;

/// Zones in names of counters.
pub const ZONES: [&str; 5] = ["dma", "dma32", "normal", "movable", "high"];

/// Names of a counter per zone.
pub fn zoned(prefix: &str) -> [String; 5] {
    ZONES.map(|zone| format!("{prefix}{zone}"))
}

/// A cell derived from others; n/a for the reason of the first that is.
fn derive<const N: usize>(cells: [&Cell; N], formula: impl Fn([f64; N]) -> f64) -> Cell {
    let mut numbers = [0.0; N];
    for (number, cell) in numbers.iter_mut().zip(cells) {
        match cell.number() {
            Some(value) => *number = value,
            None => return Cell::Na(cell.na().unwrap_or(Na::NotRecorded)),
        }
    }
    Cell::float(Some(formula(numbers)))
}

/// The same for integers.
fn difference(a: &Cell, b: &Cell) -> Cell {
    match (a, b) {
        (Cell::Int(a), Cell::Int(b)) => Cell::Int(a - b),
        (Cell::Int(_), na) | (na, _) => na.clone(),
    }
}

fn per_zone(analysis: &Analysis, prefix: &str, unzoned: &[&str]) -> Cell {
    let names = zoned(prefix);
    counters(analysis, &names.iter().map(String::as_str).chain(unzoned.iter().copied()).collect::<Vec<_>>())
}

/// What the tables of both generations share.
pub(super) struct Scans {
    pub direct: Cell,
    pub kswapd: Cell,
    pub direct_reclaimed: Cell,
    pub kswapd_reclaimed: Cell,
    pub elapsed: Cell,
}

impl Scans {
    pub fn of(analysis: &Analysis) -> Scans {
        let kswapd_steal = counters(analysis, &["kswapd_steal"]);
        let split = matches!(kswapd_steal, Cell::Na(_));
        Scans {
            direct: per_zone(analysis, "pgscan_direct_", &["pgscan_direct"]),
            kswapd: per_zone(analysis, "pgscan_kswapd_", &["pgscan_kswapd"]),
            direct_reclaimed: match split {
                true => per_zone(analysis, "pgsteal_direct_", &["pgsteal_direct"]),
                false => difference(&per_zone(analysis, "pgsteal_", &[]), &kswapd_steal),
            },
            kswapd_reclaimed: match split {
                true => per_zone(analysis, "pgsteal_kswapd_", &["pgsteal_kswapd"]),
                false => kswapd_steal,
            },
            elapsed: Cell::float(analysis.source.times.map(|times| times.elapsed)),
        }
    }

    /// The counters of scans and reclaim, efficiencies and velocities; `whole`: percentages without fraction.
    pub fn rows(&self, whole: bool) -> Vec<Metric> {
        let pages = |key: &str, label: &str, value: &Cell| row(key, label, "pages", Lower, None, value.clone());
        let efficiency = |reclaimed: &Cell, scanned: &Cell| {
            derive([reclaimed, scanned], |[reclaimed, scanned]| match scanned {
                0.0 => 100.0,
                _ if whole => derived::whole_efficiency(reclaimed, scanned),
                _ => derived::percent(reclaimed, scanned),
            })
        };
        let velocity = |scanned: &Cell| match scanned.number() {
            Some(0.0) => Cell::Float(0.0),
            _ => derive([scanned, &self.elapsed], |[scanned, elapsed]| derived::velocity(scanned, elapsed)),
        };
        let direct_scans = derive([&self.direct, &self.kswapd], |[direct, kswapd]| match whole {
            true => derived::whole_direct_scans(direct, kswapd),
            false => derived::percent(direct, direct + kswapd),
        });
        let decimals = Some(if whole { 0 } else { 2 });
        vec![
            pages("direct_pages_scanned", "Direct pages scanned", &self.direct),
            pages("kswapd_pages_scanned", "Kswapd pages scanned", &self.kswapd),
            pages("kswapd_pages_reclaimed", "Kswapd pages reclaimed", &self.kswapd_reclaimed),
            pages("direct_pages_reclaimed", "Direct pages reclaimed", &self.direct_reclaimed),
            row(
                "kswapd_efficiency",
                "Kswapd efficiency",
                "%",
                Higher,
                decimals,
                efficiency(&self.kswapd_reclaimed, &self.kswapd),
            ),
            row("kswapd_velocity", "Kswapd velocity", "pages/s", Lower, Some(3), velocity(&self.kswapd)),
            row(
                "direct_efficiency",
                "Direct efficiency",
                "%",
                Higher,
                decimals,
                efficiency(&self.direct_reclaimed, &self.direct),
            ),
            row("direct_velocity", "Direct velocity", "pages/s", Lower, Some(3), velocity(&self.direct)),
            row("direct_scans", "Percentage direct scans", "%", Lower, decimals, direct_scans),
        ]
    }
}

/// Rows that are one counter each.
fn plain(analysis: &Analysis, rows: &[(&str, &str, &'static str, Better, &str)]) -> Vec<Metric> {
    let rows = rows
        .iter()
        .map(|&(key, label, unit, better, name)| row(key, label, unit, better, None, counters(analysis, &[name])));
    rows.collect()
}

/// Writes of reclaim, split by what the swap counter tells.
pub(super) fn writes(all: Cell, anon: Cell) -> Vec<Metric> {
    let file = difference(&all, &anon);
    vec![
        row("page_writes", "Page writes by reclaim", "pages", Lower, None, all),
        row("page_writes_file", "Page writes file", "pages", Lower, None, file),
        row("page_writes_anon", "Page writes anon", "pages", Lower, None, anon),
    ]
}

/// The table of 2012, all its rows in their order.
pub fn of_2012(analysis: &Analysis) -> Table {
    let mut rows = plain(
        analysis,
        &[
            ("page_ins", "Page Ins", "KiB", Lower, "pgpgin"),
            ("page_outs", "Page Outs", "KiB", Lower, "pgpgout"),
            ("swap_ins", "Swap Ins", "pages", Lower, "pswpin"),
            ("swap_outs", "Swap Outs", "pages", Lower, "pswpout"),
        ],
    );
    rows.extend(Scans::of(analysis).rows(true));
    rows.extend(writes(counters(analysis, &["nr_vmscan_write"]), counters(analysis, &["pswpout"])));
    rows.extend(plain(
        analysis,
        &[
            ("reclaim_immediate", "Page reclaim immediate", "pages", Lower, "nr_vmscan_immediate_reclaim"),
            ("rescued_immediate", "Page rescued immediate", "pages", Lower, "pgrescued"),
            ("slabs_scanned", "Slabs scanned", "objects", Lower, "slabs_scanned"),
            ("direct_inode_steals", "Direct inode steals", "pages", Lower, "pginodesteal"),
            ("kswapd_inode_steals", "Kswapd inode steals", "pages", Lower, "kswapd_inodesteal"),
            ("kswapd_skipped_wait", "Kswapd skipped wait", "", Lower, "kswapd_skip_congestion_wait"),
            ("thp_fault_alloc", "THP fault alloc", "", Higher, "thp_fault_alloc"),
            ("thp_collapse_alloc", "THP collapse alloc", "", Higher, "thp_collapse_alloc"),
            ("thp_splits", "THP splits", "", Lower, "thp_split"),
            ("thp_fault_fallback", "THP fault fallback", "", Lower, "thp_fault_fallback"),
            ("thp_collapse_fail", "THP collapse fail", "", Lower, "thp_collapse_alloc_failed"),
            ("compact_stalls", "Compaction stalls", "", Lower, "compact_stall"),
            ("compact_success", "Compaction success", "", Higher, "compact_success"),
            ("compact_failures", "Compaction failures", "", Lower, "compact_fail"),
            ("compact_moved", "Compaction pages moved", "pages", Lower, "compact_pages_moved"),
            ("compact_move_failure", "Compaction move failure", "pages", Lower, "compact_pagemigrate_failed"),
        ],
    ));
    metrics("mmtests-vmstat", "MMTests Statistics: vmstat", "Page Ins and Outs are in KiB.", rows)
}

/// The rows of the current comparison scripts.
pub fn current(analysis: &Analysis) -> Table {
    let one = |name: &str| counters(analysis, &[name]);
    let sum = |prefix: &str, unzoned: &[&str]| per_zone(analysis, prefix, unzoned);
    let mut rows = vec![
        row("minor_faults", "Minor Faults", "", Lower, None, difference(&one("pgfault"), &one("pgmajfault"))),
        row("major_faults", "Major Faults", "", Lower, None, one("pgmajfault")),
        row("swap_ins", "Swap Ins", "pages", Lower, None, one("pswpin")),
        row("swap_outs", "Swap Outs", "pages", Lower, None, one("pswpout")),
        row("allocation_stalls", "Allocation stalls", "", Lower, None, sum("allocstall_", &["allocstall"])),
    ];
    rows.extend(ZONES.iter().zip(["DMA", "DMA32", "Normal", "Movable", "High"]).map(|(zone, label)| {
        let name = format!("pgalloc_{zone}");
        row(&format!("{zone}_allocs"), &format!("{label} allocs"), "pages", Neutral, None, one(&name))
    }));
    rows.push(row("sector_reads", "Sector Reads", "KiB", Lower, None, one("pgpgin")));
    rows.push(row("sector_writes", "Sector Writes", "KiB", Lower, None, one("pgpgout")));
    rows.push(row("migrate_success", "Page migrate success", "pages", Neutral, None, one("pgmigrate_success")));
    rows.push(row("migrate_failure", "Page migrate failure", "pages", Lower, None, one("pgmigrate_fail")));
    rows.extend(Scans::of(analysis).rows(false));
    rows.extend(writes(one("nr_vmscan_write"), one("pswpout")));
    rows.extend(plain(
        analysis,
        &[
            ("reclaim_immediate", "Page reclaim immediate", "pages", Lower, "nr_vmscan_immediate_reclaim"),
            ("slabs_scanned", "Slabs scanned", "objects", Lower, "slabs_scanned"),
            ("direct_inode_steals", "Direct inode steals", "pages", Lower, "pginodesteal"),
            ("kswapd_inode_steals", "Kswapd inode steals", "pages", Lower, "kswapd_inodesteal"),
            ("thp_fault_alloc", "THP fault alloc", "", Higher, "thp_fault_alloc"),
            ("thp_fault_fallback", "THP fault fallback", "", Lower, "thp_fault_fallback"),
            ("thp_collapse_alloc", "THP collapse alloc", "", Higher, "thp_collapse_alloc"),
            ("thp_collapse_fail", "THP collapse fail", "", Lower, "thp_collapse_alloc_failed"),
            ("thp_split_page", "THP split", "", Lower, "thp_split_page"),
            ("thp_split_failed", "THP split failed", "", Lower, "thp_split_page_failed"),
            ("compact_stalls", "Compaction stalls", "", Lower, "compact_stall"),
            ("compact_success", "Compaction success", "", Higher, "compact_success"),
            ("compact_failures", "Compaction failures", "", Lower, "compact_fail"),
        ],
    ));
    let compaction =
        derive([&one("compact_success"), &one("compact_stall")], |[good, all]| derived::percent(good, all));
    rows.push(row("compact_efficiency", "Compaction efficiency", "%", Higher, Some(2), compaction));
    rows.extend(plain(
        analysis,
        &[
            ("compact_isolated", "Compaction pages isolated", "pages", Lower, "compact_isolated"),
            ("compact_migrate_scanned", "Compaction migrate scanned", "pages", Lower, "compact_migrate_scanned"),
            ("compact_free_scanned", "Compaction free scanned", "pages", Lower, "compact_free_scanned"),
        ],
    ));
    let scan = derive([&one("compact_migrate_scanned"), &one("compact_free_scanned")], |[m, f]| derived::percent(m, f));
    rows.push(row("compact_scan_efficiency", "Compact scan efficiency", "%", Higher, Some(2), scan));
    let cost = derive(
        [&one("compact_migrate_scanned"), &one("compact_isolated"), &one("pgmigrate_success"), &one("pgmigrate_fail")],
        |[scanned, isolated, migrated, failed]| derived::compaction_cost(scanned, isolated, migrated, failed),
    );
    rows.push(row("compact_cost", "Compaction cost", "", Lower, Some(2), cost));
    metrics(
        "mmtests-current",
        "MMTests Statistics: vmstat (current scripts)",
        "Sector Reads and Writes are in KiB.",
        rows,
    )
}

/// Pages under one huge entry, as the NUMA rows convert them.
const HUGE: f64 = 512.0;

/// NUMA balancing as the comparison scripts of 2018 print it.
pub fn numa_2018(analysis: &Analysis) -> Table {
    let one = |name: &str| counters(analysis, &[name]);
    let (base, huge) = (one("numa_pte_updates"), one("numa_huge_pte_updates"));
    let range = derive([&base, &huge], |[base, huge]| base + HUGE * huge);
    let mut rows = vec![
        row("base_pte_updates", "NUMA base PTE updates", "", Lower, None, base),
        row("huge_pmd_updates", "NUMA huge PMD updates", "", Lower, None, huge),
        row("page_range_updates", "NUMA page range updates", "pages", Lower, Some(0), range),
    ];
    rows.extend(numa_faults(analysis));
    numa("mmtests-numa-2018", rows)
}

/// NUMA balancing as the current comparison scripts print it.
pub fn numa_current(analysis: &Analysis) -> Table {
    let one = |name: &str| counters(analysis, &[name]);
    let base = derive([&one("numa_pte_updates"), &one("numa_huge_pte_updates")], |[all, huge]| all - HUGE * huge);
    let mut rows = vec![
        row("pte_updates", "NUMA PTE updates", "", Lower, Some(0), base),
        row("huge_pmd_updates", "NUMA huge PMD updates", "", Lower, None, one("numa_huge_pte_updates")),
        row("page_range_updates", "NUMA page range updates", "pages", Lower, None, one("numa_pte_updates")),
    ];
    rows.extend(numa_faults(analysis));
    numa("mmtests-numa-current", rows)
}

fn numa_faults(analysis: &Analysis) -> Vec<Metric> {
    let one = |name: &str| counters(analysis, &[name]);
    let (faults, local) = (one("numa_hint_faults"), one("numa_hint_faults_local"));
    let share = derive([&local, &faults], |[local, faults]| derived::local_faults(local, faults));
    let cost =
        derive([&one("numa_pte_updates"), &faults, &one("numa_pages_migrated")], |[updates, faults, migrated]| {
            derived::autonuma_cost(updates, faults, migrated)
        });
    vec![
        row("hint_faults", "NUMA hint faults", "", Lower, None, faults),
        row("hint_local_faults", "NUMA hint local faults", "", Higher, None, local),
        row("hint_local_percent", "NUMA hint local percent", "%", Higher, Some(2), share),
        row("pages_migrated", "NUMA pages migrated", "pages", Lower, None, one("numa_pages_migrated")),
        row("autonuma_cost", "AutoNUMA cost", "", Lower, Some(2), cost),
    ]
}

fn numa(name: &str, rows: Vec<Metric>) -> Table {
    metrics(name, "MMTests Statistics: NUMA balancing", "", rows)
}
