//! How much may be dirty: `global_dirtyable_memory`, `domain_dirty_limits`, `calculate_totalreserve_pages`,
//! `node_dirtyable_memory`, `node_dirty_ok`, `writeback_set_ratelimit` (3.1 to 6.18).
//!
//! Limits are parts of what could become dirty: free pages above the reserves, and pages of files on the LRU lists; before
//! 3.14 also of anonymous memory, while there is swap. Not modelled: that swap is full, more room for real-time tasks,
//! limits of zones (3.2 to 4.7: those of their node are used), high memory. Checked against `nr_dirty_threshold` and
//! `nr_dirty_background_threshold` of guests by a test here, and with the recordings of docs/fidelity.md.

use super::PageAllocator;
use crate::frame::{ZONES, ZoneKind};
use crate::vmstat::{NodeItem, VmStat, ZoneItem};

/// Parts of which a percentage is taken: the kernel counts in 1/4096.
const PARTS: u64 = 4096;

/// A limit as it was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Percent of the memory that can become dirty (`vm.dirty_ratio`).
    Percent(u64),
    /// Pages (`vm.dirty_bytes`).
    Pages(u64),
}

/// Limits above this count as this, so that the arithmetic of 64 bits does not overflow (6.10 and later; 16 TiB).
const MOST_PAGES: u64 = u32::MAX as u64;

impl Limit {
    /// Pages of so much memory.
    fn of(self, available: u64) -> u64 {
        match self {
            Limit::Percent(percent) => percent.min(100) * PARTS / 100 * available / PARTS,
            Limit::Pages(pages) => pages.min(MOST_PAGES),
        }
    }
}

/// The limits as they were set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Where background writing begins.
    pub background: Limit,
    /// Where writers stop.
    pub hard: Limit,
    /// Anonymous memory could become dirty too (before 3.14, where there is swap).
    pub anon: bool,
}

/// Current limits, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Thresholds {
    /// Where background writing begins.
    pub background: u64,
    /// Where writers stop.
    pub hard: u64,
}

impl Thresholds {
    /// Limits of which the first is below the second.
    fn new(background: u64, hard: u64) -> Thresholds {
        Thresholds { background: if background >= hard { hard / 2 } else { background }, hard }
    }

    /// No writer is throttled below this (`dirty_freerun_ceiling`).
    pub(crate) fn freerun(self) -> u64 {
        (self.background + self.hard) / 2
    }
}

/// Dirtyable pages of the first node at boot: two sections less the kernel.
const FIRST_NODE_PAGES: u64 = 54_000;
/// Pages of a section of memory (`PAGES_PER_SECTION`).
const SECTION_PAGES: u64 = 32_768;

impl Limits {
    /// Limits for this many dirtyable pages.
    fn at(&self, available: u64) -> Thresholds {
        Thresholds::new(self.background.of(available), self.hard.of(available))
    }

    /// Current limits.
    pub fn now(&self, alloc: &PageAllocator, stat: &VmStat) -> Thresholds {
        self.at(self.available(alloc, stat))
    }

    /// Pages that could become dirty (`global_dirtyable_memory`).
    pub(crate) fn available(&self, alloc: &PageAllocator, stat: &VmStat) -> u64 {
        self.dirtyable(alloc, stat, 0..alloc.zones.len()) + 1
    }

    /// Limits of a cgroup of whose memory so much can become dirty, of `all` that can: limits in bytes count as parts of
    /// that.
    pub(crate) fn of_cgroup(&self, available: u64, all: u64) -> Thresholds {
        let part = |limit: Limit| match limit {
            Limit::Percent(_) => limit.of(available),
            Limit::Pages(pages) => (pages * PARTS).div_ceil(all).min(PARTS) * available / PARTS,
        };
        Thresholds::new(part(self.background), part(self.hard))
    }

