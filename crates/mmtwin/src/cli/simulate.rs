//! Verbs of scenarios: to run, check, replay, reproduce and compare them with kernels.

use super::Printing;
use super::quantity::parse_time;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// `mmtwin run`
#[derive(Args, Debug)]
#[command(after_help = "\
The same scenario and seed give the same recording, byte for byte, on every machine. Without -o nothing is written.
Where memory runs out the kernel kills a process; the others go on, and the exit status is 5.

Examples:
  mmtwin run scenarios/examples/numastat-pages.toml
  mmtwin run s.toml --set kernel.vmstat.numa_counters=off --table workload,numastat
  mmtwin run s.toml -o s.mmt && mmtwin script s.mmt | head
  mmtwin run s.toml --file zoneinfo                 as /proc shows it when the run has ended
  mmtwin run s.toml --check-determinism             run twice and compare
  mmtwin run s.toml --access-trace touches.csv      touches of memory one by one, as they were traced
  mmtwin run s.toml --on host -o h.mmt              the same workload for real, on this machine
  mmtwin run s.toml --on lab --seeds 1..5 -o lab/   the same on a real kernel in QEMU with the scenario's machine")]
pub struct Run {
    /// Scenario file
    #[arg(value_name = "SCENARIO")]
    pub scenario: PathBuf,
    /// Override a value: a path with dots, and a TOML value or a word
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
    /// What runs it
    #[arg(long, value_enum, default_value_t = Arm::Twin)]
    pub on: Arm,
    /// Several runs, one per seed: 1..5 or 1,3,7. Tables then have medians; REC is a directory of recordings
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
    /// Begin with the zones, free memory and per-CPU page lists that this recording began with
    #[arg(long, value_name = "REC")]
    pub from_state: Option<PathBuf>,
    /// Replay touches of memory: time, pid, page, r/w as CSV or Parquet; - is standard input
    #[arg(long, value_name = "FILE")]
    pub access_trace: Option<PathBuf>,
    /// Run twice and say where the runs first differ
    #[arg(long)]
    pub check_determinism: bool,
    /// Make every touch of memory by itself instead of drawing the first touches of each epoch: slow, for checks
    #[arg(long)]
    pub explicit: bool,
    /// Print this statistics file of the simulated kernel instead of tables
    #[arg(long, value_enum, value_name = "FILE", conflicts_with_all = ["tables", "format"])]
    pub file: Option<KernelFile>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub printing: Printing,
}

/// What the lab is told.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Lab")]
pub struct Lab {
    /// Kernel to boot: 6.1, 6.12 or a bzImage; default: the scenario's release
    #[arg(long, value_name = "KERNEL")]
    pub kernel: Option<String>,
    /// Modules of a bzImage (a directory like /lib/modules/VERSION)
    #[arg(long, value_name = "DIR", requires = "kernel")]
    pub modules: Option<PathBuf>,
    /// How the guest's CPUs run
    #[arg(long, value_enum, default_value_t = LabMode::Exact)]
    pub mode: LabMode,
    /// Longest time of a guest
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = parse_time)]
    pub time_out: std::time::Duration,
}

/// Seeds of several runs, each once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seeds(pub Vec<u64>);

/// Most runs of one command.
const MOST_SEEDS: u64 = 10_000;

fn parse_seeds(text: &str) -> Result<Seeds, String> {
    let number = |text: &str| text.trim().parse::<u64>().map_err(|_| format!("`{}` is no seed", text.trim()));
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
        Some(pair) => Err(format!("seed {} is named twice", pair[0])),
        None => Ok(Seeds(seeds)),
    }
}

/// What runs a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Arm {
    /// The simulated kernel
    Twin,
    /// This machine, for real; it must have the nodes, CPUs and memory of the scenario
    Host,
    /// A real kernel in QEMU with the scenario's machine (`make lab` sets it up)
    Lab,
}

/// How the lab's CPUs run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LabMode {
    /// One after the other: the same bytes every time
    Exact,
    /// At the same time
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
    /// What to do with it
    #[command(subcommand)]
    pub verb: ScenarioVerb,
}

