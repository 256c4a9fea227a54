//! A recording from segments of the ring: pages are copied as they are, samples and tasks are written again.
//!
//! It is made of whole segments: it usually begins a little before the time that was asked for.

use super::head::{self, BOOT_ID};
use super::samples::Samples;
use super::segment::{Block, Kind, Segment, unpack};
use crate::Error;
use crate::containers::Names;
use mmtwin_event::counters::Row;
use mmtwin_event::manifest::{Cost, End, Losses, TaskLine};
use mmtwin_trace::recording::{PageFiles, Writer};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A recording that is being written.
pub struct Dump {
    writer: Writer,
    files: PageFiles,
    output: PathBuf,
    addresses: BTreeSet<u64>,
    losses: BTreeMap<u32, Losses>,
    page_bytes: u64,
    /// Time of the last block.
    end: u64,
    notes: Vec<String>,
    containers: Names,
}

impl Dump {
    /// Begins the recording `output`, of segments that are read with `head`, from the time `from` on.
    ///
    /// # Errors
    /// What the system refuses; nothing is left then.
    pub fn begin(head: &Path, output: &Path, from: u64) -> Result<Dump, Error> {
        let (mut manifest, run) = head::read(head)?;
        manifest.start = from;
        manifest.evidence.files.remove(BOOT_ID);
        let mut writer = Writer::create(output, false)?;
        head::copy_formats(head, &mut writer)?;
        writer.run(&run)?;
        writer.manifest(&manifest)?;
        let files = writer.page_files(true)?;
        let mut losses = BTreeMap::new();
        for cpu in manifest.tracing.map_or_else(Vec::new, |tracing| tracing.cpus) {
            files.create(cpu)?;
            losses.insert(cpu, Losses { cpu, ..Losses::default() });
        }
        let (addresses, notes, containers) = Default::default();
        Ok(Dump {
            writer,
            files,
            output: output.into(),
            addresses,
            losses,
            page_bytes: 0,
            end: from,
            notes,
            containers,
        })
    }

    /// Adds a segment.
    ///
    /// # Errors
    /// What the system refuses. A damaged block ends the segment with a note.
    pub fn add(&mut self, path: &Path) -> Result<(), Error> {
        let fail = |e: io::Error| Error::io(path.to_string_lossy(), e);
        let opened = match Segment::open(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            opened => opened.map_err(fail)?,
        };
        let Some(segment) = opened else {
            self.notes.push(format!("{} could not be read: it was deleted or is damaged", path.display()));
            return Ok(());
        };
        let mut samples = Samples::default();
        for block in &segment.blocks {
            let payload = segment.payload(block).map_err(fail)?;
            match self.take(block, &payload, &mut samples) {
                Err(Error::Io { what, source }) if source.kind() == io::ErrorKind::InvalidData => {
                    self.notes.push(format!("{}: {what}: {source}; the rest of it is skipped", path.display()));
                    return Ok(());
                }
                result => result?,
            }
        }
        Ok(())
    }

