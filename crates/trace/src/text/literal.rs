//! Literal text, compared as 64-bit words.

use super::values::word_at;

/// A piece of literal text.
#[derive(Debug, Default)]
pub(super) struct Literal {
    pub bytes: Vec<u8>,
    /// The first eight bytes, fewer under `mask`.
    first: u64,
    mask: u64,
    /// The words at 8, at 16 and at the end, as far as there are so many bytes; overlapping if there are fewer.
    more: [u64; 3],
}

impl Literal {
    pub fn new(bytes: &[u8]) -> Literal {
        let mut literal = Literal::default();
        literal.assign(bytes);
        literal
    }

    pub fn assign(&mut self, bytes: &[u8]) {
        let mut head = [0; 8];
        let short = bytes.len().min(8);
        head[..short].copy_from_slice(&bytes[..short]);
        self.first = u64::from_le_bytes(head);
        self.mask = if short == 8 { u64::MAX } else { (1 << (8 * short)) - 1 };
        let last = bytes.len().saturating_sub(8);
        self.more = [8, 16, last].map(|at| word_at(bytes, at.min(last)).unwrap_or(0));
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
    }

    /// True if the text has the literal at `at`.
    #[inline(always)]
    pub fn stands_at(&self, text: &[u8], at: usize) -> bool {
        let Some(first) = word_at(text, at) else { return self.stands_slowly_at(text, at) };
        if (first ^ self.first) & self.mask != 0 {
            return false;
        }
        let len = self.bytes.len();
        if len <= 8 {
            return true;
        }
        let last = at + len - 8;
        match len {
            ..=16 => word_at(text, last) == Some(self.more[2]),
            17..=32 => {
                word_at(text, last) == Some(self.more[2])
                    && word_at(text, at + 8) == Some(self.more[0])
                    && word_at(text, last.min(at + 16)) == Some(self.more[1])
            }
            _ => self.stands_slowly_at(text, at),
        }
    }

    #[inline(never)]
    fn stands_slowly_at(&self, text: &[u8], at: usize) -> bool {
        text.get(at..at + self.bytes.len()) == Some(&self.bytes[..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn literals_match_exactly(bytes in prop::collection::vec(0u8..4, 0..40), at in 0usize..4, flip in 0usize..40) {
            let literal = Literal::new(&bytes);
            let mut text = vec![9; at];
            text.extend(&bytes);
            for spare in [0, 8] {
                let mut text = text.clone();
                text.extend(vec![9; spare]);
                prop_assert!(literal.stands_at(&text, at));
                if flip < bytes.len() {
                    text[at + flip] ^= 1;
                    prop_assert!(!literal.stands_at(&text, at));
                }
            }
        }
    }
}
