//! The flight recorder.

use super::quantity::{parse_size, parse_time};
use clap::Args;
use mmtwin_host::flight::when::When;
use std::path::PathBuf;
use std::time::Duration;

/// Directory of a flight recorder that the user does not name.
pub const FLIGHT_DIRECTORY: &str = "mmtwin.flight";

/// What of `mmtwin record` concerns a flight recorder.
#[derive(Args, Debug)]
#[command(next_help_heading = "Flight recorder")]
pub struct Flight {
    /// Keep the last SIZE (256M, 1G) of events and counters in a directory (-o, default mmtwin.flight) until Ctrl-C, and
    /// write recordings of them to DIR/dumps. A directory that an earlier recorder left is continued
    #[arg(long, value_name = "SIZE", value_parser = parse_size, conflicts_with_all = [
        "command", "max_size", "max_lost", "compress", "force", "arguments", "private",
    ])]
    pub flight: Option<u64>,
    /// Write a recording when this happens: `psi.memory.full > 10% for 5s` (or io, cpu; some; psi.memory.full@/CGROUP),
    /// `oom` (a process is killed), `stall > 500ms` (a task in reclaim or compaction). Repeated: any of them. SIGUSR1 and
    /// `mmtwin snap` do so at once
    #[arg(long, value_name = "EXPR", requires = "flight")]
    pub when: Vec<When>,
    /// Time before --when that a recording has at least, as far as it is kept
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = parse_time, requires = "flight")]
    pub before: Duration,
    /// Time after --when that a recording has
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_time, requires = "flight")]
    pub after: Duration,
    /// Time after a recording by --when during which --when writes no other
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = parse_time, requires = "flight")]
    pub cool_down: Duration,
    /// With so many recordings in DIR/dumps no other is written
    #[arg(long, value_name = "N", default_value_t = 10, requires = "flight")]
    pub max_dumps: usize,
}

/// `mmtwin snap`
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  mmtwin snap                                      of the flight recorder in mmtwin.flight
  mmtwin report $(mmtwin snap /var/lib/mmtwin/flight)

Where no recorder runs any more, the recording has all that the last one left.")]
pub struct Snap {
    /// Directory of the flight recorder
    #[arg(value_name = "DIR", default_value = FLIGHT_DIRECTORY)]
    pub directory: PathBuf,
}
