//! Samples and events of the last minutes, in bounded memory, and a recording of them.
//!
//! Counters keep their values only; their names are shared by all samples of a source and key. When it is too much, the
//! oldest sample goes. A recording begins with the oldest sample that is left: events of before it are not in it.

use super::events::{Events, Page, Text};
use crate::{Error, TOOL, clock, evidence};
use mmtwin_event::container::Containers;
use mmtwin_event::counters::Row;
use mmtwin_event::manifest::{Cost, End, Manifest, Run, SCHEMA_VERSION, Sampling, TaskLine};
use mmtwin_trace::recording::Writer;
use std::collections::{BTreeMap, VecDeque};
use std::io::Write;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, SystemTime};

/// Bytes that are stored.
const MOST: usize = 16 << 20;

/// Samples of the last minutes.
#[derive(Default)]
pub struct History {
    samples: VecDeque<Sample>,
    /// Names of the counters of each source and key, as they were last.
    names: BTreeMap<(&'static str, String), Rc<Vec<String>>>,
    bytes: usize,
    most: usize,
}

/// One sample.
struct Sample {
    at: u64,
    rows: Vec<StoredRow>,
    pages: Vec<Page>,
    bytes: usize,
}

/// A row of counters.
struct StoredRow {
    source: &'static str,
    key: String,
    names: Rc<Vec<String>>,
    values: Vec<Option<u64>>,
}

impl History {
    /// Nothing yet.
    pub fn new() -> History {
        History { most: MOST, ..History::default() }
    }

    /// A sample begins at this time of the trace clock.
    pub fn begin(&mut self, at: u64) {
        self.samples.push_back(Sample { at, rows: Vec::new(), pages: Vec::new(), bytes: 0 });
    }

    /// A page of events of the sample.
    pub fn page(&mut self, page: Page) {
        self.add(page.1.len() + size_of::<Page>(), |sample| sample.pages.push(page));
    }

    /// A row of counters of the sample. One without counters says that its key is gone.
    pub fn row(&mut self, source: &'static str, row: &Row) {
        let id = (source, row.key.clone());
        if row.names.is_empty() {
            self.names.remove(&id);
            return;
        }
        let names = match self.names.get(&id) {
            Some(names) if **names == row.names => names.clone(),
            _ => {
                let names = Rc::new(row.names.clone());
                self.names.insert(id, names.clone());
                names
            }
        };
        let stored = StoredRow { source, key: row.key.clone(), names, values: row.values.clone() };
        self.add(size_of::<StoredRow>() + stored.key.len() + 16 * stored.values.len(), |sample| {
            sample.rows.push(stored)
        });
    }

    fn add(&mut self, bytes: usize, put: impl FnOnce(&mut Sample)) {
        let Some(sample) = self.samples.back_mut() else { return };
        put(sample);
        sample.bytes += bytes;
        self.bytes += bytes;
        while self.bytes > self.most && self.samples.len() > 1 {
            self.bytes -= self.samples.pop_front().map_or(0, |oldest| oldest.bytes);
        }
    }

