//! How the allocators of different releases differ.

use super::HUGE_ORDER;
use mmtwin_scenario::kernel::PcpFreeHigh;

/// How long a CPU's list may become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PerCpuHigh {
    /// Six batches (to 5.12).
    SixBatches,
    /// The low watermark shared by the node's CPUs; frees double their batch while nothing is allocated (5.13 to 6.6).
    LowMark,
    /// Between that and an eighth of the zone shared by them, depending on allocations and frees (6.7 and later).
    Auto,
}

/// How nodes at the same distance share the overflow of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeOrder {
    /// A chosen node is charged a load that falls with its place (to 5.17).
    ByPlace,
    /// A node's load is the number of times it was chosen first of its distance (5.18 and later).
    ByCount,
}

/// Which requests take the free rest of a pageblock when there is no block of their own type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StealPolicy {
    /// Requests that find a large block, and reclaimable ones; others leave the rest of a small block with its type.
    /// Used pages of the pageblock do not count (before 4.0).
    LargeOrReclaimable,
    /// Requests that find a large block, and all unmovable or reclaimable ones.
    LargeOrUnmovable,
    /// The same, for block after block from the largest on; where none is taken so, pages of the smallest.
    ClaimThenSteal,
}

/// The allocator of a release with its sysctls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// A batch is a quarter of at most this many pages.
    pub batch_limit: u64,
    /// log2 of the pages of the largest block.
    pub max_order: u32,
    /// log2 of the pages of a pageblock.
    pub pageblock_order: u32,
    /// How long a CPU's list may become.
    pub per_cpu_high: PerCpuHigh,
    /// When a free of a block of order 1 to 3 empties a CPU's lists.
    pub free_high: PcpFreeHigh,
    /// `vm.percpu_pagelist_high_fraction`: the lists of all CPUs together are this part of the zone; 0: by
    /// `per_cpu_high`.
    pub high_fraction: u64,
    /// Blocks up to order 3 and huge pages have per-CPU lists too (5.13 and later).
    pub per_cpu_orders: bool,
    /// A request does not take from blocks of another type while another zone can serve it (5.0 and later).
    pub avoid_fragmentation: bool,
    /// Which requests take the free rest of a pageblock of another type.
    pub steal_policy: StealPolicy,
    /// The rest of a block of another type from which one page is taken stays with that type (6.10 and later).
    pub no_whole_block_steal: bool,
    /// `vm.watermark_boost_factor`, hundredths of a percent; 0 before 5.0.
    pub watermark_boost_factor: u64,
    /// `vm.watermark_scale_factor`, hundredths of a percent.
    pub watermark_scale_factor: u64,
    /// `vm.min_free_kbytes` if it was set.
    pub min_free_kbytes: Option<u64>,
    /// Its largest default.
    pub min_free_limit_kb: u64,
    /// Huge pages are on: they raise the default of `vm.min_free_kbytes`.
    pub transparent_hugepage: bool,
    /// A write to the huge zero page allocates a huge page (6.13 and later).
    pub huge_zero_replaced: bool,
    /// Movable zones are not low memory and have marks of their own (6.12 and later).
    pub movable_excluded_from_lowmem: bool,
    /// A request for a block does not count blocks that are too small for it, against a mark that is halved at each order
    /// (before 4.4); later there only has to be one block.
    pub marks_by_order: bool,
    /// Zones keep pageblocks in reserve ([`super::reserve`]).
    pub migrate_reserve: bool,
    /// `vm.lowmem_reserve_ratio` of DMA, DMA32, Normal and Movable; 0 reserves nothing.
    pub lowmem_reserve_ratio: [u64; 4],
    /// How the zonelists spread load.
    pub node_order: NodeOrder,
}

impl Rules {
    /// Kernel 4.13 with default sysctls and huge pages.
    pub const V4_13: Rules = Rules {
        batch_limit: 128,
        max_order: 10,
        pageblock_order: HUGE_ORDER,
        per_cpu_high: PerCpuHigh::SixBatches,
        free_high: PcpFreeHigh::Never,
        high_fraction: 0,
        per_cpu_orders: false,
        avoid_fragmentation: false,
        steal_policy: StealPolicy::LargeOrUnmovable,
        no_whole_block_steal: false,
        watermark_boost_factor: 0,
        watermark_scale_factor: 10,
        min_free_kbytes: None,
        min_free_limit_kb: 65_536,
        transparent_hugepage: true,
        huge_zero_replaced: false,
        movable_excluded_from_lowmem: false,
        marks_by_order: false,
        migrate_reserve: false,
        lowmem_reserve_ratio: [256, 256, 32, 0],
        node_order: NodeOrder::ByPlace,
    };

    /// Kernel 6.1 with default sysctls and huge pages.
    pub const V6_1: Rules = Rules {
        batch_limit: 256,
        per_cpu_high: PerCpuHigh::LowMark,
        free_high: PcpFreeHigh::FreeFactor,
        per_cpu_orders: true,
        avoid_fragmentation: true,
        no_whole_block_steal: false,
        watermark_boost_factor: 15_000,
        min_free_limit_kb: 262_144,
        node_order: NodeOrder::ByCount,
        ..Rules::V4_13
    };

    /// Kernel 6.12 to 6.18 with default sysctls and huge pages.
    pub const V6_12: Rules = Rules {
        per_cpu_high: PerCpuHigh::Auto,
        free_high: PcpFreeHigh::FreeCount,
        movable_excluded_from_lowmem: true,
        steal_policy: StealPolicy::ClaimThenSteal,
        no_whole_block_steal: true,
        ..Rules::V6_1
    };
}
