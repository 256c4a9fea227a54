//! Which kinds of events a subject takes, and in which half of the accumulators it is: the one table of both.

use mmtwin_event::Kind;

/// What takes the events of a kind.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    /// Nothing: they are counted.
    Count,
    // The first half. The two most frequent kinds are subjects of their own, so that each is decoded once.
    Isolate,
    ShrinkInactive,
    Reclaim,
    Throttle,
    Congestion,
    Migrate,
    Numa,
    Oom,
    // The second half.
    Slab,
    Compaction,
    Vmalloc,
    Alloc,
    Filemap,
    Thp,
}

impl Subject {
    /// That of a kind.
    #[inline(always)]
    pub(crate) const fn of(kind: Kind) -> Subject {
        use Kind::*;
        match kind {
            MmVmscanLruIsolate => Subject::Isolate,
            MmVmscanLruShrinkInactive => Subject::ShrinkInactive,
            MmVmscanMemcgIsolate
            | MmVmscanLruShrinkActive
            | MmVmscanWriteFolio
            | MmVmscanReclaimPages
            | MmVmscanDirectReclaimBegin
            | MmVmscanDirectReclaimEnd
            | MmVmscanMemcgReclaimBegin
            | MmVmscanMemcgReclaimEnd
            | MmVmscanMemcgSoftlimitReclaimBegin
            | MmVmscanMemcgSoftlimitReclaimEnd
            | MmVmscanNodeReclaimBegin
            | MmVmscanNodeReclaimEnd
            | MmVmscanKswapdWake
            | MmVmscanKswapdSleep
            | MmVmscanWakeupKswapd => Subject::Reclaim,
            MmVmscanThrottled | BalanceDirtyPages => Subject::Throttle,
            WritebackCongestionWait | WritebackWaitIffCongested => Subject::Congestion,
            MmMigratePages => Subject::Migrate,
            MmNumaMigrateRatelimit
            | SchedMoveNuma
            | SchedStickNuma
            | SchedSwapNuma
            | SchedSkipVmaNuma
            | UpdateNumaActiveNodesMask => Subject::Numa,
            MarkVictim | FinishTaskReaping | SkipTaskReaping | ReclaimRetryZone => Subject::Oom,
            MmShrinkSlabStart | MmShrinkSlabEnd => Subject::Slab,
            MmCompactionIsolateMigratepages
            | MmCompactionIsolateFreepages
            | MmCompactionFastIsolateFreepages
            | MmCompactionMigratepages
            | MmCompactionBegin
            | MmCompactionEnd
            | MmCompactionTryToCompactPages
            | MmCompactionFinished
            | MmCompactionSuitable
            | MmCompactionDeferred
            | MmCompactionDeferCompaction
            | MmCompactionDeferReset
            | MmCompactionKcompactdSleep
            | MmCompactionWakeupKcompactd
            | MmCompactionKcompactdWake
            | CompactRetry => Subject::Compaction,
            AllocVmapArea | PurgeVmapAreaLazy | FreeVmapAreaNoflush => Subject::Vmalloc,
            MmPageAlloc
            | MmPageFree
            | MmPageFreeBatched
            | MmPageAllocZoneLocked
            | MmPagePcpuDrain
            | MmPageAllocExtfrag => Subject::Alloc,
            MmFilemapAddToPageCache | MmFilemapDeleteFromPageCache => Subject::Filemap,
            MmCollapseHugePage
            | MmCollapseHugePageIsolate
            | MmKhugepagedScanPmd
            | MmKhugepagedCollapseFile
            | MmKhugepagedScanFile => Subject::Thp,
            _ => Subject::Count,
        }
    }

    /// True if it is in the second half.
    #[inline(always)]
    pub(crate) const fn is_of_second(self) -> bool {
        use Subject::*;
        matches!(self, Slab | Compaction | Vmalloc | Alloc | Filemap | Thp)
    }

    /// True if its events enter their task in the list.
    pub(crate) const fn names_its_task(self) -> bool {
        use Subject::*;
        !matches!(self, Count | Oom | Vmalloc | Alloc | Filemap | Thp)
    }
}
