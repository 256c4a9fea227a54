//! The tables of keys: key | scenario | value, or overrides | what the key does, unless it acts.

pub const ALL: [&str; 6] = [KERNEL, SYSCTL, NUMA, RECLAIM, MACHINE, WORKLOAD];

pub const KERNEL: &str = r#"
kernel.release | numa-6.1 | 6.12
kernel.version | numa-6.1 | 6.2.0 | describes
kernel.events | reclaim-3.5 | 3.3
kernel.hz | numa-6.1 | 100
kernel.nr_cpus | numa-6.1 | 4 | refused 8 possible CPUs
kernel.cgroup | limit-6.1 | v1
kernel.compaction | huge-6.1 | false | refused has compaction
kernel.psi | limit-6.1 | false
kernel.compaction | reclaim-3.5; kernel.thp=never | false
kernel.thp | huge-6.1 | never
kernel.thp_defrag | huge-6.1 | always
kernel.page_alloc.pageset | counters-6.1 | batch-times-six
kernel.page_alloc.pcp_free_high | counters-6.1; kernel.release=6.12; process.loops.phase.loop.action.0.order=1; process.loops.phase.loop.action.0.hold=64 | never
kernel.page_alloc.watermarks | reclaim-6.1; kernel.sysctl.vm.watermark_scale_factor=300 | quarters
kernel.page_alloc.min_free_kbytes_max | reclaim-6.1 | 1000
kernel.page_alloc.max_order | huge-6.1 | 9
kernel.page_alloc.bulk | vmalloc-6.1 | false | refused machine.cost.vmalloc
kernel.page_alloc.fallback_steal | reclaim-6.1 | large-or-reclaimable
kernel.page_alloc.fallback_keeps_type | reclaim-6.1 | true
kernel.page_alloc.node_load | reclaim-6.1; machine.distance=[[10, 20, 20, 20], [20, 10, 21, 20], [20, 21, 10, 20], [20, 20, 20, 10]] | place
kernel.page_alloc.avoid_fragmentation | normal-6.1 | false
kernel.page_alloc.watermark_by_order | reclaim-6.1 | true
kernel.page_alloc.migrate_reserve | reclaim-6.1; kernel.page_alloc.fallback_steal=large-or-reclaimable | true
kernel.page_alloc.thp_nodes | huge-6.1 | all
kernel.page_alloc.thp_noretry | huge-6.1; process.file.region.file.size=200 MiB; process.file.phase.0.access.0.count=51200 | true
kernel.page_alloc.thp_zero_write | huge-6.1; machine.node.0.memory=600 MiB; process.huge.phase.0.access.0.write=0.3 | replaces
kernel.page_alloc.thp_cleared_twice | huge-6.1; machine.cost.page_init=4600 ns | false
kernel.vmstat.numa_counters | counters-6.1 | off
kernel.vmstat.threshold | counters-4.14 | 10
kernel.vmstat.overstep | counters-4.13 | false | refused signed differentials overstep
kernel.vmstat.snapshot_reads | counters-4.14 | false
kernel.vmstat.zoneinfo_folds | counters-6.1 | true
kernel.vmstat.early_drift_marks | reclaim-6.1; kernel.sysctl.vm.watermark_scale_factor=300 | false
kernel.vmstat.needs_update | counters-4.14 | all | unseen
kernel.vmstat.files | counters-6.1 | 6.12
kernel.vmalloc.free_space | vmalloc-6.9 | busy-list | refused the tree of 5.2
kernel.vmalloc.vmap_nodes | vmalloc-6.9 | 2
kernel.vmalloc.purge_accounting | vmalloc-6.9 | batched
kernel.vmalloc.pool_decay | vmalloc-6.9; run.events=["vmalloc:*"]; process.stress.phase.0.action.0.loops=300; kernel.vmalloc.lazy_max_pages=300 | keep-small | unseen
kernel.vmalloc.counters | vmalloc-6.9 | aligned
kernel.vmalloc.tlb_flush | vmalloc-6.9 | broadcast
kernel.vmalloc.lazy_max_pages | vmalloc-6.9 | 1000
kernel.vmalloc.events | vmalloc-6.9; run.events=["vmalloc:*"]; process.stress.phase.0.action.0.loops=1000 | kernel.vmalloc.events=false
kernel.filemap.fault_around_pages | reclaim-6.1 | 1
kernel.filemap.fault_retry | reclaim-6.1 | none
kernel.filemap.index_blocks | reclaim-6.1 | wait
kernel.filemap.index_blocks | reclaim-6.1 | single
kernel.filemap.mmap_sequential | reclaim-6.1 | true
kernel.filemap.readahead | reclaim-6.1 | aligned
kernel.filemap.mmap_hits | reclaim-6.1 | faults
kernel.filemap.large_folios | reclaim-6.1; kernel.filemap.readahead=aligned | true
kernel.filemap.large_folios | reclaim-6.1 | true | refused large_folios
kernel.filemap.cold_pages | reclaim-6.1 | true
kernel.filemap.writes_mark_accessed | reclaim-6.1; process.writer.region.log.size=4 MiB | true
kernel.writeback.foreign_flush | foreign-6.1 | false
kernel.writeback.dirtyable_anon | reclaim-6.1; machine.swap.size=1 GiB | true
kernel.writeback.only_expired | reclaim-6.1; process.mapped.region.file.size=4 MiB; process.reader.region.file.size=4 MiB; process.heap.region.heap.size=4 MiB; kernel.sysctl.vm.dirty_writeback_centisecs=5; kernel.sysctl.vm.dirty_expire_centisecs=10 | true
kernel.writeback.dm_delay | reclaim-6.1; machine.disk.ticks=true | thread
kernel.writeback.dm_delay | reclaim-6.1 | thread | refused disk.ticks
kernel.sched.numa_imbalance_pct | numa-4.17 | 300
kernel.sched.migration_cost_ns | numa-6.1 | 0
kernel.sched.cache_nice_tries | numa-6.1 | 0
kernel.sched.fair | reclaim-6.1 | turns
kernel.sched.busiest_group | numa-6.1 | load
kernel.sched.busy_factor | numa-6.1 | 1
kernel.sched.detach_limit | numa-6.1 | half
"#;

