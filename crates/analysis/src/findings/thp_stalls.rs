//! Huge pages on faults: tasks stall in direct compaction for them, or get small pages.

use super::words::{count, counted, percent, share};
use super::{Cost, Finding, grade};
use crate::Analysis;
use mmtwin_event::Kind;

/// Fewer faults that want a huge page (200 MiB of them) say nothing.
pub const MIN_FAULTS: u64 = 100;
/// Fewer stalls are the end of a fragmented zone, met once.
pub const MIN_STALLS: u64 = 10;
/// Percent of huge-page faults that fell back to small pages. Below, compaction pays.
pub const MIN_FALLBACK: f64 = 20.0;

pub fn check(a: &Analysis) -> Option<Finding> {
    let stalls = a.counters.vmstat("compact_stall").filter(|n| *n >= MIN_STALLS)?;
    let (got, fell_back) = (a.counters.vmstat("thp_fault_alloc")?, a.counters.vmstat("thp_fault_fallback")?);
    let wanted = got.saturating_add(fell_back);
    let part = share(fell_back as f64, wanted as f64).filter(|p| *p >= MIN_FALLBACK && wanted >= MIN_FAULTS)?;
    let sentence = format!(
        "{} of {} huge-page faults got small pages (thp_fault_fallback), after {} in direct compaction (compact_stall)",
        percent(part),
        count(wanted),
        counted(stalls, "stall"),
    );
    let success = a.counters.vmstat("compact_success");
    let detail = success.map_or(String::new(), |n| format!("{} of the stalls succeeded", count(n)));
    let timed = a.recorded.has(Kind::MmCompactionBegin) && a.recorded.has(Kind::MmCompactionEnd);
    let fix = "let kcompactd do it: transparent_hugepage/defrag = defer; to try: mmtwin run --on twin SCENARIO --set \
               kernel.thp_defrag=defer";
    Some(Finding {
        key: "thp_stalls",
        severity: grade(40, 60, part, MIN_FALLBACK, 100.0),
        sentence,
        detail,
        table: "compaction",
        cost: timed.then(|| Cost::by_names(a, a.compaction.waits.iter())),
        fix: Some(fix.into()),
        next: (!timed).then(|| "mmtwin record -e 'compaction:*' -- COMMAND".into()),
        ..Finding::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::fixture::Recording;

    fn faults(got: u64, fell_back: u64, stalls: u64) -> Recording {
        let mut r = Recording::default();
        r.vmstat(&[
            ("compact_stall", 0, stalls),
            ("compact_success", 0, stalls / 4),
            ("thp_fault_alloc", 0, got),
            ("thp_fault_fallback", 0, fell_back),
        ]);
        r
    }

    #[test]
    fn fires_with_the_time_of_the_stalls_where_recorded() {
        let mut r = faults(300, 700, 400);
        assert_eq!(check(&r.analysis).unwrap().cost, None);
        r.by(3, b"java", Kind::MmCompactionBegin, 0, &[("mode", 0)]);
        r.by(3, b"java", Kind::MmCompactionEnd, 1_000_000_000, &[("mode", 0), ("status", 5)]);
        r.by(4, b"kcompactd0", Kind::MmCompactionBegin, 0, &[("mode", 0)]);
        r.by(4, b"kcompactd0", Kind::MmCompactionEnd, 5_000_000_000, &[("mode", 0), ("status", 5)]);
        let f = check(&r.analysis).unwrap();
        assert!(f.sentence.starts_with("70 % of 1,000 huge-page faults got small pages"), "{}", f.sentence);
        assert_eq!(f.cost.unwrap().words(), "waited 1.0 s of 10 s (10 %): java");
    }

    #[test]
    fn does_not_fire_without_stalls_or_where_they_pay() {
        assert_eq!(check(&faults(300, 700, 0).analysis), None);
        assert_eq!(check(&faults(900, 100, 400).analysis), None);
        assert_eq!(check(&faults(3, 7, 40).analysis), None);
    }
}
