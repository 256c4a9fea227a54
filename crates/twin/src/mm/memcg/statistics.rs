//! Statistics of cgroups that lag: `flush_memcg_stats_dwork`, every two seconds, and `mem_cgroup_flush_stats` for whoever
//! reads `memory.stat` (`kernel.reclaim.stats_flush_ms`; 6.12 and newer).
//!
//! Between two flushes reclaim sees the lists as they were ([`Lru::shown`](crate::mm::lru::Lru::shown)), and
//! `balance_dirty_pages` a cgroup's dirty pages. Not modelled: that the timer is deferrable, so that an idle CPU's flush
//! comes later; flushes of reclaim that finds them two periods old. Checked by a test of
//! [`lru`](crate::mm::lru) and one of `tests/writeback.rs`.

use crate::mm::kernel::Kernel;
use crate::time::Ns;

impl Kernel {
    /// The periodic flush, if one is due at a time or before.
    pub(crate) fn run_flushes(&mut self, until: Ns) {
        let period = self.reclaim.rules.stats_flush;
        if period > 0 && until / period != self.reclaim.flushed / period {
            self.reclaim.flushed = until;
            self.flush_statistics();
        }
    }

    /// Statistics of the cgroups but the root are read, which flushes them.
    pub(crate) fn read_statistics(&mut self) {
        if self.reclaim.rules.stats_flush > 0 && self.reclaim.groups.len() > 1 {
            self.flush_statistics();
        }
    }

    fn flush_statistics(&mut self) {
        self.reclaim.lru.flush();
        self.writeback.flush_statistics();
    }
}
