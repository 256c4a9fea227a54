//! A stream of typed events and counters as a recording: what a kernel of an era would have left in its ring buffers.
//!
//! The twin's recordings are made here, in the pages and formats of the modelled kernel, so that the reader that is
//! tested on real kernels reads the twin too. Files only grow, as those of a live recording.

use super::create::{PageFiles, Writer};
use crate::functions::Functions;
use crate::ring::PageLayout;
use crate::ring::encode::PageWriter;
use crate::{Error, Place};
use mmtwin_event::counters::Row;
use mmtwin_event::era::{self, Common, Definition, Era, Values, header_event, header_page};
use mmtwin_event::manifest::{End, Manifest, Run, TaskLine, Tracing};
use mmtwin_event::results::Results;
use mmtwin_event::{CounterRow, Event, Fields, Kind, Sink, Task};
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// Bytes of a ring-buffer page.
const PAGE: usize = 4096;
/// Most files of pages that are open all the time.
const MOST_OPEN: usize = 256;
/// First id for formats; the kernel's own tracers have those below.
const FIRST_ID: u16 = 100;

/// Writes what it is given into a recording.
pub struct EventWriter {
    writer: Writer,
    /// By kind: number and layout of the events that are recorded.
    formats: Vec<Option<(u16, &'static Definition)>>,
    functions: Functions,
    page_files: PageFiles,
    cpus: Vec<Cpu>,
    /// Counters of one moment, before they are written.
    source: String,
    at: u64,
    rows: Vec<Row>,
    failed: Option<Error>,
}

struct Cpu {
    number: u32,
    pages: PageWriter,
    /// `None`: opened when something is written, for there are more CPUs than a process may have files.
    file: Option<File>,
    name: String,
    bytes: u64,
}

/// Appends a page to the file of a CPU.
fn append(file: Option<&File>, files: &PageFiles, (cpu, name): (u32, &str), page: &[u8]) -> Result<(), Error> {
    let fail = |e| Error::io(name, e);
    match file {
        Some(mut file) => file.write_all(page).map_err(fail),
        None => files.append(cpu)?.write_all(page).map_err(fail),
    }
}

impl EventWriter {
    /// Makes a recording at `path` of the events of these kinds as kernels of an era write them. `manifest` says
    /// everything but how events were traced. Kinds that the era does not have are not recorded. With `force` a
    /// recording that is there is replaced.
    pub fn create(
        path: &Path,
        force: bool,
        mut manifest: Manifest,
        era: Era,
        kinds: impl IntoIterator<Item = Kind>,
    ) -> Result<EventWriter, Error> {
        let mut writer = Writer::create(path, force)?;
        writer.text("header_page", header_page(era, 8, PAGE as u32).as_bytes())?;
        writer.text("header_event", header_event(era).as_bytes())?;
        let mut formats = vec![None; Kind::COUNT];
        let mut events = Vec::new();
        for (kind, id) in kinds.into_iter().zip(FIRST_ID..) {
            let Some(definition) = era::of_kind(era, kind) else { continue };
            writer.format(definition.system, definition.name, definition.format_text(id).as_bytes())?;
            events.push(format!("{}:{}", definition.system, definition.name));
            formats[kind as usize] = Some((id, definition));
        }
        events.sort();
        let cpus = manifest.evidence.cpus.clone();
        let layout = PageLayout::little_endian_64(PAGE);
        let page_files = writer.page_files(false)?;
        let open = |&number: &u32| -> Result<Cpu, Error> {
            let name = path.join("cpu").join(format!("{number}.pages")).to_string_lossy().into_owned();
            let file = Some(page_files.create(number)?).filter(|_| cpus.len() <= MOST_OPEN);
            Ok(Cpu { number, pages: PageWriter::new(layout), file, name, bytes: 0 })
        };
        let files = cpus.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let buffer = PAGE as u64;
        manifest.tracing =
            Some(Tracing { sub_buffer: buffer, buffer, long_size: 8, cpus, events, ..Tracing::default() });
        writer.manifest(&manifest)?;
        let (functions, source, rows) = Default::default();
        Ok(EventWriter { writer, formats, functions, page_files, cpus: files, source, at: 0, rows, failed: None })
    }

    /// Writes `run.json`.
    pub fn run(&mut self, run: &Run) -> Result<(), Error> {
        self.writer.run(run)
    }

    /// Writes `results.json`.
    pub fn results(&mut self, results: &Results) -> Result<(), Error> {
        self.writer.results(results)
    }

