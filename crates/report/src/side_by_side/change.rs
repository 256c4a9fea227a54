//! How a figure and its change are written for people: three digits, the unit that fits, PSI and other shares in points.

use crate::compare::{Row, Value};
use crate::gain::Verdict;
use crate::units;

/// Below this a change is none, in percent of the baseline, or in points of a share.
const EQUAL_PERCENT: f64 = 0.5;
const EQUAL_POINTS: f64 = 0.05;
/// From here on a change is written as a factor.
const FACTOR: f64 = 10.0;

/// A number in a unit of the tables.
pub fn figure(value: f64, unit: &str) -> String {
    match unit {
        "%" => units::percent(value),
        _ if value == 0.0 => "0".into(),
        "pages" => units::pages(value),
        "pages/s" => format!("{}/s", units::pages(value)),
        "bytes" => units::bytes(value),
        "KiB" => units::bytes(value * 1024.0),
        "s" => units::time(value * 1e9),
        "ms" => units::time(value * 1e6),
        "us" => units::time(value * 1e3),
        "ns" => units::time(value),
        "/s" if value < 99.95 => format!("{}/s", units::three(value)),
        "/s" => format!("{}/s", units::count(value)),
        "" if value.fract() == 0.0 => units::count(value),
        "" => units::three(value),
        unit => format!("{} {unit}", units::three(value)),
    }
}

/// What a row says of a column against the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum State {
    /// In the wrong direction.
    Worse,
    /// In the right one.
    Better,
    /// Different, and neither direction is good.
    Other,
    /// Equal, as far as anybody would look.
    Equal,
    /// Not known on one side.
    Unknown,
}

/// The state of a column. Runs that differ from one another say more than the digits: a test that is significant is a
/// difference, however small.
pub(crate) fn state(row: &Row, value: &Value) -> State {
    let numbers = row.values.first().and_then(|base| base.cell.number()).zip(value.cell.number());
    let (Some((base, new)), Some(change)) = (numbers, value.change) else { return State::Unknown };
    let small = if row.unit == "%" { (new - base).abs() < EQUAL_POINTS } else { change.abs() < EQUAL_PERCENT };
    if base == new || small && !is_sure(value) {
        return State::Equal;
    }
    match value.verdict {
        Some(Verdict::Worse) => State::Worse,
        Some(Verdict::Better) => State::Better,
        None => State::Other,
    }
}

/// Whether the difference is significant.
pub(crate) fn is_sure(value: &Value) -> bool {
    value.test.is_some_and(|test| test.significant())
}

/// A part of the baseline, with its sign: `+12.0 %`, `x13.5`; of a share `+3.20 points`.
fn relative(base: f64, difference: f64, unit: &str) -> String {
    let signed = |number: f64, digits: String| format!("{}{digits}", if number < 0.0 { "-" } else { "+" });
    if difference == 0.0 {
        return "0 %".into();
    }
    if unit == "%" {
        return format!("{} points", signed(difference, units::three(difference.abs())));
    }
    if base == 0.0 {
        return "from 0".into();
    }
    let ratio = 1.0 + difference / base;
    if ratio >= FACTOR {
        return format!("x{}", units::three(ratio));
    }
    let percent = difference * 100.0 / base.abs();
    format!("{} %", signed(percent, units::three(percent.abs())))
}

/// The change of the medians.
pub(super) fn change(row: &Row, value: &Value) -> String {
    let numbers = row.values.first().and_then(|base| base.cell.number()).zip(value.cell.number());
    numbers.map_or(String::new(), |(base, new)| relative(base, new - base, &row.unit))
}

/// The interval of the change, `[-45 %, -42 %]`; empty with less than two runs, or from 0.
pub(super) fn interval(row: &Row, value: &Value) -> String {
    let Some(base) = row.values.first().and_then(|base| base.cell.number()) else { return String::new() };
    let Some(test) = value.test.filter(|_| base != 0.0 || row.unit == "%") else { return String::new() };
    let short = |end: f64| {
        let number = if row.unit == "%" { end } else { end * 100.0 / base.abs() };
        format!("{}{}", if number < 0.0 { "-" } else { "+" }, units::three(number.abs()))
    };
    format!("[{}, {}]", short(test.shift.interval.low), short(test.shift.interval.high))
}

/// The interval of a median, `[470 k, 490 k]`; empty if all runs are equal.
pub(crate) fn spread(row: &Row, value: &Value) -> String {
    let interval = value.interval.filter(|interval| interval.low != interval.high);
    interval.map_or(String::new(), |of| format!("[{}, {}]", figure(of.low, &row.unit), figure(of.high, &row.unit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_their_units() {
        for (value, unit, text) in [
            (256.0, "pages", "1.00 MiB"),
            (2560.0, "pages/s", "10.0 MiB/s"),
            (0.25, "s", "250 ms"),
            (29.31, "%", "29.3 %"),
            (479_613.0, "/s", "480 k/s"),
            (12.34, "/s", "12.3/s"),
            (7.0, "", "7"),
            (1.5, "objects", "1.50 objects"),
        ] {
            assert_eq!(figure(value, unit), text);
        }
    }

    #[test]
    fn changes_are_percent_points_or_factors() {
        assert_eq!(relative(480.0, -211.0, "/s"), "-44.0 %");
        assert_eq!(relative(2.0, 10.0, "%"), "+10.0 points");
        assert_eq!(relative(2.0, 25.0, "s"), "x13.5");
        assert_eq!(relative(0.0, 3.0, "s"), "from 0");
        assert_eq!(relative(0.0, 0.0, "s"), "0 %");
    }
}
