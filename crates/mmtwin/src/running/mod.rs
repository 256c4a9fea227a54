//! Running a scenario on one of the arms. The host and the lab leave a recording, which [`Trace`](crate::Trace) reads; the
//! twin's run is analysed while it goes on, and recorded if that is wanted.

mod as_recorded;
mod host;
mod lab;
mod lab_state;
mod state;
mod twin;

pub use host::on_host;
pub use lab::{LabOptions, on_lab, origin};
pub use lab_state::state_of_the_lab;
pub use state::{STATE_FILES, state_of};
pub use twin::{Request, Simulated, access_trace, run, source};
