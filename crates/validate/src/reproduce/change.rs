//! A change of a quantity from one kernel to the next: its sign above the noise floor, published and of the twin, and
//! whether both agree.
//!
//! "No change" is a change that runs of one kernel may have among themselves: at most so many percent of the figure as
//! the study says of the published ones; of counts at most two standard deviations of counting, 2 sqrt(a + b); of
//! percentages at most a point, to which they are rounded. Of the twin with several seeds it is also a ratio that its own
//! runs of one kernel have among themselves, and a shift whose interval includes 0.

use mmtwin_report::statistics::{self, Interval, LEVEL};

/// What part of the pairs of runs of one kernel differ by at most the noise floor.
const NOISE_SHARE: f64 = 0.95;

/// Direction of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// Less than before.
    Down,
    /// No change above the noise floor.
    None,
    /// More than before.
    Up,
}

/// A change, in percent of what it begins with; infinite from 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moved {
    /// The change: of several runs the Hodges-Lehmann shift.
    pub percent: f64,
    /// Its interval of confidence over seeds, in percent too.
    pub interval: Option<Interval>,
    /// What runs of one kernel with other seeds differ by, the larger over the smaller: 95 of 100 pairs by at most this.
    pub noise: Option<f64>,
    /// Its direction.
    pub sign: Sign,
    /// Values before and after it, where they are known.
    pub values: Option<(f64, f64)>,
}

/// How a change of the twin agrees with the published one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// Both have the same sign.
    Sign,
    /// Neither is above its noise floor.
    NoneInBoth,
    /// Published, and not in the twin.
    Missed,
    /// Opposite signs.
    Opposite,
    /// In the twin, where none was published.
    Unpublished,
    /// The twin has no such quantity.
    NotModelled,
}

impl Agreement {
    /// Compares a published change with the twin's.
    pub(super) fn of(published: Sign, twin: Option<Sign>) -> Agreement {
        match (published, twin) {
            (_, None) => Agreement::NotModelled,
            (Sign::None, Some(Sign::None)) => Agreement::NoneInBoth,
            (Sign::None, Some(_)) => Agreement::Unpublished,
            (_, Some(Sign::None)) => Agreement::Missed,
            (a, Some(b)) if a == b => Agreement::Sign,
            _ => Agreement::Opposite,
        }
    }

    /// For people.
    pub(super) fn word(self) -> &'static str {
        match self {
            Agreement::Sign => "published sign",
            Agreement::NoneInBoth => "no change in both",
            Agreement::Missed => "no change in the twin",
            Agreement::Opposite => "opposite sign",
            Agreement::Unpublished => "none published",
            Agreement::NotModelled => "not modelled",
        }
    }
}

/// What counts as no change besides the noise of several runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Floor<'a> {
    /// Percent of the figure.
    pub percent: f64,
    /// Unit of the quantity.
    pub unit: &'a str,
}

