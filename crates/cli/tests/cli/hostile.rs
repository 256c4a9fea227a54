//! Inputs made or found that would take all memory, all time or all of the disk, and what else stands where a file
//! should be. Address space is limited where memory is the question, so that a failure is one of the test alone.

use super::support::{V6, command, gunzip, mmtwin, ok, recording, root, scratch, with_signals};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The program with at most so many MiB of address space and a minute.
fn limited(mib: u64, arguments: &[&OsStr]) -> Output {
    let mut command = Command::new("timeout");
    command.args(["60", "sh", "-c", "ulimit -v \"$0\"; exec \"$@\""]).arg((mib << 10).to_string());
    command.arg(env!("CARGO_BIN_EXE_mmtwin")).args(arguments).current_dir(root()).stdin(Stdio::null());
    command.output().expect("the program")
}

/// Ended by itself with this status; gives standard error.
fn ended(output: &Output, status: i32) -> String {
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(status), "{:?}: {err}", output.status);
    assert!(!err.contains("panicked"), "{err}");
    err
}

fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().expect("mkfifo").success());
}

#[test]
fn what_lies_beside_saved_counters_is_not_read() {
    let scratch = scratch();
    let run = scratch.path().join("run/before");
    fs::create_dir_all(&run).expect("a directory");
    fs::write(run.join("vmstat"), "pgfault 1\n").expect("written");
    fs::copy(root().join(recording("slab-6.18")), scratch.path().join("run/trace.txt.gz")).expect("a copy");
    // Three gigabytes that take no room, a FIFO, and links that lead round.
    File::create(run.join("core")).and_then(|f| f.set_len(3 << 30)).expect("a sparse file");
    fifo(&run.join("meminfo"));
    fifo(&scratch.path().join("run/ftrace"));
    std::os::unix::fs::symlink("..", run.join("up")).expect("a link");
    let err = ended(&limited(1024, &["report".as_ref(), scratch.path().as_ref()]), 0);
    assert!(err.contains("meminfo: not a regular file"), "{err}");
    // One that is too long by its name is named, and the rest is read.
    File::create(run.join("zoneinfo")).and_then(|f| f.set_len(3 << 30)).expect("a sparse file");
    let err = ended(&limited(1024, &["report".as_ref(), scratch.path().as_ref()]), 0);
    assert!(err.contains("zoneinfo: longer than the 64 MiB"), "{err}");
    let dat = root().join(V6);
    let given = |pair: &str| limited(1024, &["report".as_ref(), dat.as_ref(), "--counters".as_ref(), pair.as_ref()]);
    ended(&given("/proc,/proc"), 0);
    assert!(ended(&given("/dev/zero,/dev/zero"), 1).contains("longer than the 64 MiB"));
}

