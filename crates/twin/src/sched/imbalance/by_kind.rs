//! How uneven load is by the kind of busy that groups are: `find_busiest_group`, `calculate_imbalance`,
//! `adjust_numa_imbalance`; 6.1.

use super::{CpuIdle, Group, Imbalance, LOAD, Shape, average};

/// Tasks by which two nodes may differ while they have little to do.
const NUMA_IMBALANCE_MIN: i64 = 2;

/// How busy a group is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    HasSpare,
    FullyBusy,
    Overloaded,
}

impl Kind {
    fn of(group: &Group, percent: i64) -> Kind {
        let (capacity, util, runnable) = (group.capacity(), group.util(), group.running * LOAD);
        let crowded = capacity * percent < runnable * 100;
        if group.running > group.cpus && (capacity * 100 < util * percent || crowded) {
            return Kind::Overloaded;
        }
        let spare = group.running < group.cpus || !crowded && capacity * 100 > util * percent;
        if spare { Kind::HasSpare } else { Kind::FullyBusy }
    }
}

/// Tasks that one node may have more than another with spare CPUs, while few run there; of a node with these CPUs and
/// one last-level cache.
pub(crate) fn imb_numa_nr(cpus: i64) -> i64 {
    (cpus / 8).max(1)
}

/// `adjust_numa_imbalance`: 0 where a small imbalance is allowed. `running` is what the destination would have.
pub(crate) fn adjust_numa_imbalance(imbalance: i64, running: i64, allowed: i64) -> i64 {
    if running <= allowed && imbalance <= NUMA_IMBALANCE_MIN { 0 } else { imbalance }
}

/// `last`: of groups that are fully busy the last one is the busiest.
pub(super) fn find_busiest_group(
    groups: &[Group],
    shape: Shape,
    idle: CpuIdle,
    last: bool,
) -> Option<(usize, Imbalance)> {
    let (local, others) = groups.split_first()?;
    let kind = |of: &Group| Kind::of(of, shape.percent);
    let mut busiest: Option<(usize, Group)> = None;
    for (number, of) in (1..).zip(others).filter(|(_, of)| of.running > 0) {
        let busier = busiest.is_none_or(|(_, best)| match kind(of).cmp(&kind(&best)) {
            std::cmp::Ordering::Equal if kind(of) == Kind::HasSpare => {
                of.idle < best.idle || of.idle == best.idle && of.running > best.running
            }
            std::cmp::Ordering::Equal if kind(of) == Kind::FullyBusy => last,
            std::cmp::Ordering::Equal => of.average() > best.average(),
            order => order.is_gt(),
        });
        if busier {
            busiest = Some((number, *of));
        }
    }
    let (number, busiest) = busiest?;
    let (own, theirs) = (kind(local), kind(&busiest));
    let average = average(groups);
    if own > theirs {
        return None;
    }
    if own == Kind::Overloaded {
        let even = 100 * busiest.average() <= shape.percent * local.average();
        if local.average() >= busiest.average() || local.average() >= average || even {
            return None;
        }
    }
    // Nodes prefer their siblings, CPUs have none.
    let force = shape.numa && own == Kind::HasSpare && busiest.running > local.running + 1;
    if !force && theirs != Kind::Overloaded {
        let even = busiest.cpus > 1 && local.idle <= busiest.idle + 1;
        if idle == CpuIdle::Not || even || busiest.running == 1 {
            return None;
        }
    }
    let imbalance = calculate_imbalance(local, &busiest, average, shape, idle);
    let (Imbalance::Load(amount) | Imbalance::Util(amount) | Imbalance::Tasks(amount)) = imbalance;
    (amount > 0).then_some((number, imbalance))
}

fn calculate_imbalance(local: &Group, busiest: &Group, average: i64, shape: Shape, idle: CpuIdle) -> Imbalance {
    let (own, theirs) = (Kind::of(local, shape.percent), Kind::of(busiest, shape.percent));
    if own == Kind::HasSpare {
        if theirs > Kind::FullyBusy && shape.numa {
            let spare = local.capacity().max(local.util()) - local.util();
            return if spare == 0 && idle != CpuIdle::Not { Imbalance::Tasks(1) } else { Imbalance::Util(spare) };
        }
        let mut tasks = (busiest.running - local.running).max(0);
        if shape.numa {
            tasks = adjust_numa_imbalance(tasks, local.running + 1, imb_numa_nr(local.cpus));
        }
        return Imbalance::Tasks(tasks >> 1);
    }
    // Not more than this group has less, nor than the other has more, than all have.
    if own < Kind::Overloaded && (local.average() >= busiest.average() || local.average() >= average) {
        return Imbalance::Load(0);
    }
    let more = (busiest.average() - average) * busiest.capacity();
    let less = (average - local.average()) * local.capacity();
    Imbalance::Load(more.min(less) / LOAD)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODES: Shape = Shape { numa: true, percent: 117 };
    const CPUS: Shape = Shape { numa: false, percent: 117 };

    /// A node of two CPUs with this many tasks.
    fn node(running: i64) -> Group {
        Group { running, cpus: 2, idle: (2 - running).max(0), numa: running, preferred: running }
    }

    fn nodes(running: &[i64], idle: CpuIdle) -> Option<(usize, Imbalance)> {
        let groups: Vec<Group> = running.iter().map(|&running| node(running)).collect();
        find_busiest_group(&groups, NODES, idle, false)
    }

    #[test]
    fn nodes_with_room_take_from_overloaded_ones() {
        assert_eq!(nodes(&[0, 1, 3, 3], CpuIdle::Long), Some((2, Imbalance::Util(2048))));
        assert_eq!(nodes(&[1, 1, 3], CpuIdle::Newly), Some((2, Imbalance::Util(1024))));
        // Two tasks on two CPUs may stay, though this node has none: the imbalance is small.
        assert_eq!(nodes(&[0, 2, 2], CpuIdle::Long), None);
        assert_eq!(nodes(&[1, 2, 2], CpuIdle::Long), None);
        assert_eq!(nodes(&[0, 0], CpuIdle::Long), None);
    }

    #[test]
    fn busy_nodes_take_their_part_of_the_excess() {
        // 1536 there, 1024 here, 1152 on average: 128 a CPU are missing here.
        assert_eq!(nodes(&[2, 3, 2, 2], CpuIdle::Not), Some((1, Imbalance::Load(256))));
        assert_eq!(nodes(&[3, 2, 2, 2], CpuIdle::Not), None);
        assert_eq!(nodes(&[3, 4], CpuIdle::Not), Some((1, Imbalance::Load(512))));
        assert_eq!(nodes(&[4, 4], CpuIdle::Not), None);
        assert_eq!(nodes(&[2, 2], CpuIdle::Not), None);
    }

    #[test]
    fn cpus_of_a_node_share_its_tasks() {
        let cpu = |running| Group { running, cpus: 1, idle: i64::from(running == 0), ..Group::default() };
        let of = |own, other, idle| find_busiest_group(&[cpu(own), cpu(other)], CPUS, idle, false);
        assert_eq!(of(0, 2, CpuIdle::Long), Some((1, Imbalance::Tasks(1))));
        assert_eq!(of(0, 1, CpuIdle::Long), None);
        assert_eq!(of(1, 2, CpuIdle::Not), Some((1, Imbalance::Load(512))));
        assert_eq!(of(1, 1, CpuIdle::Not), None);
    }
}