    /// Writes a recording of it.
    ///
    /// # Errors
    /// If there is something at `path` already, and what the system refuses; nothing is left then.
    pub fn write<'a>(
        &self,
        path: &Path,
        interval: Duration,
        events: Result<&Events, &str>,
        tasks: impl Iterator<Item = &'a TaskLine>,
        containers: &Containers,
    ) -> Result<(), Error> {
        let mut writer = Writer::create(path, false)?;
        writer.run(&Run {
            schema_version: SCHEMA_VERSION,
            started: SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_secs()),
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            pid: std::process::id(),
            tool: TOOL.into(),
        })?;
        writer.manifest(&Manifest {
            schema_version: SCHEMA_VERSION,
            arm: "host".into(),
            tool: TOOL.into(),
            clock: clock::TRACE_CLOCK.into(),
            start: self.samples.front().map_or(0, |sample| sample.at),
            tracing: events.ok().map(|events| events.tracing.clone()),
            no_tracing: events.err().map(str::to_string),
            counters: Sampling {
                interval: Some(interval.as_nanos() as u64),
                cgroups: Vec::new(),
                containers: containers.clone(),
            },
            evidence: evidence::collect(),
            ..Manifest::default()
        })?;
        if let Ok(events) = events {
            for (text, content) in &events.texts {
                match text {
                    Text::Header(name) => writer.text(name, content.as_bytes())?,
                    Text::Format(system, event) => writer.format(system, event, content.as_bytes())?,
                }
            }
            self.write_pages(events, &writer)?;
        }
        for sample in &self.samples {
            let mut sources: BTreeMap<&'static str, Vec<Row>> = BTreeMap::new();
            for stored in &sample.rows {
                let row = Row { key: stored.key.clone(), names: stored.names.to_vec(), values: stored.values.clone() };
                sources.entry(stored.source).or_default().push(row);
            }
            for (source, rows) in sources {
                writer.counters(source, sample.at, &rows)?;
            }
        }
        writer.tasks(&tasks.cloned().collect::<Vec<_>>())?;
        let end = self.samples.back().map_or(0, |sample| sample.at);
        let page_bytes = self.page_bytes(events.map_or(0, |events| events.tracing.sub_buffer));
        let cost = Cost { page_bytes, ..Cost::default() };
        let notes = vec!["written by mmtwin top: the last minutes that it had in memory".to_string()];
        writer.finish(End { schema_version: SCHEMA_VERSION, end, cost, notes, ..End::default() })?;
        Ok(())
    }

    /// Pages of events after the first sample.
    fn pages(&self) -> impl Iterator<Item = &Page> {
        self.samples.iter().skip(1).flat_map(|sample| &sample.pages)
    }

    fn page_bytes(&self, size: u64) -> u64 {
        self.pages().count() as u64 * size
    }

    fn write_pages(&self, events: &Events, writer: &Writer) -> Result<(), Error> {
        let padding = vec![0; events.tracing.sub_buffer as usize];
        for &cpu in &events.tracing.cpus {
            let mut file = writer.pages(cpu)?;
            for (_, page) in self.pages().filter(|(of, _)| *of == cpu) {
                let rest = &padding[page.len().min(padding.len())..];
                let written = file.write_all(page).and_then(|()| file.write_all(rest));
                written.map_err(|e| Error::io(format!("pages of CPU {cpu}"), e))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mmtwin_trace::recording::Recording;

    fn row(key: &str, value: u64) -> Row {
        let mut row = Row::new(key);
        row.push("pgfault", Some(value));
        row
    }

    #[test]
    fn the_oldest_samples_go_and_names_are_shared() {
        let mut history = History { most: 4_000, ..History::default() };
        for at in 1..=1000 {
            history.begin(at);
            history.row("vmstat", &row("", at));
            history.row("cgroup", &row("/web", at));
        }
        assert!(history.bytes <= 4_000 && history.samples.len() < 30, "{} bytes", history.bytes);
        assert_eq!(history.samples.iter().map(|sample| sample.bytes).sum::<usize>(), history.bytes);
        let (first, last) = (&history.samples[0], &history.samples[1]);
        assert!(Rc::ptr_eq(&first.rows[0].names, &last.rows[0].names));
        history.row("cgroup", &Row::new("/web"));
        assert_eq!(history.names.len(), 1, "a cgroup that is gone needs no names");
    }

    #[test]
    fn what_was_seen_is_a_recording() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("seen.mmt");
        let mut history = History::new();
        for at in [1_000, 2_000] {
            history.begin(at);
            history.row("vmstat", &row("", at));
        }
        let task = TaskLine { at: 1, pid: 7, comm: "work".into(), ..TaskLine::default() };
        history
            .write(&path, Duration::from_secs(1), Err("no tracefs"), [&task].into_iter(), &Containers::default())
            .unwrap();
        let recording = Recording::open(&path).unwrap();
        assert_eq!(recording.tasks()[0].comm, "work");
        let counters = recording.counters(&mut Default::default());
        assert_eq!(counters.next_at(), Some(1_000));
        let again = history.write(
            &path,
            Duration::from_secs(1),
            Err("no tracefs"),
            [&task].into_iter(),
            &Containers::default(),
        );
        assert!(again.unwrap_err().to_string().contains("seen.mmt"), "nothing is overwritten");
    }
}
