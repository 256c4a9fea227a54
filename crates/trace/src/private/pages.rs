//! Texts in ring-buffer pages, replaced in place: a field keeps its length, so nothing else of a page moves.
//!
//! Walks a page as [`crate::ring::page`] does, for that one hands records out and not what lies between them: bodies
//! of discarded records and the unused end of a page hold bytes of older events, which are cleared.

use super::names::{Kind, Names};
use crate::format::{FieldDef, Format, Formats, Storage};
use crate::ring::PageLayout;
use crate::ring::page::COMMIT_MASK;

const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const DELTA_MASK: u32 = (1 << 27) - 1;

/// Replaces the texts of all records of a page.
pub fn hide(page: &mut [u8], layout: &PageLayout, formats: &Formats, names: &mut Names) {
    let number = |bytes: &[u8]| {
        let step = |sum: u64, &b: &u8| sum << 8 | u64::from(b);
        if layout.big_endian { bytes.iter().fold(0, step) } else { bytes.iter().rev().fold(0, step) }
    };
    let commit = number(&page[layout.commit..layout.commit + layout.commit_size]);
    let used = layout.data + ((commit & COMMIT_MASK) as usize).min(page.len() - layout.data);
    let mut at = layout.data;
    while at + 4 <= used {
        let word = number(&page[at..at + 4]) as u32;
        let (kind, delta) = if layout.big_endian { (word >> 27, word & DELTA_MASK) } else { (word & 31, word >> 5) };
        let second = if at + 8 <= used { number(&page[at + 4..at + 8]) as usize } else { 0 };
        let (start, end) = match kind {
            0 if second >= 4 => (at + 8, at.saturating_add(4).saturating_add(second)),
            1..PADDING => (at + 4, at + 4 + kind as usize * 4),
            PADDING if delta != 0 && second >= 4 => {
                let end = at.saturating_add(4).saturating_add(second);
                if end > used {
                    break;
                }
                page[at + 8..end].fill(0);
                at = end;
                continue;
            }
            PADDING | 0 => break,
            TIME_EXTEND.. => {
                at += 8;
                continue;
            }
        };
        if end > used {
            break;
        }
        hide_record(&mut page[start..end], formats, names);
        at = start + (end - start).next_multiple_of(4);
    }
    // Behind the last record there may be the number of events that were lost before the page.
    let count = if commit & (1 << 30) != 0 { layout.commit_size } else { 0 };
    let count_end = (used + count).min(page.len());
    if at < used {
        page[at..used].fill(0);
    }
    page[count_end..].fill(0);
}

fn hide_record(record: &mut [u8], formats: &Formats, names: &mut Names) {
    let format = formats.common().read(record).and_then(|common| formats.get(common.id));
    let Some(format) = format else {
        // Nothing is known of it but what all records have.
        let common = record.len().min(8);
        return record[common..].fill(0);
    };
    for field in format.fields.iter().filter(|f| !f.common && is_text(f)) {
        if let Some(bytes) = place(field, record, formats.big_endian()).and_then(|(from, to)| record.get_mut(from..to))
        {
            replace(bytes, format, field, names);
        }
    }
}

/// Characters, or bytes of which nobody says that they are numbers.
fn is_text(field: &FieldDef) -> bool {
    field.is_chars() || field.storage == Storage::Rest && field.element_size(8) == 1
}

/// Where the bytes of a field are in its record.
fn place(field: &FieldDef, record: &[u8], big_endian: bool) -> Option<(usize, usize)> {
    let (offset, size) = (field.offset as usize, field.size as usize);
    let located = || {
        let bytes: [u8; 4] = record.get(offset..offset.checked_add(4)?)?.try_into().ok()?;
        let word = if big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) };
        Some(((word & 0xffff) as usize, (word >> 16) as usize))
    };
    let (from, length) = match field.storage {
        Storage::Inline => (offset, size),
        Storage::Rest => (offset, record.len().checked_sub(offset)?),
        Storage::DataLoc => located()?,
        Storage::RelLoc => located().map(|(from, length)| (from + offset + size, length))?,
    };
    Some((from, (from + length).min(record.len())))
}

/// Puts the pseudonym of a text in its place. Where `task-12` is too long it is `t12`, and cut where that is too long.
fn replace(bytes: &mut [u8], format: &Format, field: &FieldDef, names: &mut Names) {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    let text = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let pseudonym = match () {
        () if text.is_empty() => String::new(),
        () if field.name.ends_with("comm") => names.task(&text),
        // Lines that programs write for whoever traces; their words may be anything.
        () if format.system == "ftrace" => "x".repeat(end),
        () => names.of(Kind::Text, &text),
    };
    let terminated = end < bytes.len();
    let room = bytes.len() - usize::from(terminated);
    let short = match pseudonym.split_once('-') {
        Some((word, number)) if pseudonym.len() > room && pseudonym != text => format!("{}{number}", &word[..1]),
        _ => pseudonym,
    };
    let length = short.len().min(room);
    bytes.fill(0);
    bytes[..length].copy_from_slice(&short.as_bytes()[..length]);
}
