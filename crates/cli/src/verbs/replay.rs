//! `mmtwin replay`.

use super::{column, print_tables, text};
use crate::args::{Replacement, Replay};
use crate::{Failure, say};
use mmtwin_report::model::{Body, Cell, InputInfo, Table};
use mmtwin_trace::access::{AccessTrace, Pages};
use mmtwin_twin::mm::replacement::{Clock, Lru, hits};
use std::time::Instant;

/// Runs the verb.
pub fn run(arguments: Replay) -> Result<i32, Failure> {
    let mut trace = AccessTrace::open_path(&arguments.trace)?;
    let (mut pages, mut touches) = (Pages::default(), Vec::new());
    while let Some(access) = trace.next() {
        let number = pages.number(&access?);
        touches.push(number.map_err(|error| Failure::Error(format!("{}: {error}", trace.place())))?);
    }
    let count = touches.len() as f64;
    let (mut rows, begun) = (Vec::new(), Instant::now());
    for &policy in &arguments.policies {
        for &size in &arguments.pages {
            let hits = match policy {
                Replacement::Lru => hits(&mut Lru::new(size, pages.end()), &touches),
                Replacement::Clock => hits(&mut Clock::new(size, pages.end()), &touches),
            };
            let ratio = Cell::float((count > 0.0).then(|| 100.0 * hits as f64 / count));
            let misses = touches.len() as u64 - hits;
            let name = match policy {
                Replacement::Lru => "lru",
                Replacement::Clock => "clock",
            };
            rows.push(vec![text(name), Cell::int(size.get().into()), Cell::int(hits), Cell::int(misses), ratio]);
        }
    }
    let replayed = count * rows.len() as f64;
    say(&format!("{:.1} M touches/s replayed", replayed / begun.elapsed().as_secs_f64().max(1e-9) / 1e6));
    let columns = vec![
        column("policy", "Policy", ""),
        column("pages", "Pages", ""),
        column("hits", "Hits", ""),
        column("misses", "Misses", ""),
        column("hit_percent", "Hits", "%"),
    ];
    let table = Table {
        name: "replay".into(),
        title: format!("Page replacement, {} accesses", touches.len()),
        note: "The cache starts empty. Pages are distinguished by pid.".into(),
        body: Body::List { columns, rows },
    };
    let input = InputInfo {
        name: arguments.trace.to_string_lossy().into_owned(),
        arm: "import".into(),
        ..InputInfo::default()
    };
    print_tables(input, vec![table], Vec::new(), &arguments.printing)
}
