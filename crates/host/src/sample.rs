//! Reading the kernel's statistics files into counter rows.

use crate::cgroup::FILES;
use mmtwin_event::counters::{self, Problem, Row};
use mmtwin_event::words::glob;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Takes samples of the machine's counters, and of chosen cgroups.
pub struct Sampler {
    proc: PathBuf,
    /// Number and directory of each node.
    nodes: Vec<(String, PathBuf)>,
    /// Key, directory and existing files of each cgroup.
    cgroups: Vec<(String, Vec<PathBuf>)>,
    /// Patterns of the counters that are kept; none: all are.
    wanted: Vec<String>,
    /// Whether a counter is kept, by name.
    known: BTreeMap<String, bool>,
    text: Vec<u8>,
}

/// PSI files of the machine and the prefix of their counters.
const PRESSURE: [(&str, &str); 3] = [("memory", "memory_"), ("io", "io_"), ("cpu", "cpu_")];

impl Sampler {
    /// A sampler of this machine.
    pub fn new() -> Sampler {
        Sampler::of(Path::new("/proc"), Path::new("/sys/devices/system/node"))
    }

    fn of(proc: &Path, nodes: &Path) -> Sampler {
        let mut nodes: Vec<(String, PathBuf)> = fs::read_dir(nodes)
            .into_iter()
            .flatten()
            .filter_map(|entry| {
                let path = entry.ok()?.path();
                let number = path.file_name()?.to_str()?.strip_prefix("node")?.to_string();
                number.bytes().all(|b| b.is_ascii_digit()).then_some((number, path))
            })
            .collect();
        nodes.sort_by_key(|(number, _)| number.parse::<u32>().unwrap_or(u32::MAX));
        let (cgroups, wanted, known, text) = Default::default();
        Sampler { proc: proc.into(), nodes, cgroups, wanted, known, text }
    }

    /// Adds a cgroup by its directory.
    pub fn add_cgroup(&mut self, key: &str, directory: &Path) {
        let files = FILES.iter().map(|f| directory.join(f)).filter(|f| f.is_file());
        self.cgroups.push((key.into(), files.collect()));
    }

    /// Forgets cgroups that have been removed.
    pub fn forget_removed(&mut self) {
        self.cgroups.retain(|(_, files)| files.iter().any(|file| file.exists()));
    }

    /// Keeps only counters whose names fit one of the patterns, with `*` and `?`.
    pub fn keep(&mut self, patterns: &[String]) {
        self.wanted = if patterns.iter().any(|p| p == "*") { Vec::new() } else { patterns.to_vec() };
        self.known.clear();
    }

    /// Gives every source's rows to `take`. A file that cannot be read (any more) has no row, and a cgroup without
    /// files none either.
    pub fn sample(&mut self, mut take: impl FnMut(&'static str, Vec<Row>)) {
        let (wanted, known) = (&self.wanted, &mut self.known);
        let mut take = |source, mut rows: Vec<Row>| {
            if !wanted.is_empty() {
                rows.iter_mut().for_each(|row| *row = chosen(row, wanted, known));
                rows.retain(|row| !row.names.is_empty());
            }
            take(source, rows);
        };
        let mut problems = Vec::new();
        let text = &mut self.text;
        let proc = &self.proc;
        if let Some(text) = read(text, &proc.join("vmstat")) {
            take("vmstat", one("", |row, p| counters::keyed(text, "", row, p), &mut problems));
        }
        if let Some(text) = read(text, &proc.join("zoneinfo")) {
            take("zoneinfo", counters::zoneinfo(text, &mut problems));
        }
        let mut meminfo = Vec::new();
        if let Some(text) = read(text, &proc.join("meminfo")) {
            meminfo = one("", |row, p| counters::meminfo(text, row, p), &mut problems);
        }
        let (mut vmstat, mut numastat) = (Vec::new(), Vec::new());
        for (node, path) in &self.nodes {
            for (file, rows) in [("vmstat", &mut vmstat), ("numastat", &mut numastat)] {
                if let Some(text) = read(text, &path.join(file)) {
                    rows.extend(one(node, |row, p| counters::keyed(text, "", row, p), &mut problems));
                }
            }
            if let Some(text) = read(text, &path.join("meminfo")) {
                meminfo.extend(one(node, |row, p| counters::meminfo(text, row, p), &mut problems));
            }
        }
        take("meminfo", meminfo);
        take("node_vmstat", vmstat);
        take("numastat", numastat);
        let mut pressure = Row::default();
        for (file, prefix) in PRESSURE {
            if let Some(text) = read(text, &proc.join("pressure").join(file)) {
                counters::pressure(text, prefix, &mut pressure, &mut problems);
            }
        }
        take("psi", if pressure.names.is_empty() { Vec::new() } else { vec![pressure] });
        let mut cgroups = Vec::new();
        for (key, files) in &self.cgroups {
            let mut row = Row::new(key.as_str());
            for file in files {
                if let (Some(text), Some(name)) = (read(text, file), file.file_name().and_then(|n| n.to_str())) {
                    counters::cgroup_file(name, text, &mut row, &mut problems);
                }
            }
            if !row.names.is_empty() {
                cgroups.push(row);
            }
        }
        take("cgroup", cgroups);
    }
}

impl Default for Sampler {
    fn default() -> Sampler {
        Sampler::new()
    }
}

/// The counters of a row that are wanted.
fn chosen(row: &Row, wanted: &[String], known: &mut BTreeMap<String, bool>) -> Row {
    let mut kept = Row::new(row.key.as_str());
    for (name, value) in row.names.iter().zip(&row.values) {
        let fits = match known.get(name) {
            Some(fits) => *fits,
            None => *known.entry(name.clone()).or_insert(wanted.iter().any(|pattern| glob(pattern, name))),
        };
        if fits {
            kept.push(name.as_str(), *value);
        }
    }
    kept
}

/// One row of a file. Lines that are no counters are none of the kernel's today; they are not worth a note a second.
fn one(key: &str, fill: impl Fn(&mut Row, &mut Vec<Problem>), problems: &mut Vec<Problem>) -> Vec<Row> {
    let mut row = Row::new(key);
    fill(&mut row, problems);
    vec![row]
}

/// The text of a file, in a buffer that is used again.
pub(crate) fn read<'a>(buffer: &'a mut Vec<u8>, path: &Path) -> Option<&'a str> {
    buffer.clear();
    File::open(path).ok()?.read_to_end(buffer).ok()?;
    std::str::from_utf8(buffer).ok()
}

