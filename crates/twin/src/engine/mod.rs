//! Running a scenario's workload on the simulated kernel.
//!
//! CPUs run in order of their clocks; the one that is behind runs its first thread until another is behind, or, where a
//! thread draws in bulk, to the end of the epoch ([`main_loop`]). A thread runs one of the actions of [`actions`] or
//! memory accesses ([`crate::mm::memory`]). Processes, their phases and their memory are in [`process`].

mod action_stats;
mod actions;
mod balancing;
mod cgroup_files;
mod cgroup_write;
pub mod check_state;
mod epoch;
mod exit;
mod high_alloc;
mod hinting_faults;
mod host;
mod image;
mod initial;
mod kernel_threads;
mod loops;
mod madvise;
mod main_loop;
mod numa_maps;
mod oom;
mod phases;
mod process;
mod psi;
mod recorder;
mod report;
mod sample;
mod slowpath;
mod step;
mod thread_moves;
mod turns;
mod vmalloc_test;
mod wake;
mod watch;
mod writeback;

use crate::workload::trace::Trace;
pub use check_state::{StateError, check as check_state};
pub use watch::Halted;

use crate::build;
use crate::build::BuildError;
use crate::mm::kernel::{Kernel, KernelError, ZoneState};
use crate::mm::vmscan_zone::Rival;
use crate::time::Ns;
use crate::vmalloc::StressError;
use mmtwin_event::results::Results;
use mmtwin_event::words::glob;
use mmtwin_event::{Kind, Sink, Times, counters, era};
use mmtwin_scenario::Scenario;

/// Why a run ended without results.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RunError {
    /// The scenario cannot be simulated.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The kernel refused something.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// It made no progress, and has no usable results.
    #[error(transparent)]
    Halted(#[from] Halted),
    /// The vmalloc stress test refused something.
    #[error(transparent)]
    Stress(#[from] StressError),
    /// The state it is to begin with is of another machine, or damaged.
    #[error(transparent)]
    State(#[from] StateError),
}

/// State at the start of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Time: when the kernel's timers are due depends on it.
    pub at: Ns,
    /// Nodes of the machine that was seen; `None`: not known.
    pub nodes: Option<usize>,
    /// By CPU of that machine its node; empty: not known.
    pub cpu_nodes: Vec<u32>,
    /// Where its memory is; empty: not known.
    pub iomem: counters::Iomem,
    /// All zones of the machine; empty: a machine just booted.
    pub zones: Vec<ZoneState>,
    /// Pages on the LRU lists; `None`: none.
    pub lru: Option<counters::Lru>,
    /// Shrinkers, in the kernel's order.
    pub shrinkers: Vec<counters::Shrinker>,
    /// By process and thread: the CPU on which it was last before, if it may run there. Without one it is chosen.
    pub cpus: Vec<Vec<u32>>,
    /// By process and thread of the scenario: the CPU on which its first phase begins; empty: not known.
    pub began: Vec<Vec<u32>>,
}

/// Options of a run besides the scenario.
pub struct Options<'a> {
    /// State at its start.
    pub state: State,
    /// Single accesses of memory: slow, and what sampled accesses are checked against.
    pub explicit: bool,
    /// Single accesses that are replayed; then all others are explicit too.
    pub trace: Option<Trace>,
    /// Kinds of events to write.
    pub events: Vec<Kind>,
    /// Called now and then with the virtual time.
    pub progress: &'a mut dyn FnMut(Ns),
}

/// A run that has ended.
#[derive(Debug)]
pub struct Ran {
    /// Results of the workload.
    pub results: Results,
    /// When it ended.
    pub end: Ns,
    /// The kernel as it is then.
    pub kernel: Kernel,
    /// CPU time of each process, those of the kernel among them.
    pub cpu_time: Vec<(String, Ns)>,
    /// Why it was ended early, if it was: then its ending is [`mmtwin_event::results::Ending::Stopped`].
    pub halted: Option<Halted>,
    /// Times of the workload: its programs, the kernel on their behalf, and the run.
    pub times: Times,
}

