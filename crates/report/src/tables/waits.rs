//! `congestion-wait` and `writepage`: the blocks of these names in the published reports.
//!
//! kswapd is every task of that name; everybody else is "Direct", whatever it was doing.

use super::{metrics, row};
use crate::model::Better::Lower;
use crate::model::{Cell, Metric, Na, Table};
use mmtwin_analysis::Analysis;
use mmtwin_analysis::reclaim::Writes;
use mmtwin_event::Kind;
use mmtwin_event::value::ReclaimFlags;

/// Waits for congested devices, a mechanism of 2.6.37 to 5.15.
pub fn congestion(analysis: &Analysis) -> Table {
    let mut rows = Vec::new();
    for (who, who_key, kswapd) in [("Direct", "direct", false), ("KSwapd", "kswapd", true)] {
        for (how, kind) in
            [("congest", Kind::WritebackCongestionWait), ("conditional", Kind::WritebackWaitIffCongested)]
        {
            let waits = analysis.congestion.of(kswapd, kind == Kind::WritebackWaitIffCongested);
            let cell = |value: u64| match analysis.recorded.has(kind) {
                true => Cell::int(value),
                false => not_recorded(analysis),
            };
            let figure = |what: &str, unit: &'static str, value: u64| -> Metric {
                let key = format!("{who_key}_{how}_{what}");
                row(&key, &format!("{who} {what} {how} waited"), unit, Lower, None, cell(value))
            };
            rows.push(figure("number", "", waits.count));
            rows.push(figure("time", "ms", waits.delayed_us / 1000));
            rows.push(figure("full", "", waits.full));
        }
    }
    metrics("congestion-wait", "FTrace Reclaim Statistics: congestion_wait", "", rows)
}

/// Kernels from 5.16 on have no such waits.
fn not_recorded(analysis: &Analysis) -> Cell {
    let release = analysis.source.kernel.as_deref().unwrap_or_default();
    let mut parts = release.split(['.', '-', '+']).map_while(|part| part.parse::<u32>().ok());
    let version = parts.next().zip(parts.next());
    Cell::Na(if version.is_some_and(|v| v >= (5, 16)) { Na::NotInKernel } else { Na::NotRecorded })
}

/// Pages written by reclaim, by what they are and how.
pub fn writepage(analysis: &Analysis) -> Table {
    let (mut direct, mut kswapd) = (Writes::default(), Writes::default());
    for (task, process) in analysis.reclaimers() {
        if task.kswapd { &mut kswapd } else { &mut direct }.merge(&process.writes);
    }
    let mut rows = Vec::new();
    for (who, writes) in [("Direct", direct), ("KSwapd", kswapd)] {
        for (what, flag) in [("anon", ReclaimFlags::ANON), ("file", ReclaimFlags::FILE), ("mixed", ReclaimFlags::MIXED)]
        {
            for (how, is_async) in [("sync", false), ("async", true)] {
                let count = writes.count(|flags| flags.has(flag) && flags.has(ReclaimFlags::ASYNC) == is_async);
                let value = Cell::recorded(analysis.recorded.value(&[Kind::MmVmscanWriteFolio], count));
                let key = format!("{}_writes_{what}_{how}", who.to_lowercase());
                rows.push(row(&key, &format!("{who} writes {what} {how}"), "pages", Lower, None, value));
            }
        }
    }
    metrics("writepage", "FTrace Reclaim Statistics: mm_vmscan_writepage", "", rows)
}
