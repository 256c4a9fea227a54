//! Screens of made-up inputs: every one fits.

use super::*;
use crate::model::{Cell, CrossCheck, Finding, InputInfo};
use mmtwin_event::{CounterRow, Event, Kind, Sink, Source};

const SECOND: u64 = 1_000_000_000;

fn style(width: usize) -> Style {
    Style { width, ..Style::default() }
}

fn finding(severity: u8, sentence: &str) -> Finding {
    Finding {
        key: "k".into(),
        severity,
        sentence: sentence.into(),
        detail: "detail".into(),
        command: "mmtwin report r.mmt --table reclaim".into(),
        ..Finding::default()
    }
}

fn report(findings: Vec<Finding>) -> Report {
    let input =
        InputInfo { name: "r.mmt".into(), arm: "host".into(), kernel: Some("6.18.2".into()), ..InputInfo::default() };
    Report { input, findings, ..Report::default() }
}

fn screen(analysis: &Analysis, report: &Report, width: usize) -> Vec<String> {
    let about = About::default();
    lines(&Subject { analysis, report, about: &about, chosen: None, kept: true }, &style(width))
}

fn counters(analysis: &mut Analysis, source: &str, key: &str, at: u64, values: &[(&str, u64)]) {
    let names: Vec<String> = values.iter().map(|(name, _)| name.to_string()).collect();
    let values: Vec<Option<u64>> = values.iter().map(|(_, value)| Some(*value)).collect();
    analysis.counters(&CounterRow { source, key, at, names: &names, values: &values });
}

/// Ten seconds of a host: pressure in the second half, a cgroup near its limit, free memory.
fn host() -> Analysis {
    let mut analysis = Analysis::default();
    analysis.start(&Source { name: "r.mmt".into(), arm: "host".into(), ..Source::default() });
    for i in 0..=10u64 {
        let at = i * SECOND;
        let waited = i.saturating_sub(5) * 400_000;
        counters(&mut analysis, "psi", "", at, &[("memory_some_total", waited), ("io_some_total", 0)]);
        let vmstat = [("nr_free_pages", 100_000 - i * 1_000), ("workingset_refault_file", i * 500)];
        counters(&mut analysis, "vmstat", "", at, &vmstat);
        let usage = (i + 1) << 20;
        counters(&mut analysis, "cgroup", "/web", at, &[("memory.current", usage), ("memory.max", 16 << 20)]);
        counters(&mut analysis, "zoneinfo", "0/Normal", at, &[("low", 512), ("high", 600)]);
    }
    analysis
}

#[test]
fn the_strip_tells_when() {
    let screen = screen(&host(), &report(vec![]), 80).join("\n");
    let row = |label: &str| screen.lines().find(|line| line.starts_with(label)).unwrap_or_else(|| panic!("{screen}"));
    assert!(screen.contains("Over 10.0 s, "), "{screen}");
    let pressure = row("memory PSI some");
    assert!(pressure.ends_with("max 40.0 %") && pressure.contains("▁█"), "{pressure}");
    assert!(row("refaults").ends_with("max 500/s"), "{screen}");
    assert!(row("/web").contains("max 11.0 MiB of 16.0 MiB"), "{screen}");
    assert!(row("free memory").ends_with("min 352 MiB, low 2.00 MiB"), "{screen}");
    assert!(!screen.contains("io PSI"), "zero all the time: {screen}");
    assert!(screen.contains("not recorded: reclaim events"), "{screen}");
}

#[test]
fn the_most_that_a_cgroup_used_is_its_peak_if_that_is_new() {
    for (before, most) in [(4 << 20, "up to 15.0 MiB of 16.0 MiB"), (15 << 20, "up to 6.00 MiB of 16.0 MiB")] {
        let mut analysis = Analysis::default();
        for (at, usage, peak) in [(0, 4 << 20, before), (SECOND, 6 << 20, 15 << 20)] {
            let values = [("memory.current", usage), ("memory.max", 16 << 20), ("memory.peak", peak)];
            counters(&mut analysis, "cgroup", "/db", at, &values);
        }
        let screen = screen(&analysis, &report(vec![]), 80).join("\n");
        assert!(screen.contains(most), "{screen}");
    }
}

