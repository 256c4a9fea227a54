//! The value types of typed events, and how each is read from an [`Event`].
//!
//! A field is read lazily, from a ring-buffer record or from a parsed text line, through one slot number.
//! `Option<T>` marks a field that some kernel releases do not have; everything else must be there for an
//! event to be typed at all.

use crate::event::{Event, Fielded};
use crate::names::{self, NameTable};

/// How a field is written and what its 64-bit slot means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A number; text prints it decimal or, with `0x` or bare, hexadecimal. The slot holds the sign-extended value.
    Int,
    /// An unsigned number, decimal or hexadecimal in text.
    Uint,
    /// A number that text prints in hexadecimal without `0x` (`%lx`, `%p`).
    Hex,
    /// `sync`/`async`, `true`/`false` or 0/1.
    Bool,
    /// Characters: the slot holds a [`Bytes`] range of the event's raw bytes.
    Str,
    /// A code address. Binary: the address; text: a [`Bytes`] range with `symbol+0x..`.
    Sym,
    /// GFP flags. Their bits differ between kernels, so the slot keeps the number in binary events and the
    /// printed words (a [`Bytes`] range) in text events.
    Gfp,
    /// A set of flags with the same bits in every kernel.
    Flags(&'static NameTable),
    /// One word of a table; the slot holds its index in the table (not the kernel's number, which changes).
    Name(&'static NameTable),
    /// A device number as `major:minor` in text; slot = major << 20 | minor.
    Dev,
}

/// Byte range of an event's `raw` bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Bytes {
    /// First byte.
    pub start: u32,
    /// Number of bytes.
    pub len: u32,
}

impl Bytes {
    /// The slot that holds this range.
    pub fn to_slot(self) -> u64 {
        u64::from(self.start) << 32 | u64::from(self.len)
    }
    /// The range that a slot holds.
    pub fn from_slot(slot: u64) -> Bytes {
        Bytes { start: (slot >> 32) as u32, len: slot as u32 }
    }
    /// The bytes themselves; empty if the range does not lie in `raw`.
    pub fn of(self, raw: &[u8]) -> &[u8] {
        let start = self.start as usize;
        raw.get(start..start + self.len as usize).unwrap_or_default()
    }
}

/// A type that a field of a typed event can have.
pub trait Field: Sized {
    /// Meaning of the slot.
    const SHAPE: Shape;
    /// False for `Option<T>`.
    const REQUIRED: bool = true;
    /// Reads the field with slot number `slot`.
    fn read(from: &impl Fielded, slot: usize) -> Self;
    /// Value of the slot; `None`: the event does not have the field.
    fn to_slot(self) -> Option<u64>;
}

macro_rules! integer_fields {
    ($($t:ty => $shape:ident),*) => {$(
        impl Field for $t {
            const SHAPE: Shape = Shape::$shape;
            #[inline(always)]
            fn read(from: &impl Fielded, slot: usize) -> Self {
                from.number(slot) as $t
            }
            #[inline(always)]
            fn to_slot(self) -> Option<u64> {
                Some(self as u64)
            }
        }
    )*};
}
integer_fields!(i32 => Int, i64 => Int, u32 => Uint, u64 => Uint);

impl Field for bool {
    const SHAPE: Shape = Shape::Bool;
    #[inline(always)]
    fn read(from: &impl Fielded, slot: usize) -> Self {
        from.number(slot) != 0
    }
    #[inline(always)]
    fn to_slot(self) -> Option<u64> {
        Some(u64::from(self))
    }
}

impl<T: Field> Field for Option<T> {
    const SHAPE: Shape = T::SHAPE;
    const REQUIRED: bool = false;
    #[inline(always)]
    fn read(from: &impl Fielded, slot: usize) -> Self {
        from.has(slot).then(|| T::read(from, slot))
    }
    #[inline(always)]
    fn to_slot(self) -> Option<u64> {
        self.and_then(T::to_slot)
    }
}

