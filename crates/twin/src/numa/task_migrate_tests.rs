//! Tests of the search for a CPU and of balancing, on two nodes of two CPUs.

use super::task_compare::Search;
use super::task_migrate::Move;
use super::{Costs, Mm, Numa, NumaCtx, Rules, Task, Topology};
use crate::hw::load::Load;
use crate::hw::{Cpu, Curve, LoopCosts, Machine, Memory, PageCosts, Path};
use crate::mm::costs::FaultCosts;
use crate::mm::kernel::{Kernel, KernelRules};
use crate::mm::memory::AccessState;
use crate::mm::vmscan as reclaim;
use crate::page_alloc as alloc;
use crate::probe::Probe;
use crate::sched::{Balancer, Level, RunQueues};
use crate::vmstat::{Design, Dialect, VmStatRules};

const COSTS: LoopCosts = LoopCosts { work: 200.0, free_to_buddy: 0.0, count_s8: 1.0, count_u16: 1.0, count_word: 1.0 };

struct Setup {
    kernel: Kernel,
    memory: AccessState,
    queues: RunQueues,
    numa: Numa,
}

/// Tasks on CPUs, each with its faults on nodes 0 and 1, of kernel `release`.
fn setup(release: &str, tasks: &[(u32, [u64; 2])]) -> Setup {
    let cpus = (0..4).map(|cpu| Cpu { node: cpu / 2, core: cpu }).collect();
    let machine = Machine::pc(&[1 << 16, 1 << 16], 0, cpus, vec![vec![10, 20], vec![20, 10]]).unwrap();
    let costs = PageCosts {
        clock_khz: 1_000_000,
        alone: COSTS,
        shared_core: COSTS,
        refetch: 1.0,
        read_line: 1.0,
        interleave: 0,
        refill: 0,
        lru_add: 0,
    };
    let (design, dialect) = (Design::Off, Dialect::V6_1);
    let early_drift_marks = false;
    let vmstat =
        VmStatRules { design, threshold: None, stat_interval: 1_000_000_000, hz: 250, early_drift_marks, dialect };
    let queues = RunQueues::new(&machine);
    let kernel = Kernel::new(
        machine,
        costs,
        KernelRules { alloc: alloc::Rules::V6_1, vmstat, reclaim: reclaim::Rules::V6_1 },
        Probe::off(),
    )
    .unwrap();
    let curve = Curve::new(&[]).unwrap();
    let path = Path { idle_ns: 100.0, peak: 1e9 };
    let memory = AccessState::new(
        Load::new(Memory::new(2, vec![path; 4], curve.clone(), curve).unwrap()),
        FaultCosts::default(),
        1,
    );
    let topology = Topology::new(vec![vec![10, 20], vec![20, 10]], vec![vec![0, 1], vec![2, 3]], false);
    let task = |(number, &(cpu, faults)): (usize, &(u32, [u64; 2]))| {
        let mut task = Task::new(number as i32, 0, 0, None);
        (task.cpu, task.alive, task.numa_faults) = (cpu, true, vec![0; 16]);
        (task.numa_faults[1], task.numa_faults[3]) = (faults[0], faults[1]);
        task.total_numa_faults = faults[0] + faults[1];
        task.numa_preferred_nid = Some(usize::from(faults[1] > faults[0]));
        task.numa_scan_period = 1000;
        task
    };
    let list = tasks.iter().enumerate().map(task).collect();
    let (mappings, vmas) = Default::default();
    let mm = Mm { mappings, numa_scan_seq: 1, users: 1, vmas, ..Mm::default() };
    let numa = Numa::new(Rules::of(release), topology, Costs::least(2), list, vec![mm], vec!["p".into()]);
    let mut setup = Setup { kernel, memory, queues, numa };
    for (number, &(cpu, _)) in tasks.iter().enumerate() {
        setup.queues.enqueue(cpu, number);
    }
    setup
}

impl Setup {
    fn migrate(&mut self, task: usize) -> Option<Move> {
        let mut ctx = NumaCtx { kernel: &mut self.kernel, memory: &mut self.memory, queues: &self.queues };
        self.numa.numa_migrate_preferred(&mut ctx, task)
    }
}

#[test]
fn a_task_moves_to_an_idle_cpu_of_its_node() {
    // Two tasks on the wrong node, none on the right one: two more there would be too many for the balancer, one not.
    let mut at = setup("6.1", &[(0, [0, 100]), (1, [100, 0])]);
    assert_eq!(at.migrate(0), Some(Move::To(2)));
    assert_eq!(at.migrate(1), None, "it is at home");
    assert_eq!(at.numa.tasks[0].numa_migrate_retry, at.numa.rules.ms_to_jiffies(1000) / 16);
    let mut at = setup("6.1", &[(0, [0, 100])]);
    at.numa.tasks[0].allowed = Some(vec![0, 3]);
    assert_eq!(at.migrate(0), Some(Move::To(3)));
}

