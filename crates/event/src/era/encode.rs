//! Records from values: the bytes that a kernel of an era would have written for an event.
//!
//! Values are those of a text line, in [`Slots`] and the payload that they point into, because only text needs to be
//! encoded; a value that the line does not have is an error, never 0. Values that a line prints in another form than
//! the record has (words, GFP flags, frame numbers, shifts) are converted with the tables of the era.

use super::args::{Arg, PAGE_STRUCT, VMEMMAP};
use super::layout::{Definition, Field, Form};
use super::words::{gfp_bits, hexadecimal};
use crate::event::Slots;
use crate::names::UNNAMED;
use crate::value::{Bytes, Shape};

/// The common fields of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Common {
    /// Thread id.
    pub pid: i32,
    /// `common_flags`, as in [`Event::flags`](crate::Event::flags).
    pub flags: u8,
    /// `common_preempt_count`.
    pub preempt_count: u8,
}

/// The values of an event as a text line gives them.
#[derive(Clone, Copy, Debug)]
pub struct Values<'a> {
    /// Numbers, and ranges of `raw` for text. A page index is in bytes, a deferral as its limit, as lines print them.
    pub slots: &'a Slots,
    /// The payload.
    pub raw: &'a [u8],
}

/// Why an event has no record or no line in an era.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Gap {
    /// The values lack a field.
    #[error("{event}: no value for field {field}")]
    Missing {
        /// Event.
        event: &'static str,
        /// Field of the record.
        field: &'static str,
    },
    /// The era's kernels do not have a word.
    #[error("{event}: field {field} has no word \"{word}\" in this kernel")]
    NoWord {
        /// Event.
        event: &'static str,
        /// Field of the record.
        field: &'static str,
        /// The word.
        word: String,
    },
    /// A text is too long for its array, or the record for its offsets.
    #[error("{event}: text of {length} bytes does not fit field {field}")]
    TooLong {
        /// Event.
        event: &'static str,
        /// Field of the record.
        field: &'static str,
        /// Bytes of the text.
        length: usize,
    },
}

/// A field's value as the record holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held<'a> {
    Number(u64),
    Text(&'a [u8]),
    /// A printed function; the record holds its address.
    Symbol(&'a [u8]),
}

impl<'a> Values<'a> {
    fn get(&self, slot: Option<usize>) -> Option<u64> {
        slot.filter(|slot| self.slots.present >> slot & 1 == 1).map(|slot| self.slots.values[slot])
    }

    fn text(&self, slot_value: u64) -> &'a [u8] {
        Bytes::from_slot(slot_value).of(self.raw)
    }
}

impl Definition {
    /// The record of an event: common fields, fields at their offsets, then the strings. `symbols` gives the address
    /// of a printed function (addresses printed as such are taken as they are).
    pub fn encode(
        &self,
        id: u16,
        common: Common,
        values: Values<'_>,
        symbols: &mut dyn FnMut(&[u8]) -> u64,
    ) -> Result<Vec<u8>, Gap> {
        let mut record = vec![0; usize::from(self.end)];
        put(&mut record, 0, &id.to_le_bytes());
        put(&mut record, 2, &[common.flags, common.preempt_count]);
        put(&mut record, 4, &common.pid.to_le_bytes());
        if self.era == super::Era::V2_6_36 {
            // No big kernel lock held.
            put(&mut record, 8, &(-1i32).to_le_bytes());
        }
        for field in &self.fields {
            let at = usize::from(field.offset);
            let size = usize::from(field.size);
            let too_long = |length| Gap::TooLong { event: self.name, field: field.name, length };
            match (self.held(field, &values)?, field.form) {
                (Held::Number(number), _) => put(&mut record, at, &number.to_le_bytes()[..size.min(8)]),
                (Held::Symbol(text), _) => {
                    let address = hexadecimal(text).unwrap_or_else(|| symbols(text));
                    put(&mut record, at, &address.to_le_bytes()[..size.min(8)]);
                }
                (Held::Text(text), Form::Text) => {
                    let length = u16::try_from(text.len() + 1).map_err(|_| too_long(text.len()))?;
                    let offset = u16::try_from(record.len()).map_err(|_| too_long(text.len()))?;
                    put(&mut record, at, &(u32::from(length) << 16 | u32::from(offset)).to_le_bytes());
                    record.extend_from_slice(text);
                    record.push(0);
                }
                (Held::Text(text), _) if text.len() < size => put(&mut record, at, text),
                (Held::Text(text), _) => return Err(too_long(text.len())),
            }
        }
        // The kernel reserves the rounded size plus the strings.
        let strings = record.len() - usize::from(self.end);
        record.resize(usize::from(self.size) + strings, 0);
        Ok(record)
    }

