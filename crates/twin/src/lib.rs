//! The simulated kernel: a machine, a kernel's rules and a workload in virtual time.
//!
//! Every mechanism is a folder with the kernel's name. Folders have one order, and none imports from a later one
//! (`tests/layers.rs`). Events leave through the [`probe`] to a [`Sink`](mmtwin_event::Sink): an analysis, a recording,
//! or nothing.
//!
//! | place | subject |
//! |---|---|
//! | `mm/vmscan/shrink_inactive.rs` | which page is evicted (`shrink_folio_list`); lists by zone: `mm/vmscan_zone/shrink_page_list.rs` |
//! | `mm/filemap`, `mm/readahead.rs`, `mm/swap`, `mm/rmap.rs` | page cache, read-ahead, swap, reverse mappings |
//! | `mm/slowpath`, `mm/oom.rs`, `mm/memcg/high.rs` | the allocator's slow path, the OOM killer, `memory.high` |
//! | `mm/writeback/throttle.rs` | writers that are throttled (`balance_dirty_pages`) |
//! | `page_alloc/allocate.rs`, `page_alloc/pageset.rs` | the allocator's fast path, per-CPU lists |
//! | `numa/fault.rs`, `numa/filter.rs` | decisions of a hinting fault |
//! | `numa/scanner.rs` | start of the scanner, and the pages that it marks |
//! | `numa/task_migrate.rs`, `sched/balance.rs` | the CPU to which a task moves |
//! | `vmalloc/space.rs`, `vmalloc/pass.rs` | lazy frees, and the purge that subtracts them |
//! | `vmstat`, `procfs` | counters, and the files that show them |
//!
//! Same scenario and seed, same bytes, on every machine and in every build: time is integer nanoseconds, actions of the
//! same time are ordered by CPU and sequence, random numbers depend on their purpose and not on the time of the draw,
//! and arithmetic that differs between platforms is refused by clippy (`clippy.toml` of this crate).

pub mod build;
pub mod engine;
pub mod frame;
pub mod hw;
mod lab_guest;
pub mod mm;
mod numa;
pub mod page_alloc;
pub mod probe;
pub mod procfs;
mod sched;
pub mod time;
pub mod vmalloc;
pub mod vmstat;
pub mod workload;
