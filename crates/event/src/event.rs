//! One kernel trace event, as readers pass it to sinks.
//!
//! An event is a view: a ring-buffer record with the [`Layout`] of the recording's own format, or a text line whose
//! values were parsed into [`Slots`]. Fields are read one by one through slot numbers, the positions of the fields in
//! the event's [`Schema`](crate::vocabulary::Schema), so an analysis pays only for the fields that it reads.

use crate::vocabulary::{Kind, Typed};

/// More fields than any event of the vocabulary has.
pub const MAX_SLOTS: usize = 24;

/// Where one field lies in a record. `bits == 0`: this format does not have the field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Byte offset from the start of the record (its common fields included).
    pub offset: u16,
    /// Width of the number: 8, 16, 32 or 64; 0 = absent.
    pub bits: u8,
    /// Sign-extend.
    pub signed: bool,
    /// Meaning of the number.
    pub form: Form,
}

/// How a place holds its value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// The number itself.
    #[default]
    Number,
    /// `__data_loc`: low half offset from the record start, high half length.
    DataLoc,
    /// `__rel_loc`: the same, offset from the end of the field.
    RelLoc,
    /// A fixed array of characters of this many bytes.
    Chars(u16),
    /// A number to be looked up in `Layout::words[_]`.
    Word(u8),
}

/// The fields of one event type in one recording: its format text, compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// By slot number. Layouts are made by [`Layout::compile`] alone, which keeps `loads` and `reach` in step.
    places: [Place; MAX_SLOTS],
    loads: [Load; MAX_SLOTS],
    big_endian: bool,
    /// Translations from the kernel's number to the index in a name table, one per [`Form::Word`].
    words: Vec<Vec<(u64, u64)>>,
    /// Behind the last byte that a [`Load`] reads.
    reach: usize,
}

/// How the number at a [`Place`] is taken out of the eight bytes that begin there. The same few instructions for every
/// width: a branch on the width for each field costs more than all the rest of reading an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Load {
    offset: u16,
    /// Ones as wide as the field; 0 = absent.
    mask: u64,
    /// Its sign bit; 0 = unsigned.
    sign: u64,
}

impl Load {
    fn of(place: Place) -> Load {
        if place.bits == 0 {
            return Load::default();
        }
        let mask = u64::MAX >> (64 - place.bits);
        let sign = if place.signed { 1 << (place.bits - 1) } else { 0 };
        Load { offset: place.offset, mask, sign }
    }
}

impl Place {
    /// The number at this place, extended to 64 bits; 0 if the field is absent or the record too short.
    #[inline(always)]
    pub fn number(self, raw: &[u8], big_endian: bool) -> u64 {
        // Loads of exact width: programs that print records do this for every field.
        macro_rules! load {
            ($unsigned:ty, $signed:ty) => {{
                let at = usize::from(self.offset);
                let Some(bytes) = raw.get(at..at + size_of::<$unsigned>()) else { return 0 };
                let word = <$unsigned>::from_le_bytes(bytes.try_into().unwrap());
                let word = if big_endian { word.swap_bytes() } else { word };
                if self.signed { word as $signed as i64 as u64 } else { u64::from(word) }
            }};
        }
        match self.bits {
            32 => load!(u32, i32),
            64 => load!(u64, i64),
            16 => load!(u16, i16),
            8 => load!(u8, i8),
            _ => 0,
        }
    }
}

impl Default for Layout {
    /// The layout of an event without fields.
    fn default() -> Layout {
        Layout::compile(Default::default(), Vec::new(), false)
    }
}

impl Layout {
    /// A layout of fields by slot number.
    pub fn compile(places: [Place; MAX_SLOTS], words: Vec<Vec<(u64, u64)>>, big_endian: bool) -> Layout {
        let loads = places.map(Load::of);
        let reach = loads.iter().map(|load| usize::from(load.offset) + 8).max().unwrap_or(0);
        Layout { loads, places, big_endian, words, reach }
    }

    /// Where the field with slot number `slot` is.
    pub fn place(&self, slot: usize) -> Place {
        self.places[slot]
    }

    /// True if the format has the field with slot number `slot`.
    #[inline(always)]
    pub fn has(&self, slot: usize) -> bool {
        self.loads[slot].mask != 0
    }

