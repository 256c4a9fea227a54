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
    /// Pages that the page allocator hands out.
    pub managed: u64,
}

impl Zone {
    /// First page frame number behind the zone.
    pub fn end_pfn(&self) -> u64 {
        self.start_pfn.saturating_add(self.spanned)
    }

    /// Bytes of memory.
    pub fn present_bytes(&self) -> u64 {
        self.present.saturating_mul(PAGE)
    }
}
