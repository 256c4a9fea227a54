//! A part of a whole.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// A part of a whole, from 0 to 1: written as `0.3` or `"30 %"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Share(f64);

/// Reasons why a number is not a share.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("`{0}` is not a share: expected a number from 0 to 1, or a percentage such as \"30 %\"")]
pub struct ShareError(String);

impl Share {
    /// The whole.
    pub const WHOLE: Share = Share(1.0);

    /// A share of this value.
    ///
    /// # Errors
    /// If it is not between 0 and 1.
    pub fn new(value: f64) -> Result<Share, ShareError> {
        // Adding 0 turns -0 into 0, so that equal shares print alike.
        if (0.0..=1.0).contains(&value) { Ok(Share(value + 0.0)) } else { Err(ShareError(value.to_string())) }
    }

    /// The value, from 0 to 1.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl FromStr for Share {
    type Err = ShareError;

    fn from_str(text: &str) -> Result<Share, ShareError> {
        let wrong = || ShareError(text.into());
        let (number, whole) = match text.trim().strip_suffix('%') {
            Some(number) => (number.trim_end(), 100.0),
            None => (text.trim(), 1.0),
        };
        // Only digits: `f64` would also read words such as `inf`.
        if !number.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
            return Err(wrong());
        }
        Share::new(number.parse::<f64>().map_err(|_| wrong())? / whole).map_err(|_| wrong())
    }
}

impl Serialize for Share {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0)
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Share;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number from 0 to 1, or a percentage such as \"30 %\"")
            }

            fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Share, E> {
                Share::new(value).map_err(E::custom)
            }

            fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Share, E> {
                Share::new(value as f64).map_err(E::custom)
            }

            fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Share, E> {
                Share::new(value as f64).map_err(E::custom)
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Share, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for Share {
    fn schema_name() -> Cow<'static, str> {
        "Share".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A part of a whole: a number from 0 to 1, or a percentage such as \"30 %\"",
            "oneOf": [
                { "type": "number", "minimum": 0, "maximum": 1 },
                { "type": "string", "pattern": r"^\s*[0-9.]+\s*%?\s*$" }
            ],
        })
    }
}
