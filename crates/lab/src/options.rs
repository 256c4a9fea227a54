//! Options of QEMU. Files are named relative to the directory that QEMU runs in, so that equal guests have equal
//! options.

use crate::plan::{NodePlan, Plan};
use crate::turns::with_idle;
use crate::{Accelerator, Origin};
use std::fmt;
use std::str::FromStr;

/// How the guest's CPUs run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// One after the other, timed by the instructions they execute: two runs from one seed are equal bit by bit.
    /// Needs QEMU 9 or newer.
    Exact,
    /// At the same time, as the host schedules them.
    Smp,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mode::Exact => "exact",
            Mode::Smp => "smp",
        })
    }
}

/// Not a mode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown lab mode `{0}`: expected exact or smp")]
pub struct ModeError(String);

impl FromStr for Mode {
    type Err = ModeError;

    fn from_str(text: &str) -> Result<Mode, ModeError> {
        [Mode::Exact, Mode::Smp].into_iter().find(|mode| mode.to_string() == text).ok_or_else(|| ModeError(text.into()))
    }
}

/// The first QEMU whose instruction counting works with several CPUs; older ones hang while the second one starts.
pub(crate) const EXACT_NEEDS: u32 = 9;

/// Names in the directory that QEMU runs in.
pub(crate) mod names {
    pub const KERNEL: &str = "vmlinuz";
    pub const IMAGE: &str = "image";
    pub const CONSOLE: &str = "console";
    pub const MEMORY: &str = "memory";
}

/// Words of the kernel's command line, with their reasons.
const COMMAND_LINE: [&str; 9] = [
    "console=ttyS0",
    // Console output takes the guest's time.
    "quiet",
    // A kernel that panics restarts, which ends QEMU; results after a kernel bug are no measurement.
    "panic=-1",
    "oops=panic",
    // A kernel that is loaded into another node takes that node's memory.
    "nokaslr",
    // They protect nothing here, and cost instructions.
    "mitigations=off",
    // The emulated time-stamp counter is exact; the other clocks are devices, whose every reading leaves the guest.
    "tsc=reliable",
    // Tests of ciphers, certificates of modules and the noise of clocks take half of the time until a guest is up.
    "cryptomgr.notests",
    "initcall_blacklist=load_system_certificate_list,jent_mod_init",
];

/// The word of guests whose CPUs are the host's threads. At its boot the kernel counts timer interrupts while it waits; on a
/// busy host too few come in time, and it panics. In mode exact they come by instructions.
const NO_TIMER_CHECK: &str = "no_timer_check";

/// The kernel's command line.
fn command_line(plan: &Plan, mode: Mode) -> String {
    let mut words: Vec<String> = COMMAND_LINE.map(str::to_string).into();
    let idle = with_idle(plan.smp, mode).cpus > plan.smp.cpus;
    words.extend(idle.then(|| format!("nr_cpus={}", plan.smp.cpus)));
    words.extend(plan.memmap());
    words.extend((mode == Mode::Smp).then(|| NO_TIMER_CHECK.into()));
    words.join(" ")
}

/// Arguments of QEMU.
pub(crate) struct Start<'a> {
    pub plan: &'a Plan,
    pub mode: Mode,
    pub accelerator: Accelerator,
    pub seed: u64,
}

