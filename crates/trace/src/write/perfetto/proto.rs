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

    /// Whether it has no fields.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Moves the encoded fields to the end of `to`.
    pub fn take_into(&mut self, to: &mut Vec<u8>) {
        to.append(&mut self.bytes);
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

    fn bytes(mut message: Message) -> Vec<u8> {
        let mut to = Vec::new();
        message.take_into(&mut to);
        to
    }

    #[test]
    fn fields_are_encoded_as_the_format_says() {
        let mut message = Message::default();
        message.number(1, 150).signed(2, -2).text(3, b"a\xff").fixed(16, 1);
        let mut expected = vec![0x08, 0x96, 0x01, 0x10, 0xfe];
        expected.extend([0xff; 8]);
        expected.extend([0x01, 0x1a, 4, b'a', 0xef, 0xbf, 0xbd, 0x81, 0x01, 1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes(message), expected);
        let (mut outer, mut inner) = (Message::default(), Message::default());
        inner.number(1, 0);
        outer.message(4, &mut inner);
        assert!(inner.is_empty());
        assert_eq!(bytes(outer), [0x22, 2, 0x08, 0]);
    }
}
