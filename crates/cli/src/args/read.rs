//! Verbs that record, read and explain.

use super::Flight;
use super::printing::{Amount, Format, Output, ReportPrinting};
use super::quantity::{parse_compression, parse_end, parse_size, parse_stamp, parse_time};
use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

/// `mmtwin record`
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  mmtwin record -- make -j8                        until the command ends; exits with its status
  mmtwin record -o web.mmt --cgroup '/web,/db/*'   until Ctrl-C, with the counters of cgroups
  mmtwin record -g --compress zstd -- ./app        with kernel stacks (`report REC stacks`), compressed
  mmtwin record -e 'vmscan:*' -e migrate:mm_migrate_pages -I 100ms -- ./app
  mmtwin record --flight 256M --when oom           keep the last 256 MiB; a recording when a process is killed

The recording is a directory. It can be read while it is written and after a
kill -9. Events are traced in a tracefs instance of mmtwin's own, which is
removed at the end, or by the next recording after a crash.")]
pub struct Record {
    /// Directory to write; default: mmtwin.mmt, or where that exists mmtwin-2.mmt and so on
    #[arg(short, long, value_name = "REC")]
    pub output: Option<PathBuf>,
    /// Events to record: SYSTEM:EVENT with wildcards * and ?, repeated or comma-separated
    #[arg(short, long = "event", value_name = "EVENTS", value_delimiter = ',')]
    pub events: Vec<String>,
    /// Interval between counter samples (100ms, 1s, 1m); 0 samples only at start and end
    #[arg(short = 'I', long, value_name = "TIME", default_value = "1s", value_parser = parse_time)]
    pub interval: std::time::Duration,
    /// Also sample the counters of these cgroups: paths below the cgroup mount, with wildcards *, ?, [] within a name
    /// and ** across names, repeated or comma-separated
    #[arg(long, value_name = "PATHS", value_delimiter = ',')]
    pub cgroup: Vec<String>,
    /// Record the kernel's stack where tasks begin to reclaim, to compact or to wait: `report REC stacks` shows them
    #[arg(short = 'g', long)]
    pub stacks: bool,
    /// Switch the kernel's delay accounting (kernel.task_delayacct) on while recording: what tasks that start meanwhile
    /// wait. Where it is on, it is recorded without this
    #[arg(long, conflicts_with = "flight")]
    pub delays: bool,
    /// Compress the events of the recording: zstd, or zstd:LEVEL with a level from 1 (default) to 22
    #[arg(long, value_name = "zstd[:LEVEL]", value_parser = parse_compression)]
    pub compress: Option<i32>,
    /// Ring-buffer size per CPU (4M, 65536K)
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub buffer: Option<u64>,
    /// Stop recording at this size (1G, 500M); the command keeps running. Exit status 6 if the command exits with 0
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub max_size: Option<u64>,
    /// Stop recording after this time (30s, 10m); the command keeps running
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub max_time: Option<std::time::Duration>,
    /// Exit with status 4 if more than N events are lost
    #[arg(long, value_name = "N")]
    pub max_lost: Option<u64>,
    /// Replace an existing recording: that of -o, or mmtwin.mmt
    #[arg(short, long)]
    pub force: bool,
    /// Record the arguments of the command; by default only its program is recorded
    #[arg(long, conflicts_with = "private")]
    pub arguments: bool,
    /// Replace names of tasks, cgroups, files, modules and of this host by pseudonyms, as `mmtwin scrub` does
    #[arg(long)]
    pub private: bool,
    /// Print only what goes wrong: not what is recorded, nor how the recording went
    #[arg(short, long)]
    pub quiet: bool,
    /// Command to run
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub flight: Flight,
}

