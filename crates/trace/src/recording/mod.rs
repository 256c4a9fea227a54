//! mmtwin's own recordings: a directory of plain ring-buffer pages, format texts and counters.
//!
//! [`Writer`] writes one, [`Recording`] reads one, also while it grows and after its writer was killed: what is
//! incomplete at the end of a file is omitted with a warning. [`EventWriter`] writes one from typed events. `docs/reference/formats.md` describes the files.

mod counters_read;
mod counters_write;
mod create;
mod events;
mod origin;
pub(crate) mod packed;
mod sizes;

pub use counters_read::{CounterStream, Counters, SampledRow};
pub use counters_write::CounterWriter;
pub use create::{PageFiles, Writer};
pub use events::EventWriter;
pub use packed::Packer;
pub use sizes::sizes;

use crate::files;
use crate::format::{self, Formats, symbols};
use crate::map::{Mapped, map};
use crate::ring::{CpuStream, PageLayout, Pages, SlicePages, TimeMap, merge};
use crate::{Error, Outcome, Place, Warnings};
use mmtwin_event::container::Containers;
use mmtwin_event::manifest::{End, Manifest, Node, Run, SCHEMA_VERSION, State, TaskLine, Tracing};
use mmtwin_event::results::Results;
use mmtwin_event::{Sink, Source, Task};
use origin::Texts;
use packed::PackedPages;
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Most CPUs that kernels are built for.
const MAX_CPUS: usize = 8192;
/// Names of tasks that are kept; some 150 bytes each.
const MAX_TASKS: usize = 1 << 20;
/// Longest line of `tasks.jsonl`: the path of a cgroup has at most some KiB.
const MAX_TASK_LINE: u64 = 64 << 10;
/// Entries of a directory of a recording that are looked at.
const MAX_ENTRIES: usize = 1 << 17;
/// Switch of the multi-generational LRU.
const LRU_GEN: &str = "/sys/kernel/mm/lru_gen/enabled";
/// Dirty memory at which writers wait, if it is not a percentage; in a scenario, which the twin has instead of files, too.
const DIRTY_BYTES: [&str; 2] = ["/proc/sys/vm/dirty_bytes", "/kernel/sysctl/vm.dirty_bytes"];

/// An opened recording.
pub struct Recording {
    /// What it is.
    pub manifest: Manifest,
    /// How it ended; `None`: it was cut off, or is still being written.
    pub end: Option<End>,
    /// What is not part of the measurement.
    pub run: Option<Run>,
    /// What the machine held when the workload began; `None`: that was not recorded.
    pub state: Option<State>,
    /// What the workload achieved; `None`: no scenario was run, or its run was cut off.
    pub results: Option<Results>,
    /// Formats of its events. Empty without event tracing.
    pub formats: Arc<Formats>,
    /// What was wrong and stepped over while opening.
    pub warnings: Warnings,
    name: String,
    kallsyms: Arc<Vec<(u64, String)>>,
    layout: Option<PageLayout>,
    texts: Option<Texts>,
    pages: Vec<CpuPages>,
    counters: Vec<CounterFile>,
    tasks: Vec<TaskLine>,
    /// CPUs whose pages are not all there.
    cut: Vec<u32>,
}

struct CpuPages {
    cpu: u32,
    file: String,
    map: Mapped,
    /// Bytes of whole sub-buffers, or of whole frames of them.
    whole: usize,
    packed: bool,
}

struct CounterFile {
    source: String,
    file: String,
    map: Mapped,
}

impl Recording {
    /// True for a directory that holds a recording.
    pub fn is_one(path: &Path) -> bool {
        path.join("manifest.json").is_file()
    }

