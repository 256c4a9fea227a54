//! What the types cannot say: ranges, names that must exist, variants that do not go together.

mod kernel;
mod process;
mod run;
mod size;

use crate::Scenario;
use crate::check::Check;

/// Checks a scenario whose machine is sound, and drops what a variant of the kernel has no use for.
pub(crate) fn check(scenario: &mut Scenario, check: &mut Check<'_>) {
    kernel::check(&mut scenario.kernel, &scenario.machine, check);
    process::check(scenario, check);
    run::check(scenario, check);
}
