//! The live view.

use super::quantity::parse_time;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// `mmtwin top`
#[derive(Args, Debug)]
#[command(after_help = "\
Keys: q quit, ? help, space freeze, / filter, s sort, r reverse, Tab other table,
Enter open a cgroup or process, Esc back, w write what was seen as a recording.

Examples:
  mmtwin top                            this machine, every second
  mmtwin top --cgroup '/web,/db/*'      some cgroups, all their counters each time
  mmtwin top --no-events -I 5s          counters only, every 5 seconds

Counters need no rights. Who waits for reclaim, and why, needs tracefs; without
it that is n/a. On a screen that is no terminal use `mmtwin record` and
`mmtwin report`.")]
pub struct Top {
    /// Interval between samples (500ms, 2s), from 100ms to 10m
    #[arg(short = 'I', long, value_name = "TIME", default_value = "1s", value_parser = parse_interval)]
    pub interval: Duration,
    /// Only these cgroups: paths below the cgroup mount, with wildcards *, ?, [] within a name and ** across names,
    /// repeated or comma-separated
    #[arg(long, value_name = "PATHS", value_delimiter = ',')]
    pub cgroup: Vec<String>,
    /// Trace no events, read counters only
    #[arg(long)]
    pub no_events: bool,
    /// Recording that key w writes; default: mmtwin-top.mmt. Where it exists it gets a number: NAME-2.mmt
    #[arg(short, long, value_name = "REC", default_value = "mmtwin-top.mmt", hide_default_value = true)]
    pub output: PathBuf,
}

/// A time that a person can follow and that costs little.
fn parse_interval(text: &str) -> Result<Duration, String> {
    let interval = parse_time(text)?;
    let fits = (Duration::from_millis(100)..=Duration::from_secs(600)).contains(&interval);
    if fits { Ok(interval) } else { Err("must be from 100ms to 10m".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_bounded() {
        assert_eq!(parse_interval("250ms"), Ok(Duration::from_millis(250)));
        assert!(parse_interval("10ms").is_err() && parse_interval("11m").is_err() && parse_interval("x").is_err());
    }
}
