//! Rows and layout of the statistics files of a release.
//!
//! The names are the kernel's. Rows that only some configurations have are there if distributions' kernels have them.
//! [`super::VmStat::keeps`] has those that the twin counts. Checked against the files of kernels 6.1, 6.12, 6.18 and 7.3
//! (`tests/zoneinfo.rs`); 4.13 is after its documentation, and its event rows are those of a kernel with huge pages,
//! compaction and NUMA balancing; 2.6.36, 3.3 and 3.5 are after their documentation too, with compaction.

/// The layout: the value of a bundle's key `vmstat.files`. [`super::File`] is one of the files.
pub use mmtwin_scenario::kernel::Files as Dialect;

/// Zone rows before the NUMA rows; there were none of nodes.
const ZONE_2_6_36: &str = "\
    nr_free_pages nr_inactive_anon nr_active_anon nr_inactive_file nr_active_file nr_unevictable nr_mlock nr_anon_pages \
    nr_mapped nr_file_pages nr_dirty nr_writeback nr_slab_reclaimable nr_slab_unreclaimable nr_page_table_pages \
    nr_kernel_stack nr_unstable nr_bounce nr_vmscan_write nr_writeback_temp nr_isolated_anon nr_isolated_file nr_shmem";
/// Zone rows; NUMA rows come before the last.
const ZONE_3_3: &str = "\
    nr_free_pages nr_inactive_anon nr_active_anon nr_inactive_file nr_active_file nr_unevictable nr_mlock nr_anon_pages \
    nr_mapped nr_file_pages nr_dirty nr_writeback nr_slab_reclaimable nr_slab_unreclaimable nr_page_table_pages \
    nr_kernel_stack nr_unstable nr_bounce nr_vmscan_write nr_vmscan_immediate_reclaim nr_writeback_temp \
    nr_isolated_anon nr_isolated_file nr_shmem nr_dirtied nr_written nr_anon_transparent_hugepages";
/// Zone rows; NUMA rows come before the last in 4.13 and after it with the series.
const ZONE_4_13: &str = "\
    nr_free_pages nr_zone_inactive_anon nr_zone_active_anon nr_zone_inactive_file nr_zone_active_file \
    nr_zone_unevictable nr_zone_write_pending nr_mlock nr_page_table_pages nr_kernel_stack nr_bounce nr_zspages \
    nr_free_cma";
/// Zone rows.
const ZONE_6_1: &str = "\
    nr_free_pages nr_zone_inactive_anon nr_zone_active_anon nr_zone_inactive_file nr_zone_active_file \
    nr_zone_unevictable nr_zone_write_pending nr_mlock nr_bounce nr_zspages nr_free_cma";
/// Zone rows.
const ZONE_6_18: &str = "\
    nr_free_pages nr_free_pages_blocks nr_zone_inactive_anon nr_zone_active_anon nr_zone_inactive_file \
    nr_zone_active_file nr_zone_unevictable nr_zone_write_pending nr_mlock nr_zspages nr_free_cma";
/// Zone rows.
const ZONE_6_12: &str = "\
    nr_free_pages nr_zone_inactive_anon nr_zone_active_anon nr_zone_inactive_file nr_zone_active_file \
    nr_zone_unevictable nr_zone_write_pending nr_mlock nr_bounce nr_zspages nr_free_cma nr_unaccepted";
/// Zone rows.
const ZONE_7_3: &str = "\
    nr_free_pages nr_free_pages_blocks nr_zone_inactive_anon nr_zone_active_anon nr_zone_inactive_file \
    nr_zone_active_file nr_zone_unevictable nr_zone_write_pending nr_mlock nr_zspages nr_free_cma nr_unaccepted";
/// Rows of a node.
const NODE_4_13: &str = "\
    nr_inactive_anon nr_active_anon nr_inactive_file nr_active_file nr_unevictable nr_slab_reclaimable \
    nr_slab_unreclaimable nr_isolated_anon nr_isolated_file workingset_refault workingset_activate \
    workingset_nodereclaim nr_anon_pages nr_mapped nr_file_pages nr_dirty nr_writeback nr_writeback_temp nr_shmem \
    nr_shmem_hugepages nr_shmem_pmdmapped nr_anon_transparent_hugepages nr_unstable nr_vmscan_write \
    nr_vmscan_immediate_reclaim nr_dirtied nr_written";