    fn take(&mut self, block: &Block, payload: &[u8], samples: &mut Samples) -> Result<(), Error> {
        let damaged = |what: &'static str| {
            move |e: io::Error| Error::io(what, io::Error::new(io::ErrorKind::InvalidData, e.to_string()))
        };
        match block.kind {
            Kind::Pages if self.losses.contains_key(&block.cpu) => {
                let mut file = self.files.append(block.cpu)?;
                file.write_all(payload).map_err(|e| Error::io(format!("pages of CPU {}", block.cpu), e))?;
                self.page_bytes += payload.len() as u64;
            }
            Kind::Pages => {}
            Kind::Counters | Kind::Growth => {
                let sample = samples.decode(block.kind, payload).map_err(damaged("counters"))?;
                for rows in sample.chunk_by(|a, b| a.0 == b.0) {
                    let source = &rows[0].0;
                    let rows: Vec<Row> = rows.iter().map(|(_, row)| row.clone()).collect();
                    self.writer.counters(source, block.at, &rows)?;
                    let cgroups = rows.iter().filter(|_| source == "cgroup");
                    cgroups.for_each(|row| self.containers.look_up(&row.key));
                }
            }
            Kind::Tasks => {
                let text = unpack(payload).map_err(damaged("tasks"))?;
                let lines: Vec<TaskLine> =
                    serde_json::from_slice(&text).map_err(|e| damaged("tasks")(io::Error::from(e)))?;
                self.writer.tasks(&lines)?;
                let cgroups = lines.iter().filter_map(|line| line.cgroup.as_deref());
                cgroups.for_each(|cgroup| self.containers.look_up(cgroup));
            }
            Kind::Losses => {
                let text = unpack(payload).map_err(damaged("losses"))?;
                let lost: Vec<Losses> =
                    serde_json::from_slice(&text).map_err(|e| damaged("losses")(io::Error::from(e)))?;
                for more in lost {
                    let sum = self.losses.entry(more.cpu).or_insert(Losses { cpu: more.cpu, ..Losses::default() });
                    *sum = added(*sum, more);
                }
            }
            Kind::Addresses => {
                let bytes = unpack(payload).map_err(damaged("addresses"))?;
                let words = bytes.chunks_exact(8).filter_map(|word| Some(u64::from_le_bytes(word.try_into().ok()?)));
                self.addresses.extend(words);
            }
        }
        self.end = self.end.max(block.at);
        Ok(())
    }

    /// Completes the recording. `functions` are the lines of `/proc/kallsyms`, if they are those of this kernel; `notes`
    /// say why it was written.
    ///
    /// # Errors
    /// What the system refuses; nothing is left then.
    pub fn finish(
        mut self,
        functions: impl FnOnce() -> Option<String>,
        notes: Vec<String>,
    ) -> Result<(PathBuf, End), Error> {
        if !self.addresses.is_empty()
            && let Some(text) = functions()
        {
            let addresses: Vec<u64> = self.addresses.iter().copied().collect();
            self.writer.narrow_symbols(Some(text.as_bytes()), &addresses, u64::MAX)?;
        }
        let end = End {
            schema_version: mmtwin_event::manifest::SCHEMA_VERSION,
            end: self.end,
            losses: self.losses.into_values().collect(),
            cost: Cost { page_bytes: self.page_bytes, ..Cost::default() },
            containers: self.containers.known().clone(),
            notes: notes.into_iter().chain(self.notes).collect(),
            ..End::default()
        };
        let end = self.writer.finish(end)?;
        Ok((self.output, end))
    }
}

/// Sum of the losses of a CPU.
pub fn added(one: Losses, more: Losses) -> Losses {
    Losses {
        cpu: one.cpu,
        overrun: one.overrun.saturating_add(more.overrun),
        commit_overrun: one.commit_overrun.saturating_add(more.commit_overrun),
        dropped: one.dropped.saturating_add(more.dropped),
        unwritten: one.unwritten.saturating_add(more.unwritten),
    }
}

#[cfg(test)]
mod tests {
    use super::super::directory::Directory;
    use super::super::ring::{Ring, put};
    use super::super::segment::pack;
    use super::*;
    use mmtwin_event::manifest::{Manifest, Run};
    use mmtwin_trace::recording::Recording;
    use std::fs;