    /// The number at the place of the field with slot number `slot`, in any form; 0 if `record` is too short.
    fn number(&self, record: &[u8], slot: usize) -> u64 {
        self.places[slot].number(record, self.big_endian)
    }

    /// Reads the field with slot number `slot`; 0 if the record is too short.
    pub fn read(&self, record: &[u8], slot: usize) -> u64 {
        self.translate(record, self.places[slot], self.number(record, slot))
    }

    #[inline(never)]
    fn translate(&self, raw: &[u8], place: Place, number: u64) -> u64 {
        match place.form {
            Form::Number => number,
            Form::DataLoc => located(number, 0),
            Form::RelLoc => located(number, u32::from(place.offset) + 4),
            Form::Chars(size) => {
                let chars = raw.get(usize::from(place.offset)..).unwrap_or_default();
                let chars = &chars[..chars.len().min(usize::from(size))];
                let len = chars.iter().position(|&b| b == 0).unwrap_or(chars.len());
                crate::value::Bytes { start: place.offset.into(), len: len as u32 }.to_slot()
            }
            Form::Word(table) => self.words[usize::from(table)]
                .iter()
                .find(|(from, _)| *from == number)
                .map_or(crate::names::UNNAMED | number, |(_, to)| *to),
        }
    }
}

/// Turns a `__data_loc` word into a [`Bytes`](crate::value::Bytes) slot, without the NUL the kernel counts.
fn located(word: u64, base: u32) -> u64 {
    let len = (word as u32) >> 16;
    crate::value::Bytes { start: base + (word as u32 & 0xffff), len: len.saturating_sub(1) }.to_slot()
}

/// Values parsed from a text line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slots {
    /// By slot number.
    pub values: [u64; MAX_SLOTS],
    /// Bit `slot` is set if the line had the field.
    pub present: u32,
}

impl Slots {
    /// Stores a value.
    #[inline]
    pub fn set(&mut self, slot: usize, value: u64) {
        self.values[slot] = value;
        self.present |= 1 << slot;
    }
}

/// Source of an event's values.
#[derive(Clone, Copy, Debug)]
pub enum Fields<'a> {
    /// A ring-buffer record with its layout: `raw` begins with the common fields. The bytes are `raw` and those behind
    /// it in memory, so that whole words can be loaded at the end of a record.
    Record(&'a Layout, &'a [u8]),
    /// A text line: `raw` is the payload after `event: `.
    Text(&'a Slots),
    /// An event without a type.
    Untyped,
}

/// One event.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// Nanoseconds of the trace clock.
    pub ts: u64,
    /// Logical CPU that wrote it.
    pub cpu: u32,
    /// Thread id of the running task; 0 is the idle task.
    pub pid: i32,
    /// Thread group, where the line reports it; else 0.
    pub tgid: i32,
    /// Bits as in a record's `common_flags`: 1 irqs off, 2 unsupported/lazy, 4 need resched, 8 hardirq,
    /// 0x10 softirq, 0x20 preempt resched, 0x40 NMI, 0x80 BH off.
    pub flags: u8,
    /// Low nibble preempt depth, high nibble migrate-disable depth.
    pub preempt_count: u8,
    /// The kind; [`Kind::Other`] has no type.
    pub kind: Kind,
    /// The source's number of the event type: format id in binary, index of the name in text.
    pub id: u32,
    /// Task name of the line; empty in binary sources, which announce names with [`Sink::task`](crate::sink::Sink::task).
    pub comm: &'a [u8],
    /// Event name as the source spells it.
    pub name: &'a str,
    /// Record or payload.
    pub raw: &'a [u8],
    /// Where the typed fields are.
    pub fields: Fields<'a>,
}

/// Source of typed events: a record with its layout, or a parsed line.
pub trait Fielded {
    /// True if the source has the field with slot number `slot`.
    fn has(&self, slot: usize) -> bool;
    /// Value of that field; 0 where it is absent.
    fn slot(&self, slot: usize) -> u64;
    /// The same for a field whose value is its number, neither characters nor a word of a table.
    fn number(&self, slot: usize) -> u64;
}

/// A ring-buffer record and its layout.
struct Record<'a>(&'a Layout, &'a [u8]);

/// The same if it is little endian, with all that its layout's loads read: nothing is left to check for a field.
struct Whole<'a> {
    layout: &'a Layout,
    /// At least `layout.reach` bytes.
    bytes: &'a [u8],
}

