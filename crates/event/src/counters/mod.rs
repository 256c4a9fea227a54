//! Kernel statistics: from the text of a `/proc`, `/sys` or cgroup file to rows of counters.
//!
//! Live sampling and saved snapshots use the same functions. Names are the kernel's own. Values keep the kernel's unit:
//! `meminfo` counts kB, PSI totals microseconds; PSI averages are percentages and are kept in hundredths. A text that
//! is not a number (`max` of an unlimited cgroup) is a counter without a value; a line that is no counter is a
//! [`Problem`].
//!
//! | source | key | names |
//! |---|---|---|
//! | `vmstat` | empty | as printed |
//! | `zoneinfo` | `0/Normal`, or `0` for a node's own statistics | as printed; see [`zoneinfo`] |
//! | `node_vmstat`, `numastat` | `0` | as printed |
//! | `meminfo` | empty, or `0` for a node | as printed (`Active(anon)`) |
//! | `psi` | empty | `memory_some_total`, `io_full_avg10` |
//! | `numa_maps` | `PROCESS/REGION` of a scenario | `N0`, `N1`, ...: pages of the region on a node, from `/proc/PID/numa_maps` |
//! | `sched` | thread id | NUMA lines of `/proc/PID/sched`: `numa_scan_seq`, `current_node`, `node0_task_private`, ... |
//! | `delays` | thread id | `blkio_ns`, `swapin_ns`, `freepages_ns`, `thrashing_ns`, `compact_ns`, `wpcopy_ns`, `read_bytes`: taskstats, since the begin |
//! | `cgroup` | `/web` | file name, and key if it has keys: `memory.current`, `memory.stat.pgscan`, `memory.failcnt` |
//!
//! Validated on files of kernels 6.1 and 6.18; older layouts of zoneinfo after the kernel's documentation.

mod free_blocks;
mod iomem;
mod lru;
mod pagesets;
mod shrinkers;
mod zoneinfo;

pub use free_blocks::{FreeBlocks, free_blocks};
pub use iomem::{Iomem, iomem};
pub use lru::{Backing, Batch, Lru, Lruvec, Run, lru};
pub use pagesets::{Pageset, pagesets};
pub use shrinkers::{Shrinker, shrinkers};
pub use zoneinfo::zoneinfo;

/// Counters of one key at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Object within the source; see the table above.
    pub key: String,
    /// Names, in the kernel's order.
    pub names: Vec<String>,
    /// Values, parallel to `names`.
    pub values: Vec<Option<u64>>,
}

impl Row {
    /// A row without counters.
    pub fn new(key: impl Into<String>) -> Row {
        Row { key: key.into(), ..Row::default() }
    }
    /// Adds a counter.
    pub fn push(&mut self, name: impl Into<String>, value: Option<u64>) {
        self.names.push(name.into());
        self.values.push(value);
    }
    /// Value of a counter, if it is there and has one.
    pub fn value(&self, name: &str) -> Option<u64> {
        self.names.iter().position(|n| n == name).and_then(|i| self.values[i])
    }
}

/// A line that holds no counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Line number from 1.
    pub line: u64,
    /// The expected form.
    pub message: &'static str,
}

/// Lines `NAME VALUE`: `/proc/vmstat`, `nodeN/vmstat`, `nodeN/numastat`, `memory.events`. `prefix` precedes every name.
pub fn keyed(text: &str, prefix: &str, row: &mut Row, problems: &mut Vec<Problem>) {
    for (line, text) in lines(text) {
        let mut words = text.split_ascii_whitespace();
        match (words.next(), words.next(), words.next()) {
            (Some(name), Some(value), None) => row.push(format!("{prefix}{name}"), value.parse().ok()),
            _ => problems.push(Problem { line, message: "expected a name and a value" }),
        }
    }
}