    /// Opens a recording.
    pub fn open(path: &Path) -> Result<Recording, Error> {
        let mut warnings = Warnings::default();
        let mut cut = Vec::new();
        let manifest: Manifest = json(&path.join("manifest.json"))?.ok_or_else(|| Error::Unknown {
            file: path.to_string_lossy().into_owned(),
            message: "a recording has a manifest.json".into(),
        })?;
        if manifest.schema_version > SCHEMA_VERSION {
            let (place, version) = (Place::file(&path.to_string_lossy()), manifest.schema_version);
            let message =
                format!("written by a newer mmtwin (schema {version}; this one reads up to {SCHEMA_VERSION})");
            return Err(Error::at(place, message));
        }
        let end: Option<End> = optional(&path.join("end.json"), &mut warnings);
        if let Some(end) = &end {
            cut = sizes::check(path, manifest.tracing.as_ref(), end, &mut warnings)?;
        } else {
            let message = "no end.json: the recording was truncated, or is still being written";
            warnings.cut(|| Place::file(&path.to_string_lossy()), message);
        }
        if let Some(why) = end.as_ref().and_then(|end: &End| end.stopped.as_ref()) {
            let message = format!("the recording stopped before the workload ended: {why}");
            warnings.add(|| Place::file(&path.to_string_lossy()), &message);
        }
        let (mut layout, mut texts, mut pages, mut kallsyms) = Default::default();
        let mut formats = Formats::new(false, 8);
        if let Some(tracing) = &manifest.tracing {
            let read = Texts::read(&path.join("formats"))?;
            let place = Place::file(&path.join("formats/header_page").to_string_lossy());
            if !matches!(tracing.long_size, 4 | 8) {
                let message = format!("tracing.long_size is {}; a `long` has 4 or 8 bytes", tracing.long_size);
                return Err(Error::at(Place::file(&path.join("manifest.json").to_string_lossy()), message));
            }
            let size = usize::try_from(tracing.sub_buffer).unwrap_or(usize::MAX);
            layout = Some(PageLayout::parse(&read.header_page, size, tracing.big_endian, &place)?);
            kallsyms = Arc::new(symbols::parse_kallsyms(read.kallsyms.as_deref().unwrap_or_default()));
            formats = read_formats(path, tracing, &mut warnings)?;
            formats.set_symbols(kallsyms.clone());
            formats.set_printk(symbols::parse_printk(&read.printk));
            pages = map_pages(path, tracing, &mut warnings, &mut cut)?;
            texts = Some(read);
        }
        let (counters, tasks) =
            (map_counters(path, &mut warnings)?, read_tasks(&path.join("tasks.jsonl"), &mut warnings)?);
        let name = path.to_string_lossy().into_owned();
        let run = optional(&path.join("run.json"), &mut warnings);
        let state = optional(&path.join("state.json"), &mut warnings);
        let results = optional(&path.join("results.json"), &mut warnings);
        Ok(Recording {
            manifest,
            end,
            run,
            state,
            results,
            formats: Arc::new(formats),
            warnings,
            name,
            kallsyms,
            layout,
            texts,
            pages,
            counters,
            tasks,
            cut,
        })
    }

    /// What is known of it before its first event.
    pub fn source(&self) -> Source {
        let evidence = &self.manifest.evidence;
        Source {
            name: self.name.clone(),
            arm: self.manifest.arm.clone(),
            kernel: Some(evidence.uname.release.clone()),
            cpus: evidence.cpus.len() as u32,
            nodes: evidence.nodes.len() as u32,
            cpu_nodes: cpu_nodes(&evidence.nodes),
            clock: Some(self.manifest.clock.clone()),
            times: self.end.as_ref().and_then(|e| e.times),
            enabled: Some(self.manifest.tracing.as_ref().map(|t| t.events.clone()).unwrap_or_default()),
            lru_gen: evidence.files.get(LRU_GEN).is_some_and(|mask| is_on(mask)),
            dirty_bytes: self.dirty_bytes(),
            kallsyms: self.kallsyms.clone(),
            stack: self.formats.stack_record(),
            stacks: self.manifest.tracing.as_ref().map(|tracing| tracing.stacks.clone()).unwrap_or_default(),
            containers: Arc::new(self.containers()),
        }
    }

    fn dirty_bytes(&self) -> Option<u64> {
        let [file, key] = DIRTY_BYTES;
        let counted = self.manifest.evidence.files.get(file).and_then(|text| text.trim().parse().ok());
        let set = || self.manifest.scenario.as_ref()?.pointer(key)?.as_u64();
        counted.or_else(set).filter(|bytes| *bytes > 0)
    }

