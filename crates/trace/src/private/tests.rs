//! A recording with names everywhere, and what is left of them.

use super::*;
use crate::recording::{Recording, Writer};
use mmtwin_event::counters::Row;
use mmtwin_event::manifest::{End, Evidence, Manifest, Run, SCHEMA_VERSION, Sampling, TaskLine, Tracing};
use std::fs;
use std::io::Write as _;
use std::path::Path;
use tempfile::TempDir;

const PAGE: usize = 256;
const HEADER_PAGE: &str = "\
\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;
\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;
\tfield: char data;\toffset:16;\tsize:240;\tsigned:1;
";
const FORMAT: &str = "\
name: renamed
ID: 7
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:char newcomm[16];\toffset:8;\tsize:16;\tsigned:0;
\tfield:__data_loc char[] comm;\toffset:24;\tsize:4;\tsigned:0;
\tfield:__data_loc char[] filename;\toffset:28;\tsize:4;\tsigned:0;

print fmt: \"%s %s %s\", REC->newcomm, __get_str(comm), __get_str(filename)
";

/// A record of the format above.
fn record(newcomm: &str, comm: &str, filename: &str) -> Vec<u8> {
    let mut fixed = [7u16.to_le_bytes().as_slice(), &[0, 0], &5i32.to_le_bytes()].concat();
    let mut name = newcomm.as_bytes().to_vec();
    name.resize(16, 0);
    fixed.extend(name);
    let at = 32;
    for (offset, text) in [(at, comm), (at + comm.len() + 1, filename)] {
        fixed.extend(((text.len() as u32 + 1) << 16 | offset as u32).to_le_bytes());
    }
    fixed.extend([comm.as_bytes(), b"\0", filename.as_bytes(), b"\0"].concat());
    fixed.resize(fixed.len().next_multiple_of(4), 0);
    fixed
}

/// A page: a record, a discarded record with words in it, another record, and words behind the end.
fn page() -> Vec<u8> {
    let mut data = Vec::new();
    for record in [record("ingest", "psql", "/home/alice/ingest"), record("kswapd0", "ingest", "")] {
        data.extend(((record.len() as u32 / 4) | 1 << 5).to_le_bytes());
        data.extend(record);
        data.extend((29u32 | 1 << 5).to_le_bytes());
        data.extend(16u32.to_le_bytes());
        data.extend(b"discarded-pw");
    }
    let mut page = [100u64.to_le_bytes().as_slice(), &(data.len() as u64).to_le_bytes(), &data].concat();
    page.extend(b"stale-secret");
    page.resize(PAGE, 0);
    page
}

fn recording(end: bool) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    let mut w = Writer::create(&root.path().join("r.mmt"), false).unwrap();
    w.text("header_page", HEADER_PAGE.as_bytes()).unwrap();
    w.text("printk_formats", b"0xffffffff : \"acme says %d\"\n").unwrap();
    w.text("kallsyms", b"ffffffff81000000 T schedule\nffffffffc0000000 t acme_fn\t[acme]\n").unwrap();
    w.format("task", "renamed", FORMAT.as_bytes()).unwrap();
    let (sub_buffer, cpus) = (PAGE as u64, vec![0]);
    let events = vec!["task:renamed".to_string()];
    let tracing = Tracing { sub_buffer, buffer: 4096, long_size: 8, cpus, events, ..Tracing::default() };
    let evidence = Evidence { cmdline: Some("root=UUID=12 user=alice numa=off".into()), ..Evidence::default() };
    w.manifest(&Manifest {
        schema_version: SCHEMA_VERSION,
        arm: "host".into(),
        clock: "mono".into(),
        tracing: Some(tracing),
        counters: Sampling { interval: None, cgroups: vec!["/acme/web".into()], ..Sampling::default() },
        command: Some(vec!["/opt/acme/ingest".into(), "--password=hunter2".into()]),
        evidence,
        ..Manifest::default()
    })
    .unwrap();
    w.run(&Run { host: "db7.acme".into(), ..Run::default() }).unwrap();
    let task = |pid, comm: &str, cgroup: &str| TaskLine {
        pid,
        comm: comm.into(),
        cgroup: Some(cgroup.into()),
        ..TaskLine::default()
    };
    w.tasks(&[task(5, "ingest", "/acme/web"), task(41, "kswapd0", "/")]).unwrap();
    let mut row = Row::new("/acme/web");
    row.push("memory.current", Some(5));
    w.counters("cgroup", 100, &[row.clone()]).unwrap();
    row.push("memory.peak", Some(6));
    w.counters("cgroup", 200, &[row]).unwrap();
    w.pages(0).unwrap().write_all(&[page(), page()].concat()).unwrap();
    match end {
        true => _ = w.finish(End { notes: vec!["ingest was slow".into()], ..End::default() }).unwrap(),
        false => w.stop().unwrap(),
    }
    fs::write(root.path().join("r.mmt/notes-of-alice"), "x").unwrap();
    root
}

