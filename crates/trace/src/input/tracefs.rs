//! A copied tracefs directory, of the top or of an instance: the raw ring-buffer pages of every CPU, as
//! `per_cpu/cpuN/trace_pipe_raw` gave them, and the texts that explain them.
//!
//! Everything beside the pages has the name it has in tracefs. `header_page` and formats (`SYSTEM/EVENT/format`) lie
//! below `events`, below `formats` or beside `per_cpu`; what an instance lacks is looked for in the directory that
//! holds its `instances`. tracefs does not tell the byte order: it is the one in which the lengths of the first pages
//! are possible. Not supported: the kernel's release and which events were enabled, for no file reports it once tracing ended.
//! Validated against the same pages in a trace.dat, and on a directory copied from kernel 6.18.

use crate::dat::{Buffer, Content, CpuData, FormatText, Meta, Opt, Stored, id};
use crate::files;
use crate::format::{self, Formats};
use crate::map::{Mapped, map};
use crate::ring::page::COMMIT_MASK;
use crate::ring::{PageLayout, described_size};
use crate::{Error, Place, Warnings};
use mmtwin_event::era::{Era, header_event};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An opened directory.
pub(super) struct Tracefs {
    /// Everything but pages and formats.
    pub meta: Meta<'static>,
    /// Its formats.
    pub formats: Arc<Formats>,
    /// Address to symbol, sorted by address.
    pub kallsyms: Arc<Vec<(u64, String)>>,
    /// Thread group of tasks by pid, where the kernel saved it.
    pub tgids: BTreeMap<i32, i32>,
    /// What was wrong and stepped over.
    pub warnings: Warnings,
    pages: Vec<CpuPages>,
}

/// The pages of a CPU that has any.
struct CpuPages {
    cpu: u32,
    file: String,
    map: Mapped,
    /// Bytes of whole pages.
    whole: usize,
}

/// Directories of tracefs in which nothing lies that is an input of its own.
pub(super) const OWN: [&str; 5] = ["per_cpu", "events", "instances", "options", "formats"];

/// True for a directory whose raw pages are its trace: not if they are all empty and there is the text of `trace`.
pub(super) fn is_one(path: &Path) -> bool {
    let filled = |path: &Path| path.metadata().is_ok_and(|m| m.len() > 0);
    let raw = raw_files(path);
    !raw.is_empty() && (raw.iter().any(|(_, file)| filled(file)) || !filled(&path.join("trace")))
}

/// Files of raw pages, by CPU.
fn raw_files(path: &Path) -> BTreeMap<u32, PathBuf> {
    let number = |entry: &PathBuf| entry.file_name()?.to_str()?.strip_prefix("cpu")?.parse().ok();
    // Kernels are built for 8,192 CPUs at most.
    let cpu = |entry: &PathBuf| number(entry).filter(|&cpu| cpu < 8192);
    let files = entries(&path.join("per_cpu")).into_iter();
    let files = files.filter_map(|entry| Some((cpu(&entry)?, entry.join("trace_pipe_raw"))));
    files.filter(|(_, file)| file.is_file()).collect()
}

impl Tracefs {
    /// Opens a directory.
    pub fn open(path: &Path) -> Result<Tracefs, Error> {
        let places = Places::of(path);
        let mut warnings = Warnings::default();
        let (header_page, place) = header_page(&places)?;
        let page_size = page_size(path, &header_page, &place)?;
        let mut layout =
            PageLayout::parse(&header_page, page_size, false, &place).map_err(|e| cut_header(&place, e))?;
        let pages = map_pages(path, page_size, &mut warnings)?;
        layout.big_endian = is_big_endian(&pages, &layout);
        let files = places.formats();
        if files.is_empty() {
            let message =
                "no format (events/SYSTEM/EVENT/format) here, so the pages cannot be read; copy the events too";
            return Err(Error::at(Place::file(&path.to_string_lossy()), message));
        }
        let long_size = layout.commit_size as u8;
        let mut formats = Formats::new(layout.big_endian, long_size);
        format::compile(&mut formats, files, &mut warnings)?;
        let text = |name: &str| Ok::<_, Error>(places.read(name)?.map(|(text, _)| text).unwrap_or_default());
        let header = String::from_utf8_lossy(&text("header_event")?).into_owned();
        let meta = Meta {
            big_endian: layout.big_endian,
            long_size,
            page_size: page_size as u32,
            cpus: raw_files(path).last_key_value().map_or(0, |(cpu, _)| cpu.saturating_add(1)),
            header_page,
            // trace-cmd only wants it to be there: no kernel has another.
            header_event: if header.is_empty() { header_event(Era::V6_18) } else { header },
            formats: FormatText::all(&formats),
            kallsyms: text("kallsyms")?.into(),
            printk: text("printk_formats")?.into(),
            cmdlines: text("saved_cmdlines")?.into(),
            options: options(path)?,
        };
        let tgids = String::from_utf8_lossy(&text("saved_tgids")?).lines().filter_map(pair).collect();
        let kallsyms = meta.complete(&mut formats);
        Ok(Tracefs { meta, formats: Arc::new(formats), kallsyms, tgids, warnings, pages })
    }

