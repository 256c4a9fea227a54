//! Families: the scenario of a seed with one tunable at each of several values, all else equal. They show whether the twin
//! chooses as the kernel does.

use super::archetype;
use super::draw::{Draw, For};
use super::tunables::Focus;
use crate::fidelity::KERNELS;

/// A tunable with the values that are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunable {
    /// Its key, as `--set` takes it.
    pub key: &'static str,
    /// Its values, at least four.
    pub values: &'static [&'static str],
}

/// Of workloads that are about reclaim alone.
const ANY: [Tunable; 3] = [
    Tunable { key: "kernel.sysctl.\"vm.swappiness\"", values: &["1", "30", "60", "100", "180"] },
    Tunable { key: "kernel.sysctl.\"vm.watermark_scale_factor\"", values: &["10", "50", "150", "300"] },
    Tunable { key: "kernel.sysctl.\"vm.min_free_kbytes\"", values: &["1408", "2816", "5632", "16384"] },
];
const DIRTY: [Tunable; 2] = [
    Tunable { key: "kernel.sysctl.\"vm.dirty_ratio\"", values: &["12", "20", "40", "70"] },
    Tunable { key: "kernel.sysctl.\"vm.dirty_background_ratio\"", values: &["1", "5", "10", "15"] },
];
const HUGE: [Tunable; 1] = [Tunable { key: "kernel.thp_defrag", values: &["always", "defer", "madvise", "never"] }];
const BALANCING: [Tunable; 2] = [
    Tunable { key: "kernel.numa_balancing.scan_size_mb", values: &["16", "64", "256", "1024"] },
    Tunable { key: "kernel.numa_balancing.scan_period_min_ms", values: &["50", "100", "200", "400"] },
];

/// The tunable of a seed's family: one of what its workload is about, where there is such.
pub fn tunable(seed: u64) -> Tunable {
    let mut draw = Draw::new(seed, For::Family);
    match archetype(seed).focus {
        Focus::Reclaim => draw.pick(&ANY),
        Focus::Dirty => draw.pick(&DIRTY),
        Focus::Huge => draw.pick(&HUGE),
        Focus::Balancing => draw.pick(&BALANCING),
    }
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
