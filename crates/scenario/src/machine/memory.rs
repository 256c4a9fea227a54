//! Memory: how long a cache miss takes, idle and under load, and where the kernel's image is.

use super::KernelImage;
use crate::units::{Bandwidth, Cost};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Latency and bandwidth of memory, matrices indexed `[node of the CPU][node of the memory]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Memory {
    /// Latency of a read that misses all caches, on an idle machine.
    pub latency: Vec<Vec<Cost>>,
    /// Most bytes per second: on the diagonal what the node's memory delivers, elsewhere what the path between the
    /// two nodes carries in one direction.
    pub bandwidth: Vec<Vec<Bandwidth>>,
    /// Latency under load on the node's own memory.
    pub local: Curve,
    /// Latency under load on another node's memory.
    pub remote: Curve,
    /// Where the kernel's code and data are.
    pub kernel_image: KernelImage,
}

/// Latency under load as measured: points (share of the most bandwidth, multiple of the idle latency), both
/// ascending, the first at share 0 with multiple 1, the last at share 1. Between the points the twin interpolates
/// monotonically.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Vec<[f64; 2]>", into = "Vec<[f64; 2]>")]
pub struct Curve(Vec<[f64; 2]>);

/// Reasons why points are not a curve.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum CurveError {
    /// Does not begin idle.
    #[error("a curve begins with [0, 1]: no load, idle latency")]
    Begin,
    /// Does not end at full load.
    #[error("a curve ends at share 1 of the bandwidth, this one at {0}")]
    End(f64),
    /// Shares do not ascend.
    #[error("shares of bandwidth ascend; {1} follows {0}")]
    Shares(f64, f64),
    /// Latency falls under load, or is not a number.
    #[error("latency does not fall under load; {1} follows {0}")]
    Falls(f64, f64),
}

impl Curve {
    /// The points.
    pub fn points(&self) -> &[[f64; 2]] {
        &self.0
    }
}

impl TryFrom<Vec<[f64; 2]>> for Curve {
    type Error = CurveError;

    fn try_from(points: Vec<[f64; 2]>) -> Result<Curve, CurveError> {
        if points.first() != Some(&[0.0, 1.0]) {
            return Err(CurveError::Begin);
        }
        for pair in points.windows(2) {
            let ([share, multiple], [next_share, next_multiple]) = (pair[0], pair[1]);
            // Written so that NaN fails too.
            if !(next_share > share && next_share <= 1.0) {
                return Err(CurveError::Shares(share, next_share));
            }
            if !(next_multiple >= multiple && next_multiple.is_finite()) {
                return Err(CurveError::Falls(multiple, next_multiple));
            }
        }
        match points.last() {
            Some([1.0, _]) => Ok(Curve(points)),
            last => Err(CurveError::End(last.map_or(0.0, |p| p[0]))),
        }
    }
}

impl From<Curve> for Vec<[f64; 2]> {
    fn from(curve: Curve) -> Self {
        curve.0
    }
}
