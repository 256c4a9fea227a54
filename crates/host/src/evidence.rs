//! What machine and kernel this is: the evidence that goes into every recording's manifest.

use mmtwin_event::manifest::{Config, Evidence, Node, Uname};
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Files kept as they are. A directory stands for the readable files in it.
const FILES: &[&str] = &[
    "/proc/swaps",
    "/proc/sys/kernel/watchdog_thresh",
    "/sys/kernel/debug/sched/numa_balancing",
    "/sys/kernel/mm/damon/admin/kdamonds/nr_kdamonds",
    "/sys/kernel/mm/lru_gen",
    "/sys/kernel/mm/numa",
    "/sys/kernel/mm/transparent_hugepage",
    "/sys/kernel/mm/transparent_hugepage/khugepaged",
    "/sys/module/damon_lru_sort/parameters/enabled",
    "/sys/module/damon_reclaim/parameters/enabled",
    "/sys/module/zswap/parameters/enabled",
];

/// Sysctls: all of `vm`, and those of `kernel` that begin like this.
const SYSCTL_VM: &str = "/proc/sys/vm";
const SYSCTL_KERNEL: &str = "/proc/sys/kernel";
const SYSCTL_KERNEL_PREFIX: &str = "numa_balancing";

/// Kernel options kept by name, beside the hash of all: those that choose a mechanism of memory management.
const OPTIONS: &[&str] = &[
    "CONFIG_COMPACTION",
    "CONFIG_DAMON",
    "CONFIG_HZ",
    "CONFIG_LRU_GEN",
    "CONFIG_LRU_GEN_ENABLED",
    "CONFIG_MEMCG",
    "CONFIG_MIGRATION",
    "CONFIG_NUMA",
    "CONFIG_NUMA_BALANCING",
    "CONFIG_NUMA_BALANCING_DEFAULT_ENABLED",
    "CONFIG_PREEMPT",
    "CONFIG_PREEMPT_DYNAMIC",
    "CONFIG_PREEMPT_NONE",
    "CONFIG_PREEMPT_RT",
    "CONFIG_PREEMPT_VOLUNTARY",
    "CONFIG_PSI",
    "CONFIG_SLUB",
    "CONFIG_SWAP",
    "CONFIG_TRANSPARENT_HUGEPAGE",
    "CONFIG_VM_EVENT_COUNTERS",
    "CONFIG_ZSWAP",
];

/// No file kept is longer; sysfs and sysctl files are shorter than a page.
const LONGEST: usize = 4096;

/// Looks at this machine.
pub fn collect() -> Evidence {
    let uname = rustix::system::uname();
    let text = |s: &std::ffi::CStr| s.to_string_lossy().into_owned();
    let release = text(uname.release());
    let sys = Path::new("/sys/devices/system");
    Evidence {
        cmdline: line("/proc/cmdline"),
        config: config(&release),
        memory: memory(&line("/proc/meminfo").unwrap_or_default()),
        nodes: nodes(&sys.join("node")),
        cpus: line(sys.join("cpu/online")).map(|t| cpu_list(&t)).unwrap_or_default(),
        cpu_model: cpu_model(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default()),
        vm: vm(),
        files: files(),
        uname: Uname {
            sysname: text(uname.sysname()),
            version: text(uname.version()),
            machine: text(uname.machine()),
            release,
        },
    }
}

/// Memory in kB, from `/proc/meminfo`.
fn memory(meminfo: &str) -> Option<u64> {
    meminfo.lines().find_map(|l| l.strip_prefix("MemTotal:"))?.split_whitespace().next()?.parse().ok()
}

fn files() -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    let mut keep = |path: PathBuf| {
        if path.is_file()
            && let Some(text) = line(&path).filter(|t| t.len() <= LONGEST)
        {
            files.insert(path.to_string_lossy().into_owned(), text);
        }
    };
    for file in FILES.iter().map(Path::new) {
        if file.is_dir() { list(file).into_iter().for_each(&mut keep) } else { keep(file.into()) }
    }
    list(Path::new(SYSCTL_VM)).into_iter().for_each(&mut keep);
    let is_numa = |p: &PathBuf| leaf(p).starts_with(SYSCTL_KERNEL_PREFIX);
    list(Path::new(SYSCTL_KERNEL)).into_iter().filter(is_numa).for_each(&mut keep);
    let tiers = list(Path::new("/sys/devices/virtual/memory_tiering"));
    tiers.into_iter().map(|p| p.join("nodelist")).for_each(&mut keep);
    files
}

/// The nodes below `/sys/devices/system/node`, by number; none on a kernel without NUMA.
pub(crate) fn nodes(path: &Path) -> Vec<Node> {
    let tiers: Vec<(String, Vec<u32>)> = list(Path::new("/sys/devices/virtual/memory_tiering"))
        .into_iter()
        .filter_map(|tier| Some((leaf(&tier), cpu_list(&line(tier.join("nodelist"))?))))
        .collect();
    let mut nodes: Vec<Node> = list(path)
        .into_iter()
        .filter_map(|path| {
            let id: u32 = leaf(&path).strip_prefix("node")?.parse().ok()?;
            let meminfo = line(path.join("meminfo")).unwrap_or_default().replace(&format!("Node {id} "), "");
            let distances = line(path.join("distance")).unwrap_or_default();
            let access = list(&path.join("access0/initiators"));
            Some(Node {
                id,
                cpus: line(path.join("cpulist")).map(|t| cpu_list(&t)).unwrap_or_default(),
                memory: memory(&meminfo),
                distances: distances.split_whitespace().filter_map(|d| d.parse().ok()).collect(),
                tier: tiers.iter().find(|(_, nodes)| nodes.contains(&id)).map(|(tier, _)| tier.clone()),
                access: access.iter().filter_map(|p| Some((leaf(p), line(p)?.parse().ok()?))).collect(),
            })
        })
        .collect();
    nodes.sort_by_key(|n| n.id);
    nodes
}

