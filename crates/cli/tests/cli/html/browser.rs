//! Debian's Chromium without a window, by its DevTools protocol.

use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A browser without a window.
pub(super) struct Browser {
    process: Child,
    to: File,
    from: BufReader<File>,
    last: u64,
    session: Value,
    /// What the page complained of.
    pub(super) errors: Vec<Value>,
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Browser {
    /// Starts it; it talks through two FIFOs.
    pub(super) fn start(directory: &Path) -> Browser {
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
            "--hide-scrollbars",
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
    pub(super) fn call(&mut self, method: &str, parameters: Value) -> Value {
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
    pub(super) fn value(&mut self, expression: &str) -> Value {
        let parameters = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let result = self.call("Runtime.evaluate", parameters);
        assert!(result["exceptionDetails"].is_null(), "{expression}: {result}");
        result["result"]["value"].clone()
    }

    /// Waits until an expression is true, at most a minute.
    pub(super) fn until(&mut self, expression: &str) {
        let polled = format!(
            "new Promise((ok, no) => {{ const end = Date.now() + 60000; const f = () => {expression} ? ok(1) : \
             Date.now() > end ? no(new Error('never true')) : setTimeout(f, 10); f() }})"
        );
        self.value(&polled);
    }

    /// Opens a page and waits until so many charts are drawn.
    pub(super) fn open(&mut self, page: &Path, charts: usize) {
        self.call("Page.navigate", json!({"url": format!("file://{}", page.display())}));
        self.until("document.documentElement?.dataset.ready === 'true'");
        self.until(&format!("document.querySelectorAll('[data-drawn]').length === {charts}"));
    }

    pub(super) fn mouse(&mut self, kind: &str, x: f64, y: f64) {
        let buttons = u32::from(kind != "mouseReleased");
        let at = json!({"type": kind, "x": x, "y": y, "button": "left", "buttons": buttons, "clickCount": 1});
        self.call("Input.dispatchMouseEvent", at);
    }

    /// What is seen, as a PNG in base64.
    pub(super) fn picture(&mut self) -> String {
        // Half as wide and tall: a picture that is kept is small.
        let clip = json!({"x": 0, "y": 0, "width": 1280, "height": 1600, "scale": 0.5});
        let shot = self.call("Page.captureScreenshot", json!({"format": "png", "clip": clip}));
        shot["data"].as_str().unwrap().into()
    }

    /// Which part of two pictures differs to the eye, in squares of 8 points; for that the browser shows an empty page.
    pub(super) fn difference(&mut self, pictures: [&str; 2]) -> f64 {
        self.call("Page.navigate", json!({"url": "about:blank"}));
        let script = "(async () => { const squares = async data => { const i = new Image(); \
             i.src = 'data:image/png;base64,' + data; await i.decode(); const c = document.createElement('canvas'); \
             c.width = 80; c.height = 100; const g = c.getContext('2d'); g.imageSmoothingQuality = 'high'; \
             g.drawImage(i, 0, 0, 80, 100); return g.getImageData(0, 0, 80, 100).data; }; \
             const [a, b] = [await squares(A), await squares(B)]; \
             return a.filter((x, i) => Math.abs(x - b[i]) > 10).length / a.length; })()";
        let script = script.replace("(A)", &format!("({})", json!(pictures[0])));
        self.value(&script.replace("(B)", &format!("({})", json!(pictures[1])))).as_f64().unwrap()
    }
}