    /// A ring of two segments without events, with what the second one has damaged.
    fn segments(directory: &Directory) -> (u32, Vec<PathBuf>) {
        let (mut writer, number) = head::begin(directory).unwrap();
        let mut manifest =
            Manifest { schema_version: 1, arm: "host".into(), clock: "mono".into(), ..Manifest::default() };
        manifest.evidence.files.insert(BOOT_ID.into(), "a".into());
        writer.run(&Run::default()).unwrap();
        writer.manifest(&manifest).unwrap();
        let head = head::end(directory, writer, number).unwrap();
        let (mut ring, _) = Ring::open(&directory.segments(), 1 << 20).unwrap();
        for start in [100, 200] {
            let mut open = ring.begin(head, start).unwrap();
            let mut samples = Samples::default();
            for at in start..start + 3 {
                let row = |key: &str| Row { key: key.into(), names: vec!["n".into()], values: vec![Some(at * 2)] };
                let sample =
                    vec![("vmstat".into(), row("")), ("meminfo".into(), row("0")), ("meminfo".into(), row("1"))];
                let (kind, payload) = samples.encode(sample).unwrap();
                put(&mut ring, &mut open, (kind, 0, at), &payload).unwrap();
            }
            let tasks = [TaskLine { at: start, pid: 7, comm: "web".into(), ..TaskLine::default() }];
            let tasks = pack(&serde_json::to_vec(&tasks).unwrap()).unwrap();
            put(&mut ring, &mut open, (Kind::Tasks, 0, start + 3), &tasks).unwrap();
            let losses = pack(&serde_json::to_vec(&[Losses { cpu: 0, overrun: start, ..Losses::default() }]).unwrap());
            put(&mut ring, &mut open, (Kind::Losses, 0, start + 4), &losses.unwrap()).unwrap();
            ring.end(open, head).unwrap();
        }
        (head, ring.segments().map(|stored| ring.path(stored)).collect())
    }

    #[test]
    fn segments_become_a_recording() {
        let root = tempfile::tempdir().unwrap();
        let directory = Directory::create(&root.path().join("f")).unwrap();
        let (head, paths) = segments(&directory);
        let output = directory.next_dump("snap");
        let mut dump = Dump::begin(&directory.head(head), &output, 100).unwrap();
        paths.iter().for_each(|path| dump.add(path).unwrap());
        dump.add(&root.path().join("gone")).unwrap();
        assert!(!output.exists(), "it has its name when it is complete");
        dump.finish(|| None, vec!["why".into()]).unwrap();
        let recording = Recording::open(&output).unwrap();
        let mut warnings = recording.warnings.clone();
        let at: Vec<u64> =
            recording.counters(&mut warnings).filter(|row| &*row.source == "vmstat").map(|r| r.at).collect();
        assert_eq!(at, [100, 101, 102, 200, 201, 202]);
        let last = recording.counters(&mut warnings).filter(|row| &*row.source == "meminfo").last().unwrap();
        assert_eq!((last.key.as_str(), last.values), ("1", vec![Some(404)]));
        assert_eq!(recording.tasks().len(), 2);
        let end = recording.end.as_ref().unwrap();
        assert_eq!((end.end, end.losses[0].overrun, end.notes[0].as_str()), (204, 300, "why"));
        assert!(end.notes[1].contains("gone") && !recording.manifest.evidence.files.contains_key(BOOT_ID));
        assert!(warnings.list().is_empty(), "{warnings:?}");
    }

    #[test]
    fn a_damaged_block_ends_its_segment_with_a_note() {
        let root = tempfile::tempdir().unwrap();
        let directory = Directory::create(&root.path().join("f")).unwrap();
        let (head, paths) = segments(&directory);
        let damaged = Segment::open(&paths[0]).unwrap().unwrap().blocks[1];
        let mut bytes = fs::read(&paths[0]).unwrap();
        bytes[damaged.offset as usize] ^= 0xff;
        fs::write(&paths[0], bytes).unwrap();
        let mut dump = Dump::begin(&directory.head(head), &directory.next_dump("snap"), 100).unwrap();
        paths.iter().for_each(|path| dump.add(path).unwrap());
        let (output, end) = dump.finish(|| None, Vec::new()).unwrap();
        assert!(end.notes[0].contains("00000001-1.segment: counters:"), "{:?}", end.notes);
        let recording = Recording::open(&output).unwrap();
        let rows = recording.counters(&mut Default::default()).filter(|row| &*row.source == "vmstat").count();
        assert_eq!(rows, 4);
    }
}
