//! The flight recorder: the last of events and counters in bounded space, and a recording of it when something happens.
//!
//! One thread records, as in [`record`](mod@crate::record), with which it shares tracing, buffers and samples.
//! `recorder` is its loop, `capture` what it takes in: `events` takes pages, `samples` makes samples small. Both
//! go as blocks to the `segment` that is written; complete segments are the `ring`, whose oldest are deleted.
//! `store` is both. [`when`] reads conditions, `watch` follows them with `pressure` and `stalls`, `orders` says
//! which recordings are due. `dump` makes a recording of segments and of their `head`, in a thread of its own
//! (`writing`). `directory` is the recorder's directory, `control` its socket.

mod capture;
mod control;
mod directory;
mod dump;
mod events;
mod head;
mod orders;
mod pressure;
mod recorder;
mod ring;
mod samples;
mod segment;
mod stalls;
mod store;
mod watch;
pub mod when;
mod writing;

pub use recorder::{Begun, Outcome, fly};

use crate::Error;
use crate::record::tracing;
use directory::Directory;
use dump::Dump;
use ring::Ring;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Least size of a ring in bytes.
pub const LEAST: u64 = 1 << 20;

/// What to keep, and when to write it out.
#[derive(Clone, Debug)]
pub struct Options {
    /// Directory of the recorder.
    pub directory: PathBuf,
    /// Size of the ring in bytes, at least [`LEAST`].
    pub size: u64,
    /// Events as `system:event` with `*` and `?`; empty: [`crate::events::DEFAULT`].
    pub events: Vec<String>,
    /// Time between samples of the counters.
    pub interval: Duration,
    /// Cgroups to sample: paths below the mount, or directories, with wildcards.
    pub cgroups: Vec<String>,
    /// Ring buffer per CPU in bytes; `None`: by the machine's memory.
    pub buffer: Option<u64>,
    /// Record the kernel's stack with the events of [`crate::record::stacks::EVENTS`].
    pub stacks: bool,
    /// What makes the recorder write a recording.
    pub when: Vec<when::When>,
    /// Time before the condition that the recording has at least, as far as it is kept.
    pub before: Duration,
    /// Time after the condition that it has.
    pub after: Duration,
    /// Time after a recording during which conditions write no other.
    pub cool_down: Duration,
    /// Most recordings in the directory.
    pub max_dumps: usize,
    /// End after this time; `None`: with a signal.
    pub max_time: Option<Duration>,
    /// Is told what is recorded when it begins.
    pub begun: Option<fn(&Begun<'_>)>,
}

/// Writes out what is kept in a directory: by its recorder, or, where none runs, from what one left. Returns the
/// recording.
///
/// # Errors
/// If there is nothing, or what the recorder or the system says.
pub fn snap(directory: &Path) -> Result<PathBuf, Error> {
    if !directory::is_one(directory) {
        return Err(directory::none(directory));
    }
    match control::ask(directory)? {
        Some(output) => Ok(output),
        None => left(&Directory::open(directory)?),
    }
}

/// A recording of all that the last recorder left.
fn left(directory: &Directory) -> Result<PathBuf, Error> {
    let fail = |e| Error::io(directory.segments().to_string_lossy(), e);
    let (ring, mut notes) = Ring::open(&directory.segments(), u64::MAX).map_err(fail)?;
    let empty = || {
        let directory = directory.path().to_string_lossy().into_owned();
        Error::Flight { directory, message: "no recorder runs there, and none has left anything".into() }
    };
    let last = *ring.segments().next_back().ok_or_else(empty)?;
    let of_last = ring.segments().filter(|stored| stored.head == last.head);
    let from = of_last.clone().next().map_or(0, |stored| stored.from);
    let head = directory.head(last.head);
    let boot = fs::read_to_string(head::BOOT_ID).map(|text| text.trim_end().to_owned());
    let is_this_boot = head::read(&head)?.0.evidence.files.get(head::BOOT_ID) == boot.ok().as_ref();
    let mut dump = Dump::begin(&head, &directory.next_dump("snap"), from)?;
    for stored in of_last {
        dump.add(&ring.path(stored))?;
    }
    notes.push("written by mmtwin snap from what a recorder left that no longer ran".into());
    let (output, _) = dump.finish(|| if is_this_boot { tracing::functions() } else { None }, notes)?;
    Ok(fs::canonicalize(&output).unwrap_or(output))
}
