//! The historic summary against the script that kernels ship for it, on recordings of a 6.1 kernel.
//!
//! The script is taken from Debian's kernel source package by `tools/setup.sh`; it reads event formats of the machine
//! it runs on. Where both differ, [`DEFECTS`] says why.

use super::support::{gunzip, installed, ok, recording, root, skipped};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Why the script's figures of a row are not ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Defect {
    /// `mm_vmscan_writepage` became `mm_vmscan_write_folio`, which the script does not count.
    WritesNotCounted,
    /// A sleep without a wake before it counts as awake since the machine was started.
    AwakeSinceBoot,
    /// Sums over no process are empty, not 0.
    Empty,
}
use Defect::*;

/// Rows of the summary that differ, by recording. Every other row must be equal, and these must differ.
const DEFECTS: &[(&str, &[(&str, Defect)])] = &[
    (
        "tests/data/postprocess-6.1.txt.gz",
        &[
            ("Direct reclaim write anon async I/O", WritesNotCounted),
            ("Kswapd reclaim write anon async I/O", WritesNotCounted),
            ("Time kswapd awake", AwakeSinceBoot),
        ],
    ),
    ("tests/data/findings/reclaim-6.1.txt.gz", &[]),
    (
        "tests/data/findings/kswapd-6.1.txt.gz",
        &[
            ("Direct reclaims", Empty),
            ("Direct reclaim pages scanned", Empty),
            ("Direct reclaim file pages scanned", Empty),
            ("Direct reclaim anon pages scanned", Empty),
            ("Direct reclaim pages reclaimed", Empty),
            ("Direct reclaim file pages reclaimed", Empty),
            ("Direct reclaim anon pages reclaimed", Empty),
            ("Direct reclaim write file sync I/O", Empty),
            ("Direct reclaim write anon sync I/O", Empty),
            ("Direct reclaim write file async I/O", Empty),
            ("Direct reclaim write anon async I/O", Empty),
            ("Wake kswapd requests", Empty),
        ],
    ),
];

/// Columns of figures behind the name in a line of a process, as the script prints them since it counts file and
/// anonymous pages apart, which moved all columns behind the scanned pages: the third is scanned pages, the sixth,
/// under the title of the asynchronous writes, reclaimed pages.
const SCANNED: usize = 2;
const RECLAIMED_OF_SCRIPT: usize = 5;
const RECLAIMED: usize = 3;

/// Figures of a process, and its counts by order.
type Process = (Vec<String>, Vec<String>);

/// The parts of an output.
#[derive(Debug, Default)]
struct Output {
    /// Order and milliseconds of each reclaim of a process.
    latencies: BTreeMap<String, Vec<(String, f64)>>,
    /// Direct reclaimers, and kswapds.
    processes: [BTreeMap<String, Process>; 2],
    /// Label and figure.
    summary: BTreeMap<String, String>,
}

fn parse(text: &str) -> Output {
    let mut output = Output::default();
    let mut part = "";
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[0] {
            "Reclaim" | "Process" | "Kswapd" if part != "Summary" => part = words[0],
            "Summary" => part = "Summary",
            "details" | "Instance" => {}
            _ if part == "Reclaim" => {
                let one = |word: &&str| {
                    let (order, ms) = word.split_once('-').expect("ORDER-MS");
                    (order.to_string(), ms.parse().expect("a number"))
                };
                output.latencies.insert(words[0].into(), words[1..].iter().map(one).collect());
            }
            _ if part == "Summary" => {
                let (label, figure) = line.split_once(':').expect("LABEL: FIGURE");
                output.summary.insert(label.into(), figure.trim().into());
            }
            name => {
                let (orders, figures): (Vec<_>, Vec<_>) =
                    words[1..].iter().map(|w| w.to_string()).partition(|w| w.contains('='));
                let processes = &mut output.processes[usize::from(part == "Kswapd")];
                processes.insert(name.into(), (figures, orders));
            }
        }
    }
    output
}

