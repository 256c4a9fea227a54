//! Features of a scenario that QEMU or a built kernel does not support.
//!
//! Figures of speed are not refused: the emulator has its own, and only decisions and counters are compared.

use crate::image::OWN_DELAY;
use crate::plan::{Delay, Plan, Region, Use};
use crate::{Kernel, Refusal};
use mmtwin_scenario::machine::{Machine, ZoneKind};
use mmtwin_scenario::{Scenario, parse};
use serde_json::Value;

/// CPUs that the guest's interrupt controller can address.
const MAX_CPUS: usize = 255;
/// Maximum number of nodes of QEMU.
const MAX_NODES: usize = 128;

/// Features of a machine that QEMU does not support, besides the numbers of its CPUs.
pub(crate) fn machine(machine: &Machine) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    if machine.possible_cpus as usize > MAX_CPUS {
        let reason = format!("{} CPUs: a guest has at most {MAX_CPUS}", machine.possible_cpus);
        refusals.push(Refusal::new("machine.node.cpus", reason));
    }
    if machine.nodes.len() > MAX_NODES {
        let reason = format!("{} nodes: a guest has at most {MAX_NODES}", machine.nodes.len());
        refusals.push(Refusal::new("machine.node", reason));
    }
    for (nid, node) in machine.nodes.iter().enumerate() {
        if node.zones.iter().any(|zone| zone.kind == ZoneKind::Movable) {
            let reason = "the kernel distributes ZONE_MOVABLE over all nodes by its own rules";
            refusals.push(Refusal::new(format!("machine.node[{nid}].movable"), reason));
        }
    }
    refusals
}

/// Keys of `[kernel]` that are set in a running kernel, or only name things.
const SETTABLE: [&str; 8] = [
    "sysctl",
    "thp",
    "thp_defrag",
    "numa_balancing.scan_delay_ms",
    "numa_balancing.scan_period_min_ms",
    "numa_balancing.scan_period_max_ms",
    "numa_balancing.scan_size_mb",
    "numa_balancing.hot_threshold_ms",
];

