//! Parts of the lab's guest other than its kernel.
//!
//! Its CPUs are threads of a host ([`host`]) or take turns ([`turns`]), its recorder is a task among the others
//! ([`recorder`]), and its programs have an image in memory ([`image`], [`program`]).

pub(crate) mod host;
pub(crate) mod image;
pub(crate) mod program;
pub(crate) mod recorder;
pub(crate) mod turns;
