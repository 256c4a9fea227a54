//! What a difference is due to: the scenario of the development set with the largest errors, and the smallest scenario in
//! which a quantity still differs.
//!
//! A scenario is made smaller by one process, phase, access, region, cgroup or tunable after the other. What is removed
//! stays removed if the quantity still differs, by half of its error at least and with the same sign. Each attempt is a
//! guest.

use super::compare::compare;
use super::figures::{End, Figures};
use super::{EachGuest, Judged, Set};
use crate::Error;
use crate::fidelity::failed;
use crate::fidelity::store::TIME_OUT;
use mmtwin::running::{LabOptions, state_of};
use mmtwin::{Request, Trace, run};
use mmtwin_lab::Mode;
use mmtwin_scenario::kernel::{Sysctl, Thp};
use mmtwin_scenario::units::Time;
use mmtwin_scenario::{Kernel, Scenario, from_json, parse};
use std::collections::BTreeMap;
use std::path::Path;

/// An error below is none that is looked for, in percent.
const LEAST: f64 = 10.0;
/// Errors count as this much at most where cells are compared.
const MOST: f64 = 100.0;

/// A quantity that differs on a kernel.
pub struct Difference {
    /// Seed of the scenario.
    pub seed: u64,
    /// The kernel.
    pub kernel: &'static str,
    /// The quantity, as `mmtwin fidelity test --details` names it.
    pub quantity: String,
    /// Its error in percent.
    pub error: f64,
}

/// The largest difference of a counter: of `quantity`, or of any, in the cell of all that has most of them.
///
/// # Errors
/// If no cell has such a quantity that differs.
pub fn largest(judged: &[Judged], quantity: Option<&str>) -> Result<Difference, Error> {
    let wanted = |name: &str| quantity.is_none_or(|wanted| wanted == name);
    let total = |of: &Judged| -> f64 {
        of.quantities.iter().filter(|of| wanted(&of.name)).map(|of| of.error.abs().min(MOST)).sum()
    };
    let worst = judged.iter().max_by(|a, b| total(a).total_cmp(&total(b)));
    let found = worst.and_then(|of| {
        let differs = |of: &&super::Quantity| wanted(&of.name) && of.error.abs() >= LEAST;
        let chosen = of.quantities.iter().filter(differs).max_by(|a, b| a.error.abs().total_cmp(&b.error.abs()))?;
        let (seed, kernel) = (of.cell.seed, of.cell.kernel);
        Some(Difference { seed, kernel, quantity: chosen.name.clone(), error: chosen.error })
    });
    found.ok_or_else(|| failed(format!("no quantity {} differs by {LEAST} %", quantity.unwrap_or("of what is stored"))))
}

/// Refuses seeds of the test set.
///
/// # Errors
/// If the seed is not of the development set.
pub fn of_development(seed: u64) -> Result<(), Error> {
    match Set::of(seed)? {
        Set::Development => Ok(()),
        Set::Test => Err(failed(format!("seed {seed} is of the test set, whose scenarios are not looked at"))),
    }
}

/// The smallest scenario in which a quantity differs as it does in that of a seed of the development set.
///
/// # Errors
/// If the seed belongs to the test set, or a guest cannot be run.
pub fn smallest(
    of: &Difference,
    idle: &BTreeMap<String, f64>,
    guests: &EachGuest<'_>,
    note: &dyn Fn(&str),
) -> Result<Scenario, Error> {
    of_development(of.seed)?;
    let cell = super::cells(Path::new(""), &[of.seed])?.into_iter().find(|cell| cell.kernel == of.kernel);
    let cell = cell.ok_or_else(|| failed(format!("no kernel {}", of.kernel)))?;
    let persists = |scenario: &Scenario| {
        let Some(error) = error_of(scenario, &of.quantity, idle, guests)? else { return Ok(false) };
        Ok(error.signum() == of.error.signum() && error.abs() >= LEAST.max(of.error.abs() / 2.0))
    };
    shrink(cell.scenario(super::SEEDS[0])?, &persists, note)
}

