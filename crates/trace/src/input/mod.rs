//! From a name on the command line to a stream of events, whatever the input is.
//!
//! [`InputFile::open`] looks at the first bytes (never at the name's ending) and maps or decompresses; [`Input`] is
//! what can then be read, once. `container` undoes compression, `unpack` archives, both within the bounds of `spool`;
//! `directory` reads a directory of a trace and saved `/proc` files, `tracefs` a copied tracefs directory.

pub(crate) mod container;
mod directory;
mod interrupts;
mod spool;
mod tracefs;
mod unpack;

use crate::dat::{self, Buffer, Content, Meta, Origin};
use crate::format::Formats;
use crate::map::Mapped;
use crate::recording::Recording;
use crate::ring::{CpuStream, PageLayout, merge};
use crate::text::{self, TextInput, read_text};
use crate::{Error, Outcome, Place, Warnings};
use container::Broken;
use mmtwin_event::vocabulary::SCHEMAS;
use mmtwin_event::words::glob;
use mmtwin_event::{Sink, Source, Task, Times};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use tracefs::Tracefs;

/// What the user knows of an input that the input does not say.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Saved counters before and after: files of `/proc/vmstat`, or directories of `/proc` files.
    pub counters: Option<(OsString, OsString)>,
    /// Times of the traced test.
    pub times: Option<Times>,
    /// Events that were enabled, as `SYSTEM:EVENT` with `*` and `?`.
    pub recorded: Vec<String>,
}

/// An opened file, directory or standard input.
pub struct InputFile {
    name: String,
    form: Form,
    /// Where a compressed input ended early.
    broken: Broken,
}

enum Form {
    Dat(Mapped),
    Text(Mapped),
    Stream(Option<Box<dyn Read>>),
    Recording(Box<Recording>),
    Tracefs(Box<Tracefs>),
    Directory(Found),
}

/// What was found in a directory or archive.
struct Found {
    trace: Option<Box<InputFile>>,
    snapshots: Vec<directory::Snapshot>,
    /// What that is, in words.
    taken: String,
    /// What was wrong and stepped over.
    warnings: Warnings,
    /// Where an archive was unpacked; all of its files have been opened, and nothing is there any more.
    unpacked: Option<String>,
}

impl InputFile {
    /// Opens an input; `-` is standard input. Bytes of a name that are not UTF-8 are replaced in messages only.
    pub fn open(name: impl AsRef<OsStr>) -> Result<InputFile, Error> {
        let path = Path::new(name.as_ref());
        let shown = path.to_string_lossy().into_owned();
        if shown == "-" {
            let name = "standard input".to_string();
            let (form, broken) = container::stream(&name, Box::new(std::io::stdin()))?;
            return Ok(InputFile { name, form, broken });
        }
        let (form, broken) = match path.is_dir() {
            true => (directory(&shown, path)?, Broken::default()),
            false => container::file(&shown, path)?,
        };
        Ok(InputFile { name: shown, form, broken })
    }

    /// What was taken of a directory or archive that is no recording of its own, in words.
    pub fn taken(&self) -> Option<&str> {
        match &self.form {
            Form::Directory(found) => Some(&found.taken),
            _ => None,
        }
    }

    /// The recording, if it is one.
    pub fn recording(&self) -> Option<&Recording> {
        match &self.form {
            Form::Recording(recording) => Some(recording),
            _ => None,
        }
    }

    /// Reads everything but the events.
    pub fn input(&mut self, options: &Options) -> Result<Input<'_>, Error> {
        let broken = self.broken.clone();
        let whole = |error: Error| match broken.why() {
            // That the file is cut says more than what is missing in it.
            Some(why) => Error::at(Place::file(&self.name), format!("{why}; {error}")),
            None => error,
        };
        let mut input = match &mut self.form {
            Form::Dat(map) => Input::of_dat(&self.name, map).map_err(whole)?,
            Form::Text(map) => Input::of_source(text::source(&self.name, &map[..map.len().min(4096)]), Body::Text(map)),
            Form::Stream(stream) => {
                let stream = stream.take().ok_or_else(|| {
                    Error::io(&self.name, std::io::Error::other("a compressed input or a pipe can be read only once"))
                })?;
                Input::of_source(import(&self.name), Body::Stream(stream))
            }
            Form::Recording(recording) => Input::of_recording(recording),
            Form::Tracefs(tracefs) => Input::of_tracefs(&self.name, tracefs),
            Form::Directory(Found { trace, snapshots, warnings, unpacked, .. }) => {
                let renamed = |error: Error| match &unpacked {
                    Some(from) => error.rename(from, &self.name),
                    None => error,
                };
                let mut input = match trace {
                    Some(trace) => trace.input(&Options::default()).map_err(renamed)?,
                    None => Input::of_source(import(&self.name), Body::Nothing),
                };
                input.snapshots.extend(snapshots.iter().cloned());
                input.source.name.clone_from(&self.name);
                let mut all = warnings.clone();
                all.append(std::mem::take(&mut input.warnings));
                input.warnings = all;
                input.unpacked.extend(unpacked.as_ref().map(|from| (from.clone(), self.name.clone())));
                input
            }
        };
        input.broken.push(self.broken.clone());
        if let Some((before, after)) = &options.counters {
            input.snapshots.push(directory::Snapshot::read(Path::new(before), 0)?);
            input.snapshots.push(directory::Snapshot::read(Path::new(after), 1)?);
        }
        if options.times.is_some() {
            input.source.times = options.times;
        }
        for pattern in &options.recorded {
            let known = SCHEMAS.iter().flat_map(|s| s.aliases.iter().chain([&s.name]).map(|n| (s.system, *n)));
            let matching =
                known.filter(|(system, name)| glob(pattern, name) || glob(pattern, &format!("{system}:{name}")));
            let names: Vec<String> = matching.map(|(_, name)| name.to_string()).collect();
            if names.is_empty() {
                let message = format!("no event known to mmtwin matches `{pattern}`");
                return Err(Error::at(Place::file("--recorded"), message));
            }
            input.source.enabled.get_or_insert_default().extend(names);
        }
        Ok(input)
    }
}

