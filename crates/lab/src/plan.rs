//! The guest's machine for QEMU: from a scenario's nodes, CPUs and distances to memory backends, sockets, and the
//! places of regions of special memory.
//!
//! Swap and file systems are on persistent memory (`memmap=SIZE!ADDR`), because requests to a disk of the host end in
//! the host's time, which would make two runs of a guest differ. The recording is written there too, on a file system
//! without page cache (DAX): otherwise it would use pages of the recorded nodes; the host reads it from the file that
//! backs the node's memory. All this is additional memory of the last node that has memory, so that every node has
//! exactly the memory of the scenario; only the page structures of persistent memory, 1/64 of it, are taken from that
//! node. QEMU's machine `pc` puts memory up to 3 GiB below the devices and the rest from 4 GiB on, in the order of the
//! nodes, which is also how a scenario's zones are derived.

use crate::Refusal;
use mmtwin_scenario::Scenario;
use mmtwin_scenario::machine::{Machine, Swap};
use mmtwin_scenario::workload::{ActionKind, Phase, RegionKind};
use std::collections::{BTreeMap, BTreeSet};

/// Offset in memory behind which addresses continue at [`HIGH`].
const LOW_END: u64 = 3 << 30;
/// Where memory continues behind the devices.
const HIGH: u64 = 4 << 30;
/// Alignment of regions: the kernel gives persistent memory its page structures by 2 MiB.
const ALIGN: u64 = 2 << 20;
/// Behind a region of persistent memory: the kernel would take two adjacent ones for one.
const GAP: u64 = 2 << 20;
/// Memory below this belongs to the kernel, and above the end less this to the firmware's tables.
const EDGE: u64 = 16 << 20;
/// Overhead of a file system: a fixed part, and a share of the files' size.
const FILE_SYSTEM: u64 = 32 << 20;
const FILE_SYSTEM_SHARE: u64 = 16;

/// Times are in nanoseconds.
const NS_PER_MS: u64 = 1_000_000;
/// Costs are in picoseconds.
const PS_PER_NS: u64 = 1000;

/// The guest's machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// CPUs.
    pub smp: Smp,
    /// Nodes by number.
    pub nodes: Vec<NodePlan>,
    /// Distances `[from][to]`.
    pub distance: Vec<Vec<u32>>,
    /// Latency and bandwidth of each pair for the firmware's HMAT, from which the kernel derives memory tiers. Empty:
    /// every node with memory has CPUs, and there is no such table.
    pub hmat: Vec<PairPlan>,
    /// Persistent memory by ascending address: the first region is `/dev/pmem0` in the guest, and so on.
    pub regions: Vec<Region>,
}

/// CPUs as QEMU numbers them: thread by thread, core by core, socket by socket. A socket of the guest is the set of
/// CPUs that share a last-level cache, because the emulated CPU has one per socket, and the kernel needs no more to
/// place memory and tasks: the scheduler uses threads, caches and nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Smp {
    /// CPUs there are.
    pub cpus: u32,
    /// CPUs that could be added.
    pub possible: u32,
    /// Sockets, with those that could be added.
    pub sockets: u32,
    /// Cores of a socket.
    pub cores: u32,
    /// Threads of a core.
    pub threads: u32,
}

/// A node of the guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodePlan {
    /// CPUs, ascending.
    pub cpus: Vec<u32>,
    /// Bytes of memory that the kernel manages.
    pub memory: u64,
    /// Additional bytes that are declared persistent or reserved.
    pub reserved: u64,
    /// Node with the nearest CPUs, for memory without CPUs.
    pub initiator: Option<u32>,
}

/// How a node with CPUs reaches memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairPlan {
    /// Node of the CPU.
    pub initiator: u32,
    /// Node of the memory.
    pub target: u32,
    /// Nanoseconds.
    pub latency: u64,
    /// Bytes per second, a multiple of the same power of two, at least 1 MiB, for all pairs.
    pub bandwidth: u64,
}

/// Uses of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// The file system of the recording.
    Recording,
    /// The file system of the workload's files.
    Files,
    /// Swap.
    Swap,
}

/// A region of persistent memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Its use.
    pub used_for: Use,
    /// Physical address.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// Node of its memory backend.
    pub node: u32,
    /// Where in the backend.
    pub offset: u64,
    /// When a request ends.
    pub delay: Delay,
}