/// All bytes below a directory.
fn all_bytes(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        bytes.extend(if path.is_dir() { all_bytes(&path) } else { fs::read(&path).unwrap() });
    }
    bytes
}

const SECRETS: [&str; 9] = ["ingest", "psql", "alice", "acme", "hunter2", "discarded", "stale", "db7", "UUID"];

fn found(bytes: &[u8]) -> Vec<&'static str> {
    let holds = |word: &&&str| bytes.windows(word.len()).any(|w| w == word.as_bytes());
    SECRETS.iter().filter(holds).copied().collect()
}

#[test]
fn no_byte_of_a_name_is_left_and_the_rest_is_as_before() {
    let root = recording(true);
    let (input, output) = (root.path().join("r.mmt"), root.path().join("s.mmt"));
    assert_eq!(found(&all_bytes(&input)), SECRETS);
    let scrubbed = scrub(&input, &output, Names::default(), false).unwrap();
    assert_eq!(found(&all_bytes(&output)), [""; 0]);
    assert_eq!(scrubbed.not_copied, ["notes-of-alice"]);
    assert_eq!(scrubbed.still_there, []);
    let read = Recording::open(&output).unwrap();
    assert_eq!(read.warnings.list(), []);
    assert_eq!(read.manifest.command, Some(vec!["task-1".to_string()]));
    assert_eq!(read.manifest.counters.cgroups, ["/cgroup-1/cgroup-2"]);
    assert_eq!(read.manifest.evidence.cmdline.as_deref(), Some("numa=off"));
    let named: Vec<_> = read.tasks().iter().map(|t| (t.comm.as_str(), t.cgroup.as_deref().unwrap())).collect();
    assert_eq!(named, [("task-1", "/cgroup-1/cgroup-2"), ("kswapd0", "/")]);
    assert_eq!(read.end.as_ref().unwrap().notes, ["task-1 was slow"]);
    let mut warnings = crate::Warnings::default();
    let rows: Vec<_> = read.counters(&mut warnings).map(|r| (r.at, r.key, r.values)).collect();
    let key = "/cgroup-1/cgroup-2".to_string();
    assert_eq!(rows, [(100, key.clone(), vec![Some(5)]), (200, key, vec![Some(5), Some(6)])]);
    // Records keep their lengths, and a field has what fits: `psql` has room for the short form alone.
    let pages = fs::read(output.join("cpu/0.pages")).unwrap();
    let (first, second) =
        (record("task-1", "t2\0\0", "text-1\0\0\0\0\0\0\0\0\0\0\0\0"), record("kswapd0", "task-1", ""));
    let second_at = 20 + first.len() + 20 + 4;
    assert_eq!(pages.len(), 2 * PAGE);
    assert_eq!(pages[20..20 + first.len()], first);
    assert_eq!(pages[second_at..second_at + second.len()], second);
}

#[test]
fn a_recording_that_was_cut_off_stays_one() {
    let root = recording(false);
    let (input, output) = (root.path().join("r.mmt"), root.path().join("s.mmt"));
    scrub(&input, &output, Names::default(), false).unwrap();
    assert_eq!(found(&all_bytes(&output)), [""; 0]);
    assert!(!output.join("end.json").exists());
    assert_eq!(Recording::open(&output).unwrap().tasks().len(), 2);
}

#[test]
fn pseudonyms_go_on_from_one_recording_to_the_next() {
    let root = recording(true);
    let input = root.path().join("r.mmt");
    let first = scrub(&input, &root.path().join("a.mmt"), Names::default(), false).unwrap();
    let second = scrub(&input, &root.path().join("b.mmt"), first.names.clone(), false).unwrap();
    assert_eq!(first.names, second.names);
    assert_eq!(all_bytes(&root.path().join("a.mmt")), all_bytes(&root.path().join("b.mmt")));
}
