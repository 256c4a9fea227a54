//! The command line: help, man pages and completions are generated from these definitions.

mod fidelity;
mod flight;
mod live;
mod measure;
mod printing;
mod quantity;
mod read;
mod serve;
mod simulate;
mod sweep;

pub use fidelity::*;
pub use flight::*;
pub use live::*;
pub use measure::*;
pub use printing::*;
pub use read::*;
pub use serve::*;
pub use simulate::*;
pub use sweep::*;

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Record, explain, simulate and predict how Linux manages memory on NUMA machines.
#[derive(Parser, Debug)]
#[command(name = "mmtwin", version = env!("MMTWIN_VERSION"), propagate_version = true, max_term_width = 110)]
#[command(after_help = "\
Examples:
  mmtwin top                        who waits for memory on this machine now, and why
  mmtwin record -- ./app            record this machine while ./app runs
  mmtwin report mmtwin.mmt          findings and tables of a recording
  mmtwin report trace.dat.xz        the same for a trace of another tool or kernel
  mmtwin compare old.dat new.dat    compare inputs side by side, baseline first
  mmtwin run scenario.toml          run a workload on the simulated kernel (the twin)
  mmtwin calibrate                  measure this machine for the twin

Exit status: 0 success, 1 error, 2 usage, 3 --fail-on matched, 4 more events
lost than --max-lost, 5 out of memory in a run, 6 recording reached --max-size,
128+n terminated by signal n. `record -- CMD` exits with the status of CMD.")]
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
    /// Record memory management events and counters of this machine
    Record(Record),
    /// Write out what a flight recorder (`record --flight`) has kept, and print the name of the recording
    Snap(Snap),
    /// Report findings and statistics of recordings and traces
    Report(Report),
    /// Show live who waits for memory on this machine, and for what
    Top(Top),
    /// Compare inputs side by side, baseline first
    Compare(Compare),
    /// Print events as the kernel prints them
    Script(Script),
    /// Convert a trace to another format
    Convert(Convert),
    /// Replace the names in a recording by pseudonyms, to share it
    Scrub(Scrub),
    /// Serve the counters of this machine to Prometheus
    Serve(Serve),
    /// Explain why a page, a task or a NUMA group is on its node: events and rules
    Explain(Explain),
    /// Run a scenario on the simulated kernel, on this machine or in QEMU
    Run(Run),
    /// Run a scenario many times, with other values and seeds, on all CPUs
    Sweep(Sweep),
    /// Compute hit ratios of an access trace under LRU and CLOCK, without a kernel
    Replay(Replay),
    /// Reproduce published tables on the twin, with the error of each row
    Reproduce(Reproduce),
    /// Compare the twin with stored runs of real kernels
    Fidelity(Fidelity),
    /// Validate, expand and describe scenario files
    Scenario(Scenario),
    /// Check what this machine supports, with a suggested fix for what is missing
    Doctor(Doctor),
    /// Benchmark kernel designs on this machine, with real threads and atomics
    #[command(subcommand)]
    Bench(Bench),
    /// Measure cache lines and memory of this machine, and write a machine file
    Calibrate(Calibrate),
    /// Print a shell completion script
    Completions(Completions),
    /// Write man pages to a directory
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
    /// Output directory
    pub directory: PathBuf,
    /// Replace existing pages
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
