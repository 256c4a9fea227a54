//! `--format html`: what is refused, and the pages in a browser.

mod browser;
mod speed;

use super::support::{V6, installed, ok, root, scratch};
use super::transcripts::transcript_in;
use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use browser::Browser;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

#[test]
fn what_cannot_be_a_page_is_refused() {
    let scratch = scratch();
    std::fs::write(scratch.path().join("there.html"), "mine").unwrap();
    let html = |more: &[&'static str]| [&["report", V6, "--format", "html"][..], more].concat();
    for (name, arguments) in [
        ("html-exists", html(&["-o", "SCRATCH/there.html"])),
        ("html-no-directory", html(&["-o", "SCRATCH/none/r.html"])),
        ("html-topic", html(&["reclaim"])),
        ("html-two-inputs", html(&[V6])),
        ("html-keys", html(&["--keys"])),
        ("html-historic", html(&["--style", "historic"])),
        ("html-fleet", html(&["--fleet"])),
        ("html-force-alone", vec!["report", V6, "-f"]),
    ] {
        transcript_in(scratch.path(), name, &arguments);
    }
    assert_eq!(std::fs::read(scratch.path().join("there.html")).unwrap(), b"mine");
}

#[test]
fn text_goes_to_a_file_too() {
    let scratch = scratch();
    let file = scratch.path().join("r.txt");
    let name = file.to_str().unwrap();
    assert_eq!(ok(["report", V6, "-o", name]), "");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), ok(["report", V6]));
    assert_eq!(ok(["compare", V6, V6, "-f", "-o", name]), "");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), ok(["compare", V6, V6]));
}

/// The JSON of an element of a page.
fn data(page: &Path, id: &str) -> Value {
    let page = std::fs::read_to_string(page).unwrap();
    let begin = format!("<script type=\"application/json\" id=\"{id}\">");
    serde_json::from_str(page.split_once(&begin).unwrap().1.split_once("</script>").unwrap().0).unwrap()
}

/// Points of each chart, as the page has them in its data.
fn points(page: &Value) -> Value {
    let mut charts: Vec<(String, u64)> = Vec::new();
    for chart in page["runs"].as_array().unwrap().iter().flat_map(|run| run["charts"].as_array().unwrap()) {
        let lines = chart["lines"].as_array().unwrap().iter();
        let sum = lines.map(|line| line["y"].as_array().unwrap().len() as u64).sum::<u64>();
        let id = chart["id"].as_str().unwrap();
        match charts.iter_mut().find(|(known, _)| known == id) {
            Some((_, points)) => *points += sum,
            None => charts.push((id.into(), sum)),
        }
    }
    json!(charts.into_iter().map(|(id, points)| json!([id, points.to_string()])).collect::<Vec<_>>())
}

const DRAWN: &str = "[...document.querySelectorAll('[data-chart]')].map(f => [f.dataset.chart, f.dataset.points])";
const RANGES: &str =
    "[...new Set([...document.querySelectorAll('[data-chart]')].slice(0, 2).map(f => f.dataset.range))]";

#[test]
fn a_browser_draws_what_the_file_has() {
    const TEST: &str = "a_browser_draws_what_the_file_has";
    if !installed(TEST, "chromium") {
        return;
    }
    let scratch = scratch();
    let at = |name: &str| scratch.path().join(name);
    let twin = at("twin.mmt");
    ok(["run", "scenarios/examples/numastat-pages.toml", "-o", twin.to_str().unwrap()]);
    let (host, lab) = (Path::new("tests/verdicts/host-cp.tar.zst"), Path::new("tests/verdicts/lab-box612.tar.zst"));
    let mut browser = Browser::start(scratch.path());
    for (name, input) in [("twin", twin.as_path()), ("lab", lab), ("host", host)] {
        let page = at(&format!("{name}.html"));
        ok(["report", input.to_str().unwrap(), "--format", "html", "-o", page.to_str().unwrap()]);
        check(&mut browser, &page);
    }
    assert!(browser.value("document.querySelectorAll('[data-chart]').length").as_u64() > Some(2));
    zoom(&mut browser);
    filter(&mut browser, &at("host.html"));
    mark(&mut browser, &at("host.html"));
    keys_and_order(&mut browser);
    let page = at("both.html");
    let [host, lab] = [host, lab].map(|path| path.to_str().unwrap());
    ok(["compare", host, lab, "--format", "html", "-o", page.to_str().unwrap()]);
    check(&mut browser, &page);
    let differ = data(&page, "page")["differences"]["rows"].as_array().unwrap().len();
    assert!(differ > 0);
    assert_eq!(browser.value("Number(document.querySelector('[data-table=differences]').dataset.rows)"), differ);
    hostile(&mut browser, scratch.path());
    looks(&mut browser, &at("host.html"));
    assert_eq!(browser.errors, [] as [Value; 0]);
}

