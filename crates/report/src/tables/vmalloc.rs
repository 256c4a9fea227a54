//! vmalloc: allocations, lazy frees and purges.

use super::{metrics, row};
use crate::model::Better::{Lower, Neutral};
use crate::model::{Body, Cell, Table};
use mmtwin_analysis::Analysis;
use mmtwin_analysis::histogram::Log2;
use mmtwin_event::Kind::{self, *};

/// `vmalloc` and its histograms; a histogram without values is omitted.
pub fn tables(a: &Analysis) -> Vec<Table> {
    let v = &a.vmalloc;
    let mut tables = vec![totals(a)];
    tables.extend(histogram("vmalloc-sizes", "vmalloc: area size", "bytes", &v.sizes));
    tables.extend(histogram("vmalloc-purge-areas", "vmalloc: areas per purge", "areas", &v.purged));
    tables.extend(histogram("vmalloc-purge-intervals", "vmalloc: time between purges", "ns", &v.intervals));
    tables.extend(histogram(
        "vmalloc-purge-latency",
        "vmalloc: purge latency from exceeding lazy_max_pages",
        "ns",
        &v.drains,
    ));
    tables
}

fn histogram(name: &str, title: &str, unit: &'static str, h: &Log2) -> Option<Table> {
    let total = u64::try_from(h.sum).unwrap_or(u64::MAX);
    let body = Body::Histogram { unit, slots: h.slots(), mean: h.mean(), total };
    (h.count > 0).then(|| Table { name: name.into(), title: title.into(), note: String::new(), body })
}

fn totals(a: &Analysis) -> Table {
    let v = &a.vmalloc;
    let known = |kind: Kind, value: u64| Cell::recorded(a.recorded.value(&[kind], value));
    let of_some = |kind: Kind, value: Option<u64>| Cell::recorded(value.filter(|_| a.recorded.has(kind)));
    let ms = |ns: Option<f64>| Cell::float(ns.map(|ns| ns / 1e6));
    let longest = Some(v.drains.max as f64).filter(|_| v.drains.count > 0);
    let bytes = u64::try_from(v.sizes.sum).unwrap_or(u64::MAX);
    let purged = u64::try_from(v.purged.sum).unwrap_or(u64::MAX);
    let rows = vec![
        row("allocations", "Areas allocated", "", Neutral, None, known(AllocVmapArea, v.sizes.count)),
        row("failures", "Failed allocations", "", Lower, None, known(AllocVmapArea, v.failed)),
        row("bytes", "Bytes allocated, with guard pages", "bytes", Neutral, None, known(AllocVmapArea, bytes)),
        row("frees", "Lazy frees", "", Neutral, None, known(FreeVmapAreaNoflush, v.frees)),
        row(
            "frees_over_limit",
            "Lazy frees above lazy_max_pages",
            "",
            Lower,
            None,
            known(FreeVmapAreaNoflush, v.frees_over_limit),
        ),
        row("lazy_pages_max", "Lazy pages, max", "pages", Lower, None, of_some(FreeVmapAreaNoflush, v.lazy_high)),
        row(
            "lazy_max_pages",
            "Lazy page limit (lazy_max_pages)",
            "pages",
            Neutral,
            None,
            of_some(FreeVmapAreaNoflush, v.lazy_max),
        ),
        row("purges", "Purges", "", Lower, None, known(PurgeVmapAreaLazy, v.passes())),
        row("purges_empty", "Empty purges", "", Lower, None, known(PurgeVmapAreaLazy, v.empty)),
        row("areas_purged", "Areas purged", "", Neutral, None, known(PurgeVmapAreaLazy, purged)),
        row(
            "pages_purged",
            "Pages purged (lower bound)",
            "pages",
            Neutral,
            None,
            Cell::recorded(a.recorded.value(&[PurgeVmapAreaLazy, FreeVmapAreaNoflush], v.pages_drained)),
        ),
        row("purge_latency_mean", "Purge latency, mean", "ms", Lower, None, ms(v.drains.mean())),
        row("purge_latency_max", "Purge latency, max", "ms", Lower, None, ms(longest)),
    ];
    let note =
        "Pages purged are known from the next free. Purge latency starts at the free that exceeds lazy_max_pages.";
    metrics("vmalloc", "vmalloc", note, rows)
}