pub const SYSCTL: &str = r#"
kernel.sysctl.vm.swappiness | reclaim-6.1 | 100
kernel.sysctl.vm.min_free_kbytes | reclaim-6.1 | 6000
kernel.sysctl.vm.watermark_scale_factor | reclaim-6.1 | 100
kernel.sysctl.vm.watermark_boost_factor | reclaim-6.1 | 0
kernel.sysctl.vm.lowmem_reserve_ratio | reclaim-6.1 | kernel.sysctl.vm.lowmem_reserve_ratio=[1, 1, 1, 0]
kernel.sysctl.vm.zone_reclaim_mode | reclaim-6.1 | 1
kernel.sysctl.vm.min_unmapped_ratio | reclaim-6.1; kernel.sysctl.vm.zone_reclaim_mode=1 | 50
kernel.sysctl.vm.min_slab_ratio | reclaim-6.1 | 10 | refused page cache only
kernel.sysctl.vm.dirty_background_ratio | reclaim-6.1 | 1
kernel.sysctl.vm.dirty_ratio | reclaim-6.1 | 3
kernel.sysctl.vm.dirty_background_bytes | reclaim-6.1 | 1000000
kernel.sysctl.vm.dirty_bytes | reclaim-6.1 | 2000000
kernel.sysctl.vm.dirty_expire_centisecs | reclaim-6.1; process.mapped.region.file.size=4 MiB; process.reader.region.file.size=4 MiB; process.heap.region.heap.size=4 MiB; process.writer.region.log.size=10 MiB; kernel.sysctl.vm.dirty_background_ratio=60; kernel.sysctl.vm.dirty_ratio=80; kernel.sysctl.vm.dirty_writeback_centisecs=5 | 10
kernel.sysctl.vm.dirty_writeback_centisecs | reclaim-6.1 | kernel.sysctl.vm.dirty_writeback_centisecs=20
kernel.sysctl.vm.laptop_mode | reclaim-6.1 | 1
kernel.sysctl.vm.vfs_cache_pressure | lookup-6.1 | 10
kernel.sysctl.vm.page-cluster | reclaim-6.1 | 0
kernel.sysctl.vm.extfrag_threshold | reclaim-6.1 | 1000
kernel.sysctl.vm.compaction_proactiveness | reclaim-6.1; run.duration=900 ms | 0
kernel.sysctl.vm.percpu_pagelist_high_fraction | counters-6.1 | 8
kernel.sysctl.vm.defrag_mode | reclaim-6.18 | 1 | refused pageblocks whole
kernel.sysctl.vm.stat_interval | counters-6.1 | 2
kernel.sysctl.vm.numa_stat | counters-6.1 | 0
kernel.sysctl.kernel.numa_balancing | numa-6.1 | 0
kernel.sysctl.kernel.numa_balancing_promote_rate_limit_MBps | numa-6.1 | 10 | refused memory tiering is not supported
kernel.sysctl.kernel.numa_balancing_migrate_deferred | numa-3.13 | 1
kernel.sysctl.kernel.watchdog_thresh | vmalloc-6.1 | 5 | refused no watchdog
kernel.sysctl_max.vm.swappiness | reclaim-6.1 | 50 | refused 0 to 50
kernel.sysctl_max.vm.watermark_scale_factor | reclaim-6.1 | 5 | refused 1 to 5
kernel.sysctl_max.kernel.numa_balancing | numa-6.1 | 0 | refused 0 to 0
"#;

