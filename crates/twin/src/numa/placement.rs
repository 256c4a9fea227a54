//! Preferred node of a task: `task_numa_placement` with `numa_get_avg_runtime`; 3.13 to 6.12.
//!
//! Runs when the address space has been scanned once more: faults since then are added to half of those before, CPU
//! faults weighted by the share of CPU time and of all faults, and the node with most memory faults becomes the
//! preferred one. Statistics that are halved in place differ here only in rounding down; that other tasks read the
//! halved value for some instructions is not modelled. A division by zero, which the first posting of 2014 has, is
//! counted and yields 0. Of 3.13 the changes of its series are known, the rest is from later versions. Checked by
//! tests.

use super::active::Moment;
use super::decisions::write_adapted;
use super::period::FaultTypes;
use super::task::{CPU, CPUBUF, MEM, MEMBUF, fault_index};
use super::{Groups, Mm, Rules, Task, Topology, active, nid_of};
use crate::probe::Probe;
use mmtwin_event::Kind;
use mmtwin_event::rules::Rule;
use mmtwin_event::vocabulary::{NumaNodeFaults, NumaPlacement};
use mmtwin_scenario::kernel::{ActiveSet, CpuWeight, GroupPlacement, PlacementMoves, Statistics};

/// `LOAD_AVG_MAX`: the load sum of a task that always ran.
pub(crate) const LOAD_AVG_MAX: u64 = 47742;

/// Remaining work of a placement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Placed {
    /// Older kernels: the task should move to its preferred node now.
    pub migrate: bool,
    /// The CPU weight divided by zero.
    pub divided_by_zero: bool,
}

/// Context of a placement.
pub(crate) struct PlacementCtx<'a> {
    pub rules: &'a Rules,
    pub topology: &'a Topology,
    pub groups: &'a mut Groups,
    pub mm: &'a mut Mm,
    /// Resident pages of the address space.
    pub rss: u64,
    pub probe: &'a mut Probe,
    pub moment: Moment,
    /// Now, in jiffies.
    pub jiffies: u64,
}

/// Runs at a fault of a task, if a scan has ended since the last time.
pub(crate) fn task_numa_placement(placement_ctx: &mut PlacementCtx<'_>, task: &mut Task) -> Placed {
    let (rules, topology, nodes) = (placement_ctx.rules, placement_ctx.topology, placement_ctx.topology.nodes());
    let mut placed = Placed::default();
    let seq = placement_ctx.mm.seq_at(placement_ctx.moment.at);
    if task.numa_scan_seq == seq {
        return placed;
    }
    task.numa_scan_seq = seq;
    task.numa_scan_period_max = rules.scan_max(placement_ctx.rss, placement_ctx.groups.of(task));
    let weighing = Weighing::new(rules, task, &mut placed);
    let types = decay(placement_ctx, task, &weighing);
    let (mut best, mut best_faults) = (None, 0);
    let (mut own_best, mut own_most) = (None, 0);
    for nid in 0..nodes {
        let own = task.faults(nodes, MEM, nid);
        let faults = placement_ctx.groups.of(task).map_or(own, |group| group.mem(nid));
        if faults > best_faults {
            (best, best_faults) = (Some(nid), faults);
        }
        if own > own_most {
            (own_best, own_most) = (Some(nid), own);
        }
    }
    if rules.config.period_before_placement {
        set_period(placement_ctx, task, types);
    }
    let mut chosen = best.map(|nid| if topology.has_cpus(nid) { nid } else { topology.nearest_with_cpus(nid) });
    let mut rule = if chosen == best { Rule::MostFaults } else { Rule::NearestCpus };
    let mut enough = best_faults > 0;
    if let Some(group) = placement_ctx.groups.of_mut(task) {
        match rules.config.active_set {
            ActiveSet::Count => group.count_active_nodes(),
            ActiveSet::FortyTwenty | ActiveSet::SixThreeSixteenths | ActiveSet::SixThreeSixteenthsMemory => {
                active::update(group, nodes, rules.config.active_set, placement_ctx.probe, placement_ctx.moment);
            }
            ActiveSet::None => {}
        }
        if rules.config.group_placement == GroupPlacement::Topology {
            let total = group.total_faults;
            let before = chosen;
            chosen = chosen.map(|nid| topology.preferred_group_nid(nid, total, |nid| group.mem(nid)));
            if chosen != before {
                rule = Rule::GroupTopology;
            }
        } else if own_best != best {
            chosen = Some(by_both(topology, placement_ctx.groups, task).or(own_best).unwrap_or(0));
            rule = Rule::TaskAndGroup;
        } else {
            chosen = own_best;
        }
    }
    if rules.config.own_faults_decide {
        enough = own_most > 0;
    }
    let old = task.numa_preferred_nid;
    if !enough || chosen.is_none() {
        rule = Rule::NoFaults;
    }
    if let Some(chosen) = chosen.filter(|_| enough) {
        let new = task.numa_preferred_nid != Some(chosen);
        task.numa_preferred_nid = Some(chosen);
        placed.migrate = match rules.config.placement_moves {
            PlacementMoves::NewNode => new,
            PlacementMoves::OtherNode => !topology.cpus[chosen].contains(&task.cpu),
            PlacementMoves::Never => false,
        };
    }
    write(placement_ctx, task, old, (best, best_faults), rule);
    if !rules.config.period_before_placement {
        set_period(placement_ctx, task, types);
    }
    placed
}

