//! vmalloc.
pub mod histogram;
pub mod outcome;
pub mod params;
pub mod pass;
mod rates;
pub mod stress;
/// x
pub fn run_rates(p: &params::Params, seed: u64) -> outcome::Outcome { rates::run(p, seed) }
