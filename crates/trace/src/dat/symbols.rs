//! The small text tables of a recording: kallsyms, printk formats, saved command lines.

use std::borrow::Cow;

/// Lines `ADDRESS TYPE NAME [MODULE]` as (address, name), sorted by address. Of several names of an address the
/// first is kept, as the kernel does when it prints one. Empty if all addresses are 0, which is how the kernel
/// hides them from readers without rights.
pub fn kallsyms(text: &[u8]) -> Vec<(u64, String)> {
    let mut symbols: Vec<(u64, String)> = lines(text)
        .filter_map(|line| {
            let mut words = line.split_ascii_whitespace();
            let address = u64::from_str_radix(words.next()?, 16).ok()?;
            Some((address, words.nth(1)?.to_string()))
        })
        .collect();
    if symbols.iter().all(|(address, _)| *address == 0) {
        return Vec::new();
    }
    symbols.sort_by_key(|(address, _)| *address);
    symbols.dedup_by_key(|(address, _)| *address);
    symbols
}

/// Lines `0xADDRESS : "string"` as (address, string), sorted by address, with the escapes undone.
pub fn printk_formats(text: &[u8]) -> Vec<(u64, String)> {
    let mut formats: Vec<(u64, String)> = lines(text)
        .filter_map(|line| {
            let (address, string) = line.split_once(" : ")?;
            let address = u64::from_str_radix(address.trim().strip_prefix("0x")?, 16).ok()?;
            let string = string.trim_end().strip_prefix('"')?.strip_suffix('"')?;
            Some((address, unescape(string)))
        })
        .collect();
    formats.sort_by_key(|(address, _)| *address);
    formats.dedup_by_key(|(address, _)| *address);
    formats
}

/// Lines `PID COMM` as (pid, comm), in order.
pub fn cmdlines(text: &[u8]) -> Vec<(i32, Vec<u8>)> {
    let line = |line: &[u8]| {
        let space = memchr::memchr(b' ', line)?;
        let pid = std::str::from_utf8(&line[..space]).ok()?.parse().ok()?;
        Some((pid, line[space + 1..].to_vec()))
    };
    text.split(|&b| b == b'\n' || b == 0).filter_map(line).collect()
}

fn lines(text: &[u8]) -> impl Iterator<Item = Cow<'_, str>> {
    text.split(|&b| b == b'\n').map(String::from_utf8_lossy)
}

fn unescape(string: &str) -> String {
    let mut out = String::with_capacity(string.len());
    let mut chars = string.chars();
    while let Some(c) = chars.next() {
        match (c, if c == '\\' { chars.next() } else { None }) {
            ('\\', Some('n')) => out.push('\n'),
            ('\\', Some('t')) => out.push('\t'),
            ('\\', Some(other)) => out.push(other),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_sorted_and_the_first_name_of_an_address_stays() {
        let text = b"ffffffff81000010 T second\nffffffff81000000 T first\nffffffff81000000 T alias\n\
                     ffffffffc0000000 t in_module\t[nfs]\nnonsense\n";
        let expected =
            [(0xffff_ffff_8100_0000, "first"), (0xffff_ffff_8100_0010, "second"), (0xffff_ffff_c000_0000, "in_module")];
        assert_eq!(kallsyms(text), expected.map(|(a, n)| (a, n.to_string())));
    }

    #[test]
    fn hidden_addresses_are_no_symbols() {
        assert!(kallsyms(b"0000000000000000 T a\n0000000000000000 T b\n").is_empty());
        assert_eq!(kallsyms(b"0000000000000000 A percpu\n0000000000001000 T b\n").len(), 2);
    }

    #[test]
    fn printk_formats_lose_their_escapes() {
        let text = b"0xffffffff82521908 : \"a\\n\\\"b\\\\\"\n0x10 : \"x : y\"\nbad\n";
        assert_eq!(printk_formats(text), [(0x10, "x : y".into()), (0xffff_ffff_8252_1908, "a\n\"b\\".to_string())]);
    }

    #[test]
    fn names_of_tasks_may_hold_spaces() {
        let names = cmdlines(b"58 kworker/1:1H\n7 a b\nx y\n12\n");
        assert_eq!(names, [(58, b"kworker/1:1H".to_vec()), (7, b"a b".to_vec())]);
    }
}
