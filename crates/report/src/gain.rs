//! Rules of gain: how a change against the baseline is written.
//!
//! The conventions are those of the published reclaim tables (2010 and 2012) and of MMTests. They differ in what they
//! divide by, in their sign and in what they print where a division is impossible; each is kept exactly, edge cases
//! first, because a table is compared with its published form digit by digit. They are for printing. A decision (which
//! direction is worse, `--fail-on`) uses [`change`], which has no special cases but a baseline of 0.
//! Validated against the gains published with the two series.

use crate::model::{Better, Gain};

impl Gain {
    /// The gain of `new` over `base` by this rule, in percent or percentage points; `None` without a rule, or where
    /// the result is not a finite number.
    pub fn of(self, base: f64, new: f64) -> Option<f64> {
        let same = new == base || new == 0.0;
        let gain = match self {
            Gain::None => return None,
            Gain::Points => new - base,
            Gain::RelativeToNew | Gain::Percent | Gain::PercentLower if same => 0.0,
            Gain::RelativeToNew => (new - base) * 100.0 / new,
            Gain::Percent if base == 0.0 => 100.0,
            Gain::Percent => new * 100.0 / base - 100.0,
            Gain::PercentLower if base == 0.0 => -99.0,
            Gain::PercentLower => 100.0 - new * 100.0 / base,
        };
        Some(gain).filter(|g| g.is_finite())
    }
}

/// The plain change from `base` to `new` in percent of the baseline: positive when the number grew. From 0 to anything
/// else it is infinite.
pub fn change(base: f64, new: f64) -> f64 {
    if base == new { 0.0 } else { (new - base) * 100.0 / base.abs() }
}

/// Whether `new` is better or worse than `base`; `None` if equal or if the row prefers no direction.
pub fn judge(better: Better, base: f64, new: f64) -> Option<Verdict> {
    let grew = new.partial_cmp(&base).filter(|o| o.is_ne())?.is_gt();
    match better {
        Better::Neutral => None,
        Better::Higher => Some(if grew { Verdict::Better } else { Verdict::Worse }),
        Better::Lower => Some(if grew { Verdict::Worse } else { Verdict::Better }),
    }
}

/// A change permanently or bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// In the wanted direction.
    Better,
    /// Against it.
    Worse,
}

impl Verdict {
    /// The word of every output.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn printed(gain: Gain, base: f64, new: f64) -> String {
        format!("{:.2}", gain.of(base, new).unwrap())
    }

    #[test]
    fn published_2010_vmstat() {
        // X86-64 and PPC64, micro-mapped-file-stream
        for (base, new, expected) in [
            (1639.0, 578.0, "-183.56"),
            (1639.0, 667.0, "-145.73"),
            (71.0, 134.0, "47.01"),
            (71.0, 352.0, "79.83"),
            (729.0, 85.0, "-757.65"),
            (443.0, 1568.0, "71.75"),
            (2842410.0, 2843014.0, "0.02"),
            (977.0, 2751.0, "64.49"),
            (0.0, 0.0, "0.00"),
        ] {
            assert_eq!(printed(Gain::RelativeToNew, base, new), expected, "{base} {new}");
        }
    }

    #[test]
    fn published_2012_benchmarks() {
        // fs-mark overhead: lower is better
        for (base, new, expected) in [
            (18200.69, 331958.29, "-1723.88"),
            (18200.69, 1579579.43, "-8578.68"),
            (18200.69, 9576.81, "47.38"),
            (576775.0, 6901055.0, "-1096.49"),
            (508667.0, 521350.0, "-2.49"),
        ] {
            assert_eq!(printed(Gain::PercentLower, base, new), expected, "{base} {new}");
        }
        // postmark: higher is better
        for (base, new, expected) in [
            (556.0, 6124.0, "1001.44"),
            (556.0, 3062.0, "450.72"),
            (16.0, 20.0, "25.00"),
            (18.8, 24.27, "29.10"),
            (8.0, 8.0, "0.00"),
        ] {
            assert_eq!(printed(Gain::Percent, base, new), expected, "{base} {new}");
        }
        // stress-highalloc: points
        for (base, new, expected) in [(81.0, 28.0, "-53.00"), (25.0, 42.0, "17.00"), (88.0, 88.0, "0.00")] {
            assert_eq!(printed(Gain::Points, base, new), expected, "{base} {new}");
        }
    }

    #[test]
    fn edges() {
        assert_eq!(Gain::RelativeToNew.of(5.0, 0.0), Some(0.0));
        assert_eq!(Gain::RelativeToNew.of(0.0, 5.0), Some(100.0));
        assert_eq!(Gain::Percent.of(5.0, 0.0), Some(0.0));
        assert_eq!(Gain::Percent.of(0.0, 5.0), Some(100.0));
        assert_eq!(Gain::PercentLower.of(5.0, 0.0), Some(0.0));
        assert_eq!(Gain::PercentLower.of(0.0, 5.0), Some(-99.0));
        assert_eq!(Gain::PercentLower.of(0.0, 0.0), Some(0.0));
        assert_eq!(Gain::Points.of(5.0, 0.0), Some(-5.0));
        assert_eq!(Gain::None.of(1.0, 2.0), None);
        assert_eq!(Gain::Percent.of(f64::MIN_POSITIVE, 1e300), None);
    }

    #[test]
    fn plain_change() {
        assert_eq!(change(10.0, 11.0), 10.0);
        assert_eq!(change(10.0, 0.0), -100.0);
        assert_eq!(change(-10.0, -11.0), -10.0);
        assert_eq!(change(0.0, 0.0), 0.0);
        assert_eq!(change(0.0, 1.0), f64::INFINITY);
    }

    #[test]
    fn verdicts() {
        assert_eq!(judge(Better::Lower, 1.0, 2.0), Some(Verdict::Worse));
        assert_eq!(judge(Better::Higher, 1.0, 2.0), Some(Verdict::Better));
        assert_eq!(judge(Better::Higher, 2.0, 2.0), None);
        assert_eq!(judge(Better::Neutral, 1.0, 2.0), None);
    }

    proptest! {
        #[test]
        fn finite_or_nothing(base in any::<f64>(), new in any::<f64>()) {
            for rule in [Gain::RelativeToNew, Gain::Percent, Gain::PercentLower, Gain::Points] {
                prop_assert!(rule.of(base, new).is_none_or(f64::is_finite));
            }
        }
    }
}
