//! Page frames and the lists they are on.

mod frame;
mod list;
mod ring;

pub use frame::{Flag, Frames, MAX_CGROUPS, Migratetype, State};
pub use list::List;
pub(crate) use ring::Ring;

/// A page frame number.
pub type Pfn = u32;

/// No page.
pub const NO_PAGE: Pfn = u32::MAX;
