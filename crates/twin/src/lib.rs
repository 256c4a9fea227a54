//! The simulated kernel: a machine, a kernel's rules and a workload in virtual time.
//!
//! Every mechanism is a folder named as a kernel developer would look for it. Folders stand in one order, and none imports
//! from one that comes after it (`tests/layers.rs`). Events leave through the [`probe`], from where a
//! [`Sink`](mmtwin_event::Sink) takes them: an analysis, a recording, or nothing.
//!
//! | where to look | for |
//! |---|---|
//! | `mm/vmscan/shrink_inactive.rs` | which page is evicted (`shrink_folio_list`); lists by zone: `mm/vmscan_zone/shrink_page_list.rs` |
//! | `mm/filemap`, `mm/readahead.rs`, `mm/swap.rs`, `mm/rmap.rs` | page cache, read-ahead, swap, reverse mappings |
//! | `mm/slowpath`, `mm/oom.rs`, `mm/memcg/high.rs` | the allocator's slow path, the OOM killer, `memory.high` |
//! | `mm/writeback/throttle.rs` | writers that are throttled (`balance_dirty_pages`) |
//! | `page_alloc/allocate.rs`, `page_alloc/pageset.rs` | the allocator's fast path, per-CPU lists |
//! | `numa/fault.rs`, `numa/filter.rs` | what a hinting fault decides |
//! | `numa/scanner.rs` | when the scanner begins, and what it marks |
//! | `numa/task_migrate.rs`, `sched/balance.rs` | where a task goes |
//! | `vmalloc/space.rs`, `vmalloc/pass.rs` | lazy frees, and the purge that subtracts them |
//! | `vmstat`, `procfs` | counters, and the files that show them |
//!
//! Same scenario and seed, same bytes, on every machine and in every build: time is integer nanoseconds, what happens
//! at the same time is ordered by CPU and sequence, random numbers depend on what they are for and not on when they
//! are drawn, and arithmetic that differs between platforms is refused by clippy (`clippy.toml` of this crate).

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
