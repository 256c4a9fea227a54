//! Which events a stream could have shown: those that were enabled, or that were seen.
//!
//! What depends on any other event is not known, and is never reported as 0.

use mmtwin_event::{Kind, Source};
use std::collections::BTreeMap;

/// Beginnings of names of events that findings are made of.
const OURS: [&str; 2] = ["mm_vmscan_", "mm_compaction_"];
/// Names of such events kept that have no type; a kernel renames a few at a time.
const MOST_UNTYPED: usize = 16;

/// Counts of events by kind, and what was enabled.
#[derive(Clone, Debug)]
pub struct Recorded {
    seen: [u64; Kind::COUNT],
    enabled: [bool; Kind::COUNT],
    untyped: BTreeMap<String, u64>,
}

impl Default for Recorded {
    fn default() -> Recorded {
        Recorded { seen: [0; Kind::COUNT], enabled: [false; Kind::COUNT], untyped: BTreeMap::new() }
    }
}

impl Recorded {
    /// Takes note of what a source says was enabled: names, with or without `system:` or `system/`.
    pub fn start(&mut self, source: &Source) {
        for name in source.enabled.iter().flatten() {
            let event = name.rsplit([':', '/']).next().unwrap_or(name);
            self.enabled[Kind::of_name(event) as usize] = true;
        }
    }

    /// Takes note that events of a kind would have been recorded.
    pub fn enable(&mut self, kind: Kind) {
        self.enabled[kind as usize] = true;
    }

    /// Counts an event.
    #[inline]
    pub fn saw(&mut self, kind: Kind) {
        self.seen[kind as usize] += 1;
    }

    /// Takes the name of an event without a type: of another kernel than the vocabulary knows.
    pub(crate) fn untyped(&mut self, name: &str) {
        if !OURS.iter().any(|ours| name.starts_with(ours)) {
            return;
        }
        if let Some(count) = self.untyped.get_mut(name) {
            *count += 1;
        } else if self.untyped.len() < MOST_UNTYPED {
            self.untyped.insert(name.into(), 1);
        }
    }

    /// Events of reclaim and compaction that could not be read, by name: findings lack them.
    pub fn not_understood(&self) -> impl Iterator<Item = (&str, u64)> {
        self.untyped.iter().map(|(name, count)| (name.as_str(), *count))
    }

    /// Adds the events that another one counted.
    pub(crate) fn add(&mut self, other: &Recorded) {
        self.seen.iter_mut().zip(&other.seen).for_each(|(sum, more)| *sum += more);
    }

    /// Number of events of a kind; [`Kind::Other`] counts all without a type.
    pub fn count(&self, kind: Kind) -> u64 {
        self.seen[kind as usize]
    }

    /// Number of events of all kinds.
    pub fn total(&self) -> u64 {
        self.seen.iter().sum()
    }

    /// True if no event of any kind was enabled or seen.
    pub fn is_empty(&self) -> bool {
        self.total() == 0 && !self.enabled.contains(&true)
    }

    /// True if the kind was enabled or seen.
    pub fn has(&self, kind: Kind) -> bool {
        kind != Kind::Other && (self.enabled[kind as usize] || self.seen[kind as usize] != 0)
    }

    /// True if any of the kinds was enabled or seen.
    pub fn has_any(&self, kinds: &[Kind]) -> bool {
        kinds.iter().any(|&kind| self.has(kind))
    }

    /// A value that is known only if all of the kinds were recorded.
    pub fn value<T>(&self, kinds: &[Kind], value: T) -> Option<T> {
        kinds.iter().all(|&kind| self.has(kind)).then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renamed_events_of_reclaim_are_named() {
        let mut recorded = Recorded::default();
        let names = ["mm_vmscan_shrink_begin", "sched_switch", "mm_vmscan_shrink_begin"];
        names.iter().for_each(|name| recorded.untyped(name));
        assert_eq!(recorded.not_understood().collect::<Vec<_>>(), [("mm_vmscan_shrink_begin", 2)]);
        (0..99).for_each(|i| recorded.untyped(&format!("mm_vmscan_{i}")));
        assert_eq!(recorded.not_understood().count(), MOST_UNTYPED);
    }

    #[test]
    fn enabled_or_seen_is_recorded() {
        let mut recorded = Recorded::default();
        let enabled = vec!["vmscan:mm_vmscan_throttled".into(), "mm_vmscan_writepage".into(), "sched:other".into()];
        recorded.start(&Source { enabled: Some(enabled), ..Source::default() });
        recorded.saw(Kind::SchedMoveNuma);
        for kind in [Kind::MmVmscanThrottled, Kind::MmVmscanWriteFolio, Kind::SchedMoveNuma] {
            assert!(recorded.has(kind), "{kind:?}");
        }
        assert!(!recorded.has(Kind::SchedSwapNuma));
        assert!(!recorded.has(Kind::Other));
        assert_eq!(recorded.value(&[Kind::MmVmscanThrottled], 0), Some(0));
        assert_eq!(recorded.value(&[Kind::MmVmscanThrottled, Kind::SchedSwapNuma], 0), None);
        assert_eq!((recorded.count(Kind::SchedMoveNuma), recorded.total()), (1, 1));
    }
}
