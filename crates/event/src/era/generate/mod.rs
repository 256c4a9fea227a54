//! Made-up reclaim recordings whose sums are known, for tests of all steps from a trace to its report.
//!
//! From totals (for example those of the ftrace tables of the reclaim series of 2010 and 2012) a deterministic sequence
//! of events of an era is made, whose sums, by the rules of those tables, are exactly the totals: a process counts as
//! direct reclaimer if it begins direct reclaim, isolations of active lists alone do not count, nor do wake requests of
//! other processes, waits of every process but kswapd count as direct, a reclaim or awake phase without an end has no
//! duration. The sequence has cases that are hard to count: several reclaimers of one name, several kswapds, tasks that
//! move between CPUs inside a reclaim, cgroup and node reclaim in between, isolations without pages, order re-wakeups,
//! and reclaims that are nested or unfinished at the end. In kernels with `mm_vmscan_throttled` the waits are
//! throttling for writeback and for congestion. Not modelled: lost events, and with the formats of 3.5 isolations of
//! active lists, which those kernels do not distinguish from others.

mod plan;
mod split;
mod totals;

pub use totals::{Pages, Totals, Wait};

use super::{Common, Definition, Era, Values, definitions, find, gfp_bits, gfp_text};
use crate::event::Slots;
use crate::names::{LRU, THROTTLE};
use crate::value::{Bytes, Shape};
use plan::{Plan, Reclaim, Step, What};

/// Totals that no sequence of events can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no events can have these totals: {0}")]
pub struct Impossible(pub(super) &'static str);

/// One event, in all forms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// Nanoseconds.
    pub ts: u64,
    /// CPU.
    pub cpu: u32,
    /// Thread id, flags and preempt count.
    pub common: Common,
    /// Task name.
    pub comm: &'static str,
    /// Event name.
    pub event: &'static str,
    /// Text that the kernel prints behind the name.
    pub payload: Vec<u8>,
    /// Record, common fields included.
    pub record: Vec<u8>,
}

/// A made-up recording.
#[derive(Clone, Debug)]
pub struct Recording {
    era: Era,
    plan: Plan,
}

/// Number of the first format.
const FIRST_ID: u16 = 600;

/// CPUs of the machine.
pub const CPUS: u32 = 4;

impl Recording {
    /// A recording of an era that has exactly these totals.
    pub fn new(era: Era, totals: &Totals) -> Result<Recording, Impossible> {
        Ok(Recording { era, plan: Plan::new(era, totals)? })
    }

    /// Number of events.
    pub fn count(&self) -> usize {
        self.plan.steps.len()
    }

    /// The event types that it may have, with the numbers of their formats.
    pub fn formats(&self) -> impl Iterator<Item = (u16, &'static Definition)> {
        let era = self.era;
        let kinds = definitions().filter(move |d| d.era == era && matches!(d.system, "vmscan" | "writeback"));
        (FIRST_ID..).zip(kinds)
    }

    /// Its tasks: thread ids and names.
    pub fn tasks(&self) -> impl Iterator<Item = (i32, &'static str)> {
        self.plan.tasks.iter().map(|task| (task.pid, task.comm))
    }

    /// All events in time order.
    pub fn events(&self) -> impl Iterator<Item = Made> {
        let ids: std::collections::BTreeMap<&str, u16> = self.formats().map(|(id, d)| (d.name, id)).collect();
        self.plan.steps.iter().map(move |step| self.made(step, &ids))
    }

    fn made(&self, step: &Step, ids: &std::collections::BTreeMap<&str, u16>) -> Made {
        let task = &self.plan.tasks[usize::from(step.task)];
        let event = event_name(self.era, &step.what);
        let definition = find(self.era, event).expect("the plan has events of the era");
        let line = Line::of(definition, &step.what);
        let values = Values { slots: &line.slots, raw: &line.raw };
        let common = Common { pid: task.pid, flags: 0, preempt_count: 0 };
        let symbols = &mut |_: &[u8]| unreachable!("reclaim events print no functions");
        let record =
            definition.encode(ids[event], common, values, symbols).expect("the plan has values for every field");
        let payload = definition.print(values).expect("the plan has values for every field");
        Made { ts: step.ts, cpu: step.cpu, common, comm: task.comm, event, payload, record }
    }
}

/// The event of this era for a step.
fn event_name(era: Era, what: &What) -> &'static str {
    let throttled = era >= Era::V6_1;
    match what {
        What::KswapdWake { .. } => "mm_vmscan_kswapd_wake",
        What::KswapdSleep { .. } => "mm_vmscan_kswapd_sleep",
        What::Wakeup { .. } => "mm_vmscan_wakeup_kswapd",
        What::Begin { reclaim: Reclaim::Direct, .. } => "mm_vmscan_direct_reclaim_begin",
        What::Begin { reclaim: Reclaim::Memcg, .. } => "mm_vmscan_memcg_reclaim_begin",
        What::Begin { reclaim: Reclaim::Node, .. } => "mm_vmscan_node_reclaim_begin",
        What::End { reclaim: Reclaim::Direct, .. } => "mm_vmscan_direct_reclaim_end",
        What::End { reclaim: Reclaim::Memcg, .. } => "mm_vmscan_memcg_reclaim_end",
        What::End { reclaim: Reclaim::Node, .. } => "mm_vmscan_node_reclaim_end",
        What::Isolate { memcg: true, .. } if era <= Era::V3_5 => "mm_vmscan_memcg_isolate",
        What::Isolate { .. } => "mm_vmscan_lru_isolate",
        What::Shrink { .. } => "mm_vmscan_lru_shrink_inactive",
        What::ShrinkActive { .. } => "mm_vmscan_lru_shrink_active",
        What::Write { .. } if era <= Era::V3_5 => "mm_vmscan_writepage",
        What::Write { .. } => "mm_vmscan_write_folio",
        What::Wait { .. } if throttled => "mm_vmscan_throttled",
        What::Wait { conditional: false, .. } => "writeback_congestion_wait",
        What::Wait { conditional: true, .. } => "writeback_wait_iff_congested",
    }
}

