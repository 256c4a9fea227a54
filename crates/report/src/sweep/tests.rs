use super::*;
use crate::format::Style;
use crate::model::Better;

fn quantity(key: &str, label: &str, unit: &str, better: Better) -> Quantity {
    Quantity { key: key.into(), label: label.into(), unit: unit.into(), better }
}

/// Three limits with two seeds; the smallest runs out of memory.
fn sweep(seeds: u64) -> Sweep {
    let mut rows = Vec::new();
    for (case, (limit, rate)) in [("64 MiB", 900.0), ("128 MiB", 100.0), ("256 MiB", 200.0)].into_iter().enumerate() {
        for seed in 1..=seeds {
            let killed = case == 0;
            rows.push(Row {
                id: format!("{case}-{seed}"),
                case: vec![limit.into(), "6.1".into()],
                numbers: vec![Some((64u64 << 20 << case) as f64), None],
                seed,
                status: if killed { Status::OutOfMemory } else { Status::TimeUp },
                reason: killed.then(|| "p was killed".to_owned()),
                findings: vec![("swap_storm".into(), "much went out".into())],
                values: vec![(0, Number::Float(rate + seed as f64)), (1, Number::Int(1000 >> case))],
            });
        }
    }
    Sweep {
        version: "mmtwin 0.1.0".into(),
        scenario: "s.toml".into(),
        keys: vec!["cgroup./box.memory.max".into(), "kernel.release".into()],
        planned: rows.len(),
        quantities: vec![
            quantity(
                "workload.p_work__zipf_heap__accesses_per_second",
                "p/work: accesses per second",
                "/s",
                Better::Higher,
            ),
            quantity("overview.major_faults", "major faults", "/s", Better::Lower),
        ],
        rows,
    }
}

#[test]
fn the_best_case_is_one_that_reached_its_end() {
    let text = lines(&sweep(1), &Style::default(), false);
    let row = |start: &str| text.iter().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{text:?}"));
    assert_eq!(text[0], "s.toml, kernel.release=6.1: 3 cases, 3 runs");
    assert!(row("64 MiB").contains("n/a") && row("64 MiB").ends_with("out of memory"), "{text:?}");
    assert!(row("256 MiB").contains("201/s") && row("256 MiB").ends_with("best"), "{text:?}");
    assert!(
        text.contains(&"memory.max=64 MiB, kernel.release=6.1, seed 1: out of memory: p was killed".to_owned()),
        "{text:?}"
    );
    assert!(text.iter().any(|line| line.contains("One seed")), "{text:?}");
    assert!(text.contains(&"Findings: swap_storm in 3 runs".to_owned()), "{text:?}");
}

#[test]
fn several_seeds_have_intervals() {
    let text = lines(&sweep(3), &Style::default(), false).join("\n");
    assert!(text.contains("202/s [201/s, 203/s]"), "{text}");
    assert!(text.contains("With 3 seeds no difference can be significant"), "{text}");
}

#[test]
fn a_curve_is_of_the_workload_or_of_a_quantity() {
    let style = Style { width: 60, ..Style::default() };
    let drawn = curve(&sweep(1), "memory.max", &style).unwrap();
    assert_eq!(drawn[0], "p/work: accesses/s over memory.max, kernel.release=6.1");
    assert_eq!(drawn.len(), 13);
    assert!(drawn[12].contains("64 MiB") && drawn[12].ends_with("256 MiB"), "{drawn:?}");
    assert!(drawn.iter().all(|line| line.chars().count() <= 60), "{drawn:?}");
    let faults = curve(&sweep(1), "overview.major_faults", &style).unwrap();
    assert_eq!(faults[0], "major faults over memory.max, kernel.release=6.1");
    let wrong = curve(&sweep(1), "overview.major_fault", &style).unwrap_err().to_string();
    assert!(wrong.contains("did you mean 'overview.major_faults'?"), "{wrong}");
}

#[test]
fn keys_are_short_where_they_differ() {
    let keys = |keys: &[&str]| short_keys(&keys.iter().map(|key| key.to_string()).collect::<Vec<_>>());
    assert_eq!(keys(&["kernel.sysctl.vm.swappiness", "kernel.thp"]), ["vm.swappiness", "kernel.thp"]);
    assert_eq!(
        keys(&["cgroup./a.memory.max", "cgroup./b.memory.max"]),
        ["cgroup./a.memory.max", "cgroup./b.memory.max"]
    );
}

#[test]
fn nothing_is_a_table_too() {
    let empty = Sweep { scenario: "s.toml".into(), planned: 4, version: "v".into(), ..Sweep::default() };
    assert_eq!(lines(&empty, &Style::default(), false)[0], "s.toml: 0 cases, 0 of 4 runs");
    assert!(curve(&empty, "x", &Style::default()).is_err());
}
