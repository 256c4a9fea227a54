//! Reads lines of events, and learns from each how the next is read.
//!
//! What it gives depends on the lines that it was given and on nothing else, so lanes can work at the same time.

use super::MAX_LINE;
use super::kinds::EventNames;
use super::line::{Columns, Context};
use std::ops::Range;

/// What lines taught so far.
pub(super) struct Lane {
    pub columns: Columns,
    pub names: EventNames,
}

/// A line of an event; its values are at its name until the next line of that name is read.
pub(super) struct Line {
    pub context: Context,
    /// Of its name.
    pub index: usize,
    /// What stands behind the name.
    pub payload: Range<usize>,
    /// Bytes without the line end.
    pub len: usize,
}

impl Default for Lane {
    fn default() -> Lane {
        Lane { columns: Columns::new(), names: EventNames::new() }
    }
}

impl Lane {
    /// The line at the start of `text`, if it looks like recent ones. It must have a line end, and its name be on the list:
    /// whether it is depends on all lines, not on a lane's.
    #[inline(always)]
    pub fn usual(&mut self, text: &[u8]) -> Option<Line> {
        let context = self.columns.remembered(text)?;
        let (index, payload) = self.names.find(text.get(context.event..)?, context.place)?;
        if index == EventNames::BEYOND {
            return None;
        }
        let at = context.event + payload;
        let rest = &text[at..];
        let len = self.names.get(index).read_as_before(rest)?;
        if rest.get(len) != Some(&b'\n') || rest[..len].last() == Some(&b'\r') {
            return None;
        }
        Some(Line { context, index, payload: at..at + len, len: at + len })
    }

    /// The line at the start of `text`, if it has columns, the name of an event other than a stack, and a line end, and
    /// its name is on the list.
    #[inline(never)]
    pub fn any(&mut self, text: &[u8]) -> Option<Line> {
        let len = memchr::memchr(b'\n', text).filter(|len| *len <= MAX_LINE)?;
        let line = text[..len].strip_suffix(b"\r").unwrap_or(&text[..len]);
        let context = self.columns.read(line)?;
        let (index, payload) = self.names.find(&line[context.event..], context.place)?;
        let name = self.names.get(index);
        if name.is_stack || index == EventNames::BEYOND {
            return None;
        }
        let at = context.event + payload;
        name.read(&line[at..]);
        Some(Line { context, index, payload: at..line.len(), len })
    }
}
