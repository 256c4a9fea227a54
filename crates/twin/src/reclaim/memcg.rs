//! Memory cgroups: `try_charge_memcg`, `uncharge_batch` (5.8 to 6.18).
//!
//! A page is charged to the cgroup of the task that brings it in and to all above. Where a limit is met the task reclaims
//! from that cgroup before it allocates. Left out: charges that CPUs keep in stock, memory of the kernel, swap,
//! `memory.high`, `memory.low`, `memory.min`. Checked by a test of `tests/reclaim.rs`.

use super::Reclaim;

/// A cgroup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cgroup {
    /// Number of the one above; the root, number 0, is its own.
    pub parent: usize,
    /// Pages that it may have; `None`: any number.
    pub max: Option<u64>,
}

impl Reclaim {
    /// The cgroup whose limit would be exceeded by some pages more of a cgroup, the nearest one.
    pub(crate) fn over_limit(&self, cgroup: usize, pages: u64) -> Option<usize> {
        let exceeds = |&at: &usize| self.cgroups[at].max.is_some_and(|max| self.usage[at] + pages > max);
        self.and_above(cgroup).find(exceeds)
    }

    /// Pages of a cgroup come or go.
    #[inline]
    pub(crate) fn charge(&mut self, cgroup: usize, pages: i64) {
        let mut at = cgroup;
        while at != 0 {
            self.usage[at] = self.usage[at].saturating_add_signed(pages);
            at = self.cgroups[at].parent;
        }
    }

    /// A cgroup and those above it without the root, whose use nobody counts.
    fn and_above(&self, cgroup: usize) -> impl Iterator<Item = usize> + use<'_> {
        let up = |&at: &usize| Some(self.cgroups[at].parent);
        std::iter::successors(Some(cgroup), up).take_while(|&at| at != 0)
    }
}
