//! Setting an own instance up to record, and what of tracefs goes into the recording.

use super::addresses::{Addresses, prints_symbols};
use super::{Ways, name, parse_losses, stacks};
use crate::instance::Instance;
use crate::tracefs::Tracefs;
use crate::{Error, clock, events};
use mmtwin_event::manifest::{Losses, Tracing};
use mmtwin_trace::Place;
use mmtwin_trace::format::{Common, Formats};
use mmtwin_trace::recording::Writer;
use mmtwin_trace::ring::{PageLayout, described_size};
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

/// A ring buffer wakes the recorder when this part of it is full: the rest has to hold what comes until it runs.
const WAKE_AT_PERCENT: &str = "25";

/// Smallest and largest default size of a ring buffer per CPU, and of all together.
const SMALLEST: u64 = 1 << 20;
const LARGEST: u64 = 8 << 20;
const ALL: u64 = 1 << 30;

/// What will be traced.
pub struct Plan {
    tracefs: Tracefs,
    events: Vec<String>,
}

impl Plan {
    /// True if no events are chosen.
    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }
}

/// Chooses events. Changes nothing.
pub fn plan(tracefs: Tracefs, patterns: &[String]) -> Result<Plan, Error> {
    let path = tracefs.path().join("available_events");
    let text = fs::read_to_string(&path).map_err(|e| Error::io(name(&path), e))?;
    let available: Vec<String> = text.lines().map(String::from).collect();
    let events = match patterns {
        [] => events::default_events(&available),
        patterns => events::choose(patterns, &available)?,
    };
    Ok(Plan { tracefs, events })
}

/// Ring buffer per CPU in bytes: as the user wants, or half a percent of `memory` (kB) for all CPUs together.
pub fn buffer_size(wanted: Option<u64>, memory: Option<u64>, cpus: usize) -> u64 {
    wanted.unwrap_or_else(|| {
        let all = (memory.unwrap_or(0) * 1024 / 200).min(ALL);
        (all / cpus.max(1) as u64).clamp(SMALLEST, LARGEST)
    })
}

/// An instance with everything set, tracing still off.
pub struct Tracer {
    /// The instance.
    pub instance: Instance,
    /// Where tracefs is; it outlives the instance.
    pub tracefs: Tracefs,
    /// What the manifest says of it.
    pub manifest: Tracing,
    /// Layout of its pages.
    pub layout: PageLayout,
    /// Where every record has its pid.
    pub common: Common,
    /// Waiting on a buffer returns when a part of it is full. Without `buffer_percent` (before 5.0) it would return
    /// at the first event.
    pub wakes_at_fill: bool,
    /// Addresses that events hold; `None`: none of them does, or the kernel hides its symbols.
    pub addresses: Option<Addresses>,
    /// Ids of the records that are stacks, which are no events.
    pub stack_ids: Vec<u16>,
    /// `/proc/modules` when the symbols were written; `None`: they were not.
    modules: Option<String>,
    /// What the user may want to know.
    pub notes: Vec<String>,
}

impl Tracer {
    /// Makes the instance, sets it up, and writes the formats to the recording.
    pub fn create(plan: Plan, buffer: u64, ways: Ways, writer: &mut Writer) -> Result<Tracer, Error> {
        let Plan { tracefs, events } = plan;
        let at = tracefs.path();
        let (instance, removed) = Instance::create(at)?;
        let mut notes: Vec<String> =
            removed.iter().map(|n| format!("removed the tracing instance {n} of an earlier recording")).collect();
        instance.set("trace_clock", clock::TRACE_CLOCK)?;
        instance.set("buffer_size_kb", &(buffer / 1024).max(1).to_string())?;
        let wakes_at_fill = instance.set("buffer_percent", WAKE_AT_PERCENT).is_ok();
        let mut enabled = Vec::new();
        for event in &events {
            let set = format!("events/{}/enable", event.replacen(':', "/", 1));
            match instance.set(&set, "1") {
                Ok(()) => enabled.push(event.clone()),
                Err(error) => notes.push(format!("{event} is not recorded: {error}")),
            }
        }
        let (stacks, said) = if ways.stacks { stacks::enable(&instance, &enabled) } else { Default::default() };
        notes.extend(said);
        let (big_endian, long_size) = (cfg!(target_endian = "big"), size_of::<usize>() as u8);
        let header_page = header(&at.join("events/header_page"))?;
        let place = Place::file(&name(&at.join("events/header_page")));
        let sub_buffer = sub_buffer(&instance, &header_page);
        let layout = PageLayout::parse(&header_page, sub_buffer as usize, big_endian, &place)?;
        let mut formats = Formats::new(big_endian, long_size);
        let has_symbols = write_formats(at, &enabled, &header_page, writer, &mut formats)? || !stacks.is_empty();
        let functions = if has_symbols { functions() } else { None };
        if let (Some(text), false) = (&functions, ways.symbols_last) {
            writer.text("kallsyms", text.as_bytes())?;
        }
        let addresses = functions.map(|text| Addresses::new(&formats, &text));
        // What the recording has no symbols of at its end has to be looked up then.
        let modules = if ways.symbols_last { None } else { loaded_modules() };
        let common = formats.common();
        let stack_ids = formats.iter().filter(|format| format.is_stack()).map(|format| format.id).collect();
        let manifest = Tracing {
            sub_buffer,
            buffer,
            big_endian,
            long_size,
            cpus: cpus(instance.path())?,
            events: enabled,
            stacks,
        };
        Ok(Tracer { instance, tracefs, manifest, layout, common, wakes_at_fill, addresses, modules, stack_ids, notes })
    }

