//! Work of a phase besides touching memory: kernel test loops, and what an administrator does meanwhile.

mod text;

pub use text::{ActionError, ActionName};

use super::{Policy, Threads};
use crate::kernel::variant;
use crate::units::{Bytes, List, PageRate, Share, Time};
use serde::{Deserialize, Serialize};

/// One action, by every one of its threads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "text::ActionText", into = "text::ActionText")]
pub struct Action {
    /// Which threads do it. `vmalloc-test` starts all of them at the same moment.
    pub threads: Threads,
    /// The action.
    pub kind: ActionKind,
}

/// Kinds of actions.
#[derive(Clone, Debug, PartialEq)]
pub enum ActionKind {
    /// Allocates pages and frees them, over and over: `hold` allocations, then as many frees. With `hold` 1, order 0
    /// and `GFP_ATOMIC` it is the published page allocator benchmark (page_bench03).
    PageLoop {
        /// Order of each allocation, 0 to 10.
        order: u32,
        /// Allocation flags.
        gfp: Gfp,
        /// Preferred node; `None`: by the policy.
        node: Option<u32>,
        /// Memory policy; `None`: that of the process.
        policy: Option<Policy>,
        /// Allocations held before they are freed, 1 or more.
        hold: u64,
        /// Allocations per thread; `None`: until the phase ends.
        count: Option<u64>,
        /// Pages allocated per second and thread; `None`: as fast as possible.
        rate: Option<PageRate>,
    },
    /// Allocates pages and keeps them until the process ends.
    PageHog {
        /// Order of each allocation, 0 to 10.
        order: u32,
        /// Allocation flags.
        gfp: Gfp,
        /// Preferred node; `None`: by the policy.
        node: Option<u32>,
        /// Memory policy; `None`: that of the process.
        policy: Option<Policy>,
        /// Allocations per thread; `None`: until the phase ends.
        count: Option<u64>,
        /// Pages allocated per second and thread; `None`: as fast as possible.
        rate: Option<PageRate>,
    },
    /// Tries to allocate blocks one after the other, keeps them until the action ends, and continues after a failure:
    /// the test of huge pages of stress-highalloc.
    HighOrderAlloc {
        /// Order of each block, 1 to 13.
        order: u32,
        /// Allocation flags.
        gfp: Gfp,
        /// Attempts per thread.
        count: u64,
        /// Time from the start of one attempt to the start of the next, at least.
        interval: Time,
        /// Every attempt is retried as long as reclaim makes progress (`__GFP_REPEAT`, since 4.13
        /// `__GFP_RETRY_MAYFAIL`).
        gfp_retry_mayfail: bool,
    },
    /// The kernel's vmalloc stress test, `test_vmalloc`, with one kernel thread per thread of the action.
    VmallocTest {
        /// Tests that each thread runs, in an order of its own.
        tests: Vec<VmallocTest>,
        /// Rounds of each test (`test_loop_count`).
        loops: u64,
        /// Runs of each test (`test_repeat_count`).
        repeat: u32,
        /// Pages of each allocation of `fix_size_alloc_test` (`nr_pages`).
        pages: u32,
    },
    /// Reads a statistics file.
    Read {
        /// Which one.
        file: ReadFile,
        /// Node, for files of a node; `None`: every node in turn.
        node: Option<u32>,
        /// Readings per thread; `None`: until the phase ends.
        count: Option<u64>,
        /// Time from one reading to the next; 0: without a pause.
        interval: Time,
    },
    /// Takes CPUs offline.
    CpuOffline {
        /// Which ones.
        cpus: List,
    },
    /// Brings CPUs online.
    CpuOnline {
        /// Which ones.
        cpus: List,
    },
    /// Writes a sysctl.
    Sysctl {
        /// Its name, such as `vm.numa_stat`.
        name: String,
        /// The value.
        value: u64,
    },
    /// Loads a kernel module and unloads it again, over and over. Each change of its memory's rights purges vmalloc
    /// areas.
    ModuleCycle {
        /// Name of the module, such as `xfs`. Modules that it depends on stay loaded.
        name: String,
        /// Cycles per thread; `None`: until the phase ends.
        count: Option<u64>,
    },
    /// Looks up names of files that do not exist, where the files of regions are: each leaves a dentry, which stays until
    /// reclaim shrinks that cache.
    Lookup {
        /// Names per thread, each another; `None`: until the phase ends.
        count: Option<u64>,
    },
    /// Gives pages of a region back: a system call on the thread's part of a private region, or on a shared one.
    Discard {
        /// Name of the region.
        region: String,
        /// Which call.
        how: Discard,
        /// Where the pages begin and end, as shares of the part.
        range: [Share; 2],
        /// Calls per thread.
        count: u64,
        /// Time from the start of one call to the start of the next.
        interval: Time,
    },
    /// Writes a limit of a cgroup.
    CgroupLimit {
        /// Its name.
        cgroup: String,
        /// Which limit.
        limit: Limit,
        /// The value; `None`: no limit (`max`), or no protection (0).
        size: Option<Bytes>,
    },
    /// Reclaims memory of a cgroup (`memory.reclaim`).
    MemoryReclaim {
        /// Its name.
        cgroup: String,
        /// How much.
        size: Bytes,
    },
    /// Does nothing for a time, without using the CPU.
    Sleep {
        /// How long.
        time: Time,
    },
}