/// All options.
pub(crate) fn options(start: &Start<'_>) -> Vec<String> {
    let plan = start.plan;
    let mut options = Options(Vec::new());
    options.flag("-no-user-config");
    options.flag("-nodefaults");
    options.flag("-no-reboot");
    options.set("-display", "none");
    let hmat = if plan.hmat.is_empty() { "" } else { ",hmat=on" };
    options.set("-machine", format!("pc,max-ram-below-4g=3G{hmat}"));
    match start.mode {
        Mode::Exact => {
            options.set("-accel", "tcg,thread=single");
            options.set("-icount", "shift=3,sleep=off");
        }
        Mode::Smp => options.set("-accel", start.accelerator.option()),
    }
    options.set("-cpu", start.accelerator.cpu());
    options.set("-rtc", "clock=vm,base=2026-01-01T00:00:00");
    options.set("-seed", start.seed.to_string());
    let smp = with_idle(plan.smp, start.mode);
    options.set(
        "-smp",
        format!(
            "cpus={},maxcpus={},sockets={},cores={},threads={}",
            smp.cpus, smp.possible, smp.sockets, smp.cores, smp.threads
        ),
    );
    options.set("-m", format!("{}B", plan.memory()));
    let host = plan.nodes.iter().position(|node| !node.cpus.is_empty());
    for (nid, node) in plan.nodes.iter().enumerate() {
        // All CPUs have a node, also those that the guest does not use.
        let idle = if Some(nid) == host { plan.smp.cpus..smp.cpus } else { 0..0 };
        let cpus: Vec<u32> = node.cpus.iter().copied().chain(idle).collect();
        let is_file = plan.regions.iter().any(|region| region.node == nid as u32);
        node_options(&mut options, nid as u32, node, &cpus, is_file);
    }
    for (from, row) in plan.distance.iter().enumerate() {
        for (to, distance) in row.iter().enumerate().filter(|(to, _)| *to != from) {
            options.set("-numa", format!("dist,src={from},dst={to},val={distance}"));
        }
    }
    for pair in &plan.hmat {
        let of = format!("hmat-lb,initiator={},target={},hierarchy=memory", pair.initiator, pair.target);
        options.set("-numa", format!("{of},data-type=access-latency,latency={}", pair.latency));
        options.set("-numa", format!("{of},data-type=access-bandwidth,bandwidth={}B", pair.bandwidth));
    }
    options.set("-serial", format!("file:{}", names::CONSOLE));
    options.set("-kernel", names::KERNEL);
    options.set("-initrd", names::IMAGE);
    options.set("-append", command_line(plan, start.mode));
    options.0
}

fn node_options(options: &mut Options, nid: u32, node: &NodePlan, cpus: &[u32], is_file: bool) {
    let mut numa = format!("node,nodeid={nid}");
    let size = node.memory + node.reserved;
    if size > 0 {
        options.set(
            "-object",
            if is_file {
                format!("memory-backend-file,id=m{nid},size={size}B,mem-path={},share=on", names::MEMORY)
            } else {
                format!("memory-backend-ram,id=m{nid},size={size}B")
            },
        );
        numa.push_str(&format!(",memdev=m{nid}"));
    }
    for range in ranges(cpus) {
        numa.push_str(&format!(",cpus={range}"));
    }
    if let Some(initiator) = node.initiator {
        numa.push_str(&format!(",initiator={initiator}"));
    }
    options.set("-numa", numa);
}

/// `0-3`, `5`: CPUs in the way QEMU takes them, one range at a time.
fn ranges(cpus: &[u32]) -> Vec<String> {
    let runs = cpus.chunk_by(|a, b| a + 1 == *b);
    let text = |run: &[u32]| match run {
        [one] => one.to_string(),
        _ => format!("{}-{}", run[0], run[run.len() - 1]),
    };
    runs.map(text).collect()
}

struct Options(Vec<String>);

impl Options {
    fn flag(&mut self, name: &str) {
        self.0.push(name.into());
    }

    fn set(&mut self, name: &str, value: impl Into<String>) {
        self.0.extend([name.into(), value.into()]);
    }
}

/// Description of a recording's guest: the file `lab.json`. It is equal for two equal runs.
#[derive(Debug, serde::Serialize)]
pub(crate) struct Evidence<'a> {
    #[serde(flatten)]
    origin: &'a Origin,
    mode: String,
    accelerator: String,
    seed: u64,
    options: Vec<String>,
}

