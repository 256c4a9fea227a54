//! The command line, once: help, man pages and completions are made from these definitions.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Record, explain, simulate and predict how Linux manages memory on NUMA machines.
#[derive(Parser, Debug)]
#[command(name = "mmtwin", version, propagate_version = true, max_term_width = 110)]
#[command(after_help = "\
Examples:
  mmtwin record -- ./app            record this machine while ./app runs
  mmtwin report mmtwin.mmt          what happened, findings first
  mmtwin report trace.dat.xz        the same for a trace of another tool or kernel
  mmtwin compare old.dat new.dat    side by side, baseline first
  mmtwin run scenario.toml          a workload on the simulated kernel, on any machine
  mmtwin calibrate                  measure this machine for the twin

Exit status: 0 done, 1 error, 2 usage, 3 comparison beyond --fail-on, 4 more events lost than --max-lost,
128+n ended by signal n. `record -- CMD` ends with the exit status of CMD.")]
pub struct Cli {
    /// What to do
    #[command(subcommand)]
    pub verb: Verb,
    /// When to use colour
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, hide_possible_values = true, value_name = "WHEN")]
    pub color: Color,
}

/// When to use colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The verbs.
#[derive(Subcommand, Debug)]
pub enum Verb {
    /// Record this machine's memory management: kernel events and counters
    Record(Record),
    /// Findings and statistics of recordings and traces
    Report(Report),
    /// Inputs side by side, baseline first
    Compare(Compare),
    /// Print events as the kernel prints them
    Script(Script),
    /// Write a trace in another format
    Convert(Convert),
    /// Why a page, a task or a NUMA group is where it is: the chain of events and rules
    Explain(Explain),
    /// Run a scenario on the simulated kernel, or for real
    Run(Run),
    /// Hit ratios of an access trace under LRU and CLOCK, with no kernel around them
    Replay(Replay),
    /// Published tables beside the twin's, with the error of each row
    Reproduce(Reproduce),
    /// The twin beside stored runs of real kernels in the lab
    Fidelity(Fidelity),
    /// Validate, expand and describe scenario files
    Scenario(Scenario),
    /// Say what this machine allows, and the smallest cure for what it does not
    Doctor(Doctor),
    /// Time designs of the kernel on this machine, with real threads and atomics
    #[command(subcommand)]
    Bench(Bench),
    /// Measure this machine's cache lines and memory, and write a machine file
    Calibrate(Calibrate),
    /// Print the completion script of a shell
    Completions(Completions),
    /// Write the man pages into a directory
    Man(Man),
}

/// `mmtwin record`
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  mmtwin record -- make -j8                        until the command ends; its exit status becomes mmtwin's
  mmtwin record -o web.mmt --cgroup /web           until Ctrl-C, with the counters of a cgroup
  mmtwin record -e 'vmscan:*' -e migrate:mm_migrate_pages -I 100ms -- ./app

INPUT of `report` is the directory that is written; it can be read while it grows and after a kill -9.
Only mmtwin's own tracefs instance is used. It is removed at the end, or by the next recording after a crash.")]
pub struct Record {
    /// Directory to write
    #[arg(short, long, value_name = "REC", default_value = "mmtwin.mmt")]
    pub output: PathBuf,
    /// Events to record: SYSTEM:EVENT with * and ?, several times or comma-separated
    #[arg(short, long = "event", value_name = "EVENTS", value_delimiter = ',')]
    pub events: Vec<String>,
    /// Time between counter samples (100ms, 1s, 1m); 0 takes them only at start and end
    #[arg(short = 'I', long, value_name = "TIME", default_value = "1s", value_parser = parse_time)]
    pub interval: std::time::Duration,
    /// Sample this cgroup's counters too (path below the cgroup mount)
    #[arg(long, value_name = "PATH")]
    pub cgroup: Vec<String>,
    /// Ring-buffer size per CPU (4M, 65536K)
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub buffer: Option<u64>,
    /// Exit with status 4 if more events are lost
    #[arg(long, value_name = "N")]
    pub max_lost: Option<u64>,
    /// Replace an existing recording
    #[arg(short, long)]
    pub force: bool,
    /// Command to run
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<std::ffi::OsString>,
}

