//! Families: the scenario of a seed with one tunable at each of several values, all else equal. They show whether the twin
//! chooses as the kernel does.

use super::draft::Draft;
use super::draw::{Draw, For};
use super::tunables::Focus;
use super::{archetype, drawn};
use crate::fidelity::KERNELS;

/// A tunable with the values that are tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tunable {
    /// Its key, as `--set` takes it.
    pub key: String,
    /// Its values, at least four.
    pub values: Vec<String>,
}

/// A key and its values.
type Listed = (&'static str, &'static [&'static str]);

/// Of every machine that reclaims.
const WATERMARKS: [Listed; 2] = [
    ("kernel.sysctl.\"vm.watermark_scale_factor\"", &["10", "100", "300", "1000"]),
    ("kernel.sysctl.\"vm.min_free_kbytes\"", &["1408", "5632", "22528", "45056"]),
];
/// Of one with swap.
const SWAPPINESS: Listed = ("kernel.sysctl.\"vm.swappiness\"", &["1", "30", "60", "100", "180"]);
/// Of one whose swap is not memory.
const PAGE_CLUSTER: Listed = ("kernel.sysctl.\"vm.page-cluster\"", &["0", "1", "3", "5"]);
const DIRTY: [Listed; 2] = [
    ("kernel.sysctl.\"vm.dirty_ratio\"", &["5", "10", "20", "60"]),
    ("kernel.sysctl.\"vm.dirty_background_ratio\"", &["1", "5", "15", "40"]),
];
const HUGE: [Listed; 1] = [("kernel.thp_defrag", &["always", "defer", "madvise", "never"])];
const BALANCING: [Listed; 2] = [
    ("kernel.numa_balancing.scan_size_mb", &["16", "64", "256", "1024"]),
    ("kernel.numa_balancing.scan_period_min_ms", &["50", "100", "200", "400"]),
];

/// The limit of the first cgroup that has one, at percentages of what was drawn. Without swap none is smaller: the heap
/// fits into what was drawn.
fn limit(draft: &Draft) -> Option<Tunable> {
    let drawn = |limits: &[(&str, u64)]| limits.iter().find(|(file, _)| *file == "memory.max").map(|(_, mib)| *mib);
    let mut cgroups = draft.cgroups.iter().enumerate();
    let (number, mib) = cgroups.find_map(|(number, cgroup)| Some((number, drawn(&cgroup.limits)?)))?;
    let shares: &[u64] = if draft.machine.swap_mib() > 0 { &[60, 80, 100, 150, 250] } else { &[100, 130, 170, 250] };
    let values = shares.iter().map(|share| format!("{} MiB", mib * share / 100)).collect();
    Some(Tunable { key: format!("cgroup.{number}.memory.max"), values })
}

/// The memory of a machine with one node, at percentages of what was drawn.
fn memory(draft: &Draft) -> Option<Tunable> {
    let [(_, mib)] = draft.machine.nodes[..] else { return None };
    let shares: &[u64] = if draft.machine.swap_mib() > 0 { &[85, 100, 120, 150] } else { &[100, 115, 130, 160] };
    let values = shares.iter().map(|share| format!("{} MiB", mib * share / 100 / 32 * 32)).collect();
    Some(Tunable { key: "machine.node.0.memory".into(), values })
}

/// The tunable of a seed's family: one of what its workload is about.
pub fn tunable(seed: u64) -> Tunable {
    let (mut draw, draft, focus) = (Draw::new(seed, For::Family), drawn(seed), archetype(seed).focus);
    let sized = limit(&draft).or_else(|| memory(&draft));
    if let Some(sized) = sized.filter(|_| draw.percent(50)) {
        return sized;
    }
    let mut listed: Vec<Listed> = match focus {
        Focus::Reclaim => WATERMARKS.to_vec(),
        Focus::Dirty => DIRTY.to_vec(),
        Focus::Huge => HUGE.to_vec(),
        Focus::Balancing => BALANCING.to_vec(),
    };
    if focus == Focus::Reclaim && draft.machine.swap_mib() > 0 {
        // As often as the two of the watermarks.
        listed.extend([SWAPPINESS; 2]);
        listed.extend(draft.machine.swaps_to_disk().then_some(PAGE_CLUSTER));
    }
    let (key, values) = draw.pick(&listed);
    Tunable { key: key.into(), values: values.iter().map(|value| value.to_string()).collect() }
}

/// The kernel of a seed's family: each in turn.
pub fn kernel_of(seed: u64) -> &'static str {
    KERNELS[(seed % KERNELS.len() as u64) as usize]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fidelity::generate::{DEVELOPMENT, TEST, preset, scenario};
    use mmtwin_scenario::parse;
    use mmtwin_twin::build;
    use std::path::Path;

    #[test]
    fn every_member_is_accepted() {
        for seed in DEVELOPMENT.take(40).chain(TEST.take(40)) {
            let Tunable { key, values } = tunable(seed);
            assert!(values.len() >= 4, "{key}");
            let (text, kernel) = (scenario(seed), kernel_of(seed));
            for value in values {
                let value = if value.contains(' ') { format!("{value:?}") } else { value };
                let sets = [
                    format!("kernel.release={kernel:?}"),
                    format!("machine.preset={:?}", preset(kernel)),
                    format!("{key}={value}"),
                ];
                let parsed = parse("family", &text, Path::new(""), &sets);
                let parsed = parsed.unwrap_or_else(|e| panic!("seed {seed}, {key}={value}: {e}"));
                build::check(&parsed).unwrap_or_else(|e| panic!("seed {seed}, {key}={value}: {e}"));
            }
        }
    }
}
