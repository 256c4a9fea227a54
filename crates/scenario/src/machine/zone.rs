//! Zones of a node.

use crate::units::PAGE;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The zones an x86-64 kernel has, from low to high addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ZoneKind {
    /// The first 16 MiB.
    #[serde(rename = "DMA")]
    Dma,
    /// Up to 4 GiB.
    #[serde(rename = "DMA32")]
    Dma32,
    /// Above 4 GiB.
    Normal,
    /// Only pages that can be moved.
    Movable,
}

/// A populated zone. Sizes are in pages of 4 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Zone {
    /// Which one.
    pub kind: ZoneKind,
    /// First page frame number.
    pub start_pfn: u64,
    /// Page frames from the first to the last, with holes.
    pub spanned: u64,
    /// Page frames that are memory.
    pub present: u64,
    /// Pages of the page allocator (`managed`).
    pub managed: u64,
}

impl Zone {
    /// First page frame number behind the zone.
    pub fn end_pfn(&self) -> u64 {
        self.start_pfn.saturating_add(self.spanned)
    }
}

/// First page frame of DMA32.
const DMA32_START: u64 = 16 << 20 >> 12;
/// First page frame of Normal.
const NORMAL_START: u64 = 4 << 30 >> 12;
/// First page frame below 4 GiB that devices use instead of memory.
const HOLE_START: u64 = 3 << 30 >> 12;
/// Zone DMA of a PC: page frame 0 is never used, the firmware keeps some, and the kernel some more.
const DMA: Zone = Zone { kind: ZoneKind::Dma, start_pfn: 1, spanned: 4095, present: 3998, managed: 3840 };
/// Bytes of `struct page`.
const STRUCT_PAGE: u64 = 64;

/// Zones of nodes whose memory, in pages, follows each other from address 0 on with a hole from 3 to 4 GiB; the last
/// `movable` pages of a node are Movable.
///
/// Sizes of DMA, and the hole, are those of a running 6.18 kernel. Managed pages are those without the page structures
/// of the zone; that kernel keeps 0.4 % less of DMA32 than this.
pub(super) fn derive(memory: &[(u64, u64)]) -> Vec<Vec<Zone>> {
    let mut next = 0;
    let node = |(pages, movable): &(u64, u64)| {
        let start = next;
        // Address behind the node's memory, jumping over the hole.
        let end = |pages: u64| match start + pages {
            end if start < HOLE_START && end > HOLE_START => end + (NORMAL_START - HOLE_START),
            end => end,
        };
        let (node_end, movable_start) = (end(*pages), end(pages - movable));
        next = if node_end == HOLE_START { NORMAL_START } else { node_end };
        let limits = [
            (ZoneKind::Dma, 0, DMA32_START.min(movable_start)),
            (ZoneKind::Dma32, DMA32_START, NORMAL_START.min(movable_start)),
            (ZoneKind::Normal, NORMAL_START, movable_start),
            (ZoneKind::Movable, movable_start, node_end),
        ];
        let zone = |(kind, low, high): (ZoneKind, u64, u64)| {
            let (low, high) = (low.max(start), high.min(node_end));
            let spanned = high.saturating_sub(low);
            let hole = high.min(NORMAL_START).saturating_sub(low.max(HOLE_START));
            let present = spanned.saturating_sub(hole);
            if kind == ZoneKind::Dma && low == 0 && high == DMA32_START {
                return Some(DMA);
            }
            let structures = (present * STRUCT_PAGE).div_ceil(PAGE);
            (present > 0).then_some(Zone { kind, start_pfn: low, spanned, present, managed: present - structures })
        };
        limits.into_iter().filter_map(zone).collect()
    };
    memory.iter().map(node).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 18;

    fn summary(zones: &[Zone]) -> Vec<(ZoneKind, u64, u64, u64)> {
        zones.iter().map(|z| (z.kind, z.start_pfn, z.spanned, z.present)).collect()
    }

    #[test]
    fn low_memory_has_the_boundaries_of_a_running_kernel() {
        let nodes = derive(&[(63 * GIB, 0), (63 * GIB, 0)]);
        let expected = vec![
            (ZoneKind::Dma, 1, 4095, 3998),
            (ZoneKind::Dma32, 4096, 1_044_480, 782_336),
            (ZoneKind::Normal, 1_048_576, 60 * GIB, 60 * GIB),
        ];
        assert_eq!(summary(&nodes[0]), expected);
        assert_eq!(summary(&nodes[1]), [(ZoneKind::Normal, 64 * GIB, 63 * GIB, 63 * GIB)]);
    }

    #[test]
    fn small_nodes_share_low_memory() {
        let nodes = derive(&[(GIB, 0), (0, 0), (3 * GIB, 0)]);
        assert_eq!(
            summary(&nodes[0]),
            [(ZoneKind::Dma, 1, 4095, 3998), (ZoneKind::Dma32, 4096, GIB - 4096, GIB - 4096)]
        );
        assert!(nodes[1].is_empty());
        let expected = [(ZoneKind::Dma32, GIB, 3 * GIB, 2 * GIB), (ZoneKind::Normal, 4 * GIB, GIB, GIB)];
        assert_eq!(summary(&nodes[2]), expected);
    }

    #[test]
    fn a_node_that_ends_at_the_hole_is_followed_from_4_gib_on() {
        let nodes = derive(&[(3 * GIB, 0), (GIB, GIB / 2)]);
        assert_eq!(nodes[0].last().map(Zone::end_pfn), Some(3 * GIB));
        let expected =
            [(ZoneKind::Normal, 4 * GIB, GIB / 2, GIB / 2), (ZoneKind::Movable, 4 * GIB + GIB / 2, GIB / 2, GIB / 2)];
        assert_eq!(summary(&nodes[1]), expected);
    }

    #[test]
    fn no_page_is_lost_but_those_the_firmware_keeps() {
        for pages in [1, 100, 4095, 4096, 5000, 3 * GIB, 3 * GIB + 1, 9 * GIB + 77] {
            for movable in [0, pages / 3, pages] {
                let nodes = derive(&[(pages, movable), (GIB, 0)]);
                let present: u64 = nodes.iter().flatten().map(|z| z.present).sum();
                let kept = if nodes[0].first() == Some(&DMA) { 4096 - 3998 } else { 0 };
                assert_eq!(present, pages + GIB - kept, "{pages} pages, {movable} movable");
                assert!(
                    nodes.iter().flatten().collect::<Vec<_>>().windows(2).all(|z| z[0].end_pfn() <= z[1].start_pfn)
                );
            }
        }
    }
}