    /// Its pages as a buffer.
    pub fn buffer(&self) -> Buffer<'_> {
        let cpus = self.pages.iter().map(|p| CpuData { cpu: p.cpu, stored: Stored::whole(&p.file, &p.map[..p.whole]) });
        let content = Content::Pages(cpus.collect());
        Buffer { name: String::new(), clock: self.meta.clock(), page_size: self.meta.page_size, content }
    }
}

/// Directories in which the texts of a trace may lie, the likeliest first.
struct Places(Vec<PathBuf>);

impl Places {
    fn of(path: &Path) -> Places {
        let full = path.canonicalize().unwrap_or_else(|_| path.into());
        let parent = full.parent().filter(|p| p.file_name().is_some_and(|n| n == "instances"));
        // Messages name the directory as the user did.
        let tops = [Some(path), parent.and_then(Path::parent)].into_iter().flatten();
        Places(tops.flat_map(|top| [top.join("events"), top.join("formats"), top.into()]).collect())
    }

    /// The first file of a name, with its place.
    fn read(&self, name: &str) -> Result<Option<(Vec<u8>, Place)>, Error> {
        for path in self.0.iter().map(|place| place.join(name)) {
            let place = Place::file(&path.to_string_lossy());
            if let Some(text) = files::read(&path, files::MAX_TEXT)? {
                return Ok(Some((text, place)));
            }
        }
        Ok(None)
    }

    /// Files of formats with their systems, from the first place that has any.
    fn formats(&self) -> Vec<(String, PathBuf)> {
        let files = |place: &PathBuf| -> Vec<(String, PathBuf)> {
            let events = entries(place).into_iter().flat_map(|system| {
                let name = system.file_name().unwrap_or_default().to_string_lossy().into_owned();
                entries(&system).into_iter().map(move |event| (name.clone(), event.join("format")))
            });
            events.filter(|(_, file)| file.is_file()).collect()
        };
        self.0.iter().map(files).find(|files| !files.is_empty()).unwrap_or_default()
    }
}

/// Text and place of `header_page`.
fn header_page(places: &Places) -> Result<(String, Place), Error> {
    let Some((text, place)) = places.read("header_page")? else {
        let missing = places.0.first().map_or(PathBuf::new(), |place| place.join("header_page"));
        let message = "missing, so the pages cannot be read; copy it from the same tracefs";
        return Err(Error::at(Place::file(&missing.to_string_lossy()), message));
    };
    // Only tracefs itself has files that hold more than their size.
    if Path::new(&place.file).metadata().is_ok_and(|m| m.len() < text.len() as u64) {
        let message = "a live tracefs is not read in place, because that consumes its events: use \
                       `mmtwin record`, or copy the directory";
        return Err(Error::at(place, message));
    }
    if text.is_empty() {
        return Err(Error::at(place, format!("empty; {FIRST_READ}")));
    }
    Ok((String::from_utf8_lossy(&text).into_owned(), place))
}

/// Why copies of `header_page` are empty or cut.
const FIRST_READ: &str = "tracefs reports a size of 0 and returns this text with the first read only, so tar and \
                          some other tools copy nothing: copy it with `cp` or `cat`";

/// An error in a `header_page` that may have lost its end.
fn cut_header(place: &Place, error: Error) -> Error {
    match error {
        Error::Malformed { message, .. } => {
            Error::at(place.clone(), format!("{message}; if it is truncated: {FIRST_READ}"))
        }
        other => other,
    }
}

