//! The closed form of what a threshold costs, to check the simulated CPUs against.
//!
//! Readers miss the line if any of n other CPUs has written it since their last read, one loop ago; each writes once in
//! P loops. Independent of each other they miss it with probability 1 - exp(-n/P).

/// Cycles of one loop of allocation and free: `work` without and `refetch` with a fetch of the line, which `readers`
/// other CPUs each write once in `period` loops.
pub fn closed_form(work: f64, refetch: f64, readers: f64, period: f64) -> f64 {
    work - refetch * libm::expm1(-readers / period)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_writes_cost_in_proportion() {
        assert_eq!(closed_form(342.0, 700.0, 42.0, f64::INFINITY), 342.0);
        assert!((closed_form(0.0, 700.0, 42.0, 42e6) - 700e-6).abs() < 1e-9);
        assert!(closed_form(0.0, 700.0, 4.0, 1.0) < 700.0);
    }
}
