//! What one shape of an event's lines looks like, learned from the first such line.
//!
//! A payload is an alternation of literal text and values. `labels` finds it the slow way; a template keeps the
//! literals, to be compared as words, and how each value is taken. The next line of the same event then costs one
//! or two word compares and one number per field. A line that differs anywhere does not match and is learned again.

use super::labels;
use super::literal::Literal;
use super::step::{NOWHERE, Step, Take, range};
use mmtwin_event::value::Bytes;
use mmtwin_event::{Schema, Slots};
use std::ops::Range;

/// One shape of an event's payload.
#[derive(Debug)]
pub(super) struct Template {
    steps: Vec<Step>,
    parts: Vec<Part>,
    /// What follows the last value.
    tail: Literal,
    /// All required fields are there.
    pub typed: bool,
    /// All fields that have a label could be read. If not, the steps would also fit lines that can be.
    pub fit: bool,
    /// Values of the line read last.
    pub slots: Slots,
    /// Lines until the shape is observed for what changes, or, while it is observed, until that ends.
    countdown: u32,
    observed: bool,
}

/// Consecutive steps. In real traces many fields keep their values from line to line (most are zero), so a part of
/// such fields is compared as a whole with its text in the line before.
#[derive(Debug)]
struct Part {
    steps: Range<usize>,
    /// Fields that seldom change.
    stable: bool,
    /// Text of the last line, and one byte more, which tells that the last value ends there; empty: none yet.
    text: Literal,
    /// Values that are ranges of the payload: slot and offset within the text.
    ranges: Vec<(u8, u32)>,
}

/// Lines that are observed to learn which fields change.
const OBSERVED: u32 = 32;
/// Lines between two observations.
const UNOBSERVED: u32 = 1 << 13;
/// A field is stable if it changes in at most this many observed lines.
const CHANGES: u32 = OBSERVED / 8;

impl Template {
    /// Learns the shape of a payload and reads its values into `slots`. Fields that cannot be read are omitted.
    pub fn learn(schema: &Schema, payload: &[u8]) -> Template {
        let labels = labels::locate(schema, payload);
        let mut steps = Vec::new();
        let mut slots = Slots::default();
        let mut end = 0;
        let mut fit = true;
        for (index, label) in labels.iter().enumerate() {
            // A value may have swallowed what looked like a label.
            if label.start < end {
                continue;
            }
            let known = label.slot.and_then(|slot| Step::of(schema, payload, &labels, index, slot));
            fit &= known.is_some() || label.slot.is_none();
            let (mut step, begin) =
                known.unwrap_or_else(|| (Step::open_ended(schema, payload, &labels, index), label.value));
            step.literal = Literal::new(&payload[end..begin]);
            let read = match step.take {
                Take::Until(_) | Take::Rest => Some(range(begin, labels::value_end(schema, payload, &labels, index))),
                _ => step.value(payload, begin),
            };
            let Some((value, behind)) = read else { continue };
            if step.slot != NOWHERE {
                slots.set(step.slot.into(), value);
            }
            steps.push(step);
            end = behind;
        }
        let typed = schema.fields.iter().enumerate().all(|(i, f)| !f.required || slots.present >> i & 1 == 1);
        let parts = vec![Part::new(0..steps.len(), false)];
        let tail = Literal::new(payload[end..].trim_ascii_end());
        Template { steps, parts, tail, typed, fit, slots, countdown: OBSERVED, observed: true }
    }

    /// Reads the payload at the start of `text`, which ends with the line or continues behind it (so that whole words
    /// can be loaded near the line's end). Gives the payload's length; `None`: it has another shape.
    #[inline]
    pub fn read(&mut self, text: &[u8]) -> Option<usize> {
        self.countdown -= 1;
        if self.observed || self.countdown == 0 {
            return self.read_observing(text);
        }
        let mut at = 0;
        for part in &mut self.parts {
            if part.stable && !part.text.bytes.is_empty() && part.text.stands_at(text, at) {
                for (slot, offset) in &part.ranges {
                    let value = &mut self.slots.values[usize::from(*slot)];
                    *value = Bytes { start: at as u32 + offset, ..Bytes::from_slot(*value) }.to_slot();
                }
                at += part.text.bytes.len() - 1;
                continue;
            }
            let start = at;
            for step in &mut self.steps[part.steps.clone()] {
                at = step.read(text, at, &mut self.slots)?;
            }
            if part.stable {
                part.remember(&self.steps, &self.slots, text, start, at);
            }
        }
        self.end(text, at)
    }

    /// Reads step by step and notes which values change; at the end of the observation the steps are grouped again.
    #[inline(never)]
    fn read_observing(&mut self, text: &[u8]) -> Option<usize> {
        if self.countdown == 0 {
            (self.observed, self.countdown) = match self.observed {
                true => (false, UNOBSERVED),
                false => (true, OBSERVED),
            };
            self.group();
        }
        let mut at = 0;
        for step in &mut self.steps {
            let end = step.read(text, at, &mut self.slots)?;
            if self.observed && step.last != text[at..end] {
                step.changes += 1;
                step.last.clear();
                step.last.extend_from_slice(&text[at..end]);
            }
            at = end;
        }
        self.end(text, at)
    }

