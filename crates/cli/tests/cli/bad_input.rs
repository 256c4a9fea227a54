//! Damaged and foreign files: a message with file and place, what could be read, and never a panic or a silent 0.

use super::support::{Run, V6, V7, cell, command, gunzip, mmtwin, ok, recording, report_json, root, scratch, value};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Reports on bytes under a name; the run has ended with status 0 or 1, and a failure names the file.
fn report(directory: &Path, name: &str, bytes: &[u8]) -> Run {
    let path = directory.join(name);
    fs::write(&path, bytes).expect("a file");
    run(&path)
}

fn run(path: &Path) -> Run {
    let tables = Path::new("reclaim,vmscan,postprocess-summary,lost-events");
    let run = mmtwin([Path::new("report"), path, Path::new("--table"), tables]);
    assert!(matches!(run.status, 0 | 1), "{path:?}: status {}: {}", run.status, run.err);
    if run.status == 1 {
        let first = run.err.lines().find(|line| line.contains("error: ")).unwrap_or_default();
        assert!(first.contains(path.to_str().expect("UTF-8")), "{path:?}: {}", run.err);
        assert!(run.out.is_empty(), "{path:?}: {}", run.text());
    }
    run
}

/// A warning, or an error, that names the file and a place in it.
fn names_a_place(run: &Run, name: &str) -> bool {
    run.err.lines().any(|line| {
        let behind = line.split_once(name).map_or("", |(_, behind)| behind);
        behind.starts_with(':') || behind.contains("offset") || behind.contains("line ")
    })
}

fn bytes(name: &str) -> Vec<u8> {
    fs::read(root().join(name)).expect("a recording")
}

/// Numbers that are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) as usize % end
    }
}

#[test]
fn files_cut_anywhere() {
    let scratch = scratch();
    for name in [V6, V7] {
        let whole = bytes(name);
        let full = report(scratch.path(), "cut.dat", &whole);
        assert_eq!((full.status, full.err.as_str()), (0, ""));
        for step in 0..48 {
            let length = whole.len() * step / 48;
            let run = report(scratch.path(), "cut.dat", &whole[..length]);
            if run.status == 1 || run.out != full.out {
                assert!(names_a_place(&run, "cut.dat"), "{name} cut at {length}: {:?}", run.err);
            }
        }
    }
}

#[test]
fn flipped_bits() {
    let scratch = scratch();
    let mut numbers = Numbers(1);
    for name in [V6, V7] {
        let whole = bytes(name);
        let full = report(scratch.path(), "flipped.dat", &whole);
        for _ in 0..60 {
            let mut flipped = whole.clone();
            let at = numbers.below(flipped.len());
            flipped[at] ^= 1 << numbers.below(8);
            let run = report(scratch.path(), "flipped.dat", &flipped);
            assert!(run.status == 0 || names_a_place(&run, "flipped.dat"), "{name} at {at}: {:?}", run.err);
        }
        // Many at once.
        for _ in 0..12 {
            let mut flipped = whole.clone();
            for _ in 0..64 {
                let at = numbers.below(flipped.len());
                flipped[at] = numbers.below(256) as u8;
            }
            report(scratch.path(), "flipped.dat", &flipped);
        }
        assert_eq!(full.status, 0);
    }
}

#[test]
fn flipped_bytes_in_text() {
    let scratch = scratch();
    let mut numbers = Numbers(2);
    let whole = gunzip(&recording("slab-6.18")).into_bytes();
    for _ in 0..40 {
        let mut flipped = whole.clone();
        for _ in 0..1 + numbers.below(30) {
            let at = numbers.below(flipped.len());
            flipped[at] = numbers.below(256) as u8;
        }
        report(scratch.path(), "flipped.txt", &flipped);
    }
}

#[test]
fn random_bytes() {
    let scratch = scratch();
    let mut numbers = Numbers(3);
    for length in [1, 2, 9, 10, 100, 4096, 70_000] {
        let random: Vec<u8> = (0..length).map(|_| numbers.below(256) as u8).collect();
        assert_eq!(report(scratch.path(), "random", &random).status, 1, "{length}");
        // Behind the first bytes of what could be something.
        for magic in [&b"\x17\x08\x44tracing6\0"[..], b"\x17\x08\x44tracing7\0", b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd"] {
            let run = report(scratch.path(), "random", &[magic, &random].concat());
            assert_eq!(run.status, 1, "{length} behind {magic:?}: {}", run.text());
        }
    }
}

