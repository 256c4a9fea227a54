//! The buffer that text is printed into, and numbers as text.
//!
//! Printing is most of the cost of `script`, so the buffer keeps initialised room behind its end: short literals are
//! copied as blocks of fixed size and digits are written in place, two at a time, without a call per piece.

/// Text under construction.
#[derive(Clone, Debug, Default)]
pub struct Out {
    /// The text, then room that has been written before or is 0.
    bytes: Vec<u8>,
    len: usize,
}

const PAIRS: &[u8; 200] = b"0001020304050607080910111213141516171819\
2021222324252627282930313233343536373839\
4041424344454647484950515253545556575859\
6061626364656667686970717273747576777879\
8081828384858687888990919293949596979899";

impl Out {
    /// The text so far.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Number of bytes so far.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Nothing has been printed.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Forgets the text behind `len`, keeps the room.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Makes sure that `more` bytes can be written behind the text.
    #[inline]
    fn room(&mut self, more: usize) {
        if self.bytes.len() - self.len < more {
            self.grow(more);
        }
    }

    #[cold]
    fn grow(&mut self, more: usize) {
        let wanted = (self.len + more).max(self.bytes.len() * 2).max(1 << 12);
        self.bytes.resize(wanted, 0);
    }

    /// Appends bytes.
    #[inline]
    pub fn extend(&mut self, bytes: &[u8]) {
        self.room(bytes.len());
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    /// Appends one byte.
    #[inline]
    pub fn push(&mut self, byte: u8) {
        self.room(1);
        self.bytes[self.len] = byte;
        self.len += 1;
    }

    /// Appends the six digits of a fraction in millionths and `: `.
    #[inline]
    pub(crate) fn fraction(&mut self, millionths: u32) {
        let pair = |i: u32| [PAIRS[(i % 100) as usize * 2], PAIRS[(i % 100) as usize * 2 + 1]];
        let ([a, b], [c, d], [e, f]) = (pair(millionths / 10_000), pair(millionths / 100), pair(millionths));
        self.extend(&[a, b, c, d, e, f, b':', b' ']);
    }

    /// Appends `count` times the same byte.
    pub fn fill(&mut self, byte: u8, count: usize) {
        self.room(count);
        self.bytes[self.len..self.len + count].fill(byte);
        self.len += count;
    }

    /// Room for `size` bytes behind the text; [`Out::advance`] makes a part of it text.
    #[inline]
    pub(crate) fn tail(&mut self, size: usize) -> &mut [u8] {
        self.room(size);
        &mut self.bytes[self.len..self.len + size]
    }

    /// Makes the first `count` bytes of the room behind the text a part of it.
    #[inline]
    pub(crate) fn advance(&mut self, count: usize) {
        self.len = (self.len + count).min(self.bytes.len());
    }

    /// Appends a number in decimal.
    #[inline]
    pub fn decimal(&mut self, value: u64) {
        let end = decimal_at(self.tail(20), 0, value);
        self.advance(end);
    }

    /// Appends a signed number in decimal.
    #[inline]
    pub fn signed(&mut self, value: i64) {
        if value < 0 {
            self.push(b'-');
        }
        self.decimal(value.unsigned_abs());
    }

    /// Appends a number in lower-case hexadecimal, without `0x`.
    pub fn hex(&mut self, value: u64) {
        let end = hex_at(self.tail(16), 0, value);
        self.advance(end);
    }

    /// Appends the low `digits` hexadecimal digits of a number.
    pub fn hex_digits(&mut self, value: u64, digits: usize) {
        self.room(digits);
        for at in 0..digits {
            let nibble = value >> ((digits - 1 - at) * 4) & 15;
            self.bytes[self.len + at] = b"0123456789abcdef"[nibble as usize];
        }
        self.len += digits;
    }

    /// Appends a number in decimal, padded on the left with `pad` to `width`.
    #[inline]
    pub fn padded(&mut self, value: u64, pad: u8, width: usize) {
        let mut digits = value.checked_ilog10().unwrap_or(0) as usize + 1;
        while digits < width {
            self.push(pad);
            digits += 1;
        }
        self.decimal(value);
    }

    /// Replaces `count` bytes from `start`.
    pub fn replace(&mut self, start: usize, count: usize, byte: u8) {
        self.bytes[start..start + count].fill(byte);
    }

    /// Turns letters printed since `start` into capitals.
    pub fn capitalise(&mut self, start: usize) {
        self.bytes[start..self.len].make_ascii_uppercase();
    }

    /// Moves what was printed since `start` into a column of `width`, aligned to the left or to the right.
    pub fn align(&mut self, start: usize, width: usize, left: bool) {
        let len = self.len - start;
        if len < width {
            self.fill(b' ', width - len);
            if !left {
                self.bytes[start..self.len].rotate_right(width - len);
            }
        }
    }
}

/// Writes a number in decimal at `at`, where at least 20 bytes must be; gives the place behind it.
#[inline]
pub(crate) fn decimal_at(room: &mut [u8], at: usize, mut value: u64) -> usize {
    if value < 10 {
        room[at] = b'0' + value as u8;
        return at + 1;
    }
    if value < 100 {
        let pair = value as usize * 2;
        room[at..at + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
        return at + 2;
    }
    // From the last digit on, then all of it as one block of fixed size.
    let mut digits = [0; 40];
    let mut first = 20;
    while value >= 100 {
        let pair = (value % 100) as usize * 2;
        value /= 100;
        first -= 2;
        digits[first..first + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    }
    if value >= 10 {
        let pair = value as usize * 2;
        first -= 2;
        digits[first..first + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    } else {
        first -= 1;
        digits[first] = b'0' + value as u8;
    }
    room[at..at + 20].copy_from_slice(&digits[first..first + 20]);
    at + 20 - first
}

/// Writes a number in hexadecimal at `at`, where at least 16 bytes must be; gives the place behind it.
#[inline]
pub(crate) fn hex_at(room: &mut [u8], at: usize, value: u64) -> usize {
    let digits = (67 - (value | 1).leading_zeros() as usize) / 4;
    for (i, digit) in room[at..at + digits].iter_mut().enumerate() {
        *digit = b"0123456789abcdef"[(value >> ((digits - 1 - i) * 4) & 15) as usize];
    }
    at + digits
}

impl From<Out> for Vec<u8> {
    fn from(mut out: Out) -> Vec<u8> {
        out.bytes.truncate(out.len);
        out.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_print_as_the_standard_library_prints_them() {
        proptest!(|(value: u64, shift in 0u32..64, width in 0usize..24)| {
            let value = value >> shift;
            let mut out = Out::default();
            out.decimal(value);
            out.push(b' ');
            out.hex(value);
            out.push(b' ');
            out.signed(value as i64);
            out.push(b' ');
            out.padded(value, b'0', width);
            let expected = format!("{value} {value:x} {} {value:0width$}", value as i64);
            prop_assert_eq!(std::str::from_utf8(out.as_bytes()).unwrap(), expected);
        });
    }

    #[test]
    fn alignment() {
        let mut out = Out::default();
        out.extend(b"x");
        out.extend(b"ab");
        out.align(1, 4, false);
        out.extend(b"cd");
        out.align(5, 3, true);
        assert_eq!(out.as_bytes(), b"x  abcd ");
    }
}