    /// Names of containers, those that were known at the start among them.
    fn containers(&self) -> Containers {
        let mut containers = self.manifest.counters.containers.clone();
        containers.0.extend(self.end.iter().flat_map(|end| end.containers.0.clone()));
        containers
    }

    /// Layout of the pages; `None` without event tracing.
    pub fn layout(&self) -> Option<&PageLayout> {
        self.layout.as_ref()
    }

    /// Whole sub-buffers of every CPU that has any, by CPU.
    pub fn streams<'a>(&'a self) -> Vec<CpuStream<'a>> {
        let Some(layout) = &self.layout else { return Vec::new() };
        let stream = |p: &'a CpuPages| {
            let (bytes, size) = (&p.map[..p.whole], layout.page_size);
            let pages: Box<dyn Pages<'a> + Send + 'a> = match p.packed {
                true => Box::new(PackedPages::new(&p.file, bytes, size)),
                false => Box::new(SlicePages::new(&p.file, 0, bytes, size)),
            };
            CpuStream { cpu: p.cpu, pages }
        };
        self.pages.iter().map(stream).collect()
    }

    /// Counters in time order. What is wrong with a file is in `warnings`, or later in the iterator's own.
    pub fn counters(&self, warnings: &mut Warnings) -> Counters<'_> {
        let mut streams = Vec::new();
        for f in &self.counters {
            match CounterStream::open(&f.source, &f.file, &f.map, self.end.is_some(), warnings) {
                Ok(stream) => streams.extend(stream),
                Err(error) => warnings.cut_error(&f.file, error),
            }
        }
        Counters::new(streams)
    }

    /// What is known of tasks, in the order in which it was learned.
    pub fn tasks(&self) -> &[TaskLine] {
        &self.tasks
    }

    /// Delivers tasks, then counters, then events and losses to `sink`, between its `start` and `finish`.
    pub fn read(&self, sink: &mut dyn Sink, outcome: &mut Outcome) -> Result<(), Error> {
        self.read_showing(sink, outcome, &mut |_| {})
    }

    /// The same; `progress` is told the number of events so far, now and then.
    pub(crate) fn read_showing(
        &self,
        sink: &mut dyn Sink,
        outcome: &mut Outcome,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), Error> {
        outcome.warnings.append(self.warnings.clone());
        for task in &self.tasks {
            let (comm, cgroup) = (task.comm.as_bytes(), task.cgroup.as_deref());
            sink.task(&Task { pid: task.pid, tgid: task.tgid, comm, cgroup });
        }
        let mut counters = self.counters(&mut outcome.warnings);
        for row in counters.by_ref() {
            sink.counters(&row.as_row());
        }
        outcome.warnings.append(counters.into_warnings());
        if let Some(layout) = &self.layout {
            merge::deliver(self.streams(), layout, &self.formats, &TimeMap::default(), sink, outcome, progress)?;
        }
        self.losses(sink, outcome);
        Ok(())
    }

    /// The kernel's own count of losses replaces what the pages told: a mark in a page often lacks the
    /// number, and what was lost behind the last page read has no mark.
    fn losses(&self, sink: &mut dyn Sink, outcome: &mut Outcome) {
        let ended = self.end.as_ref().map_or(u64::MAX, |end| end.end);
        for losses in self.end.iter().flat_map(|end| &end.losses) {
            let (known, gaps) = outcome.lost.get(&losses.cpu).copied().unwrap_or_default();
            let unmarked = losses.total().saturating_sub(known);
            if unmarked > 0 {
                sink.lost(losses.cpu, Some(unmarked), ended);
            }
            if unmarked > 0 || gaps > 0 {
                outcome.lost.insert(losses.cpu, (known.saturating_add(unmarked), 0));
            }
        }
        // What is missing of a CPU's pages was lost before the recording ended, whenever that was.
        for &cpu in self.cut_cpus() {
            sink.lost(cpu, None, ended);
            outcome.add_lost(cpu, None);
        }
    }
}

