//! Decisions: the twin's own events of NUMA balancing (system `mmtwin`).
//!
//! Kernels do not trace the reasons for moves of pages and tasks; these events have the rule and its operands. Each is
//! built only if it is enabled. Checked by `tests/numa_decisions.rs`: they agree with the kernel's own events and
//! counters of the same run.

use super::filter::{FaultContext, UNSET, cpu_of, matches};
use super::period::FaultTypes;
use super::task::Locality;
use super::{Groups, Numa, NumaCtx, Task};
use crate::hw::PAGE_SIZE;
use crate::mm::prot_numa::Unit;
use crate::mm::region::Entry;
use crate::probe::{Probe, Task as TaskIds};
use crate::time::Ns;
use mmtwin_event::Kind;
use mmtwin_event::rules::Rule;
use mmtwin_event::value::Hex;
use mmtwin_event::vocabulary::{NumaGroup, NumaHintFault, NumaMigrateRefused, NumaScanPeriod};

/// The kernel's number for a node: -1 is none.
pub(crate) fn nid_of(nid: Option<usize>) -> i32 {
    nid.map_or(-1, |nid| nid as i32)
}

/// State of a hinting fault after its page has been migrated or not.
#[derive(Clone, Copy, Debug)]
pub(super) struct Handled {
    /// When it began.
    pub at: Ns,
    pub mapping: usize,
    pub unit: Unit,
    /// Frame of the page before.
    pub pfn: u32,
    pub fault: FaultContext,
    pub rule: Rule,
    /// The page should follow.
    pub wanted: bool,
    /// It did.
    pub migrated: bool,
}

impl Numa {
    /// Writes `numa_hint_fault`.
    pub(super) fn write_fault(&self, ctx: &mut NumaCtx<'_>, task: usize, of: Handled) {
        if !ctx.kernel.probe.on(Kind::NumaHintFault) {
            return;
        }
        let Handled { at, mapping, unit, pfn, fault, rule, wanted, migrated } = of;
        let (owner, group) = (&self.tasks[task], self.groups.of(&self.tasks[task]));
        let mapping = &ctx.memory.mappings[mapping];
        let new_pfn = match ctx.memory.regions[mapping.region].entry(unit.page.into()) {
            Entry::Present(new) => ctx.kernel.alloc.frames.head(new),
            _ => pfn,
        };
        let known = fault.last != UNSET;
        // Of the pid only eight bits are kept: it is known if one task alone has them.
        let mut same = self.tasks.iter().filter(|other| known && matches(other.pid, fault.last));
        let last_pid = same.next().filter(|_| same.next().is_none());
        let (src, dst) = (fault.src, fault.dst);
        let event = NumaHintFault {
            tgid: owner.tgid,
            addr: Hex(mapping.start + u64::from(unit.page) * PAGE_SIZE),
            nr_pages: unit.pages() as u32,
            pfn: pfn.into(),
            new_pfn: new_pfn.into(),
            src_nid: src as i32,
            dst_nid: dst as i32,
            last_cpu: if known { cpu_of(fault.last) as i32 } else { -1 },
            last_pid: last_pid.map_or(-1, |last| last.pid),
            last_nid: nid_of(fault.last_node.filter(|_| known)),
            rule: rule.number(),
            wanted,
            migrated,
            preferred_nid: nid_of(owner.numa_preferred_nid),
            scan_seq: owner.numa_scan_seq,
            gid: group.map_or(0, |group| group.gid),
            cpu_src: group.map_or(0, |group| group.cpu(src)),
            cpu_dst: group.map_or(0, |group| group.cpu(dst)),
            mem_src: group.map_or(0, |group| group.mem(src)),
            mem_dst: group.map_or(0, |group| group.mem(dst)),
            deferred: owner.numa_migrate_deferred,
        };
        let ids = TaskIds { pid: owner.pid, tgid: owner.tgid };
        ctx.kernel.probe.write(at, owner.cpu, ids, &event, b"");
    }

    /// Writes `numa_migrate_refused`; `figures` gives what there is and what there had to be.
    pub(super) fn write_refused(
        &self,
        ctx: &mut NumaCtx<'_>,
        task: usize,
        page: (u32, u64),
        nodes: (usize, usize),
        rule: Rule,
        figures: impl FnOnce(&NumaCtx<'_>) -> (i64, i64),
    ) {
        if !ctx.kernel.probe.on(Kind::NumaMigrateRefused) {
            return;
        }
        let of = &self.tasks[task];
        let (have, limit) = figures(ctx);
        let event = NumaMigrateRefused {
            pfn: page.0.into(),
            nr_pages: page.1 as u32,
            src_nid: nodes.0 as i32,
            dst_nid: nodes.1 as i32,
            rule: rule.number(),
            have,
            limit,
        };
        let ids = TaskIds { pid: of.pid, tgid: of.tgid };
        ctx.kernel.probe.write(ctx.kernel.now(of.cpu), of.cpu, ids, &event, b"");
    }
}

/// Writes `numa_group`: change of a task's group, and of the task whose page it shares.
pub(crate) fn write_group(probe: &mut Probe, at: Ns, groups: &Groups, task: &Task, other: Option<&Task>, rule: Rule) {
    if !probe.on(Kind::NumaGroup) {
        return;
    }
    let (own, theirs) = (groups.of(task), other.and_then(|other| groups.of(other)));
    let event = NumaGroup {
        pid: task.pid,
        gid: own.map_or(0, |group| group.gid),
        nr_tasks: own.map_or(0, |group| group.nr_tasks),
        rule: rule.number(),
        other_pid: other.map_or(0, |other| other.pid),
        other_gid: theirs.map_or(0, |group| group.gid),
        other_tasks: theirs.map_or(0, |group| group.nr_tasks),
    };
    probe.write(at, task.cpu, TaskIds { pid: task.pid, tgid: task.tgid }, &event, b"");
}

/// Writes `numa_scan_period` of a period that was set independent of faults.
pub(crate) fn write_period(probe: &mut Probe, at: Ns, old: u64, task: &Task, rule: Rule) {
    write_adapted(probe, at, (old, task), rule, Locality::default(), FaultTypes::default());
}

/// Writes `numa_scan_period`; `old` is the period before.
pub(super) fn write_adapted(
    probe: &mut Probe,
    at: Ns,
    (old, task): (u64, &Task),
    rule: Rule,
    locality: Locality,
    types: FaultTypes,
) {
    let event = NumaScanPeriod {
        pid: task.pid,
        rule: rule.number(),
        old,
        period: task.numa_scan_period,
        local: locality.local,
        remote: locality.remote,
        failed: locality.failed,
        private: types.private,
        shared: types.shared,
    };
    probe.write(at, task.cpu, TaskIds { pid: task.pid, tgid: task.tgid }, &event, b"");
}
