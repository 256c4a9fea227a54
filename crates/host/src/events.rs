//! Choosing events: the default set, and what a user's patterns mean on this kernel.

use crate::Error;
use mmtwin_event::vocabulary::SCHEMAS;
use mmtwin_event::words::{glob, nearest};
use std::collections::BTreeSet;

/// A mechanism and the events that tell of it.
pub struct Mechanism {
    /// For messages.
    pub name: &'static str,
    /// `system:event`, with wildcards; kernels have some or all of them.
    pub events: &'static [&'static str],
}

/// What is recorded unless the user chooses. Events per page (`migrate:set_migration_pte`, `kmem:mm_page_alloc`) are
/// omitted: they cost more than all others together.
pub const DEFAULT: &[Mechanism] = &[
    Mechanism { name: "reclaim", events: &["vmscan:*"] },
    Mechanism { name: "compaction", events: &["compaction:*"] },
    Mechanism { name: "page migration", events: &["migrate:mm_migrate_pages*", "migrate:mm_numa_migrate_ratelimit"] },
    Mechanism { name: "NUMA balancing", events: &["sched:sched_*_numa", "sched:update_numa_active_nodes_mask"] },
    Mechanism {
        name: "writeback throttling",
        events: &[
            "writeback:balance_dirty_pages",
            "writeback:writeback_congestion_wait",
            "writeback:writeback_wait_iff_congested",
        ],
    },
    Mechanism { name: "out of memory", events: &["oom:*"] },
    Mechanism { name: "vmalloc", events: &["vmalloc:*"] },
    Mechanism {
        name: "huge pages",
        events: &["huge_memory:mm_collapse_huge_page", "huge_memory:mm_khugepaged_collapse_file"],
    },
    Mechanism { name: "fallback allocation", events: &["kmem:mm_page_alloc_extfrag"] },
];

/// The default events that `available` has, sorted.
pub fn default_events(available: &[String]) -> Vec<String> {
    let patterns: Vec<&str> = DEFAULT.iter().flat_map(|m| m.events).copied().collect();
    available
        .iter()
        .filter(|e| patterns.iter().any(|p| glob(p, e)))
        .cloned()
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect()
}

/// True if `system:event` fits a pattern: `system:event` with `*` and `?`, an event without its system, or a system
/// alone.
fn fits(pattern: &str, event: &str) -> bool {
    match (pattern.contains(':'), event.split_once(':')) {
        (false, Some((system, name))) => glob(pattern, name) || glob(pattern, system),
        _ => glob(pattern, event),
    }
}

/// True if a pattern asks for the twin's own events, which no kernel has: a scenario may name them for one of its arms.
pub fn is_twins(pattern: &str) -> bool {
    let own = SCHEMAS.iter().filter(|schema| schema.system == "mmtwin");
    own.map(|schema| format!("mmtwin:{}", schema.name)).any(|event| fits(pattern, &event))
}

/// Events that fit the patterns, sorted. A pattern that nothing fits is an error, unless it is one of the twin's.
pub fn choose(patterns: &[String], available: &[String]) -> Result<Vec<String>, Error> {
    let mut chosen = BTreeSet::new();
    for pattern in patterns {
        let fits = |event: &&String| fits(pattern, event);
        chosen.extend(available.iter().filter(fits).cloned());
        if !available.iter().any(|event| fits(&event)) && !is_twins(pattern) {
            let known: Vec<&str> = available
                .iter()
                .filter_map(|e| if pattern.contains(':') { Some(e.as_str()) } else { Some(e.split_once(':')?.1) })
                .collect();
            let nearest = nearest(pattern, known.into_iter()).map(str::to_string);
            return Err(Error::Event { pattern: pattern.clone(), nearest });
        }
    }
    Ok(chosen.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn available() -> Vec<String> {
        [
            "vmscan:mm_vmscan_kswapd_sleep",
            "vmscan:mm_vmscan_kswapd_wake",
            "kmem:mm_page_alloc",
            "kmem:kfree",
            "sched:sched_move_numa",
            "sched:sched_switch",
        ]
        .map(String::from)
        .to_vec()
    }

    fn chosen(patterns: &[&str]) -> Result<Vec<String>, Error> {
        choose(&patterns.iter().map(|p| p.to_string()).collect::<Vec<_>>(), &available())
    }

    #[test]
    fn patterns_name_events_systems_or_both() {
        assert_eq!(chosen(&["kmem"]).unwrap(), ["kmem:kfree", "kmem:mm_page_alloc"]);
        assert_eq!(chosen(&["sched_switch"]).unwrap(), ["sched:sched_switch"]);
        assert_eq!(chosen(&["*:*_kswapd_*", "vmscan:*"]).unwrap().len(), 2);
    }

    #[test]
    fn unknown_events_are_told_with_the_nearest() {
        let message = |p: &str| chosen(&[p]).unwrap_err().to_string();
        assert_eq!(
            message("vmscan:mm_vmscan_kswapd_slep"),
            "no event `vmscan:mm_vmscan_kswapd_slep` on this kernel; did you mean `vmscan:mm_vmscan_kswapd_sleep`?"
        );
        assert!(message("sched_swich").contains("`sched_switch`"));
        assert_eq!(message("entirely:different"), "no event `entirely:different` on this kernel");
    }

    #[test]
    fn the_twins_own_events_are_passed_over() {
        assert_eq!(chosen(&["mmtwin:numa_*", "sched_switch"]).unwrap(), ["sched:sched_switch"]);
        assert!(
            is_twins("mmtwin:*") && is_twins("numa_hint_fault") && !is_twins("mmtwin:drain") && !is_twins("sched:*")
        );
    }

    #[test]
    fn the_default_is_what_there_is_of_it() {
        let expected = ["sched:sched_move_numa", "vmscan:mm_vmscan_kswapd_sleep", "vmscan:mm_vmscan_kswapd_wake"];
        assert_eq!(default_events(&available()), expected);
        assert!(default_events(&[]).is_empty());
    }
}
