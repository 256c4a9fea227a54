//! The twin beside what others measured: published figures, and real kernels in the lab.

pub mod fidelity;
pub mod reproduce;
