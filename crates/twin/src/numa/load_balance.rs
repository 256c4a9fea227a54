//! Hooks of the load balancer for moves to another node: `migrate_degrades_locality` (4.14 and newer),
//! `migrate_improves_locality` (3.13).
//!
//! Checked by `task_migrate_tests.rs`.

use super::{Numa, group_weight, task_weight};
use crate::probe::Probe;
use crate::sched::{BalanceRules, BalanceTask, Balancer, Hooks, Level, Locality, NodeMove, RunQueues};
use crate::time::Ns;
use mmtwin_scenario::kernel::MigrateDegradesLocality;

impl Numa {
    /// The tasks that a CPU pulls now in a domain, if that is due. `online` is true for online CPUs.
    pub(crate) fn balance(
        &self,
        balancer: &mut Balancer,
        place: (u32, Level),
        queues: &RunQueues,
        online: impl Fn(u32) -> bool,
        probe: &mut Probe,
        now: Ns,
    ) -> Vec<usize> {
        let task = |task: usize| {
            let of = &self.tasks[task];
            BalanceTask { pid: of.pid, preferred_nid: of.numa_preferred_nid, exec_start: of.exec_start }
        };
        let hooks = Hooks {
            rules: BalanceRules { hz: self.rules.hz, sched: self.rules.sched },
            cpus: &self.topology.cpus,
            task: &task,
            may_run_on: &|task, cpu| self.tasks[task].may_run_on(cpu),
            locality: &|to| match self.rules.config.migrate_degrades_locality {
                MigrateDegradesLocality::Pair => self.improves_locality(to),
                MigrateDegradesLocality::Weights => self.degrades_locality(to),
            },
        };
        balancer.balance(place, queues, &hooks, online, probe, now)
    }

    /// `migrate_degrades_locality` of 4.14 and newer.
    fn degrades_locality(&self, to: &NodeMove<'_>) -> Locality {
        let of = &self.tasks[to.task];
        if of.numa_faults.is_empty() {
            return Locality::Neutral;
        }
        if of.numa_preferred_nid == Some(to.from) {
            // Another task could be moved instead.
            let home = |&other: &usize| self.tasks[other].numa_preferred_nid == Some(to.from);
            let all = to.queues.all(to.cpu).filter(home).count();
            return if to.queues.len(to.cpu) > all { Locality::Degrades } else { Locality::Neutral };
        }
        if of.numa_preferred_nid == Some(to.to) {
            return Locality::Improves;
        }
        // To leave a core idle is worse than a bad place.
        if to.idle {
            return Locality::Neutral;
        }
        let distance = self.topology.distance(to.from, to.to);
        let weight = |nid| match of.numa_group {
            Some(_) => group_weight(&self.topology, &self.groups, of, nid, distance),
            None => task_weight(&self.topology, of, nid, distance),
        };
        if weight(to.to) < weight(to.from) { Locality::Degrades } else { Locality::Improves }
    }

    /// `migrate_improves_locality` of 3.13; its opposite is off by default.
    fn improves_locality(&self, to: &NodeMove<'_>) -> Locality {
        let of = &self.tasks[to.task];
        if of.numa_faults.is_empty() {
            return Locality::Neutral;
        }
        let (topology, most) = (&self.topology, self.topology.most);
        let own = |nid| task_weight(topology, of, nid, most);
        let group = |nid| group_weight(topology, &self.groups, of, nid, most);
        let better = own(to.to) > own(to.from) && group(to.to) > group(to.from);
        if of.numa_preferred_nid == Some(to.to) || better { Locality::Improves } else { Locality::Neutral }
    }
}
