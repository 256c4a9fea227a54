//! How fast a page is written, drawn and moved; `make web-again`. The figures are for an optimised build on a quiet
//! machine: they are printed, and only the size is asserted.

use super::browser::Browser;
use super::data;
use crate::support::{installed, ok, root, scratch};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// A trace of an hour: so many events of every kind that a page draws.
fn trace(path: &Path, events: u64) {
    let mut text = String::from("# tracer: nop\n");
    for i in 0..events / 4 {
        let at = |part: u64| {
            let us = i * 3_600_000_000 / (events / 4) + part;
            format!("{}.{:06}", 1000 + us / 1_000_000, us % 1_000_000)
        };
        let (task, cpu) = (i % 200, i % 8);
        let mut event = |part: u64, what: &str| {
            writeln!(text, " task-{} [00{cpu}] .... {}: {what}", 100 + task, at(part)).unwrap();
        };
        event(0, "mm_vmscan_direct_reclaim_begin: order=0 may_writepage=1 gfp_flags=GFP_KERNEL");
        event(
            20,
            "mm_vmscan_lru_shrink_inactive: nid=0 zid=1 nr_scanned=32 nr_reclaimed=30 priority=12 flags=RECLAIM_WB_FILE",
        );
        event(30 + i * 7919 % 3000, "mm_vmscan_direct_reclaim_end: nr_reclaimed=30");
        event(3100, "mm_migrate_pages: nr_succeeded=8 nr_failed=1 mode=MIGRATE_ASYNC reason=numa_misplaced");
    }
    std::fs::write(path, text).unwrap();
}

/// The page with 20 lines of 10,000 points in one chart.
fn large(page: &Path) {
    let mut data = data(page, "page");
    let axis: Vec<f64> = (0..10_000).map(|i| f64::from(i) * 0.36).collect();
    let height = |line: u64, i: u64| (i * i * (line + 3)) % 1009 + line * 500;
    let line = |line: u64| {
        let y: Vec<u64> = (0..10_000).map(|i| height(line, i)).collect();
        json!({"name": format!("line {line}"), "x": 0, "y": y})
    };
    let run = &mut data["runs"][0];
    run["axes"] = json!([axis]);
    run["length"] = json!(3600);
    run["marks"] = json!([]);
    let lines: Vec<Value> = (0..20).map(line).collect();
    run["charts"] = json!([{"id": "large", "title": "Large", "unit": "/s", "note": "", "lines": lines}]);
    let text = std::fs::read_to_string(page).unwrap();
    let (before, rest) = text.split_once("id=\"page\">").unwrap();
    let (_, after) = rest.split_once("</script>").unwrap();
    std::fs::write(page, format!("{before}id=\"page\">{data}</script>{after}")).unwrap();
}

#[test]
#[ignore = "measures"]
fn two_million_events_on_a_page() {
    if !installed("two_million_events_on_a_page", "chromium") {
        return;
    }
    let scratch = scratch();
    let at = |name: &str| scratch.path().join(name);
    let (text, dat, page) = (at("t.txt"), at("t.dat"), at("t.html"));
    trace(&text, 2_000_000);
    ok(["convert", text.to_str().unwrap(), "-o", dat.to_str().unwrap()]);
    let program = std::env::var("MMTWIN_BIN").unwrap_or(env!("CARGO_BIN_EXE_mmtwin").into());
    let begun = Instant::now();
    let mut report = Command::new(program);
    report.arg("report").arg(&dat).args(["--format", "html", "-o"]).arg(&page).current_dir(root());
    assert!(report.status().unwrap().success());
    let (seconds, bytes) = (begun.elapsed().as_secs_f64(), std::fs::metadata(&page).unwrap().len());
    eprintln!("2,000,000 events: written in {seconds:.2} s, {bytes} bytes");
    assert!(bytes <= 2_000_000, "{bytes}");
    let mut browser = Browser::start(scratch.path());
    for name in ["as written", "20 lines of 10,000 points"] {
        let charts = data(&page, "page")["runs"][0]["charts"].as_array().unwrap().len();
        browser.open(&page, charts);
        let first = browser.value("performance.getEntriesByName('first chart')[0].startTime");
        // Half of the time is shown, and moves with every frame.
        let frames = browser.value(
            "new Promise(ok => { document.querySelector('[data-chart]').scrollIntoView(); \
             document.getElementById('closer').click(); let n = 0, begun; const step = now => { begun ??= now; \
             document.querySelector('[data-chart]').dispatchEvent(new KeyboardEvent('keydown', \
             {key: n % 30 < 15 ? 'ArrowLeft' : 'ArrowRight'})); \
             if (++n <= 120) requestAnimationFrame(step); else ok(120000 / (now - begun)) }; \
             requestAnimationFrame(step) })",
        );
        eprintln!("{name}: first chart after {first} ms, {frames} frames/s while moving");
        large(&page);
    }
    assert_eq!(browser.errors, [] as [Value; 0]);
}