/// A recording, or a directory of a trace and saved counters.
fn directory(name: &str, path: &Path) -> Result<Form, Error> {
    if Recording::is_one(path) {
        return Ok(Form::Recording(Box::new(Recording::open(path)?)));
    }
    let contents = directory::Contents::find(name, path)?;
    let open = |path: &Path| {
        let name = path.to_string_lossy().into_owned();
        let (form, broken) = if tracefs::is_one(path) {
            (Form::Tracefs(Box::new(Tracefs::open(path)?)), Broken::default())
        } else if path.is_dir() {
            (Form::Recording(Box::new(Recording::open(path)?)), Broken::default())
        } else {
            container::file(&name, path)?
        };
        Ok::<_, Error>(Box::new(InputFile { name, form, broken }))
    };
    let trace = contents.trace.as_deref().map(open).transpose()?;
    let (snapshots, taken) = (contents.snapshots, contents.taken);
    Ok(Form::Directory(Found { trace, snapshots, taken, warnings: contents.warnings, unpacked: None }))
}

/// An input whose events can be read, once.
pub struct Input<'a> {
    /// What it says of itself.
    pub source: Source,
    /// The format texts of a binary input.
    pub formats: Option<Arc<Formats>>,
    /// What a trace.dat of the events of a binary input needs beside them.
    pub origin: Option<Origin<'a>>,
    /// Thread group of tasks by pid, where that has a list of its own.
    tgids: BTreeMap<i32, i32>,
    snapshots: Vec<directory::Snapshot>,
    warnings: Warnings,
    body: Body<'a>,
    /// Compressed streams that it is read from.
    broken: Vec<Broken>,
    /// Where archives were unpacked, from the innermost on, and how they are called.
    unpacked: Vec<(String, String)>,
}