/// When a request of a region ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delay {
    /// At once, before the call returns.
    None,
    /// So many nanoseconds after its data were copied, by a timer of our own module.
    Exact(u64),
    /// So many milliseconds later, by dm-delay: at a tick of the kernel.
    Ticks(u64),
}

/// A region that has no place yet.
struct Wanted {
    used_for: Use,
    size: u64,
    delay: Delay,
}

impl Plan {
    /// The machine for a scenario, with this many bytes for the recording.
    ///
    /// # Errors
    /// Everything that QEMU cannot give.
    pub fn new(scenario: &Scenario, room: u64) -> Result<Plan, Vec<Refusal>> {
        let machine = &scenario.machine;
        let mut refusals = crate::refuse::machine(machine);
        let smp = smp(machine).map_err(|mut refused| refusals.append(&mut refused)).ok();
        let mut plan = Plan {
            smp: smp.unwrap_or(Smp { cpus: 0, possible: 0, sockets: 0, cores: 0, threads: 0 }),
            nodes: machine.nodes.iter().enumerate().map(|(nid, node)| node_plan(machine, nid, node)).collect(),
            distance: machine.distance.clone(),
            hmat: hmat(machine),
            regions: Vec::new(),
        };
        let size = room.saturating_add(FILE_SYSTEM);
        let mut wanted = vec![Wanted { used_for: Use::Recording, size, delay: Delay::None }];
        let disk = match machine.disk.latency.0 {
            0 => Delay::None,
            latency if machine.disk.ticks => Delay::Ticks(latency.div_ceil(NS_PER_MS)),
            latency => Delay::Exact(latency),
        };
        wanted.extend(files(scenario).map(|size| Wanted { used_for: Use::Files, size, delay: disk }));
        wanted.extend(machine.swap.map(|swap| {
            let delay = match swap {
                Swap { synchronous: true, .. } => Delay::None,
                Swap { on_disk: true, .. } => disk,
                Swap { latency, .. } => Delay::Exact(latency.0),
            };
            Wanted { used_for: Use::Swap, size: swap.size.0, delay }
        }));
        if let Err(refusal) = plan.place(&wanted) {
            refusals.push(refusal);
        }
        if refusals.is_empty() { Ok(plan) } else { Err(refusals) }
    }

    /// Bytes of the guest's memory, with what is reserved.
    pub fn memory(&self) -> u64 {
        self.nodes.iter().map(|node| node.memory.saturating_add(node.reserved)).fold(0, u64::saturating_add)
    }

    /// Finds room for regions in the last node with memory.
    fn place(&mut self, wanted: &[Wanted]) -> Result<(), Refusal> {
        let total = wanted.iter().map(|region| round(region.size).saturating_add(GAP)).fold(0, u64::saturating_add);
        let nid = self.nodes.iter().rposition(|node| node.memory > 0);
        let nid = nid.ok_or_else(|| Refusal::new("machine.node", "no node has memory"))?;
        let begin: u64 = self.nodes[..nid].iter().map(|node| node.memory).sum();
        let end = begin.saturating_add(self.nodes[nid].memory).saturating_add(total);
        // At the beginning of the node, so that its memory stays in one piece; where devices would be in the middle,
        // behind them; or near the end.
        let candidates =
            [round(begin), LOW_END, end.saturating_sub(EDGE + ALIGN).saturating_sub(total) / ALIGN * ALIGN];
        let fits = |start: &u64| {
            let behind = start.saturating_add(total);
            let beside_devices = behind <= LOW_END || *start >= LOW_END;
            *start >= begin.max(EDGE) && behind.saturating_add(EDGE) <= end && beside_devices
        };
        let Some(start) = candidates.into_iter().find(fits) else {
            let what = format!("{} MiB for the recording, swap and files do not fit beside its memory", total >> 20);
            return Err(Refusal::new(format!("machine.node[{nid}].memory"), what));
        };
        self.nodes[nid].reserved = total;
        let mut at = start;
        for Wanted { used_for, size, delay } in wanted {
            let address = if at < LOW_END { at } else { at - LOW_END + HIGH };
            let (size, offset) = (round(*size), at - begin);
            self.regions.push(Region { used_for: *used_for, address, size, node: nid as u32, offset, delay: *delay });
            at += size + GAP;
        }
        Ok(())
    }

    /// The part of the kernel's command line that declares the regions.
    pub(crate) fn memmap(&self) -> Vec<String> {
        let one = |region: &Region| {
            let Region { address, size, .. } = *region;
            format!("memmap={size:#x}!{address:#x},{GAP:#x}${:#x}", address + size)
        };
        self.regions.iter().map(one).collect()
    }
}