/// Writes what a placement was decided on, and how.
fn write(
    placement_ctx: &mut PlacementCtx<'_>,
    task: &Task,
    old: Option<usize>,
    best: (Option<usize>, u64),
    rule: Rule,
) {
    let Moment { at, cpu, ids } = placement_ctx.moment;
    let (nodes, group) = (placement_ctx.topology.nodes(), placement_ctx.groups.of(task));
    let (pid, gid) = (task.pid, group.map_or(0, |group| group.gid));
    if placement_ctx.probe.on(Kind::NumaNodeFaults) {
        for nid in 0..nodes {
            let (mem, cpu_faults) = (task.faults(nodes, MEM, nid), task.faults(nodes, CPU, nid));
            let (group_mem, group_cpu) = group.map_or((0, 0), |group| (group.mem(nid), group.cpu(nid)));
            let event = NumaNodeFaults { pid, gid, nid: nid as i32, mem, cpu: cpu_faults, group_mem, group_cpu };
            placement_ctx.probe.write(at, cpu, ids, &event, b"");
        }
    }
    if placement_ctx.probe.on(Kind::NumaPlacement) {
        let event = NumaPlacement {
            pid,
            gid,
            scan_seq: task.numa_scan_seq,
            rule: rule.number(),
            best_nid: nid_of(best.0),
            best_faults: best.1,
            old_nid: nid_of(old),
            nid: nid_of(task.numa_preferred_nid),
            active_nodes: group.map_or(0, |group| group.active_nodes),
            max_faults_cpu: group.map_or(0, |group| group.max_faults_cpu),
        };
        placement_ctx.probe.write(at, cpu, ids, &event, b"");
    }
}

/// 3.13: if the favourites of task and group differ, the node with the largest sum of both weights.
fn by_both(topology: &Topology, groups: &Groups, task: &Task) -> Option<usize> {
    let mut most = (0, None);
    for nid in 0..topology.nodes() {
        let weight = super::task_weight(topology, task, nid, topology.most)
            + super::group_weight(topology, groups, task, nid, topology.most);
        if weight > most.0 {
            most = (weight, Some(nid));
        }
    }
    most.1
}

fn set_period(placement_ctx: &mut PlacementCtx<'_>, task: &mut Task, types: FaultTypes) {
    let group = placement_ctx.groups.of(task);
    let (old, locality) = (task.numa_scan_period, task.locality);
    let (later, rule) = placement_ctx.rules.update_task_scan_period(task, types, placement_ctx.rss, group);
    if let Some(later) = later.filter(|_| placement_ctx.moment.at >= placement_ctx.mm.next_scan_said) {
        (placement_ctx.mm.numa_next_scan, placement_ctx.mm.next_scan_said) =
            (placement_ctx.jiffies + later, placement_ctx.moment.at);
    }
    write_adapted(placement_ctx.probe, placement_ctx.moment.at, (old, task), rule, locality, types);
}

/// How CPU faults are weighted in one placement.
#[derive(Clone, Copy, Debug)]
struct Weighing {
    kind: CpuWeight,
    runtime: u64,
    period: u64,
    /// Faults since the period was set, local and remote.
    faults: u64,
    by_zero: bool,
}