#[test]
fn streams_without_an_end_are_given_up() {
    let events = gunzip(&recording("slab-6.18")).into_bytes();
    let cases: [(&[u8], &[u8], i32); 5] = [
        (b"", b"\n", 1),
        (b"# tracer: nop\n", b"#\n", 1),
        (b"# tracer: nop\n", b"what is this\n", 1),
        (b"", b"\0", 1),
        (&events, b"\n", 0),
    ];
    for (start, rest, status) in cases {
        let mut child = command(["report", "-", "--table", "postprocess-summary"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program");
        let mut stdin = child.stdin.take().expect("a pipe");
        let block = rest.repeat((1 << 16) / rest.len());
        let _ = stdin.write_all(start);
        // Four gigabytes are as good as no end.
        let taken = (0..1u64 << 16).take_while(|_| stdin.write_all(&block).is_ok()).count();
        drop(stdin);
        let output = child.wait_with_output().expect("the program");
        assert!(taken < 1 << 12, "{taken} blocks of {rest:?} were read");
        let err = ended(&output, status);
        assert!(err.contains("standard input"), "{err}");
        if status == 0 {
            let out = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(out.contains("incomplete"), "{out}");
        }
    }
    let err = ended(&limited(1024, &["report".as_ref(), "/dev/zero".as_ref()]), 1);
    assert!(err.contains("/dev/zero"), "{err}");
}

/// An archive that unpacks to gigabytes leaves nothing and says which directory it was and what the limit is.
#[test]
fn archives_are_unpacked_within_bounds() {
    let scratch = scratch();
    let temporary = scratch.path().join("tmp");
    fs::create_dir(&temporary).expect("a directory");
    let report = |input: &Path| {
        let mut command = command(["report"]);
        command.arg(input).env("TMPDIR", &temporary).output().expect("the program")
    };
    let mut header = tar::Header::new_ustar();
    header.set_path("trace.dat").expect("a name");
    header.set_size(1 << 40);
    header.set_cksum();
    let bomb = scratch.path().join("bomb.tar.zst");
    let mut packed = zstd::Encoder::new(File::create(&bomb).expect("a file"), 1).expect("zstd");
    packed.write_all(header.as_bytes()).expect("written");
    let zeros = vec![0; 1 << 20];
    (0..400).for_each(|_| packed.write_all(&zeros).expect("written"));
    packed.finish().expect("zstd");
    let err = ended(&report(&bomb), 1);
    assert!(err.contains("bomb.tar.zst") && err.contains("more than 200 times its size"), "{err}");
    assert_eq!(temporary.read_dir().expect("a directory").count(), 0);
    // A name deeper than any trace lies.
    let deep = scratch.path().join("deep.tar");
    let mut archive = tar::Builder::new(File::create(&deep).expect("a file"));
    let mut header = tar::Header::new_gnu();
    header.set_size(3);
    header.set_cksum();
    archive.append_data(&mut header, "d/".repeat(2000) + "trace.txt", &b"# \n"[..]).expect("appended");
    archive.finish().expect("an archive");
    let began = Instant::now();
    let err = ended(&report(&deep), 1);
    assert!(err.contains("deep.tar") && began.elapsed() < Duration::from_secs(20), "{err}");
}

/// A signal while an archive is unpacked ends the program as signals do, and nothing is left.
#[test]
fn a_signal_removes_what_was_unpacked() {
    for signal in ["TERM", "HUP", "INT"] {
        let scratch = scratch();
        let mut report = command(["report", "-"]);
        report.env("TMPDIR", scratch.path());
        let mut child = with_signals(&report)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program");
        let mut header = tar::Header::new_ustar();
        header.set_path("trace.dat").expect("a name");
        header.set_size(1 << 30);
        header.set_cksum();
        let mut stdin = child.stdin.take().expect("a pipe");
        stdin.write_all(&[header.as_bytes().as_slice(), &[0; 1 << 16]].concat()).expect("written");
        let began = Instant::now();
        let unpacking = || scratch.path().read_dir().expect("a directory").next().is_some();
        while !unpacking() {
            assert!(began.elapsed() < Duration::from_secs(60), "nothing is unpacked");
            std::thread::sleep(Duration::from_millis(5));
        }
        let kill = Command::new("kill").args([format!("-{signal}"), child.id().to_string()]).status();
        assert!(kill.expect("kill").success());
        // What comes next on the pipe, or its end, wakes a program that waits for it.
        let _ = stdin.write_all(&[0; 1 << 16]);
        drop(stdin);
        let output = child.wait_with_output().expect("the program");
        assert!(output.status.signal().is_some(), "{signal}: {:?}", output.status);
        assert!(!unpacking(), "{signal}: the directory is left");
    }
}

/// A file that another program shortens while it is read.
#[test]
fn a_file_that_becomes_shorter_is_named() {
    let scratch = scratch();
    let path = scratch.path().join("growing.txt");
    let text = gunzip(&recording("slab-6.18"));
    fs::write(&path, text.repeat(40)).expect("written");
    let mut child = command([OsStr::new("script"), path.as_ref()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program");
    // Its output waits in the pipe, so it cannot have come far.
    let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
    out.read_line(&mut String::new()).expect("a line");
    File::options().write(true).open(&path).and_then(|f| f.set_len(100)).expect("shortened");
    out.read_to_end(&mut Vec::new()).expect("the rest");
    let err = ended(&child.wait_with_output().expect("the program"), 1);
    assert!(err.contains("growing.txt: was truncated while it was read"), "{err}");
}

#[test]
fn names_need_not_be_utf_8() {
    let scratch = scratch();
    let name = |bytes: &[u8]| scratch.path().join(OsString::from_vec(bytes.to_vec()));
    let input = name(b"tr\xe4ce.dat");
    fs::copy(root().join(V6), &input).expect("a copy");
    let given = |arguments: &[&str]| ok(arguments.iter().map(OsStr::new).chain([input.as_os_str()]));
    assert!(given(&["report"]).contains("tr\u{fffd}ce.dat"));
    assert_eq!(given(&["script"]), ok(["script", V6]));
    let mut column = OsString::from("new=");
    column.push(&input);
    assert!(ok([OsStr::new("compare"), input.as_ref(), &column]).contains("baseline "));
    let out = scratch.path().join("out.txt");
    ok([OsStr::new("convert"), input.as_ref(), "-o".as_ref(), out.as_ref()]);
    assert!(out.metadata().expect("the output").len() > 0);
    let missing = name(b"\xff");
    let run = mmtwin([OsStr::new("report"), missing.as_ref()]);
    assert!(run.status == 1 && run.err.contains("No such file"), "{}", run.err);
}

/// Numbers in the header of a trace.dat that wrap, or that something is divided by.
#[test]
fn numbers_of_a_header_are_checked() {
    let scratch = scratch();
    let whole = fs::read(root().join(V6)).expect("a trace.dat");
    let path = scratch.path().join("header.dat");
    let find = |what: &[u8]| whole.windows(what.len()).position(|w| w == what).expect("it is there");
    let report = |bytes: &[u8]| {
        fs::write(&path, bytes).expect("written");
        mmtwin(["report".as_ref(), path.as_os_str()])
    };
    for long in [0, 1, 3, 32, 255] {
        let mut bytes = whole.clone();
        // Behind the version comes the byte order, then the size of a long.
        bytes[find(b"6\0") + 3] = long;
        let run = report(&bytes);
        assert!(run.status == 1 && run.err.contains("size of a long"), "{long}: {}", run.err);
    }
    // Offsets in header_page, which keeps its length, in place of other text of the line.
    let line = find(b"field: local_t commit;");
    let end = line + whole[line..].iter().position(|&b| b == b'\n').expect("a line");
    for (offset, size) in
        [("18446744073709551608", "8"), ("8", "18446744073709551615"), ("4088", "8"), ("0", "8"), ("8", "0")]
    {
        let start = format!("commit;offset:{offset};size:{size};");
        let mut bytes = whole.clone();
        assert!(start.len() <= end - line, "{start}");
        bytes[line..end].fill(b' ');
        bytes[line..line + start.len()].copy_from_slice(start.as_bytes());
        let run = report(&bytes);
        assert!(run.status == 1 && run.err.contains("page layout"), "{start}: {}{}", run.text(), run.err);
    }
}
