//! Counters of the machine and its nodes, from files that stay open.

use super::file::OpenFile;
use mmtwin_event::counters::{self, Row};
use std::fs;
use std::path::Path;

/// Pressure files and the prefix of their counters.
const PRESSURE: [(&str, &str); 3] = [("memory", "memory_"), ("io", "io_"), ("cpu", "cpu_")];

/// Files of the machine.
#[derive(Debug)]
pub struct Machine {
    vmstat: Option<OpenFile>,
    meminfo: Option<OpenFile>,
    pressure: Vec<(&'static str, OpenFile)>,
    nodes: Vec<(String, OpenFile)>,
    text: Vec<u8>,
}

impl Machine {
    /// Those that there are.
    pub fn open() -> Machine {
        let proc = Path::new("/proc");
        let pressure = PRESSURE.iter().filter_map(|(file, prefix)| {
            let kept = OpenFile::open(&proc.join("pressure").join(file))?;
            Some((*prefix, kept))
        });
        let entries = fs::read_dir("/sys/devices/system/node").into_iter().flatten().flatten();
        let mut nodes: Vec<(u32, OpenFile)> = entries
            .filter_map(|entry| {
                let number = entry.file_name().to_str()?.strip_prefix("node")?.parse().ok()?;
                Some((number, OpenFile::open(&entry.path().join("vmstat"))?))
            })
            .collect();
        nodes.sort_by_key(|(number, _)| *number);
        Machine {
            vmstat: OpenFile::open(&proc.join("vmstat")),
            meminfo: OpenFile::open(&proc.join("meminfo")),
            pressure: pressure.collect(),
            nodes: nodes.into_iter().map(|(number, kept)| (number.to_string(), kept)).collect(),
            text: Vec::new(),
        }
    }

    /// Reads all of them. A file that cannot be read has no row.
    pub fn read(&mut self, take: &mut dyn FnMut(&'static str, Row)) {
        let (text, mut problems) = (&mut self.text, Vec::new());
        if let Some(text) = self.vmstat.as_ref().and_then(|kept| kept.read(text)) {
            let mut row = Row::default();
            counters::keyed(text, "", &mut row, &mut problems);
            take("vmstat", row);
        }
        if let Some(text) = self.meminfo.as_ref().and_then(|kept| kept.read(text)) {
            let mut row = Row::default();
            counters::meminfo(text, &mut row, &mut problems);
            take("meminfo", row);
        }
        let mut row = Row::default();
        for (prefix, kept) in &self.pressure {
            if let Some(text) = kept.read(text) {
                counters::pressure(text, prefix, &mut row, &mut problems);
            }
        }
        if !row.names.is_empty() {
            take("psi", row);
        }
        for (node, kept) in &self.nodes {
            if let Some(text) = kept.read(text) {
                let mut row = Row::new(node.as_str());
                counters::keyed(text, "", &mut row, &mut problems);
                take("node_vmstat", row);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_counters() {
        let mut sources = Vec::new();
        Machine::open().read(&mut |source, row| sources.push((source, row)));
        let value = |source: &str, name: &str| sources.iter().find(|(s, _)| *s == source)?.1.value(name);
        assert!(value("vmstat", "nr_free_pages").is_some());
        assert!(value("meminfo", "MemTotal").is_some_and(|kb| kb > 0));
        assert_eq!(value("psi", "memory_some_total").is_some(), Path::new("/proc/pressure/memory").exists());
    }
}
