//! Settings written into the running kernel before the workload starts: the scenario's sysctls, the tunables of the
//! NUMA scanner, huge pages, and the kind of LRU.

use mmtwin_scenario::Scenario;
use serde_json::Value;

/// A file of the guest and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    pub path: String,
    pub value: String,
}

/// Every setting of the scenario. A file that the kernel does not have is skipped in the guest.
pub(crate) fn settings(scenario: &Scenario) -> Vec<Setting> {
    let kernel = &scenario.kernel;
    let mut settings = Vec::new();
    let mut set = |path: String, value: String| settings.push(Setting { path, value });
    // Bundles describe the classic LRU; kernels that have both may start with the other one.
    set("/sys/kernel/mm/lru_gen/enabled".into(), "0".into());
    set("/sys/kernel/mm/transparent_hugepage/enabled".into(), kernel.thp.to_string());
    set("/sys/kernel/mm/transparent_hugepage/defrag".into(), kernel.thp_defrag.to_string());
    let balancing = &kernel.numa_balancing;
    for (name, value) in [
        ("scan_delay_ms", balancing.scan_delay_ms),
        ("scan_period_min_ms", balancing.scan_period_min_ms),
        ("scan_period_max_ms", balancing.scan_period_max_ms),
        ("scan_size_mb", balancing.scan_size_mb),
        ("hot_threshold_ms", balancing.hot_threshold_ms),
    ] {
        set(format!("/sys/kernel/debug/sched/numa_balancing/{name}"), value.to_string());
    }
    let sysctls = serde_json::to_value(&kernel.sysctl).unwrap_or_default();
    // Writing a percentage of dirty memory would reset the bytes that replace it.
    let counts = |(name, _): &(&String, &Value)| !kernel.sysctl.is_replaced(name);
    for (name, value) in sysctls.as_object().into_iter().flatten().filter(counts) {
        let text = match value {
            // Values that the kernel computes itself.
            Value::String(_) | Value::Null => continue,
            Value::Array(list) => list.iter().map(Value::to_string).collect::<Vec<_>>().join(" "),
            number => number.to_string(),
        };
        set(format!("/proc/sys/{}", name.replace('.', "/")), text);
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_a_scenario() {
        let text = "[machine]\npreset = \"lab-4n\"\n[kernel]\nrelease = \"6.1\"\nthp = \"never\"\n\
                    [kernel.sysctl]\n\"vm.swappiness\" = 7\n[kernel.numa_balancing]\nscan_size_mb = 64";
        let scenario = mmtwin_scenario::parse("test", text, std::path::Path::new(""), &[]).expect("a scenario");
        let settings = settings(&scenario);
        let value = |path: &str| settings.iter().find(|s| s.path == path).map(|s| s.value.as_str());
        assert_eq!(value("/proc/sys/vm/swappiness"), Some("7"));
        assert_eq!(value("/proc/sys/vm/lowmem_reserve_ratio"), Some("256 256 32 0"));
        assert_eq!(value("/proc/sys/vm/min_free_kbytes"), None, "the kernel computes it");
        assert_eq!(value("/proc/sys/vm/page-cluster"), Some("3"));
        assert_eq!(value("/sys/kernel/mm/transparent_hugepage/enabled"), Some("never"));
        assert_eq!(value("/sys/kernel/debug/sched/numa_balancing/scan_size_mb"), Some("64"));
        assert_eq!(value("/sys/kernel/mm/lru_gen/enabled"), Some("0"));
    }

    #[test]
    fn bytes_of_dirty_memory_are_not_undone_by_the_percentage() {
        let text = "[machine]\npreset = \"lab-4n\"\n[kernel]\nrelease = \"6.1\"\n[kernel.sysctl]\n\
                    \"vm.dirty_bytes\" = 8388608\n\"vm.dirty_background_bytes\" = 0";
        let scenario = mmtwin_scenario::parse("test", text, std::path::Path::new(""), &[]).expect("a scenario");
        let settings = settings(&scenario);
        let value = |name: &str| settings.iter().find(|s| s.path.ends_with(name)).map(|s| s.value.as_str());
        assert_eq!((value("vm/dirty_bytes"), value("vm/dirty_ratio")), (Some("8388608"), None));
        // As it is anyway, which the guest does not write.
        assert_eq!((value("vm/dirty_background_bytes"), value("vm/dirty_background_ratio")), (Some("0"), Some("10")));
    }
}
