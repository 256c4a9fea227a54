//! Verbs that measure this machine.

use super::Printing;
use super::quantity::{parse_time, parse_work};
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// `mmtwin bench`
#[derive(Subcommand, Debug)]
pub enum Bench {
    /// NUMA counters of the page allocator: updates, published thresholds, reads
    #[command(after_help = "\
Designs: zone-s8 (4.13), separate-s8 (first patch of the series), separate-u16
(4.14 to 5.13), off (vm.numa_stat=0), events (since 5.14); zone-s16 allows
larger thresholds. An operation is one page allocation and free; --work is its
time without the counters, by default 80 ns: 176 cycles at 2.194 GHz, as
published for one thread with statistics off.

Examples:
  mmtwin bench counters
  mmtwin bench counters --table bench-thresholds --format csv
  mmtwin bench counters --work 0ns --duration 1s           bare counters, longer")]
    Counters(BenchOptions),
    /// Accounting of purged vmalloc areas: one atomic subtraction per area, or one per list
    #[command(after_help = "\
Purging CPUs walk a list of areas while freeing CPUs allocate and free areas.
--work is the time of an allocation and free without the shared cache line, by
default 10 us (assumed).

Examples:
  mmtwin bench purge
  mmtwin bench purge --work 1us --format json")]
    Purge(BenchOptions),
}

/// How a benchmark is run and printed.
#[derive(Args, Debug)]
pub struct BenchOptions {
    /// Measuring time of each figure, over five rounds
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
Measures an uncontended atomic addition, transfers and hand-offs of a cache
line between each pair of CPUs, additions to one line by increasing numbers of
CPUs, the NUMA counters of one CPU, and memory latency and bandwidth between
all nodes. Run it on an idle machine. A scenario uses FILE with preset = \"FILE\".

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
