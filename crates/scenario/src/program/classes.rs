//! Popularity: the pages of a region in classes, each with its share of the accesses.
//!
//! Within a class every page is equally likely, so a simulation needs only the class of its pages. Uniform is one
//! class, hot-cold two. A Zipf law is cut into at most [`MOST`] classes whose sizes grow geometrically from single
//! pages; each has the exact share of its ranks. That is the definition of the workload, not an approximation of one
//! reader: a machine that executes it draws from the same classes.

/// Most classes of a region.
pub const MOST: usize = 64;

/// Pages that are equally likely.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Class {
    /// Rank of its first page; rank 0 is the most popular.
    pub first: u64,
    /// Number of pages, at least 1.
    pub pages: u64,
    /// Its part of all accesses, 0 to 1.
    pub share: f64,
}

/// The classes of a region, most popular pages first.
#[derive(Clone, Debug, PartialEq)]
pub struct Classes {
    list: Vec<Class>,
    /// By class: 64-bit threshold below which a random word chooses it or one before.
    thresholds: Vec<u64>,
    pages: u64,
}

impl Classes {
    /// All pages alike. `pages` counts the region's, at least 1 (0 counts as 1).
    pub fn uniform(pages: u64) -> Classes {
        Classes::of(vec![(pages.max(1), 1.0)])
    }

    /// The first `hot` pages (at least 1, less than all) have `share` of the accesses.
    pub fn hot_cold(pages: u64, hot: u64, share: f64) -> Classes {
        let pages = pages.max(1);
        let hot = hot.clamp(1, pages);
        if hot == pages {
            return Classes::uniform(pages);
        }
        let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 1.0 };
        Classes::of(vec![(hot, share), (pages - hot, 1.0 - share)])
    }

    /// Rank r has weight 1 / (r + 1)^skew. `skew` 0 is uniform; negative or not finite counts as 0.
    pub fn zipf(pages: u64, skew: f64) -> Classes {
        let pages = pages.max(1);
        if !skew.is_finite() || skew <= 0.0 {
            return Classes::uniform(pages);
        }
        let sizes = geometric(pages);
        let mut first = 0;
        let weights = sizes.iter().map(|&size| {
            let weight = harmonic(first, size, skew);
            first += size;
            (size, weight)
        });
        Classes::of(weights.collect())
    }

    /// Classes of these sizes and weights; the weights are scaled to a sum of 1.
    fn of(sized: Vec<(u64, f64)>) -> Classes {
        let total: f64 = sized.iter().map(|(_, weight)| weight).sum();
        let (mut first, mut below) = (0, 0.0);
        let (mut list, mut thresholds) = (Vec::new(), Vec::new());
        for &(pages, weight) in &sized {
            let share = weight / total;
            list.push(Class { first, pages, share });
            first += pages;
            below += share;
            // 2^53 steps, exact in a double.
            thresholds.push(((below.min(1.0) * (1u64 << 53) as f64) as u64).saturating_mul(1 << 11));
        }
        // Rounding must not leave words that choose nothing.
        if let Some(last) = thresholds.last_mut() {
            *last = u64::MAX;
        }
        Classes { list, thresholds, pages: first }
    }

    /// The classes, most popular pages first.
    #[inline]
    pub fn list(&self) -> &[Class] {
        &self.list
    }

    /// Pages of all classes.
    #[inline]
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// The rank that two random words choose.
    #[inline]
    pub fn rank(&self, class: u64, page: u64) -> u64 {
        let index = self.thresholds.partition_point(|&below| below <= class).min(self.list.len() - 1);
        let class = self.list[index];
        class.first + ((u128::from(page) * u128::from(class.pages)) >> 64) as u64
    }
}

