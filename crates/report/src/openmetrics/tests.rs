//! The text against the grammar of OpenMetrics 1.0.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn row<'a>(source: &'a str, key: &'a str, names: &'a [String], values: &'a [Option<u64>]) -> CounterRow<'a> {
    CounterRow { source, key, at: 0, names, values }
}

fn written(exposition: &Exposition) -> String {
    let mut text = Vec::new();
    exposition.write(&mut text).unwrap();
    String::from_utf8(text).unwrap()
}

/// Takes labels in braces off a line: names and values, and what follows.
fn labels(text: &str) -> (Vec<(String, String)>, &str) {
    let Some(mut rest) = text.strip_prefix('{') else { return (Vec::new(), text) };
    let mut found = Vec::new();
    loop {
        let (name, after) = rest.split_once("=\"").expect("a label");
        assert!(name.chars().all(|c| c.is_ascii_lowercase()), "{name}");
        let (mut value, mut chars) = (String::new(), after.char_indices());
        let end = loop {
            match chars.next().expect("the end of a value") {
                (at, '"') => break at,
                (_, '\\') => match chars.next().expect("what is escaped").1 {
                    'n' => value.push('\n'),
                    c @ ('\\' | '"') => value.push(c),
                    c => panic!("\\{c}"),
                },
                (_, '\n') => panic!("a line break"),
                (_, c) => value.push(c),
            }
        };
        found.push((name.to_string(), value));
        match after[end + 1..].chars().next() {
            Some(',') => rest = &after[end + 2..],
            Some('}') => return (found, &after[end + 2..]),
            other => panic!("{other:?}"),
        }
    }
}

/// Name, labels, value and time.
type Sample = (String, Vec<(String, String)>, f64, Option<f64>);

/// Checks the whole text and gives its samples.
fn check(text: &str) -> Vec<Sample> {
    let body = text.strip_suffix("# EOF\n").expect("an end");
    let (mut families, mut family, mut kind) = (BTreeSet::new(), String::new(), String::new());
    let (mut samples, mut seen) = (Vec::new(), BTreeSet::new());
    for line in body.split_terminator('\n') {
        if let Some(comment) = line.strip_prefix("# ") {
            let mut words = comment.splitn(3, ' ');
            let (what, name, rest) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
            if what == "TYPE" {
                assert!(families.insert(name.to_string()), "{name} twice");
                (family, kind) = (name.into(), rest.into());
            }
            assert_eq!(name, family, "{what} within the family");
            assert!(what != "UNIT" || name.ends_with(&format!("_{rest}")), "{line}");
            assert!(["TYPE", "UNIT", "HELP"].contains(&what), "{line}");
            continue;
        }
        let end = line.find(['{', ' ']).expect("a value");
        let (name, rest) = line.split_at(end);
        assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'), "{name}");
        let suffix = match kind.as_str() {
            "counter" => "_total",
            "info" => "_info",
            "gauge" => "",
            other => panic!("{other}"),
        };
        assert_eq!(name, format!("{family}{suffix}"));
        let (labels, rest) = labels(rest);
        let mut words = rest.strip_prefix(' ').expect("a value").split(' ');
        let value: f64 = words.next().unwrap().parse().expect("a number");
        let at: Option<f64> = words.next().map(|at| at.parse().expect("a time"));
        assert!(words.next().is_none() && value >= 0.0, "{line}");
        assert!(seen.insert((name.to_string(), labels.clone(), at.map(f64::to_bits))), "{line} twice");
        samples.push((name.into(), labels, value, at));
    }
    samples
}

#[test]
fn families_are_whole_and_sorted() {
    let mut exposition = Exposition::new(100);
    exposition.about(vec![("kernel", "6.18".into())]);
    let names = ["pgscan_direct".to_string(), "nr_free_pages".into(), "unknown".into()];
    exposition.add(&row("vmstat", "", &names, &[Some(7), Some(8), None]), None);
    for node in ["0", "1"] {
        exposition.add(&row("numastat", node, &["numa_hit".to_string()], &[Some(3)]), None);
    }
    exposition.add(&row("vmstat", "", &names, &[Some(9), Some(8), None]), None);
    let text = written(&exposition);
    assert!(text.contains("# TYPE mmtwin_vmstat_pgscan_direct counter\n"));
    assert!(text.contains("mmtwin_vmstat_pgscan_direct_total 9\n"), "the last value: {text}");
    assert!(
        text.contains("mmtwin_numastat_numa_hit_total{node=\"0\"} 3\nmmtwin_numastat_numa_hit_total{node=\"1\"} 3\n")
    );
    assert!(!text.contains("unknown"), "what is not known is absent");
    assert_eq!(check(&text).len(), 3 + 4);
}

#[test]
fn times_go_forward() {
    let mut exposition = Exposition::new(100);
    let names = ["memory_some_total".to_string()];
    for (at, value) in [(1500, 1), (1500, 2), (2501, 3)] {
        exposition.add(&row("psi", "", &names, &[Some(value)]), Some(at));
    }
    let text = written(&exposition);
    let expected =
        "mmtwin_psi_memory_some_seconds_total 0.000001 1.500\nmmtwin_psi_memory_some_seconds_total 0.000003 2.501\n";
    assert!(text.contains(expected), "{text}");
    assert!(check(&text).iter().all(|(.., at)| at.is_some()), "promtool imports no value without a time: {text}");
}

#[test]
fn series_are_bounded_and_the_rest_is_counted() {
    let mut exposition = Exposition::new(3);
    for n in 0..10 {
        exposition.add(&row("cgroup", &format!("/{n}"), &["memory.current".to_string()], &[Some(1)]), None);
    }
    assert_eq!((exposition.series(), exposition.omitted()), (3, 7));
    let text = written(&exposition);
    assert!(text.contains("mmtwin_series_omitted 7\n"));
    check(&text);
}

proptest! {
    #[test]
    fn whatever_the_names_are_the_text_is_valid(
        rows in prop::collection::vec((0usize..9, ".*", prop::collection::vec((".{0,20}", any::<Option<u64>>()), 0..5)), 0..8)
    ) {
        let sources = ["vmstat", "zoneinfo", "node_vmstat", "numastat", "meminfo", "psi", "cgroup", "numa_maps", "other"];
        let mut exposition = Exposition::new(20);
        for (source, key, counters) in &rows {
            let (names, values): (Vec<String>, Vec<_>) = counters.iter().cloned().unzip();
            exposition.add(&row(sources[*source], key, &names, &values), None);
        }
        let samples = check(&written(&exposition));
        prop_assert_eq!(samples.len(), 2 + exposition.series());
    }
}