fn round(size: u64) -> u64 {
    size.checked_next_multiple_of(ALIGN).unwrap_or(u64::MAX / ALIGN * ALIGN)
}

fn node_plan(machine: &Machine, nid: usize, node: &mmtwin_scenario::machine::Node) -> NodePlan {
    let with_cpus = machine.nodes.iter().enumerate().filter(|(_, node)| !node.cpus.is_empty());
    let nearest = with_cpus.min_by_key(|(other, _)| (machine.distance[*other][nid], *other));
    NodePlan {
        cpus: node.cpus.clone(),
        memory: node.memory.0,
        reserved: 0,
        initiator: nearest.filter(|_| node.cpus.is_empty()).map(|(other, _)| other as u32),
    }
}

/// Sockets, caches and cores, if QEMU's numbers of CPUs can be those of the scenario.
fn smp(machine: &Machine) -> Result<Smp, Vec<Refusal>> {
    let cpus = &machine.cpus;
    let count = cpus.len() as u32;
    let mut refusals = Vec::new();
    // CPUs that share something follow each other, and every group has the same size.
    let mut group = |key: &str, what: &str, of: &dyn Fn(u32) -> u32| {
        let groups = (0..count).map(of).collect::<BTreeSet<u32>>().len() as u32;
        let size = count / groups.max(1);
        let first = |cpu: u32| cpu / size.max(1) * size.max(1);
        let even = groups * size == count && (0..count).all(|cpu| of(cpu) == of(first(cpu)));
        if !even {
            let reason = format!("QEMU numbers the CPUs of each {what} consecutively, and all have the same size");
            refusals.push(Refusal::new(key, reason));
        }
        size.max(1)
    };
    let threads = group("machine.siblings", "core", &|cpu| cpus[cpu as usize].core);
    let cluster = group("machine.cluster_cores", "cache", &|cpu| cpus[cpu as usize].cluster);
    if !machine.possible_cpus.is_multiple_of(cluster) {
        let reason = format!("QEMU adds whole sockets of {cluster} CPUs that share a cache");
        refusals.push(Refusal::new("machine.possible_cpus", reason));
    }
    if !refusals.is_empty() {
        return Err(refusals);
    }
    Ok(Smp {
        cpus: count,
        possible: machine.possible_cpus,
        sockets: machine.possible_cpus / cluster,
        cores: cluster / threads,
        threads,
    })
}

/// Latency and bandwidth, where a node has memory but no CPUs.
fn hmat(machine: &Machine) -> Vec<PairPlan> {
    if machine.nodes.iter().all(|node| !node.cpus.is_empty()) {
        return Vec::new();
    }
    let nodes = || machine.nodes.iter().enumerate();
    // The table has 16 bits for each figure, and one unit for all of them.
    let most = machine.memory.bandwidth.iter().flatten().map(|bandwidth| bandwidth.0).max().unwrap_or(0);
    let mut unit: u64 = 1 << 20;
    while most / unit >= u64::from(u16::MAX) - 1 {
        unit *= 2;
    }
    let initiators = nodes().filter(|(_, node)| !node.cpus.is_empty());
    let pairs = initiators.flat_map(|(from, _)| {
        nodes().filter(|(_, node)| node.memory.0 > 0).map(move |(to, _)| PairPlan {
            initiator: from as u32,
            target: to as u32,
            latency: (machine.memory.latency[from][to].0 / PS_PER_NS).max(1),
            bandwidth: (machine.memory.bandwidth[from][to].0 / unit * unit).max(unit),
        })
    });
    pairs.collect()
}

