//! What one shape of an event's lines looks like, learned from the first such line.
//!
//! A payload is an alternation of literal text and values. `labels` finds it the slow way; a template keeps the
//! literals, to be compared as words, and how each value is taken. The next line of the same event then costs one
//! or two word compares and one number per field. A line that differs anywhere does not match and is learned again.

use super::MAX_LINE;
use super::labels::{self, Label};
use super::values::{device, hex, signed_decimal, word_at, word_value};
use mmtwin_event::value::{Bytes, Shape};
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

#[derive(Debug)]
struct Step {
    /// What stands before the value.
    literal: Literal,
    take: Take,
    /// [`NOWHERE`]: the value is stepped over.
    slot: u8,
    /// Text when it was observed last, and the number of changes of this text.
    last: Vec<u8>,
    changes: u32,
}

const NOWHERE: u8 = u8::MAX;

/// How a value is taken.
#[derive(Debug)]
enum Take {
    /// Decimal digits with an optional minus.
    Decimal,
    /// Hexadecimal digits; `0x` is part of the literal before.
    Hex,
    /// `(null)`, part of the literal before.
    Zero,
    Device,
    /// A word of a table or a truth value, with the words met so far.
    Word(Shape, Vec<(Box<[u8]>, u64)>),
    /// Characters up to a space or comma.
    Run,
    /// A symbol with an optional ` [module]`.
    Symbol,
    /// Characters up to the given text.
    Until(Box<[u8]>),
    /// Characters up to the end of the line.
    Rest,
    /// A value with a number in parentheses behind it, as option `fields` prints both. True: that number is the value,
    /// as signed numbers are readable only there.
    Noted(Box<Take>, bool),
}

/// Words kept per step; flag sets and names have few different values in practice.
const WORDS: usize = 16;

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

impl Step {
    fn new(take: Take, slot: u8) -> Step {
        Step { literal: Literal::new(b""), take, slot, last: Vec::new(), changes: 0 }
    }

    /// A step over a value whose end only the next label tells.
    fn open_ended(schema: &Schema, payload: &[u8], labels: &[Label], index: usize) -> Step {
        let end = labels::value_end(schema, payload, labels, index);
        let take = match labels.get(index + 1) {
            Some(next) => Take::Until(payload[end..next.value.max(end)].into()),
            None => Take::Rest,
        };
        Step::new(take, NOWHERE)
    }

    /// How the value of a known field is taken, and where it begins behind `0x` and the like.
    fn of(schema: &Schema, payload: &[u8], labels: &[Label], index: usize, slot: usize) -> Option<(Step, usize)> {
        let begin = labels[index].value;
        let value = &payload[begin..];
        let shape = schema.fields[slot].shape;
        let (take, skip) = match shape {
            Shape::Str => (Step::open_ended(schema, payload, labels, index).take, 0),
            Shape::Sym => (Take::Symbol, 0),
            Shape::Gfp => (Take::Run, 0),
            Shape::Dev => (Take::Device, 0),
            Shape::Bool | Shape::Flags(_) | Shape::Name(_) => (Take::Word(shape, Vec::new()), 0),
            Shape::Int | Shape::Uint | Shape::Hex if value.starts_with(b"0x") => (Take::Hex, 2),
            Shape::Hex if value.starts_with(b"(null)") => (Take::Zero, 6),
            Shape::Hex => (Take::Hex, 0),
            Shape::Int | Shape::Uint if value.starts_with(b"(") => (Take::Decimal, 1),
            Shape::Int | Shape::Uint => (Take::Decimal, 0),
        };
        let begin = begin + skip;
        let mut step = Step::new(take, slot as u8);
        if shape == Shape::Str {
            return Some((step, begin));
        }
        let (_, end) = step.value(payload, begin)?;
        if note(payload, end).is_some() {
            step.take = Take::Noted(Box::new(step.take), shape == Shape::Int);
        } else if !is_unit(&payload[end..]) && matches!(step.take, Take::Decimal | Take::Hex) {
            return None;
        }
        Some((step, begin))
    }

    /// Reads the literal and the value at `at`; gives the offset behind them.
    #[inline(always)]
    fn read(&mut self, text: &[u8], at: usize, slots: &mut Slots) -> Option<usize> {
        if !self.literal.stands_at(text, at) {
            return None;
        }
        let (value, end) = self.value(text, at + self.literal.bytes.len())?;
        if let Some(slot) = slots.values.get_mut(usize::from(self.slot)) {
            *slot = value;
        }
        Some(end)
    }

    /// Value at `at` and the offset behind it.
    #[inline(always)]
    fn value(&mut self, text: &[u8], at: usize) -> Option<(u64, usize)> {
        match &mut self.take {
            Take::Decimal => signed_decimal(text, at),
            Take::Hex => hex(text, at),
            other => other.value(text, at),
        }
    }
}

impl Take {
    /// The same for what is no plain number.
    #[inline(never)]
    fn value(&mut self, text: &[u8], at: usize) -> Option<(u64, usize)> {
        match self {
            // Plain numbers come here only as part of `Noted`.
            Take::Decimal => signed_decimal(text, at),
            Take::Hex => hex(text, at),
            Take::Noted(inner, use_note) => {
                let (value, end) = inner.value(text, at)?;
                let (noted, end) = note(text, end)?;
                Some((if *use_note { noted } else { value }, end))
            }
            Take::Zero => Some((0, at)),
            Take::Device => device(text, at),
            Take::Word(shape, known) => word(text, at, *shape, known),
            Take::Run => Some(range(at, at + run(text.get(at..)?))),
            Take::Symbol => Some(range(at, at + symbol(text.get(at..)?))),
            Take::Until(mark) => {
                let rest = rest_of_line(text, at)?;
                open_ended(&rest[..memchr::memmem::find(rest, mark)?], at)
            }
            Take::Rest => open_ended(rest_of_line(text, at)?, at),
        }
    }
}

