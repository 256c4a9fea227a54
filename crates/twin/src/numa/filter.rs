//! Whether a page should follow a task: `should_numa_migrate_memory` and its ancestors; 3.13 to 6.12.
//!
//! The two-stage filter: a page stores the CPU and task of its last fault (cpupid); it moves only if that was on the
//! node that faults now, or the same task. Then the rule for shared pages decides. Not modelled: memory tiering. Each
//! answer names its rule, for explanations. Checked by tests of each rule.

use super::group::Group;
use super::{Rules, Task};
use crate::mm::prot_numa::Balance;
use mmtwin_event::rules::Rule;
use mmtwin_scenario::kernel::{ActiveNodesCompare, SharedPages};

/// cpupid of a page that has none yet.
pub(crate) const UNSET: u32 = u32::MAX;

/// `cpu_pid_to_cpupid`.
pub(crate) fn cpupid(cpu: u32, pid: i32, cpu_bits: u32) -> u32 {
    (cpu & ((1 << cpu_bits) - 1)) << 8 | pid as u32 & 0xff
}

/// CPU of a cpupid.
pub(crate) fn cpu_of(cpupid: u32) -> u32 {
    cpupid >> 8
}

/// `cpupid_match_pid`: the low eight bits.
pub(crate) fn matches(pid: i32, cpupid: u32) -> bool {
    pid as u32 & 0xff == cpupid & 0xff
}

/// `cpupid_pid_unset`, true also for a pid that ends in ff.
fn pid_unset(cpupid: u32) -> bool {
    cpupid & 0xff == 0xff
}

/// A hinting fault that may move its page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FaultContext {
    /// The fault before.
    pub last: u32,
    /// Node of the CPU in `last`, if there is such a CPU.
    pub last_node: Option<usize>,
    /// Node of the page.
    pub src: usize,
    /// Node of the CPU.
    pub dst: usize,
}

/// True if the page may move to the task's node, and by which rule. The cpupid has been exchanged.
pub(crate) fn should_migrate(rules: &Rules, task: &mut Task, group: Option<&Group>, of: FaultContext) -> (bool, Rule) {
    let is_private = matches(task.pid, of.last);
    let early = rules.config.first_scans && (task.numa_preferred_nid.is_none() || task.numa_scan_seq <= 4);
    if early && (pid_unset(of.last) || is_private) {
        return (true, Rule::FirstScans);
    }
    if !pid_unset(of.last) && of.last_node != Some(of.dst) {
        if rules.config.shared_pages == SharedPages::Deferred && !is_private {
            task.numa_migrate_deferred = rules.migrate_deferred;
        }
        return (false, Rule::TwoStage);
    }
    if is_private {
        return (true, Rule::Private);
    }
    match rules.config.shared_pages {
        SharedPages::Deferred => {
            let stays = task.numa_migrate_deferred > 0;
            task.numa_migrate_deferred = task.numa_migrate_deferred.saturating_sub(1);
            (!stays, if stays { Rule::Deferred } else { Rule::NotDeferred })
        }
        SharedPages::None => (true, Rule::UnfilteredShared),
        SharedPages::ActiveSet => {
            group.map_or((true, Rule::NoGroup), |group| by_active_set(rules, group, of.src, of.dst))
        }
        SharedPages::ThreeQuarters => {
            group.map_or((true, Rule::NoGroup), |group| by_three_quarters(group, of.src, of.dst))
        }
    }
}

/// Into the active set from outside always, inside it towards the node with less memory, out of it never.
fn by_active_set(rules: &Rules, group: &Group, src: usize, dst: usize) -> (bool, Rule) {
    let active = |nid: usize| group.mask >> nid & 1 == 1;
    if !active(dst) {
        return (false, Rule::DstInactive);
    }
    if !active(src) {
        return (true, Rule::SrcInactive);
    }
    let (from, to) = (group.mem(src), group.mem(dst));
    let less = match rules.config.active_nodes_compare {
        ActiveNodesCompare::Multiply => to < from * 3 / 4,
        ActiveNodesCompare::Shift => to < from - (from >> 2),
    };
    (less, Rule::BothActive)
}

/// Where CPUs use much more memory, or where memory is used more per CPU fault.
fn by_three_quarters(group: &Group, src: usize, dst: usize) -> (bool, Rule) {
    if group.cpu(dst) > group.cpu(src) * 3 {
        return (true, Rule::TripleCpu);
    }
    (group.cpu(dst) * group.mem(src) * 3 > group.cpu(src) * group.mem(dst) * 4, Rule::ThreeQuarters)
}

