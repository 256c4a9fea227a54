//! `mmtwin fidelity`.

use super::simulate::{Seeds, parse_seeds};
use clap::{Args, Subcommand};
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// `mmtwin fidelity`
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "\
The scenarios are in scenarios/fidelity. A cell has the stored runs of one
scenario on kernel 6.1 or 6.12 in mode exact or smp, with five seeds. Scenarios
that a seed draws are judged by `test`. For developers: run it in the
repository.

Examples:
  mmtwin fidelity                          compare all stored cells with the twin
  mmtwin fidelity first-touch --kernel 6.1 --mode exact
  mmtwin fidelity --refresh                first run missing cells in the lab; --again runs all
  mmtwin fidelity --write-docs             docs/fidelity.md and docs/fidelity/*.csv
  mmtwin fidelity run --seeds 1..20        generated scenarios, in the lab
  mmtwin fidelity test                     the twin beside what is stored of them")]
pub struct Fidelity {
    /// Generated scenarios
    #[command(subcommand)]
    pub verb: Option<FidelityVerb>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub cells: FidelityCells,
}

/// The verbs of `mmtwin fidelity`.
#[derive(Subcommand, Debug)]
pub enum FidelityVerb {
    /// Write the scenario that a seed draws
    Generate(FidelityGenerate),
    /// Run generated scenarios in the lab, and store what is judged of them
    Run(FidelityRun),
    /// Judge the twin by the stored runs of generated scenarios
    Test(FidelityTest),
    /// Find the smallest scenario in which the twin still differs from the kernel, in the lab
    Search(FidelitySearch),
}

/// `mmtwin fidelity generate`
#[derive(Args, Debug)]
#[command(after_help = "\
The same seed gives the same bytes. Seeds 1 to 999 are the development set,
1000 to 1999 the test set, whose scenarios are not looked at while rules of the
twin change.

Examples:
  mmtwin fidelity generate --seed 7 > seven.toml
  mmtwin fidelity generate --seed 7 -o target/generated && mmtwin run target/generated/seed-7.toml")]
pub struct FidelityGenerate {
    /// Seed of the scenario
    #[arg(long, value_name = "N")]
    pub seed: u64,
    /// Directory for seed-N.toml; default: standard output
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Replace an existing file
    #[arg(short, long)]
    pub force: bool,
}

/// `mmtwin fidelity run`
#[derive(Args, Debug)]
#[command(after_help = "\
Each scenario runs on the kernels 6.1 and 6.12 with four seeds, in mode exact, and
every third (those whose seed 3 divides) on 7.3: make lab KERNELS=\"6.1 6.12 7.3\". A
run that is stored is not run again; after Ctrl-C the same command continues.
What is stored is in runs/development and runs/test of the directory.

Examples:
  mmtwin fidelity run --seeds 1..8
  mmtwin fidelity run --seeds 1000..1099 --jobs 2
  mmtwin fidelity run --seeds 1000..1009 --families")]
pub struct FidelityRun {
    /// Seeds of scenarios: 1..8 or 1,3,7
    #[arg(long, value_name = "SEEDS", value_parser = parse_seeds)]
    pub seeds: Seeds,
    /// Instead of the scenarios, each with a tunable at several values, on one kernel
    #[arg(long)]
    pub families: bool,
    /// Run again, too, what another build of the agent, QEMU or kernel ran
    #[arg(long)]
    pub outdated: bool,
    /// Guests at the same time; each keeps a CPU busy
    #[arg(short = 'j', long, value_name = "N", default_value = "2")]
    pub jobs: NonZeroUsize,
    /// Directory with stored runs
    #[arg(long, value_name = "DIR", default_value = "scenarios/fidelity")]
    pub directory: PathBuf,
}

/// `mmtwin fidelity test`
#[derive(Args, Debug)]
#[command(after_help = "\
Prints a table for each set. Of the test set nothing else is printed.

Examples:
  mmtwin fidelity test
  mmtwin fidelity test --details           the development set, scenario by scenario
  mmtwin fidelity test --write-docs        the start of docs/fidelity.md, docs/fidelity/unseen.csv")]
pub struct FidelityTest {
    /// Only the development set, with the quantities of each scenario
    #[arg(long, conflicts_with = "write_docs")]
    pub details: bool,
    /// Directory with stored runs
    #[arg(long, value_name = "DIR", default_value = "scenarios/fidelity")]
    pub directory: PathBuf,
    /// Write the start of docs/fidelity.md and docs/fidelity/unseen.csv, with the commit
    #[arg(long)]
    pub write_docs: bool,
}

/// `mmtwin fidelity search`
#[derive(Args, Debug)]
#[command(after_help = "\
Takes the scenario of the development set that differs most, or that of --seed,
and removes processes, phases, accesses, regions, cgroups and tunables one by
one, each in a guest, as long as the quantity still differs by half of its
error. `mmtwin fidelity test --details` has the quantities.

Examples:
  mmtwin fidelity search -o least.toml
  mmtwin fidelity search --quantity pgscan_direct --seed 7 -o least.toml")]
pub struct FidelitySearch {
    /// Only this scenario of the development set
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Quantity; default: that with the largest error
    #[arg(long, value_name = "NAME")]
    pub quantity: Option<String>,
    /// File for the scenario; default: standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace an existing file
    #[arg(short, long)]
    pub force: bool,
    /// Directory with stored runs
    #[arg(long, value_name = "DIR", default_value = "scenarios/fidelity")]
    pub directory: PathBuf,
}

/// Which cells, and what is done with them.
#[derive(Args, Debug)]
pub struct FidelityCells {
    /// Scenarios (default: all)
    pub scenarios: Vec<String>,
    /// Directory with scenarios and stored runs
    #[arg(long, value_name = "DIR", default_value = "scenarios/fidelity")]
    pub directory: PathBuf,
    /// Only this kernel
    #[arg(long, value_name = "KERNEL")]
    pub kernel: Option<String>,
    /// Only this lab mode
    #[arg(long, value_name = "MODE")]
    pub mode: Option<mmtwin_lab::Mode>,
    /// Run missing cells in the lab
    #[arg(long)]
    pub refresh: bool,
    /// Run all cells in the lab, including stored ones
    #[arg(long, requires = "refresh")]
    pub again: bool,
    /// Write docs/fidelity.md and docs/fidelity/*.csv
    #[arg(long)]
    pub write_docs: bool,
}
