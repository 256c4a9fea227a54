//! Typed events: their fields, and the [`Schema`] that maps names of all kernels to them.
//!
//! `typed_events!` makes of one table ([`crate::vocabulary`]) the enum [`Kind`], one type per event, its schema, and
//! its conversion from and to the [`Slots`] of an event.

use crate::event::{Fielded, Slots};
use crate::value::Shape;
use crate::vocabulary::{Kind, SCHEMAS};

/// A typed event: plain fields, read from an [`Event`](crate::Event) of its kind.
pub trait Typed: Sized {
    /// The kind this is the type of.
    const KIND: Kind;
    /// Reads all fields. With inlining, unused ones cost nothing.
    fn read(from: &impl Fielded) -> Self;
    /// Puts all fields it has into the slots.
    fn write(&self, to: &mut Slots);
}

/// Names and fields of a kind of event.
#[derive(Debug)]
pub struct Schema {
    /// The kind.
    pub kind: Kind,
    /// Trace system (`vmscan`, `sched`, ...).
    pub system: &'static str,
    /// Event name of today's kernels.
    pub name: &'static str,
    /// Names in older kernels.
    pub aliases: &'static [&'static str],
    /// Fields, by slot number.
    pub fields: &'static [FieldSchema],
}

/// One field of a [`Schema`].
#[derive(Debug)]
pub struct FieldSchema {
    /// Name.
    pub name: &'static str,
    /// Other spellings.
    pub aliases: &'static [&'static str],
    /// Meaning of its value.
    pub shape: Shape,
    /// False if some kernels lack it.
    pub required: bool,
}

impl Schema {
    /// Slot number of a field by any of its names.
    pub fn slot(&self, name: &[u8]) -> Option<usize> {
        self.fields.iter().position(|f| f.name.as_bytes() == name || f.aliases.iter().any(|a| a.as_bytes() == name))
    }
}

impl Kind {
    /// The schema of a kind; `Other` has none.
    pub fn schema(self) -> Option<&'static Schema> {
        (self as usize).checked_sub(1).map(|i| &SCHEMAS[i])
    }
    /// The kind of an event name of any kernel.
    pub fn of_name(name: &str) -> Kind {
        static BY_NAME: std::sync::LazyLock<std::collections::BTreeMap<&str, Kind>> = std::sync::LazyLock::new(|| {
            let names = |s: &'static Schema| s.aliases.iter().copied().chain([s.name]).map(|n| (n, s.kind));
            SCHEMAS.iter().flat_map(names).collect()
        });
        BY_NAME.get(name).copied().unwrap_or(Kind::Other)
    }
    /// Number of kinds, `Other` included.
    pub const COUNT: usize = SCHEMAS.len() + 1;
}

macro_rules! typed_events {
    ($($system:ident {
        $($(#[$doc:meta])* $event:ident $name:literal $(| $alias:literal)* {
            $($field:ident : $type:ty $(= $falias:literal $(| $fmore:literal)*)?),* $(,)?
        })*
    })*) => {
        /// The kind of an event.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Kind {
            /// An event that the vocabulary does not have. It is kept and printed from its format.
            #[default]
            Other,
            $($($(#[$doc])* $event,)*)*
        }

        /// All schemas, in the order of [`Kind`] after `Other`.
        pub static SCHEMAS: &[Schema] = &[$($(
            Schema {
                kind: Kind::$event,
                system: stringify!($system),
                name: $name,
                aliases: &[$($alias),*],
                fields: &[$(FieldSchema {
                    name: stringify!($field),
                    aliases: &[$($falias $(, $fmore)*)?],
                    shape: <$type as Field>::SHAPE,
                    required: <$type as Field>::REQUIRED,
                }),*],
            },
        )*)*];

        $($(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq)]
            #[allow(missing_docs)] // the fields carry the kernel's names; module documentation gives their units
            pub struct $event { $(pub $field: $type),* }

            impl Typed for $event {
                const KIND: Kind = Kind::$event;
                #[inline(always)]
                #[allow(unused_mut, unused_variables, unused_assignments)]
                fn read(from: &impl Fielded) -> Self {
                    let mut slot = 0;
                    $(
                        let $field = <$type as Field>::read(from, slot);
                        slot += 1;
                    )*
                    $event { $($field),* }
                }
                #[inline]
                #[allow(unused_mut, unused_variables, unused_assignments)]
                fn write(&self, to: &mut Slots) {
                    let mut slot = 0;
                    $(
                        if let Some(value) = self.$field.to_slot() {
                            to.set(slot, value);
                        }
                        slot += 1;
                    )*
                }
            }
        )*)*
    };
}

pub(crate) use typed_events;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_stand_in_the_order_of_their_kinds() {
        for (i, s) in SCHEMAS.iter().enumerate() {
            assert_eq!(s.kind as usize, i + 1, "{}", s.name);
            assert!(s.fields.len() <= crate::event::MAX_SLOTS, "{}", s.name);
            assert!(std::ptr::eq(s.kind.schema().unwrap(), s));
        }
    }

    #[test]
    fn names_are_unique() {
        let mut seen = std::collections::BTreeSet::new();
        for s in SCHEMAS {
            for n in s.aliases.iter().chain([&s.name]) {
                assert!(seen.insert(n), "{n} twice");
            }
            let mut fields = std::collections::BTreeSet::new();
            for f in s.fields {
                for n in f.aliases.iter().chain([&f.name]) {
                    assert!(fields.insert(n), "{}.{n} twice", s.name);
                }
            }
        }
    }

    #[test]
    fn old_names_map_to_todays_kind() {
        assert_eq!(Kind::of_name("mm_vmscan_writepage"), Kind::MmVmscanWriteFolio);
        assert_eq!(Kind::of_name("mm_page_free_direct"), Kind::MmPageFree);
        assert_eq!(Kind::of_name("sys_enter"), Kind::Other);
    }
}
