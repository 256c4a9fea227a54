//! This machine live, for a fraction of a CPU: samples of its counters, and the events between them.
//!
//! [`Top::sample`] gives a [`Sink`] what happened since the last call: events of an own tracefs instance where that is
//! possible (`events`, with the tasks they come from: `names`), then counters of the machine and its nodes (`machine`),
//! of cgroups (`cgroups`) and of processes (`processes`). Files stay open and are read again (`file`). The cost of a
//! sample is bounded, however many cgroups and processes there are: what does not fit is read with one of the next
//! samples, so each row has a time of its own. `history` keeps the last minutes, for [`Top::write`].

mod cgroups;
mod events;
mod file;
mod history;
mod machine;
mod names;
mod processes;

use crate::record::{descriptors, numbered};
use crate::{Error, clock, containers};
use cgroups::Cgroups;
use events::Events;
use history::History;
use machine::Machine;
use mmtwin_event::container::Containers;
use mmtwin_event::counters::Row;
use mmtwin_event::manifest::TaskLine;
use mmtwin_event::{CounterRow, Event, Sink, Source, Task};
use names::Names;
use processes::Processes;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Tasks of one sample whose names are looked up.
const MOST_NAMED: usize = 1024;

/// What to look at.
#[derive(Clone, Debug)]
pub struct Options {
    /// Time between two samples, for the recording that [`Top::write`] makes.
    pub interval: Duration,
    /// Only these cgroups: paths below the mount, or directories, with wildcards; none: all.
    pub cgroups: Vec<String>,
    /// Trace events, where that is possible.
    pub events: bool,
}

/// What the user opened: all of its counters are sampled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opened {
    /// A cgroup, by its path below the mount.
    Cgroup(String),
    /// A process, by its number.
    Process(i32),
}

/// This machine, live.
pub struct Top {
    interval: Duration,
    machine: Machine,
    cgroups: Cgroups,
    processes: Processes,
    events: Result<(Events, Names), String>,
    history: History,
    opened: Option<Opened>,
    containers: containers::Names,
}

impl Top {
    /// Opens what there is. Without events [`Top::no_events`] says why.
    ///
    /// # Errors
    /// A cgroup that does not exist, or a pattern that cannot be read.
    pub fn open(options: &Options) -> Result<Top, Error> {
        descriptors::raise();
        let cgroups = Cgroups::new(&options.cgroups)?;
        let events = match options.events {
            true => Events::open(),
            false => Err("--no-events".into()),
        };
        let events = events.map(|events| {
            let names = Names::new(events.saved_cmdlines());
            (events, names)
        });
        let (machine, processes, interval) = (Machine::open(), Processes::new(), options.interval);
        let (history, containers) = (History::new(), containers::Names::new());
        Ok(Top { interval, machine, cgroups, processes, events, history, opened: None, containers })
    }

    /// Why no events are traced; `None`: they are.
    pub fn no_events(&self) -> Option<&str> {
        self.events.as_ref().err().map(String::as_str)
    }

    /// What a sink is to know beforehand.
    pub fn source(&self) -> Source {
        let enabled = self.events.as_ref().ok().map(|(events, _)| events.tracing.events.clone());
        Source {
            arm: "host".into(),
            kernel: Some(rustix::system::uname().release().to_string_lossy().into_owned()),
            cpus: std::thread::available_parallelism().map_or(0, |cpus| cpus.get() as u32),
            enabled: Some(enabled.unwrap_or_default()),
            ..Source::default()
        }
    }

    /// Names of the containers that cgroups are, as far as they are known.
    pub fn containers(&self) -> &Containers {
        self.containers.known()
    }

    /// From now on all counters of this cgroup or process are sampled too.
    pub fn set_opened(&mut self, opened: Option<Opened>) {
        self.opened = opened;
    }

