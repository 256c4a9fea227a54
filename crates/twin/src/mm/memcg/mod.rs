//! Memory cgroups: `try_charge_memcg`, `consume_stock`, `drain_all_stock`, `mem_cgroup_try_charge_swap` (5.8 to 6.18).
//!
//! A page is charged to the cgroup of the task that faults it in and to all ancestors. CPUs charge 64 pages at once and
//! keep the rest as a stock for the same cgroup. At a limit the task reclaims from that cgroup before it allocates;
//! above `memory.high` it reclaims after the allocation ([`crate::engine`]), and sleeps. Memory of the kernel is in
//! [`kmem`]. Not modelled: a page from swap is charged to the cgroup of the task that reads it. Checked by tests here and of
//! `tests/cgroups.rs`.

pub(crate) mod high;
pub(crate) mod kmem;
pub(crate) mod protection;
mod statistics;
pub(crate) mod write;

use crate::mm::lru::PerType;
use crate::mm::vmscan::Reclaim;

/// Pages that are charged at once (`MEMCG_CHARGE_BATCH`).
pub(crate) const CHARGE: u64 = 64;
/// Fractional bits of an overage, and what a delay is scaled by (`MEMCG_DELAY_PRECISION_SHIFT`, `_SCALING_SHIFT`).
const PRECISION: u32 = 20;
const SCALING: u32 = 14;

/// A cgroup as it was made; limits in pages, `None`: any number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cgroup {
    /// Number of the one above; the root, number 0, is its own.
    pub parent: usize,
    /// Pages that it may have.
    pub max: Option<u64>,
    /// Pages above which its tasks are slowed down.
    pub high: Option<u64>,
    /// Pages below which it is reclaimed from only if nothing else is left.
    pub low: u64,
    /// Pages below which it is not reclaimed from.
    pub min: u64,
    /// Pages that it may have in swap.
    pub swap_max: Option<u64>,
}

/// How often something has happened to a cgroup or one below (`memory.events`, `memory.swap.events`, `memory.stat`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Events {
    pub low: u64,
    pub high: u64,
    pub max: u64,
    pub oom: u64,
    pub oom_kill: u64,
    pub swap_max: u64,
    pub swap_fail: u64,
    /// Charges that a limit stopped at first (`memory.failcnt` of version 1): a batch, or what was asked for.
    pub failcnt: u64,
    /// Pages of it scanned and reclaimed, by kswapds and by tasks (`memory.stat`).
    pub scanned: [u64; 2],
    pub reclaimed: [u64; 2],
    /// Of anonymous memory and files: refaults, those that activated the page, and those of pages of the working set.
    pub refaults: PerType,
    pub activates: PerType,
    pub restores: PerType,
    /// Faults of its tasks that needed a disk.
    pub pgmajfault: u64,
}

/// A cgroup with what it has.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Group {
    pub config: Cgroup,
    /// Pages in memory, with what CPUs keep in stock for it, and in swap.
    pub usage: u64,
    pub swap: u64,
    /// Bytes of the kernel's objects that are charged to it.
    pub object_bytes: u64,
    /// Pages of them that are not charged yet; negative: not uncharged.
    pub object_pages_due: i64,
    /// Pages of it that are protected, as its place in the tree has it: `memory.min`, `memory.low`.
    pub protected: [u64; 2],
    /// Pages scanned for it since a worker was woken for that (`struct vmpressure`).
    pub pressure: u64,
    /// Most pages that it has had in memory (`watermark`).
    pub peak: u64,
    pub events: Events,
    /// The same of the cgroup itself (`memory.events.local`).
    pub local: Events,
}

/// Stock of a CPU: charged pages that are not used yet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stock {
    cgroup: usize,
    pages: u64,
}

impl Reclaim {
    /// Charges pages that are about to be allocated. On failure: the nearest cgroup whose limit they would exceed.
    pub(crate) fn try_charge(&mut self, cpu: u32, cgroup: usize, pages: u64) -> Result<(), usize> {
        self.charge_objects(cgroup)?;
        let stock = &mut self.stocks[cpu as usize];
        if stock.cgroup == cgroup && stock.pages >= pages {
            stock.pages -= pages;
            return Ok(());
        }
        let many = pages.max(CHARGE);
        let charged = match self.over_limit(cgroup, many) {
            None => many,
            Some(full) => {
                self.groups[full].events.failcnt += 1;
                if many == pages {
                    return Err(full);
                }
                if let Some(full) = self.over_limit(cgroup, pages) {
                    self.groups[full].events.failcnt += 1;
                    return Err(full);
                }
                pages
            }
        };
        self.charge(cgroup, charged as i64);
        if charged > pages {
            self.refill(cpu, cgroup, charged - pages);
        }
        let is_high = |&at: &usize| self.groups[at].config.high.is_some_and(|high| self.groups[at].usage > high);
        if self.and_above(cgroup).any(|at| is_high(&at)) {
            self.over_high += charged;
        }
        Ok(())
    }

