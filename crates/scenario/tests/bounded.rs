//! Hostile files are processed within limits of memory and time: a program of its own, with a counting allocator.

mod fuzz;
mod limits;
#[path = "common/memory.rs"]
mod memory;
