//! Time waited until evicted pages were read back, from files or from swap.
//!
//! The kernel traces where such a wait begins, not where it ends, but counts it in two kinds of pressure. Pressure on I/O
//! has every wait for a disk; pages that came back have the part of it that they have in all that was read. Pressure on
//! memory has waits for pages that were in use when they were evicted, from swap in memory too, beside all reclaim: what
//! is left of it after reclaim is time of these waits, or less, as not all of them count. So the larger of both is the
//! cost. Where delay accounting of tasks is recorded it is a third: their waits for disks, of which pages that came back
//! have the same part, or if these are more the waits that the kernel counts as thrashing or swap-in. It is a sum over
//! tasks, where pressure counts tasks that wait at once once, so it is taken if it is more: with less, tasks are missing.
//! The second says nothing where the time of reclaim is not known: without its events, and of the system where
//! kswapd scanned, whose own reclaim is in the pressure too.

use super::part::Part;
use super::{Cost, Measured, Pressure, elapsed};
use crate::Analysis;
use crate::delays::Delays;
use crate::tasks::{Context, Task};
use mmtwin_event::Kind;

/// Less than this of the pressure on memory is left after reclaim: events and pressure of the same reclaim differ by as
/// much, as it was measured (`tests/verdicts/README.md`).
const LEFT: f64 = 0.1;
/// More pages came back than were read, by this: they are in memory, on a compressed swap, and no disk was waited for.
const MORE_THAN_READ: f64 = 1.1;
/// Nanoseconds of pressure on I/O for each page that was read: with less, 40 GB/s, it is memory that they were read from,
/// and their reading is no wait for I/O.
const MIN_PER_PAGE: f64 = 100.0;

/// Shares of the elapsed time.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadBack {
    /// Waited for memory outside of reclaim. `None`: not recorded.
    pub waited: Option<f64>,
    /// Waited for the disk because of pages that came back. `None`: not recorded, or nothing was read from a disk.
    pub reading: Option<f64>,
    /// The same by delay accounting, summed over tasks, if it is more. `None`: it is not, or not recorded.
    accounted: Option<f64>,
    /// Pages that came back.
    pages: u64,
    /// Reclaim whose time is not known is in `waited` too.
    with_reclaim: bool,
}

impl ReadBack {
    /// Of some pages of a cgroup, or of any, that came back, beside the pressure of their cgroup, else of the system.
    pub fn of(a: &Analysis, whose: Option<&str>, pressure: Option<&Pressure>, pages: u64) -> ReadBack {
        let cgroup = pressure.map(|pressure| pressure.of.as_str()).filter(|of| !of.is_empty());
        let memory = pressure.and_then(|pressure| pressure.memory_some);
        // A cgroup of which only pressure on memory was sampled reads from the disks of the system.
        let system = || Pressure::of(a, None).and_then(|pressure| pressure.io_some);
        let io = pressure.and_then(|pressure| pressure.io_some).or_else(system);
        let waited = memory.map(|some| (some - in_reclaim(a, cgroup)).max(0.0));
        let pressed = io.and_then(|some| reading(a, some, pages));
        let waits = tasks_waited(a, whose, pages);
        let sum = waits.iter().fold(0, |sum: u64, (_, ns)| sum.saturating_add(*ns));
        let accounted = elapsed(a).map(|elapsed| sum as f64 / elapsed as f64).filter(|share| *share > 0.0);
        let accounted = accounted.filter(|share| Some(*share) > pressed);
        ReadBack {
            waited,
            reading: accounted.or(pressed),
            accounted,
            pages,
            with_reclaim: !times_of_reclaim_are_known(a, cgroup),
        }
    }

