//! Addresses of the kernel's code that occur in events: of these the recording keeps the symbols, and of no others.
//!
//! Symbols of the whole kernel have some megabytes. They are in the recording from its start, so that one that is
//! killed can be read; at the end those that nothing points to are dropped. An address is a field as wide as a `long`
//! of an event whose text prints a symbol, or an entry of a stack, if it lies where the kernel has functions.

use mmtwin_event::stack::{KERNEL_STACK, StackRecord};
use mmtwin_trace::format::{Format, Formats, Storage};
use rustc_hash::FxHashSet;

/// Addresses kept; no kernel has as many functions.
const MOST: usize = 1 << 20;
/// Last addresses that are remembered, to look up most of them but once.
const CACHED: usize = 256;

/// Where the addresses of a record are.
enum Places {
    /// At these offsets.
    Fields(Vec<usize>),
    /// All of a stack.
    Stack(StackRecord),
}

/// The addresses seen so far.
pub struct Addresses {
    /// By id of the event.
    places: Vec<Option<Places>>,
    long: usize,
    big_endian: bool,
    /// Where the kernel's functions begin and end.
    code: std::ops::RangeInclusive<u64>,
    seen: FxHashSet<u64>,
    recent: [u64; CACHED],
}

impl Addresses {
    /// For the events of some formats. `functions` are the lines of `/proc/kallsyms` of the kernel's functions.
    pub fn new(formats: &Formats, functions: &str) -> Addresses {
        let addresses = || functions.lines().filter_map(|l| u64::from_str_radix(l.split(' ').next()?, 16).ok());
        let first = addresses().filter(|&address| address != 0).min().unwrap_or(u64::MAX);
        let (long, big_endian) = (usize::from(formats.long_size()), formats.big_endian());
        // A module that is loaded later may lie behind all that are there.
        let last = if long == 4 { u64::from(u32::MAX) } else { u64::MAX };
        let mut places = Vec::new();
        for format in formats.iter() {
            let id = usize::from(format.id);
            places.resize_with(places.len().max(id + 1), || None);
            places[id] = match format.system.as_str() {
                "ftrace" => formats.stack_record().filter(|_| format.name == KERNEL_STACK).map(Places::Stack),
                _ => fields_of(format, long),
            };
        }
        let (seen, recent) = (FxHashSet::default(), [0; CACHED]);
        Addresses { places, long, big_endian, code: first..=last, seen, recent }
    }

    /// Notes the addresses of a record of an event.
    #[inline]
    pub fn saw(&mut self, id: u16, record: &[u8]) {
        match self.places.get(usize::from(id)) {
            None | Some(None) => {}
            Some(Some(Places::Stack(stack))) => {
                let stack = *stack;
                stack.addresses(record).for_each(|address| self.note(address));
            }
            Some(Some(Places::Fields(offsets))) => {
                for i in 0..offsets.len() {
                    let Some(Some(Places::Fields(offsets))) = self.places.get(usize::from(id)) else { return };
                    let bytes = record.get(offsets[i]..).and_then(|rest| rest.get(..self.long));
                    if let Some(address) = bytes.map(|bytes| number(bytes, self.big_endian)) {
                        self.note(address);
                    }
                }
            }
        }
    }

    #[inline]
    fn note(&mut self, address: u64) {
        let recent = &mut self.recent[(address ^ address >> 9) as usize % CACHED];
        if *recent != address && self.code.contains(&address) && self.seen.len() < MOST {
            *recent = address;
            self.seen.insert(address);
        }
    }

    /// All of them, ascending, which are forgotten then.
    pub fn take(&mut self) -> Vec<u64> {
        let sorted = self.sorted();
        self.seen.clear();
        self.recent = [0; CACHED];
        sorted
    }

    /// Number of them.
    pub fn count(&self) -> usize {
        self.seen.len()
    }

    /// All of them, ascending.
    pub fn sorted(&self) -> Vec<u64> {
        let mut sorted: Vec<u64> = self.seen.iter().copied().collect();
        sorted.sort_unstable();
        sorted
    }
}

/// An address in the byte order of the kernel.
fn number(bytes: &[u8], big_endian: bool) -> u64 {
    let digits = bytes.iter().map(|&b| u64::from(b));
    if big_endian { digits.fold(0, |n, b| n << 8 | b) } else { digits.rev().fold(0, |n, b| n << 8 | b) }
}

/// Fields as wide as an address of a format that prints symbols.
fn fields_of(format: &Format, long: usize) -> Option<Places> {
    if !prints_symbols(&format.text) {
        return None;
    }
    let wide = format.fields.iter().filter(|f| {
        f.size as usize == long && f.storage == Storage::Inline && f.array.is_none_or(|n| n == 1) && !f.common
    });
    Some(Places::Fields(wide.map(|f| f.offset as usize).collect()))
}

/// Whether the text of a format prints the symbol of an address.
pub fn prints_symbols(text: &str) -> bool {
    ["%pS", "%ps", "%pF", "%pf", "%pB"].iter().any(|p| text.contains(p))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mmtwin_trace::Place;

    const COMMON: &str = "format:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
        \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";

    #[test]
    fn addresses_of_fields_and_stacks_are_noted_if_they_are_of_code() {
        let mut formats = Formats::new(false, 8);
        let call = format!(
            "name: call\nID: 300\n{COMMON}\tfield:void * at;\toffset:8;\tsize:8;\tsigned:0;\n\
             \tfield:long n;\toffset:16;\tsize:8;\tsigned:1;\n\nprint fmt: \"%pS %ld\", REC->at, REC->n\n"
        );
        let stack = format!(
            "name: kernel_stack\nID: 4\n{COMMON}\tfield:int size;\toffset:8;\tsize:4;\tsigned:1;\n\
             \tfield:unsigned long caller[8];\toffset:16;\tsize:64;\tsigned:0;\n\nprint fmt: \"%ps\", REC->caller[0]\n"
        );
        let other = format!(
            "name: other\nID: 301\n{COMMON}\tfield:void * at;\toffset:8;\tsize:8;\tsigned:0;\n\nprint fmt: \"%p\", REC->at\n"
        );
        for (system, text) in [("kmem", call), ("ftrace", stack), ("kmem", other)] {
            formats.add(system, &text, &Place::file("x")).unwrap();
        }
        let mut addresses = Addresses::new(&formats, "ffffffff81000000 T _text\nffffffff81000100 t f\n");
        let record = |words: &[u64]| [vec![0; 8], words.iter().flat_map(|w| w.to_le_bytes()).collect()].concat();
        let text = 0xffff_ffff_8100_0000;
        addresses.saw(300, &record(&[text + 5, 77]));
        addresses.saw(300, &record(&[0xffff_8880_0000_1000]));
        addresses.saw(4, &record(&[2, text + 0x104, text + 7]));
        addresses.saw(301, &record(&[text + 9]));
        addresses.saw(9, &record(&[text + 11]));
        addresses.saw(65535, &[]);
        assert_eq!(addresses.sorted(), [text + 5, text + 7, text + 0x104]);
        assert_eq!(addresses.take(), [text + 5, text + 7, text + 0x104]);
        addresses.saw(300, &record(&[text + 5, 77]));
        assert_eq!(addresses.take(), [text + 5]);
        assert_eq!(number(&[1, 2, 3, 4], true), 0x0102_0304);
    }
}
