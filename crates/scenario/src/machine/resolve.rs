//! From the machine as it is written to the machine with everything filled in.

use super::text::{MachineText, NodeText, PerPair};
use super::{Cpu, Machine, Memory, Node, Siblings, Zone, bounds, figure, zone};
use crate::check::Check;
use crate::units::{Bytes, List, PAGE};
use std::collections::BTreeMap;

/// Nodes a kernel is built for at most (`CONFIG_NODES_SHIFT` 10).
const MAX_NODES: usize = 1024;
/// Memory that x86-64 can address: 52 bits.
const MAX_MEMORY: u128 = 1 << 52;
const MAX_FRAMES: u64 = MAX_MEMORY as u64 / PAGE;
/// A huge page of x86-64.
pub(super) const HUGE_PAGE: Bytes = Bytes(2 << 20);
/// Distance of a node to itself.
const LOCAL_DISTANCE: u32 = 10;
/// Distance to other nodes if the firmware gives none.
const REMOTE_DISTANCE: u32 = 20;
/// The largest distance that is not "unreachable".
const MAX_DISTANCE: u32 = 254;

/// Derives what is missing and checks what is there. `None`: there are faults.
pub(crate) fn resolve(text: MachineText, check: &mut Check<'_>) -> Option<Machine> {
    check_nodes(&text, check);
    let distance = distance(&text, check);
    figure::check(&text.figure, check);
    if !check.is_clean() {
        return None;
    }
    let distance = distance?;
    let latency = per_pair(&text.memory.latency, &distance, "machine.memory.latency", check)?;
    let bandwidth = per_pair(&text.memory.bandwidth, &distance, "machine.memory.bandwidth", check)?;
    bounds::pairs(&latency, &bandwidth, check);
    let zones = zones(&text.node, check)?;
    let cpus = cpus(&text);
    let possible_cpus = text.possible_cpus.unwrap_or(cpus.len() as u32);
    let figures = figure::gather(&text, check);
    let nodes = text.node.into_iter().zip(zones).enumerate().map(|(nid, (node, zones))| Node {
        socket: node.socket.unwrap_or(nid as u32),
        cpus: node.cpus.numbers().to_vec(),
        memory: node.memory,
        zones,
    });
    Some(Machine {
        name: if text.name.is_empty() { "unnamed".into() } else { text.name },
        cpus,
        possible_cpus,
        threads_per_core: text.threads_per_core,
        siblings: text.siblings,
        cluster_cores: text.cluster_cores,
        huge_page: text.huge_page.unwrap_or(HUGE_PAGE),
        nodes: nodes.collect(),
        distance,
        cpu: text.cpu,
        memory: Memory {
            latency,
            bandwidth,
            local: text.memory.local,
            remote: text.memory.remote,
            kernel_image: text.memory.kernel_image,
        },
        line: text.line,
        cost: text.cost,
        disk: text.disk,
        swap: Some(text.swap).filter(|swap| swap.size.0 > 0),
        worker: text.worker,
        figures,
    })
}

