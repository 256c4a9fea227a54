//! `[run]`.

use crate::Scenario;
use crate::check::Check;
use crate::units::Time;
use mmtwin_event::{era, words};

/// Shortest and longest epoch of the twin.
const EPOCHS: (Time, Time) = (Time(100_000), Time(10_000_000));

pub(super) fn check(scenario: &Scenario, check: &mut Check<'_>) {
    let run = &scenario.run;
    check.require((EPOCHS.0..=EPOCHS.1).contains(&run.epoch), "run.epoch", || {
        format!("an epoch is {} to {}", EPOCHS.0, EPOCHS.1)
    });
    check.require(run.sample.0 == 0 || run.sample >= run.epoch, "run.sample", || {
        format!("samples are 0 (off) or at least an epoch ({}) apart", run.epoch)
    });
    check.require(run.duration != Some(Time(0)), "run.duration", || "a run lasts longer than 0".into());
    // Seeds of more bits cannot be written in TOML.
    check.require(i64::try_from(run.seed).is_ok(), "run.seed", || "a seed has at most 63 bits".into());
    let era = scenario.kernel.events.era();
    for (i, pattern) in run.events.iter().enumerate() {
        let matches = |system: &str, name: &str| {
            words::glob(pattern, name) || words::glob(pattern, &format!("{system}:{name}"))
        };
        let known = era::definitions().any(|event| event.era == era && matches(event.system, event.name));
        // Events of the twin's own decisions are not in the kernel's tables.
        let own = pattern.starts_with("mmtwin:");
        check.require(known || own, &format!("run.events.#{i}"), || {
            format!("kernel {} has no event {pattern}", scenario.kernel.release)
        });
    }
    check.require(run.counters.iter().all(|pattern| !pattern.is_empty()), "run.counters", || {
        "an empty pattern matches no counter".into()
    });
}
