//! Scenarios in which keys must matter: small, and busy with everything that their name says.

/// Four nodes in a ring, with two threads of one core each.
fn machine(memory: &str) -> String {
    let nodes = ["0-1", "2-3", "4-5", "6-7"]
        .map(|cpus| format!("[[machine.node]]\ncpus = \"{cpus}\"\nmemory = \"{memory}\"\n"));
    format!(
        "[machine]\nname = \"m\"\nthreads_per_core = 2\nsiblings = \"adjacent\"\n\
         distance = [[10, 20, 31, 20], [20, 10, 20, 31], [31, 20, 10, 20], [20, 31, 20, 10]]\n{}\
         [machine.swap]\nsize = \"512 MiB\"\nlatency = \"100 us\"\nbandwidth = \"200 MB/s\"\n",
        nodes.concat()
    )
}

/// Groups that share memory over nodes, tasks apart, a mapped file, and memory that only some may move.
fn numa(release: &str, thp: &str) -> String {
    format!(
        "{}[kernel]\nrelease = \"{release}\"\nthp = \"{thp}\"\nsysctl = {{ \"kernel.numa_balancing\" = 1 }}\n\
         [kernel.numa_balancing]\nscan_delay_ms = 50\nscan_period_min_ms = 50\nscan_period_max_ms = 1000\n\
         scan_size_mb = 4\n{GROUP}{ALONE}[run]\nduration = \"1500 ms\"\nsample = \"500 ms\"\n\
         events = [\"sched:*\", \"mmtwin:*\"]\n",
        machine("256 MiB")
    )
}

const GROUP: &str = r#"
[[process]]
name = "group"
threads = 6
[[process.region]]
name = "heap"
size = "8 MiB"
[[process.region]]
name = "own"
size = "6 MiB"
sharing = "private"
[[process.region]]
name = "shm"
size = "2 MiB"
kind = "shmem"
[[process.phase]]
name = "begin"
[[process.phase.access]]
region = "heap"
pattern = "sequential"
write = 1.0
count = 2048
threads = "0"
[[process.phase]]
name = "work"
[[process.phase.access]]
region = "heap"
pattern = "hot-cold"
hot = 0.2
access_share = 0.6
write = 0.5
think = "50 us"
threads = "0-4"
[[process.phase.access]]
region = "own"
pattern = "uniform"
write = 0.5
think = "50 us"
[[process.phase.access]]
region = "shm"
pattern = "uniform"
write = 0.5
think = "100 us"
"#;

const ALONE: &str = r#"
[[process]]
name = "alone"
start_node = 1
[[process.region]]
name = "data"
size = "4 MiB"
policy = "bind-balancing:0-2"
[[process.region]]
name = "lib"
size = "1 MiB"
kind = "file"
[[process.phase]]
[[process.phase.access]]
region = "data"
pattern = "uniform"
write = 0.2
think = "20 us"
[[process.phase.access]]
region = "lib"
pattern = "zipf"
skew = 0.9
think = "50 us"
[[process]]
name = "pinned"
threads = 2
cpus = "4-7"
pin = true
[[process.region]]
name = "data"
size = "2 MiB"
populate = true
populate_policy = "bind:0"
[[process.phase]]
[[process.phase.access]]
region = "data"
pattern = "strided"
stride = "8 KiB"
write = 0.2
think = "20 us"
"#;

/// More than memory: a stream that is mapped, one of calls, memory that is swapped, files that are written, blocks.
fn reclaim(release: &str, rest: &str) -> String {
    format!(
        "{}[kernel]\nrelease = \"{release}\"\nthp = \"never\"\n{}{STREAMS}{WRITERS}{rest}[run]\nduration = \"300 ms\"\n\
         sample = \"100 ms\"\nevents = [\"vmscan:*\"{}]\n",
        machine("24 MiB"),
        if release.starts_with('6') { "sysctl = { \"kernel.numa_balancing\" = 0 }\n" } else { "" },
        if release.starts_with('2') { "" } else { ", \"compaction:*\"" },
    )
}

const STREAMS: &str = r#"
[[process]]
name = "mapped"
[[process.region]]
name = "file"
size = "80 MiB"
kind = "file"
[[process.phase]]
[[process.phase.access]]
region = "file"
pattern = "sequential"
[[process]]
name = "reader"
[[process.region]]
name = "file"
size = "60 MiB"
kind = "file"
[[process.phase]]
[[process.phase.access]]
region = "file"
pattern = "sequential"
via = "syscall"
[[process]]
name = "again"
[[process.region]]
name = "file"
size = "20 MiB"
kind = "file"
exec = true
[[process.phase]]
[[process.phase.access]]
region = "file"
pattern = "zipf"
skew = 0.8
think = "5 us"
[[process]]
name = "heap"
threads = 2
[[process.region]]
name = "heap"
size = "40 MiB"
[[process.phase]]
[[process.phase.access]]
region = "heap"
pattern = "uniform"
write = 0.5
think = "2 us"
"#;

