//! The workload of a new scenario, its sizes in proportion to the machine's memory.

use super::Basis;
use mmtwin_scenario::units::Bytes;

const MIB: u64 = 1 << 20;

/// A kind of workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Archetype {
    /// Tables read by popularity, buffers of its own.
    Database,
    /// A key-value store in memory.
    Cache,
    /// Short jobs that read sources and fill memory of their own.
    Build,
    /// Threads that scan files into hash tables.
    Analytics,
    /// Three services with limits.
    Containers,
}

impl Archetype {
    /// All of them.
    pub const ALL: [Archetype; 5] =
        [Archetype::Database, Archetype::Cache, Archetype::Build, Archetype::Analytics, Archetype::Containers];

    /// Its name.
    pub fn word(self) -> &'static str {
        match self {
            Archetype::Database => "database",
            Archetype::Cache => "cache",
            Archetype::Build => "build",
            Archetype::Analytics => "analytics",
            Archetype::Containers => "containers",
        }
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Archetype::Database => "A database with a memory limit",
            Archetype::Cache => "A key-value store in memory",
            Archetype::Build => "A parallel build",
            Archetype::Analytics => "Scans and hash tables on several threads",
            Archetype::Containers => "Three containers on one host",
        }
    }

    pub(super) fn sentence(self) -> &'static str {
        match self {
            Archetype::Database => {
                "A database reads its tables by popularity and keeps buffers of its own. Which limit does it need?"
            }
            Archetype::Cache => {
                "A key-value store: most requests go to a fifth of its keys. How much memory must be resident?"
            }
            Archetype::Build => "Compilers read sources and fill memory of their own. How many jobs fit?",
            Archetype::Analytics => "Threads scan a file and update hash tables. Where should their memory be?",
            Archetype::Containers => "A web server, a worker and a database, each with a limit. Who suffers from whom?",
        }
    }

    pub(super) fn processes(self, basis: &Basis) -> String {
        // A sixteenth of memory, but so much that a run takes seconds.
        let unit = (basis.memory() / 16).clamp(8 * MIB, 256 * MIB) / MIB * MIB;
        let size = |sixteenths: u64| Bytes(unit * sixteenths / 4 / MIB * MIB).to_string();
        let threads = basis.cpus().clamp(1, 4).to_string();
        let mut text = match self {
            Archetype::Database => DATABASE,
            Archetype::Cache => CACHE,
            Archetype::Build => BUILD,
            Archetype::Analytics => ANALYTICS,
            Archetype::Containers => CONTAINERS,
        }
        .replace("{threads}", &threads);
        // `{8}` is eight quarters of the unit.
        for quarters in 1..=64 {
            text = text.replace(&format!("{{{quarters}}}"), &size(quarters));
        }
        text
    }
}

const DATABASE: &str = r#"# Half of the tables fit beside the buffers.
[[cgroup]]
name = "/database"
memory.max = "{20}"

[[process]]
name = "database"
cgroup = "/database"
threads = {threads}

# Its own buffers: written once before the first query.
[[process.region]]
name = "buffers"
size = "{8}"
populate = true

[[process.region]]
name = "tables"
size = "{24}"
kind = "file"

[[process.phase]]
name = "queries"
duration = "30 s"

# Rows by popularity; skew 0 is uniform.
[[process.phase.access]]
region = "tables"
pattern = "zipf"
skew = 0.8
via = "syscall"
think = "20 us"

[[process.phase.access]]
region = "buffers"
pattern = "uniform"
write = 0.1
think = "5 us"
"#;

const CACHE: &str = r#"# Lower the limit to see what does not fit cost.
[[cgroup]]
name = "/cache"
memory.max = "{20}"

[[process]]
name = "cache"
cgroup = "/cache"
threads = {threads}

[[process.region]]
name = "heap"
size = "{16}"
populate = true

[[process.phase]]
name = "serve"
duration = "30 s"

# 95 % of the requests go to a fifth of the keys, 10 % are writes.
[[process.phase.access]]
region = "heap"
pattern = "hot-cold"
hot = "20 %"
access_share = "95 %"
write = 0.1
think = "5 us"
"#;

const BUILD: &str = r#"# Above memory.high its tasks are throttled, but not killed.
[[cgroup]]
name = "/build"
memory.high = "{24}"

# Four compilers; count is the -j of make.
[[process]]
name = "cc"
cgroup = "/build"
instances = { count = 4 }

# Sources and headers, read through the page cache.
[[process.region]]
name = "sources"
size = "{4}"
kind = "file"

[[process.region]]
name = "heap"
size = "{4}"

[[process.phase]]
name = "compile"
duration = "30 s"

[[process.phase.access]]
region = "sources"
pattern = "zipf"
skew = 0.8
via = "syscall"
think = "50 us"

# Written from end to end, again and again.
[[process.phase.access]]
region = "heap"
pattern = "sequential"
write = 1.0
think = "20 us"
"#;

const ANALYTICS: &str = r#"# Without a policy memory is where it is first written; try "interleave:all".
[[process]]
name = "query"
threads = {threads}
policy = "default"

# Each thread scans a part of it.
[[process.region]]
name = "table"
size = "{40}"
kind = "file"
sharing = "private"

# Hash tables that all threads update.
[[process.region]]
name = "hash"
size = "{16}"
populate = true

[[process.phase]]
name = "scan"
duration = "30 s"

[[process.phase.access]]
region = "table"
pattern = "sequential"
via = "syscall"
think = "5 us"

[[process.phase.access]]
region = "hash"
pattern = "uniform"
write = 0.5
think = "2 us"
"#;

const CONTAINERS: &str = r#"# memory.low and memory.min would protect one of them.
[[cgroup]]
name = "/web"
memory.max = "{8}"

[[cgroup]]
name = "/worker"
memory.max = "{12}"

[[cgroup]]
name = "/db"
memory.max = "{16}"

[[process]]
name = "web"
cgroup = "/web"

[[process.region]]
name = "heap"
size = "{6}"
populate = true

[[process.phase]]
name = "serve"
duration = "30 s"

[[process.phase.access]]
region = "heap"
pattern = "hot-cold"
hot = "20 %"
access_share = "90 %"
write = 0.3
think = "10 us"

# It streams through files, which fill the page cache up to its limit.
[[process]]
name = "worker"
cgroup = "/worker"

[[process.region]]
name = "input"
size = "{40}"
kind = "file"

[[process.phase]]
name = "stream"
duration = "30 s"

[[process.phase.access]]
region = "input"
pattern = "sequential"
via = "syscall"
think = "20 us"

[[process]]
name = "db"
cgroup = "/db"

[[process.region]]
name = "tables"
size = "{24}"
kind = "file"

[[process.region]]
name = "buffers"
size = "{4}"
populate = true

[[process.phase]]
name = "queries"
duration = "30 s"

[[process.phase.access]]
region = "tables"
pattern = "zipf"
skew = 0.8
via = "syscall"
think = "20 us"

[[process.phase.access]]
region = "buffers"
pattern = "uniform"
write = 0.2
think = "10 us"
"#;
