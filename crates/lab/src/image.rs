//! The guest's first file system: busybox, the agent, the scenario, modules, and what the first process reads.

use crate::cpio::Cpio;
use crate::modules::{self, Module};
use crate::plan::{Delay, Plan, Use};
use crate::settings::Setting;
use crate::{Error, Extra, Folder, Kernel};
use mmtwin_scenario::Scenario;
use mmtwin_scenario::workload::ActionKind;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

/// Programs of busybox that the first process calls.
const APPLETS: [&str; 13] = [
    "sh", "cat", "insmod", "mkdir", "mkswap", "mount", "poweroff", "sleep", "stat", "swapon", "sync", "tail", "umount",
];

/// Modules that persistent memory needs.
const PMEM_MODULES: [&str; 4] = ["libnvdimm", "nd_btt", "nd_e820", "nd_pmem"];
/// Modules that slow devices need: that of our own, and the kernel's, which counts ticks. Both are on top of a third.
const DELAY_MODULES: [&str; 3] = ["dm_mod", OWN_DELAY, "dm_delay"];
/// Module that ends requests after an exact time; its source is `module/delay.c`.
pub(crate) const OWN_DELAY: &str = "mmtwin_delay";

/// The longest time that a guest waits before its workload: the kernel flushes the statistics of cgroups as often
/// (`FLUSH_TIME`).
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// How long a guest of a seed is idle before its workload, so that runs differ in when a workload begins
/// between the kernel's ticks, timers and flushes. Seed 1 begins at once. The seeds that follow
/// are spread evenly over the longest time, however many there are: each by the golden section from the one before.
pub(crate) fn wait(seed: u64) -> Duration {
    // 2^64 times the golden section's fraction.
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
    let part = seed.wrapping_sub(1).wrapping_mul(STEP);
    let micros = (u128::from(part) * LONGEST_WAIT.as_micros()) >> 64;
    Duration::from_micros(micros as u64)
}

/// Delay of a device, as the guest reads it: name of a device-mapper target and its parameters behind the device.
fn target(delay: Delay) -> Option<String> {
    match delay {
        Delay::None => None,
        Delay::Exact(ns) => Some(format!("mmtwin-delay {ns}")),
        Delay::Ticks(ms) => Some(format!("delay 0 {ms}")),
    }
}

/// Modules for the delays of a plan.
fn delay_modules(plan: &Plan) -> Vec<&'static str> {
    let exact = plan.regions.iter().any(|region| matches!(region.delay, Delay::Exact(_)));
    let ticks = plan.regions.iter().any(|region| matches!(region.delay, Delay::Ticks(_)));
    let needed = DELAY_MODULES.into_iter().zip([exact || ticks, exact, ticks]);
    needed.filter_map(|(name, needed)| needed.then_some(name)).collect()
}

/// Module that does what no program can; its source is `module/`, and `make lab` puts it among the kernel's own.
pub(crate) const OWN_MODULE: &str = "mmtwin";

fn actions(scenario: &Scenario) -> impl Iterator<Item = &ActionKind> {
    let phases = scenario.processes.iter().flat_map(|process| &process.phases);
    phases.flat_map(|phase| &phase.actions).map(|action| &action.kind)
}

/// Modules that the workload itself loads and unloads. One that the guest runs on stays loaded, which the agent refuses.
fn cycled(scenario: &Scenario) -> impl Iterator<Item = &str> {
    let own = |name: &str| PMEM_MODULES.iter().chain(&DELAY_MODULES).any(|own| *own == modules::plain(name));
    actions(scenario).filter_map(move |action| match action {
        ActionKind::ModuleCycle { name, .. } if !own(name) => Some(name.as_str()),
        _ => None,
    })
}

/// Modules that the guest needs. Our own is loaded wherever the kernel has it: it also shows what `state.json` records.
pub(crate) fn modules<'a>(kernel: &Kernel, plan: &Plan, scenario: &'a Scenario) -> Vec<&'a str> {
    use ActionKind::{PageHog, PageLoop, VmallocTest};
    let own = |action: &ActionKind| matches!(action, PageLoop { .. } | PageHog { .. } | VmallocTest { .. });
    let own = (kernel.has_extra(OWN_MODULE) || actions(scenario).any(own)).then_some(OWN_MODULE);
    PMEM_MODULES.into_iter().chain(delay_modules(plan)).chain(own).chain(cycled(scenario)).collect()
}

/// Content of an image.
pub(crate) struct Content<'a> {
    pub folder: &'a Folder,
    pub agent: &'a Path,
    pub scenario: &'a Scenario,
    /// How long it is idle before the workload.
    pub wait: Duration,
    pub plan: &'a Plan,
    /// As `uname -r` prints it.
    pub version: &'a str,
    pub modules: &'a [Module],
    pub settings: &'a [Setting],
    /// For `kprobe_events`.
    pub probes: &'a str,
    pub extra: &'a [Extra],
}