    /// The time; `None` if neither pressure tells it.
    pub fn cost(&self, a: &Analysis, whose: Option<&str>, pressure: Option<&Pressure>) -> Option<Cost> {
        // Where hardly anything is left it is not known to be nothing.
        let some = pressure.and_then(|pressure| pressure.memory_some).unwrap_or(0.0);
        let waited = self.waited.filter(|waited| *waited > some * LEFT && !self.with_reclaim);
        let (share, measured) = match (waited, self.reading) {
            (Some(waited), Some(reading)) if waited > reading => (waited, Measured::MemoryPressure),
            (Some(waited), None) => (waited, Measured::MemoryPressure),
            (_, reading) => (reading?, Measured::IoPressure),
        };
        let cgroup = pressure.map(|pressure| pressure.of.clone()).filter(|of| !of.is_empty());
        if measured == Measured::IoPressure && self.accounted.is_some() {
            let named = |(task, ns): (Task, u64)| ((task.name(), a.tasks.cgroup(&task).map(str::to_string)), ns);
            let by = tasks_waited(a, whose, self.pages).into_iter().map(named);
            return Some(Cost { measured: Measured::DelayAccounting, ..Cost::by_tasks(a, by) });
        }
        let waited = (share * elapsed(a)? as f64).round() as u64;
        Some(Cost { measured, cgroup, ..Cost::of(a, waited) })
    }
}

/// True if events tell how long all reclaim took that is in the pressure of a cgroup, or of the system.
fn times_of_reclaim_are_known(a: &Analysis, cgroup: Option<&str>) -> bool {
    let none = |name: &str| a.counters.vmstat_prefix(name) == Some(0);
    let direct = a.recorded.has(Kind::MmVmscanDirectReclaimBegin) || none("allocstall");
    let kswapd = cgroup.is_some() || none("pgscan_kswapd");
    a.recorded.has(Kind::MmVmscanMemcgReclaimBegin) && direct && kswapd
}

/// What tasks of a cgroup and those below it, or all tasks, waited for pages that came back, by delay accounting. Of a
/// cgroup the pages are a part of what its tasks had read, where the kernel counts that.
fn tasks_waited(a: &Analysis, cgroup: Option<&str>, pages: u64) -> Vec<(Task, u64)> {
    // Others waited too, and of many it is not known where they were.
    let is_of = |task: &Task| cgroup.is_none() || (a.tasks.cgroup(task).is_some() && is_within(a, task, cgroup));
    let all: Vec<_> = Delays::all(a).into_iter().filter(|(task, _)| is_of(task)).collect();
    let read = all.iter().filter_map(|(_, delays)| delays.read).fold(0, u64::saturating_add);
    let of_tasks = (cgroup.is_some() && read >= 4096).then(|| pages as f64 * 4096.0 / read as f64);
    let part = of_tasks.or_else(|| part_of_reads(a, pages)).filter(|part| *part <= MORE_THAN_READ);
    let part = part.unwrap_or(0.0).min(1.0);
    let of_task = |delays: Delays| {
        let reading = (delays.blkio.unwrap_or(0) as f64 * part) as u64;
        reading.max(delays.thrashing.unwrap_or(0)).max(delays.swapin.unwrap_or(0))
    };
    all.into_iter().map(|(task, delays)| (task, of_task(delays))).filter(|(_, ns)| *ns > 0).collect()
}

/// The part that some pages have in all that was read; `None`: what was read is not recorded.
fn part_of_reads(a: &Analysis, pages: u64) -> Option<f64> {
    part_of(pages, a.counters.vmstat("pgpgin")?)
}

/// The part that some pages have in so many KiB, as the kernel counts what is read; `None`: no page was.
fn part_of(pages: u64, read_kib: u64) -> Option<f64> {
    (read_kib >= 4).then(|| pages as f64 * 4.0 / read_kib as f64)
}

/// True for a task of a cgroup or below it, of which it is not recorded where it is, and without a cgroup for all.
fn is_within(a: &Analysis, task: &Task, cgroup: Option<&str>) -> bool {
    let is_of =
        |path: &str, of: &str| path.strip_prefix(of).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    match (cgroup, a.tasks.cgroup(task)) {
        (Some(of), Some(path)) => is_of(path, of.trim_end_matches('/')),
        _ => true,
    }
}