    /// The kernel's functions, if the recording does not have them or they may be others than at the start.
    pub fn newer_functions(&self) -> Option<String> {
        if self.modules.is_some() && loaded_modules() == self.modules { None } else { functions() }
    }

    /// What the kernel lost, by CPU.
    pub fn losses(&self) -> Result<Vec<Losses>, Error> {
        let stats = |&cpu: &u32| Ok(parse_losses(cpu, &self.instance.get(&format!("per_cpu/cpu{cpu}/stats"))?));
        self.manifest.cpus.iter().map(stats).collect()
    }
}

/// Size of a sub-buffer: of the instance (6.8 and later), or the page that `header_page` describes.
pub(crate) fn sub_buffer(instance: &Instance, header: &str) -> u64 {
    let own = instance.get("buffer_subbuf_size_kb").ok().and_then(|t| t.trim().parse::<u64>().ok());
    own.map(|kb| kb * 1024).or(described_size(header).map(|size| size as u64)).unwrap_or(4096)
}

/// CPUs that have a buffer, ascending.
pub(crate) fn cpus(instance: &Path) -> Result<Vec<u32>, Error> {
    let path = instance.join("per_cpu");
    let fail = |e| Error::io(name(&path), e);
    let mut cpus = Vec::new();
    for entry in fs::read_dir(&path).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        cpus.extend(entry.file_name().to_str().and_then(|n| n.strip_prefix("cpu")?.parse::<u32>().ok()));
    }
    cpus.sort_unstable();
    Ok(cpus)
}

/// Writes what is needed to read the pages: headers, formats of the enabled events and of tracing's own, and strings.
/// Returns whether an event prints symbols.
fn write_formats(
    tracefs: &Path,
    enabled: &[String],
    header_page: &str,
    writer: &mut Writer,
    formats: &mut Formats,
) -> Result<bool, Error> {
    writer.text("header_page", header_page.as_bytes())?;
    if let Ok(text) = header(&tracefs.join("events/header_event")) {
        writer.text("header_event", text.as_bytes())?;
    }
    let own = fs::read_dir(tracefs.join("events/ftrace")).into_iter().flatten().flatten();
    let mut own: Vec<String> = own.map(|e| format!("ftrace:{}", e.file_name().to_string_lossy())).collect();
    own.sort();
    let mut symbols = false;
    for (event, is_enabled) in enabled.iter().map(|e| (e, true)).chain(own.iter().map(|e| (e, false))) {
        let Some((system, leaf)) = event.split_once(':') else { continue };
        let path = tracefs.join("events").join(system).join(leaf).join("format");
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            // The directory `ftrace` holds plain files too.
            Err(_) if !is_enabled => continue,
            Err(e) => return Err(Error::io(name(&path), e)),
        };
        writer.format(system, leaf, text.as_bytes())?;
        formats.add(system, &text, &Place::file(&name(&path)))?;
        symbols |= is_enabled && prints_symbols(&text);
    }
    if let Some(text) = fs::read(tracefs.join("printk_formats")).ok().filter(|t| !t.is_empty()) {
        writer.text("printk_formats", &text)?;
    }
    Ok(symbols)
}

/// Names and places of modules: what changes the kernel's functions.
fn loaded_modules() -> Option<String> {
    let text = fs::read_to_string("/proc/modules").ok()?;
    // The counts of users in between change at any time.
    let line =
        |line: &str| format!("{:?} {:?}\n", line.split(' ').next(), line.rsplit(' ').find(|w| w.starts_with("0x")));
    Some(text.lines().map(line).collect())
}

/// Functions of `/proc/kallsyms`; `None` if the kernel hides addresses from this user.
pub fn functions() -> Option<String> {
    let text = fs::read("/proc/kallsyms").ok()?;
    let text = String::from_utf8_lossy(&text);
    let mut functions = String::with_capacity(text.len() / 2);
    let mut visible = false;
    for line in text.split_inclusive('\n') {
        let mut words = line.split(' ');
        if let (Some(address), Some("t" | "T" | "w" | "W")) = (words.next(), words.next()) {
            visible |= address.bytes().any(|b| b != b'0');
            functions.push_str(line);
        }
    }
    visible.then_some(functions)
}

/// The text of a header file. The kernel gives it with the first read only, whatever fits; the standard library's
/// first read is a small one.
pub(crate) fn header(path: &Path) -> Result<String, Error> {
    let mut text = vec![0; 16 << 10];
    let read = File::open(path).and_then(|mut file| file.read(&mut text));
    text.truncate(read.map_err(|e| Error::io(name(path), e))?);
    Ok(String::from_utf8_lossy(&text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_follow_memory() {
        let gib = |n: u64| Some(n << 20);
        assert_eq!(buffer_size(Some(12345), gib(64), 2), 12345);
        assert_eq!(buffer_size(None, gib(24), 2), LARGEST);
        assert_eq!(buffer_size(None, gib(2), 4), (2 << 30) / 200 / 4);
        assert_eq!(buffer_size(None, gib(1024), 448), ALL / 448);
        assert_eq!(buffer_size(None, None, 4), SMALLEST);
    }
}
