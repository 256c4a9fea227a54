//! Verbs of scenarios: to run, check, replay, reproduce and compare them with kernels.

use super::quantity::parse_time;
use super::{Amount, Printing, TableStyle};
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// `mmtwin run`
#[derive(Args, Debug)]
#[command(after_help = "\
The same scenario and seed give the same recording, byte for byte, on every
machine. Without -o nothing is written. When memory runs out, the OOM killer
kills a process, the others continue, and the exit status is 5.

Examples:
  mmtwin run scenarios/examples/numastat-pages.toml
  mmtwin run s.toml --set kernel.vmstat.numa_counters=off --table workload,numastat
  mmtwin run s.toml -o s.mmt && mmtwin script s.mmt | head
  mmtwin run s.toml --file zoneinfo                 /proc/zoneinfo at the end of the run
  mmtwin run s.toml --check-determinism             run twice and compare
  mmtwin run s.toml --access-trace accesses.csv     replay a memory access trace
  mmtwin run s.toml --on host -o h.mmt              the same workload on this machine
  mmtwin run s.toml --on lab --seeds 1..5 -o lab/   the same on a real kernel in QEMU")]
pub struct Run {
    /// Scenario file
    #[arg(value_name = "SCENARIO")]
    pub scenario: PathBuf,
    /// Override a scenario value: dotted key, and a TOML value or a bare word
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
    /// Where to run it
    #[arg(long, value_enum, default_value_t = Arm::Twin)]
    pub on: Arm,
    /// One run per seed: 1..5 or 1,3,7. Tables then have medians; REC is a directory of recordings
    #[arg(long, value_name = "SEEDS", value_parser = parse_seeds)]
    pub seeds: Option<Seeds>,
    /// Recording to write
    #[arg(short, long, value_name = "REC")]
    pub output: Option<PathBuf>,
    /// Replace an existing recording
    #[arg(short, long)]
    pub force: bool,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub lab: Lab,
    /// Start with the zones, free memory and per-CPU pagesets at the start of this recording
    #[arg(long, value_name = "REC")]
    pub from_state: Option<PathBuf>,
    /// Replay a memory access trace: time, pid, page, r/w as CSV or Parquet; - is standard input
    #[arg(long, value_name = "FILE")]
    pub access_trace: Option<PathBuf>,
    /// Run twice and report the first difference
    #[arg(long)]
    pub check_determinism: bool,
    /// Simulate each memory access instead of sampling the first accesses of each epoch: slow, for validation
    #[arg(long)]
    pub explicit: bool,
    /// Print this statistics file of the simulated kernel instead of tables
    #[arg(long, value_enum, value_name = "FILE", conflicts_with_all = ["tables", "format"])]
    pub file: Option<KernelFile>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub printing: Printing,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub amount: Amount,
}

/// Options of the lab.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Lab")]
pub struct Lab {
    /// Kernel to boot: 6.1, 6.12 or a bzImage; default: the scenario's release
    #[arg(long, value_name = "KERNEL")]
    pub kernel: Option<String>,
    /// Modules of a bzImage (a directory like /lib/modules/VERSION)
    #[arg(long, value_name = "DIR", requires = "kernel")]
    pub modules: Option<PathBuf>,
    /// Execution of the guest's CPUs
    #[arg(long, value_enum, default_value_t = LabMode::Exact)]
    pub mode: LabMode,
    /// Time limit of a guest
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = parse_time)]
    pub time_out: std::time::Duration,
}

/// Seeds of several runs, each once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seeds(pub Vec<u64>);

/// Most runs of one command.
const MOST_SEEDS: u64 = 10_000;

