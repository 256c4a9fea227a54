//! The kernel: rules of the allocator and of the counters.

use super::BuildError;
use crate::mm::filemap::index::{Index, SlabAllocMode};
use crate::mm::kernel::KernelRules;
use crate::mm::swap::readahead;
use crate::mm::writeback::{Limit, Limits};
use crate::mm::{reclaim, writeback};
use crate::page_alloc::{NodeOrder, PerCpuHigh, Rules, StealPolicy};
use crate::sched::{Cfs, Eevdf, FairRules};
use crate::time::Ns;
use crate::vmstat::{Design, SERIES_THRESHOLD, Separate, VmStatRules};
use mmtwin_scenario::Kernel;
use mmtwin_scenario::kernel::{
    Balanced, CgroupVersion, CgroupWalk, Congestion, DirectCompaction, DirtyPages, DmDelay, EventFormat, Fair,
    FallbackSteal, FaultRetry, HighOrder, IndexBlocks, KswapdWakeup, LruScope, NeedsUpdate, NodeLoad, NumaCounters,
    PageAlloc, Pageblocks, Pageset, ReclaimCounters, References, ShrinkSlab, SwapReadahead, SyncPass, Thp,
    ThpZeroWrite, Threshold, Vmstat, Watermarks, Writeback, WritebackPages,
};
use mmtwin_scenario::units::Bytes;

const NS_PER_S: u64 = 1_000_000_000;
/// `vm.watermark_scale_factor` unless it is set.
const SCALE_FACTOR: u32 = 10;

/// Rules of the page allocator and of the counters.
pub fn rules(of: &Kernel, huge_page: Bytes) -> Result<KernelRules, BuildError> {
    Ok(KernelRules { alloc: alloc(of, huge_page), vmstat: vmstat(of)?, reclaim: reclaim(of) })
}

fn alloc(of: &Kernel, huge_page: Bytes) -> Rules {
    let PageAlloc {
        pageset,
        pcp_free_high,
        watermarks,
        min_free_kbytes_max,
        max_order,
        // Batch size of vmalloc, whose costs are measured with it; other values are refused.
        bulk: _,
        fallback_steal,
        fallback_keeps_type,
        node_load,
        avoid_fragmentation,
        watermark_by_order,
        migrate_reserve,
        // [`crate::build::huge`].
        thp_nodes: _,
        thp_noretry: _,
        thp_zero_write,
        // [`crate::build::fault_costs`].
        thp_cleared_twice: _,
    } = of.page_alloc;
    let sysctl = &of.sysctl;
    let ratios = &sysctl.vm_lowmem_reserve_ratio;
    Rules {
        max_order,
        // `pageblock_order` of a kernel with huge pages.
        pageblock_order: huge_page.pages().ilog2().min(max_order),
        batch_limit: if pageset == Pageset::BatchTimesSix { 128 } else { 256 },
        per_cpu_high: match pageset {
            Pageset::BatchTimesSix => PerCpuHigh::SixBatches,
            Pageset::LowWatermark => PerCpuHigh::LowMark,
            Pageset::Floating => PerCpuHigh::Auto,
        },
        free_high: pcp_free_high,
        high_fraction: sysctl.vm_percpu_pagelist_high_fraction.unwrap_or(0).into(),
        per_cpu_orders: pageset != Pageset::BatchTimesSix,
        avoid_fragmentation,
        steal_policy: match fallback_steal {
            FallbackSteal::LargeOrReclaimable => StealPolicy::LargeOrReclaimable,
            FallbackSteal::LargeOrUnmovable => StealPolicy::LargeOrUnmovable,
            FallbackSteal::ClaimThenSteal => StealPolicy::ClaimThenSteal,
        },
        no_whole_block_steal: fallback_keeps_type,
        watermark_boost_factor: sysctl.vm_watermark_boost_factor.unwrap_or(0).into(),
        // Without the factor the marks are quarters, as a factor of 0 makes them.
        watermark_scale_factor: match watermarks {
            Watermarks::Quarters => 0,
            Watermarks::ScaleFactor | Watermarks::ScaleFactorMovable => {
                sysctl.vm_watermark_scale_factor.unwrap_or(SCALE_FACTOR).into()
            }
        },
        min_free_kbytes: sysctl.vm_min_free_kbytes.given(),
        min_free_limit_kb: min_free_kbytes_max,
        transparent_hugepage: of.thp != Thp::Never,
        huge_zero_replaced: thp_zero_write == ThpZeroWrite::Replaces,
        marks_by_order: watermark_by_order,
        migrate_reserve,
        movable_excluded_from_lowmem: watermarks == Watermarks::ScaleFactorMovable,
        lowmem_reserve_ratio: [0, 1, 2, 3].map(|i| ratios.get(i).copied().unwrap_or(0).into()),
        node_order: match node_load {
            NodeLoad::Place => NodeOrder::ByPlace,
            NodeLoad::Count => NodeOrder::ByCount,
        },
    }
}