/// How to read an input.
#[derive(Args, Debug, Clone)]
pub struct Reading {
    /// /proc/vmstat before and after, for a trace without counters: BEFORE,AFTER (files, or directories of /proc files)
    #[arg(long, value_name = "BEFORE,AFTER")]
    pub counters: Option<OsString>,
    /// User, system and elapsed seconds of the traced test, for a trace without them
    #[arg(long, value_name = "USER,SYSTEM,ELAPSED")]
    pub times: Option<String>,
    /// Events that were enabled, so that their absence counts as 0, not n/a: SYSTEM:EVENT with * and ?
    #[arg(long, value_name = "EVENTS", value_delimiter = ',')]
    pub recorded: Vec<String>,
}

/// What part of an input to read.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Part of the input")]
pub struct Filtering {
    /// Only tasks and counters of these cgroups and those below them: path, container or unit, with * and ?
    #[arg(long = "cgroup", value_name = "CGROUP", value_delimiter = ',')]
    pub cgroups: Vec<String>,
    /// Only these processes, with their threads: name with * and ?, or id
    #[arg(long = "process", value_name = "NAME|PID", value_delimiter = ',')]
    pub processes: Vec<String>,
    /// Only events and counters of these NUMA nodes
    #[arg(long = "node", value_name = "N", value_delimiter = ',')]
    pub nodes: Vec<u32>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub window: Window,
}

/// What time of an input to read.
#[derive(Args, Debug, Clone, Copy, Default)]
#[command(next_help_heading = "Part of the input")]
pub struct Window {
    /// Only from this time after the start (500ms, 2s, 1m)
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub from: Option<std::time::Duration>,
    /// Only up to this time after the start
    #[arg(long, value_name = "TIME", value_parser = parse_end)]
    pub to: Option<std::time::Duration>,
}

/// `mmtwin report`
#[derive(Args, Debug)]
#[command(after_help = "\
Prints one screen: where, findings, a strip of time, who, and cross-checks.
With a TOPIC as the last argument it prints the tables of one subject:
reclaim, cgroup, psi, numa, vmalloc, alloc, stacks, compaction, oom,
counters, findings or workload. A file of such a name is ./NAME.

INPUT is a recording, a trace.dat (v6, v7), ftrace text (trace, trace_pipe,
trace-cmd report; also .gz, .zst, .xz), a copied tracefs directory with raw
pages (per_cpu/cpuN/trace_pipe_raw) and event formats, a directory or tar
archive of a trace with /proc snapshots, or - for standard input. Without one
it is the newest recording (*.mmt) of the current directory.

Examples:
  mmtwin report                                 the newest recording here
  mmtwin report mmtwin.mmt reclaim              the tables of one topic
  mmtwin report trace.dat --table vmscan,reclaim-by-node
  mmtwin report mmtwin.mmt --process 'redis*' --from 2s --to 4s
  mmtwin report mmtwin.mmt --cgroup '/docker/*' reclaim
  mmtwin report trace.txt --counters before.vmstat,after.vmstat --format json
  mmtwin report trace.txt --style historic --table vmscan   as published
  mmtwin report mmtwin.mmt psi --keys           what --fail-on takes, of one topic
  mmtwin report mmtwin.mmt --format html -o r.html   one file with charts over time
  mmtwin report mmtwin.mmt --format parquet -o tables   a Parquet file for each table
  mmtwin report --fleet recordings/             one line for each, worst first
  trace-cmd report | mmtwin report -")]
pub struct Report {
    /// Recordings and traces, then at most one topic; default: the newest recording here
    #[arg(value_name = "INPUT|TOPIC")]
    pub inputs: Vec<OsString>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub reading: Reading,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub printing: ReportPrinting,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub output: Output,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub amount: Amount,
    /// Layout of the published tables
    #[arg(long, value_enum, default_value_t = TableStyle::Modern)]
    pub style: TableStyle,
    /// Exit with status 4 if more than N events were lost
    #[arg(long, value_name = "N")]
    pub max_lost: Option<u64>,
    /// Exit with status 3 if a row matches the expression, such as 'invariants.violated > 0'
    #[arg(long, value_name = "EXPR")]
    pub fail_on: Option<String>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub filtering: Filtering,
    /// One page on many recordings, or on all below directories: a line each, worst first, and findings in common.
    /// Exit status 1 if one could not be read
    #[arg(long, conflicts_with_all = ["tables", "fail_on", "max_lost", "style", "keys"])]
    pub fleet: bool,
    /// With --fleet: also write a Parquet file with a row for each recording and finding
    #[arg(long, value_name = "FILE", requires = "fleet")]
    pub index: Option<PathBuf>,
    /// List the keys of all quantities, which --fail-on takes, with their units and which direction is better
    #[arg(long, conflicts_with_all = ["tables", "fail_on", "max_lost", "style"])]
    pub keys: bool,
}

