//! Protocol Buffers, as much of them as a trace needs: numbers, texts and messages within messages.
//!
//! `prost` would need types with derive macros for a dozen messages of which three fields each are used; this is all of
//! the encoding there is.

/// A message that is being written.
#[derive(Default)]
pub(super) struct Message {
    bytes: Vec<u8>,
}

impl Message {
    /// A number of a field of type `uint64`, `uint32`, `bool` or an enumeration.
    pub fn number(&mut self, field: u32, value: u64) -> &mut Message {
        self.varint(u64::from(field) << 3);
        self.varint(value);
        self
    }

    /// A number of a field of type `int64` or `int32`.
    pub fn signed(&mut self, field: u32, value: i64) -> &mut Message {
        self.number(field, value as u64)
    }

    /// A number of a field of type `fixed64`.
    pub fn fixed(&mut self, field: u32, value: u64) -> &mut Message {
        self.varint(u64::from(field) << 3 | 1);
        self.bytes.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// A text. It is UTF-8: what is not becomes U+FFFD.
    pub fn text(&mut self, field: u32, value: &[u8]) -> &mut Message {
        self.delimited(field, String::from_utf8_lossy(value).as_bytes());
        self
    }

    /// A message within it, which is empty afterwards.
    pub fn message(&mut self, field: u32, inner: &mut Message) -> &mut Message {
        self.delimited(field, &inner.bytes);
        inner.bytes.clear();
        self
    }

    /// A message within it that is written in place: for those of which there are many.
    pub fn nested(&mut self, field: u32, write: impl FnOnce(&mut Message)) -> &mut Message {
        self.varint(u64::from(field) << 3 | 2);
        // Nearly all are shorter than 128 bytes, and their length takes one.
        let at = self.bytes.len();
        self.bytes.push(0);
        write(self);
        let length = self.bytes.len() - at - 1;
        if length < 0x80 {
            self.bytes[at] = length as u8;
        } else {
            let inner = self.bytes.split_off(at + 1);
            self.bytes.pop();
            self.varint(length as u64);
            self.bytes.extend_from_slice(&inner);
        }
        self
    }

    /// Whether it has no fields.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The encoded fields.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Removes all fields.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    fn delimited(&mut self, field: u32, value: &[u8]) {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(value.len() as u64);
        self.bytes.extend_from_slice(value);
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_encoded_as_the_format_says() {
        let mut message = Message::default();
        message.number(1, 150).signed(2, -2).text(3, b"a\xff").fixed(16, 1);
        let mut expected = vec![0x08, 0x96, 0x01, 0x10, 0xfe];
        expected.extend([0xff; 8]);
        expected.extend([0x01, 0x1a, 4, b'a', 0xef, 0xbf, 0xbd, 0x81, 0x01, 1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(message.bytes(), expected);
        let (mut outer, mut inner) = (Message::default(), Message::default());
        inner.number(1, 0);
        outer.message(4, &mut inner);
        assert!(inner.is_empty());
        assert_eq!(outer.bytes(), [0x22, 2, 0x08, 0]);
    }

    #[test]
    fn what_is_written_in_place_is_the_same() {
        for length in [0, 1, 125, 126, 127, 128, 20_000] {
            let text = vec![b'x'; length];
            let (mut one, mut other, mut inner) = (Message::default(), Message::default(), Message::default());
            inner.text(1, &text).number(2, 7);
            one.number(9, 1).message(4, &mut inner);
            other.number(9, 1).nested(4, |inner| {
                inner.text(1, &text).number(2, 7);
            });
            assert_eq!(one.bytes(), other.bytes(), "{length}");
        }
    }
}