/// The rules of a kernel that reclaims by zones, if they are modelled: those of 2010 and 2012.
pub(super) fn by_zone(of: &Kernel) -> Option<reclaim::Variant> {
    let said = &of.reclaim;
    let waits = match said.congestion {
        Congestion::Wait => reclaim::Waits::Always,
        Congestion::WaitIffDevice => reclaim::Waits::IfDevice,
        Congestion::WaitIffWriteback => reclaim::Waits::IfWriteback,
        Congestion::WaitIffZoneOrClean => reclaim::Waits::IfZoneOrClean,
        Congestion::WaitIffZone => reclaim::Waits::IfZone,
        Congestion::Throttle => return None,
    };
    let sync_pass = match said.sync_pass {
        SyncPass::CongestionWait => reclaim::SyncPass::CongestionWait,
        SyncPass::Writeback => reclaim::SyncPass::Writeback,
        SyncPass::None => reclaim::SyncPass::None,
    };
    // Without the second pass there is nothing that modes are for.
    let for_compaction = match said.sync_pass {
        SyncPass::None => reclaim::Blocks::Compaction,
        SyncPass::CongestionWait | SyncPass::Writeback => reclaim::Blocks::CompactionMode,
    };
    use reclaim::{Blocks, Neighbours};
    // Without compaction what is left of lumpy reclaim after 2010 is in use.
    let (neighbours, costly_writes, blocks) = match (said.high_order, of.compaction) {
        (HighOrder::Lumpy, _) => (Neighbours::PassOver, false, Blocks::Lumpy),
        (HighOrder::LowLumpy, _) => (Neighbours::GiveUp, true, Blocks::Lumpy),
        (HighOrder::CompactionNeighbours, true) => (Neighbours::GiveUp, true, for_compaction),
        (HighOrder::CompactionNeighbours, false) => (Neighbours::GiveUp, true, Blocks::LumpyByZone),
        (HighOrder::CompactionOrLumpy, true) => (Neighbours::Left, true, for_compaction),
        (HighOrder::CompactionOrLumpy, false) => (Neighbours::GiveUpInMode, true, Blocks::LumpyByZone),
        (HighOrder::Compaction, true) => (Neighbours::Left, false, for_compaction),
        (HighOrder::Compaction, false) => (Neighbours::Left, false, Blocks::Single),
    };
    let dirty_files = match said.dirty_pages {
        DirtyPages::Write => reclaim::DirtyFiles::All,
        DirtyPages::Kswapd => reclaim::DirtyFiles::Kswapd,
        DirtyPages::KswapdLowPriority => reclaim::DirtyFiles::KswapdLowPriority,
        DirtyPages::KswapdZoneDirty | DirtyPages::KswapdNodeDirty | DirtyPages::Never => return None,
    };
    let balanced = match said.balanced {
        Balanced::AllZones => reclaim::Balanced::AllZones,
        Balanced::QuarterOfPages => reclaim::Balanced::Quarter,
        Balanced::AnyZone => return None,
    };
    let isolate_modes = match of.events {
        EventFormat::V2_6_36 => reclaim::IsolateModes::Numbers,
        EventFormat::V3_3 => reclaim::IsolateModes::Bits,
        _ => reclaim::IsolateModes::None,
    };
    (said.lru == LruScope::Zone).then_some(reclaim::Variant {
        waits,
        neighbours,
        sync_pass,
        keep_ends_mode: said.high_order == HighOrder::LowLumpy || sync_pass == reclaim::SyncPass::Writeback,
        active_ends_mode: said.high_order != HighOrder::CompactionNeighbours,
        costly_writes,
        blocks,
        dirty_files,
        throttles_batch: said.writeback_pages == WritebackPages::ThrottleOnWriteback,
        balanced,
        kswapd_order_zero: said.kswapd_order_zero && of.compaction,
        wakes_sleepers: said.kswapd_wakeup != KswapdWakeup::EachRequest,
        compaction: of.compaction,
        compacts_any_order: said.direct_compaction == DirectCompaction::AnyOrder,
        ages_without_swap: said.age_without_swap,
        saves_scans: said.save_scans,
        references: match said.references {
            References::Clean => reclaim::References::Pre3_3,
            References::Executable => reclaim::References::Since3_3,
        },
        trusts_kswapd: said.give_up_with_kswapd,
        slabs: match said.shrink_slab {
            ShrinkSlab::WindUp => reclaim::Slabs::WindUp,
            ShrinkSlab::Bounded => reclaim::Slabs::Bounded,
        },
        isolate_modes,
    })
}

