//! `calls`: durations of functions from function_graph traces, and histograms of those that purge vmalloc areas.

use super::{column, list, text};
use crate::model::{Body, Cell, Table};
use mmtwin_analysis::Analysis;
use mmtwin_analysis::calls::Function;

/// Functions printed by `calls`.
const FUNCTIONS: usize = 100;
/// Functions with a histogram each, however short their total.
const ALWAYS: &[&str] = &["__purge_vmap_area_lazy", "purge_vmap_node", "drain_vmap_area_work"];
/// Functions with a histogram each because they took most time.
const LONGEST: usize = 5;

/// `calls` and one `calls-FUNCTION` per function that matters; none without a function_graph trace.
pub fn tables(a: &Analysis) -> Vec<Table> {
    let functions = a.calls.by_total();
    if functions.is_empty() {
        return Vec::new();
    }
    let us = |ns: f64| Cell::Float(ns / 1e3);
    let rows = functions.iter().take(FUNCTIONS).map(|f| {
        vec![text(&*f.name), Cell::int(f.usecs.count), us(f.mean()), us(f.longest as f64), us(f.nanoseconds as f64)]
    });
    let columns = vec![
        column("function", "function", ""),
        column("calls", "calls", ""),
        column("mean", "mean", "us"),
        column("max", "max", "us"),
        column("total", "total", "us"),
    ];
    let mut note = format!("Sorted by total, at most {FUNCTIONS} functions. Calls without an end are not counted.");
    if a.calls.dropped > 0 {
        note += &format!(" {} calls of further functions are not counted.", a.calls.dropped);
    }
    let mut tables = vec![list("calls", "Function call durations (function_graph)", &note, columns, rows.collect())];
    let chosen = functions.iter().enumerate().filter(|(i, f)| *i < LONGEST || ALWAYS.contains(&f.name.as_str()));
    tables.extend(chosen.map(|(_, f)| histogram(f)));
    tables
}

fn histogram(f: &Function) -> Table {
    let total = u64::try_from(f.nanoseconds / 1000).unwrap_or(u64::MAX);
    let body = Body::Histogram { unit: "usecs", slots: f.usecs.slots(), mean: Some(f.mean() / 1e3), total };
    let title = format!("Duration of {}", f.name);
    Table { name: format!("calls-{}", f.name), title, note: String::new(), body }
}