pub const NUMA: &str = r#"
kernel.numa_balancing.scan_delay_ms | numa-6.1 | 300
kernel.numa_balancing.scan_period_min_ms | numa-6.1 | 100
kernel.numa_balancing.scan_period_max_ms | numa-6.1 | 60
kernel.numa_balancing.scan_size_mb | numa-6.1 | 2
kernel.numa_balancing.hot_threshold_ms | numa-6.1 | 10 | refused memory tiering is not supported
kernel.numa_balancing.shared_pages | numa-6.1 | none
kernel.numa_balancing.active_set | numa-2014-v3 | 40-20
kernel.numa_balancing.active_set | numa-2014-v3 | 6/16-3/16-memory
kernel.numa_balancing.active_nodes_compare | numa-2014-v3 | shift | unseen
kernel.numa_balancing.cpu_weight | numa-6.1 | none
kernel.numa_balancing.statistics | numa-6.1 | in-place
kernel.numa_balancing.recompute_on_join | numa-2014-v3 | both
kernel.numa_balancing.scan_start | numa-6.1 | zero
kernel.numa_balancing.scan_sharing | numa-6.1 | independent
kernel.numa_balancing.migrate_degrades_locality | numa-6.1 | pair
kernel.numa_balancing.backoff_on_migrate_fail | numa-6.1; machine.node.2.memory=4 MiB | none
kernel.numa_balancing.rate_limit | numa-4.17; machine.cost.migrate_page=10 ns; machine.cost.hint_fault=10 ns; kernel.numa_balancing.scan_size_mb=1024; process.pinned.region.data.size=180 MiB; process.pinned.phase.0.access.0.think=0 s | false
kernel.numa_balancing.first_scans | numa-6.1 | false
kernel.numa_balancing.cpupid_xchg_on_local | numa-6.1 | true
kernel.numa_balancing.vma_filter | numa-6.1 | true
kernel.numa_balancing.marks_referenced | numa-6.1 | true
kernel.numa_balancing.cpupid_node | numa-6.1 | true
kernel.numa_balancing.scan_stamp_ahead | numa-4.17-staggered | false
kernel.numa_balancing.scan_overhead_cap | numa-6.1; machine.cost.scan_pte=9 us | false
kernel.numa_balancing.scan_virtual_limit | numa-6.1 | false
kernel.numa_balancing.period_adaptation | numa-6.1 | local-7
kernel.numa_balancing.period_by_group | numa-6.1 | false
kernel.numa_balancing.period_reset | numa-6.1 | move
kernel.numa_balancing.period_before_placement | numa-4.17 | false
kernel.numa_balancing.group_placement | numa-6.1 | task-and-group
kernel.numa_balancing.own_faults_decide | numa-2014-v1 | false | unseen
kernel.numa_balancing.placement_moves | numa-4.17 | new-node
kernel.numa_balancing.cpu_faults | numa-6.1 | false
kernel.numa_balancing.placement_at | numa-6.1 | every-fault
kernel.numa_balancing.first_retry | numa-3.13; kernel.numa_balancing.placement_moves=never | true
kernel.numa_balancing.active_set_is_local | numa-6.1 | false
kernel.numa_balancing.memoryless_target | numa-6.9; machine.node.3.memory=0 B | true
kernel.numa_balancing.saved_write | numa-6.9 | true
kernel.numa_balancing.huge_migration_apart | numahuge-6.1 | true
kernel.numa_balancing.retry_by_period | numa-6.1 | false
kernel.numa_balancing.stick_event | numa-6.1 | false
kernel.numa_balancing.search_prefers | numa-6.1 | placed
kernel.numa_balancing.task_search | numa-6.1 | load
kernel.numa_balancing.distance_limit_included | numa-6.1; machine.memory.latency.15=100 ns; machine.memory.bandwidth.15=80 GB/s; machine.distance=[[10, 15, 40, 40], [15, 10, 40, 40], [40, 40, 10, 15], [40, 40, 15, 10]] | true
kernel.numa_balancing.shmem_policy | numa-6.1 | false
"#;