/// Rows of a node.
const NODE_6_1: &str = "\
    nr_inactive_anon nr_active_anon nr_inactive_file nr_active_file nr_unevictable nr_slab_reclaimable \
    nr_slab_unreclaimable nr_isolated_anon nr_isolated_file workingset_nodes workingset_refault_anon \
    workingset_refault_file workingset_activate_anon workingset_activate_file workingset_restore_anon \
    workingset_restore_file workingset_nodereclaim nr_anon_pages nr_mapped nr_file_pages nr_dirty nr_writeback \
    nr_writeback_temp nr_shmem nr_shmem_hugepages nr_shmem_pmdmapped nr_file_hugepages nr_file_pmdmapped \
    nr_anon_transparent_hugepages nr_vmscan_write nr_vmscan_immediate_reclaim nr_dirtied nr_written \
    nr_throttled_written nr_kernel_misc_reclaimable nr_foll_pin_acquired nr_foll_pin_released nr_kernel_stack \
    nr_page_table_pages nr_sec_page_table_pages nr_swapcached pgpromote_success pgpromote_candidate";
/// Rows of a node.
const NODE_6_12: &str = "\
    nr_inactive_anon nr_active_anon nr_inactive_file nr_active_file nr_unevictable nr_slab_reclaimable \
    nr_slab_unreclaimable nr_isolated_anon nr_isolated_file workingset_nodes workingset_refault_anon \
    workingset_refault_file workingset_activate_anon workingset_activate_file workingset_restore_anon \
    workingset_restore_file workingset_nodereclaim nr_anon_pages nr_mapped nr_file_pages nr_dirty nr_writeback \
    nr_writeback_temp nr_shmem nr_shmem_hugepages nr_shmem_pmdmapped nr_file_hugepages nr_file_pmdmapped \
    nr_anon_transparent_hugepages nr_vmscan_write nr_vmscan_immediate_reclaim nr_dirtied nr_written \
    nr_throttled_written nr_kernel_misc_reclaimable nr_foll_pin_acquired nr_foll_pin_released nr_kernel_stack \
    nr_page_table_pages nr_sec_page_table_pages nr_iommu_pages nr_swapcached pgpromote_success pgpromote_candidate \
    pgdemote_kswapd pgdemote_direct pgdemote_khugepaged";
/// Rows of a node.
const NODE_6_18: &str = "\
    nr_inactive_anon nr_active_anon nr_inactive_file nr_active_file nr_unevictable nr_slab_reclaimable \
    nr_slab_unreclaimable nr_isolated_anon nr_isolated_file workingset_nodes workingset_refault_anon \
    workingset_refault_file workingset_activate_anon workingset_activate_file workingset_restore_anon \
    workingset_restore_file workingset_nodereclaim nr_anon_pages nr_mapped nr_file_pages nr_dirty nr_writeback \
    nr_shmem nr_shmem_hugepages nr_shmem_pmdmapped nr_file_hugepages nr_file_pmdmapped \
    nr_anon_transparent_hugepages nr_vmscan_write nr_vmscan_immediate_reclaim nr_dirtied nr_written \
    nr_throttled_written nr_kernel_misc_reclaimable nr_foll_pin_acquired nr_foll_pin_released nr_kernel_stack \
    nr_page_table_pages nr_sec_page_table_pages nr_iommu_pages nr_swapcached pgpromote_success pgpromote_candidate \
    pgpromote_candidate_nrl pgdemote_kswapd pgdemote_direct pgdemote_khugepaged pgdemote_proactive nr_hugetlb \
    nr_balloon_pages nr_kernel_file_pages";
