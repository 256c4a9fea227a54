//! The kinds of zones and the page frames that they may have: `enum zone_type` of x86-64.

use std::ops::Range;

/// Zones of a node.
pub const ZONES: usize = 5;

/// The kinds of zones, from low to high.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(usize)]
pub enum ZoneKind {
    /// Below 16 MiB.
    Dma = 0,
    /// 16 MiB to 4 GiB.
    Dma32 = 1,
    /// Above 4 GiB.
    Normal = 2,
    /// Movable pages only.
    Movable = 3,
    /// Device memory.
    Device = 4,
}

impl ZoneKind {
    /// All, from low to high.
    pub const ALL: [ZoneKind; ZONES] =
        [ZoneKind::Dma, ZoneKind::Dma32, ZoneKind::Normal, ZoneKind::Movable, ZoneKind::Device];

    /// Name as the kernel prints it.
    pub fn name(self) -> &'static str {
        ["DMA", "DMA32", "Normal", "Movable", "Device"][self as usize]
    }

    /// Page frames that can be of such a zone.
    pub(crate) fn frames(self) -> Range<u64> {
        match self {
            ZoneKind::Dma => 0..1 << 12,
            ZoneKind::Dma32 => 1 << 12..1 << 20,
            ZoneKind::Normal => 1 << 20..u64::MAX,
            ZoneKind::Movable | ZoneKind::Device => 0..0,
        }
    }
}
