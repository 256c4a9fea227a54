//! The kernel's stack where a task begins to reclaim, to compact or to wait: `record -g`.
//!
//! The trigger `stacktrace` of an event writes a `kernel_stack` record behind each of its records, into the buffer of
//! the recorder's own instance. Events that happen per page have none: a stack costs as much as many events.

use crate::instance::Instance;

/// Events that have a stack, where they are recorded. Kernels have some or all of them; none has one for a refault.
pub const EVENTS: &[&str] = &[
    "compaction:mm_compaction_begin",
    "oom:mark_victim",
    "vmscan:mm_vmscan_direct_reclaim_begin",
    "vmscan:mm_vmscan_memcg_reclaim_begin",
    "vmscan:mm_vmscan_memcg_softlimit_reclaim_begin",
    "vmscan:mm_vmscan_node_reclaim_begin",
    "vmscan:mm_vmscan_throttled",
    "writeback:balance_dirty_pages",
    "writeback:writeback_congestion_wait",
    "writeback:writeback_wait_iff_congested",
];

/// Asks for the stacks of those of the enabled events that should have one. Returns the events that have, and what the
/// user may want to know.
pub fn enable(instance: &Instance, enabled: &[String]) -> (Vec<String>, Vec<String>) {
    let (mut with, mut notes) = (Vec::new(), Vec::new());
    for event in enabled.iter().filter(|event| EVENTS.contains(&event.as_str())) {
        let trigger = format!("events/{}/trigger", event.replacen(':', "/", 1));
        match instance.set(&trigger, "stacktrace") {
            Ok(()) => with.push(event.clone()),
            Err(error) => notes.push(format!("{event} is recorded without stacks: {error}")),
        }
    }
    if with.is_empty() && notes.is_empty() {
        notes.push(format!("no stacks: none of the recorded events has one; those that can are {}", EVENTS.join(", ")));
    }
    (with, notes)
}