/// Every CPU is in one node, numbers have no gaps, and there is memory somewhere.
fn check_nodes(text: &MachineText, check: &mut Check<'_>) {
    let nodes = &text.node;
    check.require(!nodes.is_empty(), "machine.node", || "a machine has at least one node".into());
    check.require(nodes.len() <= MAX_NODES, "machine.node", || {
        format!("{} nodes: kernels are built for at most {MAX_NODES}", nodes.len())
    });
    let mut node_of: BTreeMap<u32, usize> = BTreeMap::new();
    for (nid, node) in nodes.iter().enumerate() {
        let shared = node.cpus.numbers().iter().filter_map(|cpu| Some((*cpu, node_of.insert(*cpu, nid)?)));
        let shared: Vec<(u32, usize)> = shared.collect();
        if let Some((_, other)) = shared.first() {
            let list = List::from_iter(shared.iter().filter(|(_, o)| o == other).map(|(cpu, _)| *cpu));
            let are = if list.len() == 1 { "is" } else { "are" };
            check.fault(
                &format!("machine.node.#{nid}.cpus"),
                format!("CPU {list} {are} in two nodes: {other} and {nid}"),
            );
        }
    }
    check.require(nodes.is_empty() || !node_of.is_empty(), "machine.node", || "no node has a CPU".into());
    let last = node_of.last_key_value().map_or(0, |(cpu, _)| *cpu);
    let missing = List::from_iter((0..last).filter(|cpu| !node_of.contains_key(cpu)));
    check.require(missing.is_empty(), "machine.node", || {
        format!("CPU {missing} {} in no node", if missing.len() == 1 { "is" } else { "are" })
    });
    check_cores(text, check);
    let possible = text.possible_cpus.unwrap_or(last + 1);
    check.require((last + 1..=List::MAX + 1).contains(&possible), "machine.possible_cpus", || {
        format!("possible CPUs are at least the {} there are and at most {}", last + 1, List::MAX + 1)
    });
    check_memory(nodes, check);
    let huge = text.huge_page.unwrap_or(HUGE_PAGE).0;
    check.require(huge.is_power_of_two() && huge > PAGE, "machine.huge_page", || {
        "a huge page is a power of two of pages of 4 KiB".into()
    });
    let cpu = &text.cpu;
    check.require(cpu.frequency.0 > 0, "machine.cpu.frequency", || "a CPU has a frequency above 0".into());
    check.require((1.0..=64.0).contains(&cpu.smt_slowdown), "machine.cpu.smt_slowdown", || {
        "a slowdown is a factor from 1 to 64".into()
    });
    check.require(!cpu.single_threaded_tcg || cpu.physical_cpus.is_none(), "machine.cpu.physical_cpus", || {
        "CPUs that share one budget are one thread of the host".into()
    });
    check_costs(text, check);
    bounds::check(text, check);
}

/// The threads of a core are in one node.
fn check_cores(text: &MachineText, check: &mut Check<'_>) {
    let threads = text.threads_per_core;
    if threads == 0 || threads > 8 {
        return check.fault("machine.threads_per_core", "a core has 1 to 8 threads");
    }
    for (nid, node) in text.node.iter().enumerate() {
        check.require((node.cpus.len() as u32).is_multiple_of(threads), &format!("machine.node.#{nid}.cpus"), || {
            format!("{} CPUs cannot be cores of {threads} threads each", node.cpus.len())
        });
    }
    check.require(text.cluster_cores != Some(0), "machine.cluster_cores", || "a cluster has at least one core".into());
    let sockets = text.node.iter().enumerate().filter_map(|(nid, node)| Some((nid, node.socket?)));
    for (nid, socket) in sockets {
        check.require((socket as usize) < MAX_NODES, &format!("machine.node.#{nid}.socket"), || {
            format!("there is no socket {socket}: sockets are numbered from 0 to {}", MAX_NODES - 1)
        });
    }
}

fn check_memory(nodes: &[NodeText], check: &mut Check<'_>) {
    let total: u128 = nodes.iter().map(|node| u128::from(node.memory.0)).sum();
    check.require(nodes.is_empty() || total > 0, "machine.node", || "no node has memory".into());
    check.require(total <= MAX_MEMORY, "machine.node", || {
        "more memory than a machine can address: 4096 TiB in all".into()
    });
    for (nid, node) in nodes.iter().enumerate() {
        let path = format!("machine.node.#{nid}");
        check.require(node.memory.0.is_multiple_of(PAGE), &format!("{path}.memory"), || {
            format!("{} must be an integer number of pages of 4 KiB", node.memory)
        });
        check.require(!node.cpus.is_empty() || node.memory.0 > 0, &path, || {
            format!("node {nid} has neither CPUs nor memory")
        });
    }
}