/// Node of every CPU. Damaged lists are not followed further than kernels have CPUs.
fn cpu_nodes(nodes: &[Node]) -> Vec<u32> {
    let pairs = || nodes.iter().flat_map(|node| node.cpus.iter().map(|&cpu| (cpu as usize, node.id)));
    let mut of = vec![0; pairs().map(|(cpu, _)| cpu + 1).max().unwrap_or(0).min(MAX_CPUS)];
    pairs().for_each(|(cpu, node)| of.get_mut(cpu).map_or((), |of| *of = node));
    of
}

/// The first bit of the mask is the switch, the others are parts of it.
fn is_on(mask: &str) -> bool {
    u32::from_str_radix(mask.trim().trim_start_matches("0x"), 16).is_ok_and(|mask| mask & 1 == 1)
}

fn read_formats(path: &Path, tracing: &Tracing, warnings: &mut Warnings) -> Result<Formats, Error> {
    let mut formats = Formats::new(tracing.big_endian, tracing.long_size);
    for system in entries(&path.join("formats"))?.into_iter().filter(|p| p.is_dir()) {
        let events = entries(&system)?.into_iter().map(|event| (leaf(&system), event));
        format::compile(&mut formats, events, warnings)?;
    }
    Ok(formats)
}

/// Maps the pages of every CPU. Those that lack something are added to `cut`.
fn map_pages(
    path: &Path,
    tracing: &Tracing,
    warnings: &mut Warnings,
    cut: &mut Vec<u32>,
) -> Result<Vec<CpuPages>, Error> {
    let mut pages = Vec::new();
    if tracing.cpus.len() > MAX_CPUS {
        let message = format!("tracing.cpus lists {} CPUs; kernels have at most {MAX_CPUS}", tracing.cpus.len());
        return Err(Error::at(Place::file(&path.join("manifest.json").to_string_lossy()), message));
    }
    let cpus: BTreeSet<u32> = tracing.cpus.iter().copied().collect();
    for cpu in cpus {
        if cpu as usize >= MAX_CPUS {
            let message = format!("the manifest lists a CPU from {MAX_CPUS} on, which no kernel has; it is skipped");
            warnings.cut(|| Place::file(&path.join("manifest.json").to_string_lossy()), &message);
            continue;
        }
        let mut lacks = || {
            if !cut.contains(&cpu) {
                cut.push(cpu);
            }
        };
        let plain = path.join("cpu").join(format!("{cpu}.pages"));
        let compressed = path.join("cpu").join(format!("{cpu}{}", packed::SUFFIX));
        let packed = !plain.exists() && compressed.exists();
        let path = if packed { compressed } else { plain };
        let file = path.to_string_lossy().into_owned();
        let opened = match files::open(&path) {
            Ok(Some(opened)) => opened,
            Ok(None) => {
                warnings.cut(|| Place::file(&file), "the manifest lists a CPU that has no file of pages");
                lacks();
                continue;
            }
            Err(error) => {
                warnings.cut_error(&file, error);
                lacks();
                continue;
            }
        };
        let Some(map) = map(&file, &opened)? else { continue };
        let size = usize::try_from(tracing.sub_buffer).unwrap_or(usize::MAX).max(1);
        let whole = if packed { packed::whole(&map, size) } else { map.len() / size * size };
        if whole != map.len() {
            let what = if packed { "frame of pages" } else { "page" };
            let message = format!("the last {what} is incomplete and skipped: the recording was truncated");
            warnings.cut(|| Place::offset(&file, whole as u64), &message);
            lacks();
        }
        pages.push(CpuPages { cpu, file, map, whole, packed });
    }
    // What nothing lists is not read in silence.
    for path in entries(&path.join("cpu"))? {
        let leaf = leaf(&path);
        let names = |cpu: &u32| leaf == format!("{cpu}.pages") || leaf == format!("{cpu}{}", packed::SUFFIX);
        if !tracing.cpus.iter().any(names) {
            let message = "a file that is not that of a CPU of the manifest is skipped";
            warnings.add(|| Place::file(&path.to_string_lossy()), message);
        }
    }
    Ok(pages)
}

