//! Reading and writing of kernel traces.
//!
//! Every reader ends in the same place: it calls a [`Sink`](mmtwin_event::Sink). [`format`] compiles the format
//! texts of a recording into layouts and print programs; [`ring`] walks ring-buffer pages and merges CPUs;
//! [`text`] reads ftrace lines; [`dat`] reads and writes `trace.dat`; [`recording`] is mmtwin's own directory.
//! [`input::open`] tells which of them a file needs.

pub mod error;

pub use error::{At, Error, Place, Warning, Warnings};
