//! Balancing load: `rebalance_domains`, `newidle_balance`, `load_balance`, `should_we_balance`, `find_busiest_queue`,
//! `detach_tasks`, `can_migrate_task`, `need_active_balance`, `migrate_degrades_locality`; 6.1.
//!
//! Two domains, the CPUs of a node and all nodes; their imbalance is in [`imbalance`](crate::sched::imbalance). A CPU
//! that has become idle balances at the next tick. Not modelled: domains of cores and of nodes at several distances,
//! the limit of newly idle balancing (`avg_idle`), serialisation, tasks of other classes, pinned tasks as a reason of
//! their own; the part of 3.13's two hooks that is off by default; without NUMA balancing, a CPU that is idle while no
//! thread waits anywhere, which could only move a running one. Whether a move between nodes is good for a task's
//! memory is answered by NUMA balancing ([`Hooks`]). Checked by `numa/task_migrate_tests.rs`.

use super::RunQueues;
use super::imbalance::{CpuIdle, Fbq, Group, Imbalance, LOAD, Shape, find_busiest_group};
use crate::probe::{Probe, Task as TaskIds};
use crate::time::Ns;
use mmtwin_event::Kind;
use mmtwin_event::rules::Rule;
use mmtwin_event::vocabulary::NumaBalance;
use mmtwin_scenario::kernel::{BusiestGroup, DetachLimit, Sched};
use std::ops::Range;

/// Failed attempts that a domain of one node forgives before it moves hot tasks.
const NODE_NICE_TRIES: u32 = 1;
/// `imbalance_pct` of a domain of one node.
const NODE_PERCENT: i64 = 117;

/// A scheduling domain of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// The CPUs of its node.
    Node,
    /// All nodes.
    Machine,
}

/// State of a CPU for a domain.
#[derive(Clone, Copy, Debug, Default)]
struct Domain {
    /// Jiffies of the last attempt.
    last: u64,
    /// Milliseconds between two, while the CPU is idle; 0: as at the start.
    interval: u64,
    /// Attempts that moved nothing (`nr_balance_failed`).
    failed: u32,
}

/// State of balancing.
#[derive(Clone, Debug)]
pub(crate) struct Balancer {
    /// By CPU, then level.
    domains: Vec<[Domain; 2]>,
    /// By CPU: it was idle at the last tick.
    idle: Vec<bool>,
}

/// Rules of a kernel's balancing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BalanceRules {
    /// Ticks per second.
    pub hz: u64,
    /// Tunables and variants.
    pub sched: Sched,
}

impl BalanceRules {
    /// Ticks since boot.
    fn jiffies(&self, now: Ns) -> u64 {
        now / (1_000_000_000 / self.hz)
    }

    /// `msecs_to_jiffies`: rounds up.
    fn ms_to_jiffies(&self, ms: u64) -> u64 {
        (ms * self.hz).div_ceil(1000)
    }
}

/// A task, for balancing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BalanceTask {
    pub pid: i32,
    pub preferred_nid: Option<usize>,
    /// When it began to run.
    pub exec_start: Ns,
}

/// A move of a task to another node that is thought of.
pub(crate) struct NodeMove<'a> {
    pub task: usize,
    /// Its CPU and the run queues, as another task could be moved instead.
    pub cpu: u32,
    pub queues: &'a RunQueues,
    pub from: usize,
    pub to: usize,
    /// The CPU that pulls has been idle for a while.
    pub idle: bool,
}

/// Hooks of NUMA balancing: its knowledge of the tasks.
pub(crate) struct Hooks<'a> {
    pub rules: BalanceRules,
    /// By node: its CPUs.
    pub cpus: &'a [Vec<u32>],
    pub task: &'a dyn Fn(usize) -> BalanceTask,
    pub may_run_on: &'a dyn Fn(usize, u32) -> bool,
    /// `migrate_degrades_locality`.
    pub locality: &'a dyn Fn(&NodeMove<'_>) -> Locality,
}

/// Effect of a move between nodes on a task's locality.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Locality {
    Improves,
    Degrades,
    Neutral,
}

/// An attempt of a CPU to balance a domain.
struct Attempt<'a> {
    cpu: u32,
    /// Node of the CPU.
    node: usize,
    level: Level,
    idle: CpuIdle,
    failed: u32,
    queues: &'a RunQueues,
    numa: &'a Hooks<'a>,
    now: Ns,
}

impl Balancer {
    pub(crate) fn new(cpus: usize) -> Balancer {
        Balancer { domains: vec![Default::default(); cpus], idle: vec![true; cpus] }
    }

    /// A tick of a CPU is over: its attempts are in the past.
    pub(crate) fn ticked(&mut self, cpu: u32, queues: &RunQueues) {
        self.idle[cpu as usize] = queues.len(cpu) == 0;
    }