pub(super) fn parse_seeds(text: &str) -> Result<Seeds, String> {
    let number = |text: &str| text.trim().parse::<u64>().map_err(|_| format!("invalid seed `{}`", text.trim()));
    let mut seeds = Vec::new();
    for part in text.split(',') {
        match part.split_once("..") {
            Some((first, last)) => {
                let (first, last) = (number(first)?, number(last)?);
                if last < first || last - first >= MOST_SEEDS {
                    return Err(format!("`{part}`: expected first..last, at most {MOST_SEEDS} seeds"));
                }
                seeds.extend(first..=last);
            }
            None => seeds.push(number(part)?),
        }
    }
    let mut sorted = seeds.clone();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("duplicate seed {}", pair[0])),
        None => Ok(Seeds(seeds)),
    }
}

/// What runs a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Arm {
    /// The simulated kernel
    Twin,
    /// This machine; it must have the nodes, CPUs and memory of the scenario
    Host,
    /// A real kernel in QEMU with the machine of the scenario (`make lab` installs it)
    Lab,
}

/// Execution of the lab's CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LabMode {
    /// Serialized and deterministic: identical bytes in every run
    Exact,
    /// In parallel
    Smp,
}

/// Statistics files of the simulated kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum KernelFile {
    /// /proc/zoneinfo
    Zoneinfo,
    /// /proc/vmstat
    Vmstat,
    /// /proc/buddyinfo
    Buddyinfo,
    /// numastat of every node
    Numastat,
    /// vmstat of every node
    NodeVmstat,
}

/// `mmtwin scenario`
#[derive(Args, Debug)]
pub struct Scenario {
    /// Subcommand
    #[command(subcommand)]
    pub verb: ScenarioVerb,
}

/// The verbs of `mmtwin scenario`.
#[derive(Subcommand, Debug)]
#[command(after_help = "\
Examples:
  mmtwin scenario new --archetype cache --host -o cache.toml          a scenario to begin with
  mmtwin scenario check *.toml                                        every error with its position
  mmtwin scenario show s.toml --set kernel.vmstat.numa_counters=off   with all values expanded
  mmtwin scenario migrate s.toml                                      rename keys of earlier releases
  mmtwin scenario schema > scenario.schema.json                       for editors")]
pub enum ScenarioVerb {
    /// Validate scenario files: print their errors, or a summary
    Check(ScenarioCheck),
    /// Print a scenario with presets, kernel bundles and derived values expanded
    Show(ScenarioShow),
    /// Rewrite files of earlier releases: keys and values that were renamed
    Migrate(ScenarioMigrate),
    /// Print the JSON Schema of scenario files
    Schema,
    /// Write a commented scenario that runs
    New(ScenarioNew),
}

/// `mmtwin scenario new`
#[derive(Args, Debug)]
#[command(after_help = "\
Without --archetype it asks, where it is started on a terminal.

Examples:
  mmtwin scenario new --archetype database
  mmtwin scenario new --archetype containers --host -o host.toml
  mmtwin scenario new --archetype cache --from mmtwin.mmt -o cache.toml && mmtwin run cache.toml")]
pub struct ScenarioNew {
    /// File to write; default: standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace an existing file
    #[arg(short, long)]
    pub force: bool,
    /// Workload
    #[arg(long, value_enum, value_name = "WORKLOAD")]
    pub archetype: Option<Archetype>,
    /// Machine, kernel release and sysctls of this recording, from its manifest
    #[arg(long, value_name = "REC", conflicts_with = "host")]
    pub from: Option<PathBuf>,
    /// Machine, kernel release and sysctls of this host; default: a machine that suits the workload
    #[arg(long)]
    pub host: bool,
}

/// Workloads of `mmtwin scenario new`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Archetype {
    /// Tables read by popularity, and buffers
    Database,
    /// A key-value store in memory
    Cache,
    /// Parallel short jobs that read sources
    Build,
    /// Scans and hash tables on several threads and nodes
    Analytics,
    /// Three services with limits
    Containers,
}

/// `mmtwin scenario check`
#[derive(Args, Debug)]
pub struct ScenarioCheck {
    /// Scenario files
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Override a scenario value: dotted key, and a TOML value or a bare word
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
}