/// Every chart has the points of the JSON, and nothing was complained of.
fn check(browser: &mut Browser, page: &Path) {
    let expected = points(&data(page, "page"));
    assert!(std::fs::metadata(page).unwrap().len() <= 2_000_000);
    browser.open(page, expected.as_array().unwrap().len());
    assert_eq!(browser.value(DRAWN), expected, "{}", page.display());
    assert_eq!(browser.errors, [] as [Value; 0], "{}", page.display());
}

/// Drags over a quarter of the first chart: all charts show that part, and all of it again after the button.
fn zoom(browser: &mut Browser) {
    let whole = browser.value(RANGES);
    let place = "(() => { const o = document.querySelector('.u-over'); o.scrollIntoView({block: 'center'}); \
                 const r = o.getBoundingClientRect(); return [r.x, r.y + r.height / 2, r.width] })()";
    let place = browser.value(place);
    let [x, y, width] = [0, 1, 2].map(|i| place[i].as_f64().unwrap());
    browser.mouse("mouseMoved", x + width * 0.25, y);
    browser.mouse("mousePressed", x + width * 0.25, y);
    browser.mouse("mouseMoved", x + width * 0.4, y);
    browser.mouse("mouseMoved", x + width * 0.5, y);
    browser.mouse("mouseReleased", x + width * 0.5, y);
    browser.until(&format!("{RANGES}[0] !== {}", whole[0]));
    let ends =
        |range: &Value| -> Vec<f64> { range[0].as_str().unwrap().split(',').map(|end| end.parse().unwrap()).collect() };
    let (all, part) = (ends(&whole), ends(&browser.value(RANGES)));
    let share = (part[1] - part[0]) / (all[1] - all[0]);
    assert!((share - 0.25).abs() < 0.02, "{share}");
    browser.value("document.getElementById('all').click()");
    browser.until(&format!("{RANGES}.length === 1 && {RANGES}[0] === {}", whole[0]));
}

/// A table has the rows of the report, and a filter those that hold a word.
fn filter(browser: &mut Browser, page: &Path) {
    let report = data(page, "report");
    let lists = report["tables"].as_array().unwrap().iter().filter(|table| table["kind"] == "list");
    let table = lists.max_by_key(|table| table["rows"].as_array().unwrap().len()).unwrap();
    let (name, rows) = (table["name"].as_str().unwrap(), table["rows"].as_array().unwrap().len());
    browser.value("document.querySelectorAll('details.table').forEach(table => table.open = true)");
    let element = format!("document.querySelector('[data-table={}]')", json!(name));
    browser.until(&format!("{element}?.dataset.rows === '{rows}'"));
    let none = format!(
        "(() => {{ const t = {element}, i = t.querySelector('input'); i.value = 'no such word'; \
         i.dispatchEvent(new Event('input')); return t.dataset.rows }})()"
    );
    assert_eq!(browser.value(&none), "0");
}

/// A finding's button shows the waits around its mark, and the time around it.
fn mark(browser: &mut Browser, page: &Path) {
    let data = data(page, "page");
    let waits = data["runs"][0]["waits"]["rows"].as_array().unwrap().len();
    let shown = "Number(document.querySelector('[data-list=waits] [data-table]').dataset.rows)";
    assert_eq!(browser.value(shown), waits);
    browser.value("document.querySelector('[data-mark]').click()");
    browser.until(&format!("{shown} > 0 && {shown} < {waits}"));
    assert_eq!(browser.value("document.activeElement.textContent"), "Waits for memory");
    browser.value("document.getElementById('all').click()");
}

