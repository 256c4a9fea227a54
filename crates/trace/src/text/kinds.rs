//! The event names of one input, and the shapes of their lines learned so far.

use super::MAX_LINE;
use super::line::PLACES;
use super::literal::Literal;
use super::template::Template;
use mmtwin_event::{Kind, Slots};
use rustc_hash::FxHashMap;

/// Names kept separate. More than any kernel has: behind this many the input makes them up, and memory stays bounded.
const NAMES: usize = 1 << 14;
/// Longest name with its system; the kernel's own limit is shorter.
const LABEL: usize = 256;
/// Shapes kept per event; lines of one event have one, few have two.
const SHAPES: usize = 4;
/// The index of no shape.
const UNREADABLE: usize = usize::MAX;

/// One event name as a source spells it.
#[derive(Debug)]
pub(super) struct EventName {
    /// Text up to and with the colon, `system:` included where the source prints it.
    label: Literal,
    /// The name alone.
    pub name: Box<str>,
    /// What it is.
    pub kind: Kind,
    /// Fields of that kind.
    pub fields: u8,
    /// What `trace-cmd report` calls the head of a stack trace.
    pub is_stack: bool,
    shapes: Vec<Template>,
    /// Shape of the line read last; [`UNREADABLE`] if it had none.
    latest: usize,
    /// Shape that was replaced last.
    oldest: usize,
    /// The events that followed this one last in the same task, newest first: tasks go through sequences of events.
    next: [usize; 2],
}

/// The values of a payload.
pub(super) enum Values<'a> {
    /// Read as the type of its kind.
    Typed(&'a Slots),
    /// There is no type, or required fields are missing.
    Untyped,
}

impl EventName {
    fn new(label: &[u8]) -> EventName {
        let token = label.strip_suffix(b":").unwrap_or(label);
        let name = token.rsplit(|b| *b == b':').next().unwrap_or(token);
        let name: Box<str> = String::from_utf8_lossy(name).into();
        let kind = Kind::of_name(&name);
        let is_stack = matches!(&*name, "kernel_stack" | "user_stack");
        EventName {
            label: Literal::new(label),
            name,
            kind,
            fields: kind.schema().map_or(0, |schema| schema.fields.len() as u8),
            is_stack,
            shapes: Vec::new(),
            latest: UNREADABLE,
            oldest: 0,
            next: [0; 2],
        }
    }

    /// Reads the payload at the start of `text` as the last one of this event was read; gives its length too.
    #[inline(always)]
    pub fn read_as_before(&mut self, text: &[u8]) -> Option<usize> {
        match self.shapes.get_mut(self.latest) {
            Some(shape) => shape.read(text),
            None if self.kind == Kind::Other && !self.is_stack => {
                memchr::memchr(b'\n', &text[..text.len().min(MAX_LINE)])
            }
            None => None,
        }
    }

    /// Reads a payload of any shape.
    pub fn read(&mut self, payload: &[u8]) {
        let Some(schema) = self.kind.schema() else { return };
        if let Some(i) = self.shapes.iter_mut().position(|s| s.read(payload) == Some(payload.len())) {
            self.latest = i;
            return;
        }
        let shape = Template::learn(schema, payload);
        if !shape.fit {
            self.latest = UNREADABLE;
        } else if self.shapes.len() < SHAPES {
            self.latest = self.shapes.len();
            self.shapes.push(shape);
        } else {
            self.oldest = (self.oldest + 1) % SHAPES;
            self.latest = self.oldest;
            self.shapes[self.latest] = shape;
        }
    }

    /// What was read last.
    #[inline(always)]
    pub fn values(&self) -> Values<'_> {
        match self.shapes.get(self.latest) {
            Some(shape) if shape.typed => Values::Typed(&shape.slots),
            _ => Values::Untyped,
        }
    }
}

/// All names of an input.
pub(super) struct EventNames {
    list: Vec<EventName>,
    by_label: FxHashMap<Box<[u8]>, usize>,
    /// The last name of the tasks remembered at each place of [`super::line::Columns`].
    last: [usize; PLACES],
}

impl EventNames {
    /// The index of the names that are not on the list, which is full.
    pub const BEYOND: usize = 0;

    pub fn new() -> EventNames {
        EventNames { list: vec![EventName::new(b"?:")], by_label: FxHashMap::default(), last: [0; PLACES] }
    }