/// Layouts of published tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TableStyle {
    /// One layout for all tables
    Modern,
    /// Column widths and rounding of the 2010 and 2012 scripts and of the kernel's trace-vmscan-postprocess.pl
    Historic,
}

/// `mmtwin compare`
#[derive(Args, Debug)]
#[command(after_help = "\
Prints one screen: what is compared, which quantities got worse and better, by
how much and whether that is significant, and which findings came and went.
With a TOPIC as the last argument it prints the tables of one subject, those of
`mmtwin report`. A file of such a name is ./NAME.

Runs of one column are separated by commas; NAME= names a column:
  mmtwin compare base.mmt new.mmt
  mmtwin compare vanilla=b1.mmt,b2.mmt,b3.mmt patched=n1.mmt,n2.mmt,n3.mmt
  mmtwin compare base.mmt new.mmt reclaim
  mmtwin compare base.mmt new.mmt --fail-on 'psi.memory.* worse > 5%'
  mmtwin compare base.mmt new.mmt --style historic   one column per kernel, as a cover letter prints it
  mmtwin compare base.mmt new.mmt --format html -o c.html   charts on one axis
  mmtwin compare base.mmt new.mmt --format arrow -o tables   an Arrow file for each table

`mmtwin report REC --keys` lists what --fail-on takes.")]
pub struct Compare {
    /// Baseline first, then the inputs to compare with it; then at most one topic
    #[arg(required = true, num_args = 2.., value_name = "INPUT|TOPIC")]
    pub inputs: Vec<OsString>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub printing: ReportPrinting,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub output: Output,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub amount: Amount,
    /// Layout of the tables; historic: the blocks of the published reports, one column per input
    #[arg(long, value_enum, default_value_t = TableStyle::Modern)]
    pub style: TableStyle,
    /// Exit with status 3 if a row matches the expression
    #[arg(long, value_name = "EXPR")]
    pub fail_on: Option<String>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub filtering: Filtering,
}

/// `mmtwin script`
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  mmtwin script trace.dat | head
  mmtwin script mmtwin.mmt -e 'vmscan:*' --since 4856.34 --until 4856.35
  mmtwin script trace.dat --style trace-cmd        exactly as `trace-cmd report` prints it")]
pub struct Script {
    /// Recording or trace; default: the newest recording here
    #[arg(value_name = "INPUT")]
    pub input: Option<PathBuf>,
    /// Only these events: EVENT or SYSTEM:EVENT with * and ?
    #[arg(short, long = "event", value_name = "EVENTS", value_delimiter = ',')]
    pub events: Vec<String>,
    /// Only events from this time, in seconds of the trace clock
    #[arg(long, value_name = "T", value_parser = parse_stamp)]
    pub since: Option<u64>,
    /// Only events up to this time
    #[arg(long, value_name = "T", value_parser = parse_stamp)]
    pub until: Option<u64>,
    /// Line layout
    #[arg(long, value_enum, default_value_t = LineStyle::Kernel)]
    pub style: LineStyle,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub filtering: Filtering,
}

/// Layouts of event lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LineStyle {
    /// Layout of the tracefs file `trace`
    Kernel,
    /// Layout of `trace-cmd report`
    TraceCmd,
}

