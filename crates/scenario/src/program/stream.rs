//! The explicit accesses of one thread to one region, which a machine executes and the explicit mode replays.
//!
//! Access number i depends on (seed, stream, i) alone, so a stream can be entered anywhere.

use super::random::{Chance, Random, Use};
use super::{Classes, Cursor, Permutation};

/// The next page.
#[derive(Clone, Debug)]
pub enum Pattern {
    /// A walk.
    Walk(Cursor),
    /// Independent draws by popularity.
    Draws(Classes, Permutation),
}

/// One access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Page of the region, from 0.
    pub page: u64,
    /// It writes.
    pub write: bool,
}

/// All accesses of one thread with one pattern.
#[derive(Clone, Debug)]
pub struct Stream {
    pattern: Pattern,
    writes: Chance,
    random: Random,
    object: u64,
    /// Accesses made so far.
    pub count: u64,
}

impl Stream {
    /// `object` distinguishes the streams of one run; `writes` is the fraction of accesses that write.
    #[inline]
    pub fn new(pattern: Pattern, writes: f64, seed: u64, object: u64) -> Stream {
        Stream { pattern, writes: Chance::of(writes), random: Random::new(seed, Use::Access), object, count: 0 }
    }

    /// The next page.
    #[inline]
    pub fn pattern(&self) -> &Pattern {
        &self.pattern
    }

    /// Probability that an access writes.
    #[inline]
    pub fn writes(&self) -> Chance {
        self.writes
    }

    /// Access number `count`.
    #[inline]
    pub fn at(&self, count: u64) -> Access {
        // Three draws belong to each access.
        let draw = count.wrapping_mul(3);
        let page = match &self.pattern {
            Pattern::Walk(cursor) => cursor.page(count),
            Pattern::Draws(classes, permutation) => {
                let rank = classes.rank(self.random.word(self.object, draw), self.random.word(self.object, draw + 1));
                permutation.page(rank)
            }
        };
        Access { page, write: self.random.happens(self.object, draw + 2, self.writes) }
    }
}

impl Iterator for Stream {
    type Item = Access;

    /// Streams do not end.
    #[inline]
    fn next(&mut self) -> Option<Access> {
        let access = self.at(self.count);
        self.count += 1;
        Some(access)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_follow_the_classes() {
        let (pages, accesses) = (1000, 200_000);
        let classes = Classes::zipf(pages, 0.9);
        let permutation = Permutation::new(pages, 5, 0);
        let mut counts = vec![0u64; pages as usize];
        let stream = Stream::new(Pattern::Draws(classes.clone(), permutation), 0.3, 5, 1);
        let mut writes = 0u64;
        for access in stream.take(accesses) {
            counts[access.page as usize] += 1;
            writes += u64::from(access.write);
        }
        for class in classes.list() {
            let got: u64 = (class.first..class.first + class.pages).map(|r| counts[permutation.page(r) as usize]).sum();
            let expected = class.share * accesses as f64;
            // Five standard deviations of a binomial count.
            assert!((got as f64 - expected).abs() < 5.0 * expected.sqrt() + 1.0, "{class:?} {got}");
        }
        assert!(writes.abs_diff(60_000) < 1025, "{writes}");
    }

    #[test]
    fn a_stream_can_be_entered_anywhere() {
        let pattern = Pattern::Draws(Classes::uniform(77), Permutation::new(77, 1, 2));
        let stream = Stream::new(pattern, 0.5, 1, 9);
        let taken: Vec<Access> = stream.clone().take(50).collect();
        assert_eq!(stream.at(49), taken[49]);
        let walk = Stream::new(Pattern::Walk(Cursor::new(4, 1, 0)), 0.0, 1, 9);
        assert_eq!(walk.take(5).map(|a| (a.page, a.write)).collect::<Vec<_>>(), [0, 1, 2, 3, 0].map(|p| (p, false)));
    }
}
