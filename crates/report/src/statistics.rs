//! Statistics of several runs of one column: median and its interval, Mann-Whitney U, Hodges-Lehmann shift, Holm.
//!
//! Everything is free of a distribution's shape (runs of a kernel are skewed and have outliers) and of random numbers:
//! - the interval of a median is between two of the runs, by the binomial distribution of how many runs lie below it;
//! - U compares two columns. With up to [`EXACT`] runs together its distribution is counted exactly, ties included
//!   (all ways to deal the pooled ranks to the columns), above that it is the normal approximation with correction for
//!   ties and continuity;
//! - the shift is the median of all differences between a run of one and a run of the other, its interval by the
//!   distribution of U without ties;
//! - Holm's step-down adjusts the p-values of one family of tests.
//!
//! Few runs cannot give 95 %: the interval is then as wide as the runs are, and says what it covers.
//! Validated against scipy 1.17.1 (`mannwhitneyu` exact, asymptotic and by full permutation, `quantile_test`) and
//! statsmodels (`multipletests`); the figures are in the tests.

use statrs::distribution::{Binomial, DiscreteCDF};
use statrs::function::erf::{erfc, erfc_inv};

/// The confidence that intervals aim at; significance is 1 minus this.
pub const LEVEL: f64 = 0.95;

/// Up to so many runs in both columns together U is exact. All counts stay below 2^53 up to here.
pub const EXACT: usize = 40;

/// An interval of confidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// What it covers, 0..1: at least [`LEVEL`] where there are enough runs.
    pub confidence: f64,
}

/// How far one column is from another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    /// Median of the differences, second minus first.
    pub estimate: f64,
    /// Its interval.
    pub interval: Interval,
}

/// The median of ascending values; `None` without any.
pub fn median(sorted: &[f64]) -> Option<f64> {
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    let lower = *sorted.get(sorted.len() / 2 - 1)?;
    Some(lower / 2.0 + upper / 2.0)
}

/// The interval of the median of ascending values; `None` with less than two.
pub fn median_interval(sorted: &[f64]) -> Option<Interval> {
    let n = sorted.len();
    if n < 2 {
        return None;
    }
    let below = Binomial::new(0.5, n as u64).ok()?;
    // the more runs are cut off at each end, the less it covers
    let covers = |cut: usize| 1.0 - 2.0 * below.cdf(cut as u64);
    let cut = (0..n / 2).take_while(|&cut| covers(cut) >= LEVEL).last().unwrap_or(0);
    Some(Interval { low: *sorted.get(cut)?, high: *sorted.get(n - 1 - cut)?, confidence: covers(cut) })
}

/// Two-sided p-value of Mann-Whitney's U that both columns are runs of the same; `None` with less than two runs in
/// either, or if all runs are equal (there is nothing to test).
pub fn mann_whitney(first: &[f64], second: &[f64]) -> Option<f64> {
    if first.len() < 2 || second.len() < 2 {
        return None;
    }
    let mut pooled: Vec<(f64, bool)> =
        first.iter().map(|&v| (v, true)).chain(second.iter().map(|&v| (v, false))).collect();
    pooled.sort_by(|a, b| a.0.total_cmp(&b.0));
    // ranks are doubled so that the mean rank of a tie is an integer
    let mut ranks = Vec::with_capacity(pooled.len());
    let mut tie_term = 0.0;
    for tie in pooled.chunk_by(|a, b| a.0 == b.0) {
        let rank = 2 * ranks.len() + tie.len() + 1;
        ranks.extend(std::iter::repeat_n(rank, tie.len()));
        tie_term += (tie.len() as f64).powi(3) - tie.len() as f64;
        if tie.len() == pooled.len() {
            return None;
        }
    }
    let sum: usize = ranks.iter().zip(&pooled).filter(|(_, (_, of_first))| *of_first).map(|(rank, _)| rank).sum();
    Some(if pooled.len() <= EXACT {
        exact_p(&ranks, first.len(), sum)
    } else {
        normal_p(first.len() as f64, second.len() as f64, sum as f64 / 2.0, tie_term)
    })
}