#[test]
fn what_is_no_trace() {
    let scratch = scratch();
    let nothing = report(scratch.path(), "empty", b"");
    assert_eq!(nothing.status, 1, "{}", nothing.text());
    for text in ["\n\n\n", "Dear Sir or Madam,\nthis is no trace: at all.\n", "# a comment\n", "{\"a\": 1}"] {
        assert_eq!(report(scratch.path(), "letter", text.as_bytes()).status, 1, "{text:?}");
    }
    assert_eq!(run(&root().join("docs")).status, 1);
    assert_eq!(run(&root().join("no such file")).status, 1);
    let convert = mmtwin(["convert", "README.md", "-o", scratch.path().join("x.dat").to_str().expect("UTF-8")]);
    assert_eq!(convert.status, 1);
    assert!(!scratch.path().join("x.dat").exists() && !scratch.path().join("x.dat.partial").exists());
}

/// A trace that was recorded and has nothing in it is n/a, not 0.
#[test]
fn a_trace_without_events_is_not_zero() {
    let scratch = scratch();
    let path = scratch.path().join("none.txt");
    let header: String = gunzip(&recording("slab-6.18")).lines().take(11).map(|l| format!("{l}\n")).collect();
    fs::write(&path, header).expect("text");
    let report = report_json(&path, ["--table", "vmscan"]);
    assert_eq!(value(&report, "vmscan", "direct_reclaims"), None);
    assert_eq!(value(&report, "vmscan", "kswapd_pages_scanned"), None);
}

#[test]
fn sections_and_options_that_nobody_knows() {
    let scratch = scratch();
    // Version 6: another section name.
    let mut unknown = bytes(V6);
    let at = unknown.windows(10).position(|w| w == b"flyrecord\0").expect("the section");
    unknown[at..at + 9].copy_from_slice(b"flyaround");
    let run = report(scratch.path(), "section.dat", &unknown);
    assert_eq!(run.status, 1);
    assert!(run.err.contains("flyrecord expected") && names_a_place(&run, "section.dat"), "{}", run.err);
    // An option with a number of the future is skipped.
    let mut unknown = bytes(V6);
    let at = unknown.windows(10).position(|w| w == b"options  \0").expect("the section") + 10;
    unknown[at..at + 2].copy_from_slice(&999_u16.to_le_bytes());
    assert_eq!(report(scratch.path(), "option.dat", &unknown).status, 0);
    // A version of the future.
    let mut version = bytes(V6);
    let at = version.windows(2).position(|w| w == b"6\0").expect("the version");
    version[at] = b'8';
    let run = report(scratch.path(), "version.dat", &version);
    assert!(run.status == 1 && run.err.contains('8'), "{}", run.err);
}

/// Replaces a text in a version 6 file by one of the same length.
fn replaced(from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut bytes = bytes(V6);
    let places: Vec<usize> =
        (0..=bytes.len() - from.len()).filter(|i| bytes[*i..].starts_with(from.as_bytes())).collect();
    assert!(!places.is_empty(), "{from} is not there");
    for at in places {
        bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
    }
    bytes
}

/// A format without a field that is needed gives n/a for what needs it; one with more fields changes nothing.
#[test]
fn formats_with_fewer_and_more_fields() {
    let scratch = scratch();
    let values = |bytes: &[u8], key: &str| {
        let path = scratch.path().join("fields.dat");
        fs::write(&path, bytes).expect("a file");
        cell(&report_json(&path, ["--table", "reclaim"]), "reclaim", key, "cgroup")
    };
    let whole = bytes(V6);
    let (scanned, reclaimed) = (values(&whole, "Pages scanned"), values(&whole, "Pages reclaimed"));
    assert!(scanned.is_some_and(|n| n > 0.0) && reclaimed.is_some_and(|n| n > 0.0));
    // `nr_reclaimed` under another name is a field too few and one too many.
    let renamed = replaced("long nr_reclaimed;", "long xx_reclaimed;");
    assert_eq!(values(&renamed, "Pages reclaimed"), None);
    assert_eq!(values(&renamed, "Pages scanned"), scanned);
    let run = report(scratch.path(), "fields.dat", &renamed);
    assert!(run.err.contains("nr_reclaimed"), "nothing is said of the field: {:?}", run.err);
}

