//! Groups of tasks that share memory: `task_numa_group`, `task_numa_free`, `numa_group_count_active_nodes`; 3.13 to 6.12.
//!
//! A group's statistics are the sum of its members' decayed ones: joins and exits move a task's part, placements add
//! the task's change. Two groups of equal size are told apart by the order in which they were made, where the kernel
//! compares addresses. Left out: groups of tasks of other users are as groupable as any (`get_numa_group` tests only
//! that the group lives). Checked by a property test of that sum over random joins, faults, placements and exits.

use super::task::{CPU, MEM, Task, fault_index};

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

    /// True if a task goes over to another's group: that is larger, or as large and older.
    pub(crate) fn joins(&self, task: &Task, other: &Task) -> bool {
        let (Some(own), Some(theirs)) = (self.of(task), self.of(other)) else { return false };
        task.numa_group != other.numa_group
            && own.nr_tasks <= theirs.nr_tasks
            && (own.nr_tasks != theirs.nr_tasks || own.order >= theirs.order)
    }

    /// A task goes over to another's group with its decayed faults.
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