pub const RECLAIM: &str = r#"
kernel.reclaim.lru | reclaim-3.5 | node
kernel.reclaim.lru | reclaim-6.1 | zone | refused nodes are reclaimed
kernel.reclaim.counters | reclaim-6.1 | node
kernel.reclaim.scan_balance | reclaim-6.1 | cost-rotations
kernel.reclaim.scan_balance | reclaim-6.1 | rotations | refused costs decide
kernel.reclaim.scan_balance | reclaim-3.5 | cost | refused rotations decide
kernel.reclaim.new_anon | reclaim-6.1 | active | refused inactive
kernel.reclaim.new_anon | reclaim-3.5 | inactive | refused active
kernel.reclaim.workingset | reclaim-6.1 | file | refused refaults
kernel.reclaim.workingset | reclaim-3.5 | all | refused refaults
kernel.reclaim.high_order | reclaim-3.4 | lumpy
kernel.reclaim.high_order | reclaim-6.1 | lumpy | refused for compaction
kernel.reclaim.sync_pass | reclaim-2.6.36 | none
kernel.reclaim.sync_pass | reclaim-6.1 | writeback | refused no second pass
kernel.reclaim.direct_compaction | reclaim-3.5 | costly
kernel.reclaim.direct_compaction | reclaim-6.1 | costly | refused large blocks
kernel.reclaim.pageblocks | reclaim-6.1 | finished
kernel.reclaim.pageblocks | reclaim-3.5 | finished | refused rest of a pageblock
kernel.reclaim.congestion | reclaim-3.5 | congestion-wait
kernel.reclaim.congestion | reclaim-2.6.36 | wait-iff-writeback
kernel.reclaim.congestion | reclaim-6.1 | wait-iff-zone | refused throttled
kernel.reclaim.dirty_pages | reclaim-3.5 | write
kernel.reclaim.dirty_pages | reclaim-2.6.36; machine.disk.bandwidth=20 MB/s | kswapd
kernel.reclaim.dirty_pages | reclaim-6.1; kernel.sysctl.vm.dirty_background_ratio=80; kernel.sysctl.vm.dirty_ratio=90; process.writer.region.log.size=90 MiB; process.writer.phase.0.access.0.think=0 s | never
kernel.reclaim.dirty_pages | reclaim-6.1 | write | refused kswapd writes
kernel.reclaim.dirty_pages | reclaim-3.5 | kswapd-zone-dirty | refused kswapd writes
kernel.reclaim.writeback_pages | reclaim-2.6.36; machine.disk.bandwidth=20 MB/s | throttle-on-writeback
kernel.reclaim.writeback_pages | reclaim-6.1 | keep | refused activated
kernel.reclaim.writeback_pages | reclaim-3.5 | activate | refused kept
kernel.reclaim.balanced | reclaim-3.5 | all-zones
kernel.reclaim.balanced | reclaim-6.1 | all-zones | refused one balanced zone
kernel.reclaim.kswapd_wakeup | reclaim-3.5 | each-request
kernel.reclaim.kswapd_wakeup | reclaim-6.1 | asleep | refused by node
kernel.reclaim.kswapd_wakeup | reclaim-3.5 | wake | refused by zone
kernel.reclaim.kswapd_order_zero | reclaim-3.5 | false
kernel.reclaim.kswapd_order_zero | reclaim-6.1 | true | refused order
kernel.reclaim.cgroup_walk | cgroup-6.1 | rotating
kernel.reclaim.cgroup_walk | reclaim-3.5 | rotating | refused lists of their own
kernel.reclaim.skip_limit | reclaim-6.1 | 1
kernel.reclaim.skip_limit | reclaim-3.5 | 1 | refused skips
kernel.reclaim.stats_flush_ms | cgroup-6.1 | 2000
kernel.reclaim.stats_flush_ms | reclaim-3.5 | 2000 | refused always current
kernel.reclaim.pagevec_size | reclaim-6.1 | 31
kernel.reclaim.free_batches | reclaim-6.1 | true
kernel.reclaim.free_batches | reclaim-3.5 | true | refused freed together
kernel.reclaim.counters | reclaim-3.5 | node | refused as events
kernel.reclaim.swap_readahead | reclaim-6.1 | block
kernel.reclaim.swap_nonfull_first | reclaim-6.1 | true
kernel.filemap.swap_cache_nodes | reclaim-6.1 | false
kernel.sched.hrtimer_rearm_deferred | reclaim-6.1; machine.cpu.single_threaded_tcg=true | true
kernel.reclaim.keeps_exiting | reclaim-6.1; process.heap.phase.0.duration=100 ms; machine.cost.zap_page=90 us | true
kernel.reclaim.keeps_exiting | reclaim-3.5 | true | refused whoever maps them
kernel.reclaim.swap_plug | reclaim-6.1 | true
kernel.reclaim.swap_plug | reclaim-3.5 | true | refused each page is a request
kernel.reclaim.swap_rw_page | reclaim-6.1; machine.swap.synchronous=true | false
kernel.reclaim.defer_by_order | reclaim-3.4; process.kernel.phase.0.action.0.order=4; kernel.page_alloc.migrate_reserve=false | false
kernel.reclaim.defer_by_order | reclaim-6.1 | false | refused by order
kernel.reclaim.age_without_swap | reclaim-3.5; machine.swap.size=0 B | true
kernel.reclaim.age_without_swap | reclaim-6.1 | true | refused without swap
kernel.reclaim.save_scans | reclaim-3.5 | true
kernel.reclaim.save_scans | reclaim-6.1 | true | refused saved up
kernel.reclaim.references | reclaim-3.5 | clean
kernel.reclaim.references | reclaim-6.1 | clean | refused executables
kernel.reclaim.give_up_with_kswapd | reclaim-3.5; machine.swap.size=0 B; process.heap.region.heap.size=100 MiB | false
kernel.reclaim.give_up_with_kswapd | reclaim-6.1 | false | refused gives up
kernel.reclaim.shrink_slab | reclaim-3.5; process.reader.region.file.files=3000 | wind-up
kernel.reclaim.shrink_slab | reclaim-6.1 | wind-up | refused deferred scans
"#;

