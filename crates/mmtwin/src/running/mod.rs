//! Running a scenario on one of the arms. Each leaves the same: an analysed input, and a recording if one is wanted.

mod as_recorded;
mod host;
mod lab;
mod signals;
mod state;
mod twin;

pub use host::on_host;
pub use lab::{LabOptions, on_lab};
pub use signals::Signals;
pub use state::state_of;
pub(crate) use twin::source;
pub use twin::{Request, Simulated, access_trace, run_headless, simulate};
