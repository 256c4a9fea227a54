//! Zones and their boundaries on x86-64: `free_area_init`, 4.13 to 6.18.
//!
//! DMA is below 16 MiB, DMA32 below 4 GiB, Normal above; Movable and Device exist but are empty, as they are unless
//! configured. A zone spans its part of the node from the node's first to its last page. Checked on the zones that
//! kernels 6.1 and 6.18 print (`tests/zoneinfo.rs`).

use super::Marks;
use crate::frame::{List, Migratetype, ZONES, ZoneKind};
use crate::hw::{Machine, Node};
use std::ops::Range;

/// log2 of the pages of the largest block that any kernel has; that of a kernel is
/// [`Rules::max_order`](super::Rules::max_order).
pub const MAX_ORDER: u32 = 13;
/// log2 of the pages of a huge page of x86-64; processes have no others.
pub const HUGE_ORDER: u32 = 9;

/// A zone of a node.
#[derive(Clone, Debug)]
pub struct Zone {
    /// Its node.
    pub node: usize,
    /// Its kind.
    pub kind: ZoneKind,
    /// First page frame.
    pub start_pfn: u64,
    /// Page frames from the first to the last, holes included.
    pub spanned: u64,
    /// Page frames that exist.
    pub present: u64,
    /// Pages that the allocator has been given.
    pub managed: u64,
    /// Watermarks, without the boost.
    pub marks: Marks,
    /// How blocks are counted against them ([`super::Rules::marks_by_order`]).
    pub by_order: bool,
    /// Pages that all marks are raised by.
    pub boost: u64,
    /// They have just been raised, so kswapd is to be woken (`ZONE_BOOSTED_WATERMARK`).
    pub boosted: bool,
    /// kswapd works for it: CPUs keep few of its pages for themselves (`ZONE_RECLAIM_ACTIVE`, 5.14 and later).
    pub reclaim_active: bool,
    /// An allocation has found it below its high mark, and no return of pages since has found it above (6.7 and later).
    pub below_high: bool,
    /// Number of frees to the free lists.
    pub returned: u64,
    /// Pages kept from requests that could have used a higher kind, by that kind.
    pub lowmem_reserve: [u64; ZONES],
    /// Free blocks by order and migratetype.
    pub(crate) free: [[List; Migratetype::COUNT]; MAX_ORDER as usize + 1],
}

impl Zone {
    /// True if it has pages.
    pub fn populated(&self) -> bool {
        self.present > 0
    }

    /// True if a page frame lies between its first and last.
    pub fn spans(&self, pfn: u64) -> bool {
        (self.start_pfn..self.start_pfn + self.spanned).contains(&pfn)
    }
}

/// All zones of a machine, by number.
pub(super) fn of_machine(machine: &Machine) -> Vec<Zone> {
    let of_node = |(node, at): (usize, &Node)| {
        let ends = (at.memory.first().map_or(0, |range| range.start), at.memory.last().map_or(0, |range| range.end));
        ZoneKind::ALL.map(|kind| {
            let span = intersection(&kind.frames(), &(ends.0..ends.1));
            let pages = |ranges: &[Range<u64>]| -> u64 {
                ranges
                    .iter()
                    .map(|range| intersection(range, &kind.frames()))
                    .map(|range| range.end - range.start)
                    .sum()
            };
            let present = pages(&at.memory);
            Zone {
                node,
                kind,
                start_pfn: span.start,
                spanned: if present > 0 { span.end - span.start } else { 0 },
                present,
                managed: present - pages(&at.reserved),
                marks: Marks::default(),
                by_order: false,
                boost: 0,
                boosted: false,
                reclaim_active: false,
                below_high: false,
                returned: 0,
                lowmem_reserve: [0; ZONES],
                free: Default::default(),
            }
        })
    };
    machine.nodes.iter().enumerate().flat_map(of_node).collect()
}

/// Ranges of a zone's pages that the allocator is given, ascending.
pub(super) fn managed_ranges(machine: &Machine, zone: &Zone) -> Vec<Range<u64>> {
    let node = &machine.nodes[zone.node];
    let mut ranges = Vec::new();
    for memory in &node.memory {
        let memory = intersection(memory, &zone.kind.frames());
        let mut at = memory.start;
        for reserved in node.reserved.iter().map(|range| intersection(range, &memory)).filter(|range| !range.is_empty())
        {
            ranges.push(at..reserved.start);
            at = reserved.end;
        }
        ranges.push(at..memory.end);
    }
    ranges.retain(|range| !range.is_empty());
    ranges
}

/// Intersection of two ranges; empty ranges have equal ends.
fn intersection(a: &Range<u64>, b: &Range<u64>) -> Range<u64> {
    let start = a.start.max(b.start);
    start..a.end.min(b.end).max(start)
}
