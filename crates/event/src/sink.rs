//! The stream of a recording, between readers and the twin's probe on one side and analyses and writers on the other.

use crate::event::Event;
use crate::vocabulary::Kind;

/// The order in which a sink needs the events of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// By (time, CPU, sequence) over all CPUs.
    Time,
    /// By time within a task and within a CPU; others may be some milliseconds early or late.
    Task,
}

/// What one half of a sink takes of the events of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// The events.
    Events,
    /// Only that a task ran.
    Task,
    /// Nothing.
    Nothing,
}

/// One of the halves of a sink, which take a stream at the same time, each on a thread of its own and in the order that
/// the sink asks for.
pub trait Half: Send {
    /// What it takes of the events of a kind; the same at all times.
    fn share(&self, kind: Kind) -> Share;
    /// One event, of which it takes all.
    fn event(&mut self, event: &Event<'_>);
    /// A task wrote an event on a CPU of which only that is taken. False: of events that follow it must be told too, else
    /// it need not be told of this task on this CPU again.
    fn ran(&mut self, cpu: u32, pid: i32) -> bool;
    /// As [`Sink::lost`].
    fn lost(&mut self, cpu: u32, events: Option<u64>, at: u64);
}

/// Receives a stream. The order of calls is: `start`, then tasks, counters, losses and events mixed, each kind in time
/// order, then `finish`. A source that has no task names or counters does not call those.
pub trait Sink {
    /// Before everything else.
    fn start(&mut self, _source: &Source) {}
    /// A name of a task, from saved cmdlines or `tasks.jsonl`.
    fn task(&mut self, _task: &Task<'_>) {}
    /// Which order it needs. Readers of many CPUs are faster where order within tasks is enough.
    fn order(&self, _kind: Kind) -> Order {
        Order::Time
    }
    /// One event, in the requested order; events of one CPU keep their order even if its clock went backwards.
    fn event(&mut self, event: &Event<'_>);
    /// Events that the kernel overwrote or dropped before `at` on one CPU; `None`: number unknown.
    fn lost(&mut self, _cpu: u32, _events: Option<u64>, _at: u64) {}
    /// Its halves, which take events and losses in its place until [`Sink::join`] is called, and nothing else is until
    /// then. `None`: it is not divided.
    fn halves(&mut self) -> Option<[Box<dyn Half + '_>; 2]> {
        None
    }
    /// After the halves have taken all that was for them.
    fn join(&mut self) {}
    /// One row of counters.
    fn counters(&mut self, _row: &CounterRow<'_>) {}
    /// A completed function call from a function_graph text.
    fn call(&mut self, _call: &Call<'_>) {}
    /// After everything else.
    fn finish(&mut self) {}
}

/// Ignores all calls: for runs and reads without a use of their events.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullSink;

impl Sink for NullSink {
    fn event(&mut self, _: &Event<'_>) {}
}

/// A task's identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task<'a> {
    /// Thread id.
    pub pid: i32,
    /// Thread group id, 0 if unknown.
    pub tgid: i32,
    /// Name, at most 15 bytes.
    pub comm: &'a [u8],
    /// Cgroup path, if recorded.
    pub cgroup: Option<&'a str>,
}

/// Counters read at one moment from one source, for one key.
#[derive(Clone, Copy, Debug)]
pub struct CounterRow<'a> {
    /// `vmstat`, `zoneinfo`, `node_vmstat`, `numastat`, `meminfo`, `psi`, `cgroup`.
    pub source: &'a str,
    /// Object within the source: empty (system), `0` (node), `0/Normal` (zone), `/web` (cgroup).
    pub key: &'a str,
    /// Nanoseconds of the trace clock.
    pub at: u64,
    /// Names of the counters.
    pub names: &'a [String],
    /// Values, parallel to `names`; `None` where the kernel did not print one.
    pub values: &'a [Option<u64>],
}

/// A finished call of a traced function.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// Function name.
    pub function: &'a str,
    /// CPU it ended on.
    pub cpu: u32,
    /// Duration in nanoseconds.
    pub nanoseconds: u64,
}

/// Metadata of a stream, before its first event.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// File or directory name as the user gave it.
    pub name: String,
    /// `twin`, `lab`, `host` or `import`.
    pub arm: String,
    /// Kernel release, if the source reports it.
    pub kernel: Option<String>,
    /// Number of CPUs of the recorded machine; 0 if unknown.
    pub cpus: u32,
    /// Nodes of the recorded machine; 0 if unknown.
    pub nodes: u32,
    /// Node of every CPU by its number; empty if unknown.
    pub cpu_nodes: Vec<u32>,
    /// Name of the trace clock (`local`, `mono`, ...), if the source reports it.
    pub clock: Option<String>,
    /// Elapsed, user and system seconds of the recorded command, where known.
    pub times: Option<Times>,
    /// Event names that were enabled, if the source reports it; without it an event that never occurs is `n/a`.
    pub enabled: Option<Vec<String>>,
    /// The multi-generational LRU was on.
    pub lru_gen: bool,
    /// `vm.dirty_bytes`, which stands for `vm.dirty_ratio` where it is set; `None`: it is not, or that is not known.
    pub dirty_bytes: Option<u64>,
    /// Address to symbol, sorted by address: (address, name).
    pub kallsyms: std::sync::Arc<Vec<(u64, String)>>,
    /// What records of the kernel's stack look like; `None`: it can have none.
    pub stack: Option<crate::stack::StackRecord>,
    /// Events with which the kernel recorded its stack, as `system:event`; empty if none or unknown.
    pub stacks: Vec<String>,
    /// Names of the containers that cgroups are, as far as they were recorded.
    pub containers: std::sync::Arc<crate::container::Containers>,
}

impl Source {
    /// Name of the function that holds `address`.
    pub fn symbol(&self, address: u64) -> Option<&str> {
        let before = &self.kallsyms[..self.kallsyms.partition_point(|(a, _)| *a <= address)];
        let start = before.last()?.0;
        // Of several names of one address the first, as the kernel does.
        Some(&before[before.partition_point(|(a, _)| *a < start)].1)
    }
}

/// Times of a command, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Times {
    /// CPU seconds in user mode.
    pub user: f64,
    /// CPU seconds in the kernel.
    pub system: f64,
    /// Wall-clock seconds.
    pub elapsed: f64,
}
