//! Lists of CPUs, nodes or threads, as the kernel writes them.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// Numbers in ascending order, each once: `"0-21,44-65"`, as in `/sys/devices/system/node/node0/cpulist`.
/// The empty text is the empty list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct List(Vec<u32>);

/// Reasons why a text is not a list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListError {
    /// Something that is neither a number nor a range.
    #[error("`{0}` is neither a number nor a range: expected a list such as \"0-3,8\"")]
    Part(String),
    /// A range that ends before it begins.
    #[error("range `{0}` ends before it begins")]
    Backwards(String),
    /// A number above the largest that makes sense.
    #[error("`{0}` is too large: numbers go up to {max}", max = List::MAX)]
    Large(String),
    /// A number that is listed twice.
    #[error("{0} is listed twice")]
    Twice(u32),
}

impl List {
    /// The largest number: no kernel is built for more CPUs or nodes.
    pub const MAX: u32 = 8191;

    /// The numbers, ascending.
    pub fn numbers(&self) -> &[u32] {
        &self.0
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True if the number is in the list.
    pub fn contains(&self, number: u32) -> bool {
        self.0.binary_search(&number).is_ok()
    }
}

impl FromIterator<u32> for List {
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> List {
        let mut numbers: Vec<u32> = numbers.into_iter().collect();
        numbers.sort_unstable();
        numbers.dedup();
        List(numbers)
    }
}

impl fmt::Display for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs = self.0.chunk_by(|a, b| a + 1 == *b);
        for (i, run) in runs.enumerate() {
            let comma = if i > 0 { "," } else { "" };
            match run {
                [only] => write!(f, "{comma}{only}")?,
                [first, .., last] => write!(f, "{comma}{first}-{last}")?,
                [] => {}
            }
        }
        Ok(())
    }
}

impl FromStr for List {
    type Err = ListError;

    fn from_str(text: &str) -> Result<List, ListError> {
        let number = |part: &str, whole: &str| match part.trim().parse::<u32>() {
            Ok(n) if n <= List::MAX => Ok(n),
            Ok(_) => Err(ListError::Large(part.trim().into())),
            Err(e) if *e.kind() == std::num::IntErrorKind::PosOverflow => Err(ListError::Large(part.trim().into())),
            Err(_) => Err(ListError::Part(whole.trim().into())),
        };
        let mut numbers = Vec::new();
        for part in text.split(',').filter(|_| !text.trim().is_empty()) {
            match part.split_once('-') {
                Some((first, last)) => {
                    let (first, last) = (number(first, part)?, number(last, part)?);
                    if first > last {
                        return Err(ListError::Backwards(part.trim().into()));
                    }
                    numbers.extend(first..=last);
                }
                None => numbers.push(number(part, part)?),
            }
            // Bounded at any time: a text of many wide ranges must not use up memory.
            if numbers.len() > 2 * List::MAX as usize + 2 {
                break;
            }
        }
        numbers.sort_unstable();
        match numbers.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(ListError::Twice(pair[0])),
            None => Ok(List(numbers)),
        }
    }
}

impl Serialize for List {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for List {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = List;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list such as \"0-3,8\"")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<List, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<List, E> {
                self.visit_str(&number.to_string())
            }

            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<List, E> {
                self.visit_str(&number.to_string())
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for List {
    fn schema_name() -> Cow<'static, str> {
        "List".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Numbers and ranges, such as \"0-3,8\"; the empty text is the empty list",
            "oneOf": [
                { "type": "string", "pattern": r"^\s*([0-9]+(\s*-\s*[0-9]+)?(\s*,\s*[0-9]+(\s*-\s*[0-9]+)?)*)?\s*$" },
                { "type": "integer", "minimum": 0, "maximum": List::MAX }
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lists_are_written_as_the_kernel_writes_them() {
        let reads = |text: &str| text.parse::<List>().map(|list| list.to_string());
        assert_eq!(reads("44-65, 0-21"), Ok("0-21,44-65".into()));
        assert_eq!(reads("3,1,2"), Ok("1-3".into()));
        assert_eq!(reads(""), Ok(String::new()));
        assert_eq!(reads("1,,2"), Err(ListError::Part(String::new())));
        assert_eq!(reads("0-3,2"), Err(ListError::Twice(2)));
        assert_eq!(reads("0-8192"), Err(ListError::Large("8192".into())));
        assert!(matches!(reads(&"0-8191,".repeat(100_000)), Err(ListError::Twice(_))));
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(numbers in prop::collection::vec(0u32..=List::MAX, 0..50)) {
            let list = List::from_iter(numbers);
            prop_assert_eq!(list.to_string().parse(), Ok(list));
        }
    }
}