/// Size of a file system that holds the workload's files, if it has any or looks up names.
fn files(scenario: &Scenario) -> Option<u64> {
    let mut sizes: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for process in &scenario.processes {
        for region in process.regions.iter().filter(|region| region.kind == RegionKind::File) {
            // A file that has a name is one for all processes.
            let key = match &region.file {
                Some(file) => ("", file.as_str()),
                None => (process.name.as_str(), region.name.as_str()),
            };
            let size = sizes.entry(key).or_default();
            *size = (*size).max(region.size.0);
        }
    }
    // Names are looked up where files are.
    let looks_up = |phase: &Phase| phase.actions.iter().any(|action| matches!(action.kind, ActionKind::Lookup { .. }));
    if scenario.processes.iter().flat_map(|process| &process.phases).any(looks_up) {
        sizes.entry(("", "")).or_default();
    }
    let total = sizes.values().copied().reduce(u64::saturating_add)?;
    Some(total.saturating_add(total / FILE_SYSTEM_SHARE).saturating_add(FILE_SYSTEM))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MIB: u64 = 1 << 20;
    const ROOM: u64 = 16 * MIB;

    /// A plan from the text of a scenario's `[machine]`, and of what follows its kernel.
    fn plan(machine: &str, rest: &str) -> Result<Plan, String> {
        let text = format!("[machine]\n{machine}\n[kernel]\nrelease = \"6.1\"\n{rest}");
        let scenario =
            mmtwin_scenario::parse("test", &text, std::path::Path::new(""), &[]).map_err(|e| e.to_string())?;
        Plan::new(&scenario, ROOM).map_err(|refusals| refusals.iter().map(|r| format!("{r}\n")).collect())
    }

    #[test]
    fn the_lab_preset() {
        let plan = plan("preset = \"lab-4n\"", "").expect("a plan");
        assert_eq!(plan.smp, Smp { cpus: 8, possible: 8, sockets: 4, cores: 2, threads: 1 });
        assert_eq!(
            plan.nodes[3],
            NodePlan { cpus: vec![6, 7], memory: 512 * MIB, reserved: 50 * MIB, initiator: None }
        );
        assert_eq!((plan.memory(), plan.regions.len(), plan.hmat.len()), (2098 * MIB, 1, 0));
        assert_eq!(plan.memmap(), ["memmap=0x3000000!0x60000000,0x200000$0x63000000"]);
    }

    #[test]
    fn memory_without_cpus_has_its_nearest_cpus_and_a_table() {
        let nodes = "distance = [[10, 21, 17], [21, 10, 28], [17, 28, 10]]\n[[machine.node]]\ncpus = \"0-1\"\n\
                     memory = \"1 GiB\"\n[[machine.node]]\ncpus = \"2-3\"\n[[machine.node]]\nmemory = \"1 GiB\"\n\
                     [machine.memory.latency]\n10 = \"80 ns\"\n17 = \"250 ns\"\n21 = \"140 ns\"\n28 = \"300 ns\"\n\
                     [machine.memory.bandwidth]\n10 = \"100 GB/s\"\n17 = \"30 GB/s\"\n21 = \"50 GB/s\"\n28 = \"20 GB/s\"";
        let plan = plan(nodes, "").expect("a plan");
        assert_eq!(plan.nodes.iter().map(|n| n.initiator).collect::<Vec<_>>(), [None, None, Some(0)]);
        let pairs: Vec<(u32, u32, u64)> = plan.hmat.iter().map(|p| (p.initiator, p.target, p.latency)).collect();
        assert_eq!(pairs, [(0, 0, 80), (0, 2, 250), (1, 0, 140), (1, 2, 300)]);
        assert!(
            plan.hmat.iter().all(|pair| pair.bandwidth.is_multiple_of(2 * MIB) && pair.bandwidth / (2 * MIB) < 65534)
        );
    }

    #[test]
    fn swap_and_files_are_additional_memory_of_the_last_node() {
        let process =
            "[[process]]\nname = \"a\"\n[[process.region]]\nname = \"data\"\nsize = \"64 MiB\"\nkind = \"file\"";
        let plan =
            plan("preset = \"lab-4n\"\nswap = { size = \"256 MiB\", synchronous = true }", process).expect("a plan");
        let starts: Vec<(Use, u64, u64)> = plan.regions.iter().map(|r| (r.used_for, r.address, r.size)).collect();
        let (start, files) = (1536 * MIB, 100 * MIB);
        let expected = [
            (Use::Recording, start, 48 * MIB),
            (Use::Files, start + 50 * MIB, files),
            (Use::Swap, start + 52 * MIB + files, 256 * MIB),
        ];
        assert_eq!(starts, expected);
        assert_eq!(plan.nodes[3].reserved, files + 310 * MIB);
        assert_eq!(plan.memmap()[1], "memmap=0x6400000!0x63200000,0x200000$0x69600000");
    }

    #[test]
    fn a_disk_that_is_not_synchronous_is_delayed() {
        let process = "[[process]]\nname = \"a\"\n[[process.region]]\nname = \"f\"\nsize = \"1 MiB\"\nkind = \"file\"";
        use Delay::{Exact, None, Ticks};
        let delays = |machine: &str| {
            let plan = plan(&format!("preset = \"lab-4n\"\n{machine}"), process).expect("a plan");
            plan.regions.iter().map(|region| region.delay).collect::<Vec<_>>()
        };
        assert_eq!(delays(""), [None, None]);
        assert_eq!(delays("disk.latency = \"130 us\""), [None, Exact(130_000)], "to the nanosecond");
        let slow = "disk.latency = \"2500 us\"\nswap.size = \"64 MiB\"\nswap.latency = \"4 ms\"";
        assert_eq!(delays(slow), [None, Exact(2_500_000), Exact(4_000_000)]);
        let ticks = "disk.latency = \"2500 us\"\ndisk.ticks = true";
        assert_eq!(delays(ticks), [None, Ticks(3)], "dm-delay counts milliseconds");
    }

    #[test]
    fn a_single_node_has_its_regions_near_its_end() {
        let plan = plan("[[machine.node]]\ncpus = \"0\"\nmemory = \"256 MiB\"", "").expect("a plan");
        assert_eq!((plan.regions[0].address, plan.memory()), (238 * MIB, 306 * MIB));
    }

    #[test]
    fn features_that_qemu_lacks_are_named() {
        let node = "[[machine.node]]\nmemory = \"1 GiB\"\ncpus = ";
        let error = |machine: &str| plan(machine, "").expect_err("a refusal");
        let split = error(&format!("threads_per_core = 2\n{node}\"0-3\""));
        assert!(split.starts_with("machine.siblings: "), "{split}");
        let uneven = error(&format!("{node}\"0-2\"\n{node}\"3\""));
        assert!(uneven.contains("machine.cluster_cores: "), "{uneven}");
        let mixed = error(&format!("{node}\"0,2\"\n{node}\"1,3\""));
        assert!(mixed.contains("machine.cluster_cores: "), "{mixed}");
        let possible = error(&format!("possible_cpus = 5\n{node}\"0-1\"\n{node}\"2-3\""));
        assert!(possible.starts_with("machine.possible_cpus: "), "{possible}");
        let many = error(&format!("{node}\"0-299\""));
        assert!(many.starts_with("machine.node.cpus: "), "{many}");
        let movable = error(&format!("{node}\"0\"\nmovable = \"512 MiB\""));
        assert!(movable.starts_with("machine.node[0].movable: "), "{movable}");
    }

    #[test]
    fn threads_and_caches_become_cores_and_sockets() {
        let node = "[[machine.node]]\nmemory = \"1 GiB\"\ncpus = ";
        let text =
            format!("threads_per_core = 2\nsiblings = \"adjacent\"\ncluster_cores = 2\n{node}\"0-7\"\n{node}\"8-15\"");
        let plan = plan(&text, "").expect("a plan");
        assert_eq!(plan.smp, Smp { cpus: 16, possible: 16, sockets: 4, cores: 2, threads: 2 });
    }

    proptest! {
        #[test]
        fn regions_lie_inside_their_node_beside_the_devices(
            nodes in prop::collection::vec(16u64..5000, 1..6), swap in 1u64..4000,
        ) {
            let node = |(i, mib): (usize, &u64)| format!("[[machine.node]]\ncpus = \"{i}\"\nmemory = \"{mib} MiB\"\n");
            let text: String = nodes.iter().enumerate().map(node).collect();
            let text = format!("swap = {{ size = \"{swap} MiB\", synchronous = true }}\n{text}");
            let Ok(plan) = plan(&text, "") else { return Ok(()) };
            let last = nodes.len() - 1;
            let begin: u64 = nodes[..last].iter().sum::<u64>() * MIB;
            let end = begin + plan.nodes[last].memory + plan.nodes[last].reserved;
            let mut before = begin.max(EDGE);
            for region in &plan.regions {
                let at = begin + region.offset;
                prop_assert!(at >= before && at + region.size + GAP + EDGE <= end);
                prop_assert!(region.address.is_multiple_of(ALIGN) && region.size.is_multiple_of(ALIGN));
                prop_assert_eq!(region.address, if at < LOW_END { at } else { at + (HIGH - LOW_END) });
                prop_assert!(at >= LOW_END || at + region.size + GAP <= LOW_END);
                before = at + region.size + GAP;
            }
            prop_assert_eq!(plan.regions.len(), 2);
            prop_assert!(plan.regions[1].size >= swap * MIB);
        }
    }
}
