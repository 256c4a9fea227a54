//! Balancing load: `load_balance` as the pull of one waiting task from the busiest CPU to an idle one,
//! `can_migrate_task`, `migrate_degrades_locality`; wake-up on an idle CPU of the node. 3.13 to 6.12.
//!
//! Within a node an idle CPU pulls at every tick, between nodes once in as many milliseconds as the machine has CPUs.
//! Left out: everything finer of the kernel's balancer: groups, active balancing, cache domains within a node. Of the
//! two hooks of 3.13 only what is on by default. Checked by `numa_tests.rs`.

use super::RunQueues;
use crate::clock::Ns;
use crate::numa::{Numa, group_weight, nid_of, task_weight};
use crate::probe::{Probe, Task as Who};
use mmtwin_event::Kind;
use mmtwin_event::rules::Rule;
use mmtwin_event::vocabulary::NumaBalance;
use mmtwin_scenario::kernel::BalancerHook;

/// Nanoseconds of a millisecond.
const MS: Ns = 1_000_000;

/// What balancing remembers.
#[derive(Clone, Debug)]
pub(crate) struct Balancer {
    /// By CPU: when it may pull from other nodes again.
    next: Vec<Ns>,
    /// By CPU: attempts that moved nothing (`nr_balance_failed`).
    failed: Vec<u32>,
}

/// What a move between nodes does to a task's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Locality {
    Improves,
    Degrades,
    Neutral,
}

impl Balancer {
    pub(crate) fn new(cpus: usize) -> Balancer {
        Balancer { next: vec![0; cpus], failed: vec![0; cpus] }
    }

    /// The task that an idle CPU pulls now, if any.
    pub(crate) fn pull(
        &mut self,
        cpu: u32,
        queues: &RunQueues,
        numa: &Numa,
        probe: &mut Probe,
        now: Ns,
    ) -> Option<usize> {
        let node = |cpu: u32| numa.topology.cpus.iter().position(|cpus| cpus.contains(&cpu));
        let own = node(cpu)?;
        let near = busiest(numa.topology.cpus[own].iter().copied(), queues);
        let may_run = |task: &usize| numa.tasks[*task].may_run_on(cpu);
        if let Some(task) = near.and_then(|from| queues.waiting(from).find(may_run)) {
            return Some(task);
        }
        if now < self.next[cpu as usize] {
            return None;
        }
        self.next[cpu as usize] = now + queues.cpus() as Ns * MS;
        let from = busiest((0..queues.cpus() as u32).filter(|&at| node(at) != Some(own)), queues)?;
        let others = node(from)?;
        let forced = self.failed[cpu as usize] > numa.rules.cache_nice_tries;
        let mut may_move = |&task: &usize| {
            let locality = match numa.rules.said.balancer_hook {
                BalancerHook::Pair => pair(numa, task, others, own),
                BalancerHook::Weights => weights(numa, queues, task, (from, others), own),
            };
            let hot = now.saturating_sub(numa.tasks[task].exec_start) < numa.rules.migration_cost;
            let stays = locality == Locality::Degrades || locality == Locality::Neutral && hot;
            let moves = may_run(&task) && (!stays || forced);
            if probe.on(Kind::NumaBalance) && may_run(&task) {
                let rule = match locality {
                    _ if stays && forced => Rule::Forced,
                    Locality::Improves => Rule::Improves,
                    Locality::Degrades => Rule::Degrades,
                    Locality::Neutral if hot => Rule::CacheHot,
                    Locality::Neutral => Rule::Neutral,
                };
                write(probe, numa, task, rule, [(from, others), (cpu, own)], moves, now);
            }
            moves
        };
        let task = queues.waiting(from).find(|task| may_move(task));
        self.failed[cpu as usize] = if task.is_some() { 0 } else { self.failed[cpu as usize] + 1 };
        task
    }
}

/// Writes `numa_balance`: CPUs with their nodes, from and to.
fn write(
    probe: &mut Probe,
    numa: &Numa,
    task: usize,
    rule: Rule,
    [from, to]: [(u32, usize); 2],
    pulled: bool,
    now: Ns,
) {
    let of = &numa.tasks[task];
    let event = NumaBalance {
        pid: of.pid,
        rule: rule.number(),
        src_cpu: from.0 as i32,
        src_nid: from.1 as i32,
        dst_cpu: to.0 as i32,
        dst_nid: to.1 as i32,
        preferred_nid: nid_of(of.numa_preferred_nid),
        pulled,
    };
    probe.write(now, to.0, Who::default(), &event, b"");
}

/// The CPU with most tasks, of those with one waiting; the lowest of several.
fn busiest(cpus: impl Iterator<Item = u32>, queues: &RunQueues) -> Option<u32> {
    cpus.filter(|&cpu| queues.len(cpu) > 1).min_by_key(|&cpu| (std::cmp::Reverse(queues.len(cpu)), cpu))
}

/// `migrate_degrades_locality` of 4.14 and newer, for a move to an idle CPU.
fn weights(numa: &Numa, queues: &RunQueues, task: usize, (cpu, from): (u32, usize), to: usize) -> Locality {
    let of = &numa.tasks[task];
    if of.numa_faults.is_empty() {
        return Locality::Neutral;
    }
    if of.numa_preferred_nid == Some(from) {
        // Somebody else could go instead.
        let home = |&other: &usize| numa.tasks[other].numa_preferred_nid == Some(from);
        let all = queues.all(cpu).filter(home).count();
        return if queues.len(cpu) > all { Locality::Degrades } else { Locality::Neutral };
    }
    // The pulling CPU is idle, so weights do not count.
    if of.numa_preferred_nid == Some(to) { Locality::Improves } else { Locality::Neutral }
}

/// `migrate_improves_locality` of 3.13; its opposite is off by default.
fn pair(numa: &Numa, task: usize, from: usize, to: usize) -> Locality {
    let of = &numa.tasks[task];
    if of.numa_faults.is_empty() {
        return Locality::Neutral;
    }
    let (topology, most) = (&numa.topology, numa.topology.most);
    let own = |nid| task_weight(topology, of, nid, most);
    let group = |nid| group_weight(topology, &numa.groups, of, nid, most);
    let better = own(to) > own(from) && group(to) > group(from);
    if of.numa_preferred_nid == Some(to) || better { Locality::Improves } else { Locality::Neutral }
}
