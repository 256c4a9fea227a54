//! What the machine holds when the workload begins: `state.json` of a recording, from which the twin can begin too.

use crate::sample::fold_per_cpu_counters;
use crate::{clock, evidence};
use mmtwin_event::manifest::State;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// What takes memory itself to read comes first; the page lists, which are to be as the workload finds them, last.
const FILES: [&str; 7] = [
    "/proc/slabinfo",
    "/proc/pagetypeinfo",
    "/proc/meminfo",
    "/proc/vmstat",
    "/proc/buddyinfo",
    "/proc/zoneinfo",
    "/proc/mmtwin_pagesets",
];
/// More than any of them has on a machine of a few hundred CPUs: a buffer that grows would change what is read.
const BUFFER: usize = 1 << 20;

/// Reads the state now. Files that are not there are left out.
pub(super) fn read() -> State {
    let nodes = evidence::nodes(Path::new("/sys/devices/system/node"));
    let numastat = nodes.iter().map(|node| format!("/sys/devices/system/node/node{}/numastat", node.id));
    let paths: Vec<String> = numastat.chain(FILES.map(str::to_string)).collect();
    let mut buffer = vec![0; BUFFER];
    buffer.clear();
    let mut parts = Vec::with_capacity(paths.len());
    fold_per_cpu_counters();
    for path in &paths {
        let from = buffer.len();
        let read = File::open(path).and_then(|mut file| file.read_to_end(&mut buffer));
        parts.push(read.is_ok().then_some(from..buffer.len()));
    }
    let at = clock::now();
    let text = |part: std::ops::Range<usize>| String::from_utf8_lossy(&buffer[part]).into_owned();
    let files = paths.iter().zip(parts).filter_map(|(path, part)| Some((path.clone(), text(part?)))).collect();
    State { at, files }
}
