//! Counters for Prometheus, read with the reference parser of its Python client.

use super::support::{mmtwin, ok, python, root, scratch};
use std::path::Path;

#[test]
fn the_last_sample_or_all_of_them() {
    let scratch = scratch();
    let [last, all] = ["last.openmetrics", "all.openmetrics"].map(|name| scratch.path().join(name));
    let recording = "tests/verdicts/host-wc-loop.tar.zst";
    ok([Path::new("convert"), Path::new(recording), Path::new("-o"), &last]);
    ok([Path::new("convert"), Path::new(recording), Path::new("-o"), &all, "--samples".as_ref(), "all".as_ref()]);
    let [last, all] = [&last, &all].map(|file| std::fs::read_to_string(file).unwrap());
    let of = |text: &str| text.lines().filter(|line| line.starts_with("mmtwin_vmstat_pgscan_direct_total ")).count();
    assert_eq!(of(&last), 1);
    assert!(of(&all) > 2, "{}", of(&all));
    assert!(
        last.contains("# TYPE mmtwin_psi_memory_some_seconds counter\n# UNIT mmtwin_psi_memory_some_seconds seconds\n")
    );
    assert!(last.ends_with("# EOF\n") && last.contains("mmtwin_recording_info{name="));
    let none = mmtwin(["convert", "tests/data/unknown-6.18.txt.gz", "--format", "openmetrics", "-o", "-"]);
    assert!(none.status == 1 && none.err.contains("no counters were recorded"), "{}", none.err);
}

/// `make exports-again`.
#[test]
#[ignore = "needs Python packages"]
fn the_reference_parser_reads_what_is_written() {
    let scratch = scratch();
    for (at, (input, samples)) in [
        ("tests/verdicts/host-wc-loop.tar.zst", "last"),
        ("tests/verdicts/host-wc-loop.tar.zst", "all"),
        ("tests/verdicts/host-redis-oom.tar.zst", "all"),
    ]
    .into_iter()
    .enumerate()
    {
        let text = scratch.path().join(format!("{at}.openmetrics"));
        ok([
            "convert".as_ref(),
            input.as_ref(),
            "--samples".as_ref(),
            samples.as_ref(),
            "-o".as_ref(),
            text.as_os_str(),
        ]);
        let Some(mut python) = python("openmetrics") else { return };
        let run = python.arg(root().join("tools/read_openmetrics.py")).arg(&text).output().unwrap();
        assert!(run.status.success(), "{input}: {}", String::from_utf8_lossy(&run.stderr));
        let read: serde_json::Value = serde_json::from_slice(&run.stdout).expect("JSON");
        let lines = std::fs::read_to_string(&text).unwrap();
        let samples = lines.lines().filter(|line| !line.starts_with('#')).count();
        assert_eq!(read["samples"], samples, "{input}");
        eprintln!("{input}: {} families, {samples} samples", read["families"]);
    }
}
