//! Memory bandwidth: CPUs read a buffer, each its own part over and over, word by word in ascending order, which every
//! prefetcher follows.

use crate::bench::threads::{Cpu, together};
use crate::{Error, clock};
use std::hint::black_box;
use std::time::Duration;

/// Time of one round.
const ROUND: Duration = Duration::from_millis(20);

/// Bytes read between two looks at whether the round is over.
const PIECE: usize = 1 << 16;

/// Reads a buffer with these CPUs at once; bytes per nanosecond of all. Fails if a CPU is not available.
pub fn read(buffer: &[u8], cpus: &[Cpu]) -> Result<f64, Error> {
    let part = (buffer.len() / cpus.len().max(1)).max(PIECE);
    let rates = together(cpus, ROUND, |cpu, gate| {
        let pieces = buffer.chunks(part).nth(cpu).unwrap_or(buffer).chunks_exact(PIECE);
        gate.wait();
        let begin = clock::now();
        let mut bytes = 0;
        for piece in pieces.cycle() {
            bytes += black_box(sum(piece)).1;
            if gate.over() {
                break;
            }
        }
        bytes as f64 / (clock::now() - begin).max(1) as f64
    })?;
    Ok(rates.iter().sum())
}

/// Sum of the words of a piece, and how many bytes they are.
fn sum(piece: &[u8]) -> (u64, u64) {
    let words = piece.as_chunks::<8>().0;
    let sum = words.iter().fold(0u64, |sum, word| sum.wrapping_add(u64::from_ne_bytes(*word)));
    (sum, 8 * words.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::threads::cpus;

    #[test]
    fn every_cpu_reads_its_part() {
        let cpus = cpus().unwrap();
        // More CPUs than parts of the smallest size: the last read what others read too.
        for size in [PIECE, 4 * PIECE + 1] {
            assert!(read(&vec![1; size], &[cpus[0]; 3]).unwrap() > 0.0);
        }
        assert_eq!(sum(&[1; 17]), (2 * 0x0101_0101_0101_0101, 16));
    }
}
