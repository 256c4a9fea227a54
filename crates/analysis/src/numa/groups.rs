//! Active nodes of NUMA groups over time, from update_numa_active_nodes_mask of the 2014 series.
//!
//! Each event adds a node to a group's set or removes it; a set begins with the node of the group's first shared fault,
//! which no event shows, so it is known only once nodes have come and gone. Later kernels count active nodes without an
//! event.

use std::collections::BTreeMap;

/// Changes that are kept one by one; later ones change the sets only.
pub const MAX_CHANGES: usize = 1000;
/// Groups that are distinguished; more can only come from a damaged file.
const MAX_GROUPS: usize = 4096;

/// All groups.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    /// The first changes, in time order.
    pub changes: Vec<Change>,
    /// Changes that were not kept.
    pub dropped: u64,
    /// Active nodes by group, one bit per node below 64 and all others together as one.
    sets: BTreeMap<i32, u64>,
}

/// A node entered or left a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// Nanoseconds of the trace clock.
    pub at: u64,
    /// The group, by its creator's thread id.
    pub gid: i32,
    /// The node.
    pub nid: i32,
    /// It entered.
    pub set: bool,
    /// The group's CPU faults on the node.
    pub faults: i64,
    /// Those of its busiest node.
    pub max_faults: i64,
    /// Active nodes afterwards, as far as events tell.
    pub active: u32,
}

impl Groups {
    pub(super) fn update(&mut self, at: u64, gid: i32, nid: i32, set: bool, faults: i64, max_faults: i64) {
        if self.sets.len() >= MAX_GROUPS && !self.sets.contains_key(&gid) {
            self.dropped += 1;
            return;
        }
        let nodes = self.sets.entry(gid).or_default();
        let bit = 1u64 << nid.clamp(0, 63);
        if set {
            *nodes |= bit;
        } else {
            *nodes &= !bit;
        }
        let active = nodes.count_ones();
        if self.changes.len() < MAX_CHANGES {
            self.changes.push(Change { at, gid, nid, set, faults, max_faults, active });
        } else {
            self.dropped += 1;
        }
    }

    /// Active nodes at the end by group.
    pub fn weights(&self) -> impl Iterator<Item = (i32, u32)> {
        self.sets.iter().map(|(gid, nodes)| (*gid, nodes.count_ones()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_come_and_go() {
        let mut groups = Groups::default();
        for (at, gid, nid, set) in
            [(1, 7, 0, true), (2, 7, 3, true), (3, 8, 1, true), (4, 7, 0, false), (5, 7, 2, false)]
        {
            groups.update(at, gid, nid, set, 10, 20);
        }
        assert_eq!(groups.changes.iter().map(|change| change.active).collect::<Vec<_>>(), [1, 2, 1, 1, 1]);
        assert_eq!(groups.weights().collect::<Vec<_>>(), [(7, 1), (8, 1)]);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut groups = Groups::default();
        for gid in 0..2 * MAX_GROUPS as i32 {
            groups.update(0, gid, gid, true, 0, 0);
        }
        assert_eq!((groups.changes.len(), groups.weights().count()), (MAX_CHANGES, MAX_GROUPS));
        assert_eq!(groups.dropped as usize, 2 * MAX_GROUPS - MAX_CHANGES);
    }
}