impl Weighing {
    fn new(rules: &Rules, task: &mut Task, placed: &mut Placed) -> Weighing {
        let kind = rules.config.cpu_weight;
        // The series counted one more; as merged that is in the formula.
        let posted = !matches!(kind, CpuWeight::None | CpuWeight::Modern65536);
        let faults = task.locality.local + task.locality.remote + u64::from(posted);
        let average = ((task.load_sum * LOAD_AVG_MAX as f64) as u64, LOAD_AVG_MAX);
        let (runtime, period) = if kind == CpuWeight::Average16384 || task.last_task_numa_placement == 0 {
            average
        } else {
            let period = task.exec_start as i64 - task.last_task_numa_placement as i64;
            (task.sum_exec.saturating_sub(task.last_sum_exec_runtime), period.max(0) as u64)
        };
        (task.last_sum_exec_runtime, task.last_task_numa_placement) = (task.sum_exec, task.exec_start);
        let by_zero = kind == CpuWeight::Unguarded1024 && faults.wrapping_mul(period) == 0;
        placed.divided_by_zero = by_zero;
        Weighing { kind, runtime, period, faults, by_zero }
    }

    /// Weighted CPU faults; products wrap as the kernel's.
    fn of(&self, count: u64) -> u64 {
        let Weighing { kind, runtime, period, faults, by_zero } = *self;
        let scaled = |scale: u64| scale.wrapping_mul(runtime).wrapping_mul(count);
        match kind {
            CpuWeight::None => count,
            CpuWeight::Unguarded1024 if by_zero => 0,
            CpuWeight::Unguarded1024 => scaled(1024) / faults.wrapping_mul(period),
            CpuWeight::Guarded1024 => scaled(1024) / faults.wrapping_mul(period).wrapping_add(1).max(1),
            CpuWeight::Average16384 | CpuWeight::Long16384 => {
                scaled(16384) / faults.wrapping_mul(period).wrapping_add(1).max(1)
            }
            CpuWeight::Modern65536 => ((runtime << 16) / (period + 1)).wrapping_mul(count) / (faults + 1),
        }
    }
}

