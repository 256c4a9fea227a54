//! Requests to the allocator, their callers, and their failures.

use super::{NodeMask, Policy};
use crate::frame::{Migratetype, Pfn, ZoneKind};
use crate::probe::{Probe, Task};
use crate::time::Ns;
use crate::vmstat::VmStat;
use thiserror::Error;

/// A request for pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// log2 of the pages.
    pub order: u32,
    /// Their migratetype.
    pub migratetype: Migratetype,
    /// Highest kind of zone that may serve it.
    pub highest: ZoneKind,
    /// May wait, so that the pages of all CPUs' lists can be taken back before it fails.
    pub may_wait: bool,
    /// May take half of the reserve below the minimum (`__GFP_HIGH`).
    pub high: bool,
    /// Cannot wait and may take more of it (`GFP_ATOMIC`).
    pub atomic: bool,
    /// The task that asks reclaims, and may take what it finds (`PF_MEMALLOC`).
    pub memalloc: bool,
    /// Must be served by the requested node (`__GFP_THISNODE`).
    pub this_node: bool,
    /// kswapd is woken for it (`__GFP_KSWAPD_RECLAIM`).
    pub kswapd: bool,
    /// One reclaim is all it waits for (`__GFP_NORETRY`).
    pub no_retry: bool,
    /// Reclaim may be repeated for a large block (`__GFP_REPEAT`, `__GFP_RETRY_MAYFAIL`).
    pub repeat: bool,
    /// The page will be dirtied, so that nodes with many dirty pages are skipped at first (`__GFP_WRITE`).
    pub spread_dirty: bool,
    /// The flags as the kernel prints them in events.
    pub gfp: &'static str,
}

impl Request {
    /// A page for the kernel itself.
    pub const KERNEL: Request = Request {
        order: 0,
        migratetype: Migratetype::Unmovable,
        highest: ZoneKind::Normal,
        may_wait: true,
        high: false,
        atomic: false,
        memalloc: false,
        this_node: false,
        kswapd: true,
        no_retry: false,
        repeat: false,
        spread_dirty: false,
        gfp: "GFP_KERNEL",
    };
    /// A page for a process.
    pub const USER: Request = Request {
        migratetype: Migratetype::Movable,
        highest: ZoneKind::Movable,
        gfp: "GFP_HIGHUSER_MOVABLE",
        ..Request::KERNEL
    };
    /// A page for the kernel where it cannot wait.
    pub const ATOMIC: Request =
        Request { may_wait: false, high: true, atomic: true, gfp: "GFP_ATOMIC", ..Request::KERNEL };

    /// The same for another number of pages.
    pub const fn of_order(self, order: u32) -> Request {
        Request { order, ..self }
    }
}

/// Pages that a task has dirtied (fields of `struct task_struct`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TaskDirty {
    /// Pages since the last check, and the number allowed until the next.
    pub dirtied: u64,
    pub nr_dirtied_pause: u64,
    /// Tick in which it paused last, or would have.
    pub dirty_paused_when: u64,
    /// Its pause is to be followed by another check.
    pub again: bool,
}

impl Default for TaskDirty {
    fn default() -> TaskDirty {
        // 128 KiB, as a new task has it.
        TaskDirty { dirtied: 0, nr_dirtied_pause: 32, dirty_paused_when: 0, again: false }
    }
}

/// The caller: a task, its CPU and its policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// CPU it runs on.
    pub cpu: u32,
    /// Task that events name.
    pub task: Task,
    /// NUMA policy.
    pub policy: Policy,
    /// Cgroup that its memory is charged to; 0 is the root.
    pub(crate) cgroup: usize,
    /// Last node of interleaving.
    pub(crate) interleaved: u32,
    /// Pages that it has dirtied.
    pub(crate) writer: TaskDirty,
}

impl Caller {
    /// A task on a CPU.
    pub fn new(cpu: u32, task: Task, policy: Policy) -> Caller {
        // Interleaving continues after this node, so it begins with the first.
        Caller { cpu, task, policy, cgroup: 0, interleaved: u32::MAX, writer: TaskDirty::default() }
    }

    /// The same task for page number `index` of a memory area under a policy: interleaving depends on the page's place
    /// in the area (`interleave_nid`), not on earlier allocations.
    pub fn for_page(&self, policy: Policy, index: u64) -> Caller {
        let interleaved = match policy {
            Policy::Interleave(mask) => mask.nth(index).map_or(u32::MAX, |node| (node as u32).wrapping_sub(1)),
            _ => self.interleaved,
        };
        Caller { policy, interleaved, ..*self }
    }
}

/// Where and when the allocator works, and what it leaves traces in.
pub struct Context<'a> {
    /// Events.
    pub probe: &'a mut Probe,
    /// Counters.
    pub stat: &'a mut VmStat,
    /// Time.
    pub at: Ns,
    /// CPU that runs.
    pub cpu: u32,
    /// Task that runs.
    pub task: Task,
}

/// No zone could serve a request.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}", self.message())]
pub struct AllocationFailure {
    /// The request.
    pub request: Request,
    /// The cgroup at its limit; `None`: memory is short.
    pub over_limit: Option<usize>,
    /// CPU of the caller.
    pub cpu: u32,
    /// Node whose zonelist was walked.
    pub from: usize,
    /// Nodes that were allowed.
    pub nodes: NodeMask,
    /// Free pages of all zones at that moment.
    pub free: u64,
    /// A node is to be reclaimed before the search continues.
    pub asks: Option<NodeReclaimRequest>,
}

/// A zone below the mark whose node is to be reclaimed before a walk continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeReclaimRequest {
    /// The zone.
    pub zone: usize,
    /// Its place in the zonelist.
    pub place: usize,
    /// The walk with the minimum watermark.
    pub urgent: bool,
}

impl AllocationFailure {
    fn message(&self) -> String {
        let AllocationFailure { request, over_limit, cpu, nodes, free, .. } = self;
        let Request { order, gfp, .. } = request;
        match over_limit {
            Some(number) => format!("memory cgroup {number} is at its limit: order:{order}, mode:{gfp}, CPU {cpu}"),
            None => format!(
                "page allocation failure: order:{order}, mode:{gfp}, CPU {cpu}, nodemask={nodes}, {free} pages free in \
                 all zones"
            ),
        }
    }
}

/// A page was to be freed that is not the first of an allocated block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("page frame {0} is not the first page of an allocation")]
pub struct NotAllocated(pub Pfn);
