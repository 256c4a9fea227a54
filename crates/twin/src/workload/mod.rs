//! The workload's rates turned into accesses of memory, and what its threads do in tight loops.
//!
//! Three readers of one program: [`sampled`] draws per epoch how many pages are touched for the first time and which,
//! so its cost grows with faults, not with touches; [`explicit`] makes every touch and is what the sampled one is checked
//! against; [`replay`] makes the touches of an access trace ([`trace`]). [`accessor`] has the accesses of one thread.
//! [`alloc_loop`] runs loops of one allocation and its free, many at once where they are alike.

pub(crate) mod accessor;
pub(crate) mod ahead;
pub mod alloc_loop;
pub(crate) mod alloc_loop_batched;
pub(crate) mod explicit;
pub(crate) mod replay;
pub(crate) mod sampled;
pub mod trace;
