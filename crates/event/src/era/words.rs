//! Words that kernels of an era print for numbers, and GFP flags in particular.
//!
//! `__print_flags` walks a table in order: an entry whose bits are all set is printed and its bits are cleared;
//! remaining bits follow as `0x..`. 0 prints a word of the event. `__print_symbolic` prints the entry that equals the
//! number, else the number as `0x..`. So the order of entries matters, and one table per era is kept.

use super::Era;
use super::table::eras;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// A table of words.
#[derive(Debug, PartialEq, Eq)]
pub struct Words {
    /// Flags (several words) rather than symbols (one word).
    pub(super) flags: bool,
    /// Printed for flags 0.
    pub(super) none: &'static str,
    /// Numbers and words in the order in which they are tried.
    pub(super) entries: Vec<(u64, &'static str)>,
}

impl Words {
    /// The text of a number.
    pub(super) fn text(&self, number: u64) -> String {
        if !self.flags {
            let entry = self.entries.iter().find(|(n, _)| *n == number);
            return entry.map_or_else(|| format!("{number:#x}"), |(_, word)| (*word).to_string());
        }
        if number == 0 {
            return self.none.to_string();
        }
        let mut left = number;
        let mut words = Vec::new();
        for (bits, word) in &self.entries {
            if left & bits == *bits {
                words.push((*word).to_string());
                left &= !bits;
            }
        }
        if left != 0 {
            words.push(format!("{left:#x}"));
        }
        words.join("|")
    }

    /// The number of a text; `None` if a word of it is in no table of the era.
    pub(super) fn number(&self, text: &[u8]) -> Option<u64> {
        if self.flags && text == self.none.as_bytes() {
            return Some(0);
        }
        let one = |word: &[u8]| {
            let entry = self.entries.iter().find(|(_, w)| w.as_bytes() == word);
            entry.map(|(n, _)| *n).or_else(|| hexadecimal(word.strip_prefix(b"0x")?))
        };
        match self.flags {
            true => text.split(|&b| b == b'|').try_fold(0, |bits, word| Some(bits | one(word)?)),
            false => one(text),
        }
    }
}

/// A number in hexadecimal digits alone.
pub(super) fn hexadecimal(digits: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(digits).ok().filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()))?;
    u64::from_str_radix(digits, 16).ok()
}

type Tables = BTreeMap<&'static str, BTreeMap<Era, Words>>;

static TABLES: LazyLock<Tables> =
    LazyLock::new(|| parse(include_str!("data/words.txt")).expect("tests parse the same table"));

/// The words of a table in an era.
pub(super) fn words(era: Era, table: &str) -> Option<&'static Words> {
    TABLES.get(table)?.get(&era)
}

/// The GFP flags that a text such as `GFP_KERNEL|__GFP_NOWARN` stands for in kernels of an era; `None` if they do not
/// have one of the words.
pub fn gfp_bits(era: Era, text: &[u8]) -> Option<u64> {
    words(era, "gfp")?.number(text)
}

/// GFP flags as kernels of an era print them.
pub fn gfp_text(era: Era, bits: u64) -> String {
    words(era, "gfp").map_or_else(|| format!("{bits:#x}"), |gfp| gfp.text(bits))
}

/// The flags of a request, named as kernels from 4.6 on name them, as kernels of an era print them. In earlier kernels
/// names of single flags have no underscores, kernel memory is not accounted, requests that do not wake kswapd have a
/// flag for it, and some flags have no name or do not exist.
pub fn gfp_then(era: Era, text: &str) -> Cow<'_, str> {
    // Bits without a name in the tables of their time.
    const HIGHMEM: u64 = 0x2;
    const WRITE: u64 = 0x100_0000;
    if era > Era::V3_5 {
        return Cow::Borrowed(text);
    }
    let Some(then) = words(era, "gfp") else { return Cow::Borrowed(text) };
    let known = |word: &str| then.entries.iter().find(|(_, w)| *w == word).map_or(0, |(bits, _)| *bits);
    let bits = text.split('|').fold(0, |bits, word| match word {
        "GFP_KERNEL_ACCOUNT" => bits | known("GFP_KERNEL"),
        "GFP_TRANSHUGE_LIGHT" => bits | known("GFP_TRANSHUGE") & !known("GFP_WAIT"),
        "__GFP_KSWAPD_RECLAIM" => bits & !known("GFP_NO_KSWAPD"),
        "__GFP_HIGHMEM" => bits | HIGHMEM,
        // Since 3.3.
        "__GFP_WRITE" if era > Era::V2_6_36 => bits | WRITE,
        _ => bits | known(word.strip_prefix("__").unwrap_or(word)),
    });
    Cow::Owned(then.text(bits))
}

