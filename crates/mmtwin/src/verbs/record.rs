//! `mmtwin record`.

use crate::cli::Record;
use crate::{Failure, say, status};
use mmtwin_host::record::{Options, record};

/// Runs the verb.
pub fn run(arguments: Record) -> Result<i32, Failure> {
    mmtwin_host::restore::recover(&mut say);
    let options = Options {
        output: arguments.output,
        events: arguments.events,
        interval: Some(arguments.interval).filter(|i| !i.is_zero()),
        cgroups: arguments.cgroup,
        buffer: arguments.buffer,
        force: arguments.force,
        command: arguments.command,
    };
    let outcome = record(&options, &mut say).map_err(|e| Failure::Error(e.to_string()))?;
    let lost = outcome.lost();
    if lost > 0 {
        say(&format!("{lost} events were lost; a larger --buffer or fewer events help"));
    }
    match outcome.status() {
        0 if arguments.max_lost.is_some_and(|limit| lost > limit) => Ok(status::LOST),
        status => Ok(status),
    }
}