    /// Writes what is left and `end.json`. An error of anything that was given before comes here.
    pub fn close(mut self, mut end: End) -> Result<End, Error> {
        self.write_counters();
        if let Some(error) = self.failed {
            return Err(error);
        }
        for cpu in &mut self.cpus {
            while let Some(page) = cpu.pages.flush() {
                cpu.bytes += page.len() as u64;
                append(cpu.file.as_ref(), &self.page_files, (cpu.number, &cpu.name), page)?;
            }
        }
        if self.functions.count() > 0 {
            self.writer.text("kallsyms", &self.functions.kallsyms())?;
        }
        end.cost.page_bytes = self.cpus.iter().map(|cpu| cpu.bytes).sum();
        self.writer.finish(end)
    }

    fn write_event(&mut self, event: &Event<'_>) -> Result<(), Error> {
        let place = || Place::file(event.name);
        let (Some((id, definition)), Fields::Text(slots)) = (self.formats[event.kind as usize], event.fields) else {
            return Ok(());
        };
        let common = Common { pid: event.pid, flags: event.flags, preempt_count: event.preempt_count };
        let functions = &mut self.functions;
        let record = definition
            .encode(id, common, Values { slots, raw: event.raw }, &mut |printed| functions.address(printed))
            .map_err(|gap| Error::at(place(), gap.to_string()))?;
        let cpu = self.cpus.get_mut(event.cpu as usize);
        let cpu =
            cpu.ok_or_else(|| Error::at(place(), format!("an event of CPU {}, which does not exist", event.cpu)))?;
        match cpu.pages.push(event.ts, &record) {
            Ok(None) => Ok(()),
            Ok(Some(page)) => {
                cpu.bytes += page.len() as u64;
                append(cpu.file.as_ref(), &self.page_files, (cpu.number, &cpu.name), page)
            }
            Err(too_long) => Err(Error::at(place(), too_long.to_string())),
        }
    }

    fn write_counters(&mut self) {
        let rows = std::mem::take(&mut self.rows);
        let result = self.writer.counters(&self.source, self.at, &rows);
        self.keep(result);
    }

    fn keep(&mut self, result: Result<(), Error>) {
        if let Err(error) = result {
            self.failed.get_or_insert(error);
        }
    }
}

impl Sink for EventWriter {
    fn task(&mut self, task: &Task<'_>) {
        let comm = String::from_utf8_lossy(task.comm).into_owned();
        let line = TaskLine { at: 0, pid: task.pid, tgid: task.tgid, comm, cgroup: task.cgroup.map(str::to_string) };
        let result = self.writer.tasks(&[line]);
        self.keep(result);
    }

    fn event(&mut self, event: &Event<'_>) {
        let result = self.write_event(event);
        self.keep(result);
    }

    fn counters(&mut self, row: &CounterRow<'_>) {
        if self.source != row.source || self.at != row.at {
            self.write_counters();
            (self.source, self.at) = (row.source.to_string(), row.at);
        }
        self.rows.push(Row { key: row.key.into(), names: row.names.to_vec(), values: row.values.to_vec() });
    }
}

#[cfg(test)]
mod tests {
    use super::super::Recording;
    use super::*;
    use crate::Outcome;
    use mmtwin_event::value::{Bytes, Gfp};
    use mmtwin_event::vocabulary::{MmVmscanWakeupKswapd, PurgeVmapAreaLazy};
    use mmtwin_event::{Slots, Typed};

    fn give<T: Typed>(sink: &mut dyn Sink, ts: u64, cpu: u32, event: &T, raw: &[u8]) {
        let mut slots = Slots::default();
        event.write(&mut slots);
        let name = T::KIND.schema().unwrap().name;
        let fields = Fields::Text(&slots);
        let (kind, id) = (T::KIND, T::KIND as u32);
        let (pid, tgid, flags, preempt_count) = (7, 7, 0, 0);
        sink.event(&Event { ts, cpu, pid, tgid, flags, preempt_count, kind, id, comm: b"", name, raw, fields });
    }

    #[derive(Default)]
    struct Seen(Vec<String>);
    impl Sink for Seen {
        fn event(&mut self, event: &Event<'_>) {
            self.0.push(match event.kind {
                Kind::PurgeVmapAreaLazy => format!("{} {:?}", event.ts, event.typed::<PurgeVmapAreaLazy>()),
                Kind::MmVmscanWakeupKswapd => {
                    let wakeup: MmVmscanWakeupKswapd = event.typed();
                    format!(
                        "{} cpu {} order {} gfp {:#x}",
                        event.ts,
                        event.cpu,
                        wakeup.order,
                        wakeup.gfp_flags.unwrap().0
                    )
                }
                kind => format!("{kind:?}"),
            });
        }
        fn counters(&mut self, row: &CounterRow<'_>) {
            self.0.push(format!("{} {}/{} {:?}", row.at, row.source, row.key, row.values));
        }
        fn task(&mut self, task: &Task<'_>) {
            self.0.push(format!("{} is {}", task.pid, String::from_utf8_lossy(task.comm)));
        }
    }