impl Floor<'_> {
    /// The largest difference that is none.
    fn of(&self, before: f64, after: f64) -> f64 {
        let rounding = match self.unit {
            "%" => 1.0,
            _ if self.is_count() => 2.0 * (before.abs() + after.abs()).sqrt(),
            _ => 0.0,
        };
        rounding.max(before.abs() * self.percent / 100.0)
    }

    /// `noise`: the ratio that runs of one kernel have among themselves.
    fn sign(&self, before: f64, after: f64, noise: f64) -> Sign {
        let difference = after - before;
        match difference.abs() <= self.of(before, after) || self.ratio(before, after).is_some_and(|r| r <= noise) {
            true => Sign::None,
            false if difference > 0.0 => Sign::Up,
            false => Sign::Down,
        }
    }

    /// The larger over the smaller of two figures, of counts with one more of each; `None` with a 0 or below.
    fn ratio(&self, a: f64, b: f64) -> Option<f64> {
        let more = if self.is_count() { 1.0 } else { 0.0 };
        let (low, high) = (a.min(b) + more, a.max(b) + more);
        (low > 0.0).then(|| high / low)
    }

    fn is_count(&self) -> bool {
        matches!(self.unit, "" | "pages" | "faults")
    }

    /// The ratio that 95 of 100 pairs of runs of one kernel do not exceed.
    fn noise(&self, before: &[f64], after: &[f64]) -> Option<f64> {
        let mut ratios = Vec::new();
        for runs in [before, after] {
            let pairs = runs.iter().enumerate().flat_map(|(i, a)| runs[..i].iter().map(move |b| (*a, *b)));
            ratios.extend(pairs.filter_map(|(a, b)| self.ratio(a, b)));
        }
        percentile(&mut ratios, NOISE_SHARE)
    }

    /// Between two figures.
    pub(super) fn single(&self, before: f64, after: f64) -> Moved {
        let sign = self.sign(before, after, 1.0);
        let percent = percent(before, after);
        Moved { percent, interval: None, noise: None, sign, values: Some((before, after)) }
    }

    /// A change that was published without its figures.
    pub(super) fn published(&self, percent: f64) -> Moved {
        let sign = match percent {
            p if p.abs() <= self.percent => Sign::None,
            p if p > 0.0 => Sign::Up,
            _ => Sign::Down,
        };
        Moved { percent, interval: None, noise: None, sign, values: None }
    }

    /// Between runs of two kernels; `None` without any.
    pub(super) fn of_runs(&self, before: &[f64], after: &[f64]) -> Option<Moved> {
        let (from, to) = (median(before)?, median(after)?);
        let single = self.single(from, to);
        let Some(shift) = statistics::shift(before, after) else { return Some(single) };
        if from == 0.0 || before == after {
            return Some(single);
        }
        let of = |difference: f64| 100.0 * difference / from.abs();
        let interval = Interval { low: of(shift.interval.low), high: of(shift.interval.high), ..shift.interval };
        let noise = self.noise(before, after);
        let sign = match interval.low <= 0.0 && interval.high >= 0.0 {
            true => Sign::None,
            false => self.sign(from, from + shift.estimate, noise.unwrap_or(1.0)),
        };
        let noise = noise.map(|ratio| 100.0 * ratio - 100.0);
        Some(Moved { percent: of(shift.estimate), interval: Some(interval), noise, sign, ..single })
    }
}

/// The least value that so large a share of all does not exceed.
pub(super) fn percentile(values: &mut [f64], share: f64) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let rank = (values.len() as f64 * share).ceil() as usize;
    values.get(rank.checked_sub(1)?).copied()
}

fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    statistics::median(&sorted)
}

/// Percent from one value to another; a rise from nothing has no measure.
pub(super) fn percent(from: f64, to: f64) -> f64 {
    match from == to {
        true => 0.0,
        false => 100.0 * (to - from) / from.abs(),
    }
}

impl Moved {
    /// For people: percent, or both values of a change from nothing.
    pub(super) fn text(&self) -> String {
        match self.values {
            Some((from, to)) if !self.percent.is_finite() => format!("{from:.0} to {to:.0}"),
            _ => short(self.percent),
        }
    }

    /// Its interval for people; with what it covers, if that is less than [`LEVEL`].
    pub(super) fn interval_text(&self) -> Option<String> {
        let Interval { low, high, confidence } = self.interval?;
        let covers = match confidence < LEVEL {
            true => format!(" ({:.0} %)", 100.0 * confidence),
            false => String::new(),
        };
        Some(format!("{} to {}{covers}", short(low), short(high)))
    }
}

