//! The nearest of the known words, for error messages.

pub(crate) use mmtwin_event::words::{near, nearest};