    /// The tasks that a CPU pulls now in a domain, if that is due. `online` is true for online CPUs.
    pub(crate) fn balance(
        &mut self,
        (cpu, level): (u32, Level),
        queues: &RunQueues,
        numa: &Hooks<'_>,
        online: impl Fn(u32) -> bool,
        probe: &mut Probe,
        now: Ns,
    ) -> Vec<usize> {
        let node = queues.node_of(cpu);
        let weight = match level {
            Level::Node => numa.cpus[node].len(),
            Level::Machine => queues.cpus(),
        } as u64;
        let idle = match (queues.len(cpu) == 0, self.idle[cpu as usize]) {
            (false, _) => CpuIdle::Not,
            (true, false) => CpuIdle::Newly,
            (true, true) => CpuIdle::Long,
        };
        let domain = &mut self.domains[cpu as usize][level as usize];
        let jiffies = numa.rules.jiffies(now);
        let interval = domain.interval.max(weight);
        if idle != CpuIdle::Newly {
            // A busy CPU balances less often, and not at one time with those above it.
            let busy = u64::from(numa.rules.sched.busy_factor);
            let wait = match idle {
                CpuIdle::Not => (numa.rules.ms_to_jiffies(interval * busy)).saturating_sub(1),
                CpuIdle::Long | CpuIdle::Newly => numa.rules.ms_to_jiffies(interval),
            };
            let longest = numa.rules.hz * queues.cpus() as u64 / 10;
            if weight < 2 || jiffies < domain.last + wait.clamp(1, longest.max(1)) {
                return Vec::new();
            }
            domain.last = jiffies;
        }
        let failed = domain.failed;
        let attempt = Attempt { cpu, node, level, idle, failed, queues, numa, now };
        let pulled = attempt.pull(online, probe);
        match &pulled {
            Some(tasks) if !tasks.is_empty() => (domain.failed, domain.interval) = (0, weight),
            Some(_) => {
                domain.failed += u32::from(idle != CpuIdle::Newly);
                domain.interval = weight;
            }
            None => {
                domain.failed = 0;
                if idle != CpuIdle::Newly {
                    domain.interval = (interval * 2).min(2 * weight);
                }
            }
        }
        pulled.unwrap_or_default()
    }
}

