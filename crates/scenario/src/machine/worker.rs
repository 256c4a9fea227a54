//! Memory of a workload's process besides its regions, and its own time.

use super::text::MachineText;
use crate::check::Check;
use crate::units::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;

/// Pages of a heap at most, and those of each thread.
const MAX_HEAP: u32 = 4096;
const MAX_PER_THREAD: u32 = 64;

/// The program that runs a workload (`mmtwin-agent`): heap of a process besides its regions. NUMA balancing scans it and its
/// threads fault in it. Sizes in pages of 4 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Worker {
    /// Pages of the heap that are present, without those of threads; up to 4096.
    pub heap_pages: NonZeroU32,
    /// Pages of the heap that are present, more for each thread; up to 64.
    pub heap_pages_per_thread: u32,
    /// Pages of the heap's area that are not present, behind those that are; up to 4096.
    pub heap_absent_pages: u32,
    /// Pages of the heap that each thread keeps accessing, from its number times `heap_pages_per_thread` on. Threads share
    /// pages if this is more than `heap_pages_per_thread`.
    pub heap_hot_pages: u32,
    /// Time that it takes to draw a place and write to it, besides the access; think time contains it.
    #[serde(default, skip_serializing_if = "Time::is_zero")]
    pub access: Time,
    /// The same for an access in order or by strides, and for one that populates.
    #[serde(default, skip_serializing_if = "Time::is_zero")]
    pub access_in_order: Time,
    /// What an access takes more of which it is drawn whether it writes: any but those that always write.
    #[serde(default, skip_serializing_if = "Time::is_zero")]
    pub chance: Time,
    /// What an access with think time takes more than that time, which contains the access as measured when the process
    /// began.
    #[serde(default, skip_serializing_if = "Time::is_zero")]
    pub think_excess: Time,
    /// What an access that has taken as long as a page fault takes more after it: the kernel is asked for the thread's faults
    /// (`getrusage`). Not in its latency.
    #[serde(default, skip_serializing_if = "Time::is_zero")]
    pub fault_count: Time,
    /// CPU time of loading the module of a `vmalloc-test`, which precedes it in its phase.
    #[serde(default, skip_serializing_if = "Time::is_zero")]
    pub module_load: Time,
    /// What it sleeps meanwhile.
    #[serde(default, skip_serializing_if = "Time::is_zero")]
    pub module_wait: Time,
}

/// Checks how much it is.
pub(super) fn check(text: &MachineText, check: &mut Check<'_>) {
    let Worker {
        heap_pages,
        heap_pages_per_thread,
        heap_absent_pages,
        heap_hot_pages,
        access: _,
        access_in_order: _,
        chance: _,
        think_excess: _,
        fault_count: _,
        module_load: _,
        module_wait: _,
    } = text.worker;
    for (key, pages, most) in [
        ("heap_pages", heap_pages.get(), MAX_HEAP),
        ("heap_pages_per_thread", heap_pages_per_thread, MAX_PER_THREAD),
        ("heap_absent_pages", heap_absent_pages, MAX_HEAP),
    ] {
        check.require(pages <= most, &format!("machine.worker.{key}"), || format!("`{key}` is at most {most} pages"));
    }
    let present = heap_pages.get().saturating_add(heap_pages_per_thread);
    check.require(heap_hot_pages <= present, "machine.worker.heap_hot_pages", || {
        format!("a thread has {present} pages of the heap at most: `heap_pages` and `heap_pages_per_thread`")
    });
}
