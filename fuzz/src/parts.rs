//! An input of several parts: the files of a directory, or the pieces of which a target builds a file with right lengths.
//!
//! Each part is its kind (a byte), its length (four bytes, little endian) and its bytes. What is cut is a shorter part,
//! so that every input means something.

use crate::Random;

/// A part: its kind, which its target knows, and its bytes.
pub type Part = (u8, Vec<u8>);

/// The parts of an input.
pub fn split(mut input: &[u8]) -> Vec<Part> {
    let mut parts = Vec::new();
    while let [kind, rest @ ..] = input {
        let Some((length, rest)) = rest.split_at_checked(4) else { break };
        let length = length.iter().rev().fold(0, |sum, &byte| sum << 8 | usize::from(byte));
        let (part, rest) = rest.split_at(length.min(rest.len()));
        parts.push((*kind, part.to_vec()));
        input = rest;
    }
    parts
}

/// The input of some parts.
pub fn join(parts: &[Part]) -> Vec<u8> {
    let mut input = Vec::new();
    for (kind, part) in parts {
        input.push(*kind);
        input.extend_from_slice(&(part.len() as u32).to_le_bytes());
        input.extend_from_slice(part);
    }
    input
}

/// Changes parts by `change`, which knows the kinds; sometimes a part goes, comes twice, or is one of another input.
pub fn mutate(
    input: &mut Vec<u8>,
    other: &[u8],
    random: &mut Random,
    change: impl Fn(u8, &mut Vec<u8>, &[u8], &mut Random),
) {
    let (mut parts, lent) = (split(input), split(other));
    for _ in 0..=random.below(3) {
        let at = random.below(parts.len());
        match random.below(12) {
            0 if parts.len() > 1 => drop(parts.remove(at)),
            1 if !parts.is_empty() && parts.len() < 200 => parts.insert(at, parts[at].clone()),
            2 if !lent.is_empty() => {
                let part = lent[random.below(lent.len())].clone();
                match parts.iter_mut().find(|mine| mine.0 == part.0) {
                    Some(mine) => *mine = part,
                    None => parts.push(part),
                }
            }
            _ => {
                let Some((kind, part)) = parts.get_mut(at) else { continue };
                let same = lent.iter().find(|(of, _)| of == kind).map_or(&[][..], |(_, bytes)| bytes);
                change(*kind, part, same, random);
            }
        }
    }
    *input = join(&parts);
}