pub const MACHINE: &str = r#"
machine.preset | preset-6.1 | lab-4n
machine.name | counters-6.1 | another | describes
machine.node.cpus | numa-6.1 | machine.node.0.cpus=2-3; machine.node.1.cpus=0-1
machine.node.memory | reclaim-6.1 | machine.node.3.memory=48 MiB
machine.node.socket | vmalloc-6.9 | machine.node.3.socket=0
machine.node.movable | reclaim-6.1 | machine.node.3.movable=8 MiB | refused zone of its addresses
machine.node.zone.kind | zone-6.1 | machine.node.0.zone.0.kind=Normal | refused zone of its addresses
machine.node.zone.start_pfn | zone-6.1 | machine.node.0.zone.0.start_pfn=5000
machine.node.zone.spanned | zone-6.1 | machine.node.0.zone.0.spanned=22000 | describes
machine.node.zone.present | zone-6.1 | machine.node.0.zone.0.present=19900
machine.node.zone.managed | zone-6.1 | machine.node.0.zone.0.managed=18000
machine.threads_per_core | counters-6.1 | 1
machine.siblings | counters-6.1; machine.node.0.cpus=0-3; machine.node.1.cpus=4-7; machine.node.2.cpus=; machine.node.3.cpus= | split
machine.cluster_cores | vmalloc-6.9; machine.line.handoff.same_cluster=9 ns; machine.node.0.cpus=0-3; machine.node.1.cpus=4-7; machine.node.2.cpus=; machine.node.3.cpus= | 1
machine.huge_page | reclaim-2.6.36 | 1 MiB
machine.possible_cpus | vmalloc-6.9 | 64 | unseen
machine.distance | numa-6.1 | machine.distance.0.1=31; machine.distance.1.0=31
machine.asymmetric | numa-6.1; machine.asymmetric=true; machine.distance.0.1=22 | false | refused asymmetric = true
machine.cpu.frequency | counters-6.1 | 3 GHz | describes
machine.cpu.smt_slowdown | counters-6.1 | 1.1
machine.cpu.single_threaded_tcg | reclaim-6.1 | true
machine.cpu.physical_cpus | reclaim-6.1 | 2
machine.memory.latency | numa-6.1 | machine.memory.latency.31=400 ns
machine.memory.bandwidth | numa-6.1 | machine.memory.bandwidth.10=1 GB/s
machine.memory.local | numa-6.1 | [[0, 1], [0.001, 2], [1, 3]]
machine.memory.kernel_image | reclaim-6.1 | ["01000000-01e01ef1"]
machine.memory.remote | numa-6.1 | [[0, 1], [0.001, 2], [1, 3]]
machine.line.atomic | vmalloc-6.9 | 9 ns | refused one's own
machine.line.transfer_home_reader | vmalloc-6.9 | 9 ns | refused does not depend
machine.line.transfer.same_core | counters-6.1 | 300 ns
machine.line.transfer.same_cluster | counters-6.1; machine.node.0.cpus=0-3; machine.node.1.cpus=4-7; machine.node.2.cpus=; machine.node.3.cpus= | 300 ns
machine.line.transfer.same_socket | counters-6.1; machine.cluster_cores=1; machine.node.0.cpus=0-3; machine.node.1.cpus=4-7; machine.node.2.cpus=; machine.node.3.cpus= | 300 ns
machine.line.transfer.cross_socket | counters-6.1 | 300 ns
machine.line.handoff.same_core | vmalloc-6.9 | 300 ns
machine.line.handoff.same_cluster | vmalloc-6.9; machine.node.0.cpus=0-3; machine.node.1.cpus=4-7; machine.node.2.cpus=; machine.node.3.cpus= | 300 ns
machine.line.handoff.same_socket | vmalloc-6.9; machine.cluster_cores=1; machine.node.0.cpus=0-3; machine.node.1.cpus=4-7; machine.node.2.cpus=; machine.node.3.cpus= | 300 ns
machine.line.handoff.cross_socket | vmalloc-6.9 | 300 ns
machine.cost.page_alloc_free | counters-6.1 | 100 ns
machine.cost.interleave | reclaim-6.1; process.reader.policy=interleave:all | 500 ns
machine.cost.page_init | reclaim-6.1 | 500 ns
machine.cost.page_bulk | counters-4.13 | 100 ns
machine.cost.pcp_refill | reclaim-6.1 | 9 us
machine.cost.lru_add | reclaim-6.1 | 9 us
machine.cost.numa_counters_s8 | counters-4.13 | 100 ns
machine.cost.numa_counters_u16 | counters-4.14 | 100 ns
machine.cost.numa_counters_events | counters-6.1 | 100 ns
machine.cost.zone_reread | counters-4.13 | 900 ns
machine.cost.vmalloc_fix_size | vmalloc-6.9 | 2 us
machine.cost.vmalloc_full_fit | vmalloc-6.9; process.stress.phase.0.action.0.tests=["full_fit_alloc_test"] | 2 us
machine.cost.vmalloc_long_busy_list | vmalloc-6.9; process.stress.phase.0.action.0.tests=["long_busy_list_alloc_test"]; process.stress.phase.0.action.0.loops=300 | 20 us
machine.cost.purge_area | vmalloc-6.9 | 500 ns
machine.cost.purge_wakeup | vmalloc-6.9 | 3 ms
machine.cost.purge_worker_share | vmalloc-6.9 | 0.5
machine.cost.purge_slice | vmalloc-6.9; machine.cost.purge_worker_share=0.5 | 9 ms
machine.cost.tlb_flush | vmalloc-6.9 | 50 us
machine.cost.tlb_flush_per_cpu | vmalloc-6.9 | 9 us
machine.cost.tlb_shootdown | reclaim-6.1 | 9 us
machine.cost.enter_idle | reclaim-6.1; machine.cpu.single_threaded_tcg=true | 90 us
machine.cost.tlb_interrupt | reclaim-6.1 | 9 us
machine.cost.tick | reclaim-6.1 | 20 us
machine.cost.tick_idle | reclaim-6.1; machine.cpu.single_threaded_tcg=true; machine.cost.tick=20 us | 90 us
machine.cost.hrtick | reclaim-6.1; kernel.sched.fair=eevdf-hrtick | 90 us
machine.cost.trace_event | reclaim-6.1 | 1 us
machine.cost.stat_file | counters-6.1 | 9 us
machine.cost.stat_row | counters-6.1 | 900 ns
machine.cost.counter_read | counters-6.1 | 90 ns
machine.cost.sample | reclaim-6.1; machine.cpu.single_threaded_tcg=true | 20 ms
machine.cost.sample_node | reclaim-6.1; machine.cpu.single_threaded_tcg=true | 20 ms
machine.cost.sample_process | reclaim-6.1; machine.cpu.single_threaded_tcg=true | 20 ms
machine.cost.sample_page | reclaim-6.1; machine.cpu.single_threaded_tcg=true | 10 us
machine.cost.page_fault | reclaim-6.1 | 900 ns
machine.cost.cached_page_fault | reclaim-6.1 | 90 us
machine.cost.page_mkwrite | reclaim-6.1; process.mapped.region.file.size=4 MiB; process.mapped.phase.0.access.0.write=100 % | 90 us
machine.cost.page_mkwrite_dirty | reclaim-6.1; process.writer.phase.0.access=[{ region = "log", pattern = "sequential", write = 1.0, via = "syscall" }, { region = "log", pattern = "sequential", write = 1.0 }] | 90 us
machine.cost.zero_page_fault | reclaim-6.1 | 90 us
machine.cost.zero_page_write | reclaim-6.1 | 90 us
machine.cost.map_around | reclaim-6.1 | 900 ns
machine.cost.map_further | reclaim-6.1; kernel.filemap.large_folios=true; kernel.filemap.readahead=aligned | 900 ns
machine.cost.fault_retry | reclaim-6.1 | 900 ns
machine.cost.fault_retry_alone | reclaim-6.1; process.mapped.region.file.size=400 MiB; process.mapped.phase.0.access.0.pattern=uniform; process.mapped.phase.0.access.0.write=100 % | 90 us
machine.cost.file_call | reclaim-6.1 | 900 ns
machine.cost.file_reference | reclaim-6.1; process.writer.threads=2 | 9 us
machine.cost.file_request | reclaim-6.1 | 900 ns
machine.cost.file_folio | reclaim-6.1 | 900 ns
machine.cost.file_page | reclaim-6.1 | 900 ns
machine.cost.name_lookup | lookup-6.1 | 3 us
machine.cost.file_write | reclaim-6.1 | 1900 ns
machine.cost.file_create | reclaim-6.1 | 1900 ns
machine.cost.file_dirty | reclaim-6.1 | 1900 ns
machine.cost.file_buffers | reclaim-6.1 | 1900 ns
machine.cost.shmem_create | reclaim-6.1; process.mapped.region.file.kind=shmem | 1900 ns
machine.cost.shmem_add | shared-6.1 | 1900 ns
machine.cost.shmem_write_fault | shared-6.1 | 1900 ns
machine.cost.shmem_read_fault | shared-6.1 | 1900 ns
machine.cost.shmem_look_around | reclaim-6.1; process.mapped.region.file.kind=shmem | 1900 ns
machine.cost.shmem_swap_write | reclaim-6.1; process.mapped.region.file.kind=shmem | 1900 ns
machine.cost.shmem_swap_read | reclaim-6.1; process.mapped.region.file.kind=shmem; run.duration=900 ms | 1900 ns
machine.cost.page_activate | reclaim-6.1; process.reader.region.file.size=2 MiB | 1900 ns
machine.cost.writeback_page | reclaim-6.1 | 2900 ns
machine.cost.writeback_request | reclaim-6.1 | 2900 ns
machine.cost.writeback_mapped | reclaim-6.1; process.writer.phase.0.access.0.via=mmap | 2900 ns
machine.cost.writeback_end | reclaim-6.1 | 2900 ns
machine.cost.process_start | numa-6.1 | 20 ms
machine.cost.process_access | numa-6.1 | 20 ms
machine.cost.hint_fault | numa-6.1 | 9 us
machine.cost.scan_pte | numa-6.1 | 900 ns
machine.cost.walk_pte | numa-6.1 | 900 ns
machine.cost.migrate_page | numa-6.1 | 9 us
machine.cost.reclaim_scan_page | reclaim-6.1 | 900 ns
machine.cost.reclaim_rmap_page | reclaim-6.1 | 2 us
machine.cost.reclaim_unmap_page | reclaim-6.1 | 900 ns
machine.cost.reclaim_free_page | reclaim-6.1 | 900 ns
machine.cost.reclaim_unmap_further | reclaim-6.1; kernel.filemap.large_folios=true; kernel.filemap.readahead=aligned | 900 ns
machine.cost.reclaim_free_further | reclaim-6.1; kernel.filemap.large_folios=true; kernel.filemap.readahead=aligned | 900 ns
machine.cost.reclaim_free_buffers | reclaim-6.1 | 900 ns
machine.cost.reclaim_batch | reclaim-6.1 | 9 us
machine.cost.reclaim_pass | cgroup-6.1 | 9 us
machine.cost.swap_write | reclaim-6.1; machine.swap.synchronous=true | 9 us
machine.cost.swap_write_async | reclaim-6.1 | 9 us
machine.cost.swap_write_plugged | reclaim-6.1; kernel.reclaim.swap_plug=true | 9 us
machine.cost.swap_write_further | reclaim-6.1; kernel.thp=always | 9 us
machine.cost.swap_slot_scan | reclaim-6.1; machine.swap.size=4 MiB | 9 us
machine.cost.swap_read | reclaim-6.1 | 9 us
machine.cost.io_schedule | reclaim-6.1 | 9 us
machine.cost.read_end | reclaim-6.1 | 9 us
machine.cost.zap_page | madvise-6.1 | 9 us
machine.cost.zap_shared | madvise-6.1; process.heap.region.heap.kind=shmem | 90 us
machine.cost.zap_further | madvise-6.1; kernel.filemap.large_folios=true; kernel.filemap.readahead=aligned; process.heap.region.heap.kind=file | 900 us
machine.cost.zap_huge | huge-6.1 | 90 us
machine.cost.huge_fault | huge-6.1 | 90 us
machine.cost.nanosleep | numa-6.1; process.alone.phase.0.access.0.sleep=30 us | 9 us
machine.cost.slab_count | lookup-6.1 | 9 us
machine.cost.slab_scan_object | lookup-6.1 | 500 ns
machine.cost.rcu_grace_ticks | lookup-6.1 | 25
machine.cost.compact_scan_page | reclaim-6.1 | 500 ns
machine.cost.compact_pageblock | reclaim-6.1 | 900 ns
machine.cost.context_switch | reclaim-6.1 | 9 us | refused cost of switching
machine.cost.wakeup_preempt | reclaim-6.1 | 9 us
machine.cost.wakeup_latency | counters-6.1; process.loops.phase.read.action.0.file=stat_refresh | 50 us
machine.disk.latency | reclaim-6.1 | 1 ms
machine.disk.bandwidth | reclaim-6.1 | 1 GB/s
machine.disk.seek | reclaim-6.1 | 1 ms
machine.disk.ticks | reclaim-6.1 | true
machine.disk.memory_backed | reclaim-6.1 | true
machine.disk.queue_depth | reclaim-3.5 | 4
machine.disk.bios_per_page | reclaim-6.1 | 1
machine.disk.journal_blocks | write-6.1 | 2000
machine.disk.first_flush | write-6.1 | 300 ms
machine.swap.size | reclaim-6.1 | 4 MiB
machine.swap.synchronous | reclaim-6.1 | true
machine.swap.on_disk | reclaim-6.1 | true
machine.swap.latency | reclaim-6.1 | 1 ms
machine.swap.bandwidth | reclaim-6.1 | 100 MB/s
machine.worker.heap_pages | numa-6.1 | 900
machine.worker.heap_pages_per_thread | numa-6.1 | 8
machine.worker.heap_absent_pages | numa-6.1 | 900
machine.worker.heap_hot_pages | numa-6.1 | 20
machine.worker.access | reclaim-6.1 | 100 us
machine.worker.access_in_order | reclaim-6.1 | 100 us
machine.worker.chance | reclaim-6.1 | 100 us
machine.worker.module_load | vmalloc-6.9 | 9 ms
machine.worker.module_wait | vmalloc-6.9 | 9 ms
machine.worker.think_excess | reclaim-6.1 | 100 us
machine.worker.fault_count | reclaim-6.1 | 100 us
machine.figure.of | figure-6.1 | machine.figure.0.of=["cost"] | describes
machine.figure.provenance | figure-6.1 | machine.figure.0.provenance=measured | describes
machine.figure.source | figure-6.1 | machine.figure.0.source=elsewhere | describes
machine.figure.fits | figure-6.1 | machine.figure.17.fits=["a:b"] | describes
"#;

