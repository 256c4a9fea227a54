//! `mmtwin record -g`, compressed pages, the symbols that stay, and tracefs that is mounted nowhere.

use super::record::Cgroup;
use super::support::{command, ok, report_json, rows, scratch, skipped};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

fn tracefs(test: &str) -> bool {
    let found = mmtwin_host::tracefs::open();
    found.inspect_err(|o| skipped(test, &format!("{} (fix: {})", o.what, o.fix))).is_ok()
}

/// Records a reader that has more to read than its cgroup may hold, twice.
fn record(directory: &Path, group: &Cgroup, output: &str, options: &[&str]) {
    let file = directory.join("sparse");
    fs::File::create(&file).and_then(|f| f.set_len(256 << 20)).expect("a sparse file");
    let (procs, file) = (group.0.join("cgroup.procs"), file.display());
    let script = format!("echo $$ > {} && dd if={file} of=/dev/null bs=1M status=none", procs.display());
    let arguments = [&["record", "-q", "-o", output], options, &["--", "sh", "-c", &script]].concat();
    let run = command(arguments).current_dir(directory).output().expect("the program");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
}

fn stack_of(row: &std::collections::BTreeMap<String, serde_json::Value>, event: &str, task: &str) -> bool {
    row["event"] == event && row["task"] == task
}

fn size(path: &Path) -> u64 {
    path.metadata().map_or(0, |meta| meta.len())
}

/// Bytes of pages, plain and compressed.
fn pages(recording: &Path) -> [u64; 2] {
    let files: Vec<_> = fs::read_dir(recording.join("cpu")).expect("pages").flatten().map(|e| e.path()).collect();
    let sum =
        |extension: &str| files.iter().filter(|p| p.extension().is_some_and(|e| e == extension)).map(|p| size(p)).sum();
    [sum("pages"), sum("zst")]
}

#[test]
fn stacks_tell_where_reclaim_began() {
    let test = "stacks_tell_where_reclaim_began";
    let Some(group) = Cgroup::new(test).filter(|_| tracefs(test)) else { return };
    let scratch = scratch();
    let at = |name: &str| scratch.path().join(name);
    record(scratch.path(), &group, "plain.mmt", &["-g"]);
    record(scratch.path(), &group, "packed.mmt", &["-g", "--compress", "zstd:3"]);
    record(scratch.path(), &group, "without.mmt", &[]);
    for name in ["plain.mmt", "packed.mmt"] {
        let report = report_json(&at(name), ["--table", "stacks"]);
        let stacks = rows(&report, "stacks");
        let is_begin = |row: &&_| stack_of(row, "mm_vmscan_memcg_reclaim_begin", "dd");
        let begins: Vec<_> = stacks.iter().filter(is_begin).collect();
        // Of 256 MiB at least 180 MiB had to go again, in reclaims of at most some MiB.
        let count: f64 = begins.iter().filter_map(|row| row["count"].as_f64()).sum();
        let waited: f64 = begins.iter().filter_map(|row| row["waited"].as_f64()).sum();
        assert!(count > 30.0 && waited > 0.0, "{name}: {count} {waited}");
        for row in begins {
            let stack = row["stack"].as_str().expect("a stack");
            let functions: Vec<&str> = stack.split(';').collect();
            assert!(functions.len() > 3 && functions.iter().any(|f| f.contains("read")), "{stack}");
            assert!(!functions.iter().any(|f| f.starts_with("0x") || f.starts_with("trace_event")), "{stack}");
        }
        let text = ok([Path::new("report"), &at(name), Path::new("stacks")]);
        assert!(text.contains(" < ") && text.contains("mm_vmscan_memcg_reclaim_begin (dd"), "{text}");
        for weight in ["count", "waited"] {
            let folded = at("x.folded");
            let arguments = ["convert", name, "-f", "-o", "x.folded", "--weight", weight];
            let run = command(arguments).current_dir(scratch.path()).status().expect("the program");
            let text = fs::read_to_string(&folded).expect("folded stacks");
            let line = |line: &str| {
                line.starts_with("dd;") && line.rsplit_once(' ').is_some_and(|(_, n)| n.parse::<u64>().is_ok())
            };
            assert!(run.success() && text.lines().any(line), "{text}");
        }
        // Only what the recording needs stays of the kernel's symbols.
        assert!((1..100_000).contains(&size(&at(name).join("formats/kallsyms"))));
    }
    let ([plain, none], [no, packed]) = (pages(&at("plain.mmt")), pages(&at("packed.mmt")));
    assert!(none == 0 && no == 0 && packed > 0 && packed * 2 < plain, "{plain} {none} {no} {packed}");
    let text = ok([Path::new("report"), &at("without.mmt"), Path::new("stacks")]);
    assert!(
        text.split_whitespace().collect::<Vec<_>>().join(" ").contains("no stacks were recorded: mmtwin record -g")
    );
    // What an event's text prints is printed by its name, with all that is needed for it.
    let events = ok(["script".as_ref(), at("packed.mmt").as_os_str(), "-e".as_ref(), "mm_shrink_slab_start".as_ref()]);
    assert!(events.lines().all(|line| line.contains("+0x0/0x")), "{events}");
}

#[test]
fn a_recording_mounts_tracefs_for_itself_alone() {
    let test = "a_recording_mounts_tracefs_for_itself_alone";
    if !tracefs(test) {
        return;
    }
    let scratch = scratch();
    // In a mount namespace without tracefs, whether the machine has it mounted or not.
    let script = "umount -R /sys/kernel/tracing 2>/dev/null; umount -R /sys/kernel/debug/tracing 2>/dev/null
        umount -R /sys/kernel/debug 2>/dev/null
        if grep -q ' tracefs ' /proc/self/mounts; then exit 77; fi
        \"$1\" record -o r.mmt -- sh -c 'grep -c \" tracefs \" /proc/self/mounts; ls -l /proc/self/fd; ls instances; pwd'
        grep -c ' tracefs ' /proc/self/mounts";
    let mut run = Command::new("unshare");
    run.args(["--mount", "--propagation", "private", "sh", "-c", script, "sh"]).arg(env!("CARGO_BIN_EXE_mmtwin"));
    let run = run.current_dir(scratch.path()).stdin(Stdio::null()).output().expect("unshare");
    let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    if run.status.code() == Some(77) {
        return skipped(test, "tracefs cannot be unmounted in a namespace of its own");
    }
    let lines: Vec<&str> = out.lines().collect();
    // The command sees no mount, has no descriptor of it, and is where it was.
    assert_eq!((lines.first(), lines.last()), (Some(&"0"), Some(&"0")), "{out}{err}");
    assert!(lines.contains(&scratch.path().canonicalize().expect("a path").to_str().expect("UTF-8")), "{out}");
    assert!(!out.contains("instances"), "{out}");
    assert!(err.contains("tracefs is mounted for this recording alone"), "{err}");
    let manifest = fs::read_to_string(scratch.path().join("r.mmt/manifest.json")).expect("a manifest");
    let manifest: serde_json::Value = serde_json::from_str(&manifest).expect("JSON");
    assert!(manifest["tracing"]["events"].as_array().is_some_and(|events| !events.is_empty()), "{manifest}");
}