/// How to read an input.
#[derive(Args, Debug, Clone)]
pub struct Reading {
    /// /proc/vmstat before and after, for a trace that has no counters: BEFORE,AFTER (files, or directories of /proc files)
    #[arg(long, value_name = "BEFORE,AFTER")]
    pub counters: Option<String>,
    /// User, system and elapsed seconds of the traced test, for a trace that does not know them
    #[arg(long, value_name = "USER,SYSTEM,ELAPSED")]
    pub times: Option<String>,
    /// Events known to have been enabled, so that none means 0 and not n/a: SYSTEM:EVENT with * and ?
    #[arg(long, value_name = "EVENTS", value_delimiter = ',')]
    pub recorded: Vec<String>,
}

/// How to print tables.
#[derive(Args, Debug, Clone)]
pub struct Printing {
    /// Only these tables, by name
    #[arg(short, long = "table", value_name = "NAME", value_delimiter = ',')]
    pub tables: Vec<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
}

/// Output formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Aligned text
    Table,
    /// JSON, schema_version 1
    Json,
    /// CSV, one block per table
    Csv,
}

/// `mmtwin report`
#[derive(Args, Debug)]
#[command(after_help = "\
INPUT is a recording, a trace.dat (v6, v7), ftrace text (trace, trace_pipe, trace-cmd report; also .gz, .zst, .xz),
a copied tracefs directory with raw pages (per_cpu/cpuN/trace_pipe_raw) and event formats, a directory or tar archive
of a trace with /proc snapshots, or - for standard input.

Examples:
  mmtwin report mmtwin.mmt
  mmtwin report trace.dat --table vmscan,reclaim-node
  mmtwin report trace.txt --counters before.vmstat,after.vmstat --format json
  mmtwin report trace.txt --style historic --table vmscan     as the kernel lists printed it
  trace-cmd report | mmtwin report -")]
pub struct Report {
    /// What to report on
    #[arg(required = true, value_name = "INPUT")]
    pub inputs: Vec<String>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub reading: Reading,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub printing: Printing,
    /// Layout of the tables that kernel developers published
    #[arg(long, value_enum, default_value_t = TableStyle::Modern)]
    pub style: TableStyle,
    /// Exit with status 4 if more events were lost
    #[arg(long, value_name = "N")]
    pub max_lost: Option<u64>,
    /// Exit with status 3 if a row fulfils the expression, such as 'invariants.violated > 0'
    #[arg(long, value_name = "EXPR")]
    pub fail_on: Option<String>,
}

/// Layouts of published tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TableStyle {
    /// One layout for all tables
    Modern,
    /// Column widths and roundings of the 2010 and 2012 scripts, and of the kernel's Perl script
    Historic,
}

/// `mmtwin compare`
#[derive(Args, Debug)]
#[command(after_help = "\
Several runs of one column are joined by commas; a column can be named:
  mmtwin compare base.mmt new.mmt
  mmtwin compare vanilla=b1.mmt,b2.mmt,b3.mmt patched=n1.mmt,n2.mmt,n3.mmt
  mmtwin compare base.mmt new.mmt --fail-on 'reclaim-direct.scanned > +10%'")]
pub struct Compare {
    /// Baseline first, then what is compared with it
    #[arg(required = true, num_args = 2.., value_name = "INPUT")]
    pub inputs: Vec<String>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub printing: Printing,
    /// Exit with status 3 if a row fulfils the expression
    #[arg(long, value_name = "EXPR")]
    pub fail_on: Option<String>,
}

/// `mmtwin script`
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  mmtwin script trace.dat | head
  mmtwin script mmtwin.mmt -e 'vmscan:*' --since 4856.34 --until 4856.35
  mmtwin script trace.dat --style trace-cmd        exactly as `trace-cmd report` prints it")]