/// Adds the buffers to half of what was before, in the task's and its group's statistics.
fn decay(placement_ctx: &mut PlacementCtx<'_>, task: &mut Task, weighing: &Weighing) -> FaultTypes {
    let nodes = placement_ctx.topology.nodes();
    let has_cpu_faults = placement_ctx.rules.config.cpu_faults;
    // Half of an odd number is rounded down where it is halved in place, up where half is subtracted.
    let kept = |old: u64| match placement_ctx.rules.config.statistics {
        Statistics::InPlace => old >> 1,
        Statistics::Local => old - old / 2,
    };
    let mut types = FaultTypes::default();
    let mut group = placement_ctx.groups.of_mut(task);
    for nid in 0..nodes {
        for private in [false, true] {
            let [mem, cpu, membuf, cpubuf] = [MEM, CPU, MEMBUF, CPUBUF].map(|s| fault_index(nodes, s, nid, private));
            let count = std::mem::take(&mut task.numa_faults[membuf]);
            let by_cpu = std::mem::take(&mut task.numa_faults[cpubuf]);
            *(if private { &mut types.private } else { &mut types.shared }) += count;
            let weighted = if has_cpu_faults { weighing.of(by_cpu) } else { 0 };
            for (at, new) in [(mem, count), (cpu, weighted)] {
                let old = task.numa_faults[at];
                let now = kept(old) + new;
                task.numa_faults[at] = now;
                if let Some(group) = &mut group {
                    group.faults[at] = group.faults[at] - old + now;
                }
                if at == mem {
                    task.total_numa_faults = task.total_numa_faults - old + now;
                    if let Some(group) = &mut group {
                        group.total_faults = group.total_faults - old + now;
                    }
                }
            }
        }
    }
    types
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::topology::tests::topology;
    use super::*;
    use crate::probe::Task as TaskIds;

    /// A placement after one more pass of the scanner.
    pub(crate) fn placed(rules: &Rules, task: &mut Task, groups: &mut Groups) -> Placed {
        let topology = topology(&[&[10, 20], &[20, 10]]);
        let (mappings, vmas) = Default::default();
        let seq = task.numa_scan_seq + 1;
        let mut mm = Mm { mappings, numa_scan_seq: seq, users: 1, vmas, ..Mm::default() };
        let moment = Moment { at: 0, cpu: 0, ids: TaskIds::default() };
        let (topology, mm, probe) = (&topology, &mut mm, &mut Probe::off());
        let mut placement_ctx = PlacementCtx { rules, topology, groups, mm, rss: 0, probe, moment, jiffies: 0 };
        let first = task_numa_placement(&mut placement_ctx, task);
        assert_eq!(task_numa_placement(&mut placement_ctx, task), Placed::default(), "once per pass");
        first
    }

    fn faulted(mem: [u64; 4]) -> Task {
        let mut task = Task::new(7, 7, 0, None);
        task.numa_faults = vec![0; 16];
        task.numa_faults[8..12].copy_from_slice(&mem);
        task.numa_faults[12..16].copy_from_slice(&mem);
        (task.load_sum, task.numa_scan_period) = (1.0, 1000);
        task.locality.local = mem.iter().sum();
        task
    }

    #[test]
    fn faults_decay_to_the_larger_half_and_a_lone_one_never() {
        let mut task = faulted([1, 0, 0, 9]);
        placed(&Rules::of("6.1"), &mut task, &mut Groups::default());
        assert_eq!(
            (&task.numa_faults[..4], task.total_numa_faults, task.numa_preferred_nid),
            (&[1, 0, 0, 9][..], 10, Some(1))
        );
        for expected in [5, 3, 2, 1, 1] {
            task.locality.local = 1;
            placed(&Rules::of("6.1"), &mut task, &mut Groups::default());
            assert_eq!((task.numa_faults[3], task.numa_faults[0]), (expected, 1));
        }
        let mut task = faulted([1, 0, 0, 9]);
        [9, 4, 2, 1, 0].into_iter().for_each(|expected| {
            placed(&Rules::of("3.13"), &mut task, &mut Groups::default());
            assert_eq!(task.numa_faults[3], expected);
        });
        assert_eq!(task.total_numa_faults, 0);
    }

    #[test]
    fn cpu_faults_are_weighted_by_time_and_part() {
        let weight = |release: &str| {
            let mut task = faulted([0, 30, 0, 10]);
            (task.last_task_numa_placement, task.exec_start) = (1_000_000, 3_000_000);
            (task.last_sum_exec_runtime, task.sum_exec, task.load_sum) = (500_000, 1_500_000, 0.25);
            let placed = placed(&Rules::of(release), &mut task, &mut Groups::default());
            (task.numa_faults[5], placed.divided_by_zero)
        };
        // Half of the time; 30 of 40 faults, or of 41 where one is added.
        assert_eq!(weight("2014-v1"), (1024 * 1_000_000 * 30 / (41 * 2_000_000), false));
        assert_eq!(weight("2014-v2"), (1024 * 1_000_000 * 30 / (41 * 2_000_000 + 1), false));
        assert_eq!(weight("2014-v3"), (16384 * 11935 * 30 / (41 * 47742 + 1), false));
        assert_eq!(weight("2014-v4"), (16384 * 1_000_000 * 30 / (41 * 2_000_000 + 1), false));
        assert_eq!(weight("6.1"), ((1_000_000u64 << 16) / 2_000_001 * 30 / 41, false));
        assert_eq!(weight("3.13"), (0, false));
        let mut task = faulted([0, 30, 0, 10]);
        (task.last_task_numa_placement, task.exec_start) = (5, 5);
        assert!(placed(&Rules::of("2014-v1"), &mut task, &mut Groups::default()).divided_by_zero);
        assert_eq!(task.numa_faults[5], 0);
    }

    #[test]
    fn a_group_decides_for_its_members() {
        let mut groups = Groups::default();
        let mut other = faulted([0, 0, 90, 0]);
        groups.create(&mut other, 2, 0);
        placed(&Rules::of("6.1"), &mut other, &mut groups);
        let mut task = faulted([0, 50, 0, 0]);
        groups.create(&mut task, 2, 0);
        groups.join(&mut task, 0);
        placed(&Rules::of("6.1"), &mut task, &mut groups);
        assert_eq!(task.numa_preferred_nid, Some(1));
        let group = groups.of(&task).unwrap();
        assert_eq!((group.nr_tasks, group.total_faults, group.mem(0), group.mem(1)), (2, 140, 50, 90));
        assert_eq!(group.active_nodes, 2);
        // 4.17 and older require faults of the task's own, and move it at once.
        for (own, preferred) in [(0, None), (20, Some(1))] {
            let mut task = faulted([0, own, 0, 0]);
            groups.create(&mut task, 2, 0);
            groups.join(&mut task, 0);
            assert_eq!(placed(&Rules::of("4.17"), &mut task, &mut groups).migrate, own > 0);
            assert_eq!(task.numa_preferred_nid, preferred);
        }
    }
}
