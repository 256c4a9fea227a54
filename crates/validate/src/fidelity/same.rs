//! Comparing inputs that are the twin's on one side and a real kernel's on the other.

use crate::Error;
use mmtwin::Analysed;
use mmtwin::scenarios::{differences, of_today};
use mmtwin_report::fidelity::{self, Fidelity, Observed};
use mmtwin_scenario::units::Time;
use serde_json::Value;

/// Most differences that are shown.
const SHOWN: usize = 12;

/// The fidelity of the twin, if one side is the twin's and the other a kernel's, in a guest or on a machine, and all of
/// them ran a scenario. Both must have run the same one, but for the seed.
pub fn of_sides(sides: &[Vec<Analysed>]) -> Result<Option<Fidelity>, Error> {
    let [first, second] = sides else { return Ok(None) };
    let all = |side: &[Analysed], arms: &[&str]| {
        side.iter().all(|run| run.resolved.is_some() && arms.contains(&run.analysis.source.arm.as_str()))
    };
    let real = ["lab", "host"];
    let (kernel, twin) = match () {
        () if all(first, &real) && all(second, &["twin"]) => (first, second),
        () if all(second, &real) && all(first, &["twin"]) => (second, first),
        () => return Ok(None),
    };
    let mut runs = kernel.iter().chain(twin);
    let Some(base) = runs.next() else { return Ok(None) };
    if let Some(other) = runs.find(|run| run.scenario != base.scenario) {
        let value = |run: &Analysed| of_today(run.resolved.as_ref().unwrap_or_default());
        let mut found = differences(&value(base), &value(other));
        let more = found.len().checked_sub(SHOWN).filter(|more| *more > 0);
        found.truncate(SHOWN);
        let more = more.map_or_else(String::new, |more| format!("\n  and {more} more"));
        let names = (&base.analysis.source.name, &other.analysis.source.name);
        return Err(Error::Fidelity(format!(
            "{} and {} ran different scenarios and cannot be compared:\n  {}{more}",
            names.0,
            names.1,
            found.join("\n  ")
        )));
    }
    let observed = |side: &[Analysed]| -> Vec<Observed> {
        side.iter().map(|run| fidelity::observe(&run.analysis, run.results.as_ref())).collect()
    };
    Ok(Some(fidelity::compare(&observed(kernel), &observed(twin), &[])))
}

/// Where a scenario differs from what a guest was asked for when it was recorded. How fast the machine is decides
/// nothing there, nor what a bundle says of its kernel, and what scenarios could not say then it was not asked for.
pub(super) fn asked_of_guest(recorded: &Value, today: &Value) -> Vec<String> {
    let (mut recorded, mut today) = (recorded.clone(), today.clone());
    forget_new(&recorded, &mut today);
    [&mut recorded, &mut today].into_iter().for_each(round);
    let mut found = differences(&recorded, &today);
    let disks = [
        "machine.disk.bandwidth",
        "machine.disk.queue_depth",
        "machine.disk.bios_per_page",
        "machine.disk.journal_blocks",
        "machine.swap.bandwidth",
        "machine.worker.",
    ];
    let preset = ["machine.preset", "machine.name", "machine.figure", "machine.cpu.", "machine.cost.", "machine.line."];
    let speed = preset.into_iter().chain(disks);
    found.retain(|difference| !speed.clone().any(|place| difference.starts_with(place)));
    let key = |difference: &str| difference.strip_prefix("kernel.")?.split(": ").next().map(str::to_string);
    found.retain(|difference| key(difference).is_none_or(|key| key == "release" || mmtwin_lab::is_settable(&key)));
    found
}

/// A guest's disk is slow by whole milliseconds.
fn round(scenario: &mut Value) {
    const MS: u64 = 1_000_000;
    let Some(latency) = scenario.pointer_mut("/machine/disk/latency") else { return };
    if let Ok(Time(ns)) = serde_json::from_value(latency.clone()) {
        *latency = Value::from((ns + MS / 2) / MS);
    }
}

/// Removes the keys that a recorded scenario does not have.
fn forget_new(recorded: &Value, today: &mut Value) {
    match (recorded, today) {
        (Value::Object(recorded), Value::Object(today)) => {
            today.retain(|key, _| recorded.contains_key(key));
            today.iter_mut().for_each(|(key, value)| forget_new(&recorded[key], value));
        }
        (Value::Array(recorded), Value::Array(today)) => {
            recorded.iter().zip(today).for_each(|(recorded, today)| forget_new(recorded, today));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_guest_was_asked_for_all_but_speed_and_what_is_new() {
        let disk = |bandwidth: &str, latency: &str| json!({"bandwidth": bandwidth, "latency": latency});
        let recorded = json!({"machine": {"cpus": 8, "cost": {"a": 1}, "disk": disk("2 GB/s", "100 us")}, "process": [{"threads": 1}]});
        let mut today = json!({
            "machine": {"cpus": 8, "cost": {"a": 2, "b": 1}, "disk": disk("1 GB/s", "0 ns")},
            "process": [{"threads": 1, "nice": 0}]
        });
        // A rule of the kernel that was booted, as it is known today.
        let mut recorded = recorded;
        recorded["kernel"] = json!({"release": "6.12", "thp": "never", "reclaim": {"skip_limit": 1024}});
        today["kernel"] = json!({"release": "6.12", "thp": "never", "reclaim": {"skip_limit": 32768}});
        assert_eq!(asked_of_guest(&recorded, &today), Vec::<String>::new());
        today["kernel"]["thp"] = json!("always");
        today["machine"]["cpus"] = json!(4);
        today["process"][0] = json!({});
        today["machine"]["disk"]["latency"] = json!("2 ms");
        let found = [
            "kernel.thp: \"never\" against \"always\"",
            "machine.cpus: 8 against 4",
            "machine.disk.latency: 0 against 2",
            "process.#0.threads: 1 against null",
        ];
        assert_eq!(asked_of_guest(&recorded, &today), found);
    }
}