impl<'a> Evidence<'a> {
    pub fn new(origin: &'a Origin, start: &Start<'_>) -> Evidence<'a> {
        let (mode, accelerator) = (start.mode.to_string(), start.accelerator.to_string());
        Evidence { origin, mode, accelerator, seed: start.seed, options: options(start) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn plan(machine: &str) -> Plan {
        let text = format!("[machine]\n{machine}\n[kernel]\nrelease = \"6.1\"");
        let scenario = mmtwin_scenario::parse("test", &text, Path::new(""), &[]).expect("a scenario");
        Plan::new(&scenario, 16 << 20).expect("a plan")
    }

    fn line(plan: &Plan, mode: Mode) -> String {
        let start = Start { plan, mode, accelerator: Accelerator::Tcg, seed: 7 };
        options(&start).join(" ")
    }

    #[test]
    fn exact_counts_instructions_and_smp_does_not() {
        let plan = plan("preset = \"lab-4n\"");
        let exact = line(&plan, Mode::Exact);
        assert!(exact.contains("-accel tcg,thread=single -icount shift=3,sleep=off "), "{exact}");
        assert!(exact.contains(" -seed 7 -smp cpus=32,maxcpus=32,sockets=16,cores=2,threads=1 -m 2199912448B "));
        assert!(exact.contains(",cpus=0-1,cpus=8-31 ") && exact.contains(" nr_cpus=8 memmap="), "{exact}");
        let smp = line(&plan, Mode::Smp);
        assert!(smp.contains("-accel tcg,thread=multi") && !smp.contains("-icount"), "{smp}");
        assert!(smp.ends_with(" no_timer_check") && !exact.contains("no_timer_check"), "{smp}");
        assert!(smp.contains(" -smp cpus=8,maxcpus=8,") && !smp.contains("nr_cpus"), "{smp}");
    }

    #[test]
    fn nodes_without_memory_or_cpus_and_uneven_distances() {
        let machine = "asymmetric = true\ndistance = [[10, 20, 30], [40, 10, 20], [50, 20, 10]]\n\
                       [machine.memory]\nlatency = [[\"80 ns\", \"90 ns\", \"200 ns\"], [\"90 ns\", \"80 ns\", \"90 ns\"], \
                       [\"1 ns\", \"1 ns\", \"1 ns\"]]\nbandwidth = [[\"1 GB/s\", \"1 GB/s\", \"1 GB/s\"], [\"1 GB/s\", \
                       \"1 GB/s\", \"1 GB/s\"], [\"1 GB/s\", \"1 GB/s\", \"1 GB/s\"]]\n\
                       [[machine.node]]\ncpus = \"0-1\"\nmemory = \"1 GiB\"\n[[machine.node]]\ncpus = \"2-3\"\n\
                       [[machine.node]]\nmemory = \"512 MiB\"";
        let line = line(&plan(machine), Mode::Smp);
        assert!(line.contains("-machine pc,max-ram-below-4g=3G,hmat=on "), "{line}");
        assert!(line.contains(" -numa node,nodeid=0,memdev=m0,cpus=0-1 -numa node,nodeid=1,cpus=2-3 "), "{line}");
        assert!(line.contains(" -numa node,nodeid=2,memdev=m2,initiator=1 "), "{line}");
        assert!(line.contains("memory-backend-file,id=m2,size=589299712B,mem-path=memory,share=on"), "{line}");
        assert!(line.contains("dist,src=0,dst=1,val=20 ") && line.contains("dist,src=1,dst=0,val=40 "), "{line}");
        assert!(line.contains("initiator=0,target=2,hierarchy=memory,data-type=access-latency,latency=200 "), "{line}");
        assert!(line.contains("data-type=access-bandwidth,bandwidth=999292928B "), "{line}");
    }

    #[test]
    fn cpus_as_ranges() {
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), ["0-2", "5", "7-8"]);
        assert!(ranges(&[]).is_empty());
    }

    #[test]
    fn regions_are_declared() {
        let plan = plan("preset = \"lab-4n\"\nswap = { size = \"128 MiB\", synchronous = true }");
        let text = command_line(&plan, Mode::Exact);
        assert!(text.ends_with("memmap=0x8000000!0x63200000,0x200000$0x6b200000"), "{text}");
    }

    #[test]
    fn modes_by_name() {
        assert_eq!("exact".parse(), Ok(Mode::Exact));
        assert_eq!("smp".parse(), Ok(Mode::Smp));
        assert!("fast".parse::<Mode>().is_err());
    }
}
