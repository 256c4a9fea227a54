//! Memory management, by the names of the kernel's `mm/`.
//!
//! | kernel | here |
//! |---|---|
//! | `mm/filemap.c`, `lib/xarray.c` | [`filemap`] |
//! | `mm/readahead.c` | [`readahead`] |
//! | `mm/truncate.c` | [`truncate`] |
//! | `mm/madvise.c` | `MADV_DONTNEED`: [`truncate`]; `MADV_FREE`: [`lazyfree`] |
//! | `mm/memory.c`, `mm/huge_memory.c` (faults of anonymous memory) | [`region`] |
//! | `mm/shmem.c` | faults: [`region`]; calls: [`shmem`] |
//! | `mm/swap_state.c`, `mm/swapfile.c` | [`swap`] |
//! | `mm/rmap.c` | [`rmap`]; accessed bits in [`accessed`] |
//! | `mm/swap.c` (LRU lists and folio batches) | [`lru`] |
//! | `mm/vmscan.c` | [`vmscan`]; with lists by zone (2.6.36 to 3.5) [`vmscan_zone`]; which of the two runs: [`reclaim`] |
//! | `mm/workingset.c` | [`workingset`] |
//! | `mm/memcontrol.c` | [`memcg`] |
//! | `mm/compaction.c`, `mm/migrate.c` | [`compaction`] |
//! | `mm/page-writeback.c`, `fs/fs-writeback.c` | [`writeback`] |
//! | `mm/slub.c`, `mm/shrinker.c`, `fs/dcache.c`, `fs/inode.c` | [`slab`] |
//! | `mm/page_alloc.c`, `__alloc_pages_slowpath` | [`slowpath`] |
//! | `mm/oom_kill.c` | [`oom`] |
//! | `mm/mprotect.c` (`PROT_NUMA`) | [`prot_numa`] |
//! | `psi_memstall_enter` of reads | [`stall`]; the sums are those of [`crate::sched`] |
//!
//! [`kernel`] is the context that all of these work on: the allocator, the counters, the tracepoints, the state of
//! reclaim, and the clocks of CPUs. [`memory`] is the memory of the processes. Work for the caller is returned as
//! [`effects`].

pub(crate) mod accessed;
pub(crate) mod compaction;
pub(crate) mod costs;
pub(crate) mod effects;
pub(crate) mod filemap;
pub(crate) mod huge_split;
pub mod kernel;
pub(crate) mod lazyfree;
pub(crate) mod lru;
pub mod memcg;
pub(crate) mod memory;
pub(crate) mod oom;
pub(crate) mod page_tables;
pub(crate) mod prot_numa;
pub(crate) mod readahead;
pub mod reclaim;
pub(crate) mod region;
pub mod replacement;
pub(crate) mod rmap;
pub(crate) mod shmem;
pub(crate) mod shmem_add;
pub mod slab;
pub(crate) mod slowpath;
pub(crate) mod stall;
pub(crate) mod swap;
pub(crate) mod tlb;
pub(crate) mod truncate;
pub mod vmscan;
pub mod vmscan_zone;
pub(crate) mod workingset;
pub mod writeback;
