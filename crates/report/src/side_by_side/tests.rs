//! Comparisons as they are printed.

use super::*;
use crate::compare::compare;
use crate::model::{Better, Body, Cell, Finding, Gain, InputInfo, Metric, Report, Table};

fn row(key: &str, unit: &'static str, better: Better, value: f64) -> Metric {
    let (key, label) = (key.to_string(), key.replace('_', " "));
    let value = Cell::Float(value);
    Metric { key, label, unit: unit.into(), better, gain: Gain::None, decimals: None, value, published: None }
}

fn report(name: &str, rate: f64, psi: f64, findings: &[&str]) -> Report {
    let table =
        |name: &str, rows| Table { name: name.into(), title: name.into(), note: "".into(), body: Body::Metric(rows) };
    let work = vec![row("p/work:_accesses_per_second", "/s", Better::Higher, rate)];
    let overview = vec![
        row("elapsed", "s", Better::Lower, 30.0),
        row("PSI_memory_some", "%", Better::Lower, psi),
        row("freed", "pages/s", Better::Neutral, psi * 256.0),
    ];
    let finding =
        |key: &&str| Finding { key: key.to_string(), sentence: format!("{key} happened"), ..Finding::default() };
    Report {
        input: InputInfo { name: name.into(), arm: "twin".into(), ..InputInfo::default() },
        tables: vec![table("workload", work), table("overview", overview)],
        findings: findings.iter().map(finding).collect(),
        ..Report::default()
    }
}

fn screen(comparison: &Comparison) -> String {
    let subject = Subject { comparison, command: "mmtwin compare a b", aside: None };
    lines(&subject, &Style { width: 80, ..Style::default() }).join("\n")
}

#[test]
fn one_run_each_claims_nothing() {
    let columns = |a: f64, b: f64| {
        vec![
            ("a".to_string(), vec![report("a", a, 0.0, &["swap_storm", "oom_kill"])]),
            ("b".to_string(), vec![report("b", b, 12.5, &["cgroup_limit", "oom_kill"])]),
        ]
    };
    let text = screen(&compare(columns(480_000.0, 269_000.0)));
    for line in [
        "baseline a: simulated by the twin, 30.0 s elapsed",
        "one run each: no claim. 4 runs of each could show that one figure differs",
        "Worse, without a claim: 2",
        "  p/work: accesses/s  480 k/s     269 k/s       -44.0 %",
        "  PSI memory some         0 %      12.5 %  +12.5 points",
        "Changed, without a claim: 1",
        "  freed                     0  12.5 MiB/s        from 0",
        "Of these quantities: 1 equal.",
        "new finding: cgroup_limit happened",
        "gone: swap_storm happened",
        "findings on both sides: oom_kill",
    ] {
        assert!(text.contains(line), "no {line:?} in\n{text}");
    }
    // Less than half a percent is nothing that one run would tell.
    let text = screen(&compare(columns(480_000.0, 480_100.0)));
    assert!(text.contains("Worse, without a claim: 1") && text.contains("2 equal"), "{text}");
}

#[test]
fn several_runs_have_intervals_and_stars() {
    let runs = |from: f64| (0..6).map(|i| report("r", from + f64::from(i), 1.0, &[])).collect::<Vec<_>>();
    let text = screen(&compare(vec![("a".into(), runs(1000.0)), ("b".into(), runs(1100.0))]));
    assert!(text.contains("Better: 1, significantly\n"), "{text}");
    assert!(text.contains("p/work: accesses/s  1,002/s  1,102/s  +9.98 %* [+9.68, +10.3]"), "{text}");
    let comparison = compare(vec![("a".into(), runs(1000.0)), ("b".into(), runs(1100.0))]);
    let data = serde_json::to_value(differences(&comparison)).unwrap();
    let (first, change) = (&data["rows"][0], &data["rows"][0]["changes"][0]);
    assert_eq!((first["label"].as_str(), first["figures"][1].as_str()), (Some("p/work: accesses/s"), Some("1,102/s")));
    assert_eq!((change["state"].as_str(), change["significant"].as_bool()), (Some("better"), Some(true)));
    assert_eq!((change["change"].as_str(), change["interval"].as_str()), (Some("+9.98 %"), Some("[+9.68, +10.3]")));
    let few = |from: f64| (0..3).map(|i| report("r", from + f64::from(i), 1.0, &[])).collect::<Vec<_>>();
    let text = screen(&compare(vec![("a".into(), few(1000.0)), ("b".into(), few(1100.0))]));
    assert!(text.contains("3 and 3 runs: too few for any figure here to be significant; 4 of each"), "{text}");
    assert!(text.contains("Better: 1, none significantly"), "{text}");
}

#[test]
fn runs_of_one_column_are_medians() {
    let runs = (0..6).map(|i| report("s.toml", 1000.0 + f64::from(i), 1.0, &["oom_kill"])).collect::<Vec<_>>();
    let text = screen(&compare(vec![("s.toml".into(), runs)]));
    assert!(text.starts_with("s.toml: 6 runs, simulated by the twin, 30.0 s elapsed\nmedians of 6 runs"), "{text}");
    assert!(text.contains("p/work: accesses/s      1,002/s  [1,000/s, 1,005/s]"), "{text}");
    assert!(text.contains("in 6 of 6 runs: oom_kill happened"), "{text}");
}

/// Whatever there is, it is a screen.
#[test]
fn a_screen_has_forty_lines() {
    let many = |name: &str, value: f64| {
        let keys: Vec<&str> = vec!["a", "b", "c", "d", "e", "f", "g", "h"];
        let mut report = report(name, value, value, &keys);
        let rows = |i: usize| {
            let better = [Better::Lower, Better::Higher, Better::Neutral][i % 3];
            row(&format!("quantity_with_a_rather_long_name_of_a_process_{i}"), "s", better, value * (i + 1) as f64)
        };
        if let Body::Metric(all) = &mut report.tables[1].body {
            all.extend((0..200).map(rows));
        }
        report
    };
    for n in [2, 3, 6] {
        let columns = (0..n).map(|i| (format!("column-{i}"), vec![many("m", f64::from(i + 1))])).collect();
        let text = screen(&compare(columns));
        assert!(text.lines().count() <= LINES, "{}\n{text}", text.lines().count());
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}
