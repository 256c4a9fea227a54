//! A swap storm: pages go out to swap and come back in at the same time.

use super::cgroup::{Cgroup, at_its_limit};
use super::part::Part;
use super::read_back::ReadBack;
use super::refaults::{WAIT, reclaims_for_cgroups_only};
use super::scope::Scope;
use super::words::{count, pages, percent, time};
use super::{Finding, Pressure, elapsed, grade};
use crate::Analysis;

/// Pages in each direction (20 MiB): less is a start, or a program that wakes up.
pub const MIN_PAGES: u64 = 5_000;
/// The same where somebody was seen to wait for what came in: some seconds of a recording have no more.
const MIN_PAGES_WAITED: u64 = 1_000;
/// The smaller direction against the larger one. Memory that is only put away, or only fetched, costs once.
const MIN_BALANCE: f64 = 0.2;
/// Pages read per major fault: the kernel reads at most so many around the one that is needed, unless it was told
/// otherwise, so fewer faults than that mean that nobody waited for most of what came in.
const READ_AHEAD: u64 = 32;
/// Pressure that is as good an evidence of waiting.
pub const MIN_PRESSURE: f64 = 0.01;
/// Pages a second in each direction, 40 MiB: a disk does little else.
const EXTREME_RATE: f64 = 10_000.0;

pub fn check(a: &Analysis) -> Option<Finding> {
    let (into, out) = (a.counters.vmstat("pswpin")?, a.counters.vmstat("pswpout")?);
    let faults = a.counters.vmstat("pgmajfault");
    // Whose memory it is, where nothing else reclaims.
    let cgroup = at_its_limit(a).filter(|_| reclaims_for_cgroups_only(a));
    let pressure = Pressure::of(a, cgroup.map(|cgroup| cgroup.key));
    let whose = cgroup.map(|cgroup| cgroup.key);
    let cost = ReadBack::of(a, whose, pressure.as_ref(), into).cost(a, whose, pressure.as_ref());
    let waited = cost.as_ref().and_then(|cost| cost.share()) >= Some(WAIT);
    let min = if waited { MIN_PAGES_WAITED } else { MIN_PAGES };
    let whole = Swapped { into, out, ns: elapsed(a)?, part: false };
    let swapped = [Some(whole), most(a)].into_iter().flatten().find(|swapped| swapped.is_storm(min))?;
    let pressed =
        pressure.as_ref().is_some_and(|p| p.memory_some >= Some(MIN_PRESSURE) || p.io_some >= Some(MIN_PRESSURE));
    if !pressed && faults.is_none_or(|n| n.saturating_mul(READ_AHEAD) < into) {
        return None;
    }
    let mut detail = Vec::new();
    detail.extend(faults.map(|n| format!("{} major faults", count(n))));
    let refaults = a.counters.vmstat("workingset_refault_anon");
    detail.extend(refaults.map(|n| format!("{} refaults of anonymous pages", count(n))));
    if let Some((free, all)) =
        a.counters.last("meminfo", "", "SwapFree").zip(a.counters.last("meminfo", "", "SwapTotal"))
        && all > 0
    {
        detail.push(format!("swap {} full at the end", percent((all - free.min(all)) as f64 * 100.0 / all as f64)));
    }
    Some(Finding {
        key: "swap_storm",
        severity: grade(45, 80, swapped.less() as f64 * 1e9 / swapped.ns as f64, 0.0, EXTREME_RATE),
        sentence: swapped.words(whole.ns),
        detail: detail.join("; "),
        table: "vmstat",
        cost,
        pressure,
        fix: Some(fix(a, cgroup, into)),
        ..Finding::default()
    })
}

/// What was swapped in a time.
#[derive(Clone, Copy)]
struct Swapped {
    /// Pages that came in.
    into: u64,
    /// Pages that went out.
    out: u64,
    /// Nanoseconds.
    ns: u64,
    /// In a part of the recording. What went out was evicted then, written or not.
    part: bool,
}

impl Swapped {
    /// The smaller direction.
    fn less(self) -> u64 {
        self.into.min(self.out)
    }

    fn is_storm(self, min: u64) -> bool {
        self.less() >= min && self.less() as f64 >= self.into.max(self.out) as f64 * MIN_BALANCE
    }

    fn words(self, elapsed: u64) -> String {
        let (into, out, ns) = (pages(self.into), pages(self.out), time(self.ns as f64));
        match self.part {
            false => format!("swap storm: {out} went out to swap and {into} came back in {ns} (pswpout, pswpin)"),
            true => format!(
                "swap storm: {into} came back from swap in {ns} of {} while {out} of anonymous memory was evicted \
                 (pswpin, pgsteal_anon)",
                time(elapsed as f64)
            ),
        }
    }
}

/// That of the part of the recording in which most came in: before, memory may have gone out that was written for the first
/// time. A page that is still in swap when it is evicted again is not written again, so what was evicted counts.
fn most(a: &Analysis) -> Option<Swapped> {
    let part = Part::of(&Scope::machine(&a.counters).over_time(&["pswpin"]))?;
    let grew = |name| part.grew(a, "vmstat", name);
    Some(Swapped { into: grew("pswpin")?, out: grew("pgsteal_anon")?, ns: part.length(), part: true })
}

