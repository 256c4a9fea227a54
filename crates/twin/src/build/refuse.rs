//! Keys that no mechanism reads: refused at their place where a scenario gives them a value that the twin does not have.
//!
//! Values of a bundle or a preset are true of the kernel or the machine and are not refused. A value given by a
//! scenario is refused if the run would ignore it, and accepted if it is the twin's own. The tables are destructured
//! without `..`, so that a new key does not compile until it is read or refused. Checked by `tests/keys.rs` with all
//! keys of the schema.

use super::kernel::by_zone;
use mmtwin_scenario::kernel::{
    Balanced, CgroupWalk, Congestion, DirectCompaction, DirtyPages, FallbackSteal, HighOrder, KswapdWakeup, LruScope,
    NewAnon, NumaBalancing, Pageblocks, ReadaheadWindows, Reclaim, ReclaimCounters, References, ScanBalance,
    ShrinkSlab, SyncPass, Sysctl, Thp, Workingset, WritebackPages,
};
use mmtwin_scenario::machine::{Costs, Line};
use mmtwin_scenario::{Fault, Faults, Scenario, Written};

/// Refuses keys that a scenario gives and no mechanism reads.
pub(super) fn check(scenario: &Scenario) -> Result<(), Faults> {
    let mut keys = Keys { written: &scenario.written, faults: Vec::new() };
    let kernel = &scenario.kernel;
    let without = by_zone(kernel).is_some() && kernel.thp == Thp::Never;
    let why = "the twin's kernel has compaction, unless it is one of 2010 or 2012 with thp = \"never\"";
    keys.only("kernel.compaction", kernel.compaction || without, why);
    let costs = "a vmalloc test takes the times of machine.cost.vmalloc_*, for any allocation of its pages";
    keys.only("kernel.page_alloc.bulk", false, costs);
    let claims = kernel.page_alloc.fallback_steal == FallbackSteal::ClaimThenSteal;
    let keeps = "with fallback_steal = \"claim-then-steal\" a block keeps its type unless its pageblock is claimed";
    keys.only("kernel.page_alloc.fallback_keeps_type", !claims || kernel.page_alloc.fallback_keeps_type, keeps);
    let aligned = kernel.filemap.readahead == ReadaheadWindows::Aligned && by_zone(kernel).is_none();
    let large = "large folios are modelled where kernel.filemap.readahead is \"aligned\" and nodes are reclaimed";
    keys.only("kernel.filemap.large_folios", aligned || !kernel.filemap.large_folios, large);
    let ends = "requests end in a thread only behind dm-delay, that is with machine.disk.ticks";
    keys.only("kernel.writeback.dm_delay", scenario.machine.disk.ticks, ends);
    sysctls(&mut keys, &kernel.sysctl);
    balancing(&mut keys, &kernel.numa_balancing);
    match by_zone(kernel) {
        Some(_) => reclaim_by_zone(&mut keys, &kernel.reclaim),
        None => reclaim_by_node(&mut keys, &kernel.reclaim),
    }
    line(&mut keys, &scenario.machine.line);
    costs_of_work(&mut keys, &scenario.machine.cost);
    Faults::unless_none(keys.faults)
}

struct Keys<'a> {
    written: &'a Written,
    faults: Vec<Fault>,
}

/// Another arm or mechanism that supports it.
const OTHERS: &str = "--on lab and --on host write it";

impl Keys<'_> {
    /// A key is accepted only with the twin's value; `does` is that value.
    fn only(&mut self, key: &str, done: bool, does: &str) {
        self.refuse(key, done, does, "the twin has no other rule");
    }

    /// The same of a sysctl, which real kernels have.
    fn sysctl(&mut self, name: &str, done: bool, does: &str) {
        self.refuse(&format!("kernel.sysctl.{name}"), done, does, OTHERS);
    }

    fn refuse(&mut self, key: &str, done: bool, does: &str, help: &str) {
        if !done {
            let message = format!("{key}: not modelled with this value; {does}");
            self.faults.extend(self.written.fault(key, message, help));
        }
    }
}

