//! The command line, once: help, man pages and completions are made from these definitions.

mod measure;
mod quantity;
mod read;
mod simulate;

pub use measure::*;
pub use read::*;
pub use simulate::*;

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
5 a run in which memory ran out, 6 a recording that reached --max-size, 128+n ended by signal n. `record -- CMD` ends with the exit status of CMD.")]
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
    /// Write a recording without names, to be shared
    Scrub(Scrub),
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
    /// Write the generated pages of docs/reference into a directory
    #[command(hide = true)]
    Reference(Reference),
}

/// `mmtwin doctor`
#[derive(Args, Debug)]
pub struct Doctor {
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
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
    /// Replace pages that are there
    #[arg(short, long)]
    pub force: bool,
}

/// `mmtwin reference`
#[derive(Args, Debug)]
pub struct Reference {
    /// Directory to write into
    pub directory: PathBuf,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn definitions_are_consistent() {
        Cli::command().debug_assert();
    }
}