/// Work that others wait for takes time, or the twin would repeat it without end.
fn check_costs(text: &MachineText, check: &mut Check<'_>) {
    let line = &text.line;
    let mut positive = vec![("line.atomic", line.atomic.0), ("disk.bandwidth", text.disk.bandwidth.0)];
    let handoff = &line.handoff;
    positive.extend([
        ("line.handoff.same_core", handoff.same_core.0),
        ("line.handoff.same_cluster", handoff.same_cluster.0),
        ("line.handoff.same_socket", handoff.same_socket.0),
        ("line.handoff.cross_socket", handoff.cross_socket.0),
        ("cost.page_alloc_free", text.cost.page_alloc_free.0),
        ("disk.queue_depth", u64::from(text.disk.queue_depth)),
    ]);
    if text.swap.size.0 > 0 {
        positive.push(("swap.bandwidth", text.swap.bandwidth.0));
    }
    for (key, value) in positive {
        check.require(value > 0, &format!("machine.{key}"), || format!("`{key}` is above 0"));
    }
    let synchronous = text.swap.on_disk && text.swap.synchronous;
    check.require(!synchronous, "machine.swap.on_disk", || "swap on the disk is not `synchronous`".into());
    check.require(text.cost.purge_worker_share.get() > 0.0, "machine.cost.purge_worker_share", || {
        "a worker that never runs would never end: the share is above 0".into()
    });
}

/// The distance matrix, given or not.
fn distance(text: &MachineText, check: &mut Check<'_>) -> Option<Vec<Vec<u32>>> {
    let n = text.node.len();
    let path = "machine.distance";
    let Some(distance) = &text.distance else {
        let row = |a| (0..n).map(|b| if a == b { LOCAL_DISTANCE } else { REMOTE_DISTANCE }).collect();
        return Some((0..n).map(row).collect());
    };
    if let Some((i, row)) = distance.iter().enumerate().find(|(_, row)| row.len() != distance.len()) {
        let columns = row.len();
        let path = format!("{path}.#{i}");
        check.fault(&path, format!("the distance matrix is not square: {} rows, but {columns} here", distance.len()));
        return None;
    }
    if distance.len() != n {
        check.fault(path, format!("distances of {} nodes, but the machine has {n}", distance.len()));
        return None;
    }
    for (a, row) in distance.iter().enumerate() {
        for (b, value) in row.iter().enumerate() {
            let path = format!("{path}.#{a}.#{b}");
            if a == b {
                check.require(*value == LOCAL_DISTANCE, &path, || {
                    format!("the distance of node {a} to itself is {LOCAL_DISTANCE}, not {value}")
                });
            } else {
                check.require((LOCAL_DISTANCE + 1..=MAX_DISTANCE).contains(value), &path, || {
                    format!("the distance between nodes is {} to {MAX_DISTANCE}, not {value}", LOCAL_DISTANCE + 1)
                });
            }
            if a > b && *value != distance[b][a] && !text.asymmetric {
                let message = format!("{value} from node {a} to {b}, but {} from {b} to {a}", distance[b][a]);
                check.fault_help(&path, message, Some("set `asymmetric = true` for such a machine".into()));
            }
        }
    }
    Some(distance.clone())
}

/// A figure for each pair of nodes, above 0.
fn per_pair<T: Copy + Default + PartialEq>(
    given: &PerPair<T>,
    distance: &[Vec<u32>],
    path: &str,
    check: &mut Check<'_>,
) -> Option<Vec<Vec<T>>> {
    let n = distance.len();
    let mut matrix = Vec::with_capacity(n);
    match given {
        PerPair::Matrix(rows) => {
            if rows.len() != n || rows.iter().any(|row| row.len() != n) {
                check.fault(path, format!("a matrix for {n} nodes has {n} rows of {n} columns"));
                return None;
            }
            matrix.clone_from(rows);
        }
        PerPair::ByDistance(by_distance) => {
            let distances = |key: &str| key.parse().is_ok_and(|d: u32| (LOCAL_DISTANCE..=MAX_DISTANCE).contains(&d));
            for key in by_distance.keys().filter(|key| !distances(key)) {
                let message = format!("`{key}` is no distance: they are {LOCAL_DISTANCE} to {MAX_DISTANCE}");
                check.fault(&format!("{path}.{key}"), message);
            }
            for row in distance {
                let missing = row.iter().find(|d| !by_distance.contains_key(&d.to_string()));
                if let Some(missing) = missing {
                    check.fault(path, format!("there is no figure for nodes at distance {missing}"));
                    return None;
                }
                matrix.push(row.iter().map(|d| by_distance[&d.to_string()]).collect::<Vec<T>>());
            }
        }
    }
    if matrix.iter().flatten().any(|figure| *figure == T::default()) {
        check.fault(path, "every figure is above 0");
        return None;
    }
    Some(matrix)
}