pub struct Script {
    /// What to print
    #[arg(value_name = "INPUT")]
    pub input: String,
    /// Only these events: EVENT or SYSTEM:EVENT with * and ?
    #[arg(short, long = "event", value_name = "EVENTS", value_delimiter = ',')]
    pub events: Vec<String>,
    /// Only from this time on, in seconds of the trace clock
    #[arg(long, value_name = "T", value_parser = parse_stamp)]
    pub since: Option<u64>,
    /// Only up to this time
    #[arg(long, value_name = "T", value_parser = parse_stamp)]
    pub until: Option<u64>,
    /// Line layout
    #[arg(long, value_enum, default_value_t = LineStyle::Kernel)]
    pub style: LineStyle,
}

/// Layouts of event lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LineStyle {
    /// As the file `trace` has it
    Kernel,
    /// As `trace-cmd report` has it
    TraceCmd,
}

/// `mmtwin convert`
#[derive(Args, Debug)]
#[command(after_help = "\
The format follows the name of OUT: .dat is trace.dat, .txt (also .gz, .zst) ftrace text, a name ending in
.parquet or / a directory of Parquet files, one per event.

Examples:
  mmtwin convert mmtwin.mmt -o trace.dat                  opens in trace-cmd and KernelShark
  mmtwin convert trace.dat -o old.dat --dat-version 6
  mmtwin convert trace.txt -o events.parquet")]
pub struct Convert {
    /// What to convert
    #[arg(value_name = "INPUT")]
    pub input: String,
    /// What to write
    #[arg(short, long, value_name = "OUT")]
    pub output: PathBuf,
    /// Format of OUT, where its name does not tell
    #[arg(long, value_enum)]
    pub to: Option<Target>,
    /// Version of a trace.dat
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u8).range(6..=7))]
    pub dat_version: u8,
    /// Compression of a trace.dat of version 7
    #[arg(long, value_enum, default_value_t = Compression::None)]
    pub compression: Compression,
    /// Replace an existing OUT
    #[arg(short, long)]
    pub force: bool,
}

/// Output formats of `convert`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Target {
    /// trace.dat
    Dat,
    /// ftrace text
    Text,
    /// Directory of Parquet files
    Parquet,
}

/// Compression of a trace.dat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Compression {
    /// Not compressed
    None,
    /// zlib
    Zlib,
    /// Zstandard
    Zstd,
}

/// `mmtwin explain`
#[derive(Args, Debug)]
#[command(group = clap::ArgGroup::new("subject").required(true).args(["page", "task", "group"]))]
#[command(after_help = "\
Each step has its time, the event that tells, the rule that decided and the figures. Rules have the
numbers of docs/model.md. The last sentence answers. What the recording cannot tell is n/a, with the
event to record for it.

PAGE is a frame number (0x1d7a0), PROCESS@ADDRESS (1000@0x7f0000005000) or [PROCESS/]REGION:OFFSET
(one/heap:0x5000, heap:12MiB). Kernels do not trace which rule decided; the twin does if it is asked to.

Examples:
  mmtwin run s.toml --set 'run.events=[\"mmtwin:numa_*\", \"sched:*_numa\"]' -o s.mmt
  mmtwin explain s.mmt --page one/heap:0x5000
  mmtwin explain s.mmt --task 1003
  mmtwin explain s.mmt --group 1001 --format json
  mmtwin explain trace.dat --task 173         as far as the events of a real kernel tell")]
pub struct Explain {
    /// What to read
    #[arg(value_name = "INPUT")]
    pub input: String,
    /// A page: PFN, PROCESS@ADDRESS or [PROCESS/]REGION:OFFSET
    #[arg(long, value_name = "PAGE", value_parser = parse_page)]
    pub page: Option<mmtwin_analysis::explain::names::Asked>,
    /// A task: thread id or name
    #[arg(long, value_name = "TASK")]
    pub task: Option<String>,
    /// A NUMA group: its id
    #[arg(long, value_name = "GROUP")]
    pub group: Option<String>,
    /// Events known to have been enabled, so that none means none and not n/a: SYSTEM:EVENT with * and ?
    #[arg(long, value_name = "EVENTS", value_delimiter = ',')]
    pub recorded: Vec<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
}