/// Rows of a node.
const NODE_7_3: &str = "\
    nr_inactive_anon nr_active_anon nr_inactive_file nr_active_file nr_unevictable nr_slab_reclaimable \
    nr_slab_unreclaimable nr_isolated_anon nr_isolated_file workingset_nodes workingset_refault_anon \
    workingset_refault_file workingset_activate_anon workingset_activate_file workingset_restore_anon \
    workingset_restore_file workingset_nodereclaim nr_anon_pages nr_mapped nr_file_pages nr_dirty nr_writeback \
    nr_shmem nr_shmem_hugepages nr_shmem_pmdmapped nr_file_hugepages nr_file_pmdmapped nr_anon_transparent_hugepages \
    nr_vmscan_write nr_vmscan_immediate_reclaim nr_dirtied nr_written nr_throttled_written nr_kernel_misc_reclaimable \
    nr_foll_pin_acquired nr_foll_pin_released nr_vmalloc nr_kernel_stack nr_page_table_pages nr_sec_page_table_pages \
    nr_iommu_pages nr_swapcached pgpromote_success pgpromote_candidate pgpromote_candidate_nrl pgdemote_kswapd \
    pgdemote_direct pgdemote_khugepaged pgdemote_proactive pgsteal_kswapd pgsteal_direct pgsteal_khugepaged \
    pgsteal_proactive pgsteal_anon pgsteal_file pgscan_kswapd pgscan_direct pgscan_khugepaged pgscan_proactive \
    pgscan_anon pgscan_file pgrotate_anon pgrotate_file pgrefill nr_hugetlb nr_balloon_pages nr_kernel_file_pages \
    nr_gpu_active nr_gpu_reclaim";
/// Event rows.
const EVENTS_2_6_36: &str = "\
    pgpgin pgpgout pswpin pswpout pgalloc_dma pgalloc_dma32 pgalloc_normal pgalloc_movable pgfree pgactivate \
    pgdeactivate pgfault pgmajfault pgrefill_dma pgrefill_dma32 pgrefill_normal pgrefill_movable pgsteal_dma \
    pgsteal_dma32 pgsteal_normal pgsteal_movable pgscan_kswapd_dma pgscan_kswapd_dma32 pgscan_kswapd_normal \
    pgscan_kswapd_movable pgscan_direct_dma pgscan_direct_dma32 pgscan_direct_normal pgscan_direct_movable \
    zone_reclaim_failed pginodesteal slabs_scanned kswapd_steal kswapd_inodesteal kswapd_low_wmark_hit_quickly \
    kswapd_high_wmark_hit_quickly kswapd_skip_congestion_wait pageoutrun allocstall pgrotated compact_blocks_moved \
    compact_pages_moved compact_pagemigrate_failed compact_stall compact_fail compact_success \
    htlb_buddy_alloc_success htlb_buddy_alloc_fail unevictable_pgs_culled unevictable_pgs_scanned \
    unevictable_pgs_rescued unevictable_pgs_mlocked unevictable_pgs_munlocked unevictable_pgs_cleared \
    unevictable_pgs_stranded unevictable_pgs_mlockfreed";
/// Event rows of huge pages, the last of 3.3 and 3.5.
const THP_3_3: &str = "thp_fault_alloc thp_fault_fallback thp_collapse_alloc thp_collapse_alloc_failed thp_split";
/// Event rows.
const EVENTS_3_5: &str = "\
    pgpgin pgpgout pswpin pswpout pgalloc_dma pgalloc_dma32 pgalloc_normal pgalloc_movable pgfree pgactivate \
    pgdeactivate pgfault pgmajfault pgrefill_dma pgrefill_dma32 pgrefill_normal pgrefill_movable pgsteal_kswapd_dma \
    pgsteal_kswapd_dma32 pgsteal_kswapd_normal pgsteal_kswapd_movable pgsteal_direct_dma pgsteal_direct_dma32 \
    pgsteal_direct_normal pgsteal_direct_movable pgscan_kswapd_dma pgscan_kswapd_dma32 pgscan_kswapd_normal \
    pgscan_kswapd_movable pgscan_direct_dma pgscan_direct_dma32 pgscan_direct_normal pgscan_direct_movable \
    zone_reclaim_failed pginodesteal slabs_scanned kswapd_inodesteal kswapd_low_wmark_hit_quickly \
    kswapd_high_wmark_hit_quickly kswapd_skip_congestion_wait pageoutrun allocstall pgrotated compact_blocks_moved \
    compact_pages_moved compact_pagemigrate_failed compact_stall compact_fail compact_success \
    htlb_buddy_alloc_success htlb_buddy_alloc_fail unevictable_pgs_culled unevictable_pgs_scanned \
    unevictable_pgs_rescued unevictable_pgs_mlocked unevictable_pgs_munlocked unevictable_pgs_cleared \
    unevictable_pgs_stranded unevictable_pgs_mlockfreed";
