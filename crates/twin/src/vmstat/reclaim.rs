//! Event counters of reclaim, compaction, swap and block I/O (`enum vm_event_item`), 2.6.36 to 6.18.
//!
//! CPUs count them in words of their own that readers add up; only the sum is kept.

use crate::alloc::{ZONES, ZoneKind};

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
                    _ => match (name.strip_prefix("allocstall_"), name.strip_prefix("pgskip_")) {
                        (Some(kind), _) => of_kind(&self.allocstall, kind),
                        (_, Some(kind)) => of_kind(&self.pgskip, kind),
                        _ => None,
                    },
                }
            }
        }
    };
}

events! {
    pgpgin, pgpgout, pswpin, pswpout, pgactivate, pgdeactivate, pgmajfault, pgrefill, pgsteal_kswapd, pgsteal_direct,
    pgscan_kswapd, pgscan_direct, pgscan_direct_throttle, pgscan_anon, pgscan_file, pgsteal_anon, pgsteal_file,
    slabs_scanned, kswapd_low_wmark_hit_quickly, kswapd_high_wmark_hit_quickly, pageoutrun, pgrotated, oom_kill,
    swap_ra, swap_ra_hit, compact_migrate_scanned, compact_free_scanned, compact_isolated, compact_stall, compact_fail,
    compact_success, compact_daemon_wake, compact_daemon_migrate_scanned, compact_daemon_free_scanned,
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
    }
}
