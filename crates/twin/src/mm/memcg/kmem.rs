//! Memory of the kernel that a cgroup is charged for: `obj_cgroup_charge`, `memcg_charge_kernel_stack` and allocations
//! with `__GFP_ACCOUNT` (5.9 to 7.3).
//!
//! Page tables are charged as pages, nodes of the page cache's index and buffer heads by their size and a pointer each,
//! stacks of threads by 16 KiB. Objects are charged with the next page of their cgroup, which reclaims for them. Not
//! modelled: the stack of a process's first thread, which was created before it joined the cgroup; inodes, dentries and
//! mappings, which are a few pages; objects of a file that several cgroups use are charged to the one that uses it first.
//! Checked by a test here and against `memory.stat` of a guest (docs/model/notebook.md, "Memory of the kernel in cgroups").

use crate::hw::PAGE_SIZE;
use crate::mm::vmscan::Reclaim;

/// What a node of the index takes, with a pointer to its cgroup.
pub(crate) const INDEX_NODE: i64 = 576 + 8;
/// The same of a buffer head.
pub(crate) const BUFFER_HEAD: i64 = 104 + 8;
/// Pages of a thread's stack (`THREAD_SIZE`, 16 KiB).
const STACK: u64 = 4;

/// Pages of the stacks of a process's threads.
pub(crate) fn stacks(threads: u64) -> i64 {
    (STACK * threads.saturating_sub(1)) as i64
}

impl Reclaim {
    /// Charges pages of objects that were allocated and not charged, or uncharges those that were freed; on failure: the
    /// cgroup whose limit they would exceed.
    pub(super) fn charge_objects(&mut self, cgroup: usize) -> Result<(), usize> {
        let due = self.groups[cgroup].object_pages_due;
        if due == 0 {
            return Ok(());
        }
        if due > 0
            && let Some(full) = self.over_limit(cgroup, due as u64)
        {
            self.groups[full].events.failcnt += 1;
            return Err(full);
        }
        self.groups[cgroup].object_pages_due = 0;
        self.charge(cgroup, due);
        Ok(())
    }

    /// Objects of some bytes of a cgroup are allocated or freed.
    pub(crate) fn charge_object(&mut self, cgroup: usize, bytes: i64) {
        if cgroup == 0 {
            return;
        }
        let of = &mut self.groups[cgroup].object_bytes;
        let before = of.div_ceil(PAGE_SIZE);
        *of = of.saturating_add_signed(bytes);
        let pages = of.div_ceil(PAGE_SIZE) as i64 - before as i64;
        self.groups[cgroup].object_pages_due += pages;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mm::memcg::Cgroup;
    use crate::mm::vmscan::Rules;

    #[test]
    fn objects_share_pages() {
        let cgroups = vec![Cgroup::default(), Cgroup::default()];
        let mut of = Reclaim::new(Rules::V6_1, 1, cgroups, 2, 1 << 20);
        (0..8).for_each(|_| of.charge_object(1, INDEX_NODE));
        assert_eq!((of.charge_objects(1), of.groups[1].usage), (Ok(()), 2), "seven fill a page");
        (0..8).for_each(|_| of.charge_object(1, -INDEX_NODE));
        assert_eq!((of.charge_objects(1), of.groups[1].usage), (Ok(()), 0));
        of.groups[1].config.max = Some(1);
        (0..8).for_each(|_| of.charge_object(1, INDEX_NODE));
        assert_eq!((of.charge_objects(1), of.groups[1].usage), (Err(1), 0));
        of.charge_object(0, INDEX_NODE);
        assert_eq!((of.groups[0].usage, stacks(3)), (0, 8));
    }
}