/// The NUMA lines of `/proc/PID/sched`; all others are skipped. A name's `mm->` is omitted, those of a node are
/// preceded by it: `node0_task_private`. A preferred node of -1, none, is a counter without a value.
pub fn proc_sched(text: &str, row: &mut Row) {
    for (_, text) in lines(text) {
        if let Some((name, value)) = text.split_once(':') {
            let name = name.trim_end();
            let name = name.strip_prefix("mm->").unwrap_or(name);
            if name.contains("numa") {
                row.push(name, value.trim().parse().ok());
            }
            continue;
        }
        let mut prefix = String::new();
        for (name, value) in text.split([' ', ',']).filter_map(|word| word.split_once('=')) {
            match name {
                "node" => prefix = format!("node{value}_"),
                "current_node" | "numa_group_id" => row.push(name, value.parse().ok()),
                _ if !prefix.is_empty() => row.push(format!("{prefix}{name}"), value.parse().ok()),
                _ => {}
            }
        }
    }
}

/// `/proc/meminfo` and `nodeN/meminfo`. The unit, kB where there is one, is the kernel's.
pub fn meminfo(text: &str, row: &mut Row, problems: &mut Vec<Problem>) {
    for (line, text) in lines(text) {
        // `Node 0 MemTotal:  8 kB` in a node's file.
        let text = match text.strip_prefix("Node ") {
            Some(rest) => rest.trim_start().trim_start_matches(|c: char| c.is_ascii_digit()).trim_start(),
            None => text,
        };
        match text.split_once(':') {
            Some((name, value)) => {
                let value = value.split_ascii_whitespace().next().and_then(|v| v.parse().ok());
                row.push(name, value);
            }
            None => problems.push(Problem { line, message: "expected `Name: value`" }),
        }
    }
}

/// A PSI file (`some avg10=0.00 avg60=0.00 avg300=0.00 total=0`). Names are `PREFIX` + `some_total` and so on.
pub fn pressure(text: &str, prefix: &str, row: &mut Row, problems: &mut Vec<Problem>) {
    for (line, text) in lines(text) {
        let mut words = text.split_ascii_whitespace();
        let Some(kind) = words.next() else { continue };
        for word in words {
            match word.split_once('=') {
                Some((name, value)) => row.push(format!("{prefix}{kind}_{name}"), hundredths_or_whole(value)),
                None => problems.push(Problem { line, message: "expected name=value" }),
            }
        }
    }
}

/// `12` is 12; `0.25`, a percentage with two decimals, is 25.
fn hundredths_or_whole(value: &str) -> Option<u64> {
    match value.split_once('.') {
        None => value.parse().ok(),
        Some((whole, fraction)) if fraction.len() == 2 => {
            whole.parse::<u64>().ok()?.checked_mul(100)?.checked_add(fraction.parse().ok()?)
        }
        Some(_) => None,
    }
}

/// A file of a memory cgroup, of either version, by its name: a single value, keyed lines, PSI or `numa_stat`.
pub fn cgroup_file(file: &str, text: &str, row: &mut Row, problems: &mut Vec<Problem>) {
    if file.ends_with(".pressure") {
        pressure(text, &format!("{file}."), row, problems);
    } else if file.ends_with("numa_stat") {
        numa_stat(file, text, row, problems);
    } else if text.trim_end().contains([' ', '\n']) {
        keyed(text, &format!("{file}."), row, problems);
    } else {
        row.push(file, text.trim_end().parse().ok());
    }
}

/// `memory.numa_stat`: version 1 `total=5 N0=3 N1=2`, version 2 `anon N0=3 N1=2`. Names are `memory.numa_stat.anon.N0`.
fn numa_stat(file: &str, text: &str, row: &mut Row, problems: &mut Vec<Problem>) {
    for (line, text) in lines(text) {
        let mut words = text.split_ascii_whitespace();
        let Some(first) = words.next() else { continue };
        let (name, total) = first.split_once('=').map_or((first, None), |(n, v)| (n, Some(v)));
        if let Some(total) = total {
            row.push(format!("{file}.{name}"), total.parse().ok());
        }
        for word in words {
            match word.split_once('=') {
                Some((node, value)) => row.push(format!("{file}.{name}.{node}"), value.parse().ok()),
                None => problems.push(Problem { line, message: "expected node=value" }),
            }
        }
    }
}

