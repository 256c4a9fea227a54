//! What the machine holds when the workload begins: `state.json` of a recording, from which the twin can begin too.

use super::team::Member;
use crate::sample::fold_per_cpu_counters;
use crate::{clock, evidence};
use mmtwin_event::manifest::State;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// What takes memory itself to read comes first; the page lists, which are to be as the workload finds them, last.
const FILES: [&str; 12] = [
    "/proc/iomem",
    "/proc/swaps",
    "/proc/slabinfo",
    "/proc/pagetypeinfo",
    "/proc/meminfo",
    "/proc/vmstat",
    "/proc/buddyinfo",
    "/proc/zoneinfo",
    "/proc/mmtwin_shrinkers",
    "/proc/mmtwin_nodes",
    "/proc/mmtwin_lru",
    "/proc/mmtwin_pagesets",
];
/// More than any of them has on a machine of a few hundred CPUs: a buffer that grows would change what is read.
const BUFFER: usize = 1 << 20;

/// Reads the state now. Files that are not there are omitted.
pub(super) fn read(team: &[Member]) -> State {
    let cpus = team.iter().map(cpus).collect();
    let nodes = evidence::nodes(Path::new("/sys/devices/system/node"));
    let numastat = nodes.iter().map(|node| format!("/sys/devices/system/node/node{}/numastat", node.id));
    let paths: Vec<String> = devices().into_iter().chain(numastat).chain(FILES.map(str::to_string)).collect();
    let mut buffer = vec![0; BUFFER];
    buffer.clear();
    let mut parts = Vec::with_capacity(paths.len());
    let at = second(|| {
        buffer.clear();
        parts.clear();
        fold_per_cpu_counters();
        for path in &paths {
            let from = buffer.len();
            let read = File::open(path).and_then(|mut file| file.read_to_end(&mut buffer));
            parts.push(read.is_ok().then_some(from..buffer.len()));
        }
        clock::now()
    });
    let text = |part: std::ops::Range<usize>| String::from_utf8_lossy(&buffer[part]).into_owned();
    let files = paths.iter().zip(parts).filter_map(|(path, part)| Some((path.clone(), text(part?)))).collect();
    State { at, cpus, began: Vec::new(), files }
}

/// What reading comes to the second time. The first time a file is opened the kernel makes a dentry for its name, which
/// stays: the shrinkers' objects would be counted without those of the files that are read after them.
fn second<T>(mut read: impl FnMut() -> T) -> T {
    read();
    read()
}

/// Files of what the kernel knows of the devices that it writes to.
fn devices() -> Vec<String> {
    let entries = std::fs::read_dir("/sys/kernel/debug/bdi").into_iter().flatten().flatten();
    let mut files: Vec<String> = entries.map(|entry| format!("{}/stats", entry.path().display())).collect();
    files.sort_unstable();
    files
}

/// CPUs of a process's threads in the order in which they were started.
fn cpus(member: &Member) -> Vec<u32> {
    let mut tids = member.tids();
    tids.sort_unstable();
    let stat =
        |tid: &i32| std::fs::read_to_string(format!("/proc/{}/task/{tid}/stat", member.pid())).unwrap_or_default();
    tids.iter().filter_map(|tid| processor(&stat(tid))).collect()
}

/// `processor` of a `stat` file, which is the 39th value; the name of the task, the second, may be anything.
fn processor(stat: &str) -> Option<u32> {
    stat.rsplit_once(") ")?.1.split_whitespace().nth(36)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_reading_counts() {
        let mut readings = 0;
        let last = second(|| {
            readings += 1;
            readings
        });
        assert_eq!((last, readings), (2, 2));
    }

    #[test]
    fn a_task_has_a_cpu() {
        let own = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        assert!((processor(&own).unwrap() as usize) < 1 << 13, "{own}");
        let odd = own.replacen('(', "(a ) b ", 1);
        assert_eq!((processor(&odd), processor("1 (x) R 1")), (processor(&own), None));
    }
}
