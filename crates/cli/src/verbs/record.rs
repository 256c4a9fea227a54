//! `mmtwin record`.

use crate::args::Record;
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
        max_size: arguments.max_size,
        force: arguments.force,
        arguments: arguments.arguments,
        private: arguments.private,
        command: arguments.command,
    };
    let outcome = record(&options, &mut say)?;
    let lost = outcome.lost();
    if lost > 0 {
        say(&format!("{lost} events were lost; use a larger --buffer or record fewer events"));
    }
    if let Some(why) = &outcome.end.stopped {
        say(&format!("the recording ended early: {why}"));
    }
    match outcome.status() {
        0 if outcome.full => Ok(status::FULL),
        0 if arguments.max_lost.is_some_and(|limit| lost > limit) => Ok(status::LOST),
        status => Ok(status),
    }
}