    /// Keeps charged pages for later; those of another cgroup are uncharged, as are too many.
    fn refill(&mut self, cpu: u32, cgroup: usize, pages: u64) {
        if self.stocks[cpu as usize].cgroup != cgroup {
            self.drain_stock(cpu);
        }
        let stock = &mut self.stocks[cpu as usize];
        *stock = Stock { cgroup, pages: stock.pages + pages };
        if stock.pages > CHARGE {
            self.drain_stock(cpu);
        }
    }

    fn drain_stock(&mut self, cpu: u32) {
        let Stock { cgroup, pages } = std::mem::take(&mut self.stocks[cpu as usize]);
        self.charge(cgroup, -(pages as i64));
    }

    /// Uncharges what all CPUs keep for a cgroup or one below.
    pub(crate) fn drain_stocks(&mut self, cgroup: usize) {
        for cpu in 0..self.stocks.len() {
            if self.and_above(self.stocks[cpu].cgroup).any(|at| at == cgroup) {
                self.drain_stock(cpu as u32);
            }
        }
    }

    /// The cgroup whose limit would be exceeded by some pages more of a cgroup, the nearest one.
    fn over_limit(&self, cgroup: usize, pages: u64) -> Option<usize> {
        let exceeds = |&at: &usize| self.groups[at].config.max.is_some_and(|max| self.groups[at].usage + pages > max);
        self.and_above(cgroup).find(exceeds)
    }

    /// Pages of a cgroup are added or removed.
    #[inline]
    pub(crate) fn charge(&mut self, cgroup: usize, pages: i64) {
        let mut at = cgroup;
        while at != 0 {
            let group = &mut self.groups[at];
            group.usage = group.usage.saturating_add_signed(pages);
            group.peak = group.peak.max(group.usage);
            at = group.config.parent;
        }
    }

    /// Charges pages that are swapped out; false if a cgroup is at its limit of swap.
    pub(crate) fn try_charge_swap(&mut self, cgroup: usize, pages: u64) -> bool {
        let full = |&at: &usize| self.groups[at].config.swap_max.is_some_and(|max| self.groups[at].swap + pages > max);
        if self.and_above(cgroup).any(|at| full(&at)) {
            self.note(cgroup, |events| {
                (events.swap_max, events.swap_fail) = (events.swap_max + 1, events.swap_fail + 1)
            });
            return false;
        }
        self.charge_swap(cgroup, pages as i64);
        true
    }

    /// Pages of a cgroup in swap are added or removed.
    pub(crate) fn charge_swap(&mut self, cgroup: usize, pages: i64) {
        let mut at = cgroup;
        while at != 0 {
            self.groups[at].swap = self.groups[at].swap.saturating_add_signed(pages);
            at = self.groups[at].config.parent;
        }
    }

    /// Pages that a cgroup can still have in swap.
    pub(crate) fn swap_left(&self, cgroup: usize) -> u64 {
        let left = |at: usize| self.groups[at].config.swap_max.map(|max| max.saturating_sub(self.groups[at].swap));
        self.and_above(cgroup).filter_map(left).chain([self.free_swap.unwrap_or(0)]).min().unwrap_or(0)
    }

    /// Something happens to a cgroup, and with it to all above.
    #[inline]
    pub(crate) fn note(&mut self, cgroup: usize, what: impl Fn(&mut Events)) {
        let mut at = cgroup;
        what(&mut self.groups[at].local);
        while at != 0 {
            what(&mut self.groups[at].events);
            at = self.groups[at].config.parent;
        }
    }

    /// The cgroup of a lruvec by its number.
    pub(crate) fn cgroup_of(&self, lruvec: usize) -> usize {
        lruvec % self.groups.len()
    }

    /// Ticks that a task sleeps that has charged pages to a cgroup beyond `memory.high`, of it or of one above: with the
    /// square of the largest overage, at most 2 s (`calculate_high_delay`).
    pub(crate) fn high_delay(&self, cgroup: usize, pages: u64) -> u64 {
        let overage = |at: usize| {
            let (usage, high) = (self.groups[at].usage, self.groups[at].config.high?);
            Some((usage.saturating_sub(high) << PRECISION) / high.max(1))
        };
        let overage = self.and_above(cgroup).filter_map(overage).max().unwrap_or(0);
        let square = u128::from(overage) * u128::from(overage) * u128::from(self.rules.hz);
        let delay = (square >> (PRECISION + SCALING)) * u128::from(pages) / u128::from(CHARGE);
        delay.min(u128::from(2 * self.rules.hz)) as u64
    }