/// `mmtwin scenario migrate`
#[derive(Args, Debug)]
pub struct ScenarioMigrate {
    /// Scenario, bundle and machine files, which are rewritten where they are; comments stay
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
}

/// `mmtwin scenario show`
#[derive(Args, Debug)]
pub struct ScenarioShow {
    /// Scenario file
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Override a scenario value: dotted key, and a TOML value or a bare word
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t = ScenarioFormat::Toml)]
    pub format: ScenarioFormat,
}

/// Output formats of `mmtwin scenario show`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ScenarioFormat {
    /// A scenario file
    Toml,
    /// JSON, as in the manifest of a recording
    Json,
}

/// `mmtwin replay`
#[derive(Args, Debug)]
#[command(after_help = "\
TRACE is CSV text with the columns time,pid,page,rw (also .gz, .zst, .xz), a
Parquet file with the same columns, or - for standard input. To replay it on
the simulated kernel: mmtwin run SCENARIO --access-trace TRACE.

Examples:
  mmtwin replay --pages 1000,10000,100000 trace.csv
  mmtwin replay --policy clock --pages 262144 trace.parquet --format csv")]
pub struct Replay {
    /// Access trace
    #[arg(value_name = "TRACE")]
    pub trace: PathBuf,
    /// Replacement policy
    #[arg(long = "policy", value_enum, value_name = "POLICY", value_delimiter = ',', default_value = "lru,clock")]
    pub policies: Vec<Replacement>,
    /// Memory size in pages
    #[arg(long, required = true, value_name = "N", value_delimiter = ',')]
    pub pages: Vec<std::num::NonZeroU32>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub printing: Printing,
}

/// Replacement policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Replacement {
    /// Least recently used
    Lru,
    /// First page that was not accessed since the hand passed
    Clock,
}

/// `mmtwin reproduce`
#[derive(Args, Debug)]
#[command(after_help = "\
The published figures are in scenarios/published; every row is a run of the
simulated kernel. The first table of a study has the parameters that were fixed
with published figures known, the last one its score.

A change below the noise floor is no change, and counts as right only if it is
none on both sides. --by-patch runs each kernel beside a patch with several
seeds, on all CPUs: it takes minutes for a study, and longer for all.

A bundle of --variant has `base` and the keys that differ, like those in
kernels/; it runs in every test that has its base.

Examples:
  mmtwin reproduce numa-counters
  mmtwin reproduce vmalloc-purge --table vmalloc-purge-average --format csv
  mmtwin reproduce --by-patch --seeds 4                one table for all series
  mmtwin reproduce lumpy-2012 --by-patch               and every quantity of one
  mmtwin reproduce pseudo-interleaving --variant mine.toml
  mmtwin reproduce vmscan-2010 --style historic        as its cover letter prints it
  mmtwin reproduce --write-docs                        docs/model/series/*.md")]
pub struct Reproduce {
    /// Studies: numa-counters, vmalloc-purge, pseudo-interleaving, staggered-scan, vmscan-2010, lumpy-2012,
    /// explain-2012 (default: all)
    pub names: Vec<String>,
    /// What each patch changes: decisions of the kernel, and quantities with interval and noise floor
    #[arg(long)]
    pub by_patch: bool,
    /// With --by-patch: runs of each kernel
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub seeds: u32,
    /// A kernel bundle of yours to run beside the kernels of the series
    #[arg(long, value_name = "FILE")]
    pub variant: Option<PathBuf>,
    /// Verdicts with machine constants at the ends of their ranges, and those that matter most
    #[arg(long, conflicts_with_all = ["by_patch", "variant", "style"])]
    pub sensitivity: bool,
    /// Layout of the tables
    #[arg(long, value_enum, default_value_t = TableStyle::Modern)]
    pub style: TableStyle,
    /// Write what each patch changes, and the score, into the pages of docs/model/series, with the commit
    #[arg(long, conflicts_with_all = ["by_patch", "variant", "sensitivity", "style", "format", "tables"])]
    pub write_docs: bool,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub printing: Printing,
}
