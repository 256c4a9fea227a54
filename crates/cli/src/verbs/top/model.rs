//! What `top` shows: plain data. Samples and keys change it (`update`), `view` draws it.

use mmtwin_analysis::live::{Cgroup, Process, Snapshot};
use mmtwin_event::container::{Containers, id_of};
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::time::Duration;

/// Points of the strips that are kept.
pub const POINTS: usize = 512;

/// Everything that is shown.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// The machine and how it is looked at.
    pub about: About,
    /// The interval that is shown.
    pub snapshot: Snapshot,
    /// Names of containers.
    pub containers: Containers,
    /// Pressure over time, the newest last.
    pub strip: VecDeque<Point>,
    /// What came while the screen is frozen; `None`: it is not.
    pub frozen: Option<Frozen>,
    /// What rows are sorted by.
    pub sort: Sort,
    /// The other way round.
    pub reversed: bool,
    /// Only rows with this in a name.
    pub filter: String,
    /// The filter is being typed; with what it was before.
    pub typing: Option<String>,
    /// The table that keys move in.
    pub focus: Focus,
    /// The chosen row of each table, by its cgroup or pid.
    pub chosen: [Option<String>; 2],
    /// The cgroup or process that is open, with all its counters.
    pub opened: Option<Details>,
    /// The help is shown.
    pub help: bool,
    /// What happened last, until the next key.
    pub message: Option<String>,
}

/// The machine and how it is looked at.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// Kernel release.
    pub kernel: String,
    /// Number of CPUs.
    pub cpus: u32,
    /// Time between samples.
    pub interval: Duration,
    /// WaitReason there are no events; `None`: there are.
    pub no_events: Option<String>,
}

/// Shares of pressure at one time: memory some and full, io some.
pub type Point = [Option<f64>; 3];

/// What came since the screen was frozen.
#[derive(Clone, Debug, Default)]
pub struct Frozen {
    /// The newest interval.
    pub snapshot: Option<Snapshot>,
    /// Pressure since.
    pub points: VecDeque<Point>,
}

/// What rows are sorted by, largest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// Time waited.
    #[default]
    Waited,
    /// Refaults; of processes major faults.
    Faults,
    /// Memory in use.
    Usage,
    /// Path or name, ascending.
    Name,
}

impl Sort {
    /// The next one.
    pub fn next(self) -> Sort {
        match self {
            Sort::Waited => Sort::Faults,
            Sort::Faults => Sort::Usage,
            Sort::Usage => Sort::Name,
            Sort::Name => Sort::Waited,
        }
    }

    /// What it is called.
    pub fn word(self) -> &'static str {
        match self {
            Sort::Waited => "waited",
            Sort::Faults => "faults",
            Sort::Usage => "usage",
            Sort::Name => "name",
        }
    }
}

/// A table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Focus {
    /// That of cgroups.
    #[default]
    Cgroups,
    /// That of processes.
    Processes,
}

/// The cgroup or process that is open, with all its counters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Details {
    /// Its table.
    pub of: Focus,
    /// Path of the cgroup, or pid.
    pub key: String,
    /// What it is called.
    pub title: String,
    /// Counters: name, last value, growth per second.
    pub counters: Vec<(String, Option<u64>, Option<f64>)>,
    /// Rows above the screen.
    pub scroll: usize,
}

impl Model {
    /// A model before the first sample.
    pub fn new(about: About) -> Model {
        Model { about, ..Model::default() }
    }

    /// Takes an interval.
    pub fn sampled(&mut self, snapshot: Snapshot) {
        let pressure = snapshot.pressure;
        let point = [pressure.memory_some, pressure.memory_full, pressure.io_some];
        // The first sample has no rates.
        let points = snapshot.seconds.map(|_| point);
        match &mut self.frozen {
            Some(frozen) => {
                frozen.snapshot = Some(snapshot);
                points.into_iter().for_each(|point| push(&mut frozen.points, point));
            }
            None => {
                self.snapshot = snapshot;
                points.into_iter().for_each(|point| push(&mut self.strip, point));
            }
        }
    }