impl<'a> Whole<'a> {
    #[inline(always)]
    fn of(layout: &'a Layout, bytes: &'a [u8]) -> Option<Whole<'a>> {
        (bytes.len() >= layout.reach && !layout.big_endian).then_some(Whole { layout, bytes })
    }
}

impl Fielded for Whole<'_> {
    #[inline(always)]
    fn has(&self, slot: usize) -> bool {
        self.layout.has(slot)
    }
    #[inline(always)]
    fn slot(&self, slot: usize) -> u64 {
        let place = self.layout.places[slot];
        let number = self.number(slot);
        if matches!(place.form, Form::Number) { number } else { self.layout.translate(self.bytes, place, number) }
    }
    #[inline(always)]
    fn number(&self, slot: usize) -> u64 {
        let Load { offset, mask, sign } = self.layout.loads[slot];
        // SAFETY: `Layout::compile`, the only maker of layouts, puts `reach` 8 bytes behind the largest offset of a load,
        // and `of`, the only maker of this, has checked that there are `reach` bytes.
        let word = unsafe { self.bytes.as_ptr().add(offset.into()).cast::<u64>().read_unaligned() };
        (u64::from_le(word) & mask ^ sign).wrapping_sub(sign)
    }
}

impl Fielded for Record<'_> {
    #[inline(always)]
    fn has(&self, slot: usize) -> bool {
        self.0.has(slot)
    }
    #[inline(always)]
    fn slot(&self, slot: usize) -> u64 {
        self.0.read(self.1, slot)
    }
    #[inline(always)]
    fn number(&self, slot: usize) -> u64 {
        self.0.number(self.1, slot)
    }
}

impl Fielded for Slots {
    #[inline(always)]
    fn has(&self, slot: usize) -> bool {
        self.present >> slot & 1 != 0
    }
    #[inline(always)]
    fn slot(&self, slot: usize) -> u64 {
        self.values[slot]
    }
    #[inline(always)]
    fn number(&self, slot: usize) -> u64 {
        self.values[slot]
    }
}

/// Reads the last records of a file, and those of big-endian machines.
#[cold]
#[inline(never)]
fn read_with_care<T: Typed>(record: &Record<'_>) -> T {
    T::read(record)
}

impl<'a> Event<'a> {
    /// True if the source has the field.
    #[inline]
    pub fn has(&self, slot: usize) -> bool {
        match self.fields {
            Fields::Record(layout, _) => layout.has(slot),
            Fields::Text(slots) => slots.has(slot),
            Fields::Untyped => false,
        }
    }

    /// Value of the field with slot number `slot`; 0 where it is absent.
    #[inline]
    pub fn slot(&self, slot: usize) -> u64 {
        match self.fields {
            Fields::Record(layout, ahead) => layout.read(ahead, slot),
            Fields::Text(slots) => slots.slot(slot),
            Fields::Untyped => 0,
        }
    }

    /// The event as its type. The caller has matched `kind` before. An untyped event reads as one without fields.
    #[inline]
    pub fn typed<T: Typed>(&self) -> T {
        debug_assert_eq!(self.kind, T::KIND);
        // One decision for all fields: the rest are plain loads.
        match self.fields {
            Fields::Record(layout, ahead) => match Whole::of(layout, ahead) {
                Some(record) => T::read(&record),
                None => read_with_care(&Record(layout, ahead)),
            },
            Fields::Text(slots) => T::read(slots),
            Fields::Untyped => T::read(&Slots::default()),
        }
    }

    /// Characters of a string-like slot in text events; `None` for binary numbers.
    pub fn text_of(&self, slot_value: u64) -> Option<&'a [u8]> {
        match self.fields {
            Fields::Text(_) => Some(crate::value::Bytes::from_slot(slot_value).of(self.raw)),
            _ => None,
        }
    }

    /// Printed symbol of a [`Sym`](crate::value::Sym) in text events, without `+0x..`; the address in binary events.
    pub fn symbol(&self, sym: crate::value::Sym) -> Symbol<'a> {
        match self.text_of(sym.0) {
            Some(text) => Symbol::Name(text.split(|&b| b == b'+').next().unwrap_or(text)),
            None => Symbol::Address(sym.0),
        }
    }
}

/// A code location as a source gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Symbol<'a> {
    /// Printed name.
    Name(&'a [u8]),
    /// Address, to be looked up in the recording's kallsyms.
    Address(u64),
}
