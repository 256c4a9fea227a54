//! Kernel symbols by address, and strings of the kernel by address.
//!
//! Both come from the recording (`/proc/kallsyms`, `printk_formats`), never from the machine that reads it.

use std::sync::Arc;

/// Symbols and strings of the recorded kernel.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    /// (address, name), sorted by address.
    kallsyms: Arc<Vec<(u64, String)>>,
    /// (address, text), sorted by address.
    printk: Vec<(u64, Vec<u8>)>,
}

/// A symbol that holds an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found<'a> {
    /// Its name.
    pub name: &'a str,
    /// Distance of the address from its start.
    pub offset: u64,
    /// Distance from its start to the next symbol, as the kernel sizes it; `None` for the last one.
    pub size: Option<u64>,
}

impl Symbols {
    /// Takes over the symbols of a recording, sorted by address.
    pub fn set_kallsyms(&mut self, kallsyms: Arc<Vec<(u64, String)>>) {
        self.kallsyms = kallsyms;
    }

    /// Takes over the strings of a recording.
    pub fn set_printk(&mut self, mut strings: Vec<(u64, Vec<u8>)>) {
        strings.sort_by_key(|s| s.0);
        self.printk = strings;
    }

    /// The symbol that holds `address`. Of several at one address the first in the kernel's own order.
    pub fn find(&self, address: u64) -> Option<Found<'_>> {
        let after = self.kallsyms.partition_point(|s| s.0 <= address);
        let start = self.kallsyms[..after].last()?.0;
        let first = self.kallsyms[..after].partition_point(|s| s.0 < start);
        let size = self.kallsyms.get(after).map(|next| next.0 - start);
        Some(Found { name: &self.kallsyms[first].1, offset: address - start, size })
    }

    /// The symbol that trace-cmd finds. It holds the names of one address in reverse order, takes the one its
    /// bisection meets first, and knows nothing behind the start of the last symbol.
    pub fn find_bisecting(&self, address: u64) -> Option<Found<'_>> {
        let found = self.find(address)?;
        if found.offset > 0 {
            return found.size.map(|_| found);
        }
        let first = self.kallsyms.partition_point(|s| s.0 < address);
        let after = self.kallsyms.partition_point(|s| s.0 <= address);
        let (mut low, mut high) = (0, self.kallsyms.len());
        let mut met = (low + high) / 2;
        while !(first..after).contains(&met) {
            if met < first {
                low = met + 1;
            } else {
                high = met;
            }
            met = (low + high) / 2;
        }
        Some(Found { name: &self.kallsyms[first + after - 1 - met].1, ..found })
    }

    /// Address of the first symbol of a name.
    pub fn address(&self, name: &str) -> Option<u64> {
        self.kallsyms.iter().find(|s| s.1 == name).map(|s| s.0)
    }

    /// The kernel string at an address.
    pub fn string(&self, address: u64) -> Option<&[u8]> {
        let found = self.printk.binary_search_by_key(&address, |s| s.0).ok()?;
        Some(&self.printk[found].1)
    }
}

/// Parses `/proc/kallsyms`: lines of address, type, name and perhaps `[module]`. Sorted by address; symbols of one
/// address stay in the order of the text. Lines of another form are skipped, and so are those whose address is 0
/// because the reader had no right to see it. As trace-cmd does, absolute symbols (`A`) and names with `$` are left
/// out: they are no addresses of code.
pub fn parse_kallsyms(text: &[u8]) -> Vec<(u64, String)> {
    let lines = text.split(|&b| b == b'\n').filter_map(parse_line);
    let mut symbols: Vec<_> =
        lines.map(|(address, name)| (address, String::from_utf8_lossy(name).into_owned())).collect();
    symbols.sort_by_key(|s: &(u64, String)| s.0);
    symbols
}

/// Address and name of a line that [`parse_kallsyms`] takes.
fn parse_line(line: &[u8]) -> Option<(u64, &[u8])> {
    let mut words = line.split(|b| b.is_ascii_whitespace()).filter(|w| !w.is_empty());
    let (address, kind, name) = (words.next()?, words.next()?, words.next()?);
    let address = u64::from_str_radix(std::str::from_utf8(address).ok()?, 16).ok().filter(|&a| a != 0)?;
    (!matches!(kind, b"A" | b"a") && !name.starts_with(b"$")).then_some((address, name))
}