impl Attempt<'_> {
    /// The tasks to pull; `None` if there is no imbalance.
    fn pull(&self, online: impl Fn(u32) -> bool, probe: &mut Probe) -> Option<Vec<usize>> {
        let (nodes, queues) = (self.numa.cpus, self.queues);
        let online = |nid: usize| nodes[nid].iter().copied().filter(|&cpu| online(cpu));
        let numa = self.level == Level::Machine;
        // One CPU balances for its group: the first idle one, or the first. Most are not.
        let first = online(self.node).find(|&cpu| queues.len(cpu) == 0).or_else(|| online(self.node).next());
        if numa && self.idle != CpuIdle::Newly && first != Some(self.cpu) {
            return None;
        }
        // Node and CPUs of each group: the CPU's own first, the others in turn.
        let mut cpus: Vec<u32> = Vec::with_capacity(queues.cpus());
        let mut groups: Vec<(usize, Range<usize>)> = Vec::with_capacity(nodes.len().max(nodes[self.node].len()));
        if numa {
            for nid in (self.node..nodes.len()).chain(0..self.node) {
                let start = cpus.len();
                cpus.extend(online(nid));
                groups.extend((cpus.len() > start).then_some((nid, start..cpus.len())));
            }
        } else {
            cpus.extend(online(self.node));
            let at = cpus.iter().position(|&cpu| cpu == self.cpu)?;
            cpus.rotate_left(at);
            groups.extend((0..cpus.len()).map(|at| (self.node, at..at + 1)));
        }
        let percent = if numa { i64::from(self.numa.rules.sched.numa_imbalance_pct) } else { NODE_PERCENT };
        let sums: Vec<Group> = groups.iter().map(|(nid, group)| self.sum(*nid, &cpus[group.clone()])).collect();
        let (number, imbalance) =
            find_busiest_group(&sums, Shape { numa, percent }, self.idle, self.numa.rules.sched.busiest_group)?;
        let fbq = if numa { sums[number].fbq() } else { Fbq::All };
        let (nid, group) = groups[number].clone();
        let from = self.find_busiest_queue(nid, &cpus[group], imbalance, fbq)?;
        let mut tasks = self.detach(from, imbalance, probe);
        let by_kind = matches!(self.numa.rules.sched.busiest_group, BusiestGroup::Type | BusiestGroup::TypeLast);
        let goes = matches!(imbalance, Imbalance::Tasks(_)) || !by_kind;
        // This attempt has failed too.
        let tries = self.failed + 1 > self.nice_tries() + 2;
        if tasks.is_empty() && self.idle != CpuIdle::Newly && goes && tries {
            // Even the running one is moved.
            tasks.extend(queues.running(from).filter(|&task| (self.numa.may_run_on)(task, self.cpu)));
        }
        Some(tasks)
    }

    fn nice_tries(&self) -> u32 {
        if self.level == Level::Machine { self.numa.rules.sched.cache_nice_tries } else { NODE_NICE_TRIES }
    }

    /// CPUs of a node, and their tasks.
    fn sum(&self, nid: usize, cpus: &[u32]) -> Group {
        let mut group = Group { cpus: cpus.len() as i64, ..Group::default() };
        for &cpu in cpus {
            group.idle += i64::from(self.queues.len(cpu) == 0);
            for task in self.queues.all(cpu) {
                let preferred = (self.numa.task)(task).preferred_nid;
                group.running += 1;
                group.numa += i64::from(preferred.is_some());
                group.preferred += i64::from(preferred == Some(nid));
            }
        }
        group
    }

    fn find_busiest_queue(&self, nid: usize, cpus: &[u32], imbalance: Imbalance, fbq: Fbq) -> Option<u32> {
        let mut busiest = None;
        for &cpu in cpus {
            let running = self.queues.len(cpu) as i64;
            let useless = match imbalance {
                Imbalance::Load(amount) => running == 1 && LOAD > amount,
                Imbalance::Util(_) => running <= 1,
                Imbalance::Tasks(_) => false,
            };
            if running == 0 || useless || self.sum(nid, &[cpu]).fbq() > fbq {
                continue;
            }
            // A busy CPU is utilised fully, however many wait.
            let most = if matches!(imbalance, Imbalance::Util(_)) { 1 } else { running };
            if busiest.is_none_or(|(best, _)| most > best) {
                busiest = Some((most, cpu));
            }
        }
        busiest.map(|(_, cpu)| cpu)
    }

    /// Takes waiting tasks off a queue, those that ran longest ago first.
    fn detach(&self, from: u32, imbalance: Imbalance, probe: &mut Probe) -> Vec<usize> {
        let mut tasks = Vec::new();
        let running = self.queues.len(from);
        let (mut amount, each) = match imbalance {
            Imbalance::Load(amount) => (amount, LOAD),
            Imbalance::Util(amount) => (amount, LOAD / running.max(1) as i64),
            Imbalance::Tasks(amount) => (amount, 1),
        };
        let smallest = match imbalance {
            Imbalance::Tasks(_) => 0,
            // Half a task too much was always accepted, later more after every failed attempt.
            _ if self.numa.rules.sched.detach_limit == DetachLimit::Half => each / 2,
            Imbalance::Load(_) | Imbalance::Util(_) => each >> self.failed.min(i64::BITS - 1),
        };
        let waiting: Vec<usize> = self.queues.waiting_longest(from).collect();
        for task in waiting {
            if self.idle != CpuIdle::Not && running - tasks.len() <= 1 || amount <= 0 {
                break;
            }
            if !self.can_migrate(task, from, probe) || smallest > amount {
                continue;
            }
            amount -= each;
            tasks.push(task);
            if self.idle == CpuIdle::Newly {
                break;
            }
        }
        tasks
    }

    fn can_migrate(&self, task: usize, from: u32, probe: &mut Probe) -> bool {
        if !(self.numa.may_run_on)(task, self.cpu) {
            return false;
        }
        let of = (self.numa.task)(task);
        let forced = self.failed > self.nice_tries();
        let hot = self.now.saturating_sub(of.exec_start) < self.numa.rules.sched.migration_cost_ns;
        let others = match self.level {
            Level::Node => None,
            Level::Machine => self.numa.cpus.iter().position(|cpus| cpus.contains(&from)),
        };
        let Some(others) = others else { return !hot || forced };
        let (queues, idle) = (self.queues, self.idle == CpuIdle::Long);
        let locality = (self.numa.locality)(&NodeMove { task, cpu: from, queues, from: others, to: self.node, idle });
        let stays = locality == Locality::Degrades || locality == Locality::Neutral && hot;
        let moves = !stays || forced;
        if probe.on(Kind::NumaBalance) {
            let rule = match locality {
                _ if stays && forced => Rule::Forced,
                Locality::Improves => Rule::Improves,
                Locality::Degrades => Rule::Degrades,
                Locality::Neutral if hot => Rule::CacheHot,
                Locality::Neutral => Rule::Neutral,
            };
            self.write(task, rule, (from, others), moves, probe);
        }
        moves
    }

    /// Writes `numa_balance`.
    fn write(&self, task: usize, rule: Rule, (from, others): (u32, usize), pulled: bool, probe: &mut Probe) {
        let of = (self.numa.task)(task);
        let event = NumaBalance {
            pid: of.pid,
            rule: rule.number(),
            src_cpu: from as i32,
            src_nid: others as i32,
            dst_cpu: self.cpu as i32,
            dst_nid: self.node as i32,
            preferred_nid: of.preferred_nid.map_or(-1, |nid| nid as i32),
            pulled,
        };
        probe.write(self.now, self.cpu, TaskIds::default(), &event, b"");
    }
}
