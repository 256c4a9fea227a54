//! Events as `trace-cmd report` prints them, and traces that survive every form they can be written in.

use super::support::{V6, V7, events, gunzip, installed, ok, recording, root, scratch, skipped};
use std::path::Path;
use std::process::Command;

/// What `trace-cmd report` prints of a file.
fn trace_cmd(path: &Path) -> String {
    let output = Command::new("trace-cmd").arg("report").arg("-i").arg(path).output().expect("trace-cmd");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", path.display());
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn script(path: &Path, style: &str) -> String {
    ok([Path::new("script"), Path::new("--style"), Path::new(style), path])
}

/// Arguments of all kinds of trace.dat.
const KINDS: [&[&str]; 4] = [
    &["--dat-version", "6"],
    &["--dat-version", "7"],
    &["--dat-version", "7", "--compression", "zlib"],
    &["--dat-version", "7", "--compression", "zstd"],
];

fn convert(from: &Path, to: &Path, kind: &[&str]) {
    let mut arguments = vec![Path::new("convert"), from, Path::new("-o"), to];
    arguments.extend(kind.iter().map(Path::new));
    ok(arguments);
}

/// Whether trace-cmd was built with what a kind of file needs; says what is omitted if not.
fn trace_cmd_reads(test: &str, kind: &[&str]) -> bool {
    let list = Command::new("trace-cmd").args(["list", "-c"]).output().expect("trace-cmd");
    let list = String::from_utf8_lossy(&list.stdout).into_owned();
    let missing = kind.iter().find(|word| ["zlib", "zstd"].contains(word) && !list.contains(**word));
    if let Some(codec) = missing {
        skipped(test, &format!("files with {codec}, which this trace-cmd does not read"));
    }
    missing.is_none()
}

#[test]
fn every_line_is_that_of_trace_cmd() {
    if !installed("every_line_is_that_of_trace_cmd", "trace-cmd") {
        return;
    }
    for name in [V6, V7] {
        let path = root().join(name);
        let expected = trace_cmd(&path);
        assert!(expected.lines().count() > 50, "{name}");
        assert_eq!(script(&path, "trace-cmd"), expected, "{name}");
        let kernel = script(&path, "kernel");
        let scratch = scratch();
        for (number, kind) in KINDS.iter().enumerate() {
            let written = scratch.path().join(format!("{number}.dat"));
            convert(&path, &written, kind);
            if trace_cmd_reads("every_line_is_that_of_trace_cmd", kind) {
                assert_eq!(trace_cmd(&written), expected, "{name} {kind:?}");
            }
            assert_eq!(script(&written, "trace-cmd"), expected, "{name} {kind:?}");
            assert_eq!(script(&written, "kernel"), kernel, "{name} {kind:?}");
        }
    }
}

/// Text of real kernels, one with events of types it is not known.
fn texts() -> impl Iterator<Item = String> {
    let findings = ["slab-6.18", "writeback-6.18", "kswapd-6.1", "reclaim-6.1", "numa-6.1", "lost-6.18", "oom-6.18"];
    findings.map(recording).into_iter().chain(["tests/data/unknown-6.18.txt.gz".to_string()])
}

#[test]
fn text_survives_every_trace_dat() {
    let scratch = scratch();
    for (number, name) in texts().enumerate() {
        let expected = events(&gunzip(&name));
        assert_eq!(script(&root().join(&name), "kernel"), expected, "{name}");
        let kind = KINDS[number % KINDS.len()];
        let dat = scratch.path().join(format!("{number}.dat"));
        convert(&root().join(&name), &dat, kind);
        assert_eq!(script(&dat, "kernel"), expected, "{name} {kind:?}");
        let text = scratch.path().join(format!("{number}.txt"));
        convert(&dat, &text, &[]);
        assert_eq!(events(&std::fs::read_to_string(&text).expect("text")), expected, "{name} {kind:?}");
    }
}

/// Compressed text is read like plain text, whichever way it was compressed.
#[test]
fn compressed_text_is_text() {
    let scratch = scratch();
    let expected = script(&root().join(V6), "kernel");
    for name in ["a.txt", "a.txt.gz", "a.txt.zst"] {
        let text = scratch.path().join(name);
        convert(&root().join(V6), &text, &[]);
        assert_eq!(script(&text, "kernel"), expected, "{name}");
    }
}

#[test]
fn trace_cmd_reads_what_was_text() {
    if !installed("trace_cmd_reads_what_was_text", "trace-cmd") {
        return;
    }
    let scratch = scratch();
    let kinds: Vec<_> =
        KINDS.into_iter().filter(|kind| trace_cmd_reads("trace_cmd_reads_what_was_text", kind)).collect();
    for (number, name) in texts().enumerate() {
        let kind = kinds[number % kinds.len()];
        let dat = scratch.path().join(format!("{number}.dat"));
        convert(&root().join(&name), &dat, kind);
        let printed = trace_cmd(&dat);
        assert_eq!(script(&dat, "trace-cmd"), printed, "{name} {kind:?}");
        // Of each event: its task, time and name.
        let text = gunzip(&name);
        let lines = text.lines().filter(|line| !line.starts_with('#') && !line.contains("LOST"));
        let of_trace_cmd =
            printed.lines().filter(|line| !line.starts_with("cpus=") && !line.contains("EVENTS DROPPED"));
        let mut count = 0;
        for (line, printed) in lines.clone().zip(of_trace_cmd.clone()) {
            count += 1;
            let fields = line.split(": ").next().expect("a part").split_whitespace();
            let (task, time) = (fields.clone().next().expect("a task"), fields.last().expect("a time"));
            let event = line.split(": ").nth(1).expect("an event");
            let parts = [task, &format!(" {time}: {event}: ")];
            assert!(parts.iter().all(|p| printed.contains(p)), "{name}\n{line}\n{printed}");
        }
        assert_eq!([count; 2], [lines.count(), of_trace_cmd.count()], "{name}");
    }
}

/// What a trace is read as does not depend on the form it is in.
#[test]
fn reports_of_all_forms_are_equal() {
    let scratch = scratch();
    let name = root().join("tests/data/postprocess-6.1.txt.gz");
    let report = |path: &Path| ok([Path::new("report"), path, Path::new("--format=csv")]);
    let expected = report(&name).replace(name.to_str().expect("UTF-8"), "INPUT");
    for (number, kind) in KINDS.iter().enumerate() {
        let dat = scratch.path().join(format!("{number}.dat"));
        convert(&name, &dat, kind);
        assert_eq!(report(&dat).replace(dat.to_str().expect("UTF-8"), "INPUT"), expected, "{kind:?}");
    }
}
