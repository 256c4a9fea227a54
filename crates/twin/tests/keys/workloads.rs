//! Workloads of the scenarios in which keys must matter.

/// TOML in one line, with `; ` between keys and tables, as text.
pub fn toml(line: &str) -> String {
    line.split("; ").filter(|part| !part.is_empty()).map(|part| format!("{part}\n")).collect()
}

/// A process with one region and one phase with one access to it.
fn busy(process: &str, region: &str, keys: &str, access: &str) -> String {
    toml(&format!(
        "[[process]]; name = {process}; [[process.region]]; name = '{region}'; {keys}; [[process.phase]]; \
         [[process.phase.access]]; region = '{region}'; {access}"
    ))
}

/// A process with one phase with one action.
fn acting(process: &str, action: &str) -> String {
    toml(&format!("[[process]]; name = {process}; [[process.phase]]; [[process.phase.action]]; {action}"))
}

/// A group that shares memory over nodes, a task of its own with a mapped file, and pinned tasks with remote memory.
pub fn numa() -> String {
    let pinned = busy(
        "'pinned'; threads = 2; cpus = '4-7'; pin = true",
        "data",
        "size = '2 MiB'; populate = true; populate_policy = 'bind:0'",
        "pattern = 'strided'; stride = '8 KiB'; write = 0.2; think = '20 us'",
    );
    format!("{GROUP}{ALONE}{pinned}")
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
"#;

/// A mapped file and one read by system calls, both accessed once; an executable that is accessed again; a heap.
pub fn streams() -> String {
    let file = |size: &str| format!("size = '{size}'; kind = 'file'");
    [
        busy("'mapped'", "file", &file("80 MiB"), "pattern = 'sequential'"),
        busy("'reader'", "file", &file("60 MiB"), "pattern = 'sequential'; via = 'syscall'"),
        busy("'again'", "file", &(file("20 MiB") + "; exec = true"), "pattern = 'zipf'; skew = 0.8; think = '5 us'"),
        busy("'heap'; threads = 2", "heap", "size = '40 MiB'", "pattern = 'uniform'; write = 0.5; think = '2 us'"),
    ]
    .concat()
}

/// A file that is written, allocations of order 9, and kernel memory of order 3.
pub fn writers() -> String {
    [
        log("50 MiB", "5 us"),
        acting("'blocks'", "kind = 'high-order-alloc'; order = 9; count = 40; interval = '5 ms'"),
        acting("'kernel'", "kind = 'page-loop'; order = 3; hold = 16; gfp = 'GFP_KERNEL'; rate = '2000 pages/s'"),
    ]
    .concat()
}

/// A file that is written for longer than the interval between commits of the journal.
pub fn journal() -> String {
    log("8 MiB", "5 ms")
}

fn log(size: &str, think: &str) -> String {
    let access = format!("pattern = 'sequential'; write = 1.0; via = 'syscall'; think = '{think}'");
    busy("'writer'", "log", &format!("size = '{size}'; kind = 'file'"), &access)
}

/// Names that do not exist, looked up until their dentries are shrunk.
pub fn lookup() -> String {
    acting("'lookup'", "kind = 'lookup'; count = 30000")
}

/// One limit that version 1 has too.
pub fn one_cgroup() -> String {
    let heap =
        busy("'web'; cgroup = '/web'", "heap", "size = '16 MiB'", "pattern = 'uniform'; write = 0.5; think = '10 us'");
    toml("[[cgroup]]; name = '/web'; memory = { max = '10 MiB' }") + &heap
}

/// Cgroups with limits and with protection, each with a workload larger than that.
pub fn nested_cgroups() -> String {
    let cgroups = "[[cgroup]]; name = '/web'; memory = { max = '20 MiB', high = '18 MiB', swap.max = '4 MiB' }; \
                   [[cgroup]]; name = '/web/inner'; memory = { low = '6 MiB' }; \
                   [[cgroup]]; name = '/kept'; memory = { min = '12 MiB' }";
    [
        toml(cgroups),
        busy(
            "'web'; cgroup = '/web/inner'",
            "heap",
            "size = '12 MiB'",
            "pattern = 'uniform'; write = 0.5; think = '5 us'",
        ),
        busy(
            "'files'; cgroup = '/web'",
            "file",
            "size = '16 MiB'; kind = 'file'",
            "pattern = 'sequential'; via = 'syscall'; think = '2 us'",
        ),
        busy(
            "'kept'; cgroup = '/kept'",
            "heap",
            "size = '15 MiB'",
            "pattern = 'zipf'; skew = 1.0; write = 0.5; think = '20 us'",
        ),
    ]
    .concat()
}

/// A few pages.
pub fn pages() -> String {
    acting("'pages'", "kind = 'page-loop'; count = 1000")
}

/// The stress test of vmalloc.
pub fn vmalloc() -> String {
    acting("'stress'; threads = 8", "kind = 'vmalloc-test'; tests = ['fix_size_alloc_test']; loops = 20000")
}

/// Allocations and frees on all CPUs, reads of statistics files, and sysctls and CPU hotplug during the run.
pub const LOOPS: &str = r#"
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

/// A file that fills memory, then anonymous regions with and without `MADV_HUGEPAGE`, one after the other.
pub const HUGE: &str = r#"
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

/// Memory that is freed, and a limit that changes.
pub const MADVISE: &str = r#"
[[cgroup]]
name = "/box"
memory.max = "40 MiB"
[[process]]
name = "heap"
cgroup = "/box"
[[process.region]]
name = "heap"
size = "8 MiB"
populate = true
[[process.region]]
name = "other"
size = "6 MiB"
populate = true
[[process.phase]]
[[process.phase.action]]
kind = "madvise"
region = "heap"
advice = "dontneed"
[[process.phase.access]]
region = "heap"
pattern = "sequential"
write = 1.0
count = 2048
[[process.phase]]
[[process.phase.action]]
kind = "cgroup-limit"
name = "/box"
limit = "memory.max"
size = "8 MiB"
[[process.phase.access]]
region = "heap"
pattern = "sequential"
write = 1.0
count = 2048
"#;

/// A process populates shared memory, and another reads and writes it later.
pub fn shared() -> String {
    let region = "[[process.region]]; name = 'segment'; size = '4 MiB'; kind = 'shmem'; file = 'segment'";
    let walk = |write: &str| {
        format!(
            "[[process.phase.access]]; region = 'segment'; pattern = 'sequential'; write = '{write}'; count = 512; "
        )
    };
    toml(&format!(
        "[[process]]; name = 'first'; {region}; populate = true; [[process.phase]]; duration = '300 ms'; [[process]]; \
         name = 'second'; start = '100 ms'; {region}; [[process.phase]]; {}[[process.phase]]; {}",
        walk("0 %"),
        walk("100 %").replace("count = 512", "count = 1024")
    ))
}

/// Two cgroups with small limits write to one file; the second one's pages are in a file of the first.
pub fn one_file_of_two_cgroups() -> String {
    let writer = |name: &str, start: &str| {
        format!(
            "[[cgroup]]; name = '/{name}'; memory = {{ max = '12 MiB' }}; [[process]]; name = '{name}'; cgroup = '/{name}'; \
             start = '{start}'; [[process.region]]; name = 'log'; size = '40 MiB'; kind = 'file'; file = 'log'; \
             [[process.phase]]; [[process.phase.access]]; region = 'log'; pattern = 'uniform'; via = 'syscall'; \
             write = 1.0; think = '10 us'; count = 20000; "
        )
    };
    toml(&(writer("a", "0 s") + &writer("b", "100 ms")))
}
