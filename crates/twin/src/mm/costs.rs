//! Costs of faults and reclaim, from `machine.cost`.

use crate::time::Ps;

/// Costs of faults, in picoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FaultCosts {
    /// A fault on new memory without the allocation, and one on a page that is in memory.
    pub fault: Ps,
    pub cached_fault: Ps,
    /// What the program does after an access with a fault.
    pub fault_count: Ps,
    /// A fault that is made again because it has read.
    pub retry: Ps,
    /// The same of a fault that reads its page alone.
    pub retry_alone: Ps,
    /// To wake a task that sleeps on a time.
    pub wakeup: Ps,
    /// To map one more page in it.
    pub map_around: Ps,
    /// Another page of a large folio that a fault maps.
    pub map_further: Ps,
    /// A write fault on a page of a file takes this more, if it was clean and if it was dirty.
    pub mkwrite: Ps,
    pub mkwrite_dirty: Ps,
    /// A fault that maps the zero page, and what a write takes more where that is mapped.
    pub zero_fault: Ps,
    pub zero_write: Ps,
    /// To clear a huge page.
    pub clear_huge: Ps,
    /// A call that reads or writes a page of a file.
    pub file_call: Ps,
    /// More where threads share their table of files.
    pub file_reference: Ps,
    /// Submission of a read to the disk.
    pub file_request: Ps,
    /// A folio that is to be read.
    pub file_folio: Ps,
    /// Each page of it.
    pub file_page: Ps,
    /// Check of a page of an LRU list, huge or not.
    pub scan_page: Ps,
    /// To wait until other CPUs have flushed pages that are taken.
    pub shootdown: Ps,
    /// Time of the other CPU for it.
    pub interrupt: Ps,
    /// Reverse-map walk of a page, and unmapping it.
    pub rmap_page: Ps,
    pub unmap_page: Ps,
    /// Each further page of a large folio of a file that is unmapped, and freed.
    pub unmap_further: Ps,
    pub free_further: Ps,
    /// To free a page in reclaim, huge or not, and what it takes more if the file system remembers it.
    pub free_page: Ps,
    pub free_buffers: Ps,
    /// To clear a further page of a block that the kernel allocates.
    pub init_page: Ps,
    /// Scan of a page frame and skip of a pageblock in compaction, and migration of a page.
    pub compact_scan: Ps,
    pub compact_block: Ps,
    pub migrate_page: Ps,
    /// Its bytes.
    pub copy_page: Ps,
    /// Fixed cost of a batch of a list, and of a pass over a cgroup's lists.
    pub batch: Ps,
    pub pass: Ps,
    /// To write a page to swap that is memory.
    pub swap_write: Ps,
    /// To start writing it to a disk.
    pub swap_write_async: Ps,
    /// Each further page of a request.
    pub swap_write_plugged: Ps,
    /// Each further page of a large folio.
    pub swap_write_further: Ps,
    /// A slot of swap that is passed.
    pub pass_slot: Ps,
    /// To read a page from swap.
    pub swap_read: Ps,
    /// To sleep for a request and wake up.
    pub io_schedule: Ps,
    /// The end of a request to read from a slow disk.
    pub read_end: Ps,
    /// Count of a shrinker's objects, and scan of one object.
    pub count_objects: Ps,
    pub scan_object: Ps,
    /// A call that looks up a name that does not exist.
    pub lookup: Ps,
    /// A call that writes a page of a file that is in memory, and what it takes more if it is not, if it is clean, and if
    /// it has no buffers.
    pub file_write: Ps,
    pub file_create: Ps,
    pub file_dirty: Ps,
    pub file_buffers: Ps,
    /// A new page of shared memory, besides its allocation.
    pub shmem_create: Ps,
    /// From a fault on one until it is added to the page cache.
    pub shmem_add: Ps,
    /// A fault on one that is in memory, which writes and which reads.
    pub shmem_write_fault: Ps,
    pub shmem_read_fault: Ps,
    /// A read fault on one that is not in memory takes this more.
    pub shmem_look_around: Ps,
    /// To write one to swap, and to bring it back, takes this more.
    pub shmem_swap_write: Ps,
    pub shmem_swap_read: Ps,
    /// Activation of a page by a call.
    pub activate: Ps,
    /// Writeback of a dirty page until the disk has it, more for a request and for a page that is mapped, and the end of
    /// a request.
    pub write_page: Ps,
    pub write_request: Ps,
    pub write_mapped: Ps,
    pub write_end: Ps,
    /// Removal of the page-table entry of a page of a process's own, of one of a file or shared memory, of each further page
    /// of a large folio, and freeing a huge page.
    pub zap_page: Ps,
    pub zap_shared: Ps,
    pub zap_further: Ps,
    pub zap_huge: Ps,
    /// A fault that maps a huge page, besides `fault` and clearing it.
    pub huge_fault: Ps,
}
