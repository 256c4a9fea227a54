//! Huge pages: what khugepaged tried and how it ended.

use mmtwin_event::vocabulary::*;
use mmtwin_event::{Event, Kind};
use std::collections::BTreeMap;

/// Results kept separate per event; more can only come from a damaged file.
const MAX_RESULTS: usize = 256;

/// What events of khugepaged tell.
#[derive(Clone, Debug, Default)]
pub struct Thp {
    /// By event and index of the result in the table of khugepaged results.
    pub results: BTreeMap<(Kind, u32), u64>,
    /// Results omitted because there were too many.
    pub dropped: u64,
}

impl Thp {
    /// Takes one event of this subject.
    pub fn event(&mut self, ev: &Event<'_>) {
        let result = match ev.kind {
            Kind::MmCollapseHugePage => ev.typed::<MmCollapseHugePage>().status,
            Kind::MmCollapseHugePageIsolate => ev.typed::<MmCollapseHugePageIsolate>().status,
            Kind::MmKhugepagedScanPmd => ev.typed::<MmKhugepagedScanPmd>().status,
            Kind::MmKhugepagedCollapseFile => ev.typed::<MmKhugepagedCollapseFile>().result,
            Kind::MmKhugepagedScanFile => ev.typed::<MmKhugepagedScanFile>().result,
            _ => return,
        };
        let key = (ev.kind, result.0);
        if self.results.len() >= MAX_RESULTS && !self.results.contains_key(&key) {
            self.dropped += 1;
        } else {
            *self.results.entry(key).or_default() += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::EventBuilder;

    #[test]
    fn results_count_by_event() {
        let mut thp = Thp::default();
        thp.event(&EventBuilder::new(Kind::MmCollapseHugePage).set("status", 1).event());
        thp.event(&EventBuilder::new(Kind::MmKhugepagedScanFile).set("result", 1).event());
        thp.event(&EventBuilder::new(Kind::MmKhugepagedScanFile).set("result", 1).event());
        assert_eq!(thp.results[&(Kind::MmCollapseHugePage, 1)], 1);
        assert_eq!(thp.results[&(Kind::MmKhugepagedScanFile, 1)], 2);
    }

    #[test]
    fn damaged_results_stay_bounded() {
        let mut thp = Thp::default();
        (0..1000)
            .for_each(|status| thp.event(&EventBuilder::new(Kind::MmCollapseHugePage).set("status", status).event()));
        assert_eq!((thp.results.len(), thp.dropped), (MAX_RESULTS, 1000 - MAX_RESULTS as u64));
    }
}
