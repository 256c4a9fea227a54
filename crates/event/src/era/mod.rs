//! Event formats by kernel: layout and print format.
//!
//! Six groups of releases, called eras, stand for the kernels since 2.6.36. For every typed event of each, the tables
//! in `data` hold the C fields in order and the print format with its arguments; from them are made [`format_text`],
//! the record of an event ([`Definition::encode`]) and its printed payload ([`Definition::print`]). All are those of a
//! 64-bit little-endian machine with 4 KiB pages. Not modelled: kernels between the eras, whose events differ in a
//! field or a word, and printed forms that depend on a kernel's configuration (highmem zones, KASAN and lockdep GFP
//! flags). Validated: fields, types, offsets, sizes and signs equal the format files of a running 6.18 and of a
//! recorded 6.1 kernel; `tests` keeps some of those texts.

mod args;
mod encode;
mod format;
mod layout;
mod print;
mod table;
mod words;

#[cfg(any(test, feature = "generate"))]
pub mod generate;

pub use encode::{Common, Gap, Values};
pub use format::{format_text, header_event, header_page};
pub use layout::{Definition, Field, Form};
pub use words::{gfp_bits, gfp_text, gfp_then};

use crate::KernelRelease;
use crate::vocabulary::Kind;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// A group of kernel releases with the same event formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Era {
    /// 2.6.36 and 2.6.37 with the vmscan series of 2010.
    V2_6_36,
    /// 3.3 and 3.4.
    V3_3,
    /// 3.5 to about 3.12, after the removal of lumpy reclaim; with the NUMA balancing events of early 2014.
    V3_5,
    /// 6.1.
    V6_1,
    /// 6.12.
    V6_12,
    /// 6.18.
    V6_18,
}

impl Era {
    /// All eras, oldest first.
    pub const ALL: [Era; 6] = [Era::V2_6_36, Era::V3_3, Era::V3_5, Era::V6_1, Era::V6_12, Era::V6_18];

    /// The era whose events a release has, or is nearest to, given a release string such as `6.1.0-56-cloud`.
    /// `None` before 2.6.36, or if the string does not begin with a version.
    pub fn of_release(release: &str) -> Option<Era> {
        let release = KernelRelease::parse(release)?;
        // 5.16 replaced the congestion waits by throttling, and page by folio names followed soon.
        let first = [[2, 6, 36], [3, 2, 0], [3, 5, 0], [5, 16, 0], [6, 12, 0], [6, 18, 0]];
        Era::ALL
            .into_iter()
            .zip(first)
            .rev()
            .find(|(_, first)| release >= KernelRelease::new(*first))
            .map(|(era, _)| era)
    }

    /// The field that follows `common_pid` in the records of this era.
    fn fifth_common_field(self) -> Option<&'static str> {
        match self {
            Era::V2_6_36 => Some("common_lock_depth"),
            Era::V3_3 | Era::V3_5 => Some("common_padding"),
            Era::V6_1 | Era::V6_12 | Era::V6_18 => None,
        }
    }

    /// Bytes of the common fields.
    fn common_size(self) -> u16 {
        if self.fifth_common_field().is_some() { 12 } else { 8 }
    }

    /// `char` has a sign: x86 kernels before 6.2.
    fn signed_char(self) -> bool {
        self <= Era::V6_1
    }

    /// Its letter in the tables in `data`: `A` for the oldest.
    fn of_letter(letter: char) -> Option<Era> {
        "ABCDEF".chars().zip(Era::ALL).find(|(l, _)| *l == letter).map(|(_, era)| era)
    }
}

static DEFINITIONS: LazyLock<BTreeMap<&'static str, Vec<Definition>>> = LazyLock::new(|| {
    let entries = table::parse_all().expect("tests parse the same tables");
    let mut by_name: BTreeMap<&'static str, Vec<Definition>> = BTreeMap::new();
    for definition in layout::build(&entries).expect("tests lay out the same tables") {
        by_name.entry(definition.name).or_default().push(definition);
    }
    by_name
});

/// The event of this name as kernels of this era have it. `None`: they do not have it, or it has no type.
pub fn find(era: Era, event: &str) -> Option<&'static Definition> {
    DEFINITIONS.get(event)?.iter().find(|definition| definition.era == era)
}

/// The event of this kind as kernels of this era have it, under any of its names.
pub fn of_kind(era: Era, kind: Kind) -> Option<&'static Definition> {
    let schema = kind.schema()?;
    std::iter::once(&schema.name).chain(schema.aliases).find_map(|name| find(era, name))
}

/// All events of all eras, by name.
pub fn definitions() -> impl Iterator<Item = &'static Definition> {
    DEFINITIONS.values().flatten()
}

#[cfg(test)]
mod tests;
