//! Changes of text by its lines, words and numbers.

use super::EDGES;
use crate::Random;
use std::ops::Range;

/// Most bytes of a text.
const MOST: usize = 256 << 10;

/// Changes a text without words of its own.
pub fn text(bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    text_of(&[], bytes, other, random);
}

/// Changes a text in one to six places; `words` are put in where a word was.
pub fn text_of(words: &[&str], bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    for _ in 0..=random.below(6) {
        match random.below(10) {
            0..=2 => replace(bytes, number(bytes, random), &edge(random)),
            3 | 4 if !words.is_empty() => {
                let with = words[random.below(words.len())].as_bytes();
                replace(bytes, word(bytes, random), with);
            }
            3..=5 => {
                let with = word(other, random);
                replace(bytes, word(bytes, random), &other[with]);
            }
            6 => {
                // A line of another text, or of this one, at another place.
                let with = if random.one_in(2) { other } else { &bytes[..] };
                let with = with[line(with, random)].to_vec();
                let at = line(bytes, random).start;
                replace(bytes, at..at, &with);
            }
            7 => replace(bytes, line(bytes, random), b""),
            8 => replace(bytes, word(bytes, random), b""),
            _ => super::bytes(bytes, other, random),
        }
    }
}

fn replace(bytes: &mut Vec<u8>, range: Range<usize>, with: &[u8]) {
    if bytes.len() + with.len() <= MOST {
        bytes.splice(range, with.iter().copied());
    }
}

/// A number as text: an edge, one near it, negative, with a fraction or with many digits.
fn edge(random: &mut Random) -> Vec<u8> {
    let edge = EDGES[random.below(EDGES.len())];
    match random.below(12) {
        0 => format!("-{edge}"),
        1 => format!("{edge}.{}", random.below(1000)),
        2 => format!("{:#x}", edge),
        3 => format!("{:x}", edge),
        4 => format!("{}{edge}", u64::MAX),
        5 => edge.wrapping_add(1).to_string(),
        6 => edge.wrapping_sub(1).to_string(),
        7 => random.below(300).to_string(),
        8 => ["1e308", "1e-320", "nan", "inf", "0x", "-0", "1e19"][random.below(7)].into(),
        _ => edge.to_string(),
    }
    .into_bytes()
}

/// The run of bytes of a kind around a random place, or after it.
fn run(bytes: &[u8], random: &mut Random, of: impl Fn(&u8) -> bool) -> Range<usize> {
    let from = random.below(bytes.len());
    let at = from + bytes[from..].iter().position(&of).unwrap_or(bytes.len() - from);
    let end = at + bytes[at..].iter().position(|b| !of(b)).unwrap_or(bytes.len() - at);
    let start = bytes[..at].iter().rposition(|b| !of(b)).map_or(0, |before| before + 1);
    start..end
}

fn number(bytes: &[u8], random: &mut Random) -> Range<usize> {
    run(bytes, random, u8::is_ascii_digit)
}

fn word(bytes: &[u8], random: &mut Random) -> Range<usize> {
    run(bytes, random, |b| b.is_ascii_alphanumeric() || *b == b'_' || *b == b'-' || *b == b'.')
}

/// A line with its end.
fn line(bytes: &[u8], random: &mut Random) -> Range<usize> {
    let line = run(bytes, random, |b| *b != b'\n');
    line.start..(line.end + 1).min(bytes.len())
}
