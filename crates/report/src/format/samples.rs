//! Reports to print in tests: every kind of table, findings, losses, several columns and several runs.

use crate::compare::{Comparison, compare, single};
use crate::model::*;
use proptest::prelude::*;

fn metric(key: &str, label: &str, better: Better, gain: Gain, decimals: Option<u8>, value: Cell) -> Metric {
    let unit = if key.starts_with("pages") { "pages" } else { "" };
    let (unit, published) = (unit.into(), None);
    Metric { key: key.into(), label: label.into(), unit, better, gain, decimals, value, published }
}

fn table(name: &str, title: &str, note: &str, body: Body) -> Table {
    Table { name: name.into(), title: title.into(), note: note.into(), body }
}

fn column(key: &str, label: &str, unit: &'static str) -> Column {
    Column { key: key.into(), label: label.into(), unit }
}

fn vmscan(direct: u64, scanned: u64, efficiency: f64, stalled: f64) -> Body {
    use Better::{Higher, Lower, Neutral};
    Body::Metric(vec![
        metric("direct_reclaims", "Direct reclaims", Lower, Gain::PercentLower, None, Cell::int(direct)),
        metric("pages_scanned", "Pages scanned", Neutral, Gain::RelativeToNew, None, Cell::int(scanned)),
        metric("efficiency", "%age pages scanned/reclaimed", Higher, Gain::Points, Some(2), Cell::Float(efficiency)),
        metric("time_stalled", "Time stalled", Lower, Gain::None, Some(2), Cell::Float(stalled)),
        metric("writepages", "Pages written", Lower, Gain::Percent, None, Cell::Na(Na::NotInKernel)),
    ])
}

fn busiest(first: u64) -> Body {
    let row = |name: &str, scanned, latency| vec![Cell::Text(name.into()), Cell::int(scanned), latency];
    Body::List {
        columns: vec![
            column("process", "Process", ""),
            column("scanned", "Pages scanned", "pages"),
            column("p99", "p99 latency", "ms"),
        ],
        rows: vec![
            row("stress,\"quoted\"-77", first, Cell::Float(12.25)),
            row("kswapd0", 4_599_269, Cell::Na(Na::Lost)),
            row("bad\x1b[2Jname", 3, Cell::Float(0.004)),
        ],
    }
}

fn report(name: &str, direct: u64, stalled: f64) -> Report {
    let nodes = || vec!["N0".to_owned(), "N1".to_owned()];
    let moves = Body::Matrix {
        rows: nodes(),
        columns: nodes(),
        axes: ("from node".into(), "to node".into()),
        unit: "tasks",
        values: vec![vec![Cell::int(0), Cell::int(direct)], vec![Cell::Int(12), Cell::Na(Na::NotRecorded)]],
    };
    let latency =
        Body::Histogram { unit: "us", slots: vec![(0, 1, 2), (2, 3, direct), (4, 7, 0)], mean: Some(2.4), total: 99 };
    let locality = Body::Series {
        columns: vec![column("time", "Time", "s"), column("local", "Local faults", "%")],
        rows: (0..25).map(|i| vec![Cell::Float(f64::from(i) * 0.5), Cell::Float(50.0 + f64::from(i))]).collect(),
    };
    let finding = |key: &str, severity, sentence: &str, detail: &str| Finding {
        key: key.into(),
        severity,
        sentence: sentence.into(),
        detail: detail.into(),
        command: format!("mmtwin report {name} --table {key}"),
        ..Finding::default()
    };
    Report {
        input: InputInfo {
            name: name.into(),
            arm: "host".into(),
            kernel: Some("6.18.3".into()),
            lost_events: Some(7),
            lost_at_least: 7,
            incomplete: Vec::new(),
            events: 123_456,
            counters_only: false,
            scenario: None,
            filter: None,
        },
        findings: vec![
            finding("numa", 20, "hint faults are 40 % remote.", ""),
            finding(
                "cgroup",
                80,
                "cgroup /web hit its limit 4,251 times: 549 k pages scanned for 339 k freed (efficiency 62 %), 51 k refaults.",
                "its working set is larger than its limit.",
            ),
        ],
        cross_check: vec![
            CrossCheck {
                key: "direct_scans".into(),
                label: "direct scans".into(),
                events: Cell::int(4_454_162),
                counters: Cell::int(4_504_129),
            },
            CrossCheck {
                key: "kswapd_scans".into(),
                label: "kswapd scans".into(),
                events: Cell::int(4_454_162),
                counters: Cell::Na(Na::NotRecorded),
            },
        ],
        tables: vec![
            table("vmscan", "Reclaim", "Pages are 4 KiB.", vmscan(direct, 4_905_237, 47.69, stalled)),
            table("busiest", "Busiest processes", "", busiest(direct * 10)),
            table("moves", "Task moves", "", moves),
            table("latency", "Latency of direct reclaim", "", latency),
            table("locality", "Locality over time", "", locality),
            table(
                "thp",
                "Huge pages",
                "",
                Body::Metric(vec![metric("thp", "THP", Better::Higher, Gain::None, None, Cell::Na(Na::NotRecorded))]),
            ),
        ],
    }
}

/// A report on one input.
pub(crate) fn one() -> Comparison {
    single(report("r.mmt", 443, 4.336))
}

