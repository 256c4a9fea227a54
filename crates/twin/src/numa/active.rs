//! The active nodes of the 2014 series and of 3.15 to 4.13: `update_numa_active_node_mask`.
//!
//! A node joins a group's set above one share of the most used node's CPU faults and leaves it below a smaller one; a
//! variant that was never posted takes memory faults.
//! The series' first two postings write `update_numa_active_nodes_mask` at every change. Checked by tests here.

use super::group::Group;
use crate::probe::{Probe, Task as TaskIds};
use crate::time::Ns;
use mmtwin_event::vocabulary::UpdateNumaActiveNodesMask;
use mmtwin_scenario::kernel::ActiveSet;

/// When and where a set is computed again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub at: Ns,
    pub cpu: u32,
    pub ids: TaskIds,
}

/// Computes a group's set again.
pub(crate) fn update(group: &mut Group, nodes: usize, set: ActiveSet, probe: &mut Probe, moment: Moment) {
    let (join, leave, of) = match set {
        ActiveSet::FortyTwenty => (4, 2, 10),
        ActiveSet::SixThreeSixteenths | ActiveSet::SixThreeSixteenthsMemory => (6, 3, 16),
        ActiveSet::None | ActiveSet::Count => return,
    };
    let of_memory = set == ActiveSet::SixThreeSixteenthsMemory;
    let faults_of = |group: &Group, nid| if of_memory { group.mem(nid) } else { group.cpu(nid) };
    let most = (0..nodes).map(|nid| faults_of(group, nid)).max().unwrap_or(0);
    for nid in 0..nodes {
        let (faults, is_active) = (faults_of(group, nid), group.mask >> nid & 1 == 1);
        let change = if is_active { faults < most * leave / of } else { faults > most * join / of };
        if !change {
            continue;
        }
        group.mask ^= 1 << nid;
        if set == ActiveSet::FortyTwenty {
            let event = UpdateNumaActiveNodesMask {
                pid: moment.ids.pid,
                gid: group.gid,
                nid: nid as i32,
                set: i32::from(!is_active),
                faults: faults as i64,
                max_faults: most as i64,
            };
            probe.write(moment.at, moment.cpu, moment.ids, &event, b"");
        }
    }
    group.active_nodes = u64::from(group.mask.count_ones());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(group: &mut Group, cpu: [u64; 4], of: ActiveSet) -> u64 {
        for (nid, faults) in cpu.into_iter().enumerate() {
            group.faults[2 * (4 + nid)] = faults;
        }
        let moment = Moment { at: 0, cpu: 0, ids: TaskIds::default() };
        update(group, 4, of, &mut Probe::off(), moment);
        group.mask
    }

    #[test]
    fn a_node_stays_longer_than_it_takes_to_join() {
        let of = ActiveSet::FortyTwenty;
        let mut group = Group::new(1, 4, 2, 0);
        // Nothing known: the creator's node stays, as 0 < 0 does not hold.
        assert_eq!(set(&mut group, [0; 4], of), 0b0100);
        assert_eq!(set(&mut group, [100, 41, 40, 0], of), 0b0111);
        assert_eq!(set(&mut group, [100, 20, 19, 40], of), 0b0011);
        let of = ActiveSet::SixThreeSixteenths;
        assert_eq!(set(&mut group, [100, 18, 37, 38], of), 0b1011);
        assert_eq!(set(&mut group, [100, 17, 0, 0], of), 0b0001);
    }

    #[test]
    fn the_variant_takes_memory_faults() {
        let mut group = Group::new(1, 4, 2, 0);
        for (nid, faults) in [10, 100, 37, 38].into_iter().enumerate() {
            group.faults[2 * nid] = faults;
        }
        assert_eq!(set(&mut group, [100, 0, 0, 0], ActiveSet::SixThreeSixteenthsMemory), 0b1110);
    }
}
