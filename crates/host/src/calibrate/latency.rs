//! Memory latency: a chain of dependent loads that visits every cache line of a buffer, in an order no prefetcher can
//! follow.

use crate::{clock, shuffle};
use std::hint::black_box;

/// Bytes of a cache line.
const LINE: usize = 64;

/// Loads of one round.
const LOADS: u32 = 1 << 18;

/// Writes into each line of a buffer the number of the next.
pub fn chain(buffer: &mut [u8]) {
    let order = shuffle::order((buffer.len() / LINE) as u32);
    let next = order.iter().skip(1).chain(order.first());
    for (&line, next) in order.iter().zip(next) {
        buffer[line as usize * LINE..][..4].copy_from_slice(&next.to_ne_bytes());
    }
}

/// Follows a chain for some loads; nanoseconds each.
pub fn follow(chain: &[u8]) -> f64 {
    let next = |line: u32| {
        let start = line as usize * LINE;
        chain.get(start..start + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_ne_bytes)
    };
    let begin = clock::thread_cpu_time();
    let last = (0..LOADS).fold(0, |line, _| next(line));
    black_box(last);
    (clock::thread_cpu_time() - begin) as f64 / f64::from(LOADS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_visits_every_line() {
        let mut buffer = vec![0; LINE * 1000];
        chain(&mut buffer);
        let mut line = 0;
        let mut seen = vec![false; 1000];
        for _ in 0..1000 {
            assert!(!std::mem::replace(&mut seen[line], true));
            line = u32::from_ne_bytes(buffer[line * LINE..][..4].try_into().unwrap()) as usize;
        }
        assert_eq!(line, 0);
        assert!(follow(&buffer) > 0.0);
    }
}