fn sysctls(keys: &mut Keys<'_>, of: &Sysctl) {
    let Sysctl {
        vm_min_slab_ratio,
        vm_page_cluster: _,
        vm_defrag_mode,
        kernel_watchdog_thresh,
        kernel_numa_balancing_promote_rate_limit_mbps: _,
        // The allocator's.
        vm_min_free_kbytes: _,
        vm_percpu_pagelist_high_fraction: _,
        vm_watermark_scale_factor: _,
        vm_watermark_boost_factor: _,
        vm_lowmem_reserve_ratio: _,
        // Reclaim's.
        vm_swappiness: _,
        vm_zone_reclaim_mode: _,
        vm_min_unmapped_ratio: _,
        vm_vfs_cache_pressure: _,
        vm_extfrag_threshold: _,
        vm_compaction_proactiveness: _,
        // Writeback's.
        vm_dirty_background_ratio: _,
        vm_dirty_ratio: _,
        vm_dirty_background_bytes: _,
        vm_dirty_bytes: _,
        vm_dirty_expire_centisecs: _,
        vm_dirty_writeback_centisecs: _,
        vm_laptop_mode: _,
        // The counters'.
        vm_stat_interval: _,
        vm_numa_stat: _,
        // NUMA balancing's.
        kernel_numa_balancing: _,
        kernel_numa_balancing_migrate_deferred: _,
    } = *of;
    let is_off = |value: Option<u32>| value.is_none_or(|value| value == 0);
    let slab = "node reclaim scans page cache only, as with 100";
    keys.sysctl("vm.min_slab_ratio", vm_min_slab_ratio == 100, slab);
    keys.sysctl("vm.defrag_mode", is_off(vm_defrag_mode), "reclaim does not keep pageblocks whole, as with 0");
    keys.sysctl("kernel.watchdog_thresh", kernel_watchdog_thresh == 0, "there is no watchdog, as with 0");
    let tiers = "memory tiering is not supported: no page is promoted";
    keys.sysctl("kernel.numa_balancing_promote_rate_limit_MBps", false, tiers);
}

fn balancing(keys: &mut Keys<'_>, of: &NumaBalancing) {
    let NumaBalancing {
        hot_threshold_ms: _,
        marks_referenced: _,
        scan_delay_ms: _,
        scan_period_min_ms: _,
        scan_period_max_ms: _,
        scan_size_mb: _,
        shared_pages: _,
        active_set: _,
        active_nodes_compare: _,
        cpu_weight: _,
        statistics: _,
        recompute_on_join: _,
        scan_start: _,
        scan_sharing: _,
        migrate_degrades_locality: _,
        backoff_on_migrate_fail: _,
        rate_limit: _,
        first_scans: _,
        cpupid_xchg_on_local: _,
        vma_filter: _,
        cpupid_node: _,
        scan_stamp_ahead: _,
        scan_overhead_cap: _,
        scan_virtual_limit: _,
        period_adaptation: _,
        period_by_group: _,
        period_reset: _,
        period_before_placement: _,
        group_placement: _,
        own_faults_decide: _,
        placement_moves: _,
        cpu_faults: _,
        placement_at: _,
        first_retry: _,
        active_set_is_local: _,
        memoryless_target: _,
        saved_write: _,
        huge_migration_apart: _,
        retry_by_period: _,
        stick_event: _,
        search_prefers: _,
        task_search: _,
        distance_limit_included: _,
        shmem_policy: _,
    } = *of;
    let tiers = "memory tiering is not supported: no page is promoted";
    keys.refuse("kernel.numa_balancing.hot_threshold_ms", false, tiers, OTHERS);
}