/// The part of the pressure on I/O that some pages have in all that was read. `None`: what was read is not recorded, or
/// disks are not where they came from.
fn reading(a: &Analysis, io_some: f64, pages: u64) -> Option<f64> {
    of_pages(io_some, a.counters.vmstat("pgpgin")?, pages, elapsed(a)?)
}

/// The same of the system in a part of the recording, of pages that some counters have, as a share of the time of the
/// part.
pub fn reading_in(a: &Analysis, part: Part, counters: &[&str]) -> Option<f64> {
    let pages = counters.iter().filter_map(|name| part.grew(a, "vmstat", name)).reduce(u64::saturating_add)?;
    let io_some = part.grew(a, "psi", "io_some_total")? as f64 * 1e3 / part.length() as f64;
    of_pages(io_some, part.grew(a, "vmstat", "pgpgin")?, pages, part.length())
}

/// The part of the pressure on I/O in so many nanoseconds that some pages have in so many KiB that were read.
fn of_pages(io_some: f64, read_kib: u64, pages: u64, elapsed: u64) -> Option<f64> {
    let part = part_of(pages, read_kib)?;
    let from_disks = part <= MORE_THAN_READ && io_some * elapsed as f64 >= read_kib as f64 / 4.0 * MIN_PER_PAGE;
    from_disks.then(|| io_some * part.min(1.0))
}