/// `mmtwin scrub`
#[derive(Args, Debug)]
#[command(after_help = "\
Prints what was replaced and what was kept. Each name has one pseudonym.

Examples:
  mmtwin scrub mmtwin.mmt -o shareable.mmt
  mmtwin scrub old.mmt -o old-s.mmt --names names.json      the same pseudonyms in both,
  mmtwin scrub new.mmt -o new-s.mmt --names names.json      and a table of names and pseudonyms: do not share it")]
pub struct Scrub {
    /// Recording to read; default: the newest recording here
    #[arg(value_name = "REC")]
    pub input: Option<PathBuf>,
    /// Recording to write
    #[arg(short, long, value_name = "SHAREABLE")]
    pub output: PathBuf,
    /// Table of names and pseudonyms to read and update
    #[arg(long, value_name = "FILE")]
    pub names: Option<PathBuf>,
    /// Replace an existing recording
    #[arg(short, long)]
    pub force: bool,
}

/// `mmtwin convert`
#[derive(Args, Debug)]
#[command(after_help = "\
The name of OUT selects the format: .dat is trace.dat, .txt (also .gz, .zst)
is ftrace text, a name ending in .parquet or / is a directory of Parquet files,
one per event, .folded has the kernel stacks for programs that draw flame graphs,
.pftrace is a trace of Perfetto, .openmetrics has the counters for Prometheus.

Examples:
  mmtwin convert mmtwin.mmt -o trace.dat                  opens in trace-cmd and KernelShark
  mmtwin convert trace.dat -o old.dat --dat-version 6
  mmtwin convert trace.txt -o events.parquet
  mmtwin convert mmtwin.mmt -o waits.folded --weight waited   of record -g
  mmtwin convert mmtwin.mmt -o mmtwin.pftrace             opens in ui.perfetto.dev
  mmtwin convert mmtwin.mmt -o all.openmetrics --samples all   for promtool tsdb create-blocks-from")]
pub struct Convert {
    /// Recording or trace; default: the newest recording here
    #[arg(value_name = "INPUT")]
    pub input: Option<PathBuf>,
    /// Output
    #[arg(short, long, value_name = "OUT")]
    pub output: PathBuf,
    /// Format of OUT, if its name does not select it
    #[arg(long, value_enum)]
    pub format: Option<Target>,
    /// Version of a trace.dat
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u8).range(6..=7))]
    pub dat_version: u8,
    /// Compression of a trace.dat of version 7
    #[arg(long, value_enum, default_value_t = Compression::None)]
    pub compression: Compression,
    /// What a line of folded stacks counts
    #[arg(long, value_enum, default_value_t = Weight::Count)]
    pub weight: Weight,
    /// Which samples of the counters OpenMetrics text has
    #[arg(long, value_enum, default_value_t = Samples::Last)]
    pub samples: Samples,
    /// Replace an existing OUT
    #[arg(short, long)]
    pub force: bool,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub filtering: Filtering,
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
    /// Kernel stacks, one line each: `task;outermost;...;innermost;event N`
    Folded,
    /// Trace of Perfetto (protobuf)
    Perfetto,
    /// Counters as OpenMetrics text, for Prometheus
    Openmetrics,
}

/// What a line of folded stacks counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Weight {
    /// How often
    Count,
    /// Microseconds waited
    Waited,
}

/// Which samples of the counters are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Samples {
    /// The last value of each, without a time
    Last,
    /// All, with their times
    All,
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
#[command(group = clap::ArgGroup::new("subject").args(["stall", "refault", "oom", "cgroup", "page", "task", "group"]))]
#[command(after_help = "\
Without a subject it lists the longest waits for memory. Otherwise it prints one
step per event: time, event, the kernel function and rule that decided, and
their figures. The last paragraph is the answer. What was not recorded is n/a,
with the event to record for it.

PAGE is a frame number (0x1d7a0), PROCESS@ADDRESS (1000@0x7f0000005000) or
[PROCESS/]REGION:OFFSET (one/heap:0x5000, heap:12MiB). Kernels do not trace
which rule decided; the twin does for NUMA, with mmtwin:numa_*.