    fn manifest() -> Manifest {
        let mut manifest =
            Manifest { schema_version: 1, arm: "twin".into(), clock: "mono".into(), ..Manifest::default() };
        manifest.evidence.cpus = vec![0, 1];
        manifest
    }

    #[test]
    fn what_is_given_is_read_again() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("t.mmt");
        let kinds = [Kind::PurgeVmapAreaLazy, Kind::MmVmscanWakeupKswapd];
        let mut writer = EventWriter::create(&path, false, manifest(), Era::V6_12, kinds).unwrap();
        writer.task(&Task { pid: 7, tgid: 7, comm: b"kworker", cgroup: None });
        let gfp = Gfp(Bytes { start: 0, len: 10 }.to_slot());
        let wakeup = MmVmscanWakeupKswapd { nid: 1, order: 3, zid: Some(2), gfp_flags: Some(gfp) };
        give(&mut writer, 40, 1, &wakeup, b"GFP_KERNEL");
        let names = ["numa_hit".to_string()];
        for (key, value) in [("0", 3), ("1", 4)] {
            writer.counters(&CounterRow { source: "numastat", key, at: 50, names: &names, values: &[Some(value)] });
        }
        let purge = PurgeVmapAreaLazy { start: 1 << 40, end: 2 << 40, num_purged: 9 };
        give(&mut writer, 60, 0, &purge, b"");
        writer.close(End { schema_version: 1, end: 70, ..End::default() }).unwrap();
        let (mut seen, mut outcome) = (Seen::default(), Outcome::default());
        let recording = Recording::open(&path).unwrap();
        recording.read(&mut seen, &mut outcome).unwrap();
        let expected = [
            "7 is kworker".to_string(),
            "50 numastat/0 [Some(3)]".to_string(),
            "50 numastat/1 [Some(4)]".to_string(),
            "40 cpu 1 order 3 gfp 0xcc0".to_string(),
            format!("60 {purge:?}"),
        ];
        assert_eq!(seen.0, expected);
        assert_eq!(outcome.warnings.list(), []);
        assert_eq!(
            recording.manifest.tracing.unwrap().events,
            ["vmalloc:purge_vmap_area_lazy", "vmscan:mm_vmscan_wakeup_kswapd"]
        );
    }

    #[test]
    fn more_cpus_than_files_that_are_kept_open() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("t.mmt");
        let mut manifest = manifest();
        manifest.evidence.cpus = (0..MOST_OPEN as u32 + 50).collect();
        let mut writer = EventWriter::create(&path, false, manifest, Era::V6_12, [Kind::PurgeVmapAreaLazy]).unwrap();
        let open = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        let ours =
            |file: &std::path::PathBuf| file.starts_with(root.path()) && file.extension().is_some_and(|e| e == "pages");
        assert_eq!(open.filter_map(|fd| std::fs::read_link(fd.path()).ok()).filter(ours).count(), 0);
        for ts in 0..1000 {
            give(
                &mut writer,
                ts,
                MOST_OPEN as u32 + 7,
                &PurgeVmapAreaLazy { start: 0, end: 1, num_purged: ts as u32 },
                b"",
            );
        }
        writer.close(End { schema_version: 1, end: 1000, ..End::default() }).unwrap();
        let (mut seen, mut outcome) = (Seen::default(), Outcome::default());
        Recording::open(&path).unwrap().read(&mut seen, &mut outcome).unwrap();
        assert_eq!((seen.0.len(), outcome.warnings.list()), (1000, &[][..]));
    }

    #[test]
    fn what_cannot_be_written_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        let create = |name: &str| {
            let kinds = [Kind::PurgeVmapAreaLazy, Kind::MmVmscanWakeupKswapd];
            EventWriter::create(&root.path().join(name), false, manifest(), Era::V6_12, kinds).unwrap()
        };
        let mut writer = create("a");
        give(&mut writer, 1, 9, &PurgeVmapAreaLazy { start: 0, end: 0, num_purged: 0 }, b"");
        let error = writer.close(End::default()).unwrap_err().to_string();
        assert!(error.contains("CPU 9"), "{error}");
        let mut writer = create("b");
        give(&mut writer, 1, 0, &MmVmscanWakeupKswapd { nid: 0, order: 0, zid: None, gfp_flags: None }, b"");
        let error = writer.close(End::default()).unwrap_err().to_string();
        assert!(error.contains("mm_vmscan_wakeup_kswapd: no value for field"), "{error}");
    }
}