pub const WORKLOAD: &str = r#"
title | counters-6.1 | another | describes
cgroup.name | cgroup-6.1 | cgroup.#2.name=/other; process.kept.cgroup=/other
cgroup.memory.max | cgroup-6.1; cgroup./web.memory.high=40 MiB | cgroup./web.memory.max=14 MiB
cgroup.memory.high | cgroup-6.1 | cgroup./web.memory.high=15 MiB
cgroup.memory.low | cgroup-6.1 | cgroup./web/inner.memory.low=0 B
cgroup.memory.min | cgroup-6.1; cgroup./web.memory.high=60 MiB; cgroup./web.memory.max=60 MiB; process.files.region.file.size=40 MiB | cgroup./kept.memory.min=0 B
cgroup.memory.swap.max | cgroup-6.1 | cgroup./web.memory.swap.max=0 B
process.name | numa-6.1 | process.group.name=other
process.threads | numa-6.1 | process.group.threads=5
process.cpus | numa-6.1 | process.pinned.cpus=2-5
process.pin | numa-6.1; process.pinned.threads=4 | process.pinned.pin=false
process.policy | reclaim-6.1 | process.heap.policy=bind:1
process.start_node | numa-6.1 | process.alone.start_node=3
process.cgroup | cgroup-6.1 | process.kept.cgroup=/web
process.start | numa-6.1 | process.alone.start=300 ms
process.instances.count | numa-6.1 | process.alone.instances.count=2
process.instances.bound | numa-6.1; process.alone.instances.count=2 | process.alone.instances.bound=true
process.region.name | numa-6.1 | process.pinned.region.data.name=other; process.pinned.phase.0.access.0.region=other
process.region.size | numa-6.1 | process.pinned.region.data.size=3 MiB
process.region.kind | numa-6.1 | process.pinned.region.data.kind=shmem
process.region.sharing | numa-6.1 | process.group.region.own.sharing=shared
process.region.file | reclaim-6.1; process.again.region.file.size=60 MiB; process.again.region.file.file=one | process.reader.region.file.file=one
process.region.huge | huge-6.1 | process.huge.region.plain.huge=never
process.region.policy | numa-6.1 | process.alone.region.data.policy=bind:3
process.region.populate | numa-6.1 | process.alone.region.data.populate=true
process.region.populate_policy | numa-6.1 | process.pinned.region.data.populate_policy=bind:3
process.region.exec | reclaim-6.1 | process.again.region.file.exec=false
process.region.locked | reclaim-6.1 | process.heap.region.heap.locked=true
process.region.temporary | huge-6.1 | process.file.region.file.temporary=false
process.region.sparse | reclaim-6.1 | process.reader.region.file.sparse=true
process.region.files | reclaim-2.6.36 | process.reader.region.file.files=100
process.phase.name | numa-6.1 | process.group.phase.begin.name=first
process.phase.duration | counters-6.1 | process.loops.phase.loop.duration=5 ms
process.phase.access.region | numa-6.1 | process.group.phase.work.access.2.region=heap
process.phase.access.threads | numa-6.1 | process.group.phase.work.access.0.threads=0-5
process.phase.access.pattern | numa-6.1 | process.alone.phase.0.access.0.pattern=sequential
process.phase.access.stride | numa-6.1 | process.pinned.phase.0.access.0.stride=12 KiB
process.phase.access.skew | numa-6.1 | process.alone.phase.0.access.1.skew=0.5
process.phase.access.hot | numa-6.1 | process.group.phase.work.access.0.hot=0.1
process.phase.access.access_share | numa-6.1 | process.group.phase.work.access.0.access_share=0.9
process.phase.access.think | numa-6.1 | process.alone.phase.0.access.0.think=30 us
process.phase.access.sleep | numa-6.1 | process.alone.phase.0.access.0.sleep=30 us
process.phase.access.write | reclaim-6.1 | process.heap.phase.0.access.0.write=0.1
process.phase.access.via | reclaim-6.1 | process.reader.phase.0.access.0.via=mmap
process.phase.access.lines | numa-6.1 | process.alone.phase.0.access.0.lines=4
process.phase.access.sharing | numa-6.1 | process.group.phase.work.access.1.sharing=shared
process.phase.access.count | huge-6.1 | process.huge.phase.0.access.1.count=2000
process.phase.access.recycle | reclaim-6.1 | process.reader.phase.0.access.0.recycle=true
process.phase.access.arrival | madvise-6.1 | process.heap.phase.0.access.0.arrival=20 us
process.phase.access.arrivals | madvise-6.1; process.heap.phase.0.access.0.arrival=20 us | process.heap.phase.0.access.0.arrivals=poisson
process.phase.action.kind | counters-6.1 | process.fill.phase.0.action.0.kind=page-loop
process.phase.action.threads | counters-6.1 | process.loops.phase.loop.action.0.threads=0-2
process.phase.action.order | counters-6.1 | process.fill.phase.0.action.0.order=2
process.phase.action.gfp | reclaim-6.1 | process.kernel.phase.0.action.0.gfp=GFP_ATOMIC
process.phase.action.node | counters-6.1 | process.fill.phase.0.action.0.node=3
process.phase.action.policy | counters-6.1 | process.loops.phase.loop.action.0.policy=bind:2
process.phase.action.hold | counters-6.1 | process.loops.phase.loop.action.0.hold=80
process.phase.action.count | counters-6.1 | process.fill.phase.0.action.0.count=1000
process.phase.action.rate | counters-6.1 | process.fill.phase.0.action.0.rate=20000 pages/s
process.phase.action.tests | vmalloc-6.9 | process.stress.phase.0.action.0.tests=["full_fit_alloc_test"]
process.phase.action.loops | vmalloc-6.9 | process.stress.phase.0.action.0.loops=9000
process.phase.action.repeat | vmalloc-6.9 | process.stress.phase.0.action.0.repeat=2
process.phase.action.pages | vmalloc-6.9 | process.stress.phase.0.action.0.pages=4
process.phase.action.file | counters-6.1 | process.loops.phase.read.action.0.file=vmstat
process.phase.action.interval | counters-6.1 | process.loops.phase.read.action.0.interval=3 ms
process.phase.action.gfp_retry_mayfail | reclaim-6.1 | process.blocks.phase.0.action.0.gfp_retry_mayfail=true
process.phase.action.cpus | counters-6.1 | process.admin.phase.0.action.1.cpus=6
process.phase.action.name | counters-6.1 | process.admin.phase.0.action.2.name=vm.stat_interval
process.phase.action.value | counters-6.1 | process.admin.phase.0.action.2.value=6000
process.phase.action.region | madvise-6.1 | process.heap.phase.0.action.0.region=other
process.phase.action.advice | madvise-6.1 | process.heap.phase.0.action.0.advice=free
process.phase.action.from | madvise-6.1 | process.heap.phase.0.action.0.from=0.25
process.phase.action.to | madvise-6.1 | process.heap.phase.0.action.0.to=0.5
process.phase.action.limit | madvise-6.1 | process.heap.phase.1.action.0.limit=memory.high
process.phase.action.size | madvise-6.1 | process.heap.phase.1.action.0.size=6 MiB
process.phase.action.time | counters-6.1 | process.admin.phase.0.action.0.time=10 ms
run.duration | numa-6.1 | 1 s
run.seed | numa-6.1 | 2
run.sample | numa-6.1 | 300 ms
run.events | numa-6.1 | ["sched:*"]
run.buffer | numa-6.1 | 1 MiB | describes
run.counters | numa-6.1 | ["numa_*"]
run.epoch | numa-6.1 | 1 ms
"#;