/// Event rows.
const EVENTS_4_13: &str = "\
    pgpgin pgpgout pswpin pswpout pgalloc_dma pgalloc_dma32 pgalloc_normal pgalloc_movable allocstall_dma \
    allocstall_dma32 allocstall_normal allocstall_movable pgskip_dma pgskip_dma32 pgskip_normal pgskip_movable \
    pgfree pgactivate pgdeactivate pglazyfree pgfault pgmajfault pglazyfreed pgrefill pgsteal_kswapd \
    pgsteal_direct pgscan_kswapd pgscan_direct pgscan_direct_throttle zone_reclaim_failed pginodesteal \
    slabs_scanned kswapd_inodesteal kswapd_low_wmark_hit_quickly kswapd_high_wmark_hit_quickly pageoutrun \
    pgrotated drop_pagecache drop_slab oom_kill numa_pte_updates numa_huge_pte_updates numa_hint_faults \
    numa_hint_faults_local numa_pages_migrated pgmigrate_success pgmigrate_fail compact_migrate_scanned \
    compact_free_scanned compact_isolated compact_stall compact_fail compact_success compact_daemon_wake \
    compact_daemon_migrate_scanned compact_daemon_free_scanned htlb_buddy_alloc_success htlb_buddy_alloc_fail \
    unevictable_pgs_culled unevictable_pgs_scanned unevictable_pgs_rescued unevictable_pgs_mlocked \
    unevictable_pgs_munlocked unevictable_pgs_cleared unevictable_pgs_stranded thp_fault_alloc thp_fault_fallback \
    thp_collapse_alloc thp_collapse_alloc_failed thp_file_alloc thp_file_mapped thp_split_page \
    thp_split_page_failed thp_deferred_split_page thp_split_pmd thp_split_pud thp_zero_page_alloc \
    thp_zero_page_alloc_failed thp_swpout thp_swpout_fallback balloon_inflate balloon_deflate balloon_migrate";
/// Event rows.
const EVENTS_6_1: &str = "\
    pgpgin pgpgout pswpin pswpout pgalloc_dma pgalloc_dma32 pgalloc_normal pgalloc_movable pgalloc_device \
    allocstall_dma allocstall_dma32 allocstall_normal allocstall_movable allocstall_device pgskip_dma pgskip_dma32 \
    pgskip_normal pgskip_movable pgskip_device pgfree pgactivate pgdeactivate pglazyfree pgfault pgmajfault \
    pglazyfreed pgrefill pgreuse pgsteal_kswapd pgsteal_direct pgdemote_kswapd pgdemote_direct pgscan_kswapd \
    pgscan_direct pgscan_direct_throttle pgscan_anon pgscan_file pgsteal_anon pgsteal_file zone_reclaim_failed \
    pginodesteal slabs_scanned kswapd_inodesteal kswapd_low_wmark_hit_quickly kswapd_high_wmark_hit_quickly \
    pageoutrun pgrotated drop_pagecache drop_slab oom_kill numa_pte_updates numa_huge_pte_updates numa_hint_faults \
    numa_hint_faults_local numa_pages_migrated pgmigrate_success pgmigrate_fail thp_migration_success \
    thp_migration_fail thp_migration_split compact_migrate_scanned compact_free_scanned compact_isolated \
    compact_stall compact_fail compact_success compact_daemon_wake compact_daemon_migrate_scanned \
    compact_daemon_free_scanned htlb_buddy_alloc_success htlb_buddy_alloc_fail unevictable_pgs_culled \
    unevictable_pgs_scanned unevictable_pgs_rescued unevictable_pgs_mlocked unevictable_pgs_munlocked \
    unevictable_pgs_cleared unevictable_pgs_stranded thp_fault_alloc thp_fault_fallback thp_fault_fallback_charge \
    thp_collapse_alloc thp_collapse_alloc_failed thp_file_alloc thp_file_fallback thp_file_fallback_charge \
    thp_file_mapped thp_split_page thp_split_page_failed thp_deferred_split_page thp_split_pmd \
    thp_scan_exceed_none_pte thp_scan_exceed_swap_pte thp_scan_exceed_share_pte thp_split_pud thp_zero_page_alloc \
    thp_zero_page_alloc_failed thp_swpout thp_swpout_fallback balloon_inflate balloon_deflate balloon_migrate \
    swap_ra swap_ra_hit ksm_swpin_copy cow_ksm direct_map_level2_splits direct_map_level3_splits";
