//! Access traces: a list of single accesses of a scenario's processes.
//!
//! A pid is that of a thread in recordings of the scenario: 1000 for the first thread of the first process, and so on.
//! A page is one of the thread's process, whose regions are counted through in their order. All threads of a process
//! that is in the trace make only its accesses, after they have populated their regions; a thread makes its accesses in
//! order, each at its time or, if it is behind, at once.

use super::replay::{Replay, Step};
use crate::time::{Ns, PS_PER_NS, Ps};
use mmtwin_scenario::Scenario;
use std::ops::Range;
use std::sync::Arc;

/// Id of the first process; threads and later processes follow.
pub(crate) const FIRST_PID: i32 = 1000;

/// Reasons why an access cannot be replayed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// No thread has the pid.
    #[error("the scenario has no pid {pid}: its threads are {FIRST_PID} to {last}")]
    Pid {
        /// The pid.
        pid: i32,
        /// Pid of the last thread.
        last: i64,
    },
    /// The process does something else.
    #[error("pid {pid} is of process \"{process}\", which has phases of its own")]
    Busy {
        /// Thread.
        pid: i32,
        /// Its process.
        process: String,
    },
    /// The process has no such page.
    #[error("pid {pid} has no page {page}: the regions of process \"{process}\" have {pages} pages, from 0 on")]
    Page {
        /// Thread.
        pid: i32,
        /// Its process.
        process: String,
        /// The page.
        page: u64,
        /// Pages of all regions.
        pages: u64,
    },
}

/// The accesses of a scenario's threads.
#[derive(Clone, Debug)]
pub struct Trace {
    processes: Vec<Known>,
    /// By thread of the workload: its process and its accesses.
    threads: Vec<(usize, Arc<Vec<Step>>)>,
}

/// A process, for a trace.
#[derive(Clone, Debug)]
struct Known {
    name: String,
    busy: bool,
    /// Pages of each region.
    regions: Vec<u64>,
}

impl Trace {
    /// An empty trace for a scenario.
    pub fn new(scenario: &Scenario) -> Trace {
        let processes = scenario.processes.iter().map(|config| Known {
            name: config.name.clone(),
            busy: !config.phases.is_empty(),
            regions: config.regions.iter().map(|region| region.size.pages()).collect(),
        });
        let threads = scenario.processes.iter().enumerate();
        let threads = threads.flat_map(|(process, config)| (0..config.threads).map(move |_| (process, Arc::default())));
        Trace { processes: processes.collect(), threads: threads.collect() }
    }

    /// Adds an access. Those of a thread are in order of time.
    pub fn add(&mut self, at: Ns, pid: i32, page: u64, write: bool) -> Result<(), TraceError> {
        let last = i64::from(FIRST_PID) + self.threads.len() as i64 - 1;
        let thread = usize::try_from(i64::from(pid) - i64::from(FIRST_PID)).ok();
        let thread = thread.and_then(|thread| self.threads.get_mut(thread));
        let Some((process, steps)) = thread else { return Err(TraceError::Pid { pid, last }) };
        let known = &self.processes[*process];
        let process = || known.name.clone();
        if known.busy {
            return Err(TraceError::Busy { pid, process: process() });
        }
        let mut rest = page;
        for (&pages, region) in known.regions.iter().zip(0u16..) {
            if rest < pages {
                Arc::make_mut(steps).push(Step { at, page: rest as u32, region, write });
                return Ok(());
            }
            rest -= pages;
        }
        Err(TraceError::Page { pid, process: process(), page, pages: known.regions.iter().sum() })
    }

    /// The accesses of a thread, in a run that begins at a time.
    pub(crate) fn of_thread(&self, thread: usize, begin: Ns) -> Replay {
        Replay::new(self.threads[thread].1.clone(), begin)
    }

    /// True if one of some threads is in the trace.
    pub(crate) fn concerns(&self, threads: Range<usize>) -> bool {
        self.threads[threads].iter().any(|(_, steps)| !steps.is_empty())
    }
}

/// Replayed accesses.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Replayed {
    made: usize,
    late: Ps,
}

impl Replayed {
    /// Records the progress of a thread.
    pub(crate) fn add(&mut self, replay: &Replay) {
        (self.made, self.late) = (self.made + replay.made, self.late.max(replay.late));
    }

    /// Notes about it for the results.
    pub(crate) fn note(&self, trace: &Trace) -> String {
        let all: usize = trace.threads.iter().map(|(_, steps)| steps.len()).sum();
        let late = self.late / PS_PER_NS;
        format!("access trace: {} of {all} accesses were made, at most {late} ns after their time", self.made)
    }
}
