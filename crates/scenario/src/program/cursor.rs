//! Patterns that walk: sequential and strided.
//!
//! Position is a function of the number of accesses, so the place of a thread and its next access to a page have closed
//! forms.

/// A walk over the pages 0..n of a region, around and around.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    pages: u64,
    stride: u64,
    start: u64,
}

impl Cursor {
    /// Steps of `stride` pages (1 is sequential; 0 counts as 1) from page `start`. When a round is complete the next
    /// begins one page later, so that every page is visited: a round has ceil(n / stride) accesses.
    #[inline]
    pub fn new(pages: u64, stride: u64, start: u64) -> Cursor {
        let pages = pages.max(1);
        Cursor { pages, stride: stride.clamp(1, pages), start: start % pages }
    }

    /// The page of access number `count`.
    #[inline]
    pub fn page(&self, count: u64) -> u64 {
        if self.stride == 1 {
            let (step, rest) = (count % self.pages, self.pages - self.start);
            return if step < rest { self.start + step } else { step - rest };
        }
        let round = self.pages.div_ceil(self.stride);
        let (lap, step) = (count / round, count % round);
        let page = u128::from(self.start) + u128::from(lap % self.stride) + u128::from(step) * u128::from(self.stride);
        (page % u128::from(self.pages)) as u64
    }

    /// The page of access number `count` if the walk is sequential; `None` if it takes larger steps.
    #[inline]
    pub fn sequential(&self, count: u64) -> Option<u64> {
        (self.stride == 1).then(|| self.page(count))
    }

    /// The number of the first access of at least `from` to a page; the largest number if there is none.
    #[inline]
    pub fn next(&self, page: u64, from: u64) -> u64 {
        if page >= self.pages {
            return u64::MAX;
        }
        // All rounds that begin at different pages are a cycle. Counted from the start, places of a cycle are
        // 0..round * stride; those that are a whole number of regions apart are the same page.
        let round = self.pages.div_ceil(self.stride);
        let cycle = u128::from(round) * u128::from(self.stride);
        let mut place = u128::from((page + self.pages - self.start) % self.pages);
        let mut next = u128::MAX;
        while place < cycle {
            let stride = u128::from(self.stride);
            let at = place % stride * u128::from(round) + place / stride;
            let (from, mut count) = (u128::from(from), at);
            if count < from {
                count += (from - count).div_ceil(cycle) * cycle;
            }
            next = next.min(count);
            place += u128::from(self.pages);
        }
        u64::try_from(next).unwrap_or(u64::MAX)
    }

    /// True if the accesses number `from` to `to`, the last excluded, include a page.
    #[inline]
    pub fn touches(&self, page: u64, from: u64, to: u64) -> bool {
        if self.stride > 1 {
            let whole = self.pages.div_ceil(self.stride).saturating_mul(self.stride);
            return page < self.pages && (to.saturating_sub(from) >= whole || self.next(page, from) < to);
        }
        let first = (page + self.pages - self.start) % self.pages;
        let (rounds, rest) = (from / self.pages, from % self.pages);
        let next = if first >= rest { rounds } else { rounds + 1 };
        page < self.pages && next.saturating_mul(self.pages).saturating_add(first) < to
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn touched_means_touched(pages in 1u64..40, stride in 0u64..50, start in 0u64..50, from in 0u64..200, len in 0u64..120) {
            let cursor = Cursor::new(pages, stride, start);
            for page in 0..pages {
                let walked = (from..from + len).any(|count| cursor.page(count) == page);
                prop_assert_eq!(cursor.touches(page, from, from + len), walked, "page {}", page);
            }
        }

        #[test]
        fn next_is_the_next(pages in 1u64..40, stride in 0u64..50, start in 0u64..50, from in 0u64..2000) {
            let cursor = Cursor::new(pages, stride, start);
            for page in 0..pages {
                let next = (from..).find(|&count| cursor.page(count) == page);
                prop_assert_eq!(Some(cursor.next(page, from)), next);
            }
            prop_assert_eq!(cursor.next(pages, from), u64::MAX);
        }

        #[test]
        fn every_page_is_visited(pages in 1u64..60, stride in 1u64..70, start in 0u64..60) {
            let cursor = Cursor::new(pages, stride, start);
            let all = pages.div_ceil(stride.min(pages)) * stride.min(pages);
            let mut seen: Vec<u64> = (0..all).map(|count| cursor.page(count)).collect();
            seen.sort_unstable();
            seen.dedup();
            prop_assert_eq!(seen.len() as u64, pages);
        }
    }

    #[test]
    fn a_stride_shifts_by_one_each_round() {
        let cursor = Cursor::new(6, 2, 0);
        assert_eq!((0..7).map(|count| cursor.page(count)).collect::<Vec<_>>(), [0, 2, 4, 1, 3, 5, 0]);
    }
}