/// True if a key of `[kernel]` can be set in a running kernel; others describe the running kernel.
pub fn is_settable(key: &str) -> bool {
    SETTABLE
        .into_iter()
        .any(|known| key.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
}

/// Disks with a latency that no kernel can emulate without our own module.
pub(crate) fn delays(plan: &Plan, kernel: &Kernel) -> Vec<Refusal> {
    let has = kernel.has_extra(OWN_DELAY);
    let slow = plan.regions.iter().filter(|region| !has && matches!(region.delay, Delay::Exact(_)));
    let refuse = |region: &Region| {
        let key = if region.used_for == Use::Swap { "machine.swap.latency" } else { "machine.disk.latency" };
        let reason = format!(
            "it needs the module {OWN_DELAY} in modules/extra, which `make lab` builds for its kernels; without it the \
             disk has no latency: use latency \"0 ns\", or synchronous swap"
        );
        Refusal::new(key, reason)
    };
    slow.map(refuse).collect()
}

/// Features of the scenario's kernel that the booted kernel lacks. A kernel of the user is not checked.
pub(crate) fn kernel(scenario: &Scenario, kernel: &Kernel) -> Vec<Refusal> {
    let Some(bundle) = &kernel.bundle else { return Vec::new() };
    let release = &scenario.kernel.release;
    if release != bundle {
        let reason = format!("the scenario is for {release}, the lab's kernel is {bundle}: choose one of them");
        return vec![Refusal::new("kernel.release", reason)];
    }
    let text = format!("[machine]\npreset = \"lab-4n\"\n[kernel]\nrelease = \"{bundle}\"");
    // A kernel in the folder that has no bundle cannot be judged.
    let Ok(stock) = parse(bundle, &text, std::path::Path::new(""), &[]) else { return Vec::new() };
    let (wanted, stock) = (scenario.to_json(), stock.to_json());
    let mut differing = Vec::new();
    differences("", &wanted["kernel"], &stock["kernel"], &mut differing);
    let refuse = |(key, wanted, stock): (String, &Value, &Value)| {
        let reason = format!("{wanted}, but kernel {bundle} was built with {stock}");
        Refusal::new(format!("kernel.{key}"), reason)
    };
    differing.into_iter().map(refuse).collect()
}

/// Values that are not equal, by path, without what can be set.
fn differences<'a>(path: &str, a: &'a Value, b: &'a Value, found: &mut Vec<(String, &'a Value, &'a Value)>) {
    if SETTABLE.contains(&path) || a == b {
        return;
    }
    let (Some(left), Some(right)) = (a.as_object(), b.as_object()) else {
        found.push((path.to_string(), a, b));
        return;
    };
    let mut keys: Vec<&String> = left.keys().chain(right.keys().filter(|key| !left.contains_key(*key))).collect();
    keys.sort_unstable();
    for key in keys {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        differences(&path, &a[key.as_str()], &b[key.as_str()], found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn refused(release: &str, sets: &[&str], bundle: Option<&str>) -> Vec<String> {
        let text = format!("[machine]\npreset = \"lab-4n\"\n[kernel]\nrelease = \"{release}\"");
        let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
        let scenario = parse("test", &text, Path::new(""), &sets).expect("a scenario");
        let booted = Kernel {
            bundle: bundle.map(str::to_string),
            version: "6".into(),
            image: "/k".into(),
            modules: None,
            probes: String::new(),
        };
        kernel(&scenario, &booted).iter().map(Refusal::to_string).collect()
    }

    #[test]
    fn settings_are_given_and_variants_are_not() {
        let set = ["kernel.sysctl.\"vm.swappiness\"=10", "kernel.thp=never", "kernel.numa_balancing.scan_size_mb=64"];
        assert!(refused("6.1", &set, Some("6.1")).is_empty());
        let variant = ["kernel.vmalloc.purge_accounting=batched", "kernel.hz=1000"];
        assert_eq!(
            refused("6.1", &variant, Some("6.1")),
            [
                "kernel.hz: 1000, but kernel 6.1 was built with 250",
                "kernel.vmalloc.purge_accounting: \"batched\", but kernel 6.1 was built with \"per-area\""
            ]
        );
        assert!(refused("6.1", &variant, None).is_empty(), "a kernel of the user's own");
        assert_eq!(refused("6.12", &[], Some("6.1")).len(), 1);
    }

    #[test]
    fn a_disk_that_takes_time_needs_our_module() {
        let directory = tempfile::tempdir().expect("directory");
        let modules = directory.path().to_path_buf();
        let kernel =
            |modules| Kernel { bundle: None, version: "6".into(), image: "/k".into(), modules, probes: String::new() };
        let refused = |sets: &[&str], modules| {
            let text = "[machine]\npreset = \"lab-4n\"\n[kernel]\nrelease = \"6.1\"\n[[process]]\nname = \"a\"\n\
                        [[process.region]]\nname = \"f\"\nsize = \"1 MiB\"\nkind = \"file\"";
            let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
            let scenario = parse("test", text, Path::new(""), &sets).expect("a scenario");
            let plan = Plan::new(&scenario, 16 << 20).expect("a plan");
            delays(&plan, &kernel(modules)).iter().map(|refusal| refusal.key.clone()).collect::<Vec<_>>()
        };
        let slow = ["machine.disk.latency=\"1 ms\"", "machine.swap.size=\"64 MiB\""];
        assert_eq!(refused(&slow, None), ["machine.disk.latency", "machine.swap.latency"]);
        assert!(refused(&[], None).is_empty(), "memory disks");
        assert_eq!(refused(&slow, Some(modules.clone())).len(), 2);
        std::fs::create_dir(modules.join("extra")).expect("directory");
        std::fs::write(modules.join("extra/mmtwin_delay.ko"), "").expect("module");
        assert!(refused(&slow, Some(modules)).is_empty());
    }
}
