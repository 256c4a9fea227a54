//! vmalloc.
pub mod free_tree;
pub mod histogram;
pub mod outcome;
pub mod params;
pub mod pass;
mod rates;
pub mod space;
pub mod stress;
pub mod vmallocinfo;
/// x
pub fn run_rates(p: &params::Params, seed: u64) -> outcome::Outcome { rates::run(p, seed) }
