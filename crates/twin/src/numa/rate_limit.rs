//! The limit on migrations into a node: `numamigrate_update_ratelimit`, to 4.18.
//!
//! A window of 100 ms takes 128 MiB; a migration that finds it full is refused and does not count. Windows advance at
//! faults only. Checked by tests here.

use crate::time::Ns;

/// Length of a window.
const WINDOW: Ns = 100_000_000;
/// Pages of a window: 128 MiB.
pub(crate) const LIMIT: u64 = 128 << 8;

/// The windows of all nodes.
#[derive(Clone, Debug)]
pub(crate) struct RateLimit {
    /// By node: end of the window, pages in it.
    windows: Vec<(Ns, u64)>,
}

impl RateLimit {
    /// Nothing migrated yet.
    pub(crate) fn new(nodes: usize) -> RateLimit {
        RateLimit { windows: vec![(0, 0); nodes] }
    }

    /// Pages migrated to a node in its window.
    pub(crate) fn taken(&self, node: usize) -> u64 {
        self.windows[node].1
    }

    /// True if this many pages may migrate to a node now; they are counted whether their migration succeeds or not.
    pub(crate) fn admits(&mut self, node: usize, pages: u64, now: Ns) -> bool {
        let (end, count) = &mut self.windows[node];
        if now > *end {
            (*end, *count) = (now + WINDOW, 0);
        }
        if *count > LIMIT {
            return false;
        }
        *count += pages;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_takes_one_too_many() {
        let mut limit = RateLimit::new(2);
        let admitted = (0..100).filter(|_| limit.admits(0, 512, 5)).count() as u64;
        assert_eq!(admitted * 512, LIMIT + 512);
        assert!(limit.admits(1, 1, 5) && !limit.admits(0, 1, WINDOW + 5) && limit.admits(0, 1, WINDOW + 6));
    }
}
