//! What a recording says of people and machines, replaced by pseudonyms.
//!
//! [`Private`] takes each part of a recording on its way into the new one: manifest, tasks, rows of counters, texts of
//! the kernel and ring-buffer pages. A name has one pseudonym wherever it occurs, so tables still tell tasks and
//! cgroups apart. `record --private` does this while it records, `mmtwin scrub` with a recording that is there.
//!
//! | replaced | by |
//! |---|---|
//! | names of tasks, but those of kernel threads and of the scenario | `task-1` |
//! | names in cgroup paths, but the usual ones (`system.slice`) and those of the scenario | `cgroup-1`, `cgroup-2.service` |
//! | host name | `host-1` |
//! | paths outside `/proc` and `/sys` | `/path-1` |
//! | symbols of modules, and names of modules | `symbol-1`, `module-1` |
//! | texts in events that are no task name | `text-1` |
//! | command and its arguments | the pseudonym of the program |
//! | kernel command line | its parameters that concern memory and CPUs |
//!
//! [`LEFT`] lists what stays.

mod json;
mod names;
mod pages;
mod parts;
mod scrub;

pub use names::{Kind, Names};
pub use scrub::{Scrubbed, scrub};

use crate::format::Formats;
use crate::{Error, Place};

/// What a recording still says after this, as its owner should read it before it is shared.
pub const LEFT: &[&str] = &[
    "kernel release, build text and configuration; CPU model, hypervisor, memory, nodes and CPUs",
    "sysctls and other settings of memory management, counters",
    "times (also the date in run.json), process and user ids",
    "symbols and addresses of the kernel itself, event formats",
    "names of kernel threads; the scenario as its author wrote it, with its process, region and cgroup names",
];

/// Pseudonyms at work on one recording.
#[derive(Debug)]
pub struct Private {
    /// Who is called what.
    pub names: Names,
    formats: Formats,
}

impl Private {
    /// Goes on with the pseudonyms of other recordings, or none. `long_size` is the size of the recorded kernel's
    /// `long` in bytes.
    pub fn new(names: Names, big_endian: bool, long_size: u8) -> Private {
        Private { names, formats: Formats::new(big_endian, long_size) }
    }

    /// Replaces the paths in all strings of a value.
    pub fn paths(&mut self, value: &mut serde_json::Value) {
        json::paths_in(value, &mut self.names);
    }

    /// Learns where an event has its texts.
    pub fn format(&mut self, system: &str, event: &str, text: &[u8]) -> Result<(), Error> {
        self.formats.add(system, &String::from_utf8_lossy(text), &Place::file(&format!("formats/{system}/{event}")))?;
        Ok(())
    }

    /// Replaces the texts in whole sub-buffers of one CPU, and clears what no record uses: a page that the kernel used
    /// before still has bytes of older events.
    pub fn pages(&mut self, run: &mut [u8], layout: &crate::ring::PageLayout) {
        for page in run.chunks_exact_mut(layout.page_size) {
            pages::hide(page, layout, &self.formats, &mut self.names);
        }
    }
}

#[cfg(test)]
mod tests;