    /// A cgroup and its ancestors without the root, whose usage is not counted.
    pub(crate) fn and_above(&self, cgroup: usize) -> impl Iterator<Item = usize> + use<'_> {
        let up = |&at: &usize| Some(self.groups[at].config.parent);
        std::iter::successors(Some(cgroup), up).take_while(|&at| at != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mm::vmscan::Rules;

    /// The root, number 1 and below it number 2.
    fn reclaim(one: Cgroup, two: Cgroup) -> Reclaim {
        let cgroups = vec![Cgroup::default(), Cgroup { parent: 0, ..one }, Cgroup { parent: 1, ..two }];
        Reclaim::new(Rules::V6_1, 1, cgroups, 2, 1 << 20)
    }

    fn usage(of: &Reclaim) -> [u64; 3] {
        [0, 1, 2].map(|at| of.groups[at].usage)
    }

    #[test]
    fn cpus_charge_64_pages_at_once() {
        let mut of = reclaim(Cgroup::default(), Cgroup::default());
        (0..64).for_each(|_| assert_eq!(of.try_charge(0, 2, 1), Ok(())));
        assert_eq!(usage(&of), [0, 64, 64]);
        assert_eq!((of.try_charge(0, 2, 1), of.try_charge(1, 2, 1)), (Ok(()), Ok(())));
        assert_eq!(usage(&of), [0, 192, 192], "each CPU for itself");
        assert_eq!(of.try_charge(0, 1, 1), Ok(()));
        assert_eq!(usage(&of), [0, 65 + 64 + 64, 65 + 64], "another cgroup: what was left is uncharged");
        of.drain_stocks(1);
        assert_eq!(usage(&of), [0, 67, 66]);
        assert_eq!((of.try_charge(0, 2, 512), usage(&of)), (Ok(()), [0, 579, 578]), "no more than a huge page");
    }

    #[test]
    fn the_nearest_limit_is_the_one_that_is_met() {
        let limit = |max| Cgroup { max: Some(max), ..Cgroup::default() };
        let mut of = reclaim(limit(100), limit(200));
        assert_eq!((of.try_charge(0, 2, 64), of.try_charge(0, 2, 1)), (Ok(()), Ok(())));
        assert_eq!(usage(&of), [0, 65, 65], "near a limit only what is asked for");
        assert_eq!(of.try_charge(0, 2, 36), Err(1));
        assert_eq!((of.try_charge(0, 2, 35), of.try_charge(0, 2, 1)), (Ok(()), Err(1)));
        let mut of = reclaim(limit(100), limit(100));
        assert_eq!(of.try_charge(0, 2, 101), Err(2));
    }

    #[test]
    fn charges_beyond_high_are_noted() {
        let high = Cgroup { high: Some(100), ..Cgroup::default() };
        let mut of = reclaim(high, Cgroup::default());
        (0..65).for_each(|_| assert_eq!(of.try_charge(0, 2, 1), Ok(())));
        assert_eq!(of.over_high, 64, "128 are charged, the last 64 of them beyond");
    }

    #[test]
    fn the_delay_grows_with_the_square_of_the_overage() {
        let high = |high| Cgroup { high: Some(high), ..Cgroup::default() };
        let mut of = reclaim(high(1024), high(10_000));
        let delay = |of: &mut Reclaim, usage: u64, pages| {
            of.charge(2, usage as i64 - of.groups[2].usage as i64);
            of.high_delay(2, pages)
        };
        assert_eq!(delay(&mut of, 1024, 64), 0);
        // A hundredth beyond, 10/1024 << 20 = 10240: squared, times 250, by 2^34.
        assert_eq!(delay(&mut of, 1034, 64), 1);
        assert_eq!((delay(&mut of, 1074, 64), delay(&mut of, 1074, 32)), (38, 19));
        assert_eq!(delay(&mut of, 2048, 64), 500, "2 s at most");
    }

    #[test]
    fn swap_of_a_cgroup_ends_at_its_limit() {
        let mut of = reclaim(Cgroup { swap_max: Some(3), ..Cgroup::default() }, Cgroup::default());
        of.free_swap = Some(1000);
        assert_eq!([0, 1, 2].map(|at| of.swap_left(at)), [1000, 3, 3]);
        assert_eq!([(); 4].map(|()| of.try_charge_swap(2, 1)), [true, true, true, false]);
        assert_eq!([0, 1, 2].map(|at| of.swap_left(at)), [1000, 0, 0]);
        of.charge_swap(2, -1);
        assert!(of.try_charge_swap(2, 1));
        assert_eq!([1, 2].map(|at| of.groups[at].events.swap_max), [1, 1]);
    }
}
