//! Every typed event, once: the vocabulary onto which all kernels from 2.6.36 to 6.18 are mapped.
//!
//! A field is named as today's kernels print it; the words in quotes are its other spellings (in format texts, or in
//! the text of older kernels). A type without `Option` is a field that every kernel with the event has. Units: pages
//! unless the name says otherwise; `usec_*` microseconds; `nid` node, `order` log2 of pages. Source: the event headers
//! of the releases named in `era`.

use crate::event::{Fielded, Slots};
use crate::schema::typed_events;
pub use crate::schema::{FieldSchema, Schema, Typed};
use crate::value::*;

typed_events! {
    vmscan {
        /// kswapd of a node goes to sleep.
        MmVmscanKswapdSleep "mm_vmscan_kswapd_sleep" { nid: i32 }
        /// kswapd of a node begins to work at an order.
        MmVmscanKswapdWake "mm_vmscan_kswapd_wake" { nid: i32, order: i32, zid: Option<i32> }
        /// kswapd is woken. In 2.6.36/37 every request, later only real wakeups.
        MmVmscanWakeupKswapd "mm_vmscan_wakeup_kswapd" { nid: i32, order: i32, zid: Option<i32>, gfp_flags: Option<Gfp> }
        /// A task begins direct reclaim.
        MmVmscanDirectReclaimBegin "mm_vmscan_direct_reclaim_begin" { order: i32, gfp_flags: Gfp, may_writepage: Option<i32> }
        /// A task ends direct reclaim.
        MmVmscanDirectReclaimEnd "mm_vmscan_direct_reclaim_end" { nr_reclaimed: u64 }
        /// A task begins to reclaim from a cgroup at its limit.
        MmVmscanMemcgReclaimBegin "mm_vmscan_memcg_reclaim_begin" { order: i32, gfp_flags: Gfp, may_writepage: Option<i32> }
        /// A task ends cgroup reclaim.
        MmVmscanMemcgReclaimEnd "mm_vmscan_memcg_reclaim_end" { nr_reclaimed: u64 }
        /// Soft-limit cgroup reclaim begins.
        MmVmscanMemcgSoftlimitReclaimBegin "mm_vmscan_memcg_softlimit_reclaim_begin" { order: i32, gfp_flags: Gfp, may_writepage: Option<i32> }
        /// Soft-limit cgroup reclaim ends.
        MmVmscanMemcgSoftlimitReclaimEnd "mm_vmscan_memcg_softlimit_reclaim_end" { nr_reclaimed: u64 }
        /// Node (zone_reclaim_mode) reclaim begins.
        MmVmscanNodeReclaimBegin "mm_vmscan_node_reclaim_begin" { nid: i32, order: i32, gfp_flags: Gfp }
        /// Node reclaim ends.
        MmVmscanNodeReclaimEnd "mm_vmscan_node_reclaim_end" { nr_reclaimed: u64 }
        /// A shrinker is about to run. `shr` is the shrinker, `shrink` its scan function.
        MmShrinkSlabStart "mm_shrink_slab_start" {
            shr: Hex, shrink: Sym, nr_objects_to_shrink: i64 = "objects_to_shrink", gfp_flags: Gfp, cache_items: u64, delta: u64,
            total_scan: i64, nid: Option<i32>, priority: Option<i32>, pgs_scanned: Option<i64>, lru_pgs: Option<i64>,
        }
        /// A shrinker has run. `retval` is the number of objects freed (before 3.12: what the shrinker returned).
        MmShrinkSlabEnd "mm_shrink_slab_end" {
            shr: Hex, shrink: Sym, unused_scan: i64, new_scan: i64, retval: i64, total_scan: i64, nid: Option<i32>,
        }
        /// Pages were taken from an LRU list.
        MmVmscanLruIsolate "mm_vmscan_lru_isolate" {
            order: i32, nr_requested: u64, nr_scanned: u64, nr_taken: u64, nr_skipped: Option<u64>,
            highest_zoneidx: Option<i32> = "classzone" | "classzone_idx", lru: Option<Lru>, isolate_mode: Option<u32>,
            file: Option<i32>, contig_taken: Option<u64> = "nr_lumpy_taken", contig_dirty: Option<u64> = "nr_lumpy_dirty",
            contig_failed: Option<u64> = "nr_lumpy_failed",
        }
        /// The same for cgroup reclaim (to 3.x).
        MmVmscanMemcgIsolate "mm_vmscan_memcg_isolate" {
            order: i32, nr_requested: u64, nr_scanned: u64, nr_taken: u64, isolate_mode: Option<u32>, file: Option<i32>,
            contig_taken: Option<u64> = "nr_lumpy_taken", contig_dirty: Option<u64> = "nr_lumpy_dirty",
            contig_failed: Option<u64> = "nr_lumpy_failed",
        }
        /// Reclaim starts to write a page.
        MmVmscanWriteFolio "mm_vmscan_write_folio" | "mm_vmscan_writepage" {
            flags: ReclaimFlags = "reclaim_flags", pfn: Option<u64>, page: Option<Hex>,
        }
        /// A batch of inactive pages has been through reclaim.
        MmVmscanLruShrinkInactive "mm_vmscan_lru_shrink_inactive" {
            nid: i32, nr_scanned: u64, nr_reclaimed: u64, priority: i32, flags: ReclaimFlags = "reclaim_flags", zid: Option<i32>,
            nr_dirty: Option<u64>, nr_writeback: Option<u64>, nr_congested: Option<u64>, nr_immediate: Option<u64>,
            nr_activate_anon: Option<u64> = "nr_activate0", nr_activate_file: Option<u64> = "nr_activate1",
            nr_ref_keep: Option<u64>, nr_unmap_fail: Option<u64>,
        }
        /// A batch of active pages has been scanned.
        MmVmscanLruShrinkActive "mm_vmscan_lru_shrink_active" {
            nid: i32, nr_taken: u64, nr_active: u64, nr_deactivated: u64, nr_referenced: u64, priority: i32,
            flags: ReclaimFlags = "reclaim_flags",
        }
        /// Pages chosen from outside (madvise, DAMON) have been reclaimed.
        MmVmscanReclaimPages "mm_vmscan_reclaim_pages" {
            nid: i32, nr_scanned: u64, nr_reclaimed: u64, nr_dirty: u64, nr_writeback: u64, nr_congested: u64, nr_immediate: u64,
            nr_activate_anon: u64 = "nr_activate0", nr_activate_file: u64 = "nr_activate1", nr_ref_keep: u64, nr_unmap_fail: u64,
        }
        /// A reclaimer was throttled.
        MmVmscanThrottled "mm_vmscan_throttled" {
            nid: i32, usec_timeout: i32, usec_delayed: i32 = "usect_delayed", reason: ThrottleReason,
        }
        /// The swap token has a new owner (3.3/3.4).
        ReplaceSwapToken "replace_swap_token" {
            old_token_mm: Hex = "old_mm", old_prio: u32, new_token_mm: Hex = "new_mm", new_prio: u32,
        }
        /// The swap token was returned.
        PutSwapToken "put_swap_token" { token_mm: Hex = "swap_token_mm" }
        /// The swap token was switched off.
        DisableSwapToken "disable_swap_token" { token_mm: Hex = "swap_token_mm" }
        /// A task's swap-token priority changed.
        UpdateSwapTokenPriority "update_swap_token_priority" {
            mm: Hex, old_prio: u32, new_prio: u32, swap_token_mm: Hex, token_prio: u32 = "swap_token_prio",
        }
    }
    writeback {
        /// A task waited for congestion (to 5.15).
        WritebackCongestionWait "writeback_congestion_wait" { usec_timeout: u32, usec_delayed: u32 }
        /// A task waited for congestion only if the zone was congested (to 5.15).
        WritebackWaitIffCongested "writeback_wait_iff_congested" { usec_timeout: u32, usec_delayed: u32 }
        /// Dirty state of the system, in pages.
        GlobalDirtyState "global_dirty_state" {
            dirty: u64 = "nr_dirty", writeback: u64 = "nr_writeback", bg_thresh: u64 = "background_thresh",
            thresh: u64 = "dirty_thresh", limit: u64 = "dirty_limit", dirtied: u64 = "nr_dirtied", written: u64 = "nr_written",
            unstable: Option<u64> = "nr_unstable",
        }
        /// A writer was throttled.
        BalanceDirtyPages "balance_dirty_pages" {
            bdi: Str, limit: u64, setpoint: u64, dirty: u64, bdi_setpoint: u64 = "wb_setpoint", bdi_dirty: u64 = "wb_dirty",
            dirty_ratelimit: u64, task_ratelimit: u64, dirtied: u32, dirtied_pause: u32, paused: u64, pause: i64, period: u64,
            think: i64, cgroup_ino: Option<u64>,
        }
        /// Rate estimate of a device.
        BdiDirtyRatelimit "bdi_dirty_ratelimit" {
            bdi: Str, write_bw: u64, awrite_bw: u64 = "avg_write_bw", dirty_rate: u64, dirty_ratelimit: u64, task_ratelimit: u64,
            balanced_dirty_ratelimit: u64, cgroup_ino: Option<u64>,
        }
        /// Writeback of a device starts.
        WritebackStart "writeback_start" {
            bdi: Str = "name", sb_dev: Dev, nr_pages: i64, sync_mode: i32, kupdate: i32 = "for_kupdate", range_cyclic: i32,
            background: i32 = "for_background", reason: Option<WritebackReason>, cgroup_ino: Option<u64>,
        }
        /// Writeback of a device has written.
        WritebackWritten "writeback_written" {
            bdi: Str = "name", sb_dev: Dev, nr_pages: i64, sync_mode: i32, kupdate: i32 = "for_kupdate", range_cyclic: i32,
            background: i32 = "for_background", reason: Option<WritebackReason>, cgroup_ino: Option<u64>,
        }
        /// Writeback work is taken up.
        WritebackExec "writeback_exec" {
            bdi: Str = "name", sb_dev: Dev, nr_pages: i64, sync_mode: i32, kupdate: i32 = "for_kupdate", range_cyclic: i32,
            background: i32 = "for_background", reason: Option<WritebackReason>, cgroup_ino: Option<u64>,
        }
        /// Writeback work is queued.
        WritebackQueue "writeback_queue" {
            bdi: Str = "name", sb_dev: Dev, nr_pages: i64, sync_mode: i32, kupdate: i32 = "for_kupdate", range_cyclic: i32,
            background: i32 = "for_background", reason: Option<WritebackReason>, cgroup_ino: Option<u64>,
        }
        /// Writeback waits.
        WritebackWait "writeback_wait" {
            bdi: Str = "name", sb_dev: Dev, nr_pages: i64, sync_mode: i32, kupdate: i32 = "for_kupdate", range_cyclic: i32,
            background: i32 = "for_background", reason: Option<WritebackReason>, cgroup_ino: Option<u64>,
        }
        /// Pages written by one writeback run.
        WritebackPagesWritten "writeback_pages_written" { pages: i64 }
        /// A task waits for the write of a folio.
        FolioWaitWriteback "folio_wait_writeback" | "wait_on_page_writeback" { bdi: Str = "name", ino: u64, index: u64 }
        /// A folio becomes dirty.
        WritebackDirtyFolio "writeback_dirty_folio" | "writeback_dirty_page" { bdi: Str = "name", ino: u64, index: u64 }
        /// A page is passed to its file system for writeback.
        WbcWritepage "wbc_writepage" {
            bdi: Str = "name", towrt: i64 = "nr_to_write", skip: i64 = "pages_skipped", mode: i32 = "sync_mode",
            kupd: i32 = "for_kupdate", bgrd: i32 = "for_background", cyclic: i32 = "range_cyclic", start: Hex = "range_start",
            end: Hex = "range_end", reclm: Option<i32> = "for_reclaim", cgroup_ino: Option<u64>, more: Option<i32> = "more_io",
            older: Option<Hex> = "older_than_this",
        }
    }
    kmem {
        /// Pages were allocated; `pfn` is all ones (text: 0) if it failed.
        MmPageAlloc "mm_page_alloc" { order: u32, migratetype: i32, gfp_flags: Gfp, pfn: Option<u64>, page: Option<Hex> }
        /// Pages were freed.
        MmPageFree "mm_page_free" | "mm_page_free_direct" { order: u32, pfn: Option<u64>, page: Option<Hex> }
        /// A page was freed in a batch.
        MmPageFreeBatched "mm_page_free_batched" | "mm_pagevec_free" { pfn: Option<u64>, page: Option<Hex>, cold: Option<i32> }
        /// Pages were taken from the free lists under the zone lock.
        MmPageAllocZoneLocked "mm_page_alloc_zone_locked" {
            order: u32, migratetype: i32, pfn: Option<u64>, page: Option<Hex>, percpu_refill: Option<i32>,
        }
        /// A page was freed from a per-CPU list to the free lists.
        MmPagePcpuDrain "mm_page_pcpu_drain" { order: u32, migratetype: i32, pfn: Option<u64>, page: Option<Hex> }
        /// An allocation took a block of another migratetype.
        MmPageAllocExtfrag "mm_page_alloc_extfrag" {
            alloc_order: i32, fallback_order: i32, alloc_migratetype: i32, fallback_migratetype: i32,
            change_ownership: Option<i32>, pfn: Option<u64>, page: Option<Hex>,
        }
        /// Resident memory of an address space changed.
        RssStat "rss_stat" { mm_id: u32, curr: u32, member: Rss = "type", size: i64 }
        /// kmalloc.
        Kmalloc "kmalloc" {
            call_site: Sym, ptr: Hex, bytes_req: u64, bytes_alloc: u64, gfp_flags: Gfp, node: Option<i32>, accounted: Option<bool>,
        }
        /// kmalloc on a node (to 5.x).
        KmallocNode "kmalloc_node" { call_site: Sym, ptr: Hex, bytes_req: u64, bytes_alloc: u64, gfp_flags: Gfp, node: i32 }
        /// Slab allocation.
        KmemCacheAlloc "kmem_cache_alloc" {
            call_site: Sym, ptr: Hex, bytes_req: u64, bytes_alloc: u64, gfp_flags: Gfp, node: Option<i32>,
            accounted: Option<bool>, name: Option<Str>,
        }
        /// Slab allocation on a node (to 5.x).
        KmemCacheAllocNode "kmem_cache_alloc_node" { call_site: Sym, ptr: Hex, bytes_req: u64, bytes_alloc: u64, gfp_flags: Gfp, node: i32 }
        /// kfree.
        Kfree "kfree" { call_site: Sym, ptr: Hex }
        /// Slab free.
        KmemCacheFree "kmem_cache_free" { call_site: Sym, ptr: Hex, name: Option<Str> }
        /// Watermarks of a zone were set (6.18).
        MmSetupPerZoneWmarks "mm_setup_per_zone_wmarks" {
            node_id: i32, name: Str = "zone_name", watermark_min: u64 = "min", watermark_low: u64 = "low",
            watermark_high: u64 = "high", watermark_promo: u64 = "promo",
        }
        /// Lowmem reserve of a zone was set (6.18).
        MmSetupPerZoneLowmemReserve "mm_setup_per_zone_lowmem_reserve" {
            node_id: i32, name: Str = "zone_name", upper_name: Str = "upper_zone_name", lowmem_reserve: i64 = "lowmem_reserve_pages",
        }
        /// Reserved pages of the system were summed (6.18).
        MmCalculateTotalreservePages "mm_calculate_totalreserve_pages" { totalreserve_pages: u64 }
    }
    compaction {
        /// The migration scanner isolated pages.
        MmCompactionIsolateMigratepages "mm_compaction_isolate_migratepages" {
            nr_scanned: u64, nr_taken: u64, start_pfn: Option<u64>, end_pfn: Option<u64>,
        }
        /// The free scanner isolated pages.
        MmCompactionIsolateFreepages "mm_compaction_isolate_freepages" {
            nr_scanned: u64, nr_taken: u64, start_pfn: Option<u64>, end_pfn: Option<u64>,
        }
        /// The fast search for free pages isolated pages.
        MmCompactionFastIsolateFreepages "mm_compaction_fast_isolate_freepages" {
            nr_scanned: u64, nr_taken: u64, start_pfn: Option<u64>, end_pfn: Option<u64>,
        }
        /// Compaction moved pages.
        MmCompactionMigratepages "mm_compaction_migratepages" { nr_migrated: u64, nr_failed: u64 }
        /// Compaction of a zone begins.
        MmCompactionBegin "mm_compaction_begin" { zone_start: u64, migrate_pfn: u64, free_pfn: u64, zone_end: u64, sync: bool = "mode" }
        /// Compaction of a zone ends.
        MmCompactionEnd "mm_compaction_end" {
            zone_start: u64, migrate_pfn: u64, free_pfn: u64, zone_end: u64, sync: bool = "mode", status: CompactResult,
        }
        /// Direct compaction is tried.
        MmCompactionTryToCompactPages "mm_compaction_try_to_compact_pages" {
            order: i32, gfp_mask: Gfp, priority: Option<i32> = "prio",
        }
        /// Has compaction finished?
        MmCompactionFinished "mm_compaction_finished" { node: i32 = "nid", zone: Zone = "idx", order: i32, ret: CompactResult }
        /// Is a zone suitable for compaction?
        MmCompactionSuitable "mm_compaction_suitable" { node: i32 = "nid", zone: Zone = "idx", order: i32, ret: CompactResult }
        /// Compaction was deferred.
        MmCompactionDeferred "mm_compaction_deferred" {
            node: i32 = "nid", zone: Zone = "idx", order: i32, order_failed: i32, consider: u32 = "considered",
            limit: Option<u64>, defer_shift: Option<u32>,
        }
        /// Later compaction will be deferred.
        MmCompactionDeferCompaction "mm_compaction_defer_compaction" {
            node: i32 = "nid", zone: Zone = "idx", order: i32, order_failed: i32, consider: u32 = "considered",
            limit: Option<u64>, defer_shift: Option<u32>,
        }
        /// Deferral ends.
        MmCompactionDeferReset "mm_compaction_defer_reset" {
            node: i32 = "nid", zone: Zone = "idx", order: i32, order_failed: i32, consider: u32 = "considered",
            limit: Option<u64>, defer_shift: Option<u32>,
        }
        /// kcompactd goes to sleep.
        MmCompactionKcompactdSleep "mm_compaction_kcompactd_sleep" { nid: i32 }
        /// kcompactd is woken.
        MmCompactionWakeupKcompactd "mm_compaction_wakeup_kcompactd" { nid: i32, order: i32, highest_zoneidx: Zone = "classzone_idx" }
        /// kcompactd begins.
        MmCompactionKcompactdWake "mm_compaction_kcompactd_wake" { nid: i32, order: i32, highest_zoneidx: Zone = "classzone_idx" }
    }
    migrate {
        /// A batch of pages was migrated.
        MmMigratePages "mm_migrate_pages" {
            nr_succeeded: u64 = "succeeded", nr_failed: u64 = "failed", mode: MigrateMode, reason: MigrateReason,
            nr_thp_succeeded: Option<u64> = "thp_succeeded", nr_thp_failed: Option<u64> = "thp_failed",
            nr_thp_split: Option<u64> = "thp_split", nr_split: Option<u64> = "large_folio_split",
        }
        /// Migration of a batch begins.
        MmMigratePagesStart "mm_migrate_pages_start" { mode: MigrateMode, reason: MigrateReason }
        /// A page-table entry now points to a page in migration.
        SetMigrationPte "set_migration_pte" { addr: Hex, pte: Hex, order: i32 }
        /// A page-table entry points to the new page.
        RemoveMigrationPte "remove_migration_pte" { addr: Hex, pte: Hex, order: i32 }
        /// NUMA migration of a task was rate limited (to 4.18).
        MmNumaMigrateRatelimit "mm_numa_migrate_ratelimit" { comm: Str, pid: i32, dst_nid: i32, nr_pages: u64 }
    }
    thp {
        /// A huge entry now points to a page in migration.
        SetMigrationPmd "set_migration_pmd" { addr: Hex, pmd: Hex }
        /// A huge entry points to the new page.
        RemoveMigrationPmd "remove_migration_pmd" { addr: Hex, pmd: Hex }
    }
    sched {
        /// NUMA balancing moves a task.
        SchedMoveNuma "sched_move_numa" { pid: i32, tgid: i32, ngid: i32, src_cpu: i32, src_nid: i32, dst_cpu: i32, dst_nid: i32 }
        /// NUMA balancing failed to move a task.
        SchedStickNuma "sched_stick_numa" {
            src_pid: i32 = "pid", src_tgid: i32 = "tgid", src_ngid: i32 = "ngid", src_cpu: i32, src_nid: i32,
            dst_cpu: i32, dst_nid: i32, dst_pid: Option<i32>, dst_tgid: Option<i32>, dst_ngid: Option<i32>,
        }
        /// NUMA balancing swaps two tasks.
        SchedSwapNuma "sched_swap_numa" {
            src_pid: i32, src_tgid: i32, src_ngid: i32, src_cpu: i32, src_nid: i32,
            dst_pid: i32, dst_tgid: i32, dst_ngid: i32, dst_cpu: i32, dst_nid: i32,
        }
        /// A node enters or leaves a group's active set (2014 series).
        UpdateNumaActiveNodesMask "update_numa_active_nodes_mask" {
            pid: i32, gid: i32, nid: i32, set: i32, faults: i64, max_faults: i64,
        }
        /// The NUMA scanner skips an area.
        SchedSkipVmaNuma "sched_skip_vma_numa" { numa_scan_offset: Hex, vm_start: Hex, vm_end: Hex, reason: NumaSkip }
        /// The NUMA scanner skips a task bound to one node.
        SchedSkipCpusetNuma "sched_skip_cpuset_numa" { comm: Str, pid: i32, tgid: i32, ngid: i32 }
        /// A task moves to another CPU.
        SchedMigrateTask "sched_migrate_task" { comm: Str, pid: i32, prio: i32, orig_cpu: i32, dest_cpu: i32 }
    }
    mmtwin {
        /// The twin's NUMA balancing: a process maps a region (`PROCESS/NAME`), which others may map too.
        NumaMapping "numa_mapping" { tgid: i32, vm_start: Hex, vm_end: Hex, region_id: u32, region: Str }
        /// A hinting fault and what becomes of its page. `last_*`: the fault before, -1 if not known; `cpu_*` and `mem_*`:
        /// faults of the task's group on the two nodes.
        NumaHintFault "numa_hint_fault" {
            tgid: i32, addr: Hex, nr_pages: u32, pfn: u64, new_pfn: u64, src_nid: i32, dst_nid: i32, last_cpu: i32,
            last_pid: i32, last_nid: i32, rule: NumaRule, wanted: bool, migrated: bool, preferred_nid: i32, scan_seq: i32,
            gid: i32, cpu_src: u64, cpu_dst: u64, mem_src: u64, mem_dst: u64, deferred: u32,
        }
        /// A page that should have followed its fault stays: `have` pages against `limit`.
        NumaMigrateRefused "numa_migrate_refused" {
            pfn: u64, nr_pages: u32, src_nid: i32, dst_nid: i32, rule: NumaRule, have: i64, limit: i64,
        }
        /// A task makes, joins or leaves a group, or does not join that of the task which faulted before.
        NumaGroup "numa_group" {
            pid: i32, gid: i32, nr_tasks: u64, rule: NumaRule, other_pid: i32, other_gid: i32, other_tasks: u64,
        }
        /// Faults on a node at a placement, decayed: of the task, and of its group.
        NumaNodeFaults "numa_node_faults" {
            pid: i32, gid: i32, nid: i32, mem: u64, cpu: u64, group_mem: u64, group_cpu: u64,
        }
        /// A placement: `best_nid` has most faults, `nid` becomes the preferred node.
        NumaPlacement "numa_placement" {
            pid: i32, gid: i32, scan_seq: i32, rule: NumaRule, best_nid: i32, best_faults: u64, old_nid: i32, nid: i32,
            active_nodes: u64, max_faults_cpu: u64,
        }
        /// A task's scan period changes, in milliseconds. Faults since it last did, by kind.
        NumaScanPeriod "numa_scan_period" {
            pid: i32, rule: NumaRule, old: u64, period: u64, local: u64, remote: u64, failed: u64, private: u64, shared: u64,
        }
        /// A node is searched for a CPU, or not. Improvements in thousandths of all faults.
        NumaSearchNode "numa_search_node" {
            pid: i32, nid: i32, rule: NumaRule, taskimp: i64, groupimp: i64, nr_running: u64, cpus: u64, may_move: bool,
            best_cpu: i32, best_pid: i32, best_imp: i64,
        }
        /// A CPU of the node is considered; `curr` runs there, 0: idle. The best improvement is that before.
        NumaSearchCpu "numa_search_cpu" {
            pid: i32, cpu: i32, nid: i32, curr: i32, rule: NumaRule, imp: i64, moveimp: i64, best_imp: i64,
        }
        /// A search for a CPU on a better node has ended.
        NumaTaskMigrate "numa_task_migrate" {
            pid: i32, gid: i32, rule: NumaRule, src_cpu: i32, src_nid: i32, preferred_nid: i32, nid: i32, best_cpu: i32,
            best_pid: i32, best_imp: i64,
        }
        /// A CPU that balances load considers a task of another node.
        NumaBalance "numa_balance" {
            pid: i32, rule: NumaRule, src_cpu: i32, src_nid: i32, dst_cpu: i32, dst_nid: i32, preferred_nid: i32, pulled: bool,
        }
    }
    exceptions {
        /// A program's page fault on x86, with the processor's error code.
        PageFaultUser "page_fault_user" { address: u64, ip: u64, error_code: u64 }
    }
    oom {
        /// The allocator decides whether reclaim may try again.
        ReclaimRetryZone "reclaim_retry_zone" {
            node: i32, zone: Zone = "zone_idx", order: i32, reclaimable: u64, available: u64, min_wmark: u64,
            no_progress_loops: i32, wmark_check: bool,
        }
        /// The allocator decides whether compaction may try again.
        CompactRetry "compact_retry" {
            order: i32, priority: CompactPriority, compaction_result: CompactRetryResult = "result", retries: i32, max_retries: i32,
            should_retry: bool = "ret",
        }
        /// A process is chosen to die.
        MarkVictim "mark_victim" {
            pid: i32, comm: Option<Str>, total_vm: Option<u64> = "total-vm", anon_rss: Option<u64> = "anon-rss" | "anonrss",
            file_rss: Option<u64> = "file-rss" | "filerss", shmem_rss: Option<u64> = "shmem-rss" | "shmemrss",
            uid: Option<u32>, pgtables: Option<u64>, oom_score_adj: Option<i32>,
        }
        /// The reaper is woken.
        WakeReaper "wake_reaper" { pid: i32 }
        /// The reaper starts.
        StartTaskReaping "start_task_reaping" { pid: i32 }
        /// The reaper is done.
        FinishTaskReaping "finish_task_reaping" { pid: i32 }
        /// The reaper leaves a task alone.
        SkipTaskReaping "skip_task_reaping" { pid: i32 }
        /// oom_score_adj was set.
        OomScoreAdjUpdate "oom_score_adj_update" { pid: i32, comm: Str, oom_score_adj: i32 }
    }
    vmalloc {
        /// A search for vmalloc space ended.
        AllocVmapArea "alloc_vmap_area" {
            va_start: u64 = "addr", size: u64, align: u64, vstart: u64, vend: u64, failed: i32,
        }
        /// Lazy areas were purged.
        PurgeVmapAreaLazy "purge_vmap_area_lazy" { start: u64, end: u64, num_purged: u32 = "npurged" }
        /// An area was freed lazily; `nr_lazy` pages wait now.
        FreeVmapAreaNoflush "free_vmap_area_noflush" { va_start: u64, nr_lazy: u64, nr_lazy_max: u64 }
    }
    pagemap {
        /// A page was put on an LRU list.
        MmLruInsertion "mm_lru_insertion" { folio: Hex = "page", pfn: u64, lru: i32, flags: Option<Str> }
        /// A page was activated.
        MmLruActivate "mm_lru_activate" { folio: Hex = "page", pfn: u64 }
    }
    filemap {
        /// A page entered the page cache.
        MmFilemapAddToPageCache "mm_filemap_add_to_page_cache" {
            dev: Dev = "s_dev", ino: Hex = "i_ino", pfn: u64, ofs: u64 = "index", order: Option<u32>,
        }
        /// A page left the page cache.
        MmFilemapDeleteFromPageCache "mm_filemap_delete_from_page_cache" {
            dev: Dev = "s_dev", ino: Hex = "i_ino", pfn: u64, ofs: u64 = "index", order: Option<u32>,
        }
    }
    huge_memory {
        /// khugepaged collapsed, or did not.
        MmCollapseHugePage "mm_collapse_huge_page" { mm: Hex, isolated: i32, status: Khugepaged }
        /// khugepaged isolated pages.
        MmCollapseHugePageIsolate "mm_collapse_huge_page_isolate" {
            scan_pfn: u64 = "pfn", none_or_zero: i32, referenced: i32, status: Khugepaged, writable: Option<i32>,
        }
        /// khugepaged swapped pages in.
        MmCollapseHugePageSwapin "mm_collapse_huge_page_swapin" { mm: Hex, swapped_in: i32, referenced: i32, ret: i32 }
        /// khugepaged scanned a huge-page range.
        MmKhugepagedScanPmd "mm_khugepaged_scan_pmd" {
            mm: Hex, scan_pfn: i64 = "pfn", referenced: i32, none_or_zero: i32, status: Khugepaged, unmapped: i32,
            writable: Option<i32>,
        }
        /// khugepaged collapsed file pages, or did not.
        MmKhugepagedCollapseFile "mm_khugepaged_collapse_file" {
            mm: Hex, hpage_pfn: i64 = "hpfn", index: i64, addr: Hex, is_shmem: bool, filename: Str, nr: i32, result: Khugepaged,
        }
        /// khugepaged scanned file pages.
        MmKhugepagedScanFile "mm_khugepaged_scan_file" {
            mm: Hex, scan_pfn: i64 = "pfn", filename: Str, present: i32, swap: i32, result: Khugepaged,
        }
    }
}