    /// Limits when the machine booted, as its CPUs came online (`page_writeback_cpu_online`): of each node only the first
    /// sections of 128 MiB had been initialised then (`defer_init`; 4.2 and newer). Measured in guests of one node, 320
    /// MiB to 1 GiB, on 6.1: 53,500 to 54,100 pages were dirtyable.
    pub(crate) fn at_boot(&self, alloc: &PageAllocator, stat: &VmStat) -> Thresholds {
        let nodes = (alloc.zones.len() / ZONES) as u64;
        let initialised = FIRST_NODE_PAGES + SECTION_PAGES * nodes.saturating_sub(1);
        self.at(self.dirtyable(alloc, stat, 0..alloc.zones.len()).min(initialised) + 1)
    }

    /// Pages of whole nodes' zones that could become dirty.
    fn dirtyable(&self, alloc: &PageAllocator, stat: &VmStat, zones: std::ops::Range<usize>) -> u64 {
        let populated = || zones.clone().filter(|&zone| alloc.zones[zone].managed > 0);
        let free: u64 = populated().map(|zone| stat.plain(zone, ZoneItem::FreePages)).sum();
        let reserve: u64 = populated().map(|zone| reserve(alloc, zone)).sum();
        let nodes = zones.start / ZONES..zones.end / ZONES;
        let lists: &[NodeItem] = match self.anon {
            false => &[NodeItem::InactiveFile, NodeItem::ActiveFile],
            true => &[NodeItem::InactiveFile, NodeItem::ActiveFile, NodeItem::InactiveAnon, NodeItem::ActiveAnon],
        };
        let listed = nodes.map(|node| lists.iter().map(|&item| stat.pages.of(node, item)).sum::<u64>()).sum::<u64>();
        free.saturating_sub(reserve) + listed
    }

    /// True if a node may have one more page that will be dirtied.
    pub(crate) fn node_has_room(&self, alloc: &PageAllocator, stat: &VmStat, node: usize) -> bool {
        let memory = self.dirtyable(alloc, stat, node * ZONES..(node + 1) * ZONES);
        let limit = match self.hard {
            Limit::Percent(percent) => percent.min(100) * memory / 100,
            Limit::Pages(pages) => {
                pages.min(MOST_PAGES) * memory / (self.dirtyable(alloc, stat, 0..alloc.zones.len()) + 1)
            }
        };
        stat.pages.of(node, NodeItem::Dirty) + stat.pages.of(node, NodeItem::Writeback) <= limit
    }
}

/// Pages of a zone that the kernel keeps for itself.
fn reserve(alloc: &PageAllocator, zone: usize) -> u64 {
    let of = &alloc.zones[zone];
    let most =
        ZoneKind::ALL.iter().filter(|kind| **kind >= of.kind).map(|kind| of.lowmem_reserve[*kind as usize]).max();
    (most.unwrap_or(0) + of.marks.high).min(of.managed)
}

/// Pages that a CPU may dirty before its task checks the limits (`ratelimit_pages`).
pub(crate) fn ratelimit_pages(hard: u64, cpus: usize) -> u64 {
    (hard / (cpus as u64 * 32)).max(16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_the_kernels() {
        let limits = Limits { background: Limit::Percent(50), hard: Limit::Percent(70), anon: false };
        // A guest with kernel 6.1 printed these two together.
        assert_eq!(limits.at(72_525), Thresholds { background: 36_262, hard: 50_763 });
        assert_eq!(limits.at(72_525).freerun(), 43_512);
        // Of a cgroup with a quarter of what can become dirty.
        assert_eq!(limits.of_cgroup(20_000, 80_000), limits.at(20_000));
        let bytes = Limits { background: Limit::Pages(4000), hard: Limit::Pages(8000), anon: false };
        assert_eq!(bytes.of_cgroup(20_000, 80_000), Thresholds { background: 1000, hard: 2001 });
        // One that is not below the other is half of it.
        let limits = Limits { background: Limit::Percent(10), hard: Limit::Pages(1000), anon: false };
        assert_eq!(limits.at(20_000), Thresholds { background: 500, hard: 1000 });
        assert_eq!([ratelimit_pages(49_000, 3), ratelimit_pages(100, 3)], [510, 16]);
    }
}