/// Two inputs; the second lacks a table and prints other values.
pub(crate) fn compared() -> Comparison {
    let mut other = report("runs/new.mmt", 1568, 2.96);
    other.tables.retain(|table| table.name != "latency");
    (other.input.lost_events, other.input.lost_at_least) = (None, 0);
    compare(vec![("base".into(), vec![report("base.mmt", 443, 4.336)]), ("new".into(), vec![other])])
}

/// Two columns of eight runs: one row changes clearly, one does not.
pub(crate) fn runs() -> Comparison {
    let run = |column: &str, i: u64, direct, stalled| {
        let mut report = report(&format!("{column}{i}.mmt"), direct, stalled);
        report.tables.retain(|table| table.name == "vmscan");
        report.findings.clear();
        report.cross_check.clear();
        report
    };
    let base = (0..8).map(|i| run("a", i, 440 + i, 4.0 + (i * 3 % 8) as f64 / 10.0)).collect();
    let new = (0..8).map(|i| run("b", i, 520 + 2 * i, 4.05 + (i * 5 % 8) as f64 / 10.0)).collect();
    compare(vec![("base".into(), base), ("new".into(), new)])
}

/// A published table beside its reproduction; one row was not published, one not reproduced.
pub(crate) fn reproduced() -> Comparison {
    let row = |key: &str, published: Option<(f64, bool)>, value| Metric {
        unit: "us".into(),
        published: published.map(|(value, fitted)| Published { value, fitted }),
        ..metric(key, &format!("{key} CPUs"), Better::Lower, Gain::None, Some(1), value)
    };
    let rows = vec![
        row("72", Some((14.0, false)), Cell::Float(11.04)),
        row("192", Some((1139.0, true)), Cell::Float(1139.52)),
        row("448", Some((6883.0, false)), Cell::Na(Na::NotRecorded)),
        row("896", None, Cell::Int(20_000)),
    ];
    let input = InputInfo { name: "twin".into(), arm: "twin".into(), ..InputInfo::default() };
    let tables = vec![table("study-average", "Average latency", "", Body::Metric(rows))];
    single(Report { input, tables, ..Report::default() })
}

fn any_cell() -> impl Strategy<Value = Cell> {
    prop_oneof![
        any::<i128>().prop_map(Cell::Int),
        any::<f64>().prop_map(Cell::Float),
        prop_oneof![Just(f64::NAN), Just(f64::INFINITY), Just(f64::MAX), Just(-0.0), Just(1e-300)]
            .prop_map(Cell::Float),
        "[a-z,\"\n ]{0,5}".prop_filter("words of the check", |w| !w.contains("inf")).prop_map(Cell::Text),
        prop_oneof![Just(Na::NotRecorded), Just(Na::NotInKernel), Just(Na::Lost)].prop_map(Cell::Na),
    ]
}

fn any_metric() -> impl Strategy<Value = Metric> {
    let gain = prop_oneof![
        Just(Gain::None),
        Just(Gain::RelativeToNew),
        Just(Gain::Percent),
        Just(Gain::PercentLower),
        Just(Gain::Points)
    ];
    let better = prop_oneof![Just(Better::Lower), Just(Better::Higher), Just(Better::Neutral)];
    let decimals = prop::option::of(0u8..4);
    let published = prop::option::of((prop::num::f64::NORMAL | prop::num::f64::ZERO, any::<bool>()));
    ("[a-c]", gain, better, decimals, any_cell(), published).prop_map(
        |(key, gain, better, decimals, value, published)| Metric {
            published: published.map(|(value, fitted)| Published { value, fitted }),
            ..metric(&key, &key, better, gain, decimals, value)
        },
    )
}

/// A report of any cells, with keys that collide.
pub(crate) fn any_report() -> impl Strategy<Value = Report> {
    let metrics =
        prop::collection::vec(any_metric(), 0..4).prop_map(|rows| table("metrics", "", "", Body::Metric(rows)));
    let cells = || prop::collection::vec(prop::collection::vec(any_cell(), 3), 0..4);
    let list = cells().prop_map(|rows| {
        let columns = ["a", "b", "c"].map(|key| column(key, key, "")).to_vec();
        table("list", "", "", Body::List { columns, rows })
    });
    let matrix = cells().prop_map(|values| {
        let rows = (0..values.len()).map(|i| i.to_string()).collect();
        let columns = ["x", "y", "z"].map(str::to_owned).to_vec();
        table("matrix", "", "", Body::Matrix { rows, columns, axes: ("r".into(), "c".into()), unit: "", values })
    });
    let slots = prop::collection::vec(any::<(u64, u64, u64)>(), 0..4);
    let histogram = (slots, prop::option::of(any::<f64>()), any::<u64>()).prop_map(|(slots, mean, total)| {
        table("histogram", "", "", Body::Histogram { unit: "ns", slots, mean, total })
    });
    let line = (any_cell(), any_cell()).prop_map(|(events, counters)| CrossCheck {
        key: "k".into(),
        label: "l".into(),
        events,
        counters,
    });
    (prop::collection::vec(prop_oneof![metrics, list, matrix, histogram], 0..5), prop::collection::vec(line, 0..3))
        .prop_map(|(tables, cross_check)| Report { tables, cross_check, ..Report::default() })
}