/// Event rows.
const EVENTS_6_12: &str = "\
    pgpgin pgpgout pswpin pswpout pgalloc_dma pgalloc_dma32 pgalloc_normal pgalloc_movable pgalloc_device \
    allocstall_dma allocstall_dma32 allocstall_normal allocstall_movable allocstall_device pgskip_dma pgskip_dma32 \
    pgskip_normal pgskip_movable pgskip_device pgfree pgactivate pgdeactivate pglazyfree pgfault pgmajfault \
    pglazyfreed pgrefill pgreuse pgsteal_kswapd pgsteal_direct pgsteal_khugepaged pgscan_kswapd pgscan_direct \
    pgscan_khugepaged pgscan_direct_throttle pgscan_anon pgscan_file pgsteal_anon pgsteal_file zone_reclaim_success \
    zone_reclaim_failed pginodesteal slabs_scanned kswapd_inodesteal kswapd_low_wmark_hit_quickly \
    kswapd_high_wmark_hit_quickly pageoutrun pgrotated drop_pagecache drop_slab oom_kill numa_pte_updates \
    numa_huge_pte_updates numa_hint_faults numa_hint_faults_local numa_pages_migrated pgmigrate_success pgmigrate_fail \
    thp_migration_success thp_migration_fail thp_migration_split compact_migrate_scanned compact_free_scanned \
    compact_isolated compact_stall compact_fail compact_success compact_daemon_wake compact_daemon_migrate_scanned \
    compact_daemon_free_scanned htlb_buddy_alloc_success htlb_buddy_alloc_fail unevictable_pgs_culled \
    unevictable_pgs_scanned unevictable_pgs_rescued unevictable_pgs_mlocked unevictable_pgs_munlocked \
    unevictable_pgs_cleared unevictable_pgs_stranded thp_fault_alloc thp_fault_fallback thp_fault_fallback_charge \
    thp_collapse_alloc thp_collapse_alloc_failed thp_file_alloc thp_file_fallback thp_file_fallback_charge \
    thp_file_mapped thp_split_page thp_split_page_failed thp_deferred_split_page thp_underused_split_page \
    thp_split_pmd thp_scan_exceed_none_pte thp_scan_exceed_swap_pte thp_scan_exceed_share_pte thp_split_pud \
    thp_zero_page_alloc thp_zero_page_alloc_failed thp_swpout thp_swpout_fallback balloon_inflate balloon_deflate \
    balloon_migrate swap_ra swap_ra_hit swpin_zero swpout_zero ksm_swpin_copy cow_ksm direct_map_level2_splits \
    direct_map_level3_splits";
