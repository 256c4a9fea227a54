//! What can go wrong while reading or writing, always with the place.

use std::fmt;

/// A place in an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// File (or member of an archive, or `standard input`).
    pub file: String,
    /// Where in it.
    pub at: At,
}

/// Position within a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// The file as a whole.
    File,
    /// Byte offset from its start.
    Offset(u64),
    /// Line number from 1.
    Line(u64),
    /// Row of a table, from 1.
    Row(u64),
}

impl Place {
    /// A byte offset of a file.
    pub fn offset(file: &str, offset: u64) -> Place {
        Place { file: file.into(), at: At::Offset(offset) }
    }
    /// A line of a file.
    pub fn line(file: &str, line: u64) -> Place {
        Place { file: file.into(), at: At::Line(line) }
    }
    /// A file as a whole.
    pub fn file(file: &str) -> Place {
        Place { file: file.into(), at: At::File }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            At::File => write!(f, "{}", self.file),
            At::Offset(o) => write!(f, "{}: offset {o:#x}", self.file),
            At::Line(l) => write!(f, "{}:{l}", self.file),
            At::Row(row) => write!(f, "{}: row {row}", self.file),
        }
    }
}

/// Why an input could not be read, or an output not written, at all.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system said no.
    #[error("{file}: {source}")]
    Io {
        /// File or directory.
        file: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// An output that may not or cannot be written as asked.
    #[error("{path}: {message}")]
    Output {
        /// As the user named it.
        path: String,
        /// Why, and what helps.
        message: String,
    },
    /// The input is not what it claims to be.
    #[error("{place}: {message}")]
    Malformed {
        /// Where.
        place: Place,
        /// What is wrong, and what was expected.
        message: String,
    },
    /// The input is no trace that mmtwin knows.
    #[error("{file}: not a kernel trace: {message}")]
    Unknown {
        /// File.
        file: String,
        /// What was seen.
        message: String,
    },
}

impl Error {
    /// An error at a place.
    pub fn at(place: Place, message: impl Into<String>) -> Error {
        Error::Malformed { place, message: message.into() }
    }
    /// The same error with another name for the file, where its name begins with `from`.
    pub(crate) fn rename(mut self, from: &str, to: &str) -> Error {
        let file = match &mut self {
            Error::Io { file, .. } | Error::Unknown { file, .. } | Error::Output { path: file, .. } => file,
            Error::Malformed { place, .. } => &mut place.file,
        };
        if let Some(rest) = file.strip_prefix(from) {
            *file = format!("{to}{rest}");
        }
        self
    }
    /// An error of the operating system.
    pub fn io(file: &str, source: std::io::Error) -> Error {
        Error::Io { file: file.into(), source }
    }
}

/// Something that was wrong and was stepped over: the rest was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Where it was met first.
    pub place: Place,
    /// What.
    pub message: String,
    /// How often the same thing was met.
    pub count: u64,
    /// It means that the input lacks something that was once in it, of a size that it is not known.
    pub cut: bool,
}

/// Kinds of warnings that are kept of one input: messages may name events and fields, and a damaged input has many.
const MAX_KINDS: usize = 200;

/// Warnings of one input. The same message is kept once, with its count, so a damaged file of any size stays small.
#[derive(Clone, Debug, Default)]
pub struct Warnings {
    list: Vec<Warning>,
}

impl Warnings {
    /// Adds a warning. `message` is a sentence without varying numbers, so that equal ones can be counted.
    pub fn add(&mut self, place: impl FnOnce() -> Place, message: &str) {
        self.note(place, message, false);
    }
    /// Adds a warning which means that the input lacks something that was once in it: it is cut, or a part of it is
    /// missing. How much was lost is unknown then, so no loss limit is kept.
    pub fn cut(&mut self, place: impl FnOnce() -> Place, message: &str) {
        self.note(place, message, true);
    }
    fn note(&mut self, place: impl FnOnce() -> Place, message: &str, cut: bool) {
        match self.list.iter().position(|w| w.message == message) {
            Some(known) => {
                self.list[known].count += 1;
                self.list[known].cut |= cut;
            }
            None if self.list.len() < MAX_KINDS => {
                self.list.push(Warning { place: place(), message: message.into(), count: 1, cut });
            }
            None => {
                // The last one counts what has no place of its own any more.
                if self.list.len() == MAX_KINDS {
                    let message = "further kinds of warnings are not kept".into();
                    self.list.push(Warning { place: place(), message, count: 0, cut: false });
                }
                if let Some(last) = self.list.last_mut() {
                    last.count += 1;
                    last.cut |= cut;
                }
            }
        }
    }
    /// Adds what stopped one part of `file` while others could be read.
    pub fn add_error(&mut self, file: &str, error: Error) {
        let (place, message) = match error {
            Error::Malformed { place, message } => (place, message),
            other => (Place::file(file), other.to_string()),
        };
        self.add(|| place, &message);
    }
    /// The same for what means that the input lacks something, see [`Warnings::cut`].
    pub fn cut_error(&mut self, file: &str, error: Error) {
        let (place, message) = match error {
            Error::Malformed { place, message } => (place, message),
            Error::Io { file, source } => (Place::file(&file), source.to_string()),
            other => (Place::file(file), other.to_string()),
        };
        self.cut(|| place, &message);
    }
    /// All, in order of first occurrence.
    pub fn list(&self) -> &[Warning] {
        &self.list
    }
    /// What the input lacks, in order of first occurrence.
    pub fn cuts(&self) -> impl Iterator<Item = &Warning> {
        self.list.iter().filter(|w| w.cut)
    }
    /// Calls files by another name: `from` is what their names begin with now.
    pub(crate) fn rename(&mut self, from: &str, to: &str) {
        for w in &mut self.list {
            if let Some(rest) = w.place.file.strip_prefix(from) {
                w.place.file = format!("{to}{rest}");
            }
        }
    }
    /// Takes over another list.
    pub fn append(&mut self, other: Warnings) {
        for w in other.list {
            match self.list.iter().position(|o| o.message == w.message) {
                Some(known) => {
                    self.list[known].count += w.count;
                    self.list[known].cut |= w.cut;
                }
                None if self.list.len() < MAX_KINDS => self.list.push(w),
                None => self.note(|| w.place, &w.message, w.cut),
            }
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)?;
        if self.count > 1 {
            write!(f, " ({} times; this is the first)", self.count)?;
        }
        Ok(())
    }
}