fn exact_p(ranks: &[usize], size: usize, sum: usize) -> f64 {
    let counts = rank_sums(ranks, size);
    let total: f64 = counts.iter().sum();
    let lower: f64 = counts.iter().take(sum + 1).sum();
    let upper: f64 = counts.iter().skip(sum).sum();
    (2.0 * lower.min(upper) / total).min(1.0)
}

fn normal_p(n: f64, m: f64, rank_sum: f64, tie_term: f64) -> f64 {
    let runs = n + m;
    let u = rank_sum - n * (n + 1.0) / 2.0;
    let variance = n * m / 12.0 * (runs + 1.0 - tie_term / (runs * (runs - 1.0)));
    let distance = ((u - n * m / 2.0).abs() - 0.5).max(0.0);
    erfc(distance / variance.sqrt() / std::f64::consts::SQRT_2)
}

/// For each sum, how many choices of `size` among `ranks` have it. Exact up to [`EXACT`] ranks.
fn rank_sums(ranks: &[usize], size: usize) -> Vec<f64> {
    let width = ranks.iter().sum::<usize>() + 1;
    let mut ways = vec![vec![0.0; width]; size + 1];
    ways[0][0] = 1.0;
    for (seen, &rank) in ranks.iter().enumerate() {
        for chosen in (1..=size.min(seen + 1)).rev() {
            let (fewer, more) = ways.split_at_mut(chosen);
            for (to, from) in more[0][rank..].iter_mut().zip(&fewer[chosen - 1]) {
                *to += from;
            }
        }
    }
    ways.swap_remove(size)
}

/// Hodges-Lehmann shift from `first` to `second`; `None` with less than two runs in either.
pub fn shift(first: &[f64], second: &[f64]) -> Option<Shift> {
    if first.len() < 2 || second.len() < 2 {
        return None;
    }
    let mut differences: Vec<f64> = second.iter().flat_map(|s| first.iter().map(move |f| s - f)).collect();
    let last = differences.len() - 1;
    // Of n * m differences four are needed, which is no reason to sort them.
    let mut of_rank = |rank: usize| *differences.select_nth_unstable_by(rank, f64::total_cmp).1;
    let (cut, confidence) = shift_cut(first.len(), second.len());
    let interval = Interval { low: of_rank(cut), high: of_rank(last - cut), confidence };
    let estimate = median(&[of_rank(last / 2), of_rank(last.div_ceil(2))])?;
    Some(Shift { estimate, interval })
}

/// How many of the smallest and largest differences lie outside the interval of the shift, and what it covers.
fn shift_cut(n: usize, m: usize) -> (usize, f64) {
    let runs = n + m;
    if runs > EXACT {
        let (n, m) = (n as f64, m as f64);
        let z = std::f64::consts::SQRT_2 * erfc_inv(1.0 - LEVEL);
        let cut = n * m / 2.0 - z * (n * m * (n + m + 1.0) / 12.0).sqrt();
        return (cut.max(0.0) as usize, LEVEL);
    }
    let ranks: Vec<usize> = (1..=runs).collect();
    let counts = rank_sums(&ranks, n);
    let total: f64 = counts.iter().sum();
    // the smallest rank sum is that of U = 0
    let tails = counts.iter().skip(n * (n + 1) / 2).scan(0.0, |tail, count| {
        *tail += count;
        Some(1.0 - 2.0 * *tail / total)
    });
    let mut covered = 0.0;
    let mut cut = 0;
    for (outside, covers) in tails.enumerate().take(n * m / 2) {
        if outside > 0 && covers < LEVEL {
            break;
        }
        (cut, covered) = (outside, covers);
    }
    (cut, covered)
}

