//! Quantities that are integers of a smallest unit.

use super::number::{self, Wrong};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// Reasons why a text is not a quantity. The message has an example of one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// There is no number in front.
    #[error("`{text}` is no {what}: expected a number and a unit, such as \"{example}\"")]
    Number {
        /// The text.
        text: String,
        /// The expected form.
        what: &'static str,
        /// How it is written.
        example: &'static str,
    },
    /// The unit is missing or unknown.
    #[error("`{text}` has no unit of {what}: use {units}, such as \"{example}\"")]
    Unit {
        /// The text.
        text: String,
        /// The expected form.
        what: &'static str,
        /// The units there are.
        units: String,
        /// How it is written.
        example: &'static str,
    },
    /// Too large for 64 bits.
    #[error("`{text}` is too large: the largest {what} is {largest}")]
    Overflow {
        /// The text.
        text: String,
        /// The expected form.
        what: &'static str,
        /// The largest value.
        largest: String,
    },
    /// A fraction of the smallest unit.
    #[error("`{text}` must be an integer number of {unit}")]
    Fraction {
        /// The text.
        text: String,
        /// The smallest unit.
        unit: &'static str,
    },
}

/// One quantity: a 64-bit integer, its units from the largest to the smallest, and how it is read and printed.
macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident, $what:literal, $example:literal, $units:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);

        impl $name {
            /// Units that are printed, from the largest to the smallest, with their factors.
            const UNITS: &'static [(&'static str, u64)] = &$units;
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&number::print(self.0, Self::UNITS))
            }
        }

        impl FromStr for $name {
            type Err = UnitError;

            fn from_str(text: &str) -> Result<Self, UnitError> {
                let factor = |unit: &str| Self::UNITS.iter().find(|(u, _)| *u == unit).map(|(_, worth)| *worth);
                number::read(text, factor).map(Self).map_err(|wrong| match wrong {
                    Wrong::Number => {
                        UnitError::Number { text: text.into(), what: $what, example: $example }
                    }
                    Wrong::Unit => {
                        let units: Vec<&str> = Self::UNITS.iter().rev().map(|(u, _)| *u).collect();
                        UnitError::Unit { text: text.into(), what: $what, units: units.join(", "), example: $example }
                    }
                    Wrong::Overflow => UnitError::Overflow {
                        text: text.into(),
                        what: $what,
                        largest: Self(u64::MAX / Self::UNITS[0].1 * Self::UNITS[0].1).to_string(),
                    },
                    Wrong::Fraction => UnitError::Fraction {
                        text: text.into(),
                        unit: Self::UNITS.last().map_or("", |(u, _)| *u),
                    },
                })
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl serde::de::Visitor<'_> for Visitor {
                    type Value = $name;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str(concat!("a ", $what, " with its unit, such as \"", $example, "\""))
                    }

                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$name, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_str(Visitor)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                let units: Vec<&str> = Self::UNITS.iter().map(|(u, _)| *u).collect();
                let pattern = format!(r"^\s*[0-9][0-9_]*(\.[0-9_]+)?\s*({})\s*$", units.join("|"));
                json_schema!({
                    "type": "string",
                    "pattern": pattern,
                    "description": concat!("A ", $what, " with its unit, such as \"", $example, "\""),
                })
            }
        }
    };
}

quantity! {
    /// An amount of memory in bytes.
    Bytes, "size", "12 GiB",
    [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)]
}
quantity! {
    /// A span of virtual time in nanoseconds.
    Time, "time", "60 s",
    [("h", 3_600_000_000_000), ("min", 60_000_000_000), ("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)]
}
quantity! {
    /// The cost of one small operation in picoseconds: finer than [`Time`], because many are added up.
    Cost, "cost", "85 ns",
    [("s", 1_000_000_000_000), ("ms", 1_000_000_000), ("us", 1_000_000), ("ns", 1_000), ("ps", 1)]
}
quantity! {
    /// Pages per second.
    PageRate, "rate of pages", "200k pages/s",
    [("G pages/s", 1_000_000_000), ("M pages/s", 1_000_000), ("k pages/s", 1_000), ("pages/s", 1)]
}
quantity! {
    /// Bytes per second. Decimal units, as memory bandwidth is published.
    Bandwidth, "bandwidth", "62 GB/s",
    [("TB/s", 1_000_000_000_000), ("GB/s", 1_000_000_000), ("MB/s", 1_000_000), ("kB/s", 1_000), ("B/s", 1)]
}
quantity! {
    /// Cycles per second.
    Frequency, "frequency", "2.2 GHz",
    [("GHz", 1_000_000_000), ("MHz", 1_000_000), ("kHz", 1_000), ("Hz", 1)]
}

impl Bytes {
    /// Whole pages that hold this many bytes.
    pub fn pages(self) -> u64 {
        self.0.div_ceil(super::PAGE)
    }
}

impl Time {
    /// True if it is none.
    pub(crate) fn is_zero(&self) -> bool {
        self.0 == 0
    }
}

impl Cost {
    /// True if it costs nothing.
    pub(crate) fn is_zero(&self) -> bool {
        self.0 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantities_read_and_print_in_the_units_people_use() {
        let reads = |text: &str| text.parse::<Bytes>().map(|bytes| bytes.0);
        assert_eq!(reads("12 GiB"), Ok(12 << 30));
        assert_eq!(reads("1.5GiB"), Ok(3 << 29));
        assert_eq!(reads(" 4_096 B "), Ok(4096));
        assert_eq!(Bytes(3 << 29).to_string(), "1.5 GiB");
        assert_eq!(Bytes(5000).to_string(), "5000 B");
        assert_eq!(Bytes(0).to_string(), "0 B");
        assert_eq!("200k pages/s".parse(), Ok(PageRate(200_000)));
        assert_eq!("60 s".parse(), Ok(Time(60_000_000_000)));
        assert_eq!("84.5 ns".parse(), Ok(Cost(84_500)));
        assert_eq!(Cost(84_500).to_string(), "84.5 ns");
        assert_eq!(Frequency(2_194_000_000).to_string(), "2.194 GHz");
        assert_eq!("62 GB/s".parse(), Ok(Bandwidth(62_000_000_000)));
    }

    #[test]
    fn an_error_of_a_quantity_has_an_example() {
        let message = |text: &str| text.parse::<Time>().expect_err("no time").to_string();
        assert_eq!(message("soon"), "`soon` is no time: expected a number and a unit, such as \"60 s\"");
        assert_eq!(message("60"), "`60` has no unit of time: use ns, us, ms, s, min, h, such as \"60 s\"");
        assert_eq!(message("1.5 ns"), "`1.5 ns` must be an integer number of ns");
        assert_eq!(message("9999999 h"), "`9999999 h` is too large: the largest time is 5124095 h");
        for text in ["", "-1 s", ".5 s", "1. s", "1.2.3 s", "1e3 s", "\u{664} s", "99999999999999999999999 ns"] {
            message(text);
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(value: u64, shift in 0u32..64) {
            let value = value >> shift;
            prop_assert_eq!(Bytes(value).to_string().parse(), Ok(Bytes(value)));
            prop_assert_eq!(Time(value).to_string().parse(), Ok(Time(value)));
            prop_assert_eq!(Cost(value).to_string().parse(), Ok(Cost(value)));
            prop_assert_eq!(PageRate(value).to_string().parse(), Ok(PageRate(value)));
        }

        #[test]
        fn round_values_read_back(value in 0u64..100_000, unit in 0usize..6) {
            let value = value * Time::UNITS[unit].1;
            prop_assert_eq!(Time(value).to_string().parse(), Ok(Time(value)));
        }
    }
}