macro_rules! wrapped_fields {
    ($($(#[$doc:meta])* $t:ident($inner:ty) = $shape:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $t(pub $inner);
        impl Field for $t {
            const SHAPE: Shape = $shape;
            #[inline(always)]
            fn read(from: &impl Fielded, slot: usize) -> Self {
                $t(match Self::SHAPE {
                    Shape::Str | Shape::Name(_) => from.slot(slot),
                    _ => from.number(slot),
                } as $inner)
            }
            #[inline(always)]
            fn to_slot(self) -> Option<u64> {
                Some(self.0 as u64)
            }
        }
    )*};
}

wrapped_fields! {
    /// A number printed in bare hexadecimal: pointers (`%p`, hashed from 4.15) and addresses.
    Hex(u64) = Shape::Hex;
    /// A code address in binary events, a [`Bytes`] slot in text events; see [`Event::symbol`].
    Sym(u64) = Shape::Sym;
    /// GFP flags: the number in binary events, a [`Bytes`] slot in text events; see [`gfp_text`](crate::era::gfp_text).
    Gfp(u64) = Shape::Gfp;
    /// Characters; see [`Str::bytes`].
    Str(u64) = Shape::Str;
    /// A device number, major << 20 | minor.
    Dev(u64) = Shape::Dev;
    /// Reclaim flags: ANON 1, FILE 2, SYNC 4, ASYNC 8, MIXED 16.
    ReclaimFlags(u32) = Shape::Flags(&names::RECLAIM_FLAGS);
    /// Index into [`names::LRU`].
    Lru(u32) = Shape::Name(&names::LRU);
    /// Index into [`names::ZONE`].
    Zone(u32) = Shape::Name(&names::ZONE);
    /// Index into [`names::THROTTLE`].
    ThrottleReason(u32) = Shape::Name(&names::THROTTLE);
    /// Index into [`names::MIGRATE_MODE`].
    MigrateMode(u32) = Shape::Name(&names::MIGRATE_MODE);
    /// Index into [`names::MIGRATE_REASON`].
    MigrateReason(u32) = Shape::Name(&names::MIGRATE_REASON);
    /// Index into [`names::COMPACT_RESULT`].
    CompactResult(u32) = Shape::Name(&names::COMPACT_RESULT);
    /// Index into [`names::COMPACT_PRIORITY`].
    CompactPriority(u32) = Shape::Name(&names::COMPACT_PRIORITY);
    /// Index into [`names::COMPACT_RETRY`].
    CompactRetryResult(u32) = Shape::Name(&names::COMPACT_RETRY);
    /// Index into [`names::WRITEBACK_REASON`].
    WritebackReason(u32) = Shape::Name(&names::WRITEBACK_REASON);
    /// Index into [`names::RSS`].
    Rss(u32) = Shape::Name(&names::RSS);
    /// Index into [`names::NUMA_SKIP`].
    NumaSkip(u32) = Shape::Name(&names::NUMA_SKIP);
    /// Index into [`rules::NUMA_RULE`](crate::rules::NUMA_RULE).
    NumaRule(u32) = Shape::Name(&crate::rules::NUMA_RULE);
    /// Index into [`names::KHUGEPAGED`].
    Khugepaged(u32) = Shape::Name(&names::KHUGEPAGED);
}

impl Str {
    /// The characters, without a terminating NUL.
    pub fn bytes<'a>(self, ev: &Event<'a>) -> &'a [u8] {
        Bytes::from_slot(self.0).of(ev.raw)
    }
}

impl Lru {
    /// True for the two active lists.
    pub fn is_active(self) -> bool {
        matches!(self.0, 1 | 3)
    }
    /// True for the two file lists.
    pub fn is_file(self) -> bool {
        matches!(self.0, 2 | 3)
    }
}

impl ReclaimFlags {
    /// Pages of anonymous memory.
    pub const ANON: u32 = 1;
    /// Pages of files.
    pub const FILE: u32 = 2;
    /// Synchronous pass (only up to 3.4).
    pub const SYNC: u32 = 4;
    /// Asynchronous pass.
    pub const ASYNC: u32 = 8;
    /// Both kinds of pages.
    pub const MIXED: u32 = 16;
    /// True if all bits of `bits` are set.
    pub fn has(self, bits: u32) -> bool {
        self.0 & bits == bits
    }
}
