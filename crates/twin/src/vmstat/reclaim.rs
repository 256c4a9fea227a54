//! Event counters of reclaim, compaction, swap and block I/O (`enum vm_event_item`), 2.6.36 to 6.18.
//!
//! CPUs count them in words of their own that readers add up; only the sum is kept.

use crate::frame::{ZONES, ZoneKind};

/// Declares the counters; the rows have the names of the fields.
macro_rules! events {
    ($($name:ident),+ $(,)?) => {
        /// Event counters by the names of their rows; those by zone kind are rows `NAME_KIND`.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[allow(missing_docs)] // the rows are the kernel's
        pub struct ReclaimEvents {
            $(pub $name: u64,)+
            pub allocstall: [u64; ZONES],
            pub pgskip: [u64; ZONES],
            pub pgrefill_zone: [u64; ZONES],
            pub pgsteal_zone: [u64; ZONES],
            pub pgsteal_kswapd_zone: [u64; ZONES],
            pub pgsteal_direct_zone: [u64; ZONES],
            pub pgscan_kswapd_zone: [u64; ZONES],
            pub pgscan_direct_zone: [u64; ZONES],
        }

        impl ReclaimEvents {
            /// The counter of a row; `None` if it is another's.
            pub fn row(&self, name: &str) -> Option<u64> {
                let of_kind = |counters: &[u64; ZONES], kind: &str| {
                    let kinds = ZoneKind::ALL.into_iter();
                    kinds.zip(counters).find(|(at, _)| at.name().eq_ignore_ascii_case(kind)).map(|(_, n)| *n)
                };
                match name {
                    $(stringify!($name) => Some(self.$name),)+
                    "allocstall" => Some(self.allocstall.iter().sum()),
                    _ => {
                        let families = [
                            ("allocstall_", &self.allocstall),
                            ("pgskip_", &self.pgskip),
                            ("pgrefill_", &self.pgrefill_zone),
                            ("pgsteal_", &self.pgsteal_zone),
                            ("pgsteal_kswapd_", &self.pgsteal_kswapd_zone),
                            ("pgsteal_direct_", &self.pgsteal_direct_zone),
                            ("pgscan_kswapd_", &self.pgscan_kswapd_zone),
                            ("pgscan_direct_", &self.pgscan_direct_zone),
                        ];
                        families.into_iter().find_map(|(family, of)| of_kind(of, name.strip_prefix(family)?))
                    }
                }
            }
        }
    };
}

events! {
    pgpgin, pgpgout, pswpin, pswpout, pgactivate, pgdeactivate, pglazyfree, pglazyfreed, pgmajfault, pgrefill, pgsteal_kswapd, pgsteal_direct,
    pgscan_kswapd, pgscan_direct, pgscan_direct_throttle, pgscan_anon, pgscan_file, pgsteal_anon, pgsteal_file,
    slabs_scanned, pginodesteal, kswapd_inodesteal, kswapd_low_wmark_hit_quickly, kswapd_high_wmark_hit_quickly, pageoutrun, pgrotated, oom_kill,
    compact_migrate_scanned, compact_free_scanned, compact_isolated, compact_stall, compact_fail,
    compact_success, compact_daemon_wake, compact_daemon_migrate_scanned, compact_daemon_free_scanned, kswapd_steal,
    kswapd_skip_congestion_wait, compact_blocks_moved, compact_pages_moved, compact_pagemigrate_failed, swap_ra, swap_ra_hit,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_by_kind_of_zone() {
        let events = ReclaimEvents { pgscan_file: 3, allocstall: [0, 0, 5, 0, 0], ..ReclaimEvents::default() };
        assert_eq!(events.row("pgscan_file"), Some(3));
        assert_eq!((events.row("allocstall_normal"), events.row("allocstall_dma32")), (Some(5), Some(0)));
        assert_eq!(
            (events.row("pgskip_movable"), events.row("pgskip_other"), events.row("pgfree")),
            (Some(0), None, None)
        );
        let events =
            ReclaimEvents { pgscan_kswapd: 9, pgscan_kswapd_zone: [2, 0, 0, 0, 0], ..ReclaimEvents::default() };
        assert_eq!((events.row("pgscan_kswapd"), events.row("pgscan_kswapd_dma")), (Some(9), Some(2)));
    }
}