/// What would help: a larger limit where a cgroup swaps; less swapping only where the page cache has pages to take
/// instead.
fn fix(a: &Analysis, cgroup: Option<Cgroup>, into: u64) -> String {
    if let Some((cgroup, limit)) = cgroup.and_then(|cgroup| Some((cgroup, cgroup.limit().or_else(|| cgroup.high())?))) {
        let try_limit = cgroup.try_limit(limit.saturating_mul(2));
        return format!("less anonymous memory in {}, or a larger limit; to try one: {try_limit}", cgroup.words());
    }
    let room = "less anonymous memory or more room for it";
    let lists = ["nr_inactive_file", "nr_active_file"].map(|name| a.counters.last("vmstat", "", name));
    match lists {
        [Some(inactive), Some(active)] if inactive.saturating_add(active) >= into => {
            format!(
                "{room}; to try less swapping: mmtwin run --on twin SCENARIO --set kernel.sysctl.vm.swappiness=1, as the \
                 page cache has {} to take instead",
                pages(inactive.saturating_add(active))
            )
        }
        _ => format!("{room}: the page cache is too small to take pages from it instead"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::fixture::Recording;
    use mmtwin_event::{CounterRow, Sink};

    #[test]
    fn states_what_was_waited_for_pages_to_come_in() {
        let mut r = Recording::default();
        r.vmstat(&[
            ("pswpin", 0, 30_000),
            ("pswpout", 0, 40_000),
            ("pgmajfault", 0, 20_000),
            ("pgpgin", 0, 160_000),
            ("pgscan_kswapd", 0, 0),
            ("allocstall_normal", 0, 0),
        ]);
        r.counters("psi", "", &[("memory_some_total", 0, 3_000_000), ("io_some_total", 0, 8_000_000)]);
        let words = |r: &Recording| check(&r.analysis).unwrap().cost.unwrap().words();
        assert_eq!(words(&r), "waited 6.0 s of 10 s (60 %) by PSI of I/O", "three quarters of what was read");
        // Of the cgroup whose memory it is.
        r.counters(
            "cgroup",
            "/a/web",
            &[
                ("memory.max", 1 << 26, 1 << 26),
                ("memory.events.max", 0, 900),
                ("memory.pressure.some_total", 0, 4_000_000),
                ("io.pressure.some_total", 0, 9_200_000),
            ],
        );
        assert_eq!(words(&r), "waited 6.9 s of 10 s (69 %) by PSI of I/O: cgroup /a/web");
    }

    fn swapping(into: u64, out: u64, faults: u64) -> Option<Finding> {
        let mut r = Recording::default();
        r.vmstat(&[("pswpin", 7, 7 + into), ("pswpout", 0, out), ("pgmajfault", 0, faults)]);
        check(&r.analysis)
    }

    #[test]
    fn fires_when_both_directions_are_busy() {
        let f = swapping(40_000, 46_565, 20_000).unwrap();
        assert_eq!(f.sentence, "swap storm: 182 MiB went out to swap and 156 MiB came back in 10 s (pswpout, pswpin)");
        assert_eq!(f.detail, "20,000 major faults");
    }

    #[test]
    fn swappiness_is_proposed_only_where_the_page_cache_has_enough() {
        for (file, proposed) in [(50_000, true), (900, false)] {
            let mut r = Recording::default();
            r.vmstat(&[
                ("pswpin", 0, 40_000),
                ("pswpout", 0, 40_000),
                ("pgmajfault", 0, 20_000),
                ("nr_inactive_file", 0, file),
                ("nr_active_file", 0, 0),
            ]);
            let fix = check(&r.analysis).unwrap().fix.unwrap();
            assert_eq!(fix.contains("swappiness"), proposed, "{fix}");
        }
    }

    #[test]
    fn few_pages_count_where_somebody_waited_for_them() {
        for (io_ms, fires) in [(100, false), (900, true)] {
            let mut r = Recording::default();
            r.vmstat(&[("pswpin", 0, 4_400), ("pswpout", 0, 3_900), ("pgmajfault", 0, 4_400), ("pgpgin", 0, 17_600)]);
            r.counters("psi", "", &[("io_some_total", 0, io_ms * 1_000)]);
            assert_eq!(check(&r.analysis).is_some(), fires, "{io_ms}");
        }
    }

    #[test]
    fn what_went_out_before_does_not_dilute_it() {
        // 80,000 pages are written once in ten seconds; then some come in, and others have to go for them, or not.
        for (evicted, fires) in [(900, true), (100, false), (9_000, false)] {
            let mut r = Recording::default();
            let mut sums = [0u64; 4];
            for second in 0..=24 {
                let grown = match second {
                    1..=10 => [0, 8_000, 8_000, 0],
                    11..=20 => [1_000, 0, evicted, 1_000],
                    _ => [0; 4],
                };
                sums.iter_mut().zip(grown).for_each(|(sum, n)| *sum += n);
                let names = ["pswpin", "pswpout", "pgsteal_anon", "pgmajfault"].map(String::from);
                let (at, values) = (second * 1_000_000_000, sums.map(Some));
                r.analysis.counters(&CounterRow { source: "vmstat", key: "", at, names: &names, values: &values });
            }
            let found = check(&r.analysis).map(|f| f.sentence);
            let expected = "swap storm: 39 MiB came back from swap in 10 s of 24 s while 35 MiB of anonymous memory was \
                            evicted (pswpin, pgsteal_anon)";
            assert_eq!(found.as_deref(), fires.then_some(expected), "{evicted}");
        }
    }

    #[test]
    fn does_not_fire_for_memory_that_is_put_away_or_read_ahead() {
        assert_eq!(swapping(1_000, 46_565, 1_000), None);
        assert_eq!(swapping(7_000, 46_565, 7_000), None);
        assert_eq!(swapping(40_000, 46_565, 3), None);
        assert_eq!(check(&Analysis::default()), None);
    }
}