/// The error of a quantity, of one run on both arms; `None`: it is not judged.
fn error_of(
    scenario: &Scenario,
    quantity: &str,
    idle: &BTreeMap<String, f64>,
    guests: &EachGuest<'_>,
) -> Result<Option<f64>, Error> {
    let scratch = tempfile::tempdir()?;
    let recording = scratch.path().join("lab.mmt");
    let (kernel, modules, mode) = (None, None, Mode::Exact);
    let options = LabOptions { kernel, modules, mode, time_out: TIME_OUT, force: false };
    match guests(&[(scenario, recording.clone())], &options)?.pop() {
        Some(Ok(())) => {}
        Some(Err(error)) => return super::end_of(error).map(|_: End| None).map_err(Error::from),
        None => return Ok(None),
    }
    let real = Trace::open(&recording)?.analyse(&mut |_| {})?;
    let state = state_of(&real)?;
    let request = Request { state: state.as_ref(), ..Request::default() };
    let simulated = run(scenario, request, &mut |_| {})?;
    let (kernel, twin) = (Figures::of(&real, scenario), Figures::of(&simulated.analysed, scenario));
    if !kernel.end.is_whole() || !twin.end.is_whole() {
        return Ok(None);
    }
    Ok(compare(&[&kernel], &[&twin], idle).into_iter().find(|of| of.name == quantity).map(|of| of.error))
}

/// Removes what can be removed, one after the other, as long as something persists.
fn shrink(
    mut scenario: Scenario,
    persists: &dyn Fn(&Scenario) -> Result<bool, Error>,
    note: &dyn Fn(&str),
) -> Result<Scenario, Error> {
    let text = format!("[machine]\npreset = \"lab-4n\"\n[kernel]\nrelease = {:?}", scenario.kernel.release);
    let stock = parse("stock", &text, Path::new(""), &[]).map_err(failed)?.kernel;
    let mut needed = 0;
    // What was tried and is needed stays at the front.
    while let Some((what, smaller)) = smaller(&scenario, &stock).into_iter().nth(needed) {
        if persists(&smaller)? {
            note(&format!("without {what}: it still differs"));
            scenario = smaller;
        } else {
            note(&format!("without {what}: it does not"));
            needed += 1;
        }
    }
    Ok(scenario)
}

/// Scenarios with one thing less, with its name; those that are none are omitted.
fn smaller(of: &Scenario, stock: &Kernel) -> Vec<(String, Scenario)> {
    let mut found = Vec::new();
    let mut with = |what: String, change: &dyn Fn(&mut Scenario)| {
        let mut other = of.clone();
        change(&mut other);
        if other != *of && from_json(&other.to_json()).is_ok() {
            found.push((what, other));
        }
    };
    for (i, process) in of.processes.iter().enumerate() {
        let name = &process.name;
        with(format!("process {name}"), &|other| drop(other.processes.remove(i)));
        for (j, phase) in process.phases.iter().enumerate() {
            with(format!("phase {j} of {name}"), &|other| drop(other.processes[i].phases.remove(j)));
            for k in 0..phase.accesses.len() {
                let what = format!("access {k} of phase {j} of {name}");
                with(what, &|other| drop(other.processes[i].phases[j].accesses.remove(k)));
            }
        }
        for (j, region) in process.regions.iter().enumerate() {
            with(format!("region {} of {name}", region.name), &|other| drop(other.processes[i].regions.remove(j)));
        }
    }
    for (i, cgroup) in of.cgroups.iter().enumerate() {
        with(format!("cgroup {}", cgroup.name), &|other| {
            other.cgroups.remove(i);
            let inside = other.processes.iter_mut().filter(|process| process.cgroup.as_ref() == Some(&cgroup.name));
            inside.for_each(|process| process.cgroup = None);
        });
    }
    with("swap".into(), &|other| other.machine.swap = None);
    with("latency of the disk".into(), &|other| other.machine.disk.latency = Time(0));
    with("huge pages".into(), &|other| other.kernel.thp = Thp::Never);
    with("settings of the NUMA scanner".into(), &|other| other.kernel.numa_balancing = stock.numa_balancing);
    for name in Sysctl::NAMES.iter().filter(|name| **name != "vm.min_free_kbytes") {
        with(name.to_string(), &|other| reset(&mut other.kernel.sysctl, &stock.sysctl, name));
    }
    found
}

