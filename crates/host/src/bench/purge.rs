//! Accounting for purged vmalloc areas: a locked subtraction for each, or one for a list.
//!
//! Models `purge_vmap_node` of 6.9 to 6.11 (per area) and 6.12 (batched): for each area of a purge list, unlink it,
//! account for its pages in `vmap_lazy_nr` and put it into the pool of the node under the pool's lock. CPUs that do
//! not purge may allocate and free meanwhile: three locked operations on the same line, because the count of all vmalloc
//! pages lay beside `vmap_lazy_nr`, and local work. A list is as long as one node's share when the drain is
//! triggered: fls(CPUs) x 32 MiB in areas of one page with its guard, over min(CPUs, 128) nodes.
//!
//! Not modelled: other sizes of areas, the free tree, TLB flushes, and areas that were last accessed by other CPUs. Checked
//! by tests: `vmap_lazy_nr` comes out right with any mix of threads, and every area is in the pool.

use super::figure::{Cycles, Figure, ROUNDS, in_rounds, mean};
use super::steps;
use super::threads::{Cpu, Gate, Padded, paced, together};
use super::work::Work;
use crate::{Error, shuffle};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// What allocating and freeing an area takes beside the shared line: assumed, nobody published it.
pub const PAIR: Duration = Duration::from_micros(10);

/// Ways to account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accounting {
    /// One subtraction per area.
    PerArea,
    /// One subtraction per list.
    Batched,
}

/// How to measure.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Time for each cell, over all its rounds.
    pub time: Duration,
    /// What an allocation and free does beside the shared line.
    pub work: Duration,
}

/// What a purge costs both ways.
#[derive(Clone, Copy, Debug)]
pub struct Purge {
    /// CPUs that purge, each a list of its own.
    pub purging: usize,
    /// CPUs that allocate and free meanwhile.
    pub freeing: usize,
    /// Nanoseconds per area with a subtraction for each.
    pub per_area: Figure,
    /// Nanoseconds per area with one subtraction per list.
    pub batched: Figure,
}

/// Everything measured.
#[derive(Clone, Debug)]
pub struct Costs {
    /// CPUs that ran.
    pub cpus: usize,
    /// Areas of a list.
    pub areas: u32,
    /// Both ways, by CPUs that purge and free.
    pub purges: Vec<Purge>,
    /// Cycles of the time-stamp counter per nanosecond, where it has a fixed frequency.
    pub cycles: Option<f64>,
}

/// Measures on these CPUs. Fails if one of them is not available.
pub fn measure(cpus: &[Cpu], options: &Options) -> Result<Costs, Error> {
    let cycles = Cycles::begin();
    let work = Work::lasting(options.work, cpus)?;
    let areas = areas_of_a_list(cpus.len());
    let mixes = mixes(cpus.len());
    let cells: Vec<_> = [Accounting::PerArea, Accounting::Batched]
        .into_iter()
        .flat_map(|accounting| mixes.iter().map(move |&mix| (accounting, mix)))
        .collect();
    let figures = in_rounds(&cells, |&(accounting, (purging, freeing))| {
        let line = Padded::<Line>::default();
        let times = together(&cpus[..purging + freeing], options.time / ROUNDS, |cpu, gate| {
            if cpu < purging {
                List::new(areas).purge_until_over(&line.0, accounting, gate)
            } else {
                allocate_and_free(&line.0, work, gate)
            }
        })?;
        Ok(mean(&times[..purging]))
    })?;
    let (per_area, batched) = figures.split_at(mixes.len());
    let purges = mixes.iter().zip(per_area.iter().zip(batched));
    let purge = |(&(purging, freeing), (&per_area, &batched))| Purge { purging, freeing, per_area, batched };
    Ok(Costs {
        cpus: cpus.len(),
        areas,
        purges: purges.map(purge).collect(),
        cycles: cycles.and_then(|c| c.per_nanosecond()),
    })
}

/// How many CPUs purge and how many free: 1, 2, 4, ... and all purge, the others idle or freeing.
fn mixes(cpus: usize) -> Vec<(usize, usize)> {
    let of =
        |purging| [0, cpus - purging].into_iter().take(if purging < cpus { 2 } else { 1 }).map(move |f| (purging, f));
    steps(cpus).into_iter().flat_map(of).collect()
}

/// A node's share of the areas that trigger a drain.
fn areas_of_a_list(cpus: usize) -> u32 {
    let fls = usize::BITS - cpus.leading_zeros();
    fls * 8192 / PAGES as u32 / cpus.clamp(1, 128) as u32
}

/// Pages of an area: one, and its guard.
const PAGES: i64 = 2;

const PAGE: u64 = 4096;

/// The line that everybody writes: lazily freed pages, and pages of all areas.
#[derive(Default)]
struct Line {
    vmap_lazy_nr: AtomicI64,
    nr_vmalloc_pages: AtomicI64,
}

struct Area {
    start: u64,
    end: u64,
    /// Next area of the purge list.
    next: u32,
    /// Next area of the pool.
    below: u32,
}

/// No area.
const NONE: u32 = u32::MAX;

#[derive(Default)]
struct Pool {
    top: u32,
    len: u32,
}

/// The purge list of a node, with its pool.
struct List {
    areas: Vec<Area>,
    first: u32,
    nr_purged: u64,
    pool: Mutex<Pool>,
}

