//! Real kernels in QEMU: one program, so that it is linked once.

mod common;
mod disks;
mod guest;
mod invariants;
mod module;
mod state;
mod variants;