/// The smallest p-value that [`mann_whitney`] can give for columns of `n` and `m` runs without ties.
pub fn smallest_p(n: usize, m: usize) -> f64 {
    let choices = (1..=n).fold(1.0, |product, i| product * (m + i) as f64 / i as f64);
    2.0 / choices
}

/// The least number of runs of each of two columns with which one of `family` rows that are tested together can be
/// significant.
pub fn runs_needed(family: usize) -> usize {
    let reaches = |n: &usize| smallest_p(*n, *n) * family as f64 <= 1.0 - LEVEL;
    (2..=EXACT).find(reaches).unwrap_or(EXACT)
}

/// Holm's adjustment: for each p-value of one family the level at which it is rejected.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| p[a].total_cmp(&p[b]));
    let mut adjusted = vec![0.0; p.len()];
    let mut highest = 0.0f64;
    for (rejected, &index) in order.iter().enumerate() {
        highest = highest.max((p[index] * (p.len() - rejected) as f64).min(1.0));
        adjusted[index] = highest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn close(value: f64, expected: f64) {
        assert!((value - expected).abs() <= 1e-9 * expected.abs().max(1.0), "{value} is not {expected}");
    }

    // 4 and 6 runs without ties, used for p-value and shift
    const FOUR: [f64; 4] = [10.1, 11.3, 9.7, 12.5];
    const SIX: [f64; 6] = [9.9, 8.4, 7.7, 10.6, 8.8, 9.1];
    const FIVE: [f64; 5] = [1.0, 2.0, 3.0, 4.0, 5.0];
    const FIVE_MORE: [f64; 5] = [3.5, 6.0, 7.0, 8.0, 9.0];

    #[test]
    fn exact_as_scipy() {
        // scipy.stats.mannwhitneyu(..., method="exact")
        close(mann_whitney(&FIVE, &FIVE_MORE).unwrap(), 0.031746031746031744);
        close(mann_whitney(&FOUR, &SIX).unwrap(), 0.06666666666666667);
        let low: Vec<f64> = (0..8).map(f64::from).collect();
        let high: Vec<f64> = (100..108).map(f64::from).collect();
        close(mann_whitney(&low, &high).unwrap(), 0.0001554001554001554);
        close(smallest_p(8, 8), 0.0001554001554001554);
    }

    #[test]
    fn ties_as_scipy() {
        // mannwhitneyu(..., method=PermutationMethod()) with all permutations
        close(mann_whitney(&[1.0, 2.0, 2.0, 3.0, 5.0], &[2.0, 3.0, 3.0, 4.0, 6.0, 7.0]).unwrap(), 0.17316017316017315);
        close(mann_whitney(&[0.0, 0.0, 0.0, 1.0, 2.0], &[0.0, 3.0, 3.0, 4.0]).unwrap(), 0.12698412698412698);
    }

    #[test]
    fn many_runs_as_scipy() {
        // method="asymptotic", with and without ties
        let runs = |n: i32, factor: i32, plus: i32, modulus: i32| -> Vec<f64> {
            (0..n).map(|i| f64::from((i * factor + plus) % modulus)).collect()
        };
        close(mann_whitney(&runs(25, 37, 0, 101), &runs(30, 53, 20, 113)).unwrap(), 0.28304647046869913);
        close(mann_whitney(&runs(25, 37, 0, 11), &runs(30, 53, 20, 13)).unwrap(), 0.1355643760530044);
    }

    #[test]
    fn median_interval_as_scipy() {
        // scipy.stats.quantile_test(1..=n, p=0.5).confidence_interval(0.95), coverage by stats.binom
        for (n, low, high, covers) in [
            (6, 1.0, 6.0, 0.96875),
            (9, 2.0, 8.0, 0.9609375),
            (10, 2.0, 9.0, 0.978515625),
            (15, 4.0, 12.0, 0.96484375),
            (30, 10.0, 21.0, 0.9572260547429323),
            (100, 40.0, 61.0, 0.9647997997822951),
        ] {
            let runs: Vec<f64> = (1..=n).map(f64::from).collect();
            let interval = median_interval(&runs).unwrap();
            assert_eq!((interval.low, interval.high), (low, high), "{n} runs");
            close(interval.confidence, covers);
        }
        // five runs cannot give 95 %: all of them, and what that covers
        let five = median_interval(&FIVE).unwrap();
        assert_eq!((five.low, five.high), (1.0, 5.0));
        close(five.confidence, 0.9375);
    }

    #[test]
    fn shift_as_counted() {
        // counted in Python over all itertools.combinations of ranks
        for (first, second, estimate, low, high, covers) in [
            (&FIVE[..], &FIVE_MORE[..], 4.0, 0.5, 7.0, 0.9682539682539683),
            (&FOUR[..], &SIX[..], -1.8, -3.7, 0.2, 0.9619047619047619),
            (&[1.0, 2.0, 3.0][..], &[5.0, 7.0, 9.0][..], 5.0, 2.0, 8.0, 0.9),
        ] {
            let shift = shift(first, second).unwrap();
            close(shift.estimate, estimate);
            close(shift.interval.low, low);
            close(shift.interval.high, high);
            close(shift.interval.confidence, covers);
        }
    }

    #[test]
    fn holm_as_statsmodels() {
        // statsmodels multipletests(method="holm")
        for (p, expected) in [
            (&[0.01, 0.04, 0.03, 0.005][..], &[0.03, 0.06, 0.06, 0.02][..]),
            (&[0.2, 0.6, 0.001, 0.04, 0.04][..], &[0.4, 0.6, 0.005, 0.16, 0.16][..]),
        ] {
            for (value, expected) in holm(p).into_iter().zip(expected) {
                close(value, *expected);
            }
        }
    }

    #[test]
    fn runs_that_are_needed() {
        // 2 / C(8, 4) = 0.029, 2 / C(10, 5) = 0.0079, 2 / C(12, 6) = 0.0022
        assert_eq!([1, 2, 6, 7, 23, 24].map(runs_needed), [4, 5, 5, 6, 6, 7]);
        assert!(runs_needed(usize::MAX) <= EXACT);
    }

    #[test]
    fn too_few_runs() {
        assert_eq!(median(&[]), None);
        assert_eq!(median_interval(&[1.0]), None);
        assert_eq!(mann_whitney(&[1.0], &FIVE), None);
        assert_eq!(shift(&FIVE, &[1.0]), None);
        // all equal: nothing to test
        assert_eq!(mann_whitney(&[2.0; 5], &[2.0; 5]), None);
    }

    proptest! {
        #[test]
        fn p_is_symmetric_and_a_probability(
            a in prop::collection::vec(-5i8..5, 2..30), b in prop::collection::vec(-5i8..5, 2..30)
        ) {
            let (a, b): (Vec<f64>, Vec<f64>) = (a.into_iter().map(f64::from).collect(), b.into_iter().map(f64::from).collect());
            let p = mann_whitney(&a, &b);
            prop_assert!(p.is_none_or(|p| p > 0.0 && p <= 1.0));
            match (p, mann_whitney(&b, &a)) {
                (Some(p), Some(q)) => prop_assert!((p - q).abs() < 1e-9),
                (p, q) => prop_assert_eq!(p, q),
            }
            let shift = shift(&a, &b).unwrap();
            prop_assert!(shift.interval.low <= shift.estimate && shift.estimate <= shift.interval.high);
        }

        #[test]
        fn median_lies_in_its_interval(mut runs in prop::collection::vec(-1e9f64..1e9, 2..200)) {
            runs.sort_by(f64::total_cmp);
            let interval = median_interval(&runs).unwrap();
            let median = median(&runs).unwrap();
            prop_assert!(interval.low <= median && median <= interval.high);
            prop_assert!(interval.confidence > 0.0 && (runs.len() < 6 || interval.confidence >= LEVEL));
        }
    }
}
