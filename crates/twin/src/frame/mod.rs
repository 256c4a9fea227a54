//! Page frames and the lists they are on.

mod frames;
mod list;
mod ring;
mod zone_kind;

pub use frames::{Flag, Frames, MAX_CGROUPS, Migratetype, State};
pub use list::List;
pub(crate) use ring::Ring;
pub use zone_kind::{ZONES, ZoneKind};

/// A page frame number.
pub type Pfn = u32;

/// No page.
pub const NO_PAGE: Pfn = u32::MAX;