/// Names of the files that [`saved`] takes, sorted.
pub const SAVED: [&str; 9] = [
    "cpu.pressure",
    "io.pressure",
    "meminfo",
    "memory.pressure",
    "node_vmstat",
    "nodevmstat",
    "numastat",
    "vmstat",
    "zoneinfo",
];

/// A saved file by its name: (source, rows), or `None` if the name is of no file with counters. Knows `vmstat`,
/// `zoneinfo`, `meminfo`, `numastat`, `node_vmstat` or `nodevmstat`, and PSI files as `memory.pressure`; several nodes
/// in one file are separated by lines `# node0`.
pub fn saved(name: &str, text: &str, problems: &mut Vec<Problem>) -> Option<(&'static str, Vec<Row>)> {
    let by_node = |problems: &mut Vec<Problem>| {
        let read = |part: &str, first_line: u64, row: &mut Row, problems: &mut Vec<Problem>| {
            let before = problems.len();
            keyed(part, "", row, problems);
            problems[before..].iter_mut().for_each(|p| p.line += first_line - 1);
        };
        nodes(text)
            .into_iter()
            .map(|(node, first_line, part)| {
                let mut row = Row::new(node);
                read(part, first_line, &mut row, problems);
                row
            })
            .collect()
    };
    let one = |fill: &dyn Fn(&mut Row, &mut Vec<Problem>), problems: &mut Vec<Problem>| {
        let mut row = Row::default();
        fill(&mut row, problems);
        vec![row]
    };
    // [`SAVED`] lists the names.
    Some(match name {
        "vmstat" => ("vmstat", one(&|row, p| keyed(text, "", row, p), problems)),
        "meminfo" => ("meminfo", one(&|row, p| meminfo(text, row, p), problems)),
        "zoneinfo" => ("zoneinfo", zoneinfo(text, problems)),
        "numastat" => ("numastat", by_node(problems)),
        "node_vmstat" | "nodevmstat" => ("node_vmstat", by_node(problems)),
        "memory.pressure" | "io.pressure" | "cpu.pressure" => {
            let prefix = name.replace(".pressure", "_");
            ("psi", one(&|row, p| pressure(text, &prefix, row, p), problems))
        }
        _ => return None,
    })
}

/// Parts of a file by its lines `# nodeN`: (N, number of the part's first line, part). Without such a line all of it
/// is node 0.
fn nodes(text: &str) -> Vec<(&str, u64, &str)> {
    let mut parts = Vec::new();
    let (mut node, mut first_line, mut start, mut at) = ("0", 1, 0, 0);
    for (i, line) in text.split_inclusive('\n').enumerate() {
        if let Some(next) = line.trim_end().strip_prefix("# node") {
            if !text[start..at].trim().is_empty() {
                parts.push((node, first_line, &text[start..at]));
            }
            (node, first_line, start) = (next, i as u64 + 2, at + line.len());
        }
        at += line.len();
    }
    if !text[start..].trim().is_empty() {
        parts.push((node, first_line, &text[start..]));
    }
    parts
}

