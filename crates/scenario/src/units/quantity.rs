//! Quantities that are integers of a smallest unit.

use super::number::{self, Wrong};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// Why a text is no quantity. The message says what would be one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// There is no number in front.
    #[error("`{text}` is no {what}: expected a number and a unit, such as \"{example}\"")]
    Number {
        /// What was written.
        text: String,
        /// What was expected.
        what: &'static str,
        /// How it is written.
        example: &'static str,
    },
    /// The unit is missing or unknown.
    #[error("`{text}` has no unit of {what}: use {units}, such as \"{example}\"")]
    Unit {
        /// What was written.
        text: String,
        /// What was expected.
        what: &'static str,
        /// The units there are.
        units: String,
        /// How it is written.
        example: &'static str,
    },
    /// Too large for 64 bits.
    #[error("`{text}` is too large: the largest {what} is {largest}")]
    Overflow {
        /// What was written.
        text: String,
        /// What was expected.
        what: &'static str,
        /// The largest value.
        largest: String,
    },
    /// A fraction of the smallest unit.
    #[error("`{text}` is no whole number of {unit}")]
    Fraction {
        /// What was written.
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
            /// Units that are printed, from the largest to the smallest, with their worth.
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