#[inline(always)]
fn range(start: usize, end: usize) -> (u64, usize) {
    (Bytes { start: start as u32, len: (end - start) as u32 }.to_slot(), end)
}

/// A value of any characters. With a `=` it may hold a field that this shape does not have: only learning can tell.
fn open_ended(value: &[u8], at: usize) -> Option<(u64, usize)> {
    (!value.contains(&b'=')).then_some(range(at, at + value.len()))
}

fn rest_of_line(text: &[u8], at: usize) -> Option<&[u8]> {
    let rest = text.get(at..)?;
    let rest = &rest[..rest.len().min(MAX_LINE)];
    Some(&rest[..memchr::memchr(b'\n', rest).unwrap_or(rest.len())])
}

/// Length of the characters up to a space, a comma or the end of the line.
fn run(text: &[u8]) -> usize {
    let text = &text[..text.len().min(MAX_LINE)];
    memchr::memchr3(b' ', b',', b'\n', text).unwrap_or(text.len())
}

fn symbol(text: &[u8]) -> usize {
    let name = run(text);
    let module = text[name..].strip_prefix(b" [").and_then(|rest| rest.iter().take(64).position(|b| *b == b']'));
    module.map_or(name, |len| name + 2 + len + 1)
}

/// A word of a table, and the spaces that pad it.
fn word(text: &[u8], at: usize, shape: Shape, known: &mut Vec<(Box<[u8]>, u64)>) -> Option<(u64, usize)> {
    let rest = text.get(at..)?;
    let ends_at = |len: usize| matches!(rest.get(len), None | Some(b' ' | b',' | b'\n'));
    let met = known.iter().find(|(word, _)| rest.starts_with(word) && ends_at(word.len()));
    let (value, end) = match met {
        Some((word, value)) => (*value, at + word.len()),
        None => {
            let end = run(rest);
            let value = word_value(shape, &rest[..end])?;
            if known.len() < WORDS {
                known.push((rest[..end].into(), value));
            }
            (value, at + end)
        }
    };
    let padding = text[end..].iter().take_while(|b| **b == b' ').count().saturating_sub(1);
    Some((value, end + padding))
}

/// ` (NUMBER)` at `at`.
fn note(text: &[u8], at: usize) -> Option<(u64, usize)> {
    let open = text.get(at..)?.starts_with(b" (");
    let (value, end) = if open { signed_decimal(text, at + 2)? } else { return None };
    (text.get(end) == Some(&b')')).then_some((value, end + 1))
}

/// What follows a number is no part of it: nothing, punctuation, or a unit.
fn is_unit(rest: &[u8]) -> bool {
    let letters = rest.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
    matches!(&rest[..letters], b"" | b"B" | b"kB")
}

/// A piece of literal text.
#[derive(Debug, Default)]
pub(super) struct Literal {
    pub bytes: Vec<u8>,
    /// The first eight bytes, fewer under `mask`.
    first: u64,
    mask: u64,
    /// The words at 8, at 16 and at the end, as far as there are so many bytes; overlapping if there are fewer.
    more: [u64; 3],
}

impl Literal {
    pub fn new(bytes: &[u8]) -> Literal {
        let mut literal = Literal::default();
        literal.assign(bytes);
        literal
    }

    fn assign(&mut self, bytes: &[u8]) {
        let mut head = [0; 8];
        let short = bytes.len().min(8);
        head[..short].copy_from_slice(&bytes[..short]);
        self.first = u64::from_le_bytes(head);
        self.mask = if short == 8 { u64::MAX } else { (1 << (8 * short)) - 1 };
        let last = bytes.len().saturating_sub(8);
        self.more = [8, 16, last].map(|at| word_at(bytes, at.min(last)).unwrap_or(0));
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
    }

    /// True if the text has the literal at `at`.
    #[inline(always)]
    pub fn stands_at(&self, text: &[u8], at: usize) -> bool {
        let Some(first) = word_at(text, at) else { return self.stands_slowly_at(text, at) };
        if (first ^ self.first) & self.mask != 0 {
            return false;
        }
        let len = self.bytes.len();
        if len <= 8 {
            return true;
        }
        let last = at + len - 8;
        match len {
            ..=16 => word_at(text, last) == Some(self.more[2]),
            17..=32 => {
                word_at(text, last) == Some(self.more[2])
                    && word_at(text, at + 8) == Some(self.more[0])
                    && word_at(text, last.min(at + 16)) == Some(self.more[1])
            }
            _ => self.stands_slowly_at(text, at),
        }
    }

    #[inline(never)]
    fn stands_slowly_at(&self, text: &[u8], at: usize) -> bool {
        text.get(at..at + self.bytes.len()) == Some(&self.bytes[..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mmtwin_event::Kind;
    use proptest::prelude::*;

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

    proptest! {
        #[test]
        fn literals_match_exactly(bytes in prop::collection::vec(0u8..4, 0..40), at in 0usize..4, flip in 0usize..40) {
            let literal = Literal::new(&bytes);
            let mut text = vec![9; at];
            text.extend(&bytes);
            for spare in [0, 8] {
                let mut text = text.clone();
                text.extend(vec![9; spare]);
                prop_assert!(literal.stands_at(&text, at));
                if flip < bytes.len() {
                    text[at + flip] ^= 1;
                    prop_assert!(!literal.stands_at(&text, at));
                }
            }
        }
    }
}
