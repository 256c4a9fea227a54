//! Groups of tasks that share memory: `task_numa_group`, `task_numa_free`, `numa_group_count_active_nodes`; 3.13 to
//! 6.12.
//!
//! A group's statistics are the sum of its members' decayed ones: joins and exits move a task's part, placements add
//! the task's change. Two groups of equal size are ordered by their creation, where the kernel compares addresses. Not
//! modelled: users; tasks of any user can be grouped (`get_numa_group` tests only that the group is alive). Checked by
//! a property test of that sum over random joins, faults, placements and exits.

use super::Task;
use super::task::{CPU, MEM, fault_index};
use mmtwin_event::rules::Rule;

/// A group.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// Pid of the task that made it.
    pub gid: i32,
    pub refcount: u64,
    pub nr_tasks: u64,
    /// Nodes with more than a third of the most used one's faults.
    pub active_nodes: u64,
    pub max_faults_cpu: u64,
    pub total_faults: u64,
    /// By [`fault_index`], memory and CPU.
    pub faults: Vec<u64>,
    /// Active nodes of the 2014 series.
    pub mask: u64,
    nodes: usize,
    order: u64,
}

impl Group {
    /// A group of one, made by a task that runs on `node`; the `order`-th.
    pub(crate) fn new(gid: i32, nodes: usize, node: usize, order: u64) -> Group {
        Group {
            gid,
            refcount: 1,
            nr_tasks: 1,
            active_nodes: 1,
            max_faults_cpu: 0,
            total_faults: 0,
            faults: vec![0; 4 * nodes],
            mask: 1 << node,
            nodes,
            order,
        }
    }

    fn both(&self, s: usize, nid: usize) -> u64 {
        let at = fault_index(self.nodes, s, nid, false);
        self.faults[at] + self.faults[at + 1]
    }

    /// Faults in memory of a node: `group_faults`.
    pub(crate) fn mem(&self, nid: usize) -> u64 {
        self.both(MEM, nid)
    }

    /// Faults by CPUs of a node: `group_faults_cpu`.
    pub(crate) fn cpu(&self, nid: usize) -> u64 {
        self.both(CPU, nid)
    }

    /// Shared memory faults of all nodes.
    pub(crate) fn shared(&self) -> u64 {
        (0..self.nodes).map(|nid| self.faults[fault_index(self.nodes, MEM, nid, false)]).sum()
    }

    /// Private memory faults of all nodes.
    pub(crate) fn private(&self) -> u64 {
        (0..self.nodes).map(|nid| self.faults[fault_index(self.nodes, MEM, nid, true)]).sum()
    }

    /// `numa_is_active_node`: a third of the most used node's faults.
    pub(crate) fn is_active(&self, nid: usize) -> bool {
        self.cpu(nid) * 3 > self.max_faults_cpu
    }

    /// `numa_group_count_active_nodes`.
    pub(crate) fn count_active_nodes(&mut self) {
        let most = (0..self.nodes).map(|nid| self.cpu(nid)).max().unwrap_or(0);
        self.active_nodes = (0..self.nodes).filter(|&nid| self.cpu(nid) * 3 > most).count() as u64;
        self.max_faults_cpu = most;
    }

    fn add(&mut self, task: &Task) {
        for (sum, own) in self.faults.iter_mut().zip(&task.numa_faults) {
            *sum += own;
        }
        self.total_faults += task.total_numa_faults;
    }

    fn take(&mut self, task: &Task) {
        for (sum, own) in self.faults.iter_mut().zip(&task.numa_faults) {
            *sum -= own;
        }
        self.total_faults -= task.total_numa_faults;
    }
}

/// All groups. A number stays a group's for ever; a freed group leaves its place empty.
#[derive(Clone, Debug, Default)]
pub(crate) struct Groups {
    list: Vec<Option<Group>>,
}

