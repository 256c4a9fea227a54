//! Writing a recording: mmtwin's directory, readable at any moment once it has its name.
//!
//! Files only grow; those that are written at once appear by rename. Where a write fails, what of it reached the file
//! is taken back, so that a file ends with something whole. Directories have mode 0700 and files 0600: a
//! recording holds names of tasks and cgroups, kernel addresses and the kernel's command line.

use super::counters_write::CounterWriter;
use crate::Error;
use crate::format::symbols;
use crate::output::{Folder, Kind};
use crate::private::{Names, Private};
use crate::ring::PageLayout;
use mmtwin_event::counters::Row;
use mmtwin_event::manifest::{End, Manifest, Run, State, TaskLine};
use mmtwin_event::results::Results;
use rustix::fs::{FallocateFlags, Mode, OFlags, fallocate, open, openat};
use serde::Serialize;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The last file.
const END: &str = "end.json";

/// Writes a recording. Dropped before it has its name ([`Writer::publish`] or [`Writer::finish`]), it leaves nothing
/// behind; dropped after that, it leaves what a killed recorder leaves.
pub struct Writer {
    folder: Folder,
    tasks: File,
    tasks_bytes: u64,
    counters: CounterWriter,
    other_bytes: u64,
    private: Option<Private>,
}

/// The files of ring-buffer pages, opened by CPU whatever the recording is called meanwhile.
pub struct PageFiles {
    directory: OwnedFd,
    name: PathBuf,
    suffix: &'static str,
}

impl Writer {
    /// Makes the directory, beside its place until it is published. One that is there and has something in it is an
    /// error; with `force` a recording (and nothing else) is replaced when the new one is published.
    ///
    /// # Errors
    /// With what stands in the way, and what the system refuses.
    pub fn create(path: &Path, force: bool) -> Result<Writer, Error> {
        let folder = Folder::create(path, force, Kind::Recording)?;
        for sub in ["cpu", "formats", "counters"] {
            directory(&folder, sub)?;
        }
        let tasks = file(&folder.path().join("tasks.jsonl"), &folder.name().join("tasks.jsonl"))?;
        let counters = CounterWriter::new(folder.path().join("counters"), folder.name().join("counters"));
        Ok(Writer { folder, tasks, tasks_bytes: 0, counters, other_bytes: 0, private: None })
    }

    /// From now on names are replaced by pseudonyms, those of `names` and new ones. To be said before anything is
    /// written; `big_endian` and `long_size` are of the recorded kernel.
    pub fn hide_names(&mut self, names: Names, big_endian: bool, long_size: u8) {
        self.private = Some(Private::new(names, big_endian, long_size));
    }

    /// The pseudonyms so far; `None`: names are not replaced.
    pub fn names(&self) -> Option<&Names> {
        self.private.as_ref().map(|private| &private.names)
    }

    /// Makes whole sub-buffers of a CPU fit to be written: without names, if they are to be replaced.
    pub fn prepare_pages(&mut self, run: &mut [u8], layout: &PageLayout) {
        if let Some(private) = &mut self.private {
            private.pages(run, layout);
        }
    }

    /// Appends one sample of a source of counters, taken at `at`. Without rows nothing is written.
    pub fn counters(&mut self, source: &str, at: u64, rows: &[Row]) -> Result<(), Error> {
        match &mut self.private {
            Some(private) => self.counters.add(source, at, &private.rows(rows)),
            None => self.counters.add(source, at, rows),
        }
    }

    /// Says whether [`Writer::create`] would refuse, without writing anything.
    ///
    /// # Errors
    /// As of [`Writer::create`].
    pub fn check(path: &Path, force: bool) -> Result<(), Error> {
        Folder::check(path, force, Kind::Recording)
    }

