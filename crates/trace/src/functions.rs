//! Addresses for functions that are known by name only, so that records can hold them.
//!
//! Printed functions get addresses of their own, with the distances that the texts show.

use rustc_hash::FxHashMap;

/// Where the code of 64-bit x86 kernels begins.
const FIRST_ADDRESS: u64 = 0xffff_ffff_8100_0000;

/// Functions, one behind the other.
#[derive(Default)]
pub(crate) struct Functions {
    /// (name, size), in order of their addresses.
    list: Vec<(String, u64)>,
    by_name: FxHashMap<(String, u64), u64>,
    end: u64,
}

impl Functions {
    /// Number of functions.
    pub fn count(&self) -> usize {
        self.list.len()
    }

    /// The address that is printed as `NAME+0xOFFSET/0xSIZE`. Without a size the function has one byte more than
    /// the offset needs.
    pub fn address(&mut self, printed: &[u8]) -> u64 {
        let printed = String::from_utf8_lossy(printed);
        let hex = |text: &str| text.strip_prefix("0x").and_then(|t| u64::from_str_radix(t, 16).ok());
        let (name, place) = printed.split_once('+').unwrap_or((&printed, ""));
        let (offset, size) = place.split_once('/').unwrap_or((place, ""));
        let offset = hex(offset).unwrap_or(0);
        // No function is larger than all of the kernel; what claims to be is printed as text.
        let size = hex(size).unwrap_or(offset.saturating_add(1)).clamp(1, 1 << 30);
        let (list, end) = (&mut self.list, &mut self.end);
        let start = *self.by_name.entry((name.to_string(), size)).or_insert_with(|| {
            list.push((name.to_string(), size));
            *end += size;
            *end - size
        });
        FIRST_ADDRESS.wrapping_add(start).wrapping_add(offset)
    }

    /// (address, name), with a mark behind the last, which gives that its size.
    pub fn symbols(&self) -> Vec<(u64, String)> {
        let mut at = FIRST_ADDRESS;
        let mut symbols = Vec::with_capacity(self.list.len() + 1);
        for (name, size) in &self.list {
            symbols.push((at, name.clone()));
            at = at.wrapping_add(*size);
        }
        if !symbols.is_empty() {
            symbols.push((at, "_etext".into()));
        }
        symbols
    }

    /// The same as the text of a `kallsyms` file.
    pub fn kallsyms(&self) -> Vec<u8> {
        let line = |(address, name): (u64, String)| format!("{address:x} t {name}\n");
        self.symbols().into_iter().map(line).collect::<String>().into_bytes()
    }
}
