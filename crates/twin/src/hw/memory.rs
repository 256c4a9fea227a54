//! Memory latency under load, from measured curves.
//!
//! A curve gives the latency at some shares of a path's peak bandwidth, as a memory benchmark measures it with more
//! and more traffic. Between the points the curve is the monotone cubic of Fritsch and Butland (1984): it passes
//! through every point and never falls where the points rise. Formulas with one parameter were tried on five machines
//! and miss the rise at low load, so there is none. Not modelled: reads against writes, banks, prefetchers. Checked
//! against the measured points themselves and for monotony.

use thiserror::Error;

/// Latency as a multiple of the idle latency, by share of the peak bandwidth.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// (share, multiple, slope), by share; the first is (0, 1).
    points: Vec<(f64, f64, f64)>,
}

/// The way from a node's CPUs to a node's memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Path {
    /// Latency without load, nanoseconds.
    pub idle_ns: f64,
    /// Peak read bandwidth, bytes per second.
    pub peak: f64,
}

/// Latency and bandwidth between all nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Memory {
    nodes: usize,
    paths: Vec<Path>,
    local: Curve,
    remote: Curve,
}

/// Why curves or paths are refused.
#[derive(Clone, Debug, PartialEq, Error)]
#[allow(missing_docs)] // the fields are named in the messages
pub enum MemoryError {
    #[error("point {0} of the latency curve is not above the point before it, or is no number")]
    Point(usize),
    #[error("the latency curve falls at point {0}")]
    Falls(usize),
    #[error("{found} memory paths for {nodes} nodes: expected one per pair of nodes")]
    Paths { found: usize, nodes: usize },
    #[error("latency and bandwidth from node {from} to node {to} must be above 0")]
    Path { from: usize, to: usize },
}

impl Curve {
    /// A curve through (share of peak bandwidth, multiple of idle latency), ascending in share; (0, 1) is added.
    pub fn new(points: &[(f64, f64)]) -> Result<Curve, MemoryError> {
        let all: Vec<(f64, f64)> = std::iter::once((0.0, 1.0)).chain(points.iter().copied()).collect();
        for (i, pair) in all.windows(2).enumerate() {
            if !(pair[1].0 > pair[0].0 && pair[1].0.is_finite() && pair[1].1.is_finite()) {
                return Err(MemoryError::Point(i + 1));
            }
            if pair[1].1 < pair[0].1 {
                return Err(MemoryError::Falls(i + 1));
            }
        }
        let secants: Vec<f64> = all.windows(2).map(|p| (p[1].1 - p[0].1) / (p[1].0 - p[0].0)).collect();
        let slope = |i: usize| match (i.checked_sub(1).map(|i| secants[i]), secants.get(i)) {
            (Some(before), Some(&after)) if before * after > 0.0 => {
                let (h0, h1) = (all[i].0 - all[i - 1].0, all[i + 1].0 - all[i].0);
                let (w0, w1) = (2.0 * h1 + h0, h1 + 2.0 * h0);
                (w0 + w1) / (w0 / before + w1 / after)
            }
            (Some(_), Some(_)) => 0.0,
            // At an end the curve leaves along the chord, which keeps the cubic monotone.
            (Some(only), None) => only,
            (None, only) => only.copied().unwrap_or(0.0),
        };
        let points = all.iter().enumerate().map(|(i, &(share, multiple))| (share, multiple, slope(i))).collect();
        Ok(Curve { points })
    }

    /// Multiple of the idle latency at a share of the peak bandwidth. Outside the measured points it is that of the
    /// nearest: more than the peak is never delivered, so callers hold back the traffic, not the latency.
    pub fn at(&self, share: f64) -> f64 {
        let after = self.points.partition_point(|point| point.0 <= share);
        if after == 0 {
            return self.points[0].1;
        }
        let (x0, y0, d0) = self.points[after - 1];
        let Some(&(x1, y1, d1)) = self.points.get(after) else { return y0 };
        let h = x1 - x0;
        let t = (share - x0) / h;
        let (rest, t2) = (1.0 - t, t * t);
        let value = rest * rest * (1.0 + 2.0 * t) * y0 + t * rest * rest * h * d0 + t2 * (3.0 - 2.0 * t) * y1
            - t2 * rest * h * d1;
        // Rounding may leave the interval by a last bit.
        value.clamp(y0, y1)
    }
}

