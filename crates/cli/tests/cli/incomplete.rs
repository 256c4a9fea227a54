//! Inputs that lack a part: the first line reports it, no loss limit is kept, and what is there is read.

use super::support::{Run, V6, V7, gunzip, mmtwin, recording, root, scratch};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

/// A report of one small table with a limit of lost events that only unknown losses break.
fn report(input: &Path) -> Run {
    let arguments = ["report", "--table", "postprocess-summary", "--max-lost", "1000000000"];
    mmtwin(arguments.map(|a| a.as_ref()).into_iter().chain([input.as_os_str()]))
}

fn first_line(run: &Run) -> String {
    run.text().lines().find(|line| line.contains("events")).unwrap_or_default().to_string()
}

/// The report names the cut in its first line and fails for it.
fn says_cut(input: &Path, what: &str) {
    let run = report(input);
    assert_eq!(run.status, 4, "{what}: {}{}", run.text(), run.err);
    let first = first_line(&run);
    assert!(first.contains("incomplete (") && !first.contains(" 0 lost"), "{what}: {first}");
    assert!(run.err.contains("--max-lost allows"), "{what}: {}", run.err);
}

fn says_whole(input: &Path) {
    let run = report(input);
    assert_eq!(run.status, 0, "{}{}", run.text(), run.err);
    let first = first_line(&run);
    assert!(first.contains("0 lost") && !first.contains("incomplete ("), "{first}");
}

fn shorten(path: &Path, by: impl FnOnce(u64) -> u64) {
    let file = File::options().write(true).open(path).expect("a file");
    file.set_len(by(file.metadata().expect("its length").len())).expect("cut");
}

/// What is done to a recording.
type Damage<'d> = &'d dyn Fn(&Path);

/// A recording of the twin.
fn recorded(directory: &Path) -> PathBuf {
    let path = directory.join("r.mmt");
    let scenario = "scenarios/examples/vmalloc-purge-small.toml";
    let run = mmtwin(["run", scenario, "-o", path.to_str().expect("UTF-8")]);
    assert_eq!(run.status, 0, "{}", run.err);
    path
}

#[test]
fn every_file_of_a_recording_is_held_against_its_end() {
    let scratch = scratch();
    let whole = recorded(scratch.path());
    says_whole(&whole);
    let largest = |sub: &str, path: &Path| -> PathBuf {
        let entries = path.join(sub).read_dir().expect("a directory").map(|e| e.expect("an entry"));
        entries.max_by_key(|e| e.metadata().expect("its length").len()).expect("a file").path()
    };
    let damages: [(&str, Damage<'_>); 8] = [
        ("pages cut at a page", &|r| shorten(&largest("cpu", r), |n| n - 4096)),
        ("pages cut within a page", &|r| shorten(&largest("cpu", r), |n| n - 100)),
        ("pages cut to nothing", &|r| shorten(&largest("cpu", r), |_| 0)),
        ("a CPU that is missing", &|r| fs::remove_file(largest("cpu", r)).expect("removed")),
        ("counters without their end", &|r| shorten(&largest("counters", r), |n| n - 8)),
        ("no counters", &|r| fs::remove_file(largest("counters", r)).expect("removed")),
        ("results cut", &|r| shorten(&r.join("results.json"), |n| n / 2)),
        ("no end", &|r| fs::remove_file(r.join("end.json")).expect("removed")),
    ];
    for (what, damage) in damages {
        let copy = scratch.path().join("copy.mmt");
        let _ = fs::remove_dir_all(&copy);
        let copied = std::process::Command::new("cp").arg("-r").args([&whole, &copy]).status();
        assert!(copied.expect("cp").success());
        damage(&copy);
        says_cut(&copy, what);
    }
}

#[test]
fn a_trace_dat_that_ends_early() {
    let scratch = scratch();
    let path = scratch.path().join("cut.dat");
    for name in [V6, V7] {
        let whole = fs::read(root().join(name)).expect("a trace.dat");
        says_whole(&root().join(name));
        let mut seen = 0;
        for part in 1..12 {
            fs::write(&path, &whole[..whole.len() * part / 12]).expect("written");
            let run = report(&path);
            assert!(matches!(run.status, 1 | 4), "{name} cut to {part}/12: {}{}", run.text(), run.err);
            if run.status == 4 {
                says_cut(&path, name);
                seen += 1;
            }
        }
        assert!(seen > 0, "no cut of {name} left anything to read");
    }
}

#[test]
fn text_and_compressed_text_that_ends_early() {
    let scratch = scratch();
    let text = gunzip(&recording("slab-6.18")).into_bytes();
    let path = |ending: &str| scratch.path().join(format!("cut.txt{ending}"));
    // In the middle of the columns of a line.
    let line = text.iter().rposition(|&b| b == b'[').expect("a line");
    fs::write(path(""), &text[..line]).expect("written");
    says_cut(&path(""), "text");
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(&text).and_then(|()| gz.try_finish()).expect("gzip");
    // Several frames: of one that is cut only whole blocks can be read, and they are large.
    let zst: Vec<u8> = text.chunks(4000).flat_map(|part| zstd::encode_all(part, 1).expect("zstd")).collect();
    for (ending, packed) in [(".gz", gz.get_ref().clone()), (".zst", zst)] {
        for part in [2, 4] {
            fs::write(path(ending), &packed[..packed.len() * part / 5]).expect("written");
            says_cut(&path(ending), ending);
            // Nothing else is made of it: script prints what is there.
            let lines = mmtwin([Path::new("script"), &path(ending)]);
            assert!(lines.status == 0 && lines.err.contains("truncated"), "{ending}: {}", lines.err);
            assert!(lines.text().lines().count() > 10, "{ending}");
        }
        fs::write(path(ending), &packed[..packed.len() - 1]).expect("written");
        says_cut(&path(ending), ending);
        fs::write(path(ending), &packed).expect("written");
        says_whole(&path(ending));
    }
}

#[test]
fn archives_that_end_early() {
    let scratch = scratch();
    let mut archive = tar::Builder::new(Vec::new());
    archive.append_path_with_name(root().join(V6), "run/trace.dat").expect("appended");
    let mut header = tar::Header::new_ustar();
    header.set_size(10);
    header.set_cksum();
    archive.append_data(&mut header, "run/before/vmstat", &b"pgfault 1\n"[..]).expect("appended");
    let whole = archive.into_inner().expect("an archive");
    let path = scratch.path().join("run.tar");
    fs::write(&path, &whole).expect("written");
    says_whole(&path);
    // Behind the data of the second member, in its header, and in the first member.
    for length in [whole.len() - 1024, whole.len() - 1800, whole.len() - 4048] {
        fs::write(&path, &whole[..length]).expect("written");
        says_cut(&path, &format!("{length} of {}", whole.len()));
    }
}