pub(super) fn reclaim(of: &Kernel) -> reclaim::Rules {
    let by_zone = by_zone(of);
    let (said, files) = (&of.reclaim, &of.filemap);
    reclaim::Rules {
        retries: match files.fault_retry {
            FaultRetry::None => reclaim::Retries::None,
            FaultRetry::Waits => reclaim::Retries::Waits,
            FaultRetry::Reads => reclaim::Retries::Reads,
        },
        mmap_sequential: files.mmap_sequential,
        readahead: files.readahead,
        large_folios: files.large_folios,
        writes_mark_accessed: files.writes_mark_accessed,
        mmap_hits: files.mmap_hits,
        cold_pages: files.cold_pages,
        swap_by_page: said.swap_rw_page,
        swap_plug: said.swap_plug,
        keeps_exiting: said.keeps_exiting,
        swap_readahead: match said.swap_readahead {
            SwapReadahead::Block => readahead::SwapReadahead::Block,
            SwapReadahead::Hits => readahead::SwapReadahead::Hits,
            SwapReadahead::Vma => readahead::SwapReadahead::Vma,
        },
        page_cluster: of.sysctl.vm_page_cluster,
        folio_batch_size: said.pagevec_size as usize,
        finishes_pageblocks: said.pageblocks == Pageblocks::Finished,
        scan_balance: said.scan_balance,
        frees_in_batches: said.free_batches,
        rotates: said.cgroup_walk == CgroupWalk::Rotating,
        counts_by_node: said.counters == ReclaimCounters::Node,
        skip_limit: said.skip_limit.into(),
        stats_flush: Ns::from(said.stats_flush_ms) * 1_000_000,
        writes_dirty_files: said.dirty_pages != DirtyPages::Never,
        // These follow from the lists: other values are not modelled and refused ([`crate::build::refuse`]).
        new_anon_active: by_zone.is_some(),
        workingset: by_zone.is_none(),
        congestion: by_zone.is_some(),
        early_compaction: by_zone.is_some(),
        compacts_costly: by_zone.is_some_and(|variant| !variant.compacts_any_order),
        defers_by_order: said.defer_by_order,
        extfrag_threshold: of.sysctl.vm_extfrag_threshold.into(),
        proactiveness: of.sysctl.vm_compaction_proactiveness.unwrap_or(0),
        swappiness: of.sysctl.vm_swappiness.into(),
        node_reclaim_mode: of.sysctl.vm_zone_reclaim_mode.into(),
        min_unmapped_ratio: of.sysctl.vm_min_unmapped_ratio.into(),
        vfs_cache_pressure: of.sysctl.vm_vfs_cache_pressure.into(),
        laptop_mode: of.sysctl.vm_laptop_mode != 0,
        hz: of.hz.into(),
        per_zone_lru: by_zone,
    }
}