    /// Groups the steps by whether they changed.
    fn group(&mut self) {
        self.parts.clear();
        for (i, step) in self.steps.iter_mut().enumerate() {
            let stable = step.changes <= CHANGES && !matches!(step.take, Take::Until(_) | Take::Rest);
            step.changes = 0;
            match self.parts.last_mut() {
                Some(part) if part.stable == stable => part.steps.end = i + 1,
                _ => self.parts.push(Part::new(i..i + 1, stable)),
            }
        }
    }

    /// Checks that the payload ends at `at`, but for the tail and spaces.
    #[inline(always)]
    fn end(&self, text: &[u8], at: usize) -> Option<usize> {
        if self.tail.bytes.is_empty() && matches!(text.get(at), Some(b'\n') | None) {
            return Some(at);
        }
        if !self.tail.stands_at(text, at) {
            return None;
        }
        let end = at + self.tail.bytes.len();
        let end = end + text.get(end..)?.iter().take_while(|b| **b == b' ').count();
        matches!(text.get(end), Some(b'\n') | None).then_some(end)
    }
}

impl Part {
    fn new(steps: Range<usize>, stable: bool) -> Part {
        Part { steps, stable, text: Literal::new(b""), ranges: Vec::new() }
    }

    /// Remembers that the steps read `text[start..end]`.
    #[inline(never)]
    fn remember(&mut self, steps: &[Step], slots: &Slots, text: &[u8], start: usize, end: usize) {
        self.text.assign(text.get(start..=end).unwrap_or_default());
        self.ranges.clear();
        for step in steps[self.steps.clone()].iter().filter(|s| s.slot != NOWHERE) {
            if matches!(step.take, Take::Run | Take::Symbol) {
                let range = Bytes::from_slot(slots.values[usize::from(step.slot)]);
                self.ranges.push((step.slot, range.start - start as u32));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mmtwin_event::Kind;

    fn values(schema: &'static Schema, slots: &Slots) -> Vec<(&'static str, u64)> {
        let there = (0..schema.fields.len()).filter(|i| slots.present >> i & 1 == 1);
        there.map(|i| (schema.fields[i].name, slots.values[i])).collect()
    }

    /// Values that a line gives after the template was learned from another one.
    fn taught(kind: Kind, teacher: &str, line: &str) -> Option<Vec<(&'static str, u64)>> {
        let schema = kind.schema().unwrap();
        let mut template = Template::learn(schema, teacher.as_bytes());
        // What follows the line must not matter.
        let end = template.read(format!("{line}\n12345678").as_bytes())?;
        assert_eq!(end, line.len());
        Some(values(schema, &template.slots))
    }

    #[test]
    fn the_same_shape_is_read_and_another_is_not() {
        let got = taught(Kind::MmVmscanWakeupKswapd, "nid=0 order=9 gfp_flags=A|B", "nid=1 order=-1 gfp_flags=C");
        let gfp = Bytes { start: 25, len: 1 }.to_slot();
        assert_eq!(got.unwrap(), [("nid", 1), ("order", u64::MAX), ("gfp_flags", gfp)]);
        assert_eq!(
            taught(Kind::MmVmscanWakeupKswapd, "nid=0 order=9 gfp_flags=A", "nid=1 zid=2 order=0 gfp_flags=C"),
            None
        );
        assert_eq!(taught(Kind::MmVmscanKswapdWake, "nid=0 order=9", "nid=0 order=9 more"), None);
        assert_eq!(taught(Kind::MmVmscanKswapdWake, "nid=0 order=9", "nid=0"), None);
    }

    #[test]
    fn padded_words_and_units() {
        let teacher = "node=0 zone=DMA      order=9 ret=continue";
        let got = taught(Kind::MmCompactionFinished, teacher, "node=1 zone=Normal   order=3 ret=success");
        assert_eq!(got.unwrap(), [("node", 1), ("zone", 2), ("order", 3), ("ret", 8)]);
        let got = taught(
            Kind::MmCompactionKcompactdWake,
            "nid=0 order=9 classzone_idx=DMA     ",
            "nid=0 order=1 classzone_idx=Normal  ",
        );
        assert_eq!(got.unwrap(), [("nid", 0), ("order", 1), ("highest_zoneidx", 2)]);
        let teacher = "mm_id=1 curr=1 type=MM_FILEPAGES size=4096B";
        let got = taught(Kind::RssStat, teacher, "mm_id=2 curr=0 type=MM_ANONPAGES size=-8192B");
        assert_eq!(got.unwrap(), [("mm_id", 2), ("curr", 0), ("member", 1), ("size", (-8192i64) as u64)]);
    }

    #[test]
    fn option_fields() {
        let got = taught(
            Kind::RssStat,
            "mm_id=0xd (13) curr=0x1 (1) member=0x0 (0) size=0x1000 (4096)",
            "mm_id=0xffffffff (-1) curr=0x0 (0) member=0x1 (1) size=0xfffffffffffff000 (-4096)",
        );
        assert_eq!(got.unwrap(), [("mm_id", 0xffff_ffff), ("curr", 0), ("member", 1), ("size", (-4096i64) as u64)]);
    }

    #[test]
    fn a_number_must_end_where_it_seems_to() {
        let schema = Kind::MmPageFree.schema().unwrap();
        assert!(Template::learn(schema, b"page=0000 pfn=0x1f order=0").typed);
        let odd = Template::learn(schema, b"page=0000 pfn=1f order=0z");
        assert!(!odd.typed);
    }
}
