//! Which CPUs share what: from `/sys/devices/system/cpu`.

use crate::bench::threads::Cpu;
use crate::evidence::cpu_list;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Where a CPU is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its node.
    pub node: u32,
    /// Its socket; 0 if the kernel does not tell.
    pub socket: u32,
    /// CPUs of its core, itself among them.
    pub siblings: Vec<u32>,
    /// CPUs that share its last-level cache, itself among them.
    pub cluster: Vec<u32>,
}

/// How close two CPUs are, closest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Between {
    /// Threads of one core.
    SameCore,
    /// Cores that share a last-level cache.
    SameCluster,
    /// Cores of one socket with different last-level caches.
    SameSocket,
    /// Different sockets.
    CrossSocket,
}

impl Between {
    /// All, closest first.
    pub const ALL: [Between; 4] = [Between::SameCore, Between::SameCluster, Between::SameSocket, Between::CrossSocket];

    /// The key of a machine file.
    pub fn key(self) -> &'static str {
        match self {
            Between::SameCore => "same_core",
            Between::SameCluster => "same_cluster",
            Between::SameSocket => "same_socket",
            Between::CrossSocket => "cross_socket",
        }
    }

    /// Of CPU `other`, which is at `there`, to the CPU at `here`.
    pub fn of(here: &Place, other: u32, there: &Place) -> Between {
        if here.siblings.contains(&other) {
            Between::SameCore
        } else if here.cluster.contains(&other) {
            Between::SameCluster
        } else if here.socket == there.socket {
            Between::SameSocket
        } else {
            Between::CrossSocket
        }
    }
}

/// Where these CPUs are.
pub fn places(cpus: &[Cpu]) -> Vec<Place> {
    places_below(Path::new("/sys/devices/system/cpu"), cpus)
}

fn places_below(root: &Path, cpus: &[Cpu]) -> Vec<Place> {
    cpus.iter()
        .map(|cpu| {
            let path = root.join(format!("cpu{}", cpu.id));
            let list = |file: PathBuf| fs::read_to_string(file).map(|t| cpu_list(&t)).unwrap_or_else(|_| vec![cpu.id]);
            let socket = text(&path.join("topology/physical_package_id")).and_then(|t| t.parse().ok());
            Place {
                node: cpu.node,
                // Guests and some firmware have -1 here.
                socket: socket.unwrap_or(0),
                siblings: list(path.join("topology/thread_siblings_list")),
                cluster: last_cache(&path).map_or_else(|| vec![cpu.id], |c| list(c.join("shared_cpu_list"))),
            }
        })
        .collect()
}

/// Bytes of the last-level caches of the node that has most of them; 0 if the kernel does not tell.
pub fn caches_of_a_node(cpus: &[Cpu], places: &[Place]) -> u64 {
    let path = |cpu: &Cpu| PathBuf::from(format!("/sys/devices/system/cpu/cpu{}", cpu.id));
    let size = |cpu: &Cpu| text(&last_cache(&path(cpu))?.join("size")).and_then(|t| bytes(&t));
    let mut of_nodes: BTreeMap<u32, BTreeMap<&[u32], u64>> = BTreeMap::new();
    for (cpu, place) in cpus.iter().zip(places) {
        of_nodes.entry(place.node).or_default().entry(&place.cluster).or_insert_with(|| size(cpu).unwrap_or(0));
    }
    of_nodes.values().map(|caches| caches.values().sum()).max().unwrap_or(0)
}

/// `32768K` in bytes.
fn bytes(text: &str) -> Option<u64> {
    let (number, shift) = match text.strip_suffix('K') {
        Some(number) => (number, 10),
        None => text.strip_suffix('M').map_or((text, 0), |number| (number, 20)),
    };
    number.parse::<u64>().ok()?.checked_shl(shift)
}

/// Directory of a CPU's cache of the highest level.
fn last_cache(cpu: &Path) -> Option<PathBuf> {
    let caches = fs::read_dir(cpu.join("cache")).ok()?.filter_map(|e| Some(e.ok()?.path()));
    let with_level = caches.filter_map(|c| Some((text(&c.join("level"))?.parse::<u32>().ok()?, c)));
    with_level.max().map(|(_, cache)| cache)
}

fn text(file: &Path) -> Option<String> {
    Some(fs::read_to_string(file).ok()?.trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closeness_follows_what_is_shared() {
        let root = tempfile::tempdir().unwrap();
        // CPUs 0 and 4 are one core; 0, 1 and 4 share a cache; 0-3 are socket 0.
        for (id, package, siblings, cache) in [
            (0, "0", "0,4", "0-1,4"),
            (1, "0", "1", "0-1,4"),
            (2, "0", "2", "2"),
            (3, "-1", "3", "3"),
            (4, "0", "0,4", "0-1,4"),
            (5, "1", "5", "5"),
        ] {
            let cpu = root.path().join(format!("cpu{id}"));
            for (file, content) in [
                ("topology/physical_package_id", package),
                ("topology/thread_siblings_list", siblings),
                ("cache/index0/level", "1"),
                ("cache/index0/shared_cpu_list", siblings),
                ("cache/index3/level", "3"),
                ("cache/index3/shared_cpu_list", cache),
            ] {
                let file = cpu.join(file);
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file, format!("{content}\n")).unwrap();
            }
        }
        let cpus: Vec<Cpu> = (0..6).map(|id| Cpu { id, node: 0 }).collect();
        let places = places_below(root.path(), &cpus);
        let near = |other: usize| Between::of(&places[0], other as u32, &places[other]);
        let found = [4, 1, 2, 3, 5].map(near);
        assert_eq!(
            found,
            [Between::SameCore, Between::SameCluster, Between::SameSocket, Between::SameSocket, Between::CrossSocket]
        );
    }

    #[test]
    fn a_kernel_that_tells_nothing() {
        let root = tempfile::tempdir().unwrap();
        let places = places_below(root.path(), &[Cpu { id: 7, node: 1 }]);
        assert_eq!(places, [Place { node: 1, socket: 0, siblings: vec![7], cluster: vec![7] }]);
    }

    #[test]
    fn sizes() {
        assert_eq!(["32768K", "4M", "512", "x"].map(bytes), [Some(32 << 20), Some(4 << 20), Some(512), None]);
    }
}