/// Makes the kernel fold the per-CPU parts of its statistics, so that the next sample is exact. Needs root; without
/// it node and zone counts lag by up to a second.
pub fn fold_per_cpu_counters() {
    let _ = fs::read("/proc/sys/vm/stat_refresh");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampled(sampler: &mut Sampler) -> BTreeMap<&'static str, Vec<Row>> {
        let mut sources = BTreeMap::new();
        sampler.sample(|source, rows| assert!(sources.insert(source, rows).is_none()));
        sources
    }

    #[test]
    fn every_source_of_a_small_machine() {
        let root = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("proc/vmstat", "pgfault 3\n");
        write("proc/zoneinfo", "Node 0, zone Normal\n  pages free 5\n");
        write("proc/meminfo", "MemTotal: 7 kB\n");
        write("proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=9\n");
        for node in [10, 2] {
            write(&format!("node/node{node}/numastat"), "numa_hit 1\n");
            write(&format!("node/node{node}/meminfo"), &format!("Node {node} MemTotal: 3 kB\n"));
        }
        write("web/memory.stat", "anon 4096\n");
        write("web/memory.limit_in_bytes", "67108864\n");
        let mut sampler = Sampler::of(&root.path().join("proc"), &root.path().join("node"));
        sampler.add_cgroup("/web", &root.path().join("web"));
        sampler.add_cgroup("/gone", &root.path().join("gone"));
        let sources = sampled(&mut sampler);
        assert_eq!(sources["vmstat"][0].value("pgfault"), Some(3));
        assert_eq!(sources["zoneinfo"][0].key, "0/Normal");
        let keys = |source: &str| sources[source].iter().map(|r| r.key.as_str()).collect::<Vec<_>>();
        assert_eq!(keys("numastat"), ["2", "10"]);
        assert_eq!(keys("meminfo"), ["", "2", "10"]);
        assert_eq!(keys("cgroup"), ["/web"]);
        assert_eq!(sources["psi"][0].value("memory_some_total"), Some(9));
        assert_eq!(sources["cgroup"][0].value("memory.stat.anon"), Some(4096));
        assert_eq!(sources["cgroup"][0].value("memory.limit_in_bytes"), Some(64 << 20));
        assert!(sources["node_vmstat"].is_empty());
        sampler.forget_removed();
        assert_eq!(sampler.cgroups.len(), 1);
        sampler.keep(&["numa_*".into(), "pgfaul?".into()]);
        let sources = sampled(&mut sampler);
        let kept: Vec<_> = sources.values().flatten().flat_map(|row| &row.names).collect();
        assert_eq!(kept, ["numa_hit", "numa_hit", "pgfault"]);
        sampler.keep(&["*".into()]);
        assert_eq!(sampled(&mut sampler)["psi"].len(), 1);
    }

    #[test]
    fn this_machine_has_counters() {
        let sources = sampled(&mut Sampler::new());
        assert!(sources["vmstat"][0].value("nr_free_pages").is_some());
        assert!(sources["meminfo"][0].value("MemTotal").is_some_and(|kb| kb > 0));
    }
}
