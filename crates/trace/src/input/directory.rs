//! A directory (or unpacked archive) of a trace and saved `/proc` files.
//!
//! The trace is a file of a name that traces have, a recording, or a copied tracefs directory with its raw pages.
//!
//! People keep a trace together with snapshots of `/proc/vmstat` and its like from before and after the test, each
//! snapshot in a directory of its own. Any directory below the given one that holds a file `vmstat` is a snapshot;
//! a file `uptime` beside it gives its time, else the names `before` and `after` give the order.

use super::tracefs;
use crate::files;
use crate::recording::Recording;
use crate::{Error, Place, Warnings};
use mmtwin_event::counters::{self, Row};
use mmtwin_event::{CounterRow, Sink};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// How deep below the directory is looked.
const DEPTH: usize = 4;
/// Entries that are looked at. A copied tracefs has some ten thousand, most of them in directories that are passed by.
const ENTRIES: usize = 1 << 17;
/// Snapshots that are read: one a second for a day.
const SNAPSHOTS: usize = 100_000;

/// Counters saved at one moment.
#[derive(Clone, Debug)]
pub(super) struct Snapshot {
    /// Nanoseconds since boot; 0 and 1 stand for "before" and "after" where no time is known.
    at: u64,
    /// Rows by source.
    sources: Vec<(&'static str, Vec<Row>)>,
    warnings: Warnings,
}

/// What a directory holds.
pub(super) struct Contents {
    /// The trace, if there is one.
    pub trace: Option<PathBuf>,
    /// Its snapshots in order of time.
    pub snapshots: Vec<Snapshot>,
    /// Both in words, for people; paths are as seen from the directory.
    pub taken: String,
    /// What was wrong and stepped over.
    pub warnings: Warnings,
}

/// A search for traces and snapshots.
#[derive(Default)]
struct Search {
    traces: Vec<PathBuf>,
    saved: Vec<PathBuf>,
    /// Directories that were entered, by device and inode: links may lead round in a circle.
    entered: BTreeSet<(u64, u64)>,
    entries: usize,
    warnings: Warnings,
}

impl Contents {
    /// Looks through a directory; `name` is for messages.
    pub fn find(name: &str, path: &Path) -> Result<Contents, Error> {
        let mut search = Search::default();
        search.walk(path, DEPTH)?;
        let Search { mut traces, saved, mut warnings, .. } = search;
        let unknown = |message: String| Err(Error::Unknown { file: name.into(), message });
        if traces.len() > 1 {
            let found: Vec<_> = traces.iter().map(|t| t.to_string_lossy()).collect();
            return unknown(format!("the directory has several traces; specify one of {}", found.join(", ")));
        }
        if traces.is_empty() && saved.is_empty() {
            return unknown("the directory has no recording, no trace and no saved counters".into());
        }
        let taken = in_words(path, traces.first(), &saved);
        if saved.len() > SNAPSHOTS {
            return unknown(format!("the directory has more than {SNAPSHOTS} snapshots (files `vmstat`)"));
        }
        let mut snapshots = Vec::new();
        for directory in saved {
            let order = u64::from(directory.file_name().is_some_and(|n| n != "before"));
            match Snapshot::of_directory(&directory, order) {
                Ok(snapshot) => snapshots.push(snapshot),
                // The trace and the other snapshots can be read without.
                Err(error) => warnings.cut_error(&directory.to_string_lossy(), error),
            }
        }
        snapshots.sort_by_key(|s| s.at);
        Ok(Contents { trace: traces.pop(), snapshots, taken, warnings })
    }
}

/// What was found in the directory `top`.
fn in_words(top: &Path, trace: Option<&PathBuf>, saved: &[PathBuf]) -> String {
    let below = |path: &Path| match path.strip_prefix(top).unwrap_or(path) {
        own if own.as_os_str().is_empty() => ".".to_string(),
        below => below.to_string_lossy().into_owned(),
    };
    let trace = trace.map(|path| match path.is_dir() && !Recording::is_one(path) {
        true => format!("the pages of {}", below(&path.join("per_cpu"))),
        false => below(path),
    });
    let saved: Vec<String> = saved.iter().map(|path| below(path)).collect();
    let counters = (!saved.is_empty()).then(|| format!("counters of {}", saved.join(", ")));
    [trace, counters].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

impl Search {
    /// Finds traces and snapshot directories, in order of name.
    fn walk(&mut self, path: &Path, depth: usize) -> Result<(), Error> {
        let io = |e| Error::io(&path.to_string_lossy(), e);
        let own = path.metadata().map_err(io)?;
        if !self.entered.insert((own.dev(), own.ino())) {
            return Ok(());
        }
        let (of_tracefs, pages) = (path.join("per_cpu").is_dir(), tracefs::is_one(path));
        if pages {
            self.traces.push(path.into());
        }
        let left = ENTRIES - self.entries;
        let entries = fs::read_dir(path).and_then(|d| d.take(left + 1).collect::<Result<Vec<_>, _>>());
        let mut entries = entries.map_err(io)?;
        if entries.len() > left {
            let message = format!("more than {ENTRIES} files in and below the directory; specify the trace itself");
            return Err(Error::at(Place::file(&path.to_string_lossy()), message));
        }
        self.entries += entries.len();
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            let Ok(metadata) = path.metadata() else { continue };
            if metadata.is_dir() {
                if Recording::is_one(&path) {
                    self.traces.push(path);
                } else if depth > 0 && !(of_tracefs && tracefs::OWN.contains(&&*name)) {
                    match self.walk(&path, depth - 1) {
                        Err(error @ Error::Io { .. }) => {
                            // Whether a trace lies there, nobody can tell.
                            self.warnings.add_error(&path.to_string_lossy(), error);
                        }
                        other => other?,
                    }
                }
            } else if !metadata.is_file() {
                // A FIFO or a device of that name is nobody's trace; one that is named itself is read.
            } else if name == "vmstat" {
                self.saved.extend(path.parent().map(Path::to_path_buf));
            } else if holds_trace(&name) && !pages {
                self.traces.push(path);
            }
        }
        Ok(())
    }
}

/// True for the names under which traces are kept.
fn holds_trace(name: &str) -> bool {
    let stem = [".gz", ".zst", ".xz"].iter().find_map(|s| name.strip_suffix(s)).unwrap_or(name);
    matches!(stem, "trace" | "trace_pipe" | "trace.txt" | "ftrace") || stem.ends_with(".dat")
}

impl Snapshot {
    /// Reads a file of `/proc/vmstat` or a directory of saved files. `order` stands for a time where there is none.
    pub fn read(path: &Path, order: u64) -> Result<Snapshot, Error> {
        if path.is_dir() {
            let snapshot = Snapshot::of_directory(path, order)?;
            if snapshot.sources.is_empty() {
                let message = "no saved counters (vmstat, zoneinfo, meminfo, numastat, ...) in this directory";
                return Err(Error::at(Place::file(&path.to_string_lossy()), message));
            }
            return Ok(snapshot);
        }
        let mut snapshot = Snapshot { at: order, sources: Vec::new(), warnings: Warnings::default() };
        // A single file is taken for what its name ends in (`sample.before.zoneinfo`), else for vmstat.
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let known = ["zoneinfo", "meminfo", "numastat", "node_vmstat"].iter().find(|k| file.ends_with(**k));
        // What is named may be a pipe (`<(zcat before.gz)`); it is read as far as such a file can be long.
        let name = path.to_string_lossy();
        let opened = fs::File::open(path).map_err(|e| Error::io(&name, e))?;
        let bytes = files::all(&name, opened, files::MAX_TEXT)?;
        snapshot.add(&name, &bytes, known.unwrap_or(&"vmstat"));
        Ok(snapshot)
    }