/// When and how much is written back.
pub(crate) fn writeback(of: &Kernel, has_swap: bool) -> writeback::Rules {
    const NS_PER_CS: u64 = 10_000_000;
    let Writeback { only_expired, dm_delay, dirtyable_anon, foreign_flush } = of.writeback;
    let sysctl = &of.sysctl;
    let limit = |percent: u32, bytes: Option<u64>| match bytes {
        Some(bytes) if bytes > 0 => Limit::Pages(bytes.div_ceil(4096)),
        _ => Limit::Percent(percent.into()),
    };
    writeback::Rules {
        limits: Limits {
            background: limit(sysctl.vm_dirty_background_ratio, sysctl.vm_dirty_background_bytes),
            hard: limit(sysctl.vm_dirty_ratio, sysctl.vm_dirty_bytes),
            anon: dirtyable_anon && has_swap,
        },
        expire: u64::from(sysctl.vm_dirty_expire_centisecs) * NS_PER_CS,
        interval: u64::from(sysctl.vm_dirty_writeback_centisecs) * NS_PER_CS,
        laptop_mode: sysctl.vm_laptop_mode != 0,
        only_expired,
        foreign_flush,
        ends_anywhere: dm_delay == DmDelay::Thread,
        request_pages: if by_zone(of).is_some() { 15 } else { writeback::Rules::DEFAULT.request_pages },
        statistics_lag: of.reclaim.stats_flush_ms > 0,
        by_cgroup: of.cgroup == CgroupVersion::V2 && by_zone(of).is_none(),
        hz: of.hz.into(),
    }
}

fn vmstat(of: &Kernel) -> Result<VmStatRules, BuildError> {
    let Vmstat {
        numa_counters,
        threshold,
        overstep,
        snapshot_reads,
        zoneinfo_folds,
        early_drift_marks,
        needs_update,
        files,
    } = of.vmstat;
    let fixed = match threshold {
        Threshold::Auto => None,
        Threshold::Fixed(threshold) => Some(threshold),
    };
    let signed = matches!(numa_counters, NumaCounters::ZoneS8 | NumaCounters::ZoneS16 | NumaCounters::SeparateS8);
    if signed && !overstep {
        return Err(BuildError::NotModelled("kernel.vmstat.overstep = false", "signed differentials overstep"));
    }
    let separate = |threshold| Separate {
        threshold,
        snapshot_reads,
        update_test_fault: needs_update == NeedsUpdate::ItemsAsBytes,
    };
    let wide = separate(Some(fixed.unwrap_or(SERIES_THRESHOLD)));
    let design = match numa_counters {
        NumaCounters::ZoneS8 | NumaCounters::ZoneS16 => Design::InZone,
        NumaCounters::SeparateS8 => Design::Separate(separate(None)),
        NumaCounters::SeparateU16 if of.sysctl.vm_numa_stat.is_some() => Design::Switched(wide),
        NumaCounters::SeparateU16 => Design::Separate(wide),
        NumaCounters::Events => Design::Event { zoneinfo_folds },
        NumaCounters::Off => Design::Off,
    };
    Ok(VmStatRules {
        design,
        early_drift_marks,
        // A threshold of the wide design is its own.
        threshold: fixed.filter(|_| signed),
        stat_interval: u64::from(of.sysctl.vm_stat_interval) * NS_PER_S,
        hz: of.hz,
        dialect: files,
    })
}

/// How pages of files are found on a machine of this many nodes and CPUs.
pub(crate) fn index(of: &Kernel, nodes: usize, cpus: usize) -> Index {
    let asks = match of.filemap.index_blocks {
        IndexBlocks::Wait => SlabAllocMode::Waits,
        IndexBlocks::Single => SlabAllocMode::Single,
        IndexBlocks::Light => SlabAllocMode::Lightly,
        IndexBlocks::WakeKswapd => SlabAllocMode::Wakes,
    };
    Index::new(nodes, cpus, asks, by_zone(of).is_none(), of.filemap.swap_cache_nodes)
}