/// Files `SOURCE.arrows`, `SOURCE.1.arrows` ... by source and number.
fn map_counters(path: &Path, warnings: &mut Warnings) -> Result<Vec<CounterFile>, Error> {
    let mut found = Vec::new();
    for path in entries(&path.join("counters"))? {
        let leaf = leaf(&path);
        let Some(stem) = leaf.strip_suffix(".arrows") else { continue };
        let (source, number) = match stem.rsplit_once('.').map(|(s, n)| (s, n.parse::<u32>())) {
            Some((source, Ok(number))) => (source, number),
            _ => (stem, 0),
        };
        let file = path.to_string_lossy().into_owned();
        let opened = match files::open(&path) {
            Ok(Some(opened)) => opened,
            Ok(None) => continue,
            Err(error) => {
                warnings.cut_error(&file, error);
                continue;
            }
        };
        if let Some(map) = map(&file, &opened)? {
            found.push((number, CounterFile { source: source.to_string(), file, map }));
        }
    }
    found.sort_by(|(n, a), (m, b)| (&a.source, n).cmp(&(&b.source, m)));
    Ok(found.into_iter().map(|(_, file)| file).collect())
}

fn read_tasks(path: &Path, warnings: &mut Warnings) -> Result<Vec<TaskLine>, Error> {
    let file = path.to_string_lossy();
    let Some(opened) = files::open(path)? else { return Ok(Vec::new()) };
    let mut lines = BufReader::new(opened);
    let (mut tasks, mut line) = (Vec::new(), Vec::new());
    for number in 1.. {
        line.clear();
        (&mut lines).take(MAX_TASK_LINE).read_until(b'\n', &mut line).map_err(|e| Error::io(&file, e))?;
        if line.is_empty() {
            break;
        }
        let place = || Place::line(&file, number);
        if !line.ends_with(b"\n") {
            if line.len() as u64 == MAX_TASK_LINE {
                warnings.cut(place, "a line longer than 64 KiB; it and the rest are skipped");
            } else {
                // Without its newline even a line that parses may be cut, in the middle of a number for example.
                warnings.cut(place, "the last line is incomplete and skipped: the recording was truncated");
            }
            break;
        }
        match serde_json::from_slice(&line) {
            Ok(task) if tasks.len() < MAX_TASKS => tasks.push(task),
            Ok(_) => warnings.add(place, "names of tasks beyond the first 1,048,576 are skipped"),
            Err(_) => warnings.add(place, "a line is not a task and is skipped"),
        }
    }
    Ok(tasks)
}

/// Entries of a directory, sorted; none if it does not exist.
pub(crate) fn entries(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let fail = |e| Error::io(&path.to_string_lossy(), e);
    let list = match fs::read_dir(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(fail)?,
    };
    let paths = list.take(MAX_ENTRIES + 1).map(|entry| Ok(entry.map_err(fail)?.path()));
    let mut entries = paths.collect::<Result<Vec<_>, Error>>()?;
    if entries.len() > MAX_ENTRIES {
        let message = format!("more than {MAX_ENTRIES} entries, which no recording has");
        return Err(Error::at(Place::file(&path.to_string_lossy()), message));
    }
    entries.sort();
    Ok(entries)
}

pub(crate) fn leaf(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Bytes of a file; `None` if there is none.
fn text(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    files::read(path, files::MAX_TEXT)
}

/// A JSON file; `None` if there is none.
fn json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, Error> {
    let Some(bytes) = text(path)? else { return Ok(None) };
    let parsed = serde_json::from_slice(&bytes);
    parsed.map(Some).map_err(|e| Error::at(Place::line(&path.to_string_lossy(), e.line() as u64), e.to_string()))
}

/// A JSON file that the rest can be read without.
fn optional<T: DeserializeOwned>(path: &Path, warnings: &mut Warnings) -> Option<T> {
    json(path).unwrap_or_else(|error| {
        warnings.cut_error(&path.to_string_lossy(), error);
        None
    })
}

#[cfg(test)]
mod cut_tests;
#[cfg(test)]
mod packed_tests;
#[cfg(test)]
mod tests;
