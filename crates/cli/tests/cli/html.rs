//! `--format html`: what is refused, and the pages in a browser, Debian's Chromium by its DevTools protocol.

use super::support::{V6, ok, root, scratch, skipped};
use super::transcripts::transcript_in;
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

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

/// A browser without a window.
struct Browser {
    process: Child,
    to: File,
    from: BufReader<File>,
    last: u64,
    session: Value,
    /// What the page complained of.
    errors: Vec<Value>,
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Browser {
    /// Starts it; it talks through two FIFOs.
    fn start(directory: &Path) -> Browser {
        let [to, from] = ["to", "from"].map(|name| directory.join(name));
        assert!(Command::new("mkfifo").args([&to, &from]).status().unwrap().success());
        let arguments = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--remote-debugging-pipe",
            "--window-size=1280,1600",
            "--force-device-scale-factor=1",
        ];
        let process = Command::new("sh")
            .args(["-c", r#"to=$1 from=$2; shift 2; exec chromium "$@" 3<"$to" 4>"$from""#, "sh"])
            .args([&to, &from])
            .args(arguments)
            .arg(format!("--user-data-dir={}", directory.join("profile").display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let to = OpenOptions::new().write(true).open(to).unwrap();
        let from = BufReader::new(File::open(from).unwrap());
        let mut browser = Browser { process, to, from, last: 0, session: Value::Null, errors: Vec::new() };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}))["targetId"].clone();
        let attached = browser.call("Target.attachToTarget", json!({"targetId": target, "flatten": true}));
        browser.session = attached["sessionId"].clone();
        for domain in ["Page", "Runtime", "Log"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// Calls a method of the protocol and waits for its result.
    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.last += 1;
        let mut message = json!({"id": self.last, "method": method, "params": parameters});
        if !self.session.is_null() {
            message["sessionId"] = self.session.clone();
        }
        self.to.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let mut answer = Vec::new();
            self.from.read_until(0, &mut answer).unwrap();
            assert_eq!(answer.pop(), Some(0), "the browser ended");
            let answer: Value = serde_json::from_slice(&answer).unwrap();
            let told = ["Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"];
            if told.iter().any(|told| answer["method"] == *told) {
                self.errors.push(answer["params"].clone());
            }
            if answer["id"] == self.last {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
        }
    }

    /// The value of an expression, or of its promise.
    fn value(&mut self, expression: &str) -> Value {
        let parameters = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let result = self.call("Runtime.evaluate", parameters);
        assert!(result["exceptionDetails"].is_null(), "{expression}: {result}");
        result["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    fn until(&mut self, expression: &str) {
        let polled = format!("new Promise(ok => {{ const f = () => {expression} ? ok(1) : setTimeout(f, 10); f() }})");
        self.value(&polled);
    }

    /// Opens a page and waits until so many charts are drawn.
    fn open(&mut self, page: &Path, charts: usize) {
        self.call("Page.navigate", json!({"url": format!("file://{}", page.display())}));
        self.until("document.documentElement?.dataset.ready === 'true'");
        self.until(&format!("document.querySelectorAll('[data-drawn]').length === {charts}"));
    }

    fn mouse(&mut self, kind: &str, x: f64, y: f64) {
        let buttons = u32::from(kind != "mouseReleased");
        let at = json!({"type": kind, "x": x, "y": y, "button": "left", "buttons": buttons, "clickCount": 1});
        self.call("Input.dispatchMouseEvent", at);
    }
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
    if Command::new("chromium").arg("--version").output().is_err() {
        return skipped(TEST, "chromium is not installed");
    }
    let scratch = scratch();
    let at = |name: &str| scratch.path().join(name);
    let twin = at("twin.mmt");
    ok(["run", "scenarios/examples/numastat-pages.toml", "-o", twin.to_str().unwrap()]);
    let packed = |name: &str| root().join("tests/verdicts").join(format!("{name}.tar.zst"));
    let (host, lab) = (packed("host-cp"), packed("lab-box612"));
    let mut browser = Browser::start(scratch.path());
    for (name, input) in [("twin", &twin), ("lab", &lab), ("host", &host)] {
        let page = at(&format!("{name}.html"));
        ok(["report", input.to_str().unwrap(), "--format", "html", "-o", page.to_str().unwrap()]);
        check(&mut browser, &page);
    }
    assert!(browser.value("document.querySelectorAll('[data-chart]').length").as_u64() > Some(2));
    zoom(&mut browser);
    filter(&mut browser, &at("host.html"));
    let page = at("both.html");
    let [host, lab] = [&host, &lab].map(|path| path.to_str().unwrap());
    ok(["compare", host, lab, "--format", "html", "-o", page.to_str().unwrap()]);
    check(&mut browser, &page);
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