    /// The value of a field as the record holds it.
    pub(super) fn held<'a>(&self, field: &Field, values: &Values<'a>) -> Result<Held<'a>, Gap> {
        let missing = || Gap::Missing { event: self.name, field: field.name };
        let (Some(shape), Some(value)) = (self.shape(field), values.get(field.slot)) else {
            return self.derived(field, values).map(Held::Number).ok_or_else(missing);
        };
        let no_word = |word: &[u8]| Gap::NoWord {
            event: self.name,
            field: field.name,
            word: String::from_utf8_lossy(word).into_owned(),
        };
        Ok(match shape {
            Shape::Str if field.form == Form::Number => {
                let letters = values.text(value);
                Held::Number(self.letters(field, letters).ok_or_else(|| no_word(letters))?)
            }
            Shape::Str => Held::Text(values.text(value)),
            Shape::Sym => Held::Symbol(values.text(value)),
            Shape::Gfp => {
                let text = values.text(value);
                Held::Number(gfp_bits(self.era, text).ok_or_else(|| no_word(text))?)
            }
            Shape::Name(table) => match (table.words.get(value as usize), field.words) {
                (Some(word), Some(words)) => {
                    Held::Number(words.number(word.as_bytes()).ok_or_else(|| no_word(word.as_bytes()))?)
                }
                _ => Held::Number(value & !UNNAMED),
            },
            _ if field.as_bytes => Held::Number(value >> 12),
            _ if field.may_fail && values.get(self.schema.slot(b"page")) == Some(0) => Held::Number(u64::MAX),
            _ => Held::Number(value),
        })
    }

    /// A field that lines show as something else.
    fn derived(&self, field: &Field, values: &Values<'_>) -> Option<u64> {
        let other = |name: &[u8]| values.get(self.schema.slot(name));
        match field.name {
            "page" => other(b"pfn").map(|pfn| VMEMMAP.wrapping_add(pfn.wrapping_mul(PAGE_STRUCT))),
            "pfn" => other(b"page").map(|page| page.wrapping_sub(VMEMMAP) / PAGE_STRUCT),
            "defer_shift" => {
                other(b"limit").filter(|limit| limit.is_power_of_two()).map(|limit| limit.trailing_zeros().into())
            }
            _ => None,
        }
    }

    /// Bits of flags that lines show as a row of letters.
    fn letters(&self, field: &Field, letters: &[u8]) -> Option<u64> {
        let choices = self.args.iter().filter_map(|arg| match arg {
            Arg::Choice(f, Some(bits), set, clear) if self.fields[*f].name == field.name => Some((*bits, set, clear)),
            _ => None,
        });
        // Trailing blanks may have been cut off.
        let mut letters = letters.iter();
        let mut number = 0;
        for (bits, set, clear) in choices {
            let letter = [*letters.next().unwrap_or(&b' ')];
            if letter == set.as_bytes() {
                number |= bits;
            } else if letter != clear.as_bytes() {
                return None;
            }
        }
        letters.next().is_none().then_some(number)
    }
}

fn put(record: &mut [u8], at: usize, bytes: &[u8]) {
    record[at..at + bytes.len()].copy_from_slice(bytes);
}
