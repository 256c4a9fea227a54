//! Numbers and words as the kernel prints them.
//!
//! Digits are taken eight at a time from one 64-bit word (the classic byte-parallel conversion), so that a number's
//! length, which no branch predictor can guess, costs no branch below eight digits.

use mmtwin_event::names::{NameTable, UNNAMED};
use mmtwin_event::value::Shape;

const ONES: u64 = 0x0101_0101_0101_0101;

/// Eight bytes at `at` as a little-endian word, so that the first character is the lowest byte.
#[inline(always)]
pub(super) fn word_at(text: &[u8], at: usize) -> Option<u64> {
    let bytes = text.get(at..)?.first_chunk::<8>()?;
    Some(u64::from_le_bytes(*bytes))
}

/// A decimal number at `at`: its value and the offset behind it. `None`: no digit there, or more than 64 bits.
#[inline(always)]
pub(super) fn decimal(text: &[u8], at: usize) -> Option<(u64, usize)> {
    short_decimal(text, at).or_else(|| decimal_slow(text, at))
}

/// A decimal number of one to seven digits with eight bytes of text.
#[inline(always)]
fn short_decimal(text: &[u8], at: usize) -> Option<(u64, usize)> {
    let values = word_at(text, at)? ^ (ONES * 0x30);
    // The high bit of every byte that is no digit; carries only disturb bytes behind the first such.
    let others = (values.wrapping_add(ONES * 0x76) | values) & (ONES * 0x80);
    let digits = others.trailing_zeros() / 8;
    if digits.wrapping_sub(1) >= 7 {
        return None;
    }
    let end = at + digits as usize;
    if digits <= 4 {
        // Most counts.
        let values = (values as u32) << (32 - 8 * digits);
        let pairs = (values.wrapping_mul(10) + (values >> 8)) & 0x00ff_00ff;
        let value = pairs.wrapping_mul(1 + (100 << 16)) >> 16;
        return Some((value.into(), end));
    }
    let values = values << (64 - 8 * digits);
    let pairs = (values.wrapping_mul(10) + (values >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs.wrapping_mul(1 + (100 << 16)) >> 16) & 0x0000_ffff_0000_ffff;
    let value = fours.wrapping_mul(1 + (10_000 << 32)) >> 32;
    Some((value, end))
}

#[cold]
#[inline(never)]
fn decimal_slow(text: &[u8], at: usize) -> Option<(u64, usize)> {
    let digits = text.get(at..)?.iter().take_while(|b| b.is_ascii_digit());
    let mut end = at;
    let mut value = 0u64;
    for digit in digits {
        value = value.checked_mul(10)?.checked_add(u64::from(digit - b'0'))?;
        end += 1;
    }
    (end > at).then_some((value, end))
}

/// As [`decimal`], with an optional minus; the value is sign-extended.
#[inline(always)]
pub(super) fn signed_decimal(text: &[u8], at: usize) -> Option<(u64, usize)> {
    short_decimal(text, at).or_else(|| signed_decimal_slow(text, at))
}

#[cold]
#[inline(never)]
fn signed_decimal_slow(text: &[u8], at: usize) -> Option<(u64, usize)> {
    let minus = text.get(at) == Some(&b'-');
    let (value, end) = decimal_slow(text, at + usize::from(minus))?;
    Some((if minus { value.wrapping_neg() } else { value }, end))
}

/// The hexadecimal digits at the start of a word: their value and number, 0 to 8.
#[inline(always)]
fn hex_digits(word: u64) -> (u64, u32) {
    let digits = word ^ (ONES * 0x30);
    let letters = (word | (ONES * 0x20)) ^ (ONES * 0x60);
    // Digits are 0..=9, letters 1..=6. As in `decimal`, carries only disturb what follows the first other byte.
    let no_digit = digits.wrapping_add(ONES * 0x76) | digits;
    let no_letter = letters.wrapping_add(ONES * 0x79) | letters | !letters.wrapping_add(ONES * 0x7f);
    let count = (no_digit & no_letter & (ONES * 0x80)).trailing_zeros() / 8;
    let nibbles = (word & (ONES * 0x0f)) + ((word >> 6) & ONES) * 9;
    let bytes = nibbles.checked_shl(64 - 8 * count).unwrap_or(0).swap_bytes();
    let bytes = (bytes | bytes >> 4) & 0x00ff_00ff_00ff_00ff;
    let halves = (bytes | bytes >> 8) & 0x0000_ffff_0000_ffff;
    ((halves | halves >> 16) & 0xffff_ffff, count)
}

/// A hexadecimal number without `0x` at `at`: value and offset behind it. `None`: no digit, or more than 16.
#[inline(always)]
pub(super) fn hex(text: &[u8], at: usize) -> Option<(u64, usize)> {
    let Some(word) = word_at(text, at) else { return hex_slow(text, at) };
    // Hashed pointers have eight leading zeros.
    let (high, count) = if word == ONES * 0x30 { (0, 8) } else { hex_digits(word) };
    if count < 8 {
        return (count > 0).then_some((high, at + count as usize));
    }
    let Some(word) = word_at(text, at + 8) else { return hex_slow(text, at) };
    let (low, count) = hex_digits(word);
    let end = at + 8 + count as usize;
    if count == 8 && text.get(end).is_some_and(u8::is_ascii_hexdigit) {
        return None;
    }
    Some((high << (4 * count) | low, end))
}

#[cold]
#[inline(never)]
fn hex_slow(text: &[u8], at: usize) -> Option<(u64, usize)> {
    let rest = text.get(at..)?;
    let digits = rest.iter().take_while(|b| b.is_ascii_hexdigit()).count();
    let digits = std::str::from_utf8(&rest[..digits]).ok()?;
    let value = u64::from_str_radix(digits, 16).ok()?;
    (digits.len() <= 16).then_some((value, at + digits.len()))
}

/// `major:minor`, or the one number that holds both.
pub(super) fn device(text: &[u8], at: usize) -> Option<(u64, usize)> {
    if text.get(at..)?.starts_with(b"0x") {
        return hex(text, at + 2);
    }
    let (major, end) = decimal(text, at)?;
    if text.get(end) != Some(&b':') {
        return Some((major, end));
    }
    let (minor, end) = decimal(text, end + 1)?;
    Some((major << 20 | minor, end))
}

/// A number standing alone: decimal, or hexadecimal with `0x`.
fn lone_number(word: &[u8]) -> Option<u64> {
    let (value, end) = match word.strip_prefix(b"0x") {
        Some(digits) => hex(digits, 0).map(|(v, e)| (v, e + 2)),
        None => signed_decimal(word, 0),
    }?;
    (end == word.len()).then_some(value)
}

/// Slot value of a printed word.
pub(super) fn word_value(shape: Shape, word: &[u8]) -> Option<u64> {
    match shape {
        Shape::Bool => match word {
            b"sync" | b"true" | b"Y" | b"yes" => Some(1),
            b"async" | b"false" | b"N" | b"no" => Some(0),
            _ => lone_number(word).map(|n| u64::from(n != 0)),
        },
        Shape::Flags(table) => table.parse_flags(word).or_else(|| lone_number(word)),
        Shape::Name(table) => table.index_of(word).or_else(|| numbered(table, word)),
        _ => None,
    }
}

/// A number where the kernel had no word, or where the line prints raw fields.
fn numbered(table: &NameTable, word: &[u8]) -> Option<u64> {
    let number = lone_number(word)?;
    Some(table.index_of_number(number).unwrap_or(UNNAMED | number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mmtwin_event::names;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn decimals_of_any_length_anywhere(n: u64, shift in 0u32..64, tail in "[^0-9]{0,12}") {
            let n = n >> shift;
            let text = format!("{n}{tail}");
            prop_assert_eq!(decimal(text.as_bytes(), 0), Some((n, n.to_string().len())));
            let minus = format!("x-{n}{tail}");
            prop_assert_eq!(signed_decimal(minus.as_bytes(), 1), Some((n.wrapping_neg(), n.to_string().len() + 2)));
        }

        #[test]
        fn hexadecimals(n: u64, shift in 0u32..64, tail in "[^0-9a-fA-F]{0,12}") {
            let n = n >> shift;
            let text = format!("{n:x}{tail}");
            prop_assert_eq!(hex(text.as_bytes(), 0), Some((n, format!("{n:X}").len())));
            let upper = format!("{n:016X}{tail}");
            prop_assert_eq!(hex(upper.as_bytes(), 0), Some((n, 16)));
        }

        #[test]
        fn hexadecimals_end_where_they_end(bytes: [u8; 17], base in "[0-9a-fA-F]{17}", at in 0usize..17, spare in 0usize..9) {
            let mut near = base.into_bytes();
            near[at] = bytes[at];
            near.extend(vec![b' '; spare]);
            for bytes in [&bytes[..], &near] {
                let digits = bytes.iter().take_while(|b| b.is_ascii_hexdigit()).count();
                let number = std::str::from_utf8(&bytes[..digits]).unwrap();
                let expected = u64::from_str_radix(number, 16).ok().filter(|_| digits <= 16).map(|n| (n, digits));
                prop_assert_eq!(hex(bytes, 0), expected);
            }
        }

        #[test]
        fn any_bytes_are_judged_not_feared(bytes in prop::collection::vec(any::<u8>(), 0..40), at in 0usize..50) {
            for end in [decimal(&bytes, at), signed_decimal(&bytes, at), hex(&bytes, at), device(&bytes, at)].into_iter().flatten() {
                prop_assert!(end.1 > at && end.1 <= bytes.len());
            }
        }
    }

    #[test]
    fn too_large_numbers_are_refused() {
        assert_eq!(decimal(b"18446744073709551615 ", 0), Some((u64::MAX, 20)));
        assert_eq!(decimal(b"18446744073709551616 ", 0), None);
        assert_eq!(hex(b"12345678123456781 ", 0), None);
    }

    #[test]
    fn words_of_every_shape() {
        assert_eq!(word_value(Shape::Bool, b"async"), Some(0));
        assert_eq!(word_value(Shape::Bool, b"0x1"), Some(1));
        assert_eq!(word_value(Shape::Flags(&names::RECLAIM_FLAGS), b"RECLAIM_WB_FILE|RECLAIM_WB_ASYNC"), Some(10));
        assert_eq!(word_value(Shape::Flags(&names::RECLAIM_FLAGS), b"10"), Some(10));
        assert_eq!(word_value(Shape::Name(&names::LRU), b"active_file"), Some(3));
        assert_eq!(word_value(Shape::Name(&names::MIGRATE_MODE), b"0x3"), Some(UNNAMED | 3));
        assert_eq!(word_value(Shape::Name(&names::LRU), b"2"), Some(2));
        assert_eq!(word_value(Shape::Name(&names::LRU), b"nonsense"), None);
    }

    #[test]
    fn devices() {
        assert_eq!(device(b"254:3 ino", 0), Some((254 << 20 | 3, 5)));
        assert_eq!(device(b"0x800001 (1)", 0), Some((8 << 20 | 1, 8)));
    }
}