/// Runs the script on a text; `None` and a word on standard error if it cannot.
fn script(test: &str, path: &Path, text: &str) -> Option<Output> {
    let mut child = Command::new("perl")
        .arg(path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("perl");
    let mut stdin = child.stdin.take().expect("a pipe");
    let text = text.to_string();
    let feeder = std::thread::spawn(move || {
        // A script that gives up early does not read all; its status tells.
        let _ = stdin.write_all(text.as_bytes());
    });
    let output = child.wait_with_output().expect("perl");
    feeder.join().expect("the feeder");
    let printed = String::from_utf8(output.stdout).expect("UTF-8");
    if !output.status.success() || printed.contains("WARNING") {
        skipped(test, "the script does not understand the event formats of this machine");
        return None;
    }
    Some(parse(&printed))
}

#[test]
fn the_summary_is_that_of_the_kernels_script() {
    let test = "the_summary_is_that_of_the_kernels_script";
    let path = root().join("target/oracle/trace-vmscan-postprocess-6.12.pl");
    if !path.exists() {
        return skipped(test, "tools/setup.sh has not fetched the script");
    }
    if !installed(test, "perl") {
        return;
    }
    if !Path::new("/sys/kernel/tracing/events/vmscan").exists() {
        return skipped(test, "no tracefs, from which the script reads event formats");
    }
    for (name, defects) in DEFECTS {
        let Some(theirs) = script(test, &path, &gunzip(name)) else { return };
        let recorded = ["--recorded", "vmscan:*"];
        let base = ["report", name, "--style", "historic", "--table", "postprocess"];
        let ours = parse(&ok([&base[..], &recorded].concat()));
        compare(name, &theirs, &ours, defects);
    }
}

fn compare(name: &str, theirs: &Output, ours: &Output, defects: &[(&str, Defect)]) {
    assert!(theirs.summary.len() == 25 && theirs.summary.keys().eq(ours.summary.keys()), "{name}: {theirs:?}");
    for (label, figure) in &theirs.summary {
        let our = &ours.summary[label];
        let number = |text: &str| text.trim_end_matches(" seconds").parse::<f64>().expect("a number");
        match defects.iter().find(|(row, _)| row == label) {
            None => assert_eq!(our, figure, "{name}: {label}"),
            Some((_, Empty)) => assert_eq!((our.as_str(), figure.as_str()), ("0", ""), "{name}: {label}"),
            Some((_, WritesNotCounted)) => assert!(number(our) > 0.0 && figure == "0", "{name}: {label}"),
            Some((_, AwakeSinceBoot)) => assert!(number(figure) > number(our) + 60.0, "{name}: {label}"),
        }
    }
    for (theirs, ours) in theirs.processes.iter().zip(&ours.processes) {
        assert!(theirs.keys().eq(ours.keys()), "{name}: {theirs:?} {ours:?}");
        for (process, (figures, orders)) in theirs {
            let (our, our_orders) = &ours[process];
            assert_eq!(our[..=SCANNED], figures[..=SCANNED], "{name}: {process}");
            assert_eq!(our[RECLAIMED], figures[RECLAIMED_OF_SCRIPT], "{name}: {process}");
            assert_eq!(our_orders, orders, "{name}: {process}");
        }
    }
    for (process, latencies) in &ours.latencies {
        // Durations that begin before the trace, for which the script has no order, are not ours.
        let known = |(order, _): &&(String, f64)| !order.is_empty();
        let their = theirs.latencies[process].iter().filter(known);
        assert_eq!(latencies.len(), their.clone().count(), "{name}: {process}");
        for (our, their) in latencies.iter().zip(their) {
            // The script subtracts in floating point.
            assert!(our.0 == their.0 && (our.1 - their.1).abs() < 0.0005, "{name}: {process}: {our:?} {their:?}");
        }
    }
    let without_begin = |p: &str| theirs.latencies[p].iter().all(|(order, _)| order.is_empty());
    let missing: Vec<_> = theirs.latencies.keys().filter(|p| !ours.latencies.contains_key(*p)).collect();
    assert!(missing.iter().all(|p| without_begin(p)), "{name}: {missing:?}");
}

/// The recordings have what the comparison is about.
#[test]
fn recordings_have_both_sides_of_reclaim() {
    let text = gunzip("tests/data/postprocess-6.1.txt.gz") + &gunzip(&recording("reclaim-6.1"));
    for event in ["direct_reclaim_end", "kswapd_wake", "kswapd_sleep", "wakeup_kswapd", "lru_isolate", "write_folio"] {
        assert!(text.contains(&format!(": mm_vmscan_{event}: ")), "{event}");
    }
}