/// Gives a sysctl the value of the release.
fn reset(sysctl: &mut Sysctl, stock: &Sysctl, name: &str) {
    let json = |of: &Sysctl| serde_json::to_value(of).unwrap_or_default();
    let (mut own, stock) = (json(sysctl), json(stock));
    if let (Some(own), Some(value)) = (own.as_object_mut(), stock.get(name)) {
        own.insert(name.into(), value.clone());
    }
    if let Ok(changed) = serde_json::from_value(own) {
        *sysctl = changed;
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Cell, Group, Quantity};
    use super::*;
    use std::cell::Cell as Counted;

    fn scenario(seed: u64) -> Scenario {
        Scenario::parse(&crate::fidelity::generate::scenario(seed), &[]).expect("a scenario")
    }

    #[test]
    fn what_does_not_matter_is_removed() {
        // A batch job beside a service; the difference needs the job's region and its swap.
        let whole = scenario(7);
        assert_eq!((whole.processes.len(), whole.machine.swap.is_some()), (2, true));
        let attempts = Counted::new(0);
        let persists = |of: &Scenario| {
            attempts.set(attempts.get() + 1);
            let batch = of.processes.iter().find(|process| process.name == "batch");
            Ok(of.machine.swap.is_some() && batch.is_some_and(|batch| batch.regions.len() == 1))
        };
        let least = shrink(whole, &persists, &|_| {}).expect("a scenario");
        assert_eq!(least.processes.iter().map(|process| process.name.as_str()).collect::<Vec<_>>(), ["batch"]);
        assert!(least.machine.swap.is_some() && least.machine.disk.latency == Time(0));
        let stock = scenario(7).kernel.sysctl.vm_page_cluster;
        assert_ne!(least.kernel.sysctl.vm_page_cluster, stock, "tunables are those of the release");
        assert!(attempts.get() < 30, "{}", attempts.get());
        assert!(from_json(&least.to_json()).is_ok());
    }

    #[test]
    fn the_cell_with_most_errors_is_taken() {
        let quantity = |name: &str, error| Quantity {
            name: name.into(),
            group: Group::Lists,
            kernel: 1.0,
            twin: 1.0,
            error,
            outside: true,
            own: None,
        };
        let judged = |seed, quantities| Judged {
            cell: Cell { seed, kernel: "6.1", change: None, file: "x".into() },
            ends: Vec::new(),
            quantities,
        };
        let all = [
            judged(4, vec![quantity("pgscan_anon", 900.0), quantity("pgscan_file", 1.0)]),
            judged(5, vec![quantity("pgscan_anon", -60.0), quantity("pgscan_file", 70.0)]),
        ];
        let of = |name| largest(&all, name).map(|of| (of.seed, of.quantity, of.error)).ok();
        assert_eq!(of(None), Some((5, "pgscan_file".into(), 70.0)));
        assert_eq!(of(Some("pgscan_anon")), Some((4, "pgscan_anon".into(), 900.0)));
        assert_eq!(of(Some("pageoutrun")), None);
    }

    #[test]
    fn the_test_set_is_not_looked_at() {
        let of = Difference { seed: 1000, kernel: "6.1", quantity: "pgscan_anon".into(), error: 50.0 };
        let none: &EachGuest<'_> = &|_, _| Ok(Vec::new());
        let error = smallest(&of, &BTreeMap::new(), none, &|_| {}).map(|_| ()).unwrap_err().to_string();
        assert_eq!(error, "seed 1000 is of the test set, whose scenarios are not looked at");
    }
}