#[test]
fn running_tasks_change_places_if_both_gain_enough() {
    let swapped = |release: &str, others: [u64; 2]| {
        setup(release, &[(0, [0, 100]), (1, [100, 0]), (2, others), (3, [0, 100])]).migrate(0)
    };
    assert_eq!(swapped("6.1", [100, 0]), Some(Move::Swap(2, 2)));
    assert_eq!(swapped("4.17", [100, 0]), Some(Move::Swap(2, 2)));
    // At home on that node: 1000 - 1000 leaves nothing.
    assert_eq!(swapped("6.1", [0, 100]), None);
    // 1000 - 960 less a sixteenth is 38, 1000 - 970 less a sixteenth 29.
    assert_eq!(swapped("6.1", [20, 980]), Some(Move::Swap(2, 2)));
    assert_eq!(swapped("6.1", [15, 985]), None);
    let mut held = setup("6.1", &[(0, [0, 100]), (1, [100, 0]), (2, [100, 0]), (3, [0, 100])]);
    held.numa.tasks[2].allowed = Some(vec![2, 3]);
    assert_eq!(held.migrate(0), None, "the partner may not come");
}

#[test]
fn a_partner_that_prefers_the_node_is_swapped_before_a_better_one() {
    // Task 2 gains more, task 3 prefers the node; both prefer none other.
    let mut at = setup("6.1", &[(0, [0, 100]), (1, [100, 0]), (2, [90, 10]), (3, [60, 40])]);
    at.numa.tasks[2].numa_preferred_nid = None;
    assert_eq!(at.migrate(0), Some(Move::Swap(3, 3)));
}

#[test]
fn dead_tasks_are_no_partners() {
    let mut at = setup("6.1", &[(0, [0, 100]), (1, [100, 0]), (2, [100, 0]), (3, [0, 100])]);
    at.numa.tasks[2].alive = false;
    // Its CPU counts as idle, and taking it would leave the nodes unequal.
    assert_eq!(at.migrate(0), None);
    let mut ctx = NumaCtx { kernel: &mut at.kernel, memory: &mut at.memory, queues: &at.queues };
    at.numa.tasks[0].numa_preferred_nid = None;
    assert_eq!(at.numa.numa_migrate_preferred(&mut ctx, 0), None);
    let search = Search::new(&at.numa, &ctx, 0, 0);
    assert_eq!((search.best_cpu, search.best_task), (None, None));
}

/// Tasks that a CPU pulls at the last of some consecutive ticks.
fn pulled(at: &Setup, balancer: &mut Balancer, place: (u32, Level), ticks: u64) -> Vec<usize> {
    let mut last = Vec::new();
    for tick in 0..ticks {
        let now = 1_000_000_000 + tick * 4_000_000;
        last = at.numa.balance(balancer, place, &at.queues, |_| true, &mut Probe::off(), now);
    }
    last
}

#[test]
fn idle_cpus_pull_allowed_threads() {
    let tasks = [(0, [100, 0]), (0, [100, 0]), (0, [100, 0]), (2, [0, 100]), (3, [0, 100])];
    // The one that ran longest ago, and no more than half of what there is more.
    assert_eq!(pulled(&setup("6.1", &tasks), &mut Balancer::new(4), (1, Level::Node), 1), [1]);
    let from_far = |cpu: u32, preferred: [usize; 3], ticks: u64| {
        let mut at = setup("6.1", &[(0, [100, 0]), (0, [100, 0]), (0, [100, 0])]);
        for (task, nid) in preferred.into_iter().enumerate() {
            at.numa.tasks[task].numa_preferred_nid = Some(nid);
        }
        pulled(&at, &mut Balancer::new(4), (cpu, Level::Machine), ticks)
    };
    // All are on their preferred node: no other task could be moved instead.
    assert_eq!(from_far(2, [0, 0, 0], 1), [1, 2]);
    assert_eq!(from_far(3, [0, 0, 0], 1), [0; 0], "the node's first idle CPU does it");
    // A task that is not on its preferred node is moved first, unless it runs.
    assert_eq!(from_far(2, [0, 0, 1], 1), [2]);
    assert_eq!(from_far(2, [1, 0, 0], 1), [0; 0]);
    // After three failures they are moved nevertheless.
    assert_eq!(from_far(2, [1, 0, 0], 4), [1, 2]);
}

#[test]
fn busy_cpus_pull_less_often() {
    let at = setup("6.1", &[(0, [100, 0]), (0, [100, 0]), (1, [100, 0])]);
    let place = (1, Level::Node);
    let mut balancer = Balancer::new(4);
    balancer.ticked(1, &at.queues);
    // 512 of load are missing, a task is 1024: it counts half after a failure. Two milliseconds, times 16.
    assert_eq!([1, 7].map(|ticks| pulled(&at, &mut Balancer::new(4), place, ticks)), [[0; 0], [0; 0]]);
    assert_eq!(pulled(&at, &mut balancer, place, 8), [1]);
    // One that has just become idle does not wait.
    let empty = setup("6.1", &[(0, [100, 0]), (0, [100, 0])]);
    let mut balancer = Balancer::new(4);
    balancer.ticked(1, &at.queues);
    assert_eq!([1, 2].map(|_| pulled(&empty, &mut balancer, place, 1)), [[1], [1]]);
}