/// How threads share a CPU; `None`: kernel threads that wake take it, and all have turns.
pub(crate) fn fair_rules(of: &Kernel, cpus: usize) -> Option<FairRules> {
    match of.sched.fair {
        Fair::Turns => None,
        Fair::Cfs => Some(FairRules::Cfs(Cfs::new(cpus))),
        Fair::Eevdf => Some(FairRules::Eevdf(Eevdf::new(cpus, of.hz.into()))),
        Fair::EevdfHrtick => Some(FairRules::Eevdf(Eevdf::new(cpus, of.hz.into()).with_hrtick())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const HUGE: Bytes = Bytes(2 << 20);

    fn kernel(release: &str) -> Kernel {
        let text = format!("[machine]\npreset = \"broadwell-2s-88\"\n[kernel]\nrelease = \"{release}\"\n");
        mmtwin_scenario::parse("test", &text, Path::new(""), &[]).unwrap().kernel
    }

    #[test]
    fn bundles_give_the_rules_of_their_releases() {
        assert_eq!(alloc(&kernel("4.13"), HUGE), Rules::V4_13);
        assert_eq!(alloc(&kernel("6.1"), HUGE), Rules::V6_1);
        assert_eq!(alloc(&kernel("6.12"), HUGE), Rules::V6_12);
        let steal_policy = |release| alloc(&kernel(release), HUGE).steal_policy;
        assert_eq!(["2.6.36", "3.13"].map(steal_policy), [StealPolicy::LargeOrReclaimable; 2]);
        assert_eq!(vmstat(&kernel("4.13")).unwrap().design, Design::InZone);
        assert!(matches!(vmstat(&kernel("6.1")).unwrap().design, Design::Event { zoneinfo_folds: false }));
    }

    #[test]
    fn pageblocks_are_as_large_as_huge_pages_if_there_are_such_blocks() {
        let order = |size, max_order| {
            let mut of = kernel("2.6.36");
            of.page_alloc.max_order = max_order;
            alloc(&of, Bytes(size)).pageblock_order
        };
        assert_eq!([order(2 << 20, 10), order(16 << 20, 12), order(16 << 20, 10)], [9, 12, 10]);
    }

    #[test]
    fn the_kernels_of_2010_reclaim_by_zones() {
        let of = |release| by_zone(&kernel(release));
        use reclaim::{DirtyFiles, Neighbours, SyncPass, Variant, Waits};
        let low = Variant {
            neighbours: Neighbours::GiveUp,
            sync_pass: SyncPass::Writeback,
            keep_ends_mode: true,
            costly_writes: true,
            ..Variant::V2_6_36
        };
        assert_eq!(["2.6.36", "2.6.36-lowlumpy"].map(of), [Some(Variant::V2_6_36), Some(low)]);
        let late = [Waits::IfDevice, Waits::IfZoneOrClean].map(|waits| Some(Variant { waits, ..low }));
        assert_eq!(["2.6.36-waitcongest", "2.6.37"].map(of), late);
        let first = Variant { waits: Waits::IfWriteback, ..Variant::V2_6_36 };
        let (waits, sync_pass, dirty_files) = (first.waits, SyncPass::None, DirtyFiles::Kswapd);
        let last = Variant { waits, sync_pass, dirty_files, ..low };
        assert_eq!(["2.6.36-nocongest", "2.6.36-nodirect"].map(of), [first, last].map(Some));
        assert_eq!(["3.13", "4.13", "6.1", "6.12"].map(of), [None; 4]);
    }

    #[test]
    fn the_kernels_of_2012_differ_by_a_few_rules() {
        use reclaim::{Blocks, Neighbours, SyncPass, Variant};
        let [of_3_3, of_3_4, removed, of_3_5] =
            ["3.3", "3.4", "3.4-lumpyremove", "3.5"].map(|release| by_zone(&kernel(release)).unwrap());
        assert_eq!((of_3_3.neighbours, of_3_3.kswapd_order_zero), (Neighbours::GiveUp, false));
        let neighbours = Neighbours::Left;
        let with = Variant { neighbours, kswapd_order_zero: true, active_ends_mode: true, ..of_3_3 };
        assert_eq!(of_3_4, with);
        assert_eq!(removed, Variant { costly_writes: false, ..of_3_4 });
        let (sync_pass, blocks) = (SyncPass::None, Blocks::Compaction);
        let isolate_modes = reclaim::IsolateModes::None;
        let keep_ends_mode = false;
        assert_eq!(of_3_5, Variant { sync_pass, keep_ends_mode, blocks, isolate_modes, ..removed });
    }

    #[test]
    fn every_bundle_can_be_simulated() {
        for name in mmtwin_scenario::bundle_names() {
            assert!(rules(&kernel(name), HUGE).is_ok(), "{name}");
        }
    }
}