/// Where zones are reclaimed, rules of later kernels are not there.
fn reclaim_by_zone(keys: &mut Keys<'_>, of: &Reclaim) {
    let Reclaim {
        scan_balance,
        counters,
        new_anon,
        workingset,
        pageblocks,
        cgroup_walk,
        skip_limit,
        stats_flush_ms,
        lru: _,
        high_order: _,
        sync_pass: _,
        direct_compaction: _,
        congestion: _,
        dirty_pages: _,
        writeback_pages,
        balanced: _,
        kswapd_wakeup,
        kswapd_order_zero: _,
        free_batches,
        pagevec_size: _,
        swap_rw_page: _,
        swap_plug,
        swap_nonfull_first: _,
        keeps_exiting,
        swap_readahead: _,
        defer_by_order: _,
        age_without_swap: _,
        save_scans: _,
        references: _,
        give_up_with_kswapd: _,
        shrink_slab: _,
    } = *of;
    let mut only = |key: &str, done, does| {
        keys.only(&format!("kernel.reclaim.{key}"), done, &format!("where zones are reclaimed, {does}"));
    };
    only("scan_balance", scan_balance == ScanBalance::Rotations, "rotations decide between file and anonymous pages");
    only("free_batches", !free_batches, "reclaimed pages are freed together");
    only("swap_plug", !swap_plug, "each page is a request to swap");
    only("keeps_exiting", !keeps_exiting, "pages are reclaimed whoever maps them");
    only("counters", counters == ReclaimCounters::Events, "zones count scanned pages as events");
    only("new_anon", new_anon == NewAnon::Active, "new anonymous pages are active");
    only("workingset", workingset == Workingset::None, "refaults are not detected");
    only("pageblocks", pageblocks == Pageblocks::Left, "compaction leaves the rest of a pageblock");
    only("cgroup_walk", cgroup_walk == CgroupWalk::Whole, "cgroups have no lists of their own");
    only("skip_limit", skip_limit == 0, "an isolation skips no pages of other zones");
    only("stats_flush_ms", stats_flush_ms == 0, "statistics are always current");
    only("writeback_pages", writeback_pages != WritebackPages::Activate, "pages under writeback are kept");
    only("kswapd_wakeup", kswapd_wakeup != KswapdWakeup::Wake, "a request wakes kswapd by zone");
}

/// Where nodes are reclaimed it is by the rules of 6.1 and later.
fn reclaim_by_node(keys: &mut Keys<'_>, of: &Reclaim) {
    let Reclaim {
        lru,
        scan_balance,
        new_anon,
        workingset,
        high_order,
        sync_pass,
        direct_compaction,
        congestion,
        dirty_pages,
        writeback_pages,
        balanced,
        kswapd_wakeup,
        kswapd_order_zero,
        defer_by_order,
        age_without_swap,
        save_scans,
        references,
        give_up_with_kswapd,
        shrink_slab,
        cgroup_walk: _,
        counters: _,
        pageblocks: _,
        skip_limit: _,
        stats_flush_ms: _,
        free_batches: _,
        pagevec_size: _,
        swap_rw_page: _,
        swap_plug: _,
        swap_nonfull_first: _,
        keeps_exiting: _,
        swap_readahead: _,
    } = *of;
    let mut only = |key: &str, done, does| {
        keys.only(&format!("kernel.reclaim.{key}"), done, &format!("by the rules of 6.1 {does}"));
    };
    only("lru", lru == LruScope::Node, "nodes are reclaimed; a kernel of 2010 or 2012 reclaims zones");
    only("scan_balance", scan_balance != ScanBalance::Rotations, "costs decide between file and anonymous pages");
    only("new_anon", new_anon == NewAnon::Inactive, "new anonymous pages are inactive");
    only("workingset", workingset == Workingset::All, "refaults of file and anonymous pages are detected");
    only("high_order", high_order == HighOrder::Compaction, "memory is reclaimed for compaction");
    only("sync_pass", sync_pass == SyncPass::None, "there is no second pass");
    let direct = direct_compaction == DirectCompaction::CostlyOrUnmovable;
    only("direct_compaction", direct, "large blocks and those that cannot be moved are compacted for first");
    only("congestion", congestion == Congestion::Throttle, "reclaimers are throttled by reason");
    let dirty = matches!(dirty_pages, DirtyPages::KswapdNodeDirty | DirtyPages::Never);
    only("dirty_pages", dirty, "kswapd writes dirty file pages of a node flagged dirty, or no reclaimer does");
    only("writeback_pages", writeback_pages == WritebackPages::Activate, "pages under writeback are activated");
    only("balanced", balanced == Balanced::AnyZone, "one balanced zone is enough");
    only("kswapd_wakeup", kswapd_wakeup == KswapdWakeup::Wake, "a sleeping kswapd is woken by node");
    only("kswapd_order_zero", !kswapd_order_zero, "kswapd tests for the order that it was woken for");
    only("defer_by_order", defer_by_order, "compaction is deferred by order");
    only("age_without_swap", !age_without_swap, "anonymous memory does not age without swap");
    only("save_scans", !save_scans, "scans are not saved up");
    only("references", references == References::Executable, "pages of executables become active at once");
    only("give_up_with_kswapd", give_up_with_kswapd, "a task gives up after 16 passes that freed nothing");
    only("shrink_slab", shrink_slab == ShrinkSlab::Bounded, "deferred scans of a cache are done slowly");
}

