//! How uneven load is in a domain, and what a CPU should pull: `update_sd_lb_stats`, `find_busiest_group`.
//!
//! Two generations: since 5.5 groups are compared by what kind of busy they are ([`by_kind`]), before by their loads
//! alone ([`by_load`]). A domain's groups are the CPUs of a node, or the nodes. A runnable task is a load of 1024 and
//! fills a CPU, so utilisation is that of busy CPUs. Not modelled in both: misfit tasks, asymmetric capacity, groups that
//! are uneven because of affinity, load and utilisation that lag behind what runs. Checked by tests here.

mod by_kind;
mod by_load;

pub(crate) use by_kind::{adjust_numa_imbalance, imb_numa_nr};

use mmtwin_scenario::kernel::BusiestGroup;

/// Load of a runnable task, and capacity of a CPU.
pub(super) const LOAD: i64 = 1024;

/// Class of a group's tasks for NUMA balancing, if all of them have it (`enum fbq_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fbq {
    /// Some have no preferred node.
    Regular,
    /// Some are not on theirs.
    Remote,
    /// All are at home.
    All,
}

/// Tasks and CPUs of a group.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Group {
    pub running: i64,
    pub cpus: i64,
    pub idle: i64,
    /// Of the running, those with a preferred node, and those that are on it.
    pub numa: i64,
    pub preferred: i64,
}

/// State of the balancing CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CpuIdle {
    Not,
    Long,
    Newly,
}

/// An imbalance, by its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Imbalance {
    Load(i64),
    Util(i64),
    Tasks(i64),
}

/// A domain: its CPUs' groups share a cache, or are nodes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub numa: bool,
    /// `imbalance_pct`.
    pub percent: i64,
}

/// The group to pull from and the imbalance, for a CPU of the first group; the others follow in the order of the
/// search.
pub(super) fn find_busiest_group(
    groups: &[Group],
    shape: Shape,
    idle: CpuIdle,
    by: BusiestGroup,
) -> Option<(usize, Imbalance)> {
    match by {
        BusiestGroup::LoadEarly => by_load::find_busiest_group(groups, shape, idle, true),
        BusiestGroup::Load => by_load::find_busiest_group(groups, shape, idle, false),
        BusiestGroup::Type => by_kind::find_busiest_group(groups, shape, idle, false),
        BusiestGroup::TypeLast => by_kind::find_busiest_group(groups, shape, idle, true),
    }
}

impl Group {
    fn capacity(&self) -> i64 {
        self.cpus * LOAD
    }

    fn util(&self) -> i64 {
        (self.cpus - self.idle) * LOAD
    }

    /// `avg_load`: load per capacity of a CPU.
    fn average(&self) -> i64 {
        self.running * LOAD * LOAD / self.capacity().max(1)
    }

    /// `fbq_classify_group`, `fbq_classify_rq`.
    pub(super) fn fbq(&self) -> Fbq {
        match (self.running > self.numa, self.running > self.preferred) {
            (true, _) => Fbq::Regular,
            (false, true) => Fbq::Remote,
            (false, false) => Fbq::All,
        }
    }
}

/// `avg_load` of all groups.
fn average(groups: &[Group]) -> i64 {
    let all = |of: fn(&Group) -> i64| groups.iter().map(of).sum::<i64>();
    all(|of| of.running) * LOAD * LOAD / all(Group::capacity).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_what_their_tasks_are() {
        let of = |numa, preferred| Group { running: 2, cpus: 2, idle: 0, numa, preferred }.fbq();
        assert_eq!([of(1, 1), of(2, 1), of(2, 2)], [Fbq::Regular, Fbq::Remote, Fbq::All]);
    }
}