/// Event rows.
const EVENTS_6_18: &str = "\
    pgpgin pgpgout pswpin pswpout pgalloc_dma pgalloc_dma32 pgalloc_normal pgalloc_movable pgalloc_device \
    allocstall_dma allocstall_dma32 allocstall_normal allocstall_movable allocstall_device pgskip_dma pgskip_dma32 \
    pgskip_normal pgskip_movable pgskip_device pgfree pgactivate pgdeactivate pglazyfree pgfault pgmajfault \
    pglazyfreed pgrefill pgreuse pgsteal_kswapd pgsteal_direct pgsteal_khugepaged pgsteal_proactive pgscan_kswapd \
    pgscan_direct pgscan_khugepaged pgscan_proactive pgscan_direct_throttle pgscan_anon pgscan_file pgsteal_anon \
    pgsteal_file zone_reclaim_success zone_reclaim_failed pginodesteal slabs_scanned kswapd_inodesteal \
    kswapd_low_wmark_hit_quickly kswapd_high_wmark_hit_quickly pageoutrun pgrotated drop_pagecache drop_slab \
    oom_kill numa_pte_updates numa_huge_pte_updates numa_hint_faults numa_hint_faults_local numa_pages_migrated \
    pgmigrate_success pgmigrate_fail thp_migration_success thp_migration_fail thp_migration_split \
    compact_migrate_scanned compact_free_scanned compact_isolated compact_stall compact_fail compact_success \
    compact_daemon_wake compact_daemon_migrate_scanned compact_daemon_free_scanned htlb_buddy_alloc_success \
    htlb_buddy_alloc_fail unevictable_pgs_culled unevictable_pgs_scanned unevictable_pgs_rescued \
    unevictable_pgs_mlocked unevictable_pgs_munlocked unevictable_pgs_cleared unevictable_pgs_stranded \
    thp_fault_alloc thp_fault_fallback thp_fault_fallback_charge thp_collapse_alloc thp_collapse_alloc_failed \
    thp_file_alloc thp_file_fallback thp_file_fallback_charge thp_file_mapped thp_split_page thp_split_page_failed \
    thp_deferred_split_page thp_underused_split_page thp_split_pmd thp_scan_exceed_none_pte \
    thp_scan_exceed_swap_pte thp_scan_exceed_share_pte thp_split_pud thp_zero_page_alloc \
    thp_zero_page_alloc_failed thp_swpout thp_swpout_fallback balloon_inflate balloon_deflate balloon_migrate \
    swap_ra swap_ra_hit swpin_zero swpout_zero ksm_swpin_copy cow_ksm zswpin zswpout zswpwb \
    direct_map_level2_splits direct_map_level3_splits direct_map_level2_collapses direct_map_level3_collapses";
/// Event rows.
const EVENTS_7_3: &str = "\
    pgpgin pgpgout pswpin pswpout pgalloc_dma pgalloc_dma32 pgalloc_normal pgalloc_movable pgalloc_device \
    allocstall_dma allocstall_dma32 allocstall_normal allocstall_movable allocstall_device pgskip_dma pgskip_dma32 \
    pgskip_normal pgskip_movable pgskip_device pgfree pgactivate pgdeactivate pglazyfree pgfault pgmajfault \
    pglazyfreed pgreuse pgscan_direct_throttle zone_reclaim_success zone_reclaim_failed pginodesteal slabs_scanned \
    kswapd_inodesteal kswapd_low_wmark_hit_quickly kswapd_high_wmark_hit_quickly pageoutrun pgrotated drop_pagecache \
    drop_slab oom_kill numa_pte_updates numa_huge_pte_updates numa_hint_faults numa_hint_faults_local \
    numa_pages_migrated pgmigrate_success pgmigrate_fail thp_migration_success thp_migration_fail thp_migration_split \
    compact_migrate_scanned compact_free_scanned compact_isolated compact_stall compact_fail compact_success \
    compact_daemon_wake compact_daemon_migrate_scanned compact_daemon_free_scanned htlb_buddy_alloc_success \
    htlb_buddy_alloc_fail cma_alloc_success cma_alloc_fail unevictable_pgs_culled unevictable_pgs_scanned \
    unevictable_pgs_rescued unevictable_pgs_mlocked unevictable_pgs_munlocked unevictable_pgs_cleared \
    unevictable_pgs_stranded thp_fault_alloc thp_fault_fallback thp_fault_fallback_charge thp_collapse_alloc \
    thp_collapse_alloc_failed thp_file_alloc thp_file_fallback thp_file_fallback_charge thp_file_mapped thp_split_page \
    thp_split_page_failed thp_deferred_split_page thp_underused_split_page thp_split_pmd thp_scan_exceed_none_pte \
    thp_scan_exceed_swap_pte thp_scan_exceed_share_pte thp_split_pud thp_zero_page_alloc thp_zero_page_alloc_failed \
    thp_swpout thp_swpout_fallback balloon_inflate balloon_deflate balloon_migrate swap_ra swap_ra_hit swpin_zero \
    swpout_zero ksm_swpin_copy cow_ksm zswpin zswpout zswpwb direct_map_level2_splits direct_map_level3_splits \
    direct_map_level2_collapses direct_map_level3_collapses nrswpin nrswpout";

