//! Scenarios that nobody wrote: a seed draws a machine, a kernel and a workload. Nine of ten are of an archetype with
//! drawn sizes, rates and tunables, the tenth is wholly at random.
//!
//! Two sets are kept apart. Rules of the twin are found and corrected on scenarios of [`DEVELOPMENT`]; those of [`TEST`]
//! judge it, and only their aggregates are printed.

mod draft;
mod draw;
mod families;
mod jobs;
mod machine;
mod nodes;
mod services;
mod tunables;
mod wild;

pub use families::{Tunable, kernel_of, tunable};
pub use tunables::preset;

use draft::{Access, Draft, Pattern, Phase, Process, pages};
use draw::{Draw, For};
use machine::{Machine, Wanted};
use std::ops::RangeInclusive;
use tunables::Focus;

/// Seeds whose scenarios may be looked at.
pub const DEVELOPMENT: RangeInclusive<u64> = 1..=999;
/// Seeds whose scenarios judge the twin.
pub const TEST: RangeInclusive<u64> = 1000..=1999;

/// One scenario of so many is wholly at random.
const WILD_OF: u64 = 10;
/// Which of them.
const WILD_AT: u64 = 3;
/// Longest run, in seconds of the guest.
pub const LONGEST_S: u64 = 40;
/// Counters that are recorded: those that are judged.
const COUNTERS: &str = "\"pg*\", \"nr_free_pages\", \"workingset_*\", \"allocstall_*\", \"kswapd_*\", \"pageoutrun\", \
                        \"pswp*\",\n  \"compact_*\", \"numa_*\", \"local_node\", \"other_node\", \"interleave_hit\"";

/// A kind of workload.
struct Archetype {
    title: &'static str,
    machine: Wanted,
    focus: Focus,
    workload: fn(&mut Draw, &mut Draft),
}

fn archetype(seed: u64) -> &'static Archetype {
    if seed % WILD_OF == WILD_AT {
        return &wild::WILD;
    }
    // Each in turn, so that few seeds have all of them.
    let number = seed - (seed + WILD_OF - WILD_AT) / WILD_OF;
    let all = services::ALL.len() + jobs::ALL.len();
    let number = number as usize % all;
    // Alternately one of either list.
    if number.is_multiple_of(2) { &services::ALL[number / 2] } else { &jobs::ALL[number / 2] }
}

/// Machine and workload of a seed.
fn drawn(seed: u64) -> Draft {
    let of = archetype(seed);
    let machine = Machine::new(&mut Draw::new(seed, For::Machine), of.machine);
    let mut draw = Draw::new(seed, For::Workload);
    let pressure = draw.pick(&[100, 160, 200, 240, 300]);
    let mut draft = Draft::new(machine, pressure);
    (of.workload)(&mut draw, &mut draft);
    if draw.percent(10) {
        draft.processes.push(admin(&mut draw));
    }
    draft
}

/// The scenario of a seed, as TOML.
pub fn scenario(seed: u64) -> String {
    let (of, draft) = (archetype(seed), drawn(seed));
    let kernel = tunables::kernel(&mut Draw::new(seed, For::Kernel), of.focus, &draft.machine);
    format!(
        "# Written by `mmtwin fidelity generate --seed {seed}`.\ntitle = \"{}\"\n\n{}{}{}\n[run]\nduration = \"{LONGEST_S} s\"\n\
         sample = \"5 s\"\ncounters = [{COUNTERS}]\n",
        of.title,
        draft.machine.text(kernel.preset),
        kernel.text,
        draft.text(),
    )
}

/// A phase of about so many seconds: by its duration, or by counts of its `threads`, which share the guest's time. An
/// access takes about `access_us` besides its think time.
fn work(draw: &mut Draw, (seconds, threads): (u64, u64), access_us: u64, mut accesses: Vec<Access>) -> Phase {
    let ms = seconds * draw.between(600, 1200);
    if draw.percent(50) {
        return Phase { duration_ms: Some(ms), accesses, ..Phase::default() };
    }
    let share = 1000 * ms / threads / accesses.len().max(1) as u64;
    for access in &mut accesses {
        access.count = Some(share / (access.think_us + access.sleep_us + access_us));
    }
    Phase { accesses, ..Phase::default() }
}

