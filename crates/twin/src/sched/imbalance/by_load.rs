//! Imbalance by load alone: `find_busiest_group`, `calculate_imbalance`, `fix_small_imbalance`; 4.17, and with `early`
//! 3.13 to 3.16.
//!
//! The early kernels pull from a group only if it has more tasks than CPUs, and only a newly idle CPU pulls regardless
//! of the averages. Not modelled: averages over ticks (`cpu_load`), 3.17 to 4.13 as a generation of its own.

use super::{CpuIdle, Group, Imbalance, LOAD, Shape, average};

pub(super) fn find_busiest_group(
    groups: &[Group],
    shape: Shape,
    idle: CpuIdle,
    early: bool,
) -> Option<(usize, Imbalance)> {
    let (local, others) = groups.split_first()?;
    let room = has_capacity(local, shape.percent);
    // Nodes prefer their siblings, CPUs have none.
    let overloaded = |of: &Group| {
        no_capacity(of, shape.percent) || shape.numa && room && of.running > if early { 1 } else { local.running + 1 }
    };
    let mut busiest: Option<(usize, &Group)> = None;
    for (number, of) in (1..).zip(others).filter(|(_, of)| of.running > 0 && (!early || overloaded(of))) {
        let key = |of: &Group| (!early && overloaded(of), of.average());
        if busiest.is_none_or(|(_, best)| key(of) > key(best)) {
            busiest = Some((number, of));
        }
    }
    let (number, busiest) = busiest?;
    let forced = match idle {
        CpuIdle::Newly if early => busiest.running >= busiest.cpus,
        CpuIdle::Newly | CpuIdle::Long => !early && overloaded(busiest),
        CpuIdle::Not => false,
    };
    let average = average(groups);
    if !(forced && room) {
        if local.average() >= busiest.average() || local.average() >= average {
            return None;
        }
        let even = match idle {
            CpuIdle::Long if early => local.idle < busiest.idle && busiest.running <= busiest.cpus,
            CpuIdle::Long => !overloaded(busiest) && local.idle <= busiest.idle + 1,
            CpuIdle::Not | CpuIdle::Newly => 100 * busiest.average() <= shape.percent * local.average(),
        };
        if even {
            return None;
        }
    }
    let both = overloaded(busiest) && if early { !room } else { no_capacity(local, shape.percent) };
    let imbalance = calculate_imbalance(local, busiest, average, both);
    (imbalance > 0).then_some((number, Imbalance::Load(imbalance)))
}

/// `group_no_capacity`.
fn no_capacity(of: &Group, percent: i64) -> bool {
    of.running > of.cpus && of.capacity() * 100 < of.util() * percent
}

/// `group_has_capacity`.
fn has_capacity(of: &Group, percent: i64) -> bool {
    of.running < of.cpus || of.capacity() * 100 > of.util() * percent
}

/// The load to move; `both` groups have more than they can run.
fn calculate_imbalance(local: &Group, busiest: &Group, average: i64, both: bool) -> i64 {
    let mut imbalance = 0;
    if busiest.average() > average && local.average() < average {
        // Not more than this group has less, nor than the other has more, than all have, nor so much that CPUs idle.
        let excess = (busiest.running * LOAD - busiest.capacity()) * LOAD / busiest.capacity().max(1);
        let above = if both && excess > 0 { excess } else { i64::MAX };
        let more = (busiest.average() - average).min(above) * busiest.capacity();
        imbalance = more.min((average - local.average()) * local.capacity()) / LOAD;
    }
    if imbalance >= LOAD { imbalance } else { fix_small_imbalance(local, busiest, imbalance) }
}

/// A task nevertheless, if that balances the groups better or does more work.
fn fix_small_imbalance(local: &Group, busiest: &Group, imbalance: i64) -> i64 {
    let task = LOAD * LOAD / busiest.capacity().max(1);
    let times = if local.running == 0 { 2 } else { 1 };
    if busiest.average() + task >= local.average() + task * times {
        return LOAD;
    }
    let work = |of: &Group, load: i64| of.capacity() * LOAD.min(load);
    let now = work(busiest, busiest.average()) + work(local, local.average());
    let left = if busiest.average() > task { work(busiest, busiest.average() - task) } else { 0 };
    let brought = LOAD * LOAD / local.capacity().max(1);
    if left + work(local, local.average() + brought) > now { LOAD } else { imbalance }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A node of four CPUs with this many tasks.
    fn node(running: i64) -> Group {
        Group { running, cpus: 4, idle: (4 - running).max(0), numa: 0, preferred: 0 }
    }

    fn nodes(running: &[i64], idle: CpuIdle, early: bool) -> Option<(usize, Imbalance)> {
        let groups: Vec<Group> = running.iter().map(|&running| node(running)).collect();
        find_busiest_group(&groups, Shape { numa: true, percent: 125 }, idle, early)
    }

    #[test]
    fn a_node_with_room_takes_from_its_siblings() {
        // 1536 there, 512 here, 1024 on average: 512 of four CPUs.
        assert_eq!(nodes(&[2, 6], CpuIdle::Long, false), Some((1, Imbalance::Load(2048))));
        assert_eq!(nodes(&[2, 6], CpuIdle::Not, false), Some((1, Imbalance::Load(2048))));
        // Since 3.17 without more tasks than CPUs too, if it is two tasks.
        assert_eq!(nodes(&[1, 3], CpuIdle::Long, false), Some((1, Imbalance::Load(1024))));
        assert_eq!(nodes(&[2, 3], CpuIdle::Long, false), None);
    }

    #[test]
    fn busy_nodes_tolerate_a_quarter() {
        assert_eq!(nodes(&[4, 5], CpuIdle::Not, false), None);
        assert_eq!(nodes(&[4, 6], CpuIdle::Not, false), Some((1, Imbalance::Load(1024))));
        assert_eq!(nodes(&[8, 8, 8], CpuIdle::Not, false), None);
    }

    #[test]
    fn early_kernels_take_from_nodes_with_more_tasks_than_they_should_have() {
        assert_eq!(nodes(&[4, 4], CpuIdle::Not, true), None);
        assert_eq!(nodes(&[4, 6], CpuIdle::Not, true), Some((1, Imbalance::Load(1024))));
        assert_eq!(nodes(&[1, 2], CpuIdle::Newly, true), Some((1, Imbalance::Load(1024))));
        assert_eq!(nodes(&[3, 1], CpuIdle::Newly, true), None);
    }

    #[test]
    fn cpus_of_a_node_share_its_tasks() {
        let cpu = |running| Group { running, cpus: 1, idle: i64::from(running == 0), ..Group::default() };
        let of = |own, other, idle| {
            find_busiest_group(&[cpu(own), cpu(other)], Shape { numa: false, percent: 117 }, idle, false)
        };
        assert_eq!(of(0, 2, CpuIdle::Long), Some((1, Imbalance::Load(1024))));
        assert_eq!(of(1, 3, CpuIdle::Not), Some((1, Imbalance::Load(1024))));
        assert_eq!(of(0, 1, CpuIdle::Long), None);
        assert_eq!(of(1, 1, CpuIdle::Not), None);
    }
}