/// Values in the form of a printed line.
struct Line {
    definition: &'static Definition,
    slots: Slots,
    raw: Vec<u8>,
}

impl Line {
    /// Sets a field, if the era's kernels have it.
    fn set(&mut self, name: &str, value: u64) {
        if let Some(slot) = self.definition.schema.slot(name.as_bytes()) {
            self.slots.set(slot, value);
        }
    }

    fn set_gfp(&mut self, words: &str) {
        let bits = gfp_bits(self.definition.era, words.as_bytes()).expect("words of all eras");
        let text = gfp_text(self.definition.era, bits);
        let range = Bytes { start: self.raw.len() as u32, len: text.len() as u32 };
        self.raw.extend_from_slice(text.as_bytes());
        for (slot, field) in self.definition.schema.fields.iter().enumerate() {
            if matches!(field.shape, Shape::Gfp) {
                self.slots.set(slot, range.to_slot());
            }
        }
    }

    fn of(definition: &'static Definition, what: &What) -> Line {
        let mut line = Line { definition, slots: Slots::default(), raw: Vec::new() };
        match *what {
            What::KswapdWake { nid, order } => {
                line.set("nid", nid.into());
                line.set("zid", 2);
                line.set("order", order.into());
            }
            What::KswapdSleep { nid } => line.set("nid", nid.into()),
            What::Wakeup { nid, order } => {
                line.set("nid", nid.into());
                line.set("zid", 1);
                line.set("order", order.into());
                line.set_gfp("GFP_HIGHUSER_MOVABLE");
            }
            What::Begin { reclaim, order } => {
                line.set("nid", 0);
                line.set("order", order.into());
                line.set("may_writepage", 1);
                line.set_gfp(if reclaim == Reclaim::Direct { "GFP_KERNEL" } else { "GFP_HIGHUSER" });
            }
            What::End { reclaimed, .. } => line.set("nr_reclaimed", reclaimed),
            What::Isolate { active, file, scanned, taken, order, .. } => {
                let mode = match (definition.era, active) {
                    (Era::V2_6_36, _) => u64::from(active),
                    (Era::V3_3, _) => 1 + u64::from(active),
                    _ => 0,
                };
                let zero = ["nr_skipped", "contig_taken", "contig_dirty", "contig_failed"];
                zero.iter().for_each(|name| line.set(name, 0));
                line.set("isolate_mode", mode);
                line.set("highest_zoneidx", 3);
                line.set("order", order.into());
                line.set("nr_requested", scanned.max(32));
                line.set("nr_scanned", scanned);
                line.set("nr_taken", taken);
                line.set("file", file.into());
                line.set("lru", list(active, file));
            }
            What::Shrink { nid, scanned, reclaimed, priority, flags } => {
                let zero = [
                    "nr_dirty",
                    "nr_writeback",
                    "nr_congested",
                    "nr_immediate",
                    "nr_activate_anon",
                    "nr_activate_file",
                ];
                zero.iter().for_each(|name| line.set(name, 0));
                line.set("nid", nid.into());
                line.set("zid", 1);
                line.set("nr_scanned", scanned);
                line.set("nr_reclaimed", reclaimed);
                line.set("nr_ref_keep", scanned - reclaimed);
                line.set("nr_unmap_fail", 0);
                line.set("priority", priority.into());
                line.set("flags", flags.into());
            }
            What::ShrinkActive { nid, taken, flags } => {
                line.set("nid", nid.into());
                line.set("nr_taken", taken);
                line.set("nr_active", 0);
                line.set("nr_deactivated", taken);
                line.set("nr_referenced", 0);
                line.set("priority", 12);
                line.set("flags", flags.into());
            }
            What::Write { pfn, flags } => {
                line.set("pfn", pfn.into());
                line.set("flags", flags.into());
            }
            What::Wait { conditional, timeout, delayed } => {
                let reason = if conditional { "VMSCAN_THROTTLE_CONGESTED" } else { "VMSCAN_THROTTLE_WRITEBACK" };
                line.set("nid", 0);
                line.set("usec_timeout", timeout.into());
                line.set("usec_delayed", delayed.into());
                line.set("reason", THROTTLE.index_of(reason.as_bytes()).expect("a word of the table"));
            }
        }
        line
    }
}

/// Index of an LRU list.
fn list(active: bool, file: bool) -> u64 {
    let name = match (active, file) {
        (false, false) => "inactive_anon",
        (true, false) => "active_anon",
        (false, true) => "inactive_file",
        (true, true) => "active_file",
    };
    LRU.index_of(name.as_bytes()).expect("a word of the table")
}

#[cfg(test)]
mod tests;