/// Everything of a region once, in order.
fn through(region: &'static str, mib: u64, syscall: bool, write: u64) -> Access {
    let count = Some(pages(mib));
    Access { region, pattern: Pattern::Sequential, syscall, write, count, ..Access::default() }
}

/// A phase that ends when its accesses are done.
fn until_done(accesses: Vec<Access>) -> Phase {
    Phase { accesses, ..Phase::default() }
}

/// Somebody changes a sysctl amid the run.
fn admin(draw: &mut Draw) -> Process {
    let (name, value) = draw.pick(&[
        ("vm.watermark_scale_factor", 150),
        ("vm.dirty_ratio", 50),
        ("vm.dirty_background_ratio", 3),
        ("vm.min_free_kbytes", 8192),
    ]);
    let wait = vec![("kind", "\"sleep\"".into()), ("time", format!("\"{} s\"", draw.between(2, 5)))];
    let set = vec![("kind", "\"sysctl\"".into()), ("name", format!("\"{name}\"")), ("value", value.to_string())];
    Process {
        name: "admin".into(),
        phases: vec![Phase { actions: vec![wait, set], ..Phase::default() }],
        ..Process::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mmtwin_lab::Plan;
    use mmtwin_scenario::Scenario;
    use mmtwin_twin::build;
    use std::collections::BTreeMap;

    /// Room for a guest's recording, as the lab has it.
    const ROOM: u64 = 512 << 20;
    /// Seeds of each set that are tried.
    const TRIED: u64 = 150;

    fn tried() -> impl Iterator<Item = u64> {
        [DEVELOPMENT, TEST].into_iter().flat_map(|set| set.take(TRIED as usize))
    }

    #[test]
    fn every_scenario_is_accepted_by_both_arms() {
        for release in crate::fidelity::KERNELS {
            let text = format!("[machine]\npreset = \"lab-4n\"\n[kernel]\nrelease = {release:?}");
            let stock = Scenario::parse(&text, &[]).expect("a scenario").to_json();
            let sets = [format!("kernel.release={release:?}"), format!("machine.preset={:?}", preset(release))];
            let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
            for seed in tried() {
                let text = scenario(seed);
                let parsed = Scenario::parse(&text, &sets).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}"));
                build::check(&parsed).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}"));
                let guest = Plan::new(&parsed, ROOM);
                assert!(guest.is_ok(), "seed {seed}: {guest:?}\n{text}");
                // Of the kernel's keys the lab refuses those that cannot be set in a running kernel.
                for (key, value) in parsed.to_json()["kernel"].as_object().expect("a table") {
                    let settable = mmtwin_lab::is_settable(key) || key == "numa_balancing";
                    assert!(settable || *value == stock["kernel"][key], "seed {seed}: {key}");
                }
            }
        }
    }

    #[test]
    fn every_kernel_boots_on_its_machine() {
        for seed in tried().step_by(10) {
            let parsed = Scenario::parse(&scenario(seed), &[]).expect("a scenario");
            let probe = mmtwin_twin::probe::Probe::off();
            let kernel = build::kernel_of(&parsed, (&parsed.machine, &Default::default()), probe);
            assert!(kernel.is_ok(), "seed {seed}: {}", kernel.err().map(|e| e.to_string()).unwrap_or_default());
        }
    }

    #[test]
    fn all_archetypes_come_up_and_a_tenth_is_at_random() {
        let mut titles: BTreeMap<&str, u32> = BTreeMap::new();
        TEST.for_each(|seed| *titles.entry(archetype(seed).title).or_default() += 1);
        assert_eq!(titles.remove(wild::WILD.title), Some(100));
        assert_eq!(titles.len(), services::ALL.len() + jobs::ALL.len());
        assert!(titles.values().all(|count| (50..=80).contains(count)), "{titles:?}");
        let first: std::collections::BTreeSet<_> = TEST.take(16).map(|seed| archetype(seed).title).collect();
        assert!(first.len() >= 14, "{first:?}");
    }

    #[test]
    fn a_seed_has_one_text() {
        assert_eq!(scenario(7), scenario(7));
        assert_ne!(scenario(7), scenario(8));
        assert!(tried().all(|seed| scenario(seed).lines().all(|line| line.len() <= 120)));
    }
}
