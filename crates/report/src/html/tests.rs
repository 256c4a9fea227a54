//! What must hold of every page.

use super::*;
use crate::compare::single;
use crate::model::{Cell, Column, Finding, InputInfo, Report, Table};
use crate::screen::About;
use mmtwin_analysis::Analysis;
use mmtwin_analysis::series::OverTime;
use mmtwin_event::{CounterRow, Sink, Source};

/// Ends an element, a comment or a string, or begins one.
const HOSTILE: &str = "</script><script>alert(1)</script><!--\"'&\u{1b}[31m\u{2028}\0<img src=x onerror=alert(2)>";

fn over_time(cgroup: &str) -> OverTime {
    let mut over_time = OverTime::default();
    over_time.start(&Source { name: HOSTILE.into(), arm: "host".into(), ..Source::default() });
    let names = ["memory.current".to_owned(), "memory.max".to_owned()];
    let free = ["nr_free_pages".to_owned(), "pswpout".to_owned()];
    for second in 0..4000u64 {
        let at = (5 + second) * 1_000_000_000;
        let values = [Some(second * 4096), Some(1 << 30)];
        over_time.counters(&CounterRow { source: "cgroup", key: cgroup, at, names: &names, values: &values });
        let values = [Some(second), Some(second * second)];
        over_time.counters(&CounterRow { source: "vmstat", key: "", at, names: &free, values: &values });
    }
    over_time
}

fn report() -> Report {
    let column = Column { key: "a".into(), label: HOSTILE.into(), unit: "" };
    let rows = (0..5000).map(|i| vec![if i == 0 { Cell::Text(HOSTILE.into()) } else { Cell::int(i) }]).collect();
    let table = Table {
        name: "list".into(),
        title: HOSTILE.into(),
        note: String::new(),
        body: Body::List { columns: vec![column], rows },
    };
    let finding = Finding { key: "swap_storm".into(), severity: 90, sentence: HOSTILE.into(), ..Finding::default() };
    Report {
        input: InputInfo { name: HOSTILE.into(), arm: "host".into(), ..InputInfo::default() },
        findings: vec![finding],
        tables: vec![table],
        ..Report::default()
    }
}

fn page() -> String {
    let OverTime { analysis, series } = over_time(HOSTILE);
    written(&analysis, series)
}

fn written(analysis: &Analysis, series: Series) -> String {
    let (report, about) = (report(), About::default());
    let subject = Subject { analysis, report: &report, about: &about, chosen: None, kept: true };
    let mut out = Vec::new();
    let run = Run { name: HOSTILE, subject, series };
    write(HOSTILE, vec![run], &single(report.clone()), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// The JSON of an element.
fn data(page: &str, id: &str) -> serde_json::Value {
    let begin = format!("<script type=\"application/json\" id=\"{id}\">");
    let (_, rest) = page.split_once(&begin).unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

#[test]
fn names_are_no_markup() {
    let page = page();
    assert!(!page.contains("alert(1)</script>") && !page.contains("<img"), "of data nothing is markup");
    // Two elements of data and the script.
    let own = SCRIPT.matches("<script").count();
    assert_eq!(page.matches("<script").count() - own, 3);
    assert_eq!(data(&page, "report")["inputs"][0]["name"], HOSTILE);
    assert_eq!(data(&page, "page")["runs"][0]["name"], HOSTILE);
    assert!(!SCRIPT.contains("</script") && !SCRIPT.contains("<!--") && !STYLE.contains("</style"));
}

#[test]
fn a_policy_names_the_script_and_the_style() {
    let page = page();
    let policy = page.split("Content-Security-Policy").nth(1).unwrap().split('>').next().unwrap();
    assert!(policy.contains("default-src 'none'") && policy.matches("'sha256-").count() == 2, "{policy}");
    assert!(!policy.contains("unsafe"));
}

#[test]
fn charts_marks_and_tables() {
    let page = page();
    assert!(page.len() < LARGEST, "{}", page.len());
    let data = self::data(&page, "page");
    let run = &data["runs"][0];
    let ids: Vec<&str> = run["charts"].as_array().unwrap().iter().map(|c| c["id"].as_str().unwrap()).collect();
    assert_eq!(ids, [&format!("cgroup:{HOSTILE}"), "free", "swap"]);
    assert!(run["missing"].as_array().unwrap().iter().any(|title| title == "Refaults"));
    let mark = &run["marks"][0];
    assert_eq!((mark["key"].as_str(), mark["at"].as_f64()), (Some("swap_storm"), Some(3999.0)));
    for chart in run["charts"].as_array().unwrap() {
        for line in chart["lines"].as_array().unwrap() {
            let axis = &run["axes"][line["x"].as_u64().unwrap() as usize];
            assert_eq!(axis.as_array().unwrap().len(), line["y"].as_array().unwrap().len());
        }
    }
    let report = self::data(&page, "report");
    let table = &report["tables"][0];
    assert_eq!(table["rows"].as_array().unwrap().len(), 2000);
    assert!(table["note"].as_str().unwrap().starts_with("The first 2000 of 5000 rows"));
}

#[test]
fn without_times_there_are_tables_and_a_verdict() {
    let page = written(&Analysis::default(), Series::default());
    let data = data(&page, "page");
    assert!(data["runs"][0]["length"].is_null() && data["runs"][0]["charts"].as_array().unwrap().is_empty());
}

#[test]
fn the_same_bytes_each_time() {
    assert_eq!(page(), page());
}
