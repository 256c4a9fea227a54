//! What verbs write: beside its place until it is whole, through devices and links, and never over what is not ours.

use super::support::{V6, command, mmtwin, ok, scratch};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const SCENARIO: &str = "scenarios/examples/numastat-pages.toml";

fn convert(output: &Path, options: &[&str]) -> super::support::Run {
    let first = ["convert", V6, "-o"].map(OsStr::new);
    mmtwin(first.into_iter().chain([output.as_os_str()]).chain(options.iter().map(OsStr::new)))
}

fn record(output: &Path, options: &[&str], program: &[&str]) -> super::support::Run {
    let mut arguments = vec![OsStr::new("record"), OsStr::new("-I"), OsStr::new("0"), OsStr::new("-o")];
    arguments.push(output.as_os_str());
    arguments.extend(options.iter().chain(&["--"]).chain(program).map(OsStr::new));
    mmtwin(arguments)
}

fn run(output: &Path, options: &[&str]) -> super::support::Run {
    let first = ["run", SCENARIO, "--table", "workload", "-o"].map(OsStr::new);
    mmtwin(first.into_iter().chain([output.as_os_str()]).chain(options.iter().map(OsStr::new)))
}

/// Names in a directory, hidden ones too.
fn names(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path).expect("a directory");
    let mut names: Vec<_> = entries.map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("a file").permissions().mode() & 0o777
}

fn fifo(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status().expect("mkfifo");
    assert!(made.success());
}

#[test]
fn devices_and_fifos_are_written_to() {
    let scratch = scratch();
    for options in [&["--format", "text"][..], &["--format", "dat", "-f"], &["--format", "text", "-f"]] {
        let run = convert(Path::new("/dev/null"), options);
        assert_eq!(run.status, 0, "{}", run.err);
        assert!(fs::metadata("/dev/null").expect("/dev/null").file_type().is_char_device());
    }
    assert!(!Path::new("/dev/null.partial").exists());
    let expected = ok(["convert", V6, "--format", "text", "-o", "/dev/stdout"]);
    assert!(expected.contains("mm_vmscan"), "{expected}");
    assert_eq!(ok(["convert", V6, "--format", "text", "-o", "-"]), expected);
    assert_eq!(ok(["convert", V6, "--format", "text", "-f", "-o", "/dev/fd/1"]), expected);
    let pipe = scratch.path().join("fifo");
    fifo(&pipe);
    let reader = Command::new("cat").arg(&pipe).stdout(Stdio::piped()).spawn().expect("cat");
    assert_eq!(convert(&pipe, &["--format", "text", "-f"]).status, 0);
    let read = reader.wait_with_output().expect("cat").stdout;
    assert_eq!(String::from_utf8(read).expect("UTF-8"), expected);
    assert!(fs::symlink_metadata(&pipe).expect("a FIFO").file_type().is_fifo());
    assert_eq!(names(scratch.path()), ["fifo"]);
    // Recordings are directories.
    for place in [Path::new("/dev/null"), &pipe] {
        let refused = record(place, &["-f"], &["true"]);
        assert!(refused.status == 1 && refused.err.contains("not a recording"), "{}", refused.err);
        assert_eq!(run(place, &["-f"]).status, 1);
    }
    assert!(fs::metadata("/dev/null").expect("/dev/null").file_type().is_char_device());
}

