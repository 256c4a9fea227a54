//! The tables of nodes, cgroups and processes, and how they are drawn.

use super::model::{Focus, Model};
use super::text;
use super::view::{Canvas, Tone};
use mmtwin_analysis::live::{Cgroup, Process, Waited};
use ratatui::layout::Rect;

/// Fewest columns of a name.
const SHORTEST: usize = 8;
/// Tables of so many columns have room for more.
pub const WIDE: usize = 118;

/// A column: its head, and how wide it is; 0: what the others leave.
type Column = (&'static str, usize);

/// A table to be drawn.
struct Table<'a> {
    columns: &'a [Column],
    count: usize,
    /// Cells of a row; asked for those that are on the screen.
    row: &'a dyn Fn(usize) -> (Vec<String>, Tone),
    chosen: Option<usize>,
    /// What stands in the place of no rows.
    none: String,
}

/// Draws nodes, the first ones that fit.
pub fn nodes(model: &Model, canvas: &mut Canvas<'_>, area: Rect) {
    let columns = [
        ("KSWAPD", 0),
        ("free", 9),
        ("scanned/s", 9),
        ("freed/s", 9),
        ("wakes/s", 7),
        ("awake", 6),
        ("refaults/s", 10),
        ("local", 6),
        ("misses/s", 8),
    ];
    let nodes = &model.snapshot.nodes;
    let row = |i: usize| {
        let node = &nodes[i];
        let cells = vec![
            format!("node {}", node.id),
            node.free.map_or(text::UNKNOWN.into(), |pages| text::pages(Some(pages as f64))),
            text::pages(node.scanned),
            text::pages(node.stolen),
            text::rate(node.wakes),
            text::percent(node.awake),
            text::rate(node.refaults),
            text::percent(node.local),
            text::rate(node.misses),
        ];
        (cells, Tone::of(node.awake))
    };
    let none = "no counters of nodes".to_string();
    draw(&Table { columns: &columns, count: nodes.len(), row: &row, chosen: None, none }, canvas, area, false);
}

/// Draws cgroups, those that fit.
pub fn cgroups(model: &Model, rows: &[&Cgroup], canvas: &mut Canvas<'_>, area: Rect) {
    let columns = [
        ("CGROUP", 0),
        ("PSI some", 8),
        ("full", 6),
        ("waited", 6),
        ("usage", 8),
        ("limit", 8),
        ("hits/s", 6),
        ("refaults/s", 10),
    ];
    let row = |i: usize| {
        let row = rows[i];
        let cells = vec![
            model.name(&row.key),
            text::percent(row.some),
            text::percent(row.full),
            text::percent(row.waited),
            text::bytes(row.usage),
            row.limit.map_or("-".into(), |limit| text::bytes(Some(limit))),
            text::rate(row.hits),
            text::rate(row.refaults),
        ];
        (cells, Tone::of(row.some.or(row.waited)))
    };
    let chosen = Some(model.position(Focus::Cgroups, rows.iter().map(|row| &row.key)));
    let none = none(model, "no memory cgroups");
    let table = Table { columns: &columns, count: rows.len(), row: &row, chosen, none };
    draw(&table, canvas, area, model.focus == Focus::Cgroups);
}

/// Draws processes, those that fit.
pub fn processes(model: &Model, rows: &[&Process], canvas: &mut Canvas<'_>, area: Rect) {
    let wide = usize::from(area.width) >= WIDE;
    let mut columns: Vec<Column> = vec![("PID", 7), ("PROCESS", 0), ("waited", 6), ("for", 14)];
    if wide {
        columns.extend([("waits/s", 7), ("freed/s", 9), ("order", 5)]);
    }
    columns.extend([("faults/s", 8), ("io", 6), ("RSS", 8)]);
    if wide {
        columns.push(("cgroup", 24));
    }
    let seconds = model.snapshot.seconds;
    let row = |i: usize| {
        let row = rows[i];
        let known = |value: fn(&Waited) -> Option<String>| {
            row.waited.as_ref().map_or(text::UNKNOWN.into(), |waited| value(waited).unwrap_or("-".into()))
        };
        let per_second = |value: fn(&Waited) -> u64| Some(value(row.waited.as_ref()?) as f64 / seconds?);
        let mut cells = vec![
            row.pid.to_string(),
            if row.comm.is_empty() { text::UNKNOWN.into() } else { row.comm.clone() },
            text::percent(row.share),
            known(|waited| waited.main_reason().map(|why| why.name().into())),
        ];
        if wide {
            cells.push(text::rate(per_second(|waited| waited.begun)));
            cells.push(text::pages(per_second(|waited| waited.reclaimed)));
            cells.push(known(|waited| (waited.begun > 0).then(|| waited.order.to_string())));
        }
        cells.extend([text::rate(row.major_faults), text::percent(row.io), text::bytes(row.resident)]);
        if wide {
            cells.push(row.cgroup.as_deref().map_or("-".into(), |cgroup| model.name(cgroup)));
        }
        (cells, Tone::of(row.share))
    };
    let chosen = Some(model.position(Focus::Processes, rows.iter().map(|row| row.pid)));
    let table = Table { columns: &columns, count: rows.len(), row: &row, chosen, none: none(model, "no processes") };
    draw(&table, canvas, area, model.focus == Focus::Processes);
}

fn none(model: &Model, nothing: &str) -> String {
    match model.filter.as_str() {
        "" => nothing.into(),
        filter => format!("nothing fits the filter {filter}"),
    }
}

/// Texts are at the left of their columns, figures at the right.
fn is_text(head: &str) -> bool {
    ["KSWAPD", "CGROUP", "PROCESS", "for", "cgroup"].contains(&head)
}

fn draw(table: &Table<'_>, canvas: &mut Canvas<'_>, area: Rect, has_focus: bool) {
    if area.height == 0 {
        return;
    }
    let fixed: usize = table.columns.iter().map(|(_, width)| width + 1).sum();
    let name = usize::from(area.width).saturating_sub(fixed - 1).max(SHORTEST);
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let mut line = String::new();
        for ((head, width), cell) in table.columns.iter().zip(cells) {
            let width = if *width == 0 { name } else { *width };
            let cell = text::tail(cell, width);
            line.push_str(&if is_text(head) { format!("{cell:<width$} ") } else { format!("{cell:>width$} ") });
        }
        line.truncate(line.trim_end().len());
        line
    };
    let tone = if has_focus { Tone::HeadFocused } else { Tone::Head };
    canvas.line(area, 0, &line(&mut table.columns.iter().map(|(head, _)| *head)), tone);
    let height = usize::from(area.height) - 1;
    if table.count == 0 && height > 0 {
        return canvas.line(area, 1, &table.none, Tone::Faint);
    }
    // The chosen row is on the screen.
    let first = table.chosen.map_or(0, |chosen| (chosen + 1).saturating_sub(height));
    for i in (first..table.count).take(height) {
        let (cells, tone) = (table.row)(i);
        let tone = if has_focus && table.chosen == Some(i) { Tone::Chosen } else { tone };
        canvas.line(area, i - first + 1, &line(&mut cells.iter().map(String::as_str)), tone);
    }
}
