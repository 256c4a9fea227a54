//! Running a scenario's workload on the simulated kernel.

mod page_loop;

pub use page_loop::page_loop;

use crate::build::BuildError;
use crate::kernel::KernelError;

/// Why a run ended without a result.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RunError {
    /// The scenario cannot be simulated.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The kernel refused something.
    #[error(transparent)]
    Kernel(#[from] KernelError),
}
