//! Samples of counters in a segment: the first with all names, the following ones as differences from the one before.
//!
//! A sample has a thousand counters and more, of which few change within a second. The differences, as zigzag numbers
//! of as many bytes as they need, are mostly zeros, which zstd makes small.

use super::segment::{Kind, pack, unpack};
use mmtwin_event::counters::Row;
use serde::{Deserialize, Serialize};
use std::io;

/// Rows of one sample, with their sources.
pub type Sample = Vec<(String, Row)>;

#[derive(Serialize, Deserialize)]
struct Line {
    source: String,
    key: String,
    names: Vec<String>,
    values: Vec<Option<u64>>,
}

/// Turns samples of a segment into blocks and back; both directions begin with nothing.
#[derive(Default)]
pub struct Samples {
    last: Sample,
}

/// The same counters, with values at the same places.
fn alike(one: &Sample, other: &Sample) -> bool {
    let same = |((source, a), (other, b)): (&(String, Row), &(String, Row))| {
        let values = || a.values.iter().map(Option::is_some).eq(b.values.iter().map(Option::is_some));
        source == other && a.key == b.key && a.names == b.names && values()
    };
    one.len() == other.len() && one.iter().zip(other).all(same)
}

fn values(sample: &Sample) -> impl Iterator<Item = u64> {
    sample.iter().flat_map(|(_, row)| row.values.iter().copied().flatten())
}

impl Samples {
    /// The block of a sample.
    ///
    /// # Errors
    /// If the library of the compression has no memory.
    pub fn encode(&mut self, sample: Sample) -> io::Result<(Kind, Vec<u8>)> {
        let is_like_last = !self.last.is_empty() && alike(&self.last, &sample);
        let (kind, payload) = if is_like_last {
            let mut bytes = Vec::new();
            for (now, before) in values(&sample).zip(values(&self.last)) {
                let grown = now.wrapping_sub(before) as i64;
                write_number(&mut bytes, ((grown << 1) ^ (grown >> 63)) as u64);
            }
            (Kind::Growth, bytes)
        } else {
            let line = |(source, row): &(String, Row)| {
                let Row { key, names, values } = row.clone();
                Line { source: source.clone(), key, names, values }
            };
            (Kind::Counters, serde_json::to_vec(&sample.iter().map(line).collect::<Vec<_>>())?)
        };
        self.last = sample;
        Ok((kind, pack(&payload)?))
    }

    /// The sample of a block.
    ///
    /// # Errors
    /// If it is damaged, or the block before it is missing.
    pub fn decode(&mut self, kind: Kind, payload: &[u8]) -> io::Result<&Sample> {
        let payload = unpack(payload)?;
        let damaged = || io::Error::from(io::ErrorKind::InvalidData);
        if kind == Kind::Counters {
            let lines: Vec<Line> = serde_json::from_slice(&payload)?;
            if lines.iter().any(|line| line.names.len() != line.values.len()) {
                return Err(damaged());
            }
            let row = |Line { source, key, names, values }| (source, Row { key, names, values });
            self.last = lines.into_iter().map(row).collect();
        } else {
            let mut rest = &payload[..];
            let all = self.last.iter_mut().flat_map(|(_, row)| row.values.iter_mut().flatten());
            for value in all {
                let zigzag = read_number(&mut rest).ok_or_else(damaged)?;
                *value = value.wrapping_add((zigzag >> 1) ^ (zigzag & 1).wrapping_neg());
            }
            if !rest.is_empty() || self.last.is_empty() {
                return Err(damaged());
            }
        }
        Ok(&self.last)
    }
}

/// Seven bits a byte, the lowest first; the highest bit says that more follow.
fn write_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 128 {
        bytes.push(number as u8 | 128);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn read_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 127) << shift;
        if byte < 128 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(values: &[Option<u64>], key: &str) -> Sample {
        let names = (0..values.len()).map(|i| format!("c{i}")).collect();
        vec![("vmstat".into(), Row { key: key.into(), names, values: values.into() }), ("psi".into(), Row::new(""))]
    }

    #[test]
    fn samples_come_back() {
        let samples = [
            sample(&[Some(1), None, Some(u64::MAX)], ""),
            sample(&[Some(u64::MAX), None, Some(0)], ""),
            sample(&[Some(300), None, Some(300)], ""),
            sample(&[Some(300), Some(7), Some(300)], ""),
            sample(&[Some(300), Some(8), Some(300)], "0"),
            Sample::new(),
            sample(&[Some(2)], "0"),
        ];
        let (mut encoder, mut decoder) = (Samples::default(), Samples::default());
        let mut kinds = Vec::new();
        for sample in samples {
            let (kind, payload) = encoder.encode(sample.clone()).unwrap();
            assert_eq!(decoder.decode(kind, &payload).unwrap(), &sample);
            kinds.push(kind);
        }
        let [full, growth] = [Kind::Counters, Kind::Growth];
        assert_eq!(kinds, [full, growth, growth, full, full, full, full]);
    }

    #[test]
    fn a_difference_without_its_sample_or_cut_is_an_error() {
        let mut encoder = Samples::default();
        encoder.encode(sample(&[Some(1), Some(2)], "")).unwrap();
        let (kind, payload) = encoder.encode(sample(&[Some(1), Some(300)], "")).unwrap();
        assert!(Samples::default().decode(kind, &payload).is_err());
        let mut decoder = Samples { last: sample(&[Some(1), Some(2), Some(3)], "") };
        assert!(decoder.decode(kind, &payload).is_err());
        decoder.last = sample(&[Some(1)], "");
        assert!(decoder.decode(kind, &payload).is_err());
        assert!(decoder.decode(Kind::Counters, b"x").is_err());
    }
}
