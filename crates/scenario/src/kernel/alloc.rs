//! Rules of the page allocator that differ between kernels.

use super::variant::variant;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The page allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PageAlloc {
    /// Sizes of the per-CPU page lists.
    pub pageset: Pageset,
    /// Distance between the watermarks.
    pub watermarks: Watermarks,
    /// Largest `min_free_kbytes` that the kernel computes: 65536, newer 262144.
    pub min_free_kbytes_max: u64,
    /// Order of the largest free block (`MAX_ORDER`, before 6.4 less one): 10; where huge pages of 16 MiB are blocks of 4
    /// KiB pages, as on PPC64, 12.
    pub max_order: u32,
    /// Pages can be allocated in bulk (5.13+): vmalloc takes them so.
    pub bulk: bool,
}

variant! {
    /// How long a per-CPU page list gets.
    pub enum Pageset {
        /// 4.13 and older: order 0 only, batch at most 31, high 6 x batch.
        BatchTimesSix = "batch-times-six",
        /// 6.1: small orders too, batch at most 63, high from the zone's low watermark.
        LowWatermark = "low-watermark",
        /// 6.12 and newer: as 6.1, and high floats with use between that and an eighth of the zone.
        Floating = "floating",
    }
}

variant! {
    /// How watermarks follow from `min_free_kbytes`.
    pub enum Watermarks {
        /// Before 4.6: low = min + min/4, high = min + min/2.
        Quarters = "quarters",
        /// 4.6 and newer: steps of max(min/4, scale factor x managed / 10000).
        ScaleFactor = "scale-factor",
        /// 6.12 and newer: the same, but Movable does not count as low memory.
        ScaleFactorMovable = "scale-factor-movable",
    }
}