    /// The name at the start of `text`, of a task remembered at `place`: its index and where its payload begins.
    /// `None`: there is no `name:`.
    #[inline(always)]
    pub fn find(&mut self, text: &[u8], place: usize) -> Option<(usize, usize)> {
        let [first, second] = self.list[self.last[place]].next;
        let (index, at) = if self.is_at(text, first) {
            (first, self.list[first].label.bytes.len())
        } else if self.is_at(text, second) {
            self.follow(place, second);
            (second, self.list[second].label.bytes.len())
        } else {
            let label = label(text)?;
            let index = self.named(label);
            self.follow(place, index);
            (index, label.len())
        };
        self.last[place] = index;
        // trace-cmd pads short names.
        let padding = text.get(at..)?.iter().take_while(|b| **b == b' ').count();
        Some((index, at + padding))
    }

    #[inline(always)]
    fn is_at(&self, text: &[u8], index: usize) -> bool {
        let label = &self.list[index].label;
        label.stands_at(text, 0) && text.get(label.bytes.len()) == Some(&b' ')
    }

    fn follow(&mut self, place: usize, index: usize) {
        let next = &mut self.list[self.last[place]].next;
        *next = [index, next[0]];
    }

    /// Index of a name, entered if it is new; that of the name `?` when there are too many.
    fn add(&mut self, label: &[u8]) -> usize {
        if self.list.len() > NAMES {
            return EventNames::BEYOND;
        }
        self.list.push(EventName::new(label));
        self.by_label.insert(label.into(), self.list.len() - 1);
        self.list.len() - 1
    }

    /// The index of a name by its label.
    #[inline(never)]
    pub fn named(&mut self, label: &[u8]) -> usize {
        match self.by_label.get(label) {
            Some(index) => *index,
            None => self.add(label),
        }
    }

    #[inline]
    pub fn get(&mut self, index: usize) -> &mut EventName {
        &mut self.list[index]
    }

    /// The labels of the names from an index on.
    pub fn labels(&self, from: usize) -> impl Iterator<Item = Box<[u8]>> {
        self.list.get(from..).unwrap_or_default().iter().map(|name| name.label.bytes.as_slice().into())
    }

    /// True if there were more names than are kept separate.
    pub fn is_full(&self) -> bool {
        self.list.len() > NAMES
    }
}

/// `name:` or `system:name:` at the start of a text, followed by a space or the end of the line.
pub(super) fn label(text: &[u8]) -> Option<&[u8]> {
    let text = &text[..text.len().min(LABEL)];
    let label = &text[..memchr::memchr2(b' ', b'\n', text).unwrap_or(text.len())];
    let is_name = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-' | b'/' | b'<' | b'>' | b':');
    (label.len() > 1 && label.ends_with(b":") && label.iter().all(is_name)).then_some(label)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(names: &mut EventNames, line: &str) -> Option<(String, Kind, usize)> {
        let (index, payload) = names.find(line.as_bytes(), 0)?;
        let name = names.get(index);
        Some((name.name.to_string(), name.kind, payload))
    }

    #[test]
    fn names_with_padding_and_systems() {
        let mut names = EventNames::new();
        for _ in 0..2 {
            let wake = |at| Some(("mm_vmscan_kswapd_wake".to_string(), Kind::MmVmscanKswapdWake, at));
            assert_eq!(find(&mut names, "mm_vmscan_kswapd_wake: nid=0"), wake(23));
            assert_eq!(find(&mut names, "mm_vmscan_kswapd_wake:    nid=0"), wake(26));
            assert_eq!(find(&mut names, "vmscan:mm_vmscan_kswapd_wake: nid=0"), wake(30));
            assert_eq!(find(&mut names, "kfree:"), Some(("kfree".into(), Kind::Kfree, 6)));
            assert_eq!(find(&mut names, "a b: c"), None);
            assert_eq!(find(&mut names, ""), None);
        }
    }

    #[test]
    fn invented_names_do_not_fill_the_memory() {
        let mut names = EventNames::new();
        for i in 0..NAMES + 100 {
            assert!(find(&mut names, &format!("name{i}: x")).is_some());
        }
        assert!(names.is_full());
        assert_eq!(find(&mut names, "another: x").unwrap().0, "?");
        assert_eq!(find(&mut names, "name7: x").unwrap().0, "name7");
    }
}
