//! What is done to hostile files, within limits of memory and time: a program of its own, whose allocator counts.

mod fuzz;
mod limits;
#[path = "common/memory.rs"]
mod memory;
