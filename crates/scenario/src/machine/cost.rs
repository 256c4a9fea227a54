//! Costs of the kernel's own work on a machine. Costs are those of a CPU whose core has no other busy thread;
//! [`CpuSpeed::smt_slowdown`](super::CpuSpeed) multiplies them where both threads work, except where a cost is a wait
//! for a cache line.

use crate::units::{Cost, Share, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;

/// Costs of kernel work.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Costs {
    /// One order-0 page allocated from and freed to this CPU's page list, without NUMA counters.
    pub page_alloc_free: Cost,
    /// Clearing each further page of a block that is allocated at once, where the kernel clears what it gives
    /// (`init_on_alloc`).
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub page_init: Cost,
    /// Choosing the node of an allocation by a policy that interleaves.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub interleave: Cost,
    /// Freeing one page from this CPU's list to the buddy lists, under the zone lock.
    pub page_bulk: Cost,
    /// Taking one page, or a block, from the buddy lists when this CPU's list is refilled (`rmqueue_bulk`): the allocation that
    /// finds the list empty pays for all of the batch. Absent: part of what faults and reads cost.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub pcp_refill: Cost,
    /// Putting a new folio on its LRU list: whoever fills this CPU's batch of such folios pays for all of it
    /// (`folio_batch_move_lru`). Absent: part of what faults and reads cost.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub lru_add: Cost,
    /// The NUMA counters of one allocation (hit and local) in 8-bit differentials with threshold test.
    pub numa_counters_s8: Cost,
    /// The same in 16-bit differentials with a fixed threshold.
    pub numa_counters_u16: Cost,
    /// The same as plain per-CPU words.
    pub numa_counters_events: Cost,
    /// Waiting until this CPU has the lines of a zone back after another CPU changed a zone counter. Not multiplied.
    pub zone_reread: Cost,
    /// One round of `fix_size_alloc_test` with one page, by one thread alone on the machine. Each further page takes
    /// a `page_alloc_free` more.
    pub vmalloc_fix_size: Cost,
    /// The same of `full_fit_alloc_test`.
    pub vmalloc_full_fit: Cost,
    /// The same of `long_busy_list_alloc_test`.
    pub vmalloc_long_busy_list: Cost,
    /// Local work of a purge per area: unlinking it, and adding it to a pool or to the free tree.
    pub purge_area: Cost,
    /// Waking the purge workers, per purge.
    pub purge_wakeup: Cost,
    /// Share of a CPU for a purge worker while that CPU has other work.
    pub purge_worker_share: Share,
    /// Period in which a purge worker and another thread of its CPU both have their share once.
    pub purge_slice: Cost,
    /// Flushing the TLBs of all CPUs: the part that does not depend on their number.
    pub tlb_flush: Cost,
    /// Flushing the TLBs of all CPUs by interrupts: per CPU.
    pub tlb_flush_per_cpu: Cost,
    /// Waiting until the other CPUs of a process have flushed pages of it that reclaim takes.
    pub tlb_shootdown: Cost,
    /// Time of such a flush on the other CPU, whose work it interrupts; absent: none besides the wait.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub tlb_interrupt: Cost,
    /// The timer interrupt of a busy CPU's tick.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub tick: Cost,
    /// The same of a CPU that is idle for less than a tick, with the search for work that follows (`sched_balance_softirq`):
    /// where all CPUs share the time of one, the others have none meanwhile.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub tick_idle: Cost,
    /// The timer interrupt that ends a slice, with the switch to another thread (`hrtick`).
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub hrtick: Cost,
    /// CPU time from the last work of a CPU to its idling (`do_idle`, the tick that is stopped): where all CPUs share the
    /// time of one, the others have none meanwhile.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub enter_idle: Cost,
    /// Recording one event, where it is recorded.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub trace_event: Cost,
    /// Reading a statistics file without its rows.
    pub stat_file: Cost,
    /// Making one row of a statistics file from a counter that is in this CPU's cache.
    pub stat_row: Cost,
    /// Reading one more counter for a row, such as that of another CPU, once its line is in this CPU's cache.
    pub counter_read: Cost,
    /// One sample of all counters: reading, parsing and writing of the files by the recorder.
    pub sample: Cost,
    /// What a sample takes more for each node.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub sample_node: Cost,
    /// What a sample takes more for each process.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub sample_process: Cost,
    /// What a sample takes more for each entry of the page tables of processes (`numa_maps`).
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub sample_page: Cost,
    /// A minor page fault on memory that is new, without the page's allocation and its LRU list.
    pub page_fault: Cost,
    /// The same on a page that is in memory, of a file or of the swap cache; absent: as `page_fault`.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub cached_page_fault: Cost,
    /// What a write fault on a page of a file takes more (`page_mkwrite`): the file system is asked, and the page dirtied.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub page_mkwrite: Cost,
    /// The same for a page that is dirty already; absent: as `page_mkwrite`.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub page_mkwrite_dirty: Cost,
    /// A first read of anonymous memory, whose fault maps the zero page; absent: as `page_fault`.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub zero_page_fault: Cost,
    /// What a first write takes more where the zero page is mapped.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub zero_page_write: Cost,
    /// Mapping one more page of a file that is in memory, in a fault on one of its neighbours.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub map_around: Cost,
    /// Each further page of a large folio of a file, which a fault maps as a whole (`set_pte_range`).
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub map_further: Cost,
    /// What a fault on a file takes more that reads several pages or reads ahead: it drops `mmap_lock` and is made again (5.1 and
    /// later).
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub fault_retry: Cost,
    /// The same where the fault reads its page alone.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub fault_retry_alone: Cost,
    /// A call that reads or writes a page of a file that is in memory.
    pub file_call: Cost,
    /// What a call on a file takes more in a process of several threads, which share their table of files (`fdget`).
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub file_reference: Cost,
    /// Asking the disk for pages of a file that lie one after another, besides copying them.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub file_request: Cost,
    /// A folio of a file that is to be read: its place in the file's index. A large one has it once
    /// (`filemap_add_folio`).
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub file_folio: Cost,
    /// A page of a file that is to be read, besides its folio and its allocation.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub file_page: Cost,
    /// A call that looks up a name that does not exist.
    pub name_lookup: Cost,
    /// A call that writes a whole page of a file that is in memory.
    pub file_write: Cost,
    /// Additional time of such a call if the page is not in memory, besides its allocation.
    pub file_create: Cost,
    /// Additional time of such a call if the page is clean.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub file_dirty: Cost,
    /// Additional time of such a call if the file system has no buffers for the page yet.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub file_buffers: Cost,
    /// What a new page of shared memory takes more than one of a process.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub shmem_create: Cost,
    /// From a fault on a page of shared memory that is not in memory until the page is added to the page cache. Another
    /// process that faults on the page meanwhile allocates one too, and frees it. Absent: such faults do not meet.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub shmem_add: Cost,
    /// A write fault on a page of shared memory that is in memory; absent: as `page_fault`.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub shmem_write_fault: Cost,
    /// A read fault on one, without the neighbours that it maps too (`map_around`); absent: as `page_fault`.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub shmem_read_fault: Cost,
    /// What a read fault on a page of shared memory takes more that is not in memory: it looks for neighbours first
    /// (`do_fault_around`).
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub shmem_look_around: Cost,
    /// What writing a page of shared memory to swap takes more than `swap_write`.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub shmem_swap_write: Cost,
    /// What bringing one back takes more than `swap_read`.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub shmem_swap_read: Cost,
    /// Activating a page that a call uses the second time.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub page_activate: Cost,
    /// Bringing a dirty page of a file on its way to the disk.
    pub writeback_page: Cost,
    /// Beginning a request to write, of pages of a file that lie one after another.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub writeback_request: Cost,
    /// Additional time of a dirty page that is mapped, whose page-table entries are made read-only.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub writeback_mapped: Cost,
    /// Ending a request to write: the interrupt and what follows.
    pub writeback_end: Cost,
    /// Starting a program, until it does what it was started for.
    pub process_start: Cost,
    /// The same for each access of each of its phases, whose own cost it measures.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub process_access: Cost,
    /// Removing the page-table entry of a page of memory of a process's own (`zap_pte_range`), besides freeing the page.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub zap_page: Cost,
    /// The same of a page of a file or of shared memory.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub zap_shared: Cost,
    /// The same of each further page of a large folio.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub zap_further: Cost,
    /// Freeing a huge page that is unmapped.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub zap_huge: Cost,
    /// A fault that maps a huge page, besides `page_fault` and clearing it.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub huge_fault: Cost,
    /// A NUMA hinting fault without a migration.
    pub hint_fault: Cost,
    /// Marking one page-table entry for a hinting fault.
    pub scan_pte: Cost,
    /// Looking at a page-table entry that is not marked.
    pub walk_pte: Cost,
    /// Migrating one page besides copying it.
    pub migrate_page: Cost,
    /// Looking at one page while an LRU list is scanned.
    pub reclaim_scan_page: Cost,
    /// Asking the page tables that map a page in reclaim whether it was used.
    pub reclaim_rmap_page: Cost,
    /// Taking a page out of the page tables that map it.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub reclaim_unmap_page: Cost,
    /// Each further page of a large folio of a file that is unmapped.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub reclaim_unmap_further: Cost,
    /// Freeing one page in reclaim, besides giving it back.
    pub reclaim_free_page: Cost,
    /// Each further page of a large folio of a file that is freed.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub reclaim_free_further: Cost,
    /// Additional time of that if the page has buffers of the file system, because it was written to.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub reclaim_free_buffers: Cost,
    /// A batch of an LRU list besides its pages; where nodes are reclaimed.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub reclaim_batch: Cost,
    /// Going through the lists of a cgroup on a node, besides their batches and the kernel's caches; where nodes are reclaimed.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub reclaim_pass: Cost,
    /// Bringing a page into swap that is memory, besides taking it out of page tables and copying it, and freeing it.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub swap_write: Cost,
    /// Starting to write a page to swap that is a disk, besides taking it out of page tables; it is freed later.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub swap_write_async: Cost,
    /// The same for each further page of a request (`kernel.reclaim.swap_plug`), and its part of the request's end.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub swap_write_plugged: Cost,
    /// More for each further page of a huge page.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub swap_write_further: Cost,
    /// Passing a slot in the search for a free one, where no cluster of slots is free; nothing from 6.12 on.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub swap_slot_scan: Cost,
    /// Bringing a page back from swap, besides the fault, the page's allocation and copying it.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub swap_read: Cost,
    /// Sleeping for a request and waking up (`io_schedule`): two switches.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub io_schedule: Cost,
    /// Ending a request to read from a disk that is not synchronous: the interrupt, which takes time of the CPU that has
    /// asked, and unlocking the pages.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub read_end: Cost,
    /// A call that sleeps for a time, and waking up.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub nanosleep: Cost,
    /// Asking a shrinker how many objects it has; where nodes are reclaimed.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub slab_count: Cost,
    /// Scanning one slab object.
    pub slab_scan_object: Cost,
    /// Ticks from the scan of slab objects that RCU frees to their callbacks, grace period included; up to 1000.
    pub rcu_grace_ticks: NonZeroU32,
    /// Looking at one page frame in compaction.
    pub compact_scan_page: Cost,
    /// Passing over one pageblock in compaction.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub compact_pageblock: Cost,
    /// Switching from one task to another.
    pub context_switch: Cost,
    /// What a wakeup on a CPU that has another thread to run takes more than on an idle one, with the switch to the thread
    /// and the one back when it sleeps (`wakeup_preempt`).
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub wakeup_preempt: Cost,
    /// From waking a sleeping task on an idle CPU to its first instruction.
    pub wakeup_latency: Time,
}
