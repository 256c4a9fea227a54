//! `mmtwin serve`: the counters of this host for Prometheus.

mod scrape;

use crate::args::Serve;
use crate::http::{self, Answer, Limits};
use crate::{Failure, say};
use mmtwin_report::openmetrics::{CONTENT_TYPE, alerts, dashboard};
use scrape::Scraper;
use std::io::Write;
use std::net::TcpListener;
use std::sync::Mutex;
use std::time::Duration;

/// What clients may use: two scrapers and a person, with some room; a request of Prometheus has some 300 bytes.
const LIMITS: Limits = Limits { connections: 8, request: 8 << 10, time: Duration::from_secs(5) };

/// Runs the verb.
pub fn run(arguments: &Serve) -> Result<i32, Failure> {
    if arguments.dashboard || arguments.alerts {
        let text = if arguments.dashboard { dashboard::dashboard() } else { alerts::rules() };
        std::io::stdout().write_all(text.as_bytes())?;
        return Ok(0);
    }
    let scraper = Mutex::new(Scraper::new(arguments.cgroup.clone(), arguments.max_cgroups, arguments.max_series)?);
    let failed = |e: std::io::Error| Failure::Error(format!("{}: {e}", arguments.listen));
    let listener = TcpListener::bind(arguments.listen).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    say(&format!("serving http://{address}/metrics"));
    if !address.ip().is_loopback() {
        say("everyone who reaches this address can read the counters and the names of cgroups");
    }
    http::serve(&listener, LIMITS, &|path| answer(path, &scraper));
    Ok(0)
}

/// What is at a path. One scrape at a time: together they would take as many CPUs as there are clients.
fn answer(path: &str, scraper: &Mutex<Scraper>) -> Answer {
    match path {
        "/metrics" => match scraper.lock() {
            Ok(mut scraper) => Answer { status: 200, kind: CONTENT_TYPE, body: scraper.scrape() },
            Err(_) => Answer::text(503, "a scrape has failed"),
        },
        "/" => Answer::text(200, "mmtwin: counters of this host at /metrics"),
        _ => Answer::text(404, "there is only /metrics"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mmtwin_host::cgroup::{Mount, Version};
    use std::io::Read;
    use std::net::TcpStream;
    use std::path::Path;

    /// Kilobytes of this process in memory.
    fn resident() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a size");
        line.split_whitespace().nth(1).and_then(|kb| kb.parse().ok()).expect("a number")
    }

    /// Cgroups of some hundred counters each below a directory.
    fn cgroups(directory: &Path, names: impl Iterator<Item = String>) {
        let stat: String = (0..100).map(|n| format!("pgscan_{n} {n}\n")).collect();
        for name in names {
            std::fs::create_dir_all(directory.join(&name)).unwrap();
            std::fs::write(directory.join(&name).join("memory.stat"), &stat).unwrap();
            std::fs::write(directory.join(&name).join("memory.current"), "4096\n").unwrap();
        }
    }

    /// `make scrapes`.
    #[test]
    #[ignore = "takes half a minute"]
    fn a_thousand_scrapes_of_five_thousand_series_need_no_more_memory() {
        let root = tempfile::tempdir().unwrap();
        let mount = Mount { path: root.path().into(), version: Version::V2 };
        let scraper = Mutex::new(Scraper::of(vec![mount], Vec::new(), 50, 20_000));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || http::serve(&listener, LIMITS, &|path| answer(path, &scraper)));
        let mut after = Vec::new();
        for n in 0..1000 {
            // One goes and one comes with every scrape; sixty are there.
            cgroups(root.path(), (n..n + 60).map(|n| format!("c{n}")).filter(|name| !root.path().join(name).exists()));
            if n > 0 {
                std::fs::remove_dir_all(root.path().join(format!("c{}", n - 1))).unwrap();
            }
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            assert!(text.starts_with("HTTP/1.1 200 OK\r\n") && text.ends_with("# EOF\n"));
            if n == 0 {
                let series: u64 =
                    text.lines().find_map(|line| line.strip_prefix("mmtwin_series ")?.parse().ok()).unwrap();
                assert!(series >= 5_000, "{series}");
                assert!(text.contains("\nmmtwin_cgroups_omitted 10\n"));
            }
            if n % 100 == 99 {
                after.push(resident());
            }
        }
        eprintln!("kB resident after every 100 scrapes: {after:?}");
        assert!(after[9] <= after[1] + 2048, "{after:?}");
    }
}
