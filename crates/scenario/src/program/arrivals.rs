//! When the requests of an open loop arrive: at times that do not depend on how fast they are served.

use super::random::{OfObject, Random, Use};
use crate::workload::ArrivalLaw;

/// Arrivals of one thread's accesses, as nanoseconds since the accesses began, without end.
#[derive(Clone, Debug)]
pub struct Arrivals {
    interval: u64,
    law: ArrivalLaw,
    numbers: OfObject,
    drawn: u64,
    /// The last one.
    at: u64,
}

impl Arrivals {
    /// Arrivals every `interval` nanoseconds on average; `object` distinguishes the streams of one run.
    pub fn new(interval: u64, law: ArrivalLaw, seed: u64, object: u64) -> Arrivals {
        Arrivals { interval, law, numbers: Random::new(seed, Use::Workload).of(object), drawn: 0, at: 0 }
    }
}

impl Iterator for Arrivals {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let gap = match self.law {
            ArrivalLaw::Regular => self.interval,
            ArrivalLaw::Poisson => {
                let uniform = (self.numbers.word(self.drawn) >> 11) as f64 / (1u64 << 53) as f64;
                self.drawn += 1;
                (-libm::log1p(-uniform) * self.interval as f64) as u64
            }
        };
        self.at = self.at.saturating_add(gap);
        Some(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_arrive_at_their_mean_interval() {
        let regular = Arrivals::new(500, ArrivalLaw::Regular, 1, 2);
        assert_eq!(regular.take(3).collect::<Vec<_>>(), [500, 1000, 1500]);
        let times: Vec<u64> = Arrivals::new(1_000_000, ArrivalLaw::Poisson, 1, 2).take(40_000).collect();
        let mean = times[39_999] as f64 / 40_000.0;
        assert!((mean / 1e6 - 1.0).abs() < 0.025, "{mean}");
        // Of exponential times a share of exp(-2) is longer than twice the mean.
        let long = times.windows(2).filter(|pair| pair[1] - pair[0] > 2_000_000).count() as f64 / 39_999.0;
        assert!((long - 0.1353).abs() < 0.01 && times.is_sorted(), "{long}");
        let other: Vec<u64> = Arrivals::new(1_000_000, ArrivalLaw::Poisson, 1, 3).take(3).collect();
        assert_ne!(other, times[..3]);
    }
}