#[test]
fn time_that_goes_back() {
    let scratch = scratch();
    let text = gunzip(&recording("slab-6.18"));
    let mut lines: Vec<&str> = text.lines().collect();
    let last = lines.len() - 1;
    lines.swap(last, last / 2);
    let run = report(scratch.path(), "back.txt", (lines.join("\n") + "\n").as_bytes());
    assert_eq!(run.status, 0);
    let events = |bytes: &[u8]| {
        let path = scratch.path().join("back.txt");
        fs::write(&path, bytes).expect("text");
        report_json(&path, ["--table", "slab"])["inputs"][0]["events"].as_u64()
    };
    assert_eq!(events((lines.join("\n") + "\n").as_bytes()), events(text.as_bytes()), "an event was dropped");
}

/// Text whose lines of one CPU are missing is a trace of the others.
#[test]
fn a_cpu_that_is_missing() {
    let scratch = scratch();
    let text = gunzip(&recording("numa-6.1"));
    let some: String = text.lines().filter(|l| !l.contains("[004]")).map(|l| format!("{l}\n")).collect();
    assert!(some.len() < text.len());
    assert_eq!(report(scratch.path(), "cpu.txt", some.as_bytes()).status, 0);
}

/// A compressed file that is cut reports it.
#[test]
fn compressed_text_that_is_cut() {
    let scratch = scratch();
    let whole = bytes(&recording("cgroup-6.18"));
    for part in 1..8 {
        let length = whole.len() * part / 8;
        let run = report(scratch.path(), "cut.txt.gz", &whole[..length]);
        assert!(names_a_place(&run, "cut.txt.gz"), "cut at {length}: {:?}", run.err);
    }
    let mut child = command(["script", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(&whole[..whole.len() / 2]).expect("written");
    drop(stdin);
    let output = child.wait_with_output().expect("the program");
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(!err.is_empty() && !err.contains("panicked"), "nothing is said: {:?}", output.status);
}

/// Parts of a recording of mmtwin's own that are missing or cut; needs one, which the test of `record` makes.
pub fn damage_recording(whole: &Path) {
    let scratch = scratch();
    let copy = |name: &str| -> PathBuf {
        let to = scratch.path().join(name);
        let status = std::process::Command::new("cp").arg("-r").arg(whole).arg(&to).status().expect("cp");
        assert!(status.success());
        to
    };
    let full = ok([Path::new("script"), whole]);
    assert!(!full.is_empty());
    let largest = |recording: &Path| -> PathBuf {
        let entries = recording.join("cpu").read_dir().expect("pages").map(|e| e.expect("an entry"));
        entries.max_by_key(|e| e.metadata().expect("its length").len()).expect("a CPU").path()
    };
    // Pages cut within a page: the whole pages are read, the rest is named.
    let cut = copy("cut.mmt");
    let pages = largest(&cut);
    let length = pages.metadata().expect("its length").len();
    fs::File::options().write(true).open(&pages).and_then(|f| f.set_len(length - 100)).expect("cut");
    let read = run(&cut);
    assert!(read.status == 0 && names_a_place(&read, "cut.mmt"), "{}", read.err);
    // A CPU whose file is missing.
    let missing = copy("missing.mmt");
    fs::remove_file(largest(&missing)).expect("removed");
    let read = run(&missing);
    assert!(read.status == 1 || read.err.contains("warning"), "nothing is said of the missing file");
    // Manifest and end.
    let broken = copy("broken.mmt");
    fs::write(broken.join("manifest.json"), "{\"schema_version\": 1,").expect("written");
    assert_eq!(run(&broken).status, 1);
    let endless = copy("endless.mmt");
    fs::remove_file(endless.join("end.json")).expect("removed");
    let read = run(&endless);
    assert!(read.status == 0 && read.err.contains("truncated"), "{}", read.err);
}