    fn of_directory(path: &Path, order: u64) -> Result<Snapshot, Error> {
        let uptime = files::read(&path.join("uptime"), files::MAX_TEXT).ok().flatten();
        let uptime = uptime.map(|text| String::from_utf8_lossy(&text).into_owned());
        let seconds = uptime.and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok());
        let at = seconds.map_or(order, |s| (s * 1e9) as u64);
        let mut snapshot = Snapshot { at, sources: Vec::new(), warnings: Warnings::default() };
        // Nothing but these is opened, whatever else lies there.
        for kind in counters::SAVED {
            let path = path.join(kind);
            let name = path.to_string_lossy();
            match files::read(&path, files::MAX_TEXT) {
                Ok(Some(bytes)) => snapshot.add(&name, &bytes, kind),
                Ok(None) => {}
                Err(error) => snapshot.warnings.add_error(&name, error),
            }
        }
        Ok(snapshot)
    }

    fn add(&mut self, name: &str, bytes: &[u8], kind: &str) {
        let mut problems = Vec::new();
        self.sources.extend(counters::saved(kind, &String::from_utf8_lossy(bytes), &mut problems));
        for problem in problems {
            self.warnings.add(|| Place::line(name, problem.line), problem.message);
        }
    }

    /// Gives its rows to a sink.
    pub fn deliver(&self, sink: &mut dyn Sink, warnings: &mut Warnings) {
        warnings.append(self.warnings.clone());
        for (source, rows) in &self.sources {
            for Row { key, names, values } in rows {
                sink.counters(&CounterRow { source, key, at: self.at, names, values });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_and_its_snapshots_are_found_in_order_of_time() {
        let dir = tempfile::tempdir().unwrap();
        for (name, uptime) in [("before", "5.5 1"), ("after", "9.0 1"), ("middle", "7.25 1")] {
            fs::create_dir_all(dir.path().join("out").join(name)).unwrap();
            fs::write(dir.path().join("out").join(name).join("vmstat"), "pgfault 1\n").unwrap();
            fs::write(dir.path().join("out").join(name).join("uptime"), uptime).unwrap();
        }
        fs::write(dir.path().join("out/trace.txt.gz"), "").unwrap();
        fs::write(dir.path().join("out/notes.txt"), "").unwrap();
        let contents = Contents::find("d", dir.path()).unwrap();
        assert!(contents.trace.unwrap().ends_with("out/trace.txt.gz"));
        assert_eq!(contents.taken, "out/trace.txt.gz; counters of out/after, out/before, out/middle");
        let times: Vec<_> = contents.snapshots.iter().map(|s| s.at).collect();
        assert_eq!(times, [5_500_000_000, 7_250_000_000, 9_000_000_000]);
    }

    #[test]
    fn a_directory_of_nothing_and_one_of_two_traces_are_errors() {
        let dir = tempfile::tempdir().unwrap();
        assert!(Contents::find("d", dir.path()).is_err());
        fs::write(dir.path().join("a.dat"), "").unwrap();
        fs::write(dir.path().join("b.dat"), "").unwrap();
        let Err(error) = Contents::find("d", dir.path()) else { panic!("two traces were taken") };
        assert!(error.to_string().contains("specify one of"), "{error}");
    }
}