#[test]
fn links_are_followed_or_refused_and_never_replaced() {
    let scratch = scratch();
    let at = |name: &str| scratch.path().join(name);
    fs::create_dir(at("far")).expect("a directory");
    fs::write(at("far/x.txt"), "old").expect("a file");
    symlink("far/x.txt", at("link.txt")).expect("a link");
    assert_eq!(convert(&at("link.txt"), &[]).status, 1);
    assert_eq!(fs::read(at("far/x.txt")).expect("a file"), b"old");
    assert_eq!(convert(&at("link.txt"), &["-f"]).status, 0);
    assert!(fs::symlink_metadata(at("link.txt")).expect("a link").is_symlink());
    assert!(fs::read(at("far/x.txt")).expect("a file").len() > 1000);
    symlink("nowhere", at("dangling.txt")).expect("a link");
    let refused = convert(&at("dangling.txt"), &["-f"]);
    assert!(refused.status == 1 && refused.err.contains("nowhere"), "{}", refused.err);
    assert!(!at("nowhere").exists());
    // What the partial file was once called is nobody's business.
    fs::write(at("precious"), "years of work").expect("a file");
    symlink("precious", at("y.txt.partial")).expect("a link");
    assert_eq!(convert(&at("y.txt"), &[]).status, 0);
    assert_eq!(fs::read(at("precious")).expect("a file"), b"years of work");
    assert!(fs::symlink_metadata(at("y.txt.partial")).expect("a link").is_symlink());
    // A recording behind a link is replaced there.
    assert_eq!(record(&at("far/r.mmt"), &[], &["true"]).status, 0);
    symlink("far/r.mmt", at("r")).expect("a link");
    assert_eq!(record(&at("r"), &[], &["true"]).status, 1);
    assert_eq!(record(&at("r"), &["-f"], &["true"]).status, 0);
    assert!(fs::symlink_metadata(at("r")).expect("a link").is_symlink() && at("far/r.mmt/end.json").exists());
    assert_eq!(record(&at("dangling.txt"), &["-f"], &["true"]).status, 1);
}

#[test]
fn converted_files_are_as_private_as_their_source() {
    let scratch = scratch();
    let at = |name: &str| scratch.path().join(name);
    assert_eq!(record(&at("r.mmt"), &[], &["true"]).status, 0);
    let from = at("r.mmt");
    for to in ["r.txt", "r.parquet"] {
        let run = mmtwin([Path::new("convert"), &from, Path::new("-o"), &at(to)]);
        assert_eq!(run.status, 0, "{}", run.err);
    }
    assert_eq!((mode(&at("r.txt")), mode(&at("r.parquet"))), (0o600, 0o700));
    assert!(names(&at("r.parquet")).iter().all(|file| mode(&at("r.parquet").join(file)) == 0o600));
    for (permissions, expected) in [(0o600, 0o600), (0o640, 0o640), (0o644, 0o644), (0o666, 0o644)] {
        fs::copy(super::support::root().join(V6), at("in.dat")).expect("a copy");
        fs::set_permissions(at("in.dat"), PermissionsExt::from_mode(permissions)).expect("its mode");
        let arguments = ["convert", "in.dat", "-o", "out.txt", "-f"];
        let script = "umask 022; exec \"$@\"";
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh", env!("CARGO_BIN_EXE_mmtwin")]).args(arguments).current_dir(scratch.path());
        assert!(command.status().expect("sh").success());
        assert_eq!(mode(&at("out.txt")), expected);
        // Through standard input too.
        command = Command::new("sh");
        command.args(["-c", script, "sh", env!("CARGO_BIN_EXE_mmtwin")]).args(["convert", "-", "-o", "out.txt", "-f"]);
        command.current_dir(scratch.path()).stdin(File::open(at("in.dat")).expect("a file"));
        assert!(command.status().expect("sh").success());
        assert_eq!(mode(&at("out.txt")), expected);
    }
}

#[test]
fn places_that_cannot_be_written_are_named() {
    let scratch = scratch();
    let missing = scratch.path().join("missing/x.txt");
    let run_ = convert(&missing, &[]);
    assert!(run_.status == 1 && run_.err.contains("does not exist"), "{}", run_.err);
    let missing = scratch.path().join("missing/r.mmt");
    let recorded = record(&missing, &[], &["touch", scratch.path().join("ran").to_str().expect("UTF-8")]);
    assert!(recorded.status == 1 && recorded.err.contains("does not exist"), "{}", recorded.err);
    assert!(!scratch.path().join("ran").exists(), "the command is not started");
    assert_eq!(run(&missing, &[]).status, 1);
    // A name with a slash at its end is a directory.
    let slash = PathBuf::from(format!("{}/x.txt/", scratch.path().display()));
    assert_eq!(convert(&slash, &["--format", "text"]).status, 1);
    assert_eq!(convert(scratch.path(), &["--format", "text", "-f"]).status, 1);
    assert_eq!(record(Path::new("/"), &["-f"], &["true"]).status, 1);
    assert_eq!(record(Path::new("."), &["-f"], &["true"]).status, 1);
    // Where nothing can be made, root or not.
    let refused = convert(Path::new("/proc/x.txt"), &[]);
    assert!(refused.status == 1 && refused.err.contains("/proc"), "{}", refused.err);
    let refused = record(Path::new("/proc/r.mmt"), &[], &["true"]);
    assert!(refused.status == 1 && refused.err.contains("/proc/r.mmt"), "{}", refused.err);
    assert!(names(scratch.path()).is_empty(), "{:?}", names(scratch.path()));
    // A directory of a recording may be named with a slash.
    assert_eq!(record(&scratch.path().join("r.mmt/"), &[], &["true"]).status, 0);
    assert!(scratch.path().join("r.mmt/end.json").exists());
}

