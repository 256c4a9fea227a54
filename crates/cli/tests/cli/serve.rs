//! `mmtwin serve` from outside.

use super::support::{command, mmtwin, ok, python, root, scratch};
use super::transcripts::golden;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

/// An endpoint on a free port, and its address.
struct Endpoint(Child, String);

impl Endpoint {
    fn start(options: &[&str]) -> Endpoint {
        let mut command = command(["serve", "--listen", "127.0.0.1:0"].iter().chain(options));
        let mut child = command.stderr(Stdio::piped()).spawn().expect("the program");
        let mut line = String::new();
        BufReader::new(child.stderr.take().expect("a pipe")).read_line(&mut line).expect("a line");
        let address = line.trim_end().strip_prefix("mmtwin: serving http://").expect("an address");
        Endpoint(child, address.strip_suffix("/metrics").expect("a path").into())
    }

    fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.1).expect("a connection");
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.1).expect("a request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The name of a sample that a text has.
fn has(text: &str, name: &str) -> bool {
    text.lines().any(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '{'])))
}

#[test]
fn counters_of_this_host_are_served() {
    let endpoint = Endpoint::start(&["--max-cgroups", "1"]);
    let answer = endpoint.get("/metrics");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text; version=1.0.0"), "{head}");
    assert!(body.ends_with("\n# EOF\n") && has(body, "mmtwin_vmstat_pgfault_total"));
    assert!(has(body, "mmtwin_meminfo_MemTotal_bytes") && body.contains("\nmmtwin_series_omitted 0\n"));
    let free =
        |body: &str| body.lines().find_map(|line| line.strip_prefix("mmtwin_vmstat_pgfault_total ")?.parse().ok());
    let again = endpoint.get("/metrics");
    assert!(free(&again) > free(body) && free(body) > Some(0u64), "each scrape reads again");
    assert!(endpoint.get("/").contains("/metrics") && endpoint.get("/etc/passwd").starts_with("HTTP/1.1 404 "));
    let few = Endpoint::start(&["--max-series", "10"]).get("/metrics");
    assert!(
        has(&few, "mmtwin_series")
            && few.contains("\nmmtwin_series 10\n")
            && !few.contains("\nmmtwin_series_omitted 0\n")
    );
    let taken = mmtwin(["serve", "--listen", &endpoint.1]);
    assert!(taken.status == 1 && taken.err.contains(&endpoint.1), "{}", taken.err);
}

#[test]
fn dashboard_and_alerts_are_about_what_is_served() {
    let (dashboard, alerts) = (ok(["serve", "--dashboard"]), ok(["serve", "--alerts"]));
    golden("serve-alerts", &alerts);
    assert!(mmtwin(["serve", "--alerts", "--dashboard"]).status == 2);
    let served = Endpoint::start(&[]).get("/metrics");
    let vmstat = std::fs::read_to_string("/proc/vmstat").expect("/proc");
    let mut seen = 0;
    for text in [&dashboard, &alerts] {
        for rest in text.split("mmtwin_vmstat_").skip(1) {
            let name = rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().expect("a name");
            let own = name.strip_suffix("_total").unwrap_or(name);
            // What this kernel does not have cannot be served.
            if vmstat.lines().any(|line| line.starts_with(own)) {
                assert!(has(&served, &format!("mmtwin_vmstat_{name}")), "{name}");
                seen += 1;
            }
        }
    }
    assert!(seen > 20, "{seen} names");
}

/// `make exports-again`.
#[test]
#[ignore = "needs Python packages"]
fn the_reference_parser_of_scrapes_reads_what_is_written() {
    let scratch = scratch();
    let file = scratch.path().join("scrape");
    let answer = Endpoint::start(&[]).get("/metrics");
    std::fs::write(&file, answer.split_once("\r\n\r\n").expect("a head").1).unwrap();
    let Some(mut python) = python("serve") else { return };
    let run = python.arg(root().join("tools/read_openmetrics.py")).arg(&file).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    eprintln!("{}", String::from_utf8_lossy(&run.stdout).chars().take(200).collect::<String>());
}
