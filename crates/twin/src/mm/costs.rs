//! What the paths of memory cost: the costs of `machine.cost` as faults and reclaim spend them.

use crate::time::Ps;

/// What faults cost, in picoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FaultCosts {
    /// A fault without the allocation.
    pub fault: Ps,
    /// To map one more page in it.
    pub map_around: Ps,
    /// To clear a huge page.
    pub clear_huge: Ps,
    /// A call that reads or writes a page of a file.
    pub file_call: Ps,
    /// To ask the disk for pages.
    pub file_request: Ps,
    /// To look at a page of an LRU list, huge or not.
    pub scan_page: Ps,
    /// To wait until other CPUs have flushed pages that are taken.
    pub shootdown: Ps,
    /// What they take besides while this CPU leaves the budget to others.
    pub shootdown_wait: Ps,
    /// What that takes of another CPU.
    pub interrupt: Ps,
    /// To ask the page tables about a page, and to take it out of them.
    pub rmap_page: Ps,
    pub unmap_page: Ps,
    /// To free a page in reclaim, huge or not, and what it takes more if the file system remembers it.
    pub free_page: Ps,
    pub free_buffers: Ps,
    /// To clear a further page of a block that the kernel allocates.
    pub init_page: Ps,
    /// To look at a page frame and to pass over a pageblock in compaction, and to move a page.
    pub compact_scan: Ps,
    pub compact_block: Ps,
    pub migrate_page: Ps,
    /// Of a batch of a list, and of a pass over a cgroup's lists, what is not its pages'.
    pub batch: Ps,
    pub pass: Ps,
    /// To write a page to swap.
    pub swap_write: Ps,
    /// To ask a shrinker how much it has, and to scan an object of it.
    pub count_objects: Ps,
    pub scan_object: Ps,
    /// A call that looks up a name that does not exist.
    pub lookup: Ps,
    /// A call that writes a page of a file that is in memory, and what it takes more if it is not.
    pub file_write: Ps,
    pub file_create: Ps,
    /// To bring a dirty page on its way to the disk, and to end its writing.
    pub write_page: Ps,
    pub write_end: Ps,
}