    /// Takes a sample; returns its time in nanoseconds of the trace clock. A row without counters says that its cgroup or
    /// process is gone. If events cannot be read any more, the sink is told of a loss and of the source without events.
    pub fn sample(&mut self, sink: &mut dyn Sink) -> u64 {
        let at = clock::now();
        self.history.begin(at);
        if let Ok((events, names)) = &mut self.events {
            let (history, cgroups, containers) = (&mut self.history, &mut self.cgroups, &mut self.containers);
            let mut tasks = EventTasks { sink, pids: BTreeSet::new(), last: 0 };
            let read = events.read(&mut tasks, &mut |page| history.page(page));
            let pids = tasks.pids;
            names.resolve(&pids, at, &mut |line| {
                sink.task(&task(line));
                line.cgroup.iter().for_each(|cgroup| {
                    cgroups.mark_busy(cgroup);
                    containers.look_up(cgroup);
                });
            });
            // Counters go on.
            if let Err(error) = read {
                self.events = Err(format!("tracing ended: {error}"));
                sink.lost(0, None, at);
                sink.start(&self.source());
            }
        }
        // Not for the recording: these are rows of a screen.
        if let Some(opened) = &self.opened {
            let (source, key, row) = match opened {
                Opened::Cgroup(key) => ("cgroup", key.clone(), self.cgroups.all(key)),
                Opened::Process(pid) => ("process", pid.to_string(), self.processes.all(*pid)),
            };
            give(sink, source, at, &row.unwrap_or(Row::new(key)));
        }
        let (history, containers) = (&mut self.history, &mut self.containers);
        let mut take = |source: &'static str, row: Row| {
            if source == "cgroup" {
                containers.look_up(&row.key);
            }
            // A process has no place in a recording: its tasks have names there, and events.
            if source != "process" {
                history.row(source, &row);
            }
            give(sink, source, at, &row);
        };
        self.machine.read(&mut take);
        self.cgroups.read(at, &mut take);
        let mut named = Vec::new();
        self.processes.read(at, &mut take, &mut |pid, comm| named.push((pid, comm.to_string())));
        for (pid, comm) in named {
            sink.task(&Task { pid, tgid: pid, comm: comm.as_bytes(), cgroup: None });
        }
        at
    }

    /// Writes what was seen in the last minutes as a recording: to `first`, or where that is taken with a number
    /// (`NAME-2.mmt`). Returns where.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn write(&self, first: &Path) -> Result<PathBuf, Error> {
        let path = numbered::next(first);
        let events = self.events.as_ref().map(|(events, _)| events).map_err(String::as_str);
        let tasks: Box<dyn Iterator<Item = &TaskLine>> = match &self.events {
            Ok((_, names)) => Box::new(names.lines()),
            Err(_) => Box::new(std::iter::empty()),
        };
        self.history.write(&path, self.interval, events, tasks, self.containers.known())?;
        Ok(path)
    }
}

fn task(line: &TaskLine) -> Task<'_> {
    Task { pid: line.pid, tgid: line.tgid, comm: line.comm.as_bytes(), cgroup: line.cgroup.as_deref() }
}

fn give(sink: &mut dyn Sink, source: &str, at: u64, row: &Row) {
    sink.counters(&CounterRow { source, key: &row.key, at, names: &row.names, values: &row.values });
}

/// Passes events on and collects the tasks that they come from.
struct EventTasks<'a> {
    sink: &'a mut dyn Sink,
    pids: BTreeSet<i32>,
    last: i32,
}

impl Sink for EventTasks<'_> {
    fn event(&mut self, ev: &Event<'_>) {
        if ev.pid != self.last && ev.pid > 0 && self.pids.len() < MOST_NAMED {
            self.last = ev.pid;
            self.pids.insert(ev.pid);
        }
        self.sink.event(ev);
    }

    fn lost(&mut self, cpu: u32, events: Option<u64>, at: u64) {
        self.sink.lost(cpu, events, at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[derive(Default)]
    struct Sources(BTreeMap<String, u64>);

    impl Sink for Sources {
        fn event(&mut self, _: &Event<'_>) {}
        fn counters(&mut self, row: &CounterRow<'_>) {
            *self.0.entry(row.source.into()).or_default() += 1;
        }
    }

    #[test]
    fn counters_alone_are_sampled_and_written() {
        let options = Options { interval: Duration::from_secs(1), cgroups: Vec::new(), events: false };
        let mut top = Top::open(&options).unwrap();
        assert_eq!((top.no_events(), top.source().enabled), (Some("--no-events"), Some(Vec::new())));
        let mut sources = Sources::default();
        top.set_opened(Some(Opened::Process(std::process::id() as i32)));
        let times = [top.sample(&mut sources), top.sample(&mut sources)];
        assert!(times[0] < times[1] && sources.0["vmstat"] == 2 && sources.0["process"] > 2, "{:?}", sources.0);
        let root = tempfile::tempdir().unwrap();
        let first = root.path().join("top.mmt");
        assert_eq!(top.write(&first).unwrap(), first);
        assert_eq!(top.write(&first).unwrap(), root.path().join("top-2.mmt"));
    }
}
