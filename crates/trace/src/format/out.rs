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

/// Literals up to this length are copied as one block.
pub(crate) const BLOCK: usize = 32;

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

    /// Appends `count` times the same byte.
    pub fn fill(&mut self, byte: u8, count: usize) {
        self.room(count);
        self.bytes[self.len..self.len + count].fill(byte);
        self.len += count;
    }

    /// Appends `len` bytes of `blob` from `start`; behind them `blob` has at least [`BLOCK`] more bytes.
    #[inline]
    pub(crate) fn literal(&mut self, blob: &[u8], start: usize, len: usize) {
        if len <= BLOCK {
            self.room(BLOCK);
            self.bytes[self.len..self.len + BLOCK].copy_from_slice(&blob[start..start + BLOCK]);
            self.len += len;
        } else {
            self.extend(&blob[start..start + len]);
        }
    }

    /// Appends a number in decimal.
    #[inline]
    pub fn decimal(&mut self, mut value: u64) {
        self.room(20);
        if value < 10 {
            self.bytes[self.len] = b'0' + value as u8;
            self.len += 1;
            return;
        }
        let digits = value.ilog10() as usize + 1;
        let room = &mut self.bytes[self.len..self.len + digits];
        let mut at = digits;
        while value >= 100 {
            let pair = (value % 100) as usize * 2;
            value /= 100;
            at -= 2;
            room[at..at + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
        }
        if value >= 10 {
            let pair = value as usize * 2;
            room[..2].copy_from_slice(&PAIRS[pair..pair + 2]);
        } else {
            room[0] = b'0' + value as u8;
        }
        self.len += digits;
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
        let digits = (67 - (value | 1).leading_zeros() as usize) / 4;
        self.hex_digits(value, digits);
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
        let digits = value.checked_ilog10().unwrap_or(0) as usize + 1;
        if digits < width {
            self.fill(pad, width - digits);
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