/// Kinds of events that mechanisms of the twin write.
const WRITTEN: [Kind; 66] = [
    Kind::MmPageAlloc,
    Kind::MmPageFree,
    Kind::MmPageAllocZoneLocked,
    Kind::MmPagePcpuDrain,
    Kind::MmPageAllocExtfrag,
    Kind::AllocVmapArea,
    Kind::FreeVmapAreaNoflush,
    Kind::PurgeVmapAreaLazy,
    Kind::MmVmscanKswapdSleep,
    Kind::MmVmscanKswapdWake,
    Kind::MmVmscanWakeupKswapd,
    Kind::MmVmscanDirectReclaimBegin,
    Kind::MmVmscanDirectReclaimEnd,
    Kind::MmVmscanMemcgReclaimBegin,
    Kind::MmVmscanMemcgReclaimEnd,
    Kind::MmVmscanNodeReclaimBegin,
    Kind::MmVmscanNodeReclaimEnd,
    Kind::MmShrinkSlabStart,
    Kind::MmShrinkSlabEnd,
    Kind::MmVmscanLruIsolate,
    Kind::MmVmscanWriteFolio,
    Kind::MmVmscanLruShrinkInactive,
    Kind::MmVmscanLruShrinkActive,
    Kind::MmVmscanThrottled,
    Kind::BalanceDirtyPages,
    Kind::WritebackStart,
    Kind::WritebackWritten,
    Kind::WritebackPagesWritten,
    Kind::ReclaimRetryZone,
    Kind::CompactRetry,
    Kind::MarkVictim,
    Kind::MmCompactionIsolateMigratepages,
    Kind::MmCompactionIsolateFreepages,
    Kind::MmCompactionMigratepages,
    Kind::MmCompactionBegin,
    Kind::MmCompactionEnd,
    Kind::MmCompactionTryToCompactPages,
    Kind::MmCompactionFinished,
    Kind::MmCompactionSuitable,
    Kind::MmCompactionDeferred,
    Kind::MmCompactionDeferCompaction,
    Kind::MmCompactionDeferReset,
    Kind::MmCompactionKcompactdSleep,
    Kind::MmCompactionWakeupKcompactd,
    Kind::MmCompactionKcompactdWake,
    Kind::WritebackCongestionWait,
    Kind::WritebackWaitIffCongested,
    Kind::MmMigratePages,
    Kind::MmNumaMigrateRatelimit,
    Kind::SchedMoveNuma,
    Kind::SchedStickNuma,
    Kind::SchedSwapNuma,
    Kind::UpdateNumaActiveNodesMask,
    Kind::SchedSkipVmaNuma,
    Kind::SchedMigrateTask,
    Kind::NumaMapping,
    Kind::NumaHintFault,
    Kind::NumaMigrateRefused,
    Kind::NumaGroup,
    Kind::NumaNodeFaults,
    Kind::NumaPlacement,
    Kind::NumaScanPeriod,
    Kind::NumaSearchNode,
    Kind::NumaSearchCpu,
    Kind::NumaTaskMigrate,
    Kind::NumaBalance,
];

/// Kinds of events that a scenario enables, its kernel has and the twin writes.
pub fn kinds(scenario: &Scenario) -> Vec<Kind> {
    let wanted = |kind: &Kind| {
        let Some(definition) = era::of_kind(scenario.kernel.events.era(), *kind) else { return false };
        let (name, full) = (definition.name, format!("{}:{}", definition.system, definition.name));
        scenario.run.events.iter().any(|pattern| glob(pattern, name) || glob(pattern, &full))
    };
    WRITTEN.into_iter().filter(wanted).collect()
}

/// Runs a scenario. Events and counters are passed to `sink`, which is neither started nor finished.
pub fn run<'a>(scenario: &'a Scenario, options: Options<'a>, sink: &'a mut dyn Sink) -> Result<Ran, RunError> {
    run_beside(scenario, &[], options, sink).map(|(ran, _)| ran)
}

/// Runs a scenario, and finds out which of its rivals ([`build::are_rivals`]) have the same run: the same events at the
/// same times, the same counters and results. One that is none has another.
pub fn run_beside<'a>(
    scenario: &'a Scenario,
    rivals: &[&Scenario],
    options: Options<'a>,
    sink: &'a mut dyn Sink,
) -> Result<(Ran, Vec<bool>), RunError> {
    let notes = build::check(scenario)?;
    check_state(&options.state, &scenario.machine)?;
    let mut engine = main_loop::Engine::new(scenario, options, sink)?;
    let rules: Vec<_> = rivals.iter().map(|other| build::rival(scenario, other)).collect();
    engine.kernel.reclaim.rivals = rules.iter().copied().flatten().map(Rival::new).collect();
    let ran = engine.run(notes)?;
    let mut found = ran.kernel.reclaim.rivals.iter();
    let alike = rules.iter().map(|rival| rival.is_some() && found.next().is_some_and(Rival::is_alike)).collect();
    Ok((ran, alike))
}
