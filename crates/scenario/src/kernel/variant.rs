//! Variants: enums whose values are words in a scenario.

/// The words of an enum, for messages and documents.
pub trait Variant: Copy + 'static {
    /// Every value, in the order of its declaration.
    const ALL: &'static [Self];

    /// The word a scenario writes.
    fn word(self) -> &'static str;
}

/// Declares an enum with the word of each value, so that the file, the schema and messages have them from one place.
macro_rules! variant {
    ($(#[$doc:meta])* pub enum $name:ident { $($(#[$vdoc:meta])* $value:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        pub enum $name {
            $($(#[$vdoc])* #[serde(rename = $word)] $value),+
        }

        impl $crate::kernel::Variant for $name {
            const ALL: &'static [Self] = &[$(Self::$value),+];

            fn word(self) -> &'static str {
                match self {
                    $(Self::$value => $word),+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str($crate::kernel::Variant::word(*self))
            }
        }
    };
}

pub(crate) use variant;