/// Keys move and zoom, a heading sorts, and the theme changes.
fn keys_and_order(browser: &mut Browser) {
    let press = |key: &str| {
        let event = format!("new KeyboardEvent('keydown', {{key: '{key}', bubbles: true}})");
        format!("document.querySelector('[data-chart]').dispatchEvent({event})")
    };
    browser.value("document.querySelector('[data-chart]').scrollIntoView()");
    let whole = "'0,' + JSON.parse(document.getElementById('page').textContent).runs[0].length";
    browser.until(&format!("{RANGES}[0] === {whole}"));
    browser.value(&press("+"));
    browser.until(&format!("{RANGES}[0] !== {whole}"));
    let closer = browser.value(RANGES);
    browser.value(&press("ArrowRight"));
    browser.until(&format!("{RANGES}[0] !== {}", closer[0]));
    browser.value(&press("0"));
    browser.until(&format!("{RANGES}[0] === {whole}"));
    let list = "document.querySelector('[data-list=waits]')";
    let column = format!(
        "(() => {{ {list}.querySelectorAll('th button')[5].click(); \
         return [...{list}.querySelectorAll('tbody tr')].map(row => Number(row.cells[5].textContent)) }})()"
    );
    let numbers: Vec<u64> = serde_json::from_value(browser.value(&column)).unwrap();
    assert!(numbers.len() > 10 && numbers.is_sorted_by(|a, b| a >= b), "{numbers:?}");
    assert_eq!(browser.value(&format!("{list}.querySelectorAll('th')[5].ariaSort")), "descending");
    let back = "getComputedStyle(document.body).backgroundColor";
    let light = browser.value(back);
    browser.value("document.getElementById('theme').click()");
    assert_ne!(browser.value(back), light);
}

/// Names are no markup, and a script that was put into the file does not run.
fn hostile(browser: &mut Browser, directory: &Path) {
    let (trace, page) = (directory.join("hostile.txt"), directory.join("hostile.html"));
    let event = |task: &str, seconds: u32, what: &str| format!("{task} [000] .... {seconds}.000000: {what}\n");
    let task = "</script><b>-12";
    let begin = "mm_vmscan_direct_reclaim_begin: order=0 may_writepage=1 gfp_flags=GFP_KERNEL";
    let text =
        ["# tracer: nop\n", &event(task, 1, begin), &event(task, 2, "mm_vmscan_direct_reclaim_end: nr_reclaimed=1")];
    std::fs::write(&trace, text.concat()).unwrap();
    ok(["report", trace.to_str().unwrap(), "--format", "html", "-o", page.to_str().unwrap()]);
    check(browser, &page);
    assert_eq!(browser.value("document.querySelectorAll('b').length"), 0);
    assert_eq!(browser.value("document.body.textContent.includes('</script><b>-12')"), true);
    let text = std::fs::read_to_string(&page).unwrap();
    std::fs::write(&page, text.replace("</body>", "<script>window.ran = true</script></body>")).unwrap();
    browser.open(&page, 1);
    assert_eq!(browser.value("window.ran === undefined"), true);
    let refused = browser.errors.drain(..).collect::<Vec<_>>();
    assert!(refused.len() == 1 && refused[0].to_string().contains("Content Security Policy"), "{refused:?}");
}

/// The page looks as it did, but for the letters of another machine. MMTWIN_GOLDEN=write keeps what it looks like now.
fn looks(browser: &mut Browser, page: &Path) {
    /// Part of the picture that may differ.
    const TOLERANCE: f64 = 0.01;
    let golden = root().join("tests/golden/html-report.png");
    let charts = points(&data(page, "page")).as_array().unwrap().len();
    browser.open(page, charts);
    let now = browser.picture();
    if std::env::var_os("MMTWIN_GOLDEN").is_some_and(|value| value == "write") {
        std::fs::write(&golden, BASE64.decode(&now).unwrap()).unwrap();
    }
    browser.value("document.querySelectorAll('.chart canvas').forEach(canvas => canvas.style.visibility = 'hidden')");
    let empty = browser.picture();
    let golden = BASE64.encode(std::fs::read(golden).unwrap());
    let differs = browser.difference([&golden, &now]);
    assert!(differs < TOLERANCE, "{differs} of the page looks different");
    let differs = browser.difference([&golden, &empty]);
    assert!(differs > TOLERANCE, "a page without charts is only {differs} different");
}

/// The committed bundle is what its sources give; `make web-again`.
#[test]
#[ignore = "needs Node, and a package registry"]
fn the_bundle_is_that_of_its_sources() {
    let (web, out) = (root().join("crates/report/web"), scratch());
    for (program, arguments) in [("npm", vec!["ci"]), ("npx", vec!["tsc", "--noEmit"])] {
        assert!(Command::new(program).args(arguments).current_dir(&web).status().unwrap().success());
    }
    let built = Command::new("node").arg("build.mjs").arg(out.path()).current_dir(&web).status().unwrap();
    assert!(built.success());
    for name in ["page.js", "page.css", "hashes.txt", "licences.txt"] {
        let read = |directory: &Path| std::fs::read(directory.join(name)).unwrap();
        assert!(read(out.path()) == read(&web.join("dist")), "{name} is not that of its sources: make web");
    }
}