/// Percent with a sign, with decimals where they say something.
pub(super) fn short(percent: f64) -> String {
    match percent.abs() {
        // Nearly everything is gone: how nearly is the result.
        p if (99.0..100.0).contains(&p) && percent < 0.0 => format!("{percent:+.2} %"),
        p if p >= 9.95 || p == 0.0 => format!("{percent:+.0} %"),
        p if p >= 0.995 => format!("{percent:+.1} %"),
        _ => format!("{percent:+.2} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGES: Floor<'_> = Floor { percent: 10.0, unit: "pages" };

    #[test]
    fn what_is_below_the_floor_is_no_change() {
        let sign = |unit, from, to| Floor { percent: 10.0, unit }.single(from, to).sign;
        assert_eq!(sign("s", 100.0, 109.0), Sign::None);
        assert_eq!(sign("s", 100.0, 111.0), Sign::Up);
        // Counts of a few are chance, of many they are not.
        assert_eq!((sign("pages", 0.0, 3.0), sign("pages", 0.0, 30.0)), (Sign::None, Sign::Up));
        assert_eq!((sign("", 9.0, 4.0), sign("", 900.0, 400.0)), (Sign::None, Sign::Down));
        // Percentages are rounded to whole ones.
        assert_eq!((sign("%", 3.0, 4.0), sign("%", 3.0, 5.0)), (Sign::None, Sign::Up));
    }

    #[test]
    fn several_runs_have_an_interval_and_a_noise_floor() {
        let (before, after) = ([1000.0, 1010.0, 990.0, 1005.0], [1300.0, 1290.0, 1310.0, 1305.0]);
        let moved = PAGES.of_runs(&before, &after).expect("runs");
        let Interval { low, high, .. } = moved.interval.expect("several runs");
        assert!(low > 27.0 && high < 33.0 && (low..=high).contains(&moved.percent), "{moved:?}");
        assert!(moved.noise.is_some_and(|noise| (1.5..=2.2).contains(&noise)), "{moved:?}");
        assert_eq!(moved.sign, Sign::Up);
        // Far, but no farther than runs of one kernel are from each other.
        let wide = PAGES.of_runs(&[100.0, 900.0, 500.0, 700.0], &[2000.0, 200.0, 800.0, 900.0]).expect("runs");
        assert_eq!(wide.sign, Sign::None);
        assert_eq!(PAGES.of_runs(&[0.0, 0.0], &[0.0, 0.0]).expect("runs").sign, Sign::None);
        assert_eq!(PAGES.of_runs(&[], &[1.0]), None);
        // A fall is never above 100 %: ratios are compared.
        let fall = Floor { percent: 2.5, unit: "us" };
        let fall = fall.of_runs(&[900.0, 400.0, 800.0, 300.0], &[7.0, 6.9, 7.1, 7.0]).expect("runs");
        assert!(fall.sign == Sign::Down && fall.noise.is_some_and(|noise| noise > 150.0), "{fall:?}");
    }

    #[test]
    fn agreement_is_of_signs_above_the_floor_on_both_sides() {
        use Agreement as A;
        let of = |published, twin| A::of(published, Some(twin));
        assert_eq!((of(Sign::Up, Sign::Up), of(Sign::Up, Sign::Down)), (A::Sign, A::Opposite));
        assert_eq!((of(Sign::None, Sign::None), of(Sign::None, Sign::Up)), (A::NoneInBoth, A::Unpublished));
        assert_eq!((of(Sign::Down, Sign::None), A::of(Sign::Down, None)), (A::Missed, A::NotModelled));
    }

    #[test]
    fn changes_for_people() {
        assert_eq!(PAGES.single(0.0, 7.0).text(), "0 to 7");
        assert_eq!(PAGES.single(0.0, 0.0).text(), "+0 %");
        assert_eq!((short(-12.4), short(3.27), short(-0.313)), ("-12 %".into(), "+3.3 %".into(), "-0.31 %".into()));
    }

    #[test]
    fn percentiles() {
        let mut values: Vec<f64> = (1..=10).rev().map(f64::from).collect();
        assert_eq!((percentile(&mut values, 0.5), percentile(&mut values, 0.9)), (Some(5.0), Some(9.0)));
        assert_eq!(percentile(&mut [], 0.9), None);
    }
}
