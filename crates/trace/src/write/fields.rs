//! Values of typed fields, as writers need them.

use crate::format::Formats;
use mmtwin_event::value::Bytes;
use mmtwin_event::vocabulary::FieldSchema;
use mmtwin_event::{Event, Fields, Place};

/// True if the event has the field, and its record is long enough to hold it.
pub(super) fn holds(event: &Event<'_>, slot: usize) -> bool {
    match event.fields {
        Fields::Record(layout, _) => {
            let Place { offset, bits, .. } = layout.place(slot);
            bits != 0 && usize::from(offset) + usize::from(bits / 8) <= event.raw.len()
        }
        _ => event.has(slot),
    }
}

/// The characters of a slot; `None` if the record ends before them.
pub(super) fn characters<'a>(event: &Event<'a>, slot: u64) -> Option<&'a [u8]> {
    let Bytes { start, len } = Bytes::from_slot(slot);
    event.raw.get(start as usize..)?.get(..len as usize)
}

/// The words of GFP flags by the recording's own format; hexadecimal, if it has none.
pub(super) fn gfp_words(event: &Event<'_>, field: &FieldSchema, value: u64, formats: Option<&Formats>) -> Vec<u8> {
    let names = || field.aliases.iter().copied().chain([field.name]);
    let words = formats.and_then(|formats| {
        let format = formats.get(u16::try_from(event.id).ok()?)?;
        let own = format.fields.iter().find(|f| names().any(|n| n == f.name))?;
        format.words(formats, &own.name, event.raw)
    });
    words.unwrap_or_else(|| format!("{value:#x}").into())
}