#[test]
fn an_input_is_not_its_own_output() {
    let scratch = scratch();
    let at = |name: &str| scratch.path().join(name);
    fs::copy(super::support::root().join(V6), at("a.dat")).expect("a copy");
    fs::hard_link(at("a.dat"), at("b.dat")).expect("a link");
    symlink("a.dat", at("c.dat")).expect("a link");
    let before = fs::read(at("a.dat")).expect("a file");
    for output in ["a.dat", "b.dat", "c.dat", "./a.dat"] {
        let run = mmtwin([Path::new("convert"), &at("a.dat"), Path::new("-f"), Path::new("-o"), &at(output)]);
        assert!(run.status == 1 && run.err.contains("is the input"), "{output}: {}", run.err);
        assert_eq!(fs::read(at("a.dat")).expect("a file"), before);
    }
}

#[test]
fn names_need_not_be_utf_8() {
    let scratch = scratch();
    let at = |name: &[u8]| scratch.path().join(OsStr::from_bytes(name));
    let input = at(b"in\xff.dat");
    fs::copy(super::support::root().join(V6), &input).expect("a copy");
    let output = at(b"out\xfe.txt");
    let run = mmtwin([Path::new("convert"), &input, Path::new("-o"), &output]);
    assert_eq!(run.status, 0, "{}", run.err);
    for verb in ["report", "script"] {
        let run = mmtwin([Path::new(verb), &output]);
        assert!(run.status == 0 && !run.out.is_empty(), "{verb}: {}", run.err);
    }
    let run = mmtwin([Path::new("compare"), &input, &output]);
    assert_eq!(run.status, 0, "{}", run.err);
    let recording = at(b"r\xff.mmt");
    assert_eq!(record(&recording, &[], &["true"]).status, 0);
    assert_eq!(mmtwin([Path::new("report"), &recording]).status, 0);
    assert_eq!(mmtwin([Path::new("report"), &at(b"no\xff")]).status, 1);
}

#[test]
fn what_was_there_stays_until_the_new_one_has_begun() {
    let scratch = scratch();
    let at = |name: &str| scratch.path().join(name);
    let good = at("good.mmt");
    assert_eq!(record(&good, &[], &["true"]).status, 0);
    let manifest = fs::read(good.join("manifest.json")).expect("a manifest");
    let kept = |why: &str, err: &str| {
        assert_eq!(fs::read(good.join("manifest.json")).expect("the old one"), manifest, "{why}: {err}");
        assert_eq!(names(scratch.path()), ["good.mmt"], "{why}: {err}");
    };
    let typo = record(&good, &["-f"], &["/no/such/program"]);
    assert_eq!(typo.status, 1);
    kept("a program that is not there", &typo.err);
    let event = record(&good, &["-f", "-e", "no:such_event"], &["true"]);
    assert_eq!(event.status, 1);
    kept("an event that is not there", &event.err);
    assert_eq!(record(&good, &["-f", "--cgroup", "/no/such"], &["true"]).status, 1);
    kept("a cgroup that is not there", "");
    let small = record(&good, &["-f", "--max-size", "1"], &["true"]);
    assert!(small.status == 1 && small.err.contains("--max-size"), "{}", small.err);
    kept("a size without room", &small.err);
    assert_eq!(run(&good, &["-f", "--set", "run.duration=nonsense"]).status, 1);
    kept("a scenario that is wrong", "");
    assert_eq!(run(&good, &["-f"]).status, 0);
    assert_ne!(fs::read(good.join("manifest.json")).expect("the new one"), manifest);
    assert_eq!(names(scratch.path()), ["good.mmt"]);
}