/// A number, decimal or with 0x.
fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

fn parse_page(text: &str) -> Result<mmtwin_analysis::explain::names::Asked, String> {
    use mmtwin_analysis::explain::names::Asked;
    if let Some((process, address)) = text.rsplit_once('@') {
        let address = number(address).ok_or_else(|| format!("`{address}` is no address"))?;
        return Ok(Asked::Address(process.into(), address));
    }
    if let Some((region, offset)) = text.rsplit_once(':') {
        let sized = || offset.parse::<mmtwin_scenario::units::Bytes>().ok().map(|bytes| bytes.0);
        let offset = number(offset).or_else(sized).ok_or_else(|| format!("`{offset}` is no offset"))?;
        return Ok(Asked::Offset(region.into(), offset));
    }
    let expected = "expected a frame number, PROCESS@ADDRESS or [PROCESS/]REGION:OFFSET";
    number(text).map(Asked::Frame).ok_or_else(|| expected.into())
}

/// `mmtwin run`
#[derive(Args, Debug)]
#[command(after_help = "\
The same scenario and seed give the same recording, byte for byte, on every machine. Without -o nothing is written.
A workload that finds no memory ends the run with what was reached so far, and exit status 1.

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
    pub access_trace: Option<String>,
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
  mmtwin scenario schema > scenario.schema.json                       for editors")]
