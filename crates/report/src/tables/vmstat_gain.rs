//! `vmstat-gain`: raw counters of /proc/vmstat, after minus before, with gains.
//!
//! The table of 2010 expresses a change relative to the new value, those since 2012 relative to the baseline. Neither
//! says that more is better. Rows are the counters that reclaim moves, as far as the kernel has them.

use super::{metrics, mmtests::ZONES, row};
use crate::model::Better::Neutral;
use crate::model::{Cell, Gain, Metric, Table};
use mmtwin_analysis::Analysis;

/// The table by one of the two rules.
pub fn table(analysis: &Analysis, gain: Gain) -> Table {
    let families = ["pgalloc_", "pgsteal_", "pgsteal_kswapd_", "pgsteal_direct_", "pgscan_kswapd_", "pgscan_direct_"];
    let zoned = families.iter().flat_map(|family| ZONES.map(|zone| format!("{family}{zone}")));
    let single = ["pgsteal_kswapd", "pgsteal_direct", "pgsteal_anon", "pgsteal_file", "pgscan_kswapd"];
    let more = ["pgscan_direct", "pgscan_anon", "pgscan_file", "kswapd_steal", "pageoutrun", "allocstall"];
    let stalls = ZONES.map(|zone| format!("allocstall_{zone}"));
    let names = zoned.chain(single.iter().chain(&more).map(|name| name.to_string())).chain(stalls);
    let (table, decimals) = match gain {
        Gain::RelativeToNew => ("vmstat-gain-2010", Some(2)),
        _ => ("vmstat-gain", None),
    };
    let rows = names.filter_map(|name| {
        let value = Cell::int(analysis.counters.vmstat(&name)?);
        Some(Metric { gain, ..row(&name, &name, "", Neutral, decimals, value) })
    });
    metrics(table, "Reclaim counters of /proc/vmstat", "", rows.collect())
}
