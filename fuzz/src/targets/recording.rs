//! Recordings: every file of the directory, JSON changed as JSON.

use super::everything::{format_of, reported};
use super::tracefs::inside;
use crate::{Random, Seen, mutate, parts, samples, scratch};
use mmtwin::{Request, run as simulate};
use mmtwin_event::counters::Row;
use mmtwin_event::manifest::{End, Losses, Run, TaskLine};
use mmtwin_trace::input::InputFile;
use mmtwin_trace::recording::CounterWriter;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// A stored run of the lab, and one of the twin with events.
pub const STORED: &str = "tests/data/recordings/reclaim-cgroup-swap-6.1.tar.zst";

/// A scenario short of memory, for some thousand events.
const SMALL: &str = "[machine]\nname = \"m\"\nswap = { size = \"16 MiB\" }\n[[machine.node]]\ncpus = \"0-1\"\nmemory = \"32 MiB\"\n\
    [kernel]\nrelease = \"6.1\"\n[[process]]\nname = \"p\"\nthreads = 2\n[[process.region]]\nname = \"r\"\nsize = \"40 MiB\"\n\
    [[process.phase]]\nduration = \"30 ms\"\n[[process.phase.access]]\nregion = \"r\"\npattern = \"uniform\"\nwrite = 0.5\n\
    think = \"4 us\"\n[run]\nsample = \"10 ms\"\nevents = [\"vmscan:*\"]\ncounters = [\"pg*\"]\n";

/// Bytes of the largest file that is kept.
const MOST: usize = 24 << 10;

/// Recordings of the lab and of the twin, without their largest files.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut stored = samples::stored(STORED);
    stored.retain(|_, bytes| bytes.len() <= MOST);
    vec![parts::join(&samples::named(stored)), parts::join(&samples::named(of_twin()))]
}

/// What the twin records, with files that only other recorders write.
fn of_twin() -> BTreeMap<String, Vec<u8>> {
    let top = scratch::memory();
    let path = top.path().join("r.mmt");
    let scenario = mmtwin_scenario::parse("small", SMALL, Path::new(""), &[]).expect("a scenario");
    let request = Request { name: "small", output: Some((&path, false)), ..Request::default() };
    simulate(&scenario, request, &mut |_| {}).unwrap_or_else(|failure| panic!("{failure}"));
    let mut files = samples::folder(&path);
    // Formats of a few events, and few pages, show all that can go wrong with them.
    files.retain(|name, _| !name.ends_with("format") || name.contains("shrink") || name.contains("kswapd"));
    files.iter_mut().filter(|(name, _)| name.ends_with(".pages")).for_each(|(_, bytes)| bytes.truncate(8192));
    let task = |pid: i32| TaskLine { at: 5, pid, tgid: 1000, comm: format!("p{pid}"), cgroup: Some("/a".into()) };
    let lines = [task(1000), task(1001)].map(|task| serde_json::to_string(&task).expect("JSON") + "\n");
    files.insert("tasks.jsonl".into(), lines.concat().into_bytes());
    let run = Run { schema_version: 1, started: 1, host: "h".into(), pid: 7, tool: "t".into() };
    files.insert("run.json".into(), serde_json::to_vec(&run).expect("JSON"));
    if let Some(bytes) = files.get_mut("end.json") {
        let mut end: End = serde_json::from_slice(bytes).expect("an end");
        end.losses = vec![Losses { cpu: 0, overrun: 5, dropped: 1, ..Losses::default() }];
        *bytes = serde_json::to_vec(&end).expect("JSON");
    }
    files
}

/// JSON as JSON, pages and counters by bytes.
pub fn mutate(input: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    parts::mutate(input, other, random, |_, part, lent, random| {
        inside(part, random, |name, bytes, random| match () {
            () if name.ends_with(".json") => mutate::json(bytes, lent, random),
            () if name.ends_with(".jsonl") && random.one_in(2) => lines(bytes, random),
            () if name.ends_with(".arrows") || name.ends_with(".pages") => mutate::bytes(bytes, lent, random),
            () => mutate::text(bytes, lent, random),
        });
    });
}

/// Changes one line as JSON.
fn lines(bytes: &mut Vec<u8>, random: &mut Random) {
    let mut lines: Vec<Vec<u8>> = bytes.split(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
    let at = random.below(lines.len());
    if let Some(line) = lines.get_mut(at) {
        mutate::json(line, b"", random);
    }
    *bytes = lines.join(&b'\n');
}

/// Reads and reports a directory.
pub fn run(input: &[u8]) -> Seen {
    let files = samples::unnamed(parts::split(input));
    scratch::directory(files, |top| reported(InputFile::open(top), format_of(input)))
}

/// Files of counters: two that a recorder wrote.
pub fn counter_seeds() -> Vec<Vec<u8>> {
    let top = scratch::memory();
    let mut writer = CounterWriter::new(top.path().into(), "counters".into());
    for at in 1..4 {
        let row = |key: &str, node| {
            let mut row = Row::new(key);
            (0..6).for_each(|i| row.push(format!("nr_{i}"), (i != node).then_some(at * 100 + i)));
            row
        };
        writer.add("vmstat", at * 10, &[row("", 2)]).expect("memory");
        writer.add("zoneinfo", at * 10, &[row("0/DMA", 1), row("0/Normal", 3)]).expect("memory");
    }
    writer.finish().expect("memory");
    ["vmstat", "zoneinfo"].map(|name| fs::read(top.path().join(format!("{name}.arrows"))).expect("a file")).to_vec()
}

/// Reads a file of counters to its end.
pub fn run_counters(input: &[u8]) -> Seen {
    use mmtwin_trace::recording::{CounterStream, Counters};
    let mut warnings = mmtwin_trace::Warnings::default();
    let streams = match CounterStream::open("vmstat", "vmstat.arrows", input, input.len() % 2 == 1, &mut warnings) {
        Ok(stream) => stream,
        Err(error) => return Seen::refused(error),
    };
    let mut counters = Counters::new(streams.into_iter().collect());
    let mut digest = 0u64;
    for row in counters.by_ref() {
        digest = digest.wrapping_mul(31).wrapping_add(row.at ^ crate::hash(row.key.as_bytes()));
        digest = row.values.iter().fold(digest, |sum, value| sum.wrapping_mul(31).wrapping_add(value.unwrap_or(7)));
    }
    warnings.append(counters.into_warnings());
    warnings.list().iter().for_each(|warning| digest ^= crate::hash(warning.to_string().as_bytes()));
    Seen::accepted(digest)
}