/// Share of the elapsed time that tasks were in direct and cgroup reclaim, which is in the pressure on memory too: those
/// of a cgroup and below it, and of which it is not recorded where they are; without a cgroup all.
fn in_reclaim(a: &Analysis, cgroup: Option<&str>) -> f64 {
    let reclaimers = a.reclaimers().filter(|(task, _)| is_within(a, task, cgroup)).map(|(_, process)| process);
    let stalled: u64 =
        reclaimers.flat_map(|p| [Context::Direct, Context::Memcg].map(|c| p.waited(c))).fold(0, u64::saturating_add);
    elapsed(a).map_or(0.0, |elapsed| stalled as f64 / elapsed as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::fixture::Recording;

    const SECOND: u64 = 1_000_000_000;

    /// Ten seconds in which 1,000 of 4,000 pages that were read came back, and a task reclaimed for a second.
    fn recording(io: u64, memory: u64, kswapd: u64) -> Recording {
        let mut r = Recording::default();
        r.vmstat(&[("pgpgin", 0, 16_000), ("pgscan_kswapd", 0, kswapd), ("allocstall_normal", 0, 0)]);
        r.counters("psi", "", &[("io_some_total", 0, io * 1_000_000), ("memory_some_total", 0, memory * 1_000_000)]);
        r.event(Kind::MmVmscanMemcgReclaimBegin, 2 * SECOND, &[("order", 0)]);
        r.event(Kind::MmVmscanMemcgReclaimEnd, 3 * SECOND, &[("nr_reclaimed", 32)]);
        r
    }

    fn cost(r: &Recording, cgroup: Option<&str>) -> Option<(u64, Measured)> {
        let pressure = Pressure::of(&r.analysis, cgroup);
        let cost =
            ReadBack::of(&r.analysis, None, pressure.as_ref(), 1_000).cost(&r.analysis, None, pressure.as_ref())?;
        Some((cost.waited / 1_000_000, cost.measured))
    }

    #[test]
    fn the_larger_pressure_tells_the_time() {
        assert_eq!(cost(&recording(8, 1, 0), None), Some((2_000, Measured::IoPressure)), "a quarter of what was read");
        assert_eq!(cost(&recording(4, 5, 0), None), Some((4_000, Measured::MemoryPressure)), "a second was reclaim");
        assert_eq!(cost(&recording(4, 5, 7), None), Some((1_000, Measured::IoPressure)), "kswapd is in it");
    }

    #[test]
    fn what_reclaim_hides_is_not_known() {
        let mut r = Recording::default();
        assert_eq!(cost(&r, None), None);
        r.counters("psi", "", &[("memory_some_total", 0, 1_900_000)]);
        r.vmstat(&[("pgpgin", 0, 0), ("pgscan_kswapd", 0, 0), ("allocstall_normal", 0, 0)]);
        assert_eq!(cost(&r, None), None, "reclaim is not recorded, and may be all of it");
        for (begin, ms, left) in [(2, 1_000, Some((900, Measured::MemoryPressure))), (4, 800, None), (6, 500, None)] {
            r.event(Kind::MmVmscanMemcgReclaimBegin, begin * SECOND, &[("order", 0)]);
            r.event(Kind::MmVmscanMemcgReclaimEnd, begin * SECOND + ms * 1_000_000, &[("nr_reclaimed", 32)]);
            assert_eq!(cost(&r, None), left, "swap in memory; hardly anything left; more reclaim than pressure");
        }
    }

    #[test]
    fn pages_that_no_disk_read_cost_no_time_of_disks() {
        for (kib, us, expected) in [(3_900, 9_000, true), (3_000, 9_000, false), (3_900, 90, false)] {
            let mut r = Recording::default();
            r.vmstat(&[("pgpgin", 0, kib)]);
            r.counters("psi", "", &[("io_some_total", 0, us)]);
            assert_eq!(cost(&r, None).is_some(), expected, "{kib} KiB in {us} us");
        }
    }

    #[test]
    fn a_cgroup_is_charged_with_its_own_reclaim() {
        let mut r = recording(0, 0, 9);
        r.counters("cgroup", "/web", &[("memory.pressure.some_total", 0, 3_000_000)]);
        assert_eq!(
            cost(&r, Some("/web")),
            Some((2_000, Measured::MemoryPressure)),
            "whose reclaim it was is not known"
        );
        r.analysis.tasks.announce(1, 1, b"task");
        r.analysis.tasks.announce_cgroup(1, "/web/db");
        assert_eq!(cost(&r, Some("/web")), Some((2_000, Measured::MemoryPressure)), "below it");
        r.analysis.tasks.announce_cgroup(1, "/webmail");
        assert_eq!(cost(&r, Some("/web")), Some((3_000, Measured::MemoryPressure)), "of another");
    }

    #[test]
    fn tasks_that_wait_at_once_are_summed_by_delay_accounting() {
        let mut r = recording(2, 0, 0);
        let names = ["blkio_ns", "swapin_ns", "freepages_ns", "thrashing_ns", "compact_ns"];
        for (pid, blkio) in [("7", 8_000_000_000), ("8", 8_000_000_000), ("9", 8_000_000_000)] {
            r.counters("delays", pid, &names.map(|name| (name, 0, if name == "blkio_ns" { blkio } else { 0 })));
        }
        r.analysis.tasks.announce(7, 7, b"reader");
        r.analysis.tasks.announce_cgroup(7, "/box/a");
        r.analysis.tasks.announce_cgroup(8, "/other");
        let cost = |whose| {
            let pressure = Pressure::of(&r.analysis, None);
            let read_back = ReadBack::of(&r.analysis, whose, pressure.as_ref(), 1_000);
            read_back.cost(&r.analysis, whose, pressure.as_ref()).map(|cost| (cost.waited / 1_000_000, cost.measured))
        };
        assert_eq!(cost(None), Some((6_000, Measured::DelayAccounting)), "a quarter of what was read");
        assert_eq!(
            cost(Some("/box")),
            Some((2_000, Measured::DelayAccounting)),
            "of the task that is known to be in it"
        );
        assert_eq!(cost(Some("/none")), Some((500, Measured::IoPressure)), "nothing is known of tasks there");
    }
}
