//! A directory (or unpacked archive) of a trace and saved `/proc` files.
//!
//! The trace is a file of a name that traces have, a recording, or a copied tracefs directory with its raw pages.
//!
//! People keep a trace together with snapshots of `/proc/vmstat` and its like from before and after the test, each
//! snapshot in a directory of its own. Any directory below the given one that holds a file `vmstat` is a snapshot;
//! a file `uptime` beside it gives its time, else the names `before` and `after` give the order.

use super::tracefs;
use crate::recording::Recording;
use crate::{Error, Place, Warnings};
use mmtwin_event::counters::{self, Row};
use mmtwin_event::{CounterRow, Sink};
use std::fs;
use std::path::{Path, PathBuf};

/// How deep below the directory is looked.
const DEPTH: usize = 4;

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
}

impl Contents {
    /// Looks through a directory; `name` is for messages.
    pub fn find(name: &str, path: &Path) -> Result<Contents, Error> {
        let (mut traces, mut saved) = (Vec::new(), Vec::new());
        walk(path, DEPTH, &mut traces, &mut saved)?;
        let unknown = |message: String| Err(Error::Unknown { file: name.into(), message });
        if traces.len() > 1 {
            let found: Vec<_> = traces.iter().map(|t| t.to_string_lossy()).collect();
            return unknown(format!("the directory holds several traces; name one of {}", found.join(", ")));
        }
        if traces.is_empty() && saved.is_empty() {
            return unknown("the directory holds no recording, no trace and no saved counters".into());
        }
        let taken = in_words(path, traces.first(), &saved);
        let mut snapshots = Vec::new();
        for directory in saved {
            let order = u64::from(directory.file_name().is_some_and(|n| n != "before"));
            snapshots.push(Snapshot::of_directory(&directory, order)?);
        }
        snapshots.sort_by_key(|s| s.at);
        Ok(Contents { trace: traces.pop(), snapshots, taken })
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

/// Finds traces and snapshot directories, in order of name.
fn walk(path: &Path, depth: usize, traces: &mut Vec<PathBuf>, saved: &mut Vec<PathBuf>) -> Result<(), Error> {
    let io = |e| Error::io(&path.to_string_lossy(), e);
    let (of_tracefs, pages) = (path.join("per_cpu").is_dir(), tracefs::is_one(path));
    if pages {
        traces.push(path.into());
    }
    let mut entries = fs::read_dir(path).and_then(|d| d.collect::<Result<Vec<_>, _>>()).map_err(io)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if path.is_dir() {
            if Recording::is_one(&path) {
                traces.push(path);
            } else if depth > 0 && !(of_tracefs && tracefs::OWN.contains(&&*name)) {
                walk(&path, depth - 1, traces, saved)?;
            }
        } else if name == "vmstat" {
            saved.extend(path.parent().map(Path::to_path_buf));
        } else if holds_trace(&name) && !pages {
            traces.push(path);
        }
    }
    Ok(())
}

/// True for the names under which traces are kept.
fn holds_trace(name: &str) -> bool {
    let stem = [".gz", ".zst", ".xz"].iter().find_map(|s| name.strip_suffix(s)).unwrap_or(name);
    matches!(stem, "trace" | "trace_pipe" | "trace.txt" | "ftrace") || stem.ends_with(".dat")
}

impl Snapshot {
    /// Reads a file of `/proc/vmstat` or a directory of saved files. `order` stands for a time where there is none.
    pub fn read(name: &str, order: u64) -> Result<Snapshot, Error> {
        let path = Path::new(name);
        if path.is_dir() {
            return Snapshot::of_directory(path, order);
        }
        let mut snapshot = Snapshot { at: order, sources: Vec::new(), warnings: Warnings::default() };
        // A single file is taken for what its name ends in (`sample.before.zoneinfo`), else for vmstat.
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let known = ["zoneinfo", "meminfo", "numastat", "node_vmstat"].iter().find(|k| file.ends_with(**k));
        snapshot.add(path, known.unwrap_or(&"vmstat"))?;
        Ok(snapshot)
    }

    fn of_directory(path: &Path, order: u64) -> Result<Snapshot, Error> {
        let uptime = fs::read_to_string(path.join("uptime")).ok();
        let seconds = uptime.and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok());
        let at = seconds.map_or(order, |s| (s * 1e9) as u64);
        let mut snapshot = Snapshot { at, sources: Vec::new(), warnings: Warnings::default() };
        let io = |e| Error::io(&path.to_string_lossy(), e);
        let mut entries = fs::read_dir(path).and_then(|d| d.collect::<Result<Vec<_>, _>>()).map_err(io)?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries.iter().filter(|e| e.path().is_file()) {
            snapshot.add(&entry.path(), &entry.file_name().to_string_lossy())?;
        }
        Ok(snapshot)
    }

    fn add(&mut self, path: &Path, kind: &str) -> Result<(), Error> {
        let name = path.to_string_lossy();
        let mut problems = Vec::new();
        let text = match fs::read(path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) => return Err(Error::io(&name, error)),
        };
        self.sources.extend(counters::saved(kind, &text, &mut problems));
        for problem in problems {
            self.warnings.add(|| Place::line(&name, problem.line), problem.message);
        }
        Ok(())
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
        assert!(error.to_string().contains("name one of"), "{error}");
    }
}