pub enum ScenarioVerb {
    /// Say what is wrong with scenario files, or what they describe
    Check(ScenarioCheck),
    /// Print a scenario with everything spelled out: presets, bundles and what is derived
    Show(ScenarioShow),
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

/// `mmtwin doctor`
#[derive(Args, Debug)]
pub struct Doctor {
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
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
    pub trace: String,
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
    /// Which studies: numa-counters, vmalloc-purge, pseudo-interleaving, staggered-scan, vmscan-2010; all if none is named
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

/// `mmtwin bench`
#[derive(Subcommand, Debug)]
pub enum Bench {
    /// The page allocator's NUMA counters: updates, the published thresholds, reads
    #[command(after_help = "\
Designs: zone-s8 (4.13), separate-s8 (first step of the series), separate-u16 (4.14 to 5.13), off (vm.numa_stat=0),
events (5.14 on); zone-s16 holds larger thresholds. An operation is one page allocation and free; --work is what it does beside its counters,
by default 80 ns: 176 cycles at 2.194 GHz, as published for one thread with statistics off.

Examples:
  mmtwin bench counters
  mmtwin bench counters --table bench-thresholds --format csv
  mmtwin bench counters --work 0ns --duration 1s           bare counters, longer")]
    Counters(BenchOptions),
    /// Accounting for purged vmalloc areas: a locked subtraction for each, or one for a list
    #[command(after_help = "\
CPUs that purge walk a list of areas; CPUs that free allocate and free areas meanwhile. --work is what an allocation
and free does beside the shared line, by default 10 us (assumed).

Examples:
  mmtwin bench purge
  mmtwin bench purge --work 1us --format json")]
    Purge(BenchOptions),
}

/// How a benchmark is run and printed.
#[derive(Args, Debug)]
pub struct BenchOptions {
    /// Time for each figure, over its five rounds
    #[arg(long, value_name = "TIME", default_value = "250ms", value_parser = parse_time)]
    pub duration: std::time::Duration,
    /// Local work between operations, up to 1ms
    #[arg(long, value_name = "TIME", value_parser = parse_work)]
    pub work: Option<std::time::Duration>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub printing: Printing,
}

/// `mmtwin calibrate`
#[derive(Args, Debug)]
#[command(after_help = "\
Measures a locked addition alone, transfers and hand-offs of a cache line between every two CPUs, additions of more and
more CPUs to one line, the NUMA counters of one CPU, and memory latency and bandwidth from every node to every node.
Run it on an idle machine. A scenario names FILE as its machine: preset = \"FILE\".

Examples:
  mmtwin calibrate                       writes machine.toml
  mmtwin calibrate -o big.toml --table calibrate-handoff --format csv")]
pub struct Calibrate {
    /// Machine file to write
    #[arg(short, long, value_name = "FILE", default_value = "machine.toml")]
    pub output: PathBuf,
    /// Replace an existing FILE
    #[arg(short, long)]
    pub force: bool,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub printing: Printing,
}

/// `mmtwin completions`
#[derive(Args, Debug)]
pub struct Completions {
    /// Which shell
    pub shell: clap_complete::Shell,
}

/// `mmtwin man`
#[derive(Args, Debug)]
pub struct Man {
    /// Directory to write into
    pub directory: PathBuf,
}

/// A time span with a unit: `80ns`, `250us`, `100ms`, `1s`, `2m`; a bare number means seconds.
fn parse_time(text: &str) -> Result<std::time::Duration, String> {
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let nanoseconds = match unit {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" | "" => 1e9,
        "m" => 60e9,
        _ => return Err(format!("`{unit}` is no unit of time; use ns, us, ms, s or m")),
    };
    let number: f64 = number.parse().map_err(|_| "expected a number with a unit, such as 100ms".to_string())?;
    Ok(std::time::Duration::from_nanos((number * nanoseconds) as u64))
}

/// A time span short enough to be done between two looks at the clock.
fn parse_work(text: &str) -> Result<std::time::Duration, String> {
    let work = parse_time(text)?;
    if work > std::time::Duration::from_millis(1) { Err("more than 1ms".into()) } else { Ok(work) }
}

/// A number of bytes with a unit: `64K`, `4M`, `1G`.
fn parse_size(text: &str) -> Result<u64, String> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor = match unit.trim_end_matches("iB") {
        "" => 1,
        "K" | "k" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return Err(format!("`{unit}` is no unit of size; use K, M or G")),
    };
    let number: u64 = number.parse().map_err(|_| "expected a number with a unit, such as 4M".to_string())?;
    number.checked_mul(factor).ok_or_else(|| "too large".to_string())
}

/// Seconds of the trace clock as text, to nanoseconds without a detour through floating point.
fn parse_stamp(text: &str) -> Result<u64, String> {
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    let bad = |_| "expected seconds, such as 4856.340441".to_string();
    if fraction.len() > 9 {
        return Err("more than nine decimals: the trace clock counts nanoseconds".into());
    }
    let seconds: u64 = seconds.parse().map_err(bad)?;
    let fraction: u64 = format!("{fraction:0<9}").parse().map_err(bad)?;
    seconds.checked_mul(1_000_000_000).and_then(|s| s.checked_add(fraction)).ok_or_else(|| "too large".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn definitions_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn quantities_have_units() {
        assert_eq!(parse_time("250us").unwrap().as_nanos(), 250_000);
        assert_eq!(parse_time("1.5s").unwrap().as_nanos(), 1_500_000_000);
        assert!(parse_time("3 fortnights").is_err());
        assert_eq!(parse_work("80ns").unwrap().as_nanos(), 80);
        assert!(parse_work("2ms").is_err());
        assert_eq!(parse_size("4M").unwrap(), 4 << 20);
        assert_eq!(parse_size("4MiB").unwrap(), 4 << 20);
        assert!(parse_size("99999999999G").is_err());
        assert_eq!(parse_stamp("4856.340441").unwrap(), 4_856_340_441_000);
        assert_eq!(parse_stamp("7").unwrap(), 7_000_000_000);
        assert!(parse_stamp("1.0000000001").is_err());
        assert!(parse_stamp("x").is_err());
    }
}
