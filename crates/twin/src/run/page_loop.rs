//! The published page allocator benchmark: every thread, on a CPU of its own, allocates a page and frees it, over and
//! over, all beginning together.

use super::RunError;
use crate::alloc::Request;
use crate::build::{self, BuildError, kernel_of};
use crate::kernel::{AllocLoop, LoopResult};
use crate::probe::Probe;
use mmtwin_scenario::Scenario;
use mmtwin_scenario::workload::{ActionKind, Gfp};
use mmtwin_workload::program;

/// Runs a scenario of one process with one phase whose only work is a `page-loop` of all threads.
pub fn page_loop(scenario: &Scenario) -> Result<LoopResult, RunError> {
    let work = work(scenario)?;
    Ok(kernel_of(scenario, Probe::off())?.run_loops(&work)?)
}

fn work(scenario: &Scenario) -> Result<AllocLoop, BuildError> {
    let only = "page loops run with one process, one phase and one action, pinned, of all its threads";
    let refuse = |what| Err(BuildError::NotModelled(what, only));
    let [process] = &scenario.processes[..] else { return refuse("process") };
    let [phase] = &process.phases[..] else { return refuse("process.phase") };
    let ([action], []) = (&phase.actions[..], &phase.accesses[..]) else { return refuse("process.phase.action") };
    let ActionKind::PageLoop { order, gfp, node, policy, hold: 1, count: Some(loops), rate: None } = &action.kind
    else {
        return refuse("process.phase.action with `hold`, `rate` or no `count`");
    };
    if node.is_some() {
        return refuse("process.phase.action.node");
    }
    if action.threads.numbers(process.threads).len() != process.threads as usize {
        return refuse("process.phase.action.threads");
    }
    let threads = program::threads(process, 0, scenario.machine.cpus.len() as u32, scenario.run.seed);
    let Some(cpus) = threads.iter().map(|thread| thread.pinned).collect::<Option<Vec<u32>>>() else {
        return refuse("process.pin = false");
    };
    let request = match gfp {
        Gfp::Atomic => Request::ATOMIC,
        Gfp::Kernel => Request::KERNEL,
        Gfp::HighuserMovable => Request::USER,
        Gfp::TransHugeLight => return refuse("GFP_TRANSHUGE_LIGHT"),
    };
    let policy = build::policy(policy.as_ref().unwrap_or(&process.policy), &scenario.machine)?;
    Ok(AllocLoop { cpus, loops: *loops, request: request.of_order(*order), policy })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn scenario(action: &str) -> Scenario {
        let text = format!(
            "[machine]\npreset = \"broadwell-2s-88\"\n[kernel]\nrelease = \"4.13\"\n[[process]]\nname = \"p\"\n\
             threads = 88\npin = true\n[[process.phase]]\n[[process.phase.action]]\nkind = \"page-loop\"\n{action}"
        );
        mmtwin_scenario::parse("test", &text, Path::new(""), &[]).unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn the_base_kernel_takes_what_was_published() {
        let result = page_loop(&scenario("order = 0\ngfp = \"GFP_ATOMIC\"\ncount = 20000\n")).unwrap();
        assert!((result.cycles() / 537.0 - 1.0).abs() < 0.03, "{}", result.cycles());
        assert!((result.throughput() / 358_906_028.0 - 1.0).abs() < 0.03, "{}", result.throughput());
    }

    #[test]
    fn what_is_not_modelled_is_refused() {
        let error = page_loop(&scenario("hold = 4\ncount = 100\n")).unwrap_err().to_string();
        assert!(error.starts_with("process.phase.action with `hold`"), "{error}");
    }
}