#[test]
fn the_strip_ends_with_what_was_recorded() {
    let (analysis, report) = (host(), report(vec![]));
    let about = About { start: Some(0), end: Some(12 * SECOND), ..About::default() };
    let subject = Subject { analysis: &analysis, report: &report, about: &about, chosen: None, kept: true };
    assert_eq!(range(&subject), Some((0, 10 * SECOND)));
    let nothing = Subject { analysis: &Analysis::default(), ..subject };
    assert_eq!(range(&nothing), Some((0, 12 * SECOND)));
}

#[test]
fn the_worst_findings_and_how_many_more() {
    let many: Vec<Finding> = (0..60).map(|severity| finding(severity, &format!("sentence {severity}."))).collect();
    let screen = screen(&host(), &report(many), 80);
    let text = screen.join("\n");
    assert!(screen.len() <= LINES, "{text}");
    assert!(text.find("sentence 59.") < text.find("sentence 58.") && text.contains("sentence 58."), "{text}");
    assert!(text.contains(" more: mmtwin report r.mmt findings"), "{text}");
    assert!(!text.contains("sentence 1."), "{text}");
}

#[test]
fn no_finding_is_a_result() {
    let text = screen(&Analysis::default(), &report(vec![]), 80).join("\n");
    assert!(text.contains("No finding: none of"), "{text}");
    assert!(text.contains("not recorded: PSI, refaults, free memory, reclaim events"), "{text}");
}

#[test]
fn what_is_missing_is_named_with_how_to_record_it() {
    let line = |arm: &str, filter: Option<&str>, analysis: &Analysis| {
        let mut report = report(vec![]);
        report.input.arm = arm.into();
        report.input.filter = filter.map(String::from);
        let from = screen(analysis, &report, 100).into_iter().skip_while(|line| !line.starts_with("not recorded"));
        from.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
    };
    let nothing = Analysis::default();
    let all = "not recorded: PSI, refaults, free memory, reclaim events";
    assert_eq!(line("import", Some("only from 1 s"), &nothing), format!("{all} (`mmtwin record` has them)"));
    assert_eq!(line("lab", None, &nothing), format!("{all} (`run.events` and `run.counters` of the scenario choose)"));
    // The machine's were recorded, and not asked for.
    assert_eq!(line("host", Some("only cgroup /web"), &nothing), "not recorded: reclaim events");
    let mut one = Analysis::default();
    counters(&mut one, "vmstat", "", 0, &[("pgfault", 1)]);
    let few = line("host", Some("only from 1 s"), &one);
    assert_eq!(few, "not recorded: two samples of counters in this time, reclaim events");
}

#[test]
fn what_is_missing_comes_first() {
    let mut report = report(vec![]);
    report.input.incomplete = vec!["cpu/0.pages: cut".into(), "b".into(), "c".into()];
    report.findings = vec![Finding { key: "input_incomplete".into(), ..finding(96, "the input is incomplete.") }];
    let screen = screen(&Analysis::default(), &report, 80);
    assert_eq!(screen[0], "incomplete: cpu/0.pages: cut; b; and 1 more: sums are too small");
    assert!(!screen.join("\n").contains("the input is incomplete."), "said once");
}