/// Lines that are not blank, with their numbers.
fn lines(text: &str) -> impl Iterator<Item = (u64, &str)> {
    (1..).zip(text.lines()).filter(|(_, l)| !l.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(read: impl Fn(&mut Row, &mut Vec<Problem>)) -> (Vec<(String, Option<u64>)>, Vec<Problem>) {
        let (mut row, mut problems) = (Row::default(), Vec::new());
        read(&mut row, &mut problems);
        (row.names.into_iter().zip(row.values).collect(), problems)
    }

    fn named(list: &[(&str, Option<u64>)]) -> Vec<(String, Option<u64>)> {
        list.iter().map(|(n, v)| (n.to_string(), *v)).collect()
    }

    #[test]
    fn keyed_lines() {
        let (counters, problems) =
            row(|r, p| keyed("pgfault 12\nthree words here\npgfree -1\n\nlow max\n", "x.", r, p));
        assert_eq!(counters, named(&[("x.pgfault", Some(12)), ("x.pgfree", None), ("x.low", None)]));
        assert_eq!(problems, [Problem { line: 2, message: "expected a name and a value" }]);
    }

    #[test]
    fn numa_lines_of_proc_sched() {
        let text = "worker (12, #threads: 3)\nse.exec_start                                :         12.5\n\
            mm->numa_scan_seq                            :                    7\n\
            numa_preferred_nid                           :                   -1\ncurrent_node=2, numa_group_id=9\n\
            numa_faults node=0 task_private=4 task_shared=5 group_private=6 group_shared=8\n";
        let (counters, _) = row(|r, _| proc_sched(text, r));
        let expected = [
            ("numa_scan_seq", Some(7)),
            ("numa_preferred_nid", None),
            ("current_node", Some(2)),
            ("numa_group_id", Some(9)),
            ("node0_task_private", Some(4)),
            ("node0_task_shared", Some(5)),
            ("node0_group_private", Some(6)),
            ("node0_group_shared", Some(8)),
        ];
        assert_eq!(counters, named(&expected));
    }

    #[test]
    fn meminfo_of_system_and_node() {
        let (counters, _) = row(|r, p| meminfo("MemTotal:       8743128 kB\nHugePages_Total:       3\n", r, p));
        assert_eq!(counters, named(&[("MemTotal", Some(8_743_128)), ("HugePages_Total", Some(3))]));
        let (counters, problems) = row(|r, p| meminfo("Node 12 Active(anon):    7 kB\nbroken\n", r, p));
        assert_eq!(counters, named(&[("Active(anon)", Some(7))]));
        assert_eq!(problems[0].line, 2);
    }

    #[test]
    fn pressure_keeps_hundredths() {
        let text = "some avg10=1.05 avg60=0.00 avg300=12.34 total=987\n";
        let (counters, _) = row(|r, p| pressure(text, "memory_", r, p));
        let expected = [("memory_some_avg10", 105), ("memory_some_avg60", 0), ("memory_some_avg300", 1234)];
        assert_eq!(counters[..3], named(&expected.map(|(n, v)| (n, Some(v)))));
        assert_eq!(counters[3], ("memory_some_total".to_string(), Some(987)));
    }

    #[test]
    fn cgroup_files_of_both_versions() {
        let (counters, problems) = row(|r, p| {
            cgroup_file("memory.current", "4096\n", r, p);
            cgroup_file("memory.max", "max\n", r, p);
            cgroup_file("memory.events", "low 0\nmax 17\n", r, p);
            cgroup_file("memory.numa_stat", "total=5 N0=3 N1=2\n", r, p);
            cgroup_file("memory.numa_stat", "anon N0=4096\n", r, p);
            cgroup_file("memory.pressure", "full avg10=0.00 avg60=0.00 avg300=0.00 total=3\n", r, p);
        });
        let expected = named(&[
            ("memory.current", Some(4096)),
            ("memory.max", None),
            ("memory.events.low", Some(0)),
            ("memory.events.max", Some(17)),
            ("memory.numa_stat.total", Some(5)),
            ("memory.numa_stat.total.N0", Some(3)),
            ("memory.numa_stat.total.N1", Some(2)),
            ("memory.numa_stat.anon.N0", Some(4096)),
        ]);
        assert_eq!(counters[..8], expected[..]);
        assert_eq!(counters[11], ("memory.pressure.full_total".to_string(), Some(3)));
        assert!(problems.is_empty());
    }

    #[test]
    fn saved_files_of_several_nodes() {
        let mut problems = Vec::new();
        let text = "# node0\nnuma_hit 4\n# node1\nnuma_hit 5\nbad\n";
        let (source, rows) = saved("numastat", text, &mut problems).unwrap();
        assert_eq!((source, rows.len()), ("numastat", 2));
        assert_eq!((rows[1].key.as_str(), rows[1].value("numa_hit")), ("1", Some(5)));
        assert_eq!(problems[0].line, 5);
        let (_, rows) = saved("nodevmstat", "nr_free_pages 1\n", &mut problems).unwrap();
        assert_eq!(rows[0].key, "0");
        assert!(saved("uptime", "1 2\n", &mut problems).is_none());
    }
}