enum Body<'a> {
    Pages(Box<Traced<'a>>, Arc<Formats>),
    Text(&'a [u8]),
    Stream(Box<dyn Read>),
    Recording(&'a Recording),
    Nothing,
}

/// Ring buffers and what is known beside them.
struct Traced<'a> {
    meta: Meta<'a>,
    buffers: Vec<Buffer<'a>>,
}

impl<'a> Input<'a> {
    fn of_source(source: Source, body: Body<'a>) -> Input<'a> {
        let (tgids, snapshots, warnings, broken, unpacked) = Default::default();
        Input { source, formats: None, origin: None, tgids, snapshots, warnings, body, broken, unpacked }
    }

    fn of_recording(recording: &'a Recording) -> Input<'a> {
        let mut input = Input::of_source(recording.source(), Body::Recording(recording));
        input.formats = Some(recording.formats.clone());
        input.origin = recording.origin();
        input
    }

    fn of_dat(name: &'a str, map: &'a [u8]) -> Result<Input<'a>, Error> {
        let dat = dat::open(name, map)?;
        let mut warnings = Warnings::default();
        let mut formats = Formats::new(dat.meta.big_endian, dat.meta.kernel_long_size());
        for format in &dat.meta.formats {
            let place = Place::offset(name, format.offset);
            if let Err(error) = formats.add(&format.system, &format.text, &place) {
                warnings.add(|| place, &format!("a format is skipped: {error}"));
            }
        }
        for format in formats.iter() {
            for problem in &format.problems {
                warnings.add(|| Place::file(name), &format!("event {}: {problem}", format.name));
            }
        }
        warnings.append(dat.warnings);
        let kallsyms = dat.meta.complete(&mut formats);
        Ok(Input { warnings, ..Input::of_pages(name, dat.meta, dat.buffers, Arc::new(formats), kallsyms) })
    }

    fn of_tracefs(name: &str, tracefs: &'a Tracefs) -> Input<'a> {
        let Tracefs { meta, formats, kallsyms, .. } = tracefs;
        let input = Input::of_pages(name, meta.clone(), vec![tracefs.buffer()], formats.clone(), kallsyms.clone());
        Input { tgids: tracefs.tgids.clone(), warnings: tracefs.warnings.clone(), ..input }
    }

    fn of_pages(
        name: &str,
        meta: Meta<'a>,
        buffers: Vec<Buffer<'a>>,
        formats: Arc<Formats>,
        kallsyms: Arc<Vec<(u64, String)>>,
    ) -> Input<'a> {
        let (kernel, cpus, clock) = (meta.kernel(), meta.cpus, meta.clock());
        let source = Source { kernel, cpus, clock, kallsyms, stack: formats.stack_record(), ..import(name) };
        let origin = Some(Origin::of(&meta, &buffers));
        let body = Body::Pages(Box::new(Traced { meta, buffers }), formats.clone());
        Input { formats: Some(formats), origin, ..Input::of_source(source, body) }
    }

    /// Delivers everything to `sink`.
    pub fn read(self, sink: &mut dyn Sink) -> Result<Outcome, Error> {
        self.read_showing(sink, &mut |_| {})
    }

    /// The same; `progress` is told the number of events so far, now and then.
    pub fn read_showing(self, sink: &mut dyn Sink, progress: &mut dyn FnMut(u64)) -> Result<Outcome, Error> {
        let mut outcome = Outcome { warnings: self.warnings, ..Outcome::default() };
        let name = &self.source.name;
        let cut = || self.broken.iter().find_map(Broken::why);
        sink.start(&self.source);
        let (earlier, later) = self.snapshots.split_at(self.snapshots.len().min(1));
        earlier.iter().for_each(|s| s.deliver(sink, &mut outcome.warnings));
        let read = match self.body {
            Body::Pages(traced, formats) => {
                for (pid, comm) in traced.meta.tasks() {
                    let tgid = self.tgids.get(&pid).copied().unwrap_or(0);
                    sink.task(&Task { pid, tgid, comm: &comm, cgroup: None });
                }
                read_pages(name, &traced, &formats, sink, &mut outcome, progress)
            }
            Body::Text(bytes) => read_text(name, TextInput::Bytes(bytes), sink, &mut outcome, progress),
            Body::Stream(mut stream) => read_text(name, TextInput::Stream(&mut stream), sink, &mut outcome, progress),
            Body::Recording(recording) => recording.read_showing(sink, &mut outcome, progress),
            Body::Nothing => Ok(()),
        };
        if let Some(why) = cut() {
            let place = Place::file(name);
            match read {
                // That the file is cut says more than what is missing in it.
                Err(error) => return Err(Error::at(place, format!("{why}; {error}"))),
                Ok(()) => outcome.warnings.cut(|| place, &why),
            }
        } else {
            read?;
        }
        later.iter().for_each(|s| s.deliver(sink, &mut outcome.warnings));
        self.unpacked.iter().for_each(|(from, to)| outcome.warnings.rename(from, to));
        sink.finish();
        Ok(outcome)
    }
}

/// What is known of an input that says nothing of itself.
fn import(name: &str) -> Source {
    Source { name: name.into(), arm: "import".into(), ..Source::default() }
}

fn read_pages(
    name: &str,
    Traced { meta, buffers }: &Traced<'_>,
    formats: &Formats,
    sink: &mut dyn Sink,
    outcome: &mut Outcome,
    progress: &mut dyn FnMut(u64),
) -> Result<(), Error> {
    let place = Place::file(name);
    // Buffers with the same layout, as almost always, are merged by time; others follow one another.
    let mut groups: Vec<(PageLayout, Vec<CpuStream<'_>>)> = Vec::new();
    for buffer in buffers {
        if let Content::Text(text) = &buffer.content {
            read_text(name, TextInput::Stream(&mut text.reader()), sink, outcome, progress)?;
            continue;
        }
        let layout = buffer.layout(meta, &place)?;
        let streams = buffer.streams(&layout);
        match groups.iter_mut().find(|(l, _)| *l == layout) {
            Some((_, group)) => group.extend(streams),
            None => groups.push((layout, streams)),
        }
    }
    groups.retain(|(_, streams)| !streams.is_empty());
    if groups.len() > 1 {
        outcome.warnings.add(|| place, "buffers with different page sizes are read one after another, not by time");
    }
    for (layout, streams) in groups {
        merge::deliver(streams, &layout, formats, &meta.time(), sink, outcome, progress)?;
    }
    // What the kernel counted as overwritten or dropped beyond what its pages are marked with.
    for stat in meta.cpu_stats() {
        let lost = [stat.overrun, stat.commit_overrun, stat.dropped].into_iter().flatten().fold(0, u64::saturating_add);
        let (known, _) = outcome.lost.get(&stat.cpu).copied().unwrap_or_default();
        if lost > known {
            outcome.lost.insert(stat.cpu, (lost, 0));
            sink.lost(stat.cpu, Some(lost - known), 0);
        }
    }
    Ok(())
}
