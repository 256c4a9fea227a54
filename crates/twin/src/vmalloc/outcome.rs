//! Results of a run of the stress tests.

use super::histogram::Histogram;
use super::params::PurgeAccounting;

/// Calls of `purge_vmap_node` and what they did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Latencies of the calls.
    pub calls: Histogram,
    /// Passes of the drain work, those that found nothing included.
    pub passes: u64,
    /// Passes requested by frees during the pass before; the mean-value form does not have them.
    pub passes_again: u64,
    /// Areas purged.
    pub purged: u64,
    /// Areas freed.
    pub freed: u64,
    /// `nr_purged` of every node at the end of the longest call, as in a crash dump of that moment, but with lists
    /// under purge counted in full.
    pub nr_purged: Vec<u64>,
    /// The most lazy pages counted at the start of a pass.
    pub most_lazy_pages: u64,
    /// Virtual nanoseconds until the last thread and the last pass ended.
    pub ran_ns: u64,
}

/// A CPU that does not schedule for this long is reported by the kernel's soft-lockup watchdog: twice the default of
/// `kernel.watchdog_thresh`, in seconds.
pub const SOFT_LOCKUP_S: u64 = 20;

impl Outcome {
    /// Time per purged area in microseconds, weighted by time: all calls over all areas. `None` if none was purged.
    pub fn us_per_area(&self) -> Option<f64> {
        (self.purged > 0).then(|| self.calls.total_ns() as f64 / self.purged as f64 / 1e3)
    }

    /// Locked subtractions from `vmap_lazy_nr` in the calls.
    pub fn subtractions(&self, accounting: PurgeAccounting) -> u64 {
        match accounting {
            PurgeAccounting::PerArea => self.purged,
            PurgeAccounting::Batched => self.calls.calls(),
        }
    }

    /// True if a call took longer than the soft-lockup watchdog allows a CPU that is not given up.
    pub fn trips_watchdog(&self) -> bool {
        self.calls.longest_ns() > SOFT_LOCKUP_S * 1_000_000_000
    }
}