impl Memory {
    /// Paths by node of the CPU, then node of the memory; the curves of a node's own and of other nodes' memory.
    pub fn new(nodes: usize, paths: Vec<Path>, local: Curve, remote: Curve) -> Result<Memory, MemoryError> {
        if paths.len() != nodes * nodes {
            return Err(MemoryError::Paths { found: paths.len(), nodes });
        }
        let good = |value: f64| value > 0.0 && value.is_finite();
        match paths.iter().position(|path| !good(path.idle_ns) || !good(path.peak)) {
            Some(i) => Err(MemoryError::Path { from: i / nodes, to: i % nodes }),
            None => Ok(Memory { nodes, paths, local, remote }),
        }
    }

    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// The path from a node's CPUs to a node's memory.
    pub fn path(&self, from: usize, to: usize) -> Path {
        self.paths[from * self.nodes + to]
    }

    /// Nanoseconds of a read from node `from` of memory of node `to` while traffic, in bytes per second by (from, to)
    /// as the paths, is under way. The read waits where the load is highest: on its path, or at the memory, which all
    /// nodes share and whose peak is that of its own node's path.
    pub fn latency(&self, from: usize, to: usize, traffic: &[f64]) -> f64 {
        let path = self.path(from, to);
        let on_path = traffic[from * self.nodes + to] / path.peak;
        let at_memory: f64 = (0..self.nodes).map(|node| traffic[node * self.nodes + to]).sum();
        let curve = if from == to { &self.local } else { &self.remote };
        path.idle_ns * curve.at(on_path.max(at_memory / self.path(to, to).peak))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // Two sockets of Skylake-SP: share of the peak, multiple of the idle latency.
    const MEASURED: [(f64, f64); 5] = [(0.2, 1.13), (0.4, 1.17), (0.55, 1.24), (0.72, 1.50), (1.0, 3.1)];

    #[test]
    fn a_curve_goes_through_its_points() {
        let curve = Curve::new(&MEASURED).unwrap();
        for (share, multiple) in MEASURED {
            assert!((curve.at(share) - multiple).abs() < 1e-12);
        }
        assert_eq!([curve.at(-1.0), curve.at(0.0), curve.at(9.0)], [1.0, 1.0, 3.1]);
    }

    #[test]
    fn latency_waits_for_the_busiest_part() {
        let path = |idle_ns, peak| Path { idle_ns, peak };
        let paths = vec![path(80.0, 100e9), path(130.0, 50e9), path(130.0, 50e9), path(80.0, 100e9)];
        let memory = {
            let curve = Curve::new(&[(0.5, 1.2), (1.0, 3.0)]).unwrap();
            Memory::new(2, paths, curve.clone(), curve).unwrap()
        };
        assert_eq!(memory.latency(0, 1, &[0.0; 4]), 130.0);
        // Half the link, a quarter of the memory.
        assert!((memory.latency(0, 1, &[0.0, 25e9, 0.0, 0.0]) - 130.0 * 1.2).abs() < 1e-9);
        // Local traffic fills the memory that the remote reader needs.
        assert!((memory.latency(0, 1, &[0.0, 25e9, 0.0, 75e9]) - 130.0 * 3.0).abs() < 1e-9);
        assert!((memory.latency(1, 1, &[0.0, 25e9, 0.0, 75e9]) - 80.0 * 3.0).abs() < 1e-9);
    }

    #[test]
    fn bad_curves_are_refused() {
        assert_eq!(Curve::new(&[(0.5, 1.1), (0.5, 1.2)]).unwrap_err(), MemoryError::Point(2));
        assert_eq!(Curve::new(&[(f64::NAN, 1.1)]).unwrap_err(), MemoryError::Point(1));
        assert_eq!(Curve::new(&[(0.5, 1.1), (0.6, 1.0)]).unwrap_err(), MemoryError::Falls(2));
        let curve = Curve::new(&[]).unwrap();
        assert_eq!(curve.at(0.7), 1.0);
        let flat = Path { idle_ns: 80.0, peak: 0.0 };
        assert_eq!(
            Memory::new(1, vec![flat], curve.clone(), curve.clone()).unwrap_err(),
            MemoryError::Path { from: 0, to: 0 }
        );
        assert_eq!(
            Memory::new(2, vec![], curve.clone(), curve).unwrap_err(),
            MemoryError::Paths { found: 0, nodes: 2 }
        );
    }

    proptest! {
        #[test]
        fn curves_never_fall(
            steps in prop::collection::vec((0.01f64..1.0, 0.0f64..2.0), 1..8),
            at in prop::collection::vec(0.0f64..8.0, 2..40),
        ) {
            let mut sum = (0.0, 1.0);
            let points: Vec<_> = steps
                .iter()
                .map(|step| { sum = (sum.0 + step.0, sum.1 + step.1); sum })
                .collect();
            let curve = Curve::new(&points).unwrap();
            let mut at = at;
            at.sort_by(f64::total_cmp);
            for pair in at.windows(2) {
                prop_assert!(curve.at(pair[0]) <= curve.at(pair[1]) + 1e-12);
            }
        }
    }
}