    /// Gives the recording its name: it has begun well. Returns what of a replaced one could not be removed.
    ///
    /// # Errors
    /// If it cannot have the name; what had it before is as it was.
    pub fn publish(&mut self) -> Result<Option<String>, Error> {
        let left = self.folder.publish()?;
        self.counters.moved(self.folder.path().join("counters"));
        Ok(left)
    }

    /// Chooses another name, before it has its name.
    ///
    /// # Errors
    /// As of [`Writer::check`].
    pub fn rename(&mut self, path: &Path) -> Result<(), Error> {
        self.folder.rename(path)
    }

    /// Writes `manifest.json`. From then on the directory is a recording.
    pub fn manifest(&mut self, manifest: &Manifest) -> Result<(), Error> {
        let private = self.private.as_mut().map(|p| p.manifest(manifest));
        self.json("manifest.json", private.as_ref().unwrap_or(manifest))
    }

    /// Writes `run.json`. Its bytes are not counted: they differ with the process id, and `end.json` must not.
    pub fn run(&mut self, run: &Run) -> Result<(), Error> {
        let counted = self.other_bytes;
        let private = self.private.as_mut().map(|p| p.run(run));
        self.json("run.json", private.as_ref().unwrap_or(run))?;
        self.other_bytes = counted;
        Ok(())
    }

    /// Writes `state.json`.
    pub fn state(&mut self, state: &State) -> Result<(), Error> {
        let private = self.private.as_mut().map(|p| p.state(state));
        self.json("state.json", private.as_ref().unwrap_or(state))
    }

    /// Writes `results.json`.
    pub fn results(&mut self, results: &Results) -> Result<(), Error> {
        let private = self.private.as_mut().map(|p| p.results(results));
        self.json("results.json", private.as_ref().unwrap_or(results))
    }

    /// Writes a text of `formats/`: `header_page`, `header_event`, `kallsyms`, `printk_formats`.
    pub fn text(&mut self, name: &str, text: &[u8]) -> Result<(), Error> {
        let path = Path::new("formats").join(name);
        match &mut self.private {
            Some(private) => private.text(name, text).map_or(Ok(()), |text| self.write(&path, &text)),
            None => self.write(&path, text),
        }
    }

    /// Keeps of `kallsyms` only what these addresses, ascending, need; of `text`, if there is a newer one. Without any
    /// the file goes, and if there is none and they need more than `most` bytes, none is made.
    ///
    /// # Errors
    /// If it cannot be read or written; it is as it was then.
    pub fn narrow_symbols(&mut self, text: Option<&[u8]>, addresses: &[u64], most: u64) -> Result<(), Error> {
        let path = self.folder.path().join("formats/kallsyms");
        let shown = self.name(Path::new("formats/kallsyms"));
        let fail = |e| Error::io(&shown, e);
        let before = match fs::read(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            read => Some(read.map_err(fail)?),
        };
        let newer = match (text, &mut self.private) {
            (Some(text), Some(private)) => private.text("kallsyms", text),
            (text, _) => text.map(<[u8]>::to_vec),
        };
        let Some(all) = newer.as_ref().or(before.as_ref()) else { return Ok(()) };
        let needed = symbols::needed(all, addresses);
        let length = before.as_ref().map_or(0, Vec::len);
        if length == 0 && needed.len() as u64 > most {
            return Err(fail(io::Error::new(io::ErrorKind::FileTooLarge, "no room for the names of functions")));
        }
        if needed.is_empty() {
            if before.is_some() {
                fs::remove_file(&path).map_err(fail)?;
            }
        } else {
            let unfinished = self.unfinished("formats/kallsyms");
            let mut file = file(&unfinished, &unfinished)?;
            let written = file.write_all(&needed).and_then(|()| fs::rename(&unfinished, &path));
            written.map_err(|e| {
                // What is left of it is no file of a recording.
                let _ = fs::remove_file(&unfinished);
                fail(e)
            })?;
        }
        self.other_bytes = self.other_bytes + needed.len() as u64 - length as u64;
        Ok(())
    }