impl ActionKind {
    /// What distinguishes an action that frees memory from others of its kind, for results; `None`: another kind.
    pub fn subject(&self) -> Option<String> {
        match self {
            ActionKind::Discard { region, how, range: [from, to], .. } => {
                let part = match (from.get(), to.get()) {
                    (0.0, 1.0) => String::new(),
                    (from, to) => format!(", {} % to {} %", from * 100.0, to * 100.0),
                };
                Some(match how {
                    Discard::Advice(advice) => format!("{region}, {advice}{part}"),
                    Discard::Unmap => format!("{region}{part}"),
                })
            }
            ActionKind::CgroupLimit { cgroup, limit, size } => {
                let size = size.map_or("none".into(), |size| size.to_string());
                Some(format!("{cgroup} {limit} = {size}"))
            }
            ActionKind::MemoryReclaim { cgroup, size } => Some(format!("{cgroup}, {size}")),
            _ => None,
        }
    }
}

variant! {
    /// Allocation flags.
    pub enum Gfp {
        /// From interrupts and the like: no waiting, no reclaim.
        Atomic = "GFP_ATOMIC",
        /// The kernel's own memory.
        Kernel = "GFP_KERNEL",
        /// A program's memory.
        HighuserMovable = "GFP_HIGHUSER_MOVABLE",
        /// A huge page, without reclaim.
        TransHugeLight = "GFP_TRANSHUGE_LIGHT",
    }
}

variant! {
    /// Tests of `test_vmalloc`.
    pub enum VmallocTest {
        /// One page, accessed and freed.
        FixSize = "fix_size_alloc_test",
        /// One page in a hole of exactly its size, among as many that are kept.
        FullFit = "full_fit_alloc_test",
        /// A hundred pages and one page, while 15,000 areas are kept.
        LongBusyList = "long_busy_list_alloc_test",
    }
}

impl VmallocTest {
    /// Its bit in `run_test_mask`.
    pub fn bit(&self) -> u32 {
        match self {
            VmallocTest::FixSize => 1,
            VmallocTest::FullFit => 2,
            VmallocTest::LongBusyList => 4,
        }
    }
}

/// Calls that give memory back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discard {
    /// `madvise` with an advice.
    Advice(Advice),
    /// `munmap`; the place is mapped again at once, without pages.
    Unmap,
}

variant! {
    /// Advices of `madvise` that give memory back.
    pub enum Advice {
        /// `MADV_DONTNEED`: the pages are unmapped; those of memory without a file are freed.
        Dontneed = "dontneed",
        /// `MADV_FREE`: pages of memory without a file may be freed by reclaim as long as they are not written.
        Free = "free",
    }
}

variant! {
    /// Limits of a cgroup, by their files.
    pub enum Limit {
        /// Hard limit; memory above it is reclaimed by the writer.
        Max = "memory.max",
        /// Above it tasks are slowed down; memory above it is reclaimed by the writer.
        High = "memory.high",
        /// Below it memory is reclaimed only where nothing else is left.
        Low = "memory.low",
        /// Below it memory is not reclaimed.
        Min = "memory.min",
        /// Hard limit of swap.
        SwapMax = "memory.swap.max",
    }
}

variant! {
    /// Statistics files.
    pub enum ReadFile {
        /// `/sys/devices/system/node/nodeN/numastat`.
        Numastat = "numastat",
        /// `/sys/devices/system/node/nodeN/vmstat`.
        NodeVmstat = "node-vmstat",
        /// `/proc/vmstat`.
        Vmstat = "vmstat",
        /// `/proc/zoneinfo`.
        Zoneinfo = "zoneinfo",
        /// `/proc/buddyinfo`.
        Buddyinfo = "buddyinfo",
        /// `/proc/vmallocinfo`.
        Vmallocinfo = "vmallocinfo",
        /// `/proc/sys/vm/stat_refresh`, which folds all counters.
        StatRefresh = "stat_refresh",
    }
}
