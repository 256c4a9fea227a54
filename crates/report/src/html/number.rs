//! Numbers of pictures: six significant digits, integers without a point, `null` for what is not known.

use serde::{Serialize, Serializer};

/// A value of a picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Number(pub(super) Option<f64>);

impl Number {
    /// The value with six significant digits.
    fn rounded(value: f64) -> f64 {
        format!("{value:.5e}").parse().unwrap_or(value)
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        /// Integers up to this one are exact as floats.
        const EXACT: f64 = 9e15;
        let Some(value) = self.0.filter(|value| value.is_finite()) else { return serializer.serialize_none() };
        let value = Number::rounded(value);
        if value.fract() == 0.0 && value.abs() < EXACT {
            return serializer.serialize_i64(value as i64);
        }
        serializer.serialize_f64(value)
    }
}

/// Seconds with microseconds.
pub(super) fn seconds(nanoseconds: u64) -> f64 {
    (nanoseconds / 1000) as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits() {
        let text = |value: Option<f64>| serde_json::to_string(&Number(value)).unwrap();
        assert_eq!(text(Some(104_857_600.0)), "104858000");
        assert_eq!(text(Some(1.0 / 3.0)), "0.333333");
        assert_eq!([text(None), text(Some(f64::NAN)), text(Some(0.0))], ["null", "null", "0"]);
        assert_eq!(seconds(1_234_567_891), 1.234567);
    }
}