    /// Writes the format of an event.
    pub fn format(&mut self, system: &str, event: &str, text: &[u8]) -> Result<(), Error> {
        if let Some(private) = &mut self.private {
            private.format(system, event, text)?;
        }
        let system = Path::new("formats").join(system);
        if !self.folder.path().join(&system).is_dir() {
            directory(&self.folder, &system)?;
        }
        self.write(&system.join(event), text)
    }

    /// The files for ring-buffer pages, or for frames of them ([`super::Packer`]).
    ///
    /// # Errors
    /// If their directory cannot be opened.
    pub fn page_files(&self, packed: bool) -> Result<PageFiles, Error> {
        let name = self.folder.name().join("cpu");
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let directory = open(self.folder.path().join("cpu"), flags, Mode::empty());
        let directory = directory.map_err(|e| Error::io(&name.to_string_lossy(), e.into()))?;
        Ok(PageFiles { directory, name, suffix: if packed { super::packed::SUFFIX } else { ".pages" } })
    }

    /// Makes the file that takes the ring-buffer pages of a CPU.
    pub fn pages(&self, cpu: u32) -> Result<File, Error> {
        self.page_files(false)?.create(cpu)
    }

    /// Appends what is known of tasks.
    pub fn tasks(&mut self, tasks: &[TaskLine]) -> Result<(), Error> {
        let name = self.name(Path::new("tasks.jsonl"));
        let mut lines = Vec::new();
        for task in tasks {
            let private = self.private.as_mut().map(|p| p.task(task));
            serde_json::to_writer(&mut lines, private.as_ref().unwrap_or(task))
                .map_err(|e| Error::io(&name, e.into()))?;
            lines.push(b'\n');
        }
        append(&mut self.tasks, &mut self.tasks_bytes, &lines).map_err(|e| Error::io(&name, e))?;
        self.other_bytes += lines.len() as u64;
        Ok(())
    }

    /// Bytes of counters and of everything but pages so far.
    pub fn bytes(&self) -> u64 {
        self.counters.bytes() + self.other_bytes
    }

    /// Takes room on the disk for an `end.json` of so many bytes, so that it can be written when the disk is full.
    /// Where the file system cannot, nothing is taken.
    pub fn reserve_end(&self, bytes: u64) {
        if let Ok(file) = file(&self.unfinished(END), &self.unfinished(END)) {
            let _ = fallocate(&file, FallocateFlags::empty(), 0, bytes);
        }
    }

    /// Writes `end.json`, with the bytes that were written before. It can be written again while more is known.
    ///
    /// # Errors
    /// What the system refused; an `end.json` that was there is as it was.
    pub fn end(&mut self, mut end: End) -> Result<End, Error> {
        end.cost.counter_bytes = self.counters.bytes();
        end.cost.other_bytes = self.other_bytes;
        end.files = super::sizes(self.folder.path())?;
        if let Some(private) = &mut self.private {
            end = private.end(&end);
        }
        let counted = self.other_bytes;
        self.json(END, &end)?;
        self.other_bytes = counted;
        Ok(end)
    }

    /// Ends the recording: ends the streams of counters, fills in the bytes that were written, writes `end.json` and
    /// gives the recording its name if it has none yet. Returns what of a replaced one could not be removed, too.
    ///
    /// # Errors
    /// What the system refused.
    pub fn finish(mut self, end: End) -> Result<End, Error> {
        self.counters.finish()?;
        let end = self.end(end)?;
        // Its only note would be of what another recording was before.
        self.publish()?;
        Ok(end)
    }

    /// Ends a recording without saying how it ended: that of one that was cut off.
    ///
    /// # Errors
    /// What the system refused.
    pub fn stop(mut self) -> Result<(), Error> {
        self.counters.finish()?;
        self.publish().map(|_| ())
    }