Examples:
  mmtwin explain mmtwin.mmt                    the longest waits
  mmtwin explain mmtwin.mmt --stall            the longest one, step by step
  mmtwin explain mmtwin.mmt --stall 2.5s       the one 2.5 s after the start
  mmtwin explain mmtwin.mmt --task redis-server
  mmtwin explain mmtwin.mmt --cgroup /web
  mmtwin explain mmtwin.mmt --refault          why pages came back
  mmtwin run s.toml --set 'run.events=[\"mmtwin:numa_*\", \"sched:*_numa\"]' -o s.mmt
  mmtwin explain s.mmt --page one/heap:0x5000
  mmtwin explain s.mmt --group 1001 --format json")]
pub struct Explain {
    /// Recording or trace
    #[arg(value_name = "INPUT")]
    pub input: PathBuf,
    /// A wait for memory: the N-th longest (default 1), or that at a time: 2.5s after the start, or 4856.34 of the trace clock
    #[arg(long, value_name = "N|TIME", num_args = 0..=1, default_missing_value = "1", value_parser = parse_which)]
    pub stall: Option<mmtwin_analysis::explain::waiting::Which>,
    /// Why evicted pages came back
    #[arg(long)]
    pub refault: bool,
    /// Why processes were killed
    #[arg(long)]
    pub oom: bool,
    /// A cgroup: its path, or the end of it
    #[arg(long, value_name = "PATH")]
    pub cgroup: Option<String>,
    /// A page: PFN, PROCESS@ADDRESS or [PROCESS/]REGION:OFFSET
    #[arg(long, value_name = "PAGE", value_parser = parse_page)]
    pub page: Option<mmtwin_analysis::explain::names::Query>,
    /// A task: thread id or name; its waits, and where NUMA balancing put it
    #[arg(long, value_name = "TASK")]
    pub task: Option<String>,
    /// A NUMA group: its id
    #[arg(long, value_name = "GROUP")]
    pub group: Option<String>,
    /// Events that were enabled, so that their absence is not n/a: SYSTEM:EVENT with * and ?
    #[arg(long, value_name = "EVENTS", value_delimiter = ',')]
    pub recorded: Vec<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub window: Window,
}

/// The n-th longest wait, or one at a time.
fn parse_which(text: &str) -> Result<mmtwin_analysis::explain::waiting::Which, String> {
    use mmtwin_analysis::explain::waiting::Which;
    if let Ok(n) = text.parse::<usize>() {
        return Ok(Which::Nth(n));
    }
    if text.ends_with(|c: char| c.is_ascii_alphabetic()) {
        return parse_time(text).map(|time| Which::After(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)));
    }
    parse_stamp(text).map(Which::At).map_err(|_| {
        "expected a number (1 is the longest wait), a time after the start (2.5s) or of the trace clock (4856.34)"
            .into()
    })
}

/// A number, decimal or with 0x.
fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

fn parse_page(text: &str) -> Result<mmtwin_analysis::explain::names::Query, String> {
    use mmtwin_analysis::explain::names::Query;
    if let Some((process, address)) = text.rsplit_once('@') {
        let address = number(address).ok_or_else(|| format!("invalid address `{address}`"))?;
        return Ok(Query::Address(process.into(), address));
    }
    if let Some((region, offset)) = text.rsplit_once(':') {
        let sized = || offset.parse::<mmtwin_scenario::units::Bytes>().ok().map(|bytes| bytes.0);
        let offset = number(offset).or_else(sized).ok_or_else(|| format!("invalid offset `{offset}`"))?;
        return Ok(Query::Offset(region.into(), offset));
    }
    let expected = "expected a frame number, PROCESS@ADDRESS or [PROCESS/]REGION:OFFSET";
    number(text).map(Query::Frame).ok_or_else(|| expected.into())
}