impl Groups {
    /// The group of a task.
    pub(crate) fn of(&self, task: &Task) -> Option<&Group> {
        self.list.get(task.numa_group?)?.as_ref()
    }

    /// The same, to be changed.
    pub(crate) fn of_mut(&mut self, task: &Task) -> Option<&mut Group> {
        self.list.get_mut(task.numa_group?)?.as_mut()
    }

    /// A group by its number.
    pub(crate) fn get_mut(&mut self, number: usize) -> Option<&mut Group> {
        self.list.get_mut(number)?.as_mut()
    }

    /// Makes a group of one task, which runs on a node.
    pub(crate) fn create(&mut self, task: &mut Task, nodes: usize, node: usize) {
        let mut group = Group::new(task.pid, nodes, node, self.list.len() as u64);
        group.add(task);
        task.numa_group = Some(self.list.len());
        self.list.push(Some(group));
    }

    /// [`Rule::Joined`] if a task joins another's group, which is larger, or as large and younger. Otherwise the reason
    /// why not; `None` if both are in one group, where there is nothing to decide.
    pub(crate) fn joins(&self, task: &Task, other: &Task) -> Option<Rule> {
        let (Some(own), Some(theirs)) = (self.of(task), self.of(other)) else { return Some(Rule::NoOtherGroup) };
        if task.numa_group == other.numa_group {
            return None;
        }
        Some(match own.nr_tasks.cmp(&theirs.nr_tasks) {
            std::cmp::Ordering::Greater => Rule::LargerGroup,
            std::cmp::Ordering::Equal if own.order > theirs.order => Rule::YoungerGroup,
            _ => Rule::Joined,
        })
    }

    /// A task joins another's group with its decayed faults.
    pub(crate) fn join(&mut self, task: &mut Task, to: usize) {
        self.leave(task);
        if let Some(Some(group)) = self.list.get_mut(to) {
            group.refcount += 1;
            group.nr_tasks += 1;
            group.add(task);
            task.numa_group = Some(to);
        }
    }