fn words(list: &'static str) -> impl Iterator<Item = &'static str> {
    list.split_ascii_whitespace()
}

/// Names of the rows of a zone, NUMA rows among them.
pub fn zone_rows(dialect: Dialect) -> Vec<&'static str> {
    let mut rows: Vec<&str> = words(match dialect {
        Dialect::V2_6_36 => ZONE_2_6_36,
        Dialect::V3_3 | Dialect::V3_5 => ZONE_3_3,
        Dialect::V4_13 | Dialect::V4_14 => ZONE_4_13,
        Dialect::V6_1 => ZONE_6_1,
        Dialect::V6_12 => ZONE_6_12,
        Dialect::V6_18 => ZONE_6_18,
        Dialect::V7_3 => ZONE_7_3,
    })
    .collect();
    let before_last = matches!(dialect, Dialect::V3_3 | Dialect::V3_5 | Dialect::V4_13);
    let at = rows.len() - usize::from(before_last);
    rows.splice(at..at, super::NumaItem::ALL.map(super::NumaItem::name));
    rows
}

/// Names of the rows of a node.
pub fn node_rows(dialect: Dialect) -> impl Iterator<Item = &'static str> {
    words(match dialect {
        Dialect::V2_6_36 | Dialect::V3_3 | Dialect::V3_5 => "",
        Dialect::V4_13 | Dialect::V4_14 => NODE_4_13,
        Dialect::V6_1 => NODE_6_1,
        Dialect::V6_12 => NODE_6_12,
        Dialect::V6_18 => NODE_6_18,
        Dialect::V7_3 => NODE_7_3,
    })
}

/// Names of the rows of `/proc/vmstat` after the nodes'.
pub fn other_rows(dialect: Dialect) -> impl Iterator<Item = &'static str> {
    let (limits, events, last) = match dialect {
        Dialect::V2_6_36 => ("", EVENTS_2_6_36, ""),
        Dialect::V3_3 => (LIMITS, EVENTS_2_6_36, THP_3_3),
        Dialect::V3_5 => (LIMITS, EVENTS_3_5, THP_3_3),
        Dialect::V4_13 | Dialect::V4_14 => (LIMITS, EVENTS_4_13, ""),
        Dialect::V6_1 => (LIMITS, EVENTS_6_1, LAST),
        Dialect::V6_12 => (LIMITS_6_18, EVENTS_6_12, LAST),
        Dialect::V6_18 => (LIMITS_6_18, EVENTS_6_18, LAST),
        Dialect::V7_3 => (LIMITS_6_18, EVENTS_7_3, LAST),
    };
    words(limits).chain(words(events)).chain(words(last))
}

/// Kinds of zones that are printed: device memory is a later option.
pub fn zones(dialect: Dialect) -> usize {
    match dialect {
        Dialect::V2_6_36 | Dialect::V3_3 | Dialect::V3_5 | Dialect::V4_13 | Dialect::V4_14 => crate::frame::ZONES - 1,
        Dialect::V6_1 | Dialect::V6_12 | Dialect::V6_18 | Dialect::V7_3 => crate::frame::ZONES,
    }
}

const LIMITS: &str = "nr_dirty_threshold nr_dirty_background_threshold";
const LIMITS_6_18: &str = "nr_dirty_threshold nr_dirty_background_threshold nr_memmap_pages nr_memmap_boot_pages";
/// Kept for old programs.
const LAST: &str = "nr_unstable";