const WRITERS: &str = r#"
[[process]]
name = "writer"
[[process.region]]
name = "log"
size = "50 MiB"
kind = "file"
[[process.phase]]
[[process.phase.access]]
region = "log"
pattern = "sequential"
write = 1.0
via = "syscall"
think = "5 us"
[[process]]
name = "blocks"
[[process.phase]]
[[process.phase.action]]
kind = "high-order-alloc"
order = 9
count = 40
interval = "5 ms"
[[process]]
name = "kernel"
[[process.phase]]
[[process.phase.action]]
kind = "page-loop"
order = 3
hold = 16
gfp = "GFP_KERNEL"
rate = "2000 pages/s"
"#;

/// Processes in cgroups.
fn limited(release: &str, cgroups: &str) -> String {
    format!(
        "{}[kernel]\nrelease = \"{release}\"\nthp = \"never\"\nsysctl = {{ \"kernel.numa_balancing\" = 0 }}\n\
         {cgroups}[run]\nduration = \"500 ms\"\nsample = \"100 ms\"\nevents = [\"vmscan:*\"]\n",
        machine("12 MiB")
    )
}

/// One limit, as version 1 has it too.
const LIMIT: &str = r#"
[[cgroup]]
name = "/web"
memory = { max = "10 MiB" }
[[process]]
name = "web"
cgroup = "/web"
[[process.region]]
name = "heap"
size = "16 MiB"
[[process.phase]]
[[process.phase.access]]
region = "heap"
pattern = "uniform"
write = 0.5
think = "10 us"
"#;

/// Cgroups that are limited and protected, with more than they may have.
const CGROUPS: &str = r#"
[[cgroup]]
name = "/web"
memory = { max = "20 MiB", high = "18 MiB", swap.max = "4 MiB" }
[[cgroup]]
name = "/web/inner"
memory = { low = "6 MiB" }
[[cgroup]]
name = "/kept"
memory = { min = "12 MiB" }
[[process]]
name = "web"
cgroup = "/web/inner"
[[process.region]]
name = "heap"
size = "12 MiB"
[[process.phase]]
[[process.phase.access]]
region = "heap"
pattern = "uniform"
write = 0.5
think = "5 us"
[[process]]
name = "files"
cgroup = "/web"
[[process.region]]
name = "file"
size = "16 MiB"
kind = "file"
[[process.phase]]
[[process.phase.access]]
region = "file"
pattern = "sequential"
via = "syscall"
think = "2 us"
[[process]]
name = "kept"
cgroup = "/kept"
[[process.region]]
name = "heap"
size = "15 MiB"
[[process.phase]]
[[process.phase.access]]
region = "heap"
pattern = "zipf"
skew = 1.0
write = 0.5
think = "20 us"
"#;

/// Allocations and frees on all CPUs, files that are read, and an administrator.
fn counters(release: &str) -> String {
    format!(
        "{}[kernel]\nrelease = \"{release}\"\nthp = \"never\"\n{LOOPS}[run]\nsample = \"50 ms\"\n\
         events = [\"vmscan:*\"]\n",
        machine("64 MiB")
    )
}

const LOOPS: &str = r#"
[[process]]
name = "loops"
threads = 7
policy = "preferred:1"
[[process.phase]]
name = "loop"
duration = "8 ms"
[[process.phase.action]]
kind = "page-loop"
order = 0
hold = 40
gfp = "GFP_ATOMIC"
threads = "0-3"
[[process.phase.action]]
kind = "page-loop"
order = 2
hold = 3
threads = "4-6"
rate = "20000 pages/s"
[[process.phase]]
name = "read"
[[process.phase.action]]
kind = "read"
file = "numastat"
interval = "1 ms"
count = 20
threads = "0-1"
[[process.phase.action]]
kind = "read"
file = "zoneinfo"
interval = "2 ms"
count = 10
threads = "2"
[[process.phase.action]]
kind = "read"
file = "vmstat"
interval = "2 ms"
count = 10
threads = "3"
[[process]]
name = "fill"
[[process.phase]]
[[process.phase.action]]
kind = "page-hog"
order = 1
count = 2000
rate = "40000 pages/s"
node = 2
[[process]]
name = "admin"
[[process.phase]]
[[process.phase.action]]
kind = "sleep"
time = "20 ms"
[[process.phase.action]]
kind = "cpu-offline"
cpus = "7"
[[process.phase.action]]
kind = "sysctl"
name = "vm.min_free_kbytes"
value = 4000
[[process.phase.action]]
kind = "sleep"
time = "20 ms"
[[process.phase.action]]
kind = "cpu-online"
cpus = "7"
[[process.phase.action]]
kind = "sleep"
time = "2500 ms"
"#;