/// Size of a sub-buffer: of this buffer (6.8 and later), or the one that `header_page` describes.
fn page_size(path: &Path, header_page: &str, place: &Place) -> Result<usize, Error> {
    let own = path.join("buffer_subbuf_size_kb");
    let text = files::read(&own, files::MAX_TEXT)?.unwrap_or_default();
    let text = String::from_utf8_lossy(&text).trim().to_string();
    if !text.is_empty() {
        let size = text.parse::<usize>().ok().and_then(|kb| kb.checked_mul(1024));
        let message = format!("expected the size of a sub-buffer in KiB, not `{text}`");
        return size.ok_or_else(|| Error::at(Place::file(&own.to_string_lossy()), message));
    }
    described_size(header_page).ok_or_else(|| {
        cut_header(place, Error::at(place.clone(), "header_page has no field `data` with offset and size"))
    })
}

fn map_pages(path: &Path, page_size: usize, warnings: &mut Warnings) -> Result<Vec<CpuPages>, Error> {
    let mut pages = Vec::new();
    for (cpu, path) in raw_files(path) {
        let file = path.to_string_lossy().into_owned();
        let Some(opened) = files::open(&path)? else { continue };
        let Some(map) = map(&file, &opened)? else { continue };
        let whole = map.len() / page_size * page_size;
        if whole < map.len() {
            let message = "the last page is incomplete and skipped: the file is truncated";
            warnings.cut(|| Place::offset(&file, whole as u64), message);
        }
        pages.push(CpuPages { cpu, file, map, whole });
    }
    if let Some(first) = pages.first()
        && pages.iter().all(|p| p.whole == 0)
    {
        let message = format!("its {} bytes are less than one page of {page_size} bytes", first.map.len());
        return Err(Error::at(Place::file(&first.file), message));
    }
    if pages.is_empty() {
        let message = "no CPU has pages: every per_cpu/cpuN/trace_pipe_raw is empty";
        warnings.add(|| Place::file(&path.to_string_lossy()), message);
    }
    Ok(pages)
}

/// True if the first pages have possible lengths in big endian rather than in little endian.
fn is_big_endian(pages: &[CpuPages], layout: &PageLayout) -> bool {
    let possible = |big_endian: bool| {
        let fits = |page: &&CpuPages| {
            let Some(commit) = page.map.get(layout.commit..layout.commit + layout.commit_size) else { return false };
            let digits = commit.iter();
            let number = |n: u64, b: &u8| n << 8 | u64::from(*b);
            let commit = if big_endian { digits.fold(0, number) } else { digits.rev().fold(0, number) };
            (1..=(layout.page_size - layout.data) as u64).contains(&(commit & COMMIT_MASK))
        };
        pages.iter().filter(fits).count()
    };
    possible(true) > possible(false)
}

/// The trace clock and what the kernel counted as lost, as a trace.dat has them.
fn options(path: &Path) -> Result<Vec<Opt>, Error> {
    let read = |path: &Path| Ok::<_, Error>(files::read(path, files::MAX_TEXT)?.unwrap_or_default());
    let mut options = Vec::new();
    let clock = read(&path.join("trace_clock"))?;
    if !clock.is_empty() {
        options.push(Opt { id: id::TRACECLOCK, data: [&clock[..], b"\0"].concat() });
    }
    for (cpu, raw) in raw_files(path) {
        let stats = read(&raw.with_file_name("stats"))?;
        if !stats.is_empty() {
            options.push(Opt { id: id::CPUSTAT, data: [format!("CPU: {cpu}\n").as_bytes(), &stats, b"\0"].concat() });
        }
    }
    Ok(options)
}

/// A line `PID TGID`.
fn pair(line: &str) -> Option<(i32, i32)> {
    let (pid, tgid) = line.split_once(' ')?;
    Some((pid.parse().ok()?, tgid.trim().parse().ok()?))
}

/// Entries of a directory that are looked at: more than any kernel has CPUs, systems or events.
const ENTRIES: usize = 1 << 16;

/// Entries of a directory by name; none if there is no such directory.
fn entries(path: &Path) -> Vec<PathBuf> {
    let found = fs::read_dir(path).into_iter().flatten().take(ENTRIES).flatten();
    let mut entries: Vec<PathBuf> = found.map(|entry| entry.path()).collect();
    entries.sort();
    entries
}

#[cfg(test)]
mod tests;