#[test]
fn only_what_is_ours_is_replaced() {
    let scratch = scratch();
    let at = |name: &str| scratch.path().join(name);
    // Folders of others that hold a manifest.json.
    for (number, manifest) in ["{}", "{\"name\":\"extension\",\"manifest_version\":3}", "not json"].iter().enumerate() {
        let folder = at(&format!("web{number}"));
        fs::create_dir_all(folder.join("src")).expect("a directory");
        fs::write(folder.join("manifest.json"), manifest).expect("a file");
        fs::write(folder.join("src/main.c"), "years of work").expect("a file");
        let refused = record(&folder, &["-f"], &["true"]);
        assert!(refused.status == 1 && refused.err.contains("not replaced"), "{}", refused.err);
        let refused = run(&folder, &["-f"]);
        assert!(refused.status == 1 && refused.err.contains("not replaced"), "{}", refused.err);
        assert!(folder.join("src/main.c").exists() && folder.join("manifest.json").exists());
    }
    // A recording into which somebody put something.
    let recording = at("r.mmt");
    assert_eq!(record(&recording, &[], &["true"]).status, 0);
    for foreign in ["notes.txt", "cpu/notes.txt", "formats/thesis", ".git"] {
        fs::write(recording.join(foreign), "years of work").expect("a file");
        let refused = record(&recording, &["-f"], &["true"]);
        assert!(refused.status == 1 && refused.err.contains(foreign), "{foreign}: {}", refused.err);
        assert!(recording.join(foreign).exists() && recording.join("end.json").exists());
        fs::remove_file(recording.join(foreign)).expect("removed");
    }
    // What a recorder leaves that is killed before the manifest.
    fs::remove_file(recording.join("manifest.json")).expect("removed");
    fs::remove_file(recording.join("end.json")).expect("removed");
    assert_eq!(record(&recording, &[], &["true"]).status, 1);
    assert_eq!(record(&recording, &["-f"], &["true"]).status, 0);
    // Recordings of versions that wrote no marker.
    fs::remove_file(recording.join("mmtwin.recording")).expect("removed");
    assert_eq!(record(&recording, &["-f"], &["true"]).status, 0);
    // Parquet files of others.
    let parquet = at("p.parquet");
    assert_eq!(convert(&parquet, &[]).status, 0);
    fs::write(parquet.join("theirs.parquet"), "PAR1 something PAR1").expect("a file");
    let refused = convert(&parquet, &["-f"]);
    assert!(refused.status == 1 && refused.err.contains("theirs.parquet"), "{}", refused.err);
    fs::remove_file(parquet.join("theirs.parquet")).expect("removed");
    assert_eq!(convert(&parquet, &["-f"]).status, 0);
}

