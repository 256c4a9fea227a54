//! Topics of a report: which tables belong to a subject.
//!
//! A topic has the tables of its subject in the order of the report, as [`people`](crate::people) writes them. The tables
//! of published reports are in no topic: they repeat what is in others.

use crate::compare::{CROSS_CHECK, Comparison, FINDINGS, JoinedBody, JoinedTable};
use crate::model::{Body, Report, Table};
use crate::people::{body_tells, tells};
use mmtwin_event::words::glob;

/// A subject.
#[derive(Clone, Copy, Debug)]
pub struct Topic {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is about, in a few words.
    pub about: &'static str,
    /// Names of its tables, as patterns; a name after `!` is none of them.
    tables: &'static [&'static str],
}

/// All topics.
pub const TOPICS: &[Topic] = &[
    Topic {
        name: "reclaim",
        about: "page reclaim, kswapd, direct reclaim, latency, slab, throttling",
        tables: &[
            "reclaim",
            "reclaim-by-*",
            "lru",
            "latency",
            "latency-direct",
            "latency-kswapd",
            "latency-cgroup*",
            "latency-node",
            "latency-other",
            "process",
            "delays",
            "kswapd",
            "throttle",
            "slab",
        ],
    },
    Topic {
        name: "cgroup",
        about: "cgroups with limit, usage, waits and kills, their counters, reclaim at their limits",
        tables: &["cgroups", "cgroup", "latency-cgroup*"],
    },
    Topic {
        name: "psi",
        about: "pressure stall information, delay accounting of tasks",
        tables: &["pressure", "delays"],
    },
    Topic {
        name: "numa",
        about: "NUMA balancing, placement, allocation by node",
        tables: &["numa*", "migrate", "numastat", "placement"],
    },
    Topic { name: "vmalloc", about: "vmalloc areas, purges, traced functions", tables: &["vmalloc*", "calls*"] },
    Topic {
        name: "alloc",
        about: "the page allocator, zones and watermarks, huge pages",
        tables: &["alloc*", "zoneinfo", "thp"],
    },
    Topic {
        name: STACKS,
        about: "kernel stacks where tasks begin to reclaim or to wait (record -g)",
        tables: &[STACKS],
    },
    Topic { name: "compaction", about: "compaction and kcompactd", tables: &["compaction*", "kcompactd*"] },
    Topic { name: "oom", about: "the OOM killer and its victims", tables: &["oom*"] },
    Topic {
        name: COUNTERS,
        about: "the kernel's counters, cross-check, lost events",
        tables: &[CROSS_CHECK, "vmstat", "node-vmstat", "numastat", "zoneinfo", "meminfo", "invariants", "lost-events"],
    },
    Topic { name: "findings", about: "all findings", tables: &[FINDINGS] },
    Topic {
        name: WORKLOAD,
        about: "what the workload of a scenario achieved",
        tables: &[
            "workload",
            "placement",
            "latency-*",
            "!latency-direct",
            "!latency-kswapd",
            "!latency-cgroup*",
            "!latency-node",
            "!latency-other",
        ],
    },
];

/// Tables of the reports of 2010, 2012 and 2018 and of the kernel's post-processing script.
pub const HISTORIC: &[&str] = &[
    "vmscan",
    "congestion-wait",
    "writepage",
    "duration*",
    "mmtests-*",
    "vmstat-gain*",
    "process-direct",
    "process-kswapd",
    "postprocess-*",
];

/// The topic whose table is printed as stacks.
pub const STACKS: &str = "stacks";

/// Topics of what every machine and every scenario has.
const COUNTERS: &str = "counters";
const WORKLOAD: &str = "workload";

/// The topic of a name.
pub fn named(name: &str) -> Option<&'static Topic> {
    TOPICS.iter().find(|topic| topic.name == name)
}

impl Topic {
    /// True if a table belongs to it.
    pub fn has(&self, table: &str) -> bool {
        let excluded = |pattern: &&str| pattern.strip_prefix('!').is_some_and(|pattern| glob(pattern, table));
        self.tables.iter().any(|pattern| glob(pattern, table)) && !self.tables.iter().any(excluded)
    }
}

/// True if a table of the topic says anything but zero. What every machine or workload has, in topics of its own, is no
/// content of another.
pub fn has_content(topic: &Topic, report: &Report) -> bool {
    let everywhere = |table: &str| {
        let general = [COUNTERS, WORKLOAD].into_iter().filter(|name| *name != topic.name).filter_map(named);
        general.into_iter().any(|other| other.has(table))
    };
    let says = |table: &Table| match &table.body {
        Body::Metric(rows) => rows.iter().any(|row| tells(&row.value)),
        body => body_tells(body),
    };
    let findings = topic.has(FINDINGS) && !report.findings.is_empty();
    findings || report.tables.iter().any(|table| topic.has(&table.name) && !everywhere(&table.name) && says(table))
}

impl Topic {
    /// True if a table of a comparison belongs to it: the rows of what has the topic's name do too.
    pub fn compares(&self, table: &str) -> bool {
        self.has(table) || self.name == table
    }
}

impl Comparison {
    /// Keeps only the tables of a topic.
    pub fn select_topic(&mut self, topic: &Topic) {
        let wanted = |table: &JoinedTable| match table.body {
            JoinedBody::Metric(_) => topic.compares(&table.name),
            JoinedBody::Single { .. } => topic.has(&table.name),
        };
        self.tables.retain(wanted);
        self.findings = self.findings.take().filter(|_| topic.has(FINDINGS));
        self.cross_check = self.cross_check.take().filter(|_| topic.has(CROSS_CHECK));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::{reclaim_tables, subject_tables};
    use mmtwin_analysis::Analysis;

    fn all() -> Vec<Table> {
        let nothing = Analysis::default();
        reclaim_tables(&nothing).into_iter().chain(subject_tables(&nothing)).collect()
    }

    #[test]
    fn every_table_is_in_a_topic_or_historic_or_raw() {
        // Averages and totals of PSI as the kernel has them; `pressure` is for people.
        const RAW: [&str; 1] = ["psi"];
        for table in all() {
            let historic = HISTORIC.iter().any(|pattern| glob(pattern, &table.name));
            let topics: Vec<&str> =
                TOPICS.iter().filter(|topic| topic.has(&table.name)).map(|topic| topic.name).collect();
            let raw = RAW.contains(&table.name.as_str());
            assert_ne!(historic || raw, !topics.is_empty(), "{}: {topics:?}", table.name);
        }
    }

    #[test]
    fn every_topic_has_tables() {
        let names: Vec<String> = all().into_iter().map(|table| table.name).collect();
        for topic in TOPICS.iter().filter(|topic| !["findings", "workload"].contains(&topic.name)) {
            assert!(names.iter().any(|name| topic.has(name)), "{}", topic.name);
        }
        let workload = named("workload").unwrap();
        assert!(workload.has("latency-p-0-touch") && !workload.has("latency-direct"));
    }
}
