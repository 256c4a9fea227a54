//! How the kernels that reclaim by zones differ from each other, rule by rule.

/// The rules of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    /// Where tasks wait that reclaim.
    pub waits: Waits,
    /// Neighbours of a page that is taken for a block.
    pub neighbours: Neighbours,
    /// The second pass over a batch that is reclaimed for a block.
    pub sync_pass: SyncPass,
    /// A page that is kept for another reason than a write ends lumpy mode for the rest of its batch.
    pub keep_ends_mode: bool,
    /// So does a batch of active pages (`reset_reclaim_mode` in `shrink_active_list`; 3.4).
    pub active_ends_mode: bool,
    /// Reclaim for orders above 3 may write to congested devices.
    pub costly_writes: bool,
    /// How memory is reclaimed for a block.
    pub blocks: Blocks,
    /// Reclaimers that write dirty pages of files.
    pub dirty_files: DirtyFiles,
    /// A batch with many pages under writeback makes its reclaimer wait (3.2 and later).
    pub throttles_batch: bool,
    /// When kswapd has done enough.
    pub balanced: Balanced,
    /// kswapd reclaims for single pages where compaction could work, and compacts before it sleeps (3.4).
    pub kswapd_order_zero: bool,
    /// kswapd is woken, with an event, only while it sleeps (2.6.38 and later).
    pub wakes_sleepers: bool,
    /// The kernel has compaction (`CONFIG_COMPACTION`).
    pub compaction: bool,
    /// Tasks compact for every order above 0, not only for costly ones, and after a reclaim wait for pages.
    pub compacts_any_order: bool,
    /// Anonymous memory ages where there is no swap, and no longer where swap is full (2.6.36).
    pub ages_without_swap: bool,
    /// Scans of less than a batch are saved up (before 3.0).
    pub saves_scans: bool,
    /// Effect of references of a page.
    pub references: References,
    /// A task gives up when kswapd has given all its zones up (2.6.39 and later), not when it finds them hopeless itself.
    pub trusts_kswapd: bool,
    /// How much of a cache is scanned.
    pub slabs: Slabs,
    /// Values of `isolate_mode` in the event.
    pub isolate_modes: IsolateModes,
}

impl Variant {
    /// 2.6.36.
    pub const V2_6_36: Variant = Variant {
        waits: Waits::Always,
        neighbours: Neighbours::PassOver,
        sync_pass: SyncPass::CongestionWait,
        keep_ends_mode: false,
        active_ends_mode: true,
        costly_writes: false,
        blocks: Blocks::Lumpy,
        dirty_files: DirtyFiles::All,
        throttles_batch: false,
        balanced: Balanced::AllZones,
        kswapd_order_zero: false,
        wakes_sleepers: false,
        compaction: true,
        compacts_any_order: false,
        ages_without_swap: true,
        saves_scans: true,
        references: References::Pre3_3,
        trusts_kswapd: false,
        slabs: Slabs::WindUp,
        isolate_modes: IsolateModes::Numbers,
    };
}

/// Waiting for congested devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// Always (`congestion_wait`): 2.6.36.
    Always,
    /// Between two attempts to allocate only while a device is congested (`wait_iff_congested`): late 2010.
    IfDevice,
    /// In reclaim too; also while half as many pages are under writeback as are inactive: first posting of 2010.
    IfWriteback,
    /// The zone has to be congested too, which batches without dirty pages make it as well: 2.6.37.
    IfZoneOrClean,
    /// The zone has to be congested too: 2.6.38 and later.
    IfZone,
}

/// Behaviour of lumpy reclaim at a neighbour that cannot be isolated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Neighbours {
    /// It is skipped: 2.6.36.
    PassOver,
    /// It gives the block up: late 2010 to 3.3.
    GiveUp,
    /// It gives the block up, and looks for neighbours in lumpy mode only: 3.4 without compaction.
    GiveUpInMode,
    /// There is none where memory is reclaimed for compaction: 3.4.
    Left,
}

/// Conditions of the second pass over a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncPass {
    /// Whenever not all of it is free, after a wait for congestion: 2.6.36.
    CongestionWait,
    /// At once, if all that was kept is being written: late 2010 to 3.4.
    Writeback,
    /// Never: 3.5, and the first posting of 2010, whose second pass began with dirty pages only, which end lumpy mode.
    None,
}

/// How memory is reclaimed for a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocks {
    /// In lumpy mode, which takes pages of all lists and spares none that was used: 2010. A second pass waits for its own
    /// writes, and a zone is shrunk until the whole reclaim has enough.
    Lumpy,
    /// In lumpy mode, without these two: 2.6.38 to 3.4 without compaction.
    LumpyByZone,
    /// So much that compaction can work, unless the last batch has kept a page or was of active ones, which ends the mode:
    /// 2.6.38 to 3.4.
    CompactionMode,
    /// So much that compaction can work: 3.5.
    Compaction,
    /// Page by page: 3.5 without compaction.
    Single,
}

impl Blocks {
    /// Lumpy mode is one that takes pages of all lists.
    pub(super) fn is_lumpy(self) -> bool {
        matches!(self, Blocks::Lumpy | Blocks::LumpyByZone)
    }

    /// Pages are reclaimed for compaction.
    pub(super) fn for_compaction(self) -> bool {
        matches!(self, Blocks::CompactionMode | Blocks::Compaction)
    }
}

/// Reclaimers that write dirty pages of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirtyFiles {
    /// Every reclaimer: 2010.
    All,
    /// kswapd. A batch with dirty pages has the flusher write: first posting of 2010.
    Kswapd,
    /// kswapd, below priority 10; others leave them to the flusher (3.2 and later).
    KswapdLowPriority,
}

/// When a node is balanced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balanced {
    /// All zones are above their high marks; a zone with eight times as much is skipped: 2010.
    AllZones,
    /// For orders above 0 zones with a quarter of the pages are. A zone that exceeds the mark by a hundredth of its
    /// pages is skipped (2.6.39 and later).
    Quarter,
}

/// Effect of references of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum References {
    /// A page that was referenced once stays, and is freed next time if it is clean: 2010.
    Pre3_3,
    /// One of an executable file becomes active at once, and anonymous memory does not have to be clean: 3.3.
    Since3_3,
}

/// How much of a cache is scanned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slabs {
    /// Deferred scans add up, without events: to 3.0.
    WindUp,
    /// Deferred scans are done slowly, with events: 3.1 to 3.11.
    Bounded,
}

/// Values of `isolate_mode` in the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsolateModes {
    /// Inactive 0, active 1, both 2: to 3.1.
    Numbers,
    /// Inactive 1, active 2, both 3: 3.2 to 3.4.
    Bits,
    /// Nothing of this: 3.5.
    None,
}