/// The lines of a `kallsyms` text that some addresses need, ascending: for each all names of the symbol that holds it,
/// and the next symbol, which gives it its size. A reader finds of these addresses what it would find in the whole text.
pub fn needed(text: &[u8], addresses: &[u64]) -> Vec<u8> {
    let mut lines = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive(|&b| b == b'\n') {
        lines.extend(parse_line(line).map(|(address, _)| (address, at, line.len())));
        at += line.len();
    }
    lines.sort_by_key(|&(address, at, _)| (address, at));
    let mut kept = Vec::new();
    for &address in addresses {
        let after = lines.partition_point(|line| line.0 <= address);
        let Some(&(start, ..)) = lines[..after].last() else { continue };
        let first = lines[..after].partition_point(|line| line.0 < start);
        kept.extend(first..(after + 1).min(lines.len()));
    }
    kept.sort_unstable();
    kept.dedup();
    kept.iter().flat_map(|&i| &text[lines[i].1..][..lines[i].2]).copied().collect()
}

/// Parses `printk_formats`: lines `0xADDRESS : "string"`, with `\n`, `\t`, `\"` and `\\` escaped.
pub fn parse_printk(text: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let mut strings = Vec::new();
    for line in text.split(|&b| b == b'\n') {
        let Some(colon) = line.iter().position(|&b| b == b':') else { continue };
        let (address, rest) = line.split_at(colon);
        let address = std::str::from_utf8(address).ok().and_then(|a| {
            let a = a.trim();
            u64::from_str_radix(a.strip_prefix("0x").unwrap_or(a), 16).ok()
        });
        let quoted = rest[1..].trim_ascii();
        let quoted = quoted.strip_prefix(b"\"").unwrap_or(quoted);
        let quoted = quoted.strip_suffix(b"\"").unwrap_or(quoted);
        let Some(address) = address else { continue };
        let mut string = Vec::with_capacity(quoted.len());
        let mut bytes = quoted.iter();
        while let Some(&b) = bytes.next() {
            match b {
                b'\\' => string.extend(bytes.next().map(|c| match c {
                    b'n' => b'\n',
                    b't' => b'\t',
                    c => *c,
                })),
                b => string.push(b),
            }
        }
        strings.push((address, string));
    }
    strings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_within_symbols() {
        let text = b"110 T b1\n100 t a\n110 T b2 [mod]\n0 T hidden\n118 A per_cpu\n110 T b3\n120 d $d\n140 T last\n";
        let mut symbols = Symbols::default();
        symbols.set_kallsyms(Arc::new(parse_kallsyms(text)));
        assert_eq!(symbols.find(0x10f), Some(Found { name: "a", offset: 15, size: Some(16) }));
        assert_eq!(symbols.find(0x111), Some(Found { name: "b1", offset: 1, size: Some(0x30) }));
        assert_eq!(symbols.find(0x141), Some(Found { name: "last", offset: 1, size: None }));
        assert_eq!(symbols.find(0xff), None);
        assert_eq!(symbols.find_bisecting(0x110).unwrap().name, "b2");
        assert_eq!(symbols.find_bisecting(0x111).unwrap().name, "b1");
        assert_eq!(symbols.find_bisecting(0x140).unwrap().name, "last");
        assert_eq!(symbols.find_bisecting(0x141), None);
        assert_eq!(symbols.address("b3"), Some(0x110));
        assert_eq!(symbols.address("per_cpu"), None);
    }

    #[test]
    fn the_needed_symbols_answer_as_all_do() {
        let text =
            b"110 T b1\n100 t a\n110 T b2 [mod]\n0 T hidden\n118 A per_cpu\n120 t c\n128 d $d\n130 t d\n140 T last\n";
        let symbols = |text: &[u8]| {
            let mut symbols = Symbols::default();
            symbols.set_kallsyms(Arc::new(parse_kallsyms(text)));
            symbols
        };
        for addresses in [&[0x111u64][..], &[0x100, 0x13f], &[0x150], &[0x10, 0x111, 0x119], &[0x12f, 0x130]] {
            let kept = needed(text, addresses);
            assert!(kept.len() < text.len(), "{addresses:?}");
            for &address in addresses {
                assert_eq!(symbols(&kept).find(address), symbols(text).find(address), "{address:x} of {addresses:?}");
            }
        }
        assert_eq!(needed(text, &[0x111]), b"110 T b1\n110 T b2 [mod]\n120 t c\n");
        assert_eq!(needed(text, &[]), b"");
    }

    #[test]
    fn strings_are_unescaped() {
        let mut symbols = Symbols::default();
        symbols.set_printk(parse_printk(b"0xff02 : \"two\\n\"\nbad\n0xff01 : \"a: \\\"b\\\"\"\n"));
        assert_eq!(symbols.string(0xff01), Some(b"a: \"b\"".as_slice()));
        assert_eq!(symbols.string(0xff02), Some(b"two\n".as_slice()));
        assert_eq!(symbols.string(0xff03), None);
    }
}