/// The verbs of `mmtwin scenario`.
#[derive(Subcommand, Debug)]
#[command(after_help = "\
Examples:
  mmtwin scenario check *.toml                                        every fault with its place
  mmtwin scenario show s.toml --set kernel.vmstat.numa_counters=off   with everything spelled out
  mmtwin scenario migrate s.toml                                      names of earlier releases become those of today
  mmtwin scenario schema > scenario.schema.json                       for editors")]
pub enum ScenarioVerb {
    /// Say what is wrong with scenario files, or what they describe
    Check(ScenarioCheck),
    /// Print a scenario with everything spelled out: presets, bundles and what is derived
    Show(ScenarioShow),
    /// Rewrite files of earlier releases: keys and words that have other names now
    Migrate(ScenarioMigrate),
    /// Print the JSON Schema of scenario files
    Schema,
}

/// `mmtwin scenario check`
#[derive(Args, Debug)]
pub struct ScenarioCheck {
    /// Scenario files
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Override a value: a path with dots, and a TOML value or a word
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
    /// Override a value: a path with dots, and a TOML value or a word
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
    /// As the manifest of a recording has it
    Json,
}

/// `mmtwin replay`
#[derive(Args, Debug)]
#[command(after_help = "\
TRACE is CSV text with the columns time,pid,page,rw (also .gz, .zst, .xz), a Parquet file with the same columns, or -
for standard input. What a whole kernel makes of it: mmtwin run SCENARIO --access-trace TRACE.

Examples:
  mmtwin replay --pages 1000,10000,100000 trace.csv
  mmtwin replay --policy clock --pages 262144 trace.parquet --format csv")]
pub struct Replay {
    /// What is replayed
    #[arg(value_name = "TRACE")]
    pub trace: PathBuf,
    /// Which page goes
    #[arg(long = "policy", value_enum, value_name = "POLICY", value_delimiter = ',', default_value = "lru,clock")]
    pub policies: Vec<Replacement>,
    /// Pages that fit
    #[arg(long, required = true, value_name = "N", value_delimiter = ',')]
    pub pages: Vec<std::num::NonZeroU32>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub printing: Printing,
}

/// Which page goes where another one comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Replacement {
    /// The least recently used
    Lru,
    /// The first that was not touched since the hand came by
    Clock,
}

/// `mmtwin reproduce`
#[derive(Args, Debug)]
#[command(after_help = "\
A row is `fitted` if a figure of its machine's file was fixed on it; the others are predicted. Figures are data in
scenarios/published; every row is a run of the simulated kernel.

Examples:
  mmtwin reproduce numa-counters
  mmtwin reproduce vmalloc-purge --table vmalloc-purge-average --format csv")]
pub struct Reproduce {
    /// Which studies: numa-counters, vmalloc-purge, pseudo-interleaving, staggered-scan, vmscan-2010, lumpy-2012,
    /// explain-2012; all if none is named
    pub names: Vec<String>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub printing: Printing,
}

/// `mmtwin fidelity`
#[derive(Args, Debug)]
#[command(after_help = "\
Scenarios are those of scenarios/fidelity, cells their runs on kernels 6.1 and 6.12 in the modes exact and smp with five
seeds each.
For developers: run it in the repository.

Examples:
  mmtwin fidelity                          every stored cell beside the twin of today
  mmtwin fidelity first-touch --kernel 6.1 --mode exact
  mmtwin fidelity --refresh                first run in the lab what is not stored yet; --again runs all
  mmtwin fidelity --write-docs             docs/fidelity.md")]
pub struct Fidelity {
    /// Scenarios by name; all if none is named
    pub scenarios: Vec<String>,
    /// Directory with scenarios and recordings
    #[arg(long, value_name = "DIR", default_value = "scenarios/fidelity")]
    pub directory: PathBuf,
    /// Only this kernel
    #[arg(long, value_name = "KERNEL")]
    pub kernel: Option<String>,
    /// Only this mode of the lab
    #[arg(long, value_name = "MODE")]
    pub mode: Option<mmtwin_lab::Mode>,
    /// Run in the lab what is not stored
    #[arg(long)]
    pub refresh: bool,
    /// Run in the lab what is stored too
    #[arg(long, requires = "refresh")]
    pub again: bool,
    /// Write docs/fidelity.md
    #[arg(long)]
    pub write_docs: bool,
}