impl List {
    /// A list in the order of addresses, whose areas lie in memory as an allocator under load leaves them.
    fn new(count: u32) -> List {
        let order = shuffle::order(count);
        let mut areas: Vec<Area> = order.iter().map(|_| Area { start: 0, end: 0, next: NONE, below: NONE }).collect();
        for (address, &at) in (0..).step_by(2).zip(&order) {
            let area = &mut areas[at as usize];
            (area.start, area.end) = (address * PAGE, (address + PAGES as u64) * PAGE);
        }
        for pair in order.windows(2) {
            areas[pair[0] as usize].next = pair[1];
        }
        let first = order.first().copied().unwrap_or(NONE);
        List { areas, first, nr_purged: 0, pool: Mutex::new(Pool { top: NONE, len: 0 }) }
    }

    /// Purges the list again and again; nanoseconds per area.
    fn purge_until_over(&mut self, line: &Line, accounting: Accounting, gate: &Gate) -> f64 {
        let areas = self.areas.len();
        let time = paced(gate, || {
            // The frees that this list comes from, as one: they belong to others.
            line.vmap_lazy_nr.fetch_add(PAGES * areas as i64, Ordering::Relaxed);
            *self.pool.lock().unwrap_or_else(PoisonError::into_inner) = Pool { top: NONE, len: 0 };
            self.purge(line, accounting);
        });
        time / areas as f64
    }

    fn purge(&mut self, line: &Line, accounting: Accounting) {
        let mut total = 0;
        let mut at = self.first;
        self.nr_purged = 0;
        while let Some(area) = self.areas.get_mut(at as usize) {
            let pages = ((area.end - area.start) / PAGE) as i64;
            let next = area.next;
            match accounting {
                Accounting::PerArea => _ = line.vmap_lazy_nr.fetch_sub(pages, Ordering::Relaxed),
                Accounting::Batched => total += pages,
            }
            self.nr_purged += 1;
            let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
            area.below = pool.top;
            *pool = Pool { top: at, len: pool.len + 1 };
            drop(pool);
            at = next;
        }
        if accounting == Accounting::Batched {
            line.vmap_lazy_nr.fetch_sub(total, Ordering::Relaxed);
        }
    }
}

/// Allocates and frees areas of one page until the run is over; nanoseconds per pair.
fn allocate_and_free(line: &Line, work: Work, gate: &Gate) -> f64 {
    let mut chain = 1;
    paced(gate, || chain = pair(line, work, chain))
}

/// Allocates an area, works, and frees it lazily.
fn pair(line: &Line, work: Work, mut chain: u64) -> u64 {
    chain ^= line.nr_vmalloc_pages.fetch_add(1, Ordering::Relaxed) as u64;
    chain = work.after(chain);
    chain ^= line.vmap_lazy_nr.fetch_add(PAGES, Ordering::Relaxed) as u64;
    line.nr_vmalloc_pages.fetch_sub(1, Ordering::Relaxed);
    chain
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::threads::cpus;

    #[test]
    fn lists_are_as_long_as_the_trigger_says() {
        for (cpus, areas) in [(2, 4096), (72, 398), (88, 325), (192, 256), (448, 288)] {
            assert_eq!(areas_of_a_list(cpus), areas, "{cpus} CPUs");
        }
    }

    #[test]
    fn all_mixes_fit_the_machine() {
        assert_eq!(mixes(1), [(1, 0)]);
        assert_eq!(mixes(2), [(1, 0), (1, 1), (2, 0)]);
        assert_eq!(mixes(4), [(1, 0), (1, 3), (2, 0), (2, 2), (4, 0)]);
    }

    #[test]
    fn a_purge_pools_every_area_and_accounts_for_it() {
        for accounting in [Accounting::PerArea, Accounting::Batched] {
            for count in [0, 1, 2, 1000] {
                let (mut list, line) = (List::new(count), Line::default());
                list.purge(&line, accounting);
                assert_eq!(line.vmap_lazy_nr.into_inner(), -PAGES * i64::from(count));
                assert_eq!(list.nr_purged, u64::from(count));
                let pool = list.pool.into_inner().unwrap();
                assert_eq!(pool.len, count);
                // Last in, first out: the pool holds the addresses in descending order.
                let mut pooled = Vec::new();
                let mut at = pool.top;
                while let Some(area) = list.areas.get(at as usize) {
                    pooled.push(area.start);
                    at = area.below;
                }
                assert_eq!(pooled.len(), count as usize);
                assert!(pooled.is_sorted_by(|a, b| a > b));
            }
        }
    }

    #[test]
    fn threads_lose_no_page() {
        let cpu = cpus().unwrap()[0];
        for accounting in [Accounting::PerArea, Accounting::Batched] {
            let line = Line::default();
            let work = Work::lasting(Duration::ZERO, &[cpu]).unwrap();
            let freed = together(&[cpu; 4], Duration::from_millis(5), |thread, gate| {
                if thread < 2 {
                    assert!(List::new(100).purge_until_over(&line, accounting, gate) > 0.0);
                    return 0;
                }
                let mut pairs = 0;
                paced(gate, || {
                    pair(&line, work, 1);
                    pairs += 1;
                });
                pairs
            });
            // What lists add they take off again; what remains is what was freed.
            assert_eq!(line.vmap_lazy_nr.into_inner(), PAGES * freed.unwrap().iter().sum::<i64>());
            assert_eq!(line.nr_vmalloc_pages.into_inner(), 0);
        }
    }
}