    /// Writes `lab.json` without paths, from its text.
    ///
    /// # Errors
    /// If the text is no JSON, and what the system refused.
    pub fn lab(&mut self, text: &[u8]) -> Result<(), Error> {
        let name = self.name(Path::new("lab.json"));
        let mut value = serde_json::from_slice(text).map_err(|e| Error::io(&name, e.into()))?;
        if let Some(private) = &mut self.private {
            private.paths(&mut value);
        }
        self.json("lab.json", &value)
    }

    /// A file's name for messages: where the user will look for it.
    fn name(&self, file: &Path) -> String {
        self.folder.name().join(file).to_string_lossy().into_owned()
    }

    fn unfinished(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{name}.tmp"))
    }

    fn json(&mut self, name: &str, value: &impl Serialize) -> Result<(), Error> {
        let shown = self.name(Path::new(name));
        let fail = |e| Error::io(&shown, e);
        let mut text = serde_json::to_vec_pretty(value).map_err(|e| fail(e.into()))?;
        text.push(b'\n');
        let unfinished = self.unfinished(name);
        let written = || {
            // Without truncation first: room that was taken for it would be returned.
            let mut file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&unfinished)?;
            file.write_all(&text)?;
            file.set_len(text.len() as u64)?;
            fs::rename(&unfinished, self.folder.path().join(name))
        };
        if let Err(e) = written() {
            // What is left of it is no file of a recording.
            let _ = fs::remove_file(&unfinished);
            return Err(fail(e));
        }
        self.other_bytes += text.len() as u64;
        Ok(())
    }

    fn write(&mut self, path: &Path, text: &[u8]) -> Result<(), Error> {
        self.other_bytes += text.len() as u64;
        let name = self.name(path);
        let mut file = file(&self.folder.path().join(path), Path::new(&name))?;
        file.write_all(text).map_err(|e| Error::io(&name, e))
    }
}

impl PageFiles {
    /// Makes the file of a CPU.
    ///
    /// # Errors
    /// What the system refused.
    pub fn create(&self, cpu: u32) -> Result<File, Error> {
        self.open(cpu, OFlags::CREATE | OFlags::EXCL)
    }

    /// Opens the file of a CPU again, to append to it.
    ///
    /// # Errors
    /// What the system refused.
    pub fn append(&self, cpu: u32) -> Result<File, Error> {
        self.open(cpu, OFlags::empty())
    }

    fn open(&self, cpu: u32, how: OFlags) -> Result<File, Error> {
        let leaf = format!("{cpu}{}", self.suffix);
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CLOEXEC | OFlags::NOFOLLOW | how;
        let file = openat(&self.directory, &leaf, flags, Mode::RUSR | Mode::WUSR);
        file.map(File::from).map_err(|e| Error::io(&self.name.join(leaf).to_string_lossy(), e.into()))
    }
}

/// Appends to a file of which `length` bytes are whole, all or nothing.
pub(super) fn append(file: &mut File, length: &mut u64, bytes: &[u8]) -> io::Result<()> {
    match file.write_all(bytes) {
        Ok(()) => {
            *length += bytes.len() as u64;
            Ok(())
        }
        Err(e) => {
            // If this fails too, a reader leaves the incomplete rest out.
            let _ = file.set_len(*length);
            Err(e)
        }
    }
}

/// Makes a file that is only appended to; `name` is for messages. It must not exist.
pub(super) fn file(path: &Path, name: &Path) -> Result<File, Error> {
    let open = OpenOptions::new().append(true).create_new(true).mode(0o600).open(path);
    open.map_err(|e| Error::io(&name.to_string_lossy(), e))
}

fn directory(folder: &Folder, sub: impl AsRef<Path>) -> Result<(), Error> {
    let made = DirBuilder::new().mode(0o700).create(folder.path().join(&sub));
    made.map_err(|e| Error::io(&folder.name().join(&sub).to_string_lossy(), e))
}
