//! Checks beyond the types: ranges, names that must exist, variants that exclude each other.

mod kernel;
mod madvise;
mod process;
mod run;
mod size;

use crate::Scenario;
use crate::check::Check;

/// Checks a scenario whose machine is sound, and drops parameters that a variant of the kernel does not use.
pub(crate) fn check(scenario: &mut Scenario, check: &mut Check<'_>) {
    kernel::check(&mut scenario.kernel, &scenario.machine, check);
    process::check(scenario, check);
    run::check(scenario, check);
}
