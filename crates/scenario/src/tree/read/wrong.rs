//! Why a value was not read, in the words of messages.

use serde::de::{Expected, Unexpected};
use std::fmt;

/// Why a value was not read.
#[derive(Debug)]
pub(super) enum Wrong {
    /// The fault is noted already.
    Noted,
    /// The table lacks a key.
    Missing(&'static str),
    /// A type's own complaint. It may begin with the key of the table that it is about, and a colon.
    Message(String),
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wrong::Noted => f.write_str("noted"),
            Wrong::Missing(key) => write!(f, "missing key `{key}`"),
            Wrong::Message(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for Wrong {}

impl serde::de::Error for Wrong {
    fn custom<T: fmt::Display>(message: T) -> Wrong {
        Wrong::Message(message.to_string())
    }

    fn missing_field(field: &'static str) -> Wrong {
        Wrong::Missing(field)
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Wrong {
        Wrong::Message(format!("expected {expected}, found {}", describe(found)))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Wrong {
        Wrong::Message(format!("expected {expected}, found {}", describe(found)))
    }

    fn invalid_length(length: usize, expected: &dyn Expected) -> Wrong {
        Wrong::Message(format!("expected {expected}, found {length} elements"))
    }
}

fn describe(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Str(text) => format!("\"{}\"", shown(text)),
        Unexpected::Signed(number) => format!("the number {number}"),
        Unexpected::Unsigned(number) => format!("the number {number}"),
        Unexpected::Float(number) => format!("the number {number}"),
        Unexpected::Bool(value) => format!("{value}"),
        Unexpected::Seq => "a list".into(),
        Unexpected::Map => "a table".into(),
        other => other.to_string(),
    }
}

/// A word as it is repeated in a message.
pub(super) fn shown(text: &str) -> String {
    if text.chars().count() > 40 { format!("{}...", text.chars().take(40).collect::<String>()) } else { text.into() }
}
