//! Page frames and the lists they are on.

mod frame;
mod list;

pub use frame::{Frames, Migratetype, State};
pub use list::List;

/// A page frame number.
pub type Pfn = u32;

/// No page.
pub const NO_PAGE: Pfn = u32::MAX;