/// CPUs that are on, as `0-3,8`.
pub(crate) fn online() -> String {
    fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default()
}

/// `0-3,8` as numbers. Lists longer than any machine are cut.
pub(crate) fn cpu_list(text: &str) -> Vec<u32> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) {
            cpus.extend((first..=last).take(1 << 16));
        }
    }
    cpus
}

fn cpu_model(cpuinfo: &str) -> Option<String> {
    let line = cpuinfo.lines().find(|l| l.starts_with("model name") || l.starts_with("Processor"))?;
    Some(line.split_once(':')?.1.trim().to_string())
}

/// The machine's name if this is a guest: a CPU that reports it, or what firmware and device tree call it.
fn vm() -> Option<String> {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = cpuinfo.lines().find(|l| l.starts_with("flags"));
    let guest = flags.is_some_and(|l| l.split_whitespace().any(|f| f == "hypervisor"));
    let named = ["/sys/hypervisor/type", "/sys/class/dmi/id/product_name", "/proc/device-tree/model"];
    let name = || named.iter().find_map(line).filter(|n| !n.is_empty());
    if guest { Some(name().unwrap_or_else(|| "guest".into())) } else { line(named[0]) }
}

fn config(release: &str) -> Option<Config> {
    let text = match fs::File::open("/proc/config.gz") {
        Ok(file) => {
            let mut text = String::new();
            flate2::read::GzDecoder::new(file).read_to_string(&mut text).ok()?;
            text
        }
        Err(_) => {
            let places = [format!("/boot/config-{release}"), format!("/lib/modules/{release}/config")];
            places.iter().find_map(|p| fs::read_to_string(p).ok())?
        }
    };
    Some(parse_config(&text))
}

fn parse_config(text: &str) -> Config {
    let options = text.lines().filter_map(|l| l.split_once('='));
    let options = options.filter(|(name, _)| OPTIONS.contains(name)).map(|(n, v)| (n.to_string(), v.to_string()));
    Config { fnv1a: format!("{:016x}", fnv1a(text.as_bytes())), options: options.collect() }
}

/// 64-bit FNV-1a.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &b| (hash ^ u64::from(b)).wrapping_mul(0x100_0000_01b3))
}

/// Text of a small file without its last newline.
fn line(path: impl AsRef<Path>) -> Option<String> {
    let bytes = fs::read(path).ok()?;
    Some(String::from_utf8_lossy(&bytes).trim_end_matches(['\n', '\0']).to_string())
}

/// Entries of a directory, sorted; none if it cannot be read.
fn list(path: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(path).into_iter().flatten().filter_map(|e| Some(e.ok()?.path())).collect();
    entries.sort();
    entries
}

fn leaf(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus() {
        assert_eq!(cpu_list("0-3,8\n"), [0, 1, 2, 3, 8]);
        assert!(cpu_list("").is_empty());
        assert_eq!(cpu_list("5"), [5]);
    }

    #[test]
    fn options_are_kept_and_all_are_hashed() {
        let text = "CONFIG_NUMA=y\n# CONFIG_LRU_GEN is not set\nCONFIG_OTHER=m\nCONFIG_HZ=250\n";
        let config = parse_config(text);
        let kept: Vec<_> = config.options.iter().map(|(n, v)| format!("{n}={v}")).collect();
        assert_eq!(kept, ["CONFIG_HZ=250", "CONFIG_NUMA=y"]);
        assert_ne!(config.fnv1a, parse_config("CONFIG_NUMA=y\n").fnv1a);
        // Test vector of the hash's authors.
        assert_eq!(fnv1a(b"foobar"), 0x85944171f73967e8);
    }

    #[test]
    fn nodes_and_distances() {
        let root = tempfile::tempdir().unwrap();
        for node in [0, 1] {
            let path = root.path().join(format!("node{node}"));
            fs::create_dir(&path).unwrap();
            fs::write(path.join("cpulist"), if node == 0 { "0-1\n" } else { "\n" }).unwrap();
            fs::write(path.join("distance"), "10 21\n").unwrap();
            fs::write(path.join("meminfo"), format!("Node {node} MemTotal:   {node}024 kB\n")).unwrap();
        }
        let nodes = nodes(root.path());
        assert_eq!((nodes[0].cpus.as_slice(), nodes[1].cpus.as_slice()), (&[0, 1][..], &[][..]));
        assert_eq!((nodes[1].memory, nodes[1].distances.as_slice()), (Some(1024), &[10, 21][..]));
    }

    #[test]
    fn this_machine_is_known() {
        let evidence = collect();
        assert_eq!(evidence.uname.sysname, "Linux");
        assert!(!evidence.cpus.is_empty() && evidence.memory.is_some());
        assert!(evidence.files.contains_key("/proc/sys/vm/swappiness"));
    }
}