#[test]
fn a_wait_by_whom_and_what_helps() {
    use mmtwin_analysis::findings::{Cost, Waiter};
    let waiter = Waiter { name: "dd".into(), waited: 4 * SECOND, cgroup: None };
    let cost = Cost { waited: 4 * SECOND, by: vec![waiter], elapsed: Some(10 * SECOND), ..Cost::default() };
    let finding = Finding {
        cost: Some(cost),
        fix: Some("raise memory.max".into()),
        next: Some("mmtwin explain r.mmt --task 5".into()),
        ..finding(85, "cgroup /web hit its limit.")
    };
    let text = screen(&host(), &report(vec![finding]), 80).join("\n");
    for line in ["    waited 4.0 s of 10 s (40 %): dd", "    fix: raise memory.max", "    why: mmtwin explain"] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn anything_fits() {
    let long = "x".repeat(300);
    let words = "many words of a sentence ".repeat(60);
    let mut analysis = host();
    for i in 0..40 {
        counters(
            &mut analysis,
            "cgroup",
            &format!("/{long}{i}"),
            5,
            &[("memory.current", u64::MAX), ("memory.max", 1)],
        );
    }
    let begin = |pid| Event { pid, comm: b"a\x1b[2Jtask\n", ..event(Kind::MmVmscanMemcgReclaimBegin, 1, pid) };
    (1..50).for_each(|pid| analysis.event(&begin(pid)));
    let mut report = report((0..30).map(|severity| finding(severity, &format!("{words} {long}"))).collect());
    report.input.name = format!("/{long}/{long}.mmt");
    report.input.kernel = Some(long.clone());
    report.input.incomplete = vec![long.clone(); 5];
    let line =
        CrossCheck { key: "k".into(), label: words.clone(), events: Cell::Int(0), counters: Cell::Int(i128::MAX) };
    report.cross_check = vec![line];
    let about =
        About { command: vec![long.clone(), "\x1b]0;title\x07".into()], memory: Some(u64::MAX), ..About::default() };
    for width in [0, 60, 61, 80, 100, 5000] {
        let subject = Subject { analysis: &analysis, report: &report, about: &about, chosen: Some(&long), kept: true };
        let screen = lines(&subject, &style(width));
        let widest = screen.iter().map(|line| line.chars().count()).max().unwrap();
        assert!(screen.len() <= LINES, "{} lines of {width}: {screen:#?}", screen.len());
        assert!(widest <= width.clamp(NARROWEST, WIDEST), "{widest} of {width}: {screen:#?}");
        assert!(screen.iter().all(|line| !line.contains(char::is_control)), "{screen:#?}");
        assert!(screen.iter().any(|line| line.contains("more: mmtwin report REC findings")), "{screen:#?}");
    }
}

fn event(kind: Kind, ts: u64, pid: i32) -> Event<'static> {
    Event {
        ts,
        cpu: 0,
        pid,
        tgid: 0,
        flags: 0,
        preempt_count: 0,
        kind,
        id: 0,
        comm: b"",
        name: "",
        raw: b"",
        fields: mmtwin_event::Fields::Untyped,
    }
}

#[test]
fn nothing_at_all_is_a_screen_too() {
    let analysis = Analysis::default();
    let report = Report::default();
    let about = About::default();
    let subject = Subject { analysis: &analysis, report: &report, about: &about, chosen: None, kept: false };
    let screen = lines(&subject, &style(80));
    assert!(screen.len() <= LINES && !screen.is_empty());
    assert!(screen.last().is_some_and(|line| line.contains("mmtwin run")), "{screen:#?}");
}

#[test]
fn colours_only_repeat() {
    let analysis = host();
    let report = report(vec![finding(90, "bad.")]);
    let about = About::default();
    let subject = Subject { analysis: &analysis, report: &report, about: &about, chosen: None, kept: true };
    let coloured = lines(&subject, &Style { colour: true, ..style(80) });
    assert!(coloured.iter().any(|line| line.contains('\x1b')));
    assert_eq!(coloured.len(), lines(&subject, &style(80)).len());
}

#[test]
fn parts_that_do_not_fit_are_left_out_at_the_end() {
    let parts = ["one".to_string(), "two".into(), "three".into()];
    assert_eq!(parts_that_fit(&parts, 9), "one, two");
    assert_eq!(parts_that_fit(&parts, 2), "o…");
    assert_eq!(at_most("one two three", 7, 1), ["one t …"]);
}
