//! Answers that were wrong once: what is not known is n/a, and two ways to one figure give the same.

use super::support::{finding_keys, mmtwin, named, ok, report_json, scratch};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Two threads that share memory on two nodes, with huge pages and balancing.
const BALANCED: &str = r#"
[machine]
preset = "lab-4n"
[kernel]
release = "6.1"
thp = "always"
[[process]]
name = "p"
threads = 4
[[process.region]]
name = "heap"
size = "48 MiB"
populate = true
populate_policy = "bind:3"
[[process.phase]]
duration = "4 s"
[[process.phase.access]]
region = "heap"
threads = "all"
pattern = "uniform"
write = 0.5
think = "5 us"
[run]
sample = "500 ms"
events = ["migrate:*", "vmscan:*", "compaction:*", "sched:*numa*"]
"#;

/// What a report says, without the names of its input.
fn said(mut report: Value, name: &str) -> String {
    report["inputs"] = Value::Null;
    report.to_string().replace(name, "NAME").replace("mmtwin run", "mmtwin report")
}

#[test]
fn a_run_and_the_report_of_its_recording_say_the_same() {
    let scratch = scratch();
    let scenario = scratch.path().join("s.toml");
    fs::write(&scenario, BALANCED).expect("scenario");
    for release in ["3.13", "4.17", "6.1", "6.18"] {
        let recording = scratch.path().join(format!("{release}.mmt"));
        let (scenario, name) = (scenario.to_str().expect("UTF-8"), recording.to_str().expect("UTF-8"));
        let set = format!("kernel.release={release:?}");
        let run = ok(["run", scenario, "--set", &set, "-o", name, "--format", "json"]);
        let run: Value = serde_json::from_str(&run).expect("JSON");
        assert!(!finding_keys(&run).contains(&"invariants".to_string()), "{release}: {}", run["findings"]);
        let report = report_json(&recording, Vec::<&str>::new());
        assert_eq!(run["inputs"][0]["events"], report["inputs"][0]["events"], "{release}");
        let (run, report) = (said(run, name), said(report, name));
        let differs = run.bytes().zip(report.bytes()).position(|(a, b)| a != b).unwrap_or(run.len().min(report.len()));
        let around = |text: &str| text.chars().skip(differs.saturating_sub(200)).take(400).collect::<String>();
        assert!(run == report, "{release}:\n{}\n{}", around(&run), around(&report));
    }
}

#[test]
fn a_recording_of_counters_has_no_number_of_events() {
    let scratch = scratch();
    let (scenario, recording) = (scratch.path().join("s.toml"), scratch.path().join("r.mmt"));
    let text =
        "[machine]\npreset = \"lab-4n\"\n[kernel]\nrelease = \"6.1\"\n[run]\nduration = \"1 s\"\nsample = \"500 ms\"\n";
    fs::write(&scenario, text).expect("scenario");
    let all = [Path::new("run"), &scenario, Path::new("-o"), &recording];
    ok(all);
    let report = mmtwin([Path::new("report"), &recording]);
    let heading: Vec<&str> = report.text().lines().take_while(|line| !line.is_empty()).collect();
    let heading = heading.join(" ");
    assert!(heading.ends_with("counters only") && !heading.contains("events"), "{heading}");
    let report = report_json(&recording, Vec::<&str>::new());
    assert_eq!((&report["inputs"][0]["events"], &report["inputs"][0]["lost_events"]), (&Value::Null, &Value::Null));
}

#[test]
fn saved_counters_without_a_time_have_no_rates() {
    let scratch = scratch();
    let save = |name: &str, text: &str| {
        let path = scratch.path().join(name);
        fs::write(&path, text).expect("counters");
        path.to_str().expect("UTF-8").to_string()
    };
    let before = save("a.vmstat", "nr_free_pages 900\npgfault 10\nallocstall_normal 1\nnuma_hint_faults 0\n");
    let after = save("b.vmstat", "nr_free_pages 200\npgfault 30\nallocstall_normal 9\nnuma_hint_faults 7\n");
    let trace = save("trace.txt", "# tracer: nop\n");
    let report = report_json(Path::new(&trace), ["--counters", &format!("{before},{after}")]);
    let table = named(&report["tables"], "name", "vmstat");
    let rates: Vec<&Value> = table["rows"].as_array().expect("rows").iter().map(|row| &row[4]).collect();
    assert!(rates.len() == 4 && rates.iter().all(|rate| rate.is_null()), "{rates:?}");
    assert_eq!(finding_keys(&report), Vec::<String>::new(), "8 stalls at no time are no rate");
    let locality = named(&report["tables"], "name", "numa-locality");
    assert_eq!(locality["rows"][0][0], Value::Null);
}

#[test]
fn the_largest_order_is_that_of_the_kernel() {
    let scratch = scratch();
    let scenario = scratch.path().join("s.toml");
    let text = "[machine]\npreset = \"lab-4n\"\n[kernel]\nrelease = \"6.12\"\npage_alloc.max_order = 9\n[[process]]\n\
                name = \"p\"\n[[process.phase]]\n[[process.phase.action]]\nkind = \"page-loop\"\norder = 10\ncount = 1\n";
    fs::write(&scenario, text).expect("scenario");
    let run = mmtwin([Path::new("run"), &scenario]);
    assert!(run.status == 1 && run.err.contains("order 10") && run.err.contains("max_order is 9"), "{}", run.err);
}
