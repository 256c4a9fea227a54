//! Reading inputs, with what must be said of them on standard error.

use crate::args::{Filtering, Window};
use crate::{Failure, progress, say};
use mmtwin::{Analysed, Filter, Trace};
use mmtwin_trace::Outcome;
use mmtwin_trace::input::{InputFile, Options};
use mmtwin_trace::recording::Recording;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Opens an input. What is taken of a directory of several things is said.
pub fn open(name: impl AsRef<OsStr>) -> Result<InputFile, Failure> {
    let file = InputFile::open(&name)?;
    say_taken(&name.as_ref().to_string_lossy(), file.taken());
    Ok(file)
}

/// The same for one that is read as a whole.
pub fn open_trace(name: impl AsRef<OsStr>, options: &Options) -> Result<Trace, Failure> {
    let trace = Trace::open_with(&name, options.clone())?;
    say_taken(trace.name(), trace.taken());
    Ok(trace)
}

/// The input that is named, or the newest recording here, which is said.
pub fn named_or_newest(input: Option<PathBuf>) -> Result<PathBuf, Failure> {
    input.map_or_else(
        || {
            let newest = newest(Path::new("."))?;
            say_newest(&newest);
            Ok(newest.into())
        },
        Ok,
    )
}

/// Says which recording was taken.
pub fn say_newest(name: &OsStr) {
    say(&format!("reading {}, the newest recording here", name.to_string_lossy()));
}

/// The recording of a directory that was begun last.
pub fn newest(directory: &Path) -> Result<OsString, Failure> {
    let entries = std::fs::read_dir(directory)?.filter_map(Result::ok).map(|entry| entry.path());
    let recordings = entries.filter(|path| path.extension() == Some(OsStr::new("mmt")) && Recording::is_one(path));
    let begun = recordings.filter_map(|path| {
        let manifest = std::fs::metadata(path.join("manifest.json")).ok()?;
        Some((manifest.modified().ok()?, path.file_name()?.to_owned()))
    });
    begun.max().map(|(_, name)| name).ok_or_else(|| {
        let message = "no INPUT, and no recording (*.mmt) in this directory: `mmtwin record -- CMD` makes one";
        Failure::Usage(message.into())
    })
}

impl Filtering {
    /// The filter that it asks for.
    pub fn filter(&self) -> Result<Filter, Failure> {
        let Filtering { cgroups, processes, nodes, window } = self.clone();
        Ok(Filter { cgroups, processes, nodes, ..window.filter()? })
    }
}

impl Window {
    /// The filter that it asks for.
    pub fn filter(&self) -> Result<Filter, Failure> {
        if let (Some(from), Some(to)) = (self.from, self.to)
            && from > to
        {
            return Err(Failure::Usage(format!("--from {from:?} is after --to {to:?}")));
        }
        let [from, to] = [self.from, self.to].map(|time| time.map(|time| time.as_nanos() as u64));
        Ok(Filter { from, to, ..Filter::default() })
    }
}

fn say_taken(name: &str, taken: Option<&str>) {
    if let Some(taken) = taken {
        say(&format!("{name}: reading {taken}"));
    }
}

/// Reads and analyses an input, with progress and warnings.
pub fn analyse(name: impl AsRef<OsStr>, options: &Options) -> Result<Analysed, Failure> {
    analyse_part(name, options, &Filter::default())
}

/// The same for a part of an input.
pub fn analyse_part(name: impl AsRef<OsStr>, options: &Options, filter: &Filter) -> Result<Analysed, Failure> {
    let mut trace = open_trace(&name, options)?.only(filter.clone());
    let name = name.as_ref().to_string_lossy();
    let analysed = progress::events(&name, |progress| trace.analyse(progress))?;
    warn(&analysed.outcome);
    Ok(analysed)
}

/// Most warnings of one input that are printed.
const WARNINGS: usize = 10;

/// Prints the warnings of a reader.
pub fn warn(outcome: &Outcome) {
    let warnings = outcome.warnings.list();
    for warning in warnings.iter().take(WARNINGS) {
        say(&format!("warning: {warning}"));
    }
    if let Some(more) = warnings.len().checked_sub(WARNINGS).filter(|n| *n > 0) {
        say(&format!("warning: {more} more kinds of warnings"));
    }
}
