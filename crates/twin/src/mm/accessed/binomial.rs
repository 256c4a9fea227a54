//! Number of successes in independent trials.
//!
//! Up to a mean of [`EXACT`] by inversion, exactly; above it by the normal distribution with the same mean and
//! variance, whose error in any probability is then below 1 %. Only `+ - * / sqrt` and `libm` are used, so that every
//! machine draws the same.

use crate::time::Random;

/// Largest mean that is drawn exactly.
const EXACT: f64 = 32.0;

/// Number of successes among `n` with probability `p` each. Uses draws `draw` and `draw + 1` of `object`.
pub(crate) fn binomial(n: u64, p: f64, random: &Random, object: u64, draw: u64) -> u64 {
    if n == 0 || p <= 0.0 {
        return 0;
    }
    if p >= 1.0 {
        return n;
    }
    if p > 0.5 {
        return n - binomial(n, 1.0 - p, random, object, draw);
    }
    let (trials, word) = (n as f64, random.fraction(object, draw));
    let mean = trials * p;
    if mean <= EXACT {
        return inverted(trials, p, word).min(n);
    }
    // Box and Muller; 1 - word is never 0.
    let radius = (-2.0 * libm::log(1.0 - word)).sqrt();
    let normal = radius * libm::cos(std::f64::consts::TAU * random.fraction(object, draw + 1));
    let drawn = mean + normal * (mean * (1.0 - p)).sqrt() + 0.5;
    if drawn <= 0.0 { 0 } else { (drawn as u64).min(n) }
}

/// The smallest k whose cumulative probability is above `word`.
fn inverted(n: f64, p: f64, word: f64) -> u64 {
    let odds = p / (1.0 - p);
    let mut probability = libm::exp(n * libm::log1p(-p));
    let (mut below, mut k) = (probability, 0.0);
    // Far in the tail the sum no longer grows.
    while word >= below && k < n && k < 40.0 * EXACT {
        probability *= (n - k) / (k + 1.0) * odds;
        below += probability;
        k += 1.0;
    }
    k as u64
}

/// Probability that a thing of probability `each` happens in `times` trials.
pub(crate) fn at_least_once(each: f64, times: u64) -> f64 {
    if each >= 1.0 { 1.0 } else { -libm::expm1(times as f64 * libm::log1p(-each)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Use;

    #[test]
    fn means_and_variances_are_the_law_s() {
        let random = Random::new(4, Use::FirstTouch);
        for (object, (n, p)) in
            [(10, 0.3), (1000, 0.01), (1_000_000, 0.4), (100, 0.9), (5, 0.5)].into_iter().enumerate()
        {
            let rounds = 20_000u64;
            let drawn: Vec<f64> = (0..rounds).map(|i| binomial(n, p, &random, object as u64, 2 * i) as f64).collect();
            let mean = drawn.iter().sum::<f64>() / rounds as f64;
            let variance = drawn.iter().map(|k| (k - mean) * (k - mean)).sum::<f64>() / rounds as f64;
            let (true_mean, true_variance) = (n as f64 * p, n as f64 * p * (1.0 - p));
            // Five standard errors; that of a variance is about variance * sqrt(2 / rounds).
            assert!((mean - true_mean).abs() < 5.0 * (true_variance / rounds as f64).sqrt() + 0.01, "{n} {p}: {mean}");
            let error = 5.0 * true_variance * (2.0 / rounds as f64).sqrt();
            assert!((variance - true_variance).abs() < error.max(0.1), "{n} {p}: {variance}");
        }
    }

    #[test]
    fn edges() {
        let random = Random::new(4, Use::FirstTouch);
        let draw = |n, p| binomial(n, p, &random, 0, 0);
        assert_eq!([draw(0, 0.5), draw(9, 0.0), draw(9, -1.0), draw(9, 1.0), draw(9, 2.0)], [0, 0, 0, 9, 9]);
    }
}