/// Sizes that add up to `pages`: 1 eight times, then growing by a constant factor so that [`MOST`] are enough.
fn geometric(pages: u64) -> Vec<u64> {
    const SINGLE: u64 = 8;
    let mut sizes = vec![1; pages.min(SINGLE) as usize];
    let mut left = pages.saturating_sub(SINGLE);
    // The sum of factor^1 ... factor^n must reach what is left; doubling reaches any 64-bit number in 56 steps.
    let steps = (MOST - sizes.len()) as i32;
    let reaches = |factor: f64| {
        let (mut size, mut sum) = (1.0, 0.0);
        for _ in 0..steps {
            size *= factor;
            sum += size;
        }
        sum >= left as f64
    };
    let (mut low, mut high) = (1.0, 2.5);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if reaches(middle) { high = middle } else { low = middle }
    }
    let mut size = 1.0;
    while left > 0 {
        size *= high;
        let last = sizes.len() == MOST - 1;
        let next = if last { left } else { (size as u64).clamp(1, left) };
        sizes.push(next);
        left -= next;
    }
    sizes
}

/// Sum of 1 / (r + 1)^skew over the ranks from `first` on: term by term where they differ much, else by the
/// midpoint rule, whose error there is below 1e-7 of the sum.
fn harmonic(first: u64, count: u64, skew: f64) -> f64 {
    let term = |rank: f64| libm::pow(rank, -skew);
    if count <= 1 << 12 {
        return (0..count).map(|i| term((first + i + 1) as f64)).sum();
    }
    // A class is never more than a few times as long as all ranks before it: 4096 strips are thin.
    let strip = count as f64 / 4096.0;
    (0..4096).map(|i| strip * term(first as f64 + 0.5 + (f64::from(i) + 0.5) * strip)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        // A case sums some hundred thousand terms.
        #![proptest_config(ProptestConfig::with_cases(16))]

        #[test]
        fn classes_cover_all_pages(pages in 1u64..1 << 40, skew in 0.01f64..3.0) {
            let classes = Classes::zipf(pages, skew);
            prop_assert!(classes.list().len() <= MOST);
            prop_assert_eq!(classes.pages(), pages);
            let mut next = 0;
            for class in classes.list() {
                prop_assert_eq!(class.first, next);
                prop_assert!(class.pages >= 1 && class.share >= 0.0);
                next += class.pages;
            }
            let sum: f64 = classes.list().iter().map(|c| c.share).sum();
            prop_assert!((sum - 1.0).abs() < 1e-9);
        }

        #[test]
        fn every_word_chooses_a_page(pages in 1u64..1 << 40, skew in 0.0f64..3.0, class: u64, page: u64) {
            let classes = Classes::zipf(pages, skew);
            prop_assert!(classes.rank(class, page) < pages);
            prop_assert!(classes.rank(u64::MAX, u64::MAX) == pages - 1);
            prop_assert!(classes.rank(0, 0) == 0);
        }
    }

    #[test]
    fn shares_are_those_of_the_law() {
        let classes = Classes::zipf(100_000, 0.8);
        let weight = |from: u64, to: u64| (from..to).map(|r| libm::pow((r + 1) as f64, -0.8)).sum::<f64>();
        let total = weight(0, 100_000);
        for class in classes.list() {
            let exact = weight(class.first, class.first + class.pages) / total;
            assert!((class.share / exact - 1.0).abs() < 1e-6, "{class:?} {exact}");
        }
        // The most popular page alone.
        assert!((classes.list()[0].share - 1.0 / total).abs() < 1e-9);
    }

    #[test]
    fn hot_and_cold() {
        let classes = Classes::hot_cold(100, 20, 0.9);
        let expected = [Class { first: 0, pages: 20, share: 0.9 }, Class { first: 20, pages: 80, share: 1.0 - 0.9 }];
        assert_eq!(classes.list(), expected);
        assert_eq!(Classes::hot_cold(10, 10, 0.5), Classes::uniform(10));
        assert_eq!(Classes::hot_cold(0, 0, f64::NAN), Classes::uniform(1));
    }
}
