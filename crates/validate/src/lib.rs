//! The twin beside what others measured: published figures ([`reproduce`]), and real kernels in the lab ([`fidelity`]).

mod error;
pub mod fidelity;
pub mod reproduce;
mod text;

pub use error::Error;