/// The zones of each node: as given, or derived for all.
fn zones(nodes: &[NodeText], check: &mut Check<'_>) -> Option<Vec<Vec<Zone>>> {
    if nodes.iter().all(|node| node.zone.is_none()) {
        let memory: Vec<(u64, u64)> =
            nodes.iter().map(|n| (n.memory.pages(), n.movable.unwrap_or_default().pages())).collect();
        for (nid, (pages, movable)) in memory.iter().enumerate() {
            check.require(movable <= pages, &format!("machine.node.#{nid}.movable"), || {
                "more than the node's memory".into()
            });
        }
        let zones = check.is_clean().then(|| zone::derive(&memory))?;
        // The hole below 4 GiB is not memory, but has addresses.
        let fits = zones.iter().flatten().all(|zone| zone.end_pfn() <= MAX_FRAMES);
        check.require(fits, "machine.node", || {
            "more memory than a machine can address: 4096 TiB less 1 GiB in all".into()
        });
        return fits.then_some(zones);
    }
    let mut end = 0;
    for (nid, node) in nodes.iter().enumerate() {
        let path = format!("machine.node.#{nid}");
        let Some(zones) = &node.zone else {
            check.require(node.memory.0 == 0, &path, || format!("node {nid} has no zones, but others have"));
            continue;
        };
        check.require(node.movable.is_none(), &format!("{path}.movable"), || {
            "zones are given: `movable` has nothing to derive".into()
        });
        for (i, zone) in zones.iter().enumerate() {
            let path = format!("{path}.zone.#{i}");
            let sizes = zone.managed <= zone.present && zone.present <= zone.spanned && zone.present > 0;
            check.require(sizes, &path, || "a zone has 0 < present <= spanned and managed <= present".into());
            check.require(zone.start_pfn >= end, &path, || {
                "zones follow each other by address, within a node and from node to node".into()
            });
            check.require(zone.end_pfn() <= MAX_FRAMES, &path, || "beyond 52 bits of address".into());
            end = zone.end_pfn();
        }
        let kinds = zones.windows(2).all(|pair| pair[0].kind < pair[1].kind);
        check.require(kinds, &format!("{path}.zone"), || "zones are in the order DMA, DMA32, Normal, Movable".into());
        let present: u128 = zones.iter().map(|zone| u128::from(zone.present)).sum();
        check.require(present <= u128::from(node.memory.pages()), &format!("{path}.memory"), || {
            format!("the node's zones have {present} pages, its memory only {}", node.memory.pages())
        });
        check.require(node.memory.0 == 0 || !zones.is_empty(), &format!("{path}.zone"), || {
            format!("node {nid} has memory, but no zone")
        });
    }
    check.is_clean().then(|| nodes.iter().map(|node| node.zone.clone().unwrap_or_default()).collect())
}

/// Where each CPU sits.
fn cpus(text: &MachineText) -> Vec<Cpu> {
    let mut cpus: Vec<(u32, Cpu)> = Vec::new();
    let threads = text.threads_per_core;
    let (mut first_core, mut first_cluster) = (0, 0);
    for (nid, node) in text.node.iter().enumerate() {
        let cores = node.cpus.len() as u32 / threads;
        let per_cluster = text.cluster_cores.unwrap_or(cores).max(1);
        for (i, cpu) in (0..).zip(node.cpus.numbers()) {
            let (core, thread) = match text.siblings {
                Siblings::Split => (i % cores, i / cores),
                Siblings::Adjacent => (i / threads, i % threads),
            };
            let place = Cpu {
                node: nid as u32,
                socket: node.socket.unwrap_or(nid as u32),
                cluster: first_cluster + core / per_cluster,
                core: first_core + core,
                thread,
            };
            cpus.push((*cpu, place));
        }
        first_core += cores;
        first_cluster += cores.div_ceil(per_cluster);
    }
    cpus.sort_unstable_by_key(|(cpu, _)| *cpu);
    cpus.into_iter().map(|(_, place)| place).collect()
}