    /// Freezes the screen, or shows the newest again.
    pub fn freeze(&mut self) {
        match self.frozen.take() {
            None => self.frozen = Some(Frozen::default()),
            Some(frozen) => {
                self.snapshot = frozen.snapshot.unwrap_or_else(|| std::mem::take(&mut self.snapshot));
                frozen.points.into_iter().for_each(|point| push(&mut self.strip, point));
            }
        }
    }

    /// Cgroups that fit the filter, sorted.
    pub fn cgroups(&self) -> Vec<&Cgroup> {
        let mut rows: Vec<&Cgroup> =
            self.snapshot.cgroups.iter().filter(|row| self.fits(&[&row.key, &self.name(&row.key)])).collect();
        let values = |row: &Cgroup| match self.sort {
            Sort::Waited => [row.some, row.waited, row.hits, row.refaults, row.usage.map(|bytes| bytes as f64)],
            Sort::Faults => [row.refaults, row.some, None, None, None],
            Sort::Usage => [row.usage.map(|bytes| bytes as f64), None, None, None, None],
            Sort::Name => [None; 5],
        };
        rows.sort_by(|a, b| self.ordered(descending(values(a), values(b)).then_with(|| a.key.cmp(&b.key))));
        rows
    }

    /// Processes that fit the filter, sorted.
    pub fn processes(&self) -> Vec<&Process> {
        let fits = |row: &&Process| {
            let cgroup = row.cgroup.as_deref().unwrap_or_default();
            self.fits(&[&row.comm, &row.pid.to_string(), cgroup, &self.name(cgroup)])
        };
        let mut rows: Vec<&Process> = self.snapshot.processes.iter().filter(fits).collect();
        let values = |row: &Process| match self.sort {
            Sort::Waited => [row.share, row.io, row.major_faults, row.resident.map(|bytes| bytes as f64), None],
            Sort::Faults => [row.major_faults, row.share, None, None, None],
            Sort::Usage => [row.resident.map(|bytes| bytes as f64), None, None, None, None],
            Sort::Name => [None; 5],
        };
        rows.sort_by(|a, b| {
            let names = match self.sort {
                Sort::Name => a.comm.cmp(&b.comm),
                _ => Ordering::Equal,
            };
            self.ordered(descending(values(a), values(b)).then(names).then_with(|| a.pid.cmp(&b.pid)))
        });
        rows
    }

    /// What tells the rows of a table, in their order.
    pub fn keys(&self, of: Focus) -> Vec<String> {
        match of {
            Focus::Cgroups => self.cgroups().into_iter().map(|row| row.key.clone()).collect(),
            Focus::Processes => self.processes().into_iter().map(|row| row.pid.to_string()).collect(),
        }
    }

    /// Position of the chosen row of a table among its rows; the first one if it is not there.
    pub fn position(&self, of: Focus, mut keys: impl Iterator<Item = impl ToString>) -> usize {
        let chosen = self.chosen[of as usize].as_ref();
        chosen.and_then(|chosen| keys.position(|key| key.to_string() == *chosen)).unwrap_or(0)
    }

    /// A cgroup for people: the name of a container, else the path.
    pub fn name(&self, cgroup: &str) -> String {
        if id_of(cgroup).is_some() { self.containers.short(cgroup) } else { cgroup.into() }
    }

    fn fits(&self, names: &[&str]) -> bool {
        let wanted = self.filter.to_lowercase();
        wanted.is_empty() || names.iter().any(|name| name.to_lowercase().contains(&wanted))
    }

    fn ordered(&self, ordering: Ordering) -> Ordering {
        if self.reversed { ordering.reverse() } else { ordering }
    }
}

fn push(points: &mut VecDeque<Point>, point: Point) {
    if points.len() == POINTS {
        points.pop_front();
    }
    points.push_back(point);
}

/// Largest first, by the first values that differ; what is not known is last.
fn descending(a: [Option<f64>; 5], b: [Option<f64>; 5]) -> Ordering {
    let known = |value: Option<f64>| value.unwrap_or(-1.0);
    a.iter()
        .zip(b)
        .map(|(a, b)| known(b).total_cmp(&known(*a)))
        .find(|ordering| ordering.is_ne())
        .unwrap_or(Ordering::Equal)
}