/// Heads are `flags NAME ERAS WORD-OF-0` and `symbols NAME ERAS`, indented lines `NUMBER WORD; ..`.
fn parse(text: &'static str) -> Result<Tables, String> {
    let mut tables: Vec<(Vec<Era>, &str, Words)> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let fail = || format!("words.txt:{}: {line}", number + 1);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(body) = line.strip_prefix("    ") {
            let (_, _, words) = tables.last_mut().ok_or_else(fail)?;
            for entry in body.split("; ") {
                let (number, word) = entry.split_once(' ').ok_or_else(fail)?;
                let radix = if words.flags { 16 } else { 10 };
                words.entries.push((u64::from_str_radix(number, radix).map_err(|_| fail())?, word));
            }
            continue;
        }
        let (flags, name, letters, none) = match line.split(' ').collect::<Vec<_>>()[..] {
            ["flags", name, letters, none] => (true, name, letters, none),
            ["symbols", name, letters] => (false, name, letters, ""),
            _ => return Err(fail()),
        };
        tables.push((eras(letters).ok_or_else(fail)?, name, Words { flags, none, entries: Vec::new() }));
    }
    let mut by_name = Tables::new();
    for (eras, name, words) in tables {
        for era in eras {
            let words = Words { entries: words.entries.clone(), ..words };
            if by_name.entry(name).or_default().insert(era, words).is_some() {
                return Err(format!("words.txt: {name} twice in era {era:?}"));
            }
        }
    }
    Ok(by_name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_table_parses_and_its_errors_name_the_line() {
        assert!(!parse(include_str!("data/words.txt")).unwrap().is_empty());
        assert_eq!(parse("flags x A").unwrap_err(), "words.txt:1: flags x A");
        assert_eq!(parse("symbols x A\n    y z").unwrap_err(), "words.txt:2:     y z");
        assert!(parse("symbols x A\nsymbols x A").unwrap_err().contains("twice"));
    }

    #[test]
    fn composites_are_first_and_their_bits_are_cleared() {
        assert_eq!(gfp_text(Era::V2_6_36, 0x10), "GFP_NOIO");
        assert_eq!(gfp_text(Era::V2_6_36, 0x20), "GFP_ATOMIC");
        assert_eq!(gfp_text(Era::V2_6_36, 0xd0 | 0x200 | 0x2), "GFP_KERNEL|GFP_NOWARN|0x2");
        assert_eq!(gfp_text(Era::V3_3, 0x4352da), "GFP_TRANSHUGE");
        assert_eq!(gfp_text(Era::V6_1, 0x100cca), "GFP_HIGHUSER_MOVABLE");
        assert_eq!(gfp_text(Era::V6_1, 0xa20), "GFP_ATOMIC");
        assert_eq!(gfp_text(Era::V6_12, 0x820), "GFP_ATOMIC");
        assert_eq!(gfp_text(Era::V6_1, 0x820), "GFP_NOWAIT|__GFP_HIGH");
    }

    #[test]
    fn flags_of_today_in_words_of_then() {
        let of = |era, text| gfp_then(era, text).into_owned();
        assert_eq!(of(Era::V2_6_36, "GFP_KERNEL_ACCOUNT|__GFP_ZERO"), "GFP_KERNEL|GFP_ZERO");
        assert_eq!(of(Era::V2_6_36, "GFP_HIGHUSER_MOVABLE|GFP_COLD"), "GFP_HIGHUSER_MOVABLE|GFP_COLD");
        assert_eq!(of(Era::V2_6_36, "GFP_HIGHUSER_MOVABLE|__GFP_WRITE"), "GFP_HIGHUSER_MOVABLE");
        assert_eq!(of(Era::V3_3, "GFP_HIGHUSER_MOVABLE|__GFP_WRITE"), "GFP_HIGHUSER_MOVABLE|0x1000000");
        assert_eq!(of(Era::V3_5, "GFP_NOWAIT"), "GFP_NOWAIT");
        assert_eq!(of(Era::V3_5, "GFP_TRANSHUGE|__GFP_THISNODE"), "GFP_TRANSHUGE|GFP_THISNODE");
        let light = gfp_bits(Era::V3_5, of(Era::V3_5, "GFP_TRANSHUGE_LIGHT").as_bytes());
        assert_eq!(light, Some(0x4352ca));
        let deferring = of(Era::V3_5, "GFP_TRANSHUGE_LIGHT|__GFP_KSWAPD_RECLAIM");
        assert_eq!(gfp_bits(Era::V3_5, deferring.as_bytes()), Some(0x352ca));
        assert_eq!(of(Era::V6_1, "GFP_KERNEL_ACCOUNT|__GFP_ZERO"), "GFP_KERNEL_ACCOUNT|__GFP_ZERO");
    }

    #[test]
    fn words_that_a_kernel_printed() {
        let words = "GFP_NOFS|__GFP_HIGHMEM|__GFP_MOVABLE|__GFP_NOWARN|__GFP_NORETRY|__GFP_HARDWALL";
        let bits = gfp_bits(Era::V6_18, words.as_bytes()).unwrap();
        assert_eq!(bits, 0x112c4a);
        assert_eq!(gfp_text(Era::V6_18, bits), words);
    }

    #[test]
    fn zero_has_a_word_in_every_era() {
        for era in Era::ALL {
            let none = if era <= Era::V3_5 { "GFP_NOWAIT" } else { "none" };
            assert_eq!(gfp_text(era, 0), none);
            assert_eq!(gfp_bits(era, none.as_bytes()), Some(0));
        }
    }

    #[test]
    fn unknown_words_are_refused() {
        assert_eq!(gfp_bits(Era::V2_6_36, b"GFP_KERNEL|__GFP_NOWARN"), None);
        assert_eq!(gfp_bits(Era::V6_18, b"GFP_KERNEL|"), None);
        assert_eq!(gfp_bits(Era::V6_18, b"0x"), None);
        assert_eq!(gfp_bits(Era::V6_18, b"0x+1"), None);
    }

    #[test]
    fn symbols_are_exact() {
        let reason = words(Era::V6_1, "reason").unwrap();
        assert_eq!(reason.text(5), "numa_misplaced");
        assert_eq!(reason.text(9), "0x9");
        assert_eq!(reason.number(b"damon"), None);
        assert_eq!(words(Era::V2_6_36, "lru"), None);
    }

    proptest! {
        #[test]
        fn gfp_texts_stand_for_their_bits(bits in 0u64..1 << 28) {
            for era in Era::ALL {
                prop_assert_eq!(gfp_bits(era, gfp_text(era, bits).as_bytes()), Some(bits));
            }
        }
    }
}