/// True if a fault on node `here` exchanges the cpupid: all faults that the policy allows to move the page do, unless
/// local ones stop at the test of the implicit policy (5.15+).
pub(crate) fn exchanges(rules: &Rules, balance: Balance, is_local: bool, here: usize) -> bool {
    match balance {
        Balance::Never => false,
        Balance::Anywhere => !is_local || rules.config.cpupid_xchg_on_local,
        Balance::Within(nodes) => nodes.has(here),
    }
}

#[cfg(test)]
mod tests {
    use super::super::task::{CPU, MEM, fault_index};
    use super::*;

    fn task(preferred: Option<usize>, seq: i32) -> Task {
        let mut task = Task::new(0x1234, 1, 0, None);
        (task.numa_preferred_nid, task.numa_scan_seq) = (preferred, seq);
        task
    }

    fn group(cpu: [u64; 2], mem: [u64; 2]) -> Group {
        let mut group = Group::new(1, 2, 0, 0);
        for nid in 0..2 {
            group.faults[fault_index(2, CPU, nid, false)] = cpu[nid];
            group.faults[fault_index(2, MEM, nid, true)] = mem[nid];
        }
        group
    }

    fn of(last: u32, last_node: usize) -> FaultContext {
        FaultContext { last, last_node: Some(last_node), src: 0, dst: 1 }
    }

    const OWN: u32 = 3 << 8 | 0x34;
    const OTHER: u32 = 3 << 8 | 0x35;

    #[test]
    fn cpupids_keep_eight_bits_of_the_pid() {
        assert_eq!(cpupid(5, 0x1234, 13), 5 << 8 | 0x34);
        assert_eq!((cpu_of(cpupid(9000, 1, 13)), matches(0x5634, OWN), matches(0x35, OWN)), (9000 - 8192, true, false));
    }

    #[test]
    fn the_filter_requires_two_faults_from_a_node() {
        let rules = Rules::of("6.1");
        let ask = |last, node| should_migrate(&rules, &mut task(Some(0), 9), None, of(last, node)).0;
        assert!(!ask(OTHER, 0) && ask(OTHER, 1) && !ask(OWN, 0) && ask(OWN, 1));
        // Unset, or a pid that reads as unset: the first fault passes the filter.
        assert!(ask(UNSET, 0) && ask(3 << 8 | 0xff, 0));
        let early = |last| should_migrate(&rules, &mut task(None, 9), None, of(last, 0)).0;
        assert!(early(OWN) && early(UNSET) && !early(OTHER));
        assert_eq!(should_migrate(&rules, &mut task(Some(0), 4), None, of(OWN, 0)), (true, Rule::FirstScans));
        let old = Rules::of("4.17");
        assert_eq!(should_migrate(&old, &mut task(None, 0), None, of(OWN, 0)), (false, Rule::TwoStage));
    }

    #[test]
    fn shared_pages_stay_where_they_are_used() {
        let rules = Rules::of("6.1");
        let ask = |cpu, mem| should_migrate(&rules, &mut task(Some(0), 9), Some(&group(cpu, mem)), of(OTHER, 1)).0;
        assert!(ask([10, 31], [1, 1]) && !ask([10, 30], [1, 30]));
        assert!(ask([10, 10], [41, 30]) && !ask([10, 10], [40, 30]));
        // Nothing known: 0 > 0 does not hold.
        assert!(!ask([0, 0], [0, 0]));
    }

    #[test]
    fn the_active_set_of_2014() {
        let mut rules = Rules::of("2014-v1");
        let ask = |mask, mem, rules: &Rules| {
            let mut group = group([0, 0], mem);
            group.mask = mask;
            should_migrate(rules, &mut task(Some(0), 9), Some(&group), of(OTHER, 1)).0
        };
        assert!(!ask(0b01, [100, 0], &rules) && ask(0b10, [0, 100], &rules));
        assert!(ask(0b11, [100, 74], &rules) && !ask(0b11, [100, 75], &rules));
        // 3/4 of 7 is 5 in one form, 6 in the other.
        assert!(!ask(0b11, [7, 5], &rules));
        rules.config.active_nodes_compare = ActiveNodesCompare::Shift;
        assert!(ask(0b11, [7, 5], &rules));
    }

    #[test]
    fn deferred_faults_count_down() {
        let mut rules = Rules::of("3.13");
        rules.migrate_deferred = 2;
        let mut task = task(Some(0), 9);
        let mut ask = |last, node| should_migrate(&rules, &mut task, None, of(last, node));
        assert_eq!([ask(OTHER, 0), ask(OWN, 1)], [(false, Rule::TwoStage), (true, Rule::Private)]);
        let stays = (false, Rule::Deferred);
        assert_eq!([0; 3].map(|_| ask(OTHER, 1)), [stays, stays, (true, Rule::NotDeferred)]);
        // A private fault that fails the filter defers nothing.
        assert!(!ask(OWN, 0).0);
        assert_eq!(task.numa_migrate_deferred, 0);
    }
}
