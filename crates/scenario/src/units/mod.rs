//! Quantities with units, as a scenario writes them: "12 GiB", "60 s", "200k pages/s", "62 GB/s", "2.2 GHz", "30 %".
//!
//! Every quantity is an integer in its smallest unit, so that the written value is used exactly; a decimal fraction is
//! accepted if it is an integer number of that unit. Printing uses the largest unit that needs no fraction, and reading
//! that again yields the same value. Nothing overflows silently.

mod list;
mod number;
mod quantity;
mod share;

pub use list::{List, ListError};
pub use quantity::{Bandwidth, Bytes, Cost, Frequency, PageRate, Time, UnitError};
pub use share::{Share, ShareError};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;

/// A page of memory in bytes.
pub const PAGE: u64 = 4096;

/// A value that the kernel computes itself unless it is given: `"auto"` or the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Auto<T> {
    /// As the kernel computes it.
    Auto,
    /// This value.
    Given(T),
}

impl<T> Auto<T> {
    /// The value, if it was given.
    pub fn given(self) -> Option<T> {
        match self {
            Auto::Auto => None,
            Auto::Given(value) => Some(value),
        }
    }
}

impl<T: Serialize> Serialize for Auto<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Auto::Auto => serializer.serialize_str("auto"),
            Auto::Given(value) => value.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Auto<u64> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Auto<u64>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("\"auto\" or an integer that is not negative")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
                match text {
                    "auto" => Ok(Auto::Auto),
                    _ => Err(E::invalid_value(serde::de::Unexpected::Str(text), &self)),
                }
            }

            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Self::Value, E> {
                u64::try_from(number)
                    .map(Auto::Given)
                    .map_err(|_| E::invalid_value(serde::de::Unexpected::Signed(number), &self))
            }

            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Self::Value, E> {
                Ok(Auto::Given(number))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for Auto<u64> {
    fn schema_name() -> Cow<'static, str> {
        "AutoOrNumber".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "oneOf": [{ "const": "auto" }, { "type": "integer", "minimum": 0 }] })
    }
}
