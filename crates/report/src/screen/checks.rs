//! Whether events and counters tell the same, in one line.

use super::{Line, Subject, at_most};
use crate::format::grid::Tone;
use crate::model::{Cell, CrossCheck};
use crate::units;

pub(super) fn lines(subject: &Subject<'_>, width: usize) -> Vec<Line> {
    let tone = Tone::Faint;
    at_most(&text(&subject.report.cross_check), width, 2).into_iter().map(|text| Line::new(tone, text)).collect()
}

fn text(checks: &[CrossCheck]) -> String {
    let both: Vec<(&CrossCheck, f64)> =
        checks.iter().filter_map(|line| Some((line, line.difference().number()?))).collect();
    if both.is_empty() {
        return "cross-check: no figure has both events and counters".into();
    }
    let equal = both.iter().filter(|(_, difference)| *difference == 0.0).count();
    let share = |line: &CrossCheck, difference: f64| {
        let of = number(&line.events).max(number(&line.counters));
        if of > 0.0 { difference.abs() * 100.0 / of } else { 0.0 }
    };
    let worst = both.iter().map(|(line, difference)| (share(line, *difference), line.label.as_str()));
    let worst = worst.reduce(|a, b| if b.0 > a.0 { b } else { a }).filter(|(share, _)| *share > 0.0);
    let worst = worst
        .map_or(String::new(), |(share, label)| format!("; largest difference {} ({label})", units::percent(share)));
    format!("cross-check: {equal} of {} sums over events equal the kernel's counters{worst}", both.len())
}

fn number(cell: &Cell) -> f64 {
    cell.number().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Na;

    #[test]
    fn worst_difference_and_what_has_no_other_side() {
        let line =
            |label: &str, events, counters| CrossCheck { key: label.into(), label: label.into(), events, counters };
        assert_eq!(text(&[]), "cross-check: no figure has both events and counters");
        let lines = [
            line("one", Cell::Int(100), Cell::Int(100)),
            line("two", Cell::Int(90), Cell::Int(100)),
            line("three", Cell::Int(0), Cell::Na(Na::Lost)),
        ];
        let expected =
            "cross-check: 1 of 2 sums over events equal the kernel's counters; largest difference 10.0 % (two)";
        assert_eq!(text(&lines), expected);
        assert!(text(&lines[..1]).ends_with("counters"), "no difference, none named");
    }
}
