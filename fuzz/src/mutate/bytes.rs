//! Damage that knows nothing of what it hits.

use super::EDGES;
use crate::Random;

/// Most bytes of an input.
const MOST: usize = 1 << 20;

/// Damages an input in one to eight places: bits, bytes, numbers, cuts, repeats, pieces of another input.
pub fn bytes(bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    for _ in 0..=random.below(8) {
        let at = random.below(bytes.len());
        let len = 1 + random.below(64);
        let end = (at + len).min(bytes.len());
        match random.below(8) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            1 if at < bytes.len() => bytes[at] = random.bits() as u8,
            2 => {
                let number = EDGES[random.below(EDGES.len())];
                let size = 1 << random.below(4);
                let (little, big) = (number.to_le_bytes(), number.to_be_bytes());
                let digits = if random.one_in(4) { &big[8 - size..] } else { &little[..size] };
                bytes.iter_mut().skip(at).zip(digits).for_each(|(to, from)| *to = *from);
            }
            3 if random.one_in(3) => bytes.truncate(at),
            3 if at < bytes.len() => bytes[at] = bytes[at].wrapping_add(random.below(9) as u8).wrapping_sub(4),
            4 => drop(bytes.drain(at..end)),
            5 if bytes.len() < MOST => {
                let again = bytes[at..end].to_vec();
                bytes.splice(at..at, again);
            }
            6 if bytes.len() < MOST => {
                let from = random.below(other.len());
                let part = &other[from..(from + len).min(other.len())];
                bytes.splice(at..end, part.iter().copied());
            }
            _ if !bytes.is_empty() => {
                // A piece of this input elsewhere in it.
                let from = random.below(bytes.len());
                let part = bytes[from..(from + len).min(bytes.len())].to_vec();
                bytes.splice(at..end, part);
            }
            _ => {}
        }
    }
}
