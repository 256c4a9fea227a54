//! Writing a recording: mmtwin's directory, readable at any moment.
//!
//! Files only grow; those that are written at once appear by rename. Directories have mode 0700 and files 0600: a
//! recording holds names of tasks and cgroups, kernel addresses and the kernel's command line.

use super::counters_write::CounterWriter;
use crate::Error;
use mmtwin_event::manifest::{End, Manifest, Run, State, TaskLine};
use mmtwin_event::results::Results;
use serde::Serialize;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Writes a recording.
pub struct Writer {
    directory: PathBuf,
    tasks: File,
    /// Counters of all sources.
    pub counters: CounterWriter,
    other_bytes: u64,
}

impl Writer {
    /// Makes the directory. One that has something in it is an error; with `force` a recording (and nothing else) is
    /// replaced.
    pub fn create(path: &Path, force: bool) -> Result<Writer, Error> {
        let name = path.to_string_lossy();
        let fail = |message: &str| Err(Error::io(&name, io::Error::new(io::ErrorKind::AlreadyExists, message)));
        match fs::read_dir(path) {
            Ok(mut entries) => {
                if entries.next().is_some() {
                    if !super::Recording::is_one(path) {
                        return fail("exists and is no recording, so it is not replaced");
                    }
                    if !force {
                        return fail("a recording of this name exists; use -f to replace it, or -o for another name");
                    }
                }
                fs::remove_dir_all(path).map_err(|e| Error::io(&name, e))?;
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(Error::io(&name, e)),
        }
        directory(path)?;
        for sub in ["cpu", "formats", "counters"] {
            directory(&path.join(sub))?;
        }
        let tasks = file(&path.join("tasks.jsonl"))?;
        let counters = CounterWriter::new(&path.join("counters"));
        Ok(Writer { directory: path.into(), tasks, counters, other_bytes: 0 })
    }

    /// Writes `manifest.json`. From then on the directory is a recording.
    pub fn manifest(&mut self, manifest: &Manifest) -> Result<(), Error> {
        self.json("manifest.json", manifest)
    }

    /// Writes `run.json`. Its bytes are not counted: they differ with the process id, and `end.json` must not.
    pub fn run(&mut self, run: &Run) -> Result<(), Error> {
        let counted = self.other_bytes;
        self.json("run.json", run)?;
        self.other_bytes = counted;
        Ok(())
    }

    /// Writes `state.json`.
    pub fn state(&mut self, state: &State) -> Result<(), Error> {
        self.json("state.json", state)
    }

    /// Writes `results.json`.
    pub fn results(&mut self, results: &Results) -> Result<(), Error> {
        self.json("results.json", results)
    }

    /// Writes a text of `formats/`: `header_page`, `header_event`, `kallsyms`, `printk_formats`.
    pub fn text(&mut self, name: &str, text: &[u8]) -> Result<(), Error> {
        self.write(&self.directory.join("formats").join(name), text)
    }

    /// Writes the format of an event.
    pub fn format(&mut self, system: &str, event: &str, text: &[u8]) -> Result<(), Error> {
        let system = self.directory.join("formats").join(system);
        if !system.is_dir() {
            directory(&system)?;
        }
        self.write(&system.join(event), text)
    }

    /// Makes the file that takes the ring-buffer pages of a CPU.
    pub fn pages(&self, cpu: u32) -> Result<File, Error> {
        file(&self.directory.join("cpu").join(format!("{cpu}.pages")))
    }

    /// Appends what is known of tasks.
    pub fn tasks(&mut self, tasks: &[TaskLine]) -> Result<(), Error> {
        let name = self.directory.join("tasks.jsonl");
        let name = name.to_string_lossy();
        let mut lines = Vec::new();
        for task in tasks {
            serde_json::to_writer(&mut lines, task).map_err(|e| Error::io(&name, e.into()))?;
            lines.push(b'\n');
        }
        self.other_bytes += lines.len() as u64;
        self.tasks.write_all(&lines).map_err(|e| Error::io(&name, e))
    }

    /// Ends the recording: fills in the bytes that were written and writes `end.json`.
    pub fn finish(mut self, mut end: End) -> Result<End, Error> {
        let counters = std::mem::replace(&mut self.counters, CounterWriter::new(&self.directory));
        end.cost.counter_bytes = counters.finish()?;
        end.cost.other_bytes = self.other_bytes;
        end.files = super::sizes(&self.directory)?;
        self.json("end.json", &end)?;
        Ok(end)
    }

    fn json(&mut self, name: &str, value: &impl Serialize) -> Result<(), Error> {
        let path = self.directory.join(name);
        let mut text = serde_json::to_vec_pretty(value).map_err(|e| Error::io(&path.to_string_lossy(), e.into()))?;
        text.push(b'\n');
        let unfinished = self.directory.join(format!("{name}.tmp"));
        self.write(&unfinished, &text)?;
        fs::rename(&unfinished, &path).map_err(|e| Error::io(&path.to_string_lossy(), e))
    }

    fn write(&mut self, path: &Path, text: &[u8]) -> Result<(), Error> {
        self.other_bytes += text.len() as u64;
        file(path)?.write_all(text).map_err(|e| Error::io(&path.to_string_lossy(), e))
    }
}

/// Makes a file that is only appended to. It must not exist.
pub(super) fn file(path: &Path) -> Result<File, Error> {
    let open = OpenOptions::new().append(true).create_new(true).mode(0o600).open(path);
    open.map_err(|e| Error::io(&path.to_string_lossy(), e))
}

fn directory(path: &Path) -> Result<(), Error> {
    DirBuilder::new().mode(0o700).create(path).map_err(|e| Error::io(&path.to_string_lossy(), e))
}
