//! `mmtwin sweep`.

use super::simulate::{Seeds, parse_seeds};
use clap::{Args, Subcommand, ValueEnum};
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// `mmtwin sweep`
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "\
VALUES of --set are a list a,b,c, a range A..B:N of N values, or A..B:N:log,
with the units of scenario keys. Every combination is a case. All cases are
checked before the first run.

A run is known by its resolved scenario, seed and the version of mmtwin: the
same command continues an output that is there, and runs only what is missing.
After Ctrl-C the finished runs are in the output (exit status 130), after a
kill -9 in OUT.journal. Exit status 1: a run failed; its row says why.

Examples:
  mmtwin sweep s.toml --set cgroup./box.memory.max=256MiB..1GiB:8 -o limits.parquet
  mmtwin sweep s.toml --set kernel.sysctl.vm.swappiness=10,60,100 --seeds 1..5 -o s.parquet
  mmtwin sweep s.toml --cases cases.csv -j 4 -o cases.parquet
  mmtwin sweep s.toml --cases cases.csv --engine ray --address 10.0.0.1:6379 -o cases.parquet
  mmtwin sweep report limits.parquet --curve memory.max
  mmtwin sweep report limits.parquet --html limits.html")]
pub struct Sweep {
    /// What to do instead of running
    #[command(subcommand)]
    pub verb: Option<SweepVerb>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub run: Option<SweepRun>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub showing: Showing,
}

/// The verbs of `mmtwin sweep`.
#[derive(Subcommand, Debug)]
pub enum SweepVerb {
    /// Print the table of a sweep that was written before
    Report(SweepReport),
}

/// What runs.
#[derive(Args, Debug)]
pub struct SweepRun {
    /// Scenario file
    #[arg(value_name = "SCENARIO")]
    pub scenario: PathBuf,
    /// Values of a scenario key: a,b,c, A..B:N or A..B:N:log
    #[arg(long = "set", value_name = "KEY=VALUES")]
    pub sets: Vec<String>,
    /// CSV file of cases: keys in the first line, values in the others
    #[arg(long, value_name = "FILE")]
    pub cases: Option<PathBuf>,
    /// Take the first values of all --set together, then the second, instead of every combination
    #[arg(long)]
    pub paired: bool,
    /// Seeds of each case: 1..5 or 1,3,7. With several, tables have medians and intervals
    #[arg(long, value_name = "SEEDS", value_parser = parse_seeds)]
    pub seeds: Option<Seeds>,
    /// Parquet file to write: a row for each run
    #[arg(short, long, value_name = "OUT")]
    pub output: PathBuf,
    /// Runs at the same time; default: as many as there are CPUs
    #[arg(short = 'j', long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
    /// Replace an existing output instead of continuing it
    #[arg(short, long)]
    pub force: bool,
    /// Where the runs run
    #[arg(long, value_enum, value_name = "ENGINE", default_value_t = Engine::Local)]
    pub engine: Engine,
    /// Address of the Ray cluster; without it Ray starts on this machine
    #[arg(long, value_name = "ADDR", conflicts_with = "jobs")]
    pub address: Option<String>,
}

/// Where the runs of a sweep run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Engine {
    /// On threads of this machine
    Local,
    /// On a Ray cluster; needs the Python package mmtwin[ray], of the same version, here and on the cluster
    Ray,
}

/// `mmtwin sweep report`
#[derive(Args, Debug)]
pub struct SweepReport {
    /// Parquet file of a sweep, of any version
    #[arg(value_name = "OUT")]
    pub input: PathBuf,
    /// Instead of printing, write one HTML file: a chart for each --curve, or for each key with several values, and the table
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Replace an existing file of --html
    #[arg(short, long, requires = "html")]
    pub force: bool,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub showing: Showing,
}

/// How a sweep is shown.
#[derive(Args, Debug)]
pub struct Showing {
    /// Draw the workload's main figure over this key (memory.max); or a quantity (TABLE.KEY) over the first key
    #[arg(long = "curve", value_name = "KEY")]
    pub curves: Vec<String>,
    /// All cases, and all quantities that changed
    #[arg(long)]
    pub all: bool,
    /// Do not page what is longer than the terminal ($MMTWIN_PAGER, $PAGER, less)
    #[arg(long)]
    pub no_pager: bool,
}
