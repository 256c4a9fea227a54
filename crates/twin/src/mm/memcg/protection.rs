//! Protected cgroups: `mem_cgroup_calculate_protection`, `effective_protection`, `mem_cgroup_protection` (5.7 to 6.12).
//!
//! A cgroup keeps as much of `memory.min` and `memory.low` as those above it allow, divided among siblings by what they use
//! of theirs. Below it is not scanned at all; above it only the part beyond it counts. The target of a reclaim
//! itself is not protected. Not modelled: the share of what siblings leave unclaimed, which a mount with `memory_recursiveprot`
//! has. Checked by tests here and of `tests/cgroups.rs`.

use crate::mm::vmscan::{BATCH, Control, Reclaim};

/// Whether a cgroup is reclaimed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protection {
    /// It may be.
    None,
    /// Not while others have something.
    Low,
    /// Never.
    Min,
}

impl Reclaim {
    /// Updates the protected pages of cgroups in a reclaim of `target`, from the top down.
    fn calculate_protection(&mut self, target: usize, cgroup: usize) {
        let (parent, usage) = (self.groups[cgroup].config.parent, self.groups[cgroup].usage);
        if cgroup == target || cgroup == 0 || usage == 0 {
            return;
        }
        let settings = |at: usize| [self.groups[at].config.min, self.groups[at].config.low];
        let own = settings(cgroup);
        if parent == target || parent == 0 {
            self.groups[cgroup].protected = own;
            return;
        }
        let siblings = (1..self.groups.len()).filter(|&at| self.groups[at].config.parent == parent);
        let siblings: Vec<usize> = siblings.collect();
        let effective = |kind: usize| {
            let claimed = siblings.iter().map(|&at| self.groups[at].usage.min(settings(at)[kind])).sum();
            effective_protection(usage, own[kind], self.groups[parent].protected[kind], claimed)
        };
        self.groups[cgroup].protected = [effective(0), effective(1)];
    }

    /// True if a reclaim passes a cgroup over.
    pub(crate) fn spares(&mut self, control: &mut Control, cgroup: usize) -> bool {
        self.calculate_protection(control.target(), cgroup);
        match self.protection(control.target(), cgroup) {
            Protection::Min => true,
            Protection::Low if !control.low_broken => {
                control.low_spared = true;
                true
            }
            Protection::Low => {
                self.note(cgroup, |events| events.low += 1);
                false
            }
            Protection::None => false,
        }
    }

    /// Whether a cgroup is reclaimed from in a reclaim of `target`, by what was calculated last.
    fn protection(&self, target: usize, cgroup: usize) -> Protection {
        let group = &self.groups[cgroup];
        match group.protected {
            _ if cgroup == 0 || cgroup == target => Protection::None,
            [min, _] if min >= group.usage => Protection::Min,
            [_, low] if low >= group.usage => Protection::Low,
            _ => Protection::None,
        }
    }

    /// Pages of a list that count for a scan, of `size`; and whether more would if `low` were broken.
    pub(crate) fn scannable(&self, target: usize, cgroup: usize, size: u64, low_broken: bool) -> (u64, bool) {
        let [min, low] = self.groups[cgroup].protected;
        if cgroup == target || cgroup == 0 || min == 0 && low == 0 {
            return (size, false);
        }
        let by_low = !low_broken && low > min;
        let protected = if by_low { low } else { min };
        let usage = self.groups[cgroup].usage.max(protected);
        // At least a batch, so that reclaim continues.
        ((size - size * protected / (usage + 1)).max(BATCH), by_low)
    }
}

/// Protected pages of a cgroup below a parent with `parent` protected pages, where it and its siblings use `claimed`
/// pages of their protection.
fn effective_protection(usage: u64, setting: u64, parent: u64, claimed: u64) -> u64 {
    let protected = usage.min(setting);
    if claimed > parent { protected * parent / claimed } else { protected }
}

#[cfg(test)]
mod tests {
    use super::super::Cgroup;
    use super::*;
    use crate::mm::vmscan::Rules;

    #[test]
    fn siblings_share_what_their_parent_has() {
        assert_eq!(effective_protection(50, 100, 200, 150), 50, "no more than is used");
        assert_eq!(effective_protection(150, 100, 200, 150), 100);
        // 300 are claimed of 200: two thirds each.
        assert_eq!((effective_protection(150, 100, 200, 300), effective_protection(250, 200, 200, 300)), (66, 133));
    }

    #[test]
    fn protection_goes_down_the_tree() {
        // 1 is the parent of 2 and 3.
        let of = |parent, min, low| Cgroup { parent, min, low, ..Cgroup::default() };
        let cgroups = vec![Cgroup::default(), of(0, 0, 1000), of(1, 100, 900), of(1, 0, 600)];
        let mut reclaim = Reclaim::new(Rules::V6_1, 1, cgroups, 1, 1 << 20);
        reclaim.charge(2, 900);
        reclaim.charge(3, 700);
        (1..4).for_each(|at| reclaim.calculate_protection(0, at));
        let protected = [1, 2, 3].map(|at| reclaim.groups[at].protected);
        // 1500 are claimed of 1000; nothing of `memory.min` is the parent's to give.
        assert_eq!(protected, [[0, 1000], [0, 600], [0, 400]]);
        assert_eq!([1, 2, 3].map(|at| reclaim.protection(0, at)), [Protection::None; 3]);
        // As a target the parent itself is not protected.
        (1..4).for_each(|at| reclaim.calculate_protection(1, at));
        assert_eq!([2, 3].map(|at| reclaim.groups[at].protected), [[100, 900], [0, 600]]);
        assert_eq!([2, 3].map(|at| reclaim.protection(1, at)), [Protection::Low, Protection::None]);
        reclaim.charge(2, -800);
        assert_eq!(reclaim.protection(1, 2), Protection::Min);
    }

    #[test]
    fn only_the_unprotected_part_is_scanned() {
        let cgroups = vec![Cgroup::default(), Cgroup { min: 200, low: 500, ..Cgroup::default() }];
        let mut reclaim = Reclaim::new(Rules::V6_1, 1, cgroups, 1, 1 << 20);
        reclaim.charge(1, 999);
        reclaim.calculate_protection(0, 1);
        assert_eq!(reclaim.scannable(0, 1, 800, false), (400, true));
        assert_eq!(reclaim.scannable(0, 1, 800, true), (640, false));
        assert_eq!(reclaim.scannable(1, 1, 800, false), (800, false), "the target is not protected");
        assert_eq!(reclaim.scannable(0, 0, 800, false), (800, false));
        assert_eq!(reclaim.scannable(0, 1, 40, false), (32, true), "a batch at least");
    }
}