/// The stress test of vmalloc.
fn vmalloc(release: &str) -> String {
    format!(
        "{}[kernel]\nrelease = \"{release}\"\n[[process]]\nname = \"stress\"\nthreads = 8\n[[process.phase]]\n\
         [[process.phase.action]]\nkind = \"vmalloc-test\"\ntests = [\"fix_size_alloc_test\"]\nloops = 20000\n",
        machine("256 MiB")
    )
}

/// Huge pages where memory is full of a file, asked for and not, and one process after the other.
fn huge(release: &str) -> String {
    format!(
        "{}[kernel]\nrelease = \"{release}\"\nsysctl = {{ \"kernel.numa_balancing\" = 0 }}\n{HUGE}[run]\n\
         duration = \"1 s\"\nsample = \"500 ms\"\nevents = [\"vmscan:*\", \"compaction:*\", \"kmem:mm_page_alloc\"]\n",
        machine("32 MiB")
    )
}

const HUGE: &str = r#"
[[process]]
name = "file"
[[process.region]]
name = "file"
size = "120 MiB"
kind = "file"
temporary = true
[[process.phase]]
[[process.phase.access]]
region = "file"
pattern = "sequential"
via = "syscall"
count = 20480
[[process]]
name = "huge"
start = "150 ms"
[[process.region]]
name = "asked"
size = "12 MiB"
huge = "madvise"
[[process.region]]
name = "plain"
size = "12 MiB"
[[process.phase]]
[[process.phase.access]]
region = "asked"
pattern = "sequential"
write = 1.0
count = 3072
[[process.phase.access]]
region = "plain"
pattern = "sequential"
write = 1.0
count = 3072
"#;

/// A file that is written for longer than a commit of the journal is put off.
const WRITE: &str = r#"
[[process]]
name = "writer"
[[process.region]]
name = "log"
size = "8 MiB"
kind = "file"
[[process.phase]]
[[process.phase.access]]
region = "log"
pattern = "sequential"
write = 1.0
via = "syscall"
think = "5 ms"
[run]
duration = "5500 ms"
"#;

/// Names that do not exist, looked up until their dentries are shrunk.
const LOOKUP: &str = r#"
[[process]]
name = "lookup"
[[process.phase]]
[[process.phase.action]]
kind = "lookup"
count = 30000
"#;

/// A preset, and nothing but a few pages.
const PAGES: &str = r#"
[[process]]
name = "pages"
[[process.phase]]
[[process.phase.action]]
kind = "page-loop"
count = 1000
"#;

/// Where a figure comes from.
const FIGURE: &str = "[machine.cost]\nsample = \"3 ms\"\n[[machine.figure]]\nof = [\"cost.sample\"]\nprovenance = \"fitted\"\nsource = \"here\"\nfits = [\"x:y\"]\n";

/// A zone that is spelled out.
const ZONE: &str = "[[machine.node.zone]]\nkind = \"DMA32\"\nstart_pfn = 4096\nspanned = 20480\npresent = 20480\n\
    managed = 19000\n";

/// The end of DMA32 and the start of Normal.
const NORMAL: &str = "[[machine.node.zone]]\nkind = \"DMA32\"\nstart_pfn = 1044480\nspanned = 4096\npresent = 4096\n\
    managed = 4000\n[[machine.node.zone]]\nkind = \"Normal\"\nstart_pfn = 1048576\nspanned = 8192\npresent = 8192\n\
    managed = 8000\n";

/// A node whose zones are spelled out.
fn zoned(release: &str, memory: &str, zones: &str) -> String {
    format!(
        "[machine]\n[[machine.node]]\ncpus = \"0-1\"\nmemory = \"{memory}\"\n{zones}[kernel]\nrelease = \"{release}\"\n\
         sysctl = {{ \"kernel.numa_balancing\" = 0 }}\n{STREAMS}{WRITERS}[run]\nduration = \"300 ms\"\n\
         events = [\"vmscan:*\"]\n"
    )
}

/// The scenario of a name: what it is about, and the release behind a dash.
pub fn text(name: &str) -> String {
    let (what, release) = name.split_once('-').unwrap_or_else(|| panic!("{name} names no release"));
    match what {
        "numa" => numa(release, "never"),
        "numahuge" => numa(release, "always"),
        "reclaim" => reclaim(release, ""),
        "cgroup" => limited(release, CGROUPS),
        "limit" => limited(release, LIMIT),
        "counters" => counters(release),
        "vmalloc" => vmalloc(release),
        "huge" => huge(release),
        "lookup" => reclaim(release, LOOKUP),
        "write" => format!("{}[kernel]\nrelease = \"{release}\"\n{WRITE}", machine("64 MiB")),
        "normal" => zoned(release, "48 MiB", NORMAL),
        "preset" => format!("[machine]\npreset = \"broadwell-2s\"\n[kernel]\nrelease = \"{release}\"\n{PAGES}"),
        "zone" => zoned(release, "80 MiB", ZONE),
        "figure" => format!("{}{FIGURE}[kernel]\nrelease = \"{release}\"\n{PAGES}", machine("64 MiB")),
        _ => panic!("there is no scenario {what}"),
    }
}
