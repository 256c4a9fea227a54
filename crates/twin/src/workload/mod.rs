//! The workload's rates turned into accesses of memory, and tight loops of its threads.
//!
//! Three readers of one program: [`sampled`] draws per epoch the number of pages with a first access and the pages, so
//! its cost grows with faults, not with accesses; [`explicit`] makes every access, and the sampled mode is checked
//! against it; [`replay`] makes the accesses of an access trace ([`trace`]). [`accessor`] has the accesses of one
//! thread. [`alloc_loop`] runs loops of one allocation and its free, many at once where they are equal.

pub(crate) mod accessor;
pub(crate) mod ahead;
pub mod alloc_loop;
pub(crate) mod alloc_loop_batched;
pub(crate) mod explicit;
pub(crate) mod latencies;
pub(crate) mod replay;
pub(crate) mod sampled;
pub mod trace;