/// The archive.
pub(crate) fn build(content: &Content<'_>) -> Result<Vec<u8>, Error> {
    let missing = |what: &'static str, fix: &'static str| move || (what, fix);
    let mut image = Image { cpio: Cpio::new(), made: BTreeSet::new() };
    for directory in ["bin", "dev", "proc", "sys", "tmp", "data", "recording", "lab"] {
        image.directory(directory);
    }
    image.cpio.device("dev/console", 5, 1);
    image.cpio.file("init", include_bytes!("../guest/init.sh"));
    let busybox = read(&content.folder.busybox(), missing("busybox", "run `make lab`"))?;
    image.cpio.file("bin/busybox", &busybox);
    for applet in APPLETS {
        image.cpio.link(&format!("bin/{applet}"), "busybox");
    }
    let agent = read(content.agent, missing("mmtwin-agent", "build it"))?;
    if needs_interpreter(&agent) {
        let message = "is not statically linked: the guest has no libraries".into();
        return Err(Error::Agent { path: content.agent.into(), message });
    }
    image.cpio.file("agent", &agent);
    image.cpio.file("scenario.json", content.scenario.to_json().to_string().as_bytes());
    image.cpio.file("lab/cgroup", format!("{}\n", content.scenario.kernel.cgroup).as_bytes());
    image.cpio.file("lab/wait", format!("{:.6}\n", content.wait.as_secs_f64()).as_bytes());
    let settings = content.settings.iter().map(|setting| format!("{} {}\n", setting.path, setting.value));
    image.cpio.file("lab/settings", settings.collect::<String>().as_bytes());
    if !content.probes.is_empty() {
        image.cpio.file("lab/probes", content.probes.as_bytes());
    }
    let devices = content.plan.regions.iter().enumerate().map(|(index, region)| {
        let purpose = match region.used_for {
            Use::Recording => "recording",
            Use::Files => "files",
            Use::Swap => "swap",
        };
        format!("{purpose} /dev/pmem{index} {}\n", target(region.delay).unwrap_or_default())
    });
    image.cpio.file("lab/devices", devices.collect::<String>().as_bytes());
    if !delay_modules(content.plan).is_empty() {
        let delay = read(&content.folder.dm_delay(), missing("dm-delay", "run `make lab`"))?;
        image.cpio.file("bin/dm-delay", &delay);
    }
    image.directory("lab/modules");
    let cycled: BTreeSet<String> = cycled(content.scenario).map(modules::plain).collect();
    let mut order = String::new();
    for Module { name, content: file } in content.modules {
        if cycled.contains(name) {
            image.file(&format!("lib/modules/{}/{name}.ko", content.version), file);
        } else {
            image.cpio.file(&format!("lab/modules/{name}.ko"), file);
            order.push_str(&format!("{name}\n"));
        }
    }
    image.cpio.file("lab/modules.order", order.as_bytes());
    for extra in content.extra {
        let bytes = std::fs::read(&extra.from).map_err(|e| Error::io(extra.from.display(), e))?;
        image.file(&extra.path, &bytes);
    }
    Ok(image.cpio.finish())
}

fn read(path: &Path, missing: impl Fn() -> (&'static str, &'static str)) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(|error| {
        if error.kind() == std::io::ErrorKind::NotFound {
            let (what, fix) = missing();
            Error::Missing { what: format!("{what} ({} does not exist)", path.display()), fix: fix.into() }
        } else {
            Error::io(path.display(), error)
        }
    })
}

/// True for an ELF executable with a dynamic linker: one with a program header of type 3 (`PT_INTERP`).
fn needs_interpreter(file: &[u8]) -> bool {
    let number = |at: usize, bytes: usize| {
        let field = file.get(at..at.checked_add(bytes)?)?;
        Some(field.iter().rev().fold(0, |value, byte| value << 8 | usize::from(*byte)))
    };
    let headers = || Some((number(32, 8)?, number(54, 2)?, number(56, 2)?));
    let (true, Some((start, size, count))) = (file.starts_with(b"\x7fELF\x02\x01"), headers()) else { return false };
    let kind = |header: usize| number(start.checked_add(header.checked_mul(size)?)?, 4);
    (0..count).any(|header| kind(header) == Some(3))
}

struct Image {
    cpio: Cpio,
    made: BTreeSet<String>,
}

impl Image {
    fn directory(&mut self, name: &str) {
        if self.made.insert(name.to_string()) {
            self.cpio.directory(name);
        }
    }

    /// A file, with the directories that lead to it.
    fn file(&mut self, path: &str, content: &[u8]) {
        let path = path.trim_start_matches('/');
        for (at, _) in path.match_indices('/') {
            self.directory(&path[..at]);
        }
        self.cpio.file(path, content);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_begin_at_times_spread_evenly() {
        assert_eq!([1, 2, 3, 4, 5].map(|seed| wait(seed).as_millis()), [0, 1236, 472, 1708, 944]);
        let mut of_many: Vec<u128> = (1..=100).map(|seed| wait(seed).as_micros()).collect();
        of_many.sort_unstable();
        assert!(of_many.windows(2).all(|pair| (7_000..34_000).contains(&(pair[1] - pair[0]))), "{of_many:?}");
        assert!(wait(0) < LONGEST_WAIT && wait(u64::MAX) < LONGEST_WAIT);
    }

    #[test]
    fn executables_that_need_libraries() {
        let mut program = vec![0; 64 + 2 * 56];
        program[..6].copy_from_slice(b"\x7fELF\x02\x01");
        (program[32], program[54], program[56]) = (64, 56, 2);
        (program[64], program[120]) = (1, 2);
        assert!(!needs_interpreter(&program));
        program[120] = 3;
        assert!(needs_interpreter(&program));
        assert!(!needs_interpreter(&program[..60]), "cut off");
        program[32..40].fill(0xff);
        assert!(!needs_interpreter(&program), "headers beyond the end");
        assert!(!needs_interpreter(b"#!/bin/sh\n"));
        let own = std::env::current_exe().and_then(std::fs::read).expect("this test");
        assert!(needs_interpreter(&own));
    }
}