#[test]
fn a_recording_in_progress_is_not_replaced() {
    let scratch = scratch();
    let output = scratch.path().join("r.mmt");
    let mut first = command(["record", "-I", "50ms", "-o"]);
    let mut first = first.arg(&output).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("a recorder");
    while !output.join("counters/vmstat.arrows").exists() {
        assert!(first.try_wait().expect("its status").is_none(), "the recorder ended");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let pid = first.id().to_string();
    for refused in [record(&output, &["-f"], &["true"]), record(&output, &[], &["true"]), run(&output, &["-f"])] {
        assert!(refused.status == 1 && refused.err.contains(&pid), "no pid {pid}: {}", refused.err);
    }
    let report = mmtwin([Path::new("report"), &output]);
    assert!(report.status == 0 && report.err.contains("still being written"), "{}", report.err);
    let killed = Command::new("kill").arg(&pid).status().expect("kill");
    assert!(killed.success());
    assert_eq!(first.wait().expect("its end").code(), Some(128 + 15));
    assert!(output.join("end.json").exists());
    assert_eq!(names(scratch.path()), ["r.mmt"]);
    assert_eq!(record(&output, &["-f"], &["true"]).status, 0);
}

#[test]
fn runs_that_fail_leave_nothing() {
    let scratch = scratch();
    let at = |name: &str| scratch.path().join(name);
    fs::write(at("bad.dat"), b"\x17\x08\x44tracing6\0rubbish").expect("a file");
    for output in ["x.txt", "x.dat", "x.parquet", "x.txt.gz"] {
        let run = mmtwin([Path::new("convert"), &at("bad.dat"), Path::new("-o"), &at(output)]);
        assert_eq!(run.status, 1, "{}", run.err);
        assert_eq!(names(scratch.path()), ["bad.dat"], "{output}");
    }
    let seeds = run(&at("deep/er"), &["--seeds", "1..2", "--set", "machine.nonsense=1"]);
    assert_eq!((seeds.status, names(scratch.path())), (1, vec!["bad.dat".to_string()]), "{}", seeds.err);
    // One of several outputs is taken: nothing runs.
    fs::create_dir_all(at("seeds/seed-2.mmt")).expect("a directory");
    fs::write(at("seeds/seed-2.mmt/thesis"), "years of work").expect("a file");
    let refused = run(&at("seeds"), &["--seeds", "1..2", "-f"]);
    assert!(refused.status == 1 && refused.err.contains("seed-2.mmt"), "{}", refused.err);
    assert_eq!(names(&at("seeds")), ["seed-2.mmt"]);
    // calibrate and man say so before they measure or write.
    fs::create_dir(at("machine.toml")).expect("a directory");
    let refused = mmtwin([Path::new("calibrate"), Path::new("-f"), Path::new("-o"), &at("machine.toml")]);
    assert!(refused.status == 1 && refused.err.contains("is a directory"), "{}", refused.err);
    assert_eq!(mmtwin([Path::new("man"), &at("man")]).status, 0);
    let page = at("man/mmtwin.1");
    fs::write(&page, "mine").expect("a page");
    assert_eq!(mmtwin([Path::new("man"), &at("man")]).status, 1);
    assert_eq!(fs::read(&page).expect("a page"), b"mine");
    assert_eq!(mmtwin([Path::new("man"), Path::new("-f"), &at("man")]).status, 0);
    assert_ne!(fs::read(&page).expect("a page"), b"mine");
}

/// A signal in the middle of a conversion or a run leaves nothing either.
#[test]
fn signals_leave_nothing() {
    let scratch = scratch();
    let input = scratch.path().join("fifo");
    fifo(&input);
    for (signal, status) in [("TERM", 15), ("INT", 2), ("HUP", 1)] {
        for output in ["x.parquet", "x.txt", "x.dat"] {
            let mut program = Command::new("env");
            program.arg("--default-signal=HUP,INT,TERM").arg(env!("CARGO_BIN_EXE_mmtwin")).arg("convert");
            program.arg(&input).arg("-o").arg(scratch.path().join(output));
            let mut child = program.stderr(Stdio::null()).spawn().expect("the program");
            // Some of a trace, and then nothing more.
            let mut feed = fs::OpenOptions::new().write(true).open(&input).expect("a reader");
            let line = "cat-7 [000] .... 1.000001: mm_vmscan_kswapd_sleep: nid=0\n";
            std::io::Write::write_all(&mut feed, line.repeat(100).as_bytes()).expect("a reader");
            std::thread::sleep(std::time::Duration::from_millis(200));
            let killed = Command::new("kill").args([format!("-{signal}"), child.id().to_string()]).status();
            assert!(killed.expect("kill").success());
            let ended = child.wait().expect("its end");
            assert_eq!(std::os::unix::process::ExitStatusExt::signal(&ended), Some(status), "{output} {ended:?}");
            assert_eq!(names(scratch.path()), ["fifo"], "{signal} {output}");
        }
    }
}

/// Messages that cannot be written change nothing of what is done.
#[test]
fn messages_that_cannot_be_written_are_no_panic() {
    let scratch = scratch();
    let full = || File::options().write(true).open("/dev/full").expect("/dev/full");
    let failed = command(["report", "/no/such/file"]).stderr(full()).status().expect("the program");
    assert_eq!(failed.code(), Some(1));
    let output = scratch.path().join("r.mmt");
    let recorded =
        command(["record", "-I", "0", "-o"]).arg(&output).args(["--", "sh", "-c", "exit 4"]).stderr(full()).status();
    assert_eq!(recorded.expect("the program").code(), Some(4));
    assert!(output.join("end.json").exists());
}