    /// A task leaves its group with its decayed faults.
    pub(crate) fn leave(&mut self, task: &mut Task) {
        let Some(number) = task.numa_group.take() else { return };
        if let Some(Some(group)) = self.list.get_mut(number) {
            group.take(task);
            group.nr_tasks -= 1;
            group.refcount -= 1;
            if group.refcount == 0 {
                self.list[number] = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Rules;
    use super::super::placement::tests::placed;
    use super::super::task::{CPUBUF, MEMBUF};
    use super::*;
    use proptest::prelude::*;

    const TASKS: usize = 6;

    /// Next step of a task.
    #[derive(Clone, Copy, Debug)]
    enum Step {
        Fault { nid: usize, private: bool, pages: u64 },
        Placement,
        Create,
        Meet(usize),
        Exit,
    }

    fn step() -> impl Strategy<Value = (usize, Step)> {
        let what = prop_oneof![
            4 => (0..2usize, any::<bool>(), 1..600u64)
                .prop_map(|(nid, private, pages)| Step::Fault { nid, private, pages }),
            3 => Just(Step::Placement),
            2 => Just(Step::Create),
            3 => (0..TASKS).prop_map(Step::Meet),
            1 => Just(Step::Exit),
        ];
        (0..TASKS, what)
    }

    fn check(groups: &Groups, tasks: &[Task]) {
        for (number, group) in
            groups.list.iter().enumerate().filter_map(|(number, group)| Some((number, group.as_ref()?)))
        {
            let members: Vec<&Task> = tasks.iter().filter(|task| task.numa_group == Some(number)).collect();
            assert_eq!((group.nr_tasks, group.refcount), (members.len() as u64, members.len() as u64));
            assert!(!members.is_empty(), "a group without members is freed");
            for at in 0..group.faults.len() {
                assert_eq!(group.faults[at], members.iter().map(|task| task.numa_faults[at]).sum::<u64>());
            }
            assert_eq!(group.total_faults, members.iter().map(|task| task.total_numa_faults).sum::<u64>());
        }
    }

    proptest! {
        #[test]
        fn a_group_is_the_sum_of_its_members(
            steps in prop::collection::vec(step(), 1..120),
            release in prop::sample::select(vec!["3.13", "2014-v1", "2014-v4", "merged-3.15", "4.17", "6.1"]),
        ) {
            let (rules, mut groups) = (Rules::of(release), Groups::default());
            let fresh = |number: usize| {
                let mut task = Task::new(number as i32 + 1, 1, 0, None);
                (task.numa_faults, task.numa_scan_period, task.load_sum) = (vec![0; 16], 1000, 0.5);
                task
            };
            let mut tasks: Vec<Task> = (0..TASKS).map(fresh).collect();
            for (at, step) in steps {
                match step {
                    Step::Fault { nid, private, pages } => {
                        for s in [MEMBUF, CPUBUF] {
                            tasks[at].numa_faults[fault_index(2, s, nid, private)] += pages;
                        }
                        tasks[at].locality.local += pages;
                    }
                    Step::Placement => {
                        tasks[at].sum_exec += 5_000_000;
                        tasks[at].exec_start += 8_000_000;
                        placed(&rules, &mut tasks[at], &mut groups);
                    }
                    Step::Create if tasks[at].numa_group.is_none() => groups.create(&mut tasks[at], 2, 0),
                    Step::Meet(other) if groups.joins(&tasks[at], &tasks[other]) == Some(Rule::Joined) => {
                        if let Some(to) = tasks[other].numa_group {
                            groups.join(&mut tasks[at], to);
                        }
                    }
                    Step::Exit => {
                        groups.leave(&mut tasks[at]);
                        tasks[at] = fresh(at);
                    }
                    Step::Create | Step::Meet(_) => {}
                }
                check(&groups, &tasks);
            }
        }
    }

    #[test]
    fn the_smaller_group_joins_then_the_older() {
        let mut groups = Groups::default();
        let mut tasks: Vec<Task> = (0..3).map(|pid| Task::new(pid, 1, 0, None)).collect();
        tasks.iter_mut().for_each(|task| task.numa_faults = vec![0; 16]);
        let joins = |groups: &Groups, tasks: &[Task], [a, b]: [usize; 2]| groups.joins(&tasks[a], &tasks[b]);
        assert_eq!(joins(&groups, &tasks, [0, 1]), Some(Rule::NoOtherGroup), "there is nothing to join");
        tasks.iter_mut().for_each(|task| groups.create(task, 2, 0));
        assert_eq!(joins(&groups, &tasks, [0, 1]), Some(Rule::Joined));
        assert_eq!(joins(&groups, &tasks, [1, 0]), Some(Rule::YoungerGroup));
        assert_eq!(joins(&groups, &tasks, [0, 0]), None);
        groups.join(&mut tasks[1], 0);
        assert_eq!(joins(&groups, &tasks, [2, 1]), Some(Rule::Joined));
        assert_eq!(joins(&groups, &tasks, [1, 2]), Some(Rule::LargerGroup));
        assert_eq!(groups.of(&tasks[1]).map(|group| (group.gid, group.refcount)), Some((0, 2)));
    }

    #[test]
    fn nodes_above_a_third_of_the_most_used_are_active() {
        let mut group = Group::new(1, 4, 0, 0);
        assert!(!group.is_active(0), "0 > 0 does not hold");
        group.count_active_nodes();
        assert_eq!((group.active_nodes, group.max_faults_cpu), (0, 0));
        for (nid, faults) in [90, 31, 30, 0].into_iter().enumerate() {
            group.faults[fault_index(4, CPU, nid, false)] = faults;
        }
        group.count_active_nodes();
        assert_eq!(
            (group.active_nodes, group.max_faults_cpu, group.is_active(1), group.is_active(2)),
            (2, 90, true, false)
        );
    }
}