fn line(keys: &mut Keys<'_>, of: &Line) {
    let Line { atomic: _, transfer: _, transfer_home_reader: _, handoff: _ } = *of;
    let home = "the cost of a line does not depend on the node of its memory";
    keys.only("machine.line.transfer_home_reader", false, home);
    keys.only("machine.line.atomic", false, "an operation on a line of one's own is part of the work around it");
}

fn costs_of_work(keys: &mut Keys<'_>, of: &Costs) {
    let Costs {
        context_switch: _,
        page_alloc_free: _,
        page_init: _,
        interleave: _,
        page_bulk: _,
        pcp_refill: _,
        lru_add: _,
        numa_counters_s8: _,
        numa_counters_u16: _,
        numa_counters_events: _,
        zone_reread: _,
        vmalloc_fix_size: _,
        vmalloc_full_fit: _,
        vmalloc_long_busy_list: _,
        purge_area: _,
        purge_wakeup: _,
        purge_worker_share: _,
        purge_slice: _,
        tlb_flush: _,
        tlb_flush_per_cpu: _,
        tlb_shootdown: _,
        enter_idle: _,
        tlb_interrupt: _,
        tick: _,
        tick_idle: _,
        hrtick: _,
        trace_event: _,
        stat_file: _,
        stat_row: _,
        counter_read: _,
        sample: _,
        sample_node: _,
        sample_process: _,
        sample_page: _,
        page_fault: _,
        cached_page_fault: _,
        map_around: _,
        map_further: _,
        fault_retry: _,
        fault_retry_alone: _,
        page_mkwrite: _,
        page_mkwrite_dirty: _,
        zero_page_fault: _,
        zero_page_write: _,
        file_call: _,
        file_reference: _,
        file_request: _,
        file_folio: _,
        file_page: _,
        name_lookup: _,
        file_write: _,
        file_create: _,
        file_dirty: _,
        file_buffers: _,
        shmem_create: _,
        shmem_add: _,
        shmem_write_fault: _,
        shmem_read_fault: _,
        shmem_look_around: _,
        shmem_swap_write: _,
        shmem_swap_read: _,
        page_activate: _,
        writeback_page: _,
        writeback_request: _,
        writeback_mapped: _,
        writeback_end: _,
        process_start: _,
        process_access: _,
        zap_page: _,
        zap_shared: _,
        zap_further: _,
        zap_huge: _,
        huge_fault: _,
        hint_fault: _,
        scan_pte: _,
        walk_pte: _,
        migrate_page: _,
        reclaim_scan_page: _,
        reclaim_rmap_page: _,
        reclaim_unmap_page: _,
        reclaim_free_page: _,
        reclaim_unmap_further: _,
        reclaim_free_further: _,
        reclaim_free_buffers: _,
        reclaim_batch: _,
        reclaim_pass: _,
        swap_write: _,
        swap_write_async: _,
        swap_write_plugged: _,
        swap_write_further: _,
        swap_slot_scan: _,
        swap_read: _,
        io_schedule: _,
        read_end: _,
        nanosleep: _,
        slab_count: _,
        slab_scan_object: _,
        rcu_grace_ticks: _,
        compact_scan_page: _,
        compact_pageblock: _,
        wakeup_preempt: _,
        wakeup_latency: _,
    } = *of;
    keys.only("machine.cost.context_switch", false, "threads of a CPU take turns without a cost of switching");
}
