//! The machine and the kernel of a new scenario.

use super::Archetype;
use mmtwin_event::manifest::Evidence;
use mmtwin_scenario::kernel::Sysctl;
use mmtwin_scenario::units::Bytes;
use std::collections::BTreeMap;
use std::fmt::Write;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Why a machine cannot be described.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BasisError {
    /// Neither nodes nor the whole tell their memory.
    #[error("the memory of the machine is not known")]
    Memory,
    /// No CPUs.
    #[error("the CPUs of the machine are not known")]
    Cpus,
}

/// A machine and its kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Basis {
    /// Where it is from, in words.
    pub origin: String,
    /// Release of its kernel, as `uname -r` has it.
    pub release: String,
    nodes: Vec<Node>,
    /// Between nodes, by node.
    distances: Vec<Vec<u32>>,
    /// Bytes; 0: none.
    swap: u64,
    /// `always`, `madvise` or `never`; and for `thp_defrag`.
    thp: String,
    thp_defrag: Option<String>,
    /// Values by name, those that a scenario has.
    pub(super) sysctls: BTreeMap<String, u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Node {
    cpus: Vec<u32>,
    /// Bytes.
    memory: u64,
}

impl Basis {
    /// A machine of a usual size for a workload.
    pub fn of(archetype: Archetype) -> Basis {
        let nodes = if archetype == Archetype::Analytics { 2 } else { 1 };
        let node = |id: u32| Node { cpus: (4 * id..4 * id + 4).collect(), memory: 4 * GIB };
        Basis {
            origin: "no machine in particular".into(),
            release: "6.12".into(),
            nodes: (0..nodes).map(node).collect(),
            distances: if nodes == 1 { vec![vec![10]] } else { vec![vec![10, 21], vec![21, 10]] },
            swap: 2 * GIB,
            thp: "madvise".into(),
            thp_defrag: None,
            sysctls: BTreeMap::new(),
        }
    }

    /// This machine.
    ///
    /// # Errors
    /// If it does not tell its memory or its CPUs.
    pub fn of_host() -> Result<Basis, BasisError> {
        Basis::of_evidence(&mmtwin_host::evidence::collect(), "this host, as it was when the file was written")
    }

    /// The machine that the manifest of a recording describes; `origin` in words.
    ///
    /// # Errors
    /// If that has no memory or no CPUs.
    pub fn of_evidence(evidence: &Evidence, origin: &str) -> Result<Basis, BasisError> {
        let bytes = |kb: u64| kb * KIB / MIB * MIB;
        let mut nodes: Vec<Node> = Vec::new();
        let mut distances = Vec::new();
        for node in &evidence.nodes {
            nodes.push(Node { cpus: node.cpus.clone(), memory: bytes(node.memory.unwrap_or(0)) });
            distances.push(node.distances.clone());
        }
        if nodes.iter().all(|node| node.memory == 0) || distances.iter().any(|row| row.len() != nodes.len()) {
            // A kernel without NUMA.
            let memory = bytes(evidence.memory.ok_or(BasisError::Memory)?);
            (nodes, distances) = (vec![Node { cpus: evidence.cpus.clone(), memory }], vec![vec![10]]);
        }
        if nodes.iter().all(|node| node.cpus.is_empty()) {
            return Err(BasisError::Cpus);
        }
        let chosen = |file: &str| {
            let text = evidence.files.get(&format!("/sys/kernel/mm/transparent_hugepage/{file}"))?;
            Some(text.split_once('[')?.1.split_once(']')?.0.to_owned())
        };
        let sysctl = |name: &&str| {
            let path = format!("/proc/sys/{}", name.replacen('.', "/", 1));
            Some(((*name).to_owned(), evidence.files.get(&path)?.trim().parse().ok()?))
        };
        let swaps = evidence.files.get("/proc/swaps").map_or("", String::as_str);
        let size = |line: &str| line.split_whitespace().nth(2)?.parse::<u64>().ok();
        Ok(Basis {
            origin: origin.into(),
            release: evidence.uname.release.clone(),
            nodes,
            distances,
            swap: bytes(swaps.lines().skip(1).filter_map(size).sum()),
            thp: chosen("enabled").unwrap_or_else(|| "never".into()),
            thp_defrag: chosen("defrag"),
            sysctls: Sysctl::NAMES.iter().filter_map(sysctl).collect(),
        })
    }

    /// Memory of all nodes, in bytes.
    pub(super) fn memory(&self) -> u64 {
        self.nodes.iter().map(|node| node.memory).sum()
    }

    /// CPUs of all nodes.
    pub(super) fn cpus(&self) -> usize {
        self.nodes.iter().map(|node| node.cpus.len()).sum()
    }

    pub(super) fn machine(&self) -> String {
        let row = |row: &Vec<u32>| format!("[{}]", row.iter().map(u32::to_string).collect::<Vec<_>>().join(", "));
        let rows: Vec<String> = self.distances.iter().map(row).collect();
        let distance = match rows.join(", ") {
            short if short.len() < 90 => format!("[{short}]"),
            _ => format!("[\n  {},\n]", rows.join(",\n  ")),
        };
        let mut text = String::from(
            "# Costs are those of machines/base.toml, which nobody measured on this machine: `mmtwin calibrate` does, and\n\
             # `preset` takes its file.\n[machine]\n",
        );
        let _ = writeln!(text, "distance = {distance}");
        for node in &self.nodes {
            text.push_str("\n[[machine.node]]\n");
            if !node.cpus.is_empty() {
                let _ = writeln!(text, "cpus = \"{}\"", list(&node.cpus));
            }
            if node.memory > 0 {
                let _ = writeln!(text, "memory = \"{}\"", Bytes(node.memory));
            }
        }
        text.push_str("\n# Assumed: an SSD.\n[machine.disk]\nlatency = \"100 us\"\nbandwidth = \"1 GB/s\"\n");
        if self.swap > 0 {
            let size = Bytes(self.swap);
            let _ =
                writeln!(text, "\n[machine.swap]\nsize = \"{size}\"\nlatency = \"100 us\"\nbandwidth = \"500 MB/s\"");
        }
        text
    }

    pub(super) fn kernel(&self, bundle: &str) -> String {
        let why = match self.release == bundle {
            true => String::new(),
            false => format!(" # the newest that is modelled and not newer than {}", self.release),
        };
        let mut text = format!("[kernel]\nrelease = \"{bundle}\"{why}\nthp = \"{}\"\n", self.thp);
        if let Some(defrag) = &self.thp_defrag {
            let _ = writeln!(text, "thp_defrag = \"{defrag}\"");
        }
        text
    }
}

/// CPUs as the kernel writes them: `0-3,8`.
fn list(cpus: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for cpu in cpus {
        match ranges.last_mut().filter(|(_, last)| last + 1 == *cpu) {
            Some((_, last)) => *last = *cpu,
            None => ranges.push((*cpu, *cpu)),
        }
    }
    let range = |(first, last): &(u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    ranges.iter().map(range).collect::<Vec<_>>().join(",")
}
