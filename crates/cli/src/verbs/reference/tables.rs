//! The page of tables and findings: what a report on nothing consists of, and the rules of findings.

use super::{cell, head};
use mmtwin_analysis::{Analysis, findings};
use mmtwin_report::model::{Body, Column, Table};
use mmtwin_report::tables;
use std::fmt::Write;

/// The page.
pub fn page() -> String {
    let nothing = Analysis::default();
    let mut page = head(
        "Tables and findings",
        "What `mmtwin report` prints, by the names of `--table` and of the JSON output. Tables whose number or columns \
         depend on the input (histograms of latency, matrices of nodes) are not here. A run of a scenario adds the \
         tables `workload`, `placement` and `latency-*`. `compare` has a table of rows for each reclaimer in place of \
         `reclaim`: `reclaim-kswapd`, `reclaim-direct`, `reclaim-cgroup` and so on.",
    );
    page.push_str("\n## Findings\n\n| finding | when |\n|---|---|\n");
    for rule in findings::RULES {
        let _ = writeln!(page, "| `{}` | {} |", rule.key, cell(rule.when));
    }
    page.push_str("| `input_incomplete` | a part of the input is missing: sums are too small by an unknown amount |\n");
    page.push_str("| `out_of_memory`, `run_stopped` | a run of a scenario ended early |\n");
    page.push_str("\n## Tables\n");
    let all = tables::reclaim_tables(&nothing).into_iter().chain(tables::subject_tables(&nothing));
    for of in all {
        table(&of, &mut page);
    }
    page
}

fn table(of: &Table, page: &mut String) {
    let _ = write!(page, "\n### `{}`\n\n{}.", of.name, of.title);
    if !of.note.is_empty() {
        let _ = write!(page, " {}", of.note);
    }
    page.push('\n');
    match &of.body {
        Body::Metric(rows) if !rows.is_empty() => {
            page.push_str("\n| row | label | unit | better |\n|---|---|---|---|\n");
            for row in rows {
                let better = row.better.word();
                let _ = writeln!(page, "| `{}` | {} | {} | {better} |", row.key, cell(&row.label), row.unit);
            }
        }
        Body::List { columns: of, .. } | Body::Series { columns: of, .. } => columns(of, page),
        _ => {}
    }
}

fn columns(of: &[Column], page: &mut String) {
    if !of.is_empty() {
        page.push_str("\n| column | heading | unit |\n|---|---|---|\n");
    }
    for column in of {
        let _ = writeln!(page, "| `{}` | {} | {} |", column.key, cell(&column.label), column.unit);
    }
}
